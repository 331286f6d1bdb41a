"""Figures of a report: effects at the highest dose, and effects against the dose. Matplotlib is loaded to draw one."""

from __future__ import annotations

import math
import textwrap
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from itertools import pairwise
from typing import TYPE_CHECKING, Any

from softcontam.analysis.contrasts import highest_doses
from softcontam.analysis.dose_lines import COPIES, RATE, DoseLine
from softcontam.analysis.items import ACCURACY, ROLES
from softcontam.analysis.pairing import Arm
from softcontam.analysis.records import Baseline, Effect
from softcontam.reporting import wording
from softcontam.reporting.drawing import (
    BAND,
    CONDITION_COLOURS,
    GRID,
    INK,
    OTHER_COLOURS,
    PAPER,
    SOFT,
    Drawing,
    canvas,
)
from softcontam.reporting.wording import unit_of

if TYPE_CHECKING:
    from matplotlib.artist import Artist
    from matplotlib.axes import Axes
    from matplotlib.axis import Axis
    from matplotlib.figure import Figure

_MARKERS = "osD^vPX*<>"
_DODGE = 0.11
_LABEL_WIDTH = 22
_ROW, _LEAST_ROWS = 0.46, 2
_SEED_SHIFT = 0.3
_CURVE_POINTS = 40


@dataclass(frozen=True)
class Line:
    """What one line of the dose figure joins, and one row of the signature figure is: arms that differ in dose only."""

    condition: str
    level: str | None
    copies: int | None = None

    @property
    def name(self) -> str:
        """The condition in words."""
        return wording.condition_name(Arm("", "", self.condition, self.level, 0.0, self.copies))


Panel = tuple[str, str]
"""Role and benchmark."""


def signature_figure(
    effects: Sequence[Effect], baselines: Sequence[Baseline], name: str, margin: float | None = None
) -> Drawing:
    """The change from the clean arm at each arm's highest dose: a row per condition, roles side by side on one scale.

    A point is the mean over seeds, its whisker the 95 % t interval, small dots are the seeds. A hollow point has no
    interval.

    Args:
        effects: those of one split benchmark, setup and outcome.
        baselines: clean arms; the panels' titles name the one that belongs there.
        name: told apart from other figures of the page; its ids start with it.
        margin: the equivalence margin as a fraction, drawn as a band; on accuracy only.
    """
    top = highest_doses(effects)
    doses = {_line(one.arm, by_copies=True): wording.rate(one.arm.rate) for one in top}
    several = len(set(doses.values())) > 1
    panels = _panels(top)
    rows = list(dict.fromkeys(_line(one.arm, by_copies=True) for one in top))
    outcome, scale = top[0].outcome, unit_of(top[0].outcome).scale
    height = 1.75 + _ROW * max(len(rows), _LEAST_ROWS)
    with canvas(max(5.2, 2.0 + 1.75 * len(panels)), height) as figure:
        axes = figure.subplots(1, len(panels), sharex=True, sharey=True, squeeze=False)[0]
        for axis, panel in zip(axes, panels, strict=True):
            if margin is not None and outcome == ACCURACY:
                axis.axvspan(-margin * scale, margin * scale, color=BAND, linewidth=0, zorder=0)
            axis.axvline(0, color=INK, linewidth=0.9, zorder=1)
            for one in top:
                if _panel(one) == panel:
                    index = rows.index(_line(one.arm, by_copies=True))
                    _row(axis, index, one, line_colour(rows, rows[index]), _MARKERS[index % len(_MARKERS)])
            _title(axis, panel, _clean(baselines, top, panel))
            axis.grid(axis="x", color=GRID, linewidth=0.7)
            _bare(axis)
        axes[0].set_yticks(
            range(len(rows)), [_wrapped(f"{row.name}, {doses[row]}" if several else row.name) for row in rows]
        )
        axes[0].set_ylim(len(rows) - 0.35, -0.55)
        _signed(axes[0].xaxis)
        _key(figure, top, margin if outcome == ACCURACY else None)
    return Drawing(figure, name)


