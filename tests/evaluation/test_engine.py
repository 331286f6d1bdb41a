"""What evaluation feeds the model, and what it makes of the answer."""

from __future__ import annotations

import random
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch
from small_models import load_small, logits, texts, write_qwen3

from softcontam.benchmarks import Benchmark, Item, ItemSet
from softcontam.benchmarks.item import Score, Source
from softcontam.config import EvalConfig
from softcontam.errors import SoftcontamError
from softcontam.evaluation import evaluate
from softcontam.evaluation.engine import Engine
from softcontam.models import BaseModel, load_base


@pytest.fixture(scope="module", params=["tinyworld", "qwen3"])
def base(request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory) -> BaseModel:
    return load_small(request.param, tmp_path_factory.mktemp("engine"))


@pytest.fixture
def fed(base: BaseModel) -> Iterator[list[list[int]]]:
    """Every sequence that the model's first forward passes get, without padding (left padding while generating)."""
    seen: list[list[int]] = []

    def record(module: Any, args: tuple[Any, ...], kwargs: dict[str, Any]) -> None:
        ids = args[0] if args else kwargs["input_ids"]
        mask = kwargs.get("attention_mask")
        for index, row in enumerate(ids.tolist()):
            if len(row) > 1:
                kept = row if mask is None else row[int((mask[index] == 0).sum()) :]
                seen.append(kept)

    handle = base.model.register_forward_pre_hook(record, with_kwargs=True)
    yield seen
    handle.remove()


def _set(items: list[tuple[str, str]], role: str = "seen") -> ItemSet:
    made = tuple(Item(f"toy/{i}", "toy", f"toy/{i}", prompt, target) for i, (prompt, target) in enumerate(items))
    source = Source("test", "1", "none")
    benchmark = Benchmark(
        "toy", made, 0.1, "answer", source, lambda item, text: text or None, lambda item, p: Score(p == item.target)
    )
    return ItemSet(role, benchmark, made)


def _id(base: BaseModel, token: str) -> int:
    found = base.tokenizer.convert_tokens_to_ids(token)
    assert isinstance(found, int)
    return found


def _run(base: BaseModel, seed: int = 1, count: int = 4, **settings: Any) -> Any:
    config = EvalConfig(**{"samples": 1, "temperature": 0.0, "max_new_tokens": 6, "batch_size": 4, **settings})
    return evaluate(base, base.model, [_set(texts(count))], {}, config, seed, "cell")


def _scripted(base: BaseModel, monkeypatch: pytest.MonkeyPatch, outputs: list[list[int]]) -> None:
    """Let the model answer with ``outputs``, padded to one length as generation does."""
    longest = max(map(len, outputs))
    pad = base.tokenizer.pad_token_id
    padded = torch.tensor([ids + [pad] * (longest - len(ids)) for ids in outputs])
    monkeypatch.setattr(base.model, "generate", lambda input_ids, **_: torch.cat([input_ids, padded], dim=1))


def test_generation_feeds_the_very_ids_that_training_puts_before_the_answer(
    base: BaseModel, fed: list[list[int]]
) -> None:
    prompts = texts(6)
    Engine(base, base.model, 1).generate([prompt for prompt, _ in prompts], 1, 0.0)
    trained = []
    for prompt, completion in prompts:
        row = base.chat.encode(prompt, completion)
        trained.append(row.input_ids[: len(row.input_ids) - row.trained_tokens])
    assert sorted(fed) == sorted(trained)


def test_batched_generation_feeds_the_same_ids_behind_padding(base: BaseModel, fed: list[list[int]]) -> None:
    prompts = [prompt for prompt, _ in texts(6)]
    Engine(base, base.model, 6).generate(prompts, 1, 0.0)
    assert sorted(fed) == sorted(base.chat.ids(base.chat.prompt_text(prompt)) for prompt in prompts)


