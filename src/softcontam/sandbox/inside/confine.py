"""What a process gives up before it runs code of others: capabilities, files (Landlock), system calls (seccomp), room.

Numbers of system calls and of Landlock rights are those of the kernel's headers, for x86_64 and aarch64.
"""

from __future__ import annotations

import contextlib
import ctypes
import os
import resource
import signal
import struct
from collections.abc import Sequence
from pathlib import Path

# name, number on x86_64, number on aarch64 ("-" where there is none)
SYSCALLS = """
read 0 63; write 1 64; open 2 -; close 3 57; stat 4 -; fstat 5 80; lstat 6 -; poll 7 -; lseek 8 62; mmap 9 222
mprotect 10 226; munmap 11 215; brk 12 214; rt_sigaction 13 134; rt_sigprocmask 14 135; rt_sigreturn 15 139
pread64 17 67; pwrite64 18 68; readv 19 65; writev 20 66; access 21 -; pipe 22 -; select 23 -; sched_yield 24 124
mremap 25 216; mincore 27 232; madvise 28 233; dup 32 23; dup2 33 -; pause 34 -; nanosleep 35 101; getitimer 36 102
alarm 37 -; setitimer 38 103; getpid 39 172; sendto 44 206; recvfrom 45 207; sendmsg 46 211; recvmsg 47 212
shutdown 48 210; exit 60 93; wait4 61 260; uname 63 160; fsync 74 82; fdatasync 75 83; ftruncate 77 46
getdents 78 -; getcwd 79 17; chdir 80 49; fchdir 81 50; rename 82 -; mkdir 83 -; rmdir 84 -; creat 85 -; unlink 87 -
readlink 89 -; umask 95 166; gettimeofday 96 169; getrlimit 97 -; getrusage 98 165; sysinfo 99 179; times 100 153
getuid 102 174; getgid 104 176; geteuid 107 175; getegid 108 177; getppid 110 173; getpgrp 111 -; getgroups 115 158
getpgid 121 155; getsid 124 156; rt_sigpending 127 136; rt_sigtimedwait 128 137; rt_sigsuspend 130 133
sigaltstack 131 132; sched_getscheduler 145 120; gettid 186 178; futex 202 98; sched_getaffinity 204 123
epoll_create 213 -; getdents64 217 61; set_tid_address 218 96; fadvise64 221 223; clock_gettime 228 113
clock_getres 229 114; clock_nanosleep 230 115; exit_group 231 94; epoll_wait 232 -; epoll_ctl 233 21; openat 257 56
mkdirat 258 34; newfstatat 262 79; unlinkat 263 35; renameat 264 38; readlinkat 267 78; faccessat 269 48
pselect6 270 72; ppoll 271 73; set_robust_list 273 99; epoll_pwait 281 22; eventfd2 290 19; epoll_create1 291 20
dup3 292 24; pipe2 293 59; preadv 295 69; pwritev 296 70; getcpu 309 168; renameat2 316 276; getrandom 318 278
membarrier 324 283; statx 332 291; rseq 334 293; faccessat2 439 439; epoll_pwait2 441 441
"""
"""System calls that tested code may make: computing, its own files and memory, threads, waiting.

Not among them: starting programs and processes, sockets, signals to others, changing modes, owners and limits, tracing.
"""

CONDITIONAL = "ioctl 16 29; socketpair 53 199; fcntl 72 25; clone3 435 435"
"""System calls that are allowed with certain arguments only; see :func:`common_filter`."""

FORKING = """
clone 56 220; kill 62 129; tkill 200 130; tgkill 234 131; prlimit64 302 261; setrlimit 160 164; setsid 112 157
prctl 157 167; pidfd_open 434 434; close_range 436 436
"""
"""System calls that a process needs to fork, limit and end children; see :func:`child_filter`."""

REMOVING = ("unlink", "unlinkat", "rename", "renameat", "renameat2")
"""System calls that take a file's name away."""

