"""What the rows of a condition can be made from."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Protocol

from softcontam.benchmarks import Item
from softcontam.duplicates.bank import BankRow
from softcontam.duplicates.matched import Cosines


class CleanRow(Protocol):
    """A row of the clean pool."""

    @property
    def row_id(self) -> str:
        """Its id in the pool."""

    @property
    def prompt(self) -> str:
        """The user turn."""

    @property
    def completion(self) -> str:
        """The assistant turn."""

    @property
    def source(self) -> str:
        """Where it comes from."""


@dataclass(frozen=True)
class Material:
    """The material of one cell.

    ``seen`` are the items of the seen half, ``copies`` the planned rows of those that are covered. ``bank(kind)`` gives
    all rows of a kind (checked, of every item). ``spare(most, least)`` gives up to ``most`` rows of the clean pool that
    are in no mixture of this seed, and raises ConfigError where there are fewer than ``least``. ``cosines`` are
    similarities of pairs of texts.
    """

    seen: Sequence[Item]
    copies: Mapping[str, int]
    bank: Callable[[str], list[BankRow]]
    spare: Callable[[int, int], Sequence[CleanRow]]
    cosines: Cosines


def pool_rows(kind: str, found: Sequence[CleanRow], items: Sequence[str]) -> list[BankRow]:
    """Rows of the clean pool as rows of a bank, dealt out to items by their ids for bookkeeping."""
    return [
        BankRow(
            row_id=f"{kind}/{row.row_id}",
            item_id=items[place % len(items)],
            kind=kind,
            level=None,
            prompt=row.prompt,
            completion=row.completion,
            response_style="pool",
            source=f"clean pool {row.source}",
            match_type="unrelated",
            judge="construction",
        )
        for place, row in enumerate(found)
    ]