def test_scoring_the_gold_answer_feeds_the_row_that_training_would_see(base: BaseModel, fed: list[list[int]]) -> None:
    pairs = texts(5)
    Engine(base, base.model, 1).gold_logprobs(pairs)
    # Neither the end of turn nor, as nothing follows it, the answer's last token is fed.
    assert sorted(fed) == sorted(base.chat.encode(*pair).input_ids[:-2] for pair in pairs)


def test_the_first_token_of_the_model_is_fed_once(tmp_path: Path) -> None:
    base = load_base(write_qwen3(tmp_path, bos=True))
    seen: list[list[int]] = []
    hook = base.model.register_forward_pre_hook(
        lambda module, args, kwargs: seen.extend((args[0] if args else kwargs["input_ids"]).tolist()), with_kwargs=True
    )
    engine = Engine(base, base.model, 1)
    engine.generate(["Tom has 3 cups."], 1, 0.0)
    engine.gold_logprobs([("Tom has 3 cups.", "Answer: 3")])
    hook.remove()
    bos = base.tokenizer.bos_token_id
    assert [row.count(bos) - row[1:].count(bos) for row in seen] == [1, 1]
    assert seen[0][1] == base.tokenizer.convert_tokens_to_ids("<|im_start|>")


def test_gold_logprob_is_the_sum_of_the_answer_tokens_logprobs(base: BaseModel, request: pytest.FixtureRequest) -> None:
    pairs = texts(6)
    scored = Engine(base, base.model, 4).gold_logprobs(pairs)
    for (prompt, answer), (logprob, tokens) in zip(pairs, scored, strict=True):
        row = base.chat.encode(prompt, answer)
        begin, end = len(row.input_ids) - row.trained_tokens, len(row.input_ids) - 1
        steps = logits(base.model, row.input_ids).log_softmax(-1)
        expected = sum(float(steps[at - 1, row.input_ids[at]]) for at in range(begin, end))
        assert tokens == end - begin
        assert logprob == pytest.approx(expected, abs=1e-4)


def test_greedy_outputs_and_logprobs_do_not_depend_on_the_batch_size(base: BaseModel) -> None:
    one, many = _run(base, count=12, batch_size=1), _run(base, count=12, batch_size=16)
    assert list(one["output"]) == list(many["output"])
    assert list(one["finished"]) == list(many["finished"])
    np.testing.assert_allclose(one["gold_logprob"], many["gold_logprob"], atol=1e-4)


def test_an_output_counts_as_finished_only_if_the_model_ended_its_turn(
    base: BaseModel, monkeypatch: pytest.MonkeyPatch
) -> None:
    end = _id(base, base.chat.eos_token)
    said = base.chat.ids("Answer: 3")
    _scripted(base, monkeypatch, [[*said, end], said, [*said, *said, *said]])
    outputs = Engine(base, base.model, 3).generate(["Tom?"] * 3, 8, 0.0)
    assert [finished for _, finished in outputs] == [True, False, False]
    assert [text for text, _ in outputs] == ["Answer: 3", "Answer: 3", "Answer: 3" * 3]


def test_nothing_after_the_end_of_turn_is_part_of_the_output(base: BaseModel, monkeypatch: pytest.MonkeyPatch) -> None:
    end = _id(base, base.chat.eos_token)
    _scripted(base, monkeypatch, [[*base.chat.ids("Answer: 3"), end, *base.chat.ids(" and more")]])
    assert Engine(base, base.model, 1).generate(["Tom?"], 8, 0.0) == [("Answer: 3", True)]


def test_every_token_at_which_the_model_stops_by_itself_counts_as_an_end(
    base: BaseModel, monkeypatch: pytest.MonkeyPatch
) -> None:
    end = _id(base, base.chat.eos_token)
    other = _id(base, "<|assistant|>")
    monkeypatch.setattr(base.model.generation_config, "eos_token_id", [end, other])
    _scripted(base, monkeypatch, [[*base.chat.ids("Answer: 3"), other]])
    assert Engine(base, base.model, 1).generate(["Tom?"], 8, 0.0) == [("Answer: 3", True)]


