"""Topical rows as similar to the items as the SemDs are, so far as rows that are no duplicates can be.

A topical arm whose rows are less similar than the SemDs cannot tell similarity from duplication (the study's "cosine"
arm). For each item, candidates are assigned to its SemD rows one to one, so that the sum of the differences in
similarity is smallest. What remains of the difference shows in the report: both distributions and their overlap.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace

import numpy as np
from numpy.typing import NDArray
from scipy.optimize import linear_sum_assignment

from softcontam.benchmarks import Item
from softcontam.duplicates.bank import BankRow
from softcontam.duplicates.exact import text

Cosines = Callable[[Sequence[tuple[str, str]]], NDArray[np.float64]]
"""Similarity of each pair of texts."""


def matched(
    candidates: Sequence[BankRow], semds: Sequence[BankRow], items: Sequence[Item], cosines: Cosines
) -> list[BankRow]:
    """For each item as many of its candidates as it has SemD rows (or all, if it has fewer), with their ``cosine``.

    Items without SemD rows keep all candidates.
    """
    texts = {item.item_id: text(item) for item in items}
    ours, theirs = _measured(candidates, texts, cosines), _measured(semds, texts, cosines)
    chosen = []
    for item_id, found in ours.items():
        wanted = [row.cosine or 0.0 for row in theirs.get(item_id, [])]
        if not wanted:
            chosen += found
            continue
        costs = np.abs(np.subtract.outer([row.cosine or 0.0 for row in found], wanted))
        places, _ = linear_sum_assignment(costs)
        chosen += [found[place] for place in sorted(places)]
    return chosen


def _measured(rows: Sequence[BankRow], texts: Mapping[str, str], cosines: Cosines) -> dict[str, list[BankRow]]:
    """Rows by item with the similarity of each to its item."""
    known = [row for row in rows if row.item_id in texts]
    values = cosines([(f"{row.prompt}\n{row.completion}", texts[row.item_id]) for row in known])
    by_item: dict[str, list[BankRow]] = defaultdict(list)
    for row, value in zip(known, values, strict=True):
        by_item[row.item_id].append(replace(row, cosine=round(float(value), 4)))
    return by_item
