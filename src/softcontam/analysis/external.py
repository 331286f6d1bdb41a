"""Per-item results from anywhere as the cells that an analysis reads: one table, one row per item and sample.

Columns that every table needs: ``condition``, ``benchmark``, ``role`` (seen, held_out, related, general), ``item_id``,
``correct`` (true or false, or the share of correct samples; empty where undecided). ``seed``, ``family`` and ``sample``
are filled in where they lack, and the report says so. Further columns are used where they are there: ``level``,
``rate``, ``copies`` (rows inserted for the item), ``setup`` (a model or recipe), ``split_benchmark`` (needed where one
table holds several benchmarks with seen or held-out items), ``parse_ok``, ``finished``, ``output``, ``parsed``,
``partial``, ``gold_logprob`` and ``gold_tokens``, ``chance``, ``prompt``, ``target``.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pandas as pd

from softcontam.analysis.items import ROLES
from softcontam.analysis.pairing import CLEAN, Arm, LoadedCell, Missing, Pair, SweepCells
from softcontam.config import ConditionConfig, Config
from softcontam.errors import DataError
from softcontam.store import Cell, read_parquet

REQUIRED = ("condition", "benchmark", "role", "item_id", "correct")
_CELL = ["setup", "split_benchmark", "condition", "level", "rate", "seed"]
_WORDS = {"true": 1.0, "false": 0.0, "yes": 1.0, "no": 0.0}
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
        if len(table.columns) == 1 and ";" in str(table.columns[0]):
            raise DataError(f"{path} has semicolons between its columns. Save it with commas, or with tabs as .tsv.")
        raise DataError(
            f"{path} lacks the columns {', '.join(lacking)} (it has: {', '.join(map(str, table.columns))}). Rename or "
            f"add them: every row is one item and sample, with {', '.join(REQUIRED)}."
        )
    if table.empty:
        raise DataError(f"{path} has no rows.")
    table, notes = _completed(path, table)
    table["correct"] = _correct(path, table["correct"])
    for name in ("condition", "benchmark", "role", "item_id", "family", "seed"):
        _no_gaps(path, table[name])
        table[name] = table[name].astype(str)
    table["seed"], renamed = _seeds(table["seed"])
    notes += renamed
    for name in ("rate", "copies", "chance", "gold_logprob", "gold_tokens", "partial"):
        if name in table:
            table[name] = _numbers(path, table[name])
    _check_roles(path, table)
    _check_baseline(path, table, baseline)
    is_baseline = table["condition"] == baseline
    table["level"] = table["level"].astype(object).mask(is_baseline, None)
    table["rate"] = table["rate"].astype(float).mask(is_baseline)  # one baseline for all doses
    table["split_benchmark"] = _split_benchmark(path, table)
    _check_doubles(path, table)
    cells, rows = _cells(table, baseline)
    _check_same_items(path, cells, rows)
    texts = table.reindex(columns=["benchmark", "item_id", "prompt", "target"]).dropna(subset=["prompt"])
    texts = texts.drop_duplicates(["benchmark", "item_id"]).reset_index(drop=True)
    return ExternalOutcomes(cells, rows, texts, tuple(notes))


def _read(path: Path) -> pd.DataFrame:
    if not path.is_file():
        state = "is a folder" if path.is_dir() else "does not exist"
        raise DataError(f"{path} {state}. Give a parquet or csv file of per-item results.")
    if path.suffix == ".parquet":
        return read_parquet(path)
    if path.suffix not in (".csv", ".tsv"):
        raise DataError(f"{path} is neither .parquet nor .csv nor .tsv: save it as one of them.")
    try:
        text = dict.fromkeys(("condition", "benchmark", "role", "item_id", "family", "level", "setup"), str)
        return pd.read_csv(path, sep="\t" if path.suffix == ".tsv" else ",", dtype=text, keep_default_na=True)
    except (ValueError, UnicodeDecodeError) as error:
        raise DataError(
            f"{path} cannot be read as a table ({error}). Save it as csv in UTF-8 or as parquet."
        ) from error


def _completed(path: Path, table: pd.DataFrame) -> tuple[pd.DataFrame, list[str]]:
    """The table with every column that the analysis reads, and what was filled in."""
    notes: list[str] = []
    table = table.reset_index(drop=True)
    table = table.astype({name: object for name in table if isinstance(table[name].dtype, pd.CategoricalDtype)})
    if "seed" not in table:
        table["seed"] = 0
        notes.append("The table has no column seed: every condition counts as one training run.")
    if "family" not in table:
        table["family"] = table["item_id"]
        notes.append("The table has no column family: every item counts as its own family, and twins go unnoticed.")
    if "sample" not in table:
        _check_even_samples(path, table)
        table["sample"] = table.groupby(
            [name for name in (*_CELL, "benchmark", "role", "item_id") if name in table], dropna=False
        ).cumcount()
        notes.append("The table has no column sample: rows of one item are taken as samples in their order.")
    for name, default in (("setup", ""), ("level", None), ("rate", math.nan)):
        if name not in table:
            table[name] = default
    table["setup"] = table["setup"].fillna("").astype(str)
    return table, notes


def _seeds(values: pd.Series[Any]) -> tuple[pd.Series[int], list[str]]:
    """Seeds as whole numbers; names of runs are numbered in their order, which is said."""
    numbers = pd.to_numeric(values, errors="coerce")
    if numbers.notna().all() and (numbers % 1 == 0).all():
        return numbers.astype(int), []
    names = list(dict.fromkeys(values))
    told = ", ".join(f"{name} is {number}" for number, name in enumerate(names))
    return values.map({name: number for number, name in enumerate(names)}).astype(int), [
        f"Seeds were numbered: {told}."
    ]


def _numbers(path: Path, values: pd.Series[Any]) -> pd.Series[float]:
    """A column of numbers; empty cells are NaN."""
    numbers = pd.to_numeric(values, errors="coerce").astype(float)
    bad = numbers.isna() & values.notna() & ~values.astype(str).str.strip().str.lower().isin(_MISSING_TEXT)
    if bad.any():
        row = int(bad.to_numpy().argmax())
        raise DataError(
            f"{_place(path, row)}: {values.name} is {str(values.iloc[row])!r}, not a number. Write 0.05 for 5 % of "
            "rows, and leave it empty where there is none."
        )
    return numbers


def _check_even_samples(path: Path, table: pd.DataFrame) -> None:
    """Without numbered samples, every item of a benchmark in a run has as many rows: one more is a doubled one."""
    run = [name for name in (*_CELL, "benchmark", "role") if name in table]
    counts = table.groupby([*run, "item_id"], sort=False, dropna=False).size().reset_index(name="rows")
    usual = counts.groupby(run, dropna=False)["rows"].transform("min")
    if (counts["rows"] > usual).any():
        one = counts[counts["rows"] > usual].iloc[0]
        where = ", ".join(f"{name} {one[name]}" for name in run)
        raise DataError(
            f"{path}: item {one['item_id']} ({where}) has {one['rows']} rows, others have {usual[int(str(one.name))]}. "
            "Number the samples in a column sample, or drop the doubled rows."
        )


def _correct(path: Path, values: pd.Series[Any]) -> pd.Series[float]:
    """Results as numbers from 0 to 1; NaN where undecided."""
    texts = values.astype(str).str.strip().str.lower()
    numbers = pd.to_numeric(texts.map(lambda text: _WORDS.get(text, text)), errors="coerce").astype(float)
    undecided = values.isna() | texts.isin(_MISSING_TEXT)
    bad = (numbers.isna() & ~undecided) | (numbers < 0) | (numbers > 1)
    if bad.any():
        row = int(bad.to_numpy().argmax())
        raise DataError(
            f"{_place(path, row)}: correct is {str(values.iloc[row])!r}. Write true or false, 1 or 0, or a share "
            "between them; leave it empty where undecided."
        )
    return numbers.mask(undecided)


def _place(path: Path, row: int) -> str:
    """A row as an editor counts lines, or as a table without lines counts rows."""
    return f"{path} row {row + 1}" if path.suffix == ".parquet" else f"{path} line {row + 2}"


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
    if len(conditions) == 1:
        raise DataError(f"{path} has no condition beside {baseline!r}: there is nothing to compare.")


def _split_benchmark(path: Path, table: pd.DataFrame) -> pd.Series[str]:
    """The benchmark that each row's arm is about: its own where the table has only one that is split."""
    if "split_benchmark" in table:
        _no_gaps(path, table["split_benchmark"])
        return table["split_benchmark"].astype(str)
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
            reason = f"the table has no rows of {baseline} with seed {one.config.seed}"
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
        seen = members[members["role"] == "seen"].drop_duplicates("item_id")["copies"]
        if (seen > 0).any():
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
    for name in ("parse_ok", "finished"):
        rows[name] = rows[name].map(_flag).astype("boolean")
    rows["verdict"] = rows["verdict"].astype(object)
    return rows


def _flag(value: object) -> bool | None:
    if value is None or (isinstance(value, float) and math.isnan(value)) or str(value).lower() in _MISSING_TEXT:
        return None
    return bool(_WORDS.get(str(value).strip().lower(), 0.0)) if isinstance(value, str) else bool(value)
