"""A process that waits inside the sandbox and forks one child for each program; the tests run in another such process.

Starting Python costs more than running a small program. A child is confined further than its parent (no processes, no
sockets, no signals to others), has a private folder that is emptied after it, and is gone before the next one starts.
The tests, which are the data set's and no model's, run one after the other in a process without children; where they
take too long, the kernel ends it.
"""

from __future__ import annotations

import contextlib
import gc
import importlib
import io
import json
import mmap
import os
import platform
import random
import resource
import select
import signal
import socket
import struct
import sys
import tempfile
import time
import traceback
from pathlib import Path
from typing import Any, BinaryIO

from softcontam.sandbox.inside import confine
from softcontam.sandbox.inside.folder import empty, too_much
from softcontam.sandbox.inside.guest import Guest, run_stdio
from softcontam.sandbox.inside.judge import Judge
from softcontam.sandbox.inside.wasm_job import HOST_BYTES, WasmJobs
from softcontam.sandbox.inside.wire import Channel

PRELOADED = (
    "bisect cmath collections copy datetime decimal fractions functools heapq itertools math operator queue random re "
    "statistics string struct textwrap time typing"
).split()
"""Modules that short programs import; loaded once, before any child is forked."""

MOST_SHOWN = 8 * 2**20
"""Bytes of a program's output that are handed on; more is a matter of the limit only."""

_LOOK_EVERY_S = 0.02


def main() -> None:
    """Take jobs from the control socket until it closes."""
    control_fd, settings = int(sys.argv[1]), json.loads(sys.argv[2])
    control = socket.socket(fileno=control_fd)
    Zygote(control, settings).serve()


class Zygote:
    """Holds the control socket and what children are confined by.

    ``settings``: ``folder`` (private, writable), ``readable`` (paths, for Landlock), ``confine`` (which of
    ``capabilities``, ``landlock``, ``seccomp``), and optionally ``wasm`` (what :mod:`wasm_job` needs).
    """

    def __init__(self, control: socket.socket, settings: dict[str, Any]) -> None:
        self.control, self.settings = control, settings
        self.folder = Path(settings["folder"])
        self.wasm: WasmJobs | None = None

    def serve(self) -> None:
        """Confine this process, say that it is up (or why not), then run one job after the other."""
        try:
            for name in PRELOADED:
                importlib.import_module(name)
            os.chdir(self.folder)
            tempfile.tempdir = str(self.folder)
            sys.path[:] = [path for path in sys.path if path != self.settings["code"]]
            if "wasm" in self.settings:
                self.wasm = WasmJobs(self.settings["wasm"])
            if "capabilities" in self.settings["confine"]:
                confine.drop_capabilities()
            if "landlock" in self.settings["confine"]:
                confine.landlock(self.settings["readable"], str(self.folder))
            if "seccomp" in self.settings["confine"]:
                confine.install(confine.common_filter(platform.machine()))
            gc.collect()
            gc.freeze()
        except Exception as error:
            self._reply({"op": "unable", "reason": f"{type(error).__name__}: {error}"})
            return
        self._reply({"op": "up"})
        while (job := self._next_job()) is not None:
            here = job[0]["role"] == "judge" and self.wasm is None
            self._reply(_judge_here(*job) if here else self._run(*job))

    def _next_job(self) -> tuple[dict[str, Any], int] | None:
        """A job and the file descriptor that came with it (-1 for none)."""
        head, descriptors, _, _ = socket.recv_fds(self.control, 4, 1)
        body = b""
        while len(head) == 4 and len(body) < struct.unpack(">I", head)[0]:
            part = self.control.recv(2**20)
            if not part:
                return None
            body += part
        return (json.loads(body), descriptors[0] if descriptors else -1) if body else None

    def _reply(self, message: dict[str, Any]) -> None:
        Channel.over(self.control).send(message)

    def _run(self, job: dict[str, Any], descriptor: int) -> dict[str, Any]:
        """Run one job in a child and say how it ended."""
        with tempfile.TemporaryFile() as given, tempfile.TemporaryFile() as out, tempfile.TemporaryFile() as errors:
            given.write(job.get("stdin", "").encode())
            given.seek(0)
            report_read, report_write = os.pipe()
            begun = time.monotonic()
            child = os.fork()
            if child == 0:
                try:
                    self._in_child(job, descriptor, given, out, errors, report_write)
                except BaseException:
                    os.write(2, traceback.format_exc().encode()[-2000:])
                finally:
                    os._exit(70)
            os.close(report_write)
            if descriptor >= 0:
                os.close(descriptor)
            ended = self._wait(child, job, out, begun)
            if self.wasm is not None and self.wasm.printed_too_much(ended["status"]):
                ended["killed"] = "output"
            with os.fdopen(report_read, "rb") as report:
                ended["report"] = report.read(2**16).decode("utf-8", "replace")
            for name, stream in (("stdout", out), ("stderr", errors)):
                stream.seek(0)
                ended[name] = stream.read(min(job["output_bytes"], MOST_SHOWN)).decode("utf-8", "replace")
        try:
            empty(str(self.folder))
        except OSError:  # this process is of no more use
            ended |= {"killed": ended["killed"] or "files", "spent": True}
        return ended

    def _in_child(
        self, job: dict[str, Any], descriptor: int, given: BinaryIO, out: BinaryIO, errors: BinaryIO, report: int
    ) -> None:
        """Become the job: its own session, its own standard streams, no other open file, confined."""
        os.setsid()
        kept = [given.fileno(), out.fileno(), errors.fileno(), descriptor, report]
        high = [os.dup2(fd, 100 + index) if fd >= 0 else -1 for index, fd in enumerate(kept)]
        for target, source in enumerate(high):
            if source >= 0:
                os.dup2(source, target)
            else:
                os.close(target)  # whatever it is, the control socket perhaps: not for the tested code
        if self.wasm is not None:  # which sees no descriptor of this process; wasmtime needs the module's file
            confine.limit(job["cpu_s"], job["memory_bytes"] + HOST_BYTES, job["file_bytes"], 0, hosts_wasm=True)
            os._exit(self.wasm.run(job))
        os.closerange(5, os.sysconf("SC_OPEN_MAX"))
        random.seed(0)
        confine.limit(job["cpu_s"], job["memory_bytes"], job["file_bytes"], job["processes"])
        if "seccomp" in self.settings["confine"]:
            removes = "landlock" not in self.settings["confine"]
            confine.install(confine.child_filter(platform.machine(), os.getpid(), removes))
        os.close(4)
        os._exit(_guest(job) if job["role"] == "guest" else run_stdio(job["program"]))

    def _wait(self, child: int, job: dict[str, Any], out: BinaryIO, begun: float) -> dict[str, Any]:
        """Wait for the child within its wall clock and room; then end what is left of its session."""
        killed, looked = None, begun
        with _Ending(child) as ending:
            while True:
                ended, status, used = os.wait4(child, os.WNOHANG)
                now = time.monotonic()
                if ended:
                    break
                if killed is None and now - looked > _LOOK_EVERY_S:
                    looked = now
                    killed = self._reason_to_kill(job, out, now - begun)
                    if killed:
                        self._kill_session(child)
                ending.wait(_LOOK_EVERY_S)
        self._kill_session(child)
        killed = killed or self._reason_to_kill(job, out, 0.0)
        return {
            "op": "ended",
            "status": os.WEXITSTATUS(status) if os.WIFEXITED(status) else None,
            "signal": os.WTERMSIG(status) if os.WIFSIGNALED(status) else None,
            "killed": killed,
            "cpu_s": used.ru_utime + used.ru_stime,
            "wall_s": now - begun,
        }

    def _reason_to_kill(self, job: dict[str, Any], out: BinaryIO, wall: float) -> str | None:
        if wall > job["wall_s"]:
            return "wall"
        if os.fstat(out.fileno()).st_size > job["output_bytes"]:
            return "output"
        return "files" if too_much(str(self.folder), job["file_bytes"]) else None

    @staticmethod
    def _kill_session(child: int) -> None:
        with contextlib.suppress(ProcessLookupError, PermissionError):
            os.killpg(child, signal.SIGKILL)


