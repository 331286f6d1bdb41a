"""What is evaluated, in which role, and the table that comes out."""

from __future__ import annotations

import logging
from collections.abc import Sequence
from typing import Any

import pandas as pd

from softcontam.benchmarks import Benchmark, Item, ItemSet
from softcontam.config import EvalConfig, SandboxConfig
from softcontam.evaluation.engine import Engine, generators_kept
from softcontam.evaluation.lm_eval_tasks import run_task
from softcontam.models import BaseModel
from softcontam.sandbox import Sandbox, Submission, Verdict

log = logging.getLogger(__name__)

COLUMNS = (
    "cell benchmark role item_id family sample output parsed parse_ok finished correct partial verdict verdict_detail "
    "sandbox copies gold_logprob gold_tokens"
).split()
"""Columns of an outcomes table.

``partial``: share of the answer that is right, where a benchmark has one. ``verdict``: category of
:class:`softcontam.sandbox.Verdict` for answers that were run, ``sandbox`` the back-end that ran them. Where the sandbox
itself failed (``sandbox_error``), ``correct`` is null: that says nothing about the answer.
"""


def evaluate(
    base: BaseModel,
    model: Any,
    sets: Sequence[ItemSet],
    copies: dict[str, int],
    config: EvalConfig,
    seed: int,
    cell: str,
    sandbox: SandboxConfig | None = None,
) -> pd.DataFrame:
    """Generate ``config.samples`` outputs per item, score them, and score the gold answer's log-probability.

    Args:
        copies: inserted rows by item id, for the column of that name.
        seed: of the sampling; greedy decoding does not use it.
        sandbox: how answers that are programs are run; None for the default.

    Returns:
        One row per item and sample with the columns :data:`COLUMNS`. With ``config.samples`` 0 there is one row per
        item with null output and all that follows from it. Benchmarks that are lm-eval's own tasks are evaluated by
        lm-eval's rules, one row per item, whatever ``config`` says of samples and temperature.

    Raises:
        SandboxError: answers have to be run, and no sandbox works here.
    """
    was_training = model.training
    engine = Engine(base, model, config.batch_size)  # lm-eval puts the model into evaluation mode
    records: list[dict[str, Any]] = []
    to_run: list[tuple[dict[str, Any], Submission]] = []
    with generators_kept(seed):
        entries = [(one, item) for one in sets if one.benchmark.task is None for item in one.items]
        gold = engine.gold_logprobs([(item.prompt, item.target) for _, item in entries])
        outputs = [
            engine.generate(
                [item.prompt for _, item in entries],
                config.max_new_tokens,
                config.temperature,
                config.top_p,
                config.top_k,
            )
            for _ in range(config.samples)
        ]
        for one in sets:
            if one.benchmark.task is not None:
                items = {item.item_id: item for item in one.items}
                for row in run_task(engine, one.benchmark, one.items):
                    records.append({**_known(cell, one, items[row["item_id"]], copies), **row})
    model.train(was_training)
    for index, (one, item) in enumerate(entries):
        logprob, tokens = gold[index]
        known = {**_known(cell, one, item, copies), "gold_logprob": logprob, "gold_tokens": tokens}
        if not outputs:
            records.append({**known, "sample": 0})
        for sample, drawn in enumerate(outputs):
            output, finished = drawn[index]
            scored, submission = _scored(one.benchmark, item, output, finished)
            records.append({**known, "sample": sample, **scored})
            if submission is not None:
                to_run.append((records[-1], submission))
    if to_run:
        _run(to_run, sandbox or SandboxConfig())
    frame = pd.DataFrame(records).reindex(columns=COLUMNS)
    types = dict.fromkeys(("parse_ok", "finished", "correct"), "boolean")
    return frame.astype({**types, "partial": "float64"})


def _known(cell: str, one: ItemSet, item: Item, copies: dict[str, int]) -> dict[str, Any]:
    """What a row says before anything is asked of the model."""
    return {
        "cell": cell,
        "benchmark": one.benchmark.name,
        "role": one.role,
        "item_id": item.item_id,
        "family": item.family,
        "copies": copies.get(item.item_id, 0),
    }


def _scored(benchmark: Benchmark, item: Item, output: str, finished: bool) -> tuple[dict[str, Any], Submission | None]:
    """The row of one output, and what has to be run before it is known to be right.

    An output that was cut off at the token limit has no answer, whatever its last words look like: "18" may have been
    180. A program in a closed block was written to its end.
    """
    whole = finished or benchmark.submission is not None
    parsed = benchmark.parse(item, output) if whole else None
    row: dict[str, Any] = {"output": output, "parsed": parsed, "parse_ok": parsed is not None, "finished": finished}
    if parsed is None:
        return {**row, "correct": False, "partial": 0.0 if benchmark.has_partial else None}, None
    if benchmark.submission is not None:
        return row, benchmark.submission(item, parsed)
    if benchmark.score is None:
        raise TypeError(f"benchmark {benchmark.name} has neither a score nor a submission")
    score = benchmark.score(item, parsed)
    return {**row, "correct": score.correct, "partial": score.partial}, None


def _run(to_run: Sequence[tuple[dict[str, Any], Submission]], config: SandboxConfig) -> None:
    """Run the answers that are programs, and enter their verdicts into their rows."""

    def tell(done: int, total: int) -> None:
        if done == total or done % 100 == 0:
            log.info("sandbox: %d of %d programs", done, total)

    with Sandbox.of(config) as sandbox:
        verdicts = sandbox.execute_many([submission for _, submission in to_run], tell)
    for (row, _), verdict in zip(to_run, verdicts, strict=True):
        row.update(_as_columns(verdict))


def _as_columns(verdict: Verdict) -> dict[str, Any]:
    return {
        "correct": None if verdict.category == "sandbox_error" else verdict.passed,
        "verdict": verdict.category,
        "verdict_detail": verdict.detail,
        "sandbox": verdict.backend,
    }
