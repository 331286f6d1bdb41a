"""Other forms of Python statements that do the same: ``forms`` of a rule-made SemD.

Every function of the module is rewritten on its own, first its expressions
(:mod:`~softcontam.duplicates.rules.python_expressions`), then its statements, each at most once.
"""

from __future__ import annotations

import ast
import random
from collections.abc import Callable, Sequence

from softcontam.duplicates.rules import python_loops
from softcontam.duplicates.rules.python_expressions import Expressions, negated
from softcontam.duplicates.rules.python_kinds import IMMUTABLE, Module, Scope
from softcontam.duplicates.rules.python_names import Namer
from softcontam.duplicates.rules.python_scopes import contains, used_names

_ENDS = (ast.Return, ast.Raise, ast.Continue, ast.Break)

Rewritten = tuple[list[ast.stmt], list[ast.stmt]]
"""What replaces the first statements of a block, and the statements that are still to be looked at."""


def reformed(tree: ast.Module, seed: str, share: float) -> ast.Module:
    """The module with its functions in other forms.

    Args:
        seed: decides which places are rewritten, and names for results.
        share: probability for each place that it is rewritten.
    """
    generator = random.Random(seed)
    namer = Namer(tree, seed)

    def take() -> bool:
        return generator.random() < share

    module = Module.of(tree)
    tree = _each(tree, lambda function: Expressions(Scope(function, module), take).rewrite(function))
    return _each(tree, lambda function: _Statements(Scope(function, module), take, namer.name).rewrite(function))


def _each(tree: ast.Module, rewrite: Callable[[ast.FunctionDef], ast.FunctionDef]) -> ast.Module:
    """Rewrite all functions, inner ones first, so that what is known of a function is known of its present code."""

    class Visitor(ast.NodeTransformer):
        def visit_FunctionDef(self, node: ast.FunctionDef) -> ast.FunctionDef:
            self.generic_visit(node)
            return rewrite(node)

    changed = Visitor().visit(ast.parse(ast.unparse(tree)))
    return ast.parse(ast.unparse(ast.fix_missing_locations(changed)))


