"""The family split: never through a family, balanced, the same for the same seed."""

from __future__ import annotations

import hashlib
import math
import random
from collections import Counter
from dataclasses import replace
from pathlib import Path
from statistics import fmean

import pytest
from tiny_cells import composed, made_up_benchmark

from softcontam.benchmarks import load_benchmark
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


def by_plain_shuffle(benchmark: Benchmark, share: float, seed: int) -> set[str]:
    """The seen families as they were drawn before halves were balanced."""
    members = benchmark.families()
    names = sorted(members)
    random.Random(seed).shuffle(names)
    wanted, count, seen = share * len(benchmark.items), 0, set()
    for name in names:
        if abs(count + len(members[name]) - wanted) <= abs(count - wanted):
            seen.add(name)
            count += len(members[name])
    return seen


def with_strata(sizes: dict[str, list[int]]) -> Benchmark:
    """A benchmark with families of these sizes in each stratum."""
    items = [
        Item(f"{label}/{family}/{member}", "layered", f"{label}/{family}", "What?", "1", meta={"stratum": label})
        for label, families in sizes.items()
        for family, size in enumerate(families)
        for member in range(size)
    ]
    return replace(made_up_benchmark(), name="layered", items=tuple(items))


def seen_by(split: FamilySplit, key: str) -> Counter[str]:
    return Counter(str(item.meta[key]) for item in split.seen)


class TestCommittedExperiments:
    """Results that are in the repository rest on these halves: a change here makes them unrepeatable."""

    @pytest.mark.parametrize(
        ("seed", "digest"),
        [
            (0, "bfc74f8b7f3a1dbc7b5cbe70220e75c4aae1ab7fd35aee7c535febdd253b44e4"),
            (1, "400d3b8b358bde08ae2d6d33ea14f7c5d5ffd52b387fe84eb0db3dc36b2b6763"),
            (2, "a5c51c2f9b9d709f60119ecd575be517a9c0b3f5f29d4e2cce2a0a338661d5d8"),
            (3, "5860c3a2ecd3165ac28012eab47f4608d1ac1401dbfac20eabcebb936efb5b5d"),
            (1252778548, "5165c6585d77da57cbefba4b11e1f1fc551069824faaa8e4b5e5ce5720d86ab5"),
        ],
    )
    def test_halves_of_tinyworld(self, seed: int, digest: str) -> None:
        config = composed(tiny=False).benchmark
        split = split_by_family(load_benchmark(config, Path()), config.seen_share, seed)
        ids = "\n".join(item.item_id for item in split.seen)
        assert hashlib.sha256(ids.encode()).hexdigest() == digest

    @pytest.mark.parametrize("members", [1, 2, 3])
    @pytest.mark.parametrize("share", [0.2, 0.37, 0.5, 0.9])
    def test_families_that_are_all_alike_are_drawn_by_a_plain_shuffle(self, members: int, share: float) -> None:
        for seed in range(40):
            benchmark = made_up_benchmark(6 + seed, members)
            split = split_by_family(benchmark, share, seed)
            assert families(split)[0] == by_plain_shuffle(benchmark, share, seed)


