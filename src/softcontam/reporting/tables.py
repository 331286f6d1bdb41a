"""A sweep's effects, contrasts, baselines and mixtures as tables for people."""

from __future__ import annotations

import math
from collections.abc import Sequence

from softcontam.analysis.contrasts import highest_doses
from softcontam.analysis.declared import Declared
from softcontam.analysis.dose_lines import RATE, DoseLine
from softcontam.analysis.effects import SweepEffects
from softcontam.analysis.intervals import BOOTSTRAP, CLUSTERED, MCNEMAR, PRIMARY
from softcontam.analysis.items import ACCURACY, LOGPROB
from softcontam.analysis.pairing import Arm, LoadedCell
from softcontam.analysis.pass_at_k import is_pass_at_k
from softcontam.analysis.records import AGAINST, DID, Contrast, Effect
from softcontam.analysis.verdicts import VerdictCounts
from softcontam.mixture.matching import Matching
from softcontam.reporting import wording
from softcontam.reporting.blocks import Table
from softcontam.reporting.matching import HEADER, MatchedArm, matching_cells
from softcontam.reporting.verdicts import verdict_of
from softcontam.reporting.wording import Unit, number, percent, unit_of
from softcontam.sandbox import CATEGORIES

_ARM = ("condition", "rate", "copies")
_WORDS = (
    "benchmark",
    "role",
    "condition",
    "verdict",
    "each seed",
    "contrast of changes",
    "contrast",
    "against",
    "on items of",
    "unit",
    "unadjusted",
    "dose",
    "source",
    "model",
    "note",
    "cell",
    "arm",
    "state",
    "error",
)
_LOGITS = Unit("slope", 1, 2, "logits per doubling of dose")
_MISSING = ("arm", "what is missing", "command that runs it")


def effects(measured: SweepEffects, outcome: str) -> Table:
    """One row per effect, what it is first and then what is needed to judge it."""
    unit, scored = unit_of(outcome), outcome != LOGPROB
    header = (
        *("benchmark", "role", "condition", "rate", f"Δ {unit.noun}", "95 % interval", "verdict"),
        *(*(("clean %", "arm %") if scored else ("clean", "arm")), "p", "p (Holm)", "detectable", "copies"),
        *(("parsed %", "clean parsed %", "chance %") if scored else ()),
        *("items", "families", "seeds"),
    )
    return Table(header, [_effect_row(one, measured.margins.get(outcome)) for one in measured.of(outcome)], _WORDS)


def _effect_row(one: Effect, margin: float | None) -> list[str]:
    unit, estimate = unit_of(one.outcome), one.estimate
    rates = [percent(share) for share in (one.parse_rate, one.baseline_parse_rate, one.chance)]
    return [
        *(_benchmark(one.benchmark, one.arm.setup), wording.ROLE_NAMES[one.role]),
        *(wording.condition_name(one.arm), wording.rate(one.arm.rate)),
        *(number(estimate.mean, unit, signed=True), wording.interval(estimate, unit), wording.verdict(one, margin)),
        *(number(one.baseline, unit), number(one.value, unit)),
        *(wording.p_value(estimate.p), wording.p_value(one.holm), number(estimate.detectable, unit)),
        wording.copies(one.copies),
        *(rates if one.outcome != LOGPROB else []),
        *(str(one.n_items), str(one.n_families), str(estimate.n)),
    ]


def declared(measured: SweepEffects) -> Table:
    """One row per declared contrast: the primary interval, those beside it, p values and what could be detected."""
    rows = []
    for one in measured.declared:
        unit = (
            unit_of(one.effect.outcome)
            if one.effect
            else _LOGITS
            if one.line
            else unit_of(one.stated.outcome or measured.primary)
        )
        arm = one.effect.arm if one.effect else one.line.arm if one.line else None
        place = one.effect or one.line
        rows.append(
            [
                one.stated.test.replace("_", " "),
                wording.condition_name(arm) if arm else one.stated.condition,
                _doses(one),
                f"{wording.ROLE_NAMES[place.role]} {_benchmark(place.benchmark, arm.setup)}"
                if place and arm
                else wording.ROLE_NAMES[one.stated.role],
                _against(one),
                verdict_of(one),
                number(one.estimate.mean, unit, signed=True),
                wording.interval(one.estimate, unit),
                unit.noun,
                *(wording.p_value(one.p), wording.p_value(one.holm), number(one.estimate.detectable, unit)),
                wording.bounds(one.family.low, one.family.high, unit),
                wording.bounds(one.hierarchical.low, one.hierarchical.high, unit),
                str(one.estimate.n),
            ]
        )
    header = (
        *("contrast", "condition", "rate", "on items of", "against", "verdict", "estimate", f"95 % {PRIMARY}", "unit"),
        *("p", "p (Holm)", "detectable", f"95 % {CLUSTERED}", f"95 % {BOOTSTRAP}", "seeds"),
    )
    return Table(header, rows, _WORDS)


def _doses(one: Declared) -> str:
    """The dose of a contrast; of a dose-response those that were tested."""
    if one.line is not None:
        doses = one.line.response.doses
        return f"{_dose(doses[0], one.line)} to {_dose(doses[-1], one.line)}"
    return wording.rate(one.effect.arm.rate) if one.effect else "–"


