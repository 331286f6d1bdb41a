"""Which items belong together and why, as the table ``families.parquet`` of a cell."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Sequence

import pandas as pd

from softcontam.benchmarks import ItemSet
from softcontam.benchmarks.families import NearPair, near_texts
from softcontam.mixture.split import FamilySplit

COLUMNS = (
    *("benchmark", "role", "item_id", "family", "family_size", "stratum", "difficulty"),
    *("joined_with", "why", "evidence"),
)
"""Columns of a family table."""

NEIGHBOUR_COSINE = 0.5
"""TF-IDF cosine from which items of two benchmarks count as near-identical.

Between MBPP and HumanEval no pair reaches it: the nearest (mbpp/293 and humaneval/157, right-angled triangles) has 0.40
and is another task. The same task in quite other words is beyond it.
"""

_LINKS = {"neighbour": "of", "twin": "of", "renaming": "of", "version": "of", "same story": "as", "same premise": "as"}


def family_table(split: FamilySplit, item_sets: Sequence[ItemSet]) -> pd.DataFrame:
    """The family of every item that a cell is evaluated on, with the evidence that it rests on.

    Args:
        split: the halves; its difficulty goes into the rows of its items.
        item_sets: what is evaluated, the halves included.

    Returns:
        One row per item of each set, in their order, with

        * ``benchmark``, ``role``, ``item_id``, ``family``: as in the outcomes;
        * ``family_size``: items of the benchmark in this family, whatever their role;
        * ``stratum``: what the split was balanced for beside family size (text), null where the benchmark has none;
        * ``difficulty``: what the halves were balanced for (float), null where none was given;
        * ``joined_with`` (list of item ids), ``why`` (list of kinds, see :class:`NearPair`) and ``evidence`` (list of
          texts for people, such as ``text, cosine 0.93, with mbpp/71``): three lists of one length, an entry for each
          pair that joined this item to another one directly. Two items may be joined for two reasons, and members of
          a family may be joined through others only. Empty for an item that is joined to none; a family that the
          benchmark made itself (tinyworld's pairs) has no evidence. Pairs of :func:`neighbours` are there too, with
          the kind ``neighbour``: they join no family, but a gain on such a related item would be no transfer.
    """
    rows = []
    across = _by_item(neighbours(split, item_sets))
    evidence: dict[int, dict[str, list[tuple[str, NearPair]]]] = {}
    for one in item_sets:
        joined = evidence.setdefault(id(one.benchmark), _by_item(one.benchmark.joined))
        sizes = {name: len(members) for name, members in one.benchmark.families().items()}
        for item in one.items:
            stratum = item.meta.get("stratum")
            pairs = joined.get(item.item_id, []) + across.get(item.item_id, [])
            rows.append(
                {
                    "benchmark": one.benchmark.name,
                    "role": one.role,
                    "item_id": item.item_id,
                    "family": item.family,
                    "family_size": sizes[item.family],
                    "stratum": None if stratum is None else str(stratum),
                    "difficulty": split.difficulty.get(item.item_id),
                    "joined_with": [other for other, _ in pairs],
                    "why": [pair.why for _, pair in pairs],
                    "evidence": [_told(other, pair) for other, pair in pairs],
                }
            )
    return pd.DataFrame(rows, columns=list(COLUMNS)).astype({"family_size": "int64", "difficulty": "float64"})


def neighbours(split: FamilySplit, item_sets: Sequence[ItemSet]) -> list[NearPair]:
    """Near-identical pairs of an item that is split and one that is evaluated beside it, nearest first.

    Texts are those of ``meta["task"]``; items without one (tinyworld, ZebraLogic, lm-eval's tasks) are not compared, as
    their prompts share too much wording.
    """
    own = [item for item in (*split.seen, *split.held_out) if "task" in item.meta]
    others = [item for one in item_sets if one.role not in ("seen", "held_out") for item in one.items]
    others = [item for item in others if "task" in item.meta]
    keys = [f"own {item.item_id}" for item in own] + [f"other {item.item_id}" for item in others]
    texts = [str(item.meta["task"]) for item in (*own, *others)]
    pairs = [
        (pair.first.split(" ", 1), pair.second.split(" ", 1), pair)
        for pair in near_texts(texts, keys, NEIGHBOUR_COSINE)
    ]
    return [
        NearPair(first, second, "neighbour", pair.cosine)
        for (side, first), (other_side, second), pair in pairs
        if side != other_side
    ]


def _by_item(joined: Sequence[NearPair]) -> dict[str, list[tuple[str, NearPair]]]:
    """The pairs of each item with the id of its partner."""
    found: dict[str, list[tuple[str, NearPair]]] = defaultdict(list)
    for pair in joined:
        found[pair.first].append((pair.second, pair))
        found[pair.second].append((pair.first, pair))
    return found


def _told(other: str, pair: NearPair) -> str:
    """One pair in words: ``twin of musr_murder_mysteries/3``, ``text, cosine 0.93, with mbpp/71``."""
    link = _LINKS.get(pair.why, "with")
    if pair.cosine is None:
        return f"{pair.why} {link} {other}"
    return f"{pair.why}, cosine {pair.cosine:.2f}, {link} {other}"
