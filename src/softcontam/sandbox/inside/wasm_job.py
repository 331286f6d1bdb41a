"""A job of the zygote as a run of the WebAssembly machine: its streams, its folders, its first lines of Python."""

from __future__ import annotations

import os
import sys
from typing import Any

from softcontam.sandbox.inside.wasm_entry import OUTPUT_STATUS

_FIRST_LINES = """
import sys, types
for name in ("softcontam", "softcontam.sandbox", "softcontam.sandbox.inside"):
    sys.modules[name] = types.ModuleType(name)
    sys.modules[name].__path__ = ["/code"]
from softcontam.sandbox.inside.wasm_entry import main
main({job})
"""

HOST_BYTES = 512 * 2**20
"""Writable memory that the process around the machine may take, the stack of its code included."""

FIRST_FREE = 5
"""Descriptors below are replaced in each child."""

_CONTENT = ("role", "program", "setup", "tests", "entry_points", "nonce", "output_bytes")


class WasmJobs:
    """Runs jobs in forked children of a process that has loaded the interpreter.

    ``settings``: ``packages`` (the folder with wasmtime), ``compiled`` (the interpreter as native code), ``folders``
    (path, path inside, whether it may be written) and ``environment``, of which tested code sees all.
    """

    def __init__(self, settings: dict[str, Any]) -> None:
        sys.path.append(settings["packages"])
        from softcontam.sandbox.inside.wasm_engine import Machine

        sys.path.remove(settings["packages"])
        self.settings = settings
        while (descriptor := os.open(os.devnull, os.O_RDONLY)) < FIRST_FREE:
            pass  # the module's file stays open, and must not be where a child puts its streams
        os.close(descriptor)
        self.machine = Machine(settings["compiled"])

    def run(self, job: dict[str, Any]) -> int:
        """Run one job and return its exit status.

        Descriptors are those of the zygote's children: 3 the channel, 4 the report. Inside there are only standard
        streams, so that the channel is put on 0 and 1, and for the tests the report on 2.
        """
        errors = os.dup(2)
        if job["role"] != "stdio":
            os.dup2(3, 0)
            os.dup2(3, 1)
            os.close(3)
        if job["role"] == "judge":
            os.dup2(4, 2)
        os.close(4)
        content = {name: job[name] for name in _CONTENT if name in job}
        arguments = ["-B", "-c", _FIRST_LINES.format(job=ascii(content))]
        settings = self.settings
        return self.machine.run(
            arguments, settings["folders"], settings["environment"], job["memory_bytes"], errors=errors
        )

    @staticmethod
    def printed_too_much(status: int | None) -> bool:
        """Whether an exit status says so."""
        return status == OUTPUT_STATUS
