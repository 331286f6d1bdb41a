"""Bank files: what is written comes back, and every bad row is refused with file and row."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import pytest
from tiny_cells import made_up_benchmark

from softcontam.config import BankConfig, BenchmarkConfig, ConditionConfig
from softcontam.duplicates import Bank, BankRow, Material, bank_rows, exact, open_bank, read_bank, write_bank
from softcontam.duplicates.bank import BANK_KINDS, text_sha256
from softcontam.errors import ConfigError, DataError

BENCHMARK = made_up_benchmark(6)
ROW = BankRow("r1", "riddles/0a", "topical", None, "A question?", "Answer: 1", "answer", "corpus 17")
FULL = BankRow(
    "r2", "riddles/0b", "topical", "hard", "Ünicode ?\n\t", "Antwort: é\0", "cot", "m", "related", "j", 0.5, 0.25
)


def damaged(path: Path, **columns: Any) -> Path:
    """A bank of two rows, the second of which has these values instead."""
    write_bank(path, [ROW, FULL])
    frame = pd.read_parquet(path).astype(object)
    for column, value in columns.items():
        frame.loc[1, column] = value
    frame.to_parquet(path, index=False)
    return path


def with_sha(path: Path, **texts: Any) -> Path:
    """A bank whose second row has other texts and the sha256 that belongs to them."""
    row = replace(FULL, **texts)
    return damaged(path, **texts, sha256=row.sha256)


def material(rows: Callable[[str], list[BankRow]]) -> Material:
    """What a bank is opened from where only rows by kind matter."""
    return Material(BENCHMARK.items, {}, rows, lambda most, least: [], lambda pairs: np.zeros(len(pairs)))


class TestFile:
    def test_round_trip(self, tmp_path: Path) -> None:
        rows = [ROW, FULL, replace(ROW, row_id="r3", item_id="riddles/1a", cosine=0.0)]
        write_bank(tmp_path / "bank.parquet", rows)
        assert read_bank(tmp_path / "bank.parquet") == rows

    def test_columns_of_the_design(self, tmp_path: Path) -> None:
        write_bank(tmp_path / "bank.parquet", [ROW])
        assert (
            list(pd.read_parquet(tmp_path / "bank.parquet").columns)
            == (
                "row_id item_id kind level prompt completion response_style source match_type judge cosine "
                "ngram_overlap sha256"
            ).split()
        )

    def test_missing(self, tmp_path: Path) -> None:
        with pytest.raises(DataError, match=r"gone\.parquet does not exist.*benchmark\.banks"):
            read_bank(tmp_path / "gone.parquet")

    @pytest.mark.parametrize("keep", [0.0, 0.3, 0.9, 0.999])
    def test_truncated(self, tmp_path: Path, keep: float) -> None:
        path = tmp_path / "bank.parquet"
        write_bank(path, [ROW, FULL])
        path.write_bytes(path.read_bytes()[: int(path.stat().st_size * keep)])
        with pytest.raises(DataError, match=r"bank\.parquet.*readable.*again"):
            read_bank(path)

    @pytest.mark.parametrize("column", ["row_id", "prompt", "judge", "sha256"])
    def test_column_missing(self, tmp_path: Path, column: str) -> None:
        path = damaged(tmp_path / "bank.parquet")
        pd.read_parquet(path).drop(columns=column).to_parquet(path)
        with pytest.raises(DataError, match=rf"bank\.parquet lacks the columns {column}"):
            read_bank(path)

    @pytest.mark.parametrize("column", ["prompt", "completion", "sha256"])
    def test_a_row_changed_after_it_was_written(self, tmp_path: Path, column: str) -> None:
        path = damaged(tmp_path / "bank.parquet", **{column: "changed"})
        with pytest.raises(DataError, match=r"bank\.parquet.*row 2 \(r2\) does not match its sha256.*Restore"):
            read_bank(path)

    def test_text_moved_between_prompt_and_completion_changes_the_sha256(self) -> None:
        assert text_sha256("ab", "c") != text_sha256("a", "bc")

    @pytest.mark.parametrize(
        "column", ["row_id", "item_id", "kind", "prompt", "completion", "response_style", "source"]
    )
    def test_a_value_missing(self, tmp_path: Path, column: str) -> None:
        with pytest.raises(DataError, match=rf"bank\.parquet: row 2 \(.*\) has no {column}\. .*drop the row"):
            read_bank(damaged(tmp_path / "bank.parquet", **{column: None}))

    @pytest.mark.parametrize("column", ["prompt", "completion"])
    @pytest.mark.parametrize("value", ["", "  \n"])
    def test_empty_text(self, tmp_path: Path, column: str, value: str) -> None:
        with pytest.raises(DataError, match=rf"bank\.parquet: row 2 \(r2\) has an empty {column}\. Fill in"):
            read_bank(with_sha(tmp_path / "bank.parquet", **{column: value}))

    @pytest.mark.parametrize(
        ("columns", "says"),
        [
            ({"kind": "toppical"}, r"row 2 \(r2\) has unknown kind 'toppical'. Did you mean topical\?"),
            ({"kind": "clean"}, r"row 2 \(r2\) has unknown kind 'clean'.*Known: exact, near"),
            ({"item_id": " "}, r"row 2 \(r2\) has an empty item_id. Fill in"),
            ({"row_id": "r1"}, "'r1' occurs more than once. Rename"),
            ({"level": 2}, r"row 2 \(r2\) has level 2\.0, expected text. Store level as text"),
            ({"cosine": "0.5"}, r"row 2 \(r2\) has cosine '0.5', expected a number"),
            ({"sha256": None}, r"row 2 \(r2\) does not match its sha256"),
        ],
    )
    def test_a_bad_row(self, tmp_path: Path, columns: dict[str, str], says: str) -> None:
        with pytest.raises(DataError, match=says) as caught:
            read_bank(damaged(tmp_path / "bank.parquet", **columns))
        assert "bank.parquet" in str(caught.value)

    @pytest.mark.parametrize("column", ["item_id", "prompt", "row_id"])
    def test_a_column_of_numbers_or_lists(self, tmp_path: Path, column: str) -> None:
        path = tmp_path / "bank.parquet"
        for value in (5, ["a", "b"]):
            write_bank(path, [ROW])
            frame = pd.read_parquet(path)
            frame[column] = pd.Series([value])
            frame.to_parquet(path)
            with pytest.raises(DataError, match=r"bank\.parquet"):
                read_bank(path)

    def test_all_bad_rows_are_counted_and_the_command_that_lists_them_named(self, tmp_path: Path) -> None:
        path = tmp_path / "bank.parquet"
        write_bank(path, [ROW, *(replace(FULL, row_id=f"x{n}") for n in range(3))])
        pd.read_parquet(path).assign(prompt="changed").to_parquet(path)
        with pytest.raises(
            DataError, match=r"row 1 \(r1\).*3 more rows: python -m softcontam\.bank check .*bank\.parquet"
        ):
            read_bank(path)

    def test_a_csv_file_in_its_place_names_the_command_that_converts_it(self, tmp_path: Path) -> None:
        path = tmp_path / "bank.csv"
        path.write_text("row_id,item_id\n1,2\n")
        with pytest.raises(DataError, match=r"bank\.csv.*softcontam\.bank convert .*bank\.csv out=.*bank\.parquet"):
            read_bank(path)

    def test_a_column_without_any_value_has_the_type_of_one_with_values(self, tmp_path: Path) -> None:
        write_bank(tmp_path / "bank.parquet", [ROW])
        assert pd.read_parquet(tmp_path / "bank.parquet").dtypes["cosine"] == "float64"

    @pytest.mark.parametrize("change", [{"kind": "other"}, {"prompt": ""}, {"item_id": ""}, {"level": 1}])
    def test_a_bad_row_is_never_written(self, tmp_path: Path, change: dict[str, Any]) -> None:
        with pytest.raises(DataError, match="row r1"):
            write_bank(tmp_path / "bank.parquet", [replace(ROW, **change)])
        assert not list(tmp_path.iterdir())

    def test_every_kind_of_the_design_is_known(self) -> None:
        kinds = "exact near semd_synthetic semd_natural topical format_only shuffled_label unrelated".split()
        assert set(kinds) <= set(BANK_KINDS)


class TestOpen:
    @pytest.fixture
    def opened(self, tmp_path: Path) -> Callable[..., Bank]:
        rows = [
            replace(ROW, row_id=f"{kind}/{level}/{item.item_id}/{n}", item_id=item.item_id, kind=kind, level=level,
                    prompt=f"{kind} {level} {n} {item.prompt}")
            for kind, level in (("semd_synthetic", "a"), ("semd_synthetic", "b"), ("topical", None))
            for item in BENCHMARK.items
            for n in range(2)
        ]  # fmt: skip
        rows.append(replace(ROW, row_id="stray", item_id="another benchmark's item"))
        write_bank(tmp_path / "banks" / "bank.parquet", rows)
        source = BankConfig(source="parquet", path="banks/bank.parquet")

        def open_it(kind: str, level: str | None = None, **changes: Any) -> Bank:
            config = BenchmarkConfig("riddles", "riddles", banks={kind: replace(source, **changes)})
            rows = partial(bank_rows, config=config, items=BENCHMARK.items, data=tmp_path)
            return open_bank(ConditionConfig(kind, level), material(rows))

        return open_it

    def test_rows_of_its_kind_and_level_by_item(self, opened: Callable[..., Bank]) -> None:
        bank = opened("semd_synthetic", "b")
        assert set(bank.rows) == {item.item_id for item in BENCHMARK.items}
        for item_id, rows in bank.rows.items():
            assert {(row.item_id, row.kind, row.level) for row in rows} == {(item_id, "semd_synthetic", "b")}
        assert {len(rows) for rows in opened("semd_synthetic").rows.values()} == {4}
        assert {len(rows) for rows in opened("topical").rows.values()} == {2}

    def test_unknown_level_lists_those_that_there_are(self, opened: Callable[..., Bank]) -> None:
        with pytest.raises(ConfigError, match=r"condition\.level=c is not in the semd_synthetic bank.*a, b"):
            opened("semd_synthetic", "c")

    def test_unknown_source_lists_those_that_there_are(self, opened: Callable[..., Bank]) -> None:
        with pytest.raises(ConfigError, match=r"'internet' is unknown; choose .*parquet"):
            opened("topical", source="internet")

    def test_a_parquet_bank_without_a_path_names_the_key(self, opened: Callable[..., Bank]) -> None:
        with pytest.raises((ConfigError, DataError), match=r"benchmark\.banks\.(topical|<kind>)\.path"):
            opened("topical", path=None)

    def test_a_bank_that_has_no_row_of_the_kind_says_so(self, opened: Callable[..., Bank]) -> None:
        with pytest.raises((ConfigError, DataError), match=r"bank\.parquet.*format_only"):
            opened("format_only")

    def test_exact_needs_no_bank_and_is_the_item(self) -> None:
        bank = open_bank(ConditionConfig("exact"), material(lambda kind: []))
        for item in BENCHMARK.items:
            assert bank.rows[item.item_id] == [exact.row(item)]
            assert (exact.row(item).prompt, exact.row(item).completion) == (item.prompt, item.target)

    def test_tinyworld_rows_of_an_unknown_kind(self, tmp_path: Path) -> None:
        config = BenchmarkConfig("riddles", "riddles", banks={"near": BankConfig(source="tinyworld")})
        with pytest.raises((ConfigError, DataError), match="tinyworld has no rows of kind 'near'"):
            bank_rows("near", config, BENCHMARK.items, tmp_path)
