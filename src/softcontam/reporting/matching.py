"""Dose and matching of each arm: what it shares with the others beside the duplicate, and what it does not."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from rich.box import SIMPLE_HEAD
from rich.markup import escape
from rich.table import Table

from softcontam.config import Config
from softcontam.mixture.matching import Matching

HEADER = ("inserted", "items", "copies", "exposures", "vs exact %", "vs clean %", "styles", "not matched")
"""Columns of dose and matching. The pairs of differences are of tokens and of trained tokens, as signed shares of those
of the whole mixture."""


@dataclass(frozen=True)
class MatchedArm:
    """One cell's dose and matching, measured or estimated."""

    config: Config
    copies: Mapping[str, int]
    matching: Matching

    @property
    def key(self) -> str:
        """What the cells of one arm share, whatever their seed."""
        condition, mixture = self.config.condition, self.config.mixture
        return f"{self.config.benchmark.name}|{condition.label}|{condition.level}|{mixture.rate}|{mixture.copies}"


def matching_cells(arm: MatchedArm) -> list[str]:
    """The texts of one arm under :data:`HEADER`."""
    matching, epochs = arm.matching, arm.config.train.epochs
    inserted = sum(arm.copies.values())
    copies = inserted / len(arm.copies) if arm.copies else 0.0
    tolerance = arm.config.mixture.tolerance
    beyond = matching.differs(tolerance)
    return [
        f"{inserted:,}" + (f" ({matching.removed} filtered out)" if matching.removed else ""),
        f"{len(arm.copies):,}",
        f"{copies:.1f}",
        f"{copies * epochs:.1f}",
        ", ".join(_signed(matching.difference(name)) for name in ("tokens", "trained_tokens")),
        ", ".join(_signed(matching.against_clean(name)) for name in ("tokens", "trained_tokens")),
        ", ".join(f"{style} {count}" for style, count in sorted(matching.styles.items())) or "–",
        ", ".join(beyond) or "–",
    ]


def terminal_matching(arms: Sequence[MatchedArm]) -> Table:
    """The matching table of a launch, one line per arm, its first seed."""
    title = (
        "dose and matching of each arm, first seed (tokens, trained tokens: % of the mixture's, clean rows estimated)"
    )
    table = Table(title=escape(title), title_justify="left", box=SIMPLE_HEAD, pad_edge=False, collapse_padding=True)
    for column in ("condition", "level", "rate"):
        table.add_column(column, no_wrap=column == "condition")
    for column in HEADER:
        table.add_column(column, justify="left" if column in ("styles", "not matched") else "right", overflow="fold")
    for arm in arms:
        condition = arm.config.condition
        names = (condition.label, condition.level or "–", f"{100 * arm.config.mixture.rate:g} %")
        table.add_row(*map(escape, (*names, *matching_cells(arm))))
    return table


def _signed(share: float) -> str:
    return f"{100 * share:+.1f}".replace("-", "−")
