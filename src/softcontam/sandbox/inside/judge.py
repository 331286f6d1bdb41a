"""The process of the tests: they call the program over a channel and see plain values only.

Nothing of the tested program runs here, so that it can neither patch what the tests rely on, nor read the nonce, nor
end them early. The nonce is handed back after the last statement of the tests, and only then.
"""

from __future__ import annotations

import ast
import builtins
import contextlib
import importlib
import linecache
import sys
import traceback
from collections import deque
from collections.abc import Callable, Iterator
from typing import Any

from softcontam.sandbox.inside.guest import MAX_TEXT, describe
from softcontam.sandbox.inside.wire import Channel, decode, encode

_BUILTINS = frozenset(vars(builtins))
_MODULES = frozenset(sys.stdlib_module_names) - {"antigravity", "this", "idlelib", "turtledemo"}


class ProgramGone(BaseException):
    """The program's process ended while a test was waiting for it."""


class CannotCross(BaseException):
    """The tests hand the program a value that no message can carry."""


class Held:
    """A handle of an object of the program that is no plain value. It equals nothing but itself."""

    __slots__ = ("_index", "_judge")

    def __init__(self, judge: Judge, index: int) -> None:
        object.__setattr__(self, "_judge", judge)
        object.__setattr__(self, "_index", index)

    def __call__(self, *args: Any, **kwargs: Any) -> Any:
        """Call the object in the program's process."""
        return self._judge.call(self._index, args, kwargs)

    def __getattr__(self, name: str) -> Any:
        return self._judge.ask({"op": "attribute", "on": self._index, "name": name})

    def __setattr__(self, name: str, value: Any) -> None:
        self._judge.ask({"op": "set", "on": self._index, "name": name, "value": self._judge.encode(value)})

    def __getitem__(self, key: Any) -> Any:
        return self._judge.ask({"op": "item", "on": self._index, "key": self._judge.encode(key)})

    def __len__(self) -> int:
        return int(self._judge.ask({"op": "length", "on": self._index}))

    def __iter__(self) -> Iterator[Any]:
        return iter(self._judge.ask({"op": "values", "on": self._index}))

    def __contains__(self, value: Any) -> bool:
        return any(value == part for part in self)

    def __bool__(self) -> bool:
        return self._judge.ask({"op": "true", "on": self._index}) is True

    def __str__(self) -> str:
        return str(self._judge.ask({"op": "text", "on": self._index}))

    def __repr__(self) -> str:
        return str(self._judge.ask({"op": "repr", "on": self._index}))

    def __eq__(self, other: object) -> bool:
        return isinstance(other, Held) and other._index == self._index

    def __hash__(self) -> int:
        return hash(self._index)


