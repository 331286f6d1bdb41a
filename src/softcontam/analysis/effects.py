"""Effects of a sweep: paired differences from the clean arm, their contrasts, and what is missing."""

from __future__ import annotations

import math
from collections import defaultdict
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Any

import pandas as pd

from softcontam.analysis.accuracies import ArmAccuracy, arm_accuracies
from softcontam.analysis.contrasts import contrasts, group_of
from softcontam.analysis.declared import EFFECT, Declaration, Declared, declaration, declared_contrasts, margins_of
from softcontam.analysis.detection import Detected, Similarity, detected, similarities
from softcontam.analysis.dose_lines import DoseLine, dose_lines
from softcontam.analysis.estimates import equivalence_p, holm, over_seeds
from softcontam.analysis.families import FamilySummary, family_summaries
from softcontam.analysis.halves import Halves, halves
from softcontam.analysis.intervals import exact_mcnemar, family_clustered, hierarchical_bootstrap
from softcontam.analysis.items import (
    ACCURACY,
    GENERAL,
    LOGPROB,
    ROLES,
    CellMean,
    SeedDifference,
    cell_means,
    item_table,
    outcomes_of,
    paired_items,
    read_outcomes,
    seed_differences,
    undecided_groups,
    wanted_pass_at,
)
from softcontam.analysis.ladder import DoseEffect, dose_effects
from softcontam.analysis.notes import left_out_notes, mixture_notes, parse_notes, undecided_notes
from softcontam.analysis.pairing import Arm, LoadedCell, Pair, SweepCells, load_sweep
from softcontam.analysis.records import Baseline, Contrast, Effect
from softcontam.analysis.texts import item_texts
from softcontam.analysis.verdicts import VerdictCounts, sandbox_error_notes, verdict_counts
from softcontam.store import Store

MARGIN = 0.05
"""The difference in accuracy, as a fraction, below which an effect would count as none, where nothing was declared."""

_EMPTY = pd.DataFrame()


@dataclass(frozen=True)
class SweepEffects:
    """All that a report says of a sweep, in the order: benchmark, setup, condition as launched, rate, copies.

    ``rows`` are the outcomes of all cells that were read, ``items`` the same averaged over samples, ``texts`` prompts
    and targets (columns benchmark, item_id, prompt, target; empty where cells don't keep them).
    """

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
    declaration: Declaration = field(default_factory=Declaration)
    declared: list[Declared] = field(default_factory=list)
    lines: list[DoseLine] = field(default_factory=list)
    accuracies: list[ArmAccuracy] = field(default_factory=list)
    rows: pd.DataFrame = field(default_factory=lambda: _EMPTY, repr=False)
    items: pd.DataFrame = field(default_factory=lambda: _EMPTY, repr=False)
    texts: pd.DataFrame = field(default_factory=lambda: _EMPTY, repr=False)

    @property
    def outcomes(self) -> list[str]:
        """The outcomes that are decided anywhere in the sweep: accuracy, pass@k, partial, log-probability."""
        return list(dict.fromkeys([one.outcome for one in self.baselines] + [one.outcome for one in self.effects]))

    @property
    def primary(self) -> str:
        """Accuracy where it is decided anywhere, else the log-probability."""
        return LOGPROB if self.outcomes == [LOGPROB] else ACCURACY

    @property
    def margins(self) -> dict[str, float | None]:
        """The equivalence margin of each outcome that can have one, in its unit; None where none is set."""
        return margins_of(self.declaration.analysis)

    def of(self, outcome: str) -> list[Effect]:
        """The effects on one outcome."""
        return [effect for effect in self.effects if effect.outcome == outcome]


def measure(store: Store, experiment: str, margin: float | None = None) -> SweepEffects:
    """Measure an experiment's effects from the store.

    Args:
        margin: an equivalence margin for accuracy, as a fraction, in place of the one that was declared with the sweep;
            the report then says that it was chosen afterwards.

    Raises:
        StoreError: no such experiment, or a damaged cell.
        ArmMismatchError: an arm and its clean cell differ in more than the inserted rows.
    """
    cells = load_sweep(store, experiment)
    stated = declaration(cells.record, margin)
    needed = compared_cells(cells)
    if not needed:
        return SweepEffects(experiment, stated.analysis.margin, cells, [], [], [], [], declaration=stated)
    rows = read_outcomes([one.cell for one in needed])
    return measure_rows(experiment, cells, rows, item_texts(needed), stated)


def compared_cells(cells: SweepCells) -> list[LoadedCell]:
    """The clean cells and those that have one, each once."""
    return list({one.cell.id: one for one in (*cells.clean, *(pair.treated for pair in cells.pairs))}.values())


