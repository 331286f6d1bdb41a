"""A sweep's effects, contrasts, baselines and mixtures as tables for people."""

from __future__ import annotations

import math
from collections.abc import Sequence

from softcontam.analysis.effects import DID, Effect, SweepEffects
from softcontam.analysis.items import ACCURACY
from softcontam.analysis.pairing import Arm
from softcontam.reporting import wording
from softcontam.reporting.blocks import Table
from softcontam.reporting.wording import UNITS, number, percent

_ARM = ("condition", "level", "rate", "copies")


def effects(measured: SweepEffects, outcome: str) -> Table:
    """One row per effect, with what is needed to judge it."""
    unit, accuracy = UNITS[outcome], outcome == ACCURACY
    value = ("arm %", "clean %") if accuracy else ("arm", "clean")
    extra = ("chance %", "parsed %", "parsed clean %") if accuracy else ()
    header = (
        *("benchmark", "role", *_ARM, "items", "families", "seeds", *value, *extra),
        *(f"Δ {unit.noun}", "95 % interval", "p", "p (Holm)", "detectable", "verdict"),
    )
    rows = [_effect_row(one, measured.margin) for one in measured.of(outcome)]
    return Table(header, rows, labels=4, remark=True)


def _effect_row(one: Effect, margin: float) -> list[str]:
    unit, estimate = UNITS[one.outcome], one.estimate
    arm = _arm(one.arm, one.copies)
    rates = [percent(rate) for rate in (one.chance, one.parse_rate, one.baseline_parse_rate)]
    return [
        *(_benchmark(one.benchmark, one.arm.setup), wording.ROLE_NAMES[one.role], *arm),
        *(str(one.n_items), str(one.n_families), str(estimate.n)),
        *(number(one.value, unit), number(one.baseline, unit)),
        *(rates if one.outcome == ACCURACY else []),
        *(number(estimate.mean, unit, signed=True), wording.interval(estimate, unit)),
        *(wording.p_value(estimate.p), wording.p_value(one.holm), number(estimate.detectable, unit)),
        wording.verdict(one, margin),
    ]


def contrasts(measured: SweepEffects, outcome: str) -> Table:
    """Differences in differences (seen - held-out) and gaps (held-out - related)."""
    unit = UNITS[outcome]
    rows = [
        [
            "seen − held-out (DiD)" if one.kind == DID else "held-out − related (gap)",
            one.benchmark if one.kind == DID else f"{one.benchmark} − {one.minus_benchmark}",
            *_arm(one.arm, one.copies),
            str(one.estimate.n),
            number(one.estimate.mean, unit, signed=True),
            wording.interval(one.estimate, unit),
            wording.p_value(one.estimate.p),
            number(one.estimate.detectable, unit),
            "shown" if one.estimate.shown else "not shown",
        ]
        for one in measured.contrasts
        if one.outcome == outcome
    ]
    interval = (f"{unit.noun}", "95 % interval", "p", "detectable", "verdict")
    return Table(("contrast of changes", "benchmark", *_ARM, "seeds", *interval), rows, labels=4, remark=True)


def baselines(measured: SweepEffects, outcome: str) -> Table:
    """The clean arm per role: each seed, the mean, parse rate, chance and headroom."""
    unit, accuracy = UNITS[outcome], outcome == ACCURACY
    rows = []
    for one in measured.baselines:
        if one.outcome != outcome:
            continue
        by_seed = ", ".join(f"{seed}: {number(value, unit)}" for seed, value in one.per_seed)
        row = [_benchmark(one.benchmark, one.setup), wording.ROLE_NAMES[one.role], str(one.n_items)]
        row.append(number(one.mean, unit))
        if accuracy:
            row += [percent(one.parse_rate), percent(one.chance), percent(1 - one.mean)]
        rows.append([*row, by_seed])
    measures = ("mean %", "parsed %", "chance %", "headroom") if accuracy else ("mean",)
    return Table(("benchmark", "role", "items", *measures, "each seed"), rows, labels=2, remark=True)


def mixtures(measured: SweepEffects) -> Table:
    """What the arms were trained on: rows, items covered, trained tokens beside the clean arm's, steps."""
    arms: dict[Arm, list[tuple[dict[str, float], dict[str, float]]]] = {}
    for pair in measured.cells.pairs:
        arms.setdefault(pair.treated.arm, []).append((pair.treated.metrics, pair.clean.metrics))
    rows = []
    for arm, members in sorted(arms.items(), key=lambda entry: (entry[0].split_benchmark, entry[0].rate)):
        ratios = [
            (ours.get("trained_tokens") or math.nan) / (theirs.get("trained_tokens") or math.nan)
            for ours, theirs in members
        ]
        keys = ("n_rows", "inserted_rows", "covered_items", "steps")
        counts = [_range([ours.get(key) for ours, _ in members]) for key in keys]
        relative = "–" if any(map(math.isnan, ratios)) else f"{100 * sum(ratios) / len(ratios):.1f}"
        words = (_benchmark(arm.split_benchmark, arm.setup), wording.condition_name(arm))
        rows.append([*words, wording.rate(arm.rate), *counts, relative])
    header = (
        "benchmark",
        "condition",
        "rate",
        "rows",
        "inserted rows",
        "items covered",
        "steps",
        "trained tokens, % of clean",
    )
    return Table(header, rows, labels=2)


def unfinished(measured: SweepEffects) -> Table:
    """Cells of the sweep that aren't done, with the line that says why."""
    rows = [
        [one.cell_id, one.arm, "–" if one.seed is None else str(one.seed), one.state, one.error or "–"]
        for one in measured.cells.unfinished
    ]
    return Table(("cell", "arm", "seed", "state", "error"), rows, labels=5)


def missing(measured: SweepEffects) -> Table:
    """Arms without a clean baseline, with the command that would run it."""
    rows = [
        [wording.condition_name(one.arm), wording.rate(one.arm.rate), str(one.seed), one.reason, one.command]
        for one in measured.cells.missing
    ]
    return Table(("arm", "rate", "seed", "what is missing", "command that runs it"), rows, labels=5)


def _arm(arm: Arm, copies: float) -> tuple[str, str, str, str]:
    name = wording.CONDITIONS.get(arm.condition, arm.condition)
    return name, arm.level or "–", wording.rate(arm.rate), wording.copies(copies)


def _benchmark(name: str, setup: str) -> str:
    return f"{name} ({setup})" if setup else name


def _range(values: Sequence[float | None]) -> str:
    known = sorted(value for value in values if value is not None)
    if not known:
        return "–"
    return f"{known[0]:,}" if known[0] == known[-1] else f"{known[0]:,} to {known[-1]:,}"
