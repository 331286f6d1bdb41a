"""Chance on a set of items: that of its own items where they have one, else the benchmark's."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path
from statistics import fmean

import pytest
from tiny_cells import composed, made_up_benchmark

from softcontam.benchmarks import Benchmark, ItemSet, load_benchmark


def chances(**own: float) -> Benchmark:
    """Two riddles with a chance of 0.1 in all, and their own where given."""
    one = made_up_benchmark(1, 2)
    metas = ({"chance": own[side]} if (side := item.item_id[-1]) in own else {} for item in one.items)
    return replace(one, items=tuple(replace(item, meta=meta) for item, meta in zip(one.items, metas, strict=True)))


def test_items_own_chances_are_averaged_over_the_set() -> None:
    benchmark = chances(a=0.5, b=0.25)
    assert ItemSet("seen", benchmark, benchmark.items).chance == pytest.approx(0.375)
    assert ItemSet("seen", benchmark, benchmark.items[1:]).chance == 0.25


@pytest.mark.parametrize("own", [{}, {"a": 0.5}])
def test_without_one_for_every_item_it_is_the_benchmarks(own: dict[str, float]) -> None:
    benchmark = chances(**own)
    assert ItemSet("seen", benchmark, benchmark.items).chance == 0.1
    assert ItemSet("seen", benchmark, ()).chance == 0.1


@pytest.mark.parametrize("name", ["musr", "zebralogic"])
def test_chance_is_a_mean_over_families_as_accuracies_are(name: str, data_dir: Path) -> None:
    benchmark = load_benchmark(composed("condition=clean", f"benchmark={name}", tiny=False).benchmark, data_dir)
    families = [[item.meta["chance"] for item in members] for members in benchmark.families().values()]
    assert ItemSet("seen", benchmark, benchmark.items).chance == pytest.approx(fmean(map(fmean, families)))
    if name == "zebralogic":
        easy = tuple(item for item in benchmark.items if item.meta["size"] == "2*2")
        assert ItemSet("seen", benchmark, easy).chance == 0.25
