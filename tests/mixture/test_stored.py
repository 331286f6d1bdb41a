"""A mixture on disk: what is read back is what was written."""

from __future__ import annotations

from array import array
from pathlib import Path

import numpy as np
import pyarrow.parquet as pq
import pytest

from softcontam.chat import IGNORED, EncodedRow
from softcontam.mixture import Mixture, MixtureRow, stored
from softcontam.mixture.matching import Tokens
from softcontam.mixture.stored import RowWriter

ROWS = [
    MixtureRow(
        n, "clean" if n % 3 else "exact", None, None if n % 3 else f"item/{n}", f"row/{n}", "made up",
        f"What is {n}? \N{SNOWMAN}", "\N{PILE OF POO}" * n, EncodedRow(array("i", range(n, 3 * n + 2)), n % 2),
    )
    for n in range(23)
]  # fmt: skip
NONE = Tokens(0, 0)


def mixture(folder: Path, *sizes: int) -> Mixture:
    """The rows, written so many at a time."""
    with RowWriter(folder) as writer:
        first = 0
        for size in sizes:
            writer.write(ROWS[first : first + size])
            first += size
    return Mixture(folder, first, {}, "", (), 0, 0, 0, NONE, NONE, NONE)


def test_rows_come_back_as_they_were(tmp_path: Path) -> None:
    assert list(mixture(tmp_path, 23).rows) == ROWS


def test_the_training_file_has_the_ids_and_loss_from_the_border_on(tmp_path: Path) -> None:
    found = mixture(tmp_path, 23).dataset()
    for row, record in zip(ROWS, found, strict=True):
        assert record["input_ids"] == list(row.encoded.ids)
        assert record["labels"] == [IGNORED] * row.encoded.first + list(row.encoded.ids[row.encoded.first :])
    assert found.cache_files, "it is mapped, not read into memory"
    assert found[[5, 2]]["input_ids"] == [list(ROWS[5].encoded.ids), list(ROWS[2].encoded.ids)]


@pytest.mark.parametrize("sizes", [(23,), (1,) * 23, (7, 7, 9), (4, 0, 19)])
def test_bytes_do_not_depend_on_how_many_rows_come_together(
    sizes: tuple[int, ...], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(stored, "BLOCK", 7)
    files = []
    for name, these in (("one", (23,)), ("other", sizes)):
        (tmp_path / name).mkdir()
        mixture(tmp_path / name, *these)
        files.append({path.name: path.read_bytes() for path in (tmp_path / name).iterdir()})
    assert files[0] == files[1]


def test_an_empty_mixture_can_be_read(tmp_path: Path) -> None:
    empty = mixture(tmp_path)
    assert (list(empty.rows), len(empty.dataset()), len(empty.manifest)) == ([], 0, 0)


def test_a_manifest_takes_further_columns_by_slot(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(stored, "BLOCK", 5)
    found = np.full(23, None, dtype=object)
    found[3], found[19] = True, False
    cosines = np.where(np.arange(23) % 2, np.nan, np.arange(23) / 23)
    built = mixture(tmp_path, 23)
    built.write_manifest(tmp_path / "m.parquet", {"ngram_13": found, "similarity": cosines})
    table = pq.read_table(tmp_path / "m.parquet")
    assert table.column_names == [*stored.MANIFEST, "ngram_13", "similarity"]
    assert table["slot"].to_pylist() == list(range(23))
    assert table["ngram_13"].to_pylist() == list(found)
    assert table["similarity"].to_pylist() == [None if np.isnan(value) else value for value in cosines]
    assert table.select(list(stored.MANIFEST)).to_pandas().equals(built.manifest)


def test_a_write_that_fails_leaves_the_files_closed_and_what_was_not_written_out(tmp_path: Path) -> None:
    def fail() -> None:
        with RowWriter(tmp_path) as writer:
            writer.write(ROWS)
            raise ValueError("stop")

    with pytest.raises(ValueError, match="stop"):
        fail()
    assert pq.read_metadata(tmp_path / stored.TEXTS).num_rows == 0
