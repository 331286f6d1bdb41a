"""Contrasts that an experiment declares: what each tests, Holm over them, and what was chosen too late."""

from __future__ import annotations

import json
import math
from dataclasses import asdict
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from fake_sweep import Outcomes, add_cell, config, sweep_of
from scipy import stats
from statsmodels.stats.multitest import multipletests

from softcontam.analysis import SweepEffects, measure
from softcontam.analysis.declared import Declared
from softcontam.analysis.items import ACCURACY
from softcontam.analysis.records import AGAINST
from softcontam.config import AnalysisConfig, ContrastConfig, check_analysis
from softcontam.errors import ConfigError, StoreError
from softcontam.reporting.verdicts import EQUIVALENT, MISSING, NOT_SHOWN, SHOWN, sentence, verdict_of
from softcontam.store import Store

GAINS = {
    "clean": {"seen": 0, "held_out": 0, "related": 0},
    "exact": {"seen": 16, "held_out": 10, "related": 0},
    "semd_synthetic": {"seen": 10, "held_out": 9, "related": 0},
    "topical": {"seen": 0, "held_out": 1, "related": 0},
}
WOBBLE = {"clean": (0, 0, 0, 0), "exact": (0, 1, 0, 1), "semd_synthetic": (1, 0, 1, 0), "topical": (-2, 1, 0, 1)}


def fill(kind: str, seed: int) -> Outcomes:
    """Forty items per role; the clean arm solves 16. Related items flip both ways, by one item in some seeds."""
    outcomes = Outcomes()
    for role, benchmark in (("seen", "puzzles"), ("held_out", "puzzles"), ("related", "riddles")):
        right = 16 + GAINS[kind][role] + WOBBLE[kind][seed % 4] * (1 if role != "related" else 0)
        right += (seed % 2) * (kind == "semd_synthetic") * (role == "related")
        for index in range(40):
            outcomes.add(role, f"{role}{index}", [index < right], benchmark=benchmark, copies=int(kind != "clean"))
    return outcomes


KINDS = [("exact", 0.05), ("exact", 0.2), ("semd_synthetic", 0.2), ("topical", 0.2)]


def declared(tmp_path: Path, contrasts: list[dict[str, Any]], margin: float = 0.05, done: int = 0) -> SweepEffects:
    store = sweep_of(tmp_path, 4, KINDS, fill)
    analysis = AnalysisConfig(margin=margin, contrasts=[ContrastConfig(**one) for one in contrasts])
    record = store.sweep("fake")
    record["declared"] = [{"time": "2026-12-01T00:00:00+00:00", "done": done, "analysis": asdict(analysis)}]
    (store.runs / "_sweeps" / "fake.json").write_text(json.dumps(record))
    return measure(store, "fake")


def only(measured: SweepEffects) -> Declared:
    (found,) = measured.declared
    return found


def test_holm_is_over_the_declared_contrasts_and_no_others(tmp_path: Path) -> None:
    measured = declared(
        tmp_path,
        [
            {"test": "effect", "condition": "exact"},
            {"test": "effect", "condition": "semd_synthetic"},
            {"test": "effect", "condition": "topical"},
        ],
    )
    p = [one.estimate.p for one in measured.declared]
    assert [one.holm for one in measured.declared] == pytest.approx(multipletests(p, method="holm")[1], abs=1e-12)
    in_table = {(one.arm.condition, one.arm.rate, one.role): one.holm for one in measured.of(ACCURACY)}
    assert in_table["exact", 0.2, "held_out"] == measured.declared[0].holm
    assert math.isnan(in_table["exact", 0.05, "held_out"])
    assert math.isnan(in_table["exact", 0.2, "seen"])


def test_an_effect_is_that_of_the_highest_dose_unless_one_is_named(tmp_path: Path) -> None:
    measured = declared(
        tmp_path,
        [{"test": "effect", "condition": "exact"}, {"test": "effect", "condition": "exact", "rate": 0.05}],
    )
    assert [one.effect.arm.rate for one in measured.declared if one.effect] == [0.2, 0.05]


def test_semds_against_exact_are_paired_within_seeds(tmp_path: Path) -> None:
    measured = declared(tmp_path, [{"test": "against", "condition": "semd_synthetic"}])
    # SemD - exact on held-out items, by seed: (9 + 1) - 10, 9 - 11, (9 + 1) - 10, 9 - 11 of 40
    expected = np.array([0, -2, 0, -2]) / 40
    found = only(measured)
    assert found.estimate.mean == pytest.approx(expected.mean())
    assert found.p == pytest.approx(stats.ttest_1samp(expected, 0).pvalue)
    (beside,) = [
        one for one in measured.contrasts if one.kind == AGAINST and one.role == "held_out" and one.outcome == ACCURACY
    ]
    assert beside.estimate == found.estimate
    assert beside.minus_arm is not None
    assert beside.minus_arm.condition == "exact"


def test_differences_between_roles_have_all_three_intervals(tmp_path: Path) -> None:
    measured = declared(
        tmp_path,
        [
            {"test": "difference_in_differences", "condition": "exact"},
            {"test": "gap", "condition": "semd_synthetic"},
        ],
    )
    did, gap = measured.declared
    assert did.estimate.mean == pytest.approx(6 / 40)
    assert gap.estimate.mean == pytest.approx(np.mean([10, 8, 10, 8]) / 40)
    for one in (did, gap):
        assert one.family.low < one.estimate.mean < one.family.high
        assert one.hierarchical.low <= one.estimate.mean <= one.hierarchical.high


