"""Per-item results from anywhere as the cells that an analysis reads: one table, one row per item and sample.

Columns that every table needs: ``condition``, ``benchmark``, ``role`` (seen, held_out, related, general), ``item_id``,
``correct`` (true or false, or the share of correct samples; empty where undecided). ``seed``, ``family`` and ``sample``
are filled in where they lack, and the report says so. Blanks around names are dropped. Further columns are used where
they are there: ``level``, ``rate``, ``copies`` (rows inserted for the item), ``setup`` (a model or recipe),
``split_benchmark`` (needed where one table holds several benchmarks with seen or held-out items), ``parse_ok``,
``finished``, ``output``, ``parsed``, ``partial``, ``gold_logprob`` and ``gold_tokens``, ``chance``, ``prompt``,
``target``.
"""

from __future__ import annotations

import math
import warnings
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Literal

import numpy as np
import pandas as pd

from softcontam.analysis.items import ROLES
from softcontam.analysis.pairing import CLEAN, Arm, LoadedCell, Missing, Pair, SweepCells
from softcontam.config import ConditionConfig, Config
from softcontam.errors import DataError, StoreError
from softcontam.store import Cell, read_parquet

REQUIRED = ("condition", "benchmark", "role", "item_id", "correct")
_CELL = ["setup", "split_benchmark", "condition", "level", "rate", "seed"]
_TEXTS = ("condition", "benchmark", "role", "item_id", "family", "level", "setup", "split_benchmark", "seed")
_SHARE, _WHOLE = "a share from 0 to 1 (0.05 for 5 %)", "a whole number of at least 0"
_RANGES: dict[str, tuple[float, float, str]] = {
    "rate": (0.0, 1.0, _SHARE),
    "chance": (0.0, 1.0, _SHARE),
    "partial": (0.0, 1.0, _SHARE),
    "copies": (0.0, math.inf, _WHOLE),
    "gold_logprob": (-math.inf, math.inf, "a finite number"),
    "gold_tokens": (1.0, math.inf, "a number of at least 1"),
}
_KNOWN = {
    *(*_CELL, *REQUIRED, *_RANGES, "family", "sample", "parse_ok", "finished", "output", "parsed"),
    *("verdict", "prompt", "target", "cell"),
}
_MOST_VALUES, _MOST_TOLD = 100, 12
_SEPARATORS = {".csv": ",", ".tsv": "\t", ".csv.gz": ",", ".tsv.gz": "\t"}
_WORDS = {"true": 1.0, "false": 0.0, "yes": 1.0, "no": 0.0, "t": 1.0, "f": 0.0}
_MISSING_TEXT = ("", "nan", "none", "null", "na")


@dataclass(frozen=True)
class ExternalOutcomes:
    """A table as cells and outcomes; ``notes`` say what was filled in."""

    cells: SweepCells
    rows: pd.DataFrame
    texts: pd.DataFrame
    notes: tuple[str, ...]


