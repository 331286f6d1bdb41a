"""What a planned sweep can detect: from families, seeds, base accuracy, discordance and the spread between runs.

Per seed an arm and its clean arm answer the same items. The difference of their accuracies varies from seed to seed by

* ``2 * run_sd**2``: two training runs, each with its own deviation in accuracy;
* ``discordance / items * design``: items that the two runs answer differently; items of one family answer alike to
  the degree ``family_correlation``, which the design effect ``1 + (size - 1) * correlation`` puts in terms of items.

Over ``n`` seeds the mean of these differences is tested with a t test of ``n - 1`` degrees of freedom. One seed has no
such test; what is then given is for a normal test over items, as a study with one run per arm would report it, and it
holds for that run only. All accuracies are fractions.

An effect changes the noise as well. Items that only the arm solves are discordant: if the answers of two runs to an
item are independent given how hard it is, a gain ``d`` adds about ``d * (1 - 2 * base_accuracy)`` to the discordance,
and a loss the opposite; runs spread more in points the nearer accuracy is to a half. :func:`detectable` allows for both
in the direction in which they add, so that it errs on the large side for the other. The most that an effect can add is
``d``, where all that is gained are items that no clean run solves: :func:`detectable_at_most`.
"""

from __future__ import annotations

import functools
import math
from collections.abc import Callable
from dataclasses import dataclass, replace
from itertools import combinations

import numpy as np
import pandas as pd
from scipy import integrate, optimize, special, stats

from softcontam.analysis.estimates import POWER, standardized_detectable

MOST_SEEDS = 200
"""Seeds beyond which a target counts as out of reach."""

MOST_FAMILIES = 10_000_000
"""Families beyond which a target counts as out of reach."""

_ITERATIONS = 40

EQUIVALENCE_POWER = 0.90
"""Power with which an equivalence test is planned, at a true difference of 0."""


SPREAD_CONFIDENCE = 0.80
"""Confidence of the upper limit of the spread between runs."""


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
    def standard_error(self) -> float:
        """Of the mean difference over seeds if there is no effect; with one seed that of the items alone."""
        return self.error_at(0.0, 0.0)

    def error_at(self, effect: float, added: float) -> float:
        """The same at an effect that moves accuracy towards a half and adds ``added`` to the discordance."""
        design = 1 + (self.family_size - 1) * self.family_correlation
        item_variance = (self.discordance + added) * design / (self.families * self.family_size)
        if self.seeds == 1:
            return math.sqrt(item_variance)
        distance = max(0.0, abs(self.base_accuracy - 0.5) - effect)
        arm_sd = self.run_logit_sd * (0.25 - distance**2)
        return math.sqrt((self.run_sd**2 + arm_sd**2 + item_variance) / self.seeds)


def detectable(design: Design) -> float:
    """The smallest true difference that a two-sided 5 % test finds with 80 % power."""
    return _detectable(design, abs(1 - 2 * design.base_accuracy))


def detectable_at_most(design: Design) -> float:
    """The same if the effect adds as much to the discordance as it can."""
    return _detectable(design, 1.0)


def _detectable(design: Design, added: float) -> float:
    """The effect ``d`` at the power asked for, where it adds ``added * d`` to the discordance.

    Solved by iteration: ``d`` enters its own variance with at most half its weight, so that each step halves the error.
    """
    if design.seeds == 1:
        standardized = float(stats.norm.ppf(0.975) + stats.norm.ppf(POWER))
    else:
        standardized = standardized_detectable(design.seeds)
    effect = 0.0
    for _ in range(_ITERATIONS):
        effect = standardized * design.error_at(effect, added * effect)
    return effect


def seeds_needed(design: Design, target: float) -> int | None:
    """The fewest seeds (at least 2) at which ``target`` can be detected; None if :data:`MOST_SEEDS` don't suffice."""
    found = _fewest(lambda seeds: detectable(replace(design, seeds=seeds + 1)) <= target, MOST_SEEDS - 1)
    return None if found is None else found + 1


def families_needed(design: Design, target: float) -> int | None:
    """The fewest families at which ``target`` can be detected with the seeds of the design.

    None where no number suffices: the spread between runs alone is too large.
    """
    return _fewest(lambda families: detectable(replace(design, families=families)) <= target, MOST_FAMILIES)


def equivalence_families(design: Design, margin: float) -> int | None:
    """The fewest families at which TOST shows equivalence within ``margin`` with 90 % power if there is no difference.

    None where no number suffices.
    """
    needed = standardized_margin(design.seeds)
    return _fewest(lambda families: needed * replace(design, families=families).standard_error <= margin, MOST_FAMILIES)


@functools.cache
def standardized_margin(n: int) -> float:
    """The margin, in standard errors, within which TOST over ``n`` seeds shows equivalence with 90 % power.

    The exact power at a true difference of 0, integrated over the estimated spread (Phillips 1990); for one seed that
    of two normal tests over items.
    """
    if n == 1:
        return float(stats.norm.ppf(0.95) + stats.norm.ppf(1 - (1 - EQUIVALENCE_POWER) / 2))
    critical, free = float(stats.t.ppf(0.95, n - 1)), n - 1
    log_constant = math.log(2) + free / 2 * math.log(free / 2) - special.gammaln(free / 2)

    def shown(margin: float) -> float:
        """The power; the estimated spread over the true one, ``s``, is a chi over the root of its freedom."""

        def at(s: float) -> float:
            density = math.exp(log_constant + (free - 1) * math.log(s) - free * s * s / 2) if s > 0 else 0.0
            return float(2 * special.ndtr(margin - critical * s) - 1) * density

        return float(integrate.quad(at, 0, margin / critical, limit=200)[0])

    return float(optimize.brentq(lambda margin: shown(margin) - EQUIVALENCE_POWER, 0.5, 40))


