"""Distances of a bank's rows from their items, and what filters find of them."""

from __future__ import annotations

from dataclasses import replace

import pytest

from softcontam.benchmarks import Benchmark, Item, Source
from softcontam.benchmarks.python_code import task_prompt
from softcontam.duplicates import BankRow, exact
from softcontam.duplicates.describe import by_level, distances, question
from softcontam.errors import ConfigError

TASKS = (
    "Return the third largest number of a list that may hold the same number more than once, counting it once.",
    "Tell whether a word reads the same from both of its ends, without regard to capitals, blanks and commas in it.",
    "Sum the squares of all even numbers that stand at odd places of a list, and divide the sum by its length.",
)
ITEMS = tuple(
    Item(
        f"t/{k}",
        "t",
        f"t/{k}",
        task_prompt(task, checks=f"assert f({k}) == {k}"),
        f"```python\ndef f(x):\n    return {k} + x\n```",
        meta={"task": task},
    )
    for k, task in enumerate(TASKS)
)
BENCHMARK = Benchmark("t", ITEMS, 0.0, "answer", Source("made up", "1", "CC0"), lambda item, output: output)
FILTERS = ["ngram_13", "ngram_8"]

REWORDED = task_prompt("Out of some values, pick the one in third place by size; equal ones are one value.")


def row(number: int, prompt: str, **changes: str) -> BankRow:
    made = BankRow(f"r{number}", "t/0", "semd_synthetic", "far", prompt, ITEMS[0].target, "answer", "made up")
    return replace(made, **changes)


def test_an_exact_row_is_at_no_distance_and_every_filter_finds_it() -> None:
    frame = distances([exact.row(item) for item in ITEMS], BENCHMARK, FILTERS)
    for name in ("word_pairs", "difflib", "cosine", "answer_difflib"):
        assert frame[name].to_list() == pytest.approx([1, 1, 1])
    assert frame[FILTERS].all(axis=None)


def test_a_reworded_row_is_further_than_an_edited_one_and_the_shared_wording_does_not_count() -> None:
    edited = row(1, ITEMS[0].prompt.replace("once, counting it once", "once; count it once"), level="near")
    frame = distances([row(0, REWORDED), edited], BENCHMARK, FILTERS).set_index("row_id")
    far, near = frame.loc["r0"], frame.loc["r1"]
    for name in ("word_pairs", "difflib", "cosine"):
        assert far[name] < near[name] <= 1
    assert far["word_pairs"] < 0.2
    assert (far["ngram_8"], near["ngram_13"]) == (False, True)
    assert far["answer_difflib"] == 1


def test_filters_look_for_all_items_and_rows_of_other_benchmarks_are_left_out() -> None:
    another_items_text = row(0, f"{REWORDED}\n\n{TASKS[2]}")
    frame = distances([another_items_text, row(1, REWORDED, item_id="other/1")], BENCHMARK, FILTERS)
    assert frame["row_id"].to_list() == ["r0"]
    assert frame["ngram_13"].to_list() == [True]


def test_by_level_counts_and_takes_medians() -> None:
    rows = [
        row(0, REWORDED),
        row(1, ITEMS[0].prompt, level="same"),
        row(2, ITEMS[1].prompt, level="same", item_id="t/1"),
    ]
    levels = by_level(distances([*rows, row(3, REWORDED, level=None)], BENCHMARK, FILTERS), FILTERS)
    assert levels["level"].to_list() == ["far", "same", "–"]
    assert levels["rows"].to_list() == [1, 2, 1]
    assert levels["items"].to_list() == [1, 2, 1]
    assert levels["ngram_13"].to_list() == [0, 2, 0]
    assert levels["difflib"].to_list()[1] == 1


@pytest.mark.parametrize("name", ["ngrams_13", "embedding_80"])
def test_a_filter_that_cannot_be_run(name: str) -> None:
    with pytest.raises(ConfigError, match=name):
        distances([row(0, REWORDED)], BENCHMARK, [name])


def test_a_question_is_what_the_benchmark_does_not_put_around_all_of_them() -> None:
    assert question(ITEMS[0].prompt, ITEMS[0]) == TASKS[0]
    assert question("A story of my own.\n\nHow does it end?", ITEMS[0]) == "A story of my own.\n\nHow does it end?"
    assert question("Solve this Python task:", ITEMS[0]) == "Solve this Python task:"
