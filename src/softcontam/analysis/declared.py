"""The contrasts that an experiment declares before it is run, and what became of each."""

from __future__ import annotations

import math
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field, replace
from typing import Any

from omegaconf.errors import OmegaConfBaseException

from softcontam.analysis.contrasts import between_arms, between_roles, highest_dose
from softcontam.analysis.dose_lines import DoseLine
from softcontam.analysis.estimates import Estimate, equivalence_bounds, holm
from softcontam.analysis.intervals import Interval
from softcontam.analysis.items import ACCURACY, HELD_OUT, LOGPROB, RELATED, SEEN
from softcontam.analysis.records import DID, GAP, NO_INTERVAL, Contrast, Effect
from softcontam.config import SPLIT_ROLES, AnalysisConfig, ContrastConfig, from_settings
from softcontam.errors import StoreError

EFFECT, NO_TRANSFER, AGAINST_ARM, DOSE = "effect", "no_transfer", "against", "dose_response"


@dataclass(frozen=True)
class Declaration:
    """What was stated of an experiment, and when.

    ``notes`` say what of it was chosen after results were there, ``late`` whether margin or contrasts were.
    """

    analysis: AnalysisConfig = field(default_factory=AnalysisConfig)
    notes: tuple[str, ...] = ()
    late: bool = False


@dataclass(frozen=True)
class Declared:
    """One declared contrast of one arm.

    ``p`` is that of the t test over seeds, of TOST for ``no_transfer``; ``holm`` is adjusted over all contrasts that
    the experiment declares, those without a p value included. ``inner`` is the 90 % interval that TOST looks at,
    ``missing`` says why there is no figure, ``left_out`` counts the items of a seed that only one of two arms has.
    ``margin`` is that of its outcome, in its unit, None where none is set.
    ``effect``, ``minus`` and ``line`` are what it is made of.
    """

    stated: ContrastConfig
    estimate: Estimate
    p: float
    holm: float = math.nan
    effect: Effect | None = None
    minus: Effect | None = None
    line: DoseLine | None = None
    family: Interval = NO_INTERVAL
    hierarchical: Interval = NO_INTERVAL
    inner: Interval = NO_INTERVAL
    missing: str = ""
    left_out: int = 0
    margin: float | None = None


_NOTHING = Estimate(math.nan, math.nan, math.nan, math.nan, math.nan, 0, "not measured")


def declaration(record: dict[str, Any], margin: float | None = None) -> Declaration:
    """What a sweep's record says was declared.

    Args:
        margin: one that was given to the report instead.

    Raises:
        StoreError: the record's declaration can't be read.
    """
    stated = record.get("declared") or []
    notes: list[str] = []
    analysis = AnalysisConfig()
    late = False
    if stated:
        try:
            declared = [from_settings(AnalysisConfig, one["analysis"]) for one in stated]
        except (OmegaConfBaseException, KeyError, TypeError) as error:
            raise StoreError(
                f"the declared analysis of {record.get('experiment')} cannot be read ({error}). "
                "Launch the sweep again: done cells stay done."
            ) from error
        analysis = declared[-1]
        changes = _late_changes(declared, stated)
        notes, late = [*changes, *_added(record)], bool(changes)
    elif record.get("cells"):
        notes.append("No margin and no contrasts were declared with this sweep: those of the report are its defaults.")
        late = True
    if margin is not None and margin != analysis.margin:
        analysis, late = replace(analysis, margin=margin), True
        notes.append(f"The margin of {100 * margin:g} points was given to the report, not declared before the run.")
    return Declaration(analysis, tuple(notes), late)


def _late_changes(declared: Sequence[AnalysisConfig], stated: Sequence[dict[str, Any]]) -> list[str]:
    """A sentence for each statement of margin or contrasts that was made when cells were done; the question is free."""
    found = []
    before: AnalysisConfig | None = None
    for analysis, entry in zip(declared, stated, strict=True):
        names = ("margin", "logprob_margin", "contrasts")
        changed = [name for name in names if before is None or getattr(before, name) != getattr(analysis, name)]
        if changed and (done := int(entry.get("done", 0))):
            what = "Margin and contrasts were declared" if before is None else f"{' and '.join(changed)} changed"
            found.append(
                f"{what[:1].upper() + what[1:]} on {entry.get('time', 'an unknown date')}, when {done} cells of the "
                "experiment were done already: this may have been chosen with results at hand."
            )
        before = analysis
    return found


def _added(record: dict[str, Any]) -> list[str]:
    """A sentence for each launch that added cells when others were done."""
    return [
        f"{one['cells']} cells were added on {one.get('time', 'an unknown date')}, when {one['done']} were done. Where "
        "that was decided by results, p values are too small."
        for one in (record.get("added") or [])[1:]
        if one.get("done")
    ]


def margins_of(analysis: AnalysisConfig) -> dict[str, float | None]:
    """The equivalence margin of each outcome that can have one, in its unit; None where none is set."""
    return {ACCURACY: analysis.margin, LOGPROB: analysis.logprob_margin}


