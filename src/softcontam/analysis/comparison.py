"""Two sweeps side by side: the effects of the same arms in both, and how far they differ."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
from scipy import stats

from softcontam.analysis.effects import SweepEffects
from softcontam.analysis.estimates import CONFIDENCE, Estimate
from softcontam.analysis.pairing import setup_settings
from softcontam.analysis.records import Effect
from softcontam.config import SPLIT_ROLES

_NO_SPREAD = 1e-9


@dataclass(frozen=True)
class Compared:
    """The same arm in the same role of two sweeps; ``difference`` is second - first, in the outcome's unit."""

    first: Effect
    second: Effect
    difference: Estimate


@dataclass(frozen=True)
class Comparison:
    """Two sweeps. ``settings`` holds what their cells were run with where it differs: name, first and second value."""

    compared: list[Compared]
    only_first: list[Effect]
    only_second: list[Effect]
    settings: list[tuple[str, str, str]]


def compare(first: SweepEffects, second: SweepEffects) -> Comparison:
    """Match effects of all outcomes by condition, level, dose and role.

    Related and general benchmarks have to be the same. Seen and held-out items are compared whatever benchmark they
    are of, unless a sweep splits several: then by its name. Setups (models or recipes that vary within a sweep) have to
    be the same where either sweep has several.
    """
    several = any(len({one.arm.setup for one in sweep.effects}) > 1 for sweep in (first, second))
    splits = any(len({one.arm.split_benchmark for one in sweep.effects}) > 1 for sweep in (first, second))
    ours = {_key(one, several, splits): one for one in first.effects}
    theirs = {_key(one, several, splits): one for one in second.effects}
    compared = [Compared(one, theirs[key], _difference(one, theirs[key])) for key, one in ours.items() if key in theirs]
    return Comparison(
        compared,
        [one for key, one in ours.items() if key not in theirs],
        [one for key, one in theirs.items() if key not in ours],
        _settings(first, second),
    )


def _key(effect: Effect, several: bool, splits: bool) -> tuple[object, ...]:
    """What makes two effects the same; names of setups and of the split benchmark where a sweep has several."""
    arm = effect.arm
    own = effect.role in SPLIT_ROLES and effect.benchmark == arm.split_benchmark and not splits
    return (
        *(effect.outcome, effect.role, "" if own else effect.benchmark, arm.setup if several else ""),
        arm.split_benchmark if splits else "",
        *(arm.condition, arm.level, arm.rate, arm.copies_setting),
    )


def _difference(first: Effect, second: Effect) -> Estimate:
    """Second - first with Welch's t interval: the runs of two sweeps count as independent samples of runs."""
    samples = [np.array(list(one.deltas.values())) for one in (first, second)]
    mean, n, nan = float(samples[1].mean() - samples[0].mean()), min(len(one) for one in samples), math.nan
    if n < 2:
        return Estimate(mean, nan, nan, nan, nan, n, "one seed on one side: no interval and no test")
    if all(float(one.std(ddof=1)) < _NO_SPREAD for one in samples):
        return Estimate(mean, nan, nan, nan, nan, n, "no spread between seeds: no interval and no test")
    test = stats.ttest_ind(samples[1], samples[0], equal_var=False)
    bounds = test.confidence_interval(CONFIDENCE)
    return Estimate(mean, float(bounds.low), float(bounds.high), float(test.pvalue), nan, n)


def _settings(first: SweepEffects, second: SweepEffects) -> list[tuple[str, str, str]]:
    """Settings in which the cells of the two sweeps differ; those that vary within one are listed with all values."""
    ours, theirs = (_values(sweep) for sweep in (first, second))
    return [
        (name, ", ".join(ours.get(name, ["–"])), ", ".join(theirs.get(name, ["–"])))
        for name in sorted(ours.keys() | theirs.keys())
        if ours.get(name) != theirs.get(name)
    ]


def _values(sweep: SweepEffects) -> dict[str, Sequence[str]]:
    found: dict[str, dict[str, None]] = {}
    for one in sweep.cells.done:
        for name, value in setup_settings(one.config).items():
            found.setdefault(name, {})[value] = None
    return {name: list(values) for name, values in found.items()}