class Judge:
    """Runs the tests of one program."""

    def __init__(self, channel: Channel) -> None:
        self.channel = channel
        self.functions: list[Callable[..., Any]] = []
        self.from_program: BaseException | None = None

    def run(self, tests: str, setup: str, entry_points: list[str], nonce: str) -> dict[str, str]:
        """Run the tests to their end; the nonce is in what is returned only if they got there.

        ``setup`` ran with the program; the names that it binds are the program's whatever they are called.
        """
        first = self.channel.receive()
        if first is None:
            return {"outcome": "gone", "detail": "the program ended before its tests began"}
        if first.get("op") != "ready":
            return {
                "outcome": "memory" if first.get("type") == "MemoryError" else "exception",
                "detail": f"the program raised {first.get('type')}: {first.get('text')}"[:MAX_TEXT],
            }
        try:
            tree = ast.parse(tests)
            code = compile(tree, "tests.py", "exec")
        except (SyntaxError, ValueError) as error:
            return {"outcome": "unfit", "detail": f"the tests are no Python code: {error}"}
        linecache.cache["tests.py"] = (len(tests), None, tests.splitlines(keepends=True), "tests.py")
        try:
            names = self._names(first.get("names"), tree, {*entry_points, *_bound(setup)})
            exec(code, names)
        except BaseException as error:
            return self._failed(error)
        return {"outcome": "pass", "nonce": nonce}

    def call(self, index: int, args: tuple[Any, ...], kwargs: dict[str, Any]) -> Any:
        """Call a function of the program; lists and the like that it changed are changed here too."""
        encoded = {name: self.encode(value) for name, value in kwargs.items()}
        message = {"op": "call", "on": index, "args": [self.encode(value) for value in args], "kwargs": encoded}
        by_place: dict[int | str, Any] = dict(enumerate(args))
        by_place.update(kwargs)
        return self.ask(message, by_place)

    def ask(self, message: dict[str, Any], arguments: dict[int | str, Any] | None = None) -> Any:
        """Send a request and return the value of its answer, or raise what the program raised.

        Args:
            arguments: by place or name, those whose content the program may have changed.
        """
        self.channel.send(message)
        while (reply := self.channel.receive()) is not None:
            if reply.get("op") != "call_back":
                break
            self.channel.send(self._called_back(reply))
        if reply is None:
            raise ProgramGone
        for place, value in reply.get("changed", []):
            _replace_content((arguments or {})[place], self.decode(value))
        if reply.get("op") == "raised":
            self.from_program = self._exception(reply)
            raise self.from_program
        return self.decode(reply["value"])

    def encode(self, value: Any) -> Any:
        """A value for the program."""
        return encode(value, self._other)

    def decode(self, value: Any) -> Any:
        """A value from the program."""
        return decode(value, self._received)

    def _names(self, listed: Any, tests: ast.Module, own: set[str]) -> dict[str, Any]:
        """What the tests refer to: modules of the standard library, for the rest names of the program.

        A program can't slip the tests a builtin or a module of its own making: these are the judge's, except names of
        ``own`` (entry points, and what the set-up code binds) and modules' names that the tests call.
        """
        used = {node.id for node in ast.walk(tests) if isinstance(node, ast.Name)}
        called = {n.func.id for n in ast.walk(tests) if isinstance(n, ast.Call) and isinstance(n.func, ast.Name)}
        names: dict[str, Any] = {"__name__": "__tests__"}
        for name in sorted((used & _MODULES) - called - own):
            with contextlib.suppress(ImportError):  # of another system, or a name that the tests bind themselves
                names[name] = importlib.import_module(name)
        for name, value in listed:
            hidden = name in names or (name in _BUILTINS and name not in own)
            if name in used and not name.startswith("__") and not hidden:
                names[name] = self.decode(value)
        return names

    def _other(self, value: Any) -> dict[str, Any]:
        if isinstance(value, Held):
            return {"t": "held", "v": value._index}
        if callable(value) and not isinstance(value, type):
            self.functions.append(value)
            return {"t": "function", "v": len(self.functions) - 1}
        raise CannotCross(type(value).__name__)

    def _received(self, value: dict[str, Any]) -> Any:
        if value["t"] != "held":
            raise ValueError(f"unknown kind of value {value['t']!r}")
        return Held(self, int(value["v"]))

    def _called_back(self, message: dict[str, Any]) -> dict[str, Any]:
        try:
            result = self.functions[message["on"]](*map(self.decode, message["args"]))
            return {"op": "answer", "value": self.encode(result)}
        except (Exception, CannotCross) as error:
            return {"op": "answer", **describe(error)}

    def _exception(self, reply: dict[str, Any]) -> BaseException:
        """What the program raised as the nearest built-in exception, or a RuntimeError that names it.

        A StopIteration would end a loop of the tests (``all(map(...))``) before its time.
        """
        name, text = str(reply.get("type")), str(reply.get("text"))
        for base in map(str, reply.get("bases") or [name]):
            kind = getattr(builtins, base, None)
            if not isinstance(kind, type) or not issubclass(kind, Exception) or kind is Exception:
                continue
            if issubclass(kind, StopIteration | StopAsyncIteration):
                break
            with contextlib.suppress(TypeError):  # UnicodeDecodeError and the like want just their own arguments
                return kind(*self.decode(reply["args"])) if base == name and "args" in reply else kind(text)
        return RuntimeError(f"{name}: {text}")

    def _failed(self, error: BaseException) -> dict[str, str]:
        """What it means that the tests ended with an exception."""
        if isinstance(error, ProgramGone):
            return {"outcome": "gone", "detail": f"the program ended in: {_test_line(error)}"}
        if isinstance(error, CannotCross):
            return {"outcome": "exception", "detail": f"a value of type {error} can't be handed to the program"}
        said = describe(error)
        text = f"{said['type']}: {said['text']}" if said["text"] else said["type"]
        if error is self.from_program:
            outcome = "memory" if isinstance(error, MemoryError) else "exception"
            return {"outcome": outcome, "detail": f"{text} in: {_test_line(error)}"}
        wrong = isinstance(error, AssertionError)
        return {"outcome": "wrong" if wrong else "exception", "detail": f"{text} in: {_test_line(error)}"}


def _bound(code: str) -> set[str]:
    """Names that code binds; none where it is no code."""
    try:
        tree = ast.parse(code)
    except (SyntaxError, ValueError):
        return set()
    return {node.id for node in ast.walk(tree) if isinstance(node, ast.Name) and isinstance(node.ctx, ast.Store)}


def _replace_content(target: Any, value: Any) -> None:
    """Give a list, set, dict, deque or bytearray of the tests the content that the program left in it."""
    if type(value) is not type(target) or not isinstance(target, list | bytearray | dict | set | deque):
        return
    if isinstance(target, list | bytearray):
        target[:] = value
    elif isinstance(target, dict | set):
        target.clear()
        target.update(value)
    else:
        target.clear()
        target.extend(value)


def _test_line(error: BaseException) -> str:
    """The innermost line of the tests that the exception went through."""
    lines = [frame.line for frame in traceback.extract_tb(error.__traceback__) if frame.filename == "tests.py"]
    return (lines[-1] or "")[:MAX_TEXT] if lines else "the tests"
