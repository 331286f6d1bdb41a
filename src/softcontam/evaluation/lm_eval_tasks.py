"""Evaluates items with lm-eval's own task, requests, filters and metrics in the engine of the comparison."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
from lm_eval.api.instance import Instance
from lm_eval.api.model import LM
from lm_eval.evaluator import evaluate

from softcontam.benchmarks import Benchmark, Item
from softcontam.benchmarks.lm_eval_task import LmEvalTask, verdict
from softcontam.errors import TokenizationError
from softcontam.evaluation.engine import FINISHED, Engine

FEWSHOT_SEED = 1234
"""lm-eval's default. The examples of an item depend on the items evaluated with it, so arms must evaluate the same."""


class TaskModel(LM):  # type: ignore[misc]
    """What a task asks of the engine: our chat rendering, no cut prompts, and outputs without the engine's mark."""

    def __init__(self, engine: Engine, items: Sequence[Item]) -> None:
        super().__init__()
        self.engine = engine
        self.items = sorted(items, key=lambda item: int(item.meta["doc_id"]))
        self.ended: dict[str, bool] = {}
        engine.chat_template_args = dict(engine.chat.template_kwargs)

    @property
    def tokenizer_name(self) -> str:
        """Name under which lm-eval would cache requests; nothing is cached here."""
        return str(self.engine.tokenizer_name)

    def apply_chat_template(self, chat_history: list[dict[str, str]], add_generation_prompt: bool = True) -> str:
        """The conversation, rendered with the model's template settings."""
        return str(self.engine.apply_chat_template(chat_history, add_generation_prompt))

    def loglikelihood(self, requests: list[Instance]) -> list[tuple[float, bool]]:
        """Log-probability of each continuation, and whether greedy decoding would give it."""
        for request in requests:
            begin, rest = self.engine._encode_pair(*request.args)
            self._refuse_truncation(request, len(begin) + len(rest) - 1)  # the last token is predicted, not fed
        scored: list[tuple[float, bool]] = self.engine.loglikelihood(requests, disable_tqdm=True)
        return scored

    def loglikelihood_rolling(self, requests: list[Instance]) -> list[float]:
        """Not needed: tasks that measure perplexity are refused."""
        raise NotImplementedError

    def generate_until(self, requests: list[Instance]) -> list[str]:
        """One output per request, without what follows the task's stop strings."""
        for request in requests:
            prompt, settings = request.args
            room = settings.get("max_gen_toks") or settings.get("max_new_tokens") or self.engine.max_gen_toks
            self._refuse_truncation(request, len(self.engine.tok_encode(prompt)) + room)
        outputs = []
        for request, text in zip(requests, self.engine.generate_until(requests, disable_tqdm=True), strict=True):
            output = text.removesuffix(FINISHED)
            self.ended[self._item(request).item_id] = output != text
            outputs.append(output)
        return outputs

    def _item(self, request: Instance) -> Item:
        """The item of a request: lm-eval counts anew what it selects, in the order of the documents."""
        return self.items[int(request.doc_id)]

    def _refuse_truncation(self, request: Instance, tokens: int) -> None:
        """lm-eval would cut the beginning of the prompt off and go on."""
        if tokens > self.engine.max_length:
            raise TokenizationError(
                f"item {self._item(request).item_id}: prompt and answer of lm-eval's task need {tokens} tokens, the "
                f"model takes {self.engine.max_length}. Lower params.num_fewshot, or use another task."
            )


