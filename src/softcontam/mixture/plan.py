"""Which slots of the mixture are replaced, and for which items: a matter of seed and dose only, never of the arm."""

from __future__ import annotations

import random
from collections.abc import Sequence
from dataclasses import dataclass

from softcontam.benchmarks import Item
from softcontam.config import MixtureConfig
from softcontam.duplicates import Bank
from softcontam.errors import ConfigError
from softcontam.mixture.split import FamilySplit


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


def plan_for(config: MixtureConfig, split: FamilySplit, seed: int) -> SlotPlan:
    """The plan of one cell: its dose over the seen half, by the mixture seed."""
    return plan_slots(config.n_rows, config.rate, config.copies, split.seen, seed + 1)


def refuse_short_bank(plan: SlotPlan, bank: Bank | None) -> None:
    """Check that the bank has a row for every planned slot; an exact duplicate is repeated as often as asked for.

    Raises:
        ConfigError: naming the first item that has too few.
    """
    if bank is None or bank.kind == "exact":
        return
    for item, copy in zip(plan.items, plan.copy, strict=True):
        rows = len(bank.rows.get(item.item_id, []))
        if copy >= rows:
            name = bank.kind + (f" at level {bank.level}" if bank.level else "")
            raise ConfigError(
                f"the dose asks for {copy + 1} rows of {name} for item {item.item_id}, but its bank has {rows}. "
                "Lower mixture.rate or mixture.copies, or use a larger bank."
            )
