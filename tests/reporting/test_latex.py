"""Tables for papers: escaping, structure, and the same numbers as in the page."""

from __future__ import annotations

import json
from dataclasses import asdict
from pathlib import Path

import pytest
from fake_sweep import Outcomes, sweep_of

from softcontam.analysis import measure
from softcontam.config import AnalysisConfig, ContrastConfig
from softcontam.reporting.latex import escaped, latex_table, paper_tables
from softcontam.store import Store


def store_of(root: Path, seeds: int) -> Store:
    def fill(kind: str, seed: int) -> Outcomes:
        outcomes = Outcomes()
        for index in range(20):
            outcomes.add("held_out", f"q{index}", [index < (5 if kind == "clean" else 9 + seed)])
        return outcomes

    return sweep_of(root, seeds, [("exact", 0.05), ("exact", 0.2)], fill)


def test_commands_in_a_name_are_written_out() -> None:
    assert escaped("100 % of a_b & c") == r"100 \% of a\_b \& c"
    assert escaped(r"\input{x}") == r"\textbackslash{}input\{x\}"
    assert escaped("−3 ± 1, p <0.001") == r"$-$3 $\pm$ 1, p $<$0.001"


def test_a_row_of_another_length_is_refused() -> None:
    with pytest.raises(ValueError, match="3 cells"):
        latex_table(("a", "b", "c"), [["1", "2"]], "caption", "tab:x")


def test_effects_of_the_highest_dose_stand_with_their_interval(tmp_path: Path) -> None:
    table = paper_tables(measure(store_of(tmp_path, 3), "fake"))["table_effects.tex"]
    # gains 4, 5, 6 of 20: +25.0 points, t(2) interval ± 12.4
    assert r"exact duplicates & $+25.0\ [12.6, 37.4]$ \\" in table
    assert table.count(r"\\") == 2
    assert "20 \\% of rows" in table
    assert "3 seeds" in table


def test_one_seed_has_no_interval_in_the_table_either(tmp_path: Path) -> None:
    table = paper_tables(measure(store_of(tmp_path, 1), "fake"))["table_effects.tex"]
    assert "$+20.0$" in table


def test_declared_contrasts_are_a_table_of_their_own(tmp_path: Path) -> None:
    store = store_of(tmp_path, 3)
    assert "table_declared.tex" not in paper_tables(measure(store, "fake"))
    stated = AnalysisConfig(contrasts=[ContrastConfig("effect", "exact")])
    record = store.sweep("fake") | {"declared": [{"time": "now", "done": 0, "analysis": asdict(stated)}]}
    (store.runs / "_sweeps" / "fake.json").write_text(json.dumps(record))
    table = paper_tables(measure(store, "fake"))["table_declared.tex"]
    assert r"& effect & held-out puzzles & $+25.0\ [12.6, 37.4]$ & 0.013 & 0.013 & shown \\" in table
