"""The difficulty of items, read from a table that a user brings: accuracy of some model, a rating, a size."""

from __future__ import annotations

import csv
import math
from collections.abc import Collection, Iterator
from pathlib import Path

import pandas as pd

from softcontam.errors import DataError
from softcontam.jsonl import read_jsonl

REMEDY = "Set benchmark.difficulty to a table of item_id and difficulty, or to null, or set SOFTCONTAM_DATA."

COLUMNS = ("item_id", "difficulty")
"""Columns that are read."""


def read_difficulty(path: Path, known: Collection[str], needed: Collection[str]) -> dict[str, float]:
    """The difficulty by item id, in the order of the table.

    Args:
        path: parquet, csv (with a header line) or jsonl with the columns :data:`COLUMNS`.
        known: the ids of all items of the benchmark; the table may hold these only.
        needed: the ids of the items that are split; the table must hold all of them.

    Raises:
        DataError: the file is missing, damaged or of another kind, or a row is not of an item, repeats one or holds no
            finite number; names file and row.
    """
    found: dict[str, float] = {}
    for where, item_id, value in _rows(path):
        if not isinstance(item_id, str) or item_id not in known:
            example = next(iter(needed), "none")
            raise DataError(
                f"{where}: item_id {item_id!r} is no item of this benchmark (its ids are like {example!r}). "
                "Correct or remove that row."
            )
        if item_id in found:
            raise DataError(f"{where}: item_id {item_id!r} stands in an earlier row too. Keep one of them.")
        number = _number(value, path.suffix == ".csv")
        if number is None:
            raise DataError(
                f"{where}: difficulty of {item_id} should be a finite number, found {value!r}. Correct that row."
            )
        found[item_id] = number
    missing = [item_id for item_id in needed if item_id not in found]
    if missing:
        raise DataError(
            f"{path} has no row for {len(missing)} of {len(needed)} items, the first of them {missing[0]!r}. "
            "Add them, or set benchmark.difficulty to null."
        )
    return found


def _rows(path: Path) -> Iterator[tuple[str, object, object]]:
    """Where each row stands, its item id and its difficulty, as they are."""
    if not path.is_file():
        raise DataError(f"{path} does not exist. {REMEDY}")
    if path.suffix == ".jsonl":
        for number, row in read_jsonl(path, REMEDY):
            _require_columns(f"{path}, line {number}", row)
            yield f"{path}, line {number}", row["item_id"], row["difficulty"]
    elif path.suffix == ".csv":
        yield from _csv_rows(path)
    elif path.suffix == ".parquet":
        try:
            frame = pd.read_parquet(path)
        except (OSError, ValueError) as error:
            raise DataError(f"{path} is no readable parquet file ({error}). Copy it again.") from error
        _require_columns(str(path), frame.columns)
        for number, (item_id, value) in enumerate(zip(*(frame[name].tolist() for name in COLUMNS), strict=True), 1):
            yield f"{path}, row {number}", item_id, value
    else:
        raise DataError(f"{path} is neither .parquet nor .csv nor .jsonl. {REMEDY}")


def _csv_rows(path: Path) -> Iterator[tuple[str, object, object]]:
    try:
        with path.open(encoding="utf-8-sig", newline="") as stream:
            reader = csv.DictReader(stream, strict=True)
            _require_columns(f"{path}, line 1", reader.fieldnames or ())
            for row in reader:
                yield f"{path}, line {reader.line_num}", row["item_id"], row["difficulty"]
    except (OSError, UnicodeDecodeError, csv.Error) as error:
        raise DataError(f"{path} cannot be read ({error}). Save it as UTF-8 with commas.") from error


def _require_columns(where: str, found: Collection[str]) -> None:
    absent = [column for column in COLUMNS if column not in found]
    if absent:
        raise DataError(
            f"{where} lacks the column {absent[0]} (it has: {', '.join(map(str, found)) or 'none'}). {REMEDY}"
        )


def _number(value: object, text: bool) -> float | None:
    """The value as a finite number, or None; texts count in csv only, where everything is text."""
    if isinstance(value, bool) or not isinstance(value, str if text else (int, float)):
        return None
    try:
        number = float(value)
    except (ValueError, OverflowError):
        return None
    return number if math.isfinite(number) else None
