"""From a layout to a mixture: arms that are broken on purpose are refused, what filters find is written down."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from functools import lru_cache
from pathlib import Path

import numpy as np
import pandas as pd
import pytest
from tiny_cells import composed

from softcontam.arms import Arm, lay_out
from softcontam.assemble import Assembled, assemble, chat_of, choose_rows, estimated_matching
from softcontam.benchmarks import Item
from softcontam.chat import Chat
from softcontam.config import Config
from softcontam.duplicates import BankRow, write_bank
from softcontam.errors import ArmMismatchError, ConfigError, LeakageError


@lru_cache(maxsize=1)
def chat() -> Chat:
    return chat_of('{"name": "tinyworld", "path": "tinyworld"}')


def with_bank(folder: Path, spoil: Callable[[BankRow, Arm], BankRow], **differs: str) -> tuple[Config, Arm]:
    """The topical arm with its rows as a bank file, each as ``spoil`` makes it."""
    plain = composed("condition=topical", "condition.match_to=null", f"paths.data={folder}")
    arm = lay_out(plain)
    assert arm.bank is not None
    rows = [spoil(row, arm) for found in arm.bank.rows.values() for row in found]
    write_bank(folder / "bank.parquet", rows)
    banks = ("benchmark.banks.topical.source=parquet", "+benchmark.banks.topical.path=bank.parquet")
    config = composed("condition=topical", "condition.match_to=null", f"paths.data={folder}", *banks)
    return config, lay_out(config)


def test_a_topical_arm_that_holds_the_benchmarks_text_is_refused(tmp_path: Path) -> None:
    """The study's "cosine" arm appended the benchmark's own text."""

    def spoil(row: BankRow, arm: Arm) -> BankRow:
        return replace(row, prompt=f"{row.prompt} {arm.split.held_out[0].prompt}")

    config, arm = with_bank(tmp_path, spoil)
    with pytest.raises(
        LeakageError, match=r"of \d+ topical rows for seen items are near a held-out item.*first topical/"
    ):
        choose_rows(config, arm, chat())


def test_a_held_out_items_row_under_a_seen_items_name_is_refused(tmp_path: Path) -> None:
    def spoil(row: BankRow, arm: Arm) -> BankRow:
        item: Item = arm.split.held_out[-1]
        return replace(row, prompt=item.prompt, completion=item.target)

    config, arm = with_bank(tmp_path, spoil)
    with pytest.raises(LeakageError, match="near a held-out item"):
        choose_rows(config, arm, chat())
    config.mixture.near_held_out = "leave_out"
    with pytest.raises(LeakageError, match=r"has 0 topical rows and 1 are planned"):
        choose_rows(config, arm, chat())


def test_an_arm_with_long_answers_is_refused_before_anything_is_built(tmp_path: Path) -> None:
    config, arm = with_bank(tmp_path, lambda row, arm: replace(row, completion=f"{row.completion} and so on" * 4))
    chosen = choose_rows(config, arm, chat())
    assert chosen is not None
    with pytest.raises(ArmMismatchError, match=r"topical at rate 0\.1, seed 0 cannot be matched.*trained_tokens"):
        estimated_matching(config, arm, chat(), chosen)


def assembled(folder: Path, *overrides: str) -> Assembled:
    config = composed(*overrides)
    return assemble(config, lay_out(config), chat(), folder / "mixture")


def test_the_manifest_has_each_filters_verdict_and_the_similarity(tmp_path: Path) -> None:
    made = assembled(tmp_path, "condition=exact")
    made.write_manifest(tmp_path / "manifest.parquet")
    manifest = pd.read_parquet(tmp_path / "manifest.parquet")
    inserted = manifest[manifest["kind"] == "exact"]
    for name in ("ngram_13", "ngram_8", "minhash_80"):
        assert inserted[name].astype(bool).all(), name
    assert np.allclose(inserted["similarity"], 1.0)
    assert manifest.loc[manifest["kind"] == "clean", "similarity"].isna().all()
    assert manifest.loc[manifest["kind"] == "clean", "ngram_13"].notna().all()


def test_a_filtered_arm_keeps_the_clean_rows_where_rows_were_taken_out(tmp_path: Path) -> None:
    whole = assembled(tmp_path / "a", "condition=exact")
    filtered = assembled(tmp_path / "b", "condition=exact", "condition.filter=ngram_13")
    clean = assembled(tmp_path / "c", "condition=clean")
    assert sum(whole.mixture.copies.values()) == 6
    assert filtered.mixture.copies == {}
    assert filtered.matching is not None
    assert filtered.matching.removed == 6
    rows = [[row.row_id for row in one.mixture.rows] for one in (filtered, clean)]
    assert rows[0] == rows[1]


def test_clean_rows_near_an_item_are_listed_or_dropped_in_every_arm(tmp_path: Path) -> None:
    """By 4-grams, which a few clean rows share with the items' wording ("does ... have now?")."""
    loose = "mixture.near_filter=ngram_4"
    kept = assembled(tmp_path / "a", "condition=clean", loose)
    assert kept.mixture.near_count > 0
    dropped = [
        assembled(
            tmp_path / name,
            f"condition={name}",
            loose,
            "mixture.near_clean_rows=drop",
            "mixture.near_held_out=leave_out",
        )
        for name in ("clean", "unrelated")
    ]
    assert dropped[0].mixture.near_count == 0
    assert dropped[0].mixture.near_dropped > 0
    assert dropped[0].mixture.base_sha256 == dropped[1].mixture.base_sha256


@pytest.mark.parametrize("key", ["filters", "clean_filters"])
def test_an_unknown_filter_is_told_before_anything_is_built_in_the_clean_arm_too(key: str) -> None:
    config = composed("condition=clean", f"mixture.{key}=[ngram_13,bloom_3]")
    with pytest.raises(ConfigError, match="bloom_3"):
        choose_rows(config, lay_out(config), chat())
