"""The model configs and the recipes of the paper, and that they train models of both architectures."""

from __future__ import annotations

from dataclasses import replace
from itertools import pairwise
from pathlib import Path
from typing import Any

import pytest
from hydra import compose, initialize_config_dir
from small_models import dataset, load_small

from softcontam.config import Config, conf_dir, resolve
from softcontam.training import adapted, train

MODELS = {
    "olmo3_7b": "allenai/Olmo-3-1025-7B",
    "olmo3_7b_instruct": "allenai/Olmo-3-7B-Instruct",
    "qwen3_8b": "Qwen/Qwen3-8B-Base",
    "qwen3_0.6b": "Qwen/Qwen3-0.6B",
    "qwen3_4b_instruct_2507": "Qwen/Qwen3-4B-Instruct-2507",
}
# shared/docs/paper.md, "Controlled runs" and "Realistic mix".
CONTROLLED = {"r": 16, "alpha": 32, "dropout": 0.05, "schedule": "cosine", "warmup_ratio": 0.03, "max_length": 4096}
ECOLOGICAL = {"r": 64, "alpha": 128, "schedule": "linear", "warmup_ratio": 0.03, "max_length": 2048, "batch_size": 64}
PAPER: dict[str, dict[str, Any]] = {
    "paper_controlled": {**CONTROLLED, "lr": 2e-4, "epochs": 6, "kl_penalty": 0.0},
    "paper_controlled_mbpp": {**CONTROLLED, "lr": 1.5e-4, "epochs": 10, "kl_penalty": 0.02},
    "paper_controlled_zebralogic": {**CONTROLLED, "lr": 2e-4, "epochs": 10, "kl_penalty": 0.0},
    "paper_ecological": {**ECOLOGICAL, "lr": 1e-4, "epochs": 10, "kl_penalty": 0.0},
}
PROJECTIONS = {"q_proj", "k_proj", "v_proj", "o_proj", "gate_proj", "up_proj", "down_proj"}


def _composed(*overrides: str) -> Config:
    with initialize_config_dir(str(conf_dir()), version_base="1.3"):
        return resolve(compose("config", list(overrides)))


@pytest.mark.parametrize("recipe", PAPER)
def test_a_recipe_has_the_figures_of_the_paper(recipe: str) -> None:
    train = _composed(f"train={recipe}").train
    stated = {name: getattr(train.lora if hasattr(train.lora, name) else train, name) for name in PAPER[recipe]}
    assert stated == PAPER[recipe]
    assert set(train.lora.target_modules) == PROJECTIONS
    assert train.recipe == recipe, "the recipe's name is what the report shows"


@pytest.mark.parametrize(("file", "samples"), [("paper_controlled", 8), ("paper_ecological", 20)])
def test_an_evaluation_has_the_figures_of_the_paper(file: str, samples: int) -> None:
    settings = _composed(f"eval={file}").eval
    assert (settings.samples, settings.temperature, settings.related) == (samples, 0.7, [])


@pytest.mark.parametrize("model", MODELS)
def test_a_model_is_chosen_by_its_name_and_composes_with_every_recipe(model: str) -> None:
    for recipe in PAPER:
        evaluation = "paper_ecological" if recipe == "paper_ecological" else "paper_controlled"
        config = _composed(f"model={model}", f"train={recipe}", f"eval={evaluation}")
        assert (config.model.name, config.model.path) == (model, MODELS[model])
        assert config.model.dtype == "bfloat16"


@pytest.mark.parametrize("model", ["qwen3_8b", "qwen3_0.6b"])
def test_qwen3_templates_with_a_thinking_mode_are_rendered_with_it_off(model: str) -> None:
    config = _composed(f"model={model}").model
    assert config.template_kwargs == {"enable_thinking": False}
    assert config.eos_token == "<|im_end|>"


@pytest.mark.parametrize("name", ["tinyworld", "qwen3"])
@pytest.mark.parametrize("recipe", PAPER)
def test_every_projection_of_every_layer_gets_an_adapter_of_the_stated_size(
    recipe: str, name: str, tmp_path: Path
) -> None:
    base, settings = load_small(name, tmp_path), _composed(f"train={recipe}").train
    with adapted(base, settings, 1) as model:
        found = {
            key.removesuffix(".lora_A.default.weight"): weight.shape[0]
            for key, weight in model.named_parameters()
            if key.endswith("lora_A.default.weight")
        }
        trainable = {key for key, weight in model.named_parameters() if weight.requires_grad}
    layers = base.model.config.num_hidden_layers
    assert len(found) == 7 * layers
    assert {key.rsplit(".", 1)[1] for key in found} == PROJECTIONS
    assert set(found.values()) == {settings.lora.r}
    assert all("lora_" in key for key in trainable)


@pytest.mark.parametrize("name", ["tinyworld", "qwen3"])
@pytest.mark.parametrize("recipe", ["paper_controlled_mbpp", "paper_ecological"])
def test_a_recipe_trains_a_small_model_with_the_stated_learning_rates(recipe: str, name: str, tmp_path: Path) -> None:
    base, settings = load_small(name, tmp_path), _composed(f"train={recipe}").train
    settings = replace(settings, batch_size=8, micro_batch_size=8, epochs=4)
    short = [base.chat.encode(f"{i} cups?", f"Answer: {i}") for i in range(8)]
    with adapted(base, settings, 1) as model:
        result = train(base, model, dataset(short), settings, 1, tmp_path / "checkpoints")
    rates = [line["learning_rate"] for line in result.log if "learning_rate" in line]
    losses = [line["loss"] for line in result.log if "loss" in line]
    assert result.steps == len(rates) == 4
    assert max(rates) == pytest.approx(settings.lr)
    falling = rates[rates.index(max(rates)) :]
    drops = [earlier - later for earlier, later in pairwise(falling)]
    assert min(drops) > 0
    assert (max(drops) / min(drops) < 1.01) == (settings.schedule == "linear")
    assert losses[-1] < losses[0]
