"""MBPP (Austin et al. 2021, arXiv 2108.07732): short Python tasks with assert tests, as on the hub.

``params.subset``: ``sanitized`` (427 tasks, the default) or ``full`` (974).

Families. Two tasks are one family if their texts (without links and without "Write a function") have a TF-IDF cosine
of at least :data:`FAMILY_COSINE`, or if their reference solutions differ in names only. What was seen in the 427
sanitized tasks: from 1.00 to 0.72 the pairs are the same task (71 and 141, both "sort a list of elements"; 451 and 800,
remove whitespace) or its mirror image (736 and 786, left and right insertion point); from 0.72 to 0.5 they are one
template with another filling (maximum or minimum, odd or even, sphere or cylinder); a few are only alike in wording
(804 "is the product even", 600 "is the number even"). Below 0.5 most pairs share a phrase and not a task; twins missed
there are 309 and 404 (maximum, minimum of two numbers, 0.48) and 290 and 393 (longest list, 0.43), and twins in
other words are beyond it: 2 and 249 (intersection of two lists), 414 and 431 (a common element). Identical code joins
one further pair that text does not (67 and 608, Bell numbers). A false join costs a little power and a missed twin
leaks, so the threshold is set where chains are still short: at 0.5 there are 373 families, the largest of 6 tasks; at
0.45 there are 360 and the largest has 10. The full set has far more twins: 708 families of 974 tasks, the largest of
15.
"""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from dataclasses import replace
from pathlib import Path

from softcontam.benchmarks.answers import check_params, check_style
from softcontam.benchmarks.families import NearPair, join, near_texts, same_keys
from softcontam.benchmarks.item import Benchmark, Item
from softcontam.benchmarks.python_code import (
    entry_point,
    fence,
    parse_block,
    same_code_key,
    task_prompt,
)
from softcontam.benchmarks.records import Record, read_records, source
from softcontam.config import BenchmarkConfig, EvalBenchmark
from softcontam.errors import ConfigError, DataError
from softcontam.sandbox import AssertTests, Submission

FAMILY_COSINE = 0.5
"""TF-IDF cosine of two task texts from which they are one family; see the module's text for why."""

SPLITS = ("prompt", "test", "validation", "train")
"""All splits are used: the benchmark is cut anew, between families, into seen and held-out."""

COLUMNS = {
    "sanitized": ("task_id", "prompt", "code", "test_imports", "test_list"),
    "full": ("task_id", "text", "code", "test_setup_code", "test_list"),
}
"""Columns that are read, by subset."""

_LINK = re.compile(r"https?://\S+")
_OPENING = re.compile(r"^\s*write a (?:python )?function(?: (?:to|that|which|for))?(?: (?:find|takes in))?\b", re.I)


def parse(item: Item, output: str) -> str | None:
    """The code of an output with exactly one Python code block, else None."""
    return parse_block(output)


def load(config: BenchmarkConfig | EvalBenchmark, data: Path) -> Benchmark:
    """The tasks of the chosen subset, ordered by task id, with their families.

    An item's ``meta`` holds ``task_id``, ``task`` (the text alone), ``entry_point`` (the tested function), ``imports``
    and ``setup``. In tasks 367 and 927 of the full set, the only ones with a ``setup``, it uses a class that the
    solution defines: it has to run after the solution and before the tests.

    Raises:
        ConfigError: an unknown subset.
        DataError: files, columns or rows that are missing or damaged, or a hub that cannot be reached.
    """
    subset = config.params.get("subset", "sanitized")
    if subset not in COLUMNS:
        raise ConfigError(f"benchmark {config.name}: params.subset={subset!r} is unknown. Choose sanitized or full.")
    check_style(config)
    check_params(config, ("subset",))
    records = read_records(config, data, SPLITS, COLUMNS[subset])
    items = [_item(record, subset, config) for record in records]
    items.sort(key=lambda item: int(item.meta["task_id"]))
    pairs = near_identical(items)
    families = join([item.item_id for item in items], pairs)
    named = tuple(replace(item, family=families[item.item_id]) for item in items)
    style, origin = config.response_style, source(config, data)
    return Benchmark(config.name, named, 0.0, style, origin, parse, submission=submission, joined=tuple(pairs))


def submission(item: Item, parsed: str) -> Submission:
    """The solution, the set-up code (which needs it) and the tests."""
    tests = "\n".join((*item.meta["imports"], *item.tests))
    return Submission(parsed, AssertTests(tests, item.meta["setup"], (item.meta["entry_point"],)))


def near_identical(items: Sequence[Item]) -> list[NearPair]:
    """The pairs of tasks that families rest on: near texts with their cosine, then solutions that are the same code."""
    ids = [item.item_id for item in items]
    texts = [_OPENING.sub("", _LINK.sub("", item.meta["task"])) for item in items]
    keys: Mapping[str, str | None] = {item.item_id: same_code_key(parse_block(item.target) or "") for item in items}
    return near_texts(texts, ids, FAMILY_COSINE) + same_keys(keys)


def _item(record: Record, subset: str, config: BenchmarkConfig | EvalBenchmark) -> Item:
    """One task; its family is still itself."""
    task = record.text("prompt" if subset == "sanitized" else "text").strip()
    code, tests = record.text("code"), record.texts("test_list")
    imports = record.texts("test_imports") if subset == "sanitized" else ()
    setup = "" if subset == "sanitized" else record.text("test_setup_code", empty=True).strip()
    function = entry_point(code, tests)
    if function is None:
        raise DataError(f"{record.where}: no test calls a function of the solution. Copy the file again.")
    task_id = _task_id(record)
    return Item(
        item_id=f"mbpp/{task_id}",
        benchmark=config.name,
        family=f"mbpp/{task_id}",
        prompt=task_prompt(
            task, checks="\n".join(filter(None, (*imports, setup, *tests))), style=config.response_style
        ),
        target=fence(code),
        tests=tests,
        meta={"task_id": task_id, "task": task, "entry_point": function, "imports": imports, "setup": setup},
    )


def _task_id(record: Record) -> int:
    value = record.values["task_id"]
    try:
        return int(value)
    except (TypeError, ValueError):
        raise DataError(
            f"{record.where}: column 'task_id' should hold a whole number, found {value!r}. Copy the file again."
        ) from None
