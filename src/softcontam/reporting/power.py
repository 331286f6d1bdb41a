"""What a sweep can detect, as a table for the terminal, a frame, a page and a figure."""

from __future__ import annotations

import math
from collections.abc import Callable, Hashable, Iterable, Sequence
from dataclasses import replace

import pandas as pd
from rich.box import SIMPLE_HEAD
from rich.markup import escape
from rich.table import Table as TerminalTable

from softcontam.analysis.items import HELD_OUT
from softcontam.analysis.planned import ASSUMED, Planned
from softcontam.analysis.power import detectable, plausible_discordance
from softcontam.reporting.blocks import Block, Bullets, Figure, Heading, Paragraph, Table
from softcontam.reporting.drawing import GRID, INK, Drawing, canvas
from softcontam.reporting.wording import ROLE_NAMES

FIGURE_SEEDS, MOST_FIGURE_SEEDS = 10, 60
"""The figure's x axis goes to the first number of seeds, or further: to those of the design, and to those that the
target takes, if these are not beyond the second."""

DIFFICULTY_SPREADS = (2.5, 1.5)
"""Spreads of item difficulty, in logits, between which the discordance of an unmeasured benchmark plausibly lies."""

FEW_RUNS = 5
"""Below this number of clean runs the table says that their spread is a rough figure."""

_MOST_LISTED = 4
_SCALES = (0.5, 1.0, 2.0, 4.0)
_COLOURS = ("#56B4E9", "#0072B2", "#D55E00", "#332288")
_WORDS = ("contrast", "benchmark", "dose", "noise")


def header(target: float, margin: float) -> list[str]:
    """The columns of a page's table: accuracies and effects in points, spread between runs in logits."""
    return [
        *("contrast", "benchmark", "dose", "items (families)", "seeds", "clean %", "chance %", "headroom"),
        *("discordant %", "run spread", "detectable (at most)"),
        *(f"seeds for {_points(target)}", f"items for {_points(target)}", f"items for ±{_points(margin)}", "noise"),
    ]


def row(one: Planned) -> list[str]:
    """The texts of one planned contrast under :func:`header`."""
    design = one.design
    spread = f"{design.run_logit_sd:.2f}"
    if not math.isnan(one.run_logit_sd_upper):
        spread += f" (to {one.run_logit_sd_upper:.2f})"
    return [
        ROLE_NAMES.get(one.role, one.role),
        f"{one.benchmark} ({one.setup})" if one.setup else one.benchmark,
        "; ".join(one.doses),
        _items(design.items, design.families),
        str(design.seeds),
        f"{100 * design.base_accuracy:.1f}",
        "–" if math.isnan(one.chance) else f"{100 * one.chance:.1f}",
        f"{100 * one.headroom:.1f}",
        f"{100 * design.discordance:.1f}",
        spread,
        f"{_points(one.detectable)} ({_points(one.detectable_at_most)})",
        _needed(one.seeds_needed),
        _items(one.items_of(one.families_needed), one.families_needed),
        _items(one.items_of(one.equivalence_families), one.equivalence_families),
        one.source,
    ]


def terminal_power(planned: Sequence[Planned], title: str) -> TerminalTable:
    """The planned contrasts as a table with its notes below, 110 characters wide.

    Args:
        planned: at least one; all of one target and margin.
        title: what is planned, the table's first line.
    """
    named = f"{title}: smallest detectable effects on accuracy, points (80 % power, two-sided 5 %)"
    table = TerminalTable(title_justify="left", box=SIMPLE_HEAD, pad_edge=False, padding=0)
    table.title = escape(f"{named}\n{answer(planned)}")
    table.caption, table.caption_justify = escape("\n".join(notes(planned))), "left"
    target, margin = _points(planned[0].target), _points(planned[0].margin)
    table.add_column("contrast", overflow="fold")
    for name in (
        *("items\n(families)", "seeds", "clean\n%", "chance\n%", "discor-\ndant %", "run\nspread"),
        *("detectable\n(at most)", f"seeds\nfor {target}", f"items\nfor {target}", f"items\nfor ±{margin}"),
    ):
        table.add_column(name, justify="right", no_wrap=True)
    for one in planned:
        texts = row(one)
        several = f" ({texts[2]})" if one.doses else ""
        items, equivalent = (_needed(one.items_of(n)) for n in (one.families_needed, one.equivalence_families))
        name = f"{texts[0].split()[0]} {texts[1]}{several}".rstrip()
        figures = [*texts[3:7], texts[8], f"{one.design.run_logit_sd:.2f}", *texts[10:12], items, equivalent]
        table.add_row(escape(name), *map(escape, figures))
    return table


