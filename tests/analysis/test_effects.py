import json
import math
from pathlib import Path

import numpy as np
import pandas as pd
import pytest
from fake_sweep import Outcomes, add_cell, config, sweep, sweep_of
from scipy import stats
from statsmodels.stats.multitest import multipletests
from statsmodels.stats.power import TTestPower
from statsmodels.stats.weightstats import DescrStatsW

from softcontam.analysis import Effect, SweepEffects, measure
from softcontam.analysis.estimates import equivalence_p, holm, over_seeds, standardized_detectable
from softcontam.analysis.frames import CONTRAST_COLUMNS, EFFECT_COLUMNS, LOGPROB_COLUMNS, contrasts_frame, effects_frame
from softcontam.analysis.records import DID, GAP
from softcontam.errors import ArmMismatchError, DataError, StoreError
from softcontam.store import FAILED, Store


def only(measured: SweepEffects, role: str, outcome: str = "accuracy", condition: str = "exact") -> Effect:
    found = [
        one for one in measured.effects if (one.role, one.outcome, one.arm.condition) == (role, outcome, condition)
    ]
    assert len(found) == 1
    return found[0]


def ten(right: int, role: str = "held_out", benchmark: str = "puzzles", outcomes: Outcomes | None = None) -> Outcomes:
    """Ten items of which the first ``right`` are solved."""
    outcomes = outcomes or Outcomes()
    for index in range(10):
        outcomes.add(role, f"{role}{index}", [index < right], benchmark=benchmark)
    return outcomes


def test_samples_count_within_items_items_within_families_and_families_equally(tmp_path: Path) -> None:
    def fill(kind: str, seed: int) -> Outcomes:
        if kind == "clean":
            clean = (
                Outcomes().add("held_out", "a", [False] * 4, family="one").add("held_out", "b", [False], family="one")
            )
            return clean.add("held_out", "c", [True, False], family="two")
        arm = Outcomes().add("held_out", "a", [True, True, True, False], family="one")
        return arm.add("held_out", "b", [False], family="one").add("held_out", "c", [True, True], family="two")

    effect = only(measure(sweep_of(tmp_path, 1, [("exact", 0.1)], fill), "fake"), "held_out")
    # family one: (3/4 + 0) / 2 = 0.375; family two: 1; their mean 0.6875. Clean: (0 + 0.5) / 2 = 0.25.
    assert effect.value == pytest.approx(0.6875)
    assert effect.baseline == pytest.approx(0.25)
    assert effect.estimate.mean == pytest.approx(0.4375)
    assert (effect.n_items, effect.n_families) == (3, 2)


def test_interval_and_p_are_a_t_over_seeds_paired_with_their_own_clean_cell(tmp_path: Path) -> None:
    clean, arm = [2, 5, 8, 3], [5, 6, 9, 7]
    store = sweep_of(tmp_path, 4, [("exact", 0.1)], lambda kind, seed: ten((clean if kind == "clean" else arm)[seed]))
    estimate = only(measure(store, "fake"), "held_out").estimate
    deltas = [0.3, 0.1, 0.1, 0.4]
    test = stats.ttest_1samp(deltas, 0)
    bounds = test.confidence_interval(0.95)
    assert estimate.n == 4
    assert estimate.mean == pytest.approx(0.225)
    assert (estimate.low, estimate.high) == pytest.approx((bounds.low, bounds.high))
    assert estimate.p == pytest.approx(test.pvalue)


def test_seen_effect_uses_covered_items_only_on_both_sides(tmp_path: Path) -> None:
    def fill(kind: str, seed: int) -> Outcomes:
        if kind == "clean":
            return Outcomes().add("seen", "covered", [False]).add("seen", "other", [True])
        return Outcomes().add("seen", "covered", [True], copies=3).add("seen", "other", [False], copies=0)

    measured = measure(sweep_of(tmp_path, 2, [("exact", 0.1)], fill), "fake")
    effect = only(measured, "seen")
    assert (effect.value, effect.baseline, effect.n_items) == (1.0, 0.0, 1)
    assert [one.mean for one in measured.baselines if one.role == "seen" and one.outcome == "accuracy"] == [0.5]