def dose_response_figure(effects: Sequence[Effect], name: str, lines: Sequence[DoseLine] = ()) -> Drawing:
    """Change from the clean arm against the dose: one panel per benchmark and role, one line per condition and level.

    Args:
        effects: those of one split benchmark, setup and outcome.
        name: told apart from other figures of the page; its ids start with it.
        lines: fitted dose-response lines; those of these effects' arms are drawn dotted, with the dose that gains five
            points as a tick and its interval as a bar at the foot of the panel. Used for accuracy only.
    """
    by_copies = _by_copies(effects)
    panels = _panels(effects)
    rows = list(dict.fromkeys(_line(one.arm, by_copies) for one in effects))
    doses = sorted({_dose(one, by_copies) for one in effects})
    fitted = _of_these(lines, effects, COPIES if by_copies else RATE)
    with canvas(max(6.4, 0.9 + 2.75 * len(panels)), 3.7 + 0.2 * math.ceil(len(rows) / 3)) as figure:
        axes = figure.subplots(1, len(panels), sharey=True, squeeze=False)[0]
        for axis, panel in zip(axes, panels, strict=True):
            axis.axhline(0, color=INK, linewidth=0.9, zorder=1)
            axis.grid(axis="y", color=GRID, linewidth=0.7)
            for index, row in enumerate(rows):
                shift = _DODGE * (index - (len(rows) - 1) / 2) * min(1.0, 6 / len(rows))
                members = [one for one in effects if _panel(one) == panel and _line(one.arm, by_copies) == row]
                if not members:
                    continue
                places = [doses.index(_dose(one, by_copies)) + shift for one in members]
                colour = line_colour(rows, row)
                _points(axis, places, members, colour, _MARKERS[index % len(_MARKERS)], _label(rows, row))
                for line in fitted:
                    if (line.role, line.benchmark) == panel and _line(line.arm, by_copies) == row:
                        _fit(axis, line, members, doses, colour)
            axis.set_xticks(
                range(len(doses)), [wording.copies(dose) if by_copies else wording.rate(dose) for dose in doses]
            )
            axis.set_xlim(-0.6, len(doses) - 0.4)
            _title(axis, panel)
            _bare(axis)
            axis.set_xlabel("inserted rows per covered item" if by_copies else "share of rows inserted")
        _signed(axes[0].yaxis)
        axes[0].set_ylabel(_change_of(effects[0].outcome))
        handles, labels = axes[0].get_legend_handles_labels()
        figure.legend(handles, labels, loc="outside lower center", ncols=min(len(labels), 3), fontsize=9)
    return Drawing(figure, name)


def line_colour(lines: Sequence[Line], line: Line) -> str:
    """The colour of a line. Conditions keep theirs between reports; levels share their condition's colours."""
    condition = _family(line.condition)
    kin = [one for one in lines if _family(one.condition) == condition]
    if condition in CONDITION_COLOURS:
        colours = CONDITION_COLOURS[condition]
        return colours[kin.index(line) % len(colours)]
    others = [one for one in lines if _family(one.condition) not in CONDITION_COLOURS]
    return OTHER_COLOURS[others.index(line) % len(OTHER_COLOURS)]


def _family(condition: str) -> str:
    """The condition whose colours a condition has: without what it was made from, filtered by or laid out as."""
    for joint in ("_of_", "_after_", "_ladder"):
        condition = condition.split(joint)[0]
    return condition


def _row(axis: Axes, place: int, effect: Effect, colour: str, marker: str) -> None:
    """One effect of the signature figure: seeds below, interval and mean above them."""
    scale, estimate = unit_of(effect.outcome).scale, effect.estimate
    seeds = [delta * scale for delta in effect.deltas.values()]
    axis.plot(seeds, [place + _SEED_SHIFT] * len(seeds), **_seed_style(colour))
    if not math.isnan(estimate.low):
        axis.plot([estimate.low * scale, estimate.high * scale], [place, place], color=colour, linewidth=1.8, zorder=3)
        for bound in (-estimate.detectable * scale, estimate.detectable * scale):
            axis.plot([bound, bound], [place - 0.17, place + 0.17], color=SOFT, linewidth=0.9, alpha=0.55, zorder=1.5)
    axis.plot(estimate.mean * scale, place, **_mean_style(colour, marker, math.isnan(estimate.low)))


