"""A saved wandb workspace and a wandb report for comparing conditions, as specifications of wandb-workspaces.

Every key in a panel comes from what the tracker logs for these very cells (:mod:`softcontam.reporting.tracking`,
:mod:`softcontam.reporting.effects_run`), so a panel never waits for a key that no run has.
"""

from __future__ import annotations

import json
from collections.abc import Iterable
from dataclasses import dataclass
from typing import Any

from softcontam.analysis.effects import SweepEffects
from softcontam.analysis.items import ACCURACY, ROLES
from softcontam.errors import ConfigError, StoreError
from softcontam.reporting.effects_run import EffectCurves, effect_curves, logged_media
from softcontam.reporting.headlines import headlines
from softcontam.reporting.tracking import STEP, curves_of, figures_of, run_config, training_log
from softcontam.reporting.wording import unit_of

EXTRA = "pip install 'softcontam[wandb]'"

_SHOWN = {
    "Loss": ("train/loss",),
    "Token accuracy on inserted rows, and on as many clean ones": (
        *("train/inserted_token_accuracy", "train/clean_token_accuracy"),
    ),
    "Token accuracy on all rows": ("train/mean_token_accuracy",),
    "Learning rate": ("train/learning_rate",),
}
"""Training curves that get a panel, where they are logged."""


@dataclass(frozen=True)
class Contents:
    """What the runs of an experiment hold, for panels to show.

    ``figures`` and ``curves`` are keys of the cells' runs, ``effects``, ``tables`` and ``media`` those of the run of
    effects; ``copies`` says whether arms differ in copies per item.
    """

    experiment: str
    figures: tuple[str, ...]
    curves: tuple[str, ...]
    effects: EffectCurves
    tables: tuple[str, ...]
    media: tuple[str, ...]
    outcome: str
    arms: int
    runs: int
    copies: bool
    grouped_by: str
    question: str
    findings: tuple[str, ...]
    notes: tuple[str, ...]
    command: str

    @property
    def roles(self) -> list[str]:
        """What the figures' keys begin with: seen, held-out and related benchmarks first, general ones last."""
        found = dict.fromkeys(key.rpartition("/")[0] for key in self.figures)
        return sorted(found, key=lambda role: ROLES.index(role.split("/")[0]))

    def of(self, figure: str) -> list[str]:
        """The keys of a figure in every role that has it."""
        return [key for role in self.roles if (key := f"{role}/{figure}") in self.figures]


def contents(measured: SweepEffects) -> Contents:
    """Collect what the tracker logs for the done cells of a sweep.

    Raises:
        StoreError: no cell is done.
    """
    done = measured.cells.done
    if not done:
        raise StoreError(
            f"no cell of {measured.experiment} is done, so there is nothing to show. Run it first: "
            f"{measured.cells.record.get('command') or f'python -m softcontam.run exp={measured.experiment}'}"
        )
    tables, media = logged_media(measured)
    unit = unit_of(measured.primary)
    scale = "fractions" if unit.scale == 100 else unit.noun
    contexts = {(one.arm.split_benchmark, one.arm.setup) for one in done}
    grouped_by = "arm_at_dose" if len(contexts) == 1 else "arm_in_setup"
    groups = {run_config(one.config, one.cell.id)[grouped_by] for one in done}
    notes = list(measured.notes)
    if len(groups) < len({one.arm for one in done}):
        notes.append(
            "Bars and training curves average over runs that differ in more than the seed: "
            f"{'; '.join(sorted(setup for _, setup in contexts if setup))}."
        )
    return Contents(
        experiment=measured.experiment,
        figures=_in_order(figures_of(one.config, one.metrics) for one in done),
        curves=_in_order(values for one in done for _, values in curves_of(training_log(one.cell))),
        effects=effect_curves(measured),
        tables=tuple(tables),
        media=tuple(media),
        outcome=f"{unit.outcome}, in {scale}",
        arms=len(groups),
        runs=len(done) + 1,
        copies=len({one.config.mixture.copies for one in done if not one.is_clean}) > 1,
        grouped_by=grouped_by,
        question=measured.declaration.analysis.question,
        findings=tuple(headlines(measured)),
        notes=tuple(notes),
        command=measured.cells.record.get("command") or f"python -m softcontam.run exp={measured.experiment}",
    )


