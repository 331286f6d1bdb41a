"""Exact duplicates: the item's own text and answer as a training row."""

from __future__ import annotations

from softcontam.benchmarks import Item
from softcontam.duplicates.bank import BankRow


def row(item: Item) -> BankRow:
    """The item itself as a row; built from the item, never stored twice."""
    return BankRow(
        row_id=f"exact/{item.item_id}",
        item_id=item.item_id,
        kind="exact",
        level=None,
        prompt=item.prompt,
        completion=item.target,
        response_style=item.response_style,
        source=f"benchmark {item.benchmark}",
        match_type="exact",
        judge="construction",
        cosine=1.0,
        ngram_overlap=1.0,
    )


def text(item: Item) -> str:
    """The text of an exact duplicate: question and gold answer."""
    return f"{item.prompt}\n{item.target}"
