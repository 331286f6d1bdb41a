"""What a result was computed with: versions, revision, device, engine."""

from __future__ import annotations

import hashlib
import os
import platform
import subprocess
from functools import cache
from importlib.metadata import PackageNotFoundError, version
from pathlib import Path
from typing import TYPE_CHECKING, Any

from softcontam.config import Config

if TYPE_CHECKING:
    import pandas as pd

    from softcontam.models import BaseModel

PACKAGES = ("softcontam", "torch", "transformers", "peft", "trl", "datasets", "accelerate", "lm_eval", "numpy")


@cache
def git_revision() -> str:
    """The revision of the checkout that softcontam runs from, with ``+`` when it is modified; empty outside one.

    Asked once per process, at its start: that is the code that was loaded, whatever is committed while it runs.
    """
    folder = Path(__file__).parent
    try:
        revision = subprocess.run(
            ["git", "describe", "--always", "--dirty=+", "--abbrev=12", "--exclude=*"],
            cwd=folder, capture_output=True, text=True, timeout=10, check=True,
        )  # fmt: skip
    except (OSError, subprocess.SubprocessError):
        return ""
    return revision.stdout.strip()


def count_cpus() -> int:
    """CPUs that this process may use."""
    return len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count() or 1


def versions() -> dict[str, str]:
    """Versions of Python and of the packages that bear on a result."""
    found = {"python": platform.python_version()}
    for name in PACKAGES:
        try:
            found[name] = version(name)
        except PackageNotFoundError:
            continue
    return found


def environment(config: Config, base: BaseModel, outcomes: pd.DataFrame) -> dict[str, Any]:
    """The record that is stored with a cell: versions, device, engine, and the sandbox that ran its answers."""
    import torch

    return {
        "versions": versions(),
        "revision": git_revision(),
        "device": torch.cuda.get_device_name() if base.model.device.type == "cuda" else platform.processor() or "cpu",
        "threads": torch.get_num_threads(),
        "engine": "lm_eval.models.huggingface.HFLM, adapter not merged",
        "dtype": str(base.model.dtype).removeprefix("torch."),
        "eval_batch_size": config.eval.batch_size,
        "sandbox": sorted(set(outcomes["sandbox"].dropna())),
        "chat_template_sha256": hashlib.sha256(str(base.tokenizer.chat_template).encode()).hexdigest(),
        "model": {"name": config.model.name, "parameters": base.parameters, "note": config.model.note},
    }
