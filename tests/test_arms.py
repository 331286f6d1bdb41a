"""The layout of an arm: what a table of difficulties changes, and how one that does not fit is refused."""

from __future__ import annotations

from pathlib import Path
from statistics import fmean

import pytest
from tiny_cells import composed

from softcontam.arms import lay_out
from softcontam.errors import DataError


def table(folder: Path, values: dict[str, float]) -> str:
    """A table of difficulties in ``folder``; its name."""
    lines = [f"{item_id},{value}" for item_id, value in values.items()]
    (folder / "difficulty.csv").write_text("\n".join(["item_id,difficulty", *lines]) + "\n")
    return "difficulty.csv"


@pytest.fixture
def difficulty(tmp_path: Path) -> dict[str, float]:
    """The first half of tinyworld's families is easy, the second hard."""
    split = lay_out(composed(f"paths.data={tmp_path}")).split
    ids = sorted(item.item_id for item in (*split.seen, *split.held_out))
    return {item_id: float(index >= len(ids) // 2) for index, item_id in enumerate(ids)}


def test_halves_are_balanced_for_the_table(tmp_path: Path, difficulty: dict[str, float]) -> None:
    name = table(tmp_path, difficulty)
    for seed in range(5):
        split = lay_out(composed(f"paths.data={tmp_path}", f"seed={seed}", f"benchmark.difficulty={name}")).split
        assert fmean(difficulty[item.item_id] for item in split.seen) == 0.5
        assert split.difficulty == difficulty


def test_items_beyond_max_items_may_stand_in_the_table(tmp_path: Path, difficulty: dict[str, float]) -> None:
    name = table(tmp_path, difficulty)
    arm = lay_out(composed(f"paths.data={tmp_path}", f"benchmark.difficulty={name}", "benchmark.max_items=12"))
    assert len(arm.split.difficulty) == 12


def test_a_table_of_another_benchmark_is_refused_before_anything_runs(
    tmp_path: Path, difficulty: dict[str, float]
) -> None:
    name = table(tmp_path, {**difficulty, "mbpp/1": 0.5})
    with pytest.raises(DataError, match=r"difficulty\.csv, line 18: item_id 'mbpp/1' is no item of this benchmark"):
        lay_out(composed(f"paths.data={tmp_path}", f"benchmark.difficulty={name}"))
