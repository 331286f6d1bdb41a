"""Other forms of Python expressions that have the same value and evaluate the same things in the same order.

Conditions are negated by flipping ``==``, ``in`` and ``is``; ``<`` and its like only between whole numbers or texts,
since for others (``nan``, sets) ``not a < b`` is not ``a >= b``.
"""

from __future__ import annotations

import ast
from collections.abc import Callable

from softcontam.duplicates.rules.python_kinds import Scope
from softcontam.duplicates.rules.python_scopes import Comprehension, contains

_FLIPPED: dict[type[ast.cmpop], type[ast.cmpop]] = {
    ast.Eq: ast.NotEq,
    ast.NotEq: ast.Eq,
    ast.In: ast.NotIn,
    ast.NotIn: ast.In,
    ast.Is: ast.IsNot,
    ast.IsNot: ast.Is,
}
_ORDER: dict[type[ast.cmpop], type[ast.cmpop]] = {
    ast.Lt: ast.GtE,
    ast.GtE: ast.Lt,
    ast.Gt: ast.LtE,
    ast.LtE: ast.Gt,
}
_CERTAIN = [[ast.In], [ast.NotIn], [ast.Is], [ast.IsNot]]  # True or False whatever the types
_READY = (ast.Lambda, ast.Name, ast.Constant)  # nothing is run to get their value
_FROM_LIST = ("sum", "max", "min", "sorted", "tuple", "list")
_OF_ONE = ("int", "str", "float", "len", "ord", "chr", "abs", "bool")


def negated(test: ast.expr, scope: Scope) -> ast.expr:
    """An expression that is true where ``test`` is false; it evaluates the same parts."""
    if isinstance(test, ast.UnaryOp) and isinstance(test.op, ast.Not):
        return test.operand
    if isinstance(test, ast.BoolOp):
        other = ast.Or() if isinstance(test.op, ast.And) else ast.And()
        return ast.BoolOp(other, [negated(value, scope) for value in test.values])
    if isinstance(test, ast.Compare) and len(test.ops) == 1:
        op = type(test.ops[0])
        flipped = _FLIPPED.get(op)
        if flipped is None and op in _ORDER:
            kinds = {scope.kind(test.left), scope.kind(test.comparators[0])}
            flipped = _ORDER[op] if kinds in ({"int"}, {"str"}) else None
        if flipped is not None:
            return ast.Compare(test.left, [flipped()], test.comparators)
    return ast.UnaryOp(ast.Not(), test)


def plain(node: ast.expr) -> bool:
    """Whether evaluating the expression again gives the same again, and does nothing else."""
    return isinstance(node, ast.Name | ast.Constant)