def answer(planned: Sequence[Planned]) -> str:
    """Whether a gain of the target can be found, and where, in a sentence or two; where not, what can.

    Of several doses that with the most items stands for all.

    Args:
        planned: at least one; all of one target.
    """
    target = _points(planned[0].target)
    told = _widest(planned, _contrast)
    if not told:
        return f"Whether a gain of {target} points can be found cannot be told: there is no noise to plan with."
    roomy = [one for one in told if one.target <= one.headroom]
    found = [one for one in roomy if one.detectable <= one.target]
    missed = [one for one in roomy if one.detectable > one.target]
    short = [one for one in missed if one.detectable <= one.headroom]
    sentences = []
    if found:
        where = f" on {_listed(map(_place, found))}" if len(planned) > 1 else ""
        sentences.append(f"A gain of {target} points is found in 80 % of such sweeps{where}.")
    elif missed:
        sentences.append(f"A gain of {target} points is found in fewer than 80 % of such sweeps.")
    if short:
        first = sorted(short, key=lambda one: one.role != HELD_OUT)
        each = _listed((f"{_points(one.detectable)} on {_place(one)}{_seeds_for(one)}" for one in first), "; ")
        sentences.append(f"{'Elsewhere the' if found else 'The'} smallest found in 80 %: {each}.")
    if hidden := [one for one in missed if one not in short]:
        sentences.append(f"No gain that there is room for is found on {_places(hidden)}.")
    if lacking := [one for one in told if one not in roomy]:
        sentences.append(f"There is no room for a gain of {target} points on {_places(lacking)}.")
    measured = {_contrast(one) for one in told}
    if silent := [one for one in planned if _contrast(one) not in measured]:
        places = _listed(dict.fromkeys(map(_place, silent)))
        sentences.append(f"Nothing can be told on {places}: there is no noise to plan with.")
    if single := [one for one in told if one.design.seeds == 1]:
        which = "" if len(single) == len(told) else f" ({_listed(map(_place, single))})"
        sentences.append(f"With one seed{which} this holds for that run only, and not for the condition.")
    return " ".join(sentences)


def _contrast(one: Planned) -> tuple[str, str, str]:
    """What a planned contrast shares with those of other doses."""
    return one.setup, one.role, one.benchmark


def _places(those: Sequence[Planned]) -> str:
    """Where there is no room, with the accuracy that this rests on where it is assumed."""
    on = {one.if_assumed for one in those}
    if len(on) == 1:
        return _listed(map(_place, those)) + on.pop()
    return _listed(_place(one) + one.if_assumed for one in those)


def _place(one: Planned) -> str:
    """A planned contrast by role, benchmark and dose."""
    if one.role not in ROLE_NAMES:
        return "these items"
    inner = "; ".join([*filter(None, [one.setup]), *one.doses])
    return f"{ROLE_NAMES[one.role]} {one.benchmark}{f' ({inner})' if inner else ''}"


def _seeds_for(one: Planned) -> str:
    """How many seeds would find the target, in brackets."""
    needed, target = one.seeds_needed, _points(one.target)
    return f" (no number of seeds finds {target})" if needed is None else f" ({target} takes {needed:,} seeds)"


def _listed(texts: Iterable[str], mark: str = ", ") -> str:
    """The first few in a row, and how many more there are in the table."""
    every = list(texts)
    more = f"{mark}{len(every) - _MOST_LISTED} more in the table" if len(every) > _MOST_LISTED else ""
    return mark.join(every[:_MOST_LISTED]) + more


