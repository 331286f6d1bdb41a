"""Effects of a sweep: paired differences from the clean arm, their contrasts between roles, and what is missing."""

from __future__ import annotations

import math
from collections import defaultdict
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field, replace
from itertools import product

import pandas as pd

from softcontam.analysis.estimates import Estimate, equivalence_p, holm, over_seeds
from softcontam.analysis.items import (
    ACCURACY,
    GENERAL,
    HELD_OUT,
    OUTCOMES,
    RELATED,
    ROLES,
    SEEN,
    family_means,
    item_table,
    paired_items,
    seed_differences,
)
from softcontam.analysis.pairing import Arm, LoadedCell, Pair, SweepCells, load_sweep
from softcontam.store import Store

MARGIN = 0.05
"""The difference in accuracy, as a fraction, below which an effect would count as none."""

_KEYS = "experiment benchmark role condition level rate copies n_items n_families n_seeds".split()
EFFECT_COLUMNS = (
    *_KEYS,
    *"chance parse_rate accuracy baseline_accuracy delta ci_low ci_high p_value".split(),
)
"""Columns of ``effects.csv``; ``delta`` and its interval are fractions."""

LOGPROB_COLUMNS = (
    *_KEYS,
    *"logprob_per_token baseline_logprob_per_token delta ci_low ci_high p_value".split(),
)
"""Columns of ``effects_logprob.csv``; log-probabilities are in nats per token."""

CONTRAST_COLUMNS = (
    *"experiment outcome contrast benchmark minus_benchmark condition level rate copies n_seeds".split(),
    *"estimate ci_low ci_high p_value".split(),
)
"""Columns of ``contrasts.csv``."""

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

    @property
    def primary(self) -> str:
        """Accuracy where it is decided anywhere, else the log-probability."""
        decided = {one.outcome for one in (*self.effects, *self.baselines)}
        return ACCURACY if ACCURACY in decided or not decided else OUTCOMES[1]

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
    items = item_table([one.cell for one in needed.values()])
    effects: list[Effect] = []
    notes = _mixture_notes(cells.pairs)
    if cells.pairs:
        paired = paired_items(cells.pairs, items)
        for outcome in OUTCOMES:
            effects += _effects(cells.pairs, seed_differences(paired, outcome), outcome, margin, notes)
    baselines = [one for outcome in OUTCOMES for one in _baselines(cells.clean, items, outcome)]
    return SweepEffects(experiment, margin, cells, effects, _contrasts(effects), baselines, notes)


def effects_frame(measured: SweepEffects, outcome: str) -> pd.DataFrame:
    """The table of ``effects.csv`` (accuracy) or ``effects_logprob.csv`` (log-probability), columns in order."""
    rows = []
    for one in measured.of(outcome):
        rows.append(
            {
                **_arm_columns(measured, one.arm, one.copies),
                "benchmark": one.benchmark,
                "role": one.role,
                "n_items": one.n_items,
                "n_families": one.n_families,
                "n_seeds": one.estimate.n,
                "chance": one.chance,
                "parse_rate": one.parse_rate,
                outcome: one.value,
                f"baseline_{outcome}": one.baseline,
                "delta": one.estimate.mean,
                "ci_low": one.estimate.low,
                "ci_high": one.estimate.high,
                "p_value": one.estimate.p,
            }
        )
    return pd.DataFrame(rows, columns=list(EFFECT_COLUMNS if outcome == ACCURACY else LOGPROB_COLUMNS))


def contrasts_frame(measured: SweepEffects) -> pd.DataFrame:
    """The table of ``contrasts.csv``: differences in differences and gaps."""
    rows = [
        {
            **_arm_columns(measured, one.arm, one.copies),
            "outcome": one.outcome,
            "contrast": one.kind,
            "benchmark": one.benchmark,
            "minus_benchmark": one.minus_benchmark,
            "n_seeds": one.estimate.n,
            "estimate": one.estimate.mean,
            "ci_low": one.estimate.low,
            "ci_high": one.estimate.high,
            "p_value": one.estimate.p,
        }
        for one in measured.contrasts
    ]
    return pd.DataFrame(rows, columns=list(CONTRAST_COLUMNS))


def _arm_columns(measured: SweepEffects, arm: Arm, copies: float) -> dict[str, object]:
    name = f"{measured.experiment} [{arm.setup}]" if arm.setup else measured.experiment
    return {"experiment": name, "condition": arm.condition, "level": arm.level, "rate": arm.rate, "copies": copies}


