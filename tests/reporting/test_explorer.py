"""The item-level view: which items flip, what is embedded, what is left out and said to be."""

from __future__ import annotations

import base64
import gzip
import hashlib
import json
import random
import re
from collections.abc import Callable, Sequence
from dataclasses import replace
from importlib.resources import files
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pandas as pd
import pytest
from fake_sweep import Outcomes, sweep_of

from softcontam.analysis.flips import STATES, item_states
from softcontam.analysis.items import item_table, read_outcomes
from softcontam.analysis.pairing import load_sweep
from softcontam.analysis.texts import item_texts
from softcontam.errors import DataError, StoreError
from softcontam.reporting.blocks import Folded, Heading, Paragraph
from softcontam.reporting.document import to_html
from softcontam.reporting.drawing import CSS_VARIABLES
from softcontam.reporting.explorer import ItemExplorer, explorer, item_blocks
from softcontam.store import Store, write_parquet

HOSTILE = (
    '</script><script>window.hacked = 1</script><img src=x onerror="window.hacked = 1">'
    "\u202e\u2028\x00 \U0001f9ea &amp;"
)


def sweep_view(
    folder: Path,
    fill: Callable[[str, int], Outcomes],
    seeds: int = 1,
    outputs: Any = None,
    texts: Any = None,
    rates: Sequence[float] = (0.2,),
) -> Any:
    """What the item-level view reads of a measured sweep; ``outputs(row)`` replaces the outputs."""
    store = sweep_of(folder, seeds, [("exact", rate) for rate in rates], fill)
    cells = load_sweep(store, "fake")
    rows = pd.concat([one.cell.outcomes.assign(cell=one.cell.id) for one in cells.done], ignore_index=True)
    if outputs is not None:
        rows["output"] = pd.Series([outputs(row) for row in rows.itertuples()], dtype=object)
    items = item_table(read_outcomes([one.cell for one in cells.done]))
    empty = pd.DataFrame(columns=["benchmark", "item_id", "prompt", "target"])
    return SimpleNamespace(cells=cells, rows=rows, items=items, texts=empty if texts is None else texts)


def unpacked(chunk: str) -> Any:
    return json.loads(gzip.decompress(base64.b64decode(chunk)))


def four_items(kind: str, seed: int) -> Outcomes:
    """One item of each fate on the held-out half, and a seen item without a row of its own that is gained."""
    arm = kind != "clean"
    made = Outcomes()
    for name, before, after in (("up", 0, 1), ("down", 1, 0), ("both", 1, 1), ("none", 0, 0)):
        made.add("held_out", name, [bool(after if arm else before)])
    made.add("held_out", "unknown", [None if arm else True])
    made.add("seen", "covered", [arm], copies=int(arm))
    return made.add("seen", "uncovered", [arm])


def test_each_item_has_the_fate_that_its_answers_say_and_uncovered_seen_items_are_not_listed(tmp_path: Path) -> None:
    view = sweep_view(tmp_path, four_items)
    states = item_states(view.cells.pairs, view.items).set_index("item_id")["state"].map(STATES.__getitem__)
    assert states.to_dict() == {
        **{"up": "gained", "down": "lost", "both": "right", "none": "wrong"},
        **{"unknown": "undecided", "covered": "gained"},
    }


@pytest.mark.parametrize(
    ("samples", "state"), [([True, True, False], "gained"), ([True, False], "wrong"), ([True, False, False], "wrong")]
)
def test_an_item_is_right_by_the_majority_of_its_samples(tmp_path: Path, samples: list[bool], state: str) -> None:
    def fill(kind: str, seed: int) -> Outcomes:
        return Outcomes().add("held_out", "a", samples if kind != "clean" else [False] * len(samples))

    view = sweep_view(tmp_path, fill)
    assert [STATES[number] for number in item_states(view.cells.pairs, view.items)["state"]] == [state]


