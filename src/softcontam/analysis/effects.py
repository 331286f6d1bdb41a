"""Effects of a sweep: paired differences from the clean arm, their contrasts between roles, and what is missing."""

from __future__ import annotations

import math
from collections import defaultdict
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from itertools import product
from typing import Any

from softcontam.analysis.detection import Detected, Similarity, detected, similarities
from softcontam.analysis.estimates import Estimate, equivalence_p, holm, over_seeds
from softcontam.analysis.families import FamilySummary, family_summaries
from softcontam.analysis.halves import Halves, halves
from softcontam.analysis.items import (
    ACCURACY,
    GENERAL,
    HELD_OUT,
    LOGPROB,
    RELATED,
    ROLES,
    SEEN,
    CellMean,
    SeedDifference,
    cell_means,
    item_table,
    outcomes_of,
    paired_items,
    read_outcomes,
    seed_differences,
    wanted_pass_at,
)
from softcontam.analysis.ladder import DoseEffect, dose_effects
from softcontam.analysis.pairing import Arm, LoadedCell, Pair, SweepCells, load_sweep
from softcontam.analysis.verdicts import VerdictCounts, sandbox_error_notes, verdict_counts
from softcontam.mixture.matching import Matching
from softcontam.store import Store

MARGIN = 0.05
"""The difference in accuracy, as a fraction, below which an effect would count as none."""

DID, GAP = "difference_in_differences", "gap"


@dataclass(frozen=True)
class Effect:
    """The difference of one arm from the clean arm on one benchmark in one role.

    ``value``, ``baseline`` and ``deltas`` are in the unit of ``outcome``: fractions, or nats per token. ``copies`` is
    the mean number of inserted rows per covered item; ``n_items`` and ``n_families`` are means over seeds, rounded.
    ``equivalence`` is the TOST p value against the margin (accuracy only, else NaN), ``holm`` the adjusted p value.
    """

    arm: Arm
    role: str
    benchmark: str
    outcome: str
    copies: float
    n_items: int
    n_families: int
    chance: float
    parse_rate: float
    baseline_parse_rate: float
    value: float
    baseline: float
    deltas: dict[str, float] = field(repr=False)
    estimate: Estimate
    equivalence: float
    holm: float = math.nan


@dataclass(frozen=True)
class Contrast:
    """A difference of two effects of one arm: ``DID`` (seen - held-out) or ``GAP`` (held-out - related)."""

    kind: str
    arm: Arm
    outcome: str
    copies: float
    benchmark: str
    minus_benchmark: str
    estimate: Estimate


@dataclass(frozen=True)
class Baseline:
    """The clean arm on one benchmark in one role; ``per_seed`` holds (seed, value) pairs, ``n_items`` is per seed."""

    setup: str
    split_benchmark: str
    role: str
    benchmark: str
    outcome: str
    per_seed: tuple[tuple[int, float], ...]
    parse_rate: float
    chance: float
    n_items: int

    @property
    def mean(self) -> float:
        """The mean over seeds."""
        return sum(value for _, value in self.per_seed) / len(self.per_seed)


@dataclass(frozen=True)
class SweepEffects:
    """All that a report says of a sweep, in the order: benchmark, setup, condition as launched, rate, copies."""

    experiment: str
    margin: float
    cells: SweepCells
    effects: list[Effect]
    contrasts: list[Contrast]
    baselines: list[Baseline]
    notes: list[str]
    halves: list[Halves] = field(default_factory=list)
    families: list[FamilySummary] = field(default_factory=list)
    verdicts: list[VerdictCounts] = field(default_factory=list)
    doses: list[DoseEffect] = field(default_factory=list)
    detected: list[Detected] = field(default_factory=list)
    similarities: list[Similarity] = field(default_factory=list)

    @property
    def outcomes(self) -> list[str]:
        """The outcomes that are decided anywhere in the sweep: accuracy, pass@k, partial, log-probability."""
        return list(dict.fromkeys([one.outcome for one in self.baselines] + [one.outcome for one in self.effects]))

    @property
    def primary(self) -> str:
        """Accuracy where it is decided anywhere, else the log-probability."""
        return LOGPROB if self.outcomes == [LOGPROB] else ACCURACY

    def of(self, outcome: str) -> list[Effect]:
        """The effects on one outcome."""
        return [effect for effect in self.effects if effect.outcome == outcome]


