"""Mirrors a cell to an experiment tracker. Our own files stay the truth; one attempt is one run."""

from __future__ import annotations

import contextlib
import os
from collections.abc import Iterator
from dataclasses import asdict
from typing import Any, Protocol

import pandas as pd

from softcontam.config import Config
from softcontam.store import Cell


class Tracker(Protocol):
    """What a cell tells its tracker."""

    def finish(self, log: list[dict[str, Any]], metrics: dict[str, Any], outcomes: pd.DataFrame) -> None:
        """Hand over the training curves, the final metrics and the outcomes of a cell that ran to its end."""


class NoTracker:
    """Keeps nothing."""

    def finish(self, log: list[dict[str, Any]], metrics: dict[str, Any], outcomes: pd.DataFrame) -> None:
        """Do nothing."""


class WandbTracker:
    """One wandb run: curves, final metrics as its summary, outcomes as a table."""

    def __init__(self, run: Any) -> None:
        self.run = run

    def finish(self, log: list[dict[str, Any]], metrics: dict[str, Any], outcomes: pd.DataFrame) -> None:
        """Log each record of the training log at its step, then summary and outcomes."""
        import wandb

        for record in log:
            curves = {f"train/{key}": value for key, value in record.items() if key not in ("step", "epoch")}
            self.run.log(curves, step=int(record["step"]))
        for name, figures in metrics["roles"].items():
            self.run.summary.update({f"{name}/{key}": value for key, value in figures.items()})
        self.run.summary.update({key: value for key, value in metrics.items() if isinstance(value, int | float | str)})
        plain = outcomes.astype(object).where(outcomes.notna(), None)
        self.run.log({"outcomes": wandb.Table(columns=list(plain.columns), data=plain.to_numpy().tolist())})


@contextlib.contextmanager
def tracked(config: Config, cell: Cell) -> Iterator[Tracker]:
    """The tracker of one attempt at a cell, always closed: as failed when the body raises.

    For wandb: the resolved config goes in at init, ``group`` is the experiment and ``job_type`` the condition. The
    mode is offline unless ``tracker.mode`` or ``WANDB_MODE`` says otherwise; files go into the cell's folder.
    """
    if config.tracker.name == "none":
        yield NoTracker()
        return
    import wandb

    level = config.condition.level
    run = wandb.init(
        project=config.tracker.project,
        entity=config.tracker.entity,
        group=config.experiment,
        job_type=config.condition.label + (f"_{level}" if level else ""),
        name=f"{cell.id}-{cell.status.get('attempts', 1)}",
        config={"cell": cell.id, **asdict(config)},
        mode=os.environ.get("WANDB_MODE", config.tracker.mode),  # type: ignore[arg-type]
        dir=str(cell.folder),
        reinit="finish_previous",
        settings=wandb.Settings(silent=True, console="off"),
    )
    try:
        yield WandbTracker(run)
    except BaseException:
        run.finish(exit_code=1)
        raise
    run.finish()
