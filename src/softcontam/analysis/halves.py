"""How alike the seen and the held-out half are before anything is inserted: the clean arm on both."""

from __future__ import annotations

import math
from collections import Counter, defaultdict
from collections.abc import Sequence
from dataclasses import dataclass

import pandas as pd
from scipy import stats

from softcontam.analysis.estimates import CONFIDENCE, Estimate, over_seeds
from softcontam.analysis.families import family_rows
from softcontam.analysis.items import ACCURACY, HELD_OUT, LOGPROB, SEEN
from softcontam.analysis.pairing import LoadedCell


@dataclass(frozen=True)
class Half:
    """One half in one seed.

    ``value`` is the clean arm's mean over families, ``family_sizes`` the number of families by size, ``difficulty`` the
    mean over items of what the halves were balanced for (NaN where nothing was given).
    """

    value: float
    n_items: int
    family_sizes: dict[int, int]
    difficulty: float

    @property
    def n_families(self) -> int:
        """The number of families."""
        return sum(self.family_sizes.values())


@dataclass(frozen=True)
class SeedHalves:
    """Both halves of one seed's split; ``low`` and ``high`` bound seen - held-out (95 %, over families, Welch's t)."""

    seed: int
    seen: Half
    held_out: Half
    low: float
    high: float

    @property
    def difference(self) -> float:
        """Seen - held-out."""
        return self.seen.value - self.held_out.value

    @property
    def differ(self) -> bool:
        """Whether the interval exists and excludes 0."""
        return self.low > 0 or self.high < 0


@dataclass(frozen=True)
class Halves:
    """The halves of one benchmark and setup in all seeds.

    ``estimate`` is of seen - held-out over seeds, in the unit of ``outcome``. ``strata`` says whether the benchmark has
    strata, for which the halves are then balanced; None for cells from before families were recorded, when halves were
    not balanced. ``difficulty`` names the table of difficulties that they were balanced for, if there was one.
    """

    setup: str
    split_benchmark: str
    outcome: str
    per_seed: tuple[SeedHalves, ...]
    estimate: Estimate
    strata: bool | None
    difficulty: str | None

    @property
    def differing_seeds(self) -> list[int]:
        """The seeds whose halves differ by more than their interval."""
        return [one.seed for one in self.per_seed if one.differ]


def halves(clean: Sequence[LoadedCell], items: pd.DataFrame) -> list[Halves]:
    """One record per split benchmark and setup: accuracy where it is decided, else the gold log-probability.

    Args:
        clean: the clean cells, one for each seed.
        items: their item table.
    """
    groups: dict[tuple[str, str], list[LoadedCell]] = defaultdict(list)
    for one in clean:
        groups[one.arm.split_benchmark, one.arm.setup].append(one)
    found = []
    for (benchmark, setup), cells in groups.items():
        ordered = sorted(cells, key=lambda one: one.config.seed)
        own = items[(items["benchmark"] == benchmark) & items["cell"].isin([one.cell.id for one in ordered])]
        outcome = ACCURACY if own[ACCURACY].notna().any() else LOGPROB
        tables = [_own_families(one) for one in ordered]
        seeds = [
            _seed_halves(one, own[own["cell"] == one.cell.id], table, outcome)
            for one, table in zip(ordered, tables, strict=True)
        ]
        per_seed = tuple(one for one in seeds if one is not None)
        if not per_seed:
            continue
        known = [table for table in tables if table is not None]
        strata = any(table["stratum"].notna().any() for table in known) if known else None
        difficulty = ordered[0].config.benchmark.difficulty
        estimate = over_seeds([one.difference for one in per_seed])
        found.append(Halves(setup, benchmark, outcome, per_seed, estimate, strata, difficulty))
    return found


def _own_families(one: LoadedCell) -> pd.DataFrame | None:
    """The rows of the split benchmark in a cell's family table."""
    rows = family_rows(one.cell)
    return None if rows is None else rows[rows["benchmark"] == one.arm.split_benchmark]


def _seed_halves(
    one: LoadedCell, items: pd.DataFrame, families: pd.DataFrame | None, outcome: str
) -> SeedHalves | None:
    """The halves of one clean cell; None where one of them has no decided item."""
    difficulty = pd.Series(dtype=float)
    if families is not None:
        difficulty = families.set_index("item_id")["difficulty"]
    made, values = {}, {}
    for role in (SEEN, HELD_OUT):
        members = items[(items["role"] == role) & items[outcome].notna()]
        if members.empty:
            return None
        values[role] = members.groupby("family", observed=True)[outcome].mean()
        sizes = Counter(members.groupby("family", observed=True).size().tolist())
        made[role] = Half(
            float(values[role].mean()),
            len(members),
            dict(sorted(sizes.items())),
            float(difficulty.reindex(members["item_id"]).mean()),
        )
    low, high = _welch(values[SEEN], values[HELD_OUT])
    return SeedHalves(one.config.seed, made[SEEN], made[HELD_OUT], low, high)


def _welch(first: pd.Series[float], second: pd.Series[float]) -> tuple[float, float]:
    """The interval of a difference of means of independent samples; NaN where there is no spread to build it on."""
    if min(len(first), len(second)) < 2:
        return math.nan, math.nan
    errors = [float(values.var()) / len(values) for values in (first, second)]
    if sum(errors) == 0:
        return math.nan, math.nan
    freedom = sum(errors) ** 2 / (errors[0] ** 2 / (len(first) - 1) + errors[1] ** 2 / (len(second) - 1))
    half = float(stats.t.ppf((1 + CONFIDENCE) / 2, freedom)) * math.sqrt(sum(errors))
    difference = float(first.mean() - second.mean())
    return difference - half, difference + half
