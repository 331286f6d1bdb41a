"""``python -m softcontam.run``: one cell or a sweep, then its report.

Hydra composes; every composed cell is checked and frozen to disk; the cells that are not done are launched; the
report is made from the store. Nothing is run before all of the sweep is known to be well-formed.
"""

from __future__ import annotations

import json
import shlex
import sys
import time
from collections.abc import Sequence
from dataclasses import asdict
from typing import TYPE_CHECKING, Any

import hydra
from hydra.core.hydra_config import HydraConfig
from hydra.types import RunMode
from omegaconf import DictConfig, OmegaConf
from rich.console import Console

from softcontam.arms import lay_out
from softcontam.config import AnalysisConfig, Config, conf_dir, resolve
from softcontam.environment import git_revision
from softcontam.errors import ConfigError, SoftcontamError
from softcontam.inputs import input_hashes
from softcontam.launch import Finished, launch
from softcontam.reporting.matching import MatchedArm, terminal_matching
from softcontam.reporting.single import cell_table
from softcontam.sandbox import working
from softcontam.store import Cell, Store

if TYPE_CHECKING:
    from softcontam.analysis.planned import PlannedCell

console = Console(width=None if sys.stdout.isatty() else 110)


class _Composed:
    """The cells that Hydra composed, in order, each once."""

    def __init__(self) -> None:
        self.cells: dict[str, Cell] = {}
        self.config: Config | None = None
        self.problems: list[str] = []
        self.overrides: list[str] = []
        self.sweep = False
        self.matched: dict[str, MatchedArm] = {}
        self.configs: dict[str, Config] = {}
        self.planned: list[PlannedCell] = []

    def add(self, composed: DictConfig) -> None:
        """Check one composed cell and freeze it, or note what is wrong with it."""
        try:
            if self.config is None:
                self.overrides = list(HydraConfig.get().overrides.task)
                self.sweep = HydraConfig.get().mode == RunMode.MULTIRUN
            OmegaConf.resolve(composed)
            config = resolve(composed)
            cell = Store(config.paths.runs).freeze(config, input_hashes(config))
            if not cell.done:
                self._try(config)
        except SoftcontamError as error:
            self._note(str(error))
            return
        except OSError as error:
            self._note(f"paths.runs={composed.paths.runs} cannot be written ({error}). Choose another folder.")
            return
        self.config = self.config or config
        self.cells.setdefault(cell.id, cell)
        self.configs.setdefault(cell.id, config)

    def _try(self, config: Config) -> None:
        """Go through all that can be gone through without the model: layout, rows, matching, sandbox."""
        # slow to import, and not needed by a launch with nothing to do
        from softcontam.analysis.planned import planned_cell
        from softcontam.assemble import chat_of, choose_rows, estimated_matching

        arm = lay_out(config)
        self.planned.append(planned_cell(config, arm))
        if config.eval.samples and any(one.benchmark.submission for one in arm.item_sets):
            working(config.sandbox.backend, config.sandbox.allow_unsafe)
        chat = chat_of(json.dumps(asdict(config.model)))
        chosen = choose_rows(config, arm, chat)
        if chosen is not None:
            matched = MatchedArm(config, chosen.copies, estimated_matching(config, arm, chat, chosen))
            self.matched.setdefault(matched.key, matched)

    def _note(self, problem: str) -> None:
        if problem not in self.problems:
            self.problems.append(problem)


def compose() -> _Composed:
    """Let Hydra read the command line and compose each cell of it.

    Raises:
        SystemExit: Hydra found the command line wanting, or only had to show something (``--help``, ``--cfg``).
        ConfigError: cells that cannot be run as asked for, all of them named.
    """
    composed = _Composed()

    @hydra.main(config_path=str(conf_dir()), config_name="config", version_base="1.3")
    def freeze(config: DictConfig) -> None:
        composed.add(config)

    freeze()
    if composed.problems:
        raise ConfigError("\n".join(composed.problems))
    if composed.config is None:
        raise SystemExit(0)
    return composed


