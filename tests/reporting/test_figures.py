"""Figures: every seed is drawn, nothing is hidden, and the page's colours are not those of the files for papers."""

from __future__ import annotations

import json
import re
from pathlib import Path

import pytest
from fake_sweep import Outcomes, sweep_of

from softcontam.analysis import measure
from softcontam.analysis.effects import SweepEffects
from softcontam.errors import StoreError
from softcontam.reporting.curves import curves_figure
from softcontam.reporting.drawing import Drawing
from softcontam.reporting.figures import dose_response_figure, signature_figure
from softcontam.store import Store

ROLES = (("seen", "puzzles"), ("held_out", "puzzles"), ("related", "riddles"))


def fill(kind: str, seed: int) -> Outcomes:
    outcomes = Outcomes()
    for role, benchmark in ROLES:
        right = 8 if kind == "clean" else 11 + seed
        for index in range(20):
            outcomes.add(role, f"{role}{index}", [index < right], benchmark=benchmark, copies=int(kind != "clean"))
    return outcomes


def measured(root: Path, seeds: int = 4) -> SweepEffects:
    kinds = [("exact", 0.05), ("exact", 0.2), ("semd_synthetic", 0.2), ("topical", 0.2)]
    return measure(sweep_of(root, seeds, kinds, fill), "fake")


def texts(drawing: Drawing) -> str:
    return " ".join(re.findall(r"<text[^>]*>([^<]*)<", drawing.svg))


def dots(drawing: Drawing) -> list[list[float]]:
    """The x positions of small markers by group, in the figure's own axes."""
    return [
        [float(x) for x in line.get_xdata()]
        for axis in drawing.figure.axes
        for line in axis.get_lines()
        if line.get_marker() == "o" and line.get_markersize() < 4
    ]


def test_every_seed_of_every_arm_and_role_is_a_dot(tmp_path: Path) -> None:
    found = measured(tmp_path)
    drawing = signature_figure(found.of("accuracy"), found.baselines, "roles", 0.05)
    groups = [sorted(group) for group in dots(drawing)]
    assert len(groups) == 3 * len(ROLES)
    # (11 + seed - 8) of 20 items, in points
    assert all(group == pytest.approx([15, 20, 25, 30]) for group in groups)


def test_roles_stand_side_by_side_with_their_clean_accuracy(tmp_path: Path) -> None:
    found = measured(tmp_path)
    drawing = signature_figure(found.of("accuracy"), found.baselines, "roles", 0.05)
    written = texts(drawing)
    for word in ("seen", "held-out", "related", "puzzles", "riddles", "exact duplicates", "clean 40.0 %"):
        assert word in written
    assert "±5 points" in written


def test_one_seed_is_drawn_hollow_and_said_so(tmp_path: Path) -> None:
    found = measured(tmp_path, seeds=1)
    written = texts(signature_figure(found.of("accuracy"), found.baselines, "roles", 0.05))
    assert "no interval" in written
    assert "95 % t interval" not in written


def test_the_page_gets_variables_and_the_file_plain_colours(tmp_path: Path) -> None:
    found = measured(tmp_path)
    drawing = dose_response_figure(found.of("accuracy"), "dose", found.lines)
    assert "var(--ink, #24292f)" in drawing.inline
    assert "var(" not in drawing.svg
    assert drawing.png().startswith(b"\x89PNG")
    assert drawing.pdf().startswith(b"%PDF")


def test_ids_of_two_figures_on_a_page_never_meet(tmp_path: Path) -> None:
    found = measured(tmp_path)
    effects = found.of("accuracy")
    both = dose_response_figure(effects, "dose").inline + signature_figure(effects, (), "roles").inline
    ids = re.findall(r' id="([^"]+)"', both)
    assert len(ids) == len(set(ids))


def with_logs(store: Store, lines: str) -> SweepEffects:
    for cell_id in store.sweep("fake")["cells"]:
        (store.cell(cell_id).folder / "train_log.jsonl").write_text(lines)
    return measure(store, "fake")


def test_training_curves_show_the_highest_dose_and_what_was_logged(tmp_path: Path) -> None:
    store = sweep_of(tmp_path, 2, [("exact", 0.05), ("exact", 0.2)], fill)
    records = [
        {"step": 0, "epoch": 0.0, "inserted_token_accuracy": 0.4},
        {"step": 5, "epoch": 0.5, "loss": 1.0},
        {"step": 10, "epoch": 1.0, "loss": 0.5, "inserted_token_accuracy": 0.9},
    ]
    found = with_logs(store, "".join(json.dumps(one) + "\n" for one in records))
    drawing = curves_figure(found.cells.done)
    assert drawing is not None
    assert [axis.get_title().replace("\n", " ") for axis in drawing.figure.axes] == [
        "loss on trained tokens",
        "token accuracy, inserted rows",
    ]
    written = texts(drawing)
    assert "exact duplicates, 20 %" in written
    assert "exact duplicates, 5 %" not in written


def test_without_logs_there_is_no_figure_and_a_damaged_one_is_named(tmp_path: Path) -> None:
    store = sweep_of(tmp_path, 1, [("exact", 0.2)], fill)
    assert curves_figure(measure(store, "fake").cells.done) is None
    with pytest.raises(StoreError, match=r"train_log.jsonl is damaged"):
        curves_figure(with_logs(store, "{not json").cells.done)
