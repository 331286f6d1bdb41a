"""Training curves of a sweep: loss, and how far the inserted rows are memorized."""

from __future__ import annotations

import json
from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import TYPE_CHECKING

import numpy as np

from softcontam.analysis.pairing import LoadedCell
from softcontam.errors import StoreError
from softcontam.reporting import wording
from softcontam.reporting.drawing import CONDITION_COLOURS, GRID, INK, OTHER_COLOURS, Drawing, canvas

if TYPE_CHECKING:
    from matplotlib.axes import Axes

_PANELS = (
    ("loss", "loss on trained tokens"),
    ("inserted_token_accuracy", "token accuracy,\ninserted rows"),
    ("clean_token_accuracy", "token accuracy,\nclean rows of the mixture"),
)
_MOST_LINES = 12


@dataclass
class _Line:
    """The curves of one arm: for each seed epochs and values."""

    name: str
    colour: str
    dashes: str
    seeds: list[tuple[list[float], list[float]]] = field(default_factory=list)


def curves_figure(cells: Sequence[LoadedCell]) -> Drawing | None:
    """Loss and token accuracy over epochs, one line per arm at the highest dose: the mean over seeds, and each seed.

    None where no cell keeps a training log, as in a table from elsewhere.

    Raises:
        StoreError: a training log is damaged.
    """
    logs = [(one, _log(one)) for one in _at_highest_dose(cells)]
    logs = [(one, records) for one, records in logs if records]
    panels = [(key, title) for key, title in _PANELS if any(key in record for _, records in logs for record in records)]
    if not panels:
        return None
    with canvas(max(7.4, 3.0 * len(panels) + 0.6), 3.6 + 0.16 * len({one.arm for one, _ in logs})) as figure:
        axes = figure.subplots(1, len(panels), squeeze=False)[0]
        for axis, (key, title) in zip(axes, panels, strict=True):
            for line in _lines(logs, key):
                for epochs, values in line.seeds:
                    axis.plot(epochs, values, color=line.colour, linewidth=0.6, alpha=0.35, linestyle=line.dashes)
                epochs, means = _mean(line.seeds)
                axis.plot(epochs, means, color=line.colour, linewidth=1.6, linestyle=line.dashes, label=line.name)
            axis.set_title(title, fontsize=9.5)
            axis.set_xlabel("epoch")
            axis.grid(axis="y", color=GRID, linewidth=0.7)
            axis.spines[["top", "right"]].set_visible(False)
            axis.spines[["left", "bottom"]].set_color(GRID)
            axis.tick_params(length=0, colors=INK)
        _on_one_scale([axis for axis, (key, _) in zip(axes, panels, strict=True) if key != "loss"])
        handles = {
            label: handle for axis in axes for handle, label in zip(*axis.get_legend_handles_labels(), strict=True)
        }
        figure.legend(list(handles.values()), list(handles), loc="outside lower center", ncols=2, fontsize=8.5)
        return Drawing(figure, "training")


def _on_one_scale(axes: Sequence[Axes]) -> None:
    """Shares in per cent, from the lowest of all panels to 100."""
    from matplotlib.ticker import PercentFormatter

    lowest = min((float(np.min(line.get_ydata())) for axis in axes for line in axis.get_lines()), default=0.0)
    for axis in axes:
        margin = 0.05 * max(1 - lowest, 0.02)
        axis.set_ylim(min(lowest, 0.98) - margin, 1 + margin)
        axis.yaxis.set_major_formatter(PercentFormatter(1.0, symbol=" %"))


def _at_highest_dose(cells: Sequence[LoadedCell]) -> list[LoadedCell]:
    """The clean cells, and of each condition and level those at its highest rate and most copies."""
    top: dict[tuple[object, ...], tuple[float, int]] = {}
    for one in cells:
        key, dose = _key(one), (one.arm.rate, one.arm.copies_setting or 0)
        top[key] = max(top.get(key, dose), dose)
    chosen = [one for one in cells if (one.arm.rate, one.arm.copies_setting or 0) == top[_key(one)]]
    arms = list(dict.fromkeys(one.arm for one in chosen))[:_MOST_LINES]
    return [one for one in chosen if one.arm in arms]


def _key(one: LoadedCell) -> tuple[object, ...]:
    return one.arm.setup, one.arm.split_benchmark, one.arm.condition, one.arm.level


def _log(one: LoadedCell) -> list[dict[str, float]]:
    path = one.cell.folder / "train_log.jsonl"
    if not path.is_file():
        return []
    try:
        return [json.loads(line) for line in path.read_text(encoding="utf-8").splitlines()]
    except ValueError as error:
        raise StoreError(f"{path} is damaged ({error}). Delete the folder {path.parent} and launch again.") from error


def _lines(logs: Sequence[tuple[LoadedCell, list[dict[str, float]]]], key: str) -> list[_Line]:
    lines: dict[object, _Line] = {}
    for one, records in logs:
        points = [(record["epoch"], record[key]) for record in records if key in record and "epoch" in record]
        if not points:
            continue
        if one.arm not in lines:
            kin = [arm for arm in lines if getattr(arm, "condition", "") == one.arm.condition]
            lines[one.arm] = _Line(_name(one), *_style(one, len(kin)))
        epochs, values = zip(*points, strict=True)
        lines[one.arm].seeds.append((list(epochs), list(values)))
    return list(lines.values())


def _style(one: LoadedCell, place: int) -> tuple[str, str]:
    if one.is_clean:
        return INK, "--"
    colours = CONDITION_COLOURS.get(one.arm.condition, OTHER_COLOURS)
    return colours[place % len(colours)], "-"


def _name(one: LoadedCell) -> str:
    name = "clean arm" if one.is_clean else f"{wording.condition_name(one.arm)}, {wording.rate(one.arm.rate)}"
    return f"{name} [{one.arm.setup}]" if one.arm.setup else name


def _mean(seeds: Sequence[tuple[list[float], list[float]]]) -> tuple[list[float], list[float]]:
    """The mean over seeds at the epochs of the first one, the others read off in between."""
    epochs = seeds[0][0]
    return epochs, np.mean([np.interp(epochs, *one) for one in seeds], axis=0).tolist()
