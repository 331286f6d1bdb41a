"""Seen and held-out halves of a benchmark, cut between families and never through one."""

from __future__ import annotations

import random
from dataclasses import dataclass

from softcontam.benchmarks import Benchmark, Item
from softcontam.errors import ConfigError

MIN_FAMILIES = 4
"""Fewer families than this cannot carry a split."""


@dataclass(frozen=True)
class FamilySplit:
    """The two halves, each in the benchmark's order."""

    seen: tuple[Item, ...]
    held_out: tuple[Item, ...]


def split_by_family(benchmark: Benchmark, seen_share: float, seed: int) -> FamilySplit:
    """Assign whole families at random until the seen half holds ``seen_share`` of the items.

    Raises:
        ConfigError: too few families for two halves.
    """
    families = benchmark.families()
    if len(families) < MIN_FAMILIES:
        raise ConfigError(
            f"benchmark {benchmark.name} has {len(families)} families of items, too few to split into seen and "
            f"held-out halves (at least {MIN_FAMILIES}). Use more items (benchmark.max_items, benchmark.params)."
        )
    names = sorted(families)
    random.Random(seed).shuffle(names)
    wanted = seen_share * len(benchmark.items)
    seen_families: set[str] = set()
    count = 0
    for name in names:
        size = len(families[name])
        if abs(count + size - wanted) <= abs(count - wanted):
            seen_families.add(name)
            count += size
    if not 0 < len(seen_families) < len(families):
        raise ConfigError(
            f"benchmark.seen_share={seen_share} leaves one half of {benchmark.name} empty "
            f"({len(families)} families, {len(benchmark.items)} items). Choose a share nearer to 0.5."
        )
    return FamilySplit(
        tuple(item for item in benchmark.items if item.family in seen_families),
        tuple(item for item in benchmark.items if item.family not in seen_families),
    )