def test_outputs_of_any_content_come_back_as_they_were_and_never_stand_in_the_page(tmp_path: Path) -> None:
    lone = "half a pair: \ud800"
    view = sweep_view(tmp_path, four_items, outputs=lambda row: lone if row.item_id == "up" else HOSTILE)
    texts = [("puzzles", "down", HOSTILE, HOSTILE)]
    view.texts = pd.DataFrame(texts, columns=["benchmark", "item_id", "prompt", "target"])
    found = explorer(view)
    assert found is not None
    html = found.html()
    assert "hacked" not in html
    assert html.count("<script") == html.count("</script>") == len(found.chunks)
    cells = [unpacked(chunk) for name, chunk in found.chunks.items() if name.startswith("cell-")]
    assert len(cells) == 2
    for cell in cells:
        held = [cell["strings"][number] for number in cell["output"]]
        assert set(held) == {lone, HOSTILE}
        assert len(held) == 6
    assert unpacked(found.chunks["texts"])["prompt"] == [HOSTILE]


def test_an_item_id_of_any_content_is_escaped_in_the_table_of_the_most_flipped(tmp_path: Path) -> None:
    def fill(kind: str, seed: int) -> Outcomes:
        return Outcomes().add("held_out", HOSTILE.replace("\x00", ""), [kind != "clean"])

    found = explorer(sweep_view(tmp_path, fill))
    assert found is not None
    assert "<img" not in found.html()
    assert "&lt;img src=x" in found.html()


def test_a_long_output_keeps_both_ends_and_says_what_is_missing(tmp_path: Path) -> None:
    text = "begin " + "x" * 5000 + " Answer: 42"
    found = explorer(sweep_view(tmp_path, four_items, outputs=lambda row: text))
    assert found is not None
    (kept,) = [s for s in unpacked(found.chunks["cell-1"])["strings"] if s.startswith("begin")]
    assert kept.endswith(" Answer: 42")
    assert f"[… {len(text) - 2000:,} characters left out …]" in kept
    assert any(
        "more than 2,000 characters are cut in the middle" in note and "12 of 12" in note for note in found.notes
    )


class TestWhatDoesNotFit:
    """Incompressible outputs, and room for fewer and fewer of them."""

    @pytest.fixture
    def view(self, tmp_path: Path) -> Any:
        draw = random.Random(0)

        def output(row: Any) -> str:
            return f"{row.item_id} {draw.randbytes(900).hex()}"

        return sweep_view(tmp_path, four_items, outputs=output, rates=(0.1, 0.2))

    def kept(self, found: ItemExplorer) -> set[str]:
        cells = [unpacked(chunk) for name, chunk in found.chunks.items() if name.startswith("cell-")]
        return {cell["strings"][number].split()[0] for cell in cells for number in cell["output"]}

    def test_everything_fits(self, view: Any) -> None:
        found = explorer(view)
        assert self.kept(found) == {"up", "down", "both", "none", "unknown", "covered"}
        assert not any("Outputs" in note for note in found.notes)

    def test_then_only_flips_keep_their_outputs(self, view: Any) -> None:
        whole = sum(map(len, explorer(view).chunks.values()))
        found = explorer(view, budget=whole - 100)
        assert self.kept(found) == {"up", "down", "covered"}
        assert any(note.startswith("Outputs stand here for items that flip only") for note in found.notes)
        assert sum(map(len, found.chunks.values())) <= whole - 100

    def test_then_only_those_at_the_highest_dose(self, view: Any) -> None:
        whole = sum(map(len, explorer(view).chunks.values()))
        flips = sum(map(len, explorer(view, budget=whole - 100).chunks.values()))
        found = explorer(view, budget=flips - 100)
        arms = unpacked(found.chunks["index"])["arms"]
        held = {arm["dose"]: f"cell-{arm['cells'][0]}" in found.chunks for arm in arms}
        assert held == {"10 % of rows": False, "20 % of rows": True}
        assert f"cell-{arms[1]['clean'][0]}" in found.chunks
        assert any("at the highest dose of a condition only" in note for note in found.notes)

    def test_long_prompts_are_cut_before_they_take_the_room_of_the_outputs(self, view: Any) -> None:
        draw = random.Random(1)
        texts = [("puzzles", item, draw.randbytes(3000).hex(), "A") for item in ("up", "down", "both")]
        view.texts = pd.DataFrame(texts, columns=["benchmark", "item_id", "prompt", "target"])
        found = explorer(view, budget=10_000)
        assert len(found.chunks["texts"]) <= 5_000
        assert any("more than 1,000 characters are cut" in note and "3 of 3" in note for note in found.notes)

    def test_then_none_and_the_page_says_so(self, view: Any) -> None:
        found = explorer(view, budget=0)
        assert self.kept(found) == set()
        assert any(note.startswith("Outputs are left out") for note in found.notes)
        assert "arm-0" in found.chunks


