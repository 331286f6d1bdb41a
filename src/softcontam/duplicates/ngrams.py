"""Runs of words that many rows share with a few known texts: exact, and fast enough for a million rows.

Rows are read as bytes, without a Python object for each word: every word gets a 64-bit hash, and windows that begin
like a known run get one of their words' hashes. What has a known hash is then compared word by word, so that the result
is that of sets of tuples of words.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from functools import lru_cache

import numpy as np
from numpy.typing import NDArray

BLOCK = 1 << 18
"""Bytes of text that are hashed together: what stays in a processor's cache."""

BEGINNINGS = (2, 3)
"""Words at the beginning of a window that are looked up before its other words are; few windows are left then."""

_WORD = re.compile(r"\w+")
_GAP = 0xFF  # ends a row; no byte of UTF-8
_BASE, _STEP, _SPREAD = 0x9E3779B97F4A7C15, np.uint64(0xD6E8FEB86659FD93), np.uint64(0xA0761D6478BD642F)
_TABLE_BITS = 22


def words(text: str) -> list[str]:
    """Lower-cased runs of letters, digits and underscores."""
    return _WORD.findall(text.lower())


class RowWords:
    """The words of some rows as hashes: made once for every index that is looked up."""

    def __init__(self, rows: Sequence[str]) -> None:
        self._rows = rows
        hashes: list[NDArray[np.uint64]] = []
        begins = [np.zeros(1, dtype=np.int64)]
        for block in _blocks(rows):
            found, gaps = _hash(block)
            begins.append(begins[-1][-1] + gaps + 1)
            hashes.append(found)
        self.hashes = np.concatenate([np.zeros(0, dtype=np.uint64), *hashes])
        """One for each word, and one for the gap after each row."""
        self.begins = np.concatenate(begins)[:-1]
        """Where each row's words begin among :attr:`hashes`."""

    def runs(self, places: NDArray[np.int64], size: int) -> Iterator[tuple[int, tuple[str, ...]]]:
        """The ``size`` words from each place on, with their row, as long as the row has them; places in order."""
        row, own = -1, [""]
        numbers = np.searchsorted(self.begins, places, side="right") - 1
        for number, start in zip(numbers.tolist(), (places - self.begins[numbers]).tolist(), strict=True):
            if number != row:
                row, own = number, words(self._rows[number])
            yield row, tuple(own[start : start + size])


class RunIndex:
    """All runs of ``n`` words of some known texts; a text of fewer words is one run, whole.

    Runs are numbered, and so are the words of all texts, in their order.
    """

    def __init__(self, texts: Sequence[str], n: int) -> None:
        """Index texts; those without words have no runs."""
        split = list(map(words, texts))
        self.lengths = np.array([len(text) for text in split], dtype=np.int64)
        """Words of each text."""
        self._begins = np.concatenate([np.zeros(1, dtype=np.int64), np.cumsum(self.lengths)])
        self._numbers: dict[tuple[str, ...], int] = {}
        runs, places = [], []
        for text, begin in zip(split, self._begins[:-1].tolist(), strict=True):
            size = min(n, len(text))
            for start in range(len(text) - size + 1 if size else 0):
                run = tuple(text[start : start + size])
                runs.append(self._numbers.setdefault(run, len(self._numbers)))
                places.append(begin + start)
        self.runs = list(self._numbers)
        """The words of each run."""
        order = np.argsort(runs, kind="stable")
        self._places = np.array(places, dtype=np.int64)[order]
        self._bounds = np.searchsorted(np.array(runs, dtype=np.int64)[order], np.arange(len(self.runs) + 1))
        self._n = n
        self._learn(texts)

    def _learn(self, texts: Sequence[str]) -> None:
        """Note the hashes of all runs, and of how they begin."""
        known = RowWords(texts)
        self._begun = np.zeros(1 << _TABLE_BITS, dtype=np.bool_)
        sizes = np.minimum(self.lengths, self._n)
        self._sizes = set(sizes.tolist()) - {0}
        hashes = [np.zeros(0, dtype=np.uint64)]
        for size in self._sizes:
            having = np.flatnonzero(sizes == size)
            spans = zip(known.begins[having].tolist(), self.lengths[having].tolist(), strict=True)
            places = np.concatenate([np.arange(begin, begin + length - size + 1) for begin, length in spans])
            found = known.hashes[places]
            for step in range(1, size + 1):
                if step > 1:
                    found = found * _STEP + known.hashes[places + step - 1]
                if step in BEGINNINGS:
                    self._begun[_slot(found)] = True
            hashes.append(found)
        self._hashes = np.unique(np.concatenate(hashes))

    def places(self, run: int) -> NDArray[np.int64]:
        """Where a run begins in the known texts, first to last."""
        return self._places[self._bounds[run] : self._bounds[run + 1]]

    def has(self, text: int, run: int) -> bool:
        """Whether a known text has a run."""
        places = self.places(run)
        first = np.searchsorted(places, self._begins[text])
        return bool(first < len(places) and places[first] < self._begins[text + 1])

    def covered(self, runs: Sequence[int]) -> NDArray[np.int64]:
        """How many words of each known text lie in at least one of these runs. Shape (texts,)."""
        size = self._begins[-1] + 1
        first, last = (self._bounds[np.asarray(runs, dtype=np.int64) + end] for end in (0, 1))
        counts = last - first
        starts = self._places[np.arange(counts.sum()) + np.repeat(last - np.cumsum(counts), counts)]
        ends = starts + np.repeat([len(self.runs[run]) for run in runs], counts)
        edges = np.bincount(starts, minlength=size) - np.bincount(ends, minlength=size)
        sums = np.concatenate([[0], np.cumsum(np.cumsum(edges[:-1]) > 0)])
        return np.asarray(np.diff(sums[self._begins]), dtype=np.int64)

    def find(self, rows: RowWords) -> dict[int, list[int]]:
        """By row, the numbers of the runs that it shares, each once; only rows that share any."""
        found: dict[int, dict[int, None]] = {}
        padded = np.concatenate([rows.hashes, np.zeros(self._n, dtype=np.uint64)])
        places, hashes = np.arange(len(rows.hashes)), rows.hashes
        for size in range(1, max(self._sizes, default=0) + 1):
            if size > 1:
                hashes = hashes * _STEP + padded[places + size - 1]
            if size in BEGINNINGS:
                begun = np.flatnonzero(self._begun[_slot(hashes)])
                places, hashes = places[begun], hashes[begun]
            if size in self._sizes:
                for row, run in rows.runs(places[_isin(hashes, self._hashes)], size):
                    number = self._numbers.get(run)
                    if number is not None:
                        found.setdefault(row, {})[number] = None
        return {row: list(numbers) for row, numbers in sorted(found.items())}


