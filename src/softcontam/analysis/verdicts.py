"""How the sandbox decided the programs of each arm, and how often it could not."""

from __future__ import annotations

from collections import Counter, defaultdict
from collections.abc import Sequence
from dataclasses import dataclass

import pandas as pd

from softcontam.analysis.pairing import Arm, LoadedCell
from softcontam.sandbox import CATEGORIES

SANDBOX_ERROR, TIMEOUT = "sandbox_error", "timeout"


@dataclass(frozen=True)
class VerdictCounts:
    """Verdicts on one arm's outputs on one benchmark in one role, over all its cells.

    ``outputs`` is the number of outputs, ``counts`` how many got each category; the others were not run (no program
    could be parsed).
    """

    arm: Arm
    role: str
    benchmark: str
    outputs: int
    counts: dict[str, int]

    @property
    def run(self) -> int:
        """The number of programs that were run."""
        return sum(self.counts.values())

    def share(self, category: str) -> float:
        """The share of the programs that were run that got this category."""
        return self.counts.get(category, 0) / self.run


def verdict_counts(rows: pd.DataFrame, cells: Sequence[LoadedCell]) -> list[VerdictCounts]:
    """One record per arm, benchmark and role that has verdicts, in the order of the cells.

    Args:
        rows: of :func:`softcontam.analysis.items.read_outcomes`.
        cells: the cells that ``rows`` come from.
    """
    arms = {one.cell.id: one.arm for one in cells}
    outputs: Counter[tuple[Arm, str, str]] = Counter()
    counts: dict[tuple[Arm, str, str], Counter[str]] = defaultdict(Counter)
    columns = (rows[name] for name in ("cell", "benchmark", "role", "verdict"))
    for cell, benchmark, role, verdict in zip(*columns, strict=True):
        key = arms[cell], benchmark, role
        outputs[key] += 1
        if isinstance(verdict, str):
            counts[key][verdict] += 1
    return [
        VerdictCounts(
            arm,
            role,
            benchmark,
            outputs[arm, benchmark, role],
            {name: found[name] for name in CATEGORIES if found[name]},
        )
        for (arm, benchmark, role), found in counts.items()
    ]


def sandbox_error_notes(verdicts: Sequence[VerdictCounts]) -> list[str]:
    """A sentence for each benchmark and role in which the sandbox itself failed."""
    groups: dict[tuple[str, str], list[VerdictCounts]] = defaultdict(list)
    for one in verdicts:
        groups[one.benchmark, one.role].append(one)
    notes = []
    for (benchmark, role), members in groups.items():
        failed = sum(one.counts.get(SANDBOX_ERROR, 0) for one in members)
        if failed:
            run = sum(one.run for one in members)
            notes.append(
                f"sandbox_error: the sandbox itself failed on {failed} of {run} programs of {benchmark} ({role}). "
                "These outputs are neither right nor wrong and were left out of the accuracy of their items."
            )
    return notes