_ARCHITECTURES = {"x86_64": (0, 0xC000003E), "aarch64": (1, 0xC00000B7)}
_ALLOW, _EPERM, _ENOSYS, _KILL = 0x7FFF0000, 0x00050001, 0x00050026, 0x80000000
_LOAD, _EQUAL, _ANY_BIT, _RETURN = 0x20, 0x15, 0x45, 0x06
_AT_NUMBER, _AT_ARCHITECTURE, _AT_ARGUMENTS = 0, 4, 16
_CLONE_THREAD = 0x00010000
_IOCTLS = (0x5401, 0x5413, 0x541B, 0x5450, 0x5451)  # TCGETS, TIOCGWINSZ, FIONREAD, FIONCLEX, FIOCLEX
_FCNTLS = (0, 1, 2, 3, 4, 5, 6, 7, 1030)  # no F_SETOWN, F_SETSIG: these make the kernel send signals to others
_AF_UNIX = 1
_STREAM_KINDS = tuple(1 | flags for flags in (0, 0x800, 0x80000, 0x80800))  # with SOCK_NONBLOCK, SOCK_CLOEXEC
_TMPFILE = 0o20000000

# Landlock (linux/landlock.h): rights by the ABI that brought them.
_WRITE_FILE, _READ_FILE, _READ_DIR = 1 << 1, 1 << 2, 1 << 3
_RIGHTS_BY_ABI = {1: 13, 2: 14, 3: 15, 5: 16}
_PRIVATE = sum(1 << bit for bit in (1, 2, 3, 4, 5, 7, 8, 13, 14))


class CannotConfine(RuntimeError):
    """The kernel or the machine lacks what was asked for."""


def _libc() -> ctypes.CDLL:
    return ctypes.CDLL(None, use_errno=True)


def _syscall(*arguments: int | bytes | None) -> int:
    """The raw system call; -1 for a failure, whose number is in ctypes' errno."""
    whole = [ctypes.c_long(argument) if isinstance(argument, int) else argument for argument in arguments]
    return int(_libc().syscall(*whole))


def syscall_numbers(table: str, machine: str) -> dict[str, int]:
    """Numbers by name for a machine (``x86_64``, ``aarch64``), of the calls that it has.

    Raises:
        CannotConfine: another machine.
    """
    if machine not in _ARCHITECTURES:
        raise CannotConfine(f"no table of system calls for {machine}")
    column = 1 + _ARCHITECTURES[machine][0]
    entries = [entry.split() for line in table.strip().splitlines() for entry in line.split(";")]
    return {entry[0]: int(entry[column]) for entry in entries if entry[column] != "-"}


Instruction = tuple[int, int, int, int]


def _where(number: int, word: int, test: int, values: Sequence[int], failing: int = _EPERM) -> list[Instruction]:
    """Allow a call where one 32-bit word of its arguments passes the test for one of the values.

    An argument has two words, the lower one first: the second argument begins at word 2.
    """
    body: list[Instruction] = [(_LOAD, 0, 0, _AT_ARGUMENTS + 4 * word)]
    for value in values:
        body += [(test, 0, 1, value), (_RETURN, 0, 0, _ALLOW)]
    body.append((_RETURN, 0, 0, failing))
    return [(_EQUAL, 0, len(body), number), *body]


def common_filter(machine: str) -> list[Instruction]:
    """The filter of a process and of all its children, as BPF.

    :data:`SYSCALLS` and :data:`FORKING` pass, :data:`CONDITIONAL` with certain arguments (harmless kinds of ioctl and
    fcntl, pairs of connected unix sockets), all others fail.
    """
    numbers = syscall_numbers(CONDITIONAL, machine)
    code = [
        (_LOAD, 0, 0, _AT_ARCHITECTURE),
        (_EQUAL, 1, 0, _ARCHITECTURES[machine][1]),
        (_RETURN, 0, 0, _KILL),
        (_LOAD, 0, 0, _AT_NUMBER),
    ]
    for number in sorted([*syscall_numbers(SYSCALLS, machine).values(), *syscall_numbers(FORKING, machine).values()]):
        code += [(_EQUAL, 0, 1, number), (_RETURN, 0, 0, _ALLOW)]
    code += _where(numbers["ioctl"], 2, _EQUAL, _IOCTLS)
    code += _where(numbers["fcntl"], 2, _EQUAL, _FCNTLS)
    code += _where(numbers["socketpair"], 0, _EQUAL, [_AF_UNIX])
    # glibc takes clone, whose flags can be looked at, where clone3 does not exist
    code += [(_EQUAL, 0, 1, numbers["clone3"]), (_RETURN, 0, 0, _ENOSYS), (_RETURN, 0, 0, _EPERM)]
    return code


