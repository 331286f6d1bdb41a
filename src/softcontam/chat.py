"""The one place that renders chat templates: training rows and evaluation prompts both come from here."""

from __future__ import annotations

import threading
from array import array
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from softcontam.errors import TokenizationError

if TYPE_CHECKING:
    from tokenizers import Encoding
    from transformers import PreTrainedTokenizerBase

IGNORED = -100
"""Label of a token that carries no loss."""

BATCH = 1_000
"""Rows that are tokenized together at most: what a tokenizer returns takes ten times the memory of an encoded row."""


@dataclass(frozen=True)
class EncodedRow:
    """One row in tokens: ``ids`` (32 bits each, so that many rows fit into memory), with loss from ``first`` on."""

    ids: array[int]
    first: int

    @property
    def input_ids(self) -> list[int]:
        """The token ids."""
        return self.ids.tolist()

    @property
    def labels(self) -> list[int]:
        """The token ids again, with :data:`IGNORED` on the prompt."""
        return [IGNORED] * self.first + self.ids[self.first :].tolist()

    @property
    def tokens(self) -> int:
        """Number of tokens."""
        return len(self.ids)

    @property
    def trained_tokens(self) -> int:
        """Number of tokens with loss."""
        return len(self.ids) - self.first


class Chat:
    """Renders conversations with one tokenizer, one set of template settings and one end-of-turn token."""

    def __init__(
        self, tokenizer: PreTrainedTokenizerBase, template_kwargs: dict[str, Any], eos_token: str | None = None
    ) -> None:
        if not tokenizer.chat_template:
            raise TokenizationError(
                f"the tokenizer of {tokenizer.name_or_path} has no chat template. "
                "Use an instruct model, or put a chat_template.jinja beside the weights."
            )
        self.tokenizer = tokenizer
        self.template_kwargs = template_kwargs
        self.eos_token = eos_token or str(tokenizer.eos_token)
        unknown = tokenizer.unk_token_id
        self._unknown = None if unknown == tokenizer.eos_token_id else unknown
        self._lock = threading.Lock()

    def prompt_text(self, prompt: str) -> str:
        """The user turn, rendered up to where the assistant begins."""
        return self._prompt_texts([prompt])[0]

    def row_text(self, prompt: str, completion: str) -> str:
        """Both turns, rendered and cut after the end-of-turn token of the answer."""
        return self._row_texts([(prompt, completion)])[0]

    def ids(self, text: str) -> list[int]:
        """Token ids of rendered text; the template has already placed every special token."""
        ids: list[int] = self.tokenizer(text, add_special_tokens=False)["input_ids"]
        return ids

    def encode(self, prompt: str, completion: str) -> EncodedRow:
        """Encode one row and prove its loss mask; see :meth:`encode_many`."""
        return self.encode_many([(prompt, completion)])[0]

    def encode_many(self, rows: Sequence[tuple[str, str]]) -> list[EncodedRow]:
        """Encode (prompt, completion) rows together and prove the loss mask of each.

        A mask is proved by characters: the rendered prompt is a prefix of the rendered row, what follows it is the
        completion and its end-of-turn token alone, and one token begins exactly where the prompt ends.

        Raises:
            TokenizationError: the rendered prompt is no prefix of the rendered row (a template that treats the last
                turn differently), the trained span holds something else, or a token reaches over the border.
        """
        return [row for row in self._encoded(rows, None) if row is not None]

    def encode_fitting(self, rows: Sequence[tuple[str, str]], max_length: int) -> list[EncodedRow | None]:
        """:meth:`encode_many`, with None for rows of more than ``max_length`` tokens; their masks are not proved.

        Threads may call it at once: most of the time goes into tokenizing, which others need not wait for.
        """
        return list(self._encoded(rows, max_length))

    def _encoded(self, rows: Sequence[tuple[str, str]], max_length: int | None) -> Iterator[EncodedRow | None]:
        for start in range(0, len(rows), BATCH):
            yield from self._encoded_together(rows[start : start + BATCH], max_length)

    def _encoded_together(self, rows: Sequence[tuple[str, str]], max_length: int | None) -> Iterator[EncodedRow | None]:
        prompts, texts = self._prompt_texts([prompt for prompt, _ in rows]), self._row_texts(rows)
        encodings = self._tokenized(texts)
        for (_, completion), prompt, text, encoding in zip(rows, prompts, texts, encodings, strict=True):
            fits = max_length is None or len(encoding) <= max_length
            yield self._proved(completion, prompt, text, encoding) if fits else None

    def _prompt_texts(self, prompts: Sequence[str]) -> list[str]:
        return self._rendered([[{"role": "user", "content": prompt}] for prompt in prompts], True)

    def _row_texts(self, rows: Sequence[tuple[str, str]]) -> list[str]:
        chats = [
            [{"role": "user", "content": prompt}, {"role": "assistant", "content": completion}]
            for prompt, completion in rows
        ]
        texts = self._rendered(chats, False)
        ends = [text.rfind(self.eos_token) for text in texts]
        if min(ends, default=0) < 0:
            raise TokenizationError(
                f"the chat template puts no {self.eos_token!r} after the assistant turn, so the model would never "
                "learn to stop. Set model.eos_token to the template's end-of-turn token."
            )
        return [text[: end + len(self.eos_token)] for text, end in zip(texts, ends, strict=True)]

    def _rendered(self, chats: list[list[dict[str, str]]], add_generation_prompt: bool) -> list[str]:
        if not chats:
            return []
        texts: Any = self.tokenizer.apply_chat_template(
            chats, tokenize=False, add_generation_prompt=add_generation_prompt, **self.template_kwargs
        )
        return list(texts)

    def _tokenized(self, texts: Sequence[str]) -> Sequence[Encoding]:
        """Tokens of rendered texts, with the characters that each stands for.

        The backend is called directly, as the tokenizer itself copies every field of every encoding into lists.
        """
        backend: Any = getattr(self.tokenizer, "backend_tokenizer", None)
        if backend is None:
            raise TokenizationError(
                f"the tokenizer of {self.tokenizer.name_or_path} is a slow one, which cannot say where a token begins. "
                "Use a fast tokenizer (tokenizer.json)."
            )
        with self._lock:  # an evaluation may have left padding on
            if backend.padding is not None:
                backend.no_padding()
            if backend.truncation is not None:
                backend.no_truncation()
        encodings: Sequence[Encoding] = backend.encode_batch(list(texts), add_special_tokens=False)
        return encodings

    def _proved(self, completion: str, prompt: str, text: str, encoding: Encoding) -> EncodedRow:
        """The row of one rendered and tokenized text, once it is certain that its loss begins where ``prompt`` ends."""
        if not text.startswith(prompt):
            raise TokenizationError(
                "the evaluation prompt is no prefix of the training row under this chat template: "
                f"{prompt[-60:]!r} against {text[: len(prompt)][-60:]!r}. "
                "Set model.template_kwargs (for Qwen3: enable_thinking: false) so that both are rendered alike."
            )
        border = len(prompt)
        trained = text[border:]
        if trained.removesuffix(self.eos_token).strip() != completion.strip():
            raise TokenizationError(
                f"the trained span is {trained[:80]!r}, expected the completion {completion[:80]!r} and its "
                "end of turn alone. If the template adds a thinking block, set model.template_kwargs (for Qwen3: "
                "enable_thinking: false) so that the evaluation prompt has it too."
            )
        first = encoding.char_to_token(border)
        if first is None or (encoding.token_to_chars(first) or (None,))[0] != border:
            raise TokenizationError(
                f"the tokens of the prompt change when an answer follows, at {text[max(0, border - 30) : border]!r}: "
                "the tokenizer merges across the turn boundary, and no loss mask is exact."
            )
        ids = array("i", encoding.ids)
        if self._unknown is not None and self._unknown in ids[first:]:
            span = encoding.token_to_chars(ids.index(self._unknown, first))
            lost = text[slice(*span)] if span else ""
            raise TokenizationError(
                f"the tokenizer has no token for {lost!r} in the completion {trained[:80]!r}: "
                "the model would be trained to write an unknown token. Drop the row, or use another tokenizer."
            )
        return EncodedRow(ids, first)
