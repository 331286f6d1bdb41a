"""The contrasts that a sweep plans, before it is run: how many items and seeds, and what clean runs say of their noise.

A planned contrast is that of an arm with the clean arm on one benchmark in one role. Its items are counted from the
laid-out arms (of the seen half those that get a row), its seeds from the sweep, and its noise comes from clean runs in
the store where there are two or more, else from :data:`ASSUMED`.
"""

from __future__ import annotations

import math
from collections import defaultdict
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path
from statistics import fmean
from typing import TYPE_CHECKING, Any

import pandas as pd
import yaml

from softcontam.analysis.effects import MARGIN
from softcontam.analysis.items import ROLES, SEEN, item_table, read_outcomes
from softcontam.analysis.pairing import CLEAN, clean_twin, setups
from softcontam.analysis.power import (
    Design,
    Noise,
    detectable,
    detectable_at_most,
    equivalence_families,
    families_needed,
    noise,
    plausible_discordance,
    seeds_needed,
)
from softcontam.config import Config, ModelConfig, SeedsConfig
from softcontam.errors import SoftcontamError
from softcontam.store import Cell, Store, identity

if TYPE_CHECKING:
    from softcontam.arms import Arm

TARGET = 0.05
"""The effect on accuracy, as a fraction, that a plan asks seeds and items for unless told otherwise."""

MOST_RUNS = 10
"""The newest clean runs that noise is estimated from: a launch does not wait for the whole store to be read."""

_Seeds = tuple[int | None, ...]
_YAML = getattr(yaml, "CSafeLoader", yaml.SafeLoader)


@dataclass(frozen=True)
class Assumed:
    """What stands in for noise that no clean runs tell of; ``given`` holds what the user states, by field of Design.

    ``difficulty_sd`` is the spread of item difficulties on the logit scale; with the base accuracy it gives the
    discordance (:func:`softcontam.analysis.power.plausible_discordance`). 1.5 to 2.5 is the plausible range.
    """

    base_accuracy: float = 0.5
    run_logit_sd: float = 0.15
    family_correlation: float = 0.5
    difficulty_sd: float = 2.0
    given: Mapping[str, float] = field(default_factory=dict)

    def design(self, families: int, family_size: float, seeds: int, found: Noise | None = None) -> Design:
        """A design from what is given, else what was found, else what is assumed."""
        base = self.given.get("base_accuracy", found.base_accuracy if found else self.base_accuracy)
        discordance = found.discordance if found else plausible_discordance(base, self.difficulty_sd)
        correlation = found.family_correlation if found else math.nan
        return Design(
            families=families,
            family_size=family_size,
            seeds=round(self.given.get("seeds", seeds)),
            base_accuracy=base,
            discordance=self.given.get("discordance", discordance),
            run_logit_sd=self.given.get("run_logit_sd", found.run_logit_sd if found else self.run_logit_sd),
            family_correlation=self.given.get(
                "family_correlation", self.family_correlation if math.isnan(correlation) else correlation
            ),
        )


ASSUMED = Assumed()
"""The documented defaults."""


@dataclass(frozen=True)
class ItemCount:
    """What a laid-out cell is evaluated on: items and families of one benchmark in one role, and chance there."""

    role: str
    benchmark: str
    items: int
    families: int
    chance: float


@dataclass(frozen=True)
class PlannedCell:
    """A cell's config and what it will be evaluated on; of the seen half only the items that get a row are counted."""

    config: Config
    counts: tuple[ItemCount, ...]


