"""Both halves at baseline and the families behind them, as far as the store tells."""

from __future__ import annotations

import math
from dataclasses import replace
from pathlib import Path

import pandas as pd
import pytest
from fake_sweep import Outcomes, add_cell, config, sweep
from scipy import stats
from tiny_cells import made_up_benchmark

from softcontam.analysis import measure
from softcontam.benchmarks import ItemSet
from softcontam.benchmarks.families import NearPair
from softcontam.mixture import FamilySplit, family_table
from softcontam.report import write_report
from softcontam.store import Store

SEEN, HELD_OUT = [1.0, 0.5, 1.0, 0.75], [0.25, 0.0, 0.5, 0.25, 0.0]


def halved(seen: list[float] = SEEN, held_out: list[float] = HELD_OUT, logprob_only: bool = False) -> Outcomes:
    """A family of two items for each value, of which that share of four samples is correct."""
    outcomes = Outcomes()
    for role, values in (("seen", seen), ("held_out", held_out)):
        for family, value in enumerate(values):
            samples = [None] if logprob_only else [place < 4 * value for place in range(4)]
            for member in "ab":
                outcomes.add(role, f"{role}{family}{member}", samples, family=f"{role}{family}", logprob=-4 + value)
    return outcomes


def table_of(pairs: tuple[NearPair, ...], difficulty: dict[str, float] | None = None) -> pd.DataFrame:
    """The family table of six families of two, three in each half, named as the split benchmark."""
    benchmark = replace(made_up_benchmark(6, name="puzzles"), joined=pairs)
    split = FamilySplit(benchmark.items[:6], benchmark.items[6:], difficulty or {})
    return family_table(split, [ItemSet("seen", benchmark, split.seen), ItemSet("held_out", benchmark, split.held_out)])


def test_a_seeds_interval_is_welchs_over_family_means(tmp_path: Path) -> None:
    store = Store(tmp_path)
    sweep(store, [add_cell(store, config(), halved())])
    (halves,) = measure(store, "fake").halves
    (seed,) = halves.per_seed
    bounds = stats.ttest_ind(SEEN, HELD_OUT, equal_var=False).confidence_interval(0.95)
    assert seed.difference == pytest.approx(0.8125 - 0.2)
    assert (seed.low, seed.high) == pytest.approx((bounds.low, bounds.high))
    assert (seed.seen.n_items, seed.seen.n_families, seed.seen.family_sizes) == (8, 4, {2: 4})
    assert math.isnan(halves.estimate.low)
    assert halves.differing_seeds == [0]


def test_the_mean_over_seeds_has_an_interval_over_seeds(tmp_path: Path) -> None:
    store = Store(tmp_path)
    halves_by_seed = [([0.5, 0.75], [0.5, 0.25]), ([0.25, 0.5], [0.75, 0.5]), ([0.5, 0.5], [0.25, 0.5])]
    sweep(store, [add_cell(store, config(seed=seed), halved(*one)) for seed, one in enumerate(halves_by_seed)])
    (halves,) = measure(store, "fake").halves
    bounds = stats.ttest_1samp([0.25, -0.25, 0.125], 0).confidence_interval(0.95)
    assert halves.estimate.mean == pytest.approx(0.125 / 3)
    assert (halves.estimate.low, halves.estimate.high) == pytest.approx((bounds.low, bounds.high))
    assert halves.differing_seeds == []


def test_what_correctness_does_not_decide_is_compared_by_log_probability(tmp_path: Path) -> None:
    store = Store(tmp_path)
    sweep(store, [add_cell(store, config(), halved(logprob_only=True))])
    (halves,) = measure(store, "fake").halves
    assert halves.outcome == "logprob_per_token"
    assert halves.per_seed[0].difference == pytest.approx((0.8125 - 0.2) / 2)  # two tokens each


