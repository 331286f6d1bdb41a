"""How the sandbox decided the programs of each arm, and how often it could not."""

from __future__ import annotations

from collections import defaultdict
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
    outputs: dict[tuple[Arm, str, str], int] = defaultdict(int)
    counts: dict[tuple[Arm, str, str], dict[str, int]] = defaultdict(dict)
    for (cell, benchmark, role), group in rows.groupby(["cell", "benchmark", "role"], sort=False, observed=True):
        key = arms[cell], benchmark, role
        outputs[key] += len(group)
        for category, count in group["verdict"].value_counts().items():
            counts[key][str(category)] = counts[key].get(str(category), 0) + int(count)
    order = {category: place for place, category in enumerate(CATEGORIES)}
    return [
        VerdictCounts(
            arm,
            role,
            benchmark,
            outputs[arm, benchmark, role],
            dict(sorted(found.items(), key=lambda entry: order.get(entry[0], len(order)))),
        )
        for (arm, benchmark, role), found in counts.items()
        if found
    ]


def sandbox_error_notes(verdicts: Sequence[VerdictCounts]) -> list[str]:
    """A sentence for each benchmark and role in which the sandbox itself failed."""
    groups: dict[tuple[str, str], list[VerdictCounts]] = defaultdict(list)
    for one in verdicts:
        groups[one.benchmark, one.role].append(one)
    notes = []
    for (benchmark, role), members in groups.items():
        failed, run = (sum(count) for count in zip(*((m.counts.get(SANDBOX_ERROR, 0), m.run) for m in members)))
        if failed:
            notes.append(
                f"The sandbox failed on {failed} of {run} programs of {benchmark} ({role}): sandbox_error. These "
                "outputs are neither right nor wrong and were left out of the accuracy of their items; run these cells "
                "again where the share is not negligible."
            )
    return notes
