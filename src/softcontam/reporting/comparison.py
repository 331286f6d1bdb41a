"""The page of two sweeps side by side."""

from __future__ import annotations

from collections.abc import Iterator

import pandas as pd

from softcontam.analysis.comparison import Compared, Comparison, compare
from softcontam.analysis.contrasts import highest_doses
from softcontam.analysis.effects import SweepEffects
from softcontam.analysis.items import GENERAL
from softcontam.analysis.records import Effect
from softcontam.reporting import figures, wording
from softcontam.reporting.base_models import base_models
from softcontam.reporting.blocks import Block, Bullets, Figure, Heading, Paragraph, Table, Verdicts
from softcontam.reporting.headlines import headlines
from softcontam.reporting.side_by_side import side_by_side_figure
from softcontam.reporting.verdicts import sentence, verdict_of
from softcontam.reporting.wording import number, unit_of

COMPARISON_COLUMNS = (
    *("outcome", "role", "condition", "level", "rate", "first_benchmark", "second_benchmark"),
    *("first_delta", "first_low", "first_high", "first_seeds", "second_delta", "second_low", "second_high"),
    *("second_seeds", "difference", "ci_low", "ci_high", "p_value"),
)
"""Columns of ``comparison.csv``; ``difference`` is second - first, with Welch's interval over seeds."""

_WORDS = ("role", "condition", "benchmark", "setting", "interval")


def comparison_table(first: SweepEffects, second: SweepEffects) -> pd.DataFrame:
    """The table of ``comparison.csv``: every effect that both sweeps have."""
    rows = []
    for one in compare(first, second).compared:
        ours, theirs, found = one.first, one.second, one.difference
        rows.append(
            {
                **{"outcome": ours.outcome, "role": ours.role, "condition": ours.arm.condition},
                **{"level": ours.arm.level, "rate": ours.arm.rate},
                **{"first_benchmark": ours.benchmark, "second_benchmark": theirs.benchmark},
                **_estimate_columns("first", ours),
                **_estimate_columns("second", theirs),
                **{"difference": found.mean, "ci_low": found.low, "ci_high": found.high, "p_value": found.p},
            }
        )
    return pd.DataFrame(rows, columns=list(COMPARISON_COLUMNS))


def comparison_page(first: SweepEffects, second: SweepEffects) -> list[Block]:
    """The blocks of a comparison: where the two differ, both figures, the table, what differs in their settings."""
    found = compare(first, second)
    outcome = first.primary if first.primary == second.primary else ""
    return [
        Heading(f"{first.experiment} and {second.experiment}", 1),
        Bullets(_answer(first, second, found, outcome), style="headlines"),
        *base_models([first, second]),
        *_figure(first, second, found, outcome),
        *_sides(first, second),
        *_differences(first, second, found),
        *_settings(first, second, found),
        Heading("How to read this"),
        Bullets(
            [
                "Each effect is an arm minus the clean arm of its own sweep, with its t interval over seeds. The "
                "difference is second − first with Welch's t interval: the runs of the two sweeps count as "
                "independent. Where both used the same seeds, and so the same splits, it is wider than it needs to be.",
                "Differences are not adjusted for their number: read them as a description, and declare the contrast "
                "that matters in an experiment of its own.",
                "Sweeps that differ in more than one setting cannot say which of these makes the difference.",
            ]
        ),
    ]


def _answer(first: SweepEffects, second: SweepEffects, found: Comparison, outcome: str) -> list[str]:
    """How many effects differ, and the largest difference on held-out items of the highest dose."""
    if not outcome:
        return [
            f"{first.experiment} is judged by {unit_of(first.primary).outcome}, {second.experiment} by "
            f"{unit_of(second.primary).outcome}: their effects cannot be set against each other."
        ]
    members = [one for one in found.compared if one.first.outcome == outcome and one.first.role != GENERAL]
    if not members:
        return ["The two have no arm in common: same condition, level, rate, copies and role."]
    unit = unit_of(outcome)
    shown = [one for one in members if one.difference.shown]
    named = "; ".join(
        f"{wording.ROLE_NAMES[one.first.role]}, {wording.arm_name(one.first.arm)}{wording.at(one.first.arm)} "
        f"({wording.amount(one.difference, unit)})"
        for one in shown
    )
    sentences = [
        f"Of {len(members)} effects on {unit.outcome} that both have (controls aside) the unadjusted 95 % interval of "
        f"the difference excludes 0 for {len(shown)}{f': {named}' if named else ''}. By chance it would for about "
        f"{0.05 * len(members):.1f} if none differed."
    ]
    if other := sorted({f"{one.first.benchmark} and {one.second.benchmark}" for one in members if _differ(one)}):
        sentences.insert(0, f"The benchmarks differ ({'; '.join(other)}): effects are matched by role.")
    top = {id(one) for one in highest_doses(one.first for one in members)}
    for one in members:
        if id(one.first) in top and one.first.role == "held_out":
            sentences.append(_sentence(first, second, one))
    return sentences


