"""The family split: never through a family, balanced, the same for the same seed."""

from __future__ import annotations

import random
from dataclasses import replace

import pytest
from tiny_cells import made_up_benchmark

from softcontam.benchmarks.item import Benchmark, Item
from softcontam.errors import ConfigError
from softcontam.mixture import FamilySplit, split_by_family


def uneven(seed: int, n_families: int, largest: int) -> Benchmark:
    """A benchmark whose families differ in size and whose items are shuffled."""
    rng = random.Random(seed)
    items = [
        Item(f"{family}-{member}", "uneven", f"f{family}", f"What is {family} and {member}?", "Answer: 1")
        for family in range(n_families)
        for member in range(rng.randint(1, largest))
    ]
    rng.shuffle(items)
    return replace(made_up_benchmark(), name="uneven", items=tuple(items))


def families(split: FamilySplit) -> tuple[set[str], set[str]]:
    return {item.family for item in split.seen}, {item.family for item in split.held_out}


@pytest.mark.parametrize("largest", [1, 2, 7])
@pytest.mark.parametrize("share", [0.3, 0.5, 0.8])
def test_never_cuts_a_family_loses_no_item_and_keeps_the_share(largest: int, share: float) -> None:
    for seed in range(60):
        benchmark = uneven(seed, 10 + seed % 20, largest)
        split = split_by_family(benchmark, share, seed)
        seen, held_out = families(split)
        assert not seen & held_out
        assert seen
        assert held_out
        order = {item.item_id: index for index, item in enumerate(benchmark.items)}
        for half in (split.seen, split.held_out):
            assert [order[item.item_id] for item in half] == sorted(order[item.item_id] for item in half)
        assert sorted(order) == sorted(item.item_id for item in (*split.seen, *split.held_out))
        off = abs(len(split.seen) - share * len(benchmark.items))
        assert off <= largest / 2, "off by more than half of the largest family"


def test_twins_go_together_and_halves_are_equal() -> None:
    benchmark = made_up_benchmark(20)
    for seed in range(50):
        split = split_by_family(benchmark, 0.5, seed)
        assert len(split.seen) == len(split.held_out) == 20
        for half in (split.seen, split.held_out):
            ids = {item.item_id for item in half}
            assert all({item.item_id[:-1] + side for side in "ab"} <= ids for item in half)


def test_depends_on_the_seed_only() -> None:
    benchmark = made_up_benchmark(20)
    assert split_by_family(benchmark, 0.5, 1) == split_by_family(benchmark, 0.5, 1)
    drawn = {frozenset(families(split_by_family(benchmark, 0.5, seed))[0]) for seed in range(20)}
    assert len(drawn) == 20
    backwards = replace(benchmark, items=benchmark.items[::-1])
    assert families(split_by_family(backwards, 0.5, 1)) == families(split_by_family(benchmark, 0.5, 1))


def test_every_family_gets_its_turn_in_both_halves() -> None:
    benchmark = made_up_benchmark(10)
    counts = dict.fromkeys(benchmark.families(), 0)
    for seed in range(200):
        for family in families(split_by_family(benchmark, 0.5, seed))[0]:
            counts[family] += 1
    assert min(counts.values()) > 70
    assert max(counts.values()) < 130


@pytest.mark.parametrize("n_families", [0, 1, 2, 3])
def test_too_few_families(n_families: int) -> None:
    with pytest.raises(ConfigError, match=rf"riddles has {n_families} families.*at least 4.*benchmark\.max_items"):
        split_by_family(made_up_benchmark(n_families, 6), 0.5, 0)


@pytest.mark.parametrize("share", [0.01, 0.99])
def test_a_share_that_leaves_one_half_empty(share: float) -> None:
    with pytest.raises(ConfigError, match=r"benchmark\.seen_share=.*leaves one half.*nearer to 0\.5"):
        split_by_family(made_up_benchmark(4, 2), share, 0)


def test_one_huge_family_still_leaves_two_halves() -> None:
    benchmark = made_up_benchmark(5, 1)
    huge = tuple(replace(benchmark.items[0], item_id=f"huge/{i}", family="huge") for i in range(30))
    for seed in range(30):
        seen, held_out = families(split_by_family(replace(benchmark, items=benchmark.items + huge), 0.5, seed))
        assert seen
        assert held_out
