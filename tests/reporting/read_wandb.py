"""Reads the files of an offline run with wandb's own reader (``wandb leet inspect``)."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from pathlib import Path
from typing import Any


def records(path: Path, kind: str) -> list[dict[str, Any]]:
    """The bodies of a run file's records of one type, history as the logged values."""
    lines = [json.loads(line) for line in _inspect(path, "--json").splitlines()]
    bodies = [line[kind] for line in lines if line["type"] == kind]
    return [body.get("item", {}) for body in bodies] if kind == "history" else bodies


def summary(path: Path) -> dict[str, Any]:
    """State, exit code, config and summary of a run file."""
    found: dict[str, Any] = json.loads(_inspect(path, "--summary", "--json"))
    return found


def _inspect(path: Path, *flags: str) -> str:
    command = [sys.executable, "-m", "wandb", "leet", "inspect", *flags, str(path)]
    environment = {**os.environ, "WANDB_ERROR_REPORTING": "false"}
    return subprocess.run(command, capture_output=True, text=True, check=True, timeout=60, env=environment).stdout
