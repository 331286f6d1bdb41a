"""Finds near-identical items of a benchmark, so that no split puts one into each half."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass

import numpy as np
from sklearn.feature_extraction.text import TfidfVectorizer


@dataclass(frozen=True)
class NearPair:
    """Two items that belong together, and the evidence.

    ``why``: ``text`` (near texts, with their cosine), ``code`` (the same code but for names), ``twin``, ``same
    premise``, ``same story`` (MuSR), ``renaming``, ``template`` (ZebraLogic), ``version``, ``alias``
    (Codeforces), ``neighbour`` (of another benchmark; joins no family).
    """

    first: str
    second: str
    why: str
    cosine: float | None = None


def near_texts(texts: Sequence[str], ids: Sequence[str], threshold: float) -> list[NearPair]:
    """Pairs of texts whose TF-IDF cosine (words and word pairs) is at least ``threshold``, nearest first.

    The cosine depends on the collection: inverse document frequencies are those of ``texts``.

    Args:
        texts: one text per item, without wording that all items share.
        ids: as many ids.
        threshold: between 0 (exclusive) and 1.
    """
    if not any(text.strip() for text in texts):
        return []
    matrix = TfidfVectorizer(ngram_range=(1, 2), token_pattern=r"\w+").fit_transform(texts)
    cosines = (matrix @ matrix.T).tocoo()
    chosen = (cosines.row < cosines.col) & (cosines.data >= threshold - 1e-9)
    pairs = [
        NearPair(ids[i], ids[j], "text", round(float(cosine), 4))
        for i, j, cosine in zip(cosines.row[chosen], cosines.col[chosen], cosines.data[chosen], strict=True)
    ]
    position = {item_id: index for index, item_id in enumerate(ids)}
    return sorted(pairs, key=lambda pair: (-(pair.cosine or 0.0), position[pair.first], position[pair.second]))


def same_keys(keys: Mapping[str, str | None]) -> list[NearPair]:
    """Pairs of ids with the same key (for code: :func:`~softcontam.benchmarks.python_code.same_code_key`)."""
    first: dict[str, str] = {}
    return [
        NearPair(first[key], item_id, "code")
        for item_id, key in keys.items()
        if key is not None and first.setdefault(key, item_id) != item_id
    ]


def join(ids: Sequence[str], pairs: Iterable[NearPair]) -> dict[str, str]:
    """The family of each id: pairs are joined transitively, and a family is named after its first member in ``ids``."""
    parent = {item_id: item_id for item_id in ids}

    def root(item_id: str) -> str:
        while parent[item_id] != item_id:
            parent[item_id] = item_id = parent[parent[item_id]]
        return item_id

    position = {item_id: index for index, item_id in enumerate(ids)}
    for pair in pairs:
        early, late = sorted((root(pair.first), root(pair.second)), key=position.__getitem__)
        parent[late] = early
    return {item_id: root(item_id) for item_id in ids}


def family_sizes(families: Mapping[str, str]) -> dict[int, int]:
    """How many families there are of each size, e.g. ``{1: 300, 2: 40}``."""
    _, members = np.unique(list(families.values()), return_counts=True)
    sizes, counts = np.unique(members, return_counts=True)
    return {int(size): int(count) for size, count in zip(sizes, counts, strict=True)}
