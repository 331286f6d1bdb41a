"""Which row of the bank goes into which slot: at random, then exchanged until the arm's tokens match.

The arm of exact duplicates is fixed by the benchmark, so it is what every other arm of the seed and dose is matched to:
the same slots filled with the items' own text and answer. Rows are drawn at random first; single rows are then
exchanged for others of the same item and level until tokens and trained tokens are near enough, and no further, so that
chance decides as much as it can.
"""

from __future__ import annotations

import random
from collections import Counter, defaultdict
from collections.abc import Callable, Collection, Mapping, Sequence
from dataclasses import dataclass, replace
from weakref import WeakKeyDictionary

import numpy as np
from numpy.typing import NDArray

from softcontam.benchmarks import Item
from softcontam.chat import Chat, EncodedRow
from softcontam.duplicates import Bank, BankRow, exact
from softcontam.errors import LeakageError, TokenizationError
from softcontam.mixture.plan import SlotPlan, refuse_short_bank

NEAR_ENOUGH = 0.002
"""Exchanges stop when tokens and trained tokens are both within this share of those of the exact rows."""

ROUNDS = 4
"""How often each slot is tried for an exchange at most."""

Finds = Callable[[Sequence[tuple[str, str]]], NDArray[np.bool_]]
"""Says for each (prompt, completion) whether a filter finds it."""


@dataclass(frozen=True)
class Insertion:
    """A row of the bank for one slot, encoded whole."""

    slot: int
    item: Item
    row: BankRow
    encoded: EncodedRow


@dataclass(frozen=True)
class Chosen:
    """The insertions of an arm in the order of the plan, and what they are matched to.

    ``reference`` has the exact duplicate for each planned slot, ``removed`` are those insertions that the condition's
    filter took out again, ``left_out`` ids of rows of the bank that were near a held-out item, and ``alike`` ids of
    seen items that are near one themselves.
    """

    insertions: tuple[Insertion, ...]
    reference: Mapping[int, EncodedRow]
    removed: tuple[Insertion, ...] = ()
    left_out: tuple[str, ...] = ()
    alike: tuple[str, ...] = ()

    @property
    def copies(self) -> dict[str, int]:
        """Inserted rows by item id."""
        return dict(Counter(one.item.item_id for one in self.insertions))


def choose(
    plan: SlotPlan,
    bank: Bank,
    chat: Chat,
    max_length: int,
    seed: int,
    *,
    admitted: Collection[str] = (),
    filtered: Finds | None = None,
    near_held_out: Finds | None = None,
    leave_out: bool = False,
) -> Chosen:
    """Choose a row for every slot of the plan.

    Args:
        admitted: quantities of :data:`~softcontam.config.MATCHED` that the arm may differ in.
        filtered: the condition's decontamination filter; what it finds is taken out again.
        near_held_out: finds rows that are near a held-out item; they are refused, or left out if ``leave_out``.

    Raises:
        TokenizationError: a row of a planned item does not fit into ``max_length`` tokens.
        LeakageError: a row of a planned item is near a held-out item.
    """
    rows = {item_id: list(bank.rows[item_id]) for item_id in plan.copies}
    left_out: list[str] = []
    alike: list[str] = []
    if near_held_out is not None:
        left_out, alike = _near_held_out(rows, plan, bank, near_held_out, leave_out)
    encoded = _encode(chat, rows, bank, max_length, plan)
    exact_rows = {item.item_id: [exact.row(item)] for item in plan.items}
    reference = _encode(chat, exact_rows, Bank("exact", None, exact_rows, repeated=True), max_length, plan)
    wanted = [reference[exact_rows[item.item_id][0].sha256] for item in plan.items]
    picked = _draw(plan, rows, bank.repeated, seed)
    if not bank.from_pool:  # a placebo is a random sample of the pool, whatever its length
        rng = random.Random(f"{seed}:exchange")
        _exchange(_groups(plan, bank.repeated), plan, rows, picked, encoded, _Goal(wanted, admitted), rng)
    insertions = [
        Insertion(slot, item, row, encoded[row.sha256])
        for slot, item, row in zip(plan.slots, plan.items, picked, strict=True)
    ]
    removed: list[Insertion] = []
    if filtered is not None:
        found = filtered([(one.row.prompt, one.row.completion) for one in insertions])
        removed = [one for one, hit in zip(insertions, found, strict=True) if hit]
        insertions = [one for one, hit in zip(insertions, found, strict=True) if not hit]
    by_slot = dict(zip(plan.slots, wanted, strict=True))
    return Chosen(tuple(insertions), by_slot, tuple(removed), tuple(left_out), tuple(alike))


def _draw(plan: SlotPlan, rows: dict[str, list[BankRow]], repeated: bool, seed: int) -> list[BankRow]:
    """The ``copy``-th row of each planned item in an order drawn for it; the one row again where rows are repeated."""
    orders = {
        item_id: found if repeated else random.Random(f"{seed}:{item_id}").sample(found, len(found))
        for item_id, found in rows.items()
    }
    return [orders[item.item_id][0 if repeated else copy] for item, copy in zip(plan.items, plan.copy, strict=True)]


def _groups(plan: SlotPlan, repeated: bool) -> list[list[int]]:
    """Places of the plan that take one row: each by itself, or all copies of an item where rows are repeated."""
    if not repeated:
        return [[place] for place in range(len(plan.items))]
    by_item: dict[str, list[int]] = defaultdict(list)
    for place, item in enumerate(plan.items):
        by_item[item.item_id].append(place)
    return list(by_item.values())


