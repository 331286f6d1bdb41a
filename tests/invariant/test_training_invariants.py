"""Settings that must not change what is learned, beyond rounding."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest
import torch
from small_models import dataset, load_small, rows, small_recipe

from softcontam.config import LoraSettings, TrainConfig
from softcontam.models import BaseModel
from softcontam.training import adapted, train

NAMES = pytest.mark.parametrize("name", ["tinyworld", "qwen3"])
WITHOUT_DROPOUT = LoraSettings(r=4, alpha=8, dropout=0.0)


def _trained(
    base: BaseModel, recipe: TrainConfig, folder: Path, seed: int = 1
) -> tuple[list[float], dict[str, torch.Tensor]]:
    """The loss at every step and the adapter."""
    with adapted(base, recipe, seed) as model:
        result = train(base, model, dataset(rows(base, 20)), recipe, seed, folder)
        weights = {name: weight.detach().clone() for name, weight in model.named_parameters() if "lora_" in name}
    return [line["loss"] for line in result.log if "loss" in line], weights


@pytest.mark.parametrize(("name", "kl_penalty"), [("tinyworld", 0.0), ("tinyworld", 0.5), ("qwen3", 0.5)])
def test_a_batch_of_eight_is_four_micro_batches_of_two(name: str, kl_penalty: float, tmp_path: Path) -> None:
    base = load_small(name, tmp_path)
    settings: dict[str, Any] = {"lora": WITHOUT_DROPOUT, "kl_penalty": kl_penalty, "lr": 1e-3}
    whole, weights = _trained(base, small_recipe(micro_batch_size=8, **settings), tmp_path / "whole")
    split, split_weights = _trained(base, small_recipe(micro_batch_size=2, **settings), tmp_path / "split")
    assert len(whole) == 6
    assert split == pytest.approx(whole, rel=1e-3)
    for key, weight in weights.items():
        torch.testing.assert_close(split_weights[key], weight, atol=1e-3, rtol=1e-2)


@NAMES
def test_gradient_checkpointing_changes_memory_only(name: str, tmp_path: Path) -> None:
    base = load_small(name, tmp_path)
    plain, _ = _trained(base, small_recipe(epochs=1), tmp_path / "plain")
    saving, _ = _trained(base, small_recipe(epochs=1, gradient_checkpointing=True), tmp_path / "saving")
    assert saving == pytest.approx(plain, rel=1e-4)


@NAMES
def test_a_cell_gives_the_same_bytes_whatever_ran_before_it_in_the_process(name: str, tmp_path: Path) -> None:
    recipe = small_recipe(epochs=1)
    fresh, expected = _trained(load_small(name, tmp_path), recipe, tmp_path / "fresh")
    used = load_small(name, tmp_path)
    other = small_recipe(epochs=1, lr=1e-2, kl_penalty=0.1, gradient_checkpointing=True)
    _trained(used, other, tmp_path / "other", seed=7)
    losses, weights = _trained(used, recipe, tmp_path / "second")
    assert losses == fresh
    assert all(torch.equal(weight, expected[key]) for key, weight in weights.items())
