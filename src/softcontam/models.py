"""Loads a base model and its tokenizer from the hub, a folder, a GGUF file, or the package itself."""

from __future__ import annotations

import json
import logging
from dataclasses import dataclass
from pathlib import Path

import torch
from safetensors import SafetensorError
from safetensors.torch import save_file
from transformers import AutoModelForCausalLM, AutoTokenizer, PreTrainedModel, PreTrainedTokenizerBase

from softcontam.cache import cache_dir
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
    where, options = _place(config)
    dtype = getattr(torch, config.dtype, None)
    if not isinstance(dtype, torch.dtype):
        raise ConfigError(f"model.dtype={config.dtype} is no dtype of torch. Use bfloat16, float16 or float32.")
    tokenizer = _tokenizer(config, where, options)
    try:
        model = AutoModelForCausalLM.from_pretrained(
            where, dtype=dtype, attn_implementation=config.attn_implementation, **options
        )
    except _UNREADABLE as error:
        raise _cannot_load(config, where, error) from error
    if config.eos_token:
        model.config.eos_token_id = model.generation_config.eos_token_id = tokenizer.eos_token_id
    model.to(device())  # type: ignore[arg-type]
    model.requires_grad_(False)
    model.train(False)
    parameters = sum(parameter.numel() for parameter in model.parameters())
    return BaseModel(model, tokenizer, _chat(config, tokenizer), parameters)


def load_chat(config: ModelConfig) -> Chat:
    """The chat rendering of a model without its weights.

    Raises:
        ConfigError: as :func:`load_base`.
    """
    return _chat(config, _tokenizer(config, *_place(config)))


_UNREADABLE = (OSError, ValueError, SafetensorError)


def _cannot_load(config: ModelConfig, where: str, error: Exception) -> ConfigError:
    return ConfigError(
        f"model {config.name}: {where} cannot be loaded ({str(error).splitlines()[0]}). On a machine without "
        "network, fetch it elsewhere and set model.path to its folder."
    )


def _place(config: ModelConfig) -> tuple[str, dict[str, str | None]]:
    """What ``from_pretrained`` is called with: a folder, or a hub id and its revision."""
    folder = model_folder(config)
    if folder is None:
        return config.path, {"revision": config.revision}
    if not config.gguf_file:
        return str(folder), {}
    try:
        return str(_converted_gguf(folder / config.gguf_file)), {}
    except _UNREADABLE as error:
        raise _cannot_load(config, str(folder), error) from error


def _tokenizer(config: ModelConfig, where: str, options: dict[str, str | None]) -> PreTrainedTokenizerBase:
    """The tokenizer with the template and end-of-turn token of the config."""
    try:
        tokenizer: PreTrainedTokenizerBase = AutoTokenizer.from_pretrained(where, **options)
    except _UNREADABLE as error:
        raise _cannot_load(config, where, error) from error
    if config.chat_template:
        tokenizer.chat_template = config.chat_template
    if config.eos_token:
        if config.eos_token not in tokenizer.get_vocab():
            raise ConfigError(
                f"model.eos_token={config.eos_token} is not in the vocabulary of {where}. Set it to the token that the "
                "chat template puts after an answer."
            )
        tokenizer.eos_token = config.eos_token
    if tokenizer.pad_token is None:
        tokenizer.pad_token = tokenizer.eos_token
    return tokenizer


def _chat(config: ModelConfig, tokenizer: PreTrainedTokenizerBase) -> Chat:
    return Chat(tokenizer, config.template_kwargs, config.eos_token)


def _converted_gguf(source: Path) -> Path:
    """A folder with the dequantized weights, config and tokenizer of a GGUF file, made once and kept.

    transformers takes about 35 s for 135M parameters, and a model that it loaded from GGUF refuses ``save_pretrained``;
    its state dict does not.
    """
    kept = cache_dir() / "gguf" / file_sha256(source)[:16]
    if not kept.is_dir():
        log.info("converting %s, once", source)
        folder, name = str(source.parent), source.name
        model = AutoModelForCausalLM.from_pretrained(folder, gguf_file=name, dtype=torch.float32)
        tokenizer = AutoTokenizer.from_pretrained(folder, gguf_file=name)
        state = {key: tensor.contiguous().clone() for key, tensor in model.state_dict().items()}
        if model.config.tie_word_embeddings:
            state.pop("lm_head.weight", None)

        def write(staged: Path) -> None:
            staged.mkdir()
            save_file(state, staged / "model.safetensors", metadata={"format": "pt"})
            model.config.save_pretrained(staged)
            settings = json.loads((staged / "config.json").read_text())
            settings.pop("quantization_config", None)  # the weights are not quantized any more: they can be trained
            (staged / "config.json").write_text(json.dumps(settings, indent=1))
            tokenizer.save_pretrained(staged)

        write_atomically(kept, write)
    return kept
