"""Messages between the tested program and its tests, and the plain values they may carry.

Program and tests run in two processes that can't see each other's memory, files or processes. Only plain values cross:
numbers, texts, containers and a few standard types, rebuilt from JSON on the other side. An object with an ``__eq__``
of its own therefore never reaches a test; what it is compared with is a handle that equals nothing but itself.
"""

from __future__ import annotations

import builtins
import json
import os
import struct
import sys
from collections import Counter, OrderedDict, defaultdict, deque
from collections.abc import Callable
from datetime import date, datetime, time, timedelta
from decimal import Decimal
from fractions import Fraction
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    import socket  # WASI has none

MAX_MESSAGE = 64 * 2**20
"""Bytes of one message; more is refused by the receiver."""

MAX_ITERATED = 1_000_000
"""Values that are taken from an iterator before it is refused."""

sys.set_int_max_str_digits(0)

_PLAIN = {str, int, bool, type(None), float}
_DATES = {cls.__name__: cls for cls in (date, datetime, time)}
_BUILTIN_TYPES = {
    name: value for name, value in vars(builtins).items() if isinstance(value, type) and not name.startswith("_")
}
_MADE_OF_ITEMS: dict[str, Callable[[Any], Any]] = {
    "tuple": tuple,
    "set": set,
    "frozenset": frozenset,
    "deque": deque,
    "iterator": iter,
    "keys": lambda items: dict.fromkeys(items).keys(),
    "values": lambda items: dict(enumerate(items)).values(),
}
_VIEWS = {type({}.keys()): "keys", type({}.values()): "values"}


class Channel:
    """Length-prefixed JSON messages over a connected socket, or over a pair of file descriptors."""

    def __init__(self, receive: Callable[[int], bytes], send: Callable[[bytes], object]) -> None:
        self._receive, self._send = receive, send

    @classmethod
    def over(cls, connection: socket.socket) -> Channel:
        """A channel over a stream socket."""
        return cls(connection.recv, connection.sendall)

    @classmethod
    def over_descriptors(cls, readable: int, writable: int) -> Channel:
        """A channel over open file descriptors, which needs no call that only sockets know."""

        def send(data: bytes) -> None:
            view = memoryview(data)
            while view:
                view = view[os.write(writable, view) :]

        return cls(lambda size: os.read(readable, size), send)

    def send(self, message: dict[str, Any]) -> None:
        """Send one message."""
        # surrogates as they are: as JSON escapes, two halves would become one character on the other side
        body = json.dumps(message, separators=(",", ":"), ensure_ascii=False).encode("utf-8", "surrogatepass")
        self._send(struct.pack(">I", len(body)) + body)

    def receive(self) -> dict[str, Any] | None:
        """The next message, or None when the other side is gone or sends what is no message."""
        head = self._exactly(4)
        if head is None:
            return None
        (size,) = struct.unpack(">I", head)
        body = self._exactly(size) if size <= MAX_MESSAGE else None
        if body is None:
            return None
        try:
            message = json.loads(body.decode("utf-8", "surrogatepass"))
        except (ValueError, RecursionError):
            return None
        return message if isinstance(message, dict) else None

    def _exactly(self, size: int) -> bytes | None:
        parts: list[bytes] = []
        while size:
            try:
                part = self._receive(min(size, 2**20))
            except OSError:
                return None
            if not part:
                return None
            parts.append(part)
            size -= len(part)
        return b"".join(parts)


def encode(value: Any, other: Callable[[Any], dict[str, Any]]) -> Any:
    """A value as JSON: lists and scalars as they are, everything else as an object with its type in ``t``.

    Args:
        other: makes the object for a value of no plain type.
    """
    kind = type(value)
    if kind in _PLAIN:
        return value
    if kind is list:
        return [part if type(part) in _PLAIN else encode(part, other) for part in value]
    return _encode_tagged(value, kind, other)


