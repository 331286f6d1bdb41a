"""Loops that gather, count or search and the comprehensions that do the same; ``while`` and ``for``.

A loop and a comprehension do the same in the same order if nothing else sees the names that they bind, or the half-made
result: not the code after the loop, no function or lambda inside, no ``except`` or ``finally`` around it.
"""

from __future__ import annotations

import ast
from collections.abc import Callable, Sequence
from dataclasses import dataclass

from softcontam.duplicates.rules.python_expressions import negated
from softcontam.duplicates.rules.python_kinds import IMMUTABLE, NUMBERS, Scope, reads_outside
from softcontam.duplicates.rules.python_scopes import Comprehension, contains, simple_target, target_names, used_names

Fresh = Callable[[str], str]


@dataclass(frozen=True)
class _Nest:
    """``for`` loops and ``if`` inside each other with one statement in the middle, as a comprehension has them."""

    generators: list[ast.comprehension]
    middle: ast.stmt

    @property
    def targets(self) -> set[str]:
        return {name for one in self.generators for name in target_names(one.target)}


def gathered(init: ast.stmt, loop: ast.stmt, scope: Scope) -> ast.stmt | None:
    """``x = []`` and a loop that appends -> a list comprehension; also sets, dictionaries, counts and sums."""
    if not (isinstance(init, ast.Assign) and len(init.targets) == 1 and isinstance(init.targets[0], ast.Name)):
        return None
    name = init.targets[0].id
    nest = _nest(loop)
    if nest is None or name in scope.shared or name in nest.targets:
        return None
    value = _gathering(init.value, nest, name, scope)
    if value is None or name in used_names(value) or not _closed(nest, value, loop, scope):
        return None
    return ast.Assign([ast.Name(name, ast.Store())], value)


def searched(loop: ast.stmt, after: ast.stmt, scope: Scope) -> ast.Return | None:
    """A loop that returns True at the first hit, and ``return False`` after it -> ``return any(...)``; also ``all``."""
    nest = _nest(loop)
    if nest is None or not nest.generators[-1].ifs or not isinstance(after, ast.Return):
        return None
    hit, missed = _truth(nest.middle), _truth(after)
    if hit is None or missed is None or hit == missed:
        return None
    tests = nest.generators[-1].ifs
    test = tests[0] if len(tests) == 1 else ast.BoolOp(ast.And(), list(tests))
    name = "any" if hit else "all"
    last = ast.comprehension(nest.generators[-1].target, nest.generators[-1].iter, [], 0)
    inside = ast.GeneratorExp(test if hit else negated(test, scope), [*nest.generators[:-1], last])
    function = ast.Name(name, ast.Load())
    if not scope.builtin(function, (name,)) or not _closed(nest, inside, loop, scope):
        return None
    return ast.Return(ast.Call(function, [inside], []))


def unrolled(statement: ast.stmt, scope: Scope, fresh: Fresh) -> list[ast.stmt] | None:
    """A comprehension, ``sum``, ``any`` or ``all`` that is assigned or returned -> the loop that does it."""
    if isinstance(statement, ast.Assign):
        if len(statement.targets) != 1 or not isinstance(statement.targets[0], ast.Name):
            return None
        name: str | None = statement.targets[0].id
    elif isinstance(statement, ast.Return):
        name = None
    else:
        return None
    value = statement.value
    searches = isinstance(value, ast.Call) and scope.call_of(value, ("any", "all"))
    inside = value.args[0] if isinstance(value, ast.Call) and len(value.args) == 1 else value
    if not isinstance(inside, Comprehension) or not _can_unroll(inside, statement, scope):
        return None
    targets = {bound for one in inside.generators for bound in target_names(one.target)}
    if name is not None and (name in scope.shared or name in used_names(inside) | targets):
        return None
    if searches and isinstance(inside, ast.GeneratorExp) and isinstance(value, ast.Call) and name is None:
        assert isinstance(value.func, ast.Name)
        hit = value.func.id == "any"
        test = inside.elt if hit else negated(inside.elt, scope)
        found: list[ast.stmt] = [ast.Return(ast.Constant(hit))]
        loop = _loops(inside.generators, [ast.If(test, found, [])])
        return [loop, ast.Return(ast.Constant(not hit))]
    result = name or fresh("number" if isinstance(inside, ast.GeneratorExp) else "list")
    step = _step(value, inside, result, scope)
    if step is None:
        return None
    start, middle = step
    made: list[ast.stmt] = [ast.Assign([ast.Name(result, ast.Store())], start), _loops(inside.generators, [middle])]
    return made if name is not None else [*made, ast.Return(ast.Name(result, ast.Load()))]


