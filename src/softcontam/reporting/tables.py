"""A sweep's effects, contrasts, baselines and mixtures as tables for people."""

from __future__ import annotations

import math
from collections.abc import Sequence

from softcontam.analysis.effects import DID, Effect, SweepEffects
from softcontam.analysis.items import ACCURACY, LOGPROB
from softcontam.analysis.pairing import Arm
from softcontam.analysis.pass_at_k import is_pass_at_k
from softcontam.analysis.verdicts import VerdictCounts
from softcontam.reporting import wording
from softcontam.reporting.blocks import Table
from softcontam.reporting.wording import number, percent, unit_of
from softcontam.sandbox import CATEGORIES

_ARM = ("condition", "rate", "copies")
_WORDS = (
    "benchmark",
    "role",
    "condition",
    "verdict",
    "each seed",
    "contrast of changes",
    "cell",
    "arm",
    "state",
    "error",
)
_MISSING = ("arm", "what is missing", "command that runs it")


def effects(measured: SweepEffects, outcome: str) -> Table:
    """One row per effect, what it is first and then what is needed to judge it."""
    unit, scored = unit_of(outcome), outcome != LOGPROB
    header = (
        *("benchmark", "role", *_ARM, *(("clean %", "arm %") if scored else ("clean", "arm"))),
        *(f"Δ {unit.noun}", "95 % interval", "verdict", "p", "p (Holm)", "detectable"),
        *(("parsed %", "clean parsed %", "chance %") if scored else ()),
        *("items", "families", "seeds"),
    )
    return Table(header, [_effect_row(one, measured.margin) for one in measured.of(outcome)], _WORDS)


def _effect_row(one: Effect, margin: float) -> list[str]:
    unit, estimate = unit_of(one.outcome), one.estimate
    rates = [percent(share) for share in (one.parse_rate, one.baseline_parse_rate, one.chance)]
    return [
        *(_benchmark(one.benchmark, one.arm.setup), wording.ROLE_NAMES[one.role], *_arm(one.arm, one.copies)),
        *(number(one.baseline, unit), number(one.value, unit)),
        *(number(estimate.mean, unit, signed=True), wording.interval(estimate, unit), wording.verdict(one, margin)),
        *(wording.p_value(estimate.p), wording.p_value(one.holm), number(estimate.detectable, unit)),
        *(rates if one.outcome != LOGPROB else []),
        *(str(one.n_items), str(one.n_families), str(estimate.n)),
    ]


def contrasts(measured: SweepEffects, outcome: str) -> Table:
    """Differences in differences (seen - held-out) and gaps (held-out - related)."""
    unit = unit_of(outcome)
    rows = [
        [
            "seen − held-out (DiD)" if one.kind == DID else "held-out − related (gap)",
            _benchmark(one.benchmark if one.kind == DID else f"{one.benchmark} − {one.minus_benchmark}", one.arm.setup),
            *_arm(one.arm, one.copies),
            number(one.estimate.mean, unit, signed=True),
            wording.interval(one.estimate, unit),
            "shown" if one.estimate.shown else "not shown",
            wording.p_value(one.estimate.p),
            number(one.estimate.detectable, unit),
            str(one.estimate.n),
        ]
        for one in measured.contrasts
        if one.outcome == outcome
    ]
    interval = (unit.noun, "95 % interval", "verdict", "p", "detectable", "seeds")
    return Table(("contrast of changes", "benchmark", *_ARM, *interval), rows, _WORDS)


def baselines(measured: SweepEffects, outcome: str) -> Table:
    """The clean arm per role: each seed, the mean, parse rate, chance and headroom."""
    unit, scored = unit_of(outcome), outcome != LOGPROB
    rows = []
    for one in measured.baselines:
        if one.outcome != outcome:
            continue
        by_seed = ", ".join(f"{seed}: {number(value, unit)}" for seed, value in one.per_seed)
        row = [_benchmark(one.benchmark, one.setup), wording.ROLE_NAMES[one.role], str(one.n_items)]
        row.append(number(one.mean, unit))
        if scored:
            row += [percent(one.parse_rate), percent(one.chance), percent(1 - one.mean)]
        rows.append([*row, by_seed])
    measures = ("mean %", "parsed %", "chance %", "headroom, points") if scored else ("mean",)
    return Table(("benchmark", "role", "items", *measures, "each seed"), rows, _WORDS)


