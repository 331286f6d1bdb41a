"""Two sweeps side by side."""

from __future__ import annotations

import math
from pathlib import Path

import pandas as pd
import pytest
from fake_sweep import Outcomes, add_cell, config, sweep
from scipy import stats

from softcontam.analysis import measure
from softcontam.analysis.comparison import compare
from softcontam.analysis.items import ACCURACY
from softcontam.report import main, measure_table
from softcontam.store import Store

RIGHT = {"small": (12, 14, 13), "large": (18, 17, 20)}


def store_of(root: Path, model: str, name: str, seeds: int = 3, kinds: tuple[str, ...] = ("exact",)) -> Store:
    """One sweep of a model: the clean arm solves 10 of 40 held-out items, the others as many as ``RIGHT`` says."""
    store = Store(root)
    cells = []
    for seed in range(seeds):
        for kind in ("clean", *kinds):
            outcomes = Outcomes()
            for index in range(40):
                outcomes.add("held_out", f"q{index}", [index < (10 if kind == "clean" else RIGHT[model][seed])])
            rate = 0.0 if kind == "clean" else 0.2
            cells.append(add_cell(store, config(kind, seed, rate, model=model), outcomes))
    sweep(store, cells, name)
    return store


def test_the_difference_of_two_sweeps_has_welchs_interval(tmp_path: Path) -> None:
    first = measure(store_of(tmp_path, "small", "a"), "a")
    second = measure(store_of(tmp_path, "large", "b"), "b")
    found = compare(first, second)
    (one,) = [each for each in found.compared if each.first.outcome == ACCURACY]
    ours, theirs = ([(right - 10) / 40 for right in RIGHT[model]] for model in ("small", "large"))
    test = stats.ttest_ind(theirs, ours, equal_var=False)
    assert one.difference.mean == pytest.approx(sum(theirs) / 3 - sum(ours) / 3)
    assert one.difference.p == pytest.approx(test.pvalue)
    assert one.difference.low == pytest.approx(test.confidence_interval(0.95).low)


def test_settings_that_differ_and_arms_that_only_one_has_are_named(tmp_path: Path) -> None:
    first = measure(store_of(tmp_path, "small", "a", kinds=("exact", "topical")), "a")
    second = measure(store_of(tmp_path, "large", "b"), "b")
    found = compare(first, second)
    assert ("model.name", "small", "large") in found.settings
    assert {one.arm.condition for one in found.only_first} == {"topical"}
    assert found.only_second == []


def test_effects_of_several_split_benchmarks_are_not_mixed_up(tmp_path: Path) -> None:
    """By condition, dose and role alone, the arms of one benchmark were compared with those of another."""
    rows = []
    for benchmark, gain in (("puzzles", 10), ("mazes", 0)):
        for seed in range(3):
            for condition in ("clean", "exact"):
                right = 10 + (gain + seed if condition == "exact" else 0)
                rows += [(condition, seed, benchmark, "held_out", f"q{n}", n < right, benchmark) for n in range(40)]
    names = ["condition", "seed", "benchmark", "role", "item_id", "correct", "split_benchmark"]
    table = pd.DataFrame(rows, columns=names)
    table.to_csv(tmp_path / "a.csv", index=False)
    table.iloc[::-1].to_csv(tmp_path / "b.csv", index=False)
    found = compare(measure_table(tmp_path / "a.csv"), measure_table(tmp_path / "b.csv"))
    assert {one.first.benchmark: one.difference.mean for one in found.compared} == {"puzzles": 0.0, "mazes": 0.0}
    assert all(one.first.benchmark == one.second.benchmark for one in found.compared)


def test_one_seed_on_a_side_gives_no_interval(tmp_path: Path) -> None:
    first = measure(store_of(tmp_path, "small", "a"), "a")
    second = measure(store_of(tmp_path, "large", "b", seeds=1), "b")
    one = compare(first, second).compared[0].difference
    assert math.isnan(one.low)
    assert "one seed" in one.note


def test_the_command_writes_both_on_one_page(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    store_of(tmp_path / "runs", "small", "a")
    store_of(tmp_path / "runs", "large", "b")
    arguments = ["exp=a", "against=b", f"paths.runs={tmp_path / 'runs'}", f"paths.reports={tmp_path / 'reports'}"]
    assert main(arguments) == 0
    out = tmp_path / "reports" / "a_and_b"
    assert str(out / "report.html") in capsys.readouterr().out.replace("\n", "")
    page = (out / "report.html").read_text()
    assert "First: a" in page
    assert "Second: b" in page
    assert page.count("<svg") == 3
    table = pd.read_csv(out / "comparison.csv")
    assert table.loc[table["outcome"] == "accuracy", "difference"].item() == pytest.approx(0.1333, abs=1e-3)
