"""The clean pool: SFT rows that the mixture draws from before any slot is replaced."""

from __future__ import annotations

import json
from collections.abc import Iterator
from dataclasses import dataclass
from itertools import islice
from pathlib import Path

import pandas as pd

from softcontam.config import PoolConfig, derive_seed
from softcontam.errors import ConfigError, DataError
from softcontam.tinyworld.generator import clean_rows

TINYWORLD_ROWS = 8000
"""Size of the embedded pool."""


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


def _records(path: Path) -> Iterator[dict[str, object]]:
    if path.suffix == ".parquet":
        yield from pd.read_parquet(path).to_dict("records")  # type: ignore[misc]
        return
    with path.open(encoding="utf-8") as lines:
        for number, line in enumerate(lines, 1):
            try:
                yield json.loads(line)
            except json.JSONDecodeError as error:
                raise DataError(f"clean pool {path}, line {number}: not valid JSON ({error.msg})") from None


def _read(path: Path) -> Iterator[PoolRow]:
    """Rows of one file; conversations without a user turn followed by an assistant turn are an error."""
    try:
        for number, record in enumerate(_records(path), 1):
            messages = record.get("messages")
            turns = [] if messages is None else list(messages)  # type: ignore[call-overload]
            user = next((turn["content"] for turn in turns if turn["role"] == "user"), None)
            assistant = next((turn["content"] for turn in turns if turn["role"] == "assistant"), None)
            if not user or not assistant:
                raise DataError(f"clean pool {path}, row {number}: `messages` needs a user and an assistant turn")
            yield PoolRow(f"{path.parent.name}/{number}", user, assistant, str(record.get("source", path.parent.name)))
    except FileNotFoundError:
        raise DataError(
            f"clean pool {path} does not exist. Set paths.data (or SOFTCONTAM_DATA) to the folder of local data, "
            "or mixture.pool.files to files of your own."
        ) from None
    except (OSError, ValueError) as error:
        raise DataError(f"clean pool {path} cannot be read ({error}). Copy it again.") from error