def pass_at_k(measured: SweepEffects) -> Table:
    """Accuracy and pass@k side by side, per arm and role: clean and arm in per cent, and the change."""
    outcomes = [ACCURACY, *(name for name in measured.outcomes if is_pass_at_k(name))]
    by_place: dict[tuple[Arm, str, str], dict[str, Effect]] = {}
    for one in measured.effects:
        if one.outcome in outcomes:
            by_place.setdefault((one.arm, one.role, one.benchmark), {})[one.outcome] = one
    rows = []
    for (arm, role, benchmark), found in by_place.items():
        cells = [
            _benchmark(benchmark, arm.setup),
            wording.ROLE_NAMES[role],
            *_arm(arm, next(iter(found.values())).copies),
        ]
        for name in outcomes:
            effect = found.get(name)
            cells += ["–", "–"] if effect is None else [_clean_and_arm(effect), _change(effect)]
        rows.append(cells)
    measures = [text for name in outcomes for text in (f"{name} %, clean → arm", f"Δ {name}, points [95 %]")]
    return Table(("benchmark", "role", *_ARM, *measures), rows, _WORDS)


def _clean_and_arm(effect: Effect) -> str:
    unit = unit_of(effect.outcome)
    return f"{number(effect.baseline, unit)} → {number(effect.value, unit)}"


def _change(effect: Effect) -> str:
    unit = unit_of(effect.outcome)
    return f"{number(effect.estimate.mean, unit, signed=True)} {wording.interval(effect.estimate, unit)}"


def verdicts(measured: SweepEffects) -> Table:
    """How the sandbox decided the programs of each arm: shares of the programs that were run."""
    rows = [
        [
            *(_benchmark(one.benchmark, one.arm.setup), wording.ROLE_NAMES[one.role]),
            *(wording.condition_name(one.arm), wording.rate(one.arm.rate), f"{one.outputs:,}", f"{one.run:,}"),
            *(_verdict_share(one, category) for category in CATEGORIES),
        ]
        for one in measured.verdicts
    ]
    header = ("benchmark", "role", "condition", "rate", "outputs", "run", *(f"{name} %" for name in CATEGORIES))
    return Table(header, rows, _WORDS)


def _verdict_share(one: VerdictCounts, category: str) -> str:
    """A share in per cent, with the count where it is rare: one sandbox error must not round to nothing."""
    count = one.counts.get(category, 0)
    text = percent(one.share(category))
    return f"<0.1 ({count})" if count and text == "0.0" else text


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
    return Table(header, rows, _WORDS)


def unfinished(measured: SweepEffects) -> Table:
    """Cells of the sweep that aren't done, with the line that says why."""
    rows = [
        [one.cell_id, one.arm, "–" if one.seed is None else str(one.seed), one.state, one.error or "–"]
        for one in measured.cells.unfinished
    ]
    return Table(("cell", "arm", "seed", "state", "error"), rows, _WORDS)


def missing(measured: SweepEffects) -> Table:
    """Arms without a clean baseline, with the command that would run it."""
    rows = [
        [wording.condition_name(one.arm), wording.rate(one.arm.rate), str(one.seed), one.reason, one.command]
        for one in measured.cells.missing
    ]
    return Table(("arm", "rate", "seed", "what is missing", "command that runs it"), rows, _MISSING)


def _arm(arm: Arm, copies: float) -> tuple[str, str, str]:
    return wording.condition_name(arm), wording.rate(arm.rate), wording.copies(copies)


def _benchmark(name: str, setup: str) -> str:
    return f"{name} ({setup})" if setup else name


def _range(values: Sequence[float | None]) -> str:
    known = sorted(value for value in values if value is not None)
    if not known:
        return "–"
    return f"{known[0]:,}" if known[0] == known[-1] else f"{known[0]:,} to {known[-1]:,}"
