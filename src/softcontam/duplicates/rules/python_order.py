"""Another order of Python code that makes no difference: ``reorder`` of a rule-made SemD.

Swapped are neighbouring assignments that know nothing of each other, neighbouring functions and imports of the module,
the operands of ``+``, ``*`` (where one is a number) and ``==``, the sides of ``<`` and its like, and keyword arguments
of ``sorted``, ``max`` and ``min``. At least one of two swapped expressions cannot fail and uses up no iterable, so
that neither an exception nor an iterator shows which came first.
"""

from __future__ import annotations

import ast
import random
from collections.abc import Callable, Sequence

from softcontam.duplicates.rules.python_kinds import NUMBERS, PURE, Module, Scope
from softcontam.duplicates.rules.python_scopes import Comprehension, used_names

_MIRRORED: dict[type[ast.cmpop], type[ast.cmpop]] = {
    ast.Eq: ast.Eq,
    ast.NotEq: ast.NotEq,
    ast.Lt: ast.Gt,
    ast.Gt: ast.Lt,
    ast.LtE: ast.GtE,
    ast.GtE: ast.LtE,
}
_STANDARD = frozenset(
    "bisect cmath collections copy datetime functools heapq itertools math operator re string sys".split()
)
_SIZED = ("str", "list", "tuple", "dict", "set", "range")
_PLAIN = (
    ast.Constant,
    ast.Name,
    ast.Tuple,
    ast.List,
    ast.Dict,
    ast.Set,
    ast.BinOp,
    ast.UnaryOp,
    ast.BoolOp,
    ast.Compare,
)
_PARTS = (ast.IfExp, ast.JoinedStr, ast.FormattedValue, ast.Slice, ast.comprehension, *Comprehension.__args__)


def reordered(tree: ast.Module, seed: str, share: float, last: str | None = None) -> ast.Module:
    """The module in another order.

    Args:
        seed: decides which places are changed.
        share: probability for each place that it is.
        last: a function that stays behind the other functions of the module.
    """
    generator = random.Random(seed)

    def take() -> bool:
        return generator.random() < share

    tree = ast.parse(ast.unparse(tree))
    module = Module.of(tree)
    functions = [node for node in ast.walk(tree) if isinstance(node, ast.FunctionDef)]
    for function in functions:
        order = _Order(Scope(function, module), take)
        function.body = [order.visit(statement) for statement in function.body]
        function.body = _pairs_swapped(function.body, order.free_to_swap)
    names = {last} if last else set[str]()
    tree.body = _pairs_swapped(tree.body, lambda one, two: _definitions(one, two, names) and take())
    return ast.parse(ast.unparse(ast.fix_missing_locations(tree)))


