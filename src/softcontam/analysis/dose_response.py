"""Dose-response: the logit of accuracy on the logarithm of dose, a line for each seed, and the dose of a given gain."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from softcontam.analysis.estimates import Estimate, over_seeds

GAIN = 0.05
"""The gain in accuracy, as a fraction, whose dose is asked for: five points."""

_MOST_DOUBLINGS = 1000


class GainDose(NamedTuple):
    """A dose and its 95 % interval, in the unit of the doses given; NaN where it isn't determined."""

    value: float
    low: float
    high: float


@dataclass(frozen=True)
class DoseResponse:
    """How accuracy rises with dose.

    ``slope`` is in logits per doubling of dose, with its t interval over seeds; ``per_seed_slopes`` and
    ``per_seed_intercepts`` (the logit at dose 1) belong to the fitted seeds in the order given. ``doses`` are all those
    above 0 that were fitted. ``dose_for_gain`` is the dose at which accuracy lies ``gain`` above the clean run;
    ``extrapolated`` says that it lies outside the tested doses; ``note`` says why it or its interval is missing.
    """

    slope: Estimate
    doses: tuple[float, ...]
    per_seed_slopes: tuple[float, ...]
    per_seed_intercepts: tuple[float, ...]
    dose_for_gain: GainDose
    gain: float
    extrapolated: bool
    note: str

    def fitted(self, dose: float) -> float:
        """The accuracy of the fitted lines at a dose above 0, as a fraction: the mean over seeds of the logits."""
        logits = np.add(self.per_seed_intercepts, np.multiply(self.per_seed_slopes, math.log2(dose)))
        return float(1 / (1 + math.exp(-float(logits.mean()))))


def dose_response(
    per_seed: Sequence[Sequence[tuple[float, float, int]]], clean: Sequence[float], gain: float = GAIN
) -> DoseResponse | None:
    """Fit one line for each seed by least squares, and solve it for the dose of ``gain``.

    The logit of an accuracy p of n is log((n p + 1/2) / (n (1 - p) + 1/2)), finite at 0 and 1 (Haldane 1956, Anscombe
    1956). Per seed the dose is where the line reaches the logit of clean + gain; its interval is a t over seeds on the
    logarithm. It is not determined where the slope is not shown to differ from 0, where it isn't positive in every
    seed, or where clean + gain exceeds 1: the fitted line then crosses the target nowhere or anywhere.

    Args:
        per_seed: for each seed (dose, accuracy as a fraction, number of families or items) of each arm or rung. Doses
            of 0 have no logarithm and are left out, as are undecided accuracies (NaN) and those of no items.
        clean: each seed's accuracy in the clean run, on the same items.
        gain: above 0, as a fraction.

    Returns:
        None where no seed has two doses above 0. A seed that has fewer is left out, and ``note`` says so.

    Raises:
        ValueError: ``per_seed`` and ``clean`` differ in length, or ``gain`` is not above 0.
    """
    if len(per_seed) != len(clean):
        raise ValueError(f"{len(per_seed)} seeds have {len(clean)} clean accuracies: give one for each seed")
    if not gain > 0:
        raise ValueError(f"a gain of {gain}: it must be above 0")
    decided = [[point for point in points if point[0] > 0 and point[2] > 0 and point[1] >= 0] for points in per_seed]
    kept = [index for index, points in enumerate(decided) if len({dose for dose, _, _ in points}) > 1]
    if not kept:
        return None
    left_out = len(per_seed) - len(kept)
    lines = [_line(np.array(decided[index], dtype=float)) for index in kept]
    slopes, intercepts = tuple(slope for slope, _ in lines), tuple(intercept for _, intercept in lines)
    slope = over_seeds(slopes)
    doses = tuple(sorted({dose for index in kept for dose, _, _ in decided[index]}))
    targets = [clean[index] + gain for index in kept]
    sizes = [float(np.mean([n for _, _, n in decided[index]])) for index in kept]
    reason = _undetermined(slope, slopes, targets)
    found, note = GainDose(math.nan, math.nan, math.nan), reason
    if not reason:
        goals = [float(_logit(np.array(goal), np.array(size))) for goal, size in zip(targets, sizes, strict=True)]
        solved = [(goal - start) / rise for goal, start, rise in zip(goals, intercepts, slopes, strict=True)]
        log_dose = over_seeds(solved)
        found = GainDose(*(_doubled(one) for one in (log_dose.mean, log_dose.low, log_dose.high)))
        note = log_dose.note
    if left_out:
        missing = f"{left_out} of {len(per_seed)} seeds left out: fewer than two doses above 0"
        note = f"{note}; {missing}" if note else missing
    extrapolated = found.value < doses[0] or found.value > doses[-1]
    return DoseResponse(slope, doses, slopes, intercepts, found, gain, extrapolated, note)


def _undetermined(slope: Estimate, slopes: Sequence[float], targets: Sequence[float]) -> str:
    """Why no dose of the gain can be told; empty where one can. Seeds without spread have no interval to ask."""
    if not all(target <= 1 for target in targets):
        return "dose not determined: the gain would take accuracy beyond 1, or the clean accuracy is undecided"
    if flat := sum(not one > 0 for one in slopes):
        return f"dose not determined: accuracy does not rise with dose in {flat} of {len(slopes)} seeds"
    if not slope.note and not slope.shown:
        return "dose not determined: the interval of the slope includes 0"
    return ""


def _line(points: NDArray[np.float64]) -> tuple[float, float]:
    """Slope and intercept of the least-squares line of the logits on log2 dose; ``points`` has shape (k, 3)."""
    doublings, logits = np.log2(points[:, 0]), _logit(points[:, 1], points[:, 2])
    centred = doublings - doublings.mean()
    slope = float(centred @ logits) / float(centred @ centred)
    return slope, float(logits.mean()) - slope * float(doublings.mean())


def _logit(accuracy: NDArray[np.float64], n: NDArray[np.float64]) -> NDArray[np.float64]:
    solved = n * accuracy
    return np.asarray(np.log((solved + 0.5) / (n - solved + 0.5)), dtype=np.float64)


def _doubled(doublings: float) -> float:
    """2 to the power of ``doublings``, kept within what a float holds."""
    return doublings if math.isnan(doublings) else 2.0 ** max(-_MOST_DOUBLINGS, min(_MOST_DOUBLINGS, doublings))
