"""What docs/statistics.md and the labels say of each method, on simulated runs with known effects.

Bounds are those claimed, give or take two Monte-Carlo standard errors of the share that is found.
"""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest
from coverage_table import (
    BASES,
    NO_EFFECT,
    SEEDS,
    SIZES,
    SPREADS,
    Share,
    coverage,
    detectable_power,
    dose_coverage,
    family_wise_error,
    item_bounds,
    mcnemar_size,
    t_size,
)
from simulated_runs import World, simulate

REPETITIONS = 2000


def between(low: float, found: Share, high: float) -> bool:
    return low - 2 * found.error <= found.percent <= high + 2 * found.error


@pytest.mark.slow
@pytest.mark.parametrize("base", BASES)
@pytest.mark.parametrize("spread", SPREADS)
@pytest.mark.parametrize("size", SIZES)
def test_the_primary_interval_covers_new_runs_and_the_clustered_one_new_items(
    base: str, spread: float, size: int
) -> None:
    for found in coverage(World(BASES[base], spread, size), REPETITIONS, bootstraps=0):
        primary, clustered = found.primary_covers(), found.clustered.covers(found.on_these_runs)
        assert between(93, primary, 97), f"{found.seeds} seeds: {primary}"
        assert between(93, clustered, 97), f"{found.seeds} seeds: {clustered}"
        assert found.primary.missing.percent < 2


@pytest.mark.slow
def test_where_runs_differ_more_than_items_only_the_primary_interval_holds() -> None:
    few, *_, many = coverage(World(held_out=1000), 500, 250)
    for found in (few, many):
        assert between(93, found.primary_covers(), 97)
        assert found.clustered.covers(found.on_benchmark).percent < 80
    assert few.bootstrap.covers(few.on_benchmark[:250]).percent < 93


@pytest.mark.slow
def test_one_run_per_arm_claims_too_much() -> None:
    world = World(held_out=300)
    runs = simulate(world, REPETITIONS, 1, np.random.default_rng(0))
    assert item_bounds(world, runs).covers(runs.benchmark_effect).percent < 87
    assert mcnemar_size(replace(NO_EFFECT, run_sd=0.0, held_out=300), REPETITIONS).percent < 6
    assert mcnemar_size(replace(NO_EFFECT, run_sd=0.15, held_out=300), REPETITIONS).percent > 10


@pytest.mark.slow
@pytest.mark.parametrize("spread", SPREADS)
def test_the_t_test_and_holms_family_keep_their_level(spread: float) -> None:
    world = replace(NO_EFFECT, run_sd=spread)
    sizes, (adjusted, plain) = t_size(world, REPETITIONS), family_wise_error(world, REPETITIONS)
    for seeds in SEEDS:
        assert between(0, sizes[seeds], 5)
        assert between(0, adjusted[seeds], 5)
        assert plain[seeds].percent > 10


@pytest.mark.slow
@pytest.mark.parametrize("base", ["mid", "floor"])
@pytest.mark.parametrize("spread", SPREADS)
def test_the_dose_response_covers_the_benchmarks_own_line(base: str, spread: float) -> None:
    for found in dose_coverage(World(BASES[base], spread, effect=0.0), REPETITIONS):
        assert between(93, found.slope.covers(found.true_slope), 97)
        dose = found.dose.covers(found.true_dose)
        assert dose.of > 500
        assert between(93, dose, 98)


@pytest.mark.slow
@pytest.mark.parametrize("seeds", SEEDS)
def test_the_smallest_detectable_effect_is_found_in_four_cases_of_five(seeds: int) -> None:
    _, found = detectable_power(World(effect_sd=0.0), seeds, REPETITIONS)
    assert between(78, found, 82)


def test_the_simulated_truth_is_what_the_runs_average_to() -> None:
    """At the floor, where effects on the logit scale and in points differ most."""
    world = World(base=0.05, family_size=2, effect=0.8)
    runs = simulate(world, 300, 10, np.random.default_rng(1))
    measured = runs.family_differences()
    held_out, seen = measured[..., : world.families].mean(), measured[..., world.families :].mean()
    assert runs.clean.mean() == pytest.approx(0.05, abs=0.003)
    assert held_out == pytest.approx(runs.benchmark_effect.mean(), abs=0.003)
    assert seen - held_out == pytest.approx(runs.benchmark_did.mean(), abs=0.004)
    assert runs.benchmark_effect.mean() == pytest.approx(runs.population_effect, abs=0.003)
    assert runs.effect_of_runs.mean() == pytest.approx(runs.population_effect, abs=0.003)
