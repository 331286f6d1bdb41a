"""What standard decontamination filters would have found among the inserted and the clean rows of each arm."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass

import numpy as np
import pandas as pd
from numpy.typing import NDArray

from softcontam.analysis.pairing import Arm, LoadedCell
from softcontam.duplicates.distance import overlap_coefficient
from softcontam.store import read_parquet

SEMD = ("semd_synthetic", "semd_natural")
"""Kinds whose similarity to their items that of the other arms is set beside."""


@dataclass(frozen=True)
class Detected:
    """Rows of an arm that a filter finds: ``found`` of ``rows``, summed over its cells.

    They are the inserted rows, in the clean arm the clean rows.
    """

    arm: Arm
    filter: str
    found: int
    rows: int


@dataclass(frozen=True)
class Similarity:
    """How similar the inserted rows of an arm are to the items that they stand for.

    ``quantiles`` are the 10th, 50th and 90th percentile of the cosines, ``measure`` what they are cosines of.
    ``overlap`` is the overlap coefficient (0 to 1) with the SemD arm of the same benchmark, setup and dose, which
    ``beside`` names; NaN and empty where there is none.
    """

    arm: Arm
    measure: str
    rows: int
    quantiles: tuple[float, float, float]
    overlap: float
    beside: str


def detected(cells: Iterable[LoadedCell]) -> list[Detected]:
    """Counts by arm and filter; for the clean arm over its clean rows, for the others over the inserted ones."""
    sums: dict[tuple[Arm, str], list[int]] = {}
    for one in cells:
        counted = one.metrics.get("detected_clean" if one.is_clean else "detected") or {}
        for name, (found, rows) in counted.items():
            total = sums.setdefault((one.arm, name), [0, 0])
            total[0] += found
            total[1] += rows
    return [Detected(arm, name, found, rows) for (arm, name), (found, rows) in sums.items() if rows]


def similarities(cells: Sequence[LoadedCell]) -> list[Similarity]:
    """One entry for each arm that inserts rows, in the order given.

    Raises:
        StoreError: a manifest is missing or damaged.
    """
    by_arm: dict[Arm, list[NDArray[np.float64]]] = {}
    measures: dict[Arm, str] = {}
    for one in cells:
        if not one.is_clean and one.metrics.get("similarity"):
            by_arm.setdefault(one.arm, []).append(_cosines(one))
            measures[one.arm] = str(one.metrics["similarity"])
    pooled = {arm: np.concatenate(found) for arm, found in by_arm.items()}
    made = []
    for arm, values in pooled.items():
        if not len(values):
            continue
        beside = next((other for other in pooled if _stands_beside(other, arm) and len(pooled[other])), None)
        low, middle, high = (float(value) for value in np.quantile(values, (0.1, 0.5, 0.9)))
        made.append(
            Similarity(
                arm,
                measures[arm],
                len(values),
                (low, middle, high),
                overlap_coefficient(values, pooled[beside]) if beside else float("nan"),
                f"{beside.condition}{f' ({beside.level})' if beside.level else ''}" if beside else "",
            )
        )
    return made


def _stands_beside(other: Arm, arm: Arm) -> bool:
    """Whether ``other`` is the SemD arm of the same benchmark, setup and dose."""
    same = (other.split_benchmark, other.setup, other.rate, other.copies_setting)
    return (
        other != arm
        and other.condition in SEMD
        and same
        == (
            arm.split_benchmark,
            arm.setup,
            arm.rate,
            arm.copies_setting,
        )
    )


def _cosines(one: LoadedCell) -> NDArray[np.float64]:
    """The similarities of a cell's inserted rows."""
    manifest: pd.DataFrame = read_parquet(one.cell.folder / "manifest.parquet")
    values = manifest["similarity"].dropna() if "similarity" in manifest else pd.Series(dtype=float)
    return np.asarray(values.to_numpy(dtype=float))
