"""Wording, fences and syntax that the Python benchmarks and their duplicate banks share.

One wording for benchmark prompts and for rows keeps the arms of a comparison alike in format.
"""

from __future__ import annotations

import ast
import re
import warnings
from collections.abc import Iterator, Sequence

from softcontam.benchmarks.records import unix_lines

_FENCE = re.compile(r"^ {0,3}```(.*)$", re.MULTILINE)
_TAGS = ("", "python", "py", "python3")


REPLY = {
    "answer": "Reply with one Python code block and nothing else.",
    "cot": "Think step by step, then give the whole code in one Python code block. Use no other code block.",
}
"""What is asked of the reply, by response style."""


def task_prompt(task: str, *, checks: str = "", definition: str = "", style: str = "answer") -> str:
    """The user turn for a Python task.

    Args:
        task: what is asked for.
        checks: code that the solution has to pass; a benchmark item shows its tests here.
        style: response style.
        definition: first line of the function (``def f(x):``); a bank row, which has no tests to show, names it here.
    """
    parts = ["Solve this Python task:", task.strip()]
    if checks:
        parts.append(f"The code has to pass these checks:\n\n{fence(checks)}")
    if definition:
        parts.append(f"Start the function with `{definition}`.")
    parts.append(REPLY[style])
    return "\n\n".join(parts)


def fence(code: str) -> str:
    r"""Code as one Markdown block, line ends ``\n``, without blank lines around it."""
    return f"```python\n{tidy(code)}\n```"


def tidy(code: str) -> str:
    r"""Code with ``\n`` line ends, without blank lines around it, and without blanks at the end of its lines.

    Where such blanks belong to a string that spans lines, and so to what the code does, they stay.
    """
    kept = unix_lines(code).strip("\n")
    stripped = re.sub(r"[ \t]+$", "", kept, flags=re.MULTILINE).strip("\n")
    before, after = syntax_tree(kept), syntax_tree(stripped)
    changed = before is not None and (after is None or ast.dump(before) != ast.dump(after))
    return kept if changed else stripped


def parse_block(output: str) -> str | None:
    """The code of an output that has exactly one fenced code block, else None.

    Strict, because a guess would count as an answer: no fence, a second or unclosed fence, an empty block and a block
    tagged with another language all give None. Text around the block is allowed.
    """
    text = unix_lines(output)
    fences = list(_FENCE.finditer(text))
    if len(fences) != 2 or fences[0][1].strip().lower() not in _TAGS or fences[1][1].strip():
        return None
    code = text[fences[0].end() : fences[1].start()].strip("\n")
    return code if code.strip() else None


def syntax_tree(code: str) -> ast.Module | None:
    """The syntax tree of Python code, or None where it is not Python."""
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # invalid escape sequences in data are not ours to report
        try:
            return ast.parse(unix_lines(code))
        except (SyntaxError, ValueError, RecursionError, MemoryError):
            return None


def without_comments(code: str) -> str:
    """The code as the syntax tree has it, without comments and docstrings; code that is not Python as it is."""
    tree = syntax_tree(code)
    if tree is None:
        return code
    for node in ast.walk(tree):
        if isinstance(node, ast.Module | ast.FunctionDef | ast.AsyncFunctionDef | ast.ClassDef):
            first = node.body[0] if node.body else None
            if (
                isinstance(first, ast.Expr)
                and isinstance(first.value, ast.Constant)
                and isinstance(first.value.value, str)
            ):
                node.body = node.body[1:] or ([] if isinstance(node, ast.Module) else [ast.Pass()])
    return ast.unparse(ast.fix_missing_locations(tree))


def entry_point(code: str, tests: Sequence[str]) -> str | None:
    """The function of ``code`` that the tests call first, or None."""
    defined = {node.name for node in _functions(code)}
    for test in tests:
        tree = syntax_tree(test)
        for node in ast.walk(tree) if tree else ():
            if isinstance(node, ast.Call) and isinstance(node.func, ast.Name) and node.func.id in defined:
                return node.func.id
    return None


def definition(code: str, name: str) -> str | None:
    """The line ``def name(parameters):`` as ``code`` has it, or None where no top-level function has that name."""
    found = next((node for node in _functions(code) if node.name == name), None)
    return None if found is None else f"def {name}({ast.unparse(found.args)}):"


def up_to_docstring(code: str) -> str | None:
    """The code up to the end of the docstring of its last top-level function; None where it has none, or no body."""
    functions = list(_functions(code))
    if not functions or ast.get_docstring(functions[-1]) is None or len(functions[-1].body) < 2:
        return None
    return "\n".join(unix_lines(code).split("\n")[: functions[-1].body[0].end_lineno]) + "\n"


def same_code_key(code: str) -> str | None:
    """A text that two pieces of code share if they differ in names, layout and comments only; None if not Python.

    Functions, classes, parameters and assigned names are numbered in the order of a walk through the syntax tree.
    """
    tree = syntax_tree(code)
    if tree is None:
        return None
    names: dict[str, str] = {}
    for node in ast.walk(tree):
        if isinstance(node, ast.FunctionDef | ast.ClassDef):
            node.name = names.setdefault(node.name, f"v{len(names)}")
        elif isinstance(node, ast.arg):
            node.arg = names.setdefault(node.arg, f"v{len(names)}")
        elif isinstance(node, ast.Name) and isinstance(node.ctx, ast.Store):
            names.setdefault(node.id, f"v{len(names)}")
    for node in ast.walk(tree):
        if isinstance(node, ast.Name):
            node.id = names.get(node.id, node.id)
    return ast.dump(tree)


def _functions(code: str) -> Iterator[ast.FunctionDef]:
    tree = syntax_tree(code)
    return (node for node in (tree.body if tree else ()) if isinstance(node, ast.FunctionDef))
