"""The clean pool: SFT rows that the mixture draws from before any slot is replaced."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from itertools import islice
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd

from softcontam.config import PoolConfig, derive_seed
from softcontam.errors import ConfigError, DataError
from softcontam.jsonl import read_jsonl
from softcontam.tinyworld.generator import clean_rows

TINYWORLD_ROWS = 8000
"""Size of the embedded pool."""

_REMEDY = "Set paths.data (or SOFTCONTAM_DATA) to the folder of local data, or mixture.pool.files to files of your own."


@dataclass(frozen=True)
class PoolRow:
    """One clean row: the first user and the first assistant turn of a conversation."""

    row_id: str
    prompt: str
    completion: str
    source: str


def load_pool(config: PoolConfig, data: Path) -> list[PoolRow]:
    """All rows of the pool, in the order of its files.

    Raises:
        ConfigError: an unknown pool without files.
        DataError: a missing or damaged file, or a row that is no conversation; names file and row.
    """
    if config.files:
        return [row for file in config.files for row in _read(data / file)]
    if config.name == "tinyworld":
        rows = islice(clean_rows(derive_seed(0, "tinyworld:pool")), TINYWORLD_ROWS)
        return [PoolRow(f"tinyworld/{i}", p, c, f"tinyworld {task}") for i, (task, p, c) in enumerate(rows)]
    raise ConfigError(f"mixture.pool.name={config.name} has no files. Set mixture.pool.files, or use tinyworld.")


def _records(path: Path) -> Iterator[tuple[int, Mapping[str, Any]]]:
    """Each row of one file with its number, counted from 1."""
    if path.suffix != ".parquet":
        yield from read_jsonl(path, _REMEDY)
        return
    try:
        rows = pd.read_parquet(path).to_dict("records")
    except FileNotFoundError:
        raise DataError(f"{path} does not exist. {_REMEDY}") from None
    except (OSError, ValueError) as error:
        raise DataError(f"{path} cannot be read ({error}). Copy it again.") from error
    yield from enumerate(({str(name): value for name, value in row.items()} for row in rows), 1)


def _first_turns(record: Mapping[str, Any]) -> tuple[str | None, str | None]:
    """Text of the first user turn and of the first assistant turn after it; None for what is not there."""
    messages = record.get("messages")
    texts: list[str] = []
    for turn in messages if isinstance(messages, list | np.ndarray) else []:
        role = turn.get("role") if isinstance(turn, dict) else None
        content = turn.get("content") if isinstance(turn, dict) else None
        if len(texts) < 2 and role == ("user", "assistant")[len(texts)]:
            if not isinstance(content, str) or not content.strip():
                break
            texts.append(content)
    return (texts[0] if texts else None), (texts[1] if len(texts) == 2 else None)


def _read(path: Path) -> Iterator[PoolRow]:
    """Rows of one file; conversations without a user turn followed by an assistant turn are an error."""
    for number, record in _records(path):
        user, assistant = _first_turns(record)
        if user is None or assistant is None:
            raise DataError(
                f"clean pool {path}, row {number}: `messages` needs a user and an assistant turn, in this order, "
                "each with its text in `content`"
            )
        row_id = f"{path.parent.name}/{path.stem}/{number}"
        yield PoolRow(row_id, user, assistant, str(record.get("source", path.parent.name)))
