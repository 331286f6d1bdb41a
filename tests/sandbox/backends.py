"""Which isolating back-ends the tests can use on this machine."""

from __future__ import annotations

from functools import cache

import pytest

from softcontam.sandbox import Sandbox
from softcontam.sandbox.backends import BACKENDS, missing
from softcontam.sandbox.pool import works

OPENED: list[Sandbox] = []
"""What has to be closed when the tests are over."""

ISOLATING = [name for name in BACKENDS if name != "unsafe"]


@cache
def why_not(name: str) -> str | None:
    return missing(name) or works(BACKENDS[name])


@cache
def sandbox(name: str) -> Sandbox:
    """One sandbox per back-end for all tests; skips where the back-end does not work here."""
    reason = why_not(name)
    if reason is not None:
        pytest.skip(f"sandbox {name}: {reason}")
    OPENED.append(Sandbox(name, workers=1))
    return OPENED[-1]


def first() -> Sandbox:
    """The sandbox that ``auto`` would choose."""
    for name in ISOLATING:
        if why_not(name) is None:
            return sandbox(name)
    pytest.skip("no isolating sandbox works here")
