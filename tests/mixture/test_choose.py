"""Choosing rows: at random, matched in tokens, never near a held-out item."""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from statistics import fmean

import numpy as np
import pytest
from byte_chat import byte_chat
from numpy.typing import NDArray
from tiny_cells import made_up_benchmark

from softcontam.chat import Chat
from softcontam.config import ConditionConfig, MixtureConfig
from softcontam.duplicates import Bank, BankRow, exact
from softcontam.errors import ArmMismatchError, LeakageError, TokenizationError
from softcontam.mixture import plan_slots
from softcontam.mixture.choose import Chosen, choose
from softcontam.mixture.matching import Matching, Tokens, measure, refuse_mismatch

SEEN = made_up_benchmark(10).items
PLAN = plan_slots(200, 0.2, None, SEEN, 3)  # 40 slots, two for each item


def chat() -> Chat:
    return byte_chat()


def row(item_id: str, number: int, prompt: str, completion: str) -> BankRow:
    return BankRow(f"r/{item_id}/{number}", item_id, "semd_synthetic", None, prompt, completion, "answer", "test")


def lengths(*sizes: int) -> Bank:
    """For each item rows whose prompts have so many bytes more than the item's; its own answer."""
    return Bank.of(
        "semd_synthetic",
        None,
        (
            row(item.item_id, n, f"{n}#{item.item_id} ".ljust(len(item.prompt) + size, "y"), item.target)
            for item in SEEN
            for n, size in enumerate(sizes)
        ),
    )


def tokens(chosen: Chosen) -> tuple[int, int]:
    return (
        sum(len(one.encoded.input_ids) for one in chosen.insertions),
        sum(len(one.input_ids) for one in chosen.reference.values()),
    )


def test_every_slot_of_the_plan_gets_another_row_of_its_item() -> None:
    chosen = choose(PLAN, lengths(0, 1, 2), chat(), 500, 0)
    assert [one.slot for one in chosen.insertions] == list(PLAN.slots)
    assert [one.row.item_id for one in chosen.insertions] == [item.item_id for item in PLAN.items]
    assert max(Counter(one.row.row_id for one in chosen.insertions).values()) == 1


def test_exact_rows_repeat_and_are_their_own_reference() -> None:
    bank = Bank.of("exact", None, map(exact.row, SEEN), repeated=True)
    chosen = choose(PLAN, bank, chat(), 500, 0)
    assert set(Counter(one.row.row_id for one in chosen.insertions).values()) == {2}
    ours, theirs = tokens(chosen)
    assert ours == theirs


def test_rows_are_exchanged_until_their_tokens_match() -> None:
    bank = lengths(30, 40, -30, -40)
    ours, theirs = tokens(choose(PLAN, bank, chat(), 500, 0))
    assert abs(ours - theirs) / theirs <= 0.002


def test_what_a_bank_cannot_offer_is_not_matched() -> None:
    ours, theirs = tokens(choose(PLAN, lengths(30, 40), chat(), 500, 0))
    assert ours > theirs + 30 * 30


def test_no_row_is_exchanged_where_chance_matches_already() -> None:
    picked = [choose(PLAN, lengths(0, 0, 0, 0), chat(), 500, seed).insertions for seed in range(40)]
    counts = Counter(one.row.row_id.rsplit("/", 1)[1] for found in picked for one in found)
    assert min(counts.values()) > 320
    assert max(counts.values()) < 480


def test_choice_depends_on_the_seed_alone() -> None:
    first, again, other = (choose(PLAN, lengths(3, -3, 5, -5), chat(), 500, seed).insertions for seed in (0, 0, 1))
    assert [one.row for one in first] == [one.row for one in again]
    assert [one.row for one in first] != [one.row for one in other]


def test_a_row_that_would_be_truncated_is_named() -> None:
    with pytest.raises(
        TokenizationError, match=r"inserted row r/riddles/\w+/1 has \d+ tokens.*max_length=120; 19 others"
    ):
        choose(PLAN, lengths(0, 400), chat(), 120, 0)


def test_rows_of_the_pool_that_do_not_fit_are_passed_over() -> None:
    found = lengths(0, 400, 1)
    bank = Bank("unrelated", None, found.rows, from_pool=True)
    assert {one.row.row_id[-1] for one in choose(PLAN, bank, chat(), 120, 0).insertions} == {"0", "2"}


