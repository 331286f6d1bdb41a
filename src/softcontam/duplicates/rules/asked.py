"""What a rules bank is asked for: the parameters that all rules have."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from softcontam.config import BankConfig
from softcontam.duplicates.jsonl import check_params
from softcontam.errors import ConfigError


def levels_and_count(
    config: BankConfig, name: str, known: Sequence[str], more: Mapping[str, type] | None = None
) -> tuple[list[str], int]:
    """``params.levels`` (all of them by default) and ``params.per_level`` (1), how many rows each is to have.

    Args:
        name: what the rules are for, as messages call it.
        known: the levels that there are.
        more: further parameters that these rules know, with their types.

    Raises:
        ConfigError: an unknown level or parameter, or a value out of range.
    """
    check_params(config, {"levels": (list, tuple), "per_level": int, **(more or {})})
    levels, per_level = config.params.get("levels", known), config.params.get("per_level", 1)
    if not levels or any(level not in known for level in levels):
        raise ConfigError(f"params.levels={list(levels)} of a rules bank of {name}: choose from {', '.join(known)}.")
    if isinstance(per_level, bool) or per_level < 1:
        raise ConfigError(f"params.per_level={per_level!r} of a rules bank of {name} must be at least 1.")
    return list(dict.fromkeys(levels)), per_level
