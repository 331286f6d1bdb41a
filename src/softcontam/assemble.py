"""From the layout of an arm to its mixture: rows chosen, filters run, clean rows drawn, everything checked.

A launch chooses the rows of every cell before it starts one (:func:`choose_rows`), so that an arm that cannot be
matched, or a row near a held-out item, stops it at once; the cell then builds the whole (:func:`assemble`).
"""

from __future__ import annotations

import hashlib
import json
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from functools import lru_cache
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from softcontam.arms import Arm, embedder_of
from softcontam.benchmarks import Item
from softcontam.chat import Chat
from softcontam.config import Config, ModelConfig, from_settings
from softcontam.duplicates import exact
from softcontam.duplicates.distance import Similarity
from softcontam.duplicates.embedding import Embedder
from softcontam.duplicates.filters import Detector, check_filters
from softcontam.mixture import Mixture, build_mixture
from softcontam.mixture.choose import Chosen, Finds, choose
from softcontam.mixture.matching import Matching, Tokens, measure, refuse_mismatch
from softcontam.mixture.pool import Pool
from softcontam.models import load_chat

ESTIMATED_FROM = 200
"""Clean rows from which a launch estimates the tokens of a mixture that is not built yet."""


@dataclass(frozen=True)
class Detected:
    """What standard filters would have found.

    ``inserted`` and ``clean`` hold, by filter, one verdict for each inserted row (in slot order) and clean row (in slot
    order); ``similarity`` is the cosine of each inserted row to its item by ``measure``.
    """

    inserted: dict[str, NDArray[np.bool_]]
    clean: dict[str, NDArray[np.bool_]]
    similarity: NDArray[np.float64]
    measure: str


@dataclass(frozen=True)
class Assembled:
    """A built mixture and all that was measured of it; ``chosen`` and ``matching`` are None for the clean arm."""

    mixture: Mixture
    chosen: Chosen | None
    matching: Matching | None
    detected: Detected

    def write_manifest(self, path: Path) -> None:
        """The manifest of the mixture, with the verdict of each filter and the similarity to the item by slot."""
        n_rows = self.mixture.n_rows
        slots = np.array(sorted(one.slot for one in self.chosen.insertions) if self.chosen else [], dtype=np.int64)
        others = np.delete(np.arange(n_rows), slots)
        columns: dict[str, NDArray[Any]] = {}
        for name in dict.fromkeys([*self.detected.inserted, *self.detected.clean]):
            columns[name] = np.full(n_rows, None, dtype=object)
            for places, found in ((slots, self.detected.inserted), (others, self.detected.clean)):
                if name in found:
                    columns[name][places] = found[name]
        columns["similarity"] = np.full(n_rows, np.nan)
        columns["similarity"][slots] = self.detected.similarity
        self.mixture.write_manifest(path, columns)

    def metrics(self, arm: Arm) -> dict[str, Any]:
        """Summary figures of the mixture for ``metrics.json``."""
        mixture, chosen = self.mixture, self.chosen
        return {
            "base_sha256": mixture.base_sha256,
            "slots_sha256": hashlib.sha256(json.dumps(arm.plan.slots).encode()).hexdigest(),
            "n_rows": mixture.n_rows,
            "inserted_rows": sum(mixture.copies.values()),
            "covered_items": len(mixture.copies),
            "tokens": mixture.tokens.tokens,
            "trained_tokens": mixture.tokens.trained_tokens,
            "clean_rows_too_long": mixture.too_long,
            "near_benchmark": list(mixture.near_benchmark),
            "near_benchmark_count": mixture.near_count,
            "near_benchmark_dropped": mixture.near_dropped,
            "matching": self.matching.as_dict() if self.matching else None,
            "near_held_out_left_out": len(chosen.left_out) if chosen else 0,
            "alike_across_halves": list(chosen.alike) if chosen else [],
            "detected": {name: [int(found.sum()), len(found)] for name, found in self.detected.inserted.items()},
            "detected_clean": {name: [int(found.sum()), len(found)] for name, found in self.detected.clean.items()},
            "similarity": self.detected.measure,
        }


def choose_rows(config: Config, arm: Arm, chat: Chat) -> Chosen | None:
    """Choose the rows of an arm and refuse those near a held-out item; None for the clean arm.

    Raises:
        ConfigError: an unknown filter, or one that needs ``mixture.embedder``.
        TokenizationError: a row would be truncated.
        LeakageError: a row is near a held-out item.
    """
    mixture, condition = config.mixture, config.condition
    used = [*mixture.filters, *mixture.clean_filters, mixture.near_filter, *filter(None, [condition.filter])]
    check_filters(used, mixture.embedder)
    if arm.bank is None:
        return None
    embedder = embedder_of(config)
    held_out = (*arm.split.held_out, *arm.fresh)
    return choose(
        arm.plan,
        arm.bank,
        chat,
        config.train.max_length,
        config.seeds.mixture or 0,
        admitted=(*condition.differs, *config.mixture.differs),
        filtered=finder(_split_items(arm), condition.filter, embedder) if condition.filter else None,
        near_held_out=finder(held_out, config.mixture.near_filter, embedder),
        leave_out=config.mixture.near_held_out == "leave_out",
    )


