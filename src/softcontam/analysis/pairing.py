"""A sweep's cells as pairs: each arm beside the clean cell that differs from it in the inserted rows only."""

from __future__ import annotations

import json
import shlex
from collections.abc import Iterator, Sequence
from dataclasses import asdict, dataclass, field, replace
from typing import Any

from softcontam.config import ConditionConfig, Config
from softcontam.errors import ArmMismatchError, StoreError
from softcontam.store import Cell, Store, identity

CLEAN = "clean"
MUST_MATCH = ("base_sha256", "n_rows", "steps")
"""Figures of ``metrics.json`` that an arm and its clean cell must share."""

_NOT_SETUP = ("experiment", "seed", "seeds", "condition", "tracker", "cluster", "analysis", "paths")
_NOT_COMPARED = (
    *("mixture.rate", "mixture.copies", "mixture.tolerance", "mixture.differs"),
    *("train.checkpoint_every_s", "model.note"),
)
_NAMING = ("model.name", "train.recipe", "mixture.pool.name", "mixture.n_rows")


@dataclass(frozen=True)
class Arm:
    """What is contrasted with the clean arm: a condition at a dose, within one benchmark and setup.

    ``setup`` names the settings that vary within the sweep beside condition, dose and seed (a second model or
    recipe); it is empty where nothing else varies.
    """

    setup: str
    split_benchmark: str
    condition: str
    level: str | None
    rate: float
    copies_setting: int | None


@dataclass(frozen=True)
class LoadedCell:
    """A done cell with its config and summary figures read once."""

    cell: Cell
    config: Config
    metrics: dict[str, Any]
    arm: Arm

    @property
    def is_clean(self) -> bool:
        """Whether nothing was inserted into this cell's mixture."""
        return self.arm.condition == CLEAN


@dataclass(frozen=True)
class Pair:
    """An arm's cell and its clean baseline: same seeds, clean rows, order and steps."""

    treated: LoadedCell
    clean: LoadedCell


@dataclass(frozen=True)
class Unfinished:
    """A cell of the sweep that isn't done. ``error`` is the first line of what stopped it, or empty."""

    cell_id: str
    arm: str
    seed: int | None
    state: str
    error: str


@dataclass(frozen=True)
class Missing:
    """An arm's cell without a clean baseline: it enters no figure until ``command`` has been run."""

    arm: Arm
    seed: int
    clean_id: str
    reason: str
    command: str


@dataclass(frozen=True)
class SweepCells:
    """What the store holds of a sweep."""

    record: dict[str, Any]
    done: list[LoadedCell]
    pairs: list[Pair]
    unfinished: list[Unfinished] = field(default_factory=list)
    missing: list[Missing] = field(default_factory=list)

    @property
    def from_table(self) -> bool:
        """Whether these are rows of a table from elsewhere, whose settings nobody knows, and no launched cells."""
        return not self.record.get("cells")

    @property
    def clean(self) -> list[LoadedCell]:
        """The clean cells: those of the sweep and those that served as a baseline from elsewhere in the store."""
        found = {one.cell.id: one for one in self.done if one.is_clean}
        found.update({pair.clean.cell.id: pair.clean for pair in self.pairs})
        return list(found.values())


def load_sweep(store: Store, experiment: str) -> SweepCells:
    """Read the latest launch of an experiment and pair each arm's cell with its clean baseline.

    Raises:
        StoreError: there is no such experiment, or one of its done cells cannot be read.
        ArmMismatchError: an arm and its clean cell differ in clean rows, number of rows or steps.
    """
    record = store.sweep(experiment)
    cells = [store.cell(cell_id) for cell_id in record["cells"]]
    finished = [cell for cell in cells if cell.done]
    configs = [cell.config for cell in finished]
    done = [
        LoadedCell(cell, config, _metrics(cell), _arm(config, setup))
        for cell, config, setup in zip(finished, configs, setups(configs), strict=True)
    ]
    sweep = SweepCells(record, done, [], [_unfinished(cell) for cell in cells if not cell.done])
    clean = {clean_twin_id(one.cell, one.config): one for one in done if one.is_clean}
    for one in done:
        if not one.is_clean:
            _pair(store, sweep, clean, one)
    return sweep


def setups(configs: Sequence[Config]) -> list[str]:
    """For each config the settings beside condition, dose and seed that tell it from others of its benchmark.

    Only as many settings as are needed to tell them apart are named, models and recipes first.
    """
    labels: list[tuple[str, ...]] = [()] * len(configs)
    flat = [setup_settings(config) for config in configs]
    for name in dict.fromkeys(config.benchmark.name for config in configs):
        members = [i for i, config in enumerate(configs) if config.benchmark.name == name]
        keys = sorted({key for i in members for key in flat[i]}, key=lambda key: (key not in _NAMING, key))
        for key in keys:
            refined = {i: (*labels[i], f"{key}={flat[i].get(key)}") for i in members}
            if len(set(refined.values())) > len({labels[i] for i in members}):
                for i in members:
                    labels[i] = refined[i]
    return [", ".join(label) for label in labels]


