"""The table of what was asked."""

from __future__ import annotations

from softcontam.benchmarks import Benchmark, Item, ItemSet
from softcontam.benchmarks.item import Source
from softcontam.evaluation import asked_items


def test_an_item_is_there_in_each_role_that_it_is_evaluated_in() -> None:
    items = tuple(Item(f"puzzles/{n}", "puzzles", f"f{n}", f"What is {n}?\n", f"It is {n}.") for n in range(3))
    benchmark = Benchmark("puzzles", items, 0.0, "answer", Source("-", "-", "-"), lambda item, output: output)
    table = asked_items([ItemSet("seen", benchmark, items[:1]), ItemSet("held_out", benchmark, items[1:])])
    assert table["role"].tolist() == ["seen", "held_out", "held_out"]
    assert table.loc[2, ["item_id", "prompt", "target"]].tolist() == ["puzzles/2", "What is 2?\n", "It is 2."]


def test_nothing_asked_is_an_empty_table_with_its_columns() -> None:
    assert asked_items([]).columns.tolist() == ["benchmark", "role", "item_id", "prompt", "target"]