def counted(init: ast.stmt, loop: ast.stmt, scope: Scope) -> ast.For | None:
    """``i = a``, ``while i < n`` and ``i += 1`` at its end -> ``for i in range(a, n)``."""
    if not (isinstance(init, ast.Assign) and isinstance(loop, ast.While) and not loop.orelse and len(loop.body) > 1):
        return None
    target, test = init.targets[0], loop.test
    if len(init.targets) != 1 or not isinstance(target, ast.Name) or not isinstance(test, ast.Compare):
        return None
    name, body = target.id, loop.body[:-1]
    if name in scope.shared or name in scope.parameters or len(test.ops) != 1 or _step_of(loop.body[-1], name) != 1:
        return None
    op, stop = test.ops[0], test.comparators[0]
    if not (isinstance(test.left, ast.Name) and test.left.id == name and isinstance(op, ast.Lt | ast.LtE)):
        return None
    if scope.kind(init.value) != "int" or scope.kind(stop) != "int" or not _fixed(stop, loop.body, scope):
        return None
    if name in _stored(body) or name in used_names(stop) or _continues(body):
        return None
    if reads_outside(scope, name, [init, loop]) or name in used_names(init.value):
        return None
    if isinstance(op, ast.LtE):
        stop = ast.BinOp(stop, ast.Add(), ast.Constant(1))
    zero = isinstance(init.value, ast.Constant) and init.value.value == 0
    bounds = [stop] if zero else [init.value, stop]
    values = ast.Call(ast.Name("range", ast.Load()), bounds, [])
    if not scope.builtin(values.func, ("range",)):
        return None
    return ast.For(ast.Name(name, ast.Store()), values, body, [])


def counting(loop: ast.stmt, scope: Scope) -> list[ast.stmt] | None:
    """``for i in range(a, n)`` -> ``i = a``, ``while i < n`` and ``i += 1`` at its end."""
    if not (isinstance(loop, ast.For) and isinstance(loop.target, ast.Name) and not loop.orelse):
        return None
    name = loop.target.id
    if not scope.call_of(loop.iter, ("range",)) or name in scope.shared or name in scope.parameters:
        return None
    assert isinstance(loop.iter, ast.Call)
    bounds = loop.iter.args
    if len(bounds) not in (1, 2) or any(scope.kind(bound) != "int" for bound in bounds):
        return None
    start, stop = (bounds[0], bounds[1]) if len(bounds) == 2 else (ast.Constant(0), bounds[0])
    if not _fixed(stop, loop.body, scope) or not _fixed(start, [], scope):
        return None
    if name in _stored(loop.body) or _continues(loop.body) or name in used_names(bounds):
        return None
    if reads_outside(scope, name, [loop]):
        return None
    step = ast.AugAssign(ast.Name(name, ast.Store()), ast.Add(), ast.Constant(1))
    test = ast.Compare(ast.Name(name, ast.Load()), [ast.Lt()], [stop])
    return [ast.Assign([ast.Name(name, ast.Store())], start), ast.While(test, [*loop.body, step], [])]


def _nest(statement: ast.stmt) -> _Nest | None:
    """The loop as a comprehension would have it, or None where there is more than one statement in the middle."""
    generators: list[ast.comprehension] = []
    while True:
        if isinstance(statement, ast.For) and not statement.orelse and simple_target(statement.target):
            generators.append(ast.comprehension(statement.target, statement.iter, [], 0))
        elif isinstance(statement, ast.If) and generators and not statement.orelse:
            generators[-1].ifs.append(statement.test)
        else:
            return _Nest(generators, statement) if generators else None
        if len(statement.body) != 1:
            return None
        statement = statement.body[0]


