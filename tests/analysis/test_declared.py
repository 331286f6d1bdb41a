"""Contrasts that an experiment declares: what each tests, Holm over them, and what was chosen too late."""

from __future__ import annotations

import io
import json
import math
from dataclasses import asdict
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from fake_sweep import Outcomes, add_cell, config, sweep_of
from rich.console import Console
from scipy import stats
from statsmodels.stats.multitest import multipletests

from softcontam.analysis import SweepEffects, measure
from softcontam.analysis.declared import Declared, declaration
from softcontam.analysis.items import ACCURACY, LOGPROB
from softcontam.analysis.records import AGAINST
from softcontam.config import AnalysisConfig, ContrastConfig, check_analysis
from softcontam.errors import ConfigError, StoreError
from softcontam.reporting.terminal import terminal_table
from softcontam.reporting.verdicts import EQUIVALENT, MISSING, NOT_SHOWN, SHOWN, WITHIN, sentence, verdict_of
from softcontam.reporting.wording import verdict
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
        assert verdict_of(found) == (EQUIVALENT if max(above, below) < 0.05 else NOT_SHOWN)
    assert "stays within ±2.0 points at 20 % of rows is open" in sentence(found)
    assert "90 % interval [−0.4, 2.9]" in sentence(found)


def test_verdicts_say_shown_and_not_shown_with_numbers(tmp_path: Path) -> None:
    measured = declared(
        tmp_path, [{"test": "effect", "condition": "exact"}, {"test": "effect", "condition": "topical"}]
    )
    shown, not_shown = measured.declared
    assert verdict_of(shown) == SHOWN
    assert sentence(shown).startswith(
        "Exact duplicates raise held-out puzzles accuracy at 20 % of rows by +26.2 points [24.0, 28.5] (4 seeds,"
    )
    assert verdict_of(not_shown) == NOT_SHOWN
    text = sentence(not_shown)
    assert "no change of held-out puzzles accuracy is shown" in text
    assert "Detectable: 7.5 points" in text


def test_differences_between_roles_are_those_of_the_benchmark_named(tmp_path: Path) -> None:
    did = {"test": "difference_in_differences", "condition": "exact"}
    measured = declared(tmp_path, [did | {"benchmark": "puzzles"}, did | {"benchmark": "mazes"}])
    named, unknown = measured.declared
    assert named.estimate.mean == pytest.approx(6 / 40)
    assert "the effects on seen and on held-out puzzles items" in sentence(named)
    assert verdict_of(unknown) == MISSING


def test_no_dose_response_of_log_probability_is_said_to_be_that(tmp_path: Path) -> None:
    def undecided(kind: str, seed: int) -> Outcomes:
        return Outcomes().add("held_out", "a", [None], logprob=-2.0 - seed).add("held_out", "b", [None])

    store = sweep_of(tmp_path, 2, [("exact", 0.05), ("exact", 0.2)], undecided)
    stated = AnalysisConfig(contrasts=[ContrastConfig("dose_response", "exact")])
    record = store.sweep("fake") | {"declared": [{"time": "now", "done": 0, "analysis": asdict(stated)}]}
    (store.runs / "_sweeps" / "fake.json").write_text(json.dumps(record))
    assert "no accuracy at two doses or more" in sentence(only(measure(store, "fake")))


def test_the_terminal_tells_the_verdicts_below_the_effects(tmp_path: Path) -> None:
    """On a cluster the page is a copy away."""
    measured = declared(tmp_path, [{"test": "effect", "condition": "exact"}, {"test": "effect", "condition": "near"}])
    console = Console(width=140, record=True, file=io.StringIO())
    console.print(terminal_table(measured))
    text = " ".join(console.export_text().split())
    assert "shown: Exact duplicates raise held-out puzzles accuracy at 20 % of rows by +26.2 points" in text
    assert "not measured: Near duplicates" in text
    assert text.index("Δ held-out") < text.index("shown: Exact")


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
    text = sentence(found)
    assert "held-out puzzles accuracy rises with dose (share of rows)" in text
    # 16 of 40 is clean; +5 points are 18 of 40, which lies above the lowest dose
    assert 0.05 < found.line.response.dose_for_gain.value < 0.07
    assert "A gain of 5 points is reached at" in text


