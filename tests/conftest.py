"""Fixtures that several test modules share."""

from __future__ import annotations

import os
import sys
from pathlib import Path

import pytest
from tiny_cells import composed

from softcontam.inputs import input_hashes
from softcontam.store import Cell, Store

os.environ.setdefault("OMP_NUM_THREADS", "1")  # before torch is loaded: threads that wait for each other are slow


def pytest_configure() -> None:
    """Keep absl (which lm-eval's metrics bring) from closing pytest's own stream when logging is set up anew.

    Its handler closes its stream unless that is the standard error of the moment, which a captured one is not for long.
    """
    try:
        from absl import logging as absl_logging
    except ImportError:
        return
    absl_logging.get_absl_handler().python_handler.stream = sys.__stderr__


@pytest.fixture(scope="session")
def data_dir() -> Path:
    """The folder of local data: ``SOFTCONTAM_DATA``, or ``shared/data`` beside the checkout; skips where absent."""
    default = Path(__file__).parents[2] / "shared" / "data"
    folder = Path(os.environ.get("SOFTCONTAM_DATA", default))
    if not (folder / "mbpp").is_dir():
        pytest.skip(f"no local benchmark data in {folder}; set SOFTCONTAM_DATA to the folder that holds mbpp/")
    return folder


@pytest.fixture(scope="session")
def tiny_arms(tmp_path_factory: pytest.TempPathFactory) -> dict[str, Cell]:
    """Done cells of a tiny sweep by condition, run in this process: read them, don't change them."""
    from softcontam.cell import run_cell

    store = Store(tmp_path_factory.mktemp("tiny_arms") / "runs")
    cells = {}
    for condition in ("clean", "exact", "semd_synthetic"):
        config = composed(f"condition={condition}", f"paths.runs={store.runs}")
        cells[condition] = store.freeze(config, input_hashes(config))
        assert run_cell(cells[condition])
    return cells