def _gathering(start: ast.expr, nest: _Nest, name: str, scope: Scope) -> ast.expr | None:
    """The comprehension for a start value and the statement in the middle of the loops."""
    middle, generators = nest.middle, nest.generators
    empty_list = isinstance(start, ast.List) and not start.elts
    if isinstance(middle, ast.Expr) and isinstance(middle.value, ast.Call):
        call = middle.value
        on_result = isinstance(call.func, ast.Attribute) and getattr(call.func.value, "id", None) == name
        if not on_result or len(call.args) != 1 or call.keywords or isinstance(call.args[0], ast.Starred):
            return None
        assert isinstance(call.func, ast.Attribute)
        if call.func.attr == "append" and (empty_list or (scope.call_of(start, ("list",)) and not _arguments(start))):
            return ast.ListComp(call.args[0], generators)
        if call.func.attr == "add" and scope.call_of(start, ("set",)) and not _arguments(start):
            return ast.SetComp(call.args[0], generators)
        return None
    if isinstance(middle, ast.Assign) and len(middle.targets) == 1 and isinstance(middle.targets[0], ast.Subscript):
        key, value = middle.targets[0].slice, middle.value
        on_result = getattr(middle.targets[0].value, "id", None) == name
        empty = isinstance(start, ast.Dict) and not start.keys
        if on_result and empty and not isinstance(key, ast.Slice) and _either_first(key, value, scope):
            return ast.DictComp(key, value, generators)
        return None
    added = _added(middle, name)
    zero = isinstance(start, ast.Constant) and type(start.value) is int and start.value == 0
    if added is None or not zero or scope.kind(added) != "int" or not scope.builtin(_SUM, ("sum",)):
        return None
    return ast.Call(_SUM, [ast.GeneratorExp(added, generators)], [])


def _either_first(key: ast.expr, value: ast.expr, scope: Scope) -> bool:
    """Whether it makes no difference which is evaluated first: one is a constant, or a name nobody else sets."""
    return any(
        isinstance(part, ast.Constant) or (isinstance(part, ast.Name) and part.id not in scope.shared)
        for part in (key, value)
    )


def _closed(nest: _Nest, value: ast.expr, loop: ast.stmt, scope: Scope) -> bool:
    """Whether the loops can become a comprehension: nobody else sees their names, and it evaluates what they do."""
    if scope.module.may_stop or contains([value], ast.Yield, ast.YieldFrom, ast.Lambda) or scope.lazy(value):
        return False
    for position, one in enumerate(nest.generators):
        later = {name for other in nest.generators[position + 1 :] for name in target_names(other.target)}
        own, seen = target_names(one.target), {n for g in nest.generators[:position] for n in target_names(g.target)}
        early = (later | own) - seen if position else set[str]()
        if used_names(one.iter) & early or used_names(one.ifs) & (later - own - seen):
            return False
    return all(name not in scope.shared and not reads_outside(scope, name, [loop]) for name in nest.targets)


def _can_unroll(inside: Comprehension, statement: ast.stmt, scope: Scope) -> bool:
    """Whether the names of a comprehension can become names of the function."""
    targets = {name for one in inside.generators for name in target_names(one.target)}
    if scope.module.may_stop or contains([inside], ast.Lambda) or scope.lazy(inside):
        return False
    if used_names(inside) & targets or not all(simple_target(one.target) for one in inside.generators):
        return False
    if any(name in scope.shared or name in scope.parameters for name in targets):
        return False
    return not any(one.is_async for one in inside.generators) and not any(
        reads_outside(scope, name, [statement]) for name in targets
    )


def _step(value: ast.expr | None, inside: Comprehension, result: str, scope: Scope) -> tuple[ast.expr, ast.stmt] | None:
    """What the result starts as, and what is done to it each time."""
    load, store = ast.Name(result, ast.Load()), ast.Name(result, ast.Store())
    if value is inside and isinstance(inside, ast.ListComp):
        append = ast.Call(ast.Attribute(load, "append", ast.Load()), [inside.elt], [])
        return ast.List([], ast.Load()), ast.Expr(append)
    if value is inside and isinstance(inside, ast.SetComp) and scope.builtin(ast.Name("set", ast.Load()), ("set",)):
        add = ast.Call(ast.Attribute(load, "add", ast.Load()), [inside.elt], [])
        return ast.Call(ast.Name("set", ast.Load()), [], []), ast.Expr(add)
    if value is inside and isinstance(inside, ast.DictComp) and _either_first(inside.key, inside.value, scope):
        return ast.Dict([], []), ast.Assign([ast.Subscript(load, inside.key, ast.Store())], inside.value)
    if not isinstance(inside, ast.GeneratorExp | ast.ListComp) or value is None or not scope.call_of(value, ("sum",)):
        return None
    whole = scope.kind(inside.elt, scope.kinds_inside(inside.generators)) == "int"
    return (ast.Constant(0), ast.AugAssign(store, ast.Add(), inside.elt)) if whole else None


