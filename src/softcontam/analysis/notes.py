"""What a reader should know before reading a sweep's effects, as sentences."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Mapping, Sequence
from typing import Any

from softcontam.analysis.items import ACCURACY, SeedDifference
from softcontam.analysis.pairing import Pair
from softcontam.analysis.records import Effect
from softcontam.mixture.matching import Matching

PARSED_ALIKE = 0.05
"""Difference in the share of parsed outputs beyond which two arms' accuracies may differ by format alone."""


def parse_rates_differ(effect: Effect) -> bool:
    """Whether an arm's outputs were parsed more or less often than the clean arm's; False where that isn't known."""
    return effect.outcome == ACCURACY and abs(effect.parse_rate - effect.baseline_parse_rate) > PARSED_ALIKE


def parse_notes(effects: Sequence[Effect]) -> list[str]:
    """A sentence on the arms whose outputs were parsed at another rate than the clean arm's."""
    found = [
        f"{one.arm.condition}{f' ({one.arm.level})' if one.arm.level else ''} on {one.benchmark} ({one.role}): "
        f"{100 * one.parse_rate:.1f} % against {100 * one.baseline_parse_rate:.1f} %"
        for one in effects
        if parse_rates_differ(one)
    ]
    if not found:
        return []
    text = "Outputs were parsed at other rates than in the clean arm, which moves accuracy by itself"
    return [f"{text}: {'; '.join(found)}."]


def undecided_notes(differences: Sequence[SeedDifference], outcome: str) -> list[str]:
    """A sentence for each benchmark and role in which item results were left out."""
    counts: dict[tuple[str, str], int] = defaultdict(int)
    for one in differences:
        counts[one.benchmark, one.role] += one.undecided
    return [
        f"{outcome} is undecided for {count} item results of {benchmark} ({role}); they were left out of both arms."
        for (benchmark, role), count in counts.items()
        if count
    ]


def left_out_notes(pairs: Sequence[Pair], groups: Sequence[tuple[str, str, str, int]], outcome: str) -> list[str]:
    """A sentence for each seed that is left out of an effect because no item of it is decided on both sides.

    Args:
        groups: of :func:`softcontam.analysis.items.undecided_groups`.
    """
    treated = {pair.treated.cell.id: pair.treated for pair in pairs}
    return [
        f"Seed {treated[cell].config.seed} of {treated[cell].arm.condition} is left out of {outcome} on {benchmark} "
        f"({role}): none of its {count} items is decided on both sides."
        for cell, role, benchmark, count in groups
    ]


def mixture_notes(pairs: Sequence[Pair]) -> list[str]:
    """What a reader should know of the mixtures: arms in different slots, clean rows near a benchmark item."""
    notes = []
    slots: dict[tuple[object, ...], set[str]] = defaultdict(set)
    for pair in pairs:
        arm, metrics = pair.treated.arm, pair.treated.metrics
        if "slots_sha256" in metrics:
            ladder = tuple(pair.treated.config.condition.ladder)
            slots[pair.clean.cell.id, arm.rate, arm.copies_setting, ladder].add(metrics["slots_sha256"])
    if differing := sum(len(found) > 1 for found in slots.values()):
        notes.append(f"In {differing} cases arms of the same seed and dose replaced different slots of the mixture.")
    notes += _unmatched_notes(pairs)
    near = max((_near_count(pair.clean.metrics) for pair in pairs), default=0)
    if near:
        notes.append(
            f"Clean rows that are themselves near a benchmark item, in every arm alike: at most {near} in a mixture."
        )
    return notes


def _near_count(metrics: Mapping[str, Any]) -> int:
    """Clean rows near an item; cells list the first of them only, older ones all of them."""
    return int(metrics.get("near_benchmark_count", len(metrics.get("near_benchmark") or [])))


def _unmatched_notes(pairs: Sequence[Pair]) -> list[str]:
    """Arms that differ from exact duplicates in the same slots in tokens or style, beyond the tolerance."""
    differing: dict[tuple[str, str | None, float], set[str]] = defaultdict(set)
    for pair in pairs:
        stored = pair.treated.metrics.get("matching")
        if stored:
            found = Matching.from_dict(stored).differs(pair.treated.config.mixture.tolerance)
            differing[pair.treated.arm.condition, pair.treated.arm.level, pair.treated.arm.rate].update(found)
    alike: dict[tuple[str, ...], dict[str, list[float]]] = defaultdict(lambda: defaultdict(list))
    for (condition, level, rate), quantities in differing.items():
        if quantities:
            alike[tuple(sorted(quantities))][f"{condition} ({level})" if level else condition].append(rate)
    return [
        f"Not matched to exact duplicates in {', '.join(what)}: "
        + "; ".join(
            f"{arm} at {', '.join(f'{100 * rate:g}' for rate in rates)} % of rows" for arm, rates in arms.items()
        )
        + ". See the table of dose and matching before reading their effects."
        for what, arms in alike.items()
    ]