def notes(planned: Sequence[Planned]) -> list[str]:
    """What a reader has to know beside the numbers: what holds for one run only, what is assumed, what cannot be seen.

    Args:
        planned: at least one.
    """
    found = [f"noise: {text}." for text in _sources(planned)]
    found.append(
        "at most: if all that is gained are items that no clean run solves, and runs differ as much as they may "
        f"(80 % limit). Items for ±{_points(planned[0].margin)}: equivalence shown with 90 % power if there is no "
        "difference. –: no number is enough."
    )
    if any(one.design.seeds == 1 for one in planned):
        found.append(
            "1 seed: detectable effects and equivalence are those of a test over items. They hold for that one run "
            "and leave the spread between runs out; a claim about the condition needs at least 2 seeds."
        )
    if any(one.source.startswith("assumed") for one in planned):
        found.append(
            f"Assumed where not given: clean accuracy {100 * ASSUMED.base_accuracy:g} %, item difficulties spread by "
            f"{ASSUMED.difficulty_sd:g} logits, runs by {ASSUMED.run_logit_sd:g} logits, correlation within families "
            f"{ASSUMED.family_correlation:g}. Two or more clean runs in the store replace them."
        )
    if any(0 < one.clean_runs < FEW_RUNS for one in planned):
        found.append(
            f"Fewer than {FEW_RUNS} clean runs tell little of the spread between runs, and an effect may differ from "
            f"seed to seed besides: look at run_logit_sd={ASSUMED.run_logit_sd:g} as well."
        )
    for one in planned:
        where = f"{ROLE_NAMES.get(one.role, one.role)} {one.benchmark}".rstrip()
        where += f" ({'; '.join([*filter(None, [one.setup]), *one.doses])})" if one.setup or one.doses else ""
        found += [f"{where}: {warning}." for warning in one.warnings]
    return list(dict.fromkeys(found))


def _sources(planned: Sequence[Planned]) -> list[str]:
    """Where the noise comes from, each source once; with its benchmarks where there are several sources."""
    by_source: dict[str, list[str]] = {}
    for one in planned:
        by_source.setdefault(one.source, []).append(one.benchmark)
    if len(by_source) == 1:
        return list(by_source)
    return [f"{source} ({', '.join(dict.fromkeys(names))})" for source, names in by_source.items()]


def plausible_range(one: Planned) -> str:
    """Between which detectable effects a design lies whose discordance nobody has measured, in a sentence."""
    base = one.design.base_accuracy
    low, high = (plausible_discordance(base, spread) for spread in DIFFICULTY_SPREADS)
    independent = plausible_discordance(base, 0.0)
    effects = [_points(detectable(replace(one.design, discordance=share))) for share in (low, high, independent)]
    wide, narrow = DIFFICULTY_SPREADS
    return (
        f"The discordance is not known. Between {effects[0]} points (item difficulties spread by {wide} logits, "
        f"{100 * low:.0f} % discordant) and {effects[1]} (by {narrow} logits, {100 * high:.0f} %); {effects[2]} if all "
        f"items were equally hard and answered independently ({100 * independent:.0f} %)."
    )


def power_frame(planned: Sequence[Planned]) -> pd.DataFrame:
    """One row per planned contrast; accuracies, effects and margins as fractions, what is out of reach empty."""
    rows = []
    for one in planned:
        design = one.design
        rows.append(
            {
                "setup": one.setup,
                "role": one.role,
                "benchmark": one.benchmark,
                "dose": "; ".join(one.doses),
                "items": design.items,
                "families": design.families,
                "seeds": design.seeds,
                "base_accuracy": design.base_accuracy,
                "chance": one.chance,
                "headroom": one.headroom,
                "discordance": design.discordance,
                "run_logit_sd": design.run_logit_sd,
                "run_logit_sd_upper": one.run_logit_sd_upper,
                "family_correlation": design.family_correlation,
                "detectable": one.detectable,
                "detectable_at_most": one.detectable_at_most,
                "target": one.target,
                "seeds_needed": one.seeds_needed,
                "items_needed": one.items_of(one.families_needed),
                "families_needed": one.families_needed,
                "margin": one.margin,
                "equivalence_items": one.items_of(one.equivalence_families),
                "equivalence_families": one.equivalence_families,
                "noise": one.source,
                "warnings": " ".join(f"{warning}." for warning in one.warnings),
            }
        )
    counts = ["seeds_needed", "items_needed", "families_needed", "equivalence_items", "equivalence_families"]
    return pd.DataFrame(rows).astype(dict.fromkeys(counts, "Int64"))


def power_blocks(planned: Sequence[Planned], title: str, figure: Figure | None, command: str) -> list[Block]:
    """The page ``power.md``; without a figure where there is no noise to draw one from."""
    columns = header(planned[0].target, planned[0].margin)
    return [
        Heading(f"{title}: what it can detect", 1),
        Paragraph(answer(planned)),
        Paragraph("Smallest detectable effects on accuracy in points, 80 % power, two-sided 5 %."),
        Table(columns, [row(one) for one in planned], _WORDS),
        Bullets(notes(planned)),
        *([] if figure is None else [figure]),
        Paragraph(f"Made by: {command}"),
    ]