def read_outcomes_table(path: Path, baseline: str = CLEAN) -> ExternalOutcomes:
    """Read a parquet or csv table of per-item results.

    Args:
        baseline: the condition that the others are compared with; it becomes the clean arm.

    Raises:
        DataError: no such file, a column that lacks, a value that cannot be read, a doubled row, or no baseline; names
            the file, the line (of a parquet file the row, from 1) and the remedy.
    """
    table = _read(path)
    if lacking := [name for name in REQUIRED if name not in table]:
        for mark, name in ((";", "semicolons"), ("\t", "tabs")):
            if len(table.columns) == 1 and mark in str(table.columns[0]):
                raise DataError(f"{path} has {name} between its columns. Save it with commas, or with tabs as .tsv.")
        raise DataError(
            f"{path} lacks the columns {', '.join(lacking)} (it has: {', '.join(map(str, table.columns))}). Rename or "
            f"add them: every row is one item and sample, with {', '.join(REQUIRED)}."
        )
    if table.empty:
        raise DataError(f"{path} has no rows.")
    table, notes = _completed(path, table)
    table["correct"] = _shares(path, table["correct"])
    for name in ("condition", "benchmark", "role", "item_id", "family", "seed", "sample"):
        _no_gaps(path, table[name])
    for name in ("seed", "sample"):
        table[name], renamed = _numbered(table[name])
        notes += renamed
    for name, (low, high, what) in _RANGES.items():
        if name in table:
            table[name] = _numbers(path, table[name], low, high, what)
    for name in ("parse_ok", "finished"):
        if name in table:
            table[name] = _shares(path, table[name])
    if ("gold_logprob" in table) != ("gold_tokens" in table):
        raise DataError(f"{path} has one of gold_logprob and gold_tokens: give both, or neither.")
    table["role"] = table["role"].str.lower().str.replace("-", "_")
    _check_roles(path, table)
    _check_families(path, table)
    _check_baseline(path, table, baseline)
    is_baseline = table["condition"] == baseline
    _check_one_baseline(path, table[is_baseline], baseline)
    table["level"] = table["level"].astype(object).mask(is_baseline, None)
    # one baseline for all doses; an empty rate and 0 are the same: none stated
    table["rate"] = table["rate"].astype(float).mask(is_baseline | (table["rate"] == 0))
    _check_copies(path, table[~is_baseline])
    if "chance" in table:
        table["chance"] = _chance_everywhere(table)
    table["split_benchmark"] = _split_benchmark(path, table)
    _check_doubles(path, table)
    cells, rows = _cells(table, baseline)
    notes += _unpaired(path, cells, baseline)
    _check_same_items(path, cells, rows)
    texts = table.reindex(columns=["benchmark", "item_id", "prompt", "target"])
    for name in ("prompt", "target"):
        texts[name] = _text(texts[name])
    texts = texts.dropna(subset=["prompt"])
    texts = texts.drop_duplicates(["benchmark", "item_id"]).reset_index(drop=True)
    return ExternalOutcomes(cells, rows, texts, tuple(notes))


def _read(path: Path) -> pd.DataFrame:
    if not path.is_file():
        state = "is a folder" if path.is_dir() else "does not exist"
        raise DataError(f"{path} {state}. Give a parquet or csv file of per-item results.")
    if path.suffix.lower() == ".parquet":
        try:
            return read_parquet(path)
        except StoreError as error:
            raise DataError(f"{path} cannot be read as parquet ({error.__cause__}). Save it again.") from error
    separators = [mark for name, mark in _SEPARATORS.items() if path.name.lower().endswith(name)]
    if not separators:
        raise DataError(f"{path} is neither .parquet nor .csv nor .tsv (or .csv.gz, .tsv.gz): save it as one of them.")
    packed: Literal["gzip"] | None = "gzip" if path.suffix.lower() == ".gz" else None
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("error", pd.errors.ParserWarning)
            # everything as text: an item may be called 007 or NA
            return pd.read_csv(
                path, sep=separators[0], compression=packed, dtype=str, keep_default_na=False, index_col=False
            )
    except pd.errors.ParserWarning:
        raise DataError(
            f"{path} has rows with more cells than its header has names. Name every column, and drop commas at the "
            "ends of rows."
        ) from None
    except (ValueError, UnicodeDecodeError, OSError) as error:
        raise DataError(
            f"{path} cannot be read as a table ({error}). Save it as csv in UTF-8 or as parquet."
        ) from error


def _completed(path: Path, table: pd.DataFrame) -> tuple[pd.DataFrame, list[str]]:
    """The table with every column that the analysis reads, and what was filled in."""
    notes: list[str] = []
    table = table.reset_index(drop=True)
    table = table.astype({name: object for name in table if isinstance(table[name].dtype, pd.CategoricalDtype)})
    for name in (*_TEXTS, "sample"):
        if name in table:
            table[name] = _text(table[name])
    if "seed" not in table:
        table["seed"] = "0"
        notes.append("The table has no column seed: every condition counts as one training run.")
    if "family" not in table:
        table["family"] = table["item_id"]
        notes.append("The table has no column family: every item counts as its own family, and twins go unnoticed.")
    if "sample" not in table:
        _check_even_samples(path, table)
        _check_pooled(path, table)
        table["sample"] = table.groupby([*_run(table), "benchmark", "role", "item_id"], dropna=False).cumcount()
        notes.append("The table has no column sample: rows of one item are taken as samples in their order.")
    for name, default in (("setup", ""), ("level", None), ("rate", math.nan)):
        if name not in table:
            table[name] = default
    table["setup"] = table["setup"].fillna("").astype(str)
    return table, notes


