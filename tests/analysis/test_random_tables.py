"""Effects of random tables against the same figures by pandas and scipy, written without the package."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pandas as pd
import pytest
from scipy import stats

from softcontam.report import measure_table

ROLES = [("seen", "A"), ("held_out", "A"), ("related", "B"), ("related", "C"), ("general", "G")]


def random_table(rng: np.random.Generator) -> pd.DataFrame:
    """Setups, doses, several related benchmarks, samples; runs, verdicts and covered items are missing at random."""
    family_size, samples = int(rng.integers(1, 4)), int(rng.integers(1, 4))
    base = rng.choice([0.0, 0.1, 0.5, 0.97])
    runs = [
        (setup, seed, condition, rate)
        for setup in ("small", "large")
        for seed in range(int(rng.integers(1, 5)))
        for condition, rates in (("clean", [np.nan]), ("exact", [0.05, 0.2]), ("my own arm", [0.2]))
        for rate in rates
        if condition == "clean" or rng.random() < 0.85
    ]
    rows = []
    for setup, seed, condition, rate in runs:
        for role, benchmark in ROLES:
            for item in range(9 if role == "seen" else 13):
                copies = int(role == "seen" and condition != "clean" and rng.random() < 0.7)
                gain = 0.3 * (condition == "exact") * (role in ("seen", "held_out"))
                for sample in range(samples):
                    correct = None if rng.random() < 0.05 else bool(rng.random() < min(1, base + gain))
                    family = f"{role}{item // family_size}"
                    rows.append(
                        (
                            setup,
                            seed,
                            condition,
                            rate,
                            role,
                            benchmark,
                            f"{role}{item}",
                            family,
                            sample,
                            correct,
                            copies,
                        )
                    )
    names = ["setup", "seed", "condition", "rate", "role", "benchmark", "item_id", "family", "sample", "correct"]
    return pd.DataFrame(rows, columns=[*names, "copies"]).sample(frac=1, random_state=1)


def by_hand(table: pd.DataFrame, chosen: pd.DataFrame) -> pd.Series:
    """Each seed's mean over families of the mean difference from the clean arm, on the items decided on both sides."""
    key = ["setup", "seed", "role", "benchmark", "item_id"]
    means = [
        rows.assign(correct=rows["correct"].astype(float))
        .groupby(key)
        .agg(correct=("correct", "mean"), family=("family", "first"), copies=("copies", "first"))
        for rows in (chosen, table[table["condition"] == "clean"])
    ]
    both = means[0].join(means[1]["correct"], rsuffix="_clean", how="inner").dropna().reset_index()
    both = both[(both["role"] != "seen") | (both["copies"] > 0)]
    both["change"] = both["correct"] - both["correct_clean"]
    return both.groupby(["seed", "family"])["change"].mean().groupby("seed").mean()


@pytest.mark.parametrize("number", range(5))
def test_effects_are_those_that_pandas_and_scipy_give(number: int, tmp_path: Path) -> None:
    table = random_table(np.random.default_rng(number))
    table.to_csv(tmp_path / "results.csv", index=False)
    effects = measure_table(tmp_path / "results.csv").of("accuracy")
    assert len(effects) > 10
    for one in effects:
        arm = one.arm
        same = (table["setup"] == arm.setup) & (table["condition"] == arm.condition) & (table["rate"] == arm.rate)
        deltas = by_hand(table, table[same & (table["role"] == one.role) & (table["benchmark"] == one.benchmark)])
        assert list(one.deltas.values()) == pytest.approx(deltas.tolist())
        if len(deltas) > 1 and deltas.std() > 1e-12:
            test = stats.ttest_1samp(deltas, 0)
            bounds = test.confidence_interval(0.95)
            found = (one.estimate.mean, one.estimate.p, one.estimate.low, one.estimate.high)
            assert found == pytest.approx((deltas.mean(), test.pvalue, bounds.low, bounds.high))
