"""Everything that is wrong with a bank, not only the first thing; :mod:`softcontam.bank` prints it.

Errors are what a run would refuse, or would train on as something that it is not (benchmark text in an arm that is to
hold none of it). Warnings are what may be meant.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Collection, Iterator, Mapping
from dataclasses import fields
from typing import Any

from softcontam.benchmarks import Benchmark
from softcontam.chat import Chat
from softcontam.config import DERIVED_KINDS
from softcontam.duplicates.bank import OPTIONAL_NUMBERS, REQUIRED, BankRow, repeated_ids, row_flaws, text_sha256
from softcontam.duplicates.check_items import against_items
from softcontam.duplicates.problems import MATCH_TYPES, NON_DUPLICATE_KINDS, SEMD_KINDS, STRICT, Numbered, Problem
from softcontam.duplicates.tables import COLUMNS, DISPENSABLE, Table
from softcontam.errors import TokenizationError
from softcontam.sandbox import Sandbox

JUDGE_ERROR = "judge_error"
"""What stands in ``match_type`` or ``judge`` where a judgement failed."""

ROUNDING = 1e-6
"""How far a similarity may be outside its range."""


def check_table(
    table: Table,
    benchmark: Benchmark | None = None,
    *,
    elsewhere: Callable[[Collection[str]], Mapping[str, str]] | None = None,
    chat: Chat | None = None,
    max_length: int | None = None,
    sandbox: Sandbox | None = None,
) -> list[Problem]:
    """All problems of a bank, errors first, those of one sort together in the order of the file.

    Args:
        benchmark: whose items the rows are compared with; without it, only the rows themselves are looked at.
        elsewhere: says of item ids that the benchmark does not have where they may belong.
        chat: with ``max_length``, rows of more tokens than that are found as well.
        sandbox: where completions of a benchmark of programs are run against their item's tests.
    """
    absent = [name for name in COLUMNS if name not in table.columns]
    if not table.is_parquet:
        absent = [name for name in absent if name not in DISPENSABLE]
    problems = [*_missing_columns(table, absent)]
    rows = []
    for number, record in zip(table.numbers, table.records, strict=True):
        problems += _row_problems(table, number, record, absent)
        if all(isinstance(record[name], str) for name in REQUIRED if name not in absent):
            values: dict[str, Any] = {name: "" if name in absent else record[name] for name in _FIELDS}
            rows.append(Numbered(number, BankRow(**values)))
    problems += _repeats(rows)
    for one in rows:
        problems += _judgement(one)
    if benchmark is not None:
        problems += against_items(rows, benchmark, elsewhere, sandbox)
    if chat is not None and max_length is not None:
        problems += _too_long(rows, chat, max_length)
    order = {sort: place for place, sort in enumerate(dict.fromkeys(one.sort for one in problems))}
    return sorted(problems, key=lambda one: (not one.error, order[one.sort], one.number or 0))


_FIELDS = tuple(field.name for field in fields(BankRow))


def _missing_columns(table: Table, absent: Collection[str]) -> Iterator[Problem]:
    for name in absent:
        has = ", ".join(table.columns) or "none"
        remedy = f"Add it (docs/banks.md says what it holds). The columns are: {has}."
        if name in DISPENSABLE:
            target = table.path.with_name(f"{table.path.stem}.converted.parquet")
            remedy = f"Let it be filled in: python -m softcontam.bank convert {table.path} out={target}."
        yield Problem("missing column", f"lacks the column {name}", remedy, name)
    if not table.is_parquet:
        remedy = f"Convert it: python -m softcontam.bank convert {table.path} out={table.path.with_suffix('.parquet')}."
        yield Problem("no parquet", "is no parquet file, and a run reads no other", remedy, error=False)
    if not table.records:
        yield Problem("no rows", "has no rows", "Make it again.")


def _row_problems(table: Table, number: int, record: Mapping[str, Any], absent: Collection[str]) -> Iterator[Problem]:
    """The flaws of one row, except those of columns that are not there."""
    sha256 = record["sha256"]
    if sha256 is None and table.is_parquet and "sha256" not in absent:
        sha256 = ""
    row_id = str(record["row_id"] or "")
    for flaw in row_flaws({name: record[name] for name in _FIELDS}, sha256):
        if flaw.key not in absent:
            yield Problem(flaw.sort, flaw.found, flaw.remedy, flaw.key, number, row_id)
    for key in OPTIONAL_NUMBERS:
        value = record[key]
        if isinstance(value, bool) or not isinstance(value, int | float):
            continue
        if not math.isfinite(value) or abs(value) > 1 + ROUNDING or (value < -ROUNDING and key == "ngram_overlap"):
            remedy = "Store a share from 0 to 1 (not per cent), or null."
            yield Problem("similarity out of range", f"has {key} {value:g}", remedy, key, number, row_id)
        elif value < -ROUNDING:
            remedy = "Check that it is a cosine and not a distance."
            yield Problem("negative cosine", f"has {key} {value:g}", remedy, key, number, row_id, error=False)


def _repeats(rows: Collection[Numbered]) -> Iterator[Problem]:
    """Row ids and texts that occur more than once."""
    ids = set(repeated_ids(one.row.row_id for one in rows if one.row.row_id))
    first: dict[tuple[str, str], Numbered] = {}
    places: dict[str, list[int]] = {}
    for one in rows:
        if one.row.row_id in ids:
            places.setdefault(one.row.row_id, []).append(one.number)
    for one in rows:
        row = one.row
        if row.row_id in ids:
            others = ", ".join(str(number) for number in places[row.row_id] if number != one.number)
            found = f"has a row id that other rows have too ({others})"
            yield one.problem("repeated row id", "row_id", found, "Give every row an id of its own.")
        try:
            text = (row.item_id, text_sha256(row.prompt, row.completion))
        except UnicodeEncodeError:
            continue
        if text in first:
            earlier = first[text]
            found = f"has the text of row {earlier.number} ({earlier.row.row_id}), for the same item"
            remedy = "Drop one: repeats are copies of one row, not different rows."
            yield one.problem("repeated text", "prompt", found, remedy, error=False)
        first.setdefault(text, one)


def _judgement(one: Numbered) -> Iterator[Problem]:
    """Match types that are unknown, or that speak against the row's kind."""
    row = one.row
    if row.kind in DERIVED_KINDS:
        remedy = "Drop it: such rows are made from the items, from another kind's rows or from the pool."
        yield one.problem(
            "never read", "kind", f"is of kind {row.kind}, which no bank is read for", remedy, error=False
        )
    if JUDGE_ERROR in (row.match_type, row.judge):
        key = "match_type" if row.match_type == JUDGE_ERROR else "judge"
        remedy = "Judge it again, or drop it: a failed judgement is no verdict."
        yield one.problem("failed judgement", key, f"has {key} {JUDGE_ERROR}", remedy)
        return
    found = f"is of kind {row.kind} and has match_type {row.match_type!r}"
    if row.match_type is None or not isinstance(row.match_type, str):
        return
    if row.match_type not in MATCH_TYPES:
        remedy = f"Use one of: {', '.join(MATCH_TYPES)}; or null where it was not judged."
        yield one.problem("unknown match type", "match_type", f"has match_type {row.match_type!r}", remedy)
    elif row.kind in SEMD_KINDS and row.match_type in ("related", "unrelated"):
        remedy = "Drop it, or give it the kind topical: it was judged to be no duplicate."
        yield one.problem("judged to be no duplicate", "match_type", found, remedy)
    elif row.kind in NON_DUPLICATE_KINDS and row.match_type in STRICT:
        remedy = "Drop it, or give it a kind of duplicate: it was judged to be one."
        yield one.problem("judged to be a duplicate", "match_type", found, remedy)
    elif row.kind in (*SEMD_KINDS, *NON_DUPLICATE_KINDS) and row.match_type == "superset":
        remedy = "State which count you use: the item is harder than the row, a duplicate by the loose count only."
        yield one.problem("duplicate by the loose count only", "match_type", found, remedy, error=False)


def _too_long(rows: Collection[Numbered], chat: Chat, max_length: int) -> Iterator[Problem]:
    for one in rows:
        try:
            tokens = len(chat.encode(one.row.prompt, one.row.completion).input_ids)
        except TokenizationError as error:
            yield one.problem("cannot be tokenized", "prompt", f"cannot be tokenized: {error}", "Change row or model.")
            continue
        if tokens > max_length:
            found = f"has {tokens} tokens and would be cut off at {max_length}"
            yield one.problem("too long", "completion", found, "Drop it, or raise train.max_length.")