@dataclass(frozen=True)
class Planned:
    """A planned contrast with the clean arm on one benchmark in one role.

    ``doses`` names the doses whose seen items these are; it is empty in other roles, where items don't depend on the
    dose. ``chance`` is NaN where it isn't known, ``source`` says where the noise comes from, ``run_logit_sd_upper`` how
    large the spread between runs may well be by the ``clean_runs`` it was measured on (NaN and 0 where it was not).
    ``base_assumed``: the clean accuracy was neither measured nor given, so what is said of room is as good as that.
    Effects and margins are fractions, numbers of seeds and items None where none suffices.
    """

    role: str
    benchmark: str
    design: Design
    setup: str = ""
    doses: tuple[str, ...] = ()
    chance: float = math.nan
    source: str = "assumed"
    target: float = TARGET
    margin: float = MARGIN
    run_logit_sd_upper: float = math.nan
    clean_runs: int = 0
    base_assumed: bool = False

    @property
    def measurable(self) -> bool:
        """Whether there is any noise to plan with: clean runs that answer every item alike tell of none."""
        return self.design.discordance > 0

    @property
    def detectable(self) -> float:
        """The smallest detectable effect; NaN where there is no noise to plan with."""
        return detectable(self.design) if self.measurable else math.nan

    @property
    def detectable_at_most(self) -> float:
        """The same if the effect adds as much discordance as it can and runs differ as much as they may well do."""
        upper = self.design.run_logit_sd if math.isnan(self.run_logit_sd_upper) else self.run_logit_sd_upper
        return detectable_at_most(replace(self.design, run_logit_sd=upper)) if self.measurable else math.nan

    @property
    def seeds_needed(self) -> int | None:
        """Seeds at which the target can be detected on these items."""
        return seeds_needed(self.design, self.target) if self.measurable else None

    @property
    def families_needed(self) -> int | None:
        """Families of this size at which the target can be detected with these seeds."""
        return families_needed(self.design, self.target) if self.measurable else None

    @property
    def equivalence_families(self) -> int | None:
        """Families of this size at which equivalence within the margin is shown with these seeds, at 90 % power."""
        return equivalence_families(self.design, self.margin) if self.measurable else None

    @property
    def headroom(self) -> float:
        """How far accuracy can rise."""
        return 1 - self.design.base_accuracy

    @property
    def above_chance(self) -> float:
        """How far the clean arm stands above chance, which is as far as accuracy can fall; NaN without chance."""
        return self.design.base_accuracy - self.chance

    def items_of(self, families: int | None) -> int | None:
        """The items in that many families of this size."""
        return None if families is None else math.ceil(families * self.design.family_size - 1e-9)

    @property
    def warnings(self) -> list[str]:
        """What cannot be seen on this benchmark, whatever the number of items suggests."""
        if not self.measurable:
            return ["the clean runs answered every item alike: nothing to plan with"]
        return [f"{text}{self.if_assumed}" for text in self._told_of_room()]

    @property
    def if_assumed(self) -> str:
        """What a statement about room has to end with: the accuracy that it rests on, where that is assumed."""
        base = f"{100 * self.design.base_accuracy:g} %"
        return f" (if clean accuracy is {base}, which is assumed)" if self.base_assumed else ""

    def _told_of_room(self) -> list[str]:
        """What the distance to chance and to 100 % leaves no room for."""
        rise, fall = f"{100 * self.headroom:.1f}", f"{100 * self.above_chance:.1f}"
        gain, loss = self.detectable > self.headroom, self.detectable > self.above_chance
        if self.above_chance < self.margin:
            found = [f"the clean arm is near chance ({fall} points above it): an absent effect says little"]
            return [*found, f"a gain cannot be seen: accuracy can rise by {rise} points only"] if gain else found
        if gain and loss:
            return [f"nothing can be seen: accuracy can rise by {rise} points only, and is {fall} above chance"]
        if gain:
            return [f"a gain cannot be seen: accuracy can rise by {rise} points only"]
        return [f"a loss cannot be seen: the clean arm is {fall} points above chance only"] if loss else []


def planned_cell(config: Config, arm: Arm) -> PlannedCell:
    """Count the items of a laid-out cell; the clean arm covers no seen items, so it counts none of them."""
    counts = []
    for one in arm.item_sets:
        items = [item for item in one.items if one.role != SEEN or item.item_id in arm.plan.copies]
        if items:
            families = len({item.family for item in items})
            counts.append(ItemCount(one.role, one.benchmark.name, len(items), families, one.chance))
    return PlannedCell(config, tuple(counts))


