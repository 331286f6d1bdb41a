"""The schema of a duplicate bank, its file format, and the way to the rows of one condition."""

from __future__ import annotations

import hashlib
import math
from collections import Counter
from collections.abc import Iterable, Sequence
from dataclasses import asdict, dataclass, fields, replace
from pathlib import Path
from typing import Any

import pandas as pd

from softcontam.benchmarks import Benchmark, Item
from softcontam.config import KINDS, BankConfig, BenchmarkConfig, ConditionConfig
from softcontam.errors import ConfigError, DataError

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
    """The rows of one kind (and level) by item."""

    kind: str
    level: str | None
    rows: dict[str, list[BankRow]]

    @staticmethod
    def of(kind: str, level: str | None, rows: Iterable[BankRow]) -> Bank:
        """Group checked rows by item."""
        grouped: dict[str, list[BankRow]] = {}
        for row in rows:
            grouped.setdefault(row.item_id, []).append(row)
        return Bank(kind, level, grouped)


def check_rows(rows: Sequence[BankRow], where: str) -> None:
    """Refuse rows that no mixture could be built from.

    Raises:
        DataError: naming the file and row.
    """
    for row in rows:
        if row.kind not in BANK_KINDS:
            raise DataError(f"{where}: row {row.row_id} has unknown kind {row.kind!r}; known: {', '.join(BANK_KINDS)}")
        for name in ("item_id", "prompt", "completion"):
            if not getattr(row, name).strip():
                raise DataError(f"{where}: row {row.row_id} has an empty {name}")
    repeated = [row_id for row_id, count in Counter(row.row_id for row in rows).items() if count > 1]
    if repeated:
        raise DataError(f"{where}: row id {repeated[0]!r} occurs more than once; row ids must be unique")


def write_bank(path: Path, rows: Sequence[BankRow]) -> None:
    """Write a bank as parquet, one column per field and ``sha256``."""
    from softcontam.store import write_parquet

    check_rows(rows, str(path))
    write_parquet(path, pd.DataFrame([{**asdict(row), "sha256": row.sha256} for row in rows]))


def read_bank(path: Path) -> list[BankRow]:
    """Read and check a bank file.

    Raises:
        DataError: missing or damaged file, missing column, or a row that was changed after it was written.
    """
    try:
        frame = pd.read_parquet(path)
    except FileNotFoundError:
        raise DataError(f"bank {path} does not exist. Set benchmark.banks.<kind>.path to a bank file.") from None
    except (OSError, ValueError) as error:
        raise DataError(f"bank {path} is no readable parquet file ({error}). Copy or make it again.") from error
    names = [field.name for field in fields(BankRow)]
    absent = [name for name in [*names, "sha256"] if name not in frame.columns]
    if absent:
        raise DataError(f"bank {path} lacks the columns {', '.join(absent)}; see docs/architecture.md, duplicate bank")
    rows = []
    for number, record in enumerate(frame.to_dict("records")):
        values: dict[str, Any] = {name: _plain(record[name]) for name in names}
        for name in ("row_id", "item_id", "kind", "prompt", "completion", "response_style", "source"):
            if values[name] is None:
                raise DataError(f"bank {path}: row {number} has no {name}")
            if not isinstance(values[name], str):
                raise DataError(f"bank {path}: {name} of row {number} is {values[name]!r}, expected text")
        row = BankRow(**values)
        if row.sha256 != record["sha256"]:
            raise DataError(f"bank {path}: the text of row {row.row_id} does not match its sha256")
        rows.append(row)
    check_rows(rows, str(path))
    return rows


def _plain(value: object) -> object:
    """The value of a cell of a table, None where it is missing."""
    return None if value is None or (isinstance(value, float) and math.isnan(value)) else value


def open_bank(condition: ConditionConfig, benchmark: Benchmark, rows: Sequence[BankRow]) -> Bank:
    """The bank of a condition for the items of a benchmark, from all rows of its kind; exact needs none.

    Raises:
        ConfigError: no rows of that level.
    """
    kind, level = condition.kind, condition.level
    if kind == "exact":
        from softcontam.duplicates import exact

        return Bank.of(kind, None, map(exact.row, benchmark.items))
    levels = sorted({row.level for row in rows if row.level})
    if level is not None and level not in levels:
        raise ConfigError(
            f"condition.level={level} is not in the {kind} bank of {benchmark.name}; it has: {', '.join(levels)}"
        )
    return Bank.of(kind, level, [row for row in rows if level is None or row.level == level])


def items_with_rows(config: BenchmarkConfig, benchmark: Benchmark, data: Path, others: Sequence[Item]) -> Benchmark:
    """The benchmark without the items that a bank of ``only_items_with`` has too few rows for.

    Where rows are shared out between items (nearest corpus rows), fewer items change who gets which: this is repeated
    until every item that is left has its rows.

    Raises:
        ConfigError: ``only_items_with`` names a kind without a bank.
    """
    unknown = [kind for kind in config.only_items_with if kind not in config.banks]
    if unknown:
        raise ConfigError(f"benchmark.only_items_with: {unknown[0]} is no key of benchmark.banks of {config.name}")
    while True:
        kept = benchmark.items
        for kind in config.only_items_with:
            rows = bank_rows(kind, config.banks[kind], kept, data, others)
            counts = Counter(row.item_id for row in rows)
            kept = tuple(item for item in kept if counts[item.item_id] >= config.min_rows)
        if kept == benchmark.items:
            return benchmark
        benchmark = replace(benchmark, items=kept)


def bank_rows(
    kind: str, config: BankConfig, items: Sequence[Item], data: Path, others: Sequence[Item] = ()
) -> list[BankRow]:
    """All rows of one kind from its configured source, checked, for these items only.

    Args:
        others: items of the other benchmarks, which rows that are to be no duplicates must not duplicate either.

    Raises:
        ConfigError: an unknown source.
        DataError: rows that cannot be read or used.
    """
    if config.source == "tinyworld":
        from softcontam.duplicates import tinyworld

        rows = tinyworld.rows(kind, items)
    elif config.source == "labelled_pairs":
        from softcontam.duplicates import labelled_pairs

        rows = labelled_pairs.rows(config, items, data)
    elif config.source == "nearest":
        from softcontam.duplicates import nearest

        rows = nearest.rows(config, items, data, others)
    elif config.source == "parquet":
        path = data / str(config.path)
        rows = [row for row in read_bank(path) if row.kind == kind]
        if not rows:
            raise DataError(f"bank {path} has no rows of kind {kind}. Set benchmark.banks.{kind}.path to one that has.")
    else:
        raise ConfigError(
            f"bank source {config.source!r} is unknown; choose tinyworld, labelled_pairs, nearest or parquet"
        )
    check_rows(rows, f"{config.source} bank of kind {kind}")
    known = {item.item_id for item in items}
    return [row for row in rows if row.item_id in known]