def workspace(found: Contents, project: str, entity: str) -> Any:
    """The workspace of an experiment (``wandb_workspaces.workspaces.Workspace``), not yet saved."""
    ws, _ = wandb_workspaces()
    sections = [
        ws.Section(
            name=title,
            panels=panels,
            is_open=number < 3,
            layout_settings=ws.SectionLayoutSettings(columns=2 if title == _CHANGE else 3, rows=2),
        )
        for number, (title, panels) in enumerate(_sections(found).items())
    ]
    columns = ["config:arm.value", "config:rate.value", "config:copies.value", "config:seed.value"]
    return ws.Workspace(
        entity=entity,
        project=project,
        name=f"{found.experiment}: seen, held-out, related",
        sections=sections,
        settings=ws.WorkspaceSettings(max_runs=max(10, found.runs)),
        runset_settings=ws.RunsetSettings(
            filters=[ws.Metric("Group") == found.experiment],
            order=[ws.Ordering(ws.Metric("JobType")), ws.Ordering(ws.Metric("Name"))],
            pinned_columns=columns + [f"summary:{key}" for key in found.of(_figure(found))],
        ),
    )


def report(found: Contents, project: str, entity: str, located: bool = False) -> Any:
    """The report of an experiment (``wandb_workspaces.reports.v2.Report``), not yet saved.

    Args:
        located: name the project in its sets of runs, which wandb-workspaces looks up on the server; otherwise they are
            of the project that the report is saved to.
    """
    ws, wr = wandb_workspaces()
    where = {"project": project, "entity": entity} if located else {}
    blocks = [
        wr.H2("What was asked"),
        wr.P(found.question or f"{found.experiment}: its configuration states no question."),
        wr.CodeBlock(code=found.command, language="python"),
        wr.H2("What came out"),
        wr.UnorderedList(items=[*found.findings, *found.notes]),
    ]
    for title, panels in _sections(found).items():
        for number, panel in enumerate(panels):
            panel.layout = wr.Layout(x=12 * (number % 2), y=8 * (number // 2), w=12, h=8)
        runs = wr.Runset(name=found.experiment, filters=[ws.Metric("Group") == found.experiment], **where)
        blocks += [wr.H2(title), wr.P(_TELLS[title]), wr.PanelGrid(runsets=[runs], panels=panels)]
    blocks += [wr.H2("How to read this"), wr.UnorderedList(items=list(_HOW_TO_READ))]
    return wr.Report(
        project=project,
        entity=entity,
        title=f"{found.experiment}: seen, held-out, related"[:128],
        description=f"Change from the clean arm ({found.outcome}). Made by softcontam.dashboard.",
        blocks=blocks,
        width="fluid",
    )


def specification(spaces: Iterable[Any], reports: Iterable[Any]) -> dict[str, Any]:
    """What would be saved, as plain JSON values: the models of wandb-workspaces, named as the server reads them."""
    return {
        "workspaces": [_dump(one) for one in spaces],
        "reports": [_dump(one) for one in reports],
    }


def wandb_workspaces() -> tuple[Any, Any]:
    """The modules ``wandb_workspaces.workspaces`` and ``wandb_workspaces.reports.v2``.

    Raises:
        ConfigError: the package is not installed; names the command that installs it.
    """
    try:
        from wandb_workspaces import workspaces
        from wandb_workspaces.reports import v2
    except ImportError as error:
        raise ConfigError(f"dashboards need wandb-workspaces ({error}). Install it: {EXTRA}") from None
    return workspaces, v2


_CHANGE = "Change from the clean arm"
_ACCURACY = "Seen, held-out, related by arm"
_DOSE = "Dose-response, one dot per run"
_TRAINING = "Training"
_PARSED = "Were the outputs parsed"
_RUNS = "Runs side by side"

_TELLS = {
    _CHANGE: "Mean over seeds of arm minus clean arm, paired by seed and item; 95 % t intervals are in the figures and "
    "in the table. The lines come from the run of job type 'report', which the dashboard command writes.",
    _ACCURACY: "Means over seeds of each arm at each dose; the whiskers are the lowest and the highest seed, not an "
    "interval. Seen is the whole half here; the changes above are over the items that have rows in the arm's mixture, "
    "and pairing with the clean arm of the same seed makes them more exact than these bars look.",
    _DOSE: "Each dot is one run. The clean arm stands at 0.",
    _TRAINING: "Means over the seeds of an arm at a dose, with the lowest and the highest.",
    _PARSED: "An output that can't be parsed is wrong: compare these before comparing accuracies.",
    _RUNS: "Settings and figures that differ between the selected runs.",
}

_HOW_TO_READ = (
    "Seen items are those that the mixture could hold duplicates of; held-out items are of the same benchmark, from "
    "families that never enter a mixture; related ones are of another benchmark.",
    "A rise on seen alone is memorization. A rise on held-out beside it and none on related is shallow generalization.",
    "An effect whose interval includes 0 is not shown. That isn't evidence of no effect: only an equivalence test "
    "against a margin that was set beforehand is.",
    "The intervals cover new seeds of this model, recipe and benchmark, not other ones. The report that "
    "softcontam.report writes has adjusted p values, equivalence tests and smallest detectable effects.",
)


def _sections(found: Contents) -> dict[str, list[Any]]:
    """The panels by section title; sections that would be empty are left out."""
    _, wr = wandb_workspaces()
    sections = {
        _CHANGE: [
            *(
                wr.LinePlot(
                    title=f"{role}: change in {found.outcome}",
                    x=found.effects.x,
                    y=keys,
                    title_x="copies per item" if found.effects.x.endswith("copies") else "share of rows replaced",
                    max_runs_to_show=found.runs,
                )
                for role, keys in found.effects.lines().items()
            ),
            *([wr.MediaBrowser(title="With 95 % intervals", media_keys=list(found.media))] if found.media else []),
            *(wr.WeavePanelSummaryTable(table_name=name) for name in found.tables),
        ],
        _ACCURACY: [_bars(found, key) for key in found.of(_figure(found))],
        _DOSE: [
            wr.ScatterPlot(title=key, x=wr.Config(dose), y=wr.SummaryMetric(key))
            for dose in (["rate", "copies"] if found.copies else ["rate"])
            for key in found.of(_figure(found))
        ],
        _TRAINING: [
            wr.LinePlot(
                title=title,
                x=STEP,
                y=logged,
                groupby=wr.Config(found.grouped_by),
                groupby_aggfunc="mean",
                groupby_rangefunc="minmax",
                max_runs_to_show=found.runs,
            )
            for title, keys in _SHOWN.items()
            if (logged := [key for key in keys if key in found.curves])
        ],
        _PARSED: [_bars(found, key) for key in (*found.of("parse_rate"), *found.of("finished"))],
        _RUNS: [wr.RunComparer(diff_only="split")],
    }
    return {title: panels for title, panels in sections.items() if panels}


def _bars(found: Contents, key: str) -> Any:
    """One bar for each arm at each dose: the mean over its runs."""
    _, wr = wandb_workspaces()
    return wr.BarPlot(
        title=key,
        metrics=[key],
        groupby=wr.Config(found.grouped_by),
        groupby_aggfunc="mean",
        groupby_rangefunc="minmax",
        max_runs_to_show=found.runs,
        max_bars_to_show=found.arms,
    )


def _figure(found: Contents) -> str:
    """The figure that arms are compared on: accuracy, or the log-probability where no output is graded."""
    return ACCURACY if found.of(ACCURACY) else "gold_logprob_per_token"


def _dump(made: Any) -> dict[str, Any]:
    dumped: dict[str, Any] = json.loads(made._to_model().model_dump_json(by_alias=True, exclude_none=True))
    return dumped


def _in_order(records: Iterable[Iterable[str]]) -> tuple[str, ...]:
    return tuple(dict.fromkeys(key for record in records for key in record))
