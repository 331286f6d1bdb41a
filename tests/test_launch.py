"""Launching under attack: workers that die, cells that fail, Ctrl-C, kill -9, two launches at once."""

from __future__ import annotations

import contextlib
import os
import signal
import subprocess
import threading
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any, ClassVar

import pytest
from fake_sweep import config
from test_cell import frozen, same
from tiny_cells import TINY, cli_environment, command, run_cli

from softcontam import launch as launch_module
from softcontam.config import BankConfig, ClusterConfig, Config
from softcontam.environment import count_cpus
from softcontam.errors import StoreError
from softcontam.launch import BUSY, DONE, Finished, count_gpus, launch, work
from softcontam.store import FAILED, RUNNING, Cell, Store

DIED = "the worker process died (killed, or out of memory)"


class FakeWorker:
    """A worker that follows a script: for each cell the results (or errors) of its runs, in turn; then it is done."""

    script: ClassVar[dict[str, list[str | BaseException]]] = {}
    ran: ClassVar[list[str]] = []
    stopped: ClassVar[int] = 0

    def __init__(self, number: int, gpus: int, threads: int) -> None:
        self.number = number

    def run(self, cell: Cell) -> str:
        FakeWorker.ran.append(cell.id)
        left = self.script.get(cell.id, [])
        result = left.pop(0) if left else DONE
        if isinstance(result, BaseException):
            raise result
        if result == DONE:
            with cell.attempt():
                pass
        return result

    def stop(self, at_once: bool) -> None:
        FakeWorker.stopped += 1


