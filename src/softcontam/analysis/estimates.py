"""Statistics over seeds: the training run is the unit of replication, so every interval is built on seeds."""

from __future__ import annotations

import functools
import math
from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
from scipy import optimize, stats

CONFIDENCE = 0.95
POWER = 0.80
_NO_SPREAD = 1e-9


@dataclass(frozen=True)
class Estimate:
    """A mean over seeds with its t interval.

    ``low``, ``high``, ``p`` and ``detectable`` are NaN where the seeds don't allow them; ``note`` then says why.
    ``detectable`` is the smallest true effect that a two-sided 5 % test finds with 80 % power at this spread.
    """

    mean: float
    low: float
    high: float
    p: float
    detectable: float
    n: int
    note: str = ""

    @property
    def shown(self) -> bool:
        """Whether the interval exists and excludes 0."""
        return self.low > 0 or self.high < 0


def over_seeds(deltas: Sequence[float]) -> Estimate:
    """The mean of per-seed differences, its 95 % t interval (n - 1 degrees of freedom) and one-sample t test.

    One seed, or seeds that all give the same difference, have no spread to build an interval on: interval and p are
    then NaN, never a zero-width interval or p = 0.

    Args:
        deltas: one paired difference for each seed, in any unit; at least one.
    """
    values = np.asarray(deltas, dtype=float)
    n, mean, nan = len(values), float(values.mean()), math.nan
    if n == 1:
        return Estimate(mean, nan, nan, nan, nan, n, "one seed: no interval and no test")
    spread = float(values.std(ddof=1))
    if spread < _NO_SPREAD:
        return Estimate(mean, nan, nan, nan, nan, n, f"all {n} seeds gave the same difference: no interval and no test")
    error = spread / math.sqrt(n)
    half = float(stats.t.ppf((1 + CONFIDENCE) / 2, n - 1)) * error
    p = 2 * float(stats.t.sf(abs(mean) / error, n - 1))
    return Estimate(mean, mean - half, mean + half, p, standardized_detectable(n) * error, n)


@functools.cache
def standardized_detectable(n: int) -> float:
    """The smallest effect that a paired t test over ``n`` seeds detects, in standard errors of the mean difference.

    Solves the noncentral t distribution for 80 % power, two-sided 5 %; the wrong-signed tail is left out.

    Args:
        n: number of seeds, at least 2.
    """
    critical = float(stats.t.ppf((1 + CONFIDENCE) / 2, n - 1))
    return float(
        optimize.brentq(lambda shift: float(stats.nct.sf(critical, n - 1, shift)) - POWER, 0.0, 4 * critical + 4)
    )


def equivalence_p(deltas: Sequence[float], margin: float) -> float:
    """P value of two one-sided t tests (TOST, Schuirmann 1987) that the mean lies within ``margin`` of 0.

    NaN for one seed or for seeds without spread.

    Args:
        deltas: one paired difference for each seed.
        margin: the largest difference that would count as none, in the unit of ``deltas``; above 0.
    """
    values = np.asarray(deltas, dtype=float)
    if len(values) < 2 or float(values.std(ddof=1)) < _NO_SPREAD:
        return math.nan
    above = stats.ttest_1samp(values, -margin, alternative="greater").pvalue
    below = stats.ttest_1samp(values, margin, alternative="less").pvalue
    return float(max(above, below))


def equivalence_bounds(deltas: Sequence[float]) -> tuple[float, float]:
    """The 90 % t interval of the mean: TOST at 5 % shows equivalence where all of it lies within the margin.

    NaN for one seed or for seeds without spread.
    """
    values = np.asarray(deltas, dtype=float)
    if len(values) < 2 or float(values.std(ddof=1)) < _NO_SPREAD:
        return math.nan, math.nan
    bounds = stats.ttest_1samp(values, 0.0).confidence_interval(2 * CONFIDENCE - 1)
    return float(bounds.low), float(bounds.high)


def holm(p_values: Sequence[float], total: int | None = None) -> list[float]:
    """Holm's step-down adjustment (Holm 1979), in the order given; NaN p values stay NaN.

    Args:
        total: the number of tests that were planned, those without a p value included, as if these had p = 1. Without
            it only the p values that there are count.
    """
    adjusted = [math.nan] * len(p_values)
    order = sorted((i for i, p in enumerate(p_values) if not math.isnan(p)), key=lambda i: p_values[i])
    running, count = 0.0, len(order) if total is None else total
    for rank, index in enumerate(order):
        running = max(running, min(1.0, (count - rank) * p_values[index]))
        adjusted[index] = running
    return adjusted
