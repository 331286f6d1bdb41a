"""Seen and held-out halves of a benchmark, cut between families and never through one.

Balance. Families are drawn at random among those alike: of one size, of one stratum (``meta["stratum"]``, in ZebraLogic
the size of the puzzle) and, where a difficulty is given, neighbours in it. Where whole families cannot meet the share,
it is drawn whether one more or one less is taken, and the families drawn next make up for it: first the smaller ones
of the same stratum, then those of the next. With halves of equal share every family has the same chance of either; with
another share, this holds on the average of a stratum, and a family that has to make up for a larger one may be off.

A benchmark whose families are all alike (tinyworld: pairs without strata) is drawn by a plain shuffle, and rounds up.
"""

from __future__ import annotations

import math
import random
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from statistics import fmean

from softcontam.benchmarks import Benchmark, Item
from softcontam.errors import ConfigError

MIN_FAMILIES = 4
"""Fewer families than this cannot carry a split."""

DIFFICULTY_BIN = 4
"""Families in one bin of difficulty: of the families alike in size and stratum, those next to each other."""

DRAWS = 20
"""With a difficulty, this many halves are drawn and those with the nearest means kept (Morgan and Rubin 2012)."""


@dataclass(frozen=True)
class FamilySplit:
    """The two halves, each in the benchmark's order, and the difficulty by item id that they were balanced for."""

    seen: tuple[Item, ...]
    held_out: tuple[Item, ...]
    difficulty: Mapping[str, float] = field(default_factory=dict, repr=False, hash=False)


@dataclass(frozen=True)
class _Family:
    """What a draw needs of a family; ``difficulty`` is the mean of its items, 0 where none is given."""

    name: str
    size: int
    stratum: str
    difficulty: float


def split_by_family(
    benchmark: Benchmark, seen_share: float, seed: int, difficulty: Mapping[str, float] | None = None
) -> FamilySplit:
    """Assign whole families at random until the seen half holds ``seen_share`` of the items, overall and by stratum.

    Args:
        difficulty: of every item by its id, in any unit; None to balance for family size and stratum only.

    Raises:
        ConfigError: too few families for two halves.
    """
    families = [_family(name, members, difficulty) for name, members in sorted(benchmark.families().items())]
    if len(families) < MIN_FAMILIES:
        raise ConfigError(
            f"benchmark {benchmark.name} has {len(families)} families of items, too few to split into seen and "
            f"held-out halves (at least {MIN_FAMILIES}). Use more items (benchmark.max_items, benchmark.params)."
        )
    rng = random.Random(seed)
    if difficulty is None:
        drawn = _drawn(families, seen_share, rng, by_difficulty=False)
    else:
        draws = [_drawn(families, seen_share, rng, by_difficulty=True) for _ in range(DRAWS)]
        drawn = min(draws, key=lambda one: _mean_difference(one, families))
    seen = {family.name for family in drawn}
    if not 0 < len(seen) < len(families):
        raise ConfigError(
            f"benchmark.seen_share={seen_share} leaves one half of {benchmark.name} empty "
            f"({len(families)} families, {len(benchmark.items)} items). Choose a share nearer to 0.5."
        )
    return FamilySplit(
        tuple(item for item in benchmark.items if item.family in seen),
        tuple(item for item in benchmark.items if item.family not in seen),
        dict(difficulty or {}),
    )


def _family(name: str, members: Sequence[Item], difficulty: Mapping[str, float] | None) -> _Family:
    mean = 0.0 if difficulty is None else fmean(difficulty[item.item_id] for item in members)
    return _Family(name, len(members), str(members[0].meta.get("stratum", "")), mean)


def _drawn(families: Sequence[_Family], seen_share: float, rng: random.Random, by_difficulty: bool) -> set[_Family]:
    """The families of one seen half."""
    shuffled = list(families)
    rng.shuffle(shuffled)
    groups = _alike(shuffled)
    seen: set[_Family] = set()
    owed = 0.0
    for index, group in enumerate(groups):
        size, share = group[0].size, seen_share * len(group)
        due = owed / size + share
        count = math.floor(due + (0.5 if len(groups) == 1 else rng.random()))  # random: ``due`` on the average
        smallest = index + 1 == len(groups) or groups[index + 1][0].stratum != group[0].stratum
        least, most = (0, len(group)) if smallest else (math.floor(share), math.ceil(share))
        count = min(max(count, least), most)
        seen.update(_spread(group, count, rng) if by_difficulty else group[:count])
        owed = (due - count) * size
    _even_out(seen, shuffled, seen_share * sum(family.size for family in families))
    return seen


def _alike(families: Sequence[_Family]) -> list[list[_Family]]:
    """Families of one stratum and size, in the order given; in each stratum large ones first."""
    groups: dict[tuple[str, int], list[_Family]] = {}
    for family in families:
        groups.setdefault((family.stratum, -family.size), []).append(family)
    return [groups[key] for key in sorted(groups)]


def _spread(group: Sequence[_Family], count: int, rng: random.Random) -> list[_Family]:
    """``count`` of a group, from each bin of neighbours in difficulty as many as its share, the first ones of each."""
    ranked = sorted(range(len(group)), key=lambda place: group[place].difficulty)
    chosen: list[_Family] = []
    start = rng.random()
    for first in range(0, len(ranked), DIFFICULTY_BIN):
        neighbours = sorted(ranked[first : first + DIFFICULTY_BIN])
        by_now = math.floor(count * (first + len(neighbours)) / len(group) + start)
        chosen += [group[place] for place in neighbours[: by_now - len(chosen)]]
    return chosen


def _even_out(seen: set[_Family], families: Sequence[_Family], wanted: float) -> None:
    """Move a family at a time as long as that brings the seen half nearer to the ``wanted`` number of items.

    The families drawn last may be too few for what was left to them.
    """
    while True:
        count = sum(family.size for family in seen)
        after = {family: count + (-family.size if family in seen else family.size) for family in families}
        nearest = min(families, key=lambda family: abs(after[family] - wanted))
        if abs(after[nearest] - wanted) >= abs(count - wanted):
            return
        seen.symmetric_difference_update({nearest})


def _mean_difference(seen: set[_Family], families: Sequence[_Family]) -> float:
    """How far apart the mean difficulties of the halves' items are; infinite where a half is empty."""
    sums, sizes = {True: 0.0, False: 0.0}, {True: 0, False: 0}
    for family in families:
        sums[family in seen] += family.size * family.difficulty
        sizes[family in seen] += family.size
    return abs(sums[True] / sizes[True] - sums[False] / sizes[False]) if all(sizes.values()) else math.inf
