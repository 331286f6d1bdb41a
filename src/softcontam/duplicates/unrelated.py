"""Unrelated rows: other rows of the clean pool in the replaced slots.

The placebo: what changes when as many rows are replaced by rows of the very same kind.
"""

from __future__ import annotations

from softcontam.duplicates.bank import BankRow
from softcontam.duplicates.material import Material, pool_rows

CANDIDATES = 2
"""Rows for each planned one, so that some may be too long to be seen whole."""


def rows(material: Material) -> list[BankRow]:
    """Spare rows of the clean pool, dealt out to the covered items for bookkeeping.

    Raises:
        ConfigError: the pool has fewer spare rows than are planned.
    """
    planned = [item_id for item_id, count in material.copies.items() for _ in range(count)]
    return pool_rows("unrelated", material.spare(CANDIDATES * len(planned), len(planned)), planned)