def test_the_page_says_why_there_are_no_prompts(tmp_path: Path) -> None:
    found = explorer(sweep_view(tmp_path, four_items))
    assert found is not None
    assert any("Prompts and gold answers are not shown" in note for note in found.notes)


def test_the_page_counts_the_items_whose_prompt_is_missing(tmp_path: Path) -> None:
    texts = pd.DataFrame(
        [("puzzles", "up", "Q?", "A"), ("puzzles", "up", "Question?", "A"), ("riddles", "down", "other", "B")],
        columns=["benchmark", "item_id", "prompt", "target"],
    )
    found = explorer(sweep_view(tmp_path, four_items, texts=texts))
    assert found is not None
    assert unpacked(found.chunks["texts"])["prompt"] == ["Q?", "Question?"], "an item may be asked in two ways"
    assert any("5 of 6 items are not stored" in note for note in found.notes)


def test_a_table_from_elsewhere_needs_no_outputs_and_no_folder(tmp_path: Path) -> None:
    view = sweep_view(tmp_path, four_items)
    view.rows = view.rows[["cell", "role", "benchmark", "item_id", "family", "sample", "correct", "copies"]]
    gone = tmp_path / "gone"

    def moved(one: Any) -> Any:
        return replace(one, cell=replace(one.cell, folder=gone), metrics={})

    pairs = [replace(pair, treated=moved(pair.treated), clean=moved(pair.clean)) for pair in view.cells.pairs]
    view.cells = replace(view.cells, pairs=pairs, done=[moved(one) for one in view.cells.done])
    found = explorer(view)
    assert found is not None
    assert any("these outcomes hold none" in note for note in found.notes)
    assert "cell-0" not in found.chunks


def test_there_is_no_view_where_nothing_can_flip(tmp_path: Path) -> None:
    undecided = sweep_view(tmp_path / "a", lambda kind, seed: Outcomes().add("held_out", "a", [None]))
    assert explorer(undecided) is None
    alone = sweep_view(tmp_path / "b", four_items)
    alone.cells = replace(alone.cells, pairs=[])
    assert list(item_blocks(alone)) == []


def test_a_sweep_in_which_nothing_flips_says_so(tmp_path: Path) -> None:
    found = explorer(sweep_view(tmp_path, lambda kind, seed: Outcomes().add("held_out", "a", [True])))
    assert found is not None
    assert "No item flips" in found.html()
    assert "No item flips" in found.markdown()


def test_markdown_lists_the_items_that_flip_most(tmp_path: Path) -> None:
    found = explorer(sweep_view(tmp_path, four_items, seeds=3))
    assert found is not None
    lines = found.markdown().splitlines()
    assert [line.split(" | ")[2] for line in lines if line.startswith("| puzzles")] == ["up", "down", "covered"]
    assert "| puzzles | held-out | down | down | 3 | 0 | 3 |" in lines


def test_the_same_sweep_gives_the_same_page_to_the_byte(tmp_path: Path) -> None:
    view = sweep_view(tmp_path, four_items, seeds=2)
    first, second = explorer(view), explorer(view)
    assert first is not None
    assert second is not None
    assert first.html() == second.html()