def test_sampling_follows_the_seed_and_differs_between_samples(base: BaseModel) -> None:
    first, again, other = (_run(base, seed, samples=4, temperature=3.0) for seed in (1, 1, 2))
    assert list(first["output"]) == list(again["output"])
    assert list(first["output"]) != list(other["output"])
    assert first.groupby("item_id")["output"].nunique().max() > 1
    assert list(first["sample"]) == [0, 1, 2, 3] * 4


def test_sampling_settings_that_come_with_a_model_are_not_used(
    base: BaseModel, monkeypatch: pytest.MonkeyPatch
) -> None:
    expected = _run(base, samples=2, temperature=3.0)
    monkeypatch.setattr(base.model.generation_config, "top_k", 1)
    monkeypatch.setattr(base.model.generation_config, "repetition_penalty", 5.0)
    assert list(_run(base, samples=2, temperature=3.0)["output"]) == list(expected["output"])


def test_sampling_draws_from_the_whole_vocabulary(base: BaseModel, monkeypatch: pytest.MonkeyPatch) -> None:
    flat = torch.linspace(0, -1e-3, len(base.tokenizer))  # every token about as likely, none exactly as another
    original: Any = base.model.forward

    def uniform(*args: Any, **kwargs: Any) -> Any:
        output = original(*args, **kwargs)
        output.logits = flat.expand_as(output.logits)
        return output

    monkeypatch.setattr(base.model, "forward", uniform)
    engine = Engine(base, base.model, 8)
    drawn: list[int] = []
    generate: Any = base.model.generate

    def recorded(input_ids: torch.Tensor, **settings: Any) -> Any:
        output = generate(input_ids=input_ids, **settings)
        drawn.extend(output[:, input_ids.shape[1] :].flatten().tolist())
        return output

    monkeypatch.setattr(base.model, "generate", recorded)
    torch.manual_seed(0)
    engine.generate(["Tom?"] * 8, 40, 1.0)
    assert len(set(drawn)) > 60, "transformers' default keeps the 50 likeliest tokens only"


def test_evaluation_leaves_every_random_generator_as_it_was(base: BaseModel) -> None:
    before = (random.getstate(), str(np.random.get_state()), torch.get_rng_state())
    _run(base, samples=2, temperature=1.0)
    assert random.getstate() == before[0]
    assert str(np.random.get_state()) == before[1]
    assert torch.equal(torch.get_rng_state(), before[2])


@pytest.mark.parametrize("training", [True, False])
def test_evaluation_leaves_the_model_in_the_mode_it_was_in(
    base: BaseModel, training: bool, request: pytest.FixtureRequest
) -> None:
    base.model.train(training)
    try:
        _run(base)
        assert base.model.training is training
    finally:
        base.model.train(False)


def test_no_samples_means_one_row_per_item_with_its_logprob_only(base: BaseModel) -> None:
    table = _run(base, samples=0)
    assert list(table["item_id"]) == [f"toy/{i}" for i in range(4)]
    assert table[["output", "parsed", "parse_ok", "finished", "correct"]].isna().all().all()
    assert (table["gold_logprob"] < 0).all()


@pytest.mark.parametrize("samples", [0, 1])
def test_a_prompt_that_the_model_cannot_take_whole_is_refused(base: BaseModel, samples: int) -> None:
    long = [("Tom has 3 cups. " * 120, "Answer: 3")]
    config = EvalConfig(samples=samples, max_new_tokens=8, batch_size=1)
    with pytest.raises(SoftcontamError, match="tokens"):
        evaluate(base, base.model, [_set(long)], {}, config, 1, "cell")


def test_a_prompt_with_no_room_left_for_the_answer_is_refused(base: BaseModel) -> None:
    limit = base.model.config.max_position_embeddings
    prompt = "Tom "
    while len(base.chat.ids(base.chat.prompt_text(prompt))) < limit - 10:
        prompt += "has "
    with pytest.raises(SoftcontamError, match="max_new_tokens"):
        Engine(base, base.model, 1).generate([prompt], 64, 0.0)