@pytest.fixture
def cells(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> list[Cell]:
    """Five cells, and workers that run them without a process."""
    monkeypatch.setattr(launch_module, "_Worker", FakeWorker)
    monkeypatch.setattr(launch_module, "BUSY_WAIT_S", 0.05)
    FakeWorker.script, FakeWorker.ran, FakeWorker.stopped = {}, [], 0
    return [Store(tmp_path).freeze(config(seed=seed)) for seed in range(5)]


def within(seconds: float, call: Callable[[], Any]) -> Any:
    """The result of ``call``, which must come in time: a launch that hangs fails its test instead."""
    results: list[Any] = []

    def target() -> None:
        try:
            results.append(call())
        except BaseException as error:
            results.append(error)

    thread = threading.Thread(target=target, daemon=True)
    thread.start()
    thread.join(seconds)
    assert not thread.is_alive(), "the launch hangs"
    if isinstance(results[0], BaseException):
        raise results[0]
    return results[0]


def launched(cells: list[Cell], workers: int = 2, **settings: Any) -> list[Finished]:
    finished: list[Finished] = within(3, lambda: launch(cells, ClusterConfig(workers=workers, **settings)))
    return finished


@pytest.mark.parametrize("workers", [1, 2, 9])
class TestScheduling:
    def test_every_cell_is_run_once(self, cells: list[Cell], workers: int) -> None:
        finished = launched(cells, workers)
        assert sorted(FakeWorker.ran) == sorted(cell.id for cell in cells)
        assert [record.error for record in finished] == [None] * 5
        assert FakeWorker.stopped == min(workers, 5)
        assert all(cell.done for cell in cells)

    def test_a_second_launch_runs_nothing(self, cells: list[Cell], workers: int) -> None:
        launched(cells, workers)
        FakeWorker.ran.clear()
        assert launched(cells, workers) == []
        assert FakeWorker.ran == []

    def test_a_failing_cell_is_reported_and_not_tried_again_and_the_others_go_on(
        self, cells: list[Cell], workers: int
    ) -> None:
        FakeWorker.script = {cells[1].id: ["it is broken"]}
        errors = {record.cell.id: record.error for record in launched(cells, workers)}
        assert errors == {cell.id: "it is broken" if cell is cells[1] else None for cell in cells}
        assert FakeWorker.ran.count(cells[1].id) == 1

    def test_a_worker_that_dies_costs_one_attempt(self, cells: list[Cell], workers: int) -> None:
        FakeWorker.script = {cells[0].id: [DIED]}
        assert [record.error for record in launched(cells, workers)] == [None] * 5
        assert FakeWorker.ran.count(cells[0].id) == 2

    def test_a_cell_that_kills_its_workers_is_given_up(self, cells: list[Cell], workers: int) -> None:
        FakeWorker.script = {cells[0].id: [DIED] * 9}
        errors = {record.cell.id: record.error for record in launched(cells, workers, attempts=3)}
        assert errors.pop(cells[0].id) == DIED
        assert set(errors.values()) == {None}
        assert FakeWorker.ran.count(cells[0].id) == 3
        assert cells[0].status["state"] == FAILED
        assert "died" in cells[0].status["error"]

    def test_a_cell_that_another_launch_runs_is_waited_for(self, cells: list[Cell], workers: int) -> None:
        FakeWorker.script = {cells[0].id: [BUSY, BUSY]}
        assert [record.error for record in launched(cells, workers)] == [None] * 5

    def test_what_a_worker_raises_unforeseen_is_that_cells_failure(self, cells: list[Cell], workers: int) -> None:
        FakeWorker.script = {cells[0].id: [OSError("cannot fork")]}
        errors = {record.cell.id: record.error for record in launched(cells, workers)}
        assert "cannot fork" in str(errors.pop(cells[0].id))
        assert list(errors.values()) == [None] * 4

    def test_a_status_that_cannot_be_written_does_not_stop_the_others(
        self, cells: list[Cell], workers: int, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        FakeWorker.script = {cells[0].id: [DIED] * 9}
        original = Cell.set_status

        def full(self: Cell, state: str, **details: Any) -> None:
            if self.id == cells[0].id:
                raise StoreError("no space left")
            original(self, state, **details)

        monkeypatch.setattr(Cell, "set_status", full)
        errors = {record.cell.id: record.error for record in launched(cells, workers)}
        assert errors.pop(cells[0].id)
        assert list(errors.values()) == [None] * 4

    def test_a_progress_line_that_fails_loses_no_cell(self, cells: list[Cell], workers: int) -> None:
        told: list[str] = []

        def tell(record: Finished, _: int) -> None:
            told.append(record.cell.id)
            if len(told) == 1:
                raise StoreError("config.yaml cannot be read")

        cluster = ClusterConfig(workers=workers)
        with contextlib.suppress(StoreError):
            within(3, lambda: launch(cells, cluster, tell))
        assert all(cell.done for cell in cells)

    def test_progress_is_told_once_per_cell(self, cells: list[Cell], workers: int) -> None:
        told: list[tuple[str, int]] = []
        within(3, lambda: launch(cells, ClusterConfig(workers=workers), lambda r, n: told.append((r.cell.id, n))))
        assert sorted(cell_id for cell_id, _ in told) == sorted(cell.id for cell in cells)
        assert {n for _, n in told} == {min(workers, 5)}


def test_a_worker_that_dies_after_its_cell_was_done_loses_nothing(
    cells: list[Cell], monkeypatch: pytest.MonkeyPatch
) -> None:
    def run(self: FakeWorker, cell: Cell) -> str:
        FakeWorker.ran.append(cell.id)
        with cell.attempt():
            pass
        return DIED if FakeWorker.ran.count(cell.id) == 1 else DONE

    monkeypatch.setattr(FakeWorker, "run", run)
    launched(cells[:1], 1)
    assert cells[0].done
    assert cells[0].status["attempts"] == 1, "a done cell is never run again"


class TestWork:
    def test_says_busy_for_a_cell_that_is_being_run(self, tmp_path: Path) -> None:
        cell = Store(tmp_path).freeze(config())
        with cell.attempt():
            assert work(str(cell.folder)) == BUSY

    def test_tells_an_error_in_a_line_and_keeps_its_traceback(
        self, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        from softcontam import cell as cell_module

        def broken(_: Config, folder: Path) -> None:
            raise ZeroDivisionError("a telling message")

        monkeypatch.setattr(cell_module, "prepare", broken)
        cell = Store(tmp_path).freeze(config())
        told = work(str(cell.folder))
        assert "ZeroDivisionError: a telling message" in told
        assert "status.json" in told
        assert "broken" in cell.status["traceback"]

    def test_a_damaged_config_is_told_and_recorded(self, tmp_path: Path) -> None:
        cell = Store(tmp_path).freeze(config())
        (cell.folder / "config.yaml").write_text("experiment: [")
        assert "config.yaml cannot be read" in work(str(cell.folder))
        assert cell.status["state"] == FAILED


class TestDevices:
    @pytest.mark.parametrize(("visible", "count"), [("", 0), ("0", 1), ("0,1,3", 3), ("-1", 0), (" , ", 0)])
    def test_visible_gpus(self, visible: str, count: int, monkeypatch: pytest.MonkeyPatch) -> None:
        monkeypatch.setenv("CUDA_VISIBLE_DEVICES", visible)
        assert count_gpus() == count

    def test_cpus_are_those_that_this_process_may_use(self) -> None:
        assert 1 <= count_cpus() <= (os.cpu_count() or 1)


# ---------------------------------------------------------------------------- real processes


LONG = ("train.epochs=40", "train.batch_size=8", "train.micro_batch_size=8")
"""320 steps."""


def wait_for(condition: Callable[[], object], seconds: float = 120) -> None:
    deadline = time.monotonic() + seconds
    while not condition():
        assert time.monotonic() < deadline, "waited in vain"
        time.sleep(0.02)


def alive(pid: int) -> bool:
    """Whether there is a process of this id."""
    try:
        os.kill(pid, 0)
    except ProcessLookupError:
        return False
    return True


def checkpoint(cell: Cell) -> bool:
    """Whether a cell is in the middle of training, with a checkpoint that is whole."""
    return bool(list(cell.folder.glob("checkpoints/checkpoint-*/trainer_state.json")))


@pytest.mark.slow
def test_a_real_worker_killed_in_training_costs_one_attempt_and_no_byte(tmp_path: Path) -> None:
    unbroken = frozen(tmp_path / "unbroken", "condition=exact", *LONG)
    cells = [
        frozen(tmp_path / "runs", "condition=exact", *LONG, "train.checkpoint_every_s=0.2"),
        frozen(tmp_path / "runs", "condition=clean"),
    ]
    results: list[Finished] = []
    thread = threading.Thread(target=lambda: results.extend(launch(cells, ClusterConfig(workers=1))), daemon=True)
    thread.start()
    wait_for(lambda: checkpoint(cells[0]))
    pid = cells[0].status["pid"]
    assert pid != os.getpid()
    time.sleep(0.3)
    os.kill(pid, signal.SIGKILL)
    wait_for(lambda: not thread.is_alive(), 240)
    assert [record.error for record in results] == [None, None]
    assert cells[0].status["attempts"] == 2
    assert cells[1].status["attempts"] == 1
    launch([unbroken], ClusterConfig(workers=1))
    same(cells[0], unbroken)


@pytest.mark.slow
def test_a_real_cell_that_fails_among_others(tmp_path: Path) -> None:
    (tmp_path / "bank.parquet").write_bytes(b"not parquet")

    def change(one: Config) -> None:
        one.paths.data = str(tmp_path)
        one.benchmark.banks["topical"] = BankConfig("parquet", "bank.parquet")

    runs = tmp_path / "runs"
    cells = [frozen(runs, f"condition={kind}", change=change) for kind in ("topical", "clean", "exact")]
    errors = {record.cell.id: record.error for record in launch(cells, ClusterConfig(workers=1))}
    assert "bank.parquet" in str(errors.pop(cells[0].id))
    assert list(errors.values()) == [None, None]
    assert "read_bank" in cells[0].status["traceback"]


SWEEP = (
    "-m", *TINY, "condition=exact,clean", *LONG, "train.checkpoint_every_s=0.2", "cluster.workers=1",
    "experiment=attacked", "paths.runs=runs", "paths.reports=reports",
)  # fmt: skip


def running(folder: Path) -> list[Cell]:
    store = Store(folder / "runs")
    found = [store.cell(path.parent.name) for path in store.runs.glob("*/status.json")]
    return [cell for cell in found if cell.status["state"] == RUNNING]


def started(folder: Path) -> tuple[subprocess.Popen[bytes], Cell]:
    """A sweep in a process group of its own, and the cell that it is training."""
    process = subprocess.Popen(
        command(*SWEEP), cwd=folder, env=cli_environment(), stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL,
        start_new_session=True,
        preexec_fn=lambda: signal.signal(signal.SIGINT, signal.SIG_DFL),  # a background shell ignores it
    )  # fmt: skip
    wait_for(lambda: any(checkpoint(cell) for cell in running(folder)))
    return process, running(folder)[0]


@pytest.mark.slow
def test_ctrl_c_ends_with_130_and_the_next_launch_completes(tmp_path: Path) -> None:
    process, cell = started(tmp_path)
    worker = int(cell.status["pid"])
    os.killpg(process.pid, signal.SIGINT)
    assert process.wait(30) == 130
    wait_for(lambda: not alive(worker), 30)
    assert not cell.done
    ended = run_cli(*SWEEP, folder=tmp_path)
    assert ended.code == 0, ended.text
    assert cell.done


@pytest.mark.slow
def test_kill_9_of_the_launch_leaves_a_store_that_the_next_launch_completes(tmp_path: Path) -> None:
    process, cell = started(tmp_path)
    worker = int(cell.status["pid"])
    process.send_signal(signal.SIGKILL)
    process.wait(30)
    ended = run_cli(*SWEEP, folder=tmp_path)
    assert ended.code == 0, ended.text
    assert "2 cells" in ended.text
    assert all(Store(tmp_path / "runs").cell(path.parent.name).done for path in tmp_path.glob("runs/*/status.json"))
    if alive(worker):
        os.kill(worker, signal.SIGKILL)


@pytest.mark.slow
def test_workers_of_a_killed_launch_go_away(tmp_path: Path) -> None:
    process, cell = started(tmp_path)
    worker = int(cell.status["pid"])
    process.send_signal(signal.SIGKILL)
    process.wait(30)
    wait_for(lambda: cell.done or not alive(worker))
    time.sleep(5)
    gone = not alive(worker)
    if not gone:
        os.kill(worker, signal.SIGKILL)
    assert gone, "the worker of a killed launch stays for ever"


@pytest.mark.slow
def test_two_launches_at_once_share_the_work(tmp_path: Path) -> None:
    overrides = ("-m", *TINY, "condition=clean,exact", "seed=0,1", "cluster.workers=1", "paths.runs=runs")
    processes = [
        subprocess.Popen(
            command(*overrides, f"paths.reports=reports{number}", f"experiment=e{number}"),
            cwd=tmp_path,
            env=cli_environment(),
            stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT,
            text=True,
        )
        for number in range(2)
    ]
    printed = [process.communicate(timeout=300)[0] for process in processes]
    assert [process.returncode for process in processes] == [0, 0], printed
    statuses = [Store(tmp_path / "runs").cell(path.parent.name).status for path in tmp_path.glob("runs/*/status.json")]
    assert [(status["state"], status["attempts"]) for status in statuses] == [("done", 1)] * 4