def finds(word: str) -> object:
    def flags(rows: Sequence[tuple[str, str]]) -> NDArray[np.bool_]:
        return np.array([word in prompt for prompt, _ in rows], dtype=np.bool_)

    return flags


def test_rows_near_a_held_out_item_are_refused_or_left_out() -> None:
    bank = lengths(0, 1, 2)
    with pytest.raises(
        LeakageError, match=r"20 of 60 semd_synthetic rows.*first r/riddles/0a/1.*near_held_out=leave_out"
    ):
        choose(PLAN, bank, chat(), 500, 0, near_held_out=finds("1#"))  # type: ignore[arg-type]
    chosen = choose(PLAN, bank, chat(), 500, 0, near_held_out=finds("1#"), leave_out=True)  # type: ignore[arg-type]
    assert len(chosen.left_out) == 20
    assert {one.row.row_id[-1] for one in chosen.insertions} == {"0", "2"}


def test_an_item_that_is_alike_itself_does_not_count_against_its_rows() -> None:
    chosen = choose(PLAN, lengths(0, 1), chat(), 500, 0, near_held_out=finds("Here are keys"))  # type: ignore[arg-type]
    assert set(chosen.alike) == {item.item_id for item in SEEN}
    assert not chosen.left_out


def test_leaving_rows_out_never_shortens_the_dose_in_silence() -> None:
    with pytest.raises(LeakageError, match=r"riddles/\w+ has 1 semd_synthetic rows and 2 are planned"):
        choose(PLAN, lengths(0, 1), chat(), 500, 0, near_held_out=finds("1#"), leave_out=True)  # type: ignore[arg-type]


def test_a_filter_takes_rows_out_of_their_slots_and_leaves_the_others_as_they_were() -> None:
    bank = lengths(0, 1, 2)
    whole = choose(PLAN, bank, chat(), 500, 0)
    kept = choose(PLAN, bank, chat(), 500, 0, filtered=finds("1#"))  # type: ignore[arg-type]
    assert kept.removed
    assert len(kept.removed) + len(kept.insertions) == len(whole.insertions)
    by_slot = {one.slot: one.row.row_id for one in whole.insertions}
    assert all(by_slot[one.slot] == one.row.row_id for one in (*kept.insertions, *kept.removed))


WHOLE = Tokens(20_000, 4_000)


def matching(chosen: Chosen) -> Matching:
    return measure(chosen, Tokens(0, 0), WHOLE, "answer")


def test_arms_within_the_tolerance_pass() -> None:
    found = matching(choose(PLAN, lengths(30, 40, -30, -40), chat(), 500, 0))
    assert found.differs(0.02) == []
    refuse_mismatch(found, MixtureConfig(n_rows=200), ConditionConfig("semd_synthetic"), "semd")


def test_arms_beyond_the_tolerance_are_refused_with_the_ways_out() -> None:
    found = matching(choose(PLAN, lengths(60, 40), chat(), 500, 0))
    share = 40 * fmean((60, 40)) / WHOLE.tokens
    assert found.difference("tokens") == pytest.approx(share)
    with pytest.raises(
        ArmMismatchError, match=r"semd cannot be matched.*tokens \([\d,]+ in the inserted rows.*\+10\.0 %"
    ):
        refuse_mismatch(found, MixtureConfig(n_rows=200), ConditionConfig("semd_synthetic"), "semd")
    for config, condition in (
        (MixtureConfig(n_rows=200, differs=["tokens", "trained_tokens"]), ConditionConfig("semd_synthetic")),
        (MixtureConfig(n_rows=200), ConditionConfig("semd_synthetic", differs=["tokens"])),
    ):
        refuse_mismatch(found, config, condition, "semd")


def test_another_response_style_is_a_mismatch() -> None:
    bank = Bank.of(
        "topical",
        None,
        (
            BankRow(
                f"t/{item.item_id}/{n}", item.item_id, "topical", None, item.prompt + f"{n}", item.target, "cot", "t"
            )
            for item in SEEN
            for n in range(2)
        ),
    )
    found = matching(choose(PLAN, bank, chat(), 500, 0))
    with pytest.raises(ArmMismatchError, match=r"response_style \(rows: 40 cot; items: answer\)"):
        refuse_mismatch(found, MixtureConfig(n_rows=200), ConditionConfig("topical"), "topical")


def test_figures_survive_the_way_through_metrics() -> None:
    found = matching(choose(PLAN, lengths(3, 4), chat(), 500, 0))
    assert Matching.from_dict(found.as_dict()) == found
