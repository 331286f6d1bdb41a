"""``python -m softcontam.report``: effects as tables, figures and one page.

``exp=NAME`` reads a sweep from the store, ``outcomes=FILE`` a table of per-item results from anywhere. ``against``
names a second one to stand beside the first.
"""

from __future__ import annotations

import shlex
import sys
from collections.abc import Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path

import yaml
from omegaconf import OmegaConf
from omegaconf.errors import OmegaConfBaseException
from rich.console import Console

from softcontam.analysis import frames
from softcontam.analysis.comparison import compare
from softcontam.analysis.declared import Declaration
from softcontam.analysis.effects import SweepEffects, measure, measure_rows
from softcontam.analysis.external import read_outcomes_table
from softcontam.analysis.items import ACCURACY, LOGPROB
from softcontam.analysis.pairing import CLEAN
from softcontam.config import AnalysisConfig, check_analysis
from softcontam.errors import ConfigError, SoftcontamError
from softcontam.reporting.blocks import Block, Figure
from softcontam.reporting.comparison import comparison_page, comparison_table
from softcontam.reporting.document import to_html, to_markdown
from softcontam.reporting.latex import paper_tables
from softcontam.reporting.page import page
from softcontam.reporting.terminal import terminal_table
from softcontam.settings import HELP, settings_of
from softcontam.store import Store, write_bytes, write_text

_WIDTH = 120
_KEYS = """exp=NAME           a sweep in the store
outcomes=FILE      a parquet or csv table of per-item results (docs/report.md has its columns)
baseline=clean     the condition of a table that the others are compared with
against=NAME|FILE  a second sweep or table to stand beside the first
out=DIR            where the report goes; paths.reports/NAME for a sweep
analysis=FILE      question, margin, contrasts and published figures for a table, as yaml
margin=0.05        the difference in accuracy that would count as none
paths.runs=runs  paths.reports=reports

python -m softcontam.report exp=semd_rate_sweep
python -m softcontam.report outcomes=results.csv baseline=base out=report"""

USAGE = (
    "Usage: python -m softcontam.report exp=NAME [against=NAME] [paths.runs=DIR] [paths.reports=DIR], or "
    "outcomes=FILE out=DIR [baseline=clean] [against=FILE] [analysis=FILE]; with either [margin=0.05]"
)


@dataclass(frozen=True)
class Report:
    """The main files of a written report, and the effects that they tell of.

    ``more_csv`` holds the tables of further outcomes by their name: ``partial``, and ``pass@<k>`` for each k. Beside
    these there are tables of declared contrasts, intervals, arms and dose-response, figures and LaTeX.
    """

    effects: SweepEffects
    more_csv: dict[str, Path]
    html: Path
    markdown: Path
    effects_csv: Path
    logprob_csv: Path
    contrasts_csv: Path


@dataclass
class ReportPaths:
    """Where cells are read and reports written."""

    runs: str = "runs"
    reports: str = "reports"


@dataclass
class ReportSettings:
    """Settings of the command line.

    ``exp`` or ``outcomes`` says what is analysed, ``against`` what stands beside it (another of the same sort).
    ``baseline`` is the condition of a table that the others are compared with, ``out`` the folder of its report.
    ``analysis`` is a yaml file with ``question``, ``margin``, ``contrasts`` and ``paper``, as in an experiment's
    config; ``margin`` replaces that of the declaration.
    """

    exp: str | None = None
    outcomes: str | None = None
    against: str | None = None
    baseline: str = CLEAN
    out: str | None = None
    analysis: str | None = None
    margin: float | None = None
    paths: ReportPaths = field(default_factory=ReportPaths)


def write_report(store: Store, experiment: str, reports: str | Path, margin: float | None = None) -> Report:
    """Measure an experiment from the store and write its report to ``<reports>/<experiment>/``.

    Args:
        reports: the folder of all reports (``paths.reports``); files of an earlier report are replaced.
        margin: an equivalence margin for accuracy, as a fraction, in place of the declared one.

    Raises:
        StoreError: no such experiment, or a damaged cell.
        ArmMismatchError: an arm and its clean cell differ in more than the inserted rows.
    """
    return write_files(measure(store, experiment, margin), Path(reports).expanduser() / experiment)


