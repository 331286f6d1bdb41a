"""Which slots of the mixture are replaced, and for which items: a matter of seed and dose only, never of the arm."""

from __future__ import annotations

import random
from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass

from softcontam.benchmarks import Item
from softcontam.config import ConditionConfig, MixtureConfig
from softcontam.duplicates import Bank
from softcontam.errors import ConfigError
from softcontam.mixture.ladder import climb

REGION = 3
"""``early`` and ``late`` are the first and last of so many equal parts of the mixture."""


@dataclass(frozen=True)
class SlotPlan:
    """``slots[i]`` takes the ``copy[i]``-th row (counted from 0) of ``items[i]``."""

    slots: tuple[int, ...]
    items: tuple[Item, ...]
    copy: tuple[int, ...]

    @property
    def copies(self) -> dict[str, int]:
        """Planned rows by item id."""
        return dict(Counter(item.item_id for item in self.items))


def plan_slots(
    n_rows: int, rate: float, copies: int | None, seen: Sequence[Item], seed: int, placement: str = "uniform"
) -> SlotPlan:
    """Plan ``round(rate * n_rows)`` replacements.

    Slots and items are prefixes of orders that depend on the seed only, so a higher rate keeps the slots of a lower
    one. ``copies`` rows go to each covered item; null spreads the rows over all seen items, one each in turn.

    Raises:
        ConfigError: more items would be covered than there are, or more slots than ``placement`` has.
    """
    count = round(rate * n_rows)
    rng = random.Random(seed)
    slots = _slots(n_rows, count, rate, placement, rng)
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
    return SlotPlan(slots, tuple(item for item, _ in pairs), tuple(copy for _, copy in pairs))


def plan_for(config: MixtureConfig, condition: ConditionConfig, seen: Sequence[Item], seed: int) -> SlotPlan:
    """The plan of one cell: its dose over the seen items that can be covered, by the mixture seed.

    Raises:
        ConfigError: a dose that the seen half or the placement cannot hold.
    """
    if not condition.ladder:
        return plan_slots(config.n_rows, config.rate, config.copies, seen, seed + 1, config.placement)
    rng = random.Random(seed + 1)
    count = round(config.rate * config.n_rows)
    slots = _slots(config.n_rows, count, config.rate, config.placement, rng)
    pairs = climb(seen, condition.ladder, count, rng)
    return SlotPlan(slots[: len(pairs)], tuple(item for item, _ in pairs), tuple(copy for _, copy in pairs))


def _slots(n_rows: int, count: int, rate: float, placement: str, rng: random.Random) -> tuple[int, ...]:
    """``count`` different slots of the part of the mixture that the placement names, in a drawn order."""
    part = n_rows // REGION
    region = {"early": range(part), "late": range(n_rows - part, n_rows)}.get(placement, range(n_rows))
    if count > len(region):
        raise ConfigError(
            f"mixture.rate={rate} of {n_rows} rows asks for {count} slots, but mixture.placement={placement} has "
            f"{len(region)} (a {REGION}rd of the rows). Lower the rate, or use placement=uniform."
        )
    return tuple(rng.sample(region, len(region))[:count])


def refuse_short_bank(plan: SlotPlan, bank: Bank | None) -> None:
    """Check that the bank has a row for every planned slot; a bank of repeated rows has as many as asked for.

    Raises:
        ConfigError: naming the first item that has too few.
    """
    if bank is None:
        return
    for item, copy in zip(plan.items, plan.copy, strict=True):
        rows = len(bank.rows.get(item.item_id, []))
        if (rows == 0) if bank.repeated else (copy >= rows):
            name = bank.kind + (f" at level {bank.level}" if bank.level else "")
            raise ConfigError(
                f"the dose asks for {copy + 1} rows of {name} for item {item.item_id}, but its bank has {rows}. "
                "Lower mixture.rate or mixture.copies, use a larger bank, or leave out items without rows "
                f"(benchmark.only_items_with, in all arms alike)."
            )
