"""Runs frozen cells on this machine: persistent worker processes, one for each GPU or CPU.

Launching knows cells by their folders only. What a cell is stands in its ``config.yaml`` before it is started, so
another way of spreading cells (a job array, say) runs the very same folders with :func:`work`.
"""

from __future__ import annotations

import logging
import os
import queue
import shutil
import signal
import threading
import time
import warnings
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from pathlib import Path

from loky import ProcessPoolExecutor
from loky.process_executor import BrokenProcessPool

from softcontam.config import ClusterConfig
from softcontam.environment import count_cpus, git_revision
from softcontam.errors import CellBusyError, SoftcontamError
from softcontam.store import FAILED, Cell

log = logging.getLogger(__name__)

DONE, BUSY = "done", "busy"
DIED = "the worker process died (killed, or out of memory)"

NO_SPACE_BYTES = 2**20
"""Less free space than this explains most errors."""

BUSY_WAIT_S = 2.0
"""How long to wait before looking again at a cell that another launch is running."""


@dataclass(frozen=True)
class Finished:
    """One cell that came to an end in this launch: ``error`` is None where it is done."""

    cell: Cell
    seconds: float
    error: str | None


def work(folder: str) -> str:
    """Run the cell in ``folder`` in this process: ``done``, ``busy`` (another process has it), or what went wrong."""
    from softcontam.cell import run_cell

    cell = Cell(Path(folder).name, Path(folder))
    try:
        run_cell(cell)
    except CellBusyError:
        return BUSY
    except SoftcontamError as error:
        return str(error)
    except Exception as error:
        full = " The disk is full." if shutil.disk_usage(cell.folder).free < NO_SPACE_BYTES else ""
        return f"{type(error).__name__}: {error} (traceback in {cell.folder / 'status.json'}){full}"
    return DONE


def count_gpus() -> int:
    """Number of GPUs, asked of the driver's device files so that this process does not load CUDA."""
    visible = os.environ.get("CUDA_VISIBLE_DEVICES")
    if visible is not None:
        return len([part for part in visible.split(",") if part.strip() not in ("", "-1")])
    return len(list(Path("/dev").glob("nvidia[0-9]*")))


def _prepare_worker(threads: int, parent: int) -> None:
    """Leave Ctrl-C to the parent, end when it is gone, and prepare as any process that runs cells."""
    signal.signal(signal.SIGINT, signal.SIG_IGN)

    def end_with_parent() -> None:
        while os.getppid() == parent:
            time.sleep(1.0)
        os._exit(1)

    threading.Thread(target=end_with_parent, daemon=True).start()
    prepare_process(threads)


def prepare_process(threads: int) -> None:
    """Note the revision, keep to the given number of threads, and print nothing that libraries think worth it."""
    warnings.filterwarnings("ignore", category=FutureWarning)
    import torch
    from transformers.utils.logging import disable_progress_bar

    git_revision()
    torch.set_num_threads(threads)
    disable_progress_bar()  # type: ignore[no-untyped-call]


class _Worker:
    """One slot: a process of its own, replaced when it dies, so that a death costs one attempt at one cell."""

    def __init__(self, number: int, gpus: int, threads: int) -> None:
        self.environment = {"OMP_NUM_THREADS": str(threads), "TOKENIZERS_PARALLELISM": "false"}
        if gpus:
            visible = os.environ.get("CUDA_VISIBLE_DEVICES", ",".join(map(str, range(gpus)))).split(",")
            self.environment["CUDA_VISIBLE_DEVICES"] = visible[number % gpus]
        self.threads = threads
        self.executor = self._start()

    def _start(self) -> ProcessPoolExecutor:
        return ProcessPoolExecutor(
            max_workers=1, env=self.environment, initializer=_prepare_worker, initargs=(self.threads, os.getpid())
        )

    def run(self, cell: Cell) -> str:
        """Run one cell; a process that died is replaced and said to have died."""
        try:
            result: str = self.executor.submit(work, str(cell.folder)).result()
        except BrokenProcessPool:
            self.stop(at_once=True)
            self.executor = self._start()
            return DIED
        return result

    def stop(self, at_once: bool) -> None:
        """End the process: when it has nothing left to do, or at once."""
        self.executor.shutdown(wait=not at_once, kill_workers=at_once)


def launch(
    cells: Sequence[Cell], cluster: ClusterConfig, on_finish: Callable[[Finished, int], None] | None = None
) -> list[Finished]:
    """Run the cells that are not done; returns one record for each of these, in the order in which they ended.

    A cell whose worker dies is tried ``cluster.attempts`` times, one that raises once: it would raise again. One
    cell's failure does not stop the others. ``on_finish`` gets each record and the number of workers.

    Raises:
        KeyboardInterrupt: after the workers were ended; cells that were running start again at the next launch.
    """
    todo = [cell for cell in cells if not cell.done]
    gpus = count_gpus()
    wanted = cluster.workers if cluster.workers is not None else gpus or count_cpus()
    finished: list[Finished] = []
    lock = threading.Lock()

    def note(cell: Cell, begun: float, result: str, workers: int) -> None:
        with lock:
            finished.append(Finished(cell, time.monotonic() - begun, None if result == DONE else result))
            try:
                if on_finish:
                    on_finish(finished[-1], workers)
            except Exception:  # a line of progress is not worth a sweep
                log.exception("progress of cell %s could not be told", cell.id)

    if todo and wanted == 0:
        prepare_process(cluster.threads)
        for cell in todo:
            begun = time.monotonic()
            while (result := work(str(cell.folder))) == BUSY:
                time.sleep(BUSY_WAIT_S)
            note(cell, begun, result, 1)
    elif todo:
        workers = [_Worker(number, gpus, cluster.threads) for number in range(min(wanted, len(todo)))]
        _serve_all(todo, workers, cluster.attempts, note)
    return finished


def _serve_all(
    todo: Sequence[Cell], workers: Sequence[_Worker], attempts: int, note: Callable[[Cell, float, str, int], None]
) -> None:
    """Let each worker take cells from one queue, in a thread of its own, until all are noted as finished."""
    waiting: queue.Queue[tuple[Cell, int]] = queue.Queue()
    for cell in todo:
        waiting.put((cell, 1))
    left = threading.Semaphore(0)
    stop = threading.Event()

    def serve(worker: _Worker) -> None:
        while not stop.is_set():
            try:
                cell, attempt = waiting.get(timeout=0.1)
            except queue.Empty:
                continue
            begun = time.monotonic()
            try:
                result = worker.run(cell)
                if result == DIED and cell.done:
                    result = DONE
                elif result == DIED and not stop.is_set():
                    cell.set_status(FAILED, error=result)
            except Exception as error:  # a full disk, say: the cell's attempt is lost, the sweep goes on
                result = f"{type(error).__name__}: {error}"
            if stop.is_set():
                return
            if result == BUSY:
                waiting.put((cell, attempt))
                stop.wait(BUSY_WAIT_S)
            elif result == DIED and attempt < attempts:
                waiting.put((cell, attempt + 1))
            else:
                note(cell, begun, result, len(workers))
                left.release()

    threads = [threading.Thread(target=serve, args=(worker,), daemon=True) for worker in workers]
    for thread in threads:
        thread.start()
    at_once = True
    try:
        for _ in todo:
            while not left.acquire(timeout=0.2):
                continue
        at_once = False
    finally:
        stop.set()
        for worker in workers:
            worker.stop(at_once)
