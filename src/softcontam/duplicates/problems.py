"""What can be wrong with a bank: one record for each finding, and the kinds that findings are about."""

from __future__ import annotations

from dataclasses import dataclass

from softcontam.duplicates.bank import BankRow

MATCH_TYPES = ("exact", "equivalent", "subset", "superset", "related", "unrelated")
"""What a judge can find a row to be, from the same task to another one."""

STRICT = MATCH_TYPES[:3]
"""Match types that count as duplicates strictly: who knows the row can do the item."""

SEMD_KINDS = ("semd_synthetic", "semd_natural")
"""Kinds of semantic duplicate."""

NON_DUPLICATE_KINDS = (
    "topical",
    "format_only",
    "unrelated",
    "benchmark_aligned",
    "coverage_expanding",
    "prompt_repetition",
)
"""Kinds whose rows must hold nothing of any item."""


@dataclass(frozen=True)
class Problem:
    """One thing that is wrong with one row (``number``, counted from 1), or with the file where it is None.

    ``found`` reads on after the row's name. Problems of one ``sort`` belong together.
    """

    sort: str
    found: str
    remedy: str
    key: str = ""
    number: int | None = None
    row_id: str = ""
    error: bool = True


@dataclass(frozen=True)
class Numbered:
    """A row whose texts are texts, with its number in the file."""

    number: int
    row: BankRow

    def problem(self, sort: str, key: str, found: str, remedy: str, error: bool = True) -> Problem:
        """Something that is wrong with it."""
        return Problem(sort, found, remedy, key, self.number, self.row.row_id, error)
