"""One slot of the sandbox: a process for programs and one for their tests, which see nothing of each other."""

from __future__ import annotations

import contextlib
import json
import logging
import math
import os
import secrets
import signal
import socket
import struct
import subprocess
import tempfile
import time
from concurrent.futures import ThreadPoolExecutor
from dataclasses import replace
from pathlib import Path
from typing import Any

from softcontam.errors import SandboxError
from softcontam.sandbox.backends import CLEAN_ENVIRONMENT, Backend
from softcontam.sandbox.inside.folder import empty
from softcontam.sandbox.inside.guest import MEMORY_STATUS
from softcontam.sandbox.inside.wire import Channel
from softcontam.sandbox.verdict import AssertTests, Category, Limits, StdioTests, Submission, Verdict

log = logging.getLogger(__name__)

START_S = 60.0
"""How long a zygote may take to come up."""

GRACE_S = 10.0
"""How long, beyond the wall clock of a job, before the sandbox itself counts as broken."""

SPARE_TASKS = 256
"""Processes and threads that this user may come to have while a sandbox is in use, those of programs included."""

_DETAIL = 300


class _Broken(Exception):
    """A zygote does not answer as it should; its cage is of no more use."""


class _Zygote:
    """The process behind one control socket, with a private folder."""

    def __init__(self, backend: Backend, limits: Limits) -> None:
        self.folder = Path(tempfile.mkdtemp(prefix="softcontam-sandbox-"))
        self.control, theirs = socket.socketpair()
        try:
            with theirs, tempfile.TemporaryFile() as said:
                self.process = subprocess.Popen(
                    backend.command(theirs.fileno(), self.folder, limits),
                    stdin=subprocess.DEVNULL,
                    stdout=said,
                    stderr=said,
                    env=CLEAN_ENVIRONMENT,
                    cwd=self.folder,
                    pass_fds=[theirs.fileno()],
                    start_new_session=True,
                )
                theirs.close()
                self._wait_until_up(said)
        except OSError as error:
            self.stop()
            raise SandboxError(f"it can't be started ({error})") from error
        except BaseException:
            self.stop()
            raise

    def _wait_until_up(self, said: Any) -> None:
        try:
            reply = self.receive(START_S)
        except _Broken:
            with contextlib.suppress(subprocess.TimeoutExpired):
                self.process.wait(5)
            said.seek(0)
            text = said.read(2000).decode("utf-8", "replace").strip()
            last = text.splitlines()[-1] if text else f"exit status {self.process.poll()}"
            raise SandboxError(f"it does not start ({last})") from None
        if reply.get("op") != "up":
            raise SandboxError(str(reply.get("reason")))

    def send(self, job: dict[str, Any], connection: socket.socket | None = None) -> None:
        """Hand over a job and the socket that its child shall have."""
        body = json.dumps(job).encode()
        descriptors = [connection.fileno()] if connection is not None else []
        try:
            socket.send_fds(self.control, [struct.pack(">I", len(body))], descriptors)
            self.control.sendall(body)
        except OSError as error:
            raise _Broken(str(error)) from error

    def receive(self, seconds: float) -> dict[str, Any]:
        """The next message.

        Raises:
            _Broken: none came in time, or the process is gone.
        """
        self.control.settimeout(seconds)
        message = Channel.over(self.control).receive()
        if message is None:
            raise _Broken("no answer")
        return message

    def post_mortem(self) -> dict[str, Any]:
        """How the process ended that should have answered.

        Raises:
            _Broken: it is still there.
        """
        try:
            status = self.process.wait(1)
        except subprocess.TimeoutExpired:
            raise _Broken("no answer in time") from None
        # bubblewrap ends with 128 and the number of the signal that ended what it ran
        number = -status if status < 0 else status - 128 if status > 128 else None
        nothing = {"report": "", "stderr": "", "killed": None, "cpu_s": 0.0, "wall_s": 0.0}
        return {**nothing, "status": status, "signal": number, "spent": True}

    def stop(self) -> None:
        """End the process and all of its session, and remove its folder."""
        self.control.close()
        process: subprocess.Popen[bytes] | None = getattr(self, "process", None)
        if process is not None:
            with contextlib.suppress(ProcessLookupError):
                os.killpg(process.pid, signal.SIGKILL)
            process.wait()
        try:
            empty(str(self.folder))
            self.folder.rmdir()
        except OSError as error:
            log.warning("the sandbox's folder %s could not be removed (%s)", self.folder, error)