class TestStrata:
    def test_each_stratum_and_family_size_has_the_share(self) -> None:
        benchmark = with_strata({"easy": [1] * 40, "middle": [2] * 10 + [1] * 20, "hard": [4] * 6 + [1] * 10})
        items = Counter(item.meta["stratum"] for item in benchmark.items)
        for seed in range(30):
            split = split_by_family(benchmark, 0.5, seed)
            assert seen_by(split, "stratum") == {label: count // 2 for label, count in items.items()}
            sizes = Counter((item.meta["stratum"], len(benchmark.families()[item.family])) for item in split.seen)
            assert sizes == {
                ("easy", 1): 20, ("middle", 2): 10, ("middle", 1): 10, ("hard", 4): 12, ("hard", 1): 5,
            }  # fmt: skip

    def test_small_families_of_its_stratum_make_up_for_a_large_one(self) -> None:
        benchmark = with_strata({"a": [7, *[1] * 33], "b": [1] * 40})
        for seed in range(30):
            split = split_by_family(benchmark, 0.5, seed)
            assert seen_by(split, "stratum") == {"a": 20, "b": 20}

    @pytest.mark.parametrize("share", [0.3, 0.5])
    def test_strata_too_small_for_the_share_meet_it_together(self, share: float) -> None:
        benchmark = with_strata({f"s{number:02}": [1] for number in range(40)})
        turns: Counter[str] = Counter()
        for seed in range(200):
            seen, _ = families(split_by_family(benchmark, share, seed))
            assert len(seen) == 40 * share
            turns.update(seen)
        spread = 4 * math.sqrt(200 * share * (1 - share))
        assert len(turns) == 40
        assert all(abs(count - 200 * share) < spread for count in turns.values())

    @pytest.mark.parametrize("share", [0.3, 0.5])
    def test_a_family_is_seen_as_often_whatever_its_size_and_stratum(self, share: float) -> None:
        benchmark = with_strata({"a": [9, 5, 3, 2, 2, *[1] * 30], "b": [4, *[1] * 11], "c": [3, 3, 3]})
        turns: Counter[str] = Counter()
        for seed in range(400):
            turns.update(families(split_by_family(benchmark, share, seed))[0])
        spread = 4 * math.sqrt(400 * share * (1 - share))
        assert len(turns) == len(benchmark.families())
        assert all(abs(count - 400 * share) < spread for count in turns.values())

    def test_large_families_stand_against_each_other(self) -> None:
        benchmark = with_strata({"": [15, 13, 11, 9, *[1] * 60]})
        for seed in range(30):
            split = split_by_family(benchmark, 0.5, seed)
            large = {item.family for item in split.seen} & {"/0", "/1", "/2", "/3"}
            assert len(large & {"/0", "/1"}) == len(large & {"/2", "/3"}) == 1

    @pytest.mark.parametrize("share", [0.2, 0.5, 0.8])
    def test_any_mix_of_strata_and_sizes_keeps_the_share(self, share: float) -> None:
        for seed in range(60):
            rng = random.Random(seed)
            sizes = {f"s{label}": [rng.choice([1, 1, 2, 5]) for _ in range(rng.randint(1, 6))] for label in range(8)}
            benchmark = with_strata(sizes)
            split = split_by_family(benchmark, share, seed)
            assert not set.intersection(*families(split))
            assert abs(len(split.seen) - share * len(benchmark.items)) <= 0.5 + 1e-9

    def test_every_size_of_zebralogic_is_halved(self, data_dir: Path) -> None:
        config = composed("condition=clean", "benchmark=zebralogic", tiny=False).benchmark
        benchmark = load_benchmark(config, data_dir)
        for seed in range(10):
            counts = seen_by(split_by_family(benchmark, 0.5, seed), "size")
            assert len(counts) == 25
            assert set(counts.values()) == {20}

    def test_pairs_and_fours_of_musr_are_halved(self, data_dir: Path) -> None:
        config = composed("condition=clean", "benchmark=musr", tiny=False).benchmark
        benchmark = load_benchmark(config, data_dir)
        members = benchmark.families()
        for seed in range(10):
            split = split_by_family(benchmark, 0.5, seed)
            fours = sum(len(members[item.family]) == 4 for item in split.seen)
            assert fours == 20
            assert abs(len(split.seen) - 125) == 1  # 105 pairs: one more in one half


class TestDifficulty:
    @staticmethod
    def difference(split: FamilySplit, difficulty: dict[str, float]) -> float:
        return fmean(difficulty[i.item_id] for i in split.seen) - fmean(difficulty[i.item_id] for i in split.held_out)

    @pytest.fixture
    def benchmark(self) -> Benchmark:
        return uneven(1, 60, 3)

    @pytest.fixture
    def difficulty(self, benchmark: Benchmark) -> dict[str, float]:
        rng = random.Random(2)
        level = {family: rng.gauss(0, 1) for family in benchmark.families()}
        return {item.item_id: level[item.family] + rng.gauss(0, 0.3) for item in benchmark.items}

    def test_halves_are_much_nearer_in_difficulty_than_by_chance(
        self, benchmark: Benchmark, difficulty: dict[str, float]
    ) -> None:
        def spread(table: dict[str, float] | None) -> float:
            splits = [split_by_family(benchmark, 0.5, seed, table) for seed in range(20)]
            return math.sqrt(fmean(self.difference(split, difficulty) ** 2 for split in splits))

        assert spread(difficulty) < spread(None) / 5

    def test_each_degree_of_difficulty_is_in_both_halves_alike(self) -> None:
        """Very easy and very hard ones against middling ones would have equal means too."""
        benchmark = made_up_benchmark(40, 1)
        order = random.Random(3).sample([item.item_id for item in benchmark.items], 40)
        difficulty = {item_id: float(rank) for rank, item_id in enumerate(order)}
        for seed in range(20):
            seen = {item.item_id for item in split_by_family(benchmark, 0.5, seed, difficulty).seen}
            assert [len(seen & set(order[first : first + 4])) for first in range(0, 40, 4)] == [2] * 10

    def test_size_and_share_are_kept(self, benchmark: Benchmark, difficulty: dict[str, float]) -> None:
        for seed in range(20):
            split = split_by_family(benchmark, 0.5, seed, difficulty)
            assert abs(len(split.seen) - len(benchmark.items) / 2) <= 0.5
            assert not set.intersection(*families(split))

    def test_still_depends_on_the_seed_and_on_nothing_else(
        self, benchmark: Benchmark, difficulty: dict[str, float]
    ) -> None:
        drawn = {frozenset(families(split_by_family(benchmark, 0.5, seed, difficulty))[0]) for seed in range(20)}
        assert len(drawn) == 20
        again = split_by_family(
            replace(benchmark, items=benchmark.items[::-1]), 0.5, 1, dict(reversed(difficulty.items()))
        )
        assert families(again) == families(split_by_family(benchmark, 0.5, 1, difficulty))
