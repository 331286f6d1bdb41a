"""Figures of a report as SVG text. Matplotlib is loaded when one is drawn, without pyplot's state."""

from __future__ import annotations

import io
import math
import re
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from typing import TYPE_CHECKING, Any

from softcontam.analysis.effects import Effect
from softcontam.analysis.items import ROLES
from softcontam.analysis.pairing import Arm
from softcontam.reporting import wording
from softcontam.reporting.headlines import highest_dose
from softcontam.reporting.wording import unit_of

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure

_COLOURS = {
    "exact": ("#D55E00",),
    "semd_synthetic": ("#0072B2", "#56B4E9", "#332288", "#88CCEE", "#004488"),
    "semd_natural": ("#882255",),
    "topical": ("#009E73", "#44AA99"),
    "format_only": ("#7F7F7F",),
}
_OTHER_COLOURS = ("#CC79A7", "#E69F00", "#AA4499", "#999933")
_MARKERS = "osD^vPX*<>"
_FONT = "system-ui, -apple-system, 'Segoe UI', Roboto, 'Helvetica Neue', Arial, sans-serif"
_INK, _GRID = "#24292f", "#d8dee4"
_DODGE = 0.11


def dose_figure(effects: Sequence[Effect], name: str) -> str:
    """Change from the clean arm against the dose: one panel per benchmark and role, one line per condition and level.

    Args:
        effects: those of one split benchmark, setup and outcome.
        name: told apart from other figures of the page; its ids start with it.
    """
    panels, lines = _panels(effects), _lines(effects)
    by_copies = _by_copies(effects)
    doses = sorted({_dose(one, by_copies) for one in effects})
    with _figure(max(8.4, 3.1 * len(panels)), 3.9) as figure:
        axes = figure.subplots(1, len(panels), sharey=True, squeeze=False)[0]
        for axis, panel in zip(axes, panels, strict=True):
            for index, line in enumerate(lines):
                shift = _DODGE * (index - (len(lines) - 1) / 2) * min(1.0, 6 / len(lines))
                members = [one for one in effects if _panel(one) == panel and _line(one.arm, by_copies) == line]
                places = [doses.index(_dose(one, by_copies)) + shift for one in members]
                _whiskers(axis, places, members, _style(lines, index))
            ticks = [wording.copies(dose) if by_copies else wording.rate(dose) for dose in doses]
            axis.set_xticks(range(len(doses)), ticks)
            axis.set_xlim(-0.6, len(doses) - 0.4)
            _dress(axis, _panel_title(panel))
            axis.set_xlabel("inserted rows per covered item" if by_copies else "share of rows that were inserted")
        _finish(figure, axes[0], effects[0].outcome)
        return _svg(figure, name)


def role_figure(effects: Sequence[Effect], name: str) -> str:
    """Bars of the change from the clean arm at the highest dose, grouped by benchmark and role.

    Args:
        effects: those of one split benchmark, setup and outcome.
        name: told apart from other figures of the page; its ids start with it.
    """
    top = highest_dose(effects)
    panels, lines = _panels(top), _lines(top)
    unit, width = unit_of(top[0].outcome), 0.8 / max(len(lines), 3)
    with _figure(8.4, 3.9) as figure:
        axis = figure.subplots()
        for index, line in enumerate(lines):
            style = _style(lines, index)
            members = {_panel(one): one for one in top if _line(one.arm, False) == line}
            places = [place + width * (index - (len(lines) - 1) / 2) for place in range(len(panels))]
            drawn = [(place, members[panel]) for place, panel in zip(places, panels, strict=True) if panel in members]
            heights = [one.estimate.mean * unit.scale for _, one in drawn]
            axis.bar(
                [place for place, _ in drawn],
                heights,
                width * 0.9,
                color=style["color"],
                alpha=0.85,
                label=style["label"],
            )
            _whiskers(axis, [place for place, _ in drawn], [one for _, one in drawn], {"color": _INK, "fmt": "none"})
        axis.set_xticks(range(len(panels)), [_panel_title(panel) for panel in panels])
        _dress(axis, "")
        _finish(figure, axis, top[0].outcome)
        return _svg(figure, name)


def _whiskers(axis: Axes, places: Sequence[float], members: Sequence[Effect], style: dict[str, Any]) -> None:
    """Points with their intervals; a point without an interval gets no whisker."""
    if not members:
        return
    scale = unit_of(members[0].outcome).scale
    means = [one.estimate.mean * scale for one in members]
    below = [_length(one.estimate.mean - one.estimate.low) * scale for one in members]
    above = [_length(one.estimate.high - one.estimate.mean) * scale for one in members]
    axis.errorbar(places, means, yerr=[below, above], elinewidth=1.2, capsize=2.5, linewidth=1.4, **style)