def test_what_was_not_run_is_a_declared_contrast_without_a_figure(tmp_path: Path) -> None:
    measured = declared(tmp_path, [{"test": "effect", "condition": "near"}])
    found = only(measured)
    assert verdict_of(found) == MISSING
    assert "no finished cells of the arm near" in sentence(found)
    assert math.isnan(found.holm)


def test_a_declaration_after_results_is_said(tmp_path: Path) -> None:
    early = declared(tmp_path / "a", [{"test": "effect", "condition": "exact"}])
    late = declared(tmp_path / "b", [{"test": "effect", "condition": "exact"}], done=7)
    assert early.declaration.notes == ()
    assert not early.declaration.late
    assert "when 7 cells of the experiment were done already" in late.declaration.notes[0]
    assert late.declaration.late
    given = measure(Store(tmp_path / "a" / "runs"), "fake", margin=0.02)
    assert given.margin == 0.02
    assert "not declared before the run" in given.declaration.notes[0]


def entries(*stated: tuple[AnalysisConfig, int]) -> dict[str, Any]:
    declared = [{"time": "2026-12-01", "done": done, "analysis": asdict(analysis)} for analysis, done in stated]
    return {"experiment": "fake", "cells": ["a"], "declared": declared}


def test_a_later_launch_does_not_wash_a_late_margin_clean() -> None:
    """Only the last statement was looked at once: any change of the question hid when the margin had been chosen."""
    first, second = AnalysisConfig(margin=0.05), AnalysisConfig(margin=0.1)
    asked = AnalysisConfig(margin=0.1, question="Does it transfer?")
    found = declaration(entries((first, 0), (second, 9), (asked, 9)))
    assert found.analysis == asked
    assert found.late
    (note,) = found.notes
    assert "Margin changed on 2026-12-01, when 9 cells" in note


def test_another_question_is_no_late_declaration() -> None:
    found = declaration(entries((AnalysisConfig(), 0), (AnalysisConfig(question="What transfers?"), 9)))
    assert (found.notes, found.late) == ((), False)


def test_cells_that_were_added_when_others_were_done_are_noted() -> None:
    record = entries((AnalysisConfig(), 0)) | {
        "added": [{"time": "d1", "cells": 6, "done": 0}, {"time": "d2", "cells": 4, "done": 6}]
    }
    (note,) = declaration(record).notes
    assert note.startswith("4 cells were added on d2, when 6 were done.")


def test_a_record_keeps_what_was_declared_before_and_every_cell_that_was_launched(tmp_path: Path) -> None:
    store = Store(tmp_path)
    seeds = [add_cell(store, config("clean", seed), Outcomes().add("held_out", "a", [True])) for seed in range(3)]
    launches = [(seeds[:1], AnalysisConfig()), (seeds[1:], AnalysisConfig()), (seeds[1:], AnalysisConfig(margin=0.1))]
    for cells, analysis in launches:
        store.write_sweep("fake", cells, store.history("fake", cells, asdict(analysis)))
    record = store.sweep("fake")
    kept = [(one["analysis"]["margin"], one["done"]) for one in record["declared"]]
    # the third launch has two cells of its own, but three were done when the margin changed
    assert kept == [(0.05, 1), (0.1, 3)]
    assert record["ever"] == [cell.id for cell in seeds]
    assert [one["cells"] for one in record["added"]] == [1, 2]
    store.write_sweep("fake", seeds, store.history("fake", seeds, None))
    assert store.sweep("fake")["declared"] == record["declared"]


def test_holm_counts_declared_contrasts_that_have_no_figure_yet(tmp_path: Path) -> None:
    """Else a sweep looked at when half of it is done is judged more mildly than the whole one."""
    contrasts = [{"test": "effect", "condition": name} for name in ("exact", "near", "natural", "unrelated")]
    measured = declared(tmp_path, contrasts)
    first = measured.declared[0]
    assert first.holm == pytest.approx(4 * first.p)


