"""What training does with the rows it is given, and what it leaves behind."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
import torch
from peft import PeftModel, set_peft_model_state_dict
from safetensors.torch import load_file
from small_models import dataset, load_small, logits, rows, small_recipe, texts
from trl import SFTTrainer

from softcontam.chat import IGNORED
from softcontam.config import MixtureConfig, TrainConfig
from softcontam.mixture import FamilySplit, Pool, PoolRow, build_mixture
from softcontam.models import BaseModel
from softcontam.training import adapted, train

NAMES = pytest.mark.parametrize("name", ["tinyworld", "qwen3"])


@pytest.fixture
def fed(monkeypatch: pytest.MonkeyPatch) -> list[dict[str, torch.Tensor]]:
    """Every micro batch that the trainer takes a gradient of."""
    batches: list[dict[str, torch.Tensor]] = []
    original = SFTTrainer.training_step

    def step(self: Any, model: Any, inputs: dict[str, torch.Tensor], *args: Any, **kwargs: Any) -> Any:
        batches.append({key: value.clone() for key, value in inputs.items()})
        return original(self, model, inputs, *args, **kwargs)

    monkeypatch.setattr(SFTTrainer, "training_step", step)
    return batches


def _adapter(model: PeftModel) -> dict[str, torch.Tensor]:
    return {name: weight.detach().clone() for name, weight in model.named_parameters() if "lora_" in name}


def _losses(base: BaseModel, recipe: TrainConfig, folder: Path, count: int = 16) -> tuple[list[float], float]:
    """The loss at each step, and the KL divergence from the base per trained token after training."""
    data = rows(base, count)
    with adapted(base, recipe, 3) as model:
        result = train(base, model, dataset(data), recipe, 3, folder)
        divergence, tokens = 0.0, 0
        for row in data:
            trained = torch.tensor(row.labels[1:]) != IGNORED
            ours = logits(model, row.input_ids)[:-1][trained].log_softmax(-1)
            with model.disable_adapter():
                theirs = logits(model, row.input_ids)[:-1][trained].log_softmax(-1)
            divergence += float((ours.exp() * (ours - theirs)).sum())
            tokens += int(trained.sum())
    return [line["loss"] for line in result.log if "loss" in line], divergence / tokens


@NAMES
def test_every_row_is_trained_on_whole_once_per_epoch(
    name: str, tmp_path: Path, fed: list[dict[str, torch.Tensor]]
) -> None:
    base = load_small(name, tmp_path)
    data = rows(base, 19)  # no multiple of the batch: the last batch of an epoch is smaller
    recipe = small_recipe(epochs=2, batch_size=8, micro_batch_size=4)
    with adapted(base, recipe, 1) as model:
        result = train(base, model, dataset(data), recipe, 1, tmp_path / "checkpoints")
    seen = [
        (ids[mask == 1].tolist(), labels[mask == 1].tolist())
        for batch in fed
        for ids, mask, labels in zip(batch["input_ids"], batch["attention_mask"], batch["labels"], strict=True)
    ]
    assert sorted(seen) == sorted((row.input_ids, row.labels) for row in data * 2)
    assert result.steps == 2 * 3
    assert all((batch["labels"][batch["attention_mask"] == 0] == IGNORED).all() for batch in fed)


def test_the_tokens_with_loss_are_those_that_the_manifest_states(
    tmp_path: Path, fed: list[dict[str, torch.Tensor]]
) -> None:
    base = load_small("tinyworld", tmp_path)
    pool = [PoolRow(f"clean/{i}", prompt, completion, "test") for i, (prompt, completion) in enumerate(texts(24))]
    empty = FamilySplit((), ())
    config = MixtureConfig(n_rows=16, rate=0.0)
    mixture = build_mixture(config, empty, (), Pool([pool]), base.chat, 128, 1, tmp_path / "mixture")
    recipe = small_recipe(epochs=1)
    with adapted(base, recipe, 1) as model:
        train(base, model, mixture.dataset(), recipe, 1, tmp_path / "checkpoints")
    assert sum(int((batch["labels"] != IGNORED).sum()) for batch in fed) == mixture.manifest["trained_tokens"].sum()
    assert sum(int(batch["attention_mask"].sum()) for batch in fed) == mixture.manifest["tokens"].sum()


def test_rows_mapped_from_disk_train_to_the_bytes_that_rows_in_memory_do(tmp_path: Path) -> None:
    base = load_small("tinyworld", tmp_path)
    pool = [PoolRow(f"clean/{i}", prompt, completion, "test") for i, (prompt, completion) in enumerate(texts(24))]
    config = MixtureConfig(n_rows=20, rate=0.0)
    mixture = build_mixture(config, FamilySplit((), ()), (), Pool([pool]), base.chat, 128, 1, tmp_path / "mixture")
    weights = []
    for number, data in enumerate((mixture.dataset(), dataset([row.encoded for row in mixture.rows]))):
        with adapted(base, small_recipe(), 1) as model:
            train(base, model, data, small_recipe(), 1, tmp_path / str(number))
            weights.append(_adapter(model))
    assert all(torch.equal(weight, weights[1][name]) for name, weight in weights[0].items())


def test_the_order_of_rows_depends_on_the_seed_only(tmp_path: Path, fed: list[dict[str, torch.Tensor]]) -> None:
    base = load_small("tinyworld", tmp_path)
    data, changed = rows(base, 16), rows(base, 16)
    changed[5] = base.chat.encode("Ann has a map. What has she?", "Answer: map")
    orders = []
    for number, (these, seed) in enumerate([(data, 1), (changed, 1), (data, 2)]):
        fed.clear()
        with adapted(base, small_recipe(epochs=1), seed) as model:
            train(base, model, dataset(these), small_recipe(epochs=1), seed, tmp_path / str(number))
        by_ids = {tuple(row.input_ids): slot for slot, row in enumerate(these)}
        orders.append(
            [
                by_ids[tuple(ids[mask == 1].tolist())]
                for batch in fed
                for ids, mask in zip(batch["input_ids"], batch["attention_mask"], strict=True)
            ]
        )
    assert orders[0] == orders[1]
    assert orders[0] != orders[2]


def test_rows_in_order_come_in_order_in_every_epoch(tmp_path: Path, fed: list[dict[str, torch.Tensor]]) -> None:
    base = load_small("tinyworld", tmp_path)
    data = rows(base, 24)
    recipe = small_recipe(epochs=2)
    with adapted(base, recipe, 1) as model:
        train(base, model, dataset(data), recipe, 5, tmp_path / "checkpoints", in_order=True)
    seen = [
        ids[mask == 1].tolist()
        for batch in fed
        for ids, mask in zip(batch["input_ids"], batch["attention_mask"], strict=True)
    ]
    assert seen == [row.input_ids for row in data * 2]


@pytest.mark.parametrize(("name", "kl_penalty"), [("tinyworld", 0.0), ("tinyworld", 0.5), ("qwen3", 0.0)])
def test_the_first_loss_is_the_mean_negative_logprob_of_the_trained_tokens(
    name: str, kl_penalty: float, tmp_path: Path
) -> None:
    base = load_small(name, tmp_path)
    data = rows(base, 8)
    total = 0.0
    for row in data:
        steps = logits(base.model, row.input_ids)[:-1].log_softmax(-1)
        labels = torch.tensor(row.labels[1:])
        at = (labels != IGNORED).nonzero().flatten()
        total -= float(steps[at, labels[at]].sum())
    # A new adapter is the base itself, so a KL penalty adds nothing yet.
    losses, _ = _losses(base, small_recipe(epochs=1, kl_penalty=kl_penalty), tmp_path / "checkpoints", count=8)
    assert losses[0] == pytest.approx(total / sum(row.trained_tokens for row in data), rel=1e-4)


def test_a_kl_penalty_keeps_the_adapted_model_nearer_to_the_base(tmp_path: Path) -> None:
    base = load_small("tinyworld", tmp_path)
    free, held = (
        _losses(base, small_recipe(epochs=3, kl_penalty=penalty), tmp_path / str(penalty))[1] for penalty in (0.0, 5.0)
    )
    assert free > held > 0


@NAMES
def test_a_saved_adapter_gives_the_same_logits_on_a_fresh_base(name: str, tmp_path: Path) -> None:
    base = load_small(name, tmp_path)
    data = rows(base, 16)
    with adapted(base, small_recipe(), 1) as model:
        train(base, model, dataset(data), small_recipe(), 1, tmp_path / "checkpoints")
        expected = logits(model, data[0].input_ids)
        learned = [weight for key, weight in _adapter(model).items() if "lora_B" in key]
        model.save_pretrained(tmp_path / "adapter", save_embedding_layers=False)
    assert all(weight.abs().max() > 0 for weight in learned)
    fresh = load_small(name, tmp_path)
    assert not torch.equal(logits(fresh.model, data[0].input_ids), expected)
    loaded = PeftModel.from_pretrained(fresh.model, str(tmp_path / "adapter")).eval()
    assert torch.equal(logits(loaded, data[0].input_ids), expected)
    # And the way in which a retried cell takes up the adapter of an earlier attempt.
    again = load_small(name, tmp_path)
    with adapted(again, small_recipe(), 2) as model:
        set_peft_model_state_dict(model, load_file(tmp_path / "adapter" / "adapter_model.safetensors"))
        model.eval()
        assert torch.equal(logits(model, data[0].input_ids), expected)


HARMLESS = {"model_tags", "_is_hf_initialized", "_require_grads_hooks", "gradient_checkpointing"}
"""Attributes that nothing reads, and one whose value is compared instead."""


def _state(base: BaseModel) -> dict[str, Any]:
    """What training could leave behind on a base: attributes, hooks, modes, and settings."""
    found: dict[str, Any] = {
        **{f"config.{key}": value for key, value in base.model.config.to_dict().items()},
        **{f"generation.{key}": value for key, value in base.model.generation_config.to_dict().items()},
        "padding_side": base.tokenizer.padding_side,
        "special": base.tokenizer.special_tokens_map,
    }
    for name, module in base.model.named_modules():
        found |= {f"{name}.{key}": "set" for key in vars(module) if key not in HARMLESS}
        found[f"{name} type"] = type(module)
        found[f"{name} hooks"] = len(module._forward_hooks) + len(module._forward_pre_hooks)
        found[f"{name} training"] = module.training
        found[f"{name} checkpointing"] = getattr(module, "gradient_checkpointing", False)
    return found


def _changed(before: dict[str, Any], after: dict[str, Any]) -> dict[str, Any]:
    return {key: (before.get(key), after.get(key)) for key in before | after if before.get(key) != after.get(key)}


@NAMES
@pytest.mark.parametrize("gradient_checkpointing", [False, True])
def test_the_base_is_as_before_after_a_cell_was_trained_on_it(
    name: str, gradient_checkpointing: bool, tmp_path: Path
) -> None:
    base = load_small(name, tmp_path)
    recipe = small_recipe(epochs=1, kl_penalty=0.1, gradient_checkpointing=gradient_checkpointing)
    data = rows(base, 20)
    before, weights = _state(base), {key: value.clone() for key, value in base.model.state_dict().items()}
    expected = logits(base.model, data[0].input_ids)
    with adapted(base, recipe, 1) as model:
        train(base, model, dataset(data), recipe, 1, tmp_path / "checkpoints")
        assert not torch.equal(logits(model, data[0].input_ids), expected)
    assert torch.equal(logits(base.model, data[0].input_ids), expected)
    assert _changed(before, _state(base)) == {}
    assert base.model.state_dict().keys() == weights.keys()
    assert all(torch.equal(value, weights[key]) for key, value in base.model.state_dict().items())


def test_the_base_is_as_before_after_training_failed(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    base = load_small("tinyworld", tmp_path)
    expected, before = logits(base.model, [3, 5, 7]), _state(base)
    monkeypatch.setattr(SFTTrainer, "training_step", _stop_after(2))
    with pytest.raises(Killed), adapted(base, small_recipe(), 1) as model:
        train(base, model, dataset(rows(base, 32)), small_recipe(), 1, tmp_path / "checkpoints")
    assert torch.equal(logits(base.model, [3, 5, 7]), expected)
    assert _changed(before, _state(base)) == {}


class Killed(Exception):
    """Stands for the end of a process in the middle of training."""


def _stop_after(steps: int) -> Callable[..., Any]:
    original, taken = SFTTrainer.training_step, 0

    def step(self: Any, *args: Any, **kwargs: Any) -> Any:
        nonlocal taken
        taken += 1
        if taken > steps:
            raise Killed
        return original(self, *args, **kwargs)

    return step


def _interrupted_and_resumed(
    name: str, folder: Path, recipe: TrainConfig, monkeypatch: pytest.MonkeyPatch, micro_steps: int
) -> tuple[dict[str, torch.Tensor], list[dict[str, Any]]]:
    base = load_small(name, folder)
    with monkeypatch.context() as patched:
        patched.setattr(SFTTrainer, "training_step", _stop_after(micro_steps))
        with pytest.raises(Killed), adapted(base, recipe, 1) as model:
            train(base, model, dataset(rows(base, 20)), recipe, 1, folder / "checkpoints")
    torch.manual_seed(99)  # another process has other random states
    base = load_small(name, folder)
    with adapted(base, recipe, 1) as model:
        result = train(base, model, dataset(rows(base, 20)), recipe, 1, folder / "checkpoints")
        return _adapter(model), result.log


def _unbroken(name: str, folder: Path, recipe: TrainConfig) -> tuple[dict[str, torch.Tensor], list[dict[str, Any]]]:
    base = load_small(name, folder)
    with adapted(base, recipe, 1) as model:
        result = train(base, model, dataset(rows(base, 20)), recipe, 1, folder / "unbroken")
        return _adapter(model), result.log


@pytest.mark.parametrize(("name", "micro_steps"), [("tinyworld", 3), ("qwen3", 7)])
def test_a_run_killed_and_resumed_ends_with_the_bytes_of_an_unbroken_one(
    name: str, micro_steps: int, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    recipe = small_recipe(batch_size=8, micro_batch_size=4, checkpoint_every_s=0.0)
    expected, log = _unbroken(name, tmp_path, recipe)
    resumed, resumed_log = _interrupted_and_resumed(name, tmp_path, recipe, monkeypatch, micro_steps)
    assert resumed.keys() == expected.keys()
    assert all(torch.equal(weight, expected[key]) for key, weight in resumed.items())
    figures = ("step", "loss", "grad_norm", "learning_rate")
    assert [[line.get(key) for key in figures] for line in resumed_log[:-1]] == [
        [line.get(key) for key in figures] for line in log[:-1]
    ]


def test_the_log_of_a_resumed_run_counts_the_tokens_from_the_beginning(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    recipe = small_recipe(batch_size=8, micro_batch_size=4, checkpoint_every_s=0.0)
    log = _unbroken("tinyworld", tmp_path, recipe)[1]
    resumed = _interrupted_and_resumed("tinyworld", tmp_path, recipe, monkeypatch, 7)[1]
    assert [line.get("num_tokens") for line in resumed] == [line.get("num_tokens") for line in log]


def test_a_checkpoint_cut_off_while_it_was_written_is_passed_over(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    recipe = small_recipe(epochs=2, checkpoint_every_s=0.0)
    base = load_small("tinyworld", tmp_path)
    expected, _ = _unbroken("tinyworld", tmp_path, recipe)
    monkeypatch.setattr(SFTTrainer, "training_step", _stop_after(2))
    with pytest.raises(Killed), adapted(base, recipe, 1) as model:
        train(base, model, dataset(rows(base, 20)), recipe, 1, tmp_path / "checkpoints")
    monkeypatch.undo()
    partial = tmp_path / "checkpoints" / "checkpoint-3"
    partial.mkdir()
    (partial / "adapter_config.json").write_text("{}")
    with adapted(base, recipe, 1) as model:
        train(base, model, dataset(rows(base, 20)), recipe, 1, tmp_path / "checkpoints")
        found = _adapter(model)
    assert all(torch.equal(weight, expected[key]) for key, weight in found.items())


def test_a_short_run_writes_no_checkpoint(tmp_path: Path) -> None:
    base = load_small("tinyworld", tmp_path)
    with adapted(base, small_recipe(epochs=1), 1) as model:
        train(base, model, dataset(rows(base, 16)), small_recipe(epochs=1), 1, tmp_path / "checkpoints")
    assert list((tmp_path / "checkpoints").glob("checkpoint-*")) == []
