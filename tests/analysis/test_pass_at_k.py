"""Pass@k: the unbiased estimator, and its way from samples to effects."""

from __future__ import annotations

import math
import random
from fractions import Fraction
from itertools import combinations
from pathlib import Path

import numpy as np
import pytest
from fake_sweep import Outcomes, add_cell, config, sweep

from softcontam.analysis import SweepEffects, measure, pass_at_k
from softcontam.analysis.frames import effect_columns, effects_frame
from softcontam.report import write_report
from softcontam.store import Store


def by_counting(correct: int, samples: int, k: int) -> Fraction:
    """The share of all choices of k samples that hold a correct one."""
    drawn = list(combinations([True] * correct + [False] * (samples - correct), k))
    return Fraction(sum(any(choice) for choice in drawn), len(drawn))


def test_is_the_share_of_choices_of_k_samples_that_hold_a_correct_one() -> None:
    for samples in range(1, 9):
        for k in range(1, samples + 1):
            counts = range(samples + 1)
            expected = [float(by_counting(correct, samples, k)) for correct in counts]
            assert pass_at_k(list(counts), samples, k) == pytest.approx(expected)


@pytest.mark.parametrize(("correct", "samples", "k"), [(1, 10_000, 100), (37, 2_000, 1_000), (3, 400, 399)])
def test_agrees_with_exact_binomials_where_these_are_huge(correct: int, samples: int, k: int) -> None:
    exact = 1 - Fraction(math.comb(samples - correct, k), math.comb(samples, k))
    assert pass_at_k(correct, samples, k) == pytest.approx(float(exact), rel=1e-10)


def test_is_unbiased_where_the_plug_in_estimate_is_not() -> None:
    """Over runs of 6 samples at p = 0.2, the mean is 1 - 0.8^3; from the observed accuracy it is far too low."""
    rng = np.random.default_rng(0)
    counts = rng.binomial(6, 0.2, 40_000)
    truth, estimates = 1 - 0.8**3, pass_at_k(counts, 6, 3)
    error = estimates.std() / math.sqrt(len(counts))
    assert abs(estimates.mean() - truth) < 4 * error
    assert abs((1 - (1 - counts / 6) ** 3).mean() - truth) > 10 * error


def test_too_few_samples_have_no_value_and_impossible_counts_are_refused() -> None:
    found = pass_at_k([1, 1, 0], [2, 3, 0], 3)
    assert np.isnan(found).tolist() == [True, False, True]
    for correct, samples, k in ((3, 2, 1), (-1, 2, 1), (1, 2, 0)):
        with pytest.raises(ValueError, match="pass@k"):
            pass_at_k(correct, samples, k)


def sampled(store: Store, pass_at: list[int], seeds: int = 3) -> SweepEffects:
    """Ten families of two items with four samples each; the arm solves more of them."""
    cells = []
    for seed in range(seeds):
        for kind, rate, p in (("clean", 0.0, 0.3), ("exact", 0.1, 0.6)):
            rng, outcomes = random.Random(f"{kind}{seed}"), Outcomes()
            for index in range(20):
                samples = [rng.random() < p for _ in range(4)]
                outcomes.add("held_out", f"i{index}", samples, family=f"f{index // 2}")
            cells.append(add_cell(store, config(kind, seed, rate, samples=4, pass_at=pass_at), outcomes))
    sweep(store, cells)
    return measure(store, "fake")


def test_effects_average_items_within_families_and_pair_with_the_clean_cell(tmp_path: Path) -> None:
    store = Store(tmp_path)
    measured = sampled(store, [2])
    effect = next(one for one in measured.effects if one.outcome == "pass@2")
    expected = []
    for pair in measured.cells.pairs:
        both = []
        for cell in (pair.treated.cell, pair.clean.cell):
            solved = cell.outcomes.groupby(["family", "item_id"])["correct"].sum()
            by_item = solved.map(lambda correct: float(by_counting(int(correct), 4, 2)))
            both.append(by_item.groupby("family").mean().mean())
        expected.append(both[0] - both[1])
    assert sorted(effect.deltas.values()) == pytest.approx(sorted(expected))
    assert effect.estimate.n == 3
    assert (effect.n_items, effect.n_families) == (20, 10)
    assert math.isnan(effect.chance)
    baseline = next(one for one in measured.baselines if one.outcome == "pass@2")
    assert baseline.mean == pytest.approx(effect.baseline)


def test_pass_at_1_is_the_accuracy(tmp_path: Path) -> None:
    measured = sampled(Store(tmp_path), [1])
    accuracy, one = (
        next(effect for effect in measured.effects if effect.outcome == name) for name in ("accuracy", "pass@1")
    )
    assert one.deltas == pytest.approx(accuracy.deltas)


def test_is_not_reported_where_it_was_not_asked_for_or_samples_are_too_few(tmp_path: Path) -> None:
    assert sampled(Store(tmp_path / "a"), []).outcomes == ["accuracy", "logprob_per_token"]
    assert sampled(Store(tmp_path / "b"), [8]).outcomes == ["accuracy", "logprob_per_token"]


def test_the_report_shows_it_beside_the_accuracy(tmp_path: Path) -> None:
    store = Store(tmp_path / "runs")
    measured = sampled(store, [2, 4])
    report = write_report(store, "fake", tmp_path / "reports")
    text = report.markdown.read_text()
    assert "| accuracy %, clean → arm | Δ accuracy, points [95 %] | pass@2 %, clean → arm |" in text
    effect = next(one for one in measured.effects if one.outcome == "pass@4")
    assert f"{100 * effect.baseline:.1f} → {100 * effect.value:.1f}" in text
    assert set(report.more_csv) == {"pass@2", "pass@4"}
    assert report.more_csv["pass@4"].name == "effects_pass_at_4.csv"
    frame = effects_frame(measured, "pass@4")
    assert tuple(frame.columns) == effect_columns("pass@4")
    assert frame["delta"][0] == pytest.approx(frame["pass@4"][0] - frame["baseline_pass@4"][0])
