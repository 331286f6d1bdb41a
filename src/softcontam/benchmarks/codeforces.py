"""CodeForces problems in the schema of open-r1/codeforces: a Python program reads standard input and prints an answer.

The hub could not be reached where this file was written. The columns and their types are those of the data set's card;
its rows were not seen. That ``official_tests_complete`` is false where tests were cut off, that ``generated_checker``
marks problems with several right outputs, and that ``aliases`` lists one problem's ids in other contests is as we
understand the card.

A problem is left out, and counted in a warning that says how many are kept, if it cannot be decided by comparing
outputs: it is interactive, reads files, has a checker of its own, has no tests, or only a part of them (kept with
``params.keep_incomplete: true``), or states no limits.

The data set has no programs, but every item needs a gold reply: the exact arm trains on it, and its log-probability is
measured. ``params.solutions`` names a JSONL file below the data folder with ``id`` and ``solution`` (Python) in each
line; problems without one are left out and counted too. Whether a solution is right is for the sandbox to say.

``params.python_slack`` (3) multiplies the time limit, which is made for compiled languages.

Families. Two problems are one family if one is an alias of the other, if they are versions of one problem in one
contest (indices such as C1 and C2, or titles that differ in what stands in brackets: "(easy version)"), or if their
statements have a TF-IDF cosine of at least :data:`FAMILY_COSINE`. Among the 45 real statements that were at hand (the
Codeforces items of labelled_pairs/natural_annotated.jsonl) two pairs, both versions of one problem, lie at 0.96 and
0.90, and the next, two different problems, at 0.44.
"""

from __future__ import annotations

import logging
import re
from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

from softcontam.benchmarks.answers import check_params, check_style
from softcontam.benchmarks.families import NearPair, join, near_texts, same_keys
from softcontam.benchmarks.item import Benchmark, Item
from softcontam.benchmarks.python_code import fence, parse_block, syntax_tree
from softcontam.benchmarks.records import Record, read_records, source
from softcontam.config import BenchmarkConfig, EvalBenchmark
from softcontam.errors import ConfigError, DataError
from softcontam.jsonl import read_jsonl
from softcontam.sandbox import StdioTests, Submission

log = logging.getLogger(__name__)

FAMILY_COSINE = 0.5
"""TF-IDF cosine of two statements from which they are one family."""

INTERPRETER_MIB = 128
"""Added to a problem's memory limit: address space that Python takes before the program's first line."""

SPLITS = ("test", "train")
"""Splits of the hub; one is loaded."""

PARAMS = ("split", "solutions", "keep_incomplete", "python_slack")
"""Known settings."""

COLUMNS = (
    "id aliases contest_id index title description input_format output_format interaction_format note examples "
    "time_limit memory_limit input_mode generated_checker official_tests official_tests_complete"
).split()
"""Columns that are read."""

_BRACKETS = re.compile(r"\s*\([^()]*\)\s*$")


def load(config: BenchmarkConfig | EvalBenchmark, data: Path) -> Benchmark:
    """The problems of one split that can be decided, in the order of the hub, with their families.

    ``meta`` holds ``problem_id``, ``contest_id``, ``index``, ``title``, ``aliases``, ``task`` (the statement),
    ``cases`` (pairs of standard input and output), ``cpu_s`` and ``memory_mib``.

    Raises:
        ConfigError: an unknown split, setting or response style, or no ``params.solutions``.
        DataError: files, columns or rows that are missing or damaged, no problem that is kept, or a hub that cannot be
            reached.
    """
    check_style(config, ("answer",))
    params = _params(config)
    solutions = _solutions(data / str(params["solutions"]))
    left_out: Counter[str] = Counter()
    items: list[Item] = []
    records = read_records(config, data, (params["split"],), COLUMNS)
    for record in records:
        reason = _undecidable(record, keep_incomplete=bool(params["keep_incomplete"]))
        if reason is None and record.text("id") not in solutions:
            reason = "no program in params.solutions"
        if reason is not None:
            left_out[reason] += 1
            continue
        items.append(_item(record, solutions[record.text("id")], float(params["python_slack"]), config.name))
    if left_out:
        reasons = ", ".join(f"{count} {reason}" for reason, count in sorted(left_out.items()))
        log.warning(
            "benchmark %s: %d of %d problems kept; left out: %s", config.name, len(items), len(records), reasons
        )
    if not items:
        raise DataError(
            f"benchmark {config.name}: none of {len(records)} problems can be used. Check params.solutions, and the "
            "columns official_tests and official_tests_complete."
        )
    pairs = same_problems(items)
    families = join([item.item_id for item in items], pairs)
    named = tuple(replace(item, family=families[item.item_id]) for item in items)
    style, origin = config.response_style, source(config, data)
    return Benchmark(config.name, named, 0.0, style, origin, parse, submission=submission, joined=tuple(pairs))


def parse(item: Item, output: str) -> str | None:
    """The code of an output with exactly one Python code block, else None."""
    return parse_block(output)


def submission(item: Item, parsed: str) -> Submission:
    """The program, all cases, and the problem's limits with the slack for Python."""
    cpu_s, memory_mib = item.meta["cpu_s"], item.meta["memory_mib"]
    return Submission(parsed, StdioTests(item.meta["cases"]), cpu_s=cpu_s, memory_mib=memory_mib)