def related_only(gains: tuple[int, ...], clean: int, tmp_path: Path) -> Declared:
    """One declared test of no transfer; the arm solves so many of 400 related items more than ``clean``, by seed."""

    def fill(kind: str, seed: int) -> Outcomes:
        outcomes = Outcomes()
        right = clean + (gains[seed] if kind == "exact" else 0)
        for index in range(400):
            outcomes.add("related", f"r{index}", [index < right], benchmark="jokes")
        return outcomes

    store = sweep_of(tmp_path, len(gains), [("exact", 0.2)], fill)
    stated = AnalysisConfig(contrasts=[ContrastConfig("no_transfer", "exact", role="related")])
    record = store.sweep("fake") | {"declared": [{"time": "now", "done": 0, "analysis": asdict(stated)}]}
    (store.runs / "_sweeps" / "fake.json").write_text(json.dumps(record))
    return only(measure(store, "fake"))


def test_a_change_that_is_there_but_small_is_not_called_no_transfer(tmp_path: Path) -> None:
    small = related_only((8, 10, 9, 8), 200, tmp_path / "small")
    assert small.estimate.shown
    assert verdict_of(small) == WITHIN
    assert "a change on related jokes" in sentence(small)
    assert "smaller than ±5.0 points by equivalence test" in sentence(small)
    none = related_only((1, -1, 1, -1), 200, tmp_path / "none")
    assert verdict_of(none) == EQUIVALENT
    assert sentence(none, late=True).endswith("The margin was chosen when results were there.")


def test_no_transfer_is_not_claimed_at_the_floor_where_chance_is_unknown(tmp_path: Path) -> None:
    """Every arm at 1 % lies within any margin, as nothing can be lost there."""
    floor = related_only((1, -1, 1, -1), 6, tmp_path)
    assert floor.effect is not None
    assert math.isnan(floor.effect.chance)
    assert floor.holm < 0.05
    assert verdict_of(floor) == NOT_SHOWN
    assert "near 0 (chance is not known)" in sentence(floor)


def test_log_probability_is_held_against_its_own_margin_in_its_own_unit(tmp_path: Path) -> None:
    def fill(kind: str, seed: int) -> Outcomes:
        outcomes = Outcomes()
        for index in range(40):
            logprob = -4.0 + 0.001 * seed + (0.002 if kind == "exact" else 0.0) * (seed % 2)
            outcomes.add("held_out", f"q{index}", [index < 20], logprob=logprob, tokens=2)
        return outcomes

    measured = measure(sweep_of(tmp_path, 4, [("exact", 0.2)], fill), "fake")
    (without,) = measured.of(LOGPROB)
    assert measured.margins.get(LOGPROB) is None
    assert "within" not in verdict(without, measured.margins.get(LOGPROB))
    stated = measured.cells.record | {
        "declared": [{"time": "now", "done": 0, "analysis": asdict(AnalysisConfig(logprob_margin=0.05))}]
    }
    store = Store(tmp_path / "runs")
    (store.runs / "_sweeps" / "fake.json").write_text(json.dumps(stated))
    measured = measure(store, "fake")
    (within,) = measured.of(LOGPROB)
    assert verdict(within, measured.margins.get(LOGPROB)).endswith("within ±0.050 nats per token (unadjusted)")