def planned(
    cells: Sequence[PlannedCell],
    configs: Sequence[Config],
    store: Store | None = None,
    assumed: Assumed = ASSUMED,
    target: float = TARGET,
    margin: float | None = None,
) -> list[Planned]:
    """The contrasts with the clean arm that a sweep plans, setups in the order given, then roles as in a report.

    Args:
        cells: laid-out cells of the sweep, at least one for each seed and dose whose seen items are to be shown.
        configs: all cells of the sweep, done ones as well: they say how many seeds there are.
        store: where clean runs are looked for; None to look nowhere.
        margin: an equivalence margin in place of the one that the experiment declares (``analysis.margin``).

    Returns:
        An empty list where no arm beside the clean one is planned, or no output is sampled (``eval.samples=0``).
    """
    margin = configs[0].analysis.margin if margin is None else margin
    each = {id(config): config for config in (*configs, *(cell.config for cell in cells))}
    setup_of = dict(zip(each, setups(list(each.values())), strict=True))
    treated = [
        (setup_of[id(config)], config) for config in configs if config.condition.kind != CLEAN and config.eval.samples
    ]
    seeds: dict[tuple[str, str | None], set[_Seeds]] = defaultdict(set)
    for setup, config in treated:
        for dose in (_dose(config), None):
            seeds[setup, dose].add(_seeds(config))
    counted: dict[tuple[str, str, str, str | None], dict[_Seeds, ItemCount]] = defaultdict(dict)
    for cell in cells:
        setup = setup_of[id(cell.config)]
        for count in cell.counts:
            dose = _dose(cell.config) if count.role == SEEN else None
            if (setup, dose) in seeds:
                counted[setup, count.role, count.benchmark, dose][_seeds(cell.config)] = count
    order = dict(treated)
    runs = {} if store is None else clean_noise(store, order, {benchmark for _, _, benchmark, _ in counted})
    found: dict[tuple[object, ...], Planned] = {}
    for (setup, role, benchmark, dose), by_seed in counted.items():
        counts, measured = list(by_seed.values()), runs.get((setup, benchmark))
        families = fmean(count.families for count in counts)
        size = fmean(count.items for count in counts) / families
        noise_found = measured.noise if measured else None
        design = assumed.design(round(families), size, len(seeds[setup, dose]), noise_found)
        chance, source = fmean(count.chance for count in counts), _source(measured, assumed)
        spread = None if "run_logit_sd" in assumed.given else noise_found
        earlier = found.get((setup, role, benchmark, design))
        doses = (*(earlier.doses if earlier else ()), *([] if dose is None else [dose]))
        found[setup, role, benchmark, design] = Planned(
            *(role, benchmark, design, setup, doses, chance, source, target, margin),
            *((math.nan, 0) if spread is None else (spread.run_logit_sd_upper, spread.n_runs)),
            measured is None and "base_accuracy" not in assumed.given,
        )
    return sorted(found.values(), key=lambda one: (list(order).index(one.setup), _place(one.role)))


@dataclass(frozen=True)
class CleanNoise:
    """Noise found on clean runs; ``same`` says that these differ from the planned cells in their seeds only."""

    noise: Noise
    same: bool


