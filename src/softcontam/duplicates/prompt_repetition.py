"""Prompt repetition: rows of the clean pool, each repeated as often as an item has copies.

After Benchmark Shadows, where repeated prompts are an artefact beside the regimes compared: what repetition does
without any text of the benchmark.
"""

from __future__ import annotations

from softcontam.duplicates.bank import BankRow
from softcontam.duplicates.material import Material, pool_rows

CANDIDATES = 2
"""Rows for each item, so that some may be too long to be seen whole."""


def rows(material: Material) -> list[BankRow]:
    """Spare rows of the clean pool for each covered item; the plan repeats one of them.

    Raises:
        ConfigError: the pool has fewer spare rows than items are covered.
    """
    covered = list(material.copies)
    return pool_rows("prompt_repetition", material.spare(CANDIDATES * len(covered), len(covered)), covered)
