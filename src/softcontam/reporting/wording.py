"""How effects are put into words and numbers: names, units, verdicts. An effect is shown or not shown, never none."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass

from softcontam.analysis.estimates import Estimate
from softcontam.analysis.items import ACCURACY, GENERAL, HELD_OUT, LOGPROB, PARTIAL, RELATED, SEEN
from softcontam.analysis.pairing import Arm
from softcontam.analysis.records import Effect

CONDITIONS = {
    "exact": "exact duplicates",
    "semd_synthetic": "synthetic SemDs",
    "semd_natural": "natural SemDs",
    "topical": "topically similar non-SemDs",
    "format_only": "format-only rows",
    "near": "near duplicates",
    "shuffled_label_of_semd_synthetic": "SemD questions with shuffled labels",
    "question_only_of_semd_synthetic": "SemD questions without answers",
    "unrelated": "unrelated clean rows",
    "benchmark_aligned": "benchmark-aligned rows",
    "coverage_expanding": "coverage-expanding rows",
    "prompt_repetition": "repeated clean rows",
    "exact_ladder": "exact duplicates, ladder of doses",
}
ROLE_NAMES = {SEEN: "seen", HELD_OUT: "held-out", RELATED: "related", GENERAL: "general (control)"}
SIGNIFICANCE = 0.05
FLOOR = 0.05
"""Distance of the clean arm from chance or ceiling below which a change could hardly be seen, however tight the margin.
"""


@dataclass(frozen=True)
class Unit:
    """How an outcome is written: multiplied by ``scale``, with ``digits`` decimals, followed by ``noun``."""

    outcome: str
    scale: float
    digits: int
    noun: str


UNITS = {
    ACCURACY: Unit("accuracy", 100, 1, "points"),
    PARTIAL: Unit("partial accuracy", 100, 1, "points"),
    LOGPROB: Unit("log-probability of the gold answer", 1, 3, "nats per token"),
}


def unit_of(outcome: str) -> Unit:
    """How an outcome is written; pass@k by its own name."""
    return UNITS.get(outcome) or Unit(outcome, 100, 1, "points")


def number(value: float, unit: Unit, signed: bool = False) -> str:
    """A number in a unit, with a true minus sign; a dash for NaN."""
    if math.isnan(value):
        return "–"
    rounded = round(value * unit.scale, unit.digits) + 0.0  # turns -0.0 into 0.0
    text = f"{rounded:{'+' if signed else ''}.{unit.digits}f}"
    return text.replace("-", "−")


def percent(value: float) -> str:
    """A share in per cent with one decimal; a dash for NaN."""
    return "–" if math.isnan(value) else f"{100 * value:.1f}"


def rate(value: float) -> str:
    """A contamination rate as a share of rows; a dash for none, as of the clean arm or where no dose is stated."""
    return f"{100 * value:g} %" if value else "–"


def at(arm: Arm) -> str:
    """The dose of an arm as it stands in a sentence, with a space before; nothing where none is stated."""
    return f" at {rate(arm.rate)} of rows" if arm.rate else ""


def copies(value: float) -> str:
    """Inserted rows per covered item."""
    return "–" if math.isnan(value) else f"{value:.3g}"


def p_value(value: float) -> str:
    """A p value to three decimals, with a floor."""
    return "–" if math.isnan(value) else "<0.001" if value < 0.001 else f"{value:.3f}"


def interval(estimate: Estimate, unit: Unit) -> str:
    """The interval in brackets; a dash where there is none."""
    return bounds(estimate.low, estimate.high, unit)


def bounds(low: float, high: float, unit: Unit) -> str:
    """Two bounds in brackets; a dash where there are none."""
    return "–" if math.isnan(low) else f"[{number(low, unit)}, {number(high, unit)}]"


def condition_name(arm: Arm) -> str:
    """The condition in the field's terms, with its level."""
    label, _, found_by = arm.condition.partition("_after_")
    name = CONDITIONS.get(label, label.replace("_", " "))
    if found_by:
        name += f" after {found_by}"
    return f"{name} ({arm.level})" if arm.level else name


def arm_name(arm: Arm) -> str:
    """The condition with its level, and the setup where a sweep has several."""
    return condition_name(arm) + (f" [{arm.setup}]" if arm.setup else "")


def amount(estimate: Estimate, unit: Unit) -> str:
    """An estimate with its unit and interval, as it stands in a sentence."""
    text = f"{number(estimate.mean, unit, signed=True)} {unit.noun}"
    return text if math.isnan(estimate.low) else f"{text} {interval(estimate, unit)}"


def seeds(n: int) -> str:
    """The number of seeds in words."""
    return f"{n} seed" if n == 1 else f"{n} seeds"


def seed_range(effects: Sequence[Effect]) -> str:
    """The number of seeds of several effects in words."""
    counts = sorted({one.estimate.n for one in effects})
    return f"{counts[0]} to {seeds(counts[-1])}" if len(counts) > 1 else seeds(counts[0])


def near_chance(effect: Effect, margin: float | None) -> bool:
    """Whether the clean arm stands so near chance that the benchmark can hardly show a change.

    Chance that isn't known counts as 0: a benchmark at 1 % can show no loss, whatever chance may be.
    """
    chance = 0.0 if math.isnan(effect.chance) else effect.chance
    return effect.outcome == ACCURACY and effect.baseline - chance < max(margin or 0.0, FLOOR)


def near_ceiling(effect: Effect, margin: float | None) -> bool:
    """Whether the clean arm stands so high that a gain has hardly any room."""
    return effect.outcome == ACCURACY and 1 - effect.baseline < max(margin or 0.0, FLOOR)


def equivalent(effect: Effect, margin: float | None) -> bool:
    """Whether TOST puts the effect within its outcome's margin, on a benchmark where a change could have been seen."""
    at_an_end = near_chance(effect, margin) or near_ceiling(effect, margin)
    return margin is not None and effect.equivalence < SIGNIFICANCE and not at_an_end


def verdict(effect: Effect, margin: float | None) -> str:
    """What a reader may conclude from one row of the effects table: a verdict only where the effect was declared.

    An undeclared one has no adjusted p value, so that all that is said of it is whether its interval excludes 0.
    """
    if effect.estimate.note:
        return f"not shown ({'1 seed' if effect.estimate.n == 1 else 'no spread'})"
    if math.isnan(effect.holm):
        text = f"{'excludes' if effect.estimate.shown else 'includes'} 0 (unadjusted)"
    elif effect.holm < SIGNIFICANCE:
        text = "shown"
    else:
        text = "not after Holm" if effect.estimate.shown else "not shown"
    if margin is not None and equivalent(effect, margin):
        unit = unit_of(effect.outcome)
        text += f", within ±{number(margin, unit)} {unit.noun} (unadjusted)"
    if near_chance(effect, margin):
        text += ", clean arm near chance"
    if near_ceiling(effect, margin):
        text += ", clean arm near ceiling"
    return text
