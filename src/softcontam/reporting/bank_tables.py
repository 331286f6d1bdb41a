"""A bank's problems and contents as tables for the terminal."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Sequence
from itertools import groupby
from statistics import median

import pandas as pd
from rich.box import SIMPLE_HEAD
from rich.markup import escape
from rich.table import Table as TerminalTable

from softcontam.benchmarks import Benchmark
from softcontam.duplicates.bank import BankRow
from softcontam.duplicates.problems import Problem
from softcontam.duplicates.tables import Table


def problem_lines(table: Table, problems: Sequence[Problem], show: int) -> Iterator[str]:
    """A headline for each sort of problem and a line for each row; at most ``show`` of one sort, 0 for all."""
    for sort, group in groupby(problems, key=lambda one: one.sort):
        members = list(group)
        level = "error" if members[0].error else "warning"
        yield f"{level}: {sort} ({len(members)})"
        shown = members[:show] if show else members
        for one in shown:
            name = f" ({one.row_id})" if one.row_id else ""
            where = f"{table.path}, {table.row_word} {one.number}{name}" if one.number else str(table.path)
            yield f"  {where} {one.found}. {one.remedy}"
        if len(shown) < len(members):
            yield f"  and {len(members) - len(shown)} more (show=0 lists all, csv=FILE writes them to a file)"


def problem_frame(table: Table, problems: Sequence[Problem]) -> pd.DataFrame:
    """All problems, one per row."""
    return pd.DataFrame(
        {
            "severity": "error" if one.error else "warning",
            "problem": one.sort,
            "file": str(table.path),
            "row": one.number,
            "row_id": one.row_id,
            "key": one.key,
            "found": one.found,
            "remedy": one.remedy,
        }
        for one in problems
    )


def contents(rows: Sequence[BankRow], benchmark: Benchmark | None = None) -> TerminalTable:
    """Rows, items (those of the benchmark, where there is one), words and judgements by kind and level."""
    known = {item.item_id for item in benchmark.items} if benchmark else None
    table = TerminalTable(box=SIMPLE_HEAD, pad_edge=False)
    table.add_column("kind")
    table.add_column("level")
    for name in ("rows", "items", "rows per item"):
        table.add_column(name, justify="right")
    for name in ("words of prompt", "of completion"):
        table.add_column(name, justify="right")
    for name in ("styles", "match types", "judges"):
        table.add_column(name, overflow="fold")
    by_level: dict[tuple[str, str], list[BankRow]] = {}
    for row in rows:
        by_level.setdefault((row.kind, str(row.level or "–")), []).append(row)
    groups = sorted(by_level.items())
    if len(groups) > 1:
        groups.append((("all", "–"), list(rows)))
    for (kind, level), members in groups:
        per_item = Counter(row.item_id for row in members)
        items = f"{len(per_item)}" if known is None else f"{len(known & per_item.keys())} of {len(known)}"
        lengths = ([len(row.prompt.split()) for row in members], [len(row.completion.split()) for row in members])
        named: tuple[list[str | None], ...] = (
            [row.response_style for row in members],
            [row.match_type for row in members],
            [row.judge for row in members],
        )
        cells = [kind, level, f"{len(members)}", items, _spread(list(per_item.values()))]
        cells += [_spread(counted) for counted in lengths] + [_shares(values) for values in named]
        table.add_row(*map(escape, cells))
    return table


def distance_table(levels: pd.DataFrame, filters: Sequence[str]) -> TerminalTable:
    """Median similarities to the items and the share of rows that each filter finds, by kind and level."""
    table = TerminalTable(box=SIMPLE_HEAD, pad_edge=False)
    names = {"word_pairs": "word pairs", "difflib": "difflib", "cosine": "cosine", "answer_difflib": "answer difflib"}
    for name in ("kind", "level"):
        table.add_column(name, no_wrap=name == "kind", overflow="fold")
    for name in ("rows", "items", *names.values(), *filters):
        table.add_column(name, justify="right")
    for record in levels.to_dict("records"):
        cells = [str(record["kind"]), str(record["level"]), str(record["rows"]), str(record["items"])]
        cells += [f"{record[name]:.2f}" for name in names]
        cells += [f"{record[name]} ({100 * record[name] / record['rows']:.0f} %)" for name in filters]
        table.add_row(*map(escape, cells))
    return table


def _spread(values: Sequence[int]) -> str:
    """Smallest, median and largest, or the one value that all have."""
    low, high = min(values), max(values)
    return f"{low}" if low == high else f"{low}–{median(values):g}–{high}"


def _shares(values: Sequence[str | None]) -> str:
    """The values with their shares in per cent, the four most common."""
    counts = Counter("–" if value is None else str(value) for value in values)
    if len(counts) == 1:
        return next(iter(counts))
    parts = [f"{value} {100 * count / len(values):.0f} %" for value, count in counts.most_common(4)]
    return ", ".join([*parts, *(["…"] if len(counts) > 4 else [])])
