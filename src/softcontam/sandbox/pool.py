"""Many programs at once over the cores, and one at a time for those that ran out of time."""

from __future__ import annotations

import logging
import queue
import threading
import weakref
from collections.abc import Callable, Sequence
from dataclasses import replace
from functools import lru_cache

from softcontam.config import SandboxConfig
from softcontam.environment import count_cpus
from softcontam.errors import SandboxError
from softcontam.sandbox.backends import Backend, choose
from softcontam.sandbox.cage import Cage
from softcontam.sandbox.verdict import AssertTests, Limits, Submission, Tests, Verdict

log = logging.getLogger(__name__)

_SELF_TEST = (
    "def f():\n    try:\n        return open('/etc/passwd').read()\n    except OSError:\n        return 'refused'\n"
)


class Sandbox:
    """A number of slots that run programs; use it as a context manager, or ``close`` it.

    Args:
        backend: ``auto`` takes the first that works of bubblewrap, landlock and wasi; or one of these names.
        allow_unsafe: lets ``auto`` fall back to a plain process, and permits ``unsafe``.
        limits: for submissions that state none of their own.
        workers: programs at once; None for one per CPU.

    Raises:
        ConfigError: an unknown back-end, or ``unsafe`` without permission.
        SandboxError: none works here; says why for each.
    """

    def __init__(
        self,
        backend: str = "auto",
        allow_unsafe: bool = False,
        limits: Limits | None = None,
        workers: int | None = None,
    ) -> None:
        self.limits = limits or Limits()
        self.backend = choose(backend, allow_unsafe, works)
        self.cages = [Cage(self.backend, self.limits) for _ in range(workers or count_cpus())]
        self._end = weakref.finalize(self, _close_all, self.cages)  # at exit too, where nobody closes it

    @classmethod
    def of(cls, config: SandboxConfig) -> Sandbox:
        """The sandbox that a config describes."""
        return cls(config.backend, config.allow_unsafe, limits_of(config), config.workers)

    def __enter__(self) -> Sandbox:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    def close(self) -> None:
        """End all of its processes."""
        self._end()

    def execute(self, submission: Submission) -> Verdict:
        """Run one program; a timeout is run again alone."""
        return self.execute_many([submission])[0]

    def execute_many(
        self, submissions: Sequence[Submission], progress: Callable[[int, int], None] | None = None
    ) -> list[Verdict]:
        """Run the programs, as many at once as there are slots; those that time out are run again alone.

        Args:
            progress: gets how many are done and how many there are, after each.

        Returns:
            One verdict per submission, in their order.

        Raises:
            SandboxError: the sandbox could not be set up again after it broke.
        """
        verdicts: list[Verdict | None] = [None] * len(submissions)
        waiting: queue.SimpleQueue[int] = queue.SimpleQueue()
        for index in range(len(submissions)):
            waiting.put(index)
        lock, problems = threading.Lock(), list[BaseException]()
        finished = 0

        def serve(cage: Cage) -> None:
            nonlocal finished
            while not problems:
                try:
                    index = waiting.get_nowait()
                except queue.Empty:
                    return
                try:
                    verdicts[index] = cage.run(submissions[index])
                except Exception as error:
                    problems.append(error)
                    return
                with lock:
                    finished += 1
                    if progress:
                        progress(finished, len(submissions))

        threads = [threading.Thread(target=serve, args=(cage,), daemon=True) for cage in self.cages[: len(submissions)]]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()
        if problems:
            raise SandboxError(f"sandbox {self.backend.name}: {problems[0]}") from problems[0]
        settled = []
        for submission, verdict in zip(submissions, verdicts, strict=True):
            assert verdict is not None
            settled.append(self._settled(submission, verdict))
        return settled

    def _settled(self, submission: Submission, verdict: Verdict) -> Verdict:
        """The verdict, or for a timeout that of a second run with nothing beside it."""
        if verdict.category != "timeout":
            return verdict
        return replace(self.cages[0].run(submission), retried=True)


def _close_all(cages: Sequence[Cage]) -> None:
    for cage in cages:
        cage.close()


def limits_of(config: SandboxConfig) -> Limits:
    """The limits that a config describes."""
    return Limits(config.cpu_s, config.wall_factor, config.memory_mib, config.output_kib, config.files_mib)


@lru_cache(maxsize=8)
def working(backend: str, allow_unsafe: bool) -> str:
    """The name of the back-end that would be used here; asked once per process.

    Raises:
        ConfigError, SandboxError: as :class:`Sandbox`.
    """
    return choose(backend, allow_unsafe, works).name


def works(backend: Backend) -> str | None:
    """Why a back-end does not work on this machine; None if it runs a program and refuses it a file outside."""
    expected = "refused" if backend.name != "unsafe" else None
    tests = AssertTests(f"assert f() == {expected!r}" if expected else "f()")
    cage = Cage(backend, Limits())
    try:
        verdict = cage.run(Submission(_SELF_TEST, tests))
    except (SandboxError, OSError) as error:
        return str(error)
    finally:
        cage.close()
    return None if verdict.passed else f"its self-test failed: {verdict.category}, {verdict.detail}"


@lru_cache(maxsize=1)
def _shared() -> Sandbox:
    return Sandbox(workers=1)


def execute(program: str, tests: Tests | str | Sequence[str], limits: Limits | None = None) -> Verdict:
    """Run one program with its tests in the strongest sandbox that works here.

    Args:
        program: Python source.
        tests: assert statements as one text or several, or :class:`AssertTests` or :class:`StdioTests`.
        limits: :class:`Limits`, the default ones for None.

    Raises:
        SandboxError: no sandbox works on this machine.
    """
    if isinstance(tests, str):
        tests = AssertTests(tests)
    elif isinstance(tests, Sequence):
        tests = AssertTests("\n".join(tests))
    return _shared().execute(Submission(program, tests, limits))