def _sentence(first: SweepEffects, second: SweepEffects, one: Compared) -> str:
    unit = unit_of(one.first.outcome)
    name = wording.arm_name(one.first.arm)
    benchmarks = " / ".join(dict.fromkeys((one.first.benchmark, one.second.benchmark)))
    sides = (
        f"{first.experiment} {number(one.first.estimate.mean, unit, signed=True)}, "
        f"{second.experiment} {number(one.second.estimate.mean, unit, signed=True)}"
    )
    verdict = "they differ by" if one.difference.shown else "a difference is not shown:"
    seeds = f"{one.first.estimate.n} and {one.second.estimate.n} seeds"
    size = wording.amount(one.difference, unit)
    return f"Held-out {benchmarks}, {name}{wording.at(one.first.arm)}: {sides}; {verdict} {size} ({seeds})."


def _differ(one: Compared) -> bool:
    return one.first.benchmark != one.second.benchmark


def _figure(first: SweepEffects, second: SweepEffects, found: Comparison, outcome: str) -> Iterator[Block]:
    """The effects of the highest dose that both have, one above the other."""
    members = [one for one in found.compared if one.first.outcome == outcome]
    top = {id(one) for one in highest_doses(one.first for one in members)}
    shown = [one for one in members if id(one.first) in top]
    if shown:
        doses = {one.first.arm.rate for one in shown}
        at = wording.at(shown[0].first.arm) if len(doses) == 1 else ", each arm at the highest dose that both have"
        caption = (
            f"Change from each sweep's own clean arm{at}: filled is "
            f"{first.experiment}, hollow {second.experiment}. Small dots are seeds, whiskers 95 % t intervals."
        )
        drawing = side_by_side_figure(shown, (first.experiment, second.experiment), "both")
        yield Figure(drawing, "figure_both", caption)


def _sides(first: SweepEffects, second: SweepEffects) -> Iterator[Block]:
    """Each sweep's own answer and figure."""
    for place, sweep in enumerate((first, second), start=1):
        yield Heading(f"{'First' if place == 1 else 'Second'}: {sweep.experiment}")
        if said := [*sweep.declaration.notes, *sweep.notes]:
            yield Bullets(said, style="caution")
        if sweep.declared:
            yield Verdicts([(verdict_of(one), sentence(one, sweep.declaration.late)) for one in sweep.declared])
        else:
            yield Bullets(headlines(sweep))
        effects = sweep.of(sweep.primary)
        if effects:
            margin = sweep.margins.get(sweep.primary)
            caption = f"{sweep.experiment}: change from its clean arm at its highest dose, 95 % t intervals over seeds."
            yield Figure(
                figures.signature_figure(effects, sweep.baselines, f"side{place}", margin),
                f"figure_side_{place}",
                caption,
            )


def _differences(first: SweepEffects, second: SweepEffects, found: Comparison) -> Iterator[Block]:
    for outcome in dict.fromkeys(one.first.outcome for one in found.compared):
        unit = unit_of(outcome)
        yield Heading(f"Effects on {unit.outcome}, side by side")
        rows = [
            [
                wording.ROLE_NAMES[one.first.role],
                " / ".join(dict.fromkeys((one.first.benchmark, one.second.benchmark))),
                *(wording.arm_name(one.first.arm), wording.rate(one.first.arm.rate)),
                wording.amount(one.difference, unit).replace(f" {unit.noun}", ""),
                "excludes 0" if one.difference.shown else "includes 0",
                wording.p_value(one.difference.p),
                wording.amount(one.first.estimate, unit).replace(f" {unit.noun}", ""),
                wording.amount(one.second.estimate, unit).replace(f" {unit.noun}", ""),
                f"{one.first.estimate.n}, {one.second.estimate.n}",
            ]
            for one in found.compared
            if one.first.outcome == outcome
        ]
        header = (
            *("role", "benchmark", "condition", "rate", f"second − first, {unit.noun} [95 %]", "interval", "p"),
            *(f"Δ {first.experiment}", f"Δ {second.experiment}", "seeds"),
        )
        yield Table(header, rows, _WORDS)
    for sweep, lonely in ((first, found.only_first), (second, found.only_second)):
        if lonely:
            arms: dict[str, dict[str, None]] = {}
            for one in lonely:
                place = f"{wording.ROLE_NAMES[one.role]} {one.benchmark}"
                arms.setdefault(f"{wording.arm_name(one.arm)}{wording.at(one.arm)}", {})[place] = None
            text = "; ".join(f"{arm} ({', '.join(places)})" for arm, places in arms.items())
            yield Paragraph(f"Only in {sweep.experiment}: {text}.")


def _settings(first: SweepEffects, second: SweepEffects, found: Comparison) -> Iterator[Block]:
    yield Heading("What differs in how they were run")
    if unknown := [one.experiment for one in (first, second) if one.cells.from_table]:
        yield Paragraph(f"How {' and '.join(unknown)} were run is not known: tables say nothing of their settings.")
        return
    if found.settings:
        rows = [list(row) for row in found.settings]
        yield Table(
            ("setting", first.experiment, second.experiment), rows, ("setting", first.experiment, second.experiment)
        )
    else:
        yield Paragraph("No setting differs beside condition, dose and seeds.")


def _estimate_columns(side: str, effect: Effect) -> dict[str, object]:
    estimate = effect.estimate
    figures_of = {"delta": estimate.mean, "low": estimate.low, "high": estimate.high, "seeds": estimate.n}
    return {f"{side}_{name}": value for name, value in figures_of.items()}
