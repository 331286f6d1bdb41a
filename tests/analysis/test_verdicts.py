"""Verdicts of the sandbox and partial results: counted per arm, left out where they say nothing, told in the report."""

from __future__ import annotations

from pathlib import Path

import pytest
from fake_sweep import Outcomes, add_cell, config, sweep

from softcontam.analysis import SweepEffects, measure
from softcontam.report import write_report
from softcontam.store import Store

RIGHT, WRONG, SLOW, BROKEN = (True, "pass"), (False, "wrong"), (False, "timeout"), (None, "sandbox_error")
UNPARSED = (False, None)


def judged(store: Store, clean: list[list[tuple[bool | None, str | None]]],
           arm: list[list[tuple[bool | None, str | None]]]) -> SweepEffects:  # fmt: skip
    """A clean cell and an arm's, each with these samples of each item."""
    cells = []
    for kind, rate, items in (("clean", 0.0, clean), ("exact", 0.1, arm)):
        outcomes = Outcomes()
        for index, samples in enumerate(items):
            correct, verdicts = zip(*samples, strict=True)
            outcomes.add("held_out", f"i{index}", correct, verdicts=verdicts)
        cells.append(add_cell(store, config(kind, 0, rate, samples=len(items[0])), outcomes))
    sweep(store, cells)
    return measure(store, "fake")


def test_a_sample_that_the_sandbox_failed_on_is_left_out_of_its_item_and_counted(tmp_path: Path) -> None:
    measured = judged(Store(tmp_path / "runs"), [[RIGHT, BROKEN], [WRONG, WRONG]], [[RIGHT, RIGHT], [RIGHT, WRONG]])
    effect = next(one for one in measured.effects if one.outcome == "accuracy")
    assert effect.baseline == pytest.approx(0.5)  # not (1/2 + 0) / 2
    assert effect.value == pytest.approx(0.75)
    assert [note for note in measured.notes if "failed on 1 of 8 programs of puzzles (held_out)" in note]


def test_pass_at_k_counts_the_samples_that_were_decided(tmp_path: Path) -> None:
    store, cells = Store(tmp_path / "runs"), []
    for kind, rate in (("clean", 0.0), ("exact", 0.1)):
        outcomes = Outcomes().add("held_out", "a", [True, False, False, None]).add("held_out", "b", [False] * 4)
        cells.append(add_cell(store, config(kind, 0, rate, samples=4, pass_at=[2, 4]), outcomes))
    sweep(store, cells)
    by_name = {one.outcome: one for one in measure(store, "fake").baselines}
    assert by_name["pass@2"].mean == pytest.approx((2 / 3 + 0) / 2)  # two of the three pairs of decided samples
    assert (by_name["pass@4"].mean, by_name["pass@4"].n_items) == (0.0, 1)


def test_an_item_without_any_verdict_is_undecided_in_both_arms(tmp_path: Path) -> None:
    measured = judged(Store(tmp_path / "runs"), [[BROKEN], [WRONG]], [[RIGHT], [RIGHT]])
    effect = next(one for one in measured.effects if one.outcome == "accuracy")
    assert (effect.value, effect.baseline, effect.n_items) == (1.0, 0.0, 1)
    assert any("accuracy is undecided for 1 item results" in note for note in measured.notes)


def test_verdicts_are_counted_per_arm_over_the_programs_that_were_run(tmp_path: Path) -> None:
    store = Store(tmp_path / "runs")
    measured = judged(store, [[RIGHT, UNPARSED], [SLOW, WRONG]], [[RIGHT, SLOW], [SLOW, SLOW]])
    clean, arm = measured.verdicts
    assert (clean.arm.condition, clean.outputs, clean.run) == ("clean", 4, 3)
    assert clean.counts == {"pass": 1, "wrong": 1, "timeout": 1}
    assert arm.share("timeout") == pytest.approx(0.75)
    text = write_report(store, "fake", tmp_path / "reports").markdown.read_text()
    assert "| puzzles | held-out | clean | – | 4 | 3 | 33.3 | 33.3 | 0.0 | 33.3 |" in text
    assert "| puzzles | held-out | exact duplicates | 10 % | 4 | 4 | 25.0 | 0.0 | 0.0 | 75.0 |" in text
    assert "sandbox itself failed" not in text


def test_the_report_warns_of_sandbox_errors(tmp_path: Path) -> None:
    store = Store(tmp_path / "runs")
    judged(store, [[RIGHT], [WRONG]], [[RIGHT], [BROKEN]])
    text = write_report(store, "fake", tmp_path / "reports").markdown.read_text()
    assert "the sandbox itself failed on 1 of 4 programs" in text


def test_cells_without_the_columns_are_measured_beside_those_that_have_them(tmp_path: Path) -> None:
    store = Store(tmp_path / "runs")
    older = add_cell(store, config(), Outcomes().add("held_out", "a", [False]))
    newer = add_cell(store, config("exact", 0, 0.1), Outcomes().add("held_out", "a", [True], verdicts=["pass"]))
    sweep(store, [older, newer])
    measured = measure(store, "fake")
    assert next(one for one in measured.effects if one.outcome == "accuracy").estimate.mean == 1.0
    assert [one.arm.condition for one in measured.verdicts] == ["exact"]


def test_partial_results_are_an_outcome_of_their_own_and_nothing_parsed_is_nothing_right(tmp_path: Path) -> None:
    store = Store(tmp_path / "runs")
    cells = []
    for kind, rate, share in (("clean", 0.0, 0.4), ("exact", 0.1, 0.9)):
        outcomes = Outcomes().add("held_out", "a", [False], partial=share).add("held_out", "b", [False], parse_ok=False)
        cells.append(add_cell(store, config(kind, 0, rate), outcomes))
    sweep(store, cells)
    measured = measure(store, "fake")
    effect = next(one for one in measured.effects if one.outcome == "partial")
    assert (effect.baseline, effect.value) == (pytest.approx(0.2), pytest.approx(0.45))
    assert measured.outcomes == ["accuracy", "partial", "logprob_per_token"]
    assert measured.primary == "accuracy"
    report = write_report(store, "fake", tmp_path / "reports")
    assert "Effects on partial accuracy" in report.markdown.read_text()
    assert (
        report.more_csv["partial"]
        .read_text()
        .splitlines()[0]
        .endswith("parse_rate,partial,baseline_partial,delta,ci_low,ci_high,p_value")
    )