def _blocks(rows: Sequence[str]) -> Iterator[bytes]:
    """Rows as bytes, each with a gap after it; together at least :data:`BLOCK` bytes, but for the last block.

    A row that is not ASCII is split by Python, which alone knows its letters; every byte of them is part of a word.
    """
    gap = bytes([0x20, _GAP, 0x20])
    parts: list[bytes] = []
    size = 0
    for row in rows:
        plain = row if row.isascii() else " ".join(words(row))
        parts.append(plain.encode())
        size += len(parts[-1])
        if size >= BLOCK:
            yield b" " + gap.join([*parts, b""])
            parts, size = [], 0
    if parts:
        yield b" " + gap.join([*parts, b""])


def _hash(block: bytes) -> tuple[NDArray[np.uint64], NDArray[np.int64]]:
    """The hash of each word of a block, gaps being words too, and the places of the gaps among them.

    A word's hash is the sum of its letters' codes times powers of a base that rise from its first letter on, modulo
    2**64; it is read off the running sum over the whole block.
    """
    raw = np.frombuffer(block, dtype=np.uint8)
    powers, inverses = _powers(len(raw).bit_length())
    inside = _INSIDE[raw]
    edges = np.flatnonzero(inside[1:] != inside[:-1])
    before, last = edges[::2], edges[1::2]
    sums = np.cumsum(_CODES[raw] * powers[: len(raw)])
    gaps = np.searchsorted(before, np.flatnonzero(raw == _GAP) - 1)
    return (sums[last] - sums[before]) * inverses[before + 1], gaps


def _letters() -> tuple[NDArray[np.uint64], NDArray[np.bool_]]:
    """A random code for each byte that can be part of a word, the same for both cases, else 0; and which these are."""
    inside = np.array([byte >= 0x80 or chr(byte).isalnum() or byte == ord("_") for byte in range(256)])
    codes = np.random.default_rng(0).integers(1, 1 << 64, size=256, dtype=np.uint64)
    codes[ord("A") : ord("Z") + 1] = codes[ord("a") : ord("z") + 1]
    codes[~inside] = 0
    return codes, inside


_CODES, _INSIDE = _letters()


@lru_cache(maxsize=4)
def _powers(bits: int) -> tuple[NDArray[np.uint64], NDArray[np.uint64]]:
    """The first 2**bits powers of the base and of its inverse, modulo 2**64."""
    bases = [np.full(1 << bits, value, dtype=np.uint64) for value in (_BASE, pow(_BASE, -1, 1 << 64))]
    for base in bases:
        base[0] = 1
    powers, inverses = (np.cumprod(base) for base in bases)
    return powers, inverses


def _slot(hashes: NDArray[np.uint64]) -> NDArray[np.int64]:
    """Where a hash is noted in the table of beginnings."""
    return ((hashes * _SPREAD) >> np.uint64(64 - _TABLE_BITS)).view(np.int64)


def _isin(hashes: NDArray[np.uint64], known: NDArray[np.uint64]) -> NDArray[np.bool_]:
    """Which hashes are among known ones, which are sorted."""
    places = np.searchsorted(known, hashes)
    places[places == len(known)] = 0
    return np.asarray(known[places] == hashes)
