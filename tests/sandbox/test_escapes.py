"""Attempts to get out of each back-end, and the proof that they would get out where nothing holds them."""

from __future__ import annotations

import pytest
from backends import first

from softcontam.sandbox import AssertTests, Sandbox, Submission
from softcontam.sandbox.escapes import ESCAPES, Attempt, Escape, attempt, left_behind

QUICK = ("read", "run", "processes", "network", "signals", "others", "write", "score", "find", "terminal", "devices")

# What these do when nothing holds them, and what that harms, is bounded: one process that is there to be killed, files
# in a temporary folder, 300 processes that sleep for a second.
HARMFUL_WITHOUT_ISOLATION = {
    "read /etc/passwd: open, io, os, pathlib": "read a secret",
    "read /etc/passwd: import machinery, linecache, mmap, symlink, hard link": "read a secret",
    "read a file of the home: open, relative path, descriptor of a folder, ctypes": "read a secret",
    "read a file of the home through /proc": "read a secret",
    "run a program: system, popen, subprocess, exec, spawn": "made made outside",
    "run a program: reload of os after its functions are gone": "made made outside",
    "run a program: ctypes, raw system calls": "made made outside",
    "processes: multiprocessing": "[1, 2]",
    "processes: leave a daemon behind": "made made outside",
    "network: TCP": "reached a tcp socket",
    "network: UDP": "reached a udp socket",
    "network: unix sockets": "reached a unix socket",
    "network: raw system calls, netlink, vsock": "a socket of family 1",
    "network: connect a socket of a socketpair elsewhere": "reached a datagram socket",
    "signals: kill the parent and others": "ended another process",
    "signals: raw system calls, pidfd, queue, timers": "ended another process",
    "signals: let the kernel send them (F_SETOWN, F_SETSIG)": "ended another process",
    "write outside: open, mkdir, rename, symlink": "made made outside",
    "write outside: truncate, change mode, owner and times": "changed a file outside",
}


def by_name(name: str) -> Escape:
    return next(escape for escape in ESCAPES if escape.name == name)


def told(one: Attempt) -> str:
    return f"{one.escape.name}: {one.escaped} ({one.verdict.category}: {one.verdict.detail})"


@pytest.mark.parametrize("escape", [e for e in ESCAPES if e.name.startswith(QUICK)], ids=lambda e: e.name)
def test_no_attempt_gets_out(each: Sandbox, escape: Escape) -> None:
    one = attempt(escape, each)
    assert one.escaped is None, told(one)
    assert one.verdict.category != "sandbox_error", told(one)


@pytest.mark.parametrize("escape", [e for e in ESCAPES if not e.name.startswith(QUICK)], ids=lambda e: e.name)
def test_no_attempt_takes_more_than_its_share(each: Sandbox, escape: Escape) -> None:
    one = attempt(escape, each)
    assert one.escaped is None, told(one)
    assert one.verdict.category in ("timeout", "memory", "output_limit", "exception"), told(one)


def test_a_program_finds_nothing_of_the_one_before_it(each: Sandbox) -> None:
    one = left_behind(each)
    assert one.escaped is None, told(one)


def test_a_program_does_not_fill_the_tests_memory_for_the_next(each: Sandbox) -> None:
    fill = (
        "import json, os, struct\n"
        "def f(x):\n"
        "    junk = ['\u0100B'] * 6_000_000\n"
        "    for op in ('value', 'raised'):\n"
        "        body = json.dumps({'op': op, 'value': 1, 'type': 'E', 'text': '', 'junk': junk}).encode()\n"
        "        os.write(3, struct.pack('>I', len(body)))\n"
        "        view = memoryview(body)\n"
        "        while view: view = view[os.write(3, view):]\n"
    )
    honest = Submission("def f(): return list(range(2 * 10 ** 6))", AssertTests("assert f()[-1] == 2 * 10 ** 6 - 1"))
    for _ in range(2):
        assert not each.execute(Submission(fill, AssertTests("f(1)\nf(2)"))).passed
        verdict = each.execute(honest)
        assert verdict.passed, verdict.detail


@pytest.mark.parametrize(("name", "harm"), HARMFUL_WITHOUT_ISOLATION.items())
def test_the_same_attempt_succeeds_without_isolation(name: str, harm: str) -> None:
    with Sandbox("unsafe", allow_unsafe=True, workers=1) as unsafe:
        one = attempt(by_name(name), unsafe)
    assert one.escaped is not None, told(one)
    assert harm in one.escaped, told(one)


@pytest.mark.parametrize("escape", [e for e in ESCAPES if e.cheats], ids=lambda e: e.name)
def test_cheating_the_tests_fails_even_without_isolation(escape: Escape) -> None:
    with Sandbox("unsafe", allow_unsafe=True, workers=1) as unsafe:
        one = attempt(escape, unsafe)
    assert one.escaped is None, told(one)


def test_an_honest_program_passes_the_tests_that_the_attempts_fail() -> None:
    honest = Escape("honest", "def f(x): return x * x")
    assert attempt(honest, first()).verdict.passed
