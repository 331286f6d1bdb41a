"""A chat with one token for each byte, which no change to tinyworld or to a model bears on."""

from __future__ import annotations

from functools import lru_cache
from typing import Any

from tokenizers import Tokenizer
from tokenizers.decoders import ByteLevel as ByteLevelDecoder
from tokenizers.models import BPE
from tokenizers.pre_tokenizers import ByteLevel
from transformers import PreTrainedTokenizerFast

from softcontam.chat import Chat


@lru_cache(maxsize=1)
def byte_chat() -> Chat:
    """One token per byte, special tokens around the turns."""
    tokenizer = Tokenizer(BPE({letter: i for i, letter in enumerate(sorted(ByteLevel.alphabet()))}, []))
    tokenizer.pre_tokenizer, tokenizer.decoder = ByteLevel(add_prefix_space=False), ByteLevelDecoder()
    tokenizer.add_special_tokens(["<|user|>", "<|assistant|>", "<|end|>"])
    fast: Any = PreTrainedTokenizerFast(  # type: ignore[no-untyped-call]
        tokenizer_object=tokenizer, eos_token="<|end|>", pad_token="<|end|>"
    )
    fast.chat_template = (
        "{% for m in messages %}<|{{ m.role }}|>{{ m.content }}{% if m.role == 'assistant' %}<|end|>{% endif %}"
        "{% endfor %}{% if add_generation_prompt %}<|assistant|>{% endif %}"
    )
    return Chat(fast, {})
