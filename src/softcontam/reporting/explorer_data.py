"""What the page's script reads of the item-level view, packed, and what of it is left out.

There is a dictionary of items, and for each arm and each cell one gzipped, base64-coded JSON text ("chunk") that the
script decodes when it is needed.
"""

from __future__ import annotations

import base64
import gzip
import json
import math
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import pandas as pd

from softcontam.analysis.flips import GAINED, LOST
from softcontam.analysis.items import ACCURACY, ROLES
from softcontam.analysis.pairing import Arm, Pair
from softcontam.reporting import wording

PROMPT_CHARACTERS = (8_000, 1_000, 200)
"""Longer prompts and gold answers are cut in the middle: the first length by which they take half the room at most."""

_LEVEL = 4
"""Of gzip: on long outputs half the time of the usual level 6, for pages that are a few per cent larger."""

_ITEM = ["benchmark", "item_id"]
_KEY = ["role", *_ITEM]
_OUTCOME = ["sample", "output", "parsed", "parse_ok", "finished", "correct", "verdict"]


@dataclass(frozen=True)
class _Step:
    """How much of the outputs is kept: whose, and how many characters of each. Longer ones are cut in the middle."""

    characters: int
    flipped_only: bool = False
    highest_only: bool = False
    told: str = ""


_STEPS = (
    _Step(2_000),
    _Step(2_000, True, told="Outputs stand here for items that flip only"),
    _Step(2_000, True, True, "Outputs stand here for items that flip at the highest dose of a condition only"),
    _Step(400, True, True, "Outputs stand here for items that flip at the highest dose of a condition only"),
    _Step(100, True, True, "Outputs stand here for items that flip at the highest dose of a condition only"),
    _Step(0, True, True, "Outputs are left out"),
)
"""From everything to no outputs; the first step that fits into the page is taken."""


@dataclass(frozen=True)
class Index:
    """The numbers that chunks name cells, arms, items and groups (a role on a benchmark) by.

    ``arms`` holds the places of each arm's pairs by seed, ``highest`` the ids of the arms' cells at the highest dose of
    their condition.
    """

    cells: dict[str, int]
    arms: dict[Arm, list[int]]
    items: pd.DataFrame
    groups: pd.DataFrame
    highest: frozenset[str]

    @classmethod
    def of(cls, pairs: Sequence[Pair], listed: pd.DataFrame) -> Index:
        """Number what is in ``listed``, a table of :func:`softcontam.analysis.flips.item_states`."""
        ids = dict.fromkeys(cell.cell.id for pair in pairs for cell in (pair.clean, pair.treated))
        arms: dict[Arm, list[int]] = {}
        order = sorted(range(len(pairs)), key=lambda place: pairs[place].treated.config.seed)
        for arm in dict.fromkeys(pair.treated.arm for pair in pairs):
            arms[arm] = [place for place in order if pairs[place].treated.arm == arm]
        items = listed[[*_ITEM, "family"]].drop_duplicates(_ITEM, ignore_index=True)
        groups = listed[["role", "benchmark"]].drop_duplicates(ignore_index=True)
        place = groups["role"].map({role: index for index, role in enumerate(ROLES)}).fillna(len(ROLES))
        groups = groups.loc[place.sort_values(kind="stable").index].reset_index(drop=True)
        top: dict[tuple[str, ...], tuple[float, int]] = {}
        for arm in arms:
            top[_line(arm)] = max(top.get(_line(arm), (0.0, 0)), _size(arm))
        highest = frozenset(p.treated.cell.id for p in pairs if _size(p.treated.arm) == top[_line(p.treated.arm)])
        return cls({name: number for number, name in enumerate(ids)}, arms, items, groups, highest)

    def numbered(self, frame: pd.DataFrame) -> pd.DataFrame:
        """``frame`` with the columns ``item`` and ``group``."""
        items = self.items[_ITEM].assign(item=range(len(self.items)))
        groups = self.groups.assign(group=range(len(self.groups)))
        return frame.merge(items, on=_ITEM).merge(groups, on=["role", "benchmark"])