def _exchange(
    groups: Sequence[Sequence[int]],
    plan: SlotPlan,
    rows: Mapping[str, Sequence[BankRow]],
    picked: list[BankRow],
    encoded: Mapping[str, EncodedRow],
    goal: _Goal,
    rng: random.Random,
) -> None:
    """Exchange picked rows for unused ones of the same item, group after group, as long as the sums come nearer."""
    sizes = {key: _size(one) for key, one in encoded.items()}
    total = np.sum([sizes[row.sha256] for row in picked], axis=0)
    used = {row.row_id for row in picked}
    for _ in range(ROUNDS):
        for group in rng.sample(groups, len(groups)):
            if goal.reached(total):
                return
            now = picked[group[0]]
            others = rows[plan.items[group[0]].item_id]
            free = [row for row in others if row.level == now.level and row.row_id not in used]
            if not free:
                continue
            rest = total - len(group) * sizes[now.sha256]
            changed = {row.row_id: rest + len(group) * sizes[row.sha256] for row in free}
            best = min(free, key=lambda row: goal.distance(changed[row.row_id]))
            if goal.distance(changed[best.row_id]) < goal.distance(total):
                total = changed[best.row_id]
                used.symmetric_difference_update((now.row_id, best.row_id))
                for place in group:
                    picked[place] = best


def _size(row: EncodedRow) -> NDArray[np.float64]:
    """Tokens and trained tokens, the quantities of :data:`_QUANTITIES`."""
    return np.array([row.tokens, row.trained_tokens], dtype=np.float64)


_QUANTITIES = ("tokens", "trained_tokens")


class _Goal:
    """The sums of the exact rows. What an arm may differ in is only brought near once the rest is."""

    def __init__(self, wanted: Sequence[EncodedRow], admitted: Collection[str]) -> None:
        self._sums = np.maximum(np.sum([_size(one) for one in wanted], axis=0), 1.0)
        self._needed = np.array([name not in admitted for name in _QUANTITIES])

    def distance(self, total: NDArray[np.float64]) -> float:
        """The largest relative difference of what is needed; below :data:`NEAR_ENOUGH` by that of the others."""
        needed, other = self._differences(total)
        return needed if needed > NEAR_ENOUGH else NEAR_ENOUGH * other / (1 + other)

    def reached(self, total: NDArray[np.float64]) -> bool:
        """Whether all sums are near enough."""
        return max(self._differences(total)) <= NEAR_ENOUGH

    def _differences(self, total: NDArray[np.float64]) -> tuple[float, float]:
        differences = np.abs(total - self._sums) / self._sums
        return float(differences[self._needed].max(initial=0)), float(differences[~self._needed].max(initial=0))


_encoded: WeakKeyDictionary[Chat, dict[str, EncodedRow]] = WeakKeyDictionary()


def _encode(
    chat: Chat, rows: dict[str, list[BankRow]], bank: Bank, max_length: int, plan: SlotPlan
) -> dict[str, EncodedRow]:
    """Encoded rows by sha256, encoded once for the cells of a process that share a chat.

    Rows of the clean pool that do not fit are passed over, as they are when clean rows are drawn.

    Raises:
        TokenizationError: a row does not fit and would be truncated.
    """
    known = _encoded.setdefault(chat, {})
    every = {row.sha256: row for found in rows.values() for row in found}
    missing = [row for key, row in every.items() if key not in known]
    fresh = chat.encode_many([(row.prompt, row.completion) for row in missing])
    known.update(zip((row.sha256 for row in missing), fresh, strict=True))
    long = {key: row for key, row in every.items() if known[key].tokens > max_length}
    if long and bank.from_pool:
        for item_id, found in rows.items():
            rows[item_id] = [row for row in found if row.sha256 not in long]
        refuse_short_bank(plan, replace(bank, rows=rows))
    elif long:
        key, row = next(iter(long.items()))
        raise TokenizationError(
            f"inserted row {row.row_id} has {known[key].tokens} tokens and would be truncated at "
            f"train.max_length={max_length}; {len(long) - 1} others would be too. Raise max_length, or drop these rows "
            "from the bank."
        )
    return {key: known[key] for key in every}


def _near_held_out(
    rows: dict[str, list[BankRow]], plan: SlotPlan, bank: Bank, finds: Finds, leave_out: bool
) -> tuple[list[str], list[str]]:
    """Take rows that are near a held-out item out of ``rows``; their ids, and the items that are near one themselves.

    An item that the filter finds near a held-out one shares wording with it ("takes in a list of tuples and returns a")
    without being of its family. Its rows share that wording, too: what they are near to says nothing about them.
    """
    items = list({item.item_id: item for item in plan.items}.values())
    found = finds([(item.prompt, item.target) for item in items])
    alike = [item.item_id for item, hit in zip(items, found, strict=True) if hit]
    every = [row for item_id, found in rows.items() if item_id not in alike for row in found]
    hits = {row.row_id for row, hit in zip(every, finds([(r.prompt, r.completion) for r in every]), strict=True) if hit}
    if hits and not leave_out:
        raise LeakageError(
            f"{len(hits)} of {len(every)} {bank.kind} rows for seen items are near a held-out item by "
            f"mixture.near_filter, first {min(hits)}. Take them out of the bank, put the items into one family, or set "
            "mixture.near_held_out=leave_out to do without these rows."
        )
    for item_id in rows:
        rows[item_id] = [row for row in rows[item_id] if row.row_id not in hits]
        needed = 1 if bank.repeated else plan.copies[item_id]
        if len(rows[item_id]) < needed:
            raise LeakageError(
                f"without the rows that are near a held-out item, {item_id} has {len(rows[item_id])} {bank.kind} rows "
                f"and {needed} are planned. Lower the dose, or use a larger bank."
            )
    return sorted(hits), alike
