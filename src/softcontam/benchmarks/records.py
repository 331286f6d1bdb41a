"""Reads a benchmark's records from local parquet or JSONL or from the hub, and says where each one came from."""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pandas as pd

from softcontam.benchmarks.item import Source
from softcontam.config import BenchmarkConfig, EvalBenchmark
from softcontam.errors import DataError
from softcontam.jsonl import read_jsonl
from softcontam.manifest import pinned, refuse_changed

REMEDY = "Set benchmark.path to a folder with its files, or SOFTCONTAM_DATA to the folder of local data."


def unix_lines(text: str) -> str:
    r"""The text with every line end as ``\n``; a ``\r\r\n``, as two MBPP solutions have it, is one line end."""
    return re.sub(r"\r*\n|\r", "\n", text)


@dataclass(frozen=True)
class Record:
    """One row of a data set and ``where`` it stands (file and row), for error messages."""

    where: str
    values: Mapping[str, Any]

    def text(self, column: str, *, empty: bool = False) -> str:
        """The text of a column with the line ends of :func:`unix_lines`.

        Raises:
            DataError: it is no text, or blank although ``empty`` is false.
        """
        value = self.values[column]
        if not isinstance(value, str) or not (value.strip() or empty):
            raise DataError(f"{self.where}: column {column!r} should hold text, found {value!r}. Copy the file again.")
        return unix_lines(value)

    def texts(self, column: str) -> tuple[str, ...]:
        """The texts of a list column, without surrounding blanks.

        Raises:
            DataError: it is no list of texts.
        """
        value = self.values[column]
        listed = None if value is None or isinstance(value, str) or not hasattr(value, "__iter__") else list(value)
        if listed is None or not all(isinstance(part, str) for part in listed):
            raise DataError(f"{self.where}: column {column!r} should hold a list of texts, found {value!r}.")
        return tuple(unix_lines(part).strip() for part in listed)


def read_records(
    config: BenchmarkConfig | EvalBenchmark, data: Path, splits: Sequence[str], columns: Sequence[str]
) -> list[Record]:
    """All records of the named splits, in that order.

    Args:
        config: ``path`` is the folder (relative to ``data``) of ``<split>-*.parquet``, or of ``<split>.jsonl`` or
            ``<split>-*.jsonl``; where it is null, ``hub`` names the data set, its config and its revision.
        data: the folder of local data (``paths.data``).
        splits: the splits, all of which must be there.
        columns: the columns that are read, all of which must be there.

    Raises:
        DataError: a file, split or column is missing, a split is there twice, a file is damaged or not the one that
            the data folder's manifest lists, or the hub cannot be reached.
    """
    if config.path is None:
        return _from_hub(config, splits, columns)
    folder = data / config.path
    if not folder.is_dir():
        raise DataError(f"benchmark {config.name}: the folder {folder} does not exist. {REMEDY}")
    records: list[Record] = []
    for split in splits:
        files = _files(config.name, folder, split)
        refuse_changed(data, files)
        for file in files:
            read = _from_parquet if file.suffix == ".parquet" else _from_jsonl
            records.extend(read(file, columns))
    return records


def source(config: BenchmarkConfig | EvalBenchmark, data: Path) -> Source:
    """Where the records of ``config`` come from.

    A local copy says so in place of the hub revision, unless the manifest of the folder ``data`` knows its commit.

    Raises:
        DataError: the manifest lists the files as those of another data set or revision.
    """
    revision = config.hub.revision or "unpinned"
    if config.path is not None:
        commit = pinned(data, config.path, config.hub.id, config.hub.revision)
        revision = commit or f"local copy {config.path}"
    return Source(config.hub.id, revision, config.hub.licence)


def _files(benchmark: str, folder: Path, split: str) -> list[Path]:
    """The files of one split, in one of the forms that it may have."""
    forms = (f"{split}-*.parquet", f"{split}.jsonl", f"{split}-*.jsonl")
    found = {form: sorted(folder.glob(form)) for form in forms}
    there = [form for form, files in found.items() if files]
    if not there:
        raise DataError(f"benchmark {benchmark}: {folder} has no {' or '.join(forms)}. Copy that split into it.")
    if len(there) > 1:
        raise DataError(
            f"benchmark {benchmark}: {folder} has both {' and '.join(there)}, which may be the same rows. Keep one."
        )
    return found[there[0]]


def _from_jsonl(file: Path, columns: Sequence[str]) -> list[Record]:
    records = []
    for number, row in read_jsonl(file, REMEDY):
        where = f"{file}, line {number}"
        _require_columns(where, list(row), columns)
        records.append(Record(where, {column: row[column] for column in columns}))
    return records


def _from_parquet(file: Path, columns: Sequence[str]) -> list[Record]:
    try:
        frame = pd.read_parquet(file)
    except (OSError, ValueError) as error:
        raise DataError(f"{file} is no readable parquet file ({error}). Copy it again.") from error
    _require_columns(str(file), list(frame.columns), columns)
    rows = frame[list(columns)].to_dict("records")
    return [Record(f"{file}, row {number}", {str(k): v for k, v in row.items()}) for number, row in enumerate(rows, 1)]


def _from_hub(config: BenchmarkConfig | EvalBenchmark, splits: Sequence[str], columns: Sequence[str]) -> list[Record]:
    import datasets

    hub = config.hub
    try:
        loaded = datasets.load_dataset(hub.id, hub.config, revision=hub.revision)
    except Exception as error:  # datasets and huggingface_hub share no base class for "cannot be reached or found"
        raise DataError(
            f"benchmark {config.name}: {hub.id} (config {hub.config}, revision {hub.revision}) could not be loaded "
            f"from the hub ({type(error).__name__}: {error}). {REMEDY}"
        ) from error
    records: list[Record] = []
    for split in splits:
        if split not in loaded:
            raise DataError(f"benchmark {config.name}: {hub.id} has no split {split!r}. Pin benchmark.hub.revision.")
        _require_columns(f"{hub.id}, split {split}", list(loaded[split].column_names), columns)
        records.extend(Record(f"{hub.id}, split {split}, row {n}", dict(row)) for n, row in enumerate(loaded[split], 1))
    return records


def _require_columns(where: str, found: Sequence[str], wanted: Sequence[str]) -> None:
    absent = [column for column in wanted if column not in found]
    if absent:
        raise DataError(
            f"{where} lacks the column{'s' if len(absent) > 1 else ''} {', '.join(absent)} (it has: "
            f"{', '.join(found)}). Use the files of the benchmark's own hub data set and config."
        )
