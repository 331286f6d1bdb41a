"""A table of difficulties: read from each format, refused with file, row and remedy."""

from __future__ import annotations

import json
from pathlib import Path

import pandas as pd
import pytest

from softcontam.errors import DataError
from softcontam.mixture.difficulty import read_difficulty

IDS = ["mbpp/1", "mbpp/2", "mbpp/3"]
TABLE = {"mbpp/2": 0.25, "mbpp/1": 3.0, "mbpp/3": -1.0}


def write(path: Path, rows: list[dict[str, object]]) -> Path:
    if path.suffix == ".jsonl":
        path.write_text("".join(json.dumps(row) + "\n" for row in rows))
    elif path.suffix == ".csv":
        pd.DataFrame(rows).to_csv(path, index=False)
    else:
        pd.DataFrame(rows).to_parquet(path)
    return path


def rows(**changes: object) -> list[dict[str, object]]:
    """The rows of TABLE, those named in ``changes`` by their number of the item with another difficulty."""
    table: dict[str, object] = {**TABLE, **{f"mbpp/{key[1:]}": value for key, value in changes.items()}}
    return [{"note": "kept", "item_id": item_id, "difficulty": value} for item_id, value in table.items()]


@pytest.fixture(params=["csv", "jsonl", "parquet"])
def path(request: pytest.FixtureRequest, tmp_path: Path) -> Path:
    return tmp_path / f"difficulty.{request.param}"


def test_every_format_gives_the_same(path: Path) -> None:
    assert read_difficulty(write(path, rows()), IDS, IDS) == TABLE


def test_items_that_were_left_out_of_the_split_may_be_in_the_table(path: Path) -> None:
    assert read_difficulty(write(path, rows()), IDS, IDS[:1])["mbpp/1"] == 3.0


def test_an_item_of_another_benchmark_is_named_with_its_row(path: Path) -> None:
    where = "row 4" if path.suffix == ".parquet" else "line 5" if path.suffix == ".csv" else "line 4"
    with pytest.raises(DataError, match=rf"difficulty\..*, {where}: item_id 'musr/7' is no item.*like 'mbpp/1'"):
        read_difficulty(write(path, [*rows(), {"item_id": "musr/7", "difficulty": 1.0}]), IDS, IDS)


def test_an_item_that_stands_there_twice(path: Path) -> None:
    with pytest.raises(DataError, match=r"'mbpp/1' stands in an earlier row too\. Keep one"):
        read_difficulty(write(path, [*rows(), {"item_id": "mbpp/1", "difficulty": 3.0}]), IDS, IDS)


def test_missing_items_are_counted_and_the_first_is_named(path: Path) -> None:
    with pytest.raises(DataError, match=r"no row for 2 of 3 items, the first of them 'mbpp/2'\. Add them"):
        read_difficulty(write(path, rows()[1:2]), IDS, IDS)


@pytest.mark.parametrize("value", ["hard", "", "nan", "inf", "1,5", None])
def test_what_is_no_finite_number_in_csv(tmp_path: Path, value: object) -> None:
    table = write(tmp_path / "d.csv", rows(n1=value))
    with pytest.raises(DataError, match=r"d\.csv, line 3: difficulty of mbpp/1 should be a finite number"):
        read_difficulty(table, IDS, IDS)


@pytest.mark.parametrize("value", ["0.5", True, None, [1], float("nan"), 10**400])
def test_what_is_no_finite_number_in_jsonl(tmp_path: Path, value: object) -> None:
    table = write(tmp_path / "d.jsonl", rows(n1=value))
    with pytest.raises(DataError, match=r"d\.jsonl, line 2: difficulty of mbpp/1 should be a finite number"):
        read_difficulty(table, IDS, IDS)


def test_a_null_in_parquet(tmp_path: Path) -> None:
    table = write(tmp_path / "d.parquet", rows(n1=None))
    with pytest.raises(DataError, match=r"d\.parquet, row 2: difficulty of mbpp/1 should be a finite number"):
        read_difficulty(table, IDS, IDS)


def test_a_column_that_is_not_there(path: Path) -> None:
    bare = [{"item_id": item_id, "hardness": 1.0} for item_id in IDS]
    with pytest.raises(DataError, match=r"lacks the column difficulty \(it has: item_id, hardness\)"):
        read_difficulty(write(path, bare), IDS, IDS)


def test_a_short_line_in_csv(tmp_path: Path) -> None:
    (tmp_path / "d.csv").write_text("item_id,difficulty\nmbpp/1\n")
    with pytest.raises(DataError, match=r"d\.csv, line 2: difficulty of mbpp/1 .* found None"):
        read_difficulty(tmp_path / "d.csv", IDS, IDS)


@pytest.mark.parametrize("name", ["absent.csv", "absent.parquet", "folder", "table.xlsx"])
def test_files_that_cannot_be_read(tmp_path: Path, name: str) -> None:
    (tmp_path / "folder").mkdir()
    (tmp_path / "table.xlsx").write_text("x")
    with pytest.raises(DataError, match=rf"{name}.*benchmark\.difficulty"):
        read_difficulty(tmp_path / name, IDS, IDS)


@pytest.mark.parametrize("path", ["parquet", "csv"], indirect=True)
def test_damaged_files(path: Path) -> None:
    path.write_bytes(b"PAR1\xff\x00item_id")
    with pytest.raises(DataError, match="difficulty"):
        read_difficulty(path, IDS, IDS)
