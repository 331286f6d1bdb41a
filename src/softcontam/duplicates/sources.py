"""From the settings of a bank to its rows: where they are read, found or made."""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path

from softcontam.benchmarks import Benchmark, Item
from softcontam.config import BANK_SOURCES, BenchmarkConfig
from softcontam.duplicates.bank import BankRow, check_rows, read_bank
from softcontam.errors import ConfigError, DataError


def bank_rows(
    kind: str, config: BenchmarkConfig, items: Sequence[Item], data: Path, others: Sequence[Item] = ()
) -> list[BankRow]:
    """All rows of one kind from its configured source, checked, for these items only.

    Args:
        config: the benchmark that the items are of; ``banks[kind]`` says where the rows come from.
        others: items of the other benchmarks, which rows that are to be no duplicates must not duplicate either.

    Raises:
        ConfigError: no bank of that kind, or an unknown source.
        DataError: rows that cannot be read or used.
    """
    bank = config.banks.get(kind)
    if bank is None:
        known = ", ".join(sorted(config.banks)) or "none"
        raise ConfigError(f"benchmark={config.name} has no bank of kind {kind} (it has: {known}).")
    if bank.source == "tinyworld":
        from softcontam.duplicates import tinyworld

        rows = tinyworld.rows(kind, items, others)
    elif bank.source == "labelled_pairs":
        from softcontam.duplicates import labelled_pairs

        rows = labelled_pairs.rows(bank, items, data)
    elif bank.source == "nearest":
        from softcontam.duplicates import nearest

        rows = nearest.rows(bank, items, data, others)
    elif bank.source == "corpus":
        from softcontam.duplicates import corpus

        rows = corpus.rows(kind, bank, config, items, data, others)
    elif bank.source == "rules":
        from softcontam.duplicates import rules

        rows = rules.rows(config.module, bank, items)
    elif bank.source == "parquet":
        path = data / str(bank.path)
        rows = [row for row in read_bank(path) if row.kind == kind]
        if not rows:
            raise DataError(f"bank {path} has no rows of kind {kind}. Set benchmark.banks.{kind}.path to one that has.")
    else:
        raise ConfigError(f"bank source {bank.source!r} is unknown; choose one of: {', '.join(BANK_SOURCES)}")
    check_rows(rows, f"{bank.source} bank of kind {kind}")
    foreign = next((row for row in rows if row.kind != kind), None)
    if foreign is not None:
        raise ConfigError(
            f"benchmark.banks.{kind}: source {bank.source} gave rows of kind {foreign.kind}, first {foreign.row_id}. "
            f"Set params.kind={kind} where the source has it, or move the entry to benchmark.banks.{foreign.kind}."
        )
    known_items = {item.item_id for item in items}
    return [row for row in rows if row.item_id in known_items]


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
            counts = Counter(row.item_id for row in bank_rows(kind, config, kept, data, others))
            kept = tuple(item for item in kept if counts[item.item_id] >= config.min_rows)
        if kept == benchmark.items:
            return benchmark
        benchmark = replace(benchmark, items=kept)
