"""What a planned sweep can detect: from families, seeds, base accuracy, discordance and the spread between runs.

Per seed an arm and its clean arm answer the same items. The difference of their accuracies varies from seed to seed by

* ``2 * run_sd**2``: two training runs, each with its own deviation in accuracy;
* ``discordance / families * design``: items that the two runs answer differently; items of one family answer alike to
  the degree ``family_correlation``, which the design effect ``1 + (size - 1) * correlation`` puts in terms of items.

Over ``n`` seeds the mean of these differences is tested with a t test of ``n - 1`` degrees of freedom. One seed has no
such test; what is then given is for a normal test over items, as a study with one run per arm would report it, and it
holds for that run only. All accuracies are fractions.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass, replace
from itertools import combinations

import pandas as pd
from scipy import stats

from softcontam.analysis.estimates import POWER, standardized_detectable

MOST_SEEDS = 200
"""Seeds beyond which a target counts as out of reach."""

MOST_FAMILIES = 10_000_000
"""Families beyond which a target counts as out of reach."""

EQUIVALENCE_POWER = 0.90
"""Power with which an equivalence test is planned, at a true difference of 0."""


@dataclass(frozen=True)
class Design:
    """A planned contrast of one arm with the clean arm on one set of items.

    ``discordance`` is the share of items that two runs of the same arm answer differently, ``run_logit_sd`` the
    standard deviation of a run's accuracy on the logit scale.
    """

    families: int
    family_size: float = 1.0
    seeds: int = 3
    base_accuracy: float = 0.5
    discordance: float = 0.25
    run_logit_sd: float = 0.15
    family_correlation: float = 0.5

    @property
    def items(self) -> int:
        """The number of items."""
        return round(self.families * self.family_size)

    @property
    def run_sd(self) -> float:
        """The standard deviation of a run's accuracy."""
        return self.run_logit_sd * self.base_accuracy * (1 - self.base_accuracy)

    @property
    def item_variance(self) -> float:
        """The variance of one seed's difference that comes from the items."""
        design = 1 + (self.family_size - 1) * self.family_correlation
        return self.discordance * design / (self.families * self.family_size)

    @property
    def standard_error(self) -> float:
        """Of the mean difference over seeds; with one seed that of the items alone."""
        if self.seeds == 1:
            return math.sqrt(self.item_variance)
        return math.sqrt((2 * self.run_sd**2 + self.item_variance) / self.seeds)


def detectable(design: Design) -> float:
    """The smallest true difference that a two-sided 5 % test finds with 80 % power."""
    if design.seeds == 1:
        return float(stats.norm.ppf(0.975) + stats.norm.ppf(POWER)) * design.standard_error
    return standardized_detectable(design.seeds) * design.standard_error


def seeds_needed(design: Design, target: float) -> int | None:
    """The fewest seeds (at least 2) at which ``target`` can be detected; None if :data:`MOST_SEEDS` don't suffice."""
    for seeds in range(2, MOST_SEEDS + 1):
        if detectable(replace(design, seeds=seeds)) <= target:
            return seeds
    return None


def families_needed(design: Design, target: float) -> int | None:
    """The fewest families at which ``target`` can be detected with the seeds of the design.

    None where no number suffices: the spread between runs alone is too large.
    """
    return _fewest(design, lambda candidate: detectable(candidate) <= target)


def equivalence_families(design: Design, margin: float) -> int | None:
    """The fewest families at which TOST shows equivalence within ``margin`` with 90 % power if there is no difference.

    None where no number suffices.
    """

    def shown(candidate: Design) -> bool:
        beta = (1 - EQUIVALENCE_POWER) / 2
        if candidate.seeds == 1:
            needed = float(stats.norm.ppf(0.95) + stats.norm.ppf(1 - beta))
        else:
            free = candidate.seeds - 1
            needed = float(stats.t.ppf(0.95, free) + stats.t.ppf(1 - beta, free))
        return needed * candidate.standard_error <= margin

    return _fewest(design, shown)


def _fewest(design: Design, enough: Callable[[Design], bool]) -> int | None:
    """The fewest families that are enough, by doubling and bisection; None beyond :data:`MOST_FAMILIES`."""
    high = 1
    while not enough(replace(design, families=high)):
        high *= 2
        if high > MOST_FAMILIES:
            return None
    low = high // 2
    while high - low > 1:
        middle = (low + high) // 2
        low, high = (low, middle) if enough(replace(design, families=middle)) else (middle, high)
    return high


@dataclass(frozen=True)
class Noise:
    """What repeated runs of the clean arm say about one benchmark: mean accuracy, and how runs differ.

    ``discordance`` is the share of shared items that two runs answer differently, ``run_logit_sd`` what is left of the
    spread of their accuracies once that is allowed for; both are means over ``n_pairs`` pairs of runs.
    """

    base_accuracy: float
    discordance: float
    run_logit_sd: float
    n_runs: int
    n_pairs: int


def noise(items: pd.DataFrame) -> Noise | None:
    """Estimate from the clean cells' item results of one benchmark; None for fewer than two runs with shared items.

    The mean squared difference of two runs' accuracies on their shared items is ``2 * run_sd**2 + discordance / n``.

    Args:
        items: columns ``cell``, ``item_id`` and ``accuracy`` (share of correct samples), one row per cell and item.
    """
    table = items.pivot_table(index="item_id", columns="cell", values="accuracy")
    differences, discordances, sizes = [], [], []
    for first, second in combinations(table.columns, 2):
        both = table[[first, second]].dropna()
        if len(both):
            change = (both[first] - both[second]).to_numpy(dtype=float)
            differences.append(float(change.mean()))
            discordances.append(float((change**2).mean()))
            sizes.append(len(both))
    if not differences:
        return None
    mean = float(table.mean(axis=1).mean())
    discordance = sum(discordances) / len(discordances)
    item_part = sum(share / size for share, size in zip(discordances, sizes, strict=True)) / len(sizes)
    run_variance = max(0.0, sum(value**2 for value in differences) / len(differences) - item_part) / 2
    slope = max(mean * (1 - mean), 1e-3)
    return Noise(mean, discordance, math.sqrt(run_variance) / slope, table.shape[1], len(differences))
