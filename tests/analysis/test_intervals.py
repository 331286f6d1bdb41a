"""Intervals beside the t over seeds: what they equal, what widens them, and when there are none."""

from __future__ import annotations

import math

import numpy as np
import pandas as pd
import pytest
import statsmodels.formula.api as smf
from scipy import stats

from softcontam.analysis.estimates import over_seeds
from softcontam.analysis.intervals import (
    Group,
    Interval,
    Seed,
    exact_mcnemar,
    family_clustered,
    family_clustered_mean,
    hierarchical_bootstrap,
    seed_values,
)


def effect(*rows: dict[str, float]) -> list[Seed]:
    """One seed for each dictionary from family to difference."""
    return [(group(1.0, row),) for row in rows]


def group(sign: float, row: dict[str, float]) -> Group:
    return Group(sign, np.array(list(row)), np.array(list(row.values()), dtype=float))


def made_up(seeds: int, families: int, of: int, rng: np.random.Generator, both: bool = False) -> list[Seed]:
    """Seeds that each evaluate some of the same families, which differ among themselves."""
    own = rng.normal(0.1, 0.3, of)
    made = []
    for _ in range(seeds):
        order = rng.permutation(of)
        halves = ((1.0, order[:families]), (-1.0, order[families : 2 * families - 3]))
        made.append(
            tuple(
                Group(sign, np.array([f"f{i}" for i in chosen]), own[chosen] + rng.normal(0, 0.4, len(chosen)))
                for sign, chosen in (halves if both else halves[:1])
            )
        )
    return made


def width(interval: Interval) -> float:
    return interval.high - interval.low


@pytest.mark.parametrize("both", [False, True])
def test_clustered_is_least_squares_on_dummies_with_clustered_errors(both: bool) -> None:
    """statsmodels multiplies by G / (G - 1) and by (N - 1) / (N - K) as well, or by neither; ours has the first."""
    seeds = made_up(4, 20, 60, np.random.default_rng(3), both)
    table = pd.DataFrame(
        [
            {"block": f"b{s}{g}", "sign": one.sign, "family": name, "value": value}
            for s, seed in enumerate(seeds)
            for g, one in enumerate(seed)
            for name, value in zip(one.families, one.values, strict=True)
        ]
    )
    model = smf.ols("value ~ 0 + block", table)
    signs = table.groupby("block")["sign"].first().to_numpy() / len(seeds)
    g, n, k = table["family"].nunique(), len(table), table["block"].nunique()
    codes = table["family"].astype("category").cat.codes
    half = width(family_clustered(seeds)) / 2
    for correction, factor in ((False, g / (g - 1)), (True, (n - k) / (n - 1))):
        keywords = {"groups": codes, "use_correction": correction}
        tested = model.fit(cov_type="cluster", cov_kwds=keywords, use_t=True).t_test(signs)
        assert float(tested.effect[0]) == pytest.approx(seed_values(seeds).mean(), abs=1e-9)
        error = float(tested.sd[0, 0]) * math.sqrt(factor)
        assert half == pytest.approx(stats.t.ppf(0.975, g - 1) * error, abs=1e-6)


def test_one_seed_of_lone_items_is_the_paired_t() -> None:
    rng = np.random.default_rng(0)
    treated, clean = rng.integers(0, 2, (2, 80)).astype(float)
    found = family_clustered([(Group(1.0, np.arange(80), treated - clean),)])
    bounds = stats.ttest_rel(treated, clean).confidence_interval(0.95)
    assert (found.low, found.high) == pytest.approx((bounds.low, bounds.high), abs=1e-6)


def test_a_family_in_every_seed_counts_once() -> None:
    """The same answers in four seeds say no more of new items than those of one seed do."""
    row = {"a": 0.5, "b": -0.25, "c": 0.0, "d": 1.0}
    once, often = family_clustered(effect(row)), family_clustered(effect(row, row, row, row))
    assert (often.low, often.high) == pytest.approx((once.low, once.high))
    renamed = effect(*({f"{name}{seed}": value for name, value in row.items()} for seed in range(4)))
    assert width(family_clustered(renamed)) < 0.5 * width(once)


def test_what_two_groups_share_cancels_in_their_difference() -> None:
    """Families that gain alike in both groups leave no uncertainty over items; those of one group alone do."""
    row = {"a": 0.5, "b": -0.25, "c": 0.0}
    same = family_clustered([(group(1.0, row), group(-1.0, row))])
    assert math.isnan(same.low)
    assert same.note == "on average over seeds all 3 families differ alike: no interval over families"
    other = {f"other {name}": value for name, value in row.items()}
    apart = family_clustered([(group(1.0, row), group(-1.0, other))])
    assert apart.low == pytest.approx(-apart.high)


def test_a_difference_of_groups_is_centred_on_the_difference_of_their_means() -> None:
    seeds = [(group(1.0, {"a": 0.5, "b": 0.3}), group(-1.0, {"x": 0.1, "y": 0.2, "z": 0.0}))] * 2
    assert seed_values(seeds).tolist() == pytest.approx([0.3, 0.3])
    found = family_clustered(seeds)
    assert (found.low + found.high) / 2 == pytest.approx(0.3)


@pytest.mark.parametrize("row", [{"a": 0.5}, {"a": 0.25, "b": 0.25, "c": 0.25}])
def test_families_without_spread_have_no_interval_rather_than_a_narrow_one(row: dict[str, float]) -> None:
    found = family_clustered(effect(row, row))
    assert math.isnan(found.low)
    assert math.isnan(found.high)
    assert "no interval over families" in found.note


