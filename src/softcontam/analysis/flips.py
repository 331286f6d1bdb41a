"""What became of each item between a clean cell and an arm's cell."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
import pandas as pd

from softcontam.analysis.items import ACCURACY, paired_items
from softcontam.analysis.pairing import Pair

GAINED, LOST, RIGHT, WRONG, UNDECIDED = range(5)
"""Wrong in the clean cell and right in the arm's, the other way round, right in both, wrong in both, not known."""

STATES = ("gained", "lost", "right", "wrong", "undecided")
"""The names of the states; the report's script knows them by their place."""


def item_states(pairs: Sequence[Pair], items: pd.DataFrame) -> pd.DataFrame:
    """What became of each item in each pair of cells.

    Args:
        items: of :func:`softcontam.analysis.items.item_table`.

    Returns:
        One row per pair and item that enters the effects, with ``cell`` and ``clean`` (ids), ``role``, ``benchmark``,
        ``item_id``, ``family``, ``copies``, ``accuracy`` and ``accuracy_clean`` (shares of samples) and ``state`` (the
        number of one of :data:`STATES`). An item is right in a cell if more than half of its samples are.
    """
    both = paired_items(pairs, items)
    treated, clean = both[ACCURACY].to_numpy(float), both[f"{ACCURACY}_clean"].to_numpy(float)
    right, was_right = treated > 0.5, clean > 0.5
    fates = [right & ~was_right, ~right & was_right, right & was_right]
    decided = np.select(fates, [GAINED, LOST, RIGHT], WRONG)
    both["state"] = np.where(np.isnan(treated) | np.isnan(clean), UNDECIDED, decided)
    return both[
        ["cell", "clean", "role", "benchmark", "item_id", "family", "copies", ACCURACY, f"{ACCURACY}_clean", "state"]
    ]