def test_no_transfer_is_a_verdict_of_the_equivalence_test_at_the_declared_margin(tmp_path: Path) -> None:
    contrast = {"test": "no_transfer", "condition": "semd_synthetic", "role": "related"}
    deltas = np.array([0, 1, 0, 1]) / 40
    for place, margin in enumerate((0.05, 0.02)):
        measured = declared(tmp_path / str(place), [contrast], margin)
        above = stats.ttest_1samp(deltas, -margin, alternative="greater").pvalue
        below = stats.ttest_1samp(deltas, margin, alternative="less").pvalue
        found = only(measured)
        assert found.p == pytest.approx(max(above, below))
        assert verdict_of(found, margin) == (EQUIVALENT if max(above, below) < 0.05 else NOT_SHOWN)
    assert "stays within ±2.0 points at 20 % of rows is open" in sentence(found, margin)
    assert "90 % interval [−0.4, 2.9]" in sentence(found, margin)


def test_verdicts_say_shown_and_not_shown_with_numbers(tmp_path: Path) -> None:
    measured = declared(
        tmp_path, [{"test": "effect", "condition": "exact"}, {"test": "effect", "condition": "topical"}]
    )
    shown, not_shown = measured.declared
    assert verdict_of(shown, 0.05) == SHOWN
    assert sentence(shown, 0.05).startswith(
        "Exact duplicates raise held-out puzzles accuracy at 20 % of rows by +26.2 points [24.0, 28.5] (4 seeds,"
    )
    assert verdict_of(not_shown, 0.05) == NOT_SHOWN
    text = sentence(not_shown, 0.05)
    assert "no change of held-out puzzles accuracy is shown" in text
    assert "Detectable: 7.5 points" in text


def test_a_dose_response_names_slope_and_dose(tmp_path: Path) -> None:
    def graded(kind: str, seed: int) -> Outcomes:
        return fill(kind, seed)

    store = Store(tmp_path / "runs")
    cells = []
    for seed in range(3):
        cells.append(add_cell(store, config("clean", seed), graded("clean", seed)))
        for rate, right in ((0.05, 17), (0.1, 21), (0.2, 26)):
            outcomes = Outcomes()
            for index in range(40):
                outcomes.add("held_out", f"held_out{index}", [index < right + (seed == 1)])
            for role, benchmark in (("seen", "puzzles"), ("related", "riddles")):
                for index in range(40):
                    outcomes.add(role, f"{role}{index}", [index < 16], benchmark=benchmark, copies=1)
            cells.append(add_cell(store, config("exact", seed, rate), outcomes))
    stated = AnalysisConfig(contrasts=[ContrastConfig("dose_response", "exact")])
    details = {"declared": [{"time": "now", "done": 0, "analysis": asdict(stated)}]}
    store.write_sweep("fake", cells, details)
    found = only(measure(store, "fake"))
    assert found.line is not None
    assert found.line.response.doses == (0.05, 0.1, 0.2)
    text = sentence(found, 0.05)
    assert "held-out puzzles accuracy rises with dose (share of rows)" in text
    # 16 of 40 is clean; +5 points are 18 of 40, which lies above the lowest dose
    assert 0.05 < found.line.response.dose_for_gain.value < 0.07
    assert "A gain of 5 points is reached at" in text


def test_what_was_not_run_is_a_declared_contrast_without_a_figure(tmp_path: Path) -> None:
    measured = declared(tmp_path, [{"test": "effect", "condition": "near"}])
    found = only(measured)
    assert verdict_of(found, 0.05) == MISSING
    assert "no finished cells of the arm near" in sentence(found, 0.05)
    assert math.isnan(found.holm)


def test_a_declaration_after_results_is_said(tmp_path: Path) -> None:
    early = declared(tmp_path / "a", [{"test": "effect", "condition": "exact"}])
    late = declared(tmp_path / "b", [{"test": "effect", "condition": "exact"}], done=7)
    assert early.declaration.notes == ()
    assert "when 7 of 20 cells were done already" in late.declaration.notes[0]
    given = measure(Store(tmp_path / "a" / "runs"), "fake", margin=0.02)
    assert given.margin == 0.02
    assert "not declared before the run" in given.declaration.notes[0]


def test_a_record_keeps_what_was_declared_before(tmp_path: Path) -> None:
    store = Store(tmp_path)
    first, second = asdict(AnalysisConfig()), asdict(AnalysisConfig(margin=0.1))
    for analysis, done in ((first, 0), (first, 3), (second, 3)):
        store.write_sweep("fake", [], {"declared": store.declared("fake", analysis, done)})
    kept = store.sweep("fake")["declared"]
    assert [(one["analysis"]["margin"], one["done"]) for one in kept] == [(0.05, 0), (0.1, 3)]


def test_a_damaged_declaration_names_the_remedy(tmp_path: Path) -> None:
    store = sweep_of(tmp_path, 1, [("exact", 0.2)], fill)
    record = store.sweep("fake") | {"declared": [{"analysis": {"margins": 1}}]}
    (store.runs / "_sweeps" / "fake.json").write_text(json.dumps(record))
    with pytest.raises(StoreError, match="Launch the sweep again"):
        measure(store, "fake")


@pytest.mark.parametrize(
    ("contrast", "message"),
    [
        ({"test": "efect", "condition": "exact"}, "did you mean effect"),
        ({"test": "effect", "condition": "clean"}, "with the clean arm"),
        (
            {"test": "effect", "condition": "exact", "role": "heldout"},
            "Choose one of: seen, held_out, related, general",
        ),
        ({"test": "against", "condition": "exact"}, "with itself"),
        ({"test": "dose_response", "condition": "exact", "rate": 0.1}, "over all doses"),
    ],
)
def test_a_contrast_that_cannot_be_meant_is_refused_before_anything_runs(
    contrast: dict[str, Any], message: str
) -> None:
    with pytest.raises(ConfigError, match=message):
        check_analysis(AnalysisConfig(contrasts=[ContrastConfig(**contrast)]))
