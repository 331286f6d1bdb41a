"""What a planned sweep can detect, against statsmodels, published figures and simulated runs."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pandas as pd
import pytest
from statsmodels.stats.power import TTestPower

from softcontam.analysis.power import Design, detectable, equivalence_families, families_needed, noise, seeds_needed


@pytest.mark.parametrize(("items", "points"), [(164, 6.9), (250, 5.6), (500, 4.0), (1319, 2.4)])
def test_one_run_per_arm_at_ten_percent_discordant_items(items: int, points: float) -> None:
    """Smallest detectable differences that simulation gave for these sizes."""
    design = Design(items, seeds=1, discordance=0.10, run_logit_sd=0.0)
    assert 100 * detectable(design) == pytest.approx(points, abs=0.05)


def test_the_studys_design_of_125_items_and_one_run_sees_12_to_15_points() -> None:
    for discordance in (0.25, 0.30, 0.34):
        assert 0.12 < detectable(Design(125, seeds=1, base_accuracy=0.55, discordance=discordance)) < 0.15


@pytest.mark.parametrize("seeds", [3, 5, 10])
def test_several_seeds_are_a_paired_t_test(seeds: int) -> None:
    design = Design(100, seeds=seeds, discordance=0.2, run_logit_sd=0.15)
    spread = design.standard_error * seeds**0.5
    power = TTestPower().power(detectable(design) / spread, seeds, 0.05, alternative="two-sided")
    assert power == pytest.approx(0.80, abs=0.002)


def test_what_is_needed_is_enough_and_one_less_is_not() -> None:
    design = Design(125, discordance=0.3)
    seeds = seeds_needed(design, 0.05)
    assert seeds is not None
    assert detectable(replace(design, seeds=seeds)) <= 0.05 < detectable(replace(design, seeds=seeds - 1))
    families = families_needed(replace(design, seeds=10), 0.08)
    assert families is not None
    assert detectable(replace(design, seeds=10, families=families)) <= 0.08
    assert detectable(replace(design, seeds=10, families=families - 1)) > 0.08


def test_no_number_of_items_makes_up_for_the_spread_between_runs() -> None:
    assert families_needed(Design(100, seeds=3, run_logit_sd=0.6), 0.01) is None


def test_equivalence_takes_more_items_than_a_difference() -> None:
    design = Design(1, seeds=1, discordance=0.10, run_logit_sd=0.0)
    assert equivalence_families(design, 0.02) == pytest.approx(2700, abs=30)
    assert equivalence_families(design, 0.05) == 433


def test_twins_count_for_less_than_two_items() -> None:
    alone, twins = Design(100, discordance=0.2), Design(50, family_size=2, discordance=0.2)
    assert twins.items == alone.items
    assert detectable(twins) > detectable(alone)
    assert detectable(replace(twins, family_correlation=0.0)) == pytest.approx(detectable(alone))


def simulated(runs: int, items: int, run_sd: float, rng: np.random.Generator) -> pd.DataFrame:
    """Clean runs on the same items: item difficulties, and a deviation of each run, on the logit scale."""
    difficulty = rng.normal(0, 1.5, items)
    rows = []
    for run in range(runs):
        chance = 1 / (1 + np.exp(-(difficulty + rng.normal(0, run_sd))))
        solved = rng.random(items) < chance
        rows += [{"cell": f"run{run}", "item_id": f"i{i}", "accuracy": float(ok)} for i, ok in enumerate(solved)]
    return pd.DataFrame(rows)


@pytest.mark.parametrize("run_sd", [0.0, 0.4])
def test_the_spread_of_simulated_runs_is_found_again(run_sd: float) -> None:
    rng = np.random.default_rng(5)
    found = [noise(simulated(12, 400, run_sd, rng)) for _ in range(20)]
    estimates = [one.run_logit_sd for one in found if one is not None]
    assert len(estimates) == 20
    # a deviation moves accuracy less where items are spread over difficulties than if all were at the mean
    chances = 1 / (1 + np.exp(-np.random.default_rng(1).normal(0, 1.5, 100_000)))
    marginal = float(np.mean(chances * (1 - chances)) / (chances.mean() * (1 - chances.mean())))
    assert np.mean(estimates) == pytest.approx(run_sd * marginal, abs=0.06)


def test_one_run_says_nothing_of_noise() -> None:
    assert noise(simulated(1, 50, 0.0, np.random.default_rng(0))) is None