def test_one_seed_gives_an_estimate_without_interval_or_p(tmp_path: Path) -> None:
    store = sweep_of(tmp_path, 1, [("exact", 0.1)], lambda kind, seed: ten(2 if kind == "clean" else 6))
    effect = only(measure(store, "fake"), "held_out")
    assert effect.estimate.mean == pytest.approx(0.4)
    assert all(
        math.isnan(x) for x in (effect.estimate.low, effect.estimate.high, effect.estimate.p, effect.equivalence)
    )
    assert "one seed" in effect.estimate.note


def test_seeds_that_agree_exactly_are_not_called_certain() -> None:
    estimate = over_seeds([0.3, 0.3, 0.1 + 0.2])
    assert math.isnan(estimate.p)
    assert math.isnan(estimate.low)
    assert not estimate.shown
    assert "same difference" in estimate.note


@pytest.mark.parametrize("key", ["base_sha256", "n_rows", "steps"])
def test_arms_that_differ_in_more_than_the_inserted_rows_are_refused(tmp_path: Path, key: str) -> None:
    store = Store(tmp_path)
    cells = [
        add_cell(store, config(), ten(2)),
        add_cell(store, config("exact", 0, 0.1), ten(4), **{key: "other" if key == "base_sha256" else 7}),
    ]
    sweep(store, cells)
    with pytest.raises(ArmMismatchError, match=key):
        measure(store, "fake")


def test_arms_evaluated_on_other_items_are_refused(tmp_path: Path) -> None:
    store = Store(tmp_path)
    sweep(
        store,
        [
            add_cell(store, config(), ten(2)),
            add_cell(store, config("exact", 0, 0.1), ten(4).add("held_out", "x", [True])),
        ],
    )
    with pytest.raises(ArmMismatchError, match="same items"):
        measure(store, "fake")


def test_missing_baseline_is_listed_with_the_command_that_runs_it(tmp_path: Path) -> None:
    store = Store(tmp_path)
    paired = [add_cell(store, config(seed=0), ten(2)), add_cell(store, config("exact", 0, 0.1), ten(4))]
    sweep(store, [*paired, add_cell(store, config("exact", 1, 0.1), ten(4))])
    measured = measure(store, "fake")
    assert only(measured, "held_out").estimate.n == 1
    assert [(one.seed, one.arm.condition) for one in measured.cells.missing] == [(1, "exact")]
    assert measured.cells.missing[0].command == "python -m softcontam.run -m exp=fake condition=clean seed=1"


def test_baseline_is_found_in_the_store_when_the_sweep_does_not_hold_it(tmp_path: Path) -> None:
    store = Store(tmp_path)
    add_cell(store, config(), ten(2))
    sweep(store, [add_cell(store, config("topical", 0, 0.1), ten(5))])
    assert only(measure(store, "fake"), "held_out", condition="topical").estimate.mean == pytest.approx(0.3)


def test_cells_that_failed_are_listed_with_their_error(tmp_path: Path) -> None:
    store = Store(tmp_path)
    failed = store.freeze(config("exact", 0, 0.1))
    failed.set_status(FAILED, error="ValueError: out of range\nsecond line")
    sweep(store, [add_cell(store, config(), ten(2)), failed])
    measured = measure(store, "fake")
    assert measured.effects == []
    assert [(one.state, one.error) for one in measured.cells.unfinished] == [("failed", "ValueError: out of range")]


def test_differences_in_differences_and_gap_pair_the_roles_by_seed(tmp_path: Path) -> None:
    right = {"seen": [9, 8, 6], "held_out": [6, 4, 4], "related": [3, 2, 4]}

    def fill(kind: str, seed: int) -> Outcomes:
        outcomes = Outcomes()
        for role, benchmark in (("held_out", "puzzles"), ("related", "riddles")):
            ten(2 if kind == "clean" else right[role][seed], role, benchmark, outcomes)
        for index in range(10):
            outcomes.add("seen", f"s{index}", [index < (2 if kind == "clean" else right["seen"][seed])], copies=1)
        return outcomes

    measured = measure(sweep_of(tmp_path, 3, [("exact", 0.1)], fill), "fake")
    found = {one.kind: one for one in measured.contrasts if one.outcome == "accuracy"}
    for kind, differences in ((DID, [0.3, 0.4, 0.2]), (GAP, [0.3, 0.2, 0.0])):
        assert found[kind].estimate.mean == pytest.approx(np.mean(differences))
        assert found[kind].estimate.p == pytest.approx(stats.ttest_1samp(differences, 0).pvalue)
    assert (found[GAP].benchmark, found[GAP].minus_benchmark) == ("puzzles", "riddles")