class _Statements:
    """Rewrites the statements of one function. ``scope`` describes it as it was: no statement is looked at twice."""

    def __init__(self, scope: Scope, take: Callable[[], bool], fresh: Callable[[str], str]) -> None:
        self._scope = scope
        self._take = take
        self._fresh = fresh
        self._flat: set[int] = set()  # statements that stood in an else and do so no more
        self._pairs: tuple[Callable[[ast.stmt, ast.stmt, bool], list[ast.stmt] | None], ...] = (
            self._gathered,
            self._searched,
            self._counted,
            self._direct_return,
            self._conditional_return,
        )
        self._singles: tuple[Callable[[ast.stmt, bool], list[ast.stmt] | None], ...] = (
            self._unrolled,
            self._counting,
            self._conditional,
            self._branches,
            self._apart,
            self._merged_tests,
            self._swapped,
            self._augmented,
            self._named_part,
            self._named_result,
        )

    def rewrite(self, function: ast.FunctionDef) -> ast.FunctionDef:
        """The function with another body."""
        made = ast.FunctionDef(**dict(ast.iter_fields(function)))
        made.body = self._block(function.body, False)
        return made

    def _block(self, statements: Sequence[ast.stmt], guarded: bool) -> list[ast.stmt]:
        """Rewrite a block; ``guarded`` says that an exception in it may be caught in this function."""
        made: list[ast.stmt] = []
        waiting = list(statements)
        while waiting:
            done, waiting = self._first(waiting, guarded)
            made.extend(done)
        return made

    def _first(self, waiting: list[ast.stmt], guarded: bool) -> Rewritten:
        if len(waiting) > 1:
            for pair in self._pairs:
                found = pair(waiting[0], waiting[1], guarded)
                if found is not None and self._take():
                    return found, waiting[2:]
        for single in self._singles:
            found = single(waiting[0], guarded)
            if found is not None and self._take():
                return found, waiting[1:]
        statement, rest = waiting[0], waiting[1:]
        if isinstance(statement, ast.If) and _ends(statement.body) and (statement.orelse or rest) and self._take():
            if statement.orelse:  # the else of a branch that has ended is what comes next
                self._flat |= {id(one) for one in (statement, *statement.orelse)}
                body = self._block(statement.body, guarded)
                return [ast.If(statement.test, body, [])], [*statement.orelse, *rest]
            if id(statement) not in self._flat:
                body = self._block(statement.body, guarded)
                return [ast.If(statement.test, body, self._block(rest, guarded))], []
        return [self._inside(statement, guarded)], rest

    def _inside(self, statement: ast.stmt, guarded: bool) -> ast.stmt:
        """The statement with its blocks rewritten."""
        if isinstance(statement, ast.FunctionDef | ast.ClassDef):
            return statement
        catches = guarded or isinstance(statement, ast.Try | ast.With)
        fields = dict(ast.iter_fields(statement))
        for key in ("body", "orelse", "finalbody"):
            if fields.get(key):
                fields[key] = self._block(fields[key], catches)
        if isinstance(statement, ast.Try):
            fields["handlers"] = [
                ast.ExceptHandler(one.type, one.name, self._block(one.body, catches)) for one in statement.handlers
            ]
        return type(statement)(**fields)

    def _gathered(self, first: ast.stmt, second: ast.stmt, guarded: bool) -> list[ast.stmt] | None:
        made = None if guarded else python_loops.gathered(first, second, self._scope)
        return None if made is None else [made]

    def _searched(self, first: ast.stmt, second: ast.stmt, guarded: bool) -> list[ast.stmt] | None:
        made = python_loops.searched(first, second, self._scope)
        return None if made is None else [made]

    def _counted(self, first: ast.stmt, second: ast.stmt, guarded: bool) -> list[ast.stmt] | None:
        made = python_loops.counted(first, second, self._scope)
        return None if made is None else [self._inside(made, guarded)]

    def _unrolled(self, statement: ast.stmt, guarded: bool) -> list[ast.stmt] | None:
        if guarded and isinstance(statement, ast.Assign):
            return None
        return python_loops.unrolled(statement, self._scope, self._fresh)

    def _counting(self, statement: ast.stmt, guarded: bool) -> list[ast.stmt] | None:
        made = python_loops.counting(statement, self._scope)
        if made is None:
            return None
        loop = made[1]
        assert isinstance(loop, ast.While)
        return [made[0], ast.While(loop.test, [*self._block(loop.body[:-1], guarded), loop.body[-1]], [])]

    def _direct_return(self, first: ast.stmt, second: ast.stmt, guarded: bool) -> list[ast.stmt] | None:
        """``x = e``, ``return x`` -> ``return e``."""
        name = _assigned(first)
        returned = second.value if isinstance(second, ast.Return) else None
        if name is None or guarded or name in self._scope.shared or not isinstance(returned, ast.Name):
            return None
        assert isinstance(first, ast.Assign)
        if contains([first.value], ast.ListComp, ast.SetComp, ast.DictComp, ast.GeneratorExp):
            return None
        return [ast.Return(first.value)] if returned.id == name else None

    def _conditional_return(self, first: ast.stmt, second: ast.stmt, guarded: bool) -> list[ast.stmt] | None:
        """``if c: return a``, ``return b`` -> ``return a if c else b``."""
        if not isinstance(first, ast.If) or first.orelse or len(first.body) != 1:
            return None
        made = self._one_return(first.test, first.body[0], second)
        return None if made is None else [made]

    def _conditional(self, statement: ast.stmt, guarded: bool) -> list[ast.stmt] | None:
        """``if c: return a`` ``else: return b`` -> ``return a if c else b``; also for ``x = a`` and ``x = b``."""
        if not isinstance(statement, ast.If) or len(statement.body) != 1 or len(statement.orelse) != 1:
            return None
        yes, no = statement.body[0], statement.orelse[0]
        name = _assigned(yes)
        if name is not None and name == _assigned(no):
            assert isinstance(yes, ast.Assign)
            assert isinstance(no, ast.Assign)
            return [ast.Assign(yes.targets, ast.IfExp(statement.test, yes.value, no.value))]
        made = self._one_return(statement.test, yes, no)
        return None if made is None else [made]

    def _one_return(self, test: ast.expr, yes: ast.stmt, no: ast.stmt) -> ast.stmt | None:
        if not (isinstance(yes, ast.Return) and isinstance(no, ast.Return) and yes.value and no.value):
            return None
        truths = [part.value if isinstance(part, ast.Constant) else None for part in (yes.value, no.value)]
        function = ast.Name("bool", ast.Load())
        if truths[0] is True and truths[1] is False and self._scope.builtin(function, ("bool",)):
            return ast.Return(test if _is_truth(test) else ast.Call(function, [test], []))
        if truths[0] is False and truths[1] is True:
            other = negated(test, self._scope)
            return ast.Return(other if _is_truth(other) else ast.UnaryOp(ast.Not(), test))
        return ast.Return(ast.IfExp(test, yes.value, no.value))

    def _branches(self, statement: ast.stmt, guarded: bool) -> list[ast.stmt] | None:
        """``return a if c else b`` -> ``if c: return a`` ``else: return b``; also for ``x = ...``."""
        value = getattr(statement, "value", None)
        if not isinstance(value, ast.IfExp):
            return None
        if isinstance(statement, ast.Return):
            return [ast.If(value.test, [ast.Return(value.body)], [ast.Return(value.orelse)])]
        name = _assigned(statement)
        if name is None:
            return None
        yes, no = (ast.Assign([ast.Name(name, ast.Store())], part) for part in (value.body, value.orelse))
        return [ast.If(value.test, [yes], [no])]

    def _apart(self, statement: ast.stmt, guarded: bool) -> list[ast.stmt] | None:
        """``x, y = a, b`` -> ``x = a``, ``y = b``, where ``b`` does not use ``x``."""
        if guarded or not isinstance(statement, ast.Assign) or len(statement.targets) != 1:
            return None
        left, right = statement.targets[0], statement.value
        if not isinstance(left, ast.Tuple) or not isinstance(right, ast.Tuple) or len(left.elts) != len(right.elts):
            return None
        names = [one.id for one in left.elts if isinstance(one, ast.Name)]
        if len(set(names)) != len(left.elts) or set(names) & self._scope.shared or contains([right], ast.Starred):
            return None
        if any(names[at] in used_names(right.elts[at + 1 :]) for at in range(len(names))):
            return None
        return [ast.Assign([target], value) for target, value in zip(left.elts, right.elts, strict=True)]

    def _merged_tests(self, statement: ast.stmt, guarded: bool) -> list[ast.stmt] | None:
        """``if a:`` ``if b:`` -> ``if a and b:``, and the other way round."""
        if not isinstance(statement, ast.If) or statement.orelse:
            return None
        test, body = statement.test, statement.body
        inner = body[0] if len(body) == 1 else None
        if isinstance(inner, ast.If) and not inner.orelse:
            return [ast.If(ast.BoolOp(ast.And(), [test, inner.test]), self._block(inner.body, guarded), [])]
        if isinstance(test, ast.BoolOp) and isinstance(test.op, ast.And):
            rest = test.values[1] if len(test.values) == 2 else ast.BoolOp(ast.And(), test.values[1:])
            return [ast.If(test.values[0], [ast.If(rest, self._block(body, guarded), [])], [])]
        return None

    def _swapped(self, statement: ast.stmt, guarded: bool) -> list[ast.stmt] | None:
        """``if c: a`` ``else: b`` -> ``if not c: b`` ``else: a``."""
        if not isinstance(statement, ast.If) or not statement.orelse or isinstance(statement.orelse[0], ast.If):
            return None
        yes, no = (self._block(block, guarded) for block in (statement.body, statement.orelse))
        return [ast.If(negated(statement.test, self._scope), no, yes)]

    def _augmented(self, statement: ast.stmt, guarded: bool) -> list[ast.stmt] | None:
        """``x += e`` -> ``x = x + e`` and the other way round, where ``x`` is a number, text or tuple."""
        if isinstance(statement, ast.AugAssign) and isinstance(statement.target, ast.Name):
            name = statement.target.id
            load = ast.Name(name, ast.Load())
            if self._scope.kind(load) not in IMMUTABLE:
                return None
            return [ast.Assign([ast.Name(name, ast.Store())], ast.BinOp(load, statement.op, statement.value))]
        found = _assigned(statement)
        if found is None or not isinstance(statement, ast.Assign) or not isinstance(statement.value, ast.BinOp):
            return None
        value = statement.value
        if (
            not isinstance(value.left, ast.Name)
            or value.left.id != found
            or self._scope.kind(value.left) not in IMMUTABLE
        ):
            return None
        return [ast.AugAssign(ast.Name(found, ast.Store()), value.op, value.right)]

    def _named_part(self, statement: ast.stmt, guarded: bool) -> list[ast.stmt] | None:
        """``return f(e)`` -> ``x = e``, ``return f(x)``, where nothing is evaluated before ``e``."""
        value = statement.value if isinstance(statement, ast.Return) else None
        if not isinstance(value, ast.Call) or not value.args or not isinstance(value.args[0], ast.Call | ast.BinOp):
            return None
        function = value.func
        named = isinstance(function, ast.Name) and function.id not in self._scope.bound
        if not named and not (isinstance(function, ast.Attribute) and isinstance(function.value, ast.Constant)):
            return None
        name = self._fresh("local")
        call = ast.Call(function, [ast.Name(name, ast.Load()), *value.args[1:]], value.keywords)
        return [ast.Assign([ast.Name(name, ast.Store())], value.args[0]), ast.Return(call)]

    def _named_result(self, statement: ast.stmt, guarded: bool) -> list[ast.stmt] | None:
        """``return e`` -> ``x = e``, ``return x``."""
        value = statement.value if isinstance(statement, ast.Return) else None
        if value is None or isinstance(value, ast.Name | ast.Constant | ast.GeneratorExp):
            return None
        name = self._fresh("local")
        return [ast.Assign([ast.Name(name, ast.Store())], value), ast.Return(ast.Name(name, ast.Load()))]


def _assigned(statement: ast.stmt) -> str | None:
    """The one name that a statement assigns to."""
    if isinstance(statement, ast.Assign) and len(statement.targets) == 1 and isinstance(statement.targets[0], ast.Name):
        return statement.targets[0].id
    return None


def _ends(body: Sequence[ast.stmt]) -> bool:
    """Whether nothing after the block is reached from it."""
    last = body[-1]
    if isinstance(last, ast.If):
        return bool(last.orelse) and _ends(last.body) and _ends(last.orelse)
    return isinstance(last, _ENDS)


def _is_truth(test: ast.expr) -> bool:
    """Whether an expression is True or False whatever the types in it."""
    if isinstance(test, ast.UnaryOp):
        return isinstance(test.op, ast.Not)
    return (
        isinstance(test, ast.Compare)
        and isinstance(test.ops[-1], ast.In | ast.NotIn | ast.Is | ast.IsNot)
        and (len(test.ops) == 1)
    )
