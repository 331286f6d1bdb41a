"""Loads a base model and its tokenizer from the hub, a folder, a GGUF file, or the package itself."""

from __future__ import annotations

import logging
import os
from dataclasses import dataclass
from pathlib import Path

import torch
from safetensors.torch import load_file, save_file
from transformers import AutoConfig, AutoModelForCausalLM, AutoTokenizer, PreTrainedModel, PreTrainedTokenizerBase

from softcontam.chat import Chat
from softcontam.config import ModelConfig
from softcontam.errors import ConfigError
from softcontam.inputs import model_folder
from softcontam.store import file_sha256, write_atomically

log = logging.getLogger(__name__)


@dataclass(frozen=True)
class BaseModel:
    """A model in evaluation mode on its device, its tokenizer and the chat rendering that belongs to both."""

    model: PreTrainedModel
    tokenizer: PreTrainedTokenizerBase
    chat: Chat
    parameters: int


def device() -> torch.device:
    """The first GPU that this process may see, else the CPU."""
    return torch.device("cuda:0" if torch.cuda.is_available() else "cpu")


def load_base(config: ModelConfig) -> BaseModel:
    """Load model and tokenizer.

    Raises:
        ConfigError: the path does not exist, or the hub cannot be reached; says what to do instead.
    """
    folder = model_folder(config)
    where = str(folder) if folder is not None else config.path
    dtype = getattr(torch, config.dtype)
    options = {"revision": config.revision} if folder is None else {}
    try:
        if config.gguf_file:
            assert folder is not None, "a GGUF file is loaded from a folder"
            tokenizer = AutoTokenizer.from_pretrained(where, gguf_file=config.gguf_file)
            model = _load_gguf(folder, config, dtype)
        else:
            tokenizer = AutoTokenizer.from_pretrained(where, **options)
            model = AutoModelForCausalLM.from_pretrained(
                where, dtype=dtype, attn_implementation=config.attn_implementation, **options
            )
    except OSError as error:
        raise ConfigError(
            f"model {config.name}: {where} cannot be loaded ({str(error).splitlines()[0]}). On a machine without "
            "network, fetch it elsewhere and set model.path to its folder."
        ) from error
    if config.eos_token:
        tokenizer.eos_token = config.eos_token
        model.config.eos_token_id = model.generation_config.eos_token_id = tokenizer.eos_token_id
    if tokenizer.pad_token is None:
        tokenizer.pad_token = tokenizer.eos_token
    model.to(device())  # type: ignore[arg-type]
    model.requires_grad_(False)
    model.train(False)
    parameters = sum(parameter.numel() for parameter in model.parameters())
    return BaseModel(model, tokenizer, Chat(tokenizer, config.template_kwargs, config.eos_token), parameters)


def cache_dir() -> Path:
    """Where converted weights are kept: ``SOFTCONTAM_CACHE``, else ``~/.cache/softcontam``."""
    return Path(os.environ.get("SOFTCONTAM_CACHE", "~/.cache/softcontam")).expanduser()


def _load_gguf(folder: Path, config: ModelConfig, dtype: torch.dtype) -> PreTrainedModel:
    """Dequantize a GGUF file once and keep its state dict: transformers takes about 35 s for it at 135M parameters."""
    assert config.gguf_file is not None
    source = folder / config.gguf_file
    kept = cache_dir() / "gguf" / f"{file_sha256(source)[:16]}.safetensors"
    if not kept.exists():
        log.info("converting %s, once", source)
        converted = AutoModelForCausalLM.from_pretrained(str(folder), gguf_file=config.gguf_file, dtype=torch.float32)
        state = {name: tensor.contiguous().clone() for name, tensor in converted.state_dict().items()}
        write_atomically(kept, lambda staged: save_file(state, staged))
    settings = AutoConfig.from_pretrained(str(folder), gguf_file=config.gguf_file)
    settings._attn_implementation = config.attn_implementation
    model: PreTrainedModel = AutoModelForCausalLM.from_config(settings, dtype=dtype)  # type: ignore[no-untyped-call]
    model.load_state_dict(load_file(kept), strict=False)
    model.tie_weights()
    return model
