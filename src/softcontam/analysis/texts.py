"""What the items of a sweep ask and what would be right, from the cells' tables of items."""

from __future__ import annotations

from collections.abc import Sequence

import pandas as pd

from softcontam.analysis.pairing import LoadedCell
from softcontam.errors import DataError
from softcontam.store import read_parquet

TEXT_COLUMNS = ("benchmark", "item_id", "prompt", "target")
"""Columns of a table of texts."""


def item_texts(cells: Sequence[LoadedCell]) -> pd.DataFrame:
    """The distinct texts of the cells' items, with the columns :data:`TEXT_COLUMNS`.

    An item has several rows where the cells ask it in several ways (two response styles, say). Cells without
    ``items.parquet`` are passed over: those from before there was one, and those that have no folder.

    Raises:
        StoreError: such a table is damaged.
        DataError: it lacks a column.
    """
    found = []
    for one in cells:
        path = one.cell.folder / "items.parquet"
        if not path.is_file():
            continue
        frame = read_parquet(path)
        if lacking := sorted(set(TEXT_COLUMNS) - set(frame.columns)):
            raise DataError(
                f"{path} lacks the columns {', '.join(lacking)}. Delete the file: the report then shows no prompts of "
                "this cell."
            )
        found.append(frame[list(TEXT_COLUMNS)])
    if not found:
        return pd.DataFrame(columns=list(TEXT_COLUMNS))
    return pd.concat(found, ignore_index=True).drop_duplicates(ignore_index=True)
