"""A built mixture on disk: its rows in the order of their slots, as text and as tokens."""

from __future__ import annotations

from array import array
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from types import TracebackType
from typing import Any

import datasets
import numpy as np
import pandas as pd
import pyarrow as pa
import pyarrow.parquet as pq
from numpy.typing import NDArray

from softcontam.chat import IGNORED, EncodedRow
from softcontam.duplicates.bank import text_sha256
from softcontam.mixture.matching import Tokens
from softcontam.mixture.pool import BUFFER

TEXTS, TOKENS = "rows.parquet", "tokens.arrow"
"""Files of a mixture: text and provenance, and what the trainer maps into memory."""

BLOCK = 4_000
"""Rows that are written together: a row group of the texts, a batch of the tokens."""

_TEXT = pa.schema(
    [
        ("slot", pa.int64()),
        ("kind", pa.string()),
        ("level", pa.string()),
        ("item_id", pa.string()),
        ("row_id", pa.string()),
        ("source", pa.string()),
        ("sha256", pa.string()),
        ("tokens", pa.int64()),
        ("trained_tokens", pa.int64()),
        ("prompt", pa.string()),
        ("completion", pa.string()),
    ]
)
_TOKEN = pa.schema([("input_ids", pa.list_(pa.int32())), ("labels", pa.list_(pa.int32()))])

MANIFEST = ("slot", "kind", "level", "item_id", "row_id", "source", "sha256", "tokens", "trained_tokens")
"""Columns of a manifest that every mixture has."""


@dataclass(frozen=True)
class MixtureRow:
    """What is in one slot, and where it comes from."""

    slot: int
    kind: str
    level: str | None
    item_id: str | None
    row_id: str
    source: str
    prompt: str
    completion: str
    encoded: EncodedRow


@dataclass(frozen=True)
class Mixture:
    """A mixture in ``folder`` and its figures.

    ``copies`` are inserted rows by item id, ``base_sha256`` the identity of all drawn clean rows and their order.
    ``near_benchmark`` lists clean rows near a benchmark item (the first of ``near_count``); ``too_long`` and
    ``near_dropped`` count rows that were passed over in the draw. ``tokens`` are those of the mixture, ``clean`` those
    of the drawn clean rows, ``replaced`` those of the clean rows that made room.
    """

    folder: Path
    n_rows: int
    copies: dict[str, int]
    base_sha256: str
    near_benchmark: tuple[str, ...]
    near_count: int
    too_long: int
    near_dropped: int
    tokens: Tokens
    clean: Tokens
    replaced: Tokens

    def batches(self, columns: Sequence[str] | None = None) -> Iterator[pa.RecordBatch]:
        """Text and provenance in the order of slots, or some columns of it."""
        with pq.ParquetFile(self.folder / TEXTS, pre_buffer=False, buffer_size=BUFFER) as file:
            yield from file.iter_batches(batch_size=BLOCK, columns=columns)

    @property
    def inserted(self) -> list[int]:
        """The slots of the inserted rows, in order; none in the clean arm."""
        items = pq.read_table(self.folder / TEXTS, columns=["item_id"])["item_id"]
        return [int(slot) for slot in np.flatnonzero(items.is_valid().to_numpy())]

    def dataset(self) -> datasets.Dataset:
        """The rows as ``input_ids`` and ``labels`` in the order of slots, mapped into memory."""
        return datasets.Dataset.from_file(str(self.folder / TOKENS))

    @property
    def rows(self) -> Iterator[MixtureRow]:
        """Every row in the order of slots, read one batch after another."""
        tokens = iter(self.dataset())
        for batch in self.batches():
            for record in batch.to_pylist():
                encoded = next(tokens)
                kept = {name: record[name] for name in MANIFEST[:6]}
                yield MixtureRow(
                    **kept,
                    prompt=record["prompt"],
                    completion=record["completion"],
                    encoded=EncodedRow(
                        array("i", encoded["input_ids"]), len(encoded["labels"]) - record["trained_tokens"]
                    ),
                )

    @property
    def manifest(self) -> pd.DataFrame:
        """One row per slot: what is in it, its provenance, sha256 and token counts."""
        frame: pd.DataFrame = pq.read_table(self.folder / TEXTS, columns=list(MANIFEST)).to_pandas()
        return frame

    def write_manifest(self, path: Path, columns: Mapping[str, NDArray[Any]]) -> None:
        """Write the manifest as parquet with further columns, each an array over all slots."""
        extra = {name: pa.array(values, from_pandas=True) for name, values in columns.items()}
        schema = pa.schema([*(_TEXT.field(name) for name in MANIFEST), *((name, a.type) for name, a in extra.items())])
        with pq.ParquetWriter(path, schema) as writer:
            first = 0
            for batch in self.batches(MANIFEST):
                more = [values.slice(first, len(batch)) for values in extra.values()]
                writer.write_batch(pa.record_batch([*(batch[name] for name in MANIFEST), *more], schema=schema))
                first += len(batch)


class RowWriter:
    """Writes the rows of a mixture in the order of their slots, in blocks of :data:`BLOCK` however they come."""

    def __init__(self, folder: Path) -> None:
        self._rows: list[MixtureRow] = []
        self._texts = pq.ParquetWriter(folder / TEXTS, _TEXT)
        self._tokens = pa.ipc.new_stream(str(folder / TOKENS), _TOKEN)

    def __enter__(self) -> RowWriter:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        try:
            if error is None and self._rows:
                self._write(self._rows)
        finally:
            self._texts.close()
            self._tokens.close()

    def write(self, rows: Sequence[MixtureRow]) -> None:
        """Write the next rows."""
        self._rows += rows
        while len(self._rows) >= BLOCK:
            self._write(self._rows[:BLOCK])
            del self._rows[:BLOCK]

    def _write(self, rows: Sequence[MixtureRow]) -> None:
        encoded = [row.encoded for row in rows]
        columns = [[getattr(row, name) for row in rows] for name in MANIFEST[:6]]
        columns += [
            [text_sha256(row.prompt, row.completion) for row in rows],
            [row.tokens for row in encoded],
            [row.trained_tokens for row in encoded],
            [row.prompt for row in rows],
            [row.completion for row in rows],
        ]
        self._texts.write_batch(pa.record_batch(columns, schema=_TEXT))
        self._tokens.write_batch(pa.record_batch(_token_columns(encoded), schema=_TOKEN))


def _token_columns(rows: Sequence[EncodedRow]) -> list[pa.ListArray]:
    """``input_ids`` and ``labels``, without a Python object for each number."""
    sizes = np.array([row.tokens for row in rows], dtype=np.int32)
    ids = np.frombuffer(b"".join(memoryview(row.ids) for row in rows), dtype=np.int32)
    offsets = np.concatenate([[0], np.cumsum(sizes)]).astype(np.int32)
    places = np.arange(len(ids)) - np.repeat(offsets[:-1], sizes)
    prompt = places < np.repeat([row.first for row in rows], sizes)
    labels = np.where(prompt, IGNORED, ids)
    return [pa.ListArray.from_arrays(pa.array(offsets), pa.array(values)) for values in (ids, labels)]
