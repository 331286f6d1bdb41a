"""The cell store under attack: identity, torn writes, full disks, damaged files, races and kills."""

from __future__ import annotations

import errno
import json
import multiprocessing
import os
import resource
import signal
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from copy import deepcopy
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import pytest
import torch
from fake_sweep import config
from safetensors.torch import save_file

from softcontam import store as store_module
from softcontam.config import Config, check
from softcontam.errors import SoftcontamError, StoreError
from softcontam.store import DONE, FAILED, RUNNING, Cell, Store, identity, read_parquet, write_atomically, write_text
from softcontam.store import write_parquet as write_table


def changed(base: Config, key: str, value: Any) -> Config:
    copy = deepcopy(base)
    *path, last = key.split(".")
    owner: Any = copy
    for name in path:
        owner = getattr(owner, name)
    assert getattr(owner, last) != value, "the change must be one"
    setattr(owner, last, value)
    return copy


class TestIdentity:
    @pytest.mark.parametrize(
        ("key", "value"),
        [
            ("experiment", "another"),
            ("tracker.name", "wandb"),
            ("tracker.project", "elsewhere"),
            ("cluster.workers", 7),
            ("cluster.threads", 3),
            ("cluster.attempts", 9),
            ("paths.runs", "/somewhere/else"),
            ("paths.reports", "/somewhere/else"),
            ("paths.data", "/somewhere/else"),
            ("train.checkpoint_every_s", 0.0),
            ("sandbox.backend", "landlock"),
            ("sandbox.allow_unsafe", True),
            ("sandbox.workers", 3),
        ],
    )
    def test_ignores_where_and_how_a_cell_is_run(self, key: str, value: Any) -> None:
        base = config("exact", rate=0.1)
        assert identity(changed(base, key, value)) == identity(base)

    @pytest.mark.parametrize(
        ("key", "value"),
        [
            ("benchmark.name", "others"),
            ("benchmark.module", "others"),
            ("benchmark.path", "file.parquet"),
            ("benchmark.response_style", "cot"),
            ("benchmark.seen_share", 0.4),
            ("benchmark.max_items", 5),
            ("benchmark.params", {"draw": "fresh"}),
            ("condition.kind", "topical"),
            ("condition.level", "paraphrase"),
            ("mixture.rate", 0.2),
            ("mixture.copies", 3),
            ("mixture.n_rows", 101),
            ("mixture.pool.files", ["a.jsonl"]),
            ("model.revision", "abc"),
            ("model.dtype", "bfloat16"),
            ("model.eos_token", "<end>"),
            ("model.template_kwargs", {"enable_thinking": False}),
            ("train.lr", 2e-4),
            ("train.epochs", 2),
            ("train.batch_size", 8),
            ("train.micro_batch_size", 2),
            ("train.max_length", 65),
            ("train.kl_penalty", 0.1),
            ("train.schedule", "linear"),
            ("train.lora.r", 4),
            ("train.lora.target_modules", ["q_proj"]),
            ("eval.samples", 2),
            ("benchmark.difficulty", "difficulty.csv"),
            ("sandbox.cpu_s", 9.0),
            ("sandbox.memory_mib", 99),
            ("eval.temperature", 0.9),
            ("eval.top_p", 0.5),
            ("eval.top_k", 5),
            ("eval.batch_size", 8),
            ("eval.max_new_tokens", 3),
            ("seeds.split", 99),
            ("seeds.mixture", 99),
            ("seeds.training", 99),
            ("seeds.sampling", 99),
        ],
    )
    def test_changes_with_every_setting_that_matters(self, key: str, value: Any) -> None:
        base = config("exact", rate=0.1)
        assert identity(changed(base, key, value)) != identity(base)

    def test_changes_with_the_content_of_an_input_file(self) -> None:
        base = config("exact", rate=0.1)
        ids = {identity(base, inputs) for inputs in (None, {"pool:a": "1"}, {"pool:a": "2"}, {"pool:b": "1"})}
        assert len(ids) == 4
        assert identity(base, {}) == identity(base, None)
        assert identity(base, {"a": "1", "b": "2"}) == identity(base, {"b": "2", "a": "1"})

    def test_changes_with_the_format(self, monkeypatch: pytest.MonkeyPatch) -> None:
        before = identity(config())
        monkeypatch.setattr(store_module, "FORMAT", store_module.FORMAT + 1)
        assert identity(config()) != before

    def test_clean_is_one_cell_at_every_dose_and_level(self) -> None:
        cells = []
        for rate, copies, level in ((0.01, None, None), (0.2, 5, "paraphrase"), (0.9, 1, "x")):
            one = config("clean", rate=rate, copies=copies, level=level)
            check(one)
            cells.append(identity(one))
        assert len(set(cells)) == 1

    def test_the_seed_counts_only_through_the_seeds_that_are_used(self) -> None:
        base = config()
        assert identity(changed(base, "seed", 12345)) == identity(base)
        assert identity(config(seed=1)) != identity(config(seed=0))

    def test_a_frozen_config_read_back_has_the_id_of_its_folder(self, tmp_path: Path) -> None:
        one = config("exact", rate=0.1, copies=2)
        one.benchmark.params = {"nested": {"list": [1, 2.5, "x", None, True]}}
        cell = Store(tmp_path).freeze(one, {"a": "b"})
        assert identity(cell.config, json.loads((cell.folder / "inputs.json").read_text())) == cell.id
        assert cell.folder.name == cell.id

    def test_a_note_for_the_report_does_not_make_it_another_cell(self) -> None:
        base = config()
        assert identity(changed(base, "model.note", "reworded")) == identity(base)


