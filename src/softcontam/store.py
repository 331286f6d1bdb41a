"""The cell store: identity, status, atomic writes, locks.

A cell lives in ``runs/<id>/``, where the id is a hash of all that affects its result. Files appear whole or not at
all. A sweep is a list of cell ids in ``runs/_sweeps/<experiment>.json``.
"""

from __future__ import annotations

import contextlib
import errno
import hashlib
import json
import os
import shutil
import socket
import tempfile
import traceback
from collections.abc import Callable, Iterator, Sequence
from dataclasses import asdict, dataclass
from datetime import UTC, datetime
from functools import cache
from pathlib import Path
from typing import Any

import pandas as pd
import yaml
from filelock import FileLock, Timeout
from omegaconf import DictConfig, OmegaConf
from omegaconf.errors import OmegaConfBaseException
from safetensors import SafetensorError

from softcontam.config import Config
from softcontam.errors import CellBusyError, StoreError

FORMAT = 1
"""Part of every identity: raised when a change to softcontam changes the results of a cell."""

PENDING, RUNNING, DONE, FAILED = "pending", "running", "done", "failed"

_NOT_IDENTITY = ("experiment", "seed", "tracker", "cluster", "analysis", "paths")


@cache
def _schema() -> DictConfig:
    schema: DictConfig = OmegaConf.structured(Config)
    return schema


_YAML = getattr(yaml, "CSafeLoader", yaml.SafeLoader)


def identity(config: Config, inputs: dict[str, str] | None = None) -> str:
    """The id of a cell: 16 hex digits over the settings that affect its result and the sha256 of its input files.

    The experiment's name and analysis, the tracker, paths, the number of workers and notes don't enter; neither does
    the seed that the purpose seeds were derived from, nor which sandbox runs the tests (its limits do), nor what is
    counted from the outcomes afterwards (pass@k), nor what differences between arms are admitted.
    """
    settings = asdict(config)
    for key in ("backend", "allow_unsafe", "workers"):
        del settings["sandbox"][key]
    del settings["eval"]["pass_at"]
    for key in ("tolerance", "differs"):
        del settings["mixture"][key]
    del settings["condition"]["differs"]
    for key in _NOT_IDENTITY:
        del settings[key]
    del settings["train"]["checkpoint_every_s"]
    del settings["model"]["note"]
    text = json.dumps({"format": FORMAT, "settings": settings, "inputs": inputs or {}}, sort_keys=True)
    return hashlib.sha256(text.encode()).hexdigest()[:16]


def file_sha256(path: Path) -> str:
    """The sha256 of a file's bytes, in hex."""
    with path.open("rb") as stream:
        return hashlib.file_digest(stream, "sha256").hexdigest()


@contextlib.contextmanager
def told_when_full(path: Path) -> Iterator[None]:
    """Turn what different libraries raise on a full disk into one sentence.

    Raises:
        StoreError: the disk is full.
    """
    try:
        yield
    except (OSError, SafetensorError) as error:
        if _is_full_disk(error):
            raise StoreError(
                f"no space left while writing {path}. Nothing of it was kept. "
                "Free some space or point paths.runs at another disk, then launch again: done cells stay done."
            ) from error
        raise


def write_atomically(path: Path, write: Callable[[Path], object]) -> None:
    """Let ``write`` fill a temporary file or folder beside ``path``, then put it in place in one step.

    Raises:
        StoreError: the disk is full; nothing of the file is left behind.
    """
    aside: Path | None = None
    try:
        with told_when_full(path):
            path.parent.mkdir(parents=True, exist_ok=True)
            aside = Path(tempfile.mkdtemp(prefix=f".{path.name}.", dir=path.parent))
            staged = aside / path.name
            write(staged)
            for file in [staged] if staged.is_file() else [p for p in staged.rglob("*") if p.is_file()]:
                with file.open("rb") as stream:
                    os.fsync(stream.fileno())
            if staged.is_dir() and path.exists():
                shutil.rmtree(path)
            staged.replace(path)
            folder = os.open(path.parent, os.O_RDONLY)
            try:
                os.fsync(folder)
            finally:
                os.close(folder)
    finally:
        if aside is not None:
            shutil.rmtree(aside, ignore_errors=True)


def _is_full_disk(error: Exception) -> bool:
    """Whether an error says that there is no space; safetensors gives the system's number in its text only."""
    full = (errno.ENOSPC, errno.EDQUOT, errno.EFBIG)
    if isinstance(error, OSError):
        return error.errno in full
    return any(f"os error {number}" in str(error) for number in full)