def index_chunk(index: Index, pairs: Sequence[Pair], texts: pd.DataFrame) -> str:
    """The chunk that is read first: arms, groups and items by their names, and whether prompts can be searched."""
    contexts = {(arm.split_benchmark, arm.setup) for arm in index.arms}
    arms = [
        {
            "context": _context(arm) if len(contexts) > 1 else "",
            "condition": wording.condition_name(arm),
            "dose": _dose(arm),
            "seeds": [pairs[place].treated.config.seed for place in places],
            "cells": [index.cells[pairs[place].treated.cell.id] for place in places],
            "clean": [index.cells[pairs[place].clean.cell.id] for place in places],
        }
        for arm, places in index.arms.items()
    ]
    groups = [
        {"role": wording.ROLE_NAMES.get(role, role), "benchmark": benchmark}
        for role, benchmark in index.groups[["role", "benchmark"]].itertuples(index=False)
    ]
    names = {"id": index.items["item_id"], "family": index.items["family"]}
    items = {name: column.astype(str).tolist() for name, column in names.items()}
    return _packed({"arms": arms, "groups": groups, "items": items, "prompts": not texts.empty})


def _context(arm: Arm) -> str:
    return f"{arm.split_benchmark} ({arm.setup})" if arm.setup else arm.split_benchmark


def _dose(arm: Arm) -> str:
    text = f"{wording.rate(arm.rate)} of rows"
    return text if arm.copies_setting is None else f"{text}, {arm.copies_setting} copies"


def _line(arm: Arm) -> tuple[str, ...]:
    return arm.split_benchmark, arm.setup, arm.condition, arm.level or ""


def _size(arm: Arm) -> tuple[float, int]:
    return arm.rate, arm.copies_setting or 0


def arm_chunks(index: Index, pairs: Sequence[Pair], listed: pd.DataFrame) -> dict[str, str]:
    """The items of each arm, seed by seed."""
    by_cell = dict(iter(listed.groupby("cell", sort=False)))
    chunks = {}
    for number, places in enumerate(index.arms.values()):
        frames = [by_cell[pairs[place].treated.cell.id] for place in places]
        chunks[f"arm-{number}"] = _packed(
            [
                {
                    "item": frame["item"].tolist(),
                    "group": frame["group"].tolist(),
                    "copies": _whole(frame["copies"]),
                    "clean": _shares(frame[f"{ACCURACY}_clean"]),
                    "arm": _shares(frame[ACCURACY]),
                    "state": frame["state"].tolist(),
                }
                for frame in frames
            ]
        )
    return chunks


def text_chunk(index: Index, texts: pd.DataFrame, budget: int) -> tuple[str, list[str]]:
    """The chunk of prompts and gold answers of the listed items, and what the page has to say of them."""
    if texts.empty:
        note = (
            "Prompts and gold answers are not shown: these outcomes came without them (cells store them in "
            "items.parquet; older cells have no such file, nor have tables from elsewhere)."
        )
        return _packed({"item": [], "prompt": [], "target": []}), [note]
    items = index.items[_ITEM].assign(item=range(len(index.items)))
    found = texts.merge(items, on=_ITEM)
    notes = []
    if lacking := len(items) - found["item"].nunique():
        notes.append(f"The prompts of {lacking:,} of {len(items):,} items are not stored and not shown.")
    for characters in PROMPT_CHARACTERS:
        columns = {name: [_cut(text, characters) for text in found[name]] for name in ("prompt", "target")}
        packed = _packed({"item": found["item"].tolist(), **columns})
        if len(packed) <= budget / 2:
            break
    lengths = found[["prompt", "target"]].map(lambda text: len(str(text)))
    if long := int((lengths > characters).any(axis=1).sum()):
        notes.append(
            f"Prompts and gold answers of more than {characters:,} characters are cut in the middle, where it is "
            f"marked: those of {long:,} of {len(found):,} items."
        )
    return packed, notes


def output_chunks(
    index: Index, listed: pd.DataFrame, rows: pd.DataFrame, budget: int, used: int
) -> tuple[dict[str, str], list[str]]:
    """The outputs of each cell that fit into what is left of ``budget``, and what the page has to say of them."""
    if "output" not in rows or rows["output"].isna().all():
        return {}, ["Outputs are not shown: these outcomes hold none."]
    for step in _STEPS:
        found = _outputs_of(step, index, listed, rows, budget - used)
        if found is None:
            continue
        chunks, total, long = found
        notes = []
        if step.told:
            notes.append(
                f"{step.told}: all of them would take more than the {budget / 1e6:.3g} MB that this table of items may "
                "take in the page. They are in the cells' outcomes.parquet."
            )
        if long:
            notes.append(
                f"Outputs of more than {step.characters:,} characters are cut in the middle, where it is marked: "
                f"{long:,} of {total:,}."
            )
        return chunks, notes
    raise AssertionError("the last step keeps no outputs and fits into any room")


