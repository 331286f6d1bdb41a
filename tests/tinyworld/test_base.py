"""The base model that ships: what it is, that it is the one its recipe tells of, and that effects can show on it."""

from __future__ import annotations

import hashlib
import json
from pathlib import Path

import pytest
import torch
from tiny_cells import composed

from softcontam.arms import lay_out
from softcontam.evaluation import evaluate
from softcontam.inputs import TINYWORLD_BASE
from softcontam.models import BaseModel, load_base


@pytest.fixture(scope="module")
def base() -> BaseModel:
    torch.set_num_threads(1)
    return load_base(composed().model)


def test_the_weights_are_those_of_the_recipe() -> None:
    recipe = json.loads((TINYWORLD_BASE / "recipe.json").read_text())
    weights = TINYWORLD_BASE / "model.safetensors"
    assert hashlib.sha256(weights.read_bytes()).hexdigest() == recipe["sha256"]
    assert sum(file.stat().st_size for file in Path(TINYWORLD_BASE).iterdir()) <= 10e6


def test_it_is_an_olmo_3_of_one_to_five_million_parameters(base: BaseModel) -> None:
    assert base.model.config.model_type == "olmo3"
    assert set(base.model.config.layer_types) == {"sliding_attention", "full_attention"}
    assert 1e6 <= base.parameters <= 5e6


def test_it_starts_above_chance_and_well_below_the_ceiling(base: BaseModel) -> None:
    """Else neither gains nor losses could show on the benchmark and its related one."""
    config = composed(tiny=False)
    sets = lay_out(config).item_sets
    outcomes = evaluate(base, base.model, sets, {}, config.eval, 0, "base")
    for one in sets:
        if one.role != "general":
            mine = outcomes[(outcomes["role"] == one.role) & (outcomes["benchmark"] == one.benchmark.name)]
            assert one.benchmark.chance + 0.1 <= mine["correct"].mean() <= 0.8, one.role
            assert mine["parse_ok"].mean() > 0.95