class Cage:
    """Runs one program at a time."""

    def __init__(self, backend: Backend, limits: Limits) -> None:
        self.backend, self.limits = backend, limits
        self.processes = _own_tasks() + SPARE_TASKS
        self._zygotes: tuple[_Zygote, _Zygote] | None = None
        # One thread for all of a cage's life: bubblewrap ends with the thread that started it.
        self._thread = ThreadPoolExecutor(1)

    def run(self, submission: Submission) -> Verdict:
        """Run a program with its tests. A sandbox that breaks is set up again once, for the same program.

        Raises:
            SandboxError: it can't be set up.
        """
        return self._thread.submit(self._run, submission).result()

    def close(self) -> None:
        """End its processes."""
        try:
            self._thread.submit(self._stop).result()
        except RuntimeError:  # closed before, or the interpreter is ending and takes no new work
            self._stop()
        self._thread.shutdown()

    def _run(self, submission: Submission) -> Verdict:
        begun = time.monotonic()
        for attempt in (1, 2):
            program, judge = self._up()
            try:
                if isinstance(submission.tests, AssertTests):
                    verdict = self._with_asserts(submission, submission.tests, program, judge)
                else:
                    verdict = self._with_input(submission, submission.tests, program)
                break
            except _Broken as error:
                self._stop()
                verdict = self._verdict("sandbox_error", f"the sandbox broke down: {error} (attempt {attempt})")
        return replace(verdict, wall_s=time.monotonic() - begun)

    def _stop(self) -> None:
        for zygote in self._zygotes or ():
            zygote.stop()
        self._zygotes = None

    def _up(self) -> tuple[_Zygote, _Zygote]:
        if self._zygotes is not None and any(zygote.process.poll() is not None for zygote in self._zygotes):
            self._stop()
        if self._zygotes is None:
            first = _Zygote(self.backend, self.limits)
            try:
                self._zygotes = (first, _Zygote(self.backend, self.limits))
            except BaseException:
                first.stop()
                raise
        return self._zygotes

    def _cpu_s(self, limits: Limits) -> int:
        """Seconds of processor time for one process; more for a slow interpreter, so that verdicts don't hang on it."""
        return max(1, math.ceil(limits.cpu_s * self.backend.slowness))

    def _job(self, role: str, limits: Limits, **content: Any) -> dict[str, Any]:
        cpu = self._cpu_s(limits)
        return {
            "role": role,
            "cpu_s": cpu,
            "wall_s": cpu * limits.wall_factor,
            "memory_bytes": limits.memory_mib * 2**20,
            "file_bytes": min(limits.files_mib, self.limits.files_mib) * 2**20,
            "output_bytes": limits.output_kib * 2**10,
            "processes": self.processes,
            **content,
        }

    def _with_asserts(self, submission: Submission, tests: AssertTests, program: _Zygote, judge: _Zygote) -> Verdict:
        limits = submission.limits_within(self.limits)
        nonce = secrets.token_hex(16)
        ours, theirs = socket.socketpair()
        with ours, theirs:
            judge_job = self._job(
                "judge", limits, tests=tests.code, setup=tests.setup, entry_points=list(tests.entry_points), nonce=nonce
            )
            judge.send(judge_job, ours)
            program.send(self._job("guest", limits, program=submission.program, setup=tests.setup), theirs)
        patience = judge_job["wall_s"] + GRACE_S
        try:
            judged = judge.receive(patience)
        except _Broken:
            judged = judge.post_mortem()
        ended = program.receive(patience)
        cpu = float(ended["cpu_s"]) + float(judged["cpu_s"])
        category, detail = _decide(judged, ended, nonce)
        self._discard_if_spent(ended, judged)
        return self._verdict(category, detail, cpu)

    def _with_input(self, submission: Submission, tests: StdioTests, program: _Zygote) -> Verdict:
        limits = submission.limits_within(self.limits)
        cpu = 0.0
        for number, (given, expected) in enumerate(tests.cases, 1):
            program.send(self._job("stdio", limits, program=submission.program, stdin=given))
            ended = program.receive(self._cpu_s(limits) * limits.wall_factor + GRACE_S)
            cpu += float(ended["cpu_s"])
            category, detail = _decide_output(ended, expected)
            self._discard_if_spent(ended)
            if category != "pass":
                return self._verdict(category, f"test {number} of {len(tests.cases)}: {detail}", cpu)
        return self._verdict("pass", "", cpu)

    def _discard_if_spent(self, *ended: dict[str, Any]) -> None:
        """Start anew where a program left a folder that could not be emptied, or the tests' process was ended."""
        if any(one.get("spent") for one in ended):
            self._stop()

    def _verdict(self, category: Category, detail: str, cpu_s: float = 0.0) -> Verdict:
        # a lone surrogate, which a program may put into its exception's text, could not be stored
        shown = detail[:_DETAIL].encode("utf-8", "backslashreplace").decode()
        return Verdict(category, shown, self.backend.name, cpu_s)