class _Ending:
    """Waits for a child's end without asking all the time, where the system can tell (Linux); else asks often."""

    def __init__(self, child: int) -> None:
        try:
            self.descriptor = os.pidfd_open(child)
        except (AttributeError, OSError):
            self.descriptor = -1

    def __enter__(self) -> _Ending:
        return self

    def __exit__(self, *_: object) -> None:
        if self.descriptor >= 0:
            os.close(self.descriptor)

    def wait(self, seconds: float) -> None:
        """Wait for the end, at most so long."""
        if self.descriptor >= 0:
            select.select([self.descriptor], [], [], seconds)
        else:
            time.sleep(0.001)


def _guest(job: dict[str, Any]) -> int:
    Guest(Channel.over_descriptors(3, 3)).run(job["program"], job["setup"])
    return 0


class _Discard(io.TextIOBase):
    """Where the tests print to."""

    def write(self, text: str) -> int:
        """Take the text and keep nothing."""
        return len(text)


def _judge_here(job: dict[str, Any], descriptor: int) -> dict[str, Any]:
    """Run tests in this process. The signals of both timers end it, whatever the tests do."""
    begun, cpu_begun = time.monotonic(), time.process_time()
    resource.setrlimit(resource.RLIMIT_AS, (job["memory_bytes"], resource.getrlimit(resource.RLIMIT_AS)[1]))
    random.seed(0)
    signal.setitimer(signal.ITIMER_PROF, job["cpu_s"])
    signal.setitimer(signal.ITIMER_REAL, job["wall_s"])
    printed, sys.stdout = sys.stdout, _Discard()
    judge = Judge(Channel.over_descriptors(descriptor, descriptor))
    try:
        report = judge.run(job["tests"], job["setup"], job["entry_points"], job["nonce"])
    except BaseException as error:  # a first message too large to be read, say
        report = {"outcome": "exception", "detail": f"{type(error).__name__} before the tests"}
    finally:
        signal.setitimer(signal.ITIMER_PROF, 0)
        signal.setitimer(signal.ITIMER_REAL, 0)
        sys.stdout = printed
        os.close(descriptor)
        judge.from_program = None  # it holds the frames, and with them all that the program sent
    return {
        "spent": _half_full(job["memory_bytes"]),
        **{"op": "ended", "status": 0, "signal": None, "killed": None, "stdout": "", "stderr": ""},
        "report": json.dumps(report),
        "cpu_s": time.process_time() - cpu_begun,
        "wall_s": time.monotonic() - begun,
    }


def _half_full(memory_bytes: int) -> bool:
    """Whether this process holds on to so much that another program's tests might not have their room in it."""
    try:
        mmap.mmap(-1, memory_bytes // 2).close()
    except (OSError, ValueError, MemoryError):
        return True
    return False
