"""Tiny but real cells: their settings, the command line in this process and in one of its own, made-up benchmarks."""

from __future__ import annotations

import os
import subprocess
import sys
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

import pytest
from hydra import compose, initialize_config_dir
from hydra.core.global_hydra import GlobalHydra

from softcontam.benchmarks.item import Benchmark, Item, Score, Source
from softcontam.config import Config, conf_dir, resolve

TINY = (
    "mixture.n_rows=64",
    "mixture.rate=0.1",
    "train.epochs=1",
    "benchmark.params.n_families=8",
    "eval.related.0.params.n_families=3",
    "eval.general.0.params.n_items=4",
)
"""Overrides that make a cell of the default config take about two seconds."""


def composed(*overrides: str, tiny: bool = True) -> Config:
    """The resolved config of one cell."""
    GlobalHydra.instance().clear()
    with initialize_config_dir(str(conf_dir()), version_base="1.3"):
        return resolve(compose("config", overrides=[*(TINY if tiny else ()), *overrides]))


@dataclass(frozen=True)
class Ran:
    """What a command line ended with."""

    code: int
    out: str
    err: str

    @property
    def text(self) -> str:
        """Everything printed, whitespace normalized: messages wrap at the terminal's width."""
        return " ".join((self.out + " " + self.err).split())


def run_here(
    overrides: Sequence[str], folder: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> Ran:
    """``python -m softcontam.run`` in this process, with ``folder`` as the current one."""
    from softcontam import run

    GlobalHydra.instance().clear()
    monkeypatch.chdir(folder)
    for name in ("RUNS", "REPORTS", "DATA"):
        monkeypatch.delenv(f"SOFTCONTAM_{name}", raising=False)
    monkeypatch.setenv("COLUMNS", "200")
    monkeypatch.setattr(sys, "argv", ["run.py", *overrides])
    capsys.readouterr()
    try:
        run.main()
        code: object = 0
    except SystemExit as ended:
        code = ended.code
    finally:
        GlobalHydra.instance().clear()
    printed = capsys.readouterr()
    return Ran(code if isinstance(code, int) else (0 if code is None else 1), printed.out, printed.err)


def cli_environment(**more: str) -> dict[str, str]:
    """The environment of a command line of its own: nothing of this machine's settings in it."""
    kept = {key: value for key, value in os.environ.items() if not key.startswith(("SOFTCONTAM_", "WANDB_"))}
    return kept | {"COLUMNS": "200", "HF_HUB_OFFLINE": "1", "OMP_NUM_THREADS": "1"} | more


def command(*overrides: str) -> list[str]:
    """The words of a command line."""
    return [sys.executable, "-m", "softcontam.run", *overrides]


def run_cli(*overrides: str, folder: Path, timeout: float = 300, **environment: str) -> Ran:
    """``python -m softcontam.run`` as a user calls it."""
    done = subprocess.run(
        command(*overrides),
        cwd=folder, env=cli_environment(**environment), capture_output=True, text=True, timeout=timeout, check=False,
    )  # fmt: skip
    return Ran(done.returncode, done.stdout, done.stderr)


def made_up_benchmark(n_families: int = 10, members: int = 2, name: str = "riddles") -> Benchmark:
    """A benchmark whose items share nothing with tinyworld but its words, in families of ``members`` twins."""
    items = tuple(
        Item(
            item_id=f"{name}/{family}{'abcdef'[member]}",
            benchmark=name,
            family=f"{name}/{family}",
            prompt=f"Here are keys, maps and lamps. What is {family} plus {member}?",
            target=f"Answer: {family + member}",
        )
        for family in range(n_families)
        for member in range(members)
    )
    return Benchmark(
        name,
        items,
        0.1,
        "answer",
        Source("made up", "1", "CC0"),
        lambda item, text: text.strip(),
        lambda item, text: Score(True),
    )
