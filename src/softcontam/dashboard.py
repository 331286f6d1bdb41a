"""``python -m softcontam.dashboard project=NAME``: a saved wandb workspace and a report that compare conditions.

Without an account, or with ``spec=FILE``, what would be saved is written to a JSON file instead.
"""

from __future__ import annotations

import hashlib
import importlib.metadata
import json
import os
import sys
from collections.abc import Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any

from omegaconf import MISSING
from rich.console import Console

from softcontam.analysis.effects import SweepEffects, measure
from softcontam.analysis.pairing import LoadedCell
from softcontam.config import TrackerConfig
from softcontam.errors import ConfigError, SoftcontamError, StoreError
from softcontam.reporting.dashboards import contents, report, specification, wandb_workspaces, workspace
from softcontam.reporting.effects_run import effect_table, log_effects
from softcontam.reporting.tracking import tracked, training_log
from softcontam.settings import HELP, settings_of
from softcontam.store import Store, now, write_text

USAGE = (
    "Usage: python -m softcontam.dashboard project=NAME [entity=NAME] [exp=NAME] [paths.runs=DIR] [spec=FILE] "
    "[effects=true] [mirror=false]"
)

FOLDER = "_dashboard"
"""The folder in ``paths.runs`` that holds the runs of effects and, where none is named, the specification."""


@dataclass
class DashboardPaths:
    """Where cells are read."""

    runs: str = "runs"


@dataclass
class DashboardSettings:
    """Settings of the command line.

    ``exp`` null is every experiment of the store. ``spec`` writes the specification to a file and sends nothing.
    ``effects`` logs the change from the clean arm as a run of its own, and ``mirror`` those done cells that were run
    without tracker=wandb, each as a run; offline where nothing is sent.
    """

    project: str = MISSING
    entity: str | None = None
    exp: str | None = None
    spec: str | None = None
    effects: bool = True
    mirror: bool = False
    paths: DashboardPaths = field(default_factory=DashboardPaths)


@dataclass(frozen=True)
class Made:
    """What a call did: addresses of what was saved, or the file that was written instead, and why."""

    urls: tuple[str, ...]
    spec: Path | None
    why_offline: str
    effects_logged: tuple[str, ...]
    mirrored: int
    tracked: int
    done: int


def make_dashboard(settings: DashboardSettings) -> Made:
    """Save a workspace and a report for each experiment, or write their specification.

    Raises:
        ConfigError: wandb-workspaces is missing, or wandb refuses the credentials or the project.
        StoreError: no such experiment, none of its cells is done, or a damaged cell.
    """
    wandb_workspaces()
    store = Store(settings.paths.runs)
    sweeps = [measure(store, name) for name in _experiments(store, settings.exp)]
    found = [contents(one) for one in sweeps]
    why_offline = "spec was given" if settings.spec else _why_offline()
    mode, entity = ("offline" if why_offline else "online"), settings.entity
    try:
        if not why_offline:
            entity = entity or _default_entity()
        logged = [
            one.experiment
            for one in sweeps
            if settings.effects and _log_once(one, settings.project, entity, mode, store.runs / FOLDER)
        ]
        cells = {one.cell.id: one for sweep in sweeps for one in sweep.cells.done}
        untracked = [one for one in cells.values() if not any(one.cell.folder.glob("wandb/*run-*"))]
        mirrored = [_mirror(one, settings.project, entity, mode) for one in untracked] if settings.mirror else []
        spaces = [workspace(one, settings.project, entity or "") for one in found]
        reports = [report(one, settings.project, entity or "", located=not why_offline) for one in found]
        urls = () if why_offline else tuple(one.save().url for one in (*spaces, *reports))
    except SoftcontamError:
        raise
    except Exception as error:
        if why_offline:
            raise
        raise ConfigError(
            f"wandb did not take the dashboard of project={settings.project} entity={entity} "
            f"({type(error).__name__}: {error}). Check both names and that you may write there, or write the "
            "specification alone: spec=FILE."
        ) from error
    path = None
    if why_offline:
        path = Path(settings.spec) if settings.spec else store.runs / FOLDER / f"{settings.project}.json"
        write_text(path, json.dumps(_described(settings, spaces, reports), indent=1) + "\n")
    tracked_cells = len(cells) - len(untracked) + len(mirrored)
    return Made(urls, path, why_offline, tuple(logged), len(mirrored), tracked_cells, len(cells))


