"""Dose, matching, detectability and similarity in the report, from what cells store."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import pytest
from fake_sweep import Outcomes, add_cell, config, sweep

from softcontam.analysis.effects import SweepEffects, measure
from softcontam.config import ConditionConfig, Config
from softcontam.mixture.matching import Matching, Tokens
from softcontam.reporting import tables
from softcontam.reporting.document import to_markdown
from softcontam.reporting.page import page
from softcontam.store import Cell, Store, write_parquet

COPIES = (0, 1, 4)


def outcomes(solved: dict[int, bool]) -> Outcomes:
    """Three seen items for each number of copies, solved or not by their copies, and one held-out item."""
    made = Outcomes()
    for copies in COPIES:
        for number in range(3):
            made.add("seen", f"s{copies}{number}", [solved.get(copies, False)], copies=copies if solved else 0)
    return made.add("held_out", "h0", [False])


def matching(**changes: Any) -> dict[str, Any]:
    exact, whole = Tokens(100, 40), Tokens(1000, 400)
    made = Matching(exact, exact, Tokens(90, 30), whole, {"answer": 10}, "answer")
    return {**made.as_dict(), **changes}


def store_of(tmp_path: Path, arms: dict[str, tuple[ConditionConfig, dict[str, Any], list[float]]]) -> SweepEffects:
    """A clean cell and one cell per arm, with its figures and the similarities in its manifest."""
    store = Store(tmp_path / "runs")
    cells: list[Cell] = []
    clean = {"ngram_13": [2, 100], "ngram_8": [5, 100]}
    cells.append(add_cell(store, config(), outcomes({}), detected_clean=clean))
    for condition, metrics, similarities in arms.values():
        settings: Config = config(condition.kind, rate=0.1)
        settings.condition = condition
        cell = add_cell(store, settings, outcomes({1: True, 4: True}), similarity="tfidf", **metrics)
        values = np.full(100, np.nan)
        values[: len(similarities)] = similarities
        write_parquet(cell.folder / "manifest.parquet", pd.DataFrame({"similarity": values}))
        cells.append(cell)
    sweep(store, cells)
    return measure(store, "fake")


def test_an_arm_that_is_not_matched_is_told_before_its_effects(tmp_path: Path) -> None:
    longer = matching(inserted={"tokens": 190, "trained_tokens": 40})
    measured = store_of(tmp_path, {"topical": (ConditionConfig("topical"), {"matching": longer}, [0.5])})
    (note,) = [note for note in measured.notes if "Not matched" in note]
    assert "Not matched to exact duplicates in tokens: topical at 10 % of rows" in note
    row = dict(zip(tables.matching(measured).header, tables.matching(measured).rows[0], strict=True))
    assert row["vs exact %"] == "+9.0, +0.0"
    assert row["vs clean %"] == "+10.0, +2.5"
    assert row["not matched"] == "tokens"


def test_a_matched_arm_is_not_remarked_on(tmp_path: Path) -> None:
    measured = store_of(tmp_path, {"exact": (ConditionConfig("exact"), {"matching": matching()}, [1.0])})
    assert not [note for note in measured.notes if "Not matched" in note]
    assert tables.matching(measured).rows[0][-1] == "–"


def test_detected_rows_stand_with_their_share_and_the_clean_arm_has_its_own_line(tmp_path: Path) -> None:
    found = {"ngram_13": [3, 500], "ngram_8": [40, 500]}
    arms = {"semd": (ConditionConfig("semd_synthetic"), {"detected": found}, [0.5])}
    rows = [
        dict(zip(tables.detection(m).header, row, strict=True))
        for m in [store_of(tmp_path, arms)]
        for row in tables.detection(m).rows
    ]
    by_condition = {row["condition"]: row for row in rows}
    assert by_condition["synthetic SemDs"]["ngram_13"] == "3 (0.6 %)"
    assert by_condition["synthetic SemDs"]["rows, all seeds"] == "500"
    assert by_condition["clean"]["ngram_8"] == "5 (5.0 %)"


def test_similarity_is_set_beside_the_semds_of_the_same_dose(tmp_path: Path) -> None:
    low, high = [0.1] * 5 + [0.3] * 5, [0.3] * 5 + [0.9] * 5
    measured = store_of(
        tmp_path,
        {
            "semd": (ConditionConfig("semd_synthetic"), {}, high),
            "topical": (ConditionConfig("topical"), {}, low),
        },
    )
    rows = {row[1]: row for row in tables.similarity(measured).rows}
    assert rows["topically similar non-SemDs"][-1] == "0.50 with semd_synthetic"
    assert rows["synthetic SemDs"][-1] == "–"
    assert rows["topically similar non-SemDs"][5:8] == ["0.10", "0.20", "0.30"]


def test_a_ladder_arm_is_told_by_its_doses_the_unseen_dose_included(tmp_path: Path) -> None:
    ladder = ConditionConfig("exact", ladder=[0, 1, 4])
    measured = store_of(tmp_path, {"ladder": (ladder, {}, [1.0])})
    by_copies = {one.copies: one for one in measured.doses if one.outcome == "accuracy"}
    assert {copies: one.estimate.mean for copies, one in by_copies.items()} == {0: 0.0, 1: 1.0, 4: 1.0}
    assert {one.n_items for one in by_copies.values()} == {3}
    assert "Dose within one model" in to_markdown(page(measured))


@pytest.mark.parametrize("heading", ["Dose and matching", "What a standard filter would have found", "Similarity"])
def test_cells_from_before_these_figures_have_no_such_heading(tmp_path: Path, heading: str) -> None:
    store = Store(tmp_path / "runs")
    cells = [
        add_cell(store, config(kind, rate=rate), outcomes({1: True})) for kind, rate in (("clean", 0.0), ("exact", 0.1))
    ]
    sweep(store, cells)
    assert heading not in to_markdown(page(measure(store, "fake")))
