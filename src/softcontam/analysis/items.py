"""From outcomes to paired differences: samples within items, items within families, families within seeds."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

import numpy as np
import pandas as pd
from numpy.typing import NDArray
from pandas.api.types import is_float_dtype

from softcontam.analysis.pairing import LoadedCell, Pair
from softcontam.analysis.pass_at_k import is_pass_at_k, outcome_name, pass_at_k
from softcontam.errors import ArmMismatchError, DataError
from softcontam.store import Cell

ACCURACY, PARTIAL, LOGPROB = "accuracy", "partial", "logprob_per_token"
OUTCOMES = (ACCURACY, PARTIAL, LOGPROB)
"""What is always compared where it is decided: the share of correct outputs, the mean share of an answer that is right
(ZebraLogic: of cells), and the gold answer's log-probability per token in nats. Beside them there may be pass@k."""

SEEN, HELD_OUT, RELATED, GENERAL = "seen", "held_out", "related", "general"
ROLES = (SEEN, HELD_OUT, RELATED, GENERAL)

_READ = [
    *("role", "benchmark", "item_id", "family", "sample", "output", "parsed", "parse_ok", "finished", "correct"),
    *("copies", "gold_logprob", "gold_tokens"),
]
_READ_IF_THERE = ["partial", "verdict"]
_THERE: tuple[list[str], ...] = (_READ_IF_THERE, ["partial"], ["verdict"], [])
_ITEM = ["role", "benchmark", "item_id"]
_GROUP = ["cell", "role", "benchmark"]


@dataclass(frozen=True)
class SeedDifference:
    """An arm's cell beside its clean cell, on the same items of one benchmark in one role.

    ``value`` and ``baseline`` are means over families in the unit of the outcome; parse rates are shares of outputs;
    ``undecided`` counts items that were left out because the outcome is null on either side. ``families`` (names, with
    their benchmark) and ``family_deltas`` have shape (n_families,), ``items`` and ``clean_items`` (n_items,): the
    outcome of each item in the arm and in the clean cell, whose ids and families are ``item_ids`` and
    ``item_families``.
    """

    cell_id: str
    clean_id: str
    role: str
    benchmark: str
    value: float
    baseline: float
    parse_rate: float
    baseline_parse_rate: float
    n_items: int
    n_families: int
    undecided: int
    families: NDArray[Any] = field(repr=False)
    family_deltas: NDArray[np.float64] = field(repr=False)
    items: NDArray[np.float64] = field(repr=False)
    clean_items: NDArray[np.float64] = field(repr=False)
    item_ids: NDArray[Any] = field(repr=False)
    item_families: NDArray[Any] = field(repr=False)


@dataclass(frozen=True)
class CellMean:
    """One cell's own result on one benchmark in one role: a mean over families, and the share of parsed outputs."""

    cell_id: str
    role: str
    benchmark: str
    value: float
    parse_rate: float
    n_items: int


def read_outcomes(cells: Sequence[Cell]) -> pd.DataFrame:
    """The outcomes of all cells: what :func:`item_table` and the counts of verdicts are made from.

    Cells from before there were a ``partial`` and a ``verdict`` column have null there. Where a benchmark has partial
    results, an output without a parsed answer counts as 0: none of its answer is right.

    Raises:
        StoreError: an outcomes file is missing or damaged.
        DataError: it lacks a column.
    """
    rows = pd.concat([_read(cell) for cell in cells], ignore_index=True)
    has_partial = rows["partial"].notna().groupby(rows["benchmark"], observed=True).transform("any")
    unparsed = rows["parse_ok"].astype("boolean").eq(False).fillna(False).astype(bool)
    rows.loc[has_partial & unparsed & rows["partial"].isna(), "partial"] = 0.0
    return rows


