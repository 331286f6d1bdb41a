"""The slot plan: a matter of seed and dose only."""

from __future__ import annotations

import inspect
from collections import Counter
from itertools import pairwise

import pytest
from tiny_cells import made_up_benchmark

from softcontam.errors import ConfigError
from softcontam.mixture import SlotPlan, plan_slots

SEEN = made_up_benchmark(10).items
RATES = (0.01, 0.02, 0.05, 0.1, 0.3, 1.0)


def pairs(plan: SlotPlan) -> list[tuple[int, str, int]]:
    return [(s, i.item_id, c) for s, i, c in zip(plan.slots, plan.items, plan.copy, strict=True)]


def test_knows_nothing_of_the_arm() -> None:
    known = {"n_rows", "rate", "copies", "seen", "seed", "placement"}
    assert set(inspect.signature(plan_slots).parameters) == known


@pytest.mark.parametrize("copies", [None, 1, 3])
@pytest.mark.parametrize("seed", [0, 1, 99])
def test_a_higher_rate_keeps_the_slots_items_and_copies_of_a_lower_one(copies: int | None, seed: int) -> None:
    rates = RATES if copies is None else RATES[:4]
    plans = [pairs(plan_slots(200, rate, copies, SEEN, seed)) for rate in rates]
    for lower, higher in pairwise(plans):
        assert len(lower) < len(higher)
        assert higher[: len(lower)] == lower


def test_fills_as_many_different_slots_as_the_rate_says() -> None:
    for rate in RATES:
        plan = plan_slots(200, rate, None, SEEN, 4)
        assert len(plan.slots) == len(set(plan.slots)) == round(200 * rate)
        assert set(plan.slots) <= set(range(200))


def test_null_copies_go_round_all_seen_items_before_any_comes_twice() -> None:
    plan = plan_slots(100, 0.5, None, SEEN, 0)
    assert Counter(item.item_id for item in plan.items[:20]) == Counter(item.item_id for item in SEEN)
    counts = Counter(item.item_id for item in plan.items)
    assert set(counts.values()) == {2, 3}
    assert_copies_count_up(plan)


@pytest.mark.parametrize("copies", [1, 2, 5])
def test_stated_copies_go_to_each_covered_item(copies: int) -> None:
    plan = plan_slots(100, 0.1, copies, SEEN, 0)
    assert set(Counter(item.item_id for item in plan.items).values()) == {copies}
    assert len({item.item_id for item in plan.items}) == 10 // copies
    assert_copies_count_up(plan)


def assert_copies_count_up(plan: SlotPlan) -> None:
    met: Counter[str] = Counter()
    for item, copy in zip(plan.items, plan.copy, strict=True):
        assert copy == met[item.item_id]
        met[item.item_id] += 1


def test_dose_that_does_not_divide_gives_the_last_item_the_rest() -> None:
    plan = plan_slots(100, 0.1, 4, SEEN, 0)
    assert sorted(Counter(item.item_id for item in plan.items).values()) == [2, 4, 4]


def test_slots_do_not_depend_on_copies_or_items() -> None:
    slots = {plan_slots(100, 0.1, copies, seen, 7).slots for copies in (None, 1, 5) for seen in (SEEN, SEEN[:10])}
    assert len(slots) == 1


def test_seeds_differ_and_repeat() -> None:
    assert plan_slots(100, 0.2, None, SEEN, 1) == plan_slots(100, 0.2, None, SEEN, 1)
    assert len({plan_slots(100, 0.2, None, SEEN, seed).slots for seed in range(30)}) == 30
    orders = {tuple(item.item_id for item in plan_slots(100, 0.1, 1, SEEN, seed).items) for seed in range(30)}
    assert len(orders) == 30


def test_slots_lie_all_over_the_mixture() -> None:
    counts = Counter(slot // 25 for seed in range(200) for slot in plan_slots(100, 0.1, None, SEEN, seed).slots)
    assert min(counts.values()) > 400
    assert max(counts.values()) < 600


def test_more_rows_than_items_and_copies_allow() -> None:
    with pytest.raises(ConfigError, match=r"mixture\.rate=0\.5.*50 inserted rows.*20 seen items.*mixture\.copies=2"):
        plan_slots(100, 0.5, 2, SEEN, 0)
    assert len(plan_slots(100, 0.4, 2, SEEN, 0).slots) == 40


def test_placement_puts_the_slots_into_a_third() -> None:
    early, late = (plan_slots(99, 0.2, None, SEEN, 7, placement) for placement in ("early", "late"))
    assert len(early.slots) == len(set(early.slots)) == len(late.slots) == 20
    assert set(early.slots) <= set(range(33))
    assert set(late.slots) <= set(range(66, 99))
    assert early.items == plan_slots(99, 0.2, None, SEEN, 7, "early").items


def test_placement_too_small_for_the_dose() -> None:
    assert len(plan_slots(99, 0.33, None, SEEN, 0, "late").slots) == 33
    with pytest.raises(ConfigError, match=r"asks for 40 slots, but mixture\.placement=early has 33.*placement=uniform"):
        plan_slots(99, 0.4, None, SEEN, 0, "early")