def test_log_probability_is_per_token_and_needs_no_decided_answers(tmp_path: Path) -> None:
    def fill(kind: str, seed: int) -> Outcomes:
        better = 0.0 if kind == "clean" else 1.0 + seed
        outcomes = Outcomes().add("held_out", "a", [None], logprob=-8 + better, tokens=4, parse_ok=None)
        return outcomes.add("held_out", "b", [None], logprob=-6 + better, tokens=2, parse_ok=None)

    measured = measure(sweep_of(tmp_path, 2, [("exact", 0.1)], fill), "fake")
    effect = only(measured, "held_out", "logprob_per_token")
    # clean: (-8/4 + -6/2) / 2 = -2.5; gains per token (1/4 + 1/2) / 2 = 0.375 and twice that
    assert effect.baseline == pytest.approx(-2.5)
    assert list(effect.deltas.values()) == pytest.approx([0.375, 0.75])
    assert measured.of("accuracy") == []
    assert measured.primary == "logprob_per_token"


def test_undecided_items_are_left_out_of_both_arms_and_said_so(tmp_path: Path) -> None:
    def fill(kind: str, seed: int) -> Outcomes:
        undecided = None if kind == "exact" else True
        return Outcomes().add("held_out", "a", [undecided]).add("held_out", "b", [kind == "exact"])

    measured = measure(sweep_of(tmp_path, 1, [("exact", 0.1)], fill), "fake")
    effect = only(measured, "held_out")
    assert (effect.value, effect.baseline, effect.n_items) == (1.0, 0.0, 1)
    assert any("undecided" in note for note in measured.notes)


def test_two_models_in_one_sweep_are_never_pooled(tmp_path: Path) -> None:
    store = Store(tmp_path)
    cells = []
    for model, right in (("small", 4), ("large", 9)):
        cells.append(add_cell(store, config(model=model), ten(2)))
        cells.append(add_cell(store, config("exact", 0, 0.1, model=model), ten(right)))
    sweep(store, cells)
    measured = measure(store, "fake")
    deltas = {one.arm.setup: one.estimate.mean for one in measured.of("accuracy")}
    assert deltas == pytest.approx({"model.name=small": 0.2, "model.name=large": 0.7})
    assert set(effects_frame(measured, "accuracy")["experiment"]) == {
        "fake [model.name=small]",
        "fake [model.name=large]",
    }


def test_general_benchmarks_are_controls_outside_holm(tmp_path: Path) -> None:
    def fill(kind: str, seed: int) -> Outcomes:
        outcomes = ten(2 if kind == "clean" else 4 + seed)
        return ten(5 if kind == "clean" else 5 + seed, "general", "chat", outcomes)

    measured = measure(sweep_of(tmp_path, 3, [("exact", 0.1), ("topical", 0.1)], fill), "fake")
    accuracy = measured.of("accuracy")
    held_out = [one for one in accuracy if one.role == "held_out"]
    assert [one.holm for one in held_out] == pytest.approx([2 * one.estimate.p for one in held_out])
    assert all(math.isnan(one.holm) for one in accuracy if one.role == "general")


