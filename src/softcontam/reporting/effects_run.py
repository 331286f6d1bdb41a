"""A sweep's effects as one run of the tracker: change from the clean arm, which no run of a single cell can hold."""

from __future__ import annotations

import io
import math
import re
from collections import defaultdict
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pandas as pd

from softcontam.analysis.effects import SweepEffects
from softcontam.analysis.frames import contrasts_frame, effects_frame
from softcontam.analysis.records import Effect
from softcontam.reporting.blocks import Figure
from softcontam.reporting.drawing import Drawing
from softcontam.reporting.page import page
from softcontam.reporting.tracking import role_key, wandb_run

JOB_TYPE = "report"
"""The ``job_type`` of a run that holds effects, beside the arms."""

EFFECTS, CONTRASTS = "effects", "contrasts"
"""Keys of the tables of effects and of contrasts between roles."""

RATE, COPIES = "dose/rate", "dose/copies"
"""Keys of the two doses, of which one is the x axis of a sweep's dose-response."""

_DELTA, _LOW, _HIGH = "delta", "delta_low", "delta_high"


@dataclass(frozen=True)
class EffectCurves:
    """Changes from the clean arm by dose, on the primary outcome, in its unit (fractions or nats per token).

    ``x`` is the key of the dose. Each of ``points`` holds one dose under ``x`` and, for every arm that has it,
    ``delta/<role>/<arm>``, with the bounds of its 95 % t interval under ``delta_low/`` and ``delta_high/`` where there
    are any.
    """

    x: str
    points: list[dict[str, float]]

    def lines(self) -> dict[str, list[str]]:
        """The keys of the changes by role, roles and arms in the order of the report."""
        found: dict[str, list[str]] = defaultdict(list)
        for key in dict.fromkeys(key for point in self.points for key in point):
            if key.startswith(f"{_DELTA}/"):
                found[key.removeprefix(f"{_DELTA}/").rpartition("/")[0]].append(key)
        return dict(found)


def effect_curves(measured: SweepEffects) -> EffectCurves:
    """The curves of a sweep; against copies per item where they vary at one rate, else against the rate."""
    effects = measured.of(measured.primary)
    by_copies = len({one.arm.rate for one in effects}) == 1 and len({one.arm.copies_setting for one in effects}) > 1
    points: dict[float, dict[str, float]] = defaultdict(dict)
    for one in effects:
        dose = one.copies if by_copies else one.arm.rate
        if math.isnan(dose):
            continue
        name = f"{role_key(one.arm.split_benchmark, one.benchmark, one.role)}/{_line(measured, one, by_copies)}"
        bounds = {_DELTA: one.estimate.mean, _LOW: one.estimate.low, _HIGH: one.estimate.high}
        points[round(dose, 6)].update({f"{kind}/{name}": value for kind, value in bounds.items() if value == value})
    x = COPIES if by_copies else RATE
    return EffectCurves(x, [{x: dose, **points[dose]} for dose in sorted(points)])


def effect_table(measured: SweepEffects) -> pd.DataFrame:
    """All effects as one table: the columns of ``effects.csv``, the outcome's own two called value and baseline."""
    frames = []
    for outcome in measured.outcomes:
        names = {outcome: "value", f"baseline_{outcome}": "baseline"}
        frame = effects_frame(measured, outcome).rename(columns=names)
        frame.insert(0, "outcome", outcome)
        frames.append(frame)
    known = [frame.dropna(axis="columns", how="all") for frame in frames if len(frame)]
    return pd.concat(known, ignore_index=True) if known else pd.DataFrame()


def effect_figures(measured: SweepEffects) -> dict[str, Drawing]:
    """The figures that stand on the report's page, by their key ``figures/<name>``."""
    return {
        f"figures/{Path(one.name).stem.removeprefix('figure_')}": one.drawing
        for one in page(measured)
        if isinstance(one, Figure)
    }


def log_effects(measured: SweepEffects, project: str, entity: str | None, mode: str, folder: Path) -> None:
    """Log a sweep's effects as a run of their own: curves by dose, tables, figures.

    Args:
        mode: ``online`` or ``offline``.
        folder: the run's files go to ``<folder>/wandb/``.
    """
    import wandb
    from PIL import Image

    curves = effect_curves(measured)
    with wandb_run(
        project,
        entity,
        mode,
        folder,
        group=measured.experiment,
        job_type=JOB_TYPE,
        name=f"{measured.experiment}: change from clean",
        tags=[JOB_TYPE],
        config={
            "arm": JOB_TYPE,
            "arm_at_dose": JOB_TYPE,
            "arm_in_setup": JOB_TYPE,
            "outcome": measured.primary,
            "seeds": len({one.config.seed for one in measured.cells.done}),
            "command": measured.cells.record.get("command"),
            "revision": measured.cells.record.get("revision"),
        },
    ) as run:
        run.define_metric(curves.x, hidden=True)
        run.define_metric(f"{_DELTA}/*", step_metric=curves.x)
        for bound in (_LOW, _HIGH):
            run.define_metric(f"{bound}/*", step_metric=curves.x, hidden=True)
        for point in curves.points:
            run.log(point)
        tables = {EFFECTS: effect_table(measured), CONTRASTS: contrasts_frame(measured)}
        logged: dict[str, Any] = {
            name: wandb.Table(columns=list(frame.columns), data=_plain(frame))
            for name, frame in tables.items()
            if len(frame)
        }
        for name, drawing in effect_figures(measured).items():
            logged[name] = wandb.Image(Image.open(io.BytesIO(drawing.png())))
        run.log(logged)


def logged_media(measured: SweepEffects) -> tuple[list[str], list[str]]:
    """The keys of the tables and of the figures that :func:`log_effects` logs."""
    tables = {EFFECTS: effect_table(measured), CONTRASTS: contrasts_frame(measured)}
    return [name for name, frame in tables.items() if len(frame)], list(effect_figures(measured))


def _plain(frame: pd.DataFrame) -> list[list[Any]]:
    """The rows of a table with None for what is missing."""
    return list(frame.astype(object).where(frame.notna(), None).to_numpy().tolist())


def _line(measured: SweepEffects, effect: Effect, by_copies: bool) -> str:
    """What one line joins: arms that differ in the dose on the x axis only. wandb reads a dot as a nested key."""
    arm = effect.arm
    name = arm.condition + (f"-{arm.level}" if arm.level else "")
    if not by_copies and arm.copies_setting is not None:
        name += f"-c{arm.copies_setting}"
    if len({one.arm.split_benchmark for one in measured.effects}) > 1:
        name += f"-{arm.split_benchmark}"
    if arm.setup:
        name += f"-{arm.setup}"
    return re.sub(r"[^\w-]+", "_", name)
