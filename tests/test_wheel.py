"""A wheel, installed into another environment, runs a cell from another folder with the configs that it carries."""

from __future__ import annotations

import os
import subprocess
import sys
import sysconfig
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[1]


def run(*command: str | Path, cwd: Path) -> str:
    environment = {key: value for key, value in os.environ.items() if key not in ("PYTHONPATH", "VIRTUAL_ENV")}
    done = subprocess.run(
        [str(part) for part in command], cwd=cwd, env=environment, capture_output=True, text=True, timeout=300
    )
    assert done.returncode == 0, done.stdout[-2000:] + done.stderr[-2000:]
    return done.stdout


@pytest.fixture(scope="module")
def other_python(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """An environment with the wheel in it; its dependencies are those of this one, made visible by a path file."""
    folder = tmp_path_factory.mktemp("wheel")
    build = [sys.executable, "-m", "pip", "--disable-pip-version-check", "wheel", "--quiet"]
    run(*build, "--no-deps", "--no-build-isolation", "-w", folder, ROOT, cwd=folder)
    run(sys.executable, "-m", "venv", folder / "env", cwd=folder)
    python = folder / "env" / "bin" / "python"
    site = Path(run(python, "-c", "import sysconfig; print(sysconfig.get_path('purelib'))", cwd=folder).strip())
    (site / "dependencies.pth").write_text(sysconfig.get_path("purelib") + "\n")
    (wheel,) = folder.glob("softcontam-*.whl")
    run(python, "-m", "pip", "--disable-pip-version-check", "install", "--quiet", "--no-deps", wheel, cwd=folder)
    return python


def test_the_wheel_runs_a_cell_from_another_folder(other_python: Path, tmp_path: Path) -> None:
    where = run(other_python, "-c", "import softcontam; print(softcontam.__file__)", cwd=tmp_path)
    assert str(other_python.parents[1]) in where
    small = [
        "train.epochs=1",
        "mixture.n_rows=64",
        "benchmark.params.n_families=8",
        "eval.related=[]",
        "eval.general=[]",
        "cluster.workers=0",
    ]
    printed = run(other_python, "-m", "softcontam.run", "condition=exact", "mixture.rate=0.25", *small, cwd=tmp_path)
    assert "1 to run" in printed
    (status,) = tmp_path.glob("runs/*/status.json")
    assert '"done"' in status.read_text()