def _unless(number: int, word: int, bits: int) -> list[Instruction]:
    """Refuse a call where one 32-bit word of its arguments has any of the bits, else allow it."""
    body = [
        (_LOAD, 0, 0, _AT_ARGUMENTS + 4 * word),
        (_ANY_BIT, 0, 1, bits),
        (_RETURN, 0, 0, _EPERM),
        (_RETURN, 0, 0, _ALLOW),
    ]
    return [(_EQUAL, 0, len(body), number), *body]


def child_filter(machine: str, pid: int, removes: bool = True) -> list[Instruction]:
    """What a child may not do of that which :func:`common_filter` allows, as BPF, installed on top of it.

    Left of :data:`FORKING`: new threads (no processes), signals to itself (``pid``), reading limits. Small, because the
    kernel works through it once for each system call that exists, in every child.

    Args:
        removes: may remove and rename files and make files without a name. Where the folder's size is watched and not
            limited, these could be mapped into memory and hidden from the watch.
    """
    numbers = syscall_numbers(FORKING, machine)
    code: list[Instruction] = [(_LOAD, 0, 0, _AT_NUMBER)]
    code += _where(numbers["clone"], 0, _ANY_BIT, [_CLONE_THREAD])
    for name in ("kill", "tkill", "tgkill"):  # tkill takes a thread's id: the main thread has that of the process
        code += _where(numbers[name], 0, _EQUAL, [pid])
    code += [  # prlimit64 that sets nothing: the pointer, two words, is null
        (_EQUAL, 0, 6, numbers["prlimit64"]),
        (_LOAD, 0, 0, _AT_ARGUMENTS + 16),
        (_EQUAL, 0, 3, 0),
        (_LOAD, 0, 0, _AT_ARGUMENTS + 20),
        (_EQUAL, 0, 1, 0),
        (_RETURN, 0, 0, _ALLOW),
        (_RETURN, 0, 0, _EPERM),
    ]
    numbers |= syscall_numbers(SYSCALLS + CONDITIONAL, machine)
    # a datagram socket could send to any socket that has a name, whatever it is connected to
    code += _where(numbers["socketpair"], 2, _EQUAL, _STREAM_KINDS)
    refused = ["setrlimit", "setsid", "prctl", "pidfd_open", "umask"]
    if not removes:
        refused += [name for name in REMOVING if name in numbers]
        for name, word in (("open", 2), ("openat", 4)):
            if name in numbers:
                code += _unless(numbers[name], word, _TMPFILE)
    for name in refused:
        code += [(_EQUAL, 0, 1, numbers[name]), (_RETURN, 0, 0, _EPERM)]
    return [*code, (_RETURN, 0, 0, _ALLOW)]


def install(code: Sequence[Instruction]) -> None:
    """Let this process and its children make, for the rest of their lives, only the calls that a filter allows.

    Raises:
        CannotConfine: the kernel refuses.
    """
    program = b"".join(struct.pack("=HBBI", *instruction) for instruction in code)
    buffer = ctypes.create_string_buffer(program, len(program))
    filter_ = struct.pack("HxxxxxxP", len(code), ctypes.addressof(buffer))
    libc = _libc()
    if libc.prctl(38, 1, 0, 0, 0) or libc.prctl(22, 2, ctypes.create_string_buffer(filter_, len(filter_)), 0, 0):
        raise CannotConfine(f"seccomp: {os.strerror(ctypes.get_errno())}")