def measure_rows(
    experiment: str, cells: SweepCells, rows: pd.DataFrame, texts: pd.DataFrame, stated: Declaration
) -> SweepEffects:
    """Measure the effects of cells whose outcomes are at hand, wherever they come from.

    Args:
        experiment: the name that the report carries.
        rows: outcomes with the columns of :func:`softcontam.analysis.items.read_outcomes`; those of cells that have no
            partner are passed over.
        texts: prompts and targets, possibly empty.
        stated: margin and contrasts, and when they were declared.

    Raises:
        ArmMismatchError: the two cells of a pair weren't evaluated on the same items.
    """
    needed, margin = compared_cells(cells), stated.analysis.margin
    rows = rows[rows["cell"].isin([one.cell.id for one in needed])]
    items = item_table(rows, wanted_pass_at(needed))
    outcomes = outcomes_of(items)
    verdicts = verdict_counts(rows, needed)
    margins = margins_of(stated.analysis)
    effects: list[Effect] = []
    notes = mixture_notes(cells.pairs) + sandbox_error_notes(verdicts)
    if cells.pairs:
        paired = paired_items(cells.pairs, items)
        for outcome in outcomes:
            differences = seed_differences(paired, outcome)
            effects += _effects(cells.pairs, differences, outcome, margins.get(outcome))
            notes += undecided_notes(differences, outcome)
            notes += left_out_notes(cells.pairs, undecided_groups(paired, outcome), outcome)
        notes += parse_notes(effects)
    doses = dose_effects(cells.pairs, items, outcomes)
    lines = dose_lines(effects, doses)
    declared = declared_contrasts(stated.analysis, effects, lines)
    return SweepEffects(
        experiment,
        margin,
        cells,
        _adjusted(effects, declared),
        contrasts(effects),
        [one for outcome in outcomes for one in _baselines(cells.clean, cell_means(items, outcome), outcome)],
        notes,
        halves(cells.clean, items),
        family_summaries(cells.done),
        verdicts,
        doses,
        detected(needed),
        similarities([pair.treated for pair in cells.pairs]),
        stated,
        declared,
        lines,
        arm_accuracies(needed, items, outcomes),
        rows,
        items,
        texts,
    )


def _effects(
    pairs: Sequence[Pair], differences: Sequence[SeedDifference], outcome: str, margin: float | None
) -> list[Effect]:
    """Group the per-seed differences by arm, role and benchmark."""
    treated = {pair.treated.cell.id: pair.treated for pair in pairs}
    groups: dict[tuple[Arm, str, str], list[SeedDifference]] = defaultdict(list)
    for one in differences:
        groups[treated[one.cell_id].arm, one.role, one.benchmark].append(one)
    found = []
    for (arm, role, benchmark), unordered in groups.items():
        members = sorted(unordered, key=lambda one: treated[one.cell_id].config.seed)
        cells = [treated[one.cell_id] for one in members]
        deltas = {one.cell_id: one.value - one.baseline for one in members}
        seeds = [(group_of(one),) for one in members]
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
                equivalence=math.nan if margin is None else equivalence_p(list(deltas.values()), margin),
                differences={one.cell_id: one for one in members},
                family=family_clustered(seeds),
                hierarchical=hierarchical_bootstrap(seeds),
                mcnemar=tuple(exact_mcnemar(one.items, one.clean_items) for one in members)
                if outcome == ACCURACY
                else (),
            )
        )
    return sorted(found, key=_Order(pair.treated.arm for pair in pairs))


def _adjusted(effects: Sequence[Effect], declared: Sequence[Declared]) -> list[Effect]:
    """Add Holm's p: that of the declared contrasts to the effects among them.

    Where the experiment declares none, every effect on seen, held-out and related items counts as declared, those of
    each outcome by themselves; general benchmarks are controls and stand outside.
    """
    if declared:
        known = {_key(one.effect): one.holm for one in declared if one.effect and one.stated.test == EFFECT}
        return [replace(one, holm=known.get(_key(one), math.nan)) for one in effects]
    adjusted = list(effects)
    for outcome in dict.fromkeys(one.outcome for one in effects):
        members = [i for i, one in enumerate(effects) if one.outcome == outcome and one.role != GENERAL]
        for index, p in zip(members, holm([effects[i].estimate.p for i in members]), strict=True):
            adjusted[index] = replace(effects[index], holm=p)
    return adjusted


def _key(effect: Effect) -> tuple[Arm, str, str, str]:
    return effect.arm, effect.role, effect.benchmark, effect.outcome


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
