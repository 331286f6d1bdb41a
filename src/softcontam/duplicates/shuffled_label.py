"""Shuffled labels: the question of a duplicate with the answer of another seen item.

What is left of an effect here comes from having met the questions (their words, their format), not from the answers.
Completions are those of the original rows, handed around: the arm has the same texts in other places.
"""

from __future__ import annotations

import random
from collections.abc import Sequence
from dataclasses import replace

from softcontam.benchmarks import Item
from softcontam.config import derive_seed
from softcontam.duplicates.bank import BankRow
from softcontam.errors import ConfigError


def rows(base: Sequence[BankRow], seen: Sequence[Item]) -> list[BankRow]:
    """Each row of a seen item with the completion of a row of another one: another family and another gold answer.

    Only seen items lend their answers, so that nothing of a held-out item gets in.

    Raises:
        ConfigError: all seen items with rows have the same answer or are of one family.
    """
    by_item: dict[str, list[BankRow]] = {item.item_id: [] for item in seen}
    for row in base:
        if row.item_id in by_item:
            by_item[row.item_id].append(row)
    items = [item for item in seen if by_item[item.item_id]]
    order = random.Random(derive_seed(0, "shuffled_label")).sample(items, len(items))
    made = []
    for place, item in enumerate(order):
        donor = next(
            (
                other
                for step in range(1, len(order))
                if (other := order[(place + step) % len(order)]).family != item.family
                and other.target.strip() != item.target.strip()
            ),
            None,
        )
        if donor is None:
            raise ConfigError(
                f"condition.kind=shuffled_label: no seen item of another family has another answer than "
                f"{item.item_id}. Use more items."
            )
        lent = by_item[donor.item_id]
        for number, row in enumerate(by_item[item.item_id]):
            made.append(
                replace(
                    row,
                    row_id=f"shuffled_label/{row.row_id}",
                    kind="shuffled_label",
                    completion=lent[number % len(lent)].completion,
                    source=f"{row.source}, answer of {donor.item_id}",
                    match_type="related",
                    judge="construction",
                )
            )
    return made
