"""How far a text is from another one: shared word pairs, difflib's ratio, cosine."""

from __future__ import annotations

from collections.abc import Sequence
from difflib import SequenceMatcher
from itertools import pairwise

import numpy as np
from numpy.typing import NDArray
from scipy import sparse
from sklearn.feature_extraction.text import TfidfVectorizer

from softcontam.duplicates.embedding import Embedder
from softcontam.duplicates.ngrams import words

BINS = 20
"""Equal parts of 0 to 1 in which distributions of similarities are compared."""

LONG = 2_000
"""Characters above which :func:`difflib_ratio` compares words."""


def bigram_overlap(text: str, original: str) -> float:
    """The share of the word pairs of ``text`` that ``original`` has too; 0 for a text of one word."""
    own, other = list(pairwise(words(text))), set(pairwise(words(original)))
    return sum(pair in other for pair in own) / len(own) if own else 0.0


def difflib_ratio(text: str, original: str) -> float:
    """The ratio of :class:`difflib.SequenceMatcher` over characters, without its heuristic for long texts: 1 if equal.

    The study keeps alternative solutions below 0.85. Takes time in the product of both lengths: over words where a
    text is longer than :data:`LONG` characters.
    """
    if max(len(text), len(original)) > LONG:
        return SequenceMatcher(None, text.split(), original.split(), autojunk=False).ratio()
    return SequenceMatcher(None, text, original, autojunk=False).ratio()


class Similarity:
    """Cosine between two texts: of sentence embeddings where there is a model, else of TF-IDF vectors.

    TF-IDF is over words and word pairs, fitted on ``texts``; words that these don't have are not seen by it.
    """

    def __init__(self, texts: Sequence[str], embedder: Embedder | None = None) -> None:
        self._embedder = embedder
        self._vectorizer = TfidfVectorizer(ngram_range=(1, 2), sublinear_tf=True, token_pattern=r"(?u)\b\w+\b")
        if embedder is None:
            self._vectorizer.fit(texts)

    @property
    def name(self) -> str:
        """What the cosines are of."""
        return self._embedder.name if self._embedder else "tfidf"

    def cosines(self, pairs: Sequence[tuple[str, str]]) -> NDArray[np.float64]:
        """The cosine of each pair of texts, shape (pairs,)."""
        if not pairs:
            return np.zeros(0)
        first, second = [a for a, _ in pairs], [b for _, b in pairs]
        if self._embedder is not None:
            product = self._embedder.encode(first) * self._embedder.encode(second)
            return np.asarray(product.sum(axis=1), dtype=np.float64)
        left, right = (sparse.csr_array(self._vectorizer.transform(texts)) for texts in (first, second))
        return np.asarray(left.multiply(right).sum(axis=1), dtype=np.float64).ravel()


def overlap_coefficient(
    first: Sequence[float] | NDArray[np.float64], second: Sequence[float] | NDArray[np.float64]
) -> float:
    """The area that the histograms of two samples of similarities share, 0 to 1; NaN if either is empty.

    Histograms have :data:`BINS` equal bins from 0 to 1; values outside count in the outer ones. Two samples of one
    distribution come out below 1, the more so the smaller they are.
    """
    if not len(first) or not len(second):
        return float("nan")
    edges = np.linspace(0, 1, BINS + 1)
    shares = [np.histogram(np.clip(values, 0, 1), edges)[0] / len(values) for values in (first, second)]
    return float(np.minimum(*shares).sum())
