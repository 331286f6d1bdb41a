"""Intervals and tests beside the t over seeds: clustered by family, bootstrapped over seeds and families, McNemar.

Each covers something else, and none is the primary one; :data:`LABELS` says what each covers and what simulation found
(docs/statistics.md). All start from per-family differences, arm - clean, in the unit of the outcome.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Any

import numpy as np
from numpy.typing import NDArray
from scipy import stats
from statsmodels.stats.contingency_tables import mcnemar

from softcontam.analysis.estimates import CONFIDENCE

PRIMARY, CLUSTERED, BOOTSTRAP, MCNEMAR = "t over seeds", "family-clustered", "hierarchical bootstrap", "McNemar"

LABELS: dict[str, str] = {
    PRIMARY: (
        "95 % t interval over seeds: it covers new runs and new splits of this benchmark (94-97 % of the time in "
        "simulation); new items as well in 92-97 %, the less the more seeds there are."
    ),
    CLUSTERED: (
        "95 % interval with families as clusters: it covers new items for these very runs (94-97 % of the time in "
        "simulation) and leaves out how much runs differ: at a spread of 0.15 logit it covers new runs in 91-96 % with "
        "100 items and in 66-68 % with 1,000."
    ),
    BOOTSTRAP: (
        "95 % percentile interval, seeds drawn again and then families: meant for new runs and new items, it is too "
        "wide where items vary most (up to 99 % in simulation) and too narrow with few seeds where runs do (89 % with "
        "3 seeds and 1,000 items at a spread of 0.15 logit)."
    ),
    MCNEMAR: (
        "Exact test of one pair of runs on its items: it leaves out how much runs differ, so that at a spread of 0.15 "
        "logit it rejects without any effect in 7 % of pairs with 100 items and in 37 % with 1,000, instead of 5 %."
    ),
}
"""By method, what it covers and what simulation found, in one sentence each."""

_NO_SPREAD = 1e-9
_FEW_VALUES = 64
_CHUNK = 4_000_000


@dataclass(frozen=True)
class Group:
    """Families whose mean difference enters a seed's contrast with one sign.

    ``sign`` is +1 or -1; ``families`` (shape (F,)) holds their names, the same in every seed and distinct between
    benchmarks; ``values`` (shape (F,)) the mean of arm - clean within each, without NaN.

    Raises:
        ValueError: no family, unequal lengths, or an undecided value.
    """

    sign: float
    families: NDArray[Any] = field(repr=False)
    values: NDArray[np.float64] = field(repr=False)

    def __post_init__(self) -> None:
        if len(self.values) == 0 or len(self.families) != len(self.values):
            raise ValueError(f"a group of {len(self.families)} families has {len(self.values)} values: give one each")
        if np.isnan(self.values).any():
            raise ValueError("a family's difference is NaN: leave undecided items out of both arms first")


Seed = Sequence[Group]
"""One seed's contrast: the sum over its groups of sign * mean. An effect has one group, a difference of two effects
two."""


@dataclass(frozen=True)
class Interval:
    """Bounds of a 95 % interval, NaN where it can't be built; ``note`` then says why."""

    low: float
    high: float
    note: str = ""


def seed_values(seeds: Sequence[Seed]) -> NDArray[np.float64]:
    """The contrast of each seed, shape (S,): the sum over its groups of sign * mean over families."""
    return np.array([sum(group.sign * float(group.values.mean()) for group in seed) for seed in seeds], dtype=float)


def family_clustered(seeds: Sequence[Seed]) -> Interval:
    """The interval of the mean over seeds with families as clusters: for new items, and for these very runs.

    A family's contribution adds up its deviations from the group mean over the seeds and groups that hold it, so that a
    family which several seeds evaluate counts once. The variance is G / (G - 1) times the sum of squared contributions
    (Liang and Zeger 1986, with the correction for the number of clusters), the interval a t with G - 1 degrees of
    freedom for G families. That is ordinary least squares on dummies for seeds and groups with cluster-robust errors.

    Args:
        seeds: at least one seed.
    """
    names = np.concatenate([np.asarray(group.families, dtype=str) for seed in seeds for group in seed])
    deviations = np.concatenate(
        [
            group.sign * (group.values - group.values.mean()) / (len(group.values) * len(seeds))
            for seed in seeds
            for group in seed
        ]
    )
    distinct, positions = np.unique(names, return_inverse=True)
    n = len(distinct)
    if n < 2:
        return _none("one family: no interval over families")
    contributions = np.bincount(positions, weights=deviations, minlength=n)
    error = math.sqrt(n / (n - 1) * float(contributions @ contributions))
    if error < _NO_SPREAD:
        return _none(f"on average over seeds all {n} families differ alike: no interval over families")
    half = float(stats.t.ppf((1 + CONFIDENCE) / 2, n - 1)) * error
    mean = float(seed_values(seeds).mean())
    return Interval(mean - half, mean + half)


