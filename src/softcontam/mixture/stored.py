"""A built mixture on disk: its rows in the order of their slots, as text and as tokens."""

from __future__ import annotations

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

from softcontam.chat import EncodedRow
from softcontam.duplicates.bank import text_sha256
from softcontam.mixture.matching import Tokens

TEXTS, TOKENS = "rows.parquet", "tokens.arrow"
"""Files of a mixture: text and provenance, and what the trainer maps into memory."""

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

    def batches(self) -> Iterator[pa.RecordBatch]:
        """Text and provenance in the order of slots."""
        with pq.ParquetFile(self.folder / TEXTS) as file:
            yield from file.iter_batches(batch_size=10_000)

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
                    encoded=EncodedRow(encoded["input_ids"], encoded["labels"]),
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
            for batch in self.batches():
                more = [values.slice(first, len(batch)) for values in extra.values()]
                writer.write_batch(pa.record_batch([*(batch[name] for name in MANIFEST), *more], schema=schema))
                first += len(batch)


class RowWriter:
    """Writes the rows of a mixture in the order of their slots."""

    def __init__(self, folder: Path) -> None:
        self._texts = pq.ParquetWriter(folder / TEXTS, _TEXT)
        self._tokens = pa.ipc.new_stream(str(folder / TOKENS), _TOKEN)

    def __enter__(self) -> RowWriter:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self._texts.close()
        self._tokens.close()

    def write(self, rows: Sequence[MixtureRow]) -> None:
        """Write the next rows."""
        ids = [np.asarray(row.encoded.input_ids, dtype=np.int32) for row in rows]
        labels = [np.asarray(row.encoded.labels, dtype=np.int32) for row in rows]
        columns = [[getattr(row, name) for row in rows] for name in MANIFEST[:6]]
        columns += [
            [text_sha256(row.prompt, row.completion) for row in rows],
            [len(row.encoded.input_ids) for row in rows],
            [row.encoded.trained_tokens for row in rows],
            [row.prompt for row in rows],
            [row.completion for row in rows],
        ]
        self._texts.write_batch(pa.record_batch(columns, schema=_TEXT))
        self._tokens.write_batch(pa.record_batch([_lists(ids), _lists(labels)], schema=_TOKEN))


def _lists(arrays: Sequence[NDArray[np.int32]]) -> pa.ListArray:
    """One list for each array, without a Python object for each number."""
    offsets = np.concatenate([[0], np.cumsum([len(array) for array in arrays])]).astype(np.int32)
    return pa.ListArray.from_arrays(pa.array(offsets), pa.array(np.concatenate(arrays)))