class Expressions(ast.NodeTransformer):
    """Rewrites the expressions of one function, those of functions inside it excepted.

    Args:
        take: says for each place that could be rewritten whether it is.
    """

    def __init__(self, scope: Scope, take: Callable[[], bool]) -> None:
        self._scope = scope
        self._take = take

    def rewrite(self, function: ast.FunctionDef) -> ast.FunctionDef:
        """Rewrite the body in place."""
        function.body = [self.visit(statement) for statement in function.body]
        return function

    def visit_FunctionDef(self, node: ast.FunctionDef) -> ast.AST:
        """A function inside has a scope of its own."""
        return node

    def visit_ClassDef(self, node: ast.ClassDef) -> ast.AST:
        """So has a class."""
        return node

    def visit_UnaryOp(self, node: ast.UnaryOp) -> ast.AST:
        """``not (a and b)`` -> ``not a or not b``; ``not x in y`` -> ``x not in y``."""
        self.generic_visit(node)
        operand = node.operand
        if not isinstance(node.op, ast.Not) or not self._take():
            return node
        if isinstance(operand, ast.BoolOp):
            other = ast.Or() if isinstance(operand.op, ast.And) else ast.And()
            return ast.BoolOp(other, [self._false(value) for value in operand.values])
        flips = isinstance(operand, ast.Compare) and [type(op) for op in operand.ops] in _CERTAIN
        return negated(operand, self._scope) if flips else node

    def visit_Compare(self, node: ast.Compare) -> ast.AST:
        """``a < b < c`` -> ``a < b and b < c``."""
        self.generic_visit(node)
        if len(node.ops) == 2 and plain(node.comparators[0]) and self._take():
            middle = node.comparators[0]
            first = ast.Compare(node.left, [node.ops[0]], [middle])
            return ast.BoolOp(ast.And(), [first, ast.Compare(middle, [node.ops[1]], [node.comparators[1]])])
        return node

    def visit_BoolOp(self, node: ast.BoolOp) -> ast.AST:
        """``a < b and b < c`` -> ``a < b < c``."""
        before = list(node.values)
        self.generic_visit(node)
        values = node.values
        if len(values) != 2 or any(new is not old for new, old in zip(values, before, strict=True)):
            return node
        first, second = values
        if (
            isinstance(node.op, ast.And)
            and isinstance(first, ast.Compare)
            and isinstance(second, ast.Compare)
            and len(first.ops) == len(second.ops) == 1
            and isinstance(first.comparators[0], ast.Name)
            and ast.dump(first.comparators[0]) == ast.dump(second.left)
            and self._take()
        ):
            return ast.Compare(first.left, [first.ops[0], second.ops[0]], [second.left, second.comparators[0]])
        return node

    def visit_IfExp(self, node: ast.IfExp) -> ast.AST:
        """``a if c else b`` -> ``b if not c else a``."""
        self.generic_visit(node)
        test = negated(node.test, self._scope)
        if isinstance(test, ast.UnaryOp) or not self._take():
            return node
        return ast.IfExp(test, node.orelse, node.body)

    def visit_Call(self, node: ast.Call) -> ast.AST:
        """``map`` and ``filter`` of a lambda -> comprehensions; lists that are used up at once -> generators."""
        self.generic_visit(node)
        scope = self._scope
        if scope.call_of(node, ("pow",)) and len(node.args) == 2 and self._take():
            return ast.BinOp(node.args[0], ast.Pow(), node.args[1])
        if isinstance(node.func, ast.Name) and node.func.id in ("list", "dict") and not node.args and not node.keywords:
            if scope.builtin(node.func, ("list", "dict")) and self._take():
                return ast.List([], ast.Load()) if node.func.id == "list" else ast.Dict([], [])
            return node
        if len(node.args) != 1 or not all(isinstance(word.value, _READY) for word in node.keywords):
            return node
        if node.keywords and not scope.builtin(node.func, ("sorted", "max", "min")):
            return node
        if not self._uses_up(node.func) or scope.module.may_stop:
            return node
        only = node.args[0]
        made = self._comprehension(only)
        if made is not None and scope.builtin(node.func, ("list", "set")) and not node.keywords and self._take():
            assert isinstance(node.func, ast.Name)
            kind = ast.ListComp if node.func.id == "list" else ast.SetComp
            return kind(made.elt, made.generators)
        if made is not None and self._take():
            node.args = [made]
        elif isinstance(only, ast.ListComp) and self._take():
            node.args = [ast.GeneratorExp(only.elt, only.generators)]
        elif isinstance(only, ast.GeneratorExp) and self._take():
            if scope.builtin(node.func, ("list",)) and not node.keywords:
                return ast.ListComp(only.elt, only.generators)
            node.args = [ast.ListComp(only.elt, only.generators)]
        return node

    def _uses_up(self, function: ast.expr) -> bool:
        """Whether a function uses up its one argument and returns only then."""
        joins = (
            isinstance(function, ast.Attribute) and function.attr == "join" and isinstance(function.value, ast.Constant)
        )
        return joins or self._scope.builtin(function, (*_FROM_LIST, "set"))

    def _comprehension(self, node: ast.expr) -> ast.GeneratorExp | None:
        """The generator that gives what a ``map`` or ``filter`` gives."""
        if not self._scope.call_of(node, ("map", "filter")):
            return None
        assert isinstance(node, ast.Call)
        assert isinstance(node.func, ast.Name)
        if len(node.args) != 2:
            return None
        function, values = node.args
        if isinstance(function, ast.Lambda):
            parameters = function.args
            if (
                len(parameters.args) != 1
                or parameters.defaults
                or contains(function.body, ast.Lambda, *Comprehension.__args__, ast.Yield)
            ):
                return None
            if parameters.posonlyargs or parameters.kwonlyargs or parameters.vararg or parameters.kwarg:
                return None
            name = parameters.args[0].arg
            target, item = ast.Name(name, ast.Store()), ast.Name(name, ast.Load())
            if node.func.id == "filter":
                return ast.GeneratorExp(item, [ast.comprehension(target, values, [function.body], 0)])
            return ast.GeneratorExp(function.body, [ast.comprehension(target, values, [], 0)])
        if node.func.id == "map" and self._scope.builtin(function, _OF_ONE):
            used = self._scope.bound | self._scope.module.taken
            name = next(one for one in ("part", *(f"part_{number}" for number in range(2, 99))) if one not in used)
            call = ast.Call(function, [ast.Name(name, ast.Load())], [])
            return ast.GeneratorExp(call, [ast.comprehension(ast.Name(name, ast.Store()), values, [], 0)])
        return None

    def _false(self, value: ast.expr) -> ast.expr:
        """``not value`` as a truth value: True or False, whatever the types."""
        if isinstance(value, ast.Compare) and [type(op) for op in value.ops] in _CERTAIN:
            return negated(value, self._scope)
        return ast.UnaryOp(ast.Not(), value)
