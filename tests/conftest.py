"""Fixtures that several test modules share."""

from __future__ import annotations

import os
from pathlib import Path

import pytest


@pytest.fixture(scope="session")
def data_dir() -> Path:
    """The folder of local data: ``SOFTCONTAM_DATA``, or ``shared/data`` beside the checkout; skips where absent."""
    default = Path(__file__).parents[2] / "shared" / "data"
    folder = Path(os.environ.get("SOFTCONTAM_DATA", default))
    if not (folder / "mbpp").is_dir():
        pytest.skip(f"no local benchmark data in {folder}; set SOFTCONTAM_DATA to the folder that holds mbpp/")
    return folder
