"""Whether the cells of a comparison were evaluated alike: scores drift with engine, precision, batch and device."""

from __future__ import annotations

import json
from collections import Counter
from collections.abc import Sequence
from typing import Any

from softcontam.analysis.pairing import Pair
from softcontam.store import Cell

COMPARED = ("engine", "dtype", "eval_batch_size", "chat_template_sha256", "device", "sandbox")
"""What of ``environment.json`` has to be the same in both cells of a pair, beside the versions of :data:`PACKAGES`."""

PACKAGES = ("torch", "transformers", "peft", "lm_eval")
"""Packages whose version bears on a score."""


def environment_of(cell: Cell) -> dict[str, Any]:
    """A cell's ``environment.json``; empty where there is none."""
    try:
        found: dict[str, Any] = json.loads((cell.folder / "environment.json").read_text())
    except (FileNotFoundError, json.JSONDecodeError):
        return {}
    return found


def engine_differences(pairs: Sequence[Pair]) -> list[str]:
    """What differs between an arm's cell and its clean cell in how they were evaluated, with the number of such pairs.

    Cells without a record are not compared. Empty where all pairs were evaluated alike.
    """
    found: Counter[str] = Counter()
    for pair in pairs:
        one, other = _relevant(pair.treated.cell), _relevant(pair.clean.cell)
        for key in sorted(one.keys() & other.keys()):
            if one[key] != other[key]:
                found[f"{key}: {one[key]} in the arm, {other[key]} in the clean cell"] += 1
    return [f"{what} ({count} {'pair' if count == 1 else 'pairs'})" for what, count in found.items()]


def _relevant(cell: Cell) -> dict[str, str]:
    environment = environment_of(cell)
    versions = environment.get("versions", {})
    found = {key: environment[key] for key in COMPARED if key in environment}
    found |= {f"version of {name}": versions[name] for name in PACKAGES if name in versions}
    return {key: ", ".join(value) if isinstance(value, list) else str(value) for key, value in found.items()}
