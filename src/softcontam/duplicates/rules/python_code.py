"""MBPP and HumanEval: the same solutions in other words of Python (kind ``semd_synthetic``).

Levels. ``rename``: parameters and local names. ``forms``: loops and comprehensions, branches and conditional
expressions, negated and chained tests, named results. ``reorder``: independent neighbours swapped. ``combined``: all of
these, and for MBPP another opening of the task's text. What each does, and what has to be shown before it is done,
stands in :mod:`~softcontam.duplicates.rules.python_names`, ``python_forms`` (with ``python_expressions`` and
``python_loops``) and ``python_order``. Code is written out anew from its syntax tree at every level: comments are lost,
blanks, quotes and most brackets are those of :func:`ast.unparse`.

Rewritten code does what it did by construction, as far as that can be known without running it: python_kinds.py says
what is taken for granted. Code that looks at its own names or text (``locals``, ``eval``, ``inspect``) has no rows;
code that binds names from afar (``global``, ``nonlocal``) is renamed only. :func:`certify` runs the item's tests.

A level has a row only where it changes the code: ``rename`` some name, the others more than names
(:func:`~softcontam.benchmarks.python_code.same_code_key`).

Prompts are worded as the benchmark's own. An MBPP row has the first line of the function in place of the tests; a
HumanEval row asks to complete the rewritten function from its start to the end of its docstring, in which renamed
parameters are renamed, in backticks. A parameter keeps its name where the text speaks of it in a way that can't be
changed along.
"""

from __future__ import annotations

import ast
import random
import re
from collections.abc import Collection, Sequence
from dataclasses import dataclass, replace
from functools import partial

from softcontam.benchmarks import Benchmark, Item
from softcontam.benchmarks.humaneval import completion_prompt
from softcontam.benchmarks.python_code import definition, fence, parse_block, same_code_key, syntax_tree, task_prompt
from softcontam.config import BankConfig, derive_seed
from softcontam.duplicates.bank import BankRow
from softcontam.duplicates.distance import bigram_overlap
from softcontam.duplicates.rules.asked import levels_and_count
from softcontam.duplicates.rules.python_forms import reformed
from softcontam.duplicates.rules.python_names import renamed
from softcontam.duplicates.rules.python_order import reordered
from softcontam.duplicates.rules.python_scopes import LEFT_ALONE, REBINDING, WATCHERS, contains, identifiers
from softcontam.duplicates.rules.python_text import written
from softcontam.errors import ConfigError, DataError
from softcontam.sandbox import Sandbox

LEVELS = ("rename", "forms", "reorder", "combined")
"""What is changed."""

TASK_TEXTS = ("own", "reworded")
"""``params.task_text``: whether ``combined`` rewords the opening of MBPP's texts."""

UNRUN = "unrun"
"""Judge of a row whose code has not been run yet."""

_TRIES = 4  # drafts of a level for each row that it is to have
_OPENING = re.compile(r"^\s*write a (?:python )?function(?=\s(?:to|that|which|for|where)\b)", re.IGNORECASE)
_OPENINGS = (
    "Implement a Python function",
    "Define a function",
    "Create a Python function",
    "Develop a function",
    "Program a function in Python",
)
_LINK = re.compile(r"\s*https?://\S+\s*$")
_ABBREVIATIONS = frozenset("arr arrs char chars dict dic idx int num nums str".split())


@dataclass(frozen=True)
class Rejection:
    """A row whose code does not pass the tests of its item; ``reason`` is the sandbox's verdict."""

    row: BankRow
    reason: str


def rows(config: BankConfig, items: Sequence[Item]) -> list[BankRow]:
    """Rows for every item and level that something can be changed in; the same rows for the same items.

    ``params.levels`` selects levels, ``params.per_level`` (1) says how many different rows each is to have at most,
    ``params.task_text`` is ``reworded`` (default) or ``own``. No code is run. ``ngram_overlap`` is the code's with the
    item's solution.

    Raises:
        ConfigError: an unknown level or parameter.
        DataError: an item that is no Python task.
    """
    levels, per_level = levels_and_count(config, "Python", LEVELS, {"task_text": str})
    text = config.params.get("task_text", "reworded")
    if text not in TASK_TEXTS:
        raise ConfigError(f"params.task_text={text!r} of a rules bank of Python: choose from {', '.join(TASK_TEXTS)}.")
    made = []
    for item in items:
        for level in levels:
            codes: set[str] = set()
            for draft in range(1 if per_level == 1 else per_level * _TRIES):
                row = _row(item, level, draft, len(codes), text == "reworded")
                if row is not None and row.completion not in codes:
                    codes.add(row.completion)
                    made.append(row)
                if len(codes) == per_level:
                    break
    return made


