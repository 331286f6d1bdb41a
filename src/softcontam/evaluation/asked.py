"""What the items of an evaluation ask, as the table ``items.parquet`` of a cell."""

from __future__ import annotations

from collections.abc import Sequence

import pandas as pd

from softcontam.benchmarks import ItemSet

COLUMNS = ("benchmark", "role", "item_id", "prompt", "target")
"""Columns of a table of asked items."""


def asked_items(item_sets: Sequence[ItemSet]) -> pd.DataFrame:
    """One row per item of each set, in their order, with the columns :data:`COLUMNS`.

    ``prompt`` is the user turn and ``target`` the gold assistant turn, both as plain text without chat markup. Of an
    lm-eval task it is the task's own question, without the examples that lm-eval puts before it.
    """
    rows = [
        (one.benchmark.name, one.role, item.item_id, item.prompt, item.target)
        for one in item_sets
        for item in one.items
    ]
    return pd.DataFrame(rows, columns=list(COLUMNS))