def test_a_contrast_of_log_probability_stands_beside_those_of_accuracy(tmp_path: Path) -> None:
    """Where accuracy is at the floor, the log-probability is what an experiment is about; both share one family."""

    def graded(kind: str, seed: int) -> Outcomes:
        outcomes = Outcomes()
        for index in range(20):
            logprob = -4.0 + (0.2 + 0.01 * seed if kind == "exact" else 0.0)
            near = -3.0 + (0.002 * seed if kind == "exact" else 0.0)
            outcomes.add("held_out", f"q{index}", [index < 1 + (kind == "exact") * (seed % 2)], logprob=logprob)
            outcomes.add("related", f"r{index}", [index < 9], benchmark="riddles", logprob=near)
        return outcomes

    store = sweep_of(tmp_path, 4, [("exact", 0.2)], graded)
    stated = AnalysisConfig(
        logprob_margin=0.04,
        contrasts=[
            ContrastConfig("effect", "exact"),
            ContrastConfig("effect", "exact", outcome=LOGPROB),
            ContrastConfig("no_transfer", "exact", role="related", outcome=LOGPROB),
        ],
    )
    record = store.sweep("fake") | {"declared": [{"time": "now", "done": 0, "analysis": asdict(stated)}]}
    (store.runs / "_sweeps" / "fake.json").write_text(json.dumps(record))
    measured = measure(store, "fake")
    of_accuracy, of_logprob, transfer = measured.declared
    deltas = (0.2 + 0.01 * np.arange(4)) / 2
    assert of_accuracy.estimate.mean == pytest.approx(0.5 / 20)
    assert of_logprob.estimate.mean == pytest.approx(deltas.mean())
    assert of_logprob.p == pytest.approx(stats.ttest_1samp(deltas, 0).pvalue)
    p = [one.p for one in measured.declared]
    assert [one.holm for one in measured.declared] == pytest.approx(multipletests(p, method="holm")[1])
    assert verdict_of(of_logprob) == SHOWN
    text = sentence(of_logprob)
    assert "raise held-out puzzles log-probability of the gold answer at 20 % of rows by +0.107 nats per token" in text
    assert verdict_of(transfer) == EQUIVALENT
    assert "beyond ±0.040 nats per token of log-probability of the gold answer" in sentence(transfer)
    known = {(one.outcome, one.role): one.holm for one in measured.effects}
    assert known[LOGPROB, "held_out"] == of_logprob.holm


def test_two_arms_are_compared_on_the_items_that_both_cover(tmp_path: Path) -> None:
    """A family of two items, one of which only one arm covers, says nothing with its mean over both."""

    def fill(kind: str, seed: int) -> Outcomes:
        outcomes = Outcomes()
        covered = {"clean": 0, "exact": 20, "semd_synthetic": 12}[kind]
        for index in range(20):
            right = {"clean": False, "exact": index >= 12 or index < 6 + seed, "semd_synthetic": index < 4}[kind]
            copies = int(index < covered)
            outcomes.add("seen", f"s{index}", [right], family=f"f{index % 10}", copies=copies)
        return outcomes

    store = sweep_of(tmp_path, 3, [("exact", 0.2), ("semd_synthetic", 0.2)], fill)
    stated = AnalysisConfig(contrasts=[ContrastConfig("against", "semd_synthetic", role="seen")])
    record = store.sweep("fake") | {"declared": [{"time": "now", "done": 0, "analysis": asdict(stated)}]}
    (store.runs / "_sweeps" / "fake.json").write_text(json.dumps(record))
    found = only(measure(store, "fake"))
    assert found.left_out == 8  # 20 items of exact, 12 of the SemDs, 12 of both
    # the first twelve items: families 0 and 1 have two of them (0, 10 and 1, 11), the others one
    expected = []
    for seed in range(3):
        solved = [np.array([index < 4, index < 6 + seed]) for index in range(12)]
        gaps = np.array([float(semd) - float(exact) for semd, exact in solved])
        expected.append(np.mean([gaps[[k for k in range(12) if k % 10 == family]].mean() for family in range(10)]))
    assert found.estimate.mean == pytest.approx(np.mean(expected))
    assert "up to 8 of a seed are left out" in sentence(found)


def test_a_seed_in_which_nothing_is_decided_is_named(tmp_path: Path) -> None:
    def fill(kind: str, seed: int) -> Outcomes:
        value = None if kind == "exact" and seed == 1 else True
        return Outcomes().add("held_out", "a", [value]).add("held_out", "b", [value])

    measured = measure(sweep_of(tmp_path, 3, [("exact", 0.2)], fill), "fake")
    (effect,) = measured.of(ACCURACY)
    assert effect.estimate.n == 2
    said = "Seed 1 of exact is left out of accuracy on puzzles (held_out): none of its 2 items is decided"
    assert any(said in note for note in measured.notes)


