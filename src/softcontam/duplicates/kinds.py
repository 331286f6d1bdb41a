"""The bank of a condition: which module makes the rows of which kind."""

from __future__ import annotations

from collections.abc import Sequence

from softcontam.config import ConditionConfig
from softcontam.duplicates import exact, matched, near, prompt_repetition, question_only, shuffled_label, unrelated
from softcontam.duplicates.bank import Bank, BankRow, check_rows
from softcontam.duplicates.material import Material
from softcontam.errors import ConfigError


def open_bank(condition: ConditionConfig, material: Material) -> Bank:
    """The rows that a condition may insert, by item.

    Raises:
        ConfigError: a level that the bank does not have, or too little material.
        DataError: rows that no mixture could be built from.
    """
    kind, level = condition.kind, condition.level
    if kind == "unrelated":
        rows = unrelated.rows(material)
    elif kind == "prompt_repetition":
        rows = prompt_repetition.rows(material)
    elif kind == "shuffled_label":
        rows = shuffled_label.rows(_rows(str(condition.base), level, material), material.seen)
    elif kind == "question_only":
        rows = question_only.rows(_rows(str(condition.base), level, material))
    else:
        rows = _rows(kind, level, material)
    if condition.match_to is not None:
        beside = _rows(condition.match_to, condition.match_level, material)
        planned = [item for item in material.seen if item.item_id in material.copies]
        rows = matched.matched(rows, beside, planned, material.cosines)
    check_rows(rows, f"bank of {condition.label}")
    return Bank.of(
        kind,
        level,
        rows,
        repeated="exact" in (kind, condition.base) or kind == "prompt_repetition",
        from_pool=kind in ("unrelated", "prompt_repetition"),
    )


def _rows(kind: str, level: str | None, material: Material) -> list[BankRow]:
    """All rows of a kind that is about items, of one level or of every."""
    if kind == "exact":
        return [exact.row(item) for item in material.seen]
    rows = near.rows(material.seen) if kind == "near" else material.bank(kind)
    levels: Sequence[str] = sorted({row.level for row in rows if row.level})
    if level is not None and level not in levels:
        raise ConfigError(
            f"condition.level={level} is not in the {kind} bank; it has: {', '.join(levels) or 'no levels'}. "
            "Choose one of these, or null for all."
        )
    return [row for row in rows if level is None or row.level == level]