def certify(rows: Sequence[BankRow], benchmark: Benchmark, sandbox: Sandbox) -> tuple[list[BankRow], list[Rejection]]:
    """Run the code of each row against the tests of its item.

    Returns:
        The rows that pass, in their order, with ``judge`` saying so, and those that don't.

    Raises:
        ConfigError: answers of the benchmark are no programs.
        DataError: a row of an item that the benchmark does not have.
        SandboxError: the sandbox broke.
    """
    if benchmark.submission is None:
        raise ConfigError(f"answers of benchmark {benchmark.name} are no programs: its rows can't be run.")
    items = {item.item_id: item for item in benchmark.items}
    rejected, ready = [], []
    for row in rows:
        if row.item_id not in items:
            raise DataError(f"row {row.row_id}: benchmark {benchmark.name} has no item {row.item_id}.")
        code = benchmark.parse(items[row.item_id], row.completion)
        if code is None:
            rejected.append(Rejection(row, "its completion is not one code block"))
        else:
            ready.append((row, benchmark.submission(items[row.item_id], code)))
    passed = []
    verdicts = sandbox.execute_many([submission for _, submission in ready])
    for (row, _), verdict in zip(ready, verdicts, strict=True):
        if verdict.passed:
            passed.append(replace(row, judge=f"tests passed ({verdict.backend})"))
        else:
            rejected.append(Rejection(row, f"{verdict.category}: {verdict.detail}"))
    return passed, rejected


def rewritten(
    code: str, level: str, seed: str, *, share: float = 1.0, keep: Collection[str] = (), last: str | None = None
) -> tuple[str, dict[str, str]] | None:
    """Code that does the same, and its new names by the old ones; None where the level changes nothing.

    Args:
        code: a module.
        level: one of :data:`LEVELS`.
        seed: decides between names, and between places where ``share`` is below 1.
        share: probability for each place of another form or order that it is changed.
        keep: names that stay.
        last: a function that stays behind the other functions of the module.
    """
    tree = syntax_tree(code)
    if tree is None or contains(tree, *LEFT_ALONE) or identifiers(tree) & WATCHERS:
        return None
    try:
        if level in ("forms", "combined") and not contains(tree, *REBINDING):
            tree = reformed(tree, seed, share)
        if level in ("reorder", "combined") and not contains(tree, *REBINDING):
            tree = reordered(tree, seed, share, last)
        names = renamed(tree, seed, keep) if level in ("rename", "combined") else {}
        made = written(tree)
    except (SyntaxError, ValueError, RecursionError):  # nested too deep, or a string that can't be written out
        return None
    if syntax_tree(made) is None or (level == "rename" and not names):
        return None
    return (made, names) if (same_code_key(made) == same_code_key(code)) is (level == "rename") else None


def _row(item: Item, level: str, draft: int, number: int, reword: bool) -> BankRow | None:
    """The row of one draft of a level, or None where the level changes nothing."""
    code, entry, text = parse_block(item.target), item.meta.get("entry_point"), item.meta.get("task")
    if code is None or not isinstance(entry, str) or not isinstance(text, str):
        raise DataError(f"item {item.item_id} has no solution, entry point and task; Python's rules need them.")
    completes = "helpers" in item.meta
    seed = str(derive_seed(0, f"rules:python:{level}:{item.item_id}:{draft}"))
    keep = _docstring_names(code) if completes else {name for name in re.findall(r"\w+", text) if _code_like(name)}
    tests = {word.arg for test in item.tests for word in _keywords(test) if word.arg}
    found = rewritten(
        code, level, seed, share=1.0 if draft == 0 else 0.6, keep=keep | tests, last=entry if completes else None
    )
    if found is None:
        return None
    made = _with_docstrings(found[0], found[1]) if completes else found[0]
    prompt = _prompt(item, made, seed, reword and level == "combined")
    if prompt is None:
        return None
    return BankRow(
        row_id=f"semd_synthetic/{level}/{item.item_id}/{number}",
        item_id=item.item_id,
        kind="semd_synthetic",
        level=level,
        prompt=prompt,
        completion=fence(made),
        response_style=item.response_style,
        source="softcontam.duplicates.rules.python_code",
        match_type="equivalent",
        judge=UNRUN,
        ngram_overlap=round(bigram_overlap(made, code), 4),
    )