def _length(value: float) -> float:
    return 0.0 if math.isnan(value) else value


def _panel(effect: Effect) -> tuple[str, str]:
    return effect.role, effect.benchmark


def _panels(effects: Sequence[Effect]) -> list[tuple[str, str]]:
    return sorted(dict.fromkeys(map(_panel, effects)), key=lambda panel: ROLES.index(panel[0]))


def _panel_title(panel: tuple[str, str]) -> str:
    return f"{wording.ROLE_NAMES[panel[0]]}\n{panel[1]}"


def _by_copies(effects: Sequence[Effect]) -> bool:
    """Whether the dose of this sweep is the number of copies: one rate, several copies per item."""
    return len({one.arm.rate for one in effects}) == 1 and len({one.arm.copies_setting for one in effects}) > 1


def _dose(effect: Effect, by_copies: bool) -> float:
    return round(effect.copies, 2) if by_copies else effect.arm.rate


def _line(arm: Arm, by_copies: bool) -> tuple[str, str | None, int | None]:
    """What one line of the dose figure joins: arms that differ in the dose on the x axis only."""
    return arm.condition, arm.level, None if by_copies else arm.copies_setting


def _lines(effects: Sequence[Effect]) -> list[tuple[str, str | None, int | None]]:
    return list(dict.fromkeys(_line(one.arm, _by_copies(effects)) for one in effects))


def _style(lines: Sequence[tuple[str, str | None, int | None]], index: int) -> dict[str, Any]:
    """Colour, marker and label of a line. Conditions keep their colour between reports."""
    condition, level, copies = lines[index]
    kin = [line for line in lines if line[0] == condition]
    colours = _COLOURS.get(condition, _OTHER_COLOURS)
    place = kin.index(lines[index])
    label = wording.condition_name(Arm("", "", condition, level, 0.0, copies))
    if len({line[2] for line in lines}) > 1:
        label += f", {copies} copies" if copies else ", spread over all items"
    return {
        "color": colours[place % len(colours)],
        "marker": _MARKERS[index % len(_MARKERS)],
        "markersize": 5.5,
        "linestyle": ("-", "--", ":", "-.")[place // len(colours) % 4],
        "label": label,
    }


def _dress(axis: Axes, title: str) -> None:
    axis.axhline(0, color=_INK, linewidth=0.9, zorder=1)
    axis.set_title(title, fontsize=10)
    axis.grid(axis="y", color=_GRID, linewidth=0.7)
    axis.set_axisbelow(True)
    axis.spines[["top", "right", "bottom"]].set_visible(False)
    axis.spines["left"].set_color(_GRID)
    axis.tick_params(length=0, colors=_INK)


def _finish(figure: Figure, left: Axes, outcome: str) -> None:
    """Label the y axis and put one legend below all panels."""
    unit = unit_of(outcome)
    name = "accuracy" if unit.scale == 100 else "log-probability"
    left.set_ylabel(f"change in {name} ({unit.noun})")
    handles, labels = left.get_legend_handles_labels()
    figure.legend(handles, labels, loc="outside lower center", ncols=min(len(labels), 3), frameon=False)


@contextmanager
def _figure(width: float, height: float) -> Iterator[Figure]:
    """A figure of that many inches, drawn with the report's own settings whatever the user's are."""
    import matplotlib
    from matplotlib.figure import Figure

    settings: dict[Any, Any] = {"svg.fonttype": "none", "svg.hashsalt": "softcontam"}
    settings |= {"font.family": "DejaVu Sans", "font.size": 9.5}
    settings |= {"text.color": _INK, "axes.labelcolor": _INK, "axes.edgecolor": _INK}
    with matplotlib.rc_context():
        matplotlib.rcdefaults()
        matplotlib.rcParams.update(settings)
        yield Figure(figsize=(width, height), layout="constrained")


def _svg(figure: Figure, name: str) -> str:
    """The figure as one ``<svg>`` element that scales with the page and loads nothing."""
    stream = io.StringIO()
    figure.savefig(stream, format="svg", metadata={"Date": None, "Creator": None, "Format": None, "Type": None})
    svg = stream.getvalue()
    svg = svg[svg.index("<svg") :].strip()
    svg = re.sub(r"(<svg[^>]*?) height=\"[^\"]*\"", r"\1", svg, count=1)
    width = figure.get_figwidth()
    widest = f'style="max-width:{width * 88:.0f}px;--legible:{width * 66:.0f}px"'
    svg = re.sub(r"(<svg[^>]*?) width=\"[^\"]*\"", rf"\1 {widest}", svg, count=1)
    svg = re.sub(r"'DejaVu Sans'", _FONT.replace('"', "'"), svg)
    return re.sub(r"((?:id=\"|url\(#|href=\"#))", rf"\1{name}-", svg) + "\n"