def item_table(rows: pd.DataFrame, pass_at: Mapping[str, Iterable[int]] | None = None) -> pd.DataFrame:
    """Outcomes averaged over the samples of each item.

    Args:
        rows: of :func:`read_outcomes`.
        pass_at: by cell, the k for which pass@k is wanted.

    Returns:
        One row per cell, role, benchmark and item with ``family``, ``accuracy`` (share of correct samples among those
        that could be decided, NaN where none could), ``partial`` (likewise), ``pass@<k>`` for each k (unbiased, NaN
        where fewer than k samples could be decided or the cell doesn't want it), ``logprob_per_token`` (nats),
        ``parse_rate`` and ``copies``.
    """
    rows = rows.copy()
    for column, of in ((ACCURACY, "correct"), ("parse_rate", "parse_ok")):
        values = rows[of] if is_float_dtype(rows[of]) else rows[of].astype("boolean")  # shares come from other tables
        rows[column] = values.astype("Float64").to_numpy(float, na_value=float("nan"))
    rows[LOGPROB] = rows["gold_logprob"].astype(float) / rows["gold_tokens"].astype(float)
    grouped = rows.groupby(["cell", *_ITEM], sort=False, observed=True)
    items = grouped[[ACCURACY, PARTIAL, LOGPROB, "parse_rate"]].mean()
    counts = grouped[ACCURACY].agg(["sum", "count"])
    wanted = {cell: set(ks) for cell, ks in (pass_at or {}).items()}
    for k in sorted(set().union(*wanted.values())):
        asked = counts.index.get_level_values("cell").isin([cell for cell, ks in wanted.items() if k in ks])
        items[outcome_name(k)] = np.where(asked, pass_at_k(counts["sum"], counts["count"], k), np.nan)
    return items.join(grouped[["family", "copies"]].first()).reset_index()


def wanted_pass_at(cells: Iterable[LoadedCell]) -> dict[str, list[int]]:
    """By cell id, the k of ``eval.pass_at`` for which there are enough samples."""
    return {one.cell.id: [k for k in one.config.eval.pass_at if k <= one.config.eval.samples] for one in cells}


def outcomes_of(items: pd.DataFrame) -> list[str]:
    """The outcomes of an item table in the order of a report: accuracy, pass@k by k, partial, log-probability."""
    pass_at = [str(column) for column in items.columns if is_pass_at_k(str(column))]
    return [ACCURACY, *pass_at, *OUTCOMES[1:]]


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
    for outcome in outcomes_of(items):
        undecided = both[outcome].isna() | both[f"{outcome}_clean"].isna()
        both.loc[undecided, [outcome, f"{outcome}_clean"]] = float("nan")
    return both.drop(columns="_merge")


def seed_differences(paired: pd.DataFrame, outcome: str) -> list[SeedDifference]:
    """One record per arm cell, role and benchmark for which ``outcome`` is decided."""
    both = [outcome, f"{outcome}_clean"]
    sizes = paired.groupby(_GROUP, sort=False, observed=True).size().to_dict()
    found = []
    for key, members in paired[paired[outcome].notna()].groupby(_GROUP, sort=False, observed=True):
        cell_id, role, benchmark = map(str, key)
        within = members.groupby("family", sort=False, observed=True)[both].mean()
        found.append(
            SeedDifference(
                cell_id=cell_id,
                clean_id=str(members["clean"].iloc[0]),
                role=role,
                benchmark=benchmark,
                value=float(within[both[0]].mean()),
                baseline=float(within[both[1]].mean()),
                parse_rate=float(members["parse_rate"].mean()),
                baseline_parse_rate=float(members["parse_rate_clean"].mean()),
                n_items=len(members),
                n_families=len(within),
                undecided=sizes[key] - len(members),
                families=np.array([f"{benchmark}/{family}" for family in within.index]),
                family_deltas=(within[both[0]] - within[both[1]]).to_numpy(float),
                items=members[both[0]].to_numpy(float),
                clean_items=members[both[1]].to_numpy(float),
                item_ids=members["item_id"].to_numpy(str),
                item_families=np.array([f"{benchmark}/{family}" for family in members["family"]]),
            )
        )
    return found


def undecided_groups(paired: pd.DataFrame, outcome: str) -> list[tuple[str, str, str, int]]:
    """Cell, role, benchmark and number of items of the groups in which no item is decided on both sides.

    Only of benchmarks and roles on which the outcome is decided in another cell: elsewhere it isn't scored at all.
    """
    decided = paired[outcome].notna()
    scored = set(paired[decided].groupby(_GROUP[1:], observed=True).size().index)
    counts = decided.groupby([paired[name] for name in _GROUP], observed=True).agg(["sum", "size"])
    return [
        (str(cell), str(role), str(benchmark), int(size))
        for (cell, role, benchmark), found, size in zip(counts.index, counts["sum"], counts["size"], strict=True)
        if not found and (role, benchmark) in scored
    ]


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
    for there in _THERE:  # older cells have neither
        try:
            frame = pd.read_parquet(path, columns=[*_READ, *there])
            break
        except (OSError, ValueError):
            continue
    else:
        lacking = sorted(set(_READ) - set(cell.outcomes.columns))
        raise DataError(
            f"{path} lacks the columns {', '.join(lacking)}. Delete the folder {cell.folder} and launch again."
        )
    frame = frame.reindex(columns=[*_READ, *_READ_IF_THERE]).assign(cell=cell.id)
    return frame.astype({"partial": "float64", "verdict": "object"})
