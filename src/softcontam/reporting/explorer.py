"""The item-level view of a report: which items flip between the clean arm and each other arm, with their outputs."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from html import escape

import pandas as pd

from softcontam.analysis.effects import SweepEffects
from softcontam.analysis.flips import GAINED, LOST, UNDECIDED, item_states
from softcontam.analysis.items import ACCURACY
from softcontam.reporting import wording
from softcontam.reporting.blocks import Block, Bullets, Folded, Heading, Paragraph, Table
from softcontam.reporting.explorer_data import Index, arm_chunks, index_chunk, output_chunks, text_chunk

BUDGET = 25_000_000
"""Characters of the page that the item-level view may take; above it outputs are left out and the page says which."""

SHOWN = 20
"""Rows of the table of the items that flip most often."""


@dataclass(frozen=True)
class ItemExplorer:
    """A table of items to search and sort, filled by the page's script from ``chunks``.

    ``most_flipped`` and ``notes`` (what is cut or left out) stand in every form of the page: on paper, as Markdown, and
    without a script.
    """

    most_flipped: Table
    notes: Sequence[str]
    chunks: Mapping[str, str] = field(repr=False)

    def html(self) -> str:
        """This part as HTML; nothing of the chunks is decoded before a reader comes to it."""
        data = "".join(
            f'<script type="text/plain" data-chunk="{escape(name)}">{packed}</script>'
            for name, packed in self.chunks.items()
        )
        notes = Bullets(self.notes, style="notes").html() if self.notes else ""
        return (
            '<div class="explorer"><div class="explorer-view"></div>'
            '<p class="explorer-status" role="status">The table of items needs JavaScript.</p>'
            f"{notes}{self._flips().html()}{data}</div>"
        )

    def markdown(self) -> str:
        """The items that flip most often, and what the page says of the data."""
        notes = Bullets(self.notes).markdown()
        return "\n\n".join(text for text in (self._flips().markdown(), notes) if text)

    def _flips(self) -> Block:
        rows = self.most_flipped.rows
        if not rows:
            return Paragraph("No item flips between the clean arm and another arm.")
        items = "The item that flips" if len(rows) == 1 else f"The {len(rows)} items that flip most often,"
        return Folded(f"{items} over all arms and seeds", [self.most_flipped])


def item_blocks(measured: SweepEffects) -> Iterator[Block]:
    """The section on items, where correctness is decided and there are arms to compare."""
    found = explorer(measured)
    if found is None:
        return
    yield Heading("Which items flip")
    yield Paragraph(
        "Each item in the clean arm and in another arm with the same seed. An item is right in a cell if more than "
        "half of its samples are; it flips if it is right on one side only. These are the items that the effects rest "
        "on: of the seen half, the covered ones."
    )
    yield found


def explorer(measured: SweepEffects, budget: int = BUDGET) -> ItemExplorer | None:
    """The item-level view of a sweep; None where no arm has a clean baseline or correctness is nowhere decided.

    Args:
        budget: characters that the data may take in the page.
    """
    pairs = measured.cells.pairs
    if not pairs or measured.items.empty or measured.items[ACCURACY].isna().all():
        return None
    states = item_states(pairs, measured.items)
    index = Index.of(pairs, states)
    listed = index.numbered(states)
    chunks = {"index": index_chunk(index, pairs, measured.texts), **arm_chunks(index, pairs, listed)}
    chunks["texts"], notes = text_chunk(index, measured.texts, budget)
    outputs, told = output_chunks(index, listed, measured.rows, budget, sum(map(len, chunks.values())))
    return ItemExplorer(_most_flipped(listed), [*told, *notes], chunks | outputs)


def _most_flipped(listed: pd.DataFrame) -> Table:
    """The items that flip most often over all arms and seeds."""
    state = listed["state"]
    counted = listed.assign(
        compared=state != UNDECIDED,
        gained=state == GAINED,
        lost=state == LOST,
    )
    words = ["benchmark", "role", "item_id", "family"]
    sums = counted.groupby(words, sort=False, observed=True)[["compared", "gained", "lost"]].sum().reset_index()
    sums["flips"] = sums["gained"] + sums["lost"]
    top = sums[sums["flips"] > 0].sort_values("flips", ascending=False, kind="stable").head(SHOWN)
    rows = [
        [benchmark, wording.ROLE_NAMES.get(role, role), *map(str, (item, family, compared, gained, lost))]
        for benchmark, role, item, family, compared, gained, lost, _ in top.itertuples(index=False)
    ]
    header = ("benchmark", "role", "item", "family", "comparisons", "wrong → right", "right → wrong")
    return Table(header, rows, header[:4])
