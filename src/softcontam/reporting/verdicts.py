"""A sentence with numbers and a verdict for each declared contrast."""

from __future__ import annotations

import math

from softcontam.analysis.declared import AGAINST_ARM, EFFECT, NO_TRANSFER, Declared
from softcontam.analysis.dose_lines import COPIES, RATE
from softcontam.analysis.estimates import Estimate
from softcontam.analysis.items import ACCURACY
from softcontam.analysis.notes import parse_rates_differ
from softcontam.analysis.pairing import Arm
from softcontam.analysis.records import DID, Effect
from softcontam.reporting import wording
from softcontam.reporting.wording import ROLE_NAMES, SIGNIFICANCE, Unit, unit_of

SHOWN, UNADJUSTED, NOT_SHOWN = "shown", "not after Holm", "not shown"
EQUIVALENT, WITHIN, MISSING = "no transfer", "within the margin", "not measured"
"""The verdicts on a declared contrast. ``UNADJUSTED``: its own interval excludes 0, but not after Holm's adjustment.
Nothing is ever called absent but by an equivalence test; ``WITHIN``: a change is there, but smaller than the
margin."""


def verdict_of(one: Declared) -> str:
    """The verdict on a declared contrast, after Holm's adjustment over all of them."""
    if one.missing:
        return MISSING
    if one.stated.test == NO_TRANSFER:
        if not one.holm < SIGNIFICANCE or _hardly_tests(one):
            return NOT_SHOWN
        return WITHIN if one.estimate.shown else EQUIVALENT
    if one.holm < SIGNIFICANCE:
        return SHOWN
    return UNADJUSTED if one.estimate.shown else NOT_SHOWN


def sentence(one: Declared, late: bool = False) -> str:
    """What a declared contrast found, in one or two sentences with numbers.

    Args:
        late: whether margin and contrasts were chosen when results were there.
    """
    stated = one.stated
    if one.missing or one.effect is None:
        if one.line is not None:
            return _dose_sentence(one)
        level = f" ({stated.level})" if stated.level else ""
        what = stated.test.replace("_", " ")
        name = wording.CONDITIONS.get(stated.condition, stated.condition)
        return f"{name[:1].upper()}{name[1:]}{level}, {what}: {one.missing}."
    unit = unit_of(one.effect.outcome)
    if stated.test == NO_TRANSFER:
        text = _transfer_sentence(one, one.effect)
        return text + (" The margin was chosen when results were there." if late else "") + _parsed(one)
    text = f"{_subject(one, one.effect)} {wording.amount(one.estimate, unit)}{_judged(one)}"
    if one.left_out:
        text += f" On the items that both arms cover; up to {one.left_out} of a seed are left out."
    return text + _power(one, unit) + _parsed(one)


def _subject(one: Declared, effect: Effect) -> str:
    """What the figure that follows is, worded by whether it is shown."""
    shown = verdict_of(one) == SHOWN
    up = one.estimate.mean > 0
    name, at = _name(effect.arm), wording.at(effect.arm)
    place, outcome = _place(effect), unit_of(effect.outcome).outcome
    if one.stated.test == EFFECT:
        verb = "raise" if up else "change"
        if shown:
            return f"{name} {verb} {place} {outcome}{at} by"
        return f"{name}: no change of {place} {outcome} is shown{at}; the estimate is"
    if one.stated.test == AGAINST_ARM and one.minus is not None:
        other = _name(one.minus.arm)
        other = other[:1].lower() + other[1:]
        if shown:
            return f"{name} against {other}: their effects on {place} {outcome} differ{at}:"
        return f"{name} against {other}: no difference of their effects on {place} {outcome} is shown{at}; it is"
    if one.stated.test == DID:
        pair = f"seen and on held-out {effect.benchmark} items"
    else:
        related = one.minus.benchmark if one.minus is not None else "the related benchmark"
        pair = f"held-out {effect.benchmark} items and on {related}"
    if shown:
        return f"{name}: the effects on {pair} differ{at}:"
    return f"{name}: that the effects on {pair} differ is not shown{at}; the difference is"


