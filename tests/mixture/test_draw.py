"""Which clean rows are drawn: the same as one would draw from a list, whatever the size and however it is read."""

from __future__ import annotations

import json
import random
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from byte_chat import byte_chat
from numpy.typing import NDArray

from softcontam.chat import EncodedRow
from softcontam.config import PoolConfig
from softcontam.errors import ConfigError, TokenizationError
from softcontam.mixture import Pool, PoolRow, draw, load_pool, pool
from softcontam.mixture.draw import CleanDraw, Drawn

LIMIT = 60
ROWS = [
    PoolRow(f"row/{n}", f"What is {n}?" + " Say." * random.Random(n).choice([0, 1, 30]), f"{n}", "made up")
    for n in range(4000)
]
"""A third of them are too long."""


class Chat:
    """A chat that cannot prove the masks of rows that say so; it counts what it is given."""

    def __init__(self) -> None:
        self.asked: list[str] = []

    def encode_fitting(self, rows: Sequence[tuple[str, str]], max_length: int) -> list[EncodedRow | None]:
        self.asked += [prompt for prompt, _ in rows]
        if any("unprovable" in prompt for prompt, _ in rows):
            raise TokenizationError("no mask")
        return byte_chat().encode_fitting(rows, max_length)


def drawn(
    folder: Path, n_rows: int, rows: Sequence[PoolRow] | Pool = ROWS, near: Any = None, drop: bool = False
) -> tuple[list[Drawn], CleanDraw, Chat]:
    chat: Any = Chat()
    source = rows if isinstance(rows, Pool) else Pool([rows])
    one = CleanDraw(source, n_rows, chat, LIMIT, 3, near, drop)
    found = [row for batch in one.batches(folder) for row in batch]
    assert list(folder.iterdir()) == []
    return found, one, chat


def expected(n_rows: int, rows: Sequence[PoolRow] = ROWS, without: str = "\n") -> list[str]:
    """The plain way: shuffle all, take the first that fit."""
    order = random.Random(3).sample(range(len(rows)), len(rows))
    fitting = (
        rows[place].row_id
        for place in order
        if len(byte_chat().encode(rows[place].prompt, rows[place].completion).ids) <= LIMIT
        and without not in rows[place].prompt
    )
    return [row_id for row_id, _ in zip(fitting, range(n_rows), strict=False)]


@pytest.mark.parametrize("n_rows", [1, 100, 1500, 2300])
def test_rows_are_the_first_that_fit_of_a_shuffled_pool(n_rows: int, tmp_path: Path) -> None:
    """2,300 need more than the rows that are spilled at first."""
    found, one, chat = drawn(tmp_path, n_rows)
    assert [row.row.row_id for row in found] == expected(n_rows)
    assert len(chat.asked) == len(set(chat.asked)) == n_rows + one.too_long, "no row is tokenized twice or in vain"


def test_rows_are_those_of_the_pool_with_their_own_tokens(tmp_path: Path) -> None:
    by_id = {row.row_id: row for row in ROWS}
    for one in drawn(tmp_path, 300)[0]:
        assert one.row == by_id[one.row.row_id]
        assert one.encoded == byte_chat().encode(one.row.prompt, one.row.completion)


def has_a_nine(rows: Sequence[tuple[str, str]]) -> NDArray[np.bool_]:
    return np.array(["9" in prompt for prompt, _ in rows], dtype=np.bool_)


def test_rows_near_a_benchmark_item_are_told_or_passed_over(tmp_path: Path) -> None:
    told, kept, _ = drawn(tmp_path, 500, near=has_a_nine)
    assert [row.row.row_id for row in told] == expected(500)
    assert [row.near for row in told] == ["9" in row.row.prompt for row in told]
    assert kept.dropped == 0
    left, dropping, _ = drawn(tmp_path, 500, near=has_a_nine, drop=True)
    assert [row.row.row_id for row in left] == expected(500, without="9")
    assert dropping.dropped > 100
    assert not any(row.near for row in left)


@pytest.mark.parametrize("sizes", [{"BATCH": 7}, {"BUCKET": 13}, {"BUCKET": 13, "MOST_BUCKETS": 3}, {"WORKERS": 5}])
def test_sizes_of_batches_and_buckets_do_not_matter(
    sizes: dict[str, int], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    for name, size in sizes.items():
        monkeypatch.setattr(draw, name, size)
    found, one, _ = drawn(tmp_path, 600)
    assert [row.row.row_id for row in found] == expected(600)
    assert one.too_long == expected_too_long(600)


def expected_too_long(n_rows: int) -> int:
    last = expected(n_rows)[-1]
    order = random.Random(3).sample(range(len(ROWS)), len(ROWS))
    return 1 + [ROWS[place].row_id for place in order].index(last) - n_rows


@pytest.mark.parametrize(("row_group", "batch"), [(1, 4000), (10_000, 7), (64, 100)])
def test_a_parquet_pool_gives_what_the_same_rows_in_jsonl_give(
    row_group: int, batch: int, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(pool, "BATCH", batch)
    rows = [
        {
            "messages": [
                {"role": "user", "content": one.prompt},
                {"role": "assistant", "content": f" {one.completion}\n"},
            ]
        }
        for one in ROWS[:300]
    ]
    folder = tmp_path / "pool"
    folder.mkdir()
    (folder / "p.jsonl").write_text("".join(json.dumps(row) + "\n" for row in rows))
    pq.write_table(pa.Table.from_pylist(rows), folder / "p.parquet", row_group_size=row_group)
    (tmp_path / "spill").mkdir()
    read = [load_pool(PoolConfig("mine", [f"p.{kind}"]), folder) for kind in ("jsonl", "parquet")]
    one, other = (drawn(tmp_path / "spill", 150, rows)[0] for rows in read)
    assert one == other


def test_a_row_that_cannot_be_proved_is_named(tmp_path: Path) -> None:
    rows = [PoolRow("bad/17", "unprovable", "1", "x") if row.row_id == "row/17" else row for row in ROWS[:40]]
    with pytest.raises(TokenizationError, match="clean row bad/17: no mask"):
        drawn(tmp_path, 20, rows[10:])
    assert list(tmp_path.iterdir()) == []


def test_a_row_beyond_those_drawn_is_not_looked_at(tmp_path: Path) -> None:
    last = random.Random(3).sample(range(40), 40)[-1]
    rows = [PoolRow("bad", "unprovable", "1", "x") if place == last else ROWS[0] for place in range(40)]
    assert len(drawn(tmp_path, 39, rows)[0]) == 39
    with pytest.raises(TokenizationError, match="clean row bad"):
        drawn(tmp_path, 40, rows)


def test_a_draw_that_is_given_up_leaves_nothing_behind(tmp_path: Path) -> None:
    batches = CleanDraw(Pool([ROWS]), 3000, byte_chat(), LIMIT, 3, None, False).batches(tmp_path)
    next(batches)
    assert list(tmp_path.iterdir())
    batches.close()
    assert list(tmp_path.iterdir()) == []


def test_too_few_rows_that_can_be_used_are_counted(tmp_path: Path) -> None:
    with pytest.raises(
        ConfigError, match=r"n_rows=3999.*has 4000 rows of which 1\d\d\d exceed.*=60 tokens and 0 are near"
    ):
        drawn(tmp_path, 3999)
    with pytest.raises(ConfigError, match=r"[1-9]\d* are near a benchmark item and dropped"):
        drawn(tmp_path, 2600, near=has_a_nine, drop=True)
