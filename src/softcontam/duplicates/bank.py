"""The schema of a duplicate bank and its file format."""

from __future__ import annotations

import hashlib
import math
import reprlib
from collections import Counter
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, fields
from difflib import get_close_matches
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd

from softcontam.config import KINDS
from softcontam.errors import DataError

BANK_KINDS = KINDS[1:]
"""Kinds of row that a bank may hold."""


def text_sha256(prompt: str, completion: str) -> str:
    """Identity of a row's text."""
    return hashlib.sha256(f"{prompt}\0{completion}".encode()).hexdigest()


@dataclass(frozen=True)
class BankRow:
    """One training row made from, found for, or matched to one benchmark item.

    ``source`` says who made it (generator, model, or corpus and row), ``match_type`` and ``judge`` what it was judged
    to be and by whom, ``cosine`` and ``ngram_overlap`` how near it is to the item where that was measured.
    """

    row_id: str
    item_id: str
    kind: str
    level: str | None
    prompt: str
    completion: str
    response_style: str
    source: str
    match_type: str | None = None
    judge: str | None = None
    cosine: float | None = None
    ngram_overlap: float | None = None

    @property
    def sha256(self) -> str:
        """Identity of the row's text."""
        return text_sha256(self.prompt, self.completion)


@dataclass(frozen=True)
class Bank:
    """The rows of one kind (and level) by item.

    ``repeated``: further copies of an item repeat one row. ``from_pool``: rows are those of the clean pool.
    """

    kind: str
    level: str | None
    rows: dict[str, list[BankRow]]
    repeated: bool = False
    from_pool: bool = False

    @staticmethod
    def of(
        kind: str, level: str | None, rows: Iterable[BankRow], repeated: bool = False, from_pool: bool = False
    ) -> Bank:
        """Group checked rows by item."""
        grouped: dict[str, list[BankRow]] = {}
        for row in rows:
            grouped.setdefault(row.item_id, []).append(row)
        return Bank(kind, level, grouped, repeated, from_pool)


@dataclass(frozen=True)
class Flaw:
    """What is wrong with one row: the key, the sort of flaw, what was found (after the row's name), and the remedy."""

    key: str
    sort: str
    found: str
    remedy: str


REQUIRED = ("row_id", "item_id", "kind", "prompt", "completion", "response_style", "source")
"""Columns that hold text in every row."""

OPTIONAL_TEXT, OPTIONAL_NUMBERS = ("level", "match_type", "judge"), ("cosine", "ngram_overlap")
"""Columns whose values may be missing."""


def row_flaws(values: Mapping[str, object], sha256: object = None) -> Iterator[Flaw]:
    """Everything that keeps one row from being used, whatever benchmark it is for.

    Args:
        values: a value, or None, for each field of :class:`BankRow`.
        sha256: the sha256 that was stored with the row, None where there is none to compare with.
    """
    for key in REQUIRED:
        value = values[key]
        if value is None:
            yield Flaw(key, "missing value", f"has no {key}", f"Fill in {key}, or drop the row.")
        elif not isinstance(value, str):
            yield Flaw(key, "no text", f"has {key} {reprlib.repr(value)}, expected text", f"Store {key} as text.")
        elif key in ("row_id", "item_id", "prompt", "completion") and not value.strip():
            yield Flaw(key, f"empty {key}", f"has an empty {key}", f"Fill in {key}, or drop the row.")
    for key in OPTIONAL_TEXT:
        if values[key] is not None and not isinstance(values[key], str):
            yield Flaw(
                key,
                "no text",
                f"has {key} {reprlib.repr(values[key])}, expected text",
                f"Store {key} as text, or null.",
            )
    for key in OPTIONAL_NUMBERS:
        value = values[key]
        if value is not None and (isinstance(value, bool) or not isinstance(value, int | float)):
            yield Flaw(
                key,
                "no number",
                f"has {key} {reprlib.repr(value)}, expected a number",
                "Store a number from 0 to 1, or null.",
            )
    kind = values["kind"]
    if isinstance(kind, str) and kind not in BANK_KINDS:
        near = get_close_matches(kind, BANK_KINDS, 1)
        meant = f"Did you mean {near[0]}? " if near else ""
        yield Flaw(
            "kind", "unknown kind", f"has unknown kind {reprlib.repr(kind)}", f"{meant}Known: {', '.join(BANK_KINDS)}."
        )
    prompt, completion = values["prompt"], values["completion"]
    if not isinstance(prompt, str) or not isinstance(completion, str):
        return
    try:
        found = text_sha256(prompt, completion)
    except UnicodeEncodeError as error:
        yield Flaw("prompt", "no Unicode", f"has text that is no valid Unicode ({error.reason})", "Decode it again.")
        return
    if sha256 is not None and sha256 != found:
        yield Flaw(
            "sha256",
            "text and sha256 differ",
            "does not match its sha256: its text was changed after it was written",
            "Restore the text, or drop the column sha256 and let python -m softcontam.bank convert write it anew.",
        )


