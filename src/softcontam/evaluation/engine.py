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

from softcontam.errors import TokenizationError
from softcontam.models import BaseModel

FINISHED = "\ue000"
"""Private-use character put after a decoded output that ended with an end-of-turn token; lm-eval hands on text only."""


class Engine(HFLM):  # type: ignore[misc]
    """HFLM with a fixed batch size, our chat rendering, and a record of which outputs came to an end."""

    def __init__(self, base: BaseModel, model: Any, batch_size: int) -> None:
        super().__init__(pretrained=model, tokenizer=base.tokenizer, batch_size=batch_size, add_bos_token=False)
        self.chat = base.chat
        stops = base.model.generation_config.eos_token_id
        self.end_ids = {base.tokenizer.convert_tokens_to_ids(base.chat.eos_token), base.tokenizer.eos_token_id}
        self.end_ids.update(stops if isinstance(stops, list) else [stops])

    def tok_decode(self, tokens: Any, skip_special_tokens: bool = True) -> str:
        """Decoded text up to the first end-of-turn token, marked when there is one."""
        if isinstance(tokens, list):
            end = next((at for at, token in enumerate(tokens) if token in self.end_ids), None)
            if end is not None:
                return str(super().tok_decode(tokens[:end], skip_special_tokens)) + FINISHED
        return str(super().tok_decode(tokens, skip_special_tokens))

    def _refuse_truncation(self, prompt: str, tokens: int, more: int, what: str) -> None:
        """lm-eval would cut the beginning of the prompt off and go on."""
        if tokens + more > self.max_length:
            raise TokenizationError(
                f"the prompt {prompt[:60]!r} has {tokens} tokens, which with {more} of {what} exceeds the model's "
                f"{self.max_length}. Lower eval.max_new_tokens, or leave such items out (params of the benchmark)."
            )

    def generate(
        self, prompts: Sequence[str], max_new_tokens: int, temperature: float, top_p: float = 1.0, top_k: int = 0
    ) -> list[tuple[str, bool]]:
        """One output per prompt, and whether it ended by itself rather than at ``max_new_tokens``.

        ``top_p`` 1 and ``top_k`` 0 narrow nothing; both have no meaning at temperature 0, which is greedy.
        """
        settings: dict[str, Any] = {"max_gen_toks": max_new_tokens, "until": [self.chat.eos_token]}
        if temperature > 0:
            settings |= {"do_sample": True, "temperature": temperature, "top_k": top_k, "top_p": top_p, "min_p": None}
        else:
            settings |= {"do_sample": False}
        settings |= {"repetition_penalty": 1.0, "no_repeat_ngram_size": 0}
        for prompt in prompts:
            tokens = len(self.chat.ids(self.chat.prompt_text(prompt)))
            self._refuse_truncation(prompt, tokens, max_new_tokens, "eval.max_new_tokens")
        requests = [
            Instance("generate_until", {}, (self.chat.prompt_text(prompt), settings), index)
            for index, prompt in enumerate(prompts)
        ]
        outputs = self.generate_until(requests, disable_tqdm=True)
        return [(text.removesuffix(FINISHED), text.endswith(FINISHED)) for text in outputs]

    def gold_logprobs(self, pairs: Sequence[tuple[str, str]]) -> list[tuple[float, int]]:
        """Log-probability (nats, summed) and number of tokens of each answer after its prompt, without end of turn."""
        requests = []
        for prompt, answer in pairs:
            row = self.chat.encode(prompt, answer)
            begin = len(row.input_ids) - row.trained_tokens
            gold = row.labels[begin:-1]
            self._refuse_truncation(prompt, begin, len(gold), "the gold answer")
            # Ids, not text: from text, lm-eval would count blanks at the end of the prompt to the answer.
            requests.append(((prompt, answer), row.input_ids[:begin], gold))
        scored = self._loglikelihood_tokens(requests, disable_tqdm=True)
        return [(logprob, len(gold)) for (logprob, _), (_, _, gold) in zip(scored, requests, strict=True)]


@contextlib.contextmanager
def generators_kept(seed: int) -> Iterator[None]:
    """Seed every global generator for sampling, and put them back afterwards."""
    kept = (random.getstate(), np.random.get_state(), torch.get_rng_state())
    kept_cuda = torch.cuda.get_rng_state_all() if torch.cuda.is_available() else []
    random.seed(seed)
    np.random.seed(seed)
    torch.manual_seed(seed)
    try:
        yield
    finally:
        random.setstate(kept[0])
        np.random.set_state(kept[1])
        torch.set_rng_state(kept[2])
        if kept_cuda:
            torch.cuda.set_rng_state_all(kept_cuda)