def measure(store: Store, experiment: str, margin: float = MARGIN) -> SweepEffects:
    """Measure an experiment's effects from the store.

    Args:
        margin: the equivalence margin for accuracy, as a fraction, declared before the results are seen.

    Raises:
        StoreError: no such experiment, or a damaged cell.
        ArmMismatchError: an arm and its clean cell differ in more than the inserted rows.
    """
    cells = load_sweep(store, experiment)
    needed = {one.cell.id: one for one in (*cells.clean, *(pair.treated for pair in cells.pairs))}
    if not needed:
        return SweepEffects(experiment, margin, cells, [], [], [], [])
    rows = read_outcomes([one.cell for one in needed.values()])
    items = item_table(rows, wanted_pass_at(needed.values()))
    outcomes = outcomes_of(items)
    verdicts = verdict_counts(rows, list(needed.values()))
    effects: list[Effect] = []
    notes = _mixture_notes(cells.pairs) + sandbox_error_notes(verdicts)
    if cells.pairs:
        paired = paired_items(cells.pairs, items)
        for outcome in outcomes:
            differences = seed_differences(paired, outcome)
            effects += _effects(cells.pairs, differences, outcome, margin)
            notes += _undecided_notes(differences, outcome)
    return SweepEffects(
        experiment,
        margin,
        cells,
        effects,
        _contrasts(effects),
        [one for outcome in outcomes for one in _baselines(cells.clean, cell_means(items, outcome), outcome)],
        notes,
        halves(cells.clean, items),
        family_summaries(cells.done),
        verdicts,
        dose_effects(cells.pairs, items, outcomes),
        detected([*cells.clean, *(pair.treated for pair in cells.pairs)]),
        similarities([pair.treated for pair in cells.pairs]),
    )


def _effects(pairs: Sequence[Pair], differences: Sequence[SeedDifference], outcome: str, margin: float) -> list[Effect]:
    """Group the per-seed differences by arm, role and benchmark."""
    treated = {pair.treated.cell.id: pair.treated for pair in pairs}
    groups: dict[tuple[Arm, str, str], list[SeedDifference]] = defaultdict(list)
    for one in differences:
        groups[treated[one.cell_id].arm, one.role, one.benchmark].append(one)
    found = []
    for (arm, role, benchmark), members in groups.items():
        cells = [treated[one.cell_id] for one in members]
        deltas = {one.cell_id: one.value - one.baseline for one in members}
        found.append(
            Effect(
                arm=arm,
                role=role,
                benchmark=benchmark,
                outcome=outcome,
                copies=_mean(_copies(cell) for cell in cells),
                n_items=round(_mean(one.n_items for one in members)),
                n_families=round(_mean(one.n_families for one in members)),
                chance=_chance(cells, benchmark, role) if outcome == ACCURACY else math.nan,
                parse_rate=_mean(one.parse_rate for one in members),
                baseline_parse_rate=_mean(one.baseline_parse_rate for one in members),
                value=_mean(one.value for one in members),
                baseline=_mean(one.baseline for one in members),
                deltas=deltas,
                estimate=over_seeds(list(deltas.values())),
                equivalence=equivalence_p(list(deltas.values()), margin) if outcome == ACCURACY else math.nan,
            )
        )
    return _adjusted(sorted(found, key=_Order(pair.treated.arm for pair in pairs)))


def _adjusted(effects: list[Effect]) -> list[Effect]:
    """Add Holm's p over the declared contrasts: all effects but those on general benchmarks, which are controls."""
    declared = [i for i, effect in enumerate(effects) if effect.role != GENERAL]
    for index, p in zip(declared, holm([effects[i].estimate.p for i in declared]), strict=True):
        effects[index] = replace(effects[index], holm=p)
    return effects


class _Order:
    """Sort key: benchmarks, setups and conditions as launched, then dose, then role."""

    def __init__(self, arms: Iterable[Arm]) -> None:
        lines = dict.fromkeys((arm.split_benchmark, arm.setup, arm.condition, arm.level) for arm in arms)
        self.place = {line: index for index, line in enumerate(lines)}

    def __call__(self, effect: Effect) -> tuple[int, float, float, int, bool, str]:
        arm = effect.arm
        place = self.place[arm.split_benchmark, arm.setup, arm.condition, arm.level]
        fresh = effect.benchmark != arm.split_benchmark
        return place, arm.rate, effect.copies, _place(effect.role), fresh, effect.benchmark


