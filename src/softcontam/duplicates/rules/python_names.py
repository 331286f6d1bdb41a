"""New names for the parameters and local names of Python code.

A name is replaced wherever the module has it, by one that the module does not have at all: what any occurrence refers
to stays what it was. Left as they are: the functions and classes of the module and everything it names at its top
level, attributes, imported names, names that are keywords of any call (in the code or the tests), names in ``global``
and ``nonlocal``, in class bodies and behind ``except ... as``, and names that start with an underscore.
"""

from __future__ import annotations

import ast
import builtins
import keyword
import random
from collections.abc import Collection, Iterable

from softcontam.duplicates.rules.python_scopes import (
    Comprehension,
    Function,
    bound_names,
    declared,
    free_names,
    identifiers,
    target_names,
    used_names,
)

POOLS = {
    "index": ("position", "index", "slot", "offset", "place", "step"),
    "element": ("element", "entry", "member", "piece", "current", "candidate"),
    "list": ("collected", "gathered", "kept", "results", "picked", "output_list"),
    "number": ("total", "tally", "amount", "running", "figure", "level"),
    "table": ("table", "lookup", "mapping", "records", "by_key"),
    "set": ("distinct", "known", "seen_values", "unique"),
    "text": ("text", "content", "phrase", "built", "wording"),
    "flag": ("holds", "found", "matched", "answer_flag"),
    "function": ("helper", "inner", "compute", "apply_step"),
    "series": ("values", "series", "entries", "data", "sequence", "source"),
    "quantity": ("number", "quantity", "limit", "magnitude", "bound", "measure"),
    "given": ("given", "subject", "argument", "operand", "supplied", "received"),
    "local": ("value", "intermediate", "computed", "partial", "held", "worked"),
}
"""New names by what a name is used for."""


class Namer:
    """Names that a module does not have: they shadow nothing, and nothing shadows them."""

    def __init__(self, tree: ast.Module, seed: str) -> None:
        self._taken = identifiers(tree) | set(dir(builtins)) | set(keyword.kwlist)
        self._random = random.Random(seed)

    def name(self, role: str) -> str:
        """A new name for something used in that role (a key of :data:`POOLS`)."""
        pool = POOLS[role]
        start = self._random.randrange(len(pool))
        rotated = [*pool[start:], *pool[:start]]
        for number in range(1, len(self._taken) + 2):
            for one in rotated:
                name = one if number == 1 else f"{one}_{number}"
                if name not in self._taken:
                    self._taken.add(name)
                    return name
        raise AssertionError("there are more numbered names than taken ones")


def renamed(tree: ast.Module, seed: str, keep: Collection[str] = ()) -> dict[str, str]:
    """Rename in place; gives the new names by the old ones, empty where nothing can be renamed.

    Args:
        seed: decides between the names of a pool.
        keep: names that stay.
    """
    fixed = _fixed(tree) | set(keep)
    namer = Namer(tree, seed)
    names: dict[str, str] = {}
    for function in _functions(tree):
        for name in _in_order(function):
            if name not in names and name not in fixed and not name.startswith("_"):
                names[name] = namer.name(_role(function, name))
    for node in ast.walk(tree):
        if isinstance(node, ast.Name):
            node.id = names.get(node.id, node.id)
        elif isinstance(node, ast.arg):
            node.arg = names.get(node.arg, node.arg)
        elif isinstance(node, ast.FunctionDef):
            node.name = names.get(node.name, node.name)
    return names


def _functions(tree: ast.Module) -> list[ast.FunctionDef]:
    """The functions of the module and the methods of its classes, without those inside functions."""
    classes = [node for node in tree.body if isinstance(node, ast.ClassDef)]
    bodies = [tree.body, *(node.body for node in classes)]
    return [node for body in bodies for node in body if isinstance(node, ast.FunctionDef)]


