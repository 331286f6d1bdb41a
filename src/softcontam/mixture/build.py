"""Builds the SFT set of one cell and its manifest, and refuses what would break the comparison."""

from __future__ import annotations

import hashlib
import json
import logging
import random
import re
from collections.abc import Sequence
from dataclasses import dataclass

import pandas as pd

from softcontam.benchmarks import Item
from softcontam.chat import Chat, EncodedRow
from softcontam.config import MixtureConfig
from softcontam.duplicates import Bank
from softcontam.duplicates.bank import text_sha256
from softcontam.errors import ConfigError, LeakageError, TokenizationError
from softcontam.mixture.plan import SlotPlan, plan_for, refuse_short_bank
from softcontam.mixture.pool import PoolRow
from softcontam.mixture.split import FamilySplit

log = logging.getLogger(__name__)

NEAR_NGRAM = 13
"""Words in a row that must be shared for a clean row to count as near an item (the usual decontamination length)."""


@dataclass(frozen=True)
class MixtureRow:
    """What is in one slot, and where it comes from."""

    slot: int
    kind: str
    level: str | None
    item_id: str | None
    row_id: str
    source: str
    prompt: str
    completion: str
    encoded: EncodedRow


@dataclass(frozen=True)
class Mixture:
    """The rows in training order (slot 0 first), the plan, and what the checks noticed."""

    rows: tuple[MixtureRow, ...]
    plan: SlotPlan
    base_sha256: str
    near_benchmark: tuple[str, ...]
    too_long: int

    @property
    def copies(self) -> dict[str, int]:
        """Inserted rows by item id."""
        counted: dict[str, int] = {}
        for item in self.plan.items:
            counted[item.item_id] = counted.get(item.item_id, 0) + 1
        return counted

    @property
    def manifest(self) -> pd.DataFrame:
        """One row per slot: what is in it, its provenance, sha256 and token counts."""
        return pd.DataFrame(
            {
                "slot": row.slot,
                "kind": row.kind,
                "level": row.level,
                "item_id": row.item_id,
                "row_id": row.row_id,
                "source": row.source,
                "sha256": text_sha256(row.prompt, row.completion),
                "tokens": len(row.encoded.input_ids),
                "trained_tokens": row.encoded.trained_tokens,
            }
            for row in self.rows
        )


def build_mixture(
    config: MixtureConfig,
    split: FamilySplit,
    bank: Bank | None,
    pool: Sequence[PoolRow],
    chat: Chat,
    max_length: int,
    seed: int,
    fresh: Sequence[Item] = (),
) -> Mixture:
    """Draw the clean rows, replace the planned slots, encode every row and check the whole.

    The draw of clean rows and the plan depend on ``seed`` and the dose only, so all arms of a seed share them.
    ``bank`` is None for the clean arm. ``fresh`` are further held-out items, of another draw.

    Raises:
        ConfigError: the pool or the bank has too few rows for the dose.
        LeakageError: a row belongs to, or repeats, a held-out family.
        TokenizationError: an inserted row does not fit into ``max_length`` tokens, or a loss mask is wrong.
    """
    rng = random.Random(seed)
    clean, too_long = _draw_clean(pool, config.n_rows, chat, max_length, rng)
    plan = plan_for(config, split, seed)
    refuse_short_bank(plan, bank)
    rows = list(clean)
    if bank is not None:
        for position, (slot, item) in enumerate(zip(plan.slots, plan.items, strict=True)):
            rows[slot] = _inserted(slot, item, plan.copy[position], bank, chat, max_length, seed)
    _refuse_leakage(rows, split, fresh)
    identity = json.dumps([row.row_id for row in clean])
    near = _near_rows(clean, [*split.seen, *split.held_out, *fresh])
    if near:
        log.warning(
            "%d clean rows share %d words in a row with a benchmark item, first %s", len(near), NEAR_NGRAM, near[0]
        )
    return Mixture(tuple(rows), plan, hashlib.sha256(identity.encode()).hexdigest(), tuple(near), too_long)