def read_settings(arguments: Sequence[str]) -> DashboardSettings:
    """Settings from ``key=value`` arguments.

    Raises:
        ConfigError: an unknown key, a value of the wrong type, or no ``project``.
    """
    settings = settings_of(DashboardSettings, arguments, USAGE)
    if found := set(settings.project) & set("/\\#?%:"):
        raise ConfigError(
            f"project={settings.project} has the character {sorted(found)[0]!r}, which wandb does not allow."
        )
    return settings


def _experiments(store: Store, experiment: str | None) -> list[str]:
    if experiment is not None:
        return [experiment]
    names = sorted(path.stem for path in (store.runs / "_sweeps").glob("*.json"))
    if not names:
        raise StoreError(f"no experiment in {store.runs}. Run one first, or name the folder with paths.runs=DIR.")
    return names


def _why_offline() -> str:
    """Why nothing can be sent; empty where wandb has credentials that the server takes."""
    import wandb

    if os.environ.get("WANDB_MODE", "online") != "online":
        return f"WANDB_MODE={os.environ['WANDB_MODE']}"
    try:
        return "" if wandb.login(prompt=False, verify=True) else "not logged in to wandb"
    except wandb.errors.AuthenticationError as error:
        raise ConfigError(
            f"wandb does not take the stored key ({error}). Run `wandb login --relogin`, or use spec=FILE."
        ) from None


def _default_entity() -> str:
    import wandb

    return str(wandb.Api().default_entity)


def _log_once(measured: SweepEffects, project: str, entity: str | None, mode: str, folder: Path) -> bool:
    """Log a sweep's effects unless this very table was logged to the project before; says whether it was logged."""
    table = effect_table(measured)
    if table.empty:
        return False
    content = hashlib.sha256(table.to_csv(index=False).encode()).hexdigest()
    mark = folder / "logged" / f"{project}.{measured.experiment}.txt"
    if mark.exists() and mark.read_text() == content:
        return False
    folder.mkdir(parents=True, exist_ok=True)
    log_effects(measured, project, entity, mode, folder)
    write_text(mark, content)
    return True


def _mirror(one: LoadedCell, project: str, entity: str | None, mode: str) -> str:
    """Log a done cell as its attempt would have been; returns its id."""
    tracker = TrackerConfig(name="wandb", mode=mode, project=project, entity=entity)
    with tracked(replace(one.config, tracker=tracker), one.cell) as run:
        run.finish(training_log(one.cell), one.metrics, one.cell.outcomes)
    return one.cell.id


def _described(settings: DashboardSettings, spaces: Sequence[Any], reports: Sequence[Any]) -> dict[str, Any]:
    versions = {name: importlib.metadata.version(name) for name in ("wandb", "wandb-workspaces")}
    return {
        "project": settings.project,
        "entity": settings.entity,
        "time": now(),
        "versions": versions,
        **specification(spaces, reports),
    }


def _told(made: Made, settings: DashboardSettings) -> list[str]:
    """What was done and what is left to do, for people."""
    runs = settings.paths.runs
    lines = [f"logged the effects of {name} as a run of job type 'report'" for name in made.effects_logged]
    if made.mirrored:
        lines.append(f"mirrored {made.mirrored} done cells")
    if made.tracked < made.done:
        lines.append(
            f"{made.done - made.tracked} of {made.done} done cells were run without tracker=wandb: panels cannot show "
            "them. mirror=true logs them now."
        )
    if made.spec is None:
        return [*lines, *(f"saved: {url}" for url in made.urls)]
    given = " ".join(
        f"{key}={value}" for key in ("project", "entity", "exp") if (value := getattr(settings, key)) is not None
    )
    again = f"python -m softcontam.dashboard {given} paths.runs={runs}"
    return [
        *lines,
        f"nothing was sent ({made.why_offline}). The specification of workspace and report is in {made.spec}",
        f"when online: wandb login && wandb sync {runs}/*/wandb && {again}",
    ]


def main(arguments: Sequence[str] | None = None) -> int:
    """Make the dashboard and say what was done; returns the exit status."""
    given = list(sys.argv[1:] if arguments is None else arguments)
    if set(given) & set(HELP):
        Console(soft_wrap=True).print(f"{__doc__}\n{USAGE}", markup=False, highlight=False)
        return 0
    try:
        settings = read_settings(given)
        made = make_dashboard(settings)
    except SoftcontamError as error:
        Console(stderr=True, soft_wrap=True).print(f"{type(error).__name__}: {error}", markup=False, highlight=False)
        return 2
    console = Console(soft_wrap=True)
    for line in _told(made, settings):
        console.print(line, markup=False, highlight=False)
    return 0


if __name__ == "__main__":
    sys.exit(main())