def _against(one: Declared) -> str:
    if one.minus is None:
        return "clean arm" if one.effect else "–"
    if one.effect is not None and one.minus.arm != one.effect.arm:
        return wording.condition_name(one.minus.arm)
    return f"{wording.ROLE_NAMES[one.minus.role]} {one.minus.benchmark}"


def intervals(measured: SweepEffects, outcome: str) -> Table:
    """Every effect with the three intervals and the exact McNemar p of each pair of runs."""
    unit = unit_of(outcome)
    rows = [
        [
            *(_benchmark(one.benchmark, one.arm.setup), wording.ROLE_NAMES[one.role], *_arm(one.arm, one.copies)),
            number(one.estimate.mean, unit, signed=True),
            wording.interval(one.estimate, unit),
            wording.bounds(one.family.low, one.family.high, unit),
            wording.bounds(one.hierarchical.low, one.hierarchical.high, unit),
            ", ".join(wording.p_value(p) for p in one.mcnemar) or "–",
        ]
        for one in measured.of(outcome)
    ]
    header = ("benchmark", "role", *_ARM, f"Δ {unit.noun}", PRIMARY, CLUSTERED, BOOTSTRAP, f"{MCNEMAR} p, each pair")
    return Table(header, rows, _WORDS)


def accuracies(measured: SweepEffects, outcome: str) -> Table:
    """Every cell's own result on all items of a role, with its standard error over families."""
    unit = unit_of(outcome)
    rows = [
        [
            *(_benchmark(one.benchmark, one.arm.setup), wording.ROLE_NAMES[one.role]),
            *(wording.condition_name(one.arm), wording.rate(one.arm.rate), str(one.seed)),
            *(number(one.value, unit), number(one.error, unit), percent(one.parse_rate)),
            *(str(one.n_items), str(one.n_families)),
        ]
        for one in measured.accuracies
        if one.outcome == outcome
    ]
    name = f"{unit.outcome}{' %' if unit.scale == 100 else ''}"
    header = ("benchmark", "role", "condition", "rate", "seed", name, "error over families", "parsed %")
    return Table((*header, "items", "families"), rows, _WORDS)


def dose_response(measured: SweepEffects) -> Table:
    """Slopes of logit accuracy on log dose, and the dose that gives the gain asked for."""
    rows = []
    for one in measured.lines:
        response, found = one.response, one.response.dose_for_gain
        interval = "–" if math.isnan(found.low) else f"[{_dose(found.low, one)}, {_dose(found.high, one)}]"
        rows.append(
            [
                *(_benchmark(one.benchmark, one.arm.setup), wording.ROLE_NAMES[one.role]),
                *(wording.condition_name(one.arm), one.dose, f"{_dose(response.doses[0], one)} to "),
                number(response.slope.mean, _LOGITS, signed=True),
                wording.interval(response.slope, _LOGITS),
                "–" if math.isnan(found.value) else _dose(found.value, one),
                interval,
                str(response.slope.n),
                response.note or ("outside the doses tested" if response.extrapolated else "–"),
            ]
        )
        rows[-1][4] += _dose(response.doses[-1], one)
    gain = f"{100 * (measured.lines[0].response.gain if measured.lines else 0.05):g}"
    header = (
        *("benchmark", "role", "condition", "dose", "tested", "logits per doubling", "95 % interval"),
        *(f"dose for +{gain} points", "95 % of that", "seeds", "note"),
    )
    return Table(header, rows, _WORDS)


def _dose(value: float, one: DoseLine) -> str:
    return wording.rate(float(f"{value:.3g}")) if one.dose == RATE else f"{value:.3g}"


def paper(measured: SweepEffects) -> Table:
    """Published figures beside ours of the same condition, role and level; never pooled with them."""
    rows = []
    for one in measured.declaration.analysis.paper:
        ours = [
            effect
            for effect in highest_doses(measured.of(ACCURACY))
            if (effect.arm.condition, effect.role) == (one.condition, one.role)
            and one.level in (None, effect.arm.level)
        ]
        unit = unit_of(ACCURACY)
        change = math.nan if one.clean is None else one.value - one.clean
        rows.append(
            [
                wording.condition_name(Arm("", "", one.condition, one.level, 0.0, None)),
                wording.ROLE_NAMES[one.role],
                *(one.source, one.model, one.benchmark),
                percent(math.nan if one.clean is None else one.clean),
                *(percent(one.value), number(change, unit, signed=True)),
                " / ".join(f"{effect.arm.level or ''} {_change(effect)}".strip() for effect in ours) or "–",
                one.note or "–",
            ]
        )
    header = (
        *("condition", "role", "source", "model", "benchmark", "theirs: clean %", "theirs: arm %", "theirs: Δ points"),
        *("ours, highest dose: Δ points [95 %]", "note"),
    )
    return Table(header, rows, _WORDS)


