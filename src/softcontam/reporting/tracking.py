"""Mirrors a cell to an experiment tracker. Our own files stay the truth; one attempt is one run.

What a run is called and which keys it has is decided here only: the dashboards take their keys from these functions.
"""

from __future__ import annotations

import contextlib
import logging
import math
import os
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import asdict
from pathlib import Path
from typing import Any, Protocol

import pandas as pd

from softcontam.analysis.items import HELD_OUT, SEEN
from softcontam.config import Config
from softcontam.jsonl import read_jsonl
from softcontam.store import Cell

log = logging.getLogger(__name__)

STEP = "train/step"
"""The optimizer step, on the x axis of every training curve."""

OUTCOME_ROWS = 100_000
"""Rows of the outcomes table at most: wandb cuts a table at 200,000 rows and would say so in a log that is silent."""

_NOT_CURVES = ("step", "epoch")
_CLOSING = "train_runtime"  # the Trainer's last record holds totals, not a point of a curve


class Tracker(Protocol):
    """What a cell tells its tracker."""

    def record(self, line: dict[str, Any]) -> None:
        """Take a record of the training log while training goes on."""

    def finish(self, log: list[dict[str, Any]], metrics: dict[str, Any], outcomes: pd.DataFrame) -> None:
        """Hand over the whole training log, the final metrics and the outcomes of a cell that ran to its end."""


class NoTracker:
    """Keeps nothing."""

    def record(self, line: dict[str, Any]) -> None:
        """Do nothing."""

    def finish(self, log: list[dict[str, Any]], metrics: dict[str, Any], outcomes: pd.DataFrame) -> None:
        """Do nothing."""


class WandbTracker:
    """One wandb run: curves against the optimizer step, final figures, outcomes as a table."""

    def __init__(self, run: Any, config: Config) -> None:
        self.run, self.config, self.recorded = run, config, 0
        run.define_metric(STEP, hidden=True)
        run.define_metric("train/*", step_metric=STEP)

    def record(self, line: dict[str, Any]) -> None:
        """Log a record of the training log at its step, so that a run can be watched."""
        self.recorded += 1
        for step, curves in curves_of([line]):
            self.run.log(curves, step=step)

    def finish(self, log: list[dict[str, Any]], metrics: dict[str, Any], outcomes: pd.DataFrame) -> None:
        """Log the records of the training log that were not logged yet, then the final figures and the outcomes.

        The figures by role are logged, not only put into the summary: wandb draws its default panels from what is
        logged, and a figure that is logged once becomes a bar for each run.
        """
        import wandb

        for step, curves in curves_of(log[self.recorded :]):
            self.run.log(curves, step=step)
        self.run.summary.update(totals_of(log, metrics))
        kept = outcomes_within(outcomes, OUTCOME_ROWS)
        plain = kept.astype(object).where(kept.notna(), None)
        table = wandb.Table(columns=list(plain.columns), data=plain.to_numpy().tolist())
        self.run.log({**figures_of(self.config, metrics), "outcomes": table})


def arm_name(config: Config) -> str:
    """The condition with its level: ``semd_synthetic-paraphrase``. It is the ``job_type`` of a run."""
    level = config.condition.level
    return config.condition.label + (f"-{level}" if level else "")


def arm_at_dose(config: Config) -> str:
    """The arm with its dose, ``semd_synthetic-paraphrase r0.05``, and ``c4`` where copies per item are fixed."""
    mixture = config.mixture
    dose = "" if config.condition.kind == "clean" else f" r{mixture.rate:g}"
    return arm_name(config) + dose + (f" c{mixture.copies}" if dose and mixture.copies is not None else "")


def arm_in_setup(config: Config) -> str:
    """The arm at its dose with benchmark, base model, recipe and rows, for sweeps over several of these."""
    mixture = config.mixture
    setup = config.benchmark.name, config.model.name, config.train.recipe, f"{mixture.n_rows} rows {mixture.placement}"
    return " | ".join([arm_at_dose(config), *setup])


def run_name(config: Config, attempt: int) -> str:
    """The name of an attempt's run: arm, dose and seed; from the second attempt on also its number."""
    return f"{arm_at_dose(config)} s{config.seed}" + (f" #{attempt}" if attempt > 1 else "")


def run_tags(config: Config) -> list[str]:
    """Benchmark, base model, recipe and kind of inserted row, for filtering in the list of runs."""
    names = config.benchmark.name, config.model.name, config.train.recipe, config.condition.kind
    return [name[:64] for name in dict.fromkeys(names)]  # wandb refuses longer tags


