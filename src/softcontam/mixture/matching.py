"""Whether an arm differs from the others in more than the duplicate: tokens, trained tokens, response style."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Mapping
from dataclasses import asdict, dataclass
from typing import Any

from softcontam.chat import EncodedRow
from softcontam.config import ConditionConfig, MixtureConfig
from softcontam.errors import ArmMismatchError
from softcontam.mixture.choose import Chosen


@dataclass(frozen=True)
class Tokens:
    """Tokens of some rows, and those of them that carry loss."""

    tokens: int
    trained_tokens: int

    @staticmethod
    def of(rows: Iterable[EncodedRow]) -> Tokens:
        """Counted over encoded rows."""
        pairs = [(row.tokens, row.trained_tokens) for row in rows]
        return Tokens(sum(tokens for tokens, _ in pairs), sum(trained for _, trained in pairs))

    def __add__(self, other: Tokens) -> Tokens:
        return Tokens(self.tokens + other.tokens, self.trained_tokens + other.trained_tokens)


@dataclass(frozen=True)
class Matching:
    """What an arm shares with the arm of exact duplicates in the same slots.

    ``inserted`` and ``reference`` count the inserted rows and the exact ones that could stand there; ``removed`` rows
    were taken out by the condition's filter, and count with the clean rows that stayed. ``mixture`` counts the whole of
    the clean mixture, ``replaced`` the clean rows that made room. ``styles`` counts inserted rows by response style.
    """

    inserted: Tokens
    reference: Tokens
    replaced: Tokens
    mixture: Tokens
    styles: dict[str, int]
    item_style: str
    removed: int = 0

    def difference(self, quantity: str) -> float:
        """The signed difference from the exact arm, as a share of the whole mixture's tokens of that kind."""
        whole: int = getattr(self.mixture, quantity)
        return float(getattr(self.inserted, quantity) - getattr(self.reference, quantity)) / whole

    def against_clean(self, quantity: str) -> float:
        """The signed difference from the clean arm, as a share of the whole mixture's tokens of that kind."""
        whole: int = getattr(self.mixture, quantity)
        return float(getattr(self.inserted, quantity) - getattr(self.replaced, quantity)) / whole

    def differs(self, tolerance: float) -> list[str]:
        """The quantities of :data:`~softcontam.config.MATCHED` in which the arm is beyond the tolerance."""
        found = [name for name in ("tokens", "trained_tokens") if abs(self.difference(name)) > tolerance]
        return found + (["response_style"] if any(style != self.item_style for style in self.styles) else [])

    def as_dict(self) -> dict[str, Any]:
        """For ``metrics.json``."""
        return asdict(self)

    @staticmethod
    def from_dict(stored: Mapping[str, Any]) -> Matching:
        """From ``metrics.json``."""
        counted = {key: Tokens(**stored[key]) for key in ("inserted", "reference", "replaced", "mixture")}
        return Matching(**{**stored, **counted})


def measure(chosen: Chosen, replaced: Tokens, mixture: Tokens, item_style: str) -> Matching:
    """The matching of an arm; of a filtered arm over the rows that survived, with the exact rows of their slots."""
    return Matching(
        Tokens.of(one.encoded for one in chosen.insertions),
        Tokens.of(chosen.reference[one.slot] for one in chosen.insertions),
        replaced,
        mixture,
        dict(Counter(one.row.response_style for one in chosen.insertions)),
        item_style,
        len(chosen.removed),
    )


def refuse_mismatch(matching: Matching, config: MixtureConfig, condition: ConditionConfig, where: str) -> None:
    """Refuse an arm that differs in what was not admitted.

    Raises:
        ArmMismatchError: naming each quantity, its difference and the ways out.
    """
    admitted = (*condition.differs, *config.differs)
    beyond = [name for name in matching.differs(config.tolerance) if name not in admitted]
    if not beyond:
        return
    told = []
    for name in beyond:
        if name == "response_style":
            styles = ", ".join(f"{count} {style}" for style, count in sorted(matching.styles.items()))
            told.append(f"response_style (rows: {styles}; items: {matching.item_style})")
        else:
            ours, theirs = getattr(matching.inserted, name), getattr(matching.reference, name)
            told.append(
                f"{name} ({ours:,} in the inserted rows, {theirs:,} in exact duplicates in the same slots: "
                f"{100 * matching.difference(name):+.1f} % of the mixture)"
            )
    raise ArmMismatchError(
        f"{where} cannot be matched to the other arms within mixture.tolerance={config.tolerance:g}: "
        f"{'; '.join(told)}. "
        "Use a bank with more rows per item to choose from, lower the rate, or admit the difference: "
        f"condition.differs=[{','.join(beyond)}] for this arm, or mixture.differs for all. The report states it."
    )
