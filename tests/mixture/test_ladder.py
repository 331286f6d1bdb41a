"""The dose ladder: families at random doses within one model."""

from __future__ import annotations

import random
from collections import Counter

import pytest
from tiny_cells import made_up_benchmark

from softcontam.config import ConditionConfig, MixtureConfig
from softcontam.errors import ConfigError
from softcontam.mixture.ladder import climb
from softcontam.mixture.plan import plan_for

SEEN = made_up_benchmark(24).items  # families of two
LADDER = (0, 1, 2, 4)


def doses(count: int, seed: int = 0) -> Counter[str]:
    return Counter(item.item_id for item, _ in climb(SEEN, LADDER, count, random.Random(seed)))


def test_each_whole_round_gives_every_dose_to_one_family() -> None:
    given = doses(count=30)  # a round takes 7 copies of 2 items: two rounds fit
    by_dose = Counter(given.values())
    assert by_dose == {1: 4, 2: 4, 4: 4}
    assert sum(given.values()) == 28


def test_items_of_a_family_have_the_same_dose() -> None:
    given = doses(count=84)
    family = {item.item_id: item.family for item in SEEN}
    by_family: dict[str, set[int]] = {}
    for item in SEEN:
        by_family.setdefault(family[item.item_id], set()).add(given[item.item_id])
    assert {len(found) for found in by_family.values()} == {1}
    assert Counter(next(iter(found)) for found in by_family.values()) == {0: 6, 1: 6, 2: 6, 4: 6}


def test_every_family_gets_every_dose_at_some_seed() -> None:
    met: dict[str, set[int]] = {}
    for seed in range(60):
        given = doses(count=84, seed=seed)
        for item in SEEN:
            met.setdefault(item.family, set()).add(given[item.item_id])
    assert all(found == set(LADDER) for found in met.values())


def test_copies_of_an_item_count_up_from_nought() -> None:
    met: Counter[str] = Counter()
    for item, copy in climb(SEEN, LADDER, 84, random.Random(1)):
        assert copy == met[item.item_id]
        met[item.item_id] += 1


def test_too_few_rows_for_one_round() -> None:
    with pytest.raises(ConfigError, match=r"ladder=\[0, 1, 2, 4\] needs 14 rows for one family at each dose.*gives 13"):
        climb(SEEN, LADDER, 13, random.Random(0))


def test_more_rungs_than_families() -> None:
    with pytest.raises(ConfigError, match="5 rungs, but the seen half has 2 families"):
        climb(SEEN[:4], (0, 1, 2, 4, 8), 1000, random.Random(0))


def test_the_plan_of_a_ladder_uses_the_slots_of_the_other_arms_of_its_seed() -> None:
    config = MixtureConfig(n_rows=100, rate=0.3)
    ladder = plan_for(config, ConditionConfig("exact", ladder=list(LADDER)), SEEN, 5)
    others = plan_for(config, ConditionConfig("exact"), SEEN, 5)
    assert len(ladder.slots) == 28
    assert others.slots[:28] == ladder.slots
