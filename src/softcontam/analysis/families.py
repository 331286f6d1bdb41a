"""Which items of a sweep's benchmarks belong together, from the family tables of its cells."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from itertools import chain, zip_longest

import pandas as pd

from softcontam.analysis.pairing import LoadedCell
from softcontam.store import Cell, read_parquet

EXAMPLES = 20
"""The most pairs that a summary quotes."""


@dataclass(frozen=True)
class JoinedPair:
    """Two items that were put into one family, and the evidence: its kind, and a text that names ``second``."""

    first: str
    second: str
    why: str
    evidence: str


@dataclass(frozen=True)
class FamilySummary:
    """The families of one benchmark.

    ``sharing`` is the number of items that share their family with another one, ``largest`` the size of the largest
    family, ``strata`` the number of strata that the split was balanced for (0 where the benchmark has none),
    ``kinds`` the number of pairs by kind of evidence, ``examples`` up to :data:`EXAMPLES` pairs of all kinds in turn.
    """

    benchmark: str
    n_items: int
    n_families: int
    sharing: int
    largest: int
    strata: int
    kinds: dict[str, int]
    examples: tuple[JoinedPair, ...]


def family_rows(cell: Cell) -> pd.DataFrame | None:
    """The family table of a cell; None for a cell from before there was one.

    Raises:
        StoreError: it is damaged.
    """
    path = cell.folder / "families.parquet"
    return read_parquet(path) if path.exists() else None


def family_summaries(cells: Sequence[LoadedCell]) -> list[FamilySummary]:
    """The families of each benchmark; a benchmark of which setups use other items is there for each of them."""
    first: dict[tuple[str, str], LoadedCell] = {}
    for one in cells:
        if (one.cell.folder / "families.parquet").exists():
            first.setdefault((one.arm.split_benchmark, one.arm.setup), one)
    found: list[FamilySummary] = []
    for one in first.values():
        rows = family_rows(one.cell)
        if rows is not None:
            summaries = (_summary(str(name), members) for name, members in rows.groupby("benchmark", sort=False))
            found += [summary for summary in summaries if not any(_same(summary, other) for other in found)]
    return found


def _same(one: FamilySummary, other: FamilySummary) -> bool:
    """Whether two summaries are of the same items; which pairs they quote depends on the split."""
    return (one.benchmark, one.n_items, one.n_families, one.kinds) == (
        *(other.benchmark, other.n_items, other.n_families),
        other.kinds,
    )


def _summary(benchmark: str, rows: pd.DataFrame) -> FamilySummary:
    by_kind = _pairs(rows)
    in_turn = chain.from_iterable(zip_longest(*by_kind.values()))
    return FamilySummary(
        benchmark=benchmark,
        n_items=len(rows),
        n_families=int(rows["family"].nunique()),
        sharing=int((rows["family_size"] > 1).sum()),
        largest=int(rows["family_size"].max()),
        strata=int(rows["stratum"].nunique()),
        kinds={kind: len(pairs) for kind, pairs in by_kind.items()},
        examples=tuple(pair for pair in in_turn if pair is not None)[:EXAMPLES],
    )


def _pairs(rows: pd.DataFrame) -> dict[str, list[JoinedPair]]:
    """The pairs by kind of evidence, the most frequent kind first; each is in the rows of both its items.

    Pairs with an item that the cell leaves out (no rows in its bank, say) are not counted.
    """
    present = set(rows["item_id"])
    pairs: dict[tuple[str, frozenset[str]], JoinedPair] = {}
    columns = (rows[name] for name in ("item_id", "joined_with", "why", "evidence"))
    for item_id, others, kinds, texts in zip(*columns, strict=True):
        for other, why, text in zip(others, kinds, texts, strict=True):
            if other not in present and why != "neighbour":
                continue
            pairs.setdefault((why, frozenset((item_id, other))), JoinedPair(item_id, other, why, text))
    by_kind: dict[str, list[JoinedPair]] = {}
    for pair in pairs.values():
        by_kind.setdefault(pair.why, []).append(pair)
    return dict(sorted(by_kind.items(), key=lambda entry: (-len(entry[1]), entry[0])))