def run_task(engine: Engine, benchmark: Benchmark, items: Sequence[Item]) -> list[dict[str, Any]]:
    """Evaluate items of a benchmark that is an lm-eval task (``benchmark.task``), one sample each.

    The task's own generation settings are used, ``eval.samples`` and ``eval.temperature`` are not. Where they sample,
    the global generators decide: seed them before (:func:`softcontam.evaluation.engine.generators_kept`).

    Returns:
        One record per item, in the order of ``items``, with ``item_id``, ``sample`` (0), ``output``, ``parsed``,
        ``parse_ok``, ``finished``, ``correct`` (the task's metric), ``gold_logprob`` (nats, of the gold answer as
        lm-eval requests it) and ``gold_tokens``.

        Multiple choice: ``output`` and ``parsed`` are the choice with the highest score under the metric (None where
        the metric is none of lm-eval's own three), ``finished`` is None, since nothing is generated. lm-eval counts
        blanks at the end of the rendered prompt to the answer, the same for all choices.
        Generation: ``parsed`` is what the task's filter found; ``finished`` is true where the model ended its turn, and
        None where it did not: lm-eval does not say whether a stop string or the token limit ended such an output.

    Raises:
        ConfigError: the metric is neither 0 nor 1 for an item.
        TokenizationError: an item does not fit into the model.
    """
    chosen = benchmark.task
    assert chosen is not None, f"benchmark {benchmark.name} is no lm-eval task"
    if not items:
        return []
    model = TaskModel(engine, items)
    numbers = [item.meta["doc_id"] for item in model.items]  # sorted: lm-eval reads the ids off in documents' order
    chosen.task.set_fewshot_seed(FEWSHOT_SEED)
    results = evaluate(
        lm=model,
        task_dict={"tasks": {chosen.name: chosen.task}, "groups": {}, "group_map": {}},
        samples={chosen.name: numbers},
        bootstrap_iters=0,
        log_samples=True,
        apply_chat_template=True,
        fewshot_as_multiturn=True,
    )
    logged = {
        sample["doc_id"]: sample for sample in results["samples"][chosen.name] if sample["filter"] == chosen.filter
    }
    records = [_record(model, chosen, item, logged[item.meta["doc_id"]]) for item in items]
    if chosen.task.OUTPUT_TYPE == "generate_until":
        _add_gold_logprobs(model, records, logged)
    return records


def _record(model: TaskModel, chosen: LmEvalTask, item: Item, sample: dict[str, Any]) -> dict[str, Any]:
    """One item's record; the gold answer of a generated one is scored afterwards."""
    correct = verdict(chosen, {metric: sample[metric] for metric in sample["metrics"]})
    record: dict[str, Any] = {"item_id": item.item_id, "sample": 0, "correct": correct}
    if chosen.task.OUTPUT_TYPE == "generate_until":
        output = sample["resps"][0][0]
        parsed = chosen.filtered(sample["doc"], output)
        ended = model.ended[item.item_id] or None
        return record | {"output": output, "parsed": parsed, "parse_ok": parsed is not None, "finished": ended}
    gold, output = 0, None
    logprobs = [answers[0][0] for answers in sample["resps"]]
    if item.choices:
        index = chosen.gold(sample["doc"])
        assert isinstance(index, int)
        gold = index
        output = _highest(chosen, item, sample["doc"], logprobs)
    elif record["correct"]:
        output = item.target
    return record | {
        "output": output,
        "parsed": output,
        "parse_ok": True,
        "finished": None,
        "gold_logprob": logprobs[gold],
        "gold_tokens": len(model.engine._encode_pair(*sample["arguments"][gold])[1]),
    }


def _highest(chosen: LmEvalTask, item: Item, doc: dict[str, Any], logprobs: list[float]) -> str | None:
    """The choice that the metric takes as the model's answer, or None where the metric is none of lm-eval's three."""
    texts = chosen.task.doc_to_choice(doc)
    lengths = {
        "acc": [1 for _ in texts],
        "acc_norm": [len(text) for text in texts],
        "acc_bytes": [len(text.encode()) for text in texts],
    }.get(chosen.metric)
    if lengths is None or chosen.task.config.process_results is not None:
        return None
    return item.choices[int(np.argmax(np.array(logprobs[: len(texts)]) / lengths))]


def _add_gold_logprobs(model: TaskModel, records: list[dict[str, Any]], logged: dict[int, dict[str, Any]]) -> None:
    """Score the gold text of each item after the prompt that its output was generated from."""
    requests = []
    for place, item in enumerate(model.items):
        context = logged[item.meta["doc_id"]]["arguments"][0][0]
        requests.append(Instance("loglikelihood", {}, (context, item.target), 0, metadata=("", place, 1)))
    scored = model.loglikelihood(requests)
    gold = {
        item.item_id: {"gold_logprob": logprob, "gold_tokens": len(model.engine._encode_pair(*request.args)[1])}
        for item, request, (logprob, _) in zip(model.items, requests, scored, strict=True)
    }
    for record in records:
        record |= gold[record["item_id"]]