def _effects(
    pairs: Sequence[Pair], differences: pd.DataFrame, outcome: str, margin: float, notes: list[str]
) -> list[Effect]:
    """Group the per-seed differences by arm, role and benchmark."""
    treated = {pair.treated.cell.id: pair.treated for pair in pairs}
    records = differences.reset_index()
    records["arm"] = [treated[cell].arm for cell in records["cell"]]
    found = []
    for (arm, role, benchmark), group in records.groupby(["arm", "role", "benchmark"], sort=False, dropna=False):
        members = [treated[cell] for cell in group["cell"]]
        if undecided := int(group["undecided"].sum()):
            notes.append(f"{outcome} of {undecided} items of {benchmark} ({role}) is undecided; they were left out.")
        deltas = dict(zip((one.cell.id for one in members), group["value"] - group["baseline"], strict=True))
        found.append(
            Effect(
                arm=arm,
                role=role,
                benchmark=benchmark,
                outcome=outcome,
                copies=_mean(_copies(one) for one in members),
                n_items=round(group["n_items"].mean()),
                n_families=round(group["n_families"].mean()),
                chance=_chance(members, benchmark) if outcome == ACCURACY else math.nan,
                parse_rate=float(group["parse_rate"].mean()),
                baseline_parse_rate=float(group["baseline_parse_rate"].mean()),
                value=float(group["value"].mean()),
                baseline=float(group["baseline"].mean()),
                deltas=deltas,
                estimate=over_seeds(list(deltas.values())),
                equivalence=equivalence_p(list(deltas.values()), margin) if outcome == ACCURACY else math.nan,
            )
        )
    return _adjusted(sorted(found, key=_order([pair.treated.arm for pair in pairs])))


def _adjusted(effects: list[Effect]) -> list[Effect]:
    """Add Holm's p over the declared contrasts: all effects but those on general benchmarks, which are controls."""
    declared = [i for i, effect in enumerate(effects) if effect.role != GENERAL]
    for index, p in zip(declared, holm([effects[i].estimate.p for i in declared]), strict=True):
        effects[index] = replace(effects[index], holm=p)
    return effects


def _order(arms: Iterable[Arm]) -> "_Order":
    return _Order(list(arms))


class _Order:
    """Sort key: benchmarks, setups and conditions as launched, then dose, then role."""

    def __init__(self, arms: list[Arm]) -> None:
        lines = dict.fromkeys((arm.split_benchmark, arm.setup, arm.condition, arm.level) for arm in arms)
        self.place = {line: index for index, line in enumerate(lines)}

    def __call__(self, effect: Effect) -> tuple[int, float, float, int, bool, str]:
        arm = effect.arm
        place = self.place[arm.split_benchmark, arm.setup, arm.condition, arm.level]
        role = ROLES.index(effect.role) if effect.role in ROLES else len(ROLES)
        fresh = effect.benchmark != arm.split_benchmark
        return place, arm.rate, effect.copies, role, fresh, effect.benchmark


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


def _baselines(clean: Sequence[LoadedCell], items: pd.DataFrame, outcome: str) -> list[Baseline]:
    """The clean cells' own results, on all seen items rather than covered ones."""
    cells = {one.cell.id: one for one in clean}
    decided = items[items["cell"].isin(list(cells)) & items[outcome].notna()]
    by = ["cell", "role", "benchmark"]
    means = family_means(decided, by, [outcome])
    grouped = decided.groupby(by, sort=False, observed=True)
    means["parse_rate"], means["n_items"] = grouped["parse_rate"].mean(), grouped.size()
    records = means.reset_index()
    records["setup"] = [cells[cell].arm.setup for cell in records["cell"]]
    records["split"] = [cells[cell].arm.split_benchmark for cell in records["cell"]]
    found = []
    for (split, setup, role, name), group in records.groupby(["split", "setup", "role", "benchmark"], sort=False):
        members = [cells[cell] for cell in group["cell"]]
        seeds = (one.config.seed for one in members)
        per_seed = tuple(sorted(zip(seeds, (float(value) for value in group[outcome]), strict=True)))
        chance = _chance(members, name) if outcome == ACCURACY else math.nan
        rate, n_items = float(group["parse_rate"].mean()), round(group["n_items"].mean())
        found.append(Baseline(setup, split, role, name, outcome, per_seed, rate, chance, n_items))
    return sorted(found, key=lambda one: (one.split_benchmark, one.setup, ROLES.index(one.role)))


def _mixture_notes(pairs: Sequence[Pair]) -> list[str]:
    """What a reader should know of the mixtures: arms in different slots, clean rows near a benchmark item."""
    notes = []
    slots: dict[tuple[object, ...], set[str]] = defaultdict(set)
    for pair in pairs:
        arm, metrics = pair.treated.arm, pair.treated.metrics
        if "slots_sha256" in metrics:
            slots[pair.clean.cell.id, arm.rate, arm.copies_setting].add(metrics["slots_sha256"])
    if differing := sum(len(found) > 1 for found in slots.values()):
        notes.append(f"In {differing} cases arms of the same seed and dose replaced different slots of the mixture.")
    near = max((len(pair.clean.metrics.get("near_benchmark") or []) for pair in pairs), default=0)
    if near:
        notes.append(f"Up to {near} clean rows of a mixture are themselves near a benchmark item, in every arm alike.")
    return notes


def _copies(one: LoadedCell) -> float:
    """Inserted rows per covered item of a cell; NaN where the cell doesn't say."""
    inserted, covered = one.metrics.get("inserted_rows"), one.metrics.get("covered_items")
    return inserted / covered if inserted and covered else math.nan


def _chance(members: Sequence[LoadedCell], benchmark: str) -> float:
    return _mean(float((one.metrics.get("chance") or {}).get(benchmark, math.nan)) for one in members)


def _mean(values: Iterable[float]) -> float:
    known = [value for value in values if not math.isnan(value)]
    return sum(known) / len(known) if known else math.nan
