"""The Python that tested code runs on, and the files of it that a sandbox has to show."""

from __future__ import annotations

import json
import os
import subprocess
import sys
import sysconfig
from dataclasses import dataclass
from functools import cache
from pathlib import Path

CODE = Path(__file__).resolve().parents[2]
"""The folder that holds the package softcontam."""

INSIDE_ONLY = """
import sys, types
for name in ("softcontam", "softcontam.sandbox"):
    sys.modules[name] = types.ModuleType(name)
    sys.modules[name].__path__ = [{code!r} + "/" + name.replace(".", "/")]
"""
"""Python that makes ``softcontam.sandbox.inside`` importable without the package around it, which needs much more."""

START = INSIDE_ONLY + "sys.argv[1:] = {arguments!r}; from softcontam.sandbox.inside.zygote import main; main()"
"""What the interpreter is told to run."""

_EVERY_LIBRARY = """
import glob, importlib.util, json, os, sys, sysconfig
for name in ("ctypes", "decimal", "hashlib", "json", "socket", "zlib", "bz2", "lzma", "math", "random", "struct"):
    __import__(name)
for path in glob.glob(os.path.join(sysconfig.get_path("platstdlib"), "lib-dynload", "*.so")):
    name = os.path.basename(path).split(".")[0]
    try:
        spec = importlib.util.spec_from_file_location(name, path)
        importlib.util.module_from_spec(spec)
    except Exception:
        continue
lines = [line.split() for line in open("/proc/self/maps")]
print(json.dumps(sorted({parts[5] for parts in lines if len(parts) == 6 and parts[5].startswith("/")})))
"""


@dataclass(frozen=True)
class Interpreter:
    """The interpreter outside any virtual environment: its program, its standard library, its shared libraries.

    ``shared`` are files, ``names`` the symbolic links by which the loader finds them, with the files they lead to.
    """

    program: str
    library: str
    shared: tuple[str, ...]
    names: tuple[tuple[str, str], ...]

    def command(self, code: str, arguments: list[str]) -> list[str]:
        """Start the zygote; see :func:`start_command`."""
        return start_command(self.program, code, arguments)

    def readable(self) -> list[str]:
        """Files and folders that Landlock has to allow: the library without its site packages."""
        entries = [str(entry) for entry in Path(self.library).iterdir() if entry.name != "site-packages"]
        return [self.library + "/", *sorted(entries), self.program, *self.shared]


def start_command(program: str, code: str, arguments: list[str]) -> list[str]:
    """Start a zygote with an interpreter: no site packages, nothing of the user's, no bytecode written."""
    return [program, "-s", "-S", "-P", "-B", "-c", START.format(code=code, arguments=arguments)]


def base_program() -> str:
    """The program of the interpreter outside any virtual environment."""
    return os.path.realpath(getattr(sys, "_base_executable", None) or sys.executable)


@cache
def interpreter() -> Interpreter:
    """The interpreter that runs softcontam.

    Raises:
        OSError: it can't be started.
    """
    program = base_program()
    library = os.path.realpath(sysconfig.get_path("stdlib"))
    found = subprocess.run([program, "-I", "-S", "-c", _EVERY_LIBRARY], capture_output=True, text=True, check=True)
    mapped = [path for path in json.loads(found.stdout) if not path.startswith((library + "/", program))]
    shared = tuple(path for path in mapped if ".so" in path)
    folders = dict.fromkeys([*("/lib64", "/lib", "/usr/lib64"), *(str(Path(path).parent) for path in shared)])
    links = [
        link for folder in folders if Path(folder).is_dir() for link in Path(folder).iterdir() if link.is_symlink()
    ]
    leads = [(str(link), os.path.realpath(link)) for link in links]
    return Interpreter(program, library, shared, tuple(lead for lead in leads if lead[1] in shared))