class _Order(ast.NodeTransformer):
    """Changes the order inside one function, in place."""

    def __init__(self, scope: Scope, take: Callable[[], bool]) -> None:
        self._scope = scope
        self._take = take
        self._guards = 0  # try and with statements around what is visited

    def free_to_swap(self, first: ast.stmt, second: ast.stmt) -> bool:
        """Whether two neighbouring statements are to be swapped."""
        return self._independent(first, second) and self._take()

    def visit_FunctionDef(self, node: ast.FunctionDef) -> ast.AST:
        """A function inside has a scope of its own, and its own turn."""
        return node

    def visit_ClassDef(self, node: ast.ClassDef) -> ast.AST:
        """So has a class."""
        return node

    def generic_visit(self, node: ast.AST) -> ast.AST:
        """Visit what is inside, and swap statements in blocks where an exception between them is seen by nobody."""
        guard = isinstance(node, ast.Try | ast.With)
        self._guards += guard
        super().generic_visit(node)
        for key in ("body", "orelse"):
            block = getattr(node, key, None)
            if isinstance(block, list) and not self._guards:
                setattr(node, key, _pairs_swapped(block, self.free_to_swap))
        self._guards -= guard
        return node

    def visit_BinOp(self, node: ast.BinOp) -> ast.AST:
        """``a + b`` -> ``b + a``."""
        super().generic_visit(node)
        kinds = (self._scope.kind(node.left), self._scope.kind(node.right))
        numbers = kinds[0] in NUMBERS or kinds[1] in NUMBERS
        if isinstance(node.op, ast.Add | ast.Mult) and numbers and self._exchangeable(node.left, node.right):
            return ast.BinOp(node.right, node.op, node.left) if self._take() else node
        return node

    def visit_Compare(self, node: ast.Compare) -> ast.AST:
        """``a < b`` -> ``b > a``."""
        super().generic_visit(node)
        mirrored = _MIRRORED.get(type(node.ops[0]))
        if len(node.ops) == 1 and mirrored is not None and self._exchangeable(node.left, node.comparators[0]):
            return ast.Compare(node.comparators[0], [mirrored()], [node.left]) if self._take() else node
        return node

    def visit_Call(self, node: ast.Call) -> ast.AST:
        """``sorted(x, key=f, reverse=True)`` -> ``sorted(x, reverse=True, key=f)``."""
        super().generic_visit(node)
        words = node.keywords
        if (
            len(words) == 2
            and all(word.arg for word in words)
            and self._scope.builtin(node.func, ("sorted", "max", "min"))
        ):
            plain = [isinstance(word.value, ast.Lambda) or self._cannot_fail(word.value) for word in words]
            if all(plain) and self._take():
                node.keywords = words[::-1]
        return node

    def _independent(self, first: ast.stmt, second: ast.stmt) -> bool:
        """Whether two assignments to names know nothing of each other."""
        if not (isinstance(first, ast.Assign) and isinstance(second, ast.Assign)):
            return False
        if not all(isinstance(target, ast.Name) for one in (first, second) for target in one.targets):
            return False
        stored = [{target.id for target in one.targets if isinstance(target, ast.Name)} for one in (first, second)]
        if stored[0] & used_names(second) or stored[1] & used_names(first):
            return False
        if (stored[0] | stored[1]) & self._scope.shared:
            return False
        return self._exchangeable(first.value, second.value)

    def _exchangeable(self, first: ast.expr, second: ast.expr) -> bool:
        """Whether it makes no difference which of two expressions is evaluated first."""
        if any(self._fixed(one) for one in (first, second)):
            return True
        safe = self._cannot_fail(first) or self._cannot_fail(second)
        return safe and self._pure(first) and self._pure(second)

    def _fixed(self, node: ast.expr) -> bool:
        """Whether an expression gives the same object whenever it is evaluated, whatever else happens meanwhile."""
        return isinstance(node, ast.Constant) or (isinstance(node, ast.Name) and node.id not in self._scope.shared)

    def _pure(self, node: ast.AST) -> bool:
        """Whether evaluating an expression changes nothing, but for iterators that it uses up."""
        children = [child for child in ast.iter_child_nodes(node) if not isinstance(child, ast.expr_context)]
        if isinstance(node, ast.Subscript):  # reading a place of a defaultdict makes one
            known = self._scope.kind(node.value) in _SIZED[:3] or isinstance(node.slice, ast.Slice)
            return known and all(self._pure(child) for child in children)
        if isinstance(node, ast.Call):
            return self._scope.call_of(node, PURE) and all(self._pure(child) for child in node.args)
        if isinstance(node, ast.operator | ast.unaryop | ast.boolop | ast.cmpop):
            return True
        return isinstance(node, (*_PLAIN, *_PARTS)) and all(self._pure(child) for child in children)

    def _cannot_fail(self, node: ast.expr) -> bool:
        """Whether evaluating an expression raises nothing and uses up nothing, whatever the function is given."""
        if isinstance(node, ast.Constant | ast.Name):
            return True
        if isinstance(node, ast.Tuple | ast.List):
            return all(not isinstance(one, ast.Starred) and self._cannot_fail(one) for one in node.elts)
        if isinstance(node, ast.Dict):
            return not node.keys
        if isinstance(node, ast.UnaryOp):
            known = self._scope.kind(node.operand) in NUMBERS
            return known and not isinstance(node.op, ast.Invert) and self._cannot_fail(node.operand)
        if isinstance(node, ast.BinOp) and isinstance(node.op, ast.Add | ast.Sub | ast.Mult):
            sides = (node.left, node.right)
            return all(self._scope.kind(side) == "int" and self._cannot_fail(side) for side in sides)
        if self._scope.call_of(node, ("len",)):
            assert isinstance(node, ast.Call)
            return len(node.args) == 1 and self._scope.kind(node.args[0]) in _SIZED and self._cannot_fail(node.args[0])
        return (
            self._scope.call_of(node, ("set", "list", "dict", "tuple")) and isinstance(node, ast.Call) and not node.args
        )


def _pairs_swapped(block: Sequence[ast.stmt], free: Callable[[ast.stmt, ast.stmt], bool]) -> list[ast.stmt]:
    """A block with neighbours swapped where they are free to, each statement at most once."""
    made = list(block)
    at = 0
    while at + 1 < len(made):
        if free(made[at], made[at + 1]):
            made[at], made[at + 1] = made[at + 1], made[at]
            at += 1
        at += 1
    return made


def _definitions(first: ast.stmt, second: ast.stmt, last: set[str]) -> bool:
    """Whether two neighbours of a module are imports or functions whose order says nothing."""
    pair = (first, second)
    if all(isinstance(one, ast.Import | ast.ImportFrom) and _standard(one) for one in pair):
        return not used_names(first) & used_names(second)
    if not (isinstance(first, ast.FunctionDef) and isinstance(second, ast.FunctionDef)) or second.name in last:
        return False
    for one, other in (first, second), (second, first):
        arguments = one.args
        fixed = all(
            isinstance(value, ast.Constant) for value in (*arguments.defaults, *filter(None, arguments.kw_defaults))
        )
        if one.decorator_list or not fixed or other.name in _annotations(one) or one.name == other.name:
            return False
    return True


def _annotations(function: ast.FunctionDef) -> set[str]:
    annotated = [node.annotation for node in ast.walk(function.args) if isinstance(node, ast.arg) and node.annotation]
    return used_names([*annotated, *filter(None, [function.returns])])


def _standard(statement: ast.stmt) -> bool:
    """Whether an import is one of modules that do nothing when they are imported."""
    if isinstance(statement, ast.ImportFrom):
        return (statement.module or "") in _STANDARD and all(name.name != "*" for name in statement.names)
    return isinstance(statement, ast.Import) and all(name.name in _STANDARD for name in statement.names)
