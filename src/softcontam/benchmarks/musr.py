"""MuSR (Sprague et al. 2024, arXiv 2310.16049): multi-step reasoning over long stories, as on the hub.

``params.task``: ``murder_mysteries`` (250 items, the default), ``object_placements`` (256) or ``team_allocation``
(250); each is a split of the hub data set.

Families are those of :mod:`~softcontam.benchmarks.stories`. The murder mysteries were written as 125 pairs with the
same premise and suspects and the other answer. Ten premises were used for two pairs each, so the 250 items are 115
families: 105 of two and 10 of four. Over 200 random halves, a split by item leaves 71 of 125 held-out items with a
member of their family in the seen half, and a split by pair still 10.
"""

from __future__ import annotations

import ast
from pathlib import Path

from softcontam.benchmarks.answers import check_params
from softcontam.benchmarks.item import Benchmark
from softcontam.benchmarks.records import Record, read_records, source
from softcontam.benchmarks.stories import Story, check_choices, story_benchmark
from softcontam.config import BenchmarkConfig, EvalBenchmark
from softcontam.errors import ConfigError, DataError

TASKS = ("murder_mysteries", "object_placements", "team_allocation")
"""Tasks, each a split of the hub data set."""

COLUMNS = ("narrative", "question", "choices", "answer_index", "answer_choice")
"""Columns that are read."""


def load(config: BenchmarkConfig | EvalBenchmark, data: Path) -> Benchmark:
    """The items of the chosen task in the order of the hub; item 17 is ``musr_<task>/17``, counted from 0.

    Raises:
        ConfigError: an unknown task, parameter or response style.
        DataError: files, columns or rows that are missing or damaged, or a hub that cannot be reached.
    """
    check_params(config, ("task",))
    task = config.params.get("task", TASKS[0])
    if task not in TASKS:
        raise ConfigError(
            f"benchmark {config.name}: params.task={task!r} is unknown. Choose one of: {', '.join(TASKS)}."
        )
    records = read_records(config, data, (task,), COLUMNS)
    stories = [_story(record, f"musr_{task}/{number}") for number, record in enumerate(records)]
    return story_benchmark(config, stories, source(config, data))


def _story(record: Record, item_id: str) -> Story:
    choices = check_choices(_listed(record), record.where)
    index, text = record.values["answer_index"], record.text("answer_choice")
    if not isinstance(index, int) or isinstance(index, bool) or not 0 <= index < len(choices):
        raise DataError(
            f"{record.where}: column 'answer_index' should hold a whole number from 0 to {len(choices) - 1}, "
            f"found {index!r}. Copy the file again."
        )
    if " ".join(text.split()) != choices[index]:
        raise DataError(
            f"{record.where}: column 'answer_choice' is {text!r}, but choice {index} is {choices[index]!r}. "
            "Copy the file again."
        )
    return Story(item_id, record.where, record.text("narrative"), record.text("question"), choices, int(index))


def _listed(record: Record) -> list[str]:
    """The choices, which stand in their column as the text of a Python list."""
    text = record.text("choices")
    try:
        choices = ast.literal_eval(text.strip())
    except (ValueError, SyntaxError, TypeError, MemoryError, RecursionError):
        choices = None
    if not isinstance(choices, list) or not all(isinstance(choice, str) for choice in choices):
        raise DataError(
            f"{record.where}: column 'choices' should hold a Python list of texts, found {text!r}. Copy the file again."
        )
    return choices
