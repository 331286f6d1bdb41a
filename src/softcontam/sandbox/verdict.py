"""What is run in the sandbox, within which limits, and what comes of it."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import Any, Literal, get_args

Category = Literal["pass", "wrong", "exception", "timeout", "memory", "output_limit", "sandbox_error"]

CATEGORIES: tuple[Category, ...] = get_args(Category)
"""``wrong``: a test found a wrong result. ``sandbox_error``: the sandbox itself failed, which says nothing about the
program."""


@dataclass(frozen=True)
class Limits:
    """What one run may use.

    ``cpu_s`` is processor time (whole seconds are enforced by the kernel, fractions are rounded up); the wall clock
    gets ``cpu_s * wall_factor`` so that a loaded machine does not flip verdicts. ``memory_mib`` is address space,
    ``output_kib`` what may be printed, ``files_mib`` the size of all files in the private folder together.
    """

    cpu_s: float = 4.0
    wall_factor: float = 5.0
    memory_mib: int = 1024
    output_kib: int = 1024
    files_mib: int = 16


@dataclass(frozen=True)
class AssertTests:
    """Tests as Python code that calls the program's functions, as MBPP and HumanEval have them.

    ``code`` runs apart from the program and sees plain values only; ``setup`` runs with the program, after it. Names
    that ``code`` leaves open are the program's, except builtins and modules of the standard library. ``entry_points``
    may hide a builtin of the same name (MBPP has a task whose function is called ``sum``).
    """

    code: str
    setup: str = ""
    entry_points: tuple[str, ...] = ()


@dataclass(frozen=True)
class StdioTests:
    """Pairs of standard input and expected standard output; the program runs once for each pair, until one fails.

    Outputs are compared token by token (separated by blanks or line ends), as is usual for Codeforces.
    """

    cases: tuple[tuple[str, str], ...]


Tests = AssertTests | StdioTests


@dataclass(frozen=True)
class Submission:
    """A program and the tests that decide it.

    ``limits`` replaces the sandbox's own; ``cpu_s`` and ``memory_mib`` replace only these two, for a benchmark that
    states them per problem.
    """

    program: str
    tests: Tests
    limits: Limits | None = None
    cpu_s: float | None = None
    memory_mib: int | None = None

    def limits_within(self, usual: Limits) -> Limits:
        """The limits that hold in a sandbox with its usual ones."""
        stated = {"cpu_s": self.cpu_s, "memory_mib": self.memory_mib}
        changes: dict[str, Any] = {name: value for name, value in stated.items() if value is not None}
        return replace(self.limits or usual, **changes)


@dataclass(frozen=True)
class Verdict:
    """What came of one program. ``detail`` is for people: the exception, the failed test, the reason.

    ``backend`` names what ran it; ``retried`` says that a timeout was run again alone. ``cpu_s`` and ``wall_s`` are
    seconds.
    """

    category: Category
    detail: str = ""
    backend: str = ""
    cpu_s: float = 0.0
    wall_s: float = 0.0
    retried: bool = False

    @property
    def passed(self) -> bool:
        """Whether all tests ran to their end and found nothing wrong."""
        return self.category == "pass"