def power_figure(planned: Sequence[Planned], name: str) -> Drawing:
    """The smallest detectable effect against the number of seeds: a panel for each contrast.

    A curve for half, once, twice and four times the families; the design is the ringed point. One seed has no test
    over seeds and stands apart from the curves. Of several doses or setups that with the most items is drawn.

    Args:
        planned: at least one with noise to plan with.
        name: told apart from other figures of a page; its ids start with it.
    """
    panels = _panels(planned)
    with canvas(max(5.2, 3.4 * len(panels)), 3.9) as figure:
        axes = figure.subplots(1, len(panels), sharey=True, squeeze=False)[0]
        for axis, one in zip(axes, panels, strict=True):
            seeds = range(2, _last_seeds(one) + 1)
            for scale, colour in zip(_SCALES, _COLOURS, strict=True):
                design = replace(one.design, families=max(1, round(one.design.families * scale)))
                effects = [100 * detectable(replace(design, seeds=count)) for count in seeds]
                width = 2.2 if scale == 1 else 1.3
                axis.plot(seeds, effects, color=colour, linewidth=width, label=f"{scale:g} × the families")
                axis.plot([1], [100 * detectable(replace(design, seeds=1))], "_", color=colour, markersize=9)
            ring = {"markerfacecolor": "none", "markeredgecolor": INK, "markeredgewidth": 1.6, "linestyle": "none"}
            axis.plot(
                [one.design.seeds], [100 * one.detectable], marker="o", markersize=10, label="this design", **ring
            )
            axis.axhline(100 * one.target, color=INK, linewidth=0.9, linestyle="--", label="target")
            axis.set_title(f"{ROLE_NAMES.get(one.role, one.role)}\n{one.benchmark}", fontsize=10)
            axis.set_xlabel("seeds (1: a test over items, for that run only)")
            axis.set_xscale("log")
            ticks = [1, *[tick for tick in (2, 3, 5, 10, 20, 50, 100, 200) if tick <= seeds[-1]]]
            axis.set_xticks(ticks, [str(tick) for tick in ticks])
            axis.minorticks_off()
            axis.grid(axis="y", color=GRID, linewidth=0.7)
            axis.spines[["top", "right"]].set_visible(False)
            # two seeds need three times the effect of three: the curves' steep end would flatten the rest
            axis.set_ylim(0, 100 * max(_top(panel) for panel in panels))
        axes[0].set_ylabel("smallest detectable effect (points)")
        handles, labels = axes[0].get_legend_handles_labels()
        figure.legend(handles, labels, loc="outside lower center", ncols=3, frameon=False)
        return Drawing(figure, name)


def _last_seeds(one: Planned) -> int:
    """Where the x axis of a panel ends."""
    needed = one.seeds_needed or 0
    return max(FIGURE_SEEDS, one.design.seeds, needed if needed <= MOST_FIGURE_SEEDS else 0)


def _top(one: Planned) -> float:
    """Where the y axis of a panel ends: above the design and above half the families at three seeds."""
    half = replace(one.design, families=max(1, round(one.design.families * _SCALES[0])), seeds=3)
    return 1.15 * max(one.detectable, detectable(half), detectable(replace(half, seeds=1)), one.target)


def _panels(planned: Sequence[Planned]) -> list[Planned]:
    return _widest(planned, lambda one: (one.role, one.benchmark))


def _widest(planned: Sequence[Planned], key: Callable[[Planned], Hashable]) -> list[Planned]:
    """Of those with the same key that have noise to plan with, the one with the most items."""
    found: dict[Hashable, Planned] = {}
    for one in planned:
        kept = found.get(key(one))
        if one.measurable and (kept is None or one.design.items > kept.design.items):
            found[key(one)] = one
    return list(found.values())


def _points(effect: float) -> str:
    if math.isnan(effect):
        return "–"
    return ">100" if effect > 1 else f"{100 * effect:.1f}"


def _needed(count: int | None) -> str:
    return "–" if count is None else f"{count:,}"


def _items(items: int | None, families: int | None) -> str:
    """Items, with their families where these are fewer."""
    return _needed(items) if items == families else f"{_needed(items)} ({_needed(families)})"