def _loops(generators: Sequence[ast.comprehension], body: list[ast.stmt]) -> ast.stmt:
    for one in reversed(generators):
        for test in reversed(one.ifs):
            body = [ast.If(test, body, [])]
        body = [ast.For(one.target, one.iter, body, [])]
    return body[0]


def _added(statement: ast.stmt, name: str) -> ast.expr | None:
    """What a statement adds to a name: ``x += e`` or ``x = x + e``."""
    if isinstance(statement, ast.AugAssign) and isinstance(statement.op, ast.Add):
        return statement.value if getattr(statement.target, "id", None) == name else None
    if isinstance(statement, ast.Assign) and len(statement.targets) == 1 and isinstance(statement.value, ast.BinOp):
        value = statement.value
        same = getattr(statement.targets[0], "id", None) == getattr(value.left, "id", "") == name
        return value.right if same and isinstance(value.op, ast.Add) else None
    return None


def _step_of(statement: ast.stmt, name: str) -> object:
    added = _added(statement, name)
    return added.value if isinstance(added, ast.Constant) and type(added.value) is int else None


def _fixed(bound: ast.expr, body: Sequence[ast.stmt], scope: Scope) -> bool:
    """Whether the bound of a loop stays what it is while the body runs, and can be evaluated at any time."""
    for node in ast.walk(bound):
        if isinstance(node, ast.Name) and node.id in scope.shared | _stored(body):
            return False
        if isinstance(node, ast.Call) and not scope.call_of(node, ("len",)):
            return False
        if not isinstance(
            node, ast.Name | ast.Constant | ast.Call | ast.BinOp | ast.Add | ast.Sub | ast.Mult | ast.Load
        ):
            return False
    sized = [node.args[0] for node in ast.walk(bound) if isinstance(node, ast.Call)]
    if not all(isinstance(node, ast.Name) for node in sized):
        return False
    kinds = {scope.kind(node) for node in sized}
    return kinds <= {"str", "tuple"} or _keeps_sizes(body, scope, kinds <= {"str", "tuple", "list"})


def _keeps_sizes(body: Sequence[ast.stmt], scope: Scope, lists: bool) -> bool:
    """Whether nothing in the body can change a length.

    Args:
        lists: only those of lists matter, which assigning to one place of anything doesn't change.
    """
    harmless = ("abs", "bool", "chr", "float", "int", "len", "max", "min", "ord", "range", "str", "sum")
    for node in (node for statement in body for node in ast.walk(statement)):
        if isinstance(node, ast.Call) and not scope.builtin(node.func, harmless):
            return False
        if isinstance(node, ast.AugAssign) and not (
            (scope.kind(node.value) in NUMBERS and not isinstance(node.op, ast.Mult))
            or (isinstance(node.target, ast.Name) and scope.kind(_read(node.target)) in IMMUTABLE)
        ):
            return False
        if isinstance(node, ast.Subscript) and not isinstance(node.ctx, ast.Load):
            place = isinstance(node.ctx, ast.Store) and scope.kind(node.slice) == "int"
            if not place or not (lists or scope.kind(node.value) == "list"):
                return False
        if isinstance(node, ast.Yield | ast.YieldFrom | ast.Attribute | ast.With):
            return False
    return True


def _read(target: ast.Name) -> ast.Name:
    return ast.Name(target.id, ast.Load())


def _continues(body: Sequence[ast.stmt]) -> bool:
    """Whether there is a ``continue`` that belongs to this loop."""
    waiting = list[ast.AST](body)
    while waiting:
        node = waiting.pop()
        if isinstance(node, ast.Continue):
            return True
        if not isinstance(node, ast.For | ast.While):
            waiting.extend(ast.iter_child_nodes(node))
        else:
            waiting.extend(node.orelse)
    return False


def _stored(body: Sequence[ast.stmt]) -> set[str]:
    return {
        node.id
        for statement in body
        for node in ast.walk(statement)
        if isinstance(node, ast.Name) and not isinstance(node.ctx, ast.Load)
    }


def _arguments(call: ast.expr) -> bool:
    return isinstance(call, ast.Call) and bool(call.args or call.keywords)


def _truth(statement: ast.stmt) -> bool | None:
    """True or False where that is what a statement returns."""
    value = statement.value if isinstance(statement, ast.Return) else None
    return value.value if isinstance(value, ast.Constant) and isinstance(value.value, bool) else None


_SUM = ast.Name("sum", ast.Load())
