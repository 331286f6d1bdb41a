"""Gold answers through the whole evaluation: what a perfect model would score, and what a guessing one would."""

from __future__ import annotations

import random
from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

import pandas as pd
import pytest

from softcontam.benchmarks import Item, ItemSet, load_benchmark
from softcontam.config import BenchmarkConfig, EvalBenchmark, EvalConfig, SandboxConfig, from_settings
from softcontam.evaluation import evaluate, outcomes
from softcontam.sandbox.backends import BACKENDS, missing
from softcontam.sandbox.pool import works

CHOICES = "musr_murder_mysteries", "musr_object_placements", "musr_team_allocation"
SETS: dict[str, dict[str, Any]] = {
    **{name: {"module": "musr", "path": "musr", "params": {"task": name.removeprefix("musr_")}} for name in CHOICES},
    "gsm8k": {"module": "gsm8k", "path": "gsm8k/main"},
    "zebralogic": {"module": "zebralogic", "path": "zebralogic/grid_mode"},
    "humaneval": {"module": "humaneval", "path": "openai_humaneval/openai_humaneval"},
    "mbpp": {"module": "mbpp", "path": "mbpp/sanitized"},
    "mbpp_full": {"module": "mbpp", "path": "mbpp/full", "params": {"subset": "full"}},
}
ISOLATING = [name for name in BACKENDS if name != "unsafe"]


class Speaker:
    """Stands in for the engine: gives the outputs it is told to give, for the prompts it is asked."""

    replies: dict[str, str]
    finished = True

    def __init__(self, base: Any, model: Any, batch_size: int) -> None:
        pass

    def generate(self, prompts: Sequence[str], *settings: Any) -> list[tuple[str, bool]]:
        return [(self.replies[prompt], self.finished) for prompt in prompts]

    def gold_logprobs(self, pairs: Sequence[tuple[str, str]]) -> list[tuple[float, int]]:
        return [(-1.0, 1) for _ in pairs]


class Model:
    training = False

    def train(self, mode: bool) -> None:
        pass


def loaded(name: str, style: str, data: Path, n: int | None = None) -> ItemSet:
    settings = {"name": name, "response_style": style, **SETS[name]}
    benchmark = load_benchmark(from_settings(EvalBenchmark, settings), data).limited(n)
    return ItemSet("related", benchmark, benchmark.items)


def spoken(
    one: ItemSet, replies: Sequence[str], monkeypatch: pytest.MonkeyPatch, sandbox: str = "auto"
) -> pd.DataFrame:
    """Outcomes of a model that replies so."""
    by_prompt: dict[str, str] = {}
    items: list[Item] = []
    for number, (item, reply) in enumerate(zip(one.items, replies, strict=True)):
        items.append(replace(item, prompt=f"{number}: {item.prompt}"))
        by_prompt[items[-1].prompt] = reply
    monkeypatch.setattr(outcomes, "Engine", Speaker)
    monkeypatch.setattr(Speaker, "replies", by_prompt, raising=False)
    asked = ItemSet(one.role, one.benchmark, tuple(items))
    config = SandboxConfig(backend=sandbox, workers=2)
    return evaluate(None, Model(), [asked], {}, EvalConfig(), 0, "cell", config)  # type: ignore[arg-type]


def skip_unless(sandbox: str) -> None:
    reason = missing(sandbox) or works(BACKENDS[sandbox])
    if reason is not None:
        pytest.skip(f"sandbox {sandbox}: {reason}")


