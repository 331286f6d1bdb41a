"""Which arms make up a dose-response line, and the line fitted to each."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass

from softcontam.analysis.dose_response import DoseResponse, dose_response
from softcontam.analysis.items import ACCURACY, SEEN
from softcontam.analysis.ladder import DoseEffect
from softcontam.analysis.pairing import Arm
from softcontam.analysis.records import Effect

RATE, COPIES, LADDER = "share of rows", "rows per covered item", "rows per item within one model"


@dataclass(frozen=True)
class DoseLine:
    """Accuracy of one condition in one role along a dose, beside the clean arm.

    ``dose`` is what varies: :data:`RATE`, :data:`COPIES` or :data:`LADDER`; ``arm`` is that of the highest dose.
    """

    arm: Arm
    role: str
    benchmark: str
    dose: str
    response: DoseResponse


@dataclass(frozen=True)
class _Point:
    """One seed's accuracy at one dose."""

    seed: str
    dose: float
    accuracy: float
    clean: float
    n: int


def dose_lines(effects: Sequence[Effect], ladder: Sequence[DoseEffect]) -> list[DoseLine]:
    """A line for each condition, level and role with two doses or more: over rates at the same copies, over copies at
    the same rate, and over the rungs of ladder arms. Accuracy only.
    """
    rungs = {one.arm for one in ladder}
    decided = [one for one in effects if one.outcome == ACCURACY and one.arm not in rungs]
    found = _lines(decided, RATE, lambda one: one.arm.copies_setting, lambda one: one.arm.rate)
    found += _lines(
        [one for one in decided if one.arm.copies_setting], COPIES, lambda one: one.arm.rate, lambda one: one.copies
    )
    return found + _ladder_lines(ladder)


def _lines(
    effects: Iterable[Effect], dose: str, fixed: Callable[[Effect], object], at: Callable[[Effect], float]
) -> list[DoseLine]:
    groups: dict[tuple[object, ...], list[Effect]] = defaultdict(list)
    for one in effects:
        arm = one.arm
        key = (arm.split_benchmark, arm.setup, arm.condition, arm.level, one.role, one.benchmark, fixed(one))
        groups[key].append(one)
    found = []
    for members in groups.values():
        points = [
            _Point(each.clean_id, at(one), each.value, each.baseline, each.n_families)
            for one in members
            for each in one.differences.values()
        ]
        top = max(members, key=at)
        response = _fit(points)
        if len({at(one) for one in members}) > 1 and response is not None:
            found.append(DoseLine(top.arm, top.role, top.benchmark, dose, response))
    return found


def _ladder_lines(ladder: Sequence[DoseEffect]) -> list[DoseLine]:
    groups: dict[tuple[Arm, str], list[DoseEffect]] = defaultdict(list)
    for one in ladder:
        if one.outcome == ACCURACY and one.copies > 0:
            groups[one.arm, one.benchmark].append(one)
    found = []
    for (arm, benchmark), members in groups.items():
        points = [
            _Point(cell, float(one.copies), value, baseline, one.n_families)
            for one in members
            for cell, (value, baseline) in one.per_seed.items()
        ]
        response = _fit(points)
        if response is not None:
            found.append(DoseLine(arm, SEEN, benchmark, LADDER, response))
    return found


def _fit(points: Sequence[_Point]) -> DoseResponse | None:
    """The line of these points; where doses cover other items, a seed's clean accuracy is the mean over them."""
    seeds: dict[str, list[_Point]] = defaultdict(list)
    for one in points:
        seeds[one.seed].append(one)
    per_seed = [[(one.dose, one.accuracy, one.n) for one in members] for members in seeds.values()]
    clean = [sum(one.clean for one in members) / len(members) for members in seeds.values()]
    return dose_response(per_seed, clean)
