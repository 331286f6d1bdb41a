"""One cell, from its frozen config to its outcomes: build, train, evaluate, store."""

from __future__ import annotations

import contextlib
import json
import logging
import shutil
import time
from collections.abc import Iterator
from dataclasses import asdict, dataclass
from functools import lru_cache
from pathlib import Path
from typing import Any

import pandas as pd
from peft import PeftModel, set_peft_model_state_dict
from safetensors.torch import load_file

from softcontam.arms import Arm, lay_out
from softcontam.assemble import Assembled, assemble
from softcontam.config import Config, ModelConfig
from softcontam.environment import environment
from softcontam.evaluation import asked_items, evaluate
from softcontam.mixture import Mixture, family_table
from softcontam.models import BaseModel, load_base
from softcontam.reporting.tracking import Tracker, tracked
from softcontam.store import Cell, told_when_full, write_atomically, write_parquet, write_text
from softcontam.training import TrainingResult, adapted, train

log = logging.getLogger(__name__)


def run_cell(cell: Cell) -> bool:
    """Run a frozen cell to its end under its lock; returns whether there was anything to do.

    Raises:
        CellBusyError: another process is running it.
        Exception: whatever stopped it, after status and traceback were written to ``status.json``.
    """
    with cell.attempt(wait=False) as needed, _logged_to(cell.folder / "log.txt"):
        if needed:
            config = cell.config
            with tracked(config, cell) as tracker:
                experiment = prepare(config, cell.folder / "mixture")
                write_atomically(cell.folder / "manifest.parquet", experiment.assembled.write_manifest)
                families = family_table(experiment.arm.split, experiment.arm.item_sets)
                write_parquet(cell.folder / "families.parquet", families)
                write_parquet(cell.folder / "items.parquet", asked_items(experiment.arm.item_sets))
                with adapted(experiment.base, config.train, config.seeds.training or 0) as model:
                    training = _train(cell, experiment, model, config, tracker)
                    shutil.rmtree(cell.folder / "mixture", ignore_errors=True)
                    begun = time.monotonic()
                    outcomes = evaluate(
                        experiment.base,
                        model,
                        experiment.arm.item_sets,
                        experiment.copies,
                        config.eval,
                        config.seeds.sampling or 0,
                        cell.id,
                        config.sandbox,
                    )
                metrics = _metrics(experiment, training, outcomes, time.monotonic() - begun)
                write_parquet(cell.folder / "outcomes.parquet", outcomes)
                write_text(
                    cell.folder / "environment.json",
                    json.dumps(environment(config, experiment.base, outcomes), indent=1),
                )
                write_text(cell.folder / "metrics.json", json.dumps(metrics, indent=1))
                tracker.finish(training.log, metrics, outcomes)
    return needed


@dataclass(frozen=True)
class Experiment:
    """All that a cell's training and evaluation need, checked."""

    base: BaseModel
    arm: Arm
    assembled: Assembled

    @property
    def mixture(self) -> Mixture:
        """The rows to train on."""
        return self.assembled.mixture

    @property
    def copies(self) -> dict[str, int]:
        """Inserted rows by item id; none in the clean arm."""
        return self.mixture.copies


def prepare(config: Config, folder: Path) -> Experiment:
    """Lay the arm out, load the base model, and build the mixture in ``folder``."""
    arm = lay_out(config)
    base = _base(json.dumps(asdict(config.model)))
    shutil.rmtree(folder, ignore_errors=True)
    with told_when_full(folder):
        return Experiment(base, arm, assemble(config, arm, base.chat, folder))


@lru_cache(maxsize=1)
def _base(settings: str) -> BaseModel:
    """The base model, loaded once by each worker process and shared by its cells."""
    return load_base(ModelConfig(**json.loads(settings)))


def _train(cell: Cell, experiment: Experiment, model: PeftModel, config: Config, tracker: Tracker) -> TrainingResult:
    """Train, or take up the adapter that an earlier attempt finished."""
    adapter, record = cell.folder / "adapter", cell.folder / "train_log.jsonl"
    if adapter.is_dir() and record.is_file():
        set_peft_model_state_dict(model, load_file(adapter / "adapter_model.safetensors"))
        lines = [json.loads(line) for line in record.read_text().splitlines()]
        return TrainingResult(lines, int(lines[-1]["step"]), float(lines[-1].get("train_runtime", 0.0)))
    checkpoints = cell.folder / "checkpoints"
    in_order = config.mixture.placement != "uniform"
    rows = experiment.mixture.dataset()
    training = train(
        experiment.base,
        model,
        rows,
        config.train,
        config.seeds.training or 0,
        checkpoints,
        in_order,
        inserted=experiment.mixture.inserted,
        tell=tracker.record,
    )
    write_text(record, "".join(json.dumps(line) + "\n" for line in training.log))
    write_atomically(adapter, lambda staged: model.save_pretrained(staged, save_embedding_layers=False))
    shutil.rmtree(checkpoints, ignore_errors=True)
    return training


def _metrics(
    experiment: Experiment, training: TrainingResult, outcomes: pd.DataFrame, eval_seconds: float
) -> dict[str, Any]:
    """Summary figures; what the report checks for equality between arms is among them."""
    roles = {}
    for (benchmark, role), rows in outcomes.groupby(["benchmark", "role"]):
        graded = rows["gold_logprob"] / rows["gold_tokens"]
        roles[f"{benchmark}/{role}"] = {
            "accuracy": None if rows["correct"].isna().all() else float(rows["correct"].mean()),
            "partial": None if rows["partial"].isna().all() else float(rows["partial"].mean()),
            "verdicts": {str(name): int(count) for name, count in rows["verdict"].value_counts().items()},
            "parse_rate": None if rows["parse_ok"].isna().all() else float(rows["parse_ok"].mean()),
            "finished": None if rows["finished"].isna().all() else float(rows["finished"].mean()),
            "gold_logprob_per_token": float(graded.mean()),
            "items": int(rows["item_id"].nunique()),
        }
    return {
        "roles": roles,
        "chance": {f"{one.benchmark.name}/{one.role}": one.chance for one in experiment.arm.item_sets},
        **experiment.assembled.metrics(experiment.arm),
        "steps": training.steps,
        "train_seconds": round(training.seconds, 2),
        "eval_seconds": round(eval_seconds, 2),
    }


@contextlib.contextmanager
def _logged_to(path: Path) -> Iterator[None]:
    """Append what is logged while a cell runs to its own file."""
    path.parent.mkdir(parents=True, exist_ok=True)
    handler = logging.FileHandler(path)
    handler.setFormatter(logging.Formatter("%(asctime)s %(levelname)s %(name)s: %(message)s"))
    root = logging.getLogger()
    root.addHandler(handler)
    try:
        yield
    finally:
        root.removeHandler(handler)
        handler.close()
