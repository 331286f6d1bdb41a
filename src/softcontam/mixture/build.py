"""Builds the SFT set of one cell, and refuses what would break the comparison.

Rows go to disk in the order of their slots, so that a mixture of a million rows takes no more memory than one of a
hundred thousand. There is one way to build, whatever the size.
"""

from __future__ import annotations

import hashlib
import json
import logging
from collections import Counter
from collections.abc import Sequence
from contextlib import closing
from pathlib import Path

from softcontam.benchmarks import Item
from softcontam.chat import Chat
from softcontam.config import MixtureConfig
from softcontam.duplicates.ngrams import words
from softcontam.errors import LeakageError
from softcontam.mixture.choose import Insertion
from softcontam.mixture.draw import CleanDraw, Drawn, Near
from softcontam.mixture.matching import Tokens
from softcontam.mixture.pool import Pool
from softcontam.mixture.split import FamilySplit
from softcontam.mixture.stored import Mixture, MixtureRow, RowWriter

log = logging.getLogger(__name__)

LISTED = 1_000
"""Clean rows near an item that are listed by their ids at most."""


def build_mixture(
    config: MixtureConfig,
    split: FamilySplit,
    insertions: Sequence[Insertion],
    pool: Pool,
    chat: Chat,
    max_length: int,
    seed: int,
    folder: Path,
    fresh: Sequence[Item] = (),
    near: Near | None = None,
) -> Mixture:
    """Draw the clean rows, replace the chosen slots, tokenize and check every row, and write all of it to ``folder``.

    The draw of clean rows depends on ``seed`` and the pool only, so all arms of a seed share them.

    Args:
        insertions: none in the clean arm; their rows are encoded already.
        fresh: further held-out items, of another draw.
        near: says which clean rows are near a benchmark item; they are listed, or passed over if the config drops them.

    Raises:
        ConfigError: the pool has too few rows.
        LeakageError: a row belongs to, or repeats, a held-out family.
        TokenizationError: a loss mask is wrong.
    """
    leakage = _Leakage(split, fresh)
    for insertion in insertions:
        leakage.refuse(insertion.row.row_id, insertion.slot, insertion.row.prompt, insertion.row.item_id)
    draw = CleanDraw(pool, config.n_rows, chat, max_length, seed, near, config.near_clean_rows == "drop")
    by_slot = {one.slot: one for one in insertions}
    identity = hashlib.sha256(b"[")
    near_ids: list[str] = []
    first = near_count = 0
    clean = replaced = total = Tokens(0, 0)
    folder.mkdir(parents=True, exist_ok=True)
    with RowWriter(folder) as writer, closing(draw.batches(folder)) as batches:
        for batch in batches:
            rows, gone = [], []
            for slot, one in enumerate(batch, start=first):
                identity.update(((", " if slot else "") + json.dumps(one.row.row_id)).encode())
                if slot in by_slot:
                    gone.append(one.encoded)
                    rows.append(_inserted(by_slot[slot]))
                else:
                    leakage.refuse(one.row.row_id, slot, one.row.prompt, None)
                    rows.append(_clean(slot, one))
            writer.write(rows)
            found = [one.row.row_id for one in batch if one.near]
            near_ids += found[: LISTED - len(near_ids)]
            near_count += len(found)
            clean += Tokens.of(one.encoded for one in batch)
            replaced += Tokens.of(gone)
            total += Tokens.of(row.encoded for row in rows)
            first += len(batch)
    identity.update(b"]")
    if near_count:
        told = (near_count, config.near_filter, near_ids[0])
        log.warning("%d clean rows are near a benchmark item by %s, first %s", *told)
    return Mixture(
        folder=folder,
        n_rows=config.n_rows,
        copies=dict(Counter(one.item.item_id for one in insertions)),
        base_sha256=identity.hexdigest(),
        near_benchmark=tuple(near_ids[:LISTED]),
        near_count=len(near_ids),
        too_long=draw.too_long,
        near_dropped=draw.dropped,
        tokens=total,
        clean=clean,
        replaced=replaced,
    )


def _clean(slot: int, one: Drawn) -> MixtureRow:
    row = one.row
    return MixtureRow(slot, "clean", None, None, row.row_id, row.source, row.prompt, row.completion, one.encoded)


def _inserted(one: Insertion) -> MixtureRow:
    row = one.row
    return MixtureRow(
        one.slot, row.kind, row.level, row.item_id, row.row_id, row.source, row.prompt, row.completion, one.encoded
    )


class _Leakage:
    """Refuses rows of held-out families, and rows that repeat a held-out item's prompt word for word."""

    def __init__(self, split: FamilySplit, fresh: Sequence[Item]) -> None:
        """Note what must not be trained on.

        Raises:
            LeakageError: a seen item has the text of a held-out one.
        """
        held_out = (*split.held_out, *fresh)
        self._held_families = {item.family for item in held_out}
        self._family = {item.item_id: item.family for item in (*split.seen, *held_out)}
        self._held_texts = {_plain(item.prompt): item.item_id for item in held_out}
        for item in split.seen:
            other = self._held_texts.get(_plain(item.prompt))
            if other is not None:
                raise LeakageError(
                    f"seen item {item.item_id} has the text of held-out item {other}: join their families"
                )

    def refuse(self, row_id: str, slot: int, prompt: str, item_id: str | None) -> None:
        """Check one row.

        Raises:
            LeakageError: naming the row, its slot and the held-out item.
        """
        if item_id is not None and self._family.get(item_id) in self._held_families:
            raise LeakageError(f"row {row_id} in slot {slot} belongs to held-out item {item_id}")
        held = self._held_texts.get(_plain(prompt))
        if held is not None:
            raise LeakageError(
                f"row {row_id} in slot {slot} repeats the text of held-out item {held}. "
                "Remove it from the pool or bank, or put both items into one family."
            )


def _plain(text: str) -> str:
    return " ".join(words(text))