def _text(values: pd.Series[Any]) -> pd.Series[Any]:
    """Names without blanks around them, whole numbers without a decimal point; None where there is nothing."""

    def named(value: Any) -> str | None:
        if value is None or value is pd.NA or (isinstance(value, float) and math.isnan(value)):
            return None
        text = str(int(value)) if isinstance(value, float) and value.is_integer() else str(value).strip()
        return text or None

    return pd.Series([named(value) for value in values], index=values.index, dtype=object, name=values.name)


def _numbered(values: pd.Series[Any]) -> tuple[pd.Series[int], list[str]]:
    """Seeds or samples as whole numbers; other names are numbered in their order, which is said."""
    numbers = pd.to_numeric(values, errors="coerce")
    if numbers.notna().all() and (numbers % 1 == 0).all() and (numbers.abs() < 2**53).all():
        return numbers.astype(int), []
    names = {name: number for number, name in enumerate(dict.fromkeys(values))}
    told = [f"{name} is {number}" for name, number in names.items()]
    more = f" and {len(told) - _MOST_TOLD} more" if len(told) > _MOST_TOLD else ""
    note = f"The column {values.name} was numbered: {', '.join(told[:_MOST_TOLD])}{more}."
    return values.map(names).astype(int), [note]


def _numbers(path: Path, values: pd.Series[Any], low: float, high: float, what: str) -> pd.Series[float]:
    """A column of finite numbers within a range; empty cells are NaN."""
    numbers = pd.to_numeric(values, errors="coerce").astype(float)
    empty = values.isna() | values.astype(str).str.strip().str.lower().isin(_MISSING_TEXT)
    bad = ~empty & ~(np.isfinite(numbers) & (numbers >= low) & (numbers <= high))
    if what == _WHOLE:
        bad |= ~empty & (numbers % 1 != 0)
    if bad.any():
        row = int(bad.to_numpy().argmax())
        raise DataError(
            f"{_place(path, row)}: {values.name} is {str(values.iloc[row])!r}. It has to be {what}; leave it empty "
            "where there is none."
        )
    return numbers.mask(empty)


def _run(table: pd.DataFrame) -> list[str]:
    """The columns that tell runs apart, of those that there are."""
    return [name for name in _CELL if name in table]


def _check_even_samples(path: Path, table: pd.DataFrame) -> None:
    """Without numbered samples, every item of a benchmark in a run has as many rows: one more is a doubled one."""
    run = [*_run(table), "benchmark", "role"]
    counts = table.groupby([*run, "item_id"], sort=False, dropna=False).size().reset_index(name="rows")
    usual = counts.groupby(run, dropna=False)["rows"].transform("min")
    if (counts["rows"] > usual).any():
        one = counts[counts["rows"] > usual].iloc[0]
        where = ", ".join(f"{name} {one[name]}" for name in run)
        raise DataError(
            f"{path}: item {one['item_id']} ({where}) has {one['rows']} rows, others have {usual[int(str(one.name))]}. "
            "Number the samples in a column sample, or drop the doubled rows."
        )


def _check_pooled(path: Path, table: pd.DataFrame) -> None:
    """Without numbered samples, a column with the same several values in every item tells runs apart, not samples."""
    groups = table.groupby([*_run(table), "benchmark", "role", "item_id"], sort=False, dropna=False)
    if int(groups.size().max()) < 2:
        return
    for name in table.columns:
        if name in _KNOWN or table[name].nunique(dropna=False) > _MOST_VALUES:
            continue
        of_items = (sorted(map(str, members)) for _, members in groups[name])
        first = next(of_items)
        if len(names := set(first)) > 1 and all(one == first for one in of_items):
            raise DataError(
                f"{path} has several rows of each item, told apart by {name} ({', '.join(sorted(names))}). If these "
                "are models, recipes or checkpoints, call the column setup or keep one of them; if they are samples, "
                "call it sample."
            )


def _check_copies(path: Path, rows: pd.DataFrame) -> None:
    """A run counts the rows of all its seen items, or of none."""
    if "copies" not in rows:
        return
    seen = rows[rows["role"] == "seen"]
    empty = seen["copies"].isna()
    counted = (~empty).groupby([seen[name] for name in _run(seen)], sort=False, dropna=False).transform("any")
    if (empty & counted).any():
        one = seen[empty & counted].iloc[0]
        raise DataError(
            f"{_place(path, int(str(one.name)))}: copies is empty for seen item {one['item_id']!r}, but not for others "
            f"of {one['condition']}, seed {one['seed']}. Write 0 where an item has no rows, or leave a run's all empty."
        )


