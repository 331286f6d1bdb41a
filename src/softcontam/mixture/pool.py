"""The clean pool: SFT rows that the mixture draws from before any slot is replaced.

Parquet files are read in batches whenever rows are needed, so that a pool of a million rows takes no memory of its own.
JSONL files and the embedded pool are kept in memory.
"""

from __future__ import annotations

from bisect import bisect_right
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from itertools import accumulate, islice
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq

from softcontam.config import PoolConfig, derive_seed
from softcontam.errors import ConfigError, DataError
from softcontam.jsonl import read_jsonl
from softcontam.tinyworld.generator import clean_rows

TINYWORLD_ROWS = 8000
"""Size of the embedded pool."""

BATCH = 4_000
"""Rows that are read together."""

BUFFER = 1 << 20
"""Bytes of a column that are read together, so that one row group may hold a whole pool."""

_REMEDY = "Set paths.data (or SOFTCONTAM_DATA) to the folder of local data, or mixture.pool.files to files of your own."


@dataclass(frozen=True)
class PoolRow:
    """One clean row: the first user and the first assistant turn of a conversation.

    White space around the answer is taken off: with it, chat templates merge tokens across the turns.
    """

    row_id: str
    prompt: str
    completion: str
    source: str


class Pool:
    """The rows of some files in their order, counted without being read."""

    def __init__(self, parts: Sequence[Sequence[PoolRow] | ParquetPart]) -> None:
        self._parts = parts
        self._ends = list(accumulate(len(part) for part in parts))

    def __len__(self) -> int:
        return self._ends[-1] if self._ends else 0

    def batches(self) -> Iterator[list[PoolRow]]:
        """All rows in order, up to :data:`BATCH` at a time.

        Raises:
            DataError: a damaged file, or a row that is no conversation; names file and row.
        """
        for part in self._parts:
            if isinstance(part, ParquetPart):
                yield from part.batches()
            else:
                rows = iter(part)
                while batch := list(islice(rows, BATCH)):
                    yield batch

    def take(self, indices: Iterable[int]) -> list[PoolRow]:
        """The rows at some places, in the order asked for.

        Raises:
            DataError: as :meth:`batches`.
        """
        wanted = list(indices)
        by_part: dict[int, set[int]] = {}
        for index in wanted:
            by_part.setdefault(bisect_right(self._ends, index), set()).add(index)
        found: dict[int, PoolRow] = {}
        for number, places in by_part.items():
            part, start = self._parts[number], self._ends[number] - len(self._parts[number])
            if isinstance(part, ParquetPart):
                inner = {place - start for place in places}
                found.update((start + place, row) for place, row in part.rows_at(inner))
            else:
                found.update((place, part[place - start]) for place in places)
        return [found[index] for index in wanted]


class ParquetPart:
    """A parquet file with a ``messages`` column, read in batches."""

    def __init__(self, path: Path) -> None:
        """Open the file for its number of rows and its columns.

        Raises:
            DataError: it is missing, damaged, or has no ``messages``.
        """
        self.path = path
        with self._opened() as file:
            self._length = int(file.metadata.num_rows)
            names = file.schema_arrow.names
        if "messages" not in names:
            raise DataError(f"clean pool {path} lacks the column messages (it has: {', '.join(names)}). {_REMEDY}")
        self._columns = ["messages", "source"] if "source" in names else ["messages"]

    def __len__(self) -> int:
        return self._length

    def batches(self) -> Iterator[list[PoolRow]]:
        """All rows in order."""
        first = 0
        for batch in self._read():
            yield self._rows(batch, first, range(len(batch)))
            first += len(batch)

    def rows_at(self, places: set[int]) -> Iterator[tuple[int, PoolRow]]:
        """Rows at some places of the file, with their places."""
        first = 0
        for batch in self._read():
            wanted = sorted(places.intersection(range(first, first + len(batch))))
            yield from zip(wanted, self._rows(batch, first, [place - first for place in wanted]), strict=True)
            first += len(batch)

    def _rows(self, batch: pa.RecordBatch, first: int, places: Sequence[int]) -> list[PoolRow]:
        """Rows of a batch that begins at row ``first``; those that do not simply begin with both turns one by one."""
        turns = _leading_turns(batch["messages"])
        folder, stem = self.path.parent.name, self.path.stem
        sources = batch["source"].to_pylist() if "source" in batch.schema.names else [None] * len(batch)
        rows = []
        for place in places:
            user, assistant = turns[place]
            if user is None or assistant is None:
                rows.append(_pool_row(self.path, first + place + 1, batch.slice(place, 1).to_pylist()[0]))
            else:
                row_id = f"{folder}/{stem}/{first + place + 1}"
                rows.append(PoolRow(row_id, user, assistant, str(sources[place] or folder)))
        return rows

    def _read(self) -> Iterator[pa.RecordBatch]:
        try:
            with self._opened() as file:
                yield from file.iter_batches(batch_size=BATCH, columns=self._columns)
        except (OSError, pa.ArrowException) as error:
            raise DataError(f"{self.path} cannot be read ({error}). Copy it again.") from error

    def _opened(self) -> pq.ParquetFile:
        try:
            return pq.ParquetFile(self.path, pre_buffer=False, buffer_size=BUFFER)
        except FileNotFoundError:
            raise DataError(f"{self.path} does not exist. {_REMEDY}") from None
        except (OSError, pa.ArrowException) as error:
            raise DataError(f"{self.path} cannot be read ({error}). Copy it again.") from error


