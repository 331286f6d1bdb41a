"""The process of the tested program: runs it, then answers the calls that the tests make."""

from __future__ import annotations

import os
import sys
import types
from collections import Counter, OrderedDict, defaultdict, deque
from collections.abc import Callable
from typing import Any

from softcontam.sandbox.inside.wire import Channel, decode, encode

MAX_TEXT = 300
"""Characters of an exception's text that are handed on."""

_SCALARS = (str, int, float, bool, type(None))


_MUTABLE = (list, dict, set, bytearray, deque, OrderedDict, defaultdict, Counter)


def describe(error: BaseException) -> dict[str, Any]:
    """An exception as plain data: its type's name, its text, and the names of its type and of the bases.

    A 32-bit interpreter (WebAssembly) says OverflowError where one of 64 bits tries to allocate, and fails.
    """
    try:
        text = str(error)[:MAX_TEXT]
    except Exception:
        text = "(its text raises an exception)"
    too_large = sys.maxsize < 2**32 and type(error) is OverflowError and "index-sized integer" in text
    names = ["MemoryError"] if too_large else [str(base.__name__) for base in type(error).__mro__]
    return {"type": names[0], "text": text, "bases": names}


class Guest:
    """Holds the program's names and the objects that the tests have handles of."""

    def __init__(self, channel: Channel) -> None:
        self.channel = channel
        # not __main__: what stands under `if __name__ == "__main__"` reads input and prints, and no test wants it
        module = types.ModuleType("program")
        sys.modules["program"] = module
        self.names: dict[str, Any] = module.__dict__
        self.held: list[Any] = []
        self.index_of: dict[int, int] = {}

    def run(self, program: str, setup: str) -> None:
        """Run the program, then the set-up code; say which names there are, or what was raised."""
        try:
            exec(compile(program, "program.py", "exec"), self.names)
            exec(compile(setup, "setup.py", "exec"), self.names)
        except BaseException as error:
            self.channel.send({"op": "failed", **describe(error)})
            return
        self.channel.send({"op": "ready", "names": self._public_names()})
        self.serve()

    def serve(self) -> Any:
        """Answer calls until the other side is gone, or until the answer to a call-back comes, which is returned."""
        while (message := self.channel.receive()) is not None:
            if message["op"] == "answer":
                return message
            try:
                answer = self._answer(message)
            except BaseException as error:
                answer = {"op": "raised", **describe(error)}
            self.channel.send(answer)
        os._exit(0)

    def _answer(self, message: dict[str, Any]) -> dict[str, Any]:
        operation, target = message["op"], self.held[message["on"]]
        if operation == "call":
            return self._call(target, message)
        if operation == "attribute":
            return {"op": "value", "value": self._encode(getattr(target, message["name"]))}
        if operation == "set":
            setattr(target, message["name"], self._decode(message["value"]))
            return {"op": "value", "value": None}
        if operation == "item":
            return {"op": "value", "value": self._encode(target[self._decode(message["key"])])}
        reads: dict[str, Callable[[Any], Any]] = {"length": len, "text": str, "repr": repr, "true": bool}
        if operation == "values":
            return {"op": "value", "value": {"t": "iterator", "v": [self._encode(part) for part in target]}}
        return {"op": "value", "value": self._encode(reads[operation](target))}

    def _call(self, target: Any, message: dict[str, Any]) -> dict[str, Any]:
        """The result or the exception, and what the lists and the like among the arguments hold now."""
        arguments = self._decode(message["args"])
        named = {name: self._decode(value) for name, value in message["kwargs"].items()}
        try:
            answer = {"op": "value", "value": self._encode(target(*arguments, **named))}
        except BaseException as error:
            answer = {"op": "raised", **describe(error), "args": self._encode(list(error.args))}
        places = [*enumerate(arguments), *named.items()]
        changed = [[place, self._encode(value)] for place, value in places if type(value) in _MUTABLE]
        return {**answer, "changed": changed}

    def _public_names(self) -> list[list[Any]]:
        names: list[list[Any]] = []
        for name, value in list(self.names.items()):
            if not isinstance(name, str) or name.startswith("__"):
                continue
            if type(value) in _SCALARS or type(value) in (list, tuple, dict, set, frozenset):
                names.append([name, self._encode(value)])
            else:
                names.append([name, self._hold(value)])
        return names

    def _hold(self, value: Any) -> dict[str, Any]:
        if id(value) not in self.index_of:
            self.index_of[id(value)] = len(self.held)
            self.held.append(value)
        return {"t": "held", "v": self.index_of[id(value)]}

    def _encode(self, value: Any) -> Any:
        return encode(value, self._hold)

    def _decode(self, value: Any) -> Any:
        return decode(value, self._received)

    def _received(self, value: dict[str, Any]) -> Any:
        """A handle given back, or a function of the tests, which is called over the channel."""
        if value["t"] == "held":
            return self.held[value["v"]]

        def call_back(*arguments: Any) -> Any:
            self.channel.send({"op": "call_back", "on": value["v"], "args": [self._encode(a) for a in arguments]})
            answer = self.serve()
            if "type" in answer:
                raise RuntimeError(f"{answer['type']}: {answer['text']}")
            return self._decode(answer["value"])

        return call_back


def run_stdio(program: str) -> int:
    """Run a program that reads standard input and writes standard output; returns its exit status."""
    try:
        exec(compile(program, "program.py", "exec"), {"__name__": "__main__", "__builtins__": __builtins__})
        status = 0
    except SystemExit as end:
        status = end.code if isinstance(end.code, int) else int(end.code is not None)
    except BaseException as error:
        said = describe(error)
        sys.stderr.write(f"{said['type']}: {said['text']}\n")
        status = MEMORY_STATUS if said["type"] == "MemoryError" else 1
    sys.stdout.flush()
    sys.stderr.flush()
    return status


MEMORY_STATUS = 77
"""Exit status of :func:`run_stdio` after a MemoryError."""
