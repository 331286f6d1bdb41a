"""The figure of a comparison: each arm's effect in both sweeps, one above the other."""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

from softcontam.analysis.comparison import Compared
from softcontam.analysis.items import ROLES
from softcontam.analysis.records import Effect
from softcontam.reporting import wording
from softcontam.reporting.drawing import GRID, INK, PAPER, SOFT, Drawing, canvas
from softcontam.reporting.figures import Line, line_colour
from softcontam.reporting.wording import unit_of

if TYPE_CHECKING:
    from matplotlib.axes import Axes

_HALF = 0.19


def side_by_side_figure(compared: Sequence[Compared], names: tuple[str, str], name: str) -> Drawing:
    """One row per arm, one panel per role; the first sweep is the filled point above, the second the hollow one below.

    Whiskers are 95 % t intervals over seeds, small dots are the seeds.

    Args:
        compared: effects on one outcome, of one dose.
        names: of the two sweeps.
        name: told apart from other figures of the page; its ids start with it.
    """
    panels = sorted({(one.first.role, _benchmarks(one)) for one in compared}, key=lambda one: ROLES.index(one[0]))
    lines = list(dict.fromkeys(_line(one.first) for one in compared))
    with canvas(max(6.4, 2.2 + 1.9 * len(panels)), 1.7 + 0.62 * max(len(lines), 2)) as figure:
        axes = figure.subplots(1, len(panels), sharex=True, sharey=True, squeeze=False)[0]
        for axis, (role, benchmarks) in zip(axes, panels, strict=True):
            axis.axvline(0, color=INK, linewidth=0.9, zorder=1)
            for one in compared:
                if (one.first.role, _benchmarks(one)) == (role, benchmarks):
                    row, colour = lines.index(_line(one.first)), line_colour(lines, _line(one.first))
                    _point(axis, row - _HALF, one.first, colour, hollow=False)
                    _point(axis, row + _HALF, one.second, colour, hollow=True)
            axis.set_title(f"{wording.ROLE_NAMES[role]}\n{benchmarks}", fontsize=9.5)
            axis.grid(axis="x", color=GRID, linewidth=0.7)
            axis.spines[["top", "right", "left"]].set_visible(False)
            axis.spines["bottom"].set_color(GRID)
            axis.tick_params(length=0)
        axes[0].set_yticks(range(len(lines)), [line.name for line in lines])
        axes[0].set_ylim(len(lines) - 0.4, -0.6)
        unit = unit_of(compared[0].first.outcome)
        for face, label in ((SOFT, names[0]), (PAPER, names[1])):
            axes[0].plot([], [], label=label, **_style(SOFT, face))
        figure.legend(
            loc="outside lower center",
            ncols=2,
            title=f"change from each sweep's own clean arm ({unit.noun})",
            title_fontsize=9.5,
        )
        return Drawing(figure, name)


def _line(effect: Effect) -> Line:
    return Line(effect.arm.condition, effect.arm.level)


def _benchmarks(one: Compared) -> str:
    return " / ".join(dict.fromkeys((one.first.benchmark, one.second.benchmark)))


def _style(colour: str, face: str) -> dict[str, Any]:
    return {
        **{"marker": "o", "markersize": 6.5, "linestyle": "none", "color": colour, "zorder": 4},
        **{"markeredgecolor": colour, "markerfacecolor": face, "markeredgewidth": 1.3},
    }


def _point(axis: Axes, place: float, effect: Effect, colour: str, hollow: bool) -> None:
    scale, estimate = unit_of(effect.outcome).scale, effect.estimate
    if not math.isnan(estimate.low):
        axis.plot([estimate.low * scale, estimate.high * scale], [place, place], color=colour, linewidth=1.5, zorder=3)
    seeds = [delta * scale for delta in effect.deltas.values()]
    axis.plot(seeds, [place + 0.12] * len(seeds), "o", color=colour, markersize=2.6, markeredgewidth=0, alpha=0.6)
    axis.plot(estimate.mean * scale, place, **_style(colour, PAPER if hollow else colour))
