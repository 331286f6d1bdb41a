"""Which names a piece of Python code uses, and where they are bound."""

from __future__ import annotations

import ast
from collections.abc import Iterator, Sequence

Comprehension = ast.ListComp | ast.SetComp | ast.DictComp | ast.GeneratorExp
Function = ast.FunctionDef | ast.AsyncFunctionDef
Node = ast.AST | Sequence[ast.AST]

WATCHERS = frozenset(
    "__annotations__ __builtins__ __class__ __code__ __dict__ __globals__ __import__ _getframe breakpoint compile "
    "currentframe dir eval exec get_type_hints getsource getsourcelines globals inspect locals setrecursionlimit "
    "settrace stack super traceback vars".split()
)
"""Names that give code a view of its own text, names or depth: what mentions one is left alone."""

LEFT_ALONE = (ast.NamedExpr, ast.Match, ast.AsyncFunctionDef, ast.Await, ast.AsyncFor, ast.AsyncWith, ast.TryStar)
"""Syntax that is not reasoned about."""

REBINDING = (ast.Global, ast.Nonlocal)
"""Statements by which one function changes the names of another."""


def used_names(node: Node, *, loads_only: bool = False) -> set[str]:
    """Names that code uses in the scope it stands in; those that scopes inside it bind for themselves are not.

    A function defined there counts by its name and by the names that it takes from outside.
    """
    if isinstance(node, Sequence):
        return set[str]().union(*(used_names(part, loads_only=loads_only) for part in node))
    used: set[str] = set()
    if isinstance(node, ast.Name):
        return {node.id} if isinstance(node.ctx, ast.Load) or not loads_only else set()
    if isinstance(node, ast.AugAssign) and isinstance(node.target, ast.Name):
        used.add(node.target.id)
    elif isinstance(node, Comprehension):
        inside: list[ast.AST] = [node.key, node.value] if isinstance(node, ast.DictComp) else [node.elt]
        inside += [part for one in node.generators for part in (one.target, *one.ifs)]
        inside += [one.iter for one in node.generators[1:]]
        bound = {name for one in node.generators for name in target_names(one.target)}
        return used_names(node.generators[0].iter) | (used_names(inside, loads_only=loads_only) - bound)
    elif isinstance(node, Function | ast.Lambda):
        arguments = node.args
        outside = [*arguments.defaults, *(value for value in arguments.kw_defaults if value is not None)]
        if isinstance(node, Function):
            outside += [
                *node.decorator_list,
                *filter(None, [node.returns, *(arg.annotation for arg in function_args(node))]),
            ]
            used |= set() if loads_only else {node.name}
        return used | used_names(outside) | free_names(node)
    elif isinstance(node, ast.ClassDef):
        used.add(node.name)
    elif isinstance(node, ast.Global | ast.Nonlocal):
        used |= set(node.names)
    elif isinstance(node, ast.ExceptHandler) and node.name:
        used.add(node.name)
    elif isinstance(node, ast.alias):
        used.add((node.asname or node.name).split(".")[0])
    return used | used_names(list(ast.iter_child_nodes(node)), loads_only=loads_only)


def free_names(function: Function | ast.Lambda) -> set[str]:
    """Names that the body of a function takes from outside."""
    body: Node = function.body
    return used_names(body) - (bound_names(function) - declared(function))


def bound_names(function: Function | ast.Lambda) -> set[str]:
    """Parameters and names bound in the function's own scope, those declared global or nonlocal included."""
    bound = {arg.arg for arg in function_args(function)}
    for node in own_nodes(function):
        if isinstance(node, ast.Name) and not isinstance(node.ctx, ast.Load):
            bound.add(node.id)
        elif isinstance(node, ast.FunctionDef | ast.ClassDef | ast.AsyncFunctionDef):
            bound.add(node.name)
        elif isinstance(node, ast.alias):
            bound.add((node.asname or node.name).split(".")[0])
        elif isinstance(node, ast.ExceptHandler) and node.name:
            bound.add(node.name)
    return bound


def declared(function: Function | ast.Lambda) -> set[str]:
    """Names that the function declares global or nonlocal."""
    return {name for node in own_nodes(function) if isinstance(node, ast.Global | ast.Nonlocal) for name in node.names}


def own_nodes(function: Function | ast.Lambda) -> Iterator[ast.AST]:
    """The nodes of a function's own scope: of functions, lambdas and comprehensions inside, what is evaluated in it."""
    waiting = list[ast.AST](function.body if isinstance(function.body, list) else [function.body])
    while waiting:
        node = waiting.pop()
        yield node
        if isinstance(node, Comprehension):
            waiting.append(node.generators[0].iter)
        elif not isinstance(node, Function | ast.Lambda | ast.ClassDef):
            waiting.extend(ast.iter_child_nodes(node))


def target_names(target: ast.expr) -> set[str]:
    """The names that an assignment target binds."""
    return {node.id for node in ast.walk(target) if isinstance(node, ast.Name) and isinstance(node.ctx, ast.Store)}


def simple_target(target: ast.expr) -> bool:
    """Whether a target is a name, or a tuple or list of such."""
    if isinstance(target, ast.Tuple | ast.List):
        return all(simple_target(part) for part in target.elts)
    return isinstance(target, ast.Name)


def identifiers(tree: ast.AST) -> set[str]:
    """Everything in the code that is spelled like a name, whatever it names."""
    found: set[str] = set()
    for node in ast.walk(tree):
        for key in ("id", "arg", "attr", "name", "asname", "module"):
            value = getattr(node, key, None)
            if isinstance(value, str):
                found |= set(value.split("."))
        if isinstance(node, ast.Global | ast.Nonlocal):
            found |= set(node.names)
    return found


def contains(node: Node, *kinds: type[ast.AST]) -> bool:
    """Whether the code has a node of one of these types anywhere."""
    parts = node if isinstance(node, Sequence) else [node]
    return any(isinstance(inner, kinds) for part in parts for inner in ast.walk(part))


def function_args(function: Function | ast.Lambda) -> list[ast.arg]:
    """The parameters of a function in their order."""
    found = function.args
    return [
        *found.posonlyargs,
        *found.args,
        *filter(None, [found.vararg]),
        *found.kwonlyargs,
        *filter(None, [found.kwarg]),
    ]
