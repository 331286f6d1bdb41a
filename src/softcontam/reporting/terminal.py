"""A sweep's effects as a compact table for the terminal."""

from __future__ import annotations

from collections.abc import Sequence

from rich.box import SIMPLE_HEAD
from rich.markup import escape
from rich.table import Table

from softcontam.analysis.effects import SweepEffects
from softcontam.analysis.items import HELD_OUT, RELATED, SEEN
from softcontam.analysis.pairing import Arm
from softcontam.analysis.records import Effect
from softcontam.reporting import wording
from softcontam.reporting.verdicts import sentence, verdict_of


def terminal_table(measured: SweepEffects) -> Table:
    """The effects as a compact table: one line per arm, each change with its interval; below, the declared verdicts."""
    unit = wording.unit_of(measured.primary)
    by_arm: dict[Arm, list[Effect]] = {}
    for effect in measured.of(measured.primary):
        by_arm.setdefault(effect.arm, []).append(effect)
    title = (
        f"{measured.experiment}: change in {unit.outcome} from the clean arm, {unit.noun} [95 % interval over seeds]"
    )
    table = Table(title=escape(title), title_justify="left", box=SIMPLE_HEAD, pad_edge=False, collapse_padding=True)
    several = len({arm.split_benchmark for arm in by_arm}) > 1 or any(arm.setup for arm in by_arm)
    for name in (*(["benchmark"] if several else []), "condition", "level"):
        table.add_column(name, no_wrap=name == "condition")
    for name in ("rate", "copies"):
        table.add_column(name, justify="right")
    for name in ("Δ seen", "Δ held-out", "Δ related"):
        table.add_column(name, justify="right", min_width=12, overflow="fold")
    for arm, effects in by_arm.items():
        label = [f"{arm.split_benchmark}{f' ({arm.setup})' if arm.setup else ''}"] if several else []
        dose = (wording.rate(arm.rate), wording.copies(effects[0].copies))
        changes = (_changes(effects, role) for role in (SEEN, HELD_OUT, RELATED))
        table.add_row(*label, arm.condition, arm.level or "–", *dose, *changes)
    verdicts = [f"{verdict_of(one)}: {sentence(one, measured.declaration.late)}" for one in measured.declared]
    if verdicts:
        table.caption, table.caption_justify = escape("\n".join(verdicts)), "left"
    return table


def _changes(effects: Sequence[Effect], role: str) -> str:
    """The changes of one arm in one role; several benchmarks stand below each other with their names."""
    unit = wording.unit_of(effects[0].outcome)
    members = [one for one in effects if one.role == role]
    lines = []
    for one in members:
        name = f"{one.benchmark} " if len(members) > 1 else ""
        bounds = wording.interval(one.estimate, unit).replace(", ", ",") if one.estimate.n > 1 else "(1 seed)"
        lines.append(f"{name}{wording.number(one.estimate.mean, unit, signed=True)} {bounds}")
    return escape("\n".join(lines)) or "–"