def test_the_report_warns_where_halves_differ_and_only_there(tmp_path: Path) -> None:
    store = Store(tmp_path / "runs")
    sweep(store, [add_cell(store, config(), halved())])
    text = write_report(store, "fake", tmp_path / "a").markdown.read_text()
    assert "differ at baseline by more than their interval in 1 of 1 seed (seed 0)" in text
    assert "balance the halves for difficulty (benchmark.difficulty)" in text
    assert "| 0 | 8 | 4 | 2×4 | 10 | 5 | 2×5 | 81.2 | 20.0 | +61.3 |" in text.replace("61.2", "61.3")
    assert "families were not recorded" in text
    other = Store(tmp_path / "other")
    sweep(other, [add_cell(other, config(), halved([0.25, 0.5], [0.5, 0.25]))])
    assert "differ at baseline" not in write_report(other, "fake", tmp_path / "b").markdown.read_text()


def test_the_report_says_what_was_balanced_and_the_difficulty_of_both_halves(tmp_path: Path) -> None:
    ids = [f"puzzles/{family}{member}" for family in range(6) for member in "ab"]
    outcomes = Outcomes()
    for index, item_id in enumerate(ids):
        outcomes.add("seen" if index < 6 else "held_out", item_id, [index % 3 == 0], family=item_id[:-1])
    difficulty = {item_id: 0.25 if index < 6 else 0.75 for index, item_id in enumerate(ids)}
    store = Store(tmp_path / "runs")
    settings = config(difficulty="mine.csv")
    sweep(store, [add_cell(store, settings, outcomes, families=table_of((), difficulty))])
    (halves,) = measure(store, "fake").halves
    assert (halves.per_seed[0].seen.difficulty, halves.per_seed[0].held_out.difficulty) == (0.25, 0.75)
    text = write_report(store, "fake", tmp_path / "a").markdown.read_text()
    assert "balanced for family size and for difficulty (mine.csv)" in text
    assert "| seen difficulty | held-out difficulty |" in text


def test_families_are_told_with_each_kind_of_evidence_once_for_each_pair(tmp_path: Path) -> None:
    twins = tuple(NearPair(f"puzzles/{n}a", f"puzzles/{n}b", "twin") for n in range(4))
    text_pair = NearPair("puzzles/4a", "puzzles/4b", "text", 0.9)
    store = Store(tmp_path / "runs")
    cells = [add_cell(store, config(seed=seed), halved(), families=table_of((*twins, text_pair))) for seed in range(2)]
    sweep(store, cells)
    (summary,) = measure(store, "fake").families
    assert (summary.n_items, summary.n_families, summary.sharing, summary.largest) == (12, 6, 12, 2)
    assert summary.kinds == {"twin": 4, "text": 1}
    assert len(summary.examples) == 5
    assert [pair.why for pair in summary.examples[:2]] == ["twin", "text"]
    text = write_report(store, "fake", tmp_path / "a").markdown.read_text()
    assert "| puzzles | 12 | 6 | 12 (100.0 %) | 2 | – | twin 4, text 1 |" in text
    assert "| puzzles/4a | text, cosine 0.90, with puzzles/4b |" in text


def test_no_more_than_twenty_pairs_are_quoted(tmp_path: Path) -> None:
    ids = [f"puzzles/{family}{member}" for family in range(6) for member in "ab"]
    pairs = tuple(NearPair(one, other, "text", 0.8) for i, one in enumerate(ids) for other in ids[i + 1 :])
    store = Store(tmp_path)
    sweep(store, [add_cell(store, config(), halved(), families=table_of(pairs))])
    (summary,) = measure(store, "fake").families
    assert (summary.kinds, len(summary.examples)) == ({"text": 66}, 20)


def test_a_store_without_family_tables_has_no_families_to_tell(tmp_path: Path) -> None:
    store = Store(tmp_path / "runs")
    sweep(store, [add_cell(store, config(), halved())])
    assert measure(store, "fake").families == []
    assert "## Families" not in write_report(store, "fake", tmp_path / "a").markdown.read_text()
