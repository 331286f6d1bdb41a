"""HumanEval (Chen et al. 2021, arXiv 2107.03374): 164 functions to complete, as on the hub.

Families. Two tasks are one family if their docstrings up to the first doctest have a TF-IDF cosine of at least
:data:`FAMILY_COSINE`, or if their solutions differ in names only. Six pairs are at 0.6 or above. Five are of one
template: 56 and 61 (two kinds of bracket), 40 and 43 (triples and pairs that sum to zero), 38 and 50, 33 and 37, 7 and
29. The sixth (94 and 133) is alike in its opening words only. The next pairs lie below 0.5 and are other tasks.
"""

from __future__ import annotations

import ast
from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path

from softcontam.benchmarks.answers import check_params, check_style
from softcontam.benchmarks.families import NearPair, join, near_texts, same_keys
from softcontam.benchmarks.item import Benchmark, Item
from softcontam.benchmarks.python_code import REPLY as REPLY_TO_TASK
from softcontam.benchmarks.python_code import fence, parse_block, same_code_key, syntax_tree, tidy
from softcontam.benchmarks.records import Record, read_records, source
from softcontam.config import BenchmarkConfig, EvalBenchmark
from softcontam.errors import DataError
from softcontam.sandbox import AssertTests, Submission

REPLY = {
    "answer": "Reply with one Python code block that holds the whole code and nothing else.",
    "cot": REPLY_TO_TASK["cot"],
}
"""What is asked of the reply, by response style."""

FAMILY_COSINE = 0.5
"""TF-IDF cosine of two docstrings from which they are one family."""

COLUMNS = ("task_id", "prompt", "canonical_solution", "test", "entry_point")
"""Columns that are read."""


def parse(item: Item, output: str) -> str | None:
    """The code of an output with exactly one Python code block, else None."""
    return parse_block(output)


def load(config: BenchmarkConfig | EvalBenchmark, data: Path) -> Benchmark:
    """The tasks in the order of the hub, with their families.

    ``tests`` is one text that defines ``check(candidate)``. ``meta`` holds ``task_id``, ``task`` (the docstring up to
    its first doctest), ``entry_point`` (the function to be handed to ``check``) and ``helpers`` (code of the prompt
    that the tests may use).

    Raises:
        DataError: files, columns or rows that are missing or damaged, or a hub that cannot be reached.
    """
    check_style(config)
    check_params(config, ())
    items = [_item(record, config) for record in read_records(config, data, ("test",), COLUMNS)]
    pairs = near_identical(items)
    families = join([item.item_id for item in items], pairs)
    named = tuple(replace(item, family=families[item.item_id]) for item in items)
    style, origin = config.response_style, source(config, data)
    return Benchmark(config.name, named, 0.0, style, origin, parse, submission=submission, joined=tuple(pairs))


def completion_prompt(start: str, style: str) -> str:
    """The user turn for code that is to be completed; bank rows use it too."""
    return f"Complete this Python function:\n\n{fence(tidy(start))}\n\n{REPLY[style]}"


def submission(item: Item, parsed: str) -> Submission:
    """The whole code of the reply, and the call of the task's ``check``.

    Helpers that the task itself defines (``poly`` in 32, ``encode_cyclic`` in 38, ``encode_shift`` in 50) and its tests
    use are the task's own in the tests: a reply can't replace them.
    """
    function = item.meta["entry_point"]
    tests = f"{item.meta['helpers']}\n\n{item.tests[0]}\n\ncheck({function})\n"
    return Submission(parsed, AssertTests(tests, entry_points=(function,)))


def near_identical(items: Sequence[Item]) -> list[NearPair]:
    """The pairs of tasks that families rest on: near docstrings with their cosine, then the same code."""
    ids = [item.item_id for item in items]
    keys = {item.item_id: same_code_key(_without_docstrings(parse_block(item.target) or "")) for item in items}
    return near_texts([item.meta["task"] for item in items], ids, FAMILY_COSINE) + same_keys(keys)


def _item(record: Record, config: BenchmarkConfig | EvalBenchmark) -> Item:
    """One task; its family is still itself."""
    prompt, solution = record.text("prompt"), record.text("canonical_solution")
    function, task_id = record.text("entry_point"), record.text("task_id")
    docstring = _docstring(prompt + solution, function)
    if docstring is None or not task_id.startswith("HumanEval/"):
        raise DataError(f"{record.where}: task {task_id} defines no function {function!r}. Copy the file again.")
    item_id = f"humaneval/{task_id.removeprefix('HumanEval/')}"
    return Item(
        item_id=item_id,
        benchmark=config.name,
        family=item_id,
        prompt=completion_prompt(prompt, config.response_style),
        target=fence(prompt + solution),
        tests=(record.text("test"),),
        meta={
            "task_id": task_id,
            "task": docstring.split(">>>")[0].strip(),
            "entry_point": function,
            "helpers": _helpers(prompt, function),
        },
    )


def _docstring(code: str, function: str) -> str | None:
    """The docstring of a top-level function (empty where it has none), or None where there is no such function."""
    tree = syntax_tree(code)
    for node in tree.body if tree else ():
        if isinstance(node, ast.FunctionDef) and node.name == function:
            return ast.get_docstring(node) or ""
    return None


def _helpers(prompt: str, function: str) -> str:
    """The imports and the complete functions of a prompt, other than the one that is to be completed."""
    tree = syntax_tree(prompt + "    pass\n")
    body = tree.body if tree else []
    kept = [node for node in body if isinstance(node, ast.Import | ast.ImportFrom | ast.FunctionDef)]
    return "\n".join(ast.unparse(node) for node in kept if getattr(node, "name", "") != function)


def _without_docstrings(code: str) -> str:
    """The code without the docstrings of its functions, which would make any two solutions differ."""
    tree = syntax_tree(code)
    for node in ast.walk(tree) if tree else ():
        if isinstance(node, ast.FunctionDef) and ast.get_docstring(node) is not None:
            node.body = node.body[1:] or [ast.Pass()]
    return ast.unparse(tree) if tree else ""
