"""From outcomes to paired differences: samples within items, items within families, families within seeds."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import pandas as pd

from softcontam.analysis.pairing import Pair
from softcontam.errors import ArmMismatchError, DataError
from softcontam.store import Cell

ACCURACY, LOGPROB = "accuracy", "logprob_per_token"
OUTCOMES = (ACCURACY, LOGPROB)
"""What is compared: the share of correct outputs, and the gold answer's log-probability per token in nats."""

SEEN, HELD_OUT, RELATED, GENERAL = "seen", "held_out", "related", "general"
ROLES = (SEEN, HELD_OUT, RELATED, GENERAL)

_READ = ["role", "benchmark", "item_id", "family", "parse_ok", "correct", "copies", "gold_logprob", "gold_tokens"]
_ITEM = ["role", "benchmark", "item_id"]
_GROUP = ["cell", "role", "benchmark"]


@dataclass(frozen=True)
class SeedDifference:
    """An arm's cell beside its clean cell, on the same items of one benchmark in one role.

    ``value`` and ``baseline`` are means over families in the unit of the outcome; parse rates are shares of outputs;
    ``undecided`` counts items that were left out because the outcome is null on either side.
    """

    cell_id: str
    role: str
    benchmark: str
    value: float
    baseline: float
    parse_rate: float
    baseline_parse_rate: float
    n_items: int
    n_families: int
    undecided: int


@dataclass(frozen=True)
class CellMean:
    """One cell's own result on one benchmark in one role: a mean over families, and the share of parsed outputs."""

    cell_id: str
    role: str
    benchmark: str
    value: float
    parse_rate: float
    n_items: int


def item_table(cells: Sequence[Cell]) -> pd.DataFrame:
    """Outcomes averaged over the samples of each item.

    Returns:
        One row per cell, role, benchmark and item with ``family``, ``accuracy`` (share of correct samples, NaN where
        no sample could be decided), ``logprob_per_token`` (nats), ``parse_rate`` and ``copies``.

    Raises:
        StoreError: an outcomes file is missing or damaged.
        DataError: it lacks a column.
    """
    rows = pd.concat([_read(cell) for cell in cells], ignore_index=True)
    rows[ACCURACY] = rows["correct"].astype("boolean").astype("Float64").to_numpy(float, na_value=float("nan"))
    rows["parse_rate"] = rows["parse_ok"].astype("boolean").astype("Float64").to_numpy(float, na_value=float("nan"))
    rows[LOGPROB] = rows["gold_logprob"].astype(float) / rows["gold_tokens"].astype(float)
    grouped = rows.groupby(["cell", *_ITEM], sort=False, observed=True)
    means = grouped[[ACCURACY, LOGPROB, "parse_rate"]].mean()
    return means.join(grouped[["family", "copies"]].first()).reset_index()


def family_means(items: pd.DataFrame, by: list[str], columns: list[str]) -> pd.DataFrame:
    """Means over families of the means within families, one row per combination of ``by``."""
    within = items.groupby([*by, "family"], sort=False, observed=True)[columns].mean()
    return within.groupby(by, sort=False, observed=True).mean()


def paired_items(pairs: Sequence[Pair], items: pd.DataFrame) -> pd.DataFrame:
    """The items of each pair side by side, the arm's columns as they are and the clean cell's with ``_clean``.

    Of the seen items only covered ones are kept, those with a row in the arm's mixture: which items are covered
    depends on seed and dose, not on the arm. An outcome that is undecided on one side is dropped on both.

    Raises:
        ArmMismatchError: the two cells of a pair weren't evaluated on the same items.
    """
    partners = pd.DataFrame({"cell": [p.treated.cell.id for p in pairs], "clean": [p.clean.cell.id for p in pairs]})
    treated = items.merge(partners, on="cell")
    others = items.drop(columns=["family", "copies"]).rename(columns={"cell": "clean"})
    both = treated.merge(others, on=["clean", *_ITEM], how="left", suffixes=("", "_clean"), indicator=True)
    _check_same_items(both, items, partners)
    both = both[(both["role"] != SEEN) | (both["copies"] > 0)].copy()
    for outcome in OUTCOMES:
        undecided = both[outcome].isna() | both[f"{outcome}_clean"].isna()
        both.loc[undecided, [outcome, f"{outcome}_clean"]] = float("nan")
    return both.drop(columns="_merge")


def seed_differences(paired: pd.DataFrame, outcome: str) -> list[SeedDifference]:
    """One record per arm cell, role and benchmark for which ``outcome`` is decided."""
    decided = paired[paired[outcome].notna()]
    means = family_means(decided, _GROUP, [outcome, f"{outcome}_clean"])
    grouped = decided.groupby(_GROUP, sort=False, observed=True)
    rates = grouped[["parse_rate", "parse_rate_clean"]].mean()
    undecided = paired.groupby(_GROUP, sort=False, observed=True).size() - grouped.size()
    columns = (means[outcome], means[f"{outcome}_clean"], rates["parse_rate"], rates["parse_rate_clean"])
    counts = (grouped.size(), grouped["family"].nunique(), undecided.reindex(means.index))
    keys = (means.index.get_level_values(level) for level in _GROUP)
    return [SeedDifference(*row) for row in zip(*keys, *columns, *counts, strict=True)]


def cell_means(items: pd.DataFrame, outcome: str) -> list[CellMean]:
    """One record per cell, role and benchmark for which ``outcome`` is decided, over all its items."""
    decided = items[items[outcome].notna()]
    means = family_means(decided, _GROUP, [outcome])
    grouped = decided.groupby(_GROUP, sort=False, observed=True)
    keys = (means.index.get_level_values(level) for level in _GROUP)
    rows = zip(*keys, means[outcome], grouped["parse_rate"].mean(), grouped.size(), strict=True)
    return [CellMean(*row) for row in rows]


def _check_same_items(both: pd.DataFrame, items: pd.DataFrame, partners: pd.DataFrame) -> None:
    counts = items.groupby("cell", observed=True).size()
    matched = both[both["_merge"] == "both"].groupby("cell", observed=True).size().reindex(counts.index, fill_value=0)
    for treated, clean in partners.itertuples(index=False):
        if not matched[treated] == counts[treated] == counts[clean]:
            raise ArmMismatchError(
                f"cells {treated} and {clean} (clean) weren't evaluated on the same items: {counts[treated]} and "
                f"{counts[clean]}, of which {matched[treated]} in common. Delete both folders and launch again."
            )


def _read(cell: Cell) -> pd.DataFrame:
    path = cell.folder / "outcomes.parquet"
    try:
        frame = pd.read_parquet(path, columns=_READ)
    except (OSError, ValueError):
        lacking = sorted(set(_READ) - set(cell.outcomes.columns))
        raise DataError(
            f"{path} lacks the columns {', '.join(lacking)}. Delete the folder {cell.folder} and launch again."
        ) from None
    return frame.assign(cell=cell.id)
