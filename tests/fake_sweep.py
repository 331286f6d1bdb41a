"""A store of made-up cells: what the report reads, without training anything."""

from __future__ import annotations

import json
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import pandas as pd

from softcontam.config import (
    BankConfig,
    BenchmarkConfig,
    ConditionConfig,
    Config,
    EvalConfig,
    MixtureConfig,
    ModelConfig,
    PathsConfig,
    PoolConfig,
    SeedsConfig,
    TrainConfig,
)
from softcontam.store import DONE, Cell, Store, write_parquet

CHANCE = {"puzzles": 0.25, "riddles": 0.2, "chat": 0.0}


def config(kind: str = "clean", seed: int = 0, rate: float = 0.0, **changes: Any) -> Config:
    """A complete config of one cell.

    ``changes`` are ``level``, ``copies``, ``model``, ``note``, ``difficulty``, ``samples`` or ``pass_at``.
    """
    return Config(
        experiment="fake",
        seed=seed,
        seeds=SeedsConfig(seed + 1, seed + 2, seed + 3, seed + 4),
        benchmark=BenchmarkConfig(
            name="puzzles",
            module="puzzles",
            banks={"topical": BankConfig(source="parquet")},
            difficulty=changes.get("difficulty"),
        ),
        condition=ConditionConfig(kind, changes.get("level")),
        mixture=MixtureConfig(PoolConfig("pool"), n_rows=100, rate=rate, copies=changes.get("copies")),
        model=ModelConfig(name=changes.get("model", "tiny"), path="tinyworld", note=changes.get("note", "")),
        train=TrainConfig(recipe="plain", lr=1e-4, epochs=1, batch_size=4, micro_batch_size=4, max_length=64),
        eval=EvalConfig(samples=changes.get("samples", 1), temperature=0.7, pass_at=changes.get("pass_at", [])),
        paths=PathsConfig("runs", "reports", "data"),
    )


@dataclass
class Outcomes:
    """Builds an outcomes table; ``correct`` is a list of samples for each item."""

    rows: list[dict[str, Any]] = field(default_factory=list)

    def add(
        self,
        role: str,
        item: str,
        correct: Iterable[bool | None],
        *,
        family: str | None = None,
        benchmark: str = "puzzles",
        copies: int = 0,
        logprob: float = -2.0,
        tokens: int = 2,
        parse_ok: bool | None = True,
        partial: float | None = None,
        verdicts: Sequence[str | None] | None = None,
    ) -> Outcomes:
        """Add the samples of one item; without ``partial`` and ``verdicts`` there are no such columns (older cells)."""
        for sample, value in enumerate(correct):
            self.rows.append(
                {
                    "cell": "",
                    "benchmark": benchmark,
                    "role": role,
                    "item_id": item,
                    "family": family or item,
                    "sample": sample,
                    "output": "an answer",
                    "parsed": "a",
                    "parse_ok": parse_ok,
                    "finished": True,
                    "correct": value,
                    "copies": copies,
                    "gold_logprob": logprob,
                    "gold_tokens": tokens,
                    **({} if partial is None else {"partial": partial}),
                    **({} if verdicts is None else {"verdict": verdicts[sample]}),
                }
            )
        return self

    def frame(self) -> pd.DataFrame:
        """The table with the store's types."""
        return pd.DataFrame(self.rows).astype({"correct": "boolean", "parse_ok": "boolean", "finished": "boolean"})


def add_cell(
    store: Store, settings: Config, outcomes: Outcomes, families: pd.DataFrame | None = None, **metrics: Any
) -> Cell:
    """Store a done cell; without ``families`` it is one from before they were recorded."""
    inputs = {"benchmark": "b" * 8} | ({} if settings.condition.kind == "clean" else {"bank:topical": "c" * 8})
    cell = store.freeze(settings, inputs)
    inserted = round(settings.mixture.rate * settings.mixture.n_rows)
    figures = {
        "base_sha256": f"base{settings.seed}",
        "slots_sha256": f"slots{settings.seed}",
        "steps": 25,
        "n_rows": 100,
        "inserted_rows": inserted,
        "covered_items": min(inserted, 4),
        "trained_tokens": 1000,
        "chance": CHANCE,
    }
    write_parquet(cell.folder / "outcomes.parquet", outcomes.frame())
    if families is not None:
        write_parquet(cell.folder / "families.parquet", families)
    (cell.folder / "metrics.json").write_text(json.dumps({**figures, **metrics}))
    cell.set_status(DONE)
    return cell


def sweep(store: Store, cells: list[Cell], name: str = "fake") -> None:
    """Record the cells as an experiment's latest launch."""
    command = "python -m softcontam.run -m exp=fake condition=clean,exact seed=0,1,2"
    store.write_sweep(name, cells, {"command": command, "revision": "abc123", "overrides": []})


def sweep_of(root: Path, seeds: int, kinds: list[tuple[str, float]], fill: Callable[[str, int], Outcomes]) -> Store:
    """A store with a clean cell and one cell of each ``(kind, rate)`` for each seed, filled by ``fill(kind, seed)``."""
    store = Store(root / "runs")
    cells = []
    for seed in range(seeds):
        for kind, rate in (("clean", 0.0), *kinds):
            cells.append(add_cell(store, config(kind, seed, rate), fill(kind, seed)))
    sweep(store, cells)
    return store