class TestFreeze:
    def test_writes_the_config_before_anything_runs_and_leaves_the_cell_pending(self, tmp_path: Path) -> None:
        cell = Store(tmp_path).freeze(config())
        assert cell.status == {"state": "pending", "attempts": 0}
        assert sorted(path.name for path in cell.folder.iterdir()) == ["config.yaml", "inputs.json"]

    def test_a_done_cell_keeps_the_config_it_was_run_with(self, tmp_path: Path) -> None:
        cell = Store(tmp_path).freeze(config())
        with cell.attempt():
            pass
        before = (cell.folder / "config.yaml").read_bytes()
        Store(tmp_path).freeze(changed(config(), "paths.data", "/moved"))
        assert (cell.folder / "config.yaml").read_bytes() == before

    @pytest.mark.parametrize("key", ["paths.data", "tracker.name", "experiment"])
    def test_a_cell_that_is_not_done_takes_the_place_and_tracker_of_the_latest_launch(
        self, tmp_path: Path, key: str
    ) -> None:
        Store(tmp_path).freeze(config())
        cell = Store(tmp_path).freeze(changed(config(), key, "new"))
        *_, last = key.split(".")
        now = cell.config.experiment if key == "experiment" else getattr(getattr(cell.config, key.split(".")[0]), last)
        assert now == "new"


def tree(folder: Path) -> list[str]:
    return sorted(str(path.relative_to(folder)) for path in folder.rglob("*"))


@contextmanager
def files_limited_to(size: int) -> Iterator[None]:
    """Let writes beyond ``size`` bytes fail in the operating system, as they do on a full disk."""
    soft, hard = resource.getrlimit(resource.RLIMIT_FSIZE)
    resource.setrlimit(resource.RLIMIT_FSIZE, (size, hard))
    try:
        yield
    finally:
        resource.setrlimit(resource.RLIMIT_FSIZE, (soft, hard))


TABLE = pd.DataFrame({"a": np.random.default_rng(0).random(20_000)})


