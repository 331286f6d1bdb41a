"""What is known of the values and names of one function without running it.

Everything here errs on the side of not knowing. What is taken for granted: values are of types whose operators behave
as those of Python's own types and have no side effects (arrays of numpy are not), local names are bound before they are
read, and code does not come near the limit of recursion. Everything else has to be shown.
"""

from __future__ import annotations

import ast
import builtins
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass

from softcontam.duplicates.rules.python_scopes import (
    Comprehension,
    Function,
    bound_names,
    declared,
    free_names,
    function_args,
    identifiers,
    own_nodes,
    target_names,
    used_names,
)

CONSUMERS = frozenset("all any dict frozenset list max min set sorted sum tuple".split())
"""Builtins that use up an iterable before they return, and keep nothing of a generator."""

PURE = CONSUMERS | frozenset(
    "abs bin bool chr complex divmod enumerate float hex int isinstance len oct ord pow range repr reversed round "
    "slice str zip".split()
)
"""Builtins that change nothing, but for iterators that they use up."""

NUMBERS = ("int", "number")
"""Kinds of value that are numbers; ``int`` takes in bool."""

IMMUTABLE = ("int", "number", "str", "tuple")
"""Kinds of value that nothing can change."""

_INTEGERS = frozenset("len ord".split())
_INTEGER_FUNCTIONS = frozenset("comb factorial gcd isqrt lcm perm".split())
_RESULTS = {"int": "int", "float": "number", "str": "str", "chr": "str", "bin": "str", "hex": "str", "bool": "int"} | {
    name: name for name in ("list", "tuple", "set", "dict", "range")
}
_TEXT_METHODS = {
    **dict.fromkeys("capitalize join lower lstrip replace rstrip strip swapcase title upper zfill".split(), "str"),
    **dict.fromkeys("split splitlines rsplit".split(), "list"),
    **dict.fromkeys("count find index isalnum isalpha isdigit islower isspace isupper rfind startswith".split(), "int"),
    **dict.fromkeys(["endswith"], "int"),
}
_DISPLAYS: tuple[tuple[type[ast.expr], str], ...] = (
    (ast.JoinedStr, "str"),
    (ast.List, "list"),
    (ast.ListComp, "list"),
    (ast.Tuple, "tuple"),
    (ast.Dict, "dict"),
    (ast.DictComp, "dict"),
    (ast.Set, "set"),
    (ast.SetComp, "set"),
)
_UNSEEN = "unseen"  # kind of a name none of whose bindings has been looked at yet


@dataclass(frozen=True)
class Module:
    """What is known of a whole module.

    ``taken``: names that it binds anywhere; a builtin of that name is not relied on. ``may_stop``: StopIteration may be
    raised, which a generator turns into an error and a list takes for its end.
    """

    taken: frozenset[str]
    may_stop: bool

    @staticmethod
    def of(tree: ast.Module) -> Module:
        """Read it off the syntax tree."""
        taken: set[str] = set()
        for node in ast.walk(tree):
            if isinstance(node, ast.Name) and not isinstance(node.ctx, ast.Load):
                taken.add(node.id)
            elif isinstance(node, ast.arg):
                taken.add(node.arg)
            elif isinstance(node, Function | ast.ClassDef):
                taken.add(node.name)
            elif isinstance(node, ast.alias) and node.name == "*":
                taken |= set(dir(builtins))
            elif isinstance(node, ast.alias):
                taken.add((node.asname or node.name).split(".")[0])
            elif isinstance(node, ast.ExceptHandler) and node.name:
                taken.add(node.name)
        return Module(frozenset(taken), bool(identifiers(tree) & {"next", "__next__", "StopIteration"}))