def hierarchical_bootstrap(seeds: Sequence[Seed], draws: int = 2000, seed: int = 0) -> Interval:
    """The percentile interval of the mean over seeds when seeds, and families within each, are drawn again.

    Seeds are drawn with replacement; then, each time that a seed is drawn, the families of each of its groups. The
    same arguments give the same interval.

    Args:
        seeds: at least one seed; one alone has no interval.
        draws: bootstrap samples.
        seed: of the random generator.
    """
    n = len(seeds)
    if n < 2:
        return _none("one seed: no bootstrap over seeds")
    rng = np.random.default_rng(seed)
    drawn = rng.integers(n, size=(draws, n))
    values = np.zeros((draws, n))
    for index, groups in enumerate(seeds):
        places = drawn == index
        values[places] = sum(group.sign * _resampled_means(group.values, int(places.sum()), rng) for group in groups)
    means = values.mean(axis=1)
    if float(np.ptp(means)) < _NO_SPREAD:
        return _none(f"all {n} seeds and their families differ alike: no bootstrap interval")
    low, high = np.quantile(means, [(1 - CONFIDENCE) / 2, (1 + CONFIDENCE) / 2])
    return Interval(float(low), float(high))


def exact_mcnemar(treated: NDArray[Any], clean: NDArray[Any]) -> float:
    """The exact two-sided McNemar p value of one pair of runs (McNemar 1947): are the flips as many both ways?

    It takes items as independent and the runs as given. 1 where no item flips; NaN without items, or where an item's
    result is not 0 or 1 (several samples averaged).

    Args:
        treated: shape (n,), 0 or 1 for each item.
        clean: shape (n,), the same items in the clean run.
    """
    first, second = np.asarray(treated, dtype=float), np.asarray(clean, dtype=float)
    if len(first) == 0 or not np.isin(np.concatenate([first, second]), (0.0, 1.0)).all():
        return math.nan
    gained = int(((first == 1) & (second == 0)).sum())
    lost = int(((first == 0) & (second == 1)).sum())
    both = int(((first == 1) & (second == 1)).sum())
    table = [[both, gained], [lost, len(first) - both - gained - lost]]
    return float(mcnemar(table, exact=True).pvalue)


def family_clustered_mean(values: NDArray[Any], families: NDArray[Any]) -> tuple[float, float]:
    """An arm's own result: the mean over families of their means, and its standard error with families as clusters.

    The error is NaN for one family; both are NaN without items.

    Args:
        values: shape (n,), one for each item, without NaN.
        families: shape (n,), the family of each item.
    """
    if len(values) == 0:
        return math.nan, math.nan
    _, positions, sizes = np.unique(np.asarray(families, dtype=str), return_inverse=True, return_counts=True)
    means = np.bincount(positions, weights=np.asarray(values, dtype=float)) / sizes
    error = float(means.std(ddof=1)) / math.sqrt(len(means)) if len(means) > 1 else math.nan
    return float(means.mean()), error


def _resampled_means(values: NDArray[np.float64], times: int, rng: np.random.Generator) -> NDArray[np.float64]:
    """Means of ``times`` samples of ``values`` with replacement, shape (times,).

    Where there are few distinct values (accuracies), how often each is drawn is drawn at once, which is the same
    distribution and does not grow with the number of families.
    """
    size = len(values)
    distinct, counts = np.unique(values, return_counts=True)
    if len(distinct) <= _FEW_VALUES:
        return np.asarray(rng.multinomial(size, counts / size, size=times) @ distinct / size, dtype=np.float64)
    means = np.empty(times)
    rows = max(1, _CHUNK // size)  # samples at a time, so that memory stays bounded
    for start in range(0, times, rows):
        stop = min(start + rows, times)
        means[start:stop] = values[rng.integers(size, size=(stop - start, size), dtype=np.int32)].mean(axis=1)
    return means


def _none(note: str) -> Interval:
    return Interval(math.nan, math.nan, note)