def plausible_discordance(base_accuracy: float, difficulty_sd: float) -> float:
    """The share of items that two runs answer differently, if answers are independent given each item's difficulty.

    Difficulties are normal on the logit scale with standard deviation ``difficulty_sd``; at 0, where all items are
    equally hard, that is ``2 * base_accuracy * (1 - base_accuracy)``.

    Args:
        base_accuracy: between 0 and 1, both excluded.
    """
    nodes, weights = np.polynomial.hermite_e.hermegauss(80)
    weights = weights / weights.sum()

    def solved(centre: float) -> np.ndarray:
        return special.expit(centre + difficulty_sd * nodes)

    bound = abs(special.logit(base_accuracy)) * (2 + difficulty_sd) + 1
    centre = optimize.brentq(lambda centre: float(weights @ solved(centre)) - base_accuracy, -bound, bound)
    chance = solved(centre)
    return float(2 * weights @ (chance * (1 - chance)))


def _fewest(enough: Callable[[int], bool], most: int) -> int | None:
    """The least number from 1 to ``most`` that is enough, by doubling and bisection; None if ``most`` is not."""
    high = 1
    while not enough(high):
        if high == most:
            return None
        high = min(2 * high, most)
    low = high // 2
    while high - low > 1:
        middle = (low + high) // 2
        low, high = (low, middle) if enough(middle) else (middle, high)
    return high


@dataclass(frozen=True)
class Noise:
    """What repeated runs of the clean arm say about one benchmark: mean accuracy, and how runs differ.

    ``discordance`` is the share of shared items that two runs answer differently (with several samples per item, the
    mean squared difference of an item's accuracies), ``family_correlation`` how alike these differences are within
    families (NaN where no family has two items), ``run_logit_sd`` what is left of the spread of the runs' accuracies
    once both are allowed for. All are means over ``n_pairs`` pairs of runs. ``run_logit_sd_upper`` is the upper 80 %
    limit of the spread, as for the standard deviation of a pilot study (Browne 1995): few runs leave it wide open.
    """

    base_accuracy: float
    discordance: float
    run_logit_sd: float
    n_runs: int
    n_pairs: int
    family_correlation: float = math.nan
    run_logit_sd_upper: float = math.nan


def noise(items: pd.DataFrame) -> Noise | None:
    """Estimate from the clean cells' item results of one benchmark; None for fewer than two runs with shared items.

    The mean squared difference of two runs' accuracies on their shared items is ``2 * run_sd**2`` plus the item part,
    ``discordance / n * design``.

    Args:
        items: columns ``cell``, ``item_id``, ``accuracy`` (share of correct samples) and, where families are to be
            allowed for, ``family``; one row per cell and item.
    """
    table = items.pivot_table(index="item_id", columns="cell", values="accuracy")
    names = items.drop_duplicates("item_id").set_index("item_id").reindex(table.index)
    families = pd.factorize(names.get("family", table.index))[0]
    accuracies = table.to_numpy(dtype=float)
    compared = (
        _compared(accuracies[:, i], accuracies[:, j], families) for i, j in combinations(range(table.shape[1]), 2)
    )
    pairs = [one for one in compared if one.n]
    if not pairs:
        return None
    mean = float(table.mean(axis=1).mean())
    discordance = sum(one.discordance for one in pairs) / len(pairs)
    alike = [one for one in pairs if one.within_pairs]
    products = sum(one.within_products / one.within_pairs for one in alike)
    correlation = math.nan
    if alike and discordance:
        correlation = min(1.0, max(0.0, products / len(alike) / discordance))
    item_part = sum(
        discordance / one.n * (1 + (one.n / one.n_families - 1) * (0.0 if math.isnan(correlation) else correlation))
        for one in pairs
    )
    total, item_part, n_runs = sum(one.mean**2 for one in pairs) / len(pairs), item_part / len(pairs), table.shape[1]
    highest = total * (n_runs - 1) / float(stats.chi2.ppf(1 - SPREAD_CONFIDENCE, n_runs - 1))
    slope = max(mean * (1 - mean), 1e-3)
    spread, upper = (math.sqrt(max(0.0, variance - item_part) / 2) / slope for variance in (total, highest))
    return Noise(mean, discordance, spread, n_runs, len(pairs), correlation, upper)


@dataclass(frozen=True)
class _Compared:
    """Two runs on their ``n`` shared items; ``within_products`` sums over ``within_pairs`` pairs of one family."""

    n: int
    n_families: int
    mean: float
    discordance: float
    within_products: float
    within_pairs: int


def _compared(first: np.ndarray, second: np.ndarray, families: np.ndarray) -> _Compared:
    """Count how two runs differ; the mean difference is taken out before products within families are formed.

    Args:
        first: one run's accuracy on each item, NaN where it has none; ``second`` likewise.
        families: a number for each item's family.
    """
    both = ~np.isnan(first - second)
    change = (first - second)[both]
    if not len(change):
        return _Compared(0, 0, math.nan, math.nan, 0.0, 0)
    centred = change - change.mean()
    sizes = np.bincount(families[both])
    sums = np.bincount(families[both], weights=centred)
    return _Compared(
        n=len(change),
        n_families=int((sizes > 0).sum()),
        mean=float(change.mean()),
        discordance=float((change**2).mean()),
        within_products=float((sums**2).sum() - (centred**2).sum()),
        within_pairs=int((sizes * (sizes - 1)).sum()),
    )