def _draw_clean(
    pool: Sequence[PoolRow], n_rows: int, chat: Chat, max_length: int, rng: random.Random
) -> tuple[list[MixtureRow], int]:
    """``n_rows`` clean rows in a drawn order, skipping those too long to be seen whole; and how many were skipped."""
    order = rng.sample(range(len(pool)), len(pool))
    drawn: list[MixtureRow] = []
    too_long = 0
    for index in order:
        if len(drawn) == n_rows:
            break
        row = pool[index]
        encoded = chat.encode(row.prompt, row.completion)
        if len(encoded.input_ids) > max_length:
            too_long += 1
            continue
        drawn.append(
            MixtureRow(len(drawn), "clean", None, None, row.row_id, row.source, row.prompt, row.completion, encoded)
        )
    if len(drawn) < n_rows:
        raise ConfigError(
            f"mixture.n_rows={n_rows}, but the clean pool has {len(pool)} rows of which {too_long} exceed "
            f"train.max_length={max_length} tokens. Lower n_rows, raise max_length or add files to mixture.pool."
        )
    return drawn, too_long


def _inserted(slot: int, item: Item, copy: int, bank: Bank, chat: Chat, max_length: int, seed: int) -> MixtureRow:
    """The ``copy``-th row of the bank for an item; an exact duplicate is repeated as often as asked for."""
    rows = bank.rows[item.item_id]
    repeated = bank.kind == "exact"
    row = rows[0] if repeated else random.Random(f"{seed}:{item.item_id}").sample(rows, len(rows))[copy]
    encoded = chat.encode(row.prompt, row.completion)
    if len(encoded.input_ids) > max_length:
        raise TokenizationError(
            f"inserted row {row.row_id} has {len(encoded.input_ids)} tokens and would be truncated at "
            f"train.max_length={max_length}. Raise max_length, or drop the row from the bank."
        )
    return MixtureRow(
        slot, bank.kind, row.level, row.item_id, row.row_id, row.source, row.prompt, row.completion, encoded
    )


def _words(text: str) -> list[str]:
    return re.findall(r"\w+", text.lower())


def _refuse_leakage(rows: Sequence[MixtureRow], split: FamilySplit, fresh: Sequence[Item]) -> None:
    held_out = (*split.held_out, *fresh)
    held_families = {item.family for item in held_out}
    family = {item.item_id: item.family for item in (*split.seen, *held_out)}
    held_texts = {" ".join(_words(item.prompt)): item.item_id for item in held_out}
    for item in split.seen:
        other = held_texts.get(" ".join(_words(item.prompt)))
        if other is not None:
            raise LeakageError(f"seen item {item.item_id} has the text of held-out item {other}: join their families")
    for row in rows:
        if row.item_id is not None and family.get(row.item_id) in held_families:
            raise LeakageError(f"row {row.row_id} in slot {row.slot} belongs to held-out item {row.item_id}")
        held = held_texts.get(" ".join(_words(row.prompt)))
        if held is not None:
            raise LeakageError(
                f"row {row.row_id} in slot {row.slot} repeats the text of held-out item {held}. "
                "Remove it from the pool or bank, or put both items into one family."
            )


def _near_rows(rows: Sequence[MixtureRow], items: Sequence[Item]) -> list[str]:
    """Ids of clean rows that share :data:`NEAR_NGRAM` words in a row with an item."""

    def ngrams(text: str) -> set[tuple[str, ...]]:
        words = _words(text)
        return {tuple(words[i : i + NEAR_NGRAM]) for i in range(len(words) - NEAR_NGRAM + 1)}

    known: set[tuple[str, ...]] = set()
    for item in items:
        known |= ngrams(item.prompt)
    return [row.row_id for row in rows if not known.isdisjoint(ngrams(row.prompt))]
