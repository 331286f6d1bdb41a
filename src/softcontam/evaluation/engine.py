"""lm-eval's HFLM around the live model: the one engine that every arm of a comparison is evaluated in."""

from __future__ import annotations

import contextlib
import random
from collections.abc import Iterator, Sequence
from typing import Any

import numpy as np
import torch
from lm_eval.api.instance import Instance
from lm_eval.models.huggingface import HFLM

from softcontam.models import BaseModel

_FINISHED = "\ue000"
"""Private-use character put after a decoded output that ended with an end-of-turn token; lm-eval hands on text only."""


class Engine(HFLM):  # type: ignore[misc]
    """HFLM with a fixed batch size, our chat rendering, and a record of which outputs came to an end."""

    def __init__(self, base: BaseModel, model: Any, batch_size: int) -> None:
        super().__init__(pretrained=model, tokenizer=base.tokenizer, batch_size=batch_size, add_bos_token=False)
        self.chat = base.chat
        self.end_ids = {base.tokenizer.convert_tokens_to_ids(base.chat.eos_token), base.tokenizer.eos_token_id}

    def tok_decode(self, tokens: Any, skip_special_tokens: bool = True) -> str:
        """Decoded text, marked when it holds an end-of-turn token."""
        text: str = super().tok_decode(tokens, skip_special_tokens)
        if isinstance(tokens, list) and not self.end_ids.isdisjoint(tokens):
            return text + _FINISHED
        return text

    def generate(self, prompts: Sequence[str], max_new_tokens: int, temperature: float) -> list[tuple[str, bool]]:
        """One output per prompt, and whether it ended by itself rather than at ``max_new_tokens``."""
        settings: dict[str, Any] = {"max_gen_toks": max_new_tokens, "until": [self.chat.eos_token]}
        settings |= {"do_sample": True, "temperature": temperature} if temperature > 0 else {"do_sample": False}
        requests = [
            Instance("generate_until", {}, (self.chat.prompt_text(prompt), settings), index)
            for index, prompt in enumerate(prompts)
        ]
        outputs = self.generate_until(requests, disable_tqdm=True)
        return [(text.removesuffix(_FINISHED), text.endswith(_FINISHED)) for text in outputs]

    def gold_logprobs(self, pairs: Sequence[tuple[str, str]]) -> list[tuple[float, int]]:
        """Log-probability (nats, summed) and number of tokens of each answer after its prompt, without end of turn."""
        requests = []
        counts = []
        for index, (prompt, answer) in enumerate(pairs):
            context = self.chat.prompt_text(prompt)
            requests.append(Instance("loglikelihood", {}, (context, answer), index))
            counts.append(len(self.chat.ids(context + answer)) - len(self.chat.ids(context)))
        scored = self.loglikelihood(requests, disable_tqdm=True)
        return [(logprob, count) for (logprob, _), count in zip(scored, counts, strict=True)]


@contextlib.contextmanager
def generators_kept(seed: int) -> Iterator[None]:
    """Seed every global generator for sampling, and put them back afterwards."""
    kept = (random.getstate(), np.random.get_state(), torch.get_rng_state())
    random.seed(seed)
    np.random.seed(seed)
    torch.manual_seed(seed)
    try:
        yield
    finally:
        random.setstate(kept[0])
        np.random.set_state(kept[1])
        torch.set_rng_state(kept[2])