class TestTexts:
    def fill(self, store: Store, damage: str = "") -> Any:
        cells = load_sweep(store, "fake").done
        table = pd.DataFrame(
            [("puzzles", "seen", "a", "Q?", "A"), ("puzzles", "held_out", "a", "Q?", "A")],
            columns=["benchmark", "role", "item_id", "prompt", "target"],
        )
        for one in cells[:2]:
            write_parquet(one.cell.folder / "items.parquet", table)
        if damage:
            (cells[0].cell.folder / "items.parquet").write_text(damage)
        return cells

    @pytest.fixture
    def store(self, tmp_path: Path) -> Store:
        return sweep_of(tmp_path, 2, [("exact", 0.2)], four_items)

    def test_are_those_of_all_cells_once_and_older_cells_are_passed_over(self, store: Store) -> None:
        assert item_texts(self.fill(store)).to_numpy().tolist() == [["puzzles", "a", "Q?", "A"]]

    def test_of_old_cells_are_none(self, store: Store) -> None:
        assert item_texts(load_sweep(store, "fake").done).empty

    def test_that_are_damaged_name_the_file(self, store: Store) -> None:
        with pytest.raises(StoreError, match=r"items\.parquet is damaged"):
            item_texts(self.fill(store, "no parquet"))

    def test_that_lack_a_column_name_it(self, store: Store) -> None:
        cells = self.fill(store)
        write_parquet(cells[0].cell.folder / "items.parquet", pd.DataFrame({"benchmark": ["a"], "item_id": ["b"]}))
        with pytest.raises(DataError, match=r"items\.parquet lacks the columns prompt, target"):
            item_texts(cells)


class TestDocument:
    def test_headings_are_the_contents_even_when_two_are_alike(self) -> None:
        inner = Folded("more", [Heading("Inner")])
        page = to_html([Heading("A", 1), Heading("B & C"), Heading("B & C"), inner, Heading("–")], "title")
        links = re.findall(r'<a href="#(section-[^"]*)">', page)
        ids = re.findall(r' id="([^"]+)"', page)
        assert len(links) == 3
        assert set(links) <= set(ids)
        assert len(ids) == len(set(ids))

    def test_a_short_page_has_no_contents(self) -> None:
        assert "toc" not in to_html([Heading("A", 1), Heading("B")], "title").split("</head>")[1]

    def test_the_policy_lets_the_page_s_own_script_run_and_nothing_else(self) -> None:
        page = to_html([Paragraph("text")], "title")
        (script,) = re.findall(r"<script>(.*?)</script>", page, re.DOTALL)
        digest = base64.b64encode(hashlib.sha256(script.encode()).digest()).decode()
        policy = re.search(r'Content-Security-Policy" content="([^"]*)"', page)
        assert policy is not None
        assert f"script-src 'sha256-{digest}'" in policy[1]
        assert "default-src 'none'" in policy[1]
        assert "http" not in script

    def test_every_colour_of_the_figures_stands_out_in_the_dark(self) -> None:
        dark = (files("softcontam.reporting") / "assets" / "dark.css").read_text(encoding="utf-8")
        found = dict(re.findall(r"--([\w-]+): (#[0-9a-f]{6});", dark))
        assert set(CSS_VARIABLES.values()) <= set(found)
        for name in CSS_VARIABLES.values():
            if name.startswith("c-"):
                assert contrast(found[name], found["paper"]) >= 4.5, name


def contrast(one: str, other: str) -> float:
    """The contrast ratio of two colours (WCAG 2.1), from 1 to 21."""
    low, high = sorted(map(luminance, (one, other)))
    return (high + 0.05) / (low + 0.05)


def luminance(colour: str) -> float:
    parts = [int(colour[at : at + 2], 16) / 255 for at in (1, 3, 5)]
    linear = [part / 12.92 if part <= 0.04045 else ((part + 0.055) / 1.055) ** 2.4 for part in parts]
    return 0.2126 * linear[0] + 0.7152 * linear[1] + 0.0722 * linear[2]
