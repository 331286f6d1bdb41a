"""Runs of words that many texts share with a few: exact, and fast enough for a million rows.

Words that no known text has cannot be in a shared run, so each text becomes numbers of known words with gaps between,
and windows without a gap are compared by a 64-bit hash; hits are checked word by word.
"""

from __future__ import annotations

import re
from collections import defaultdict
from collections.abc import Iterator, Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

_WORD = re.compile(r"\w+")
_BASE = np.uint64(0x9E3779B97F4A7C15)


def words(text: str) -> list[str]:
    """Lower-cased runs of letters, digits and underscores."""
    return _WORD.findall(text.lower())


@dataclass(frozen=True)
class Shared:
    """A run of ``size`` words that row ``row`` shares with known text ``text``, where it begins at word ``start``."""

    row: int
    text: int
    start: int
    size: int


class RunIndex:
    """All runs of ``n`` words of some known texts; a text of fewer words is one run, whole."""

    def __init__(self, texts: Sequence[Sequence[str]], n: int) -> None:
        """Index texts given as words; empty ones have no runs."""
        self._ids: dict[str, int] = {}
        self._places: dict[tuple[int, ...], list[tuple[int, int]]] = defaultdict(list)
        for number, text in enumerate(texts):
            known = tuple(self._ids.setdefault(word, len(self._ids) + 1) for word in text)
            size = min(n, len(known))
            for start in range(len(known) - size + 1 if size else 0):
                self._places[known[start : start + size]].append((number, start))
        by_size: dict[int, set[int]] = defaultdict(set)
        for run in self._places:
            by_size[len(run)].add(int(_hashes(np.array(run, dtype=np.uint64), len(run))[0]))
        self._hashes = {size: np.array(sorted(found), dtype=np.uint64) for size, found in sorted(by_size.items())}

    def shared(self, rows: Sequence[str]) -> Iterator[Shared]:
        """Every shared run of every row, in no particular order; rows are whole texts."""
        get = self._ids.get
        numbers: list[int] = []
        starts = []
        for row in rows:
            starts.append(len(numbers))
            numbers.extend([get(word, 0) for word in words(row)])
            numbers.append(0)  # no run reaches over the end of a row
        ids = np.array(numbers, dtype=np.uint64)
        begins = np.array(starts, dtype=np.int64)
        for size, known in self._hashes.items():
            for place in _hits(ids, size, known):
                run = tuple(int(number) for number in ids[place : place + size])
                for text, start in self._places.get(run, ()):
                    yield Shared(int(np.searchsorted(begins, place, side="right")) - 1, text, start, size)


def _hashes(ids: NDArray[np.uint64], size: int) -> NDArray[np.uint64]:
    """A hash of every window of ``size`` numbers, modulo 2**64."""
    total = np.zeros(len(ids) - size + 1, dtype=np.uint64)
    for offset in range(size):
        total = total * _BASE + ids[offset : offset + len(total)]
    return total


def _hits(ids: NDArray[np.uint64], size: int, known: NDArray[np.uint64]) -> NDArray[np.int64]:
    """Places where a window without a gap has a known hash."""
    if len(ids) < size:
        return np.zeros(0, dtype=np.int64)
    gaps = np.concatenate([[0], np.cumsum(ids == 0)])
    whole = np.flatnonzero(gaps[size:] == gaps[:-size])
    if not len(whole):
        return np.zeros(0, dtype=np.int64)
    hashes = np.zeros(len(whole), dtype=np.uint64)
    for offset in range(size):
        hashes = hashes * _BASE + ids[whole + offset]
    found = np.searchsorted(known, hashes)
    found[found == len(known)] = 0
    hits: NDArray[np.int64] = whole[known[found] == hashes]
    return hits
