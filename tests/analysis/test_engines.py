"""Cells that were evaluated differently are told apart before they are compared."""

from __future__ import annotations

import json
from pathlib import Path

from softcontam.analysis.engines import engine_differences
from softcontam.analysis.pairing import Pair
from softcontam.store import Cell

ENVIRONMENT = {
    "versions": {"torch": "2.13.0", "pandas": "3"}, "engine": "HFLM", "dtype": "float32", "eval_batch_size": 8,
    "chat_template_sha256": "ab", "device": "cpu", "sandbox": ["bubblewrap"], "threads": 1,
}  # fmt: skip


class Loaded:
    def __init__(self, folder: Path, **changes: object) -> None:
        folder.mkdir()
        (folder / "environment.json").write_text(json.dumps({**ENVIRONMENT, **changes}))
        self.cell = Cell(folder.name, folder)


def pair(folder: Path, name: str, **changes: object) -> Pair:
    return Pair(Loaded(folder / f"{name}-arm", **changes), Loaded(folder / f"{name}-clean"))  # type: ignore[arg-type]


def test_pairs_that_differ_in_what_bears_on_a_score_are_named_and_counted(tmp_path: Path) -> None:
    pairs = [
        pair(tmp_path, "a", dtype="bfloat16"),
        pair(tmp_path, "b", dtype="bfloat16", sandbox=["landlock"]),
        pair(tmp_path, "c", versions={"torch": "2.12", "pandas": "2"}),
        pair(tmp_path, "d", threads=4),
    ]
    assert engine_differences(pairs) == [
        "dtype: bfloat16 in the arm, float32 in the clean cell (2 pairs)",
        "sandbox: landlock in the arm, bubblewrap in the clean cell (1 pair)",
        "version of torch: 2.12 in the arm, 2.13.0 in the clean cell (1 pair)",
    ]


def test_cells_without_a_record_are_not_compared(tmp_path: Path) -> None:
    one = pair(tmp_path, "a", dtype="bfloat16")
    (one.clean.cell.folder / "environment.json").unlink()
    assert engine_differences([one]) == []