class TestAtomicWrites:
    def test_an_exception_leaves_the_old_file_and_no_debris(self, tmp_path: Path) -> None:
        write_text(tmp_path / "file", "old")

        def half(staged: Path) -> None:
            staged.write_text("ne")
            raise RuntimeError("power cut")

        with pytest.raises(RuntimeError, match="power cut"):
            write_atomically(tmp_path / "file", half)
        assert tree(tmp_path) == ["file"]
        assert (tmp_path / "file").read_text() == "old"

    def test_an_exception_leaves_the_old_folder_whole(self, tmp_path: Path) -> None:
        def fill(text: str, fail: bool) -> Callable[[Path], None]:
            def write(staged: Path) -> None:
                staged.mkdir()
                (staged / "part").write_text(text)
                if fail:
                    raise KeyboardInterrupt
                (staged / "rest").write_text(text)

            return write

        write_atomically(tmp_path / "adapter", fill("old", False))
        with pytest.raises(KeyboardInterrupt):
            write_atomically(tmp_path / "adapter", fill("new", True))
        assert tree(tmp_path) == ["adapter", "adapter/part", "adapter/rest"]
        assert (tmp_path / "adapter/part").read_text() == "old"
        write_atomically(tmp_path / "adapter", fill("new", False))
        assert tree(tmp_path) == ["adapter", "adapter/part", "adapter/rest"]
        assert (tmp_path / "adapter/rest").read_text() == "new"

    @pytest.mark.parametrize("write", [lambda p: write_table(p, TABLE), lambda p: write_text(p, "x" * 100_000)])
    def test_a_write_that_finds_no_space_says_so_and_keeps_the_old_file(
        self, tmp_path: Path, write: Callable[[Path], None]
    ) -> None:
        write_text(tmp_path / "file", "old")
        with files_limited_to(4096), pytest.raises(StoreError, match="no space left") as caught:
            write(tmp_path / "file")
        assert str(tmp_path / "file") in str(caught.value)
        assert "Free some space" in str(caught.value)
        assert tree(tmp_path) == ["file"]
        assert (tmp_path / "file").read_text() == "old"

    def test_a_full_disk_is_told_of_weights_too(self, tmp_path: Path) -> None:
        with files_limited_to(4096), pytest.raises(StoreError, match="no space left"):
            write_atomically(tmp_path / "weights", lambda staged: save_file({"a": torch.zeros(20_000)}, staged))
        assert tree(tmp_path) == []

    def test_a_disk_too_full_for_the_temporary_folder_is_told_too(
        self, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        def full(*_: Any, **__: Any) -> str:
            raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC))

        monkeypatch.setattr(tempfile, "mkdtemp", full)
        with pytest.raises(StoreError, match="no space left"):
            write_text(tmp_path / "file", "x")

    def test_fsync_is_where_a_full_disk_may_show(self, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
        def full(_: int) -> None:
            raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC))

        write_text(tmp_path / "file", "old")
        monkeypatch.setattr(os, "fsync", full)
        with pytest.raises(StoreError, match="no space left"):
            write_text(tmp_path / "file", "new")
        assert (tmp_path / "file").read_text() == "old"
        assert tree(tmp_path) == ["file"]

    def test_another_error_of_the_system_is_not_called_a_full_disk(self, tmp_path: Path) -> None:
        def write(staged: Path) -> None:
            raise OSError(errno.EIO, "input/output error")

        with pytest.raises(OSError, match="input/output error"):
            write_atomically(tmp_path / "file", write)

    @pytest.mark.slow
    def test_on_a_real_disk_of_64_kb(self, tmp_path: Path) -> None:
        disk = tmp_path / "disk"
        disk.mkdir()
        mounted = subprocess.run(
            ["mount", "-t", "tmpfs", "-o", "size=64k", "tmpfs", str(disk)], capture_output=True, check=False
        )
        if mounted.returncode:
            pytest.skip("mounting a file system needs privileges")
        try:
            cell = Store(disk).freeze(config())
            with pytest.raises(StoreError, match="no space left"), cell.attempt():
                write_table(cell.folder / "outcomes.parquet", TABLE)
            assert cell.status["state"] == FAILED
            assert "no space left" in cell.status["error"]
            assert tree(cell.folder) == [".lock", "config.yaml", "inputs.json", "status.json"]
            with cell.attempt(wait=False) as needed:
                assert needed
                write_table(cell.folder / "outcomes.parquet", TABLE[:10])
            assert cell.done
            assert len(cell.outcomes) == 10
        finally:
            subprocess.run(["umount", str(disk)], check=True)


def is_store_error(read: Callable[[], object], *names: str) -> None:
    """``read`` must raise a StoreError that names every one of ``names`` and what to do."""
    with pytest.raises(StoreError) as caught:
        read()
    for name in (*names, "elete"):
        assert name in str(caught.value)


