"""Which slots of the mixture are replaced, and for which items: a matter of seed and dose only, never of the arm."""

from __future__ import annotations

import random
from collections.abc import Sequence
from dataclasses import dataclass

from softcontam.benchmarks import Item
from softcontam.errors import ConfigError


@dataclass(frozen=True)
class SlotPlan:
    """``slots[i]`` takes the ``copy[i]``-th row (counted from 0) of ``items[i]``."""

    n_rows: int
    slots: tuple[int, ...]
    items: tuple[Item, ...]
    copy: tuple[int, ...]


def plan_slots(n_rows: int, rate: float, copies: int | None, seen: Sequence[Item], seed: int) -> SlotPlan:
    """Plan ``round(rate * n_rows)`` replacements.

    Slots and items are prefixes of orders that depend on the seed only, so a higher rate keeps the slots of a lower
    one. ``copies`` rows go to each covered item; null spreads the rows over all seen items, one each in turn.

    Raises:
        ConfigError: more items would be covered than there are.
    """
    count = round(rate * n_rows)
    rng = random.Random(seed)
    slots = rng.sample(range(n_rows), n_rows)[:count]
    order = list(seen)
    rng.shuffle(order)
    if copies is None:
        pairs = [(order[i % len(order)], i // len(order)) for i in range(count)]
    else:
        if count > copies * len(order):
            raise ConfigError(
                f"mixture.rate={rate} of {n_rows} rows asks for {count} inserted rows, but {len(order)} seen items "
                f"with mixture.copies={copies} give {copies * len(order)}. Lower the rate or raise the copies."
            )
        pairs = [(order[i // copies], i % copies) for i in range(count)]
    return SlotPlan(n_rows, tuple(slots), tuple(item for item, _ in pairs), tuple(copy for _, copy in pairs))