def _fixed(tree: ast.Module) -> set[str]:
    """Names of the module that can't be replaced everywhere."""
    fixed = used_names(tree.body) | {"self", "cls"}
    for node in ast.walk(tree):
        if isinstance(node, ast.ClassDef):
            fixed |= used_names(node.body)
        elif isinstance(node, ast.keyword) and node.arg:
            fixed.add(node.arg)
        elif isinstance(node, ast.keyword):  # f(**d): any parameter may be meant
            fixed |= {
                arg.arg for function in ast.walk(tree) if isinstance(function, Function) for arg in _args(function)
            }
        elif isinstance(node, ast.alias):
            fixed.add((node.asname or node.name).split(".")[0])
        elif isinstance(node, ast.ExceptHandler) and node.name:
            fixed.add(node.name)
        if isinstance(node, Function):
            fixed |= declared(node)
    return fixed


def _args(function: Function) -> Iterable[ast.arg]:
    return (node for node in ast.walk(function.args) if isinstance(node, ast.arg))


def _in_order(function: ast.FunctionDef) -> list[str]:
    """Names bound in the function or a scope inside it, in the order of the code."""
    inside = bound_names(function)
    for node in ast.walk(function):
        if isinstance(node, Function | ast.Lambda):
            inside |= bound_names(node)
        elif isinstance(node, Comprehension):
            inside |= {name for one in node.generators for name in target_names(one.target)}
    inside -= free_names(function)
    found: dict[str, None] = {}
    for node in ast.walk(function):
        name = node.id if isinstance(node, ast.Name) else node.arg if isinstance(node, ast.arg) else None
        if isinstance(node, ast.FunctionDef) and node is not function:
            name = node.name
        if name in inside and name is not None:
            found.setdefault(name)
    return list(found)


def _role(function: ast.FunctionDef, name: str) -> str:
    """What a name is used for, judged by its first binding or, for a parameter, by its first telling use."""
    nodes = list(ast.walk(function))
    for node in nodes:
        if isinstance(node, ast.FunctionDef) and node is not function and node.name == name:
            return "function"
        if isinstance(node, ast.For | ast.comprehension) and name in target_names(node.target):
            counts = isinstance(node.iter, ast.Call) and getattr(node.iter.func, "id", "") in ("range", "enumerate")
            return "index" if counts and not (isinstance(node.target, ast.Tuple)) else "element"
        if isinstance(node, ast.Assign) and any(name in target_names(target) for target in node.targets):
            return _value_role(node.value)
    for node in nodes:
        if isinstance(node, ast.For | ast.comprehension | ast.Subscript):
            used: ast.expr = node.value if isinstance(node, ast.Subscript) else node.iter
            if isinstance(used, ast.Name) and used.id == name:
                return "series"
        elif isinstance(node, ast.Call) and getattr(node.func, "id", "") in ("len", "sorted", "sum", "range", "set"):
            if any(isinstance(arg, ast.Name) and arg.id == name for arg in node.args):
                return "quantity" if getattr(node.func, "id", "") == "range" else "series"
        elif isinstance(node, ast.BinOp) and not isinstance(node.op, ast.Add | ast.Mod):
            sides = [side.id for side in (node.left, node.right) if isinstance(side, ast.Name)]
            if name in sides:
                return "quantity"
    return "given"


def _value_role(value: ast.expr) -> str:
    kinds: tuple[tuple[type[ast.expr] | tuple[type[ast.expr], ...], str], ...] = (
        ((ast.List, ast.ListComp), "list"),
        ((ast.Dict, ast.DictComp), "table"),
        ((ast.Set, ast.SetComp), "set"),
        (ast.JoinedStr, "text"),
    )
    for kind, role in kinds:
        if isinstance(value, kind):
            return role
    if isinstance(value, ast.Constant):
        by_type = {bool: "flag", int: "number", float: "number", str: "text"}
        return by_type.get(type(value.value), "local")
    by_name = {"list": "list", "sorted": "list", "dict": "table", "set": "set", "len": "number", "sum": "number"}
    return by_name.get(getattr(value.func, "id", ""), "local") if isinstance(value, ast.Call) else "local"