class Scope:
    """What is known of the names of one function.

    ``shared`` are names whose value may be read or changed where it can't be followed: by functions or lambdas inside,
    by generators that are used later, through ``global``, ``nonlocal`` or ``del``.
    """

    def __init__(self, function: ast.FunctionDef, module: Module) -> None:
        self.function = function
        self.module = module
        self.bound = bound_names(function)
        self.parameters = {arg.arg for arg in function_args(function)}
        self.shared = declared(function) | self._used_later()
        hidden = {name for node in ast.walk(function) if node is not function for name in _bound_inside(node)}
        known = self.bound - self.parameters - self.shared - hidden
        self._kinds: dict[str, str | None] = dict.fromkeys(known, _UNSEEN)
        self._infer()

    def builtin(self, node: ast.AST, names: Iterable[str]) -> bool:
        """Whether a node is one of these builtins."""
        return (
            isinstance(node, ast.Name)
            and node.id in names
            and node.id not in self.module.taken
            and hasattr(builtins, node.id)
        )

    def call_of(self, node: ast.AST, names: Iterable[str]) -> bool:
        """Whether a node is a call of one of these builtins, with plain arguments only."""
        return (
            isinstance(node, ast.Call)
            and self.builtin(node.func, names)
            and not node.keywords
            and not any(isinstance(arg, ast.Starred) for arg in node.args)
        )

    def kind(self, node: ast.expr, inner: Mapping[str, str | None] | None = None) -> str | None:
        """``int`` (also bool), ``number``, ``str``, ``list``, ... where the value is one for certain, else None.

        Args:
            inner: kinds of names that a comprehension around the expression binds.
        """
        found = self._kind(node, inner or {})
        return None if found == _UNSEEN else found

    def lazy(self, node: ast.AST) -> list[ast.GeneratorExp]:
        """Generators inside that are not used up where they stand."""
        at_once = {id(node)}
        for inner in ast.walk(node):
            if isinstance(inner, ast.Call):
                function = inner.func
                joins = isinstance(function, ast.Attribute) and function.attr == "join"
                of_text = joins and isinstance(function, ast.Attribute) and isinstance(function.value, ast.Constant)
                if of_text or self.builtin(function, CONSUMERS):
                    at_once |= {id(argument) for argument in inner.args}
        return [inner for inner in ast.walk(node) if isinstance(inner, ast.GeneratorExp) and id(inner) not in at_once]

    def _used_later(self) -> set[str]:
        """Names that code inside may use at another time than where it stands."""
        used = {name for generator in self.lazy(self.function) for name in used_names(generator)}
        for node in ast.walk(self.function):
            if node is not self.function and isinstance(node, Function | ast.Lambda):
                used |= free_names(node)
            elif isinstance(node, ast.ClassDef):
                used |= used_names(node)
            elif isinstance(node, ast.Name) and isinstance(node.ctx, ast.Del):
                used.add(node.id)
        return used

    def kinds_inside(self, generators: Sequence[ast.comprehension]) -> dict[str, str | None]:
        """Kinds of the names that a comprehension binds."""
        inner: dict[str, str | None] = {}
        for one in generators:
            inner |= self._target_kinds(one.target, one.iter, inner)
        return inner

    def _infer(self) -> None:
        """Kinds of local names from all of their bindings, until nothing changes."""
        bindings = list(self._bindings())
        for _ in range(4 * len(self._kinds) + 4):
            before = dict(self._kinds)
            for name, value in bindings:
                found = value if isinstance(value, str) or value is None else self._kind(value, {})
                if name in self._kinds:
                    self._kinds[name] = _joined(self._kinds[name], found)
            if self._kinds == before:
                return

    def _bindings(self) -> Iterator[tuple[str, ast.expr | str | None]]:
        for node in own_nodes(self.function):
            known: set[str] = set()
            if isinstance(node, ast.Assign):
                for target in node.targets:
                    if isinstance(target, ast.Name):
                        known.add(target.id)
                        yield target.id, node.value
            elif isinstance(node, ast.AnnAssign) and isinstance(node.target, ast.Name) and node.value:
                known.add(node.target.id)
                yield node.target.id, node.value
            elif isinstance(node, ast.AugAssign) and isinstance(node.target, ast.Name):
                known.add(node.target.id)
                yield node.target.id, ast.BinOp(ast.Name(node.target.id, ast.Load()), node.op, node.value)
            elif isinstance(node, ast.For):
                kinds = self._target_kinds(node.target, node.iter, {})
                known |= set(kinds)
                yield from kinds.items()
            if isinstance(node, ast.Assign | ast.AnnAssign | ast.AugAssign | ast.For | ast.With | ast.Delete):
                parts = [part for part in ast.iter_child_nodes(node) if isinstance(part, ast.expr | ast.withitem)]
                for inner in (inner for part in parts for inner in ast.walk(part)):
                    if isinstance(inner, ast.Name) and not isinstance(inner.ctx, ast.Load) and inner.id not in known:
                        yield inner.id, None
            elif isinstance(node, ast.FunctionDef | ast.ClassDef):
                yield node.name, None
            elif isinstance(node, ast.alias):
                yield (node.asname or node.name).split(".")[0], None
            elif isinstance(node, ast.ExceptHandler) and node.name:
                yield node.name, None

    def _target_kinds(
        self, target: ast.expr, values: ast.expr, inner: Mapping[str, str | None]
    ) -> dict[str, str | None]:
        kinds: dict[str, str | None] = dict.fromkeys(target_names(target))
        if isinstance(target, ast.Name) and self.call_of(values, ("range",)):
            kinds[target.id] = "int"
        elif isinstance(target, ast.Name) and self._kind(values, inner) in ("str", "range"):
            kinds[target.id] = "str" if self._kind(values, inner) == "str" else "int"
        elif isinstance(target, ast.Tuple) and self.call_of(values, ("enumerate",)) and len(target.elts) == 2:
            first = target.elts[0]
            assert isinstance(values, ast.Call)
            if isinstance(first, ast.Name) and len(values.args) == 1:
                kinds[first.id] = "int"
        return kinds

    def _kind(self, node: ast.expr, inner: Mapping[str, str | None]) -> str | None:
        for display, kind in _DISPLAYS:
            if isinstance(node, display):
                return kind
        if isinstance(node, ast.Constant):
            return {bool: "int", int: "int", float: "number", str: "str"}.get(type(node.value))
        if isinstance(node, ast.Name):
            return inner[node.id] if node.id in inner else self._kinds.get(node.id)
        if isinstance(node, ast.UnaryOp):
            operand = self._kind(node.operand, inner)
            return "int" if isinstance(node.op, ast.Not) else operand if operand in (*NUMBERS, _UNSEEN) else None
        if isinstance(node, ast.BinOp):
            return _arithmetic(node.op, self._kind(node.left, inner), self._kind(node.right, inner), node.right)
        if isinstance(node, ast.IfExp):
            return _joined(self._kind(node.body, inner), self._kind(node.orelse, inner))
        if isinstance(node, ast.Compare):
            certain = all(isinstance(op, ast.In | ast.NotIn | ast.Is | ast.IsNot) for op in node.ops)
            known = all(self._kind(part, inner) for part in (node.left, *node.comparators))
            return "int" if certain or known else None
        if isinstance(node, ast.Subscript):
            base = self._kind(node.value, inner)
            if base == _UNSEEN or base == "str":
                return base
            return base if isinstance(node.slice, ast.Slice) and base in ("list", "tuple") else None
        return self._call_kind(node, inner) if isinstance(node, ast.Call) else None

    def _call_kind(self, node: ast.Call, inner: Mapping[str, str | None]) -> str | None:
        if self.builtin(node.func, ("sorted",)):
            return "list"
        if self.call_of(node, _INTEGERS):
            return "int"
        if self.call_of(node, _RESULTS) and isinstance(node.func, ast.Name):
            return _RESULTS[node.func.id]
        if self.call_of(node, ("abs",)) and len(node.args) == 1:
            kind = self._kind(node.args[0], inner)
            return kind if kind in (*NUMBERS, _UNSEEN) else None
        if self.call_of(node, ("max", "min")) and len(node.args) > 1:
            kind = self._kind(node.args[0], inner)
            for other in node.args[1:]:
                kind = _joined(kind, self._kind(other, inner))
            return kind
        if isinstance(node.func, ast.Attribute) and not node.keywords:
            base = node.func.value
            if isinstance(base, ast.Name) and base.id == "math" and base.id not in self.bound:
                return "int" if node.func.attr in _INTEGER_FUNCTIONS else "number" if node.func.attr == "sqrt" else None
            kind = self._kind(base, inner)
            return _UNSEEN if kind == _UNSEEN else _TEXT_METHODS.get(node.func.attr) if kind == "str" else None
        return None