def test_csv_columns_are_exact_and_copies_are_rows_per_covered_item(tmp_path: Path) -> None:
    store = sweep_of(tmp_path, 2, [("exact", 0.1)], lambda kind, seed: ten(2 if kind == "clean" else 5 + seed))
    measured = measure(store, "fake")
    frame = effects_frame(measured, "accuracy")
    assert ",".join(frame.columns) == (
        "experiment,benchmark,role,condition,level,rate,copies,n_items,n_families,n_seeds,chance,parse_rate,accuracy,"
        "baseline_accuracy,delta,ci_low,ci_high,p_value"
    )
    assert tuple(frame.columns) == EFFECT_COLUMNS
    assert tuple(effects_frame(measured, "logprob_per_token").columns) == LOGPROB_COLUMNS
    assert tuple(contrasts_frame(measured).columns) == CONTRAST_COLUMNS
    row = frame.iloc[0]
    assert (row["copies"], row["chance"], row["n_seeds"], row["parse_rate"]) == (2.5, 0.25, 2, 1.0)
    assert row["delta"] == pytest.approx(row["accuracy"] - row["baseline_accuracy"])


def test_outcomes_of_another_schema_are_named(tmp_path: Path) -> None:
    store = sweep_of(tmp_path, 1, [("exact", 0.1)], lambda kind, seed: ten(2))
    path = store.cell(store.sweep("fake")["cells"][1]).folder / "outcomes.parquet"
    pd.read_parquet(path).drop(columns="family").to_parquet(path)
    with pytest.raises(DataError, match="family"):
        measure(store, "fake")
    path.write_bytes(b"PAR1")
    with pytest.raises(StoreError, match=r"outcomes\.parquet"):
        measure(store, "fake")


def test_equivalence_needs_the_whole_90_percent_interval_within_the_margin() -> None:
    tight, wide = [0.01, -0.01, 0.0, 0.012, -0.008], [0.1, -0.12, 0.02, 0.08, -0.06]
    assert equivalence_p(tight, 0.05) < 0.05 < equivalence_p(wide, 0.05)
    assert equivalence_p(tight, 0.001) > 0.05
    for deltas in (tight, wide):
        assert equivalence_p(deltas, 0.05) == pytest.approx(DescrStatsW(deltas).ttost_mean(-0.05, 0.05)[0])
    assert math.isnan(equivalence_p([0.0], 0.05))


def test_holm_agrees_with_statsmodels_and_skips_undefined_p() -> None:
    p_values = [0.01, 0.04, 0.03, 0.2, 0.005]
    assert holm(p_values) == pytest.approx(list(multipletests(p_values, method="holm")[1]))
    assert holm([0.02, math.nan, 0.03])[::2] == pytest.approx([0.04, 0.04])
    assert math.isnan(holm([0.02, math.nan])[1])


@pytest.mark.parametrize("n", [3, 5, 10])
def test_detectable_effect_has_80_percent_power(n: int) -> None:
    power = TTestPower().power(standardized_detectable(n) / math.sqrt(n), n, 0.05, alternative="two-sided")
    assert power == pytest.approx(0.8, abs=2e-3)


def test_arms_in_other_slots_are_pointed_out(tmp_path: Path) -> None:
    store = sweep_of(tmp_path, 1, [("exact", 0.1), ("topical", 0.1)], lambda kind, seed: ten(2))
    path = store.cell(store.sweep("fake")["cells"][1]).folder / "metrics.json"
    path.write_text(json.dumps(json.loads(path.read_text()) | {"slots_sha256": "elsewhere"}))
    assert any("different slots" in note for note in measure(store, "fake").notes)


def test_chance_is_that_of_the_role_and_of_the_benchmark_in_older_cells(tmp_path: Path) -> None:
    def both(right: int) -> Outcomes:
        return ten(right, "seen", outcomes=ten(right))

    store = Store(tmp_path)
    by_role = {"puzzles/seen": 0.1, "puzzles/held_out": 0.3, "puzzles": 0.9}
    sweep(store, [add_cell(store, config(), both(2), chance=by_role)])
    assert {one.role: one.chance for one in measure(store, "fake").baselines if one.outcome == "accuracy"} == {
        "seen": 0.1,
        "held_out": 0.3,
    }
    older = Store(tmp_path / "older")
    sweep(older, [add_cell(older, config(), both(2))])
    assert {one.chance for one in measure(older, "fake").baselines if one.outcome == "accuracy"} == {0.25}
