"""Rows of the kinds that are derived: from other rows, or from the clean pool."""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass, replace

import numpy as np
import pytest
from numpy.typing import NDArray
from tiny_cells import made_up_benchmark

from softcontam.config import ConditionConfig
from softcontam.duplicates import BankRow, Material, open_bank
from softcontam.errors import ConfigError

ITEMS = made_up_benchmark(10).items
SEEN, HELD_OUT = ITEMS[:12], ITEMS[12:]


@dataclass(frozen=True)
class Clean:
    """A row of a made-up pool."""

    row_id: str
    prompt: str
    completion: str
    source: str = "made up"


POOL = [Clean(f"pool/{i}", f"Say {i}.", f"{i}") for i in range(100)]


def semd(item_id: str, number: int, target: str, level: str = "reworded") -> BankRow:
    prompt = f"Once more, number {number}, about {item_id}"
    return BankRow(
        f"semd/{level}/{item_id}/{number}", item_id, "semd_synthetic", level, prompt, target, "answer", "test"
    )


SEMDS = [
    semd(item.item_id, k, item.target, level) for item in ITEMS for k in range(3) for level in ("reworded", "other")
]


def same(pairs: Sequence[tuple[str, str]]) -> NDArray[np.float64]:
    """The share of the second text's words that the first has, as a similarity."""
    return np.array([len(set(a.split()) & set(b.split())) / len(set(b.split())) for a, b in pairs])


def material(copies: dict[str, int] | None = None, spare: int = 100) -> Material:
    def some(most: int, least: int) -> Sequence[Clean]:
        if spare < least:
            raise ConfigError("too few")
        return POOL[: min(most, spare)]

    return Material(SEEN, copies or {item.item_id: 2 for item in SEEN[:6]}, lambda kind: SEMDS, some, same)


def opened(kind: str, **settings: object) -> dict[str, list[BankRow]]:
    return open_bank(ConditionConfig(kind, **settings), material()).rows  # type: ignore[arg-type]


def test_shuffled_labels_keep_the_question_and_take_an_answer_of_another_family() -> None:
    family = {item.item_id: item.family for item in SEEN}
    answers = {item.target: item for item in SEEN}
    rows = opened("shuffled_label", base="semd_synthetic")
    questions = {row.prompt for row in SEMDS}
    assert set(rows) == {item.item_id for item in SEEN}
    for item in SEEN:
        for row in rows[item.item_id]:
            assert row.prompt in questions
            assert item.item_id in row.prompt
            assert row.completion != item.target
            assert any(
                other.target == row.completion and other.family != family[item.item_id] for other in answers.values()
            )


def test_shuffled_labels_lend_nothing_of_a_held_out_item() -> None:
    lonely = replace(SEEN[0], target="Answer: seen alone")
    rows = [semd(item.item_id, 0, item.target) for item in (lonely, *SEEN[1:], *HELD_OUT)]
    held_out_only = {item.target for item in HELD_OUT} - {item.target for item in (lonely, *SEEN)}
    assert held_out_only
    bank = open_bank(
        ConditionConfig("shuffled_label", base="semd_synthetic"),
        Material((lonely, *SEEN[1:]), {}, lambda kind: rows, lambda most, least: [], same),
    )
    assert held_out_only.isdisjoint(row.completion for found in bank.rows.values() for row in found)


def test_shuffled_labels_need_two_answers() -> None:
    same = tuple(replace(item, target="Answer: 1") for item in SEEN)
    with pytest.raises(ConfigError, match="no seen item of another family has another answer"):
        open_bank(
            ConditionConfig("shuffled_label", base="exact"),
            Material(same, {}, lambda kind: [], lambda most, least: [], same),
        )


def test_shuffled_exact_rows_are_repeated_like_exact_ones() -> None:
    bank = open_bank(ConditionConfig("shuffled_label", base="exact"), material())
    assert bank.repeated
    assert {len(found) for found in bank.rows.values()} == {1}


def test_question_only_rows_write_the_question_and_have_no_answer() -> None:
    rows = opened("question_only", base="exact")
    for item in SEEN:
        (row,) = rows[item.item_id]
        assert row.completion == item.prompt
        assert item.target not in row.prompt + row.completion
        assert row.response_style != item.response_style


def test_a_level_of_the_base_can_be_chosen() -> None:
    rows = opened("question_only", base="semd_synthetic", level="other")
    assert {row.level for found in rows.values() for row in found} == {"other"}


def test_an_unknown_level_names_those_there_are() -> None:
    with pytest.raises(
        ConfigError, match=r"condition\.level=far is not in the semd_synthetic bank; it has: other, rew"
    ):
        opened("semd_synthetic", level="far")


def test_unrelated_rows_are_different_pool_rows_for_every_planned_slot() -> None:
    rows = opened("unrelated")
    every = [row for found in rows.values() for row in found]
    assert all(len(found) >= 2 for found in rows.values())
    assert len({row.row_id for row in every}) == len(every)
    assert {row.prompt for row in every} <= {row.prompt for row in POOL}


def test_unrelated_rows_still_cover_every_slot_of_a_small_pool() -> None:
    bank = open_bank(ConditionConfig("unrelated"), material(spare=12))
    assert Counter(len(found) for found in bank.rows.values()) == {2: 6}
    with pytest.raises(ConfigError, match="too few"):
        open_bank(ConditionConfig("unrelated"), material(spare=11))


def test_prompt_repetition_repeats_pool_rows_of_its_own_for_each_item() -> None:
    bank = open_bank(ConditionConfig("prompt_repetition"), material())
    assert bank.repeated
    owners = Counter(row.row_id for found in bank.rows.values() for row in found)
    assert set(owners.values()) == {1}