def test_flips_that_cancel_over_seeds_leave_no_interval_over_families() -> None:
    """One item gained in one seed and lost in the next: the seeds differ, no family stands out."""
    seeds = effect({"a": 1.0, "b": 0.0, "c": 0.0}, {"a": -1.0, "b": 0.0, "c": 0.0})
    assert math.isnan(family_clustered(seeds).low)
    assert hierarchical_bootstrap(seeds).low < 0 < hierarchical_bootstrap(seeds).high


def test_the_bootstrap_needs_two_seeds() -> None:
    found = hierarchical_bootstrap(effect({"a": 0.5, "b": 0.0}))
    assert math.isnan(found.low)
    assert found.note == "one seed: no bootstrap over seeds"


def test_the_bootstrap_says_why_where_everything_differs_alike() -> None:
    found = hierarchical_bootstrap(effect({"a": 0.5}, {"b": 0.5}))
    assert math.isnan(found.high)
    assert "differ alike" in found.note


def test_the_bootstrap_is_the_same_each_time_and_moves_with_its_seed() -> None:
    seeds = made_up(3, 20, 40, np.random.default_rng(1))
    assert hierarchical_bootstrap(seeds) == hierarchical_bootstrap(seeds)
    assert hierarchical_bootstrap(seeds) != hierarchical_bootstrap(seeds, seed=1)


@pytest.mark.parametrize("digits", [1, 12])
@pytest.mark.parametrize("both", [False, True])
def test_the_bootstrap_has_the_spread_that_theory_gives(digits: int, both: bool) -> None:
    """Seeds' own spread and, within a drawn seed, its families': for few and for many distinct values alike."""
    seeds = [
        tuple(Group(one.sign, one.families, np.round(one.values, digits)) for one in seed)
        for seed in made_up(5, 60, 200, np.random.default_rng(2), both)
    ]
    between = float(seed_values(seeds).var())
    within = float(np.mean([sum(one.values.var() / len(one.values) for one in seed) for seed in seeds]))
    found = hierarchical_bootstrap(seeds, draws=40_000)
    expected = 2 * 1.96 * math.sqrt((between + within) / len(seeds))
    assert width(found) == pytest.approx(expected, rel=0.03)


def test_families_alike_within_seeds_leave_the_bootstrap_of_the_seeds() -> None:
    """Two seeds: their mean is drawn half of the time, each of them in a quarter."""
    found = hierarchical_bootstrap(effect({"a": 0.2, "b": 0.2}, {"c": 0.4, "d": 0.4}))
    assert (found.low, found.high) == pytest.approx((0.2, 0.4))


def test_many_families_are_bootstrapped_in_bounded_memory_and_agree_with_the_clustered_interval() -> None:
    rng = np.random.default_rng(4)
    names = np.arange(20_000)
    seeds = [(Group(1.0, np.char.add(f"s{s}f", names.astype(str)), rng.normal(0, 1, 20_000)),) for s in range(2)]
    equal = [(Group(1.0, one.families, one.values - one.values.mean()),) for (one,) in seeds]
    assert width(hierarchical_bootstrap(equal, draws=300)) == pytest.approx(width(family_clustered(equal)), rel=0.15)


@pytest.mark.parametrize(
    ("families", "values", "message"),
    [([], [], "0 families"), (["a", "b"], [0.1], "2 families"), (["a", "b"], [0.1, math.nan], "undecided items")],
)
def test_a_group_that_cannot_be_averaged_is_refused(families: list[str], values: list[float], message: str) -> None:
    with pytest.raises(ValueError, match=message):
        Group(1.0, np.array(families), np.array(values))


def test_mcnemar_is_a_sign_test_of_the_items_that_flip() -> None:
    treated = np.array([1] * 9 + [0] * 2 + [1] * 20 + [0] * 30)
    clean = np.array([0] * 9 + [1] * 2 + [1] * 20 + [0] * 30)
    assert exact_mcnemar(treated, clean) == pytest.approx(stats.binomtest(9, 11).pvalue, abs=1e-9)
    assert exact_mcnemar(clean, treated) == exact_mcnemar(treated, clean)


def test_mcnemar_without_a_flip_is_1_and_without_a_decision_nan() -> None:
    assert exact_mcnemar(np.array([1, 0, 1]), np.array([1, 0, 1])) == 1.0
    assert math.isnan(exact_mcnemar(np.array([]), np.array([])))
    assert math.isnan(exact_mcnemar(np.array([1.0, 0.5]), np.array([1.0, 0.0])))
    assert math.isnan(exact_mcnemar(np.array([1.0, math.nan]), np.array([1.0, 0.0])))


def test_an_arms_own_error_takes_families_as_one_each() -> None:
    values = np.array([1, 1, 1, 1, 0, 1.0])
    families = np.array(["big", "big", "big", "big", "lone", "other"])
    mean, error = family_clustered_mean(values, families)
    assert (mean, error) == pytest.approx((2 / 3, stats.sem([1, 0, 1])))
    assert math.isnan(family_clustered_mean(values[:4], families[:4])[1])
    assert math.isnan(family_clustered_mean(values[:0], families[:0])[0])


def test_seeds_that_differ_widen_the_interval_over_seeds_and_not_the_clustered_one() -> None:
    row = {f"f{i}": (i % 3 - 1) / 2 for i in range(60)}
    alike = effect(*({name: value + shift for name, value in row.items()} for shift in (0.0, 0.01, -0.01)))
    apart = effect(*({name: value + shift for name, value in row.items()} for shift in (0.0, 0.3, -0.3)))
    assert width(family_clustered(apart)) == pytest.approx(width(family_clustered(alike)))
    narrow, wide = (over_seeds(seed_values(seeds).tolist()) for seeds in (alike, apart))
    assert wide.high - wide.low > 20 * (narrow.high - narrow.low)
    assert width(hierarchical_bootstrap(apart)) > 1.5 * width(hierarchical_bootstrap(alike))
