"""The ways to isolate tested code, strongest first, and the choice among those that work on this machine."""

from __future__ import annotations

import json
import os
import shutil
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path

from softcontam.errors import ConfigError, SandboxError
from softcontam.sandbox import wasi
from softcontam.sandbox.inside import confine
from softcontam.sandbox.interpreter import CODE, base_program, interpreter, start_command
from softcontam.sandbox.verdict import Limits

CLEAN_ENVIRONMENT = {"PYTHONHASHSEED": "0", "LANG": "C.UTF-8", "PATH": "/nonexistent", "HOME": "/nonexistent"}
CLEAN_ENVIRONMENT["MALLOC_ARENA_MAX"] = "1"  # each arena of each thread takes 64 MiB of the address space
"""All that tested code finds in its environment."""

_INSIDE = Path(__file__).parent / "inside"
_SEEN_AS = "/code"


@dataclass(frozen=True)
class Backend:
    """One way to isolate.

    ``command`` starts a zygote, given the control descriptor, its folder, and the limits. ``slowness`` is by how much
    programs may take longer than on the interpreter that runs softcontam.
    """

    name: str
    command: Callable[[int, Path, Limits], list[str]]
    slowness: float = 1.0


def _settings(code: str, folder: str, measures: list[str], readable: list[str] | None = None) -> str:
    return json.dumps({"code": code, "folder": folder, "confine": measures, "readable": readable or []})


def _bubblewrap(control: int, folder: Path, limits: Limits) -> list[str]:
    """Own namespaces for users, processes, files, network, IPC; only the interpreter's files, read-only."""
    python = interpreter()
    bound = [(path, path) for path in (python.program, python.library, *python.shared)]
    bound += [(leads_to, name) for name, leads_to in python.names]
    hidden = Path(python.library) / "site-packages"
    settings = _settings(_SEEN_AS, "/tmp", ["capabilities", "seccomp"])
    return [
        shutil.which("bwrap") or "bwrap",
        *("--unshare-all", "--die-with-parent", "--new-session", "--cap-drop", "ALL", "--clearenv"),
        *(part for name, value in CLEAN_ENVIRONMENT.items() for part in ("--setenv", name, value)),
        *(part for path, seen_as in bound for part in ("--ro-bind", path, seen_as)),
        *(("--tmpfs", str(hidden)) if hidden.is_dir() else ()),
        *("--ro-bind", str(_INSIDE), f"{_SEEN_AS}/softcontam/sandbox/inside"),
        *("--dev-bind", os.devnull, os.devnull),
        *("--size", str(2 * _room(limits)), "--tmpfs", "/tmp", "--remount-ro", "/", "--chdir", "/tmp"),
        "--",
        *python.command(_SEEN_AS, [str(control), settings]),
    ]


def _room(limits: Limits) -> int:
    """Bytes that files and output of one program take at most."""
    return limits.files_mib * 2**20 + limits.output_kib * 2**10


def _landlock(control: int, folder: Path, limits: Limits) -> list[str]:
    """No namespaces: the kernel refuses files outside (Landlock) and dangerous calls (seccomp)."""
    python = interpreter()
    measures = ["capabilities", "landlock", "seccomp"]
    settings = _settings(str(CODE), str(folder), measures, python.readable())
    return python.command(str(CODE), [str(control), settings])


def _wasi(control: int, folder: Path, limits: Limits) -> list[str]:
    """No kernel's help: CPython compiled to WebAssembly, which has no way out but what wasmtime hands it."""
    made = wasi.prepared(wasi.find())
    settings = {
        "code": str(CODE),
        "folder": str(folder),
        "confine": [],
        "wasm": {
            "packages": str(wasi.packages()),
            "compiled": str(made.compiled),
            "folders": [*made.folders(), (str(folder), "/tmp", True)],
            "environment": CLEAN_ENVIRONMENT,
        },
    }
    return start_command(base_program(), str(CODE), [str(control), json.dumps(settings)])


def _unsafe(control: int, folder: Path, limits: Limits) -> list[str]:
    """Limits, an own session and a temporary folder; reads and writes what the user may read and write."""
    return interpreter().command(str(CODE), [str(control), _settings(str(CODE), str(folder), [])])


BACKENDS = {
    "bubblewrap": Backend("bubblewrap", _bubblewrap),
    "landlock": Backend("landlock", _landlock),
    "wasi": Backend("wasi", _wasi, slowness=4.0),  # measured: 1.6 to 3.8 times, by what a program does
    "unsafe": Backend("unsafe", _unsafe),
}
"""By name, in the order in which they are tried; ``unsafe`` is never tried unless asked for."""


def missing(name: str) -> str | None:
    """Why a back-end can't work here, as far as can be told without starting it; None when nothing is known."""
    if name == "bubblewrap" and shutil.which("bwrap") is None:
        return "the program bwrap is not installed (Debian, Ubuntu: apt install bubblewrap)"
    if name in ("bubblewrap", "landlock") and os.uname().sysname != "Linux":
        return "needs Linux"
    if name == "landlock" and confine.landlock_abi() < 1:
        return "the kernel has no Landlock (Linux 5.13 or newer, with landlock in its lsm list)"
    if name == "wasi":
        return wasi.missing()
    return None


def choose(name: str, allow_unsafe: bool, works: Callable[[Backend], str | None]) -> Backend:
    """The back-end that is asked for, or for ``auto`` the first that works.

    Args:
        works: starts a back-end and says why it does not work, or None.

    Raises:
        ConfigError: an unknown name, or ``unsafe`` without the permission.
        SandboxError: none works; says why for each.
    """
    if name == "unsafe" and not allow_unsafe:
        raise ConfigError(
            "sandbox.backend=unsafe runs model-written code with your own rights. "
            "Set sandbox.allow_unsafe=true if that is acceptable on this machine, or sandbox.backend=auto."
        )
    if name not in ("auto", *BACKENDS):
        raise ConfigError(f"sandbox.backend={name} is unknown. Choose auto or one of: {', '.join(BACKENDS)}.")
    candidates = [one for one in BACKENDS if one != "unsafe" or allow_unsafe] if name == "auto" else [name]
    reasons: dict[str, str] = {}
    for candidate in candidates:
        reason = missing(candidate) or works(BACKENDS[candidate])
        if reason is None:
            return BACKENDS[candidate]
        reasons[candidate] = reason
    listed = "\n".join(f"  {candidate}: {reason}" for candidate, reason in reasons.items())
    raise SandboxError(
        f"no sandbox works on this machine:\n{listed}\n"
        "Install one of them, score on another machine, or set sandbox.allow_unsafe=true to run without isolation."
    )
