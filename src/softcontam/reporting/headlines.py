"""The first lines of a report: what the sweep answers, computed from its effects."""

from __future__ import annotations

import math
from collections.abc import Sequence

from softcontam.analysis.contrasts import highest_doses
from softcontam.analysis.effects import SweepEffects
from softcontam.analysis.items import HELD_OUT, RELATED, SEEN
from softcontam.analysis.records import Effect
from softcontam.reporting import wording
from softcontam.reporting.wording import unit_of

MOST = 5
_DUPLICATES = ("exact", "semd_synthetic", "semd_natural")


def headlines(measured: SweepEffects) -> list[str]:
    """At most five sentences; those on effects speak of the highest dose of each benchmark and setup."""
    effects = measured.of(measured.primary)
    missing = gaps(measured)
    if not effects:
        why = (
            "no item is decided both in an arm and in its clean cell"
            if measured.cells.pairs
            else "no arm has both its own cell and its clean cell done"
        )
        return [f"No effect can be measured yet: {why}.", *missing]
    contexts = list(dict.fromkeys((one.arm.split_benchmark, one.arm.setup) for one in effects))
    sentences: list[str] = []
    for split, setup in contexts:
        top = highest_doses([one for one in effects if (one.arm.split_benchmark, one.arm.setup) == (split, setup)])
        found = _conditions(top, split, duplicates=True)
        found += _transfer(top, measured.margins.get(measured.primary)) + _conditions(top, split, duplicates=False)
        prefix = f"{split}{f' ({setup})' if setup else ''}: " if len(contexts) > 1 else ""
        sentences += [prefix + sentence for sentence in (found[:1] if len(contexts) > 1 else found)]
    if not sentences:
        sentences = ["No arm has results on held-out or related items: what there is stands in the tables."]
    room = MOST - len(missing)
    if len(sentences) > room:
        sentences = [*sentences[: room - 1], f"{len(sentences) - room + 1} more findings stand in the tables."]
    return sentences + missing


def _conditions(top: Sequence[Effect], split: str, duplicates: bool) -> list[str]:
    """One sentence for each condition on the held-out half."""
    sentences = []
    kinds = dict.fromkeys(one.arm.condition for one in top)
    for kind in kinds:
        if (kind in _DUPLICATES) != duplicates:
            continue
        members = [one for one in top if one.arm.condition == kind and one.benchmark == split]
        held_out = [one for one in members if one.role == HELD_OUT]
        if len(held_out) == 1:
            sentences.append(_one_level(held_out[0], [one for one in members if one.role == SEEN]))
        elif held_out:
            sentences.append(_several_levels(held_out))
    return sentences


def _one_level(held_out: Effect, seen: Sequence[Effect]) -> str:
    unit, estimate = unit_of(held_out.outcome), held_out.estimate
    name, dose = wording.condition_name(held_out.arm), _dose(held_out)
    size = wording.amount(estimate, unit)
    beside = "".join(f"; on seen items {wording.amount(one.estimate, unit)}" for one in seen)
    count = wording.seeds(estimate.n)
    if _stands(held_out):
        return _opened(dose, f"{name} moved held-out {unit.outcome} by {size}{beside} ({count}).")
    if estimate.shown:
        told = "has an interval that excludes 0, but not after Holm's adjustment over all effects"
        return _opened(dose, f"the effect of {name} on held-out {unit.outcome} {told}: {size}{beside} ({count}).")
    return _opened(
        dose, f"an effect of {name} on held-out {unit.outcome} is not shown: {size}{beside} ({_why(held_out)})."
    )


def _stands(effect: Effect) -> bool:
    """Whether the effect is shown after Holm's adjustment over all effects, as nothing was declared."""
    return effect.holm < wording.SIGNIFICANCE


def _opened(dose: str, rest: str) -> str:
    """A sentence that begins with the dose, where one is stated."""
    return f"{dose}, {rest}" if dose else rest[:1].upper() + rest[1:]


def _why(effect: Effect) -> str:
    count = wording.seeds(effect.estimate.n)
    if not effect.estimate.note:
        return count
    return f"{count}, so no interval" if effect.estimate.n == 1 else f"{count} without spread, so no interval"


def _several_levels(held_out: Sequence[Effect]) -> str:
    unit = unit_of(held_out[0].outcome)
    name = wording.CONDITIONS.get(held_out[0].arm.condition, held_out[0].arm.condition)
    low, high = (pick(one.estimate.mean for one in held_out) for pick in (min, max))
    shown = sum(_stands(one) for one in held_out)
    return _opened(
        _dose(held_out[0]),
        f"{name} of {len(held_out)} levels changed held-out {unit.outcome} by "
        f"{wording.number(low, unit, signed=True)} to {wording.number(high, unit, signed=True)} {unit.noun}; "
        f"a change is shown for {shown} of {len(held_out)} levels ({wording.seed_range(held_out)}).",
    )


def _transfer(top: Sequence[Effect], margin: float | None) -> list[str]:
    """One sentence for each related benchmark, over the arms that hold duplicates."""
    related = [one for one in top if one.role == RELATED and one.arm.condition in _DUPLICATES]
    sentences = []
    for name in dict.fromkeys(one.benchmark for one in related):
        members = [one for one in related if one.benchmark == name]
        unit, of = unit_of(members[0].outcome), f"of {len(members)} arms with duplicates"
        shown = sum(_stands(one) for one in members)
        within = sum(wording.equivalent(one, margin) for one in members)
        low, high = (wording.number(pick(m.estimate.mean for m in members), unit, True) for pick in (min, max))
        sizes = low if low == high else f"{low} to {high}"
        text = f"On the related benchmark {name} a change is shown for {shown} {of} ({sizes} {unit.noun})"
        if within:
            bound = f"±{wording.number(margin or 0.0, unit)} {unit.noun}"
            text += f"; for {within} it lies within {bound} by equivalence test (undeclared, unadjusted)"
        if wording.near_chance(members[0], margin):
            text += (
                f"; its clean accuracy ({wording.percent(members[0].baseline)} %) is near chance, so it can say little"
            )
        sentences.append(text + ".")
    return sentences


def gaps(measured: SweepEffects) -> list[str]:
    """A sentence on cells that are not done or lack their baseline; none where nothing is missing."""
    cells = measured.cells
    total, unfinished, missing = len(cells.record["cells"]), len(cells.unfinished), len(cells.missing)
    parts = []
    if unfinished:
        parts.append(f"{unfinished} of {total} cells {'is' if unfinished == 1 else 'are'} not done")
    if missing:
        parts.append(f"{missing} done {'cell lacks' if missing == 1 else 'cells lack'} a clean baseline")
    return [f"Incomplete: {' and '.join(parts)}; nothing of that enters the numbers here."] if parts else []


def _dose(effect: Effect) -> str:
    known = not math.isnan(effect.copies)
    detail = f" ({wording.copies(effect.copies)} inserted rows per covered item)" if known else ""
    if not effect.arm.rate:
        return ""
    return f"At {wording.rate(effect.arm.rate)} of rows{detail}"