def _chance_everywhere(table: pd.DataFrame) -> pd.Series[float]:
    """Chance belongs to a benchmark: where a run leaves it out, that of the other runs, or of the other half."""
    found = table["chance"]
    for key in (["benchmark", "role"], ["benchmark"]):
        found = found.fillna(found.groupby([table[name] for name in key]).transform("mean"))
    return found


def _check_families(path: Path, table: pd.DataFrame) -> None:
    """An item belongs to one family in all runs, and has one role in each."""
    families = table.groupby(["benchmark", "item_id"], sort=False)["family"].transform("nunique")
    if (families > 1).any():
        one = table[families > 1].iloc[0]
        same = table[(table["benchmark"] == one["benchmark"]) & (table["item_id"] == one["item_id"])]
        raise DataError(
            f"{path}: item {one['item_id']!r} of {one['benchmark']} has several families "
            f"({', '.join(map(repr, dict.fromkeys(same['family'])))}). An item has one family in all runs."
        )
    roles = table.groupby([*_run(table), "benchmark", "item_id"], sort=False, dropna=False)["role"].transform("nunique")
    if (roles > 1).any():
        row = int((roles > 1).to_numpy().argmax())
        one = table.iloc[row]
        raise DataError(
            f"{_place(path, row)}: item {one['item_id']!r} of {one['benchmark']} has several roles in condition "
            f"{one['condition']}, seed {one['seed']}. An item has one role in a run."
        )


def _unpaired(path: Path, cells: SweepCells, baseline: str) -> list[str]:
    """Notes on runs of the baseline that an arm lacks, and on seen items that no arm covers."""
    if not cells.pairs:
        raise DataError(
            f"{path}: no condition has a seed in common with {baseline}. An arm and its baseline of the same seed are "
            "paired: give both the same seed."
        )
    seeds: dict[Arm, set[int]] = {}
    for one in cells.done:
        seeds.setdefault(one.arm, set()).add(one.config.seed)
    notes = []
    for arm, found in seeds.items():
        clean = [
            members
            for other, members in seeds.items()
            if other.condition == CLEAN and (other.setup, other.split_benchmark) == (arm.setup, arm.split_benchmark)
        ]
        if lacking := sorted(set().union(*clean) - found):
            notes.append(
                f"{arm.condition} has no runs of the seeds {', '.join(map(str, lacking))} that {baseline} has."
            )
    for one in cells.done:
        if one.metrics.get("covered_items") == 0 and not one.is_clean:
            notes.append(
                f"No seen item of {one.arm.condition}, seed {one.config.seed}, has copies above 0: none is compared."
            )
    return notes


def _shares(path: Path, values: pd.Series[Any]) -> pd.Series[float]:
    """Results as numbers from 0 to 1; NaN where undecided."""
    texts = values.astype(str).str.strip().str.lower()
    numbers = pd.to_numeric(texts.map(lambda text: _WORDS.get(text, text)), errors="coerce").astype(float)
    undecided = values.isna() | texts.isin(_MISSING_TEXT)
    bad = (numbers.isna() & ~undecided) | (numbers < 0) | (numbers > 1)
    if bad.any():
        row = int(bad.to_numpy().argmax())
        raise DataError(
            f"{_place(path, row)}: {values.name} is {str(values.iloc[row])!r}. Write true or false, 1 or 0, or a "
            "share between them; leave it empty where undecided."
        )
    return numbers.mask(undecided)


def _place(path: Path, row: int) -> str:
    """A row of the data, the header not counted; a cell with line breaks makes lines of a file another matter."""
    return f"{path} row {row + 1}"


def _no_gaps(path: Path, values: pd.Series[Any]) -> None:
    if values.isna().any():
        row = int(values.isna().to_numpy().argmax())
        raise DataError(f"{_place(path, row)}: {values.name} is empty. Fill it in, or drop the row.")