def _own_tasks() -> int:
    """Processes and threads of this user, as far as they can be counted here."""
    count = 0
    for folder in Path("/proc").glob("[0-9]*"):
        with contextlib.suppress(OSError):
            if folder.stat().st_uid == os.getuid():
                count += len(list((folder / "task").iterdir()))
    return count


def _ended_by_limit(ended: dict[str, Any]) -> tuple[Category, str] | None:
    """What limit ended a process, or None where it ended otherwise."""
    killed, number = ended["killed"], ended["signal"]
    if killed == "wall":
        return "timeout", f"more than {ended['wall_s']:.1f} s on the clock"
    if killed is not None or number == signal.SIGXFSZ:
        return "output_limit", f"too much {'output' if killed == 'output' else 'in files'}"
    if number in (signal.SIGPROF, signal.SIGALRM):
        return "timeout", "a timer ran out"
    if number == signal.SIGXCPU or (number == signal.SIGKILL and ended["cpu_s"] >= 1):
        return "timeout", f"{ended['cpu_s']:.1f} s of processor time"
    if number == signal.SIGKILL:
        return "memory", "killed, most likely for the memory it took"
    return None


def _ended(ended: dict[str, Any]) -> str:
    if ended["signal"] is not None:
        return f"ended by signal {ended['signal']}"
    return f"exit status {ended['status']}"


def _decide(judged: dict[str, Any], ended: dict[str, Any], nonce: str) -> tuple[Category, str]:
    """The verdict from how both processes ended: a pass needs the nonce, which the tests give away at their end."""
    try:
        report = json.loads(judged["report"])
    except ValueError:
        report = {}
    outcome, detail = report.get("outcome"), str(report.get("detail", ""))
    by_limit = _ended_by_limit(ended)
    if by_limit is not None and by_limit[0] == "output_limit":
        return by_limit  # before all else: how soon it was noticed must not decide
    if outcome == "pass":
        if secrets.compare_digest(str(report.get("nonce")), nonce):
            return "pass", ""
        return "sandbox_error", "the tests ended without their nonce"
    if outcome in ("wrong", "exception", "memory"):
        return outcome, detail
    if outcome == "unfit":
        return "sandbox_error", detail
    if by_limit is not None:
        return by_limit
    if outcome == "gone":
        return "exception", f"{detail} ({_ended(ended)})"
    by_limit = _ended_by_limit(judged)
    if by_limit is not None:
        return by_limit[0], f"in the tests: {by_limit[1]}"
    # Only what the program sent can have brought the tests' process down.
    said = judged["stderr"].strip().splitlines()
    return "exception", f"the tests ended without a report ({said[-1] if said else _ended(judged)})"


def _decide_output(ended: dict[str, Any], expected: str) -> tuple[Category, str]:
    by_limit = _ended_by_limit(ended)
    if by_limit is not None:
        return by_limit
    if ended["status"] == MEMORY_STATUS:
        return "memory", ended["stderr"].strip()
    if ended["status"] != 0:
        said = ended["stderr"].strip().splitlines()
        return "exception", said[-1] if said else _ended(ended)
    found, wanted = ended["stdout"].split(), expected.split()
    if found == wanted:
        return "pass", ""
    at = next((i for i, pair in enumerate(zip(found, wanted, strict=False)) if pair[0] != pair[1]), None)
    if at is None:
        return "wrong", f"{len(found)} words of output, expected {len(wanted)}"
    return "wrong", f"word {at + 1} of the output is {found[at][:40]!r}, expected {wanted[at][:40]!r}"
