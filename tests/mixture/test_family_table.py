"""The family table: every evaluated item with its family and the evidence, as it is stored."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import pandas as pd
from tiny_cells import composed, made_up_benchmark

from softcontam.arms import lay_out
from softcontam.benchmarks import ItemSet
from softcontam.benchmarks.families import NearPair
from softcontam.mixture import FamilySplit, family_table, split_by_family
from softcontam.store import read_parquet, write_parquet


def stored(table: pd.DataFrame, folder: Path) -> pd.DataFrame:
    write_parquet(folder / "families.parquet", table)
    return read_parquet(folder / "families.parquet")


def test_evidence_stands_with_both_items_and_survives_the_file(tmp_path: Path) -> None:
    pairs = (
        NearPair("riddles/0a", "riddles/0b", "twin"),
        NearPair("riddles/1a", "riddles/1b", "text", 0.931),
        NearPair("riddles/1a", "riddles/1b", "code"),
    )
    benchmark = replace(made_up_benchmark(5), joined=pairs)
    difficulty = {item.item_id: float(index) for index, item in enumerate(benchmark.items)}
    split = split_by_family(benchmark, 0.5, 0, difficulty)
    sets = [ItemSet("seen", benchmark, split.seen), ItemSet("held_out", benchmark, split.held_out)]
    other = made_up_benchmark(3, 1, name="others")
    table = stored(family_table(split, [*sets, ItemSet("related", other, other.items)]), tmp_path)
    assert len(table) == 13
    row = table.set_index("item_id").loc
    assert list(row["riddles/0b"]["joined_with"]) == ["riddles/0a"]
    assert list(row["riddles/0b"]["evidence"]) == ["twin of riddles/0a"]
    assert list(row["riddles/1a"]["joined_with"]) == ["riddles/1b", "riddles/1b"]
    assert list(row["riddles/1a"]["why"]) == ["text", "code"]
    assert list(row["riddles/1a"]["evidence"]) == ["text, cosine 0.93, with riddles/1b", "code with riddles/1b"]
    assert list(row["riddles/2a"]["evidence"]) == []
    assert row["riddles/2a"]["family_size"] == 2
    assert row["riddles/2a"]["difficulty"] == difficulty["riddles/2a"]
    assert row["others/0a"][["family_size", "role"]].tolist() == [1, "related"]
    assert table["difficulty"].isna().sum() == 3
    assert table["stratum"].isna().all()


def test_a_cell_without_any_evidence_has_the_same_columns(tmp_path: Path) -> None:
    benchmark = made_up_benchmark(2, 1)
    split = FamilySplit(benchmark.items[:1], benchmark.items[1:])
    table = stored(family_table(split, [ItemSet("seen", benchmark, split.seen)]), tmp_path)
    assert [list(cell) for cell in table["joined_with"]] == [[]]
    assert table["difficulty"].dtype == float


def test_pairs_of_musr_are_told_with_their_partner(data_dir: Path) -> None:
    arm = lay_out(
        composed("condition=clean", "benchmark=musr", f"paths.data={data_dir}", "eval.related=[]", tiny=False)
    )
    table = family_table(arm.split, arm.item_sets)
    own = table[table["benchmark"] == "musr"]
    assert len(own) == 250
    assert set(own["family_size"]) == {2, 4}
    assert own["joined_with"].map(len).min() >= 1
    first = own.set_index("item_id").loc["musr_murder_mysteries/1"]
    assert "musr_murder_mysteries/0" in list(first["joined_with"])
    assert any(text.startswith("twin") and text.endswith("of musr_murder_mysteries/0") for text in first["evidence"])


def test_a_related_item_that_repeats_one_of_the_split_is_a_neighbour_and_no_family() -> None:
    benchmark, other = made_up_benchmark(5), made_up_benchmark(3, 1, name="others")
    tasks = ["find the longest common prefix of all words", "square every number of a list"]
    items = (replace(benchmark.items[0], meta={"task": tasks[0]}), *benchmark.items[1:])
    near = replace(other.items[0], meta={"task": "find the longest common prefix of the words"})
    far = replace(other.items[1], meta={"task": tasks[1]})
    split = FamilySplit(items[:4], items[4:])
    sets = [ItemSet("seen", replace(benchmark, items=items), split.seen), ItemSet("related", other, (near, far))]
    row = family_table(split, sets).set_index("item_id").loc
    assert row[near.item_id]["why"] == ["neighbour"]
    assert row[near.item_id]["joined_with"] == [items[0].item_id]
    assert row[items[0].item_id]["joined_with"] == [near.item_id]
    assert row[near.item_id]["family"] != row[items[0].item_id]["family"]
    assert row[far.item_id]["why"] == []