def test_parse_rates_that_differ_stand_in_the_sentence_and_in_a_note(tmp_path: Path) -> None:
    def fill(kind: str, seed: int) -> Outcomes:
        outcomes = Outcomes()
        for index in range(40):
            parsed = kind == "clean" or index % 2 == 0
            outcomes.add("held_out", f"q{index}", [parsed and index < 20 + (seed % 2)], parse_ok=parsed)
        return outcomes

    store = sweep_of(tmp_path, 3, [("exact", 0.2)], fill)
    stated = AnalysisConfig(contrasts=[ContrastConfig("effect", "exact")])
    record = store.sweep("fake") | {"declared": [{"time": "now", "done": 0, "analysis": asdict(stated)}]}
    (store.runs / "_sweeps" / "fake.json").write_text(json.dumps(record))
    measured = measure(store, "fake")
    assert "Outputs parsed: 50.0 % against 100.0 % in the clean arm." in sentence(only(measured))
    assert any("exact on puzzles (held_out): 50.0 % against 100.0 %" in note for note in measured.notes)


def test_one_seed_is_said_to_have_no_interval(tmp_path: Path) -> None:
    store = sweep_of(tmp_path, 1, [("exact", 0.2)], fill)
    stated = AnalysisConfig(contrasts=[ContrastConfig("effect", "exact")])
    record = store.sweep("fake") | {"declared": [{"time": "now", "done": 0, "analysis": asdict(stated)}]}
    (store.runs / "_sweeps" / "fake.json").write_text(json.dumps(record))
    found = only(measure(store, "fake"))
    assert found.estimate.note
    assert f"({found.estimate.note})" in sentence(found)


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
        ({"test": "dose_response", "condition": "exact", "outcome": "logprob_per_token"}, "is of accuracy"),
        ({"test": "effect", "condition": "exact", "outcome": "logprob"}, "accuracy, logprob_per_token"),
        ({"test": "no_transfer", "condition": "exact", "outcome": "logprob_per_token"}, "analysis.logprob_margin"),
    ],
)
def test_a_contrast_that_cannot_be_meant_is_refused_before_anything_runs(
    contrast: dict[str, Any], message: str
) -> None:
    with pytest.raises(ConfigError, match=message):
        check_analysis(AnalysisConfig(contrasts=[ContrastConfig(**contrast)]))


def test_a_contrast_declared_twice_is_refused() -> None:
    one = ContrastConfig("effect", "exact")
    with pytest.raises(ConfigError, match=r"analysis.contrasts.1 is declared twice"):
        check_analysis(AnalysisConfig(contrasts=[one, ContrastConfig("effect", "exact")]))


def test_items_that_only_either_arm_covers_are_both_counted_as_left_out(tmp_path: Path) -> None:
    def fill(kind: str, seed: int) -> Outcomes:
        outcomes = Outcomes()
        covered = {"clean": range(0), "exact": range(0, 15), "semd_synthetic": range(10, 20)}[kind]
        for index in range(20):
            outcomes.add("seen", f"s{index}", [index % 2 == 0 or index < seed], copies=int(index in covered))
        return outcomes

    measured = measure(sweep_of(tmp_path, 3, [("exact", 0.2), ("semd_synthetic", 0.2)], fill), "fake")
    (one,) = [one for one in measured.contrasts if one.kind == AGAINST and one.outcome == ACCURACY]
    assert one.left_out == 10 + 5


def test_an_arm_whose_outputs_are_parsed_less_is_named_on_either_side_of_a_comparison(tmp_path: Path) -> None:
    def fill(kind: str, seed: int) -> Outcomes:
        outcomes = Outcomes()
        for index in range(40):
            parsed = kind != "exact" or index % 2 == 0
            outcomes.add("held_out", f"q{index}", [parsed and index < 20 + seed % 2], parse_ok=parsed)
        return outcomes

    store = sweep_of(tmp_path, 3, [("exact", 0.2), ("semd_synthetic", 0.2)], fill)
    stated = AnalysisConfig(contrasts=[ContrastConfig("against", "semd_synthetic")])
    record = store.sweep("fake") | {"declared": [{"time": "now", "done": 0, "analysis": asdict(stated)}]}
    (store.runs / "_sweeps" / "fake.json").write_text(json.dumps(record))
    said = "Outputs parsed (exact duplicates): 50.0 % against 100.0 % in the clean arm."
    assert said in sentence(only(measure(store, "fake")))
