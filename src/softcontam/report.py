"""``python -m softcontam.report exp=NAME``: a sweep's effects as tables, figures and one page, from the store only."""

from __future__ import annotations

import sys
from collections.abc import Sequence
from dataclasses import dataclass, field
from pathlib import Path

from omegaconf import MISSING, OmegaConf
from omegaconf.errors import OmegaConfBaseException
from rich.console import Console

from softcontam.analysis.effects import MARGIN, SweepEffects, measure
from softcontam.analysis.frames import contrasts_frame, effects_frame
from softcontam.analysis.items import ACCURACY, LOGPROB
from softcontam.errors import ConfigError, SoftcontamError
from softcontam.reporting.blocks import Figure
from softcontam.reporting.document import to_html, to_markdown
from softcontam.reporting.page import page
from softcontam.reporting.terminal import terminal_table
from softcontam.store import Store, write_text


@dataclass(frozen=True)
class Report:
    """The files of a written report, and the effects that they tell of.

    ``more_csv`` holds the tables of further outcomes by their name: ``partial``, and ``pass@<k>`` for each k.
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
    """Settings of the command line. ``margin`` is the equivalence margin for accuracy, as a fraction."""

    exp: str = MISSING
    margin: float = MARGIN
    paths: ReportPaths = field(default_factory=ReportPaths)


def write_report(store: Store, experiment: str, reports: str | Path, margin: float = MARGIN) -> Report:
    """Measure an experiment from the store and write its report to ``<reports>/<experiment>/``.

    Args:
        reports: the folder of all reports (``paths.reports``); files of an earlier report are replaced.
        margin: the equivalence margin for accuracy, as a fraction, declared before the results are seen.

    Raises:
        StoreError: no such experiment, or a damaged cell.
        ArmMismatchError: an arm and its clean cell differ in more than the inserted rows.
    """
    measured = measure(store, experiment, margin)
    out = Path(reports).expanduser() / experiment
    names = ("report.html", "report.md", "effects.csv", "effects_logprob.csv", "contrasts.csv")
    more = {
        outcome: out / f"effects_{outcome.replace('@', '_at_')}.csv"
        for outcome in measured.outcomes
        if outcome not in (ACCURACY, LOGPROB)
    }
    report = Report(measured, more, *(out / name for name in names))
    write_text(report.effects_csv, effects_frame(measured, ACCURACY).to_csv(index=False))
    write_text(report.logprob_csv, effects_frame(measured, LOGPROB).to_csv(index=False))
    write_text(report.contrasts_csv, contrasts_frame(measured).to_csv(index=False))
    for outcome, path in more.items():
        write_text(path, effects_frame(measured, outcome).to_csv(index=False))
    blocks = page(measured)
    for block in blocks:
        if isinstance(block, Figure):
            write_text(out / block.name, block.svg)
    write_text(report.markdown, to_markdown(blocks))
    write_text(report.html, to_html(blocks, f"{experiment} · softcontam"))
    return report


def read_settings(arguments: Sequence[str]) -> ReportSettings:
    """Settings from ``key=value`` arguments.

    Raises:
        ConfigError: an unknown key, a value of the wrong type, or no ``exp``.
    """
    usage = "Usage: python -m softcontam.report exp=NAME [paths.runs=DIR] [paths.reports=DIR] [margin=0.05]"
    if stray := [text for text in arguments if "=" not in text]:
        raise ConfigError(f"{stray[0]!r} is not of the form key=value. {usage}")
    try:
        merged = OmegaConf.merge(OmegaConf.structured(ReportSettings), OmegaConf.from_dotlist(list(arguments)))
    except OmegaConfBaseException as error:
        raise ConfigError(f"{str(error).splitlines()[0]}. {usage}") from None
    if OmegaConf.is_missing(merged, "exp"):
        raise ConfigError(f"no experiment named. {usage}")
    settings = OmegaConf.to_object(merged)
    assert isinstance(settings, ReportSettings)
    if not 0 < settings.margin < 1:
        raise ConfigError(f"margin={settings.margin} must lie between 0 and 1: it is a difference in accuracy.")
    return settings


def main(arguments: Sequence[str] | None = None) -> int:
    """Write the report of one experiment and print its effects; returns the exit status."""
    try:
        settings = read_settings(sys.argv[1:] if arguments is None else arguments)
        report = write_report(Store(settings.paths.runs), settings.exp, settings.paths.reports, settings.margin)
    except SoftcontamError as error:
        Console(stderr=True, soft_wrap=True).print(f"{type(error).__name__}: {error}", markup=False, highlight=False)
        return 2
    console = Console()
    console.print(terminal_table(report.effects))
    console.print(f"report: {report.html}", markup=False, highlight=False, soft_wrap=True)
    return 0


if __name__ == "__main__":
    sys.exit(main())