def write_text(path: Path, text: str) -> None:
    """Write ``text`` whole or not at all."""
    write_atomically(path, lambda staged: staged.write_text(text, encoding="utf-8"))


def write_bytes(path: Path, content: bytes) -> None:
    """Write ``content`` whole or not at all."""
    write_atomically(path, lambda staged: staged.write_bytes(content))


def write_parquet(path: Path, frame: pd.DataFrame) -> None:
    """Write a table whole or not at all."""
    write_atomically(path, lambda staged: frame.to_parquet(staged, index=False))


def read_parquet(path: Path) -> pd.DataFrame:
    """Read a table of the store.

    Raises:
        StoreError: it is missing, truncated or not parquet; names the file and the remedy.
    """
    try:
        return pd.read_parquet(path)
    except FileNotFoundError:
        raise StoreError(f"{path} is missing. Delete the folder {path.parent} and launch again.") from None
    except (OSError, ValueError) as error:
        raise StoreError(
            f"{path} is damaged ({error}). Delete the folder {path.parent} and launch again: only that cell is rerun."
        ) from error


def read_record(path: Path, *keys: str) -> dict[str, Any]:
    """Read a JSON object of the store that has at least ``keys``.

    Raises:
        FileNotFoundError: it is missing.
        StoreError: it is damaged; names the file and the remedy.
    """
    try:
        record = json.loads(path.read_text(encoding="utf-8"))
        damage = "" if isinstance(record, dict) and all(key in record for key in keys) else f"no object with {keys}"
    except FileNotFoundError:
        raise
    except (OSError, ValueError) as error:
        damage = str(error)
    if damage:
        raise StoreError(f"{path} is damaged ({damage}). Delete the folder {path.parent} and launch again.")
    return dict(record)


def now() -> str:
    """The present time, UTC, ISO 8601 to the second."""
    return datetime.now(UTC).isoformat(timespec="seconds")


@dataclass(frozen=True)
class Cell:
    """One cell: its id and its folder."""

    id: str
    folder: Path

    @property
    def config(self) -> Config:
        """The resolved config that was frozen before the cell was started.

        Raises:
            StoreError: the file is missing or damaged.
        """
        path = self.folder / "config.yaml"
        try:
            written = yaml.load(path.read_text(encoding="utf-8"), Loader=_YAML)
            config = OmegaConf.to_object(OmegaConf.merge(_schema(), written))
        except (OSError, yaml.YAMLError, ValueError, OmegaConfBaseException) as error:
            raise StoreError(f"{path} cannot be read ({error}). Delete the folder and launch again.") from error
        assert isinstance(config, Config)
        return config

    @property
    def status(self) -> dict[str, Any]:
        """What ``status.json`` says; a cell without one is pending."""
        try:
            return read_record(self.folder / "status.json", "state")
        except FileNotFoundError:
            return {"state": PENDING, "attempts": 0}

    @property
    def done(self) -> bool:
        """Whether the cell ran to its end."""
        return bool(self.status["state"] == DONE)

    @property
    def outcomes(self) -> pd.DataFrame:
        """One row per benchmark item and sample."""
        return read_parquet(self.folder / "outcomes.parquet")

    @property
    def manifest(self) -> pd.DataFrame:
        """One row per slot of the mixture, with the provenance of what is in it."""
        return read_parquet(self.folder / "manifest.parquet")

    @property
    def metrics(self) -> dict[str, Any]:
        """Summary figures of the cell."""
        path = self.folder / "metrics.json"
        try:
            return read_record(path)
        except FileNotFoundError:
            raise StoreError(f"{path} is missing. Delete the folder {self.folder} and launch again.") from None

    def set_status(self, state: str, **details: Any) -> None:
        """Replace the status; ``attempts`` is carried on."""
        status = {"state": state, "attempts": self.status.get("attempts", 0), "time": now(), **details}
        write_text(self.folder / "status.json", json.dumps(status, indent=1) + "\n")

    @contextlib.contextmanager
    def attempt(self, wait: bool = True) -> Iterator[bool]:
        """Run the cell's work under its lock: yields whether there is anything to do.

        The body's success is recorded as done, an exception with its traceback as failed (and raised again). The
        lock is the operating system's, so it goes with the process that held it, however that ends.

        Raises:
            CellBusyError: another process holds the cell and ``wait`` is false.
        """
        self.folder.mkdir(parents=True, exist_ok=True)
        lock = FileLock(self.folder / ".lock")
        try:
            lock.acquire(timeout=-1 if wait else 0)
        except Timeout:
            raise CellBusyError(f"cell {self.id} is being run by another process") from None
        try:
            if self.done:
                yield False
                return
            for debris in self.folder.glob(".*/"):  # of a write that was killed
                shutil.rmtree(debris, ignore_errors=True)
            attempts = self.status.get("attempts", 0) + 1
            self.set_status(RUNNING, attempts=attempts, host=socket.gethostname(), pid=os.getpid())
            try:
                yield True
            except BaseException as error:
                self.set_status(FAILED, error=f"{type(error).__name__}: {error}", traceback=traceback.format_exc())
                raise
            self.set_status(DONE)
        finally:
            lock.release()