def declared_contrasts(
    analysis: AnalysisConfig, effects: Sequence[Effect], lines: Sequence[DoseLine]
) -> list[Declared]:
    """Every declared contrast, in the order declared; one that stands for several arms becomes several.

    They are of the outcome that they name; else of accuracy, or of the log-probability where correctness isn't decided
    at all.
    """
    usual = ACCURACY if any(one.outcome == ACCURACY for one in effects) else LOGPROB
    margins = margins_of(analysis)
    found: list[Declared] = []
    for stated in analysis.contrasts:
        outcome = stated.outcome or usual
        decided = [one for one in effects if one.outcome == outcome]
        members = _dose_responses(stated, lines) if stated.test == DOSE else _tested(stated, decided)
        members = members or [Declared(stated, _NOTHING, math.nan, missing=_why(stated, outcome, decided))]
        found += [replace(one, margin=margins[outcome]) for one in members]
    adjusted = holm([one.p for one in found], total=len(found))
    return [replace(one, holm=p) for one, p in zip(found, adjusted, strict=True)]


def _tested(stated: ContrastConfig, effects: Sequence[Effect]) -> list[Declared]:
    """What a contrast other than a dose-response stands for among the effects."""
    if stated.test in (EFFECT, NO_TRANSFER):
        return [_of_effect(stated, one) for one in _chosen(stated, effects, stated.role)]
    if stated.test == AGAINST_ARM:
        pairs = [
            (one, other)
            for one in _chosen(stated, effects, stated.role)
            for other in effects
            if (other.arm.condition, other.arm.level) == (stated.than, stated.than_level)
            and _same_place(one, other)
            and one.arm != other.arm
        ]
        return [_of_contrast(stated, between_arms(*pair), *pair) for pair in pairs]
    kind, first, second = (DID, SEEN, HELD_OUT) if stated.test == DID else (GAP, HELD_OUT, RELATED)
    left = _chosen(replace(stated, benchmark=None) if kind == GAP else stated, effects, first)
    right = _chosen(stated, effects, second)
    pairs = [(one, other) for one in left for other in right if one.arm == other.arm]
    return [_of_contrast(stated, between_roles(kind, *pair), *pair) for pair in pairs]


def _chosen(stated: ContrastConfig, effects: Sequence[Effect], role: str) -> list[Effect]:
    """The effects in a role of the arms that a contrast names: at its dose, or at the highest of each arm."""
    members = [
        one
        for one in effects
        if one.role == role
        and one.arm.condition == stated.condition
        and stated.level in (None, one.arm.level)
        and (one.benchmark == stated.benchmark if stated.benchmark else _own(one))
        and stated.rate in (None, one.arm.rate)
        and stated.copies in (None, one.arm.copies_setting)
    ]
    places = dict.fromkeys((one.arm.setup, one.arm.split_benchmark, one.arm.level, one.benchmark) for one in members)
    found: list[Effect] = []
    for place in places:
        found += highest_dose(
            one for one in members if (one.arm.setup, one.arm.split_benchmark, one.arm.level, one.benchmark) == place
        )
    return found


def _own(effect: Effect) -> bool:
    """Whether an effect is on the items of the split itself, or on a benchmark in another role."""
    return effect.role not in SPLIT_ROLES or effect.benchmark == effect.arm.split_benchmark


def _same_place(one: Effect, other: Effect) -> bool:
    arms = (one.arm, other.arm)
    places = [(arm.setup, arm.split_benchmark, arm.rate, arm.copies_setting) for arm in arms]
    return places[0] == places[1] and (one.role, one.benchmark) == (other.role, other.benchmark)


def _of_effect(stated: ContrastConfig, effect: Effect) -> Declared:
    p = effect.equivalence if stated.test == NO_TRANSFER else effect.estimate.p
    missing = ""
    if stated.test == NO_TRANSFER and math.isnan(p) and not effect.estimate.note:
        missing = f"no margin is declared for {effect.outcome}: set analysis.logprob_margin"
    return Declared(
        stated,
        effect.estimate,
        p,
        effect=effect,
        family=effect.family,
        hierarchical=effect.hierarchical,
        inner=Interval(*equivalence_bounds(list(effect.deltas.values()))),
        missing=missing,
    )


def _of_contrast(stated: ContrastConfig, contrast: Contrast | None, effect: Effect, minus: Effect) -> Declared:
    if contrast is None:
        return Declared(stated, _NOTHING, math.nan, effect=effect, minus=minus, missing="no seed has both sides")
    return Declared(
        stated,
        contrast.estimate,
        contrast.estimate.p,
        effect=effect,
        minus=minus,
        family=contrast.family,
        hierarchical=contrast.hierarchical,
        left_out=contrast.left_out,
    )


def _dose_responses(stated: ContrastConfig, lines: Iterable[DoseLine]) -> list[Declared]:
    return [
        Declared(stated, one.response.slope, one.response.slope.p, line=one)
        for one in lines
        if (one.arm.condition, one.role) == (stated.condition, stated.role)
        and stated.level in (None, one.arm.level)
        and (one.benchmark == stated.benchmark if stated.benchmark else _own_line(one))
    ]


def _own_line(line: DoseLine) -> bool:
    return line.role not in SPLIT_ROLES or line.benchmark == line.arm.split_benchmark


def _why(stated: ContrastConfig, outcome: str, effects: Sequence[Effect]) -> str:
    """Why nothing matches a contrast among the effects on its outcome."""
    if not effects:
        return f"no effect on {outcome} is decided in any finished cell"
    known = sorted({one.arm.condition for one in effects})
    if stated.condition not in known:
        return f"no finished cells of the arm {stated.condition} with their clean cells (there are: {', '.join(known)})"
    if stated.test == DOSE:
        return "no accuracy at two doses or more, in that role and on that benchmark"
    if stated.test == AGAINST_ARM:
        return f"no finished cells of {stated.condition} beside {stated.than} at the same dose, role and benchmark"
    return "no finished cells at that dose, level, role or benchmark"