def measure_table(
    path: Path, baseline: str = CLEAN, analysis: AnalysisConfig | None = None, command: str = ""
) -> SweepEffects:
    """Measure the effects in a table of per-item results; its columns are those of :mod:`softcontam.analysis.external`.

    Args:
        baseline: the condition that the others are compared with.
        analysis: margin and contrasts; the defaults without.
        command: what the page says was run.

    Raises:
        DataError: the table cannot be read as such.
    """
    table = read_outcomes_table(path, baseline)
    stated = analysis or AnalysisConfig()
    what = "Margin and contrasts were" if stated.contrasts else "No contrasts were given; the margin was"
    note = (
        f"Read from {path.name}. The condition {baseline} is what is called the clean arm here. {what} stated with "
        "this report, not before the results."
    )
    declaration = Declaration(stated, (note, *table.notes), late=True)
    table.cells.record["command"] = command
    return measure_rows(path.stem, table.cells, table.rows, table.texts, declaration)


def write_files(measured: SweepEffects, out: Path) -> Report:
    """Write the page, tables and figures of a report into ``out``; files of an earlier one are replaced."""
    names = ("report.html", "report.md", "effects.csv", "effects_logprob.csv", "contrasts.csv")
    more = {
        outcome: out / f"effects_{outcome.replace('@', '_at_')}.csv"
        for outcome in measured.outcomes
        if outcome not in (ACCURACY, LOGPROB)
    }
    report = Report(measured, more, *(out / name for name in names))
    tables = {
        "effects.csv": frames.effects_frame(measured, ACCURACY),
        "effects_logprob.csv": frames.effects_frame(measured, LOGPROB),
        "contrasts.csv": frames.contrasts_frame(measured),
        "declared.csv": frames.declared_frame(measured),
        "intervals.csv": frames.intervals_frame(measured),
        "arms.csv": frames.arms_frame(measured),
        "dose_response.csv": frames.doses_frame(measured),
        **{path.name: frames.effects_frame(measured, outcome) for outcome, path in more.items()},
    }
    for name, frame in tables.items():
        write_text(out / name, frame.to_csv(index=False))
    for name, text in paper_tables(measured).items():
        write_text(out / name, text)
    _write_page(page(measured), out, measured.experiment)
    return report


def write_comparison(first: SweepEffects, second: SweepEffects, out: Path) -> Path:
    """Write two analyses side by side into ``out``; returns the page."""
    title = f"{first.experiment} and {second.experiment}"
    write_text(out / "comparison.csv", comparison_table(first, second).to_csv(index=False))
    return _write_page(comparison_page(first, second), out, title)


def _write_page(blocks: Sequence[Block], out: Path, title: str) -> Path:
    for block in blocks:
        if isinstance(block, Figure):
            write_text(out / f"{block.name}.svg", block.drawing.svg)
            write_bytes(out / f"{block.name}.png", block.drawing.png())
    write_text(out / "report.md", to_markdown(blocks))
    write_text(out / "report.html", to_html(blocks, f"{title} · softcontam"))
    return out / "report.html"


def read_settings(arguments: Sequence[str]) -> ReportSettings:
    """Settings from ``key=value`` arguments.

    Raises:
        ConfigError: an unknown key, a value of the wrong type, or not exactly one of ``exp`` and ``outcomes``.
    """
    settings = settings_of(ReportSettings, arguments, USAGE)
    if (settings.exp is None) == (settings.outcomes is None):
        found = "no experiment named" if settings.exp is None else "both exp and outcomes are given"
        raise ConfigError(f"{found}. {USAGE}")
    if settings.outcomes is not None and settings.out is None:
        raise ConfigError(f"outcomes={settings.outcomes} needs out=DIR, the folder of its report. {USAGE}")
    if settings.against is not None and settings.against in (settings.exp, settings.outcomes):
        raise ConfigError(f"against={settings.against} is what it would be compared with. Name another one.")
    if settings.exp is not None and settings.analysis is not None:
        raise ConfigError(
            "analysis=FILE is for tables: an experiment's analysis is declared in its config, before it is run. Change "
            "conf/exp and launch it again, done cells stay done."
        )
    if settings.margin is not None:
        check_analysis(AnalysisConfig(margin=settings.margin))
    return settings


