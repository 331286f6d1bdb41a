"""Small models of the architectures that the paper's runs use, and rows to train them on."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

import torch
from datasets import Dataset
from tokenizers.processors import TemplateProcessing
from transformers import AutoTokenizer, PreTrainedModel, PreTrainedTokenizerBase, Qwen3Config, Qwen3ForCausalLM

from softcontam.chat import EncodedRow
from softcontam.config import LoraSettings, ModelConfig, TrainConfig
from softcontam.inputs import TINYWORLD_BASE
from softcontam.models import BaseModel, load_base

TINYWORLD = ModelConfig(name="tinyworld", path="tinyworld")

# What the template of the hybrid Qwen3 models does: the last answer gets an empty thinking block on a full render, a
# generation prompt gets one only with enable_thinking=false.
QWEN3_LIKE_TEMPLATE = """\
{%- for message in messages %}
    {{- '<|im_start|>' + message.role + '\\n' }}
    {%- if loop.last and message.role == 'assistant' %}
        {{- '<think>\\n\\n</think>\\n\\n' }}
    {%- endif %}
    {{- message.content + '<|im_end|>\\n' }}
{%- endfor %}
{%- if add_generation_prompt %}
    {{- '<|im_start|>assistant\\n' }}
    {%- if enable_thinking is defined and enable_thinking is false %}
        {{- '<think>\\n\\n</think>\\n\\n' }}
    {%- endif %}
{%- endif %}"""


def qwen3_like_tokenizer(folder: Path) -> PreTrainedTokenizerBase:
    """The tinyworld's tokenizer with the special tokens of Qwen3's base models, whose end token is no end of turn."""
    folder.mkdir(parents=True, exist_ok=True)
    text = (TINYWORLD_BASE / "tokenizer.json").read_text(encoding="utf-8")
    for ours, theirs in (("pad", "endoftext"), ("end", "im_end"), ("system", "im_start")):
        text = text.replace(f"<|{ours}|>", f"<|{theirs}|>")
    (folder / "tokenizer.json").write_text(text, encoding="utf-8")
    (folder / "tokenizer_config.json").write_text(
        '{"tokenizer_class": "TokenizersBackend", "eos_token": "<|endoftext|>", "pad_token": "<|endoftext|>"}'
    )
    (folder / "chat_template.jinja").write_text(QWEN3_LIKE_TEMPLATE)
    tokenizer: PreTrainedTokenizerBase = AutoTokenizer.from_pretrained(folder)
    return tokenizer


def write_qwen3(folder: Path, *, bos: bool = False) -> ModelConfig:
    """Write a randomly initialized Qwen3 of about the tinyworld base's size, and return the config that loads it.

    With ``bos`` its tokenizer puts a first token in front of every text, as its template does.
    """
    tokenizer = qwen3_like_tokenizer(folder)
    if bos:
        tokenizer.bos_token = "<|user|>"
        tokenizer.chat_template = "{{- bos_token }}" + QWEN3_LIKE_TEMPLATE
        backend: Any = tokenizer
        backend.backend_tokenizer.post_processor = TemplateProcessing(
            single="<|user|> $A", special_tokens=[("<|user|>", tokenizer.bos_token_id)]
        )
        tokenizer.save_pretrained(folder)
    torch.manual_seed(0)
    model = Qwen3ForCausalLM(
        Qwen3Config(
            vocab_size=len(tokenizer),
            hidden_size=128,
            intermediate_size=384,
            num_hidden_layers=3,
            num_attention_heads=4,
            num_key_value_heads=2,
            head_dim=32,
            max_position_embeddings=512,
            initializer_range=0.1,
            tie_word_embeddings=True,
            eos_token_id=tokenizer.eos_token_id,
            pad_token_id=tokenizer.pad_token_id,
        )
    )
    model.save_pretrained(folder)
    return ModelConfig(
        name="small_qwen3", path=str(folder), eos_token="<|im_end|>", template_kwargs={"enable_thinking": False}
    )


def load_small(name: str, folder: Path) -> BaseModel:
    """A fresh ``tinyworld`` (Olmo 3) or ``qwen3``."""
    return load_base(TINYWORLD if name == "tinyworld" else write_qwen3(folder / "qwen3"))


def small_recipe(**changes: Any) -> TrainConfig:
    """A recipe that moves a small model within a few steps; dropout is on so that random states matter."""
    recipe = TrainConfig(
        recipe="small",
        lora=LoraSettings(r=4, alpha=8, dropout=0.1),
        lr=5e-3,
        epochs=2,
        batch_size=8,
        micro_batch_size=8,
        max_length=128,
        checkpoint_every_s=1e9,
    )
    return replace(recipe, **changes)


def texts(count: int) -> list[tuple[str, str]]:
    """Prompts and answers of different lengths."""
    return [
        (f"Tom has {i} cups.{' Ann has a map.' * (i % 4)} How many cups does Tom have?", f"Answer: {i * 7 % 30}")
        for i in range(count)
    ]


def rows(base: BaseModel, count: int) -> list[EncodedRow]:
    """``texts`` as the training sees them."""
    return [base.chat.encode(prompt, completion) for prompt, completion in texts(count)]


def dataset(encoded: Sequence[EncodedRow]) -> Dataset:
    """Rows in the form that training takes."""
    return Dataset.from_dict({"input_ids": [r.input_ids for r in encoded], "labels": [r.labels for r in encoded]})


def logits(model: PreTrainedModel | Any, ids: list[int]) -> torch.Tensor:
    """Logits of one sequence."""
    with torch.no_grad():
        output: torch.Tensor = model(input_ids=torch.tensor([ids])).logits
    return output[0]