def _outputs_of(
    step: _Step, index: Index, listed: pd.DataFrame, rows: pd.DataFrame, room: int
) -> tuple[dict[str, str], int, int] | None:
    """Chunks of the outputs under one step with the numbers of outputs and of cut ones; None where they don't fit."""
    if step.characters == 0:
        return {}, 0, 0
    chunks: dict[str, str] = {}
    total = long = 0
    wanted = _wanted(listed[listed["cell"].isin(index.highest)] if step.highest_only else listed, step.flipped_only)
    for cell, members in rows.groupby("cell", sort=False, observed=True):
        if cell not in wanted:
            continue
        kept = members.reindex(columns=[*_KEY, *_OUTCOME]).merge(wanted[str(cell)], on=_KEY)
        lengths = [len(str(text)) for text in kept["output"].dropna()]
        total, long = total + len(lengths), long + sum(length > step.characters for length in lengths)
        name = f"cell-{index.cells[str(cell)]}"
        chunks[name] = _packed(_cell_json(kept, step.characters))
        room -= len(chunks[name])
        if room < 0:
            return None
    return chunks, total, long


def _wanted(listed: pd.DataFrame, flipped_only: bool) -> dict[str, pd.DataFrame]:
    """By cell the items of which outputs are kept: both sides of every listed item, or of every flip."""
    kept = listed[listed["state"].isin([GAINED, LOST])] if flipped_only else listed
    columns = [*_KEY, "item", "group"]
    sides: dict[str, list[pd.DataFrame]] = {}
    for (cell, clean), members in kept.groupby(["cell", "clean"], sort=False):
        for side in (str(cell), str(clean)):
            sides.setdefault(side, []).append(members[columns])
    return {side: pd.concat(parts).drop_duplicates(["item", "group"]) for side, parts in sides.items()}


def _cell_json(kept: pd.DataFrame, characters: int) -> dict[str, Any]:
    """The outputs of one cell; texts that repeat are there once."""
    strings: dict[str, int] = {}

    def numbers(column: str) -> list[int | None]:
        codes, texts = pd.factorize(kept[column])
        places = [strings.setdefault(_cut(text, characters), len(strings)) for text in texts]
        return [None if code < 0 else places[code] for code in codes.tolist()]

    columns = {column: numbers(column) for column in ("output", "parsed", "verdict")}
    return {
        "item": kept["item"].tolist(),
        "group": kept["group"].tolist(),
        "sample": _whole(kept["sample"]),
        "correct": _flags(kept["correct"]),
        "parse_ok": _flags(kept["parse_ok"]),
        "finished": _flags(kept["finished"]),
        **columns,
        "strings": list(strings),
    }


def _cut(text: Any, characters: int) -> str:
    """A text without its middle where it is too long: an answer often stands at the end."""
    whole = "" if text is None or text is pd.NA or text != text else str(text)
    if len(whole) <= characters:
        return whole
    head = characters * 2 // 3
    tail = characters - head
    return f"{whole[:head]}\n[… {len(whole) - characters:,} characters left out …]\n{whole[-tail:]}"


def _shares(values: pd.Series[Any]) -> list[float | None]:
    return [None if math.isnan(value) else value for value in values.to_numpy(float).round(4).tolist()]


def _whole(values: pd.Series[Any]) -> list[int]:
    return [int(value) for value in values.fillna(0).tolist()]


def _flags(values: pd.Series[Any]) -> list[float | None]:
    """0, 1 or None; tables from elsewhere may hold shares."""
    return [None if pd.isna(value) else round(float(value), 4) for value in values.tolist()]


def _packed(value: Any) -> str:
    """JSON, gzipped and base64-coded: letters, digits, ``+``, ``/`` and ``=`` alone, whatever is in it."""
    text = json.dumps(value, separators=(",", ":"))
    return base64.b64encode(gzip.compress(text.encode("ascii"), _LEVEL, mtime=0)).decode("ascii")