def clean_twin(config: Config) -> Config:
    """The config of the clean cell that differs from ``config`` in condition and dose only."""
    mixture = replace(config.mixture, rate=0.0, copies=None)
    return replace(config, condition=ConditionConfig(CLEAN), mixture=mixture)


def clean_twin_id(cell: Cell, config: Config) -> str:
    """The id under which the store holds, or would hold, the clean baseline of a cell."""
    path = cell.folder / "inputs.json"
    try:
        inputs: dict[str, str] = json.loads(path.read_text())
    except FileNotFoundError:
        inputs = {}
    except json.JSONDecodeError as error:
        raise StoreError(f"{path} is damaged ({error}). Delete the folder and launch again.") from error
    return identity(clean_twin(config), {key: value for key, value in inputs.items() if not key.startswith("bank:")})


def check_comparable(treated: LoadedCell, clean: LoadedCell) -> None:
    """Refuse a contrast of cells that differ in more than the inserted rows.

    Raises:
        ArmMismatchError: naming the figure that differs, or that one of the cells lacks.
    """
    for key in MUST_MATCH:
        ours, theirs = treated.metrics.get(key), clean.metrics.get(key)
        if ours is None or ours != theirs:
            raise ArmMismatchError(
                f"cells {treated.cell.id} ({treated.arm.condition}) and {clean.cell.id} (clean) cannot be contrasted: "
                f"{key} in metrics.json is {ours} and {theirs}. Arms must share clean rows, their order and the "
                f"number of steps. Delete both folders in {clean.cell.folder.parent} and launch the sweep again."
            )


def _pair(store: Store, sweep: SweepCells, clean: dict[str, LoadedCell], treated: LoadedCell) -> None:
    """Add the pair of ``treated`` to ``sweep``, or say there that its baseline is missing."""
    clean_id = clean_twin_id(treated.cell, treated.config)
    if clean_id not in clean:
        elsewhere = store.cell(clean_id)
        if not elsewhere.done:
            sweep.missing.append(_missing(sweep.record, treated, elsewhere))
            return
        config = elsewhere.config
        clean[clean_id] = LoadedCell(elsewhere, config, _metrics(elsewhere), _arm(config, treated.arm.setup))
    check_comparable(treated, clean[clean_id])
    sweep.pairs.append(Pair(treated, clean[clean_id]))


def _missing(record: dict[str, Any], treated: LoadedCell, clean: Cell) -> Missing:
    reason = f"its clean cell {clean.id} is {clean.status['state'] if clean.folder.exists() else 'not in the store'}"
    return Missing(treated.arm, treated.config.seed, clean.id, reason, _clean_command(record, treated.config))


def _clean_command(record: dict[str, Any], config: Config) -> str:
    """The launch that would run the clean twin: the sweep's own command with condition, dose and seed replaced."""
    words = shlex.split(record.get("command") or "")
    given = words[words.index("softcontam.run") + 1 :] if "softcontam.run" in words else record.get("overrides", [])
    replaced = ("condition", "mixture.rate", "mixture.copies", "seed", "hydra")
    kept = [
        text
        for text in given
        if not any((key := text.lstrip("+~").split("=")[0]) == name or key.startswith(f"{name}.") for name in replaced)
    ]
    if not any(text.lstrip("+").startswith("exp=") for text in kept):
        kept.insert(0, f"exp={record['experiment']}")
    return shlex.join(["python", "-m", "softcontam.run", *kept, "condition=clean", f"seed={config.seed}"])


def _metrics(cell: Cell) -> dict[str, Any]:
    try:
        return cell.metrics
    except (FileNotFoundError, json.JSONDecodeError) as error:
        raise StoreError(
            f"{cell.folder / 'metrics.json'} is missing or damaged ({error}). Delete the folder and launch again."
        ) from error


def _arm(config: Config, setup: str) -> Arm:
    mixture, condition = config.mixture, config.condition
    return Arm(setup, config.benchmark.name, condition.label, condition.level, mixture.rate, mixture.copies)


def _unfinished(cell: Cell) -> Unfinished:
    status = cell.status
    error = str(status.get("error", "")).strip().splitlines()
    try:
        config = cell.config
    except StoreError:
        return Unfinished(cell.id, "", None, status["state"], error[0] if error else "")
    level = f" {config.condition.level}" if config.condition.level else ""
    text = f"{config.benchmark.name}, {config.condition.label}{level}, rate {config.mixture.rate:g}"
    return Unfinished(cell.id, text, config.seed, status["state"], error[0] if error else "")


def setup_settings(config: Config) -> dict[str, str]:
    """The settings of a cell beside condition, dose, seed and paths, by their dotted names."""
    settings = {key: value for key, value in asdict(config).items() if key not in _NOT_SETUP}
    return {key: value for key, value in _leaves(settings, "") if key not in _NOT_COMPARED}


def _leaves(value: Any, prefix: str) -> Iterator[tuple[str, str]]:
    if isinstance(value, dict):
        for key, inner in value.items():
            yield from _leaves(inner, f"{prefix}.{key}" if prefix else str(key))
    else:
        yield prefix, json.dumps(value, default=str).strip('"')