def _contrasts(effects: Iterable[Effect]) -> list[Contrast]:
    """Differences in differences and gaps of every arm, over the seeds that both effects have."""
    by_arm: dict[tuple[Arm, str], dict[str, list[Effect]]] = defaultdict(lambda: defaultdict(list))
    for effect in effects:
        by_arm[effect.arm, effect.outcome][effect.role].append(effect)
    contrasts = []
    for (arm, outcome), roles in by_arm.items():
        for kind, first, second in ((DID, SEEN, HELD_OUT), (GAP, HELD_OUT, RELATED)):
            for left, right in product(roles[first], roles[second]):
                shared = [left.deltas[cell] - right.deltas[cell] for cell in left.deltas if cell in right.deltas]
                if shared:
                    names = (left.benchmark, right.benchmark)
                    contrasts.append(Contrast(kind, arm, outcome, left.copies, *names, over_seeds(shared)))
    return contrasts


def _baselines(clean: Sequence[LoadedCell], means: Sequence[CellMean], outcome: str) -> list[Baseline]:
    """The clean cells' own results, on all seen items rather than covered ones."""
    cells = {one.cell.id: one for one in clean}
    groups: dict[tuple[str, str, str, str], list[CellMean]] = defaultdict(list)
    for one in means:
        if one.cell_id in cells:
            arm = cells[one.cell_id].arm
            groups[arm.split_benchmark, arm.setup, one.role, one.benchmark].append(one)
    found = []
    for (split, setup, role, name), members in groups.items():
        per_seed = tuple(sorted((cells[one.cell_id].config.seed, one.value) for one in members))
        chance = _chance([cells[one.cell_id] for one in members], name, role) if outcome == ACCURACY else math.nan
        parse_rate, n_items = _mean(one.parse_rate for one in members), round(_mean(one.n_items for one in members))
        found.append(Baseline(setup, split, role, name, outcome, per_seed, parse_rate, chance, n_items))
    return sorted(found, key=lambda one: (one.split_benchmark, one.setup, _place(one.role)))


def _undecided_notes(differences: Sequence[SeedDifference], outcome: str) -> list[str]:
    counts: dict[tuple[str, str], int] = defaultdict(int)
    for one in differences:
        counts[one.benchmark, one.role] += one.undecided
    return [
        f"{outcome} is undecided for {count} item results of {benchmark} ({role}); they were left out of both arms."
        for (benchmark, role), count in counts.items()
        if count
    ]


def _mixture_notes(pairs: Sequence[Pair]) -> list[str]:
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
    return [
        f"{condition}{f' ({level})' if level else ''} at {100 * rate:g} % of rows is not matched to exact duplicates "
        f"in {', '.join(sorted(found))}: see the table of dose and matching before reading its effects."
        for (condition, level, rate), found in differing.items()
        if found
    ]


def _copies(one: LoadedCell) -> float:
    """Inserted rows per covered item of a cell; NaN where the cell doesn't say."""
    inserted, covered = one.metrics.get("inserted_rows"), one.metrics.get("covered_items")
    return inserted / covered if inserted and covered else math.nan


def _chance(members: Sequence[LoadedCell], benchmark: str, role: str) -> float:
    return _mean(chance_of(one.metrics, benchmark, role) for one in members)


def chance_of(metrics: Mapping[str, Any], benchmark: str, role: str) -> float:
    """Chance on a benchmark in a role, from a cell's metrics; NaN where they don't say.

    It is stored by ``benchmark/role``; older cells have one for the whole benchmark.
    """
    chances = metrics.get("chance") or {}
    return float(chances.get(f"{benchmark}/{role}", chances.get(benchmark, math.nan)))


def _place(role: str) -> int:
    return ROLES.index(role) if role in ROLES else len(ROLES)


def _mean(values: Iterable[float]) -> float:
    known = [value for value in values if not math.isnan(value)]
    return sum(known) / len(known) if known else math.nan
