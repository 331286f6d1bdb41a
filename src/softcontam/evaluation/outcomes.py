"""What is evaluated, in which role, and the table that comes out."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import pandas as pd

from softcontam.benchmarks import Benchmark, Item, ItemSet
from softcontam.config import EvalConfig
from softcontam.evaluation.engine import Engine, generators_kept
from softcontam.models import BaseModel

COLUMNS = (
    "cell benchmark role item_id family sample output parsed parse_ok finished correct copies gold_logprob gold_tokens"
).split()
"""Columns of an outcomes table."""


def evaluate(
    base: BaseModel,
    model: Any,
    sets: Sequence[ItemSet],
    copies: dict[str, int],
    config: EvalConfig,
    seed: int,
    cell: str,
) -> pd.DataFrame:
    """Generate ``config.samples`` outputs per item, score them, and score the gold answer's log-probability.

    Args:
        copies: inserted rows by item id, for the column of that name.
        seed: of the sampling; greedy decoding does not use it.

    Returns:
        One row per item and sample with the columns :data:`COLUMNS`. With ``config.samples`` 0 there is one row per
        item with null output, parsed, parse_ok, finished and correct.
    """
    entries = [(one, item) for one in sets for item in one.items]
    was_training = model.training
    engine = Engine(base, model, config.batch_size)  # lm-eval puts the model into evaluation mode
    with generators_kept(seed):
        gold = engine.gold_logprobs([(item.prompt, item.target) for _, item in entries])
        outputs = [
            engine.generate([item.prompt for _, item in entries], config.max_new_tokens, config.temperature)
            for _ in range(config.samples)
        ]
    model.train(was_training)
    records = []
    for index, (one, item) in enumerate(entries):
        logprob, tokens = gold[index]
        known = {
            "cell": cell,
            "benchmark": one.benchmark.name,
            "role": one.role,
            "item_id": item.item_id,
            "family": item.family,
            "copies": copies.get(item.item_id, 0),
            "gold_logprob": logprob,
            "gold_tokens": tokens,
        }
        if not outputs:
            records.append({**known, "sample": 0})
        for sample, drawn in enumerate(outputs):
            output, finished = drawn[index]
            records.append({**known, "sample": sample, **_scored(one.benchmark, item, output, finished)})
    frame = pd.DataFrame(records).reindex(columns=COLUMNS)
    return frame.astype({"parse_ok": "boolean", "finished": "boolean", "correct": "boolean"})


def _scored(benchmark: Benchmark, item: Item, output: str, finished: bool) -> dict[str, Any]:
    parsed = benchmark.parse(item, output)
    correct: bool | None = False
    if benchmark.score is None:
        correct = None
    elif parsed is not None:
        correct = benchmark.score(item, parsed).correct
    return {
        "output": output,
        "parsed": parsed,
        "parse_ok": parsed is not None,
        "finished": finished,
        "correct": correct,
    }