def _check_roles(path: Path, table: pd.DataFrame) -> None:
    unknown = ~table["role"].isin(ROLES)
    if unknown.any():
        row = int(unknown.to_numpy().argmax())
        raise DataError(
            f"{_place(path, row)}: role is {table['role'].iloc[row]!r}. Roles are {', '.join(ROLES)}: seen items had "
            "duplicates in the training data, held_out ones are of the same benchmark without."
        )


def _check_baseline(path: Path, table: pd.DataFrame, baseline: str) -> None:
    conditions = sorted(set(table["condition"]))
    if baseline not in conditions:
        raise DataError(
            f"{path} has no rows of condition {baseline!r} (there are: {', '.join(conditions)}). Say which one the "
            "others are compared with: baseline=NAME."
        )
    if baseline != CLEAN and CLEAN in conditions:
        raise DataError(
            f"{path} has a condition called {CLEAN} beside the baseline {baseline}: {CLEAN} is what the report calls "
            f"the baseline. Rename that condition, or pass baseline={CLEAN}."
        )
    if len(conditions) == 1:
        raise DataError(f"{path} has no condition beside {baseline!r}: there is nothing to compare.")


def _check_one_baseline(path: Path, rows: pd.DataFrame, baseline: str) -> None:
    """The baseline stands once for all doses and levels."""
    key = ["setup", "seed", "benchmark", "role", "item_id", "sample"]
    for name in ("rate", "level"):
        several = rows.groupby(key, sort=False, dropna=False)[name].transform("nunique", dropna=False) > 1
        if several.any():
            found = ", ".join(map(str, dict.fromkeys(rows.loc[several, name])))
            raise DataError(
                f"{path} repeats the baseline {baseline} for several values of {name} ({found}). It has no dose and no "
                f"level and serves all arms of its seed: give its rows once, with {name} empty."
            )


def _split_benchmark(path: Path, table: pd.DataFrame) -> pd.Series[str]:
    """The benchmark that each row's arm is about: its own where the table has only one that is split."""
    if "split_benchmark" in table:
        _no_gaps(path, table["split_benchmark"])
        return table["split_benchmark"]
    of_setup = {}
    for setup, members in table.groupby("setup", sort=False):
        split = members.loc[members["role"].isin(("seen", "held_out")), "benchmark"].unique()
        others = set(members["role"]) - {"seen", "held_out"}
        if len(split) > 1 and others:
            raise DataError(
                f"{path} has seen or held-out items of several benchmarks ({', '.join(sorted(split))}) and "
                f"{', '.join(sorted(others))} ones: say which belong together in a column split_benchmark, the "
                "benchmark that was split."
            )
        of_setup[setup] = (
            str(split[0]) if len(split) == 1 else None if len(split) else str(members["benchmark"].iloc[0])
        )
    found = table["setup"].map(of_setup)
    return found.fillna(table["benchmark"]).astype(str)


def _check_doubles(path: Path, table: pd.DataFrame) -> None:
    key = [*_CELL, "benchmark", "role", "item_id", "sample"]
    doubled = table.duplicated(key)
    if doubled.any():
        row = int(doubled.to_numpy().argmax())
        one = table.iloc[row]
        raise DataError(
            f"{_place(path, row)}: a second result of item {one['item_id']} ({one['benchmark']}, {one['role']}) in "
            f"condition {one['condition']}, seed {one['seed']}, sample {one['sample']}. Number the samples, or put "
            "what tells the rows apart (a model, a level, a rate) into the columns setup, level or rate."
        )
    split = table[table["role"].isin(("seen", "held_out"))]
    roles = split.groupby([*_CELL, "benchmark", "family"], dropna=False)["role"].transform("nunique")
    if (roles > 1).any():
        one = split[roles > 1].iloc[0]
        raise DataError(
            f"{_place(path, int(str(one.name)))}: family {one['family']} of {one['benchmark']} has both seen and "
            f"held-out items in condition {one['condition']}, seed {one['seed']}. Split by family, or give its items "
            "families of their own if they share nothing."
        )