class _Progress:
    """Prints one line per finished cell: k of n, what it was, how long it took, time left."""

    def __init__(self, total: int) -> None:
        self.total, self.finished, self.begun = total, 0, time.monotonic()

    def __call__(self, done: Finished, workers: int) -> None:
        self.finished += 1
        elapsed = time.monotonic() - self.begun
        left = elapsed / self.finished * (self.total - self.finished)
        try:
            config = done.cell.config
            level = f" {config.condition.level}" if config.condition.level else ""
            what = f"{config.condition.label}{level} rate {config.mixture.rate:g} seed {config.seed}"
        except SoftcontamError:
            what = "(config cannot be read)"
        state = "done" if done.error is None else f"[red]FAILED[/red] {done.error}"
        _say(
            f"cell {self.finished} of {self.total}  {done.cell.id}  {what}  {done.seconds:.1f} s  {state}"
            f"  (about {left / 60:.1f} min left)"
        )


def run(composed: _Composed) -> int:
    """Launch what is not done, write the report, print the table; returns the exit code."""
    config = composed.config
    assert config is not None
    cells: Sequence[Cell] = list(composed.cells.values())
    store = Store(config.paths.runs)
    members = list(cells) if composed.sweep else store.joined(config.experiment, cells)
    command = shlex.join(["python", "-m", "softcontam.run", *sys.argv[1:]])
    todo = sum(not cell.done for cell in cells)
    details = {
        "command": command,
        "revision": git_revision(),
        "overrides": composed.overrides,
        **store.history(config.experiment, members, _stated(config, composed.sweep)),
    }
    store.write_sweep(config.experiment, members, details)
    _say(f"{config.experiment}: {len(cells)} cells, {len(cells) - todo} done before, {todo} to run, in {store.runs}")
    if composed.matched:
        console.print(terminal_matching(list(composed.matched.values())))
    if composed.planned and composed.sweep:
        from softcontam.power import planned_power

        table = planned_power(composed.planned, list(composed.configs.values()), store)
        if table is not None:
            console.print(table)
    finished = launch(cells, config.cluster, _Progress(todo))
    failed = [record for record in finished if record.error is not None]
    if any(cell.done for cell in cells):
        _show(store, config, cells, composed.sweep)
    if failed:
        _say(f"[red]{len(failed)} of {len(cells)} cells failed[/red]; launch again to retry them")
    return 1 if failed else 0


def _stated(config: Config, sweep: bool) -> dict[str, Any] | None:
    """What a launch states of its analysis; a single cell that says nothing of it leaves what was stated."""
    if not sweep and config.analysis == AnalysisConfig():
        return None
    return asdict(config.analysis)


def _show(store: Store, config: Config, cells: Sequence[Cell], sweep: bool) -> None:
    """A sweep's report and effect table, or the figures of a single cell."""
    if not sweep:
        console.print(cell_table(cells[0]))
        _say(f"contrast with the clean arm: python -m softcontam.report exp={config.experiment}")
        return
    from softcontam.report import write_report
    from softcontam.reporting.terminal import terminal_table

    report = write_report(store, config.experiment, config.paths.reports)
    console.print(terminal_table(report.effects))
    _say(f"report: {report.html}")


def _say(text: str) -> None:
    """Print one line, never broken or coloured by content."""
    console.print(text, highlight=False, soft_wrap=True)


def main() -> None:
    """Entry point: exit code 0 when all cells are done, 1 when some failed, 2 for a bad request, 130 for Ctrl-C."""
    try:
        sys.exit(run(compose()))
    except SoftcontamError as error:
        Console(stderr=True).print(f"[red]error:[/red] {error}", highlight=False, soft_wrap=True)
        sys.exit(2)
    except KeyboardInterrupt:
        Console(stderr=True).print("interrupted: done cells are kept, launch again to go on")
        sys.exit(130)


if __name__ == "__main__":
    main()