def _points(
    axis: Axes, places: Sequence[float], members: Sequence[Effect], colour: str, marker: str, label: str
) -> None:
    """The effects of one line of the dose figure: means joined, intervals, and each seed beside its mean."""
    scale = unit_of(members[0].outcome).scale
    axis.plot(places, [one.estimate.mean * scale for one in members], color=colour, linewidth=1.1, zorder=3)
    for place, one in zip(places, members, strict=True):
        seeds, hollow = [delta * scale for delta in one.deltas.values()], math.isnan(one.estimate.low)
        axis.plot([place + _DODGE / 3] * len(seeds), seeds, **_seed_style(colour, 2.6))
        if not hollow:
            bounds = [one.estimate.low * scale, one.estimate.high * scale]
            axis.plot([place, place], bounds, color=colour, linewidth=1.2, zorder=3)
        axis.plot(place, one.estimate.mean * scale, **_mean_style(colour, marker, hollow, 5.5))
    axis.plot([], [], color=colour, linewidth=1.1, label=label, **_marker_only(colour, marker, 5.5))


def _fit(axis: Axes, line: DoseLine, members: Sequence[Effect], doses: Sequence[float], colour: str) -> None:
    """A fitted line as a change from the clean arm, and the dose of the gain with its interval where it is told."""
    response, scale = line.response, unit_of(ACCURACY).scale
    logs = [math.log2(dose) for dose in doses]
    clean = math.fsum(one.baseline for one in members) / len(members)
    first, last = math.log2(response.doses[0]), math.log2(response.doses[-1])
    grid = [first + (last - first) * step / _CURVE_POINTS for step in range(_CURVE_POINTS + 1)]
    changes = [(response.fitted(2**one) - clean) * scale for one in grid]
    places = [_between(one, logs) for one in grid]
    axis.plot(places, changes, color=colour, linewidth=1.3, linestyle=(0, (1, 1.6)), alpha=0.8, zorder=2)
    found = response.dose_for_gain
    if math.isnan(found.value) or response.extrapolated:
        return
    height = response.gain * scale
    low, high = (min(max(math.log2(bound), logs[0]), logs[-1]) for bound in (found.low, found.high))
    if not math.isnan(found.low):
        axis.plot([_between(low, logs), _between(high, logs)], [height, height], color=colour, linewidth=3, alpha=0.35)
    axis.plot(_between(math.log2(found.value), logs), height, marker="|", markersize=11, color=colour, zorder=4)


def _between(log_dose: float, logs: Sequence[float]) -> float:
    """Where a dose lies among the evenly spaced doses of the axis."""
    for index, (left, right) in enumerate(pairwise(logs)):
        if log_dose <= right or index == len(logs) - 2:
            return index + (log_dose - left) / (right - left)
    return 0.0


def _seed_style(colour: str, size: float = 3.2) -> dict[str, Any]:
    style = {"marker": "o", "linestyle": "none", "markersize": size, "alpha": 0.6, "zorder": 2.5}
    return {**style, "markerfacecolor": colour, "markeredgewidth": 0, "color": colour}


def _mean_style(colour: str, marker: str, hollow: bool, size: float = 7.0) -> dict[str, Any]:
    face = PAPER if hollow else colour
    return {"linestyle": "none", "zorder": 4, **_marker_only(colour, marker, size), "markerfacecolor": face}


def _marker_only(colour: str, marker: str, size: float) -> dict[str, Any]:
    return {"marker": marker, "markersize": size, "markerfacecolor": colour, "markeredgecolor": colour}


def _key(figure: Figure, top: Sequence[Effect], margin: float | None) -> None:
    """What points, whiskers, dots, ticks and band are, below all panels."""
    from matplotlib.lines import Line2D
    from matplotlib.patches import Patch

    mean: dict[str, Any] = {"linestyle": "-", "linewidth": 1.8, "color": SOFT, **_marker_only(SOFT, "o", 6)}
    counts = sorted({one.estimate.n for one in top})
    seeds = wording.seeds(counts[0]) if len(counts) == 1 else f"{counts[0]} to {wording.seeds(counts[-1])}"
    handles: list[Artist] = []
    if any(not math.isnan(one.estimate.low) for one in top):
        handles.append(Line2D([], [], **mean, label=f"mean of {seeds}, 95 % t interval"))
    if any(math.isnan(one.estimate.low) for one in top):
        hollow = _mean_style(SOFT, "o", True, 6)
        handles.append(Line2D([], [], **hollow, label="no interval (one seed, or no spread)"))
    handles.append(Line2D([], [], **_seed_style(SOFT), label="each seed"))
    if any(not math.isnan(one.estimate.detectable) for one in top):
        tick: dict[str, Any] = {"marker": "|", "markersize": 9, "linestyle": "none", "color": SOFT, "alpha": 0.55}
        handles.append(Line2D([], [], **tick, label="smallest detectable effect"))
    if margin is not None:
        label = f"equivalence margin, ±{100 * margin:g} points"
        handles.append(Patch(facecolor=BAND, edgecolor=GRID, linewidth=0.7, label=label))
    # the axis label is the legend's title: a label of the whole figure would lie under the legend
    figure.legend(
        handles=handles,
        loc="outside lower center",
        ncols=2,
        fontsize=8.5,
        labelcolor=SOFT,
        title=_change_of(top[0].outcome),
        title_fontsize=9.5,
    )