def _prompt(item: Item, code: str, seed: str, reword: bool) -> str | None:
    """The user turn of a row, or None where the code has no function to ask for."""
    entry = item.meta["entry_point"]
    if "helpers" in item.meta:
        start = _start(code, entry)
        return None if start is None else completion_prompt(start, item.response_style)
    line = definition(code, entry)
    if line is None:
        return None
    text = reworded(item.text, seed) if reword else item.text
    return task_prompt(text, definition=line, style=item.response_style)


def reworded(text: str, seed: str) -> str:
    """A task of MBPP with another opening and without a link at its end; as it is where it opens in another way."""
    opening = _OPENINGS[random.Random(seed).randrange(len(_OPENINGS))]
    return _OPENING.sub(opening, _LINK.sub("", text), count=1)


def _start(code: str, entry: str) -> str | None:
    """The code up to the end of the docstring of a top-level function; None where it has none."""
    tree = syntax_tree(code)
    for node in tree.body if tree else ():
        if isinstance(node, ast.FunctionDef) and node.name == entry and ast.get_docstring(node) and len(node.body) > 1:
            return "\n".join(code.split("\n")[: node.body[0].end_lineno])
    return None


def _keywords(code: str) -> list[ast.keyword]:
    tree = syntax_tree(code)
    return [node for node in ast.walk(tree) if isinstance(node, ast.keyword)] if tree else []


def _code_like(name: str) -> bool:
    """Whether a word of a text is rather a name in code than an English word."""
    if len(name) == 1:
        return name.isalpha() and name not in "aAI"
    marked = any(sign.isdigit() or sign == "_" for sign in name) or not name[1:].islower()
    return marked or name.lower() in _ABBREVIATIONS or not re.search("[aeiouy]", name.lower())


def _mention(name: str) -> re.Pattern[str]:
    """Where a docstring speaks of a parameter, in backticks or not."""
    bare = rf"|(?<![\w'\"`.\-])(?:{name})(?![\w'\"`\-(]|\.\w)" if _code_like(name) else ""
    return re.compile(rf"(?<=`)(?:{name})(?=`){bare}")


def _docstring_names(code: str) -> set[str]:
    """Parameters that a docstring of their function mentions where they can't be renamed with certainty."""
    kept: set[str] = set()
    for function, text in _documented(syntax_tree(code)):
        for name in (node.arg for node in ast.walk(function.args) if isinstance(node, ast.arg)):
            if _code_like(name) and len(re.findall(rf"(?<!\w){name}(?!\w)", text)) != len(_mention(name).findall(text)):
                kept.add(name)
    return kept


def _with_docstrings(code: str, names: dict[str, str]) -> str:
    """The code with renamed parameters renamed in the docstrings of their functions too."""
    tree = syntax_tree(code)
    old_names = {new: old for old, new in names.items()}
    for function, text in _documented(tree):
        changes = {
            old_names[node.arg]: node.arg
            for node in ast.walk(function.args)
            if isinstance(node, ast.arg) and node.arg in old_names
        }
        for old, new in changes.items():
            text = _mention(old).sub(partial(_quoted, new), text)
        function.body[0] = ast.Expr(ast.Constant(text))
    return written(tree) if tree else code


def _quoted(name: str, found: re.Match[str]) -> str:
    """A name in backticks, which may stand around what was found."""
    return name if found.string[: found.start()].endswith("`") else f"`{name}`"


def _documented(tree: ast.Module | None) -> list[tuple[ast.FunctionDef, str]]:
    """The functions with their docstrings as they stand in the code."""
    found = []
    for node in ast.walk(tree) if tree else ():
        first = node.body[0] if isinstance(node, ast.FunctionDef) else None
        if isinstance(first, ast.Expr) and isinstance(first.value, ast.Constant) and isinstance(first.value.value, str):
            assert isinstance(node, ast.FunctionDef)
            found.append((node, first.value.value))
    return found
