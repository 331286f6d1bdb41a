"""What softcontam costs over a bare script, and what a sweep gains over one process per cell.

    python benchmarks/overhead.py cell  --pairs 5      the same cell by softcontam and by benchmarks/bare.py, in turn
    python benchmarks/overhead.py sweep --cells 12     a sweep on the worker pool, and its cells in one process each

Whole-process wall times, imports and model loading included on both sides. Prints every pair, then median ratios.
"""

from __future__ import annotations

import argparse
import json
import os
import shutil
import statistics
import subprocess
import sys
import tempfile
import time
from dataclasses import asdict
from pathlib import Path

from hydra import compose, initialize_config_dir
from omegaconf import OmegaConf

from softcontam.config import Config, conf_dir, resolve
from softcontam.inputs import model_folder

HERE = Path(__file__).parent
CELL = ["condition=exact", "mixture.rate=0.1"]


def configured(overrides: list[str]) -> Config:
    with initialize_config_dir(str(conf_dir()), version_base="1.3"):
        composed = compose("config", overrides=overrides)
        OmegaConf.resolve(composed)
        return resolve(composed)


def write_job(folder: Path, config: Config) -> Path:
    """The same rows in the same order, the same items and the same recipe, for the bare script."""
    from softcontam.cell import prepare

    experiment = prepare(config, folder / "mixture")
    items = folder / "items.jsonl"
    entries = [item for one in experiment.arm.item_sets for item in one.items]
    items.write_text("".join(json.dumps({"prompt": i.prompt, "target": i.target}) + "\n" for i in entries))
    rows = [{"prompt": row.prompt, "completion": row.completion} for row in experiment.mixture.rows]
    train = asdict(config.train)
    job = {
        "model": str(model_folder(config.model)),
        "rows": rows,
        "items": str(items),
        "out": str(folder / "bare"),
        "threads": config.cluster.threads,
        "max_new_tokens": config.eval.max_new_tokens,
        "eval_batch_size": config.eval.batch_size,
        "train": {
            **{key: train[key] for key in ("batch_size", "epochs", "lr", "schedule", "warmup_ratio", "max_length")},
            **{key: train["lora"][key] for key in ("r", "alpha", "target_modules")},
            "seed": config.seeds.training,
            "logging_steps": max(1, len(rows) * config.train.epochs // config.train.batch_size // 20),
        },
    }
    path = folder / "job.json"
    path.write_text(json.dumps(job))
    return path


def timed(command: list[str]) -> float:
    environment = {**os.environ, "OMP_NUM_THREADS": "1", "HF_HUB_OFFLINE": "1", "TOKENIZERS_PARALLELISM": "false"}
    begun = time.perf_counter()
    done = subprocess.run(command, stdout=subprocess.DEVNULL, stderr=subprocess.PIPE, text=True, env=environment)
    if done.returncode:
        raise SystemExit(f"{' '.join(command)} ended with {done.returncode}: {done.stderr[-2000:]}")
    return time.perf_counter() - begun


def softcontam(folder: Path, *overrides: str) -> list[str]:
    paths = [f"paths.runs={folder / 'runs'}", f"paths.reports={folder / 'reports'}"]
    return [sys.executable, "-m", "softcontam.run", *paths, *overrides]


def measure_cell(folder: Path, pairs: int) -> None:
    job = write_job(folder, configured(CELL))
    ratios = []
    for pair in range(pairs):
        shutil.rmtree(folder / "runs", ignore_errors=True)
        sides = {
            "softcontam": softcontam(folder, "cluster.workers=0", *CELL),
            "bare": [sys.executable, str(HERE / "bare.py"), str(job)],
        }
        order = list(sides) if pair % 2 == 0 else list(reversed(sides))
        seconds = {side: timed(sides[side]) for side in order}
        metrics = json.loads(next((folder / "runs").glob("*/metrics.json")).read_text())
        ratios.append(seconds["softcontam"] / seconds["bare"])
        print(
            f"pair {pair + 1}: softcontam {seconds['softcontam']:.1f} s (training {metrics['train_seconds']:.1f} s, "
            f"evaluation {metrics['eval_seconds']:.1f} s), bare {seconds['bare']:.1f} s, ratio {ratios[-1]:.3f}",
            flush=True,
        )
    print(f"cell: median ratio {statistics.median(ratios):.3f} (min {min(ratios):.3f}, max {max(ratios):.3f})")


def measure_sweep(folder: Path, cells: int) -> None:
    seeds = [str(seed) for seed in range(cells)]
    pool = timed(softcontam(folder / "pool", *CELL, f"seed={','.join(seeds)}", "hydra.mode=MULTIRUN"))
    single = sum(timed(softcontam(folder / "single", "cluster.workers=0", *CELL, f"seed={seed}")) for seed in seeds)
    print(f"sweep of {cells} cells: pool {pool:.1f} s, one process each {single:.1f} s, ratio {single / pool:.2f}")


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("what", choices=("cell", "sweep"))
    parser.add_argument("--pairs", type=int, default=5)
    parser.add_argument("--cells", type=int, default=12)
    args = parser.parse_args()
    with tempfile.TemporaryDirectory() as folder:
        if args.what == "cell":
            measure_cell(Path(folder), args.pairs)
        else:
            measure_sweep(Path(folder), args.cells)


if __name__ == "__main__":
    main()