def assemble(config: Config, arm: Arm, chat: Chat, folder: Path) -> Assembled:
    """Build the mixture of one cell in ``folder``, measure how it matches, and run the filters over it.

    Raises:
        ConfigError: the pool has too few rows for the dose.
        LeakageError: a row belongs to, repeats or is near a held-out family.
        TokenizationError: an inserted row would be truncated, or a loss mask is wrong.
        ArmMismatchError: the arm differs from the others in what was not admitted.
    """
    chosen = choose_rows(config, arm, chat)
    embedder = embedder_of(config)
    checked = [item for one in arm.item_sets if one.role != "general" for item in one.items]
    mixture = build_mixture(
        config.mixture,
        arm.split,
        chosen.insertions if chosen else (),
        arm.pool,
        chat,
        config.train.max_length,
        config.seeds.mixture or 0,
        folder,
        arm.fresh,
        finder(checked, config.mixture.near_filter, embedder),
    )
    matching = None
    if chosen is not None:
        matching = measure(chosen, mixture.replaced, mixture.clean, arm.item_sets[0].benchmark.response_style)
        refuse_mismatch(matching, config.mixture, config.condition, _named(config))
    return Assembled(mixture, chosen, matching, _detect(config, arm, mixture, chosen, embedder))


def estimated_matching(config: Config, arm: Arm, chat: Chat, chosen: Chosen) -> Matching:
    """The matching of an arm before its mixture is built: the clean rows' tokens are estimated from some of them.

    Raises:
        ArmMismatchError: the arm differs from the others in what was not admitted.
    """
    tokens, trained = _mean_tokens(arm.pool, chat)
    count, n_rows = len(chosen.insertions), config.mixture.n_rows
    matching = measure(
        chosen,
        Tokens(round(tokens * count), round(trained * count)),
        Tokens(round(tokens * n_rows), round(trained * n_rows)),
        arm.item_sets[0].benchmark.response_style,
    )
    refuse_mismatch(matching, config.mixture, config.condition, _named(config))
    return matching


@lru_cache(maxsize=4)
def _mean_tokens(pool: Pool, chat: Chat) -> tuple[float, float]:
    """Mean tokens and trained tokens of a row, over rows spread evenly through the pool."""
    step = max(1, len(pool) // ESTIMATED_FROM)
    rows = pool.take(range(0, len(pool), step))
    counted = Tokens.of(chat.encode_many([(row.prompt, row.completion) for row in rows]))
    return counted.tokens / len(rows), counted.trained_tokens / len(rows)


@lru_cache(maxsize=2)
def chat_of(model: str) -> Chat:
    """The chat rendering of a model, from its settings as JSON; without its weights."""
    return load_chat(from_settings(ModelConfig, json.loads(model)))


def finder(items: Sequence[Item], name: str, embedder: Embedder | None) -> Finds:
    """One filter over these items as a function of (prompt, completion) pairs."""
    detector = Detector(items, [name], embedder)
    return lambda rows: detector.flags(rows)[name]


def _detect(config: Config, arm: Arm, mixture: Mixture, chosen: Chosen | None, embedder: Embedder | None) -> Detected:
    """Run the filters over inserted and clean rows, with all items of the split benchmark as what must not be found."""
    items = _split_items(arm)
    insertions = sorted(chosen.insertions, key=lambda one: one.slot) if chosen else []
    inserted = [(one.row.prompt, one.row.completion) for one in insertions]
    clean_detector = Detector(items, config.mixture.clean_filters, embedder)
    batches = [clean_detector.flags(rows) for rows in _clean_rows(mixture)]
    similarity = Similarity([exact.text(item) for item in items], embedder)
    return Detected(
        Detector(items, config.mixture.filters, embedder).flags(inserted),
        {name: np.concatenate([batch[name] for batch in batches]) for name in config.mixture.clean_filters},
        similarity.cosines([(f"{one.row.prompt}\n{one.row.completion}", exact.text(one.item)) for one in insertions]),
        similarity.name,
    )


def _clean_rows(mixture: Mixture) -> Iterator[list[tuple[str, str]]]:
    """The clean rows of a mixture in batches."""
    for batch in mixture.batches(["kind", "prompt", "completion"]):
        columns = (batch[name].to_pylist() for name in ("kind", "prompt", "completion"))
        yield [(prompt, completion) for kind, prompt, completion in zip(*columns, strict=True) if kind == "clean"]


def _split_items(arm: Arm) -> tuple[Item, ...]:
    return (*arm.split.seen, *arm.split.held_out)


def _named(config: Config) -> str:
    level = f" {config.condition.level}" if config.condition.level else ""
    return f"{config.condition.label}{level} at rate {config.mixture.rate:g}, seed {config.seed}"