class TestDamagedFiles:
    def test_parquet_cut_zeroed_or_garbled_anywhere(self, tmp_path: Path) -> None:
        path = tmp_path / "cell" / "outcomes.parquet"
        write_table(path, TABLE[:500].assign(b="text"))
        whole = path.read_bytes()
        for length in (0, 1, 4, len(whole) // 2, len(whole) - 1):
            path.write_bytes(whole[:length])
            is_store_error(lambda: read_parquet(path), str(path), str(path.parent))
        path.write_bytes(bytes(len(whole)))
        is_store_error(lambda: read_parquet(path), str(path))
        path.write_text("not a table")
        is_store_error(lambda: read_parquet(path), str(path))

    def test_missing_parquet(self, tmp_path: Path) -> None:
        is_store_error(lambda: read_parquet(tmp_path / "c" / "manifest.parquet"), "manifest.parquet", "launch again")

    @pytest.mark.parametrize("content", [b"", b"{", b'{"state": "do', bytes(80)])
    def test_status(self, tmp_path: Path, content: bytes) -> None:
        cell = Store(tmp_path).freeze(config())
        (cell.folder / "status.json").write_bytes(content)
        is_store_error(lambda: cell.done, "status.json", cell.id)

    @pytest.mark.parametrize("content", [b"[]", b"null", b"{}", b"\xff\xfe\x80"])
    def test_status_of_another_shape(self, tmp_path: Path, content: bytes) -> None:
        cell = Store(tmp_path).freeze(config())
        (cell.folder / "status.json").write_bytes(content)
        is_store_error(lambda: cell.done, "status.json", cell.id)

    def test_config_cut_anywhere_is_never_taken_for_another_one(self, tmp_path: Path) -> None:
        cell = Store(tmp_path).freeze(config("exact", rate=0.1))
        path = cell.folder / "config.yaml"
        whole = path.read_text()
        assert cell.config == config("exact", rate=0.1)
        for length in [*range(0, len(whole) - len("data: data\n"), 29), len(whole) // 2]:
            path.write_text(whole[:length])
            is_store_error(lambda: cell.config, "config.yaml", cell.id)

    @pytest.mark.parametrize(
        "content", ["- a\n", "nonsense: 1\n", "experiment: [1, 2]\n", "\0\0\0", "a: b: c\n", "plain"]
    )
    def test_config_of_another_shape(self, tmp_path: Path, content: str) -> None:
        cell = Store(tmp_path).freeze(config())
        (cell.folder / "config.yaml").write_text(content)
        is_store_error(lambda: cell.config, "config.yaml", cell.id)

    @pytest.mark.parametrize("content", [b"", b"{", b"\xff\xfe"])
    def test_metrics(self, tmp_path: Path, content: bytes) -> None:
        cell = Store(tmp_path).freeze(config())
        (cell.folder / "metrics.json").write_bytes(content)
        is_store_error(lambda: cell.metrics, "metrics.json")

    def test_missing_metrics(self, tmp_path: Path) -> None:
        cell = Store(tmp_path).freeze(config())
        is_store_error(lambda: cell.metrics, "metrics.json")

    @pytest.mark.parametrize("content", ["", "{", "[]"])
    def test_sweep_record(self, tmp_path: Path, content: str) -> None:
        store = Store(tmp_path)
        store.write_sweep("mine", [], {})
        (tmp_path / "_sweeps" / "mine.json").write_text(content)
        with pytest.raises(StoreError, match=r"mine\.json"):
            store.sweep("mine")

    def test_an_unknown_experiment_lists_those_that_there_are(self, tmp_path: Path) -> None:
        store = Store(tmp_path)
        store.write_sweep("mine", [], {})
        with pytest.raises(StoreError, match=r"'other'.*there: mine.*Run it first"):
            store.sweep("other")


def _race(runs: str, cell_id: str, wait: bool, start: Any, results: Any) -> None:
    cell = Store(runs).cell(cell_id)
    start.wait()
    try:
        with cell.attempt(wait=wait) as needed:
            if needed:
                with (cell.folder / "ran").open("a") as ran:
                    ran.write(f"{os.getpid()}\n")
                time.sleep(1.0)
        results.put("ran" if needed else "nothing to do")
    except StoreError as error:
        results.put(str(error))


def _hang(runs: str, cell_id: str) -> None:
    with Store(runs).cell(cell_id).attempt():
        (Path(runs) / "inside").touch()
        time.sleep(600)


class TestAttempt:
    def test_success_is_done_and_never_rerun(self, tmp_path: Path) -> None:
        cell = Store(tmp_path).freeze(config())
        with cell.attempt() as needed:
            assert needed
            assert cell.status["state"] == RUNNING
            assert cell.status["pid"] == os.getpid()
        assert cell.status["state"] == DONE
        for _ in range(2):
            with cell.attempt(wait=False) as needed:
                assert not needed
        assert cell.status["attempts"] == 1

    def test_failure_keeps_its_traceback_and_is_retried(self, tmp_path: Path) -> None:
        cell = Store(tmp_path).freeze(config())

        def deep_inside() -> None:
            raise ZeroDivisionError("a telling message")

        with pytest.raises(ZeroDivisionError), cell.attempt():
            deep_inside()
        status = cell.status
        assert status["state"] == FAILED
        assert status["error"] == "ZeroDivisionError: a telling message"
        assert "deep_inside" in status["traceback"]
        with cell.attempt(wait=False) as needed:
            assert needed
        assert cell.status["attempts"] == 2
        assert "traceback" not in cell.status

    def test_ctrl_c_is_recorded_and_frees_the_cell(self, tmp_path: Path) -> None:
        cell = Store(tmp_path).freeze(config())
        with pytest.raises(KeyboardInterrupt), cell.attempt():
            raise KeyboardInterrupt
        assert cell.status["state"] == FAILED
        with cell.attempt(wait=False) as needed:
            assert needed

    def test_a_cell_that_is_being_run_is_refused_in_the_same_process_too(self, tmp_path: Path) -> None:
        cell = Store(tmp_path).freeze(config())
        with cell.attempt(), pytest.raises(StoreError, match="being run by another process"), cell.attempt(wait=False):
            pytest.fail("ran twice")
        assert cell.status["state"] == DONE

    @pytest.mark.parametrize("wait", [pytest.param(True, marks=pytest.mark.slow), False])
    def test_of_processes_that_race_for_a_cell_one_runs_it(self, tmp_path: Path, wait: bool) -> None:
        cell = Store(tmp_path).freeze(config())
        context = multiprocessing.get_context("spawn")
        start, results = context.Barrier(3), context.SimpleQueue()
        racers = [context.Process(target=_race, args=(str(tmp_path), cell.id, wait, start, results)) for _ in range(3)]
        for racer in racers:
            racer.start()
        ended = sorted(results.get() for _ in racers)
        for racer in racers:
            racer.join(60)
        assert len((cell.folder / "ran").read_text().splitlines()) == 1
        assert cell.status["state"] == DONE
        assert cell.status["attempts"] == 1
        others = "nothing to do" if wait else f"cell {cell.id} is being run by another process"
        assert ended == sorted(["ran", others, others])

    def test_kill_9_inside_leaves_the_cell_to_be_tried_again(self, tmp_path: Path) -> None:
        cell = Store(tmp_path).freeze(config())
        process = multiprocessing.get_context("spawn").Process(target=_hang, args=(str(tmp_path), cell.id))
        process.start()
        deadline = time.monotonic() + 60
        while not (tmp_path / "inside").exists():
            assert time.monotonic() < deadline
            time.sleep(0.02)
        with pytest.raises(StoreError, match="another process"), cell.attempt(wait=False):
            pytest.fail("two processes in one cell")
        assert process.pid is not None
        os.kill(process.pid, signal.SIGKILL)
        process.join(60)
        assert cell.status["state"] == RUNNING
        with cell.attempt(wait=False) as needed:
            assert needed
        assert cell.status["state"] == DONE
        assert cell.status["attempts"] == 2

    def test_a_kill_in_the_middle_of_a_write_leaves_the_old_file(self, tmp_path: Path) -> None:
        write_text(tmp_path / "status.json", "old")
        script = (
            "import os, sys, pathlib\n"
            "from softcontam.store import write_atomically\n"
            "def half(staged):\n"
            "    staged.write_text('half of it')\n"
            "    os.kill(os.getpid(), 9)\n"
            "write_atomically(pathlib.Path(sys.argv[1]), half)\n"
        )
        killed = subprocess.run([sys.executable, "-c", script, str(tmp_path / "status.json")], check=False)
        assert killed.returncode == -signal.SIGKILL
        assert (tmp_path / "status.json").read_text() == "old"
        write_text(tmp_path / "status.json", "new")
        assert (tmp_path / "status.json").read_text() == "new"

    def test_debris_of_killed_writes_is_cleared_by_the_next_attempt(self, tmp_path: Path) -> None:
        cell = Store(tmp_path).freeze(config())
        debris = cell.folder / ".adapter.abc123"
        debris.mkdir()
        (debris / "adapter").write_bytes(bytes(1000))
        with cell.attempt():
            pass
        assert not debris.exists()

    def test_errors_of_the_store_are_shown_without_a_traceback(self) -> None:
        assert issubclass(StoreError, SoftcontamError)

    def test_a_cell_object_is_its_folder(self, tmp_path: Path) -> None:
        assert Store(tmp_path).cell("abc") == Cell("abc", tmp_path.resolve() / "abc")
