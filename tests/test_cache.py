"""What is kept between runs: shared by processes, and done without where it fails."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import pytest

from softcontam.cache import Kept


def test_values_outlive_the_process_that_kept_them(tmp_path: Path) -> None:
    path = tmp_path / "deep" / "kept.sqlite"
    code = f"from pathlib import Path; from softcontam.cache import Kept; Kept(Path({str(path)!r})).put({{b'a': b'1'}})"
    subprocess.run([sys.executable, "-c", code], check=True)
    Kept(path).put({b"a": b"2", b"b": b"3"})
    assert Kept(path).get([b"a", b"b", b"c"]) == {b"a": b"1", b"b": b"3"}


def test_more_keys_than_one_question_may_hold(tmp_path: Path) -> None:
    kept = Kept(tmp_path / "kept.sqlite")
    values = {f"{i}".encode(): b"x" for i in range(1700)}
    kept.put(values)
    assert kept.get(list(values)) == values


def test_a_damaged_file_is_done_without(tmp_path: Path, caplog: pytest.LogCaptureFixture) -> None:
    (tmp_path / "kept.sqlite").write_bytes(b"not a database at all, but long enough to be looked at" * 30)
    kept = Kept(tmp_path / "kept.sqlite")
    assert kept.get([b"a"]) == {}
    kept.put({b"a": b"1"})
    assert "going on without it" in caplog.text


def test_a_folder_that_cannot_be_made_is_done_without(tmp_path: Path) -> None:
    (tmp_path / "file").write_text("")
    kept = Kept(tmp_path / "file" / "kept.sqlite")
    kept.put({b"a": b"1"})
    assert kept.get([b"a"]) == {}