def repeated_ids(ids: Iterable[object]) -> list[object]:
    """Row ids that more than one row has, in their order."""
    return [row_id for row_id, count in Counter(ids).items() if count > 1 and row_id is not None]


def check_rows(rows: Sequence[BankRow], where: str) -> None:
    """Refuse rows that no mixture could be built from.

    Raises:
        DataError: naming the file and row.
    """
    for row in rows:
        for flaw in row_flaws(vars(row)):
            raise DataError(f"{where}: row {row.row_id} {flaw.found}. {flaw.remedy}")
    for row_id in repeated_ids(row.row_id for row in rows):
        raise DataError(f"{where}: row id {row_id!r} occurs more than once. Rename all but one of its rows.")


def write_bank(path: Path, rows: Sequence[BankRow]) -> None:
    """Write a bank as parquet, one column per field and ``sha256``.

    Raises:
        DataError: rows that :func:`check_rows` refuses; nothing is written then.
    """
    from softcontam.store import write_parquet

    check_rows(rows, str(path))
    columns = [field.name for field in fields(BankRow)]
    frame = pd.DataFrame([vars(row) for row in rows], columns=columns)
    for name in OPTIONAL_NUMBERS:
        frame[name] = frame[name].astype("float64")
    write_parquet(path, frame.assign(sha256=[row.sha256 for row in rows]))


def read_bank(path: Path) -> list[BankRow]:
    """Read and check a bank file.

    Raises:
        DataError: missing or damaged file, missing column, or a row that no mixture could be built from, such as one
            that was changed after it was written; names the first and counts the others.
    """
    try:
        frame = pd.read_parquet(path)
    except FileNotFoundError:
        raise DataError(f"bank {path} does not exist. Set benchmark.banks.<kind>.path to a bank file.") from None
    except (OSError, ValueError) as error:
        raise DataError(f"bank {path} is no readable parquet file ({error}). {_remedy(path)}") from error
    names = [field.name for field in fields(BankRow)]
    absent = [name for name in [*names, "sha256"] if name not in frame.columns]
    if absent:
        raise DataError(f"bank {path} lacks the columns {', '.join(absent)}; see docs/banks.md. {_remedy(path)}")
    rows, flawed = [], []
    for number, record in enumerate(frame.to_dict("records"), 1):
        values: dict[str, Any] = {name: plain_value(record[name]) for name in names}
        flaws = list(row_flaws(values, plain_value(record["sha256"]) or ""))
        if flaws:
            flawed.append(f"row {number} ({values['row_id']}) {flaws[0].found}. {flaws[0].remedy}")
        else:
            rows.append(BankRow(**values))
    if flawed:
        more = f" So are {len(flawed) - 1} more rows: python -m softcontam.bank check {path}" if flawed[1:] else ""
        raise DataError(f"bank {path}: {flawed[0]}{more}")
    check_rows(rows, f"bank {path}")
    return rows


def plain_value(value: object) -> object:
    """The value of a cell of a table as Python has it, None where it is missing."""
    if value is None or value is pd.NA or (isinstance(value, float) and math.isnan(value)):
        return None
    return value.item() if isinstance(value, np.generic) else value


def _remedy(path: Path) -> str:
    """What to do about a file that is no bank: convert a table of another format, copy a damaged one again."""
    if path.suffix.lower() in (".csv", ".jsonl"):
        return f"Convert it: python -m softcontam.bank convert {path} out={path.with_suffix('.parquet')}"
    return "Copy or make it again."
