"""A table of two arms, analysed by the package and by statsmodels and scipy: the same numbers to 1e-6."""

from __future__ import annotations

import math

import numpy as np
import pandas as pd
import pytest
import statsmodels.formula.api as smf
from scipy import stats
from simulated_runs import World, simulate
from statsmodels.stats.contingency_tables import mcnemar
from statsmodels.stats.multitest import multipletests
from statsmodels.stats.weightstats import DescrStatsW, ttost_paired

from softcontam.analysis.estimates import equivalence_p, holm, over_seeds
from softcontam.analysis.intervals import (
    Group,
    exact_mcnemar,
    family_clustered,
    family_clustered_mean,
    seed_values,
)

EXACT = {"rel": 0.0, "abs": 1e-6}


@pytest.fixture(scope="module")
def table() -> pd.DataFrame:
    """Five seeds of two arms on halves of 100 items in families of two: columns seed, family, item, treated, clean."""
    world = World(family_size=2)
    runs = simulate(world, 1, 5, np.random.default_rng(11))
    return pd.DataFrame(
        [
            {
                "seed": seed,
                "family": f"f{family}",
                "item": f"f{family}/{item}",
                "treated": int(runs.treated[0, 0, seed, place, item]),
                "clean": int(runs.clean[0, seed, place, item]),
            }
            for seed in range(5)
            for place, family in enumerate(runs.families[0, seed, : world.families])
            for item in range(2)
        ]
    )


@pytest.fixture(scope="module")
def by_seed(table: pd.DataFrame) -> pd.DataFrame:
    return table.groupby("seed")[["treated", "clean"]].mean()


def test_the_paired_t_test_and_interval(by_seed: pd.DataFrame) -> None:
    change = by_seed["treated"] - by_seed["clean"]
    found = over_seeds(change.tolist())
    tested = stats.ttest_rel(by_seed["treated"], by_seed["clean"])
    bounds = tested.confidence_interval(0.95)
    assert (found.p, found.low, found.high) == pytest.approx((tested.pvalue, bounds.low, bounds.high), **EXACT)
    assert (found.low, found.high) == pytest.approx(DescrStatsW(change).tconfint_mean(), **EXACT)


@pytest.mark.parametrize("margin", [0.02, 0.05, 0.2])
def test_two_one_sided_tests(by_seed: pd.DataFrame, margin: float) -> None:
    expected = ttost_paired(by_seed["treated"], by_seed["clean"], -margin, margin)[0]
    assert equivalence_p((by_seed["treated"] - by_seed["clean"]).tolist(), margin) == pytest.approx(expected, **EXACT)


def test_mcnemar_of_every_pair(table: pd.DataFrame) -> None:
    for _, one in table.groupby("seed"):
        expected = mcnemar(pd.crosstab(one["treated"], one["clean"]), exact=True).pvalue
        assert exact_mcnemar(one["treated"].to_numpy(), one["clean"].to_numpy()) == pytest.approx(expected, **EXACT)


def test_holm_over_the_pairs(table: pd.DataFrame) -> None:
    p_values = [stats.ttest_rel(one["treated"], one["clean"]).pvalue for _, one in table.groupby("seed")]
    assert holm(p_values) == pytest.approx(multipletests(p_values, method="holm")[1].tolist(), **EXACT)


def test_the_interval_clustered_by_family(table: pd.DataFrame) -> None:
    """Items weigh as one over their family's size; statsmodels' second factor, (N - 1) / (N - K), is taken out."""
    change = table.assign(change=table["treated"] - table["clean"])
    families = change.groupby(["seed", "family"])["change"].mean().reset_index()
    seeds = [(Group(1.0, one["family"].to_numpy(), one["change"].to_numpy()),) for _, one in families.groupby("seed")]
    groups = change["family"].astype("category").cat.codes
    weights = 1 / change.groupby(["seed", "family"])["change"].transform("size")
    fitted = smf.wls("change ~ 0 + C(seed)", change, weights=weights).fit(
        cov_type="cluster", cov_kwds={"groups": groups}, use_t=True
    )
    tested = fitted.t_test(np.full(5, 1 / 5))
    half = stats.t.ppf(0.975, groups.nunique() - 1) * tested.sd[0, 0] * math.sqrt((len(change) - 5) / (len(change) - 1))
    mean = float(seed_values(seeds).mean())
    assert mean == pytest.approx(float(tested.effect[0]), **EXACT)
    found = family_clustered(seeds)
    assert (found.low, found.high) == pytest.approx((mean - half, mean + half), **EXACT)


def test_an_arms_own_accuracy_and_error(table: pd.DataFrame) -> None:
    one = table[table["seed"] == 0]
    weights = 1 / one.groupby("family")["clean"].transform("size")
    groups = one["family"].astype("category").cat.codes
    fitted = smf.wls("clean ~ 1", one, weights=weights).fit(
        cov_type="cluster", cov_kwds={"groups": groups, "use_correction": False}
    )
    factor = math.sqrt(groups.nunique() / (groups.nunique() - 1))
    mean, error = family_clustered_mean(one["clean"].to_numpy(), one["family"].to_numpy())
    assert (mean, error) == pytest.approx((fitted.params["Intercept"], fitted.bse["Intercept"] * factor), **EXACT)