def same_problems(items: Sequence[Item]) -> list[NearPair]:
    """The pairs that families rest on: aliases, versions within a contest, then near statements."""
    ids = {item.meta["problem_id"]: item.item_id for item in items}
    aliases = [
        NearPair(item.item_id, ids[alias], "alias")
        for item in items
        for alias in item.meta["aliases"]
        if alias in ids and ids[alias] != item.item_id
    ]
    index = {
        item.item_id: f"{item.meta['contest_id']} {item.meta['index'].rstrip('0123456789')}"
        for item in items
        if item.meta["index"][-1:].isdigit() and not item.meta["index"].isdigit()
    }
    title = {
        item.item_id: f"{item.meta['contest_id']} {_BRACKETS.sub('', item.meta['title']).casefold()}" for item in items
    }
    versions = [replace(pair, why="version") for keys in (index, title) for pair in same_keys(keys)]
    return aliases + versions + near_texts([item.meta["task"] for item in items], list(ids.values()), FAMILY_COSINE)


def _params(config: BenchmarkConfig | EvalBenchmark) -> Mapping[str, Any]:
    """The settings with their defaults, checked."""
    check_params(config, PARAMS)
    params = {"split": "test", "solutions": None, "keep_incomplete": False, "python_slack": 3.0, **config.params}
    if params["split"] not in SPLITS:
        raise ConfigError(
            f"benchmark {config.name}: params.split={params['split']!r} is unknown. Choose test or train."
        )
    slack = params["python_slack"]
    if isinstance(slack, bool) or not isinstance(slack, int | float) or not slack > 0:
        raise ConfigError(f"benchmark {config.name}: params.python_slack={slack!r} must be a number above 0.")
    if not params["solutions"]:
        raise ConfigError(
            f"benchmark {config.name}: the data set has no programs, and an item needs one as its gold reply. Set "
            "params.solutions to a JSONL file below the data folder with `id` and `solution` (Python) in each line, "
            "e.g. made from accepted submissions or the traces of open-r1/codeforces-cots."
        )
    return params


def _solutions(file: Path) -> dict[str, str]:
    """Programs by problem id."""
    found: dict[str, str] = {}
    for number, row in read_jsonl(file, "Give the place of params.solutions below the data folder."):
        where = f"{file}, line {number}"
        problem, program = row.get("id"), row.get("solution")
        if not isinstance(problem, str) or not isinstance(program, str):
            raise DataError(f"{where}: should hold the texts `id` and `solution`, found {sorted(row)}.")
        if not program.strip() or syntax_tree(program) is None:
            raise DataError(f"{where}: the solution of {problem} is no Python. Correct it or leave the line out.")
        if found.setdefault(problem, program) != program:
            raise DataError(f"{where}: a second solution of {problem}. Keep one.")
    return found


def _undecidable(record: Record, *, keep_incomplete: bool) -> str | None:
    """Why a problem cannot be decided by comparing outputs within limits, or None where it can."""
    values = record.values
    if _optional(record, "interaction_format"):
        return "interactive"
    if values["input_mode"] != "stdio":
        return "without standard input"
    if _optional(record, "generated_checker"):
        return "with a checker"
    if not _cases(record, "official_tests"):
        return "without tests"
    if not keep_incomplete and values["official_tests_complete"] not in (True, 1):
        return "with a part of the tests"
    if not all(isinstance(values[name], int | float) and values[name] > 0 for name in ("time_limit", "memory_limit")):
        return "without limits"
    return None


def _optional(record: Record, column: str) -> str:
    """A text that may be missing (null), without surrounding blanks."""
    return record.text(column, empty=True).strip() if isinstance(record.values[column], str) else ""


def _cases(record: Record, column: str) -> tuple[tuple[str, str], ...]:
    """Pairs of input and output; none where the column is null."""
    value = record.values[column]
    rows = list(value) if hasattr(value, "__iter__") and not isinstance(value, str) else []
    if not all(
        isinstance(row, Mapping) and isinstance(row.get("input"), str) and isinstance(row.get("output"), str)
        for row in rows
    ):
        raise DataError(f"{record.where}: column {column!r} should hold a list of {{input, output}}, found {value!r}.")
    return tuple((row["input"], row["output"]) for row in rows)


def _item(record: Record, solution: str, slack: float, benchmark: str) -> Item:
    """One problem; its family is still itself."""
    problem, title = record.text("id").strip(), record.text("title").strip()
    headed = [("Input", "input_format"), ("Output", "output_format"), ("Note", "note")]
    sections = {heading: _optional(record, column) for heading, column in headed}
    description = record.text("description").strip()
    examples = [
        f"Example input:\n\n```\n{given.strip()}\n```\n\nExample output:\n\n```\n{wanted.strip()}\n```"
        for given, wanted in _cases(record, "examples")
    ]
    parts = [
        "Solve this programming problem in Python:",
        title,
        description,
        *(f"{heading}:\n{sections[heading]}" for heading in ("Input", "Output") if sections[heading]),
        *examples,
        f"Note:\n{sections['Note']}" if sections["Note"] else "",
        f"The program reads standard input and prints to standard output. Limits for each test: "
        f"{record.values['time_limit']:g} s, {record.values['memory_limit']:g} MB.",
        "Reply with one Python code block and nothing else.",
    ]
    aliases = record.values["aliases"]
    return Item(
        item_id=f"codeforces/{problem}",
        benchmark=benchmark,
        family=f"codeforces/{problem}",
        prompt="\n\n".join(part for part in parts if part),
        target=fence(solution),
        meta={
            "problem_id": problem,
            "contest_id": str(record.values["contest_id"]),
            "index": _optional(record, "index"),
            "title": title,
            "aliases": tuple(map(str, aliases))
            if hasattr(aliases, "__iter__") and not isinstance(aliases, str)
            else (),
            "task": "\n".join(part for part in (description, sections["Input"], sections["Output"]) if part),
            "cases": _cases(record, "official_tests"),
            "cpu_s": float(record.values["time_limit"]) * slack,
            "memory_mib": round(record.values["memory_limit"]) + INTERPRETER_MIB,
        },
    )