def _clean(baselines: Iterable[Baseline], top: Sequence[Effect], panel: Panel) -> str:
    """The clean arm of a panel in words, or nothing where it isn't among the baselines."""
    arm, unit = top[0].arm, unit_of(top[0].outcome)
    place = (arm.setup, arm.split_benchmark, *panel, top[0].outcome)
    for one in baselines:
        if (one.setup, one.split_benchmark, one.role, one.benchmark, one.outcome) == place:
            return f"clean {wording.number(one.mean, unit)}{' %' if unit.scale == 100 else ''}"
    return ""


def _of_these(lines: Iterable[DoseLine], effects: Sequence[Effect], dose: str) -> list[DoseLine]:
    """The fitted lines along this dose that belong to these effects' arms."""
    if effects[0].outcome != ACCURACY:
        return []
    arms = {one.arm for one in effects}
    return [one for one in lines if one.dose == dose and one.arm in arms]


def _panel(effect: Effect) -> Panel:
    return effect.role, effect.benchmark


def _panels(effects: Sequence[Effect]) -> list[Panel]:
    return sorted(dict.fromkeys(map(_panel, effects)), key=lambda panel: ROLES.index(panel[0]))


def _by_copies(effects: Sequence[Effect]) -> bool:
    """Whether the dose of this sweep is the number of copies: one rate, several copies per item."""
    return len({one.arm.rate for one in effects}) == 1 and len({one.arm.copies_setting for one in effects}) > 1


def _dose(effect: Effect, by_copies: bool) -> float:
    return round(effect.copies, 2) if by_copies else effect.arm.rate


def _line(arm: Arm, by_copies: bool) -> Line:
    return Line(arm.condition, arm.level, None if by_copies else arm.copies_setting)


def _label(lines: Sequence[Line], line: Line) -> str:
    """The name of a line, with its copies where lines differ in them."""
    if len({one.copies for one in lines}) == 1:
        return line.name
    return f"{line.name}, {f'{line.copies} copies' if line.copies else 'spread over all items'}"


def _wrapped(text: str) -> str:
    return "\n".join(textwrap.wrap(text, _LABEL_WIDTH, break_on_hyphens=False))


def _title(axis: Axes, panel: Panel, below: str = "") -> None:
    """The panel's role in bold, its benchmark, and a line below them."""
    lines = [panel[1], *([below] if below else [])]
    axis.set_title("\n".join(lines), fontsize=8.5, color=SOFT, linespacing=1.35)
    axis.annotate(
        wording.ROLE_NAMES[panel[0]],
        (0.5, 1),
        xytext=(0, 8 + 12.5 * len(lines)),
        **_ABOVE,
    )


_ABOVE: dict[str, Any] = {
    "xycoords": "axes fraction",
    "textcoords": "offset points",
    "ha": "center",
    "fontsize": 10.5,
    "fontweight": "bold",
    "annotation_clip": False,
}


def _bare(axis: Axes) -> None:
    axis.set_axisbelow(True)
    axis.spines[:].set_color(GRID)
    axis.spines[["top", "right"]].set_visible(False)
    axis.tick_params(length=0, colors=INK)


def _signed(scale: Axis) -> None:
    """Tick labels with a sign and without needless decimals."""
    from matplotlib.ticker import FuncFormatter, MaxNLocator

    scale.set_major_locator(MaxNLocator(5, steps=[1, 2, 2.5, 5, 10]))
    scale.set_major_formatter(FuncFormatter(lambda value, _: f"{value:+g}".replace("-", "−") if value else "0"))


def _change_of(outcome: str) -> str:
    unit = unit_of(outcome)
    return f"change in {unit.outcome} from the clean arm ({unit.noun})"
