"""The filters of system calls, by a small interpreter of their programs, and their tables, by the kernel's headers."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

from softcontam.sandbox.inside import confine
from softcontam.sandbox.inside.confine import CONDITIONAL, FORKING, SYSCALLS, syscall_numbers

HEADERS = {
    "x86_64": Path("/usr/include/x86_64-linux-gnu/asm/unistd_64.h"),
    "aarch64": Path("/usr/include/asm-generic/unistd.h"),
}
MACHINES = {"x86_64": 0xC000003E, "aarch64": 0xC00000B7}
ALLOWED, REFUSED, MISSING, KILLED = 0x7FFF0000, 0x00050001, 0x00050026, 0x80000000
OWN_PID = 4711
ALL = "\n".join(table.strip() for table in (SYSCALLS, FORKING, CONDITIONAL))


def decided(code: list[confine.Instruction], machine: int, number: int, *arguments: int) -> int:
    """What a filter says to a system call, as the kernel would run it."""
    words = [number, machine, 0, 0]
    for argument in (*arguments, *[0] * (6 - len(arguments))):
        words += [argument & 0xFFFFFFFF, argument >> 32 & 0xFFFFFFFF]
    at = accumulator = 0
    while True:
        operation, if_true, if_false, value = code[at]
        at += 1
        if operation == 0x20:
            accumulator = words[value // 4]
        elif operation == 0x15:
            at += if_true if accumulator == value else if_false
        elif operation == 0x45:
            at += if_true if accumulator & value else if_false
        elif operation == 0x06:
            return value
        else:
            raise AssertionError(f"unknown operation {operation:#x}")


@pytest.fixture(params=MACHINES)
def machine(request: pytest.FixtureRequest) -> str:
    name: str = request.param
    return name


def common(machine: str, name: str, *arguments: int) -> int:
    number = syscall_numbers(ALL, machine)[name]
    return decided(confine.common_filter(machine), MACHINES[machine], number, *arguments)


def in_child(machine: str, name: str, *arguments: int, removes: bool = True) -> int:
    """Both filters, of which the stricter counts."""
    number = syscall_numbers(ALL, machine)[name]
    second = decided(confine.child_filter(machine, OWN_PID, removes), MACHINES[machine], number, *arguments)
    return min(common(machine, name, *arguments), second)


@pytest.mark.parametrize("name", HEADERS)
def test_numbers_are_those_of_the_kernels_headers(name: str) -> None:
    if not HEADERS[name].is_file():
        pytest.skip(f"{HEADERS[name]} is not installed (linux-libc-dev)")
    defined = dict(re.findall(r"#define __NR(?:3264)?_(\w+)\s+(\d+)", HEADERS[name].read_text()))
    # the generic table's names for what has another type of argument on 32 bits
    renamed = {"fstat": "fstat", "newfstatat": "fstatat", "fadvise64": "fadvise64", "mmap": "mmap"}
    for call, number in syscall_numbers(ALL, name).items():
        assert int(defined.get(call) or defined[renamed[call]]) == number, call


def test_computing_is_allowed_and_what_is_not_listed_is_refused(machine: str) -> None:
    assert common(machine, "read") == common(machine, "openat") == ALLOWED
    code = confine.common_filter(machine)
    listed = set(syscall_numbers(ALL, machine).values())
    assert all(decided(code, MACHINES[machine], number) == REFUSED for number in range(600) if number not in listed)


def test_calls_of_another_machine_and_of_x32_are_not_mistaken(machine: str) -> None:
    other = next(value for name, value in MACHINES.items() if name != machine)
    assert decided(confine.common_filter(machine), other, 0) == KILLED
    assert decided(confine.common_filter(machine), MACHINES[machine], 0x40000000) == REFUSED


def test_a_child_starts_threads_and_no_processes(machine: str) -> None:
    assert in_child(machine, "clone", 0x003D0F00) == ALLOWED  # what pthread_create asks for
    assert in_child(machine, "clone", 17) == REFUSED
    assert common(machine, "clone", 17) == ALLOWED
    assert in_child(machine, "clone3") == MISSING


@pytest.mark.parametrize("name", ["kill", "tgkill", "tkill"])
def test_a_child_signals_itself_alone(machine: str, name: str) -> None:
    assert in_child(machine, name, OWN_PID, 9) == ALLOWED
    assert [in_child(machine, name, pid, 9) for pid in (1, OWN_PID - 1, 0, 2**32 - 1)] == [REFUSED] * 4


def test_a_child_reads_limits_and_sets_none(machine: str) -> None:
    assert in_child(machine, "prlimit64", 0, 0, 0, 0x7FFF00001000) == ALLOWED
    assert in_child(machine, "prlimit64", 0, 0, 0x7FFF00001000, 0) == REFUSED
    assert in_child(machine, "prlimit64", 0, 0, 0x7FFF00000000, 0) == REFUSED
    assert in_child(machine, "prlimit64", 0, 0, 0x1000, 0) == REFUSED
    assert common(machine, "prlimit64", 0, 0, 0x1000, 0) == ALLOWED


@pytest.mark.parametrize("name", ["setrlimit", "setsid", "prctl", "pidfd_open", "umask"])
def test_a_child_does_nothing_that_only_its_parent_needs(machine: str, name: str) -> None:
    assert in_child(machine, name) == REFUSED


def test_harmless_kinds_of_ioctl_fcntl_and_socketpair_are_allowed(machine: str) -> None:
    tcgets, tiocsti, dupfd, setown, setsig = 0x5401, 0x5412, 0, 8, 10
    assert in_child(machine, "ioctl", 0, tcgets) == ALLOWED
    assert in_child(machine, "ioctl", 0, tiocsti) == REFUSED
    assert in_child(machine, "fcntl", 0, dupfd) == ALLOWED
    assert [in_child(machine, "fcntl", 0, command) for command in (setown, setsig, 15)] == [REFUSED] * 3


def test_socketpairs_are_streams_between_their_two_ends(machine: str) -> None:
    stream, datagram, sequence, close_on_exec = 1, 2, 5, 0x80000
    assert in_child(machine, "socketpair", 1, stream) == ALLOWED
    assert in_child(machine, "socketpair", 1, stream | close_on_exec) == ALLOWED
    assert in_child(machine, "socketpair", 2, stream) == REFUSED
    assert in_child(machine, "socketpair", 1, datagram) == REFUSED
    assert in_child(machine, "socketpair", 1, sequence | close_on_exec) == REFUSED


def test_names_of_files_stay_where_only_names_tell_how_much_there_is(machine: str) -> None:
    here, create, no_name = 2**32 - 100, 0o1102, 0o20200002
    path = 0x7F12_20FF_0000
    assert in_child(machine, "openat", here, path, create, removes=False) == ALLOWED
    assert in_child(machine, "openat", here, path, no_name, removes=False) == REFUSED
    assert in_child(machine, "openat", here, path, no_name) == ALLOWED
    for name in ("unlinkat", "renameat2"):
        assert in_child(machine, name, removes=False) == REFUSED
        assert in_child(machine, name) == ALLOWED
    if machine == "x86_64":
        assert in_child(machine, "open", path, create, removes=False) == ALLOWED
        assert in_child(machine, "open", path, no_name, removes=False) == REFUSED


def test_another_processor_has_no_table() -> None:
    with pytest.raises(confine.CannotConfine, match="riscv64"):
        syscall_numbers(SYSCALLS, "riscv64")
