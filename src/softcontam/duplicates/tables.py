"""Reads a bank as a table (parquet, CSV or JSONL) with all that is wrong with it, so that it can be checked."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, fields
from pathlib import Path
from typing import Any

import pandas as pd

from softcontam.duplicates.bank import OPTIONAL_NUMBERS, OPTIONAL_TEXT, BankRow, plain_value
from softcontam.errors import ConfigError, DataError
from softcontam.jsonl import read_jsonl

FORMATS = (".parquet", ".csv", ".jsonl")
"""Endings of the files that are read."""

COLUMNS = (*(field.name for field in fields(BankRow)), "sha256")
"""Columns of a bank file."""

DISPENSABLE = (*OPTIONAL_TEXT, *OPTIONAL_NUMBERS, "sha256")
"""Columns that :func:`softcontam.duplicates.write_bank` can fill in: with nulls, and with the sha256."""


@dataclass(frozen=True)
class Table:
    """The rows of a file, numbered from 1 as they stand (``numbers``), with every column that it has."""

    path: Path
    columns: tuple[str, ...]
    numbers: tuple[int, ...]
    records: tuple[dict[str, Any], ...]

    @property
    def is_parquet(self) -> bool:
        """Whether a run can read it as it is."""
        return self.path.suffix.lower() == ".parquet"

    @property
    def row_word(self) -> str:
        """What its rows are called: lines of JSONL."""
        return "line" if self.path.suffix.lower() == ".jsonl" else "row"


def read_table(path: Path) -> Table:
    """Read a bank file of any of :data:`FORMATS`; missing values are None, a missing column too.

    Raises:
        ConfigError: no such file, or another format.
        DataError: a file that is damaged or not of its format.
    """
    ending = path.suffix.lower()
    if ending not in FORMATS:
        raise ConfigError(f"{path}: a bank is read from {', '.join(FORMATS)}. Convert it to one of these.")
    if not path.is_file():
        raise ConfigError(f"{path} does not exist, or is no file. Give the path of a bank file.")
    if ending == ".jsonl":
        lines = list(read_jsonl(path, "Give the path of a bank file."))
        columns = tuple(dict.fromkeys(key for _, record in lines for key in record))
        return _table(path, columns, [number for number, _ in lines], [record for _, record in lines])
    try:
        frame = pd.read_parquet(path) if ending == ".parquet" else _read_csv(path)
    except (OSError, ValueError, pd.errors.ParserError) as error:
        remedy = "Copy or make it again." if ending == ".parquet" else "Save it as UTF-8, with commas between columns."
        raise DataError(f"{path} is no readable {ending[1:]} file ({str(error).strip()}). {remedy}") from error
    records = [{str(key): value for key, value in record.items()} for record in frame.to_dict("records")]
    return _table(path, tuple(map(str, frame.columns)), range(1, len(records) + 1), records)


def rows_of(table: Table) -> list[BankRow]:
    """The rows as bank rows, whatever is wrong with them; values of another type are as they are."""
    return [BankRow(**{field.name: record[field.name] for field in fields(BankRow)}) for record in table.records]


def _table(path: Path, columns: tuple[str, ...], numbers: Sequence[int], records: Sequence[dict[str, Any]]) -> Table:
    filled = tuple({**dict.fromkeys(COLUMNS), **{k: plain_value(v) for k, v in r.items()}} for r in records)
    return Table(path, columns, tuple(numbers), filled)


def _read_csv(path: Path) -> pd.DataFrame:
    """Text stays text (``None``, ``NA`` and ids such as 17, too); only an empty field is a missing value."""
    frame = pd.read_csv(path, dtype=str, keep_default_na=False, encoding="utf-8-sig")
    for name in frame.columns:
        frame[name] = frame[name].astype(object).where(frame[name] != "", None)
        if name in OPTIONAL_NUMBERS:
            numbers = pd.to_numeric(frame[name], errors="coerce")
            frame[name] = numbers.astype(object).where(numbers.notna(), frame[name])
    return frame
