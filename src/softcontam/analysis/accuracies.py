"""Each arm's own result with its error: what stands beside the differences from the clean arm."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass

import pandas as pd

from softcontam.analysis.intervals import family_clustered_mean
from softcontam.analysis.pairing import Arm, LoadedCell


@dataclass(frozen=True)
class ArmAccuracy:
    """One cell on one benchmark in one role, all items: mean over families, in the unit of ``outcome``.

    ``error`` is the standard error with families as clusters: for new items, for this run. ``parse_rate`` is a share of
    outputs.
    """

    arm: Arm
    seed: int
    role: str
    benchmark: str
    outcome: str
    value: float
    error: float
    n_items: int
    n_families: int
    parse_rate: float


def arm_accuracies(cells: Sequence[LoadedCell], items: pd.DataFrame, outcomes: Sequence[str]) -> list[ArmAccuracy]:
    """One record per cell, role, benchmark and decided outcome, in the order of the cells.

    Args:
        items: of :func:`softcontam.analysis.items.item_table`.
    """
    known = {one.cell.id: one for one in cells}
    found = []
    for (cell, role, benchmark), members in items.groupby(["cell", "role", "benchmark"], sort=False, observed=True):
        for outcome in outcomes:
            decided = members[members[outcome].notna()]
            if decided.empty:
                continue
            families = decided["family"].to_numpy()
            value, error = family_clustered_mean(decided[outcome].to_numpy(float), families)
            rate = float(decided["parse_rate"].mean()) if decided["parse_rate"].notna().any() else math.nan
            one = known[str(cell)]
            counts = len(decided), len(set(families))
            found.append(
                ArmAccuracy(one.arm, one.config.seed, str(role), str(benchmark), outcome, value, error, *counts, rate)
            )
    place = {one.cell.id: index for index, one in enumerate(cells)}
    arms = {(one.arm, one.config.seed): place[one.cell.id] for one in cells}
    return sorted(found, key=lambda one: arms[one.arm, one.seed])