def _check_same_items(path: Path, cells: SweepCells, rows: pd.DataFrame) -> None:
    items = {
        str(cell): set(zip(members["role"], members["benchmark"], members["item_id"], strict=True))
        for cell, members in rows.groupby("cell", sort=False)
    }
    for pair in cells.pairs:
        ours, theirs = items[pair.treated.cell.id], items[pair.clean.cell.id]
        if ours != theirs:
            role, benchmark, item = sorted(ours ^ theirs)[0]
            arm, clean = pair.treated.arm.condition, "the baseline"
            has, lacks = (arm, clean) if (role, benchmark, item) in ours else (clean, arm)
            raise DataError(
                f"{path}: with seed {pair.treated.config.seed} {len(ours ^ theirs)} items have results in {arm} or in "
                f"{clean} only; {has} has {item} ({benchmark}, {role}), {lacks} has not. Effects are paired by item: "
                "leave such items out of both, or give every arm its results on all of them."
            )


def _cells(table: pd.DataFrame, baseline: str) -> tuple[SweepCells, pd.DataFrame]:
    """The cells of a table, paired by seed within setup and benchmark, and their outcomes."""
    done: list[LoadedCell] = []
    parts: list[pd.DataFrame] = []
    for number, (key, members) in enumerate(table.groupby(_CELL, sort=False, dropna=False)):
        setup, split, condition, level, rate, seed = _values(key)
        is_clean = condition == baseline
        arm = Arm(
            str(setup),
            str(split),
            CLEAN if is_clean else str(condition),
            None if is_clean or pd.isna(level) else str(level),
            0.0 if is_clean or pd.isna(rate) else float(rate),
            None,
        )
        cell = Cell(f"{number}", Path(f"external/{number}"))
        done.append(LoadedCell(cell, _config(arm, int(seed)), _metrics(members), arm))
        parts.append(members.assign(cell=cell.id))
    clean = {(one.arm.setup, one.arm.split_benchmark, one.config.seed): one for one in done if one.is_clean}
    sweep = SweepCells({"experiment": "", "cells": []}, done, [])
    for one in done:
        if one.is_clean:
            continue
        twin = clean.get((one.arm.setup, one.arm.split_benchmark, one.config.seed))
        if twin is None:
            of = [one.arm.setup, *([one.arm.split_benchmark] if len({key[1] for key in clean}) > 1 else [])]
            where = f" of {', '.join(filter(None, of))}" if any(of) else ""
            reason = f"the table has no rows of {baseline}{where} with seed {one.config.seed}"
            sweep.missing.append(Missing(one.arm, one.config.seed, "", reason, ""))
        else:
            sweep.pairs.append(Pair(one, twin))
    return sweep, _outcome_rows(pd.concat(parts, ignore_index=True))


def _values(key: Any) -> tuple[Any, ...]:
    """What a group of rows has in common, in the order of the columns."""
    return tuple(key)


def _config(arm: Arm, seed: int) -> Config:
    """A config that says what the table says of a cell; the rest of it has no meaning."""
    config = Config(seed=seed, condition=ConditionConfig(arm.condition, arm.level))
    config.benchmark.name, config.mixture.rate = arm.split_benchmark, arm.rate
    config.model.name = arm.setup
    return config


def _metrics(members: pd.DataFrame) -> dict[str, object]:
    """What the analysis reads of a cell's figures: chance, and rows per covered item where the table counts them."""
    found: dict[str, object] = {}
    if "chance" in members:
        means = members.groupby(["benchmark", "role"])["chance"].mean().dropna()
        found["chance"] = {"/".join(key): float(value) for key, value in zip(means.index, means, strict=True)}
    if "copies" in members:
        seen = members[members["role"] == "seen"].drop_duplicates("item_id")["copies"].dropna()
        if len(seen):
            found |= {"inserted_rows": int(seen.sum()), "covered_items": int((seen > 0).sum())}
    return found


def _outcome_rows(table: pd.DataFrame) -> pd.DataFrame:
    """The table with the columns and types of stored outcomes; seen items without a count are taken as covered."""
    rows = table.reindex(
        columns=[
            *("cell", "benchmark", "role", "item_id", "family", "sample", "output", "parsed", "parse_ok", "finished"),
            *("correct", "copies", "gold_logprob", "gold_tokens", "partial", "verdict"),
        ]
    )
    rows["copies"] = rows["copies"].fillna((rows["role"] == "seen").astype(int)).astype(int)
    for name in ("gold_logprob", "gold_tokens", "partial"):
        rows[name] = rows[name].astype(float)
    rows["parse_ok"] = rows["parse_ok"].astype(float)
    rows["verdict"] = pd.Series([None] * len(rows), index=rows.index, dtype=object)  # the sandbox's, and no one else's
    return rows