def _encode_tagged(value: Any, kind: type, other: Callable[[Any], dict[str, Any]]) -> Any:
    def parts(values: Any) -> list[Any]:
        return [encode(part, other) for part in values]

    if kind in (tuple, set, frozenset, deque):
        return {"t": kind.__name__, "v": parts(value)}
    if kind in (dict, OrderedDict, Counter):
        return {"t": kind.__name__, "v": [[encode(k, other), encode(v, other)] for k, v in value.items()]}
    if kind is defaultdict:
        pairs = [[encode(k, other), encode(v, other)] for k, v in value.items()]
        return {"t": "defaultdict", "v": pairs, "factory": _builtin_name(value.default_factory)}
    if kind in (complex, range):
        return {"t": kind.__name__, "v": _numbers(value)}
    if kind is slice:
        return {"t": "slice", "v": parts((value.start, value.stop, value.step))}
    if kind in (bytes, bytearray):
        return {"t": kind.__name__, "v": value.hex()}
    if kind in (Decimal, Fraction):
        return {"t": kind.__name__, "v": str(value)}
    if kind.__name__ in _DATES and kind is _DATES[kind.__name__]:
        return {"t": kind.__name__, "v": value.isoformat()}
    if kind is timedelta:
        return {"t": "timedelta", "v": [value.days, value.seconds, value.microseconds]}
    if kind is type and _builtin_name(value):
        return {"t": "builtin", "v": _builtin_name(value)}
    if kind in _VIEWS:
        return {"t": _VIEWS[kind], "v": parts(value)}
    if kind is type({}.items()):
        return {"t": "items", "v": [[encode(k, other), encode(v, other)] for k, v in value]}
    if kind is type(NotImplemented) or kind is type(Ellipsis):
        return {"t": "constant", "v": str(value)}
    if hasattr(kind, "__next__") and kind.__module__ in ("builtins", "itertools"):
        return {"t": "iterator", "v": parts(_bounded(value))}
    for base in (bool, int, float, str, list, tuple, dict, set, frozenset):
        if issubclass(kind, base):
            return encode(_as_base(value, base), other)
    return other(value)


def decode(value: Any, other: Callable[[dict[str, Any]], Any]) -> Any:
    """The value of what :func:`encode` made. The sender is not trusted.

    Args:
        other: makes the value of an object whose type is not one of those that :func:`encode` knows.

    Raises:
        ValueError, TypeError, KeyError: it is no encoded value.
    """
    if isinstance(value, list):
        return [decode(part, other) for part in value]
    if not isinstance(value, dict):
        return value
    tag: str = value["t"]
    content: Any = value.get("v")
    if tag in _MADE_OF_ITEMS:
        return _MADE_OF_ITEMS[tag]([decode(part, other) for part in content])
    if tag in ("dict", "OrderedDict", "Counter", "defaultdict", "items"):
        pairs = [(decode(k, other), decode(v, other)) for k, v in content]
        return _mapping(tag, dict(pairs), value.get("factory"))
    if tag == "complex":
        return complex(*map(float, content))
    if tag == "slice":
        return slice(*[decode(part, other) for part in content])
    if tag == "range":
        return range(*map(int, content))
    if tag in ("bytes", "bytearray"):
        return (bytes if tag == "bytes" else bytearray).fromhex(content)
    if tag in ("Decimal", "Fraction"):
        return Decimal(content) if tag == "Decimal" else Fraction(content)
    if tag in _DATES:
        return _DATES[tag].fromisoformat(content)
    if tag == "timedelta":
        return timedelta(*map(int, content))
    if tag == "builtin":
        return _BUILTIN_TYPES[content]
    if tag == "constant":
        return {"NotImplemented": NotImplemented, "Ellipsis": Ellipsis}[content]
    return other(value)


def _mapping(tag: str, content: dict[Any, Any], factory: str | None) -> Any:
    if tag == "items":
        return content.items()
    if tag == "OrderedDict":
        return OrderedDict(content)
    if tag == "Counter":
        return Counter(content)
    return defaultdict(_BUILTIN_TYPES.get(factory or ""), content) if tag == "defaultdict" else content


def _builtin_name(value: Any) -> str | None:
    name = getattr(value, "__name__", None)
    return name if isinstance(name, str) and _BUILTIN_TYPES.get(name) is value else None


def _numbers(value: Any) -> list[Any]:
    return [value.real, value.imag] if isinstance(value, complex) else [value.start, value.stop, value.step]


def _as_base(value: Any, base: type) -> Any:
    """A value of a subclass as one of the built-in type itself."""
    if base is list or base is tuple or base is set or base is frozenset:
        return base(base.__iter__(value))
    if base is dict:
        return dict(dict.items(value))
    if base is str:
        return str.__str__(value)
    return int.__int__(value) if base is int else float.__float__(value)


def _bounded(values: Any) -> list[Any]:
    taken: list[Any] = []
    for part in values:
        if len(taken) == MAX_ITERATED:
            raise ValueError(f"an iterator of more than {MAX_ITERATED} values")
        taken.append(part)
    return taken