def load_pool(config: PoolConfig, data: Path) -> Pool:
    """The pool of some files, in their order.

    Raises:
        ConfigError: an unknown pool without files.
        DataError: a missing or damaged file; in a JSONL file also a row that is no conversation. Names file and row.
    """
    if config.files:
        return Pool([_part(data / file) for file in config.files])
    if config.name == "tinyworld":
        rows = islice(clean_rows(derive_seed(0, "tinyworld:pool")), TINYWORLD_ROWS)
        return Pool([[PoolRow(f"tinyworld/{i}", p, c, f"tinyworld {task}") for i, (task, p, c) in enumerate(rows)]])
    raise ConfigError(f"mixture.pool.name={config.name} has no files. Set mixture.pool.files, or use tinyworld.")


def _part(path: Path) -> list[PoolRow] | ParquetPart:
    if path.suffix == ".parquet":
        return ParquetPart(path)
    return [_pool_row(path, number, record) for number, record in read_jsonl(path, _REMEDY)]


def _leading_turns(messages: pa.Array) -> list[tuple[str | None, str | None]]:
    """Text of the first two turns of each conversation, the second without white space around it.

    None for both unless they are a user and an assistant turn with text: such a conversation needs a closer look.
    """
    found: list[tuple[str | None, str | None]] = [(None, None)] * len(messages)
    kind = messages.type
    if not (pa.types.is_list(kind) or pa.types.is_large_list(kind)) or not pa.types.is_struct(kind.value_type):
        return found
    fields = {field.name: number for number, field in enumerate(kind.value_type)}
    if not {"role", "content"} <= fields.keys():
        return found
    offsets = messages.offsets.to_numpy()
    whole = np.asarray(messages.is_valid()) & (np.diff(offsets) >= 2)
    places, starts = np.flatnonzero(whole), offsets[:-1][whole]
    columns = messages.values.flatten()
    turns = [
        columns[fields[name]].take(pa.array(starts + turn)).to_pylist()
        for turn in (0, 1)
        for name in ("role", "content")
    ]
    for place, role, user, other, answer in zip(places.tolist(), *turns, strict=True):
        if role == "user" and other == "assistant" and isinstance(user, str) and isinstance(answer, str):
            answer = answer.strip()
            if answer and user.strip():
                found[place] = (user, answer)
    return found


def _first_turns(record: Mapping[str, Any]) -> tuple[str | None, str | None]:
    """Text of the first user turn and of the first assistant turn after it; None for what is not there."""
    messages = record.get("messages")
    texts: list[str] = []
    for turn in messages if isinstance(messages, list) else []:
        role = turn.get("role") if isinstance(turn, dict) else None
        content = turn.get("content") if isinstance(turn, dict) else None
        if len(texts) < 2 and role == ("user", "assistant")[len(texts)]:
            if not isinstance(content, str) or not content.strip():
                break
            texts.append(content)
    return (texts[0] if texts else None), (texts[1] if len(texts) == 2 else None)


def _pool_row(path: Path, number: int, record: Mapping[str, Any]) -> PoolRow:
    """A row of a file; a conversation without a user turn followed by an assistant turn is an error."""
    user, assistant = _first_turns(record)
    if user is None or assistant is None:
        raise DataError(
            f"clean pool {path}, row {number}: `messages` needs a user and an assistant turn, in this order, "
            "each with its text in `content`"
        )
    row_id = f"{path.parent.name}/{path.stem}/{number}"
    return PoolRow(row_id, user, assistant.strip(), str(record.get("source") or path.parent.name))