def run_config(config: Config, cell_id: str) -> dict[str, Any]:
    """The resolved config, and beside it the settings that a sweep varies as flat keys to group and filter by.

    ``rate`` and ``copies`` of the clean arm are 0, so that it stands at the left of a dose axis.
    """
    clean = config.condition.kind == "clean"
    return {
        "cell": cell_id,
        "arm": arm_name(config),
        "arm_at_dose": arm_at_dose(config),
        "arm_in_setup": arm_in_setup(config),
        "kind": config.condition.kind,
        "level": config.condition.level,
        "rate": 0.0 if clean else config.mixture.rate,
        "copies": 0 if clean else config.mixture.copies,
        "placement": config.mixture.placement,
        "split_benchmark": config.benchmark.name,
        "base_model": config.model.name,
        "recipe": config.train.recipe,
        **asdict(config),
    }


def role_key(split_benchmark: str, benchmark: str, role: str) -> str:
    """What the figures of a benchmark in a role begin with: ``seen``, ``held_out``, ``related/<benchmark>``.

    Only the benchmark that was split is left unnamed; others (fresh held-out items too) are named.
    """
    split = benchmark == split_benchmark and role in (SEEN, HELD_OUT)
    return role if split else f"{role}/{benchmark}"


def figures_of(config: Config, metrics: Mapping[str, Any]) -> dict[str, float]:
    """The final figures by role (``seen/accuracy``, ``related/<benchmark>/parse_rate``); undecided ones left out."""
    found = {}
    for name, figures in metrics["roles"].items():
        benchmark, _, role = name.rpartition("/")
        for key, value in figures.items():
            if isinstance(value, int | float) and not math.isnan(value):
                found[f"{role_key(config.benchmark.name, benchmark, role)}/{key}"] = value
    return found


def totals_of(training: Iterable[Mapping[str, Any]], metrics: Mapping[str, Any]) -> dict[str, Any]:
    """Figures of the whole run for its summary: those of ``metrics.json`` that are one value, training totals.

    The figures by role stand there by the names that ``metrics.json`` has for them (``<benchmark>/<role>/<figure>``).
    """
    totals = {key: value for key, value in metrics.items() if isinstance(value, int | float | str)}
    for name, figures in metrics["roles"].items():
        totals.update({f"{name}/{key}": value for key, value in figures.items()})
    for record in training:
        if _CLOSING in record:
            totals.update({f"train/{key}": value for key, value in record.items() if key not in _NOT_CURVES})
    return totals


def curves_of(training: Iterable[Mapping[str, Any]]) -> Iterator[tuple[int, dict[str, float]]]:
    """The points of the training curves, (optimizer step, values), steps ascending: wandb drops what goes back."""
    for record in sorted(training, key=lambda one: int(one["step"])):
        if _CLOSING not in record:
            curves = {f"train/{key}": value for key, value in record.items() if key not in _NOT_CURVES}
            yield int(record["step"]), {**curves, STEP: int(record["step"])}


def training_log(cell: Cell) -> list[dict[str, Any]]:
    """The records of a done cell's training log; none where there is no such file."""
    path = cell.folder / "train_log.jsonl"
    return [record for _, record in read_jsonl(path, "Launch the cell again.")] if path.exists() else []


def outcomes_within(outcomes: pd.DataFrame, limit: int) -> pd.DataFrame:
    """At most ``limit`` outcomes: the first samples of every item rather than every sample of the first items."""
    if len(outcomes) <= limit:
        return outcomes
    by_sample = outcomes.sort_values("sample", kind="stable")
    log.warning(
        "the tracker's table holds %d of %d outcomes, first samples first; outcomes.parquet has them all",
        limit,
        len(outcomes),
    )
    return by_sample.head(limit).sort_index()


@contextlib.contextmanager
def tracked(config: Config, cell: Cell) -> Iterator[Tracker]:
    """The tracker of one attempt at a cell, always closed: as failed when the body raises.

    For wandb: the config goes in at init, ``group`` is the experiment and ``job_type`` the arm. The mode is offline
    unless ``tracker.mode`` or ``WANDB_MODE`` says otherwise; files go into the cell's folder.
    """
    if config.tracker.name == "none":
        yield NoTracker()
        return
    with wandb_run(
        config.tracker.project,
        config.tracker.entity,
        os.environ.get("WANDB_MODE", config.tracker.mode),
        cell.folder,
        group=config.experiment,
        job_type=arm_name(config),
        name=run_name(config, cell.status.get("attempts", 1)),
        tags=run_tags(config),
        config=run_config(config, cell.id),
    ) as run:
        yield WandbTracker(run, config)


@contextlib.contextmanager
def wandb_run(project: str, entity: str | None, mode: str, folder: Path, **described: Any) -> Iterator[Any]:
    """A wandb run in ``<folder>/wandb/``, always closed: as failed when the body raises."""
    import wandb

    run = wandb.init(
        project=project,
        entity=entity,
        mode=mode,  # type: ignore[arg-type]
        dir=str(folder),
        reinit="finish_previous",
        settings=wandb.Settings(silent=True, console="off"),
        **described,
    )
    try:
        yield run
    except BaseException:
        run.finish(exit_code=1)
        raise
    run.finish()