def read_analysis(path: str | None, margin: float | None) -> AnalysisConfig:
    """The analysis of a yaml file, with another margin if one is given.

    Raises:
        ConfigError: the file cannot be read, or has an unknown key or a value that cannot be meant.
    """
    analysis = AnalysisConfig()
    if path is not None:
        try:
            written = yaml.safe_load(Path(path).read_text(encoding="utf-8")) or {}
            if not isinstance(written, dict):
                raise ValueError("it is not a mapping of keys")
            merged = OmegaConf.merge(OmegaConf.structured(AnalysisConfig), written.get("analysis", written))
            made = OmegaConf.to_object(merged)
        except (OSError, yaml.YAMLError, OmegaConfBaseException, ValueError) as error:
            first = str(error).splitlines()[0]
            raise ConfigError(
                f"analysis={path} cannot be read ({first}). It has the keys question, margin, logprob_margin, "
                "contrasts and paper."
            ) from error
        assert isinstance(made, AnalysisConfig)
        analysis = made
    if margin is not None:
        analysis = replace(analysis, margin=margin)
    check_analysis(analysis)
    return analysis


def _measured(settings: ReportSettings, name: str) -> SweepEffects:
    if settings.outcomes is not None:
        analysis = read_analysis(settings.analysis, settings.margin)
        words = [f"outcomes={name}", f"baseline={settings.baseline}", f"out={settings.out}"]
        words += [f"analysis={settings.analysis}"] if settings.analysis else []
        words += [f"margin={settings.margin}"] if settings.margin is not None else []
        command = shlex.join(["python", "-m", "softcontam.report", *words])
        return measure_table(Path(name).expanduser(), settings.baseline, analysis, command)
    return measure(Store(settings.paths.runs), name, settings.margin)


def _folder(settings: ReportSettings, name: str) -> Path:
    return Path(settings.out if settings.out is not None else Path(settings.paths.reports) / name).expanduser()


def main(arguments: Sequence[str] | None = None) -> int:
    """Write one report, or two side by side, and print the effects; returns the exit status."""
    given = list(sys.argv[1:] if arguments is None else arguments)
    console = Console()
    console.width = max(console.width, _WIDTH)  # a table that is cut loses signs and bounds
    if set(given) & set(HELP):
        console.print(f"{__doc__}\n{USAGE}\n\n{_KEYS}", markup=False, highlight=False)
        return 0
    try:
        settings = read_settings(given)
        first = _measured(settings, settings.exp or settings.outcomes or "")
        if settings.against is None:
            written = write_files(first, _folder(settings, first.experiment)).html
        else:
            second = _measured(settings, settings.against)
            if not compare(first, second).compared:
                raise ConfigError(
                    f"{first.experiment} and {second.experiment} have no effect in common: same condition, level, "
                    "rate, copies and role. Their effects.csv say which they have."
                )
            folder = _folder(settings, f"{first.experiment}_and_{second.experiment}")
            written = write_comparison(first, second, folder)
            console.print(terminal_table(second))
    except SoftcontamError as error:
        return _told(f"{type(error).__name__}: {error}")
    except OSError as error:
        return _told(
            f"the report cannot be written ({error}). Choose another folder with out=DIR or paths.reports=DIR."
        )
    console.print(terminal_table(first))
    for warning in _warnings(first):
        console.print(f"warning: {warning}", markup=False, highlight=False, soft_wrap=True)
    console.print(f"report: {written}", markup=False, highlight=False, soft_wrap=True)
    return 0


def _told(problem: str) -> int:
    """Print one problem to the error stream; returns the exit status of a bad request."""
    Console(stderr=True, soft_wrap=True).print(problem, markup=False, highlight=False)
    return 2


def _warnings(measured: SweepEffects) -> list[str]:
    """What the table on the terminal does not show: runs without a partner."""
    return [f"{one.arm.condition}, seed {one.seed}, is left out: {one.reason}" for one in measured.cells.missing]


if __name__ == "__main__":
    sys.exit(main())