def _joined(first: str | None, second: str | None) -> str | None:
    """The kind of a value that is of one kind or of the other."""
    if first == _UNSEEN or second == _UNSEEN:
        return second if first == _UNSEEN else first
    if first in NUMBERS and second in NUMBERS:
        return "int" if first == second == "int" else "number"
    return first if first == second else None


def _arithmetic(op: ast.operator, left: str | None, right: str | None, right_node: ast.expr) -> str | None:
    """The kind that an operator gives."""
    if _UNSEEN in (left, right) and None not in (left, right):
        return _UNSEEN
    if left in NUMBERS and right in NUMBERS:
        if isinstance(op, ast.Pow):
            positive = (
                isinstance(right_node, ast.Constant) and isinstance(right_node.value, int) and right_node.value >= 0
            )
            return "int" if left == right == "int" and positive else None
        return "number" if isinstance(op, ast.Div) else _joined(left, right)
    if isinstance(op, ast.Add) and left in ("str", "tuple"):
        return left
    if isinstance(op, ast.Add) and left == right == "list":
        return left
    if isinstance(op, ast.Add | ast.Sub | ast.Div | ast.FloorDiv | ast.Pow) and (left in NUMBERS or right in NUMBERS):
        return "number"
    if isinstance(op, ast.Mult) and {left, right} & {"str", "list", "tuple"} and "int" in (left, right):
        return left if right == "int" else right
    return "str" if isinstance(op, ast.Mod) and left == "str" else None


def _bound_inside(node: ast.AST) -> set[str]:
    """Names that a scope inside a function binds for itself."""
    if isinstance(node, Function | ast.Lambda):
        return bound_names(node)
    if isinstance(node, Comprehension):
        return {name for one in node.generators for name in target_names(one.target)}
    return set()


def reads_outside(scope: Scope, name: str, region: Sequence[ast.stmt | ast.expr]) -> bool:
    """Whether the function may read the value that ``name`` has after ``region`` anywhere else.

    Reads in the body of another loop over that name read what that loop has bound.
    """
    inside = {id(node) for node in region}

    def read(node: ast.AST) -> bool:
        if id(node) in inside:
            return False
        if isinstance(node, ast.For) and name in target_names(node.target) and not _holds(node, inside):
            return any(read(part) for part in (node.iter, *node.orelse))
        if isinstance(node, ast.AugAssign) and isinstance(node.target, ast.Name) and node.target.id == name:
            return True
        plain = isinstance(node, ast.stmt | ast.ExceptHandler) and not isinstance(node, Function | ast.ClassDef)
        if plain or _holds(node, inside):
            return any(read(part) for part in ast.iter_child_nodes(node))
        return name in used_names(node, loads_only=True)

    return any(read(statement) for statement in scope.function.body)


def _holds(node: ast.AST, inside: set[int]) -> bool:
    return any(id(inner) in inside for inner in ast.walk(node))