def contrasts(measured: SweepEffects, outcome: str) -> Table:
    """Differences in differences, gaps (held-out - related), and SemDs against exact duplicates."""
    unit = unit_of(outcome)
    rows = [
        [
            _kind(one),
            _benchmark(
                one.benchmark
                if one.minus_benchmark in (None, one.benchmark)
                else f"{one.benchmark} − {one.minus_benchmark}",
                one.arm.setup,
            ),
            *_arm(one.arm, one.copies),
            number(one.estimate.mean, unit, signed=True),
            wording.interval(one.estimate, unit),
            f"{'excludes' if one.estimate.shown else 'includes'} 0",
            wording.p_value(one.estimate.p),
            number(one.estimate.detectable, unit),
            str(one.estimate.n),
        ]
        for one in measured.contrasts
        if one.outcome == outcome
    ]
    interval = (unit.noun, "95 % interval", "unadjusted", "p", "detectable", "seeds")
    return Table(("contrast of changes", "benchmark", *_ARM, *interval), rows, _WORDS)


def _kind(one: Contrast) -> str:
    if one.kind == AGAINST:
        return f"{wording.ROLE_NAMES[one.role]}: arm − exact"
    return "seen − held-out (DiD)" if one.kind == DID else "held-out − related (gap)"


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


def matching(measured: SweepEffects) -> Table:
    """Dose of each arm and what it shares with the others; what differs between seeds stands side by side."""
    arms: dict[Arm, list[LoadedCell]] = {}
    for pair in measured.cells.pairs:
        if pair.treated.metrics.get("matching"):
            arms.setdefault(pair.treated.arm, []).append(pair.treated)
    rows = []
    for arm, members in sorted(arms.items(), key=lambda entry: (entry[0].split_benchmark, entry[0].rate)):
        texts = zip(*(matching_cells(_matched(one)) for one in members), strict=True)
        words = (_benchmark(arm.split_benchmark, arm.setup), wording.condition_name(arm), wording.rate(arm.rate))
        rows.append([*words, *(_over_seeds(column) for column in texts)])
    return Table(("benchmark", "condition", "rate", *HEADER), rows, (*_WORDS, "styles", "not matched"))


def _matched(one: LoadedCell) -> MatchedArm:
    metrics = one.metrics
    copies = {str(index): 0 for index in range(metrics["covered_items"])}
    if copies:
        copies["0"] = metrics["inserted_rows"]  # only the sum and the number of items are read
    return MatchedArm(one.config, copies, Matching.from_dict(metrics["matching"]))


def _over_seeds(texts: Sequence[str]) -> str:
    """One text where all seeds agree, else the different ones in order."""
    return " / ".join(dict.fromkeys(texts))


def detection(measured: SweepEffects) -> Table:
    """How many rows of each arm every filter finds; the clean arm's row is about its clean rows."""
    filters = list(dict.fromkeys(one.filter for one in measured.detected))
    found: dict[Arm, dict[str, str]] = {}
    sizes: dict[Arm, int] = {}
    for one in measured.detected:
        found.setdefault(one.arm, {})[one.filter] = f"{one.found:,} ({percent(one.found / one.rows)} %)"
        sizes[one.arm] = one.rows
    rows = [
        [
            *(_benchmark(arm.split_benchmark, arm.setup), wording.condition_name(arm), wording.rate(arm.rate)),
            f"{sizes[arm]:,}",
            *(texts.get(name, "–") for name in filters),
        ]
        for arm, texts in found.items()
    ]
    return Table(("benchmark", "condition", "rate", "rows, all seeds", *filters), rows, _WORDS)


def similarity(measured: SweepEffects) -> Table:
    """How similar each arm's inserted rows are to their items, and the overlap with the SemD arm's similarities."""
    rows = [
        [
            *(_benchmark(one.arm.split_benchmark, one.arm.setup), wording.condition_name(one.arm)),
            *(wording.rate(one.arm.rate), one.measure, f"{one.rows:,}"),
            *(f"{value:.2f}" for value in one.quantiles),
            "–" if math.isnan(one.overlap) else f"{one.overlap:.2f} with {one.beside}",
        ]
        for one in measured.similarities
    ]
    quantiles = ("10th percentile", "median", "90th percentile")
    header = ("benchmark", "condition", "rate", "cosine by", "rows", *quantiles, "overlap")
    return Table(header, rows, (*_WORDS, "cosine by", "overlap"))


def doses(measured: SweepEffects, outcome: str) -> Table:
    """The change on seen items by their number of copies, within each ladder arm."""
    unit = unit_of(outcome)
    rows = [
        [
            *(_benchmark(one.benchmark, one.arm.setup), wording.condition_name(one.arm), str(one.copies)),
            *(number(one.baseline, unit), number(one.value, unit), number(one.estimate.mean, unit, signed=True)),
            wording.interval(one.estimate, unit),
            "shown" if one.estimate.shown else "not shown",
            *(wording.p_value(one.estimate.p), str(one.n_items), str(one.n_families), str(one.estimate.n)),
        ]
        for one in measured.doses
        if one.outcome == outcome
    ]
    header = (
        *("benchmark", "condition", "copies", "clean arm", "ladder arm", f"Δ {unit.noun}", "95 % interval", "verdict"),
        *("p", "items", "families", "seeds"),
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