class Store:
    """The folder ``paths.runs``."""

    def __init__(self, runs: str | Path) -> None:
        self.runs = Path(runs).expanduser().resolve()

    def cell(self, cell_id: str) -> Cell:
        """The cell with this id, whether or not it exists yet."""
        return Cell(cell_id, self.runs / cell_id)

    def freeze(self, config: Config, inputs: dict[str, str] | None = None) -> Cell:
        """Write a cell's resolved config and the sha256 of its inputs, before the cell is started.

        A cell that is not done takes the paths and tracker of its latest launch; a done one keeps what it was run with.
        """
        cell = self.cell(identity(config, inputs))
        path = cell.folder / "config.yaml"
        text = yaml.safe_dump(asdict(config), sort_keys=False, allow_unicode=True)
        written = path.read_text(encoding="utf-8", errors="replace") if path.exists() else None
        if written is None or (written != text and not cell.done):
            write_text(cell.folder / "inputs.json", json.dumps(inputs or {}, indent=1, sort_keys=True) + "\n")
            write_text(path, text)
        return cell

    def write_sweep(self, experiment: str, cells: list[Cell], details: dict[str, Any]) -> None:
        """Record which cells an experiment's latest launch consists of, and how it was launched."""
        record = {"experiment": experiment, "time": now(), **details, "cells": [cell.id for cell in cells]}
        write_text(self.runs / "_sweeps" / f"{experiment}.json", json.dumps(record, indent=1) + "\n")

    def history(self, experiment: str, cells: Sequence[Cell], analysis: dict[str, Any] | None) -> dict[str, Any]:
        """What a sweep's record keeps of all its launches, this one included.

        ``ever`` holds every cell that was ever part of the experiment, ``added`` when cells came to it and how many
        were done then, ``declared`` what was stated of its analysis, when, and how many of all its cells were done.

        Args:
            cells: those of this launch.
            analysis: margin and contrasts as this launch states them; None keeps what was stated.
        """
        path = self.runs / "_sweeps" / f"{experiment}.json"
        earlier = read_record(path, "cells") if path.exists() else {}
        before = list(earlier.get("ever") or earlier.get("cells") or [])
        ever = list(dict.fromkeys([*before, *(cell.id for cell in cells)]))
        done = sum(self.cell(cell_id).done for cell_id in ever)
        first = [{"time": earlier.get("time"), "cells": len(before), "done": 0}] if before else []
        added, declared = list(earlier.get("added") or first), list(earlier.get("declared") or [])
        if len(ever) > len(before):
            added.append({"time": now(), "cells": len(ever) - len(before), "done": done})
        if analysis is not None and (not declared or declared[-1].get("analysis") != analysis):
            declared.append({"time": now(), "done": done, "analysis": analysis})
        return {"ever": ever, "added": added, "declared": declared}

    def joined(self, experiment: str, cells: Sequence[Cell]) -> list[Cell]:
        """The cells of an experiment's record, if there is one, and these: a single cell does not replace a sweep."""
        path = self.runs / "_sweeps" / f"{experiment}.json"
        earlier = read_record(path, "cells")["cells"] if path.exists() else []
        return [self.cell(cell_id) for cell_id in dict.fromkeys([*earlier, *(cell.id for cell in cells)])]

    def sweep(self, experiment: str) -> dict[str, Any]:
        """The record of an experiment's latest launch.

        Raises:
            StoreError: there is none; lists those that there are.
        """
        path = self.runs / "_sweeps" / f"{experiment}.json"
        try:
            return read_record(path, "cells")
        except FileNotFoundError:
            known = ", ".join(sorted(p.stem for p in path.parent.glob("*.json"))) or "none"
            raise StoreError(f"no experiment {experiment!r} in {self.runs} (there: {known}). Run it first.") from None