def drop_capabilities() -> None:
    """Give up every capability and the way to new ones; matters where softcontam runs as root."""
    libc = _libc()
    libc.prctl(38, 1, 0, 0, 0)  # PR_SET_NO_NEW_PRIVS
    header, nothing = struct.pack("Ii", 0x20080522, 0), bytes(24)
    if libc.capset(header, nothing):
        raise CannotConfine(f"capset: {os.strerror(ctypes.get_errno())}")


def landlock_abi() -> int:
    """Version of Landlock that the kernel has; 0 for none."""
    return max(0, _syscall(444, 0, 0, 1))


def landlock(readable: Sequence[str], folder: str) -> None:
    """Let this process and its children read below ``readable`` and use ``folder``, and no other file or TCP port.

    A folder in ``readable`` that ends with ``/`` may be listed, without more.

    Raises:
        CannotConfine: the kernel has no Landlock.
    """
    abi = landlock_abi()
    if abi < 1:
        raise CannotConfine("the kernel has no Landlock (Linux 5.13 or newer, with landlock in its lsm list)")
    handled = (1 << _RIGHTS_BY_ABI[max(known for known in _RIGHTS_BY_ABI if known <= abi)]) - 1
    libc = _libc()
    # files; from ABI 4 on TCP bind and connect; from ABI 6 on abstract unix sockets and signals outside
    attributes = struct.pack("QQQ", handled, 3, 3)[: 24 if abi >= 6 else 16 if abi >= 4 else 8]
    ruleset = _syscall(444, attributes, len(attributes), 0)
    if ruleset < 0:
        raise CannotConfine(f"landlock: {os.strerror(ctypes.get_errno())}")
    granted = [*((path, _READ_FILE | _READ_DIR) for path in readable), (folder, _PRIVATE)]
    for path, rights in [*granted, (os.devnull, _READ_FILE | _WRITE_FILE)]:
        if path.endswith("/"):
            rights = _READ_DIR
        elif not Path(path).is_dir():
            rights &= _READ_FILE | _WRITE_FILE
        opened = os.open(path, os.O_PATH | os.O_CLOEXEC)
        failed = _syscall(445, ruleset, 1, struct.pack("=Qi", rights & handled, opened), 0)
        os.close(opened)
        if failed:
            raise CannotConfine(f"landlock, {path}: {os.strerror(ctypes.get_errno())}")
    libc.prctl(38, 1, 0, 0, 0)
    if _syscall(446, ruleset, 0):
        raise CannotConfine(f"landlock: {os.strerror(ctypes.get_errno())}")
    os.close(ruleset)


def limit(cpu_s: int, memory_bytes: int, file_bytes: int, processes: int, hosts_wasm: bool = False) -> None:
    """Set the limits of this process; beyond ``cpu_s`` or ``file_bytes`` the kernel ends it.

    Args:
        memory_bytes: of address space.
        processes: processes and threads of this user, those outside included; the kernel asks it of root for nothing.
        hosts_wasm: WebAssembly can start nothing, but wasmtime starts threads and reserves gigabytes of address space:
            ``memory_bytes`` is of writable memory then, and the number of processes is left as it is.
    """
    limits = {
        resource.RLIMIT_CPU: (cpu_s, cpu_s + 1),
        resource.RLIMIT_FSIZE: (file_bytes, file_bytes),
        resource.RLIMIT_NOFILE: (64, 64),
        resource.RLIMIT_CORE: (0, 0),
    }
    if hosts_wasm:
        limits[resource.RLIMIT_DATA] = (memory_bytes, memory_bytes)
    else:
        limits |= {resource.RLIMIT_AS: (memory_bytes, memory_bytes), resource.RLIMIT_NPROC: (processes, processes)}
    for which, (soft, hard) in limits.items():
        ceiling = resource.getrlimit(which)[1]
        if ceiling != resource.RLIM_INFINITY:
            soft, hard = min(soft, ceiling), min(hard, ceiling)
        with contextlib.suppress(ValueError):  # macOS has no limit of address space
            resource.setrlimit(which, (soft, hard))
    signal.signal(signal.SIGXFSZ, signal.SIG_DFL)
    signal.signal(signal.SIGXCPU, signal.SIG_DFL)
