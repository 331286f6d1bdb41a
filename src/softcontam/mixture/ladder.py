"""Dose as a factor within one model: families of seen items assigned at random to numbers of copies.

After Bordt et al. (forgetting contamination) and Hubble, who train one model on items repeated 0 to 144 times: since
all doses share a model, their comparison is free of the spread between training runs.
"""

from __future__ import annotations

import random
from collections.abc import Sequence

from softcontam.benchmarks import Item
from softcontam.errors import ConfigError


def climb(seen: Sequence[Item], ladder: Sequence[int], count: int, rng: random.Random) -> list[tuple[Item, int]]:
    """(item, copy) pairs: in each round one family per rung of the ladder, for as many rounds as ``count`` rows allow.

    Items of one family have the same dose, since training on one bears on the other. Families beyond the last whole
    round have dose 0, as those on a rung of 0 have.

    Raises:
        ConfigError: not even one round fits into ``count`` rows, or the seen half has fewer families than rungs.
    """
    families: dict[str, list[Item]] = {}
    for item in seen:
        families.setdefault(item.family, []).append(item)
    if len(families) < len(ladder):
        raise ConfigError(
            f"condition.ladder has {len(ladder)} rungs, but the seen half has {len(families)} families of items. "
            "Use fewer rungs or more items."
        )
    order = list(families.values())
    rng.shuffle(order)
    pairs: list[tuple[Item, int]] = []
    for first in range(0, len(order) - len(ladder) + 1, len(ladder)):
        members = order[first : first + len(ladder)]
        doses = zip(members, ladder, strict=True)
        added = [(item, copy) for family, dose in doses for item in family for copy in range(dose)]
        if len(pairs) + len(added) > count:
            if not pairs:
                raise ConfigError(
                    f"condition.ladder={list(ladder)} needs {len(added)} rows for one family at each dose, but "
                    f"mixture.rate of mixture.n_rows gives {count}. Raise either, or shorten the ladder."
                )
            break
        pairs += added
    return pairs