def _transfer_sentence(one: Declared, effect: Effect) -> str:
    unit = unit_of(effect.outcome)
    margin = one.margin or 0.0
    bound = f"±{wording.number(margin, unit)} {unit.noun}"
    if effect.outcome != ACCURACY:
        bound += f" of {unit.outcome}"
    place, name, at = _place(effect), _name(effect.arm), wording.at(effect.arm)
    figures = f"{wording.amount(one.estimate, unit)}{_judged(one, 'TOST')}"
    if verdict_of(one) == EQUIVALENT:
        return f"{name}: no transfer to {place} beyond {bound}{at}, by equivalence test: {figures}"
    if verdict_of(one) == WITHIN:
        return f"{name}: a change on {place}{at} is there, and smaller than {bound} by equivalence test: {figures}"
    change = f"{wording.number(one.estimate.mean, unit, signed=True)} {unit.noun}"
    text = f"{name}: whether {place} stays within {bound}{at} is open: {change}"
    if not math.isnan(one.inner.low):
        inside = -margin < one.inner.low and one.inner.high < margin
        inner = wording.bounds(one.inner.low, one.inner.high, unit)
        text += f"; the 90 % interval {inner} that the equivalence test looks at is {'' if inside else 'not '}inside"
    text += _judged(one, "TOST")
    if one.estimate.shown:
        return text  # whatever the room, a change was seen
    if wording.near_chance(effect, one.margin):
        end = "0 (chance is not known)"
        if not math.isnan(effect.chance):
            end = f"chance ({wording.percent(effect.chance)} %)"
        text += (
            f" The clean arm stands at {wording.percent(effect.baseline)} %, near {end}: such a benchmark could hardly "
            "show a change."
        )
    elif wording.near_ceiling(effect, one.margin):
        text += f" The clean arm stands at {wording.percent(effect.baseline)} %, near the ceiling."
    return text


def _dose_sentence(one: Declared) -> str:
    assert one.line is not None
    response, line = one.line.response, one.line
    place = f"{ROLE_NAMES[line.role]} {line.benchmark}"
    slope = response.slope
    bounds = "" if math.isnan(slope.low) else f" [{_plain(slope.low)}, {_plain(slope.high)}]"
    figures = f"{_plain(slope.mean, signed=True)} logits per doubling{bounds}{_judged(one)}"
    name = _name(line.arm)
    text = (
        f"{name}: {place} accuracy {'rises' if slope.mean > 0 else 'falls'} with dose ({line.dose}): {figures}"
        if verdict_of(one) == SHOWN
        else f"{name}: that {place} accuracy changes with dose ({line.dose}) is not shown: {figures}"
    )
    gain = f"{100 * response.gain:g} points"
    found = response.dose_for_gain
    if math.isnan(found.value):
        return f"{text} The dose that gives {gain}: {response.note}."
    if verdict_of(one) != SHOWN or response.extrapolated:
        why = "it lies outside the doses tested" if response.extrapolated else "the slope is not shown"
        return f"{text} No dose for a gain of {gain} is given: {why}."
    written = _dose(found.value, line.dose)
    between = "" if math.isnan(found.low) else f" [{_dose(found.low, line.dose)}, {_dose(found.high, line.dose)}]"
    return f"{text} A gain of {gain} is reached at {written}{between}."


def _judged(one: Declared, test: str = "") -> str:
    """Seeds and p values in brackets, then the full stop."""
    if one.estimate.note:
        return f" ({one.estimate.note})."
    p = f"{test} p {wording.p_value(one.p)}".strip()
    return f" ({wording.seeds(one.estimate.n)}, {p}, Holm {wording.p_value(one.holm)})."


def _parsed(one: Declared) -> str:
    """Parse rates that differ between the arms: the format may then be what differs, not what is known."""
    sides = [one.effect, *([one.minus] if one.stated.test == AGAINST_ARM else [])]
    text = ""
    for side in sides:
        if side is not None and parse_rates_differ(side):
            rates = (wording.percent(rate) for rate in (side.parse_rate, side.baseline_parse_rate))
            of = f" ({wording.condition_name(side.arm)})" if len(sides) > 1 else ""
            text += " Outputs parsed{}: {} % against {} % in the clean arm.".format(of, *rates)
    return text


def _power(one: Declared, unit: Unit) -> str:
    """What could have been found, where nothing is shown."""
    estimate: Estimate = one.estimate
    if verdict_of(one) == SHOWN or math.isnan(estimate.detectable):
        return ""
    text = f" Detectable: {wording.number(estimate.detectable, unit)} {unit.noun}, by the spread of these seeds."
    if estimate.shown:
        text = " Its own interval excludes 0; after Holm's adjustment over the declared contrasts it does not." + text
    return text


def _hardly_tests(one: Declared) -> bool:
    """Whether the clean arm is where a change could hardly be seen."""
    return one.effect is not None and (
        wording.near_chance(one.effect, one.margin) or wording.near_ceiling(one.effect, one.margin)
    )


def _name(arm: Arm) -> str:
    text = wording.arm_name(arm)
    return text[:1].upper() + text[1:]


def _place(effect: Effect) -> str:
    return f"{ROLE_NAMES[effect.role]} {effect.benchmark}"


def _plain(value: float, signed: bool = False) -> str:
    return f"{value:{'+' if signed else ''}.2f}".replace("-", "−")


def _dose(value: float, dose: str) -> str:
    if dose == RATE:
        return f"{100 * value:.3g} % of rows"
    return f"{value:.3g} {'rows per covered item' if dose == COPIES else 'rows per item'}"
