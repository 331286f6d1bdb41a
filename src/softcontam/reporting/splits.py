"""The parts of a page on the split: how alike the halves are at baseline, and which items belong together."""

from __future__ import annotations

import math
from collections.abc import Iterator

from softcontam.analysis.effects import SweepEffects
from softcontam.analysis.families import FamilySummary
from softcontam.analysis.halves import Half, Halves
from softcontam.reporting import wording
from softcontam.reporting.blocks import Block, Bullets, Folded, Heading, Paragraph, Table
from softcontam.reporting.wording import number

_WORDS = ("benchmark", "seed", "evidence (pairs)", "item", "evidence")


def halves_blocks(measured: SweepEffects) -> Iterator[Block]:
    """The clean arm on the seen and the held-out half: what differs there is no effect of what was inserted."""
    if not measured.halves:
        return
    yield Heading("Halves at baseline")
    yield Paragraph(
        "The clean arm on both halves, seen − held-out. A seed's interval is over families (Welch's t, 95 %), that of "
        "the mean over seeds (t, 95 %). Family sizes: size × number of families."
    )
    for one in measured.halves:
        yield Paragraph(f"{_name(one)}: {_balance(one)}")
        yield _halves_table(one)
        if warnings := list(_warnings(one)):
            yield Bullets(warnings, style="caution")


def families_blocks(measured: SweepEffects) -> Iterator[Block]:
    """Which items share a family, and the evidence."""
    if not measured.families:
        return
    yield Heading("Families")
    yield Paragraph(
        "Items of one family share a passage, template or twin; no split, interval or mean goes through a family. "
        "Pairs are those found to belong together; families join them transitively."
    )
    header = ("benchmark", "items", "families", "items that share one", "largest", "strata", "evidence (pairs)")
    yield Table(header, [_family_row(one) for one in measured.families], _WORDS)
    for one in measured.families:
        if one.examples:
            rows = [[pair.first, pair.evidence] for pair in one.examples]
            shown = f"{len(rows)} of {sum(one.kinds.values())} pairs of {one.benchmark} with their evidence"
            yield Folded(shown, [Table(("item", "evidence"), rows, _WORDS)])


def _name(one: Halves) -> str:
    return f"{one.split_benchmark}{f' ({one.setup})' if one.setup else ''}"


def _balance(one: Halves) -> str:
    """What the halves were balanced for."""
    if one.strata is None:
        return "families were not recorded in these cells, and what the halves were balanced for is not known."
    stratum = " and stratum" if one.strata else ""
    if one.difficulty:
        return f"halves drawn by family, balanced for family size{stratum} and for difficulty ({one.difficulty})."
    return f"halves drawn by family, balanced for family size{stratum}; no difficulty was given (benchmark.difficulty)."


def _halves_table(one: Halves) -> Table:
    unit = wording.unit_of(one.outcome)
    with_difficulty = any(
        not math.isnan(half.difficulty) for seed in one.per_seed for half in (seed.seen, seed.held_out)
    )
    name = "accuracy %" if unit.scale == 100 else "log-prob per token"
    rows = [
        [
            str(seed.seed),
            *_sizes(seed.seen),
            *_sizes(seed.held_out),
            *(number(value, unit) for value in (seed.seen.value, seed.held_out.value)),
            number(seed.difference, unit, signed=True),
            wording.bounds(seed.low, seed.high, unit),
            *([_difficulty(seed.seen), _difficulty(seed.held_out)] if with_difficulty else []),
        ]
        for seed in one.per_seed
    ]
    means = [sum(getattr(seed, half).value for seed in one.per_seed) / len(rows) for half in ("seen", "held_out")]
    total = ["mean", *["–"] * 6, *(number(value, unit) for value in means)]
    total += [number(one.estimate.mean, unit, signed=True), wording.interval(one.estimate, unit)]
    rows.append(total + (["–"] * 2 if with_difficulty else []))
    header = (
        "seed",
        *(f"{half} {what}" for half in ("seen", "held-out") for what in ("items", "families", "family sizes")),
        *(f"seen {name}", f"held-out {name}", f"difference, {unit.noun}", "95 % interval"),
        *(("seen difficulty", "held-out difficulty") if with_difficulty else ()),
    )
    return Table(header, rows, _WORDS)


def _sizes(half: Half) -> tuple[str, str, str]:
    sizes = ", ".join(f"{size}×{count}" for size, count in half.family_sizes.items())
    return str(half.n_items), str(half.n_families), sizes


def _difficulty(half: Half) -> str:
    return "–" if math.isnan(half.difficulty) else f"{half.difficulty:.3g}"


def _warnings(one: Halves) -> Iterator[str]:
    """Halves that differ at baseline by more than their interval."""
    unit = wording.unit_of(one.outcome)
    remedy = "Read the differences in differences, which take the baseline out, rather than seen beside held-out" + (
        "." if one.difficulty else ", or balance the halves for difficulty (benchmark.difficulty)."
    )
    if one.estimate.shown:
        yield (
            f"The halves of {_name(one)} differ at baseline over the seeds: seen − held-out is "
            f"{wording.amount(one.estimate, unit)}. {remedy}"
        )
    if differing := one.differing_seeds:
        listed = ", ".join(map(str, differing))
        yield (
            f"The halves of {_name(one)} differ at baseline by more than their interval in {len(differing)} of "
            f"{wording.seeds(len(one.per_seed))} (seed {listed}); about 1 in 20 does by chance. {remedy}"
        )


def _family_row(one: FamilySummary) -> list[str]:
    evidence = ", ".join(f"{kind} {count}" for kind, count in one.kinds.items())
    if not evidence:
        evidence = "made as families by the benchmark" if one.sharing else "none found"
    sharing = f"{one.sharing} ({wording.percent(one.sharing / one.n_items)} %)"
    counts = (one.n_items, one.n_families, sharing, one.largest, one.strata or "–")
    return [one.benchmark, *map(str, counts), evidence]