def clean_noise(
    store: Store, setups: Mapping[str, Config], benchmarks: Iterable[str]
) -> dict[tuple[str, str], CleanNoise]:
    """What the store's clean runs say of each setup's noise on each benchmark, by setup and benchmark.

    Clean runs of the very setup come first. Where there are fewer than two, those of the same model on the same
    benchmark are taken, with whatever recipe the most of them share. A cell that cannot be read is passed over: its
    damage is the report's to tell of.
    """
    found: dict[tuple[str, str], CleanNoise] = {}
    wanted = list(benchmarks)
    loaded: dict[str, dict[str, list[tuple[Cell, Config]]]] = {}
    tables: dict[tuple[str, ...], pd.DataFrame] = {}
    for setup, config in setups.items():
        model = f"{config.model.path}@{config.model.revision}"
        if model not in loaded:
            loaded[model] = _clean_runs(store, config.model)
        groups, own = loaded[model], _setup_key(config)
        order = sorted(groups, key=lambda key: (key != own, -len(groups[key])))
        for key in order:
            members = groups[key]
            cells = [cell for cell, _ in members]
            ids = tuple(cell.id for cell in cells)
            if len(cells) < 2:
                continue
            if ids not in tables:
                tables[ids] = _items(cells)
            table = tables[ids]
            for benchmark in wanted:
                if (setup, benchmark) not in found:
                    one = noise(table[table["benchmark"] == benchmark]) if len(table) else None
                    if one is not None:
                        found[setup, benchmark] = CleanNoise(one, key == own)
            if all((setup, benchmark) in found for benchmark in wanted):
                break
    return found


def _clean_runs(store: Store, model: ModelConfig) -> dict[str, list[tuple[Cell, Config]]]:
    """The newest done clean cells of a model, one for each set of seeds, by their settings apart from seeds."""
    paths = [path for path in store.runs.glob("*/config.yaml") if _is_clean_run(path, model)]
    groups: dict[str, dict[_Seeds, tuple[Cell, Config]]] = defaultdict(dict)
    for path in sorted(paths, key=lambda path: path.stat().st_mtime, reverse=True)[:MOST_RUNS]:
        cell = store.cell(path.parent.name)
        try:
            if cell.done:
                config = cell.config
                groups[_setup_key(config)].setdefault(_seeds(config), (cell, config))
        except SoftcontamError:
            continue
    return {key: list(members.values()) for key, members in groups.items()}


def _is_clean_run(path: Path, model: ModelConfig) -> bool:
    """Whether a frozen config is that of a clean cell of this model, read without the schema, which takes longer."""
    try:
        text = path.read_text(encoding="utf-8", errors="replace")
        if f"kind: {CLEAN}" not in text:
            return False
        written: Any = yaml.load(text, Loader=_YAML)
        return bool(
            written["condition"]["kind"] == CLEAN
            and written["model"]["path"] == model.path
            and written["model"].get("revision") == model.revision
        )
    except (OSError, yaml.YAMLError, KeyError, TypeError, AttributeError):
        return False


def _items(cells: Sequence[Cell]) -> pd.DataFrame:
    """The item results of clean cells that can be read."""
    tables = []
    for cell in cells:
        try:
            tables.append(item_table(read_outcomes([cell])))
        except SoftcontamError:
            continue
    return pd.concat(tables, ignore_index=True) if tables else pd.DataFrame(columns=["benchmark"])


def _setup_key(config: Config) -> str:
    return identity(replace(clean_twin(config), seeds=SeedsConfig()))


def _seeds(config: Config) -> _Seeds:
    return config.seeds.split, config.seeds.mixture, config.seeds.training, config.seeds.sampling


def _dose(config: Config) -> str:
    """The dose in words: which items are covered depends on it and on the seeds."""
    copies = config.mixture.copies
    text = f"{100 * config.mixture.rate:g} %"
    if config.condition.ladder:
        return f"{text}, ladder"
    return text if copies is None else f"{text}, {copies} {'copy' if copies == 1 else 'copies'}"


def _source(measured: CleanNoise | None, assumed: Assumed) -> str:
    """Where a contrast's noise comes from, in words."""
    if measured is None:
        text = "assumed"
    else:
        text = f"measured, {measured.noise.n_runs} clean runs"
        text += "" if measured.same else ", other settings"
    return f"{text}, in part given" if set(assumed.given) - {"seeds"} else text


def _place(role: str) -> int:
    return ROLES.index(role) if role in ROLES else len(ROLES)