@pytest.mark.parametrize("style", ["answer", "cot"])
@pytest.mark.parametrize("name", [*CHOICES, "gsm8k", "zebralogic"])
def test_gold_answers_score_1(name: str, style: str, data_dir: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    one = loaded(name, style, data_dir)
    frame = spoken(one, [item.target for item in one.items], monkeypatch)
    assert len(frame) == len(one.items)
    assert frame["parse_ok"].all()
    assert frame["correct"].all(), frame.loc[~frame["correct"], "item_id"].tolist()[:5]


@pytest.mark.parametrize("name", CHOICES)
def test_a_guess_scores_at_chance(name: str, data_dir: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    one, rng = loaded(name, "answer", data_dir), random.Random(0)
    letters = [chr(ord("A") + rng.randrange(len(item.choices))) for item in one.items]
    accuracy = spoken(one, letters, monkeypatch)["correct"].mean()
    spread = (one.chance * (1 - one.chance) / len(one.items)) ** 0.5
    assert abs(accuracy - one.chance) < 4 * spread


@pytest.mark.parametrize("name", ["gsm8k", "zebralogic"])
def test_another_items_gold_answer_scores_about_nothing(
    name: str, data_dir: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    one = loaded(name, "answer", data_dir)
    targets = [item.target for item in one.items]
    random.Random(0).shuffle(targets)
    frame = spoken(one, targets, monkeypatch)
    assert frame["correct"].mean() < 0.03


@pytest.mark.parametrize("sandbox", ISOLATING[:2])
def test_gold_programs_pass_and_anothers_fail(sandbox: str, data_dir: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    skip_unless(sandbox)
    one = loaded("humaneval", "answer", data_dir)
    targets = [item.target for item in one.items]
    frame = spoken(one, targets, monkeypatch, sandbox)
    assert set(frame["verdict"]) == {"pass"}
    assert set(frame["sandbox"]) == {sandbox}
    assert frame["correct"].all()
    shifted = spoken(one, targets[1:] + targets[:1], monkeypatch, sandbox)
    assert not shifted["correct"].any()
    assert set(shifted["verdict"]) <= {"exception", "wrong"}


@pytest.mark.slow
@pytest.mark.parametrize("sandbox", ISOLATING)
@pytest.mark.parametrize(("name", "size"), [("mbpp", 427), ("mbpp_full", 974), ("humaneval", 164)])
def test_every_reference_solution_passes_in_every_back_end(
    sandbox: str, name: str, size: int, data_dir: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    skip_unless(sandbox)
    one = loaded(name, "answer", data_dir)
    frame = spoken(one, [item.target for item in one.items], monkeypatch, sandbox)
    assert len(frame) == size
    assert frame["correct"].all(), frame.loc[~frame["correct"], ["item_id", "verdict", "verdict_detail"]].to_string()


def test_an_output_without_an_answer_is_wrong_and_not_run(data_dir: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    skip_unless("bubblewrap")
    one = loaded("humaneval", "answer", data_dir, 2)
    frame = spoken(one, [one.items[0].target, "def f(): pass"], monkeypatch, "bubblewrap")
    assert frame["correct"].tolist() == [True, False]
    assert frame["parse_ok"].tolist() == [True, False]
    assert frame["verdict"].tolist()[0] == "pass"
    assert pd.isna(frame["verdict"].tolist()[1])


def test_an_output_that_was_cut_off_has_no_answer_even_if_it_looks_like_one(
    data_dir: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    one = loaded("gsm8k", "cot", data_dir, 3)
    monkeypatch.setattr(Speaker, "finished", False)
    frame = spoken(one, [item.target for item in one.items], monkeypatch)
    assert not frame["parse_ok"].any()
    assert not frame["correct"].any()


def test_a_sandbox_that_fails_leaves_correct_open(data_dir: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    skip_unless("bubblewrap")
    one = loaded("humaneval", "answer", data_dir, 1)
    broken = replace(one.items[0], tests=("def check(candidate:",))
    frame = spoken(replace(one, items=(broken,)), [broken.target], monkeypatch, "bubblewrap")
    assert frame["verdict"].tolist() == ["sandbox_error"]
    assert frame["correct"].isna().all()


def test_the_split_benchmark_is_loaded_in_its_style(data_dir: Path) -> None:
    config = from_settings(BenchmarkConfig, {"name": "mbpp", "response_style": "cot", **SETS["mbpp"]})
    item = load_benchmark(config, data_dir).items[0]
    assert "Think step by step" in item.prompt
    assert item.response_style == "cot"
