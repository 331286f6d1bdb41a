"""Seen and held-out halves of a benchmark, cut between families and never through one.

Balance. Families are drawn at random among those alike: of one size, of one stratum (``meta["stratum"]``, in ZebraLogic
the size of the puzzle) and, where a difficulty is given, neighbours in it. Whole families cannot always meet the share.
Every family still has the same chance to be seen, and what is off stays small:

* of two sizes in a stratum that both have a remainder, one is rounded up at the cost of the other (the pivotal method,
  Deville and Tillé 1998), so that large families stand against each other;
* the smallest families of the stratum make up for what its larger ones are off by;
* what remains then is handed on to families of that size in the next stratum, from a random start (systematic
  sampling), so that small strata don't all round the same way;
* in the end single families are moved or exchanged if the seen half is still not of its size.

A benchmark whose families are all alike (tinyworld: pairs without strata) is drawn by a plain shuffle, and rounds up.
"""

from __future__ import annotations

import math
import random
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from itertools import product
from statistics import fmean

from softcontam.benchmarks import Benchmark, Item
from softcontam.errors import ConfigError

MIN_FAMILIES = 4
"""Fewer families than this cannot carry a split."""

DIFFICULTY_BIN = 4
"""Families in one bin of difficulty: of the families alike in size and stratum, those next to each other."""

DRAWS = 20
"""With a difficulty, this many halves are drawn and those with the nearest means kept (Morgan and Rubin 2012)."""

_NO_REMAINDER = 1e-9


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
    strata = _strata(shuffled)
    rounding = _Rounding(rng, start=0.5 if sum(map(len, strata)) == 1 else None)
    seen: set[_Family] = set()
    for stratum in strata:
        for group, count in zip(stratum, _counts(stratum, seen_share, rounding, rng), strict=True):
            seen.update(_spread(group, count, rng) if by_difficulty else group[:count])
    _even_out(seen, shuffled, seen_share * sum(family.size for family in families))
    return seen


def _strata(families: Sequence[_Family]) -> list[list[list[_Family]]]:
    """For each stratum its families by size, large ones first; those alike in the order given."""
    strata: dict[str, dict[int, list[_Family]]] = {}
    for family in families:
        strata.setdefault(family.stratum, {}).setdefault(family.size, []).append(family)
    return [[by_size[size] for size in sorted(by_size, reverse=True)] for _, by_size in sorted(strata.items())]


class _Rounding:
    """Whole counts from amounts that are not whole; the remainder is added to the next amount for that size.

    The expected count is the amount: the start is uniform between 0 and 1, unless it is given.
    """

    def __init__(self, rng: random.Random, start: float | None) -> None:
        self.rng, self.given = rng, start
        self.start: dict[int, float] = {}
        self.due: dict[int, float] = {}
        self.taken: dict[int, int] = {}

    def whole(self, size: int, amount: float, most: int) -> int:
        """The count, between 0 and ``most``, for this amount of families of that size."""
        start = self.start.setdefault(size, self.rng.random() if self.given is None else self.given)
        self.due[size] = self.due.get(size, 0.0) + amount
        taken = self.taken.get(size, 0)
        count = min(max(math.floor(self.due[size] + start) - taken, 0), most)
        self.taken[size] = taken + count
        return count


def _counts(
    stratum: Sequence[Sequence[_Family]], seen_share: float, rounding: _Rounding, rng: random.Random
) -> list[int]:
    """How many families of each size of a stratum are seen."""
    shares = [seen_share * len(group) for group in stratum]
    counts = [math.floor(share) for share in shares]
    waiting, chance = 0, 0.0  # the size whose remainder is undecided, and its chance to be rounded up
    for index in range(len(stratum) - 1):
        other = shares[index] - counts[index]
        total = chance + other
        if total < _NO_REMAINDER:
            continue
        if total < 1:
            waiting, chance = (waiting if rng.random() * total < chance else index), total
        elif rng.random() * (2 - total) < 1 - other:
            counts[waiting] += 1
            waiting, chance = index, total - 1
        else:
            counts[index] += 1
            chance = total - 1
    if chance > _NO_REMAINDER:
        counts[waiting] += rounding.whole(stratum[waiting][0].size, chance, 1)
    owed = sum((shares[index] - counts[index]) * stratum[index][0].size for index in range(len(stratum) - 1))
    size = stratum[-1][0].size
    counts[-1] = rounding.whole(size, shares[-1] + owed / size, len(stratum[-1]))
    return counts


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
    """Move a family, or exchange two, as long as that brings the seen half nearer to ``wanted`` items."""
    while True:
        count = sum(family.size for family in seen)
        leaving = {family.size: family for family in reversed(families) if family in seen}
        entering = {family.size: family for family in reversed(families) if family not in seen}
        moves = product([0, *sorted(leaving)], [0, *sorted(entering)])
        left, entered = min(moves, key=lambda move: abs(count - move[0] + move[1] - wanted))
        if abs(count - left + entered - wanted) >= abs(count - wanted):
            return
        seen.difference_update([leaving[left]] if left else [])
        seen.update([entering[entered]] if entered else [])


def _mean_difference(seen: set[_Family], families: Sequence[_Family]) -> float:
    """How far apart the mean difficulties of the halves' items are; infinite where a half is empty."""
    sums, sizes = {True: 0.0, False: 0.0}, {True: 0, False: 0}
    for family in families:
        sums[family in seen] += family.size * family.difficulty
        sizes[family in seen] += family.size
    return abs(sums[True] / sizes[True] - sums[False] / sizes[False]) if all(sizes.values()) else math.inf
