"""How far the rows of a bank are from the items that they are for, and which standard filters would find them."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
import pandas as pd

from softcontam.benchmarks import Benchmark, Item
from softcontam.duplicates import exact
from softcontam.duplicates.bank import BankRow
from softcontam.duplicates.distance import Similarity, bigram_overlap, difflib_ratio
from softcontam.duplicates.embedding import Embedder
from softcontam.duplicates.filters import Detector

MEASURES = ("word_pairs", "difflib", "cosine", "answer_difflib")
"""Similarities of a row to its item, 0 to 1; see :func:`distances`."""


def distances(
    rows: Sequence[BankRow], benchmark: Benchmark, filters: Sequence[str], embedder: Embedder | None = None
) -> pd.DataFrame:
    """One line per row of an item of the benchmark: its similarities to that item, and the verdict of each filter.

    ``word_pairs`` is the share of the word pairs of the row's question that the item's has too, ``difflib`` the ratio
    of both questions; ``answer_difflib`` that of the answers. ``cosine`` is of question and answer together, by the
    embedding model where there is one, else TF-IDF. Questions are compared without the wording that the benchmark
    puts around all of them. Filters look for all items, not only the row's own.

    Raises:
        ConfigError: an unknown filter.
    """
    items = {item.item_id: item for item in benchmark.items}
    pairs = [(row, items[row.item_id]) for row in rows if row.item_id in items]
    questions = [(question(row.prompt, item), question(item.prompt, item)) for row, item in pairs]
    whole = [(f"{row.prompt}\n{row.completion}", exact.text(item)) for row, item in pairs]
    similarity = Similarity([exact.text(item) for item in benchmark.items], embedder)
    frame = pd.DataFrame(
        {
            "row_id": [row.row_id for row, _ in pairs],
            "item_id": [row.item_id for row, _ in pairs],
            "kind": [row.kind for row, _ in pairs],
            "level": [row.level for row, _ in pairs],
            "word_pairs": [bigram_overlap(own, other) for own, other in questions],
            "difflib": [difflib_ratio(own, other) for own, other in questions],
            "cosine": similarity.cosines(whole),
            "answer_difflib": [difflib_ratio(row.completion, item.target) for row, item in pairs],
        }
    )
    found = Detector(benchmark.items, filters, embedder).flags([(row.prompt, row.completion) for row, _ in pairs])
    return frame.assign(**{name: np.asarray(found[name]) for name in filters})


def by_level(frame: pd.DataFrame, filters: Sequence[str]) -> pd.DataFrame:
    """Rows, items, the median of each similarity, and the number of rows that each filter finds, by kind and level."""
    groups = frame.fillna({"level": "–"}).groupby(["kind", "level"], sort=True)
    counts = groups.agg(rows=("row_id", "size"), items=("item_id", "nunique"))
    return pd.concat([counts, groups[list(MEASURES)].median(), groups[list(filters)].sum()], axis=1).reset_index()


def question(prompt: str, item: Item) -> str:
    """A prompt without the paragraphs that the item's has around its own text; all of it if nothing else is left."""
    around = {part for part in _paragraphs(item.prompt) if part not in item.text}
    return "\n\n".join(part for part in _paragraphs(prompt) if part not in around) or prompt


def _paragraphs(text: str) -> list[str]:
    return [part.strip() for part in text.split("\n\n") if part.strip()]
