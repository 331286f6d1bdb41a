"""The one place that renders chat templates: training rows and evaluation prompts both come from here."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from softcontam.errors import TokenizationError

if TYPE_CHECKING:
    from tokenizers import Encoding
    from transformers import PreTrainedTokenizerBase

IGNORED = -100
"""Label of a token that carries no loss."""


@dataclass(frozen=True)
class EncodedRow:
    """Token ids of one row and its labels, equally long; labels are :data:`IGNORED` on the prompt."""

    input_ids: list[int]
    labels: list[int]

    @property
    def trained_tokens(self) -> int:
        """Number of tokens with loss."""
        return sum(label != IGNORED for label in self.labels)


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

    def prompt_text(self, prompt: str) -> str:
        """The user turn, rendered up to where the assistant begins."""
        messages = [{"role": "user", "content": prompt}]
        return str(
            self.tokenizer.apply_chat_template(
                messages, tokenize=False, add_generation_prompt=True, **self.template_kwargs
            )
        )

    def row_text(self, prompt: str, completion: str) -> str:
        """Both turns, rendered and cut after the end-of-turn token of the answer."""
        messages = [{"role": "user", "content": prompt}, {"role": "assistant", "content": completion}]
        text = str(self.tokenizer.apply_chat_template(messages, tokenize=False, **self.template_kwargs))
        end = text.rfind(self.eos_token)
        if end < 0:
            raise TokenizationError(
                f"the chat template puts no {self.eos_token!r} after the assistant turn, so the model would never "
                "learn to stop. Set model.eos_token to the template's end-of-turn token."
            )
        return text[: end + len(self.eos_token)]

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
        texts, borders = [], []
        for prompt, completion in rows:
            prompt_text, row_text = self.prompt_text(prompt), self.row_text(prompt, completion)
            if not row_text.startswith(prompt_text):
                raise TokenizationError(
                    "the evaluation prompt is no prefix of the training row under this chat template: "
                    f"{prompt_text[-60:]!r} against {row_text[: len(prompt_text)][-60:]!r}. "
                    "Set model.template_kwargs (for Qwen3: enable_thinking: false) so that both are rendered alike."
                )
            trained = row_text[len(prompt_text) :]
            if trained.removesuffix(self.eos_token).strip() != completion.strip():
                raise TokenizationError(
                    f"the trained span is {trained[:80]!r}, expected the completion {completion[:80]!r} and its "
                    "end of turn alone. If the template adds a thinking block, set model.template_kwargs (for Qwen3: "
                    "enable_thinking: false) so that the evaluation prompt has it too."
                )
            texts.append(row_text)
            borders.append(len(prompt_text))
        return [self._masked(*pair) for pair in zip(texts, borders, self._tokenized(texts), strict=True)]

    def fit(self, rows: Sequence[tuple[str, str]], max_length: int) -> list[bool]:
        """Whether each (prompt, completion) row has at most ``max_length`` tokens.

        A token stands for at least one byte of UTF-8 where the tokenizer changes no text beforehand, so that short rows
        need not be tokenized to know.
        """
        known = len(self.ids(self.row_text("x", "x"))) if self.tokenizer.backend_tokenizer.normalizer is None else None
        sizes = [len(prompt.encode()) + len(completion.encode()) for prompt, completion in rows]
        fits = [known is not None and known + size <= max_length for size in sizes]
        unknown = [place for place, fit in enumerate(fits) if not fit]
        tokenized = self._tokenized([self.row_text(*rows[place]) for place in unknown])
        for place, encoding in zip(unknown, tokenized, strict=True):
            fits[place] = len(encoding) <= max_length
        return fits

    def _tokenized(self, texts: Sequence[str]) -> Sequence[Encoding]:
        """Tokens of rendered texts, with the characters that each stands for."""
        if not texts:
            return []
        encodings: Sequence[Encoding] | None = self.tokenizer(list(texts), add_special_tokens=False).encodings
        if encodings is None:
            raise TokenizationError(
                f"the tokenizer of {self.tokenizer.name_or_path} is a slow one, which cannot say where a token begins. "
                "Use a fast tokenizer (tokenizer.json)."
            )
        return encodings

    def _masked(self, text: str, border: int, encoding: Encoding) -> EncodedRow:
        """The row of one tokenized text, its loss beginning at character ``border``."""
        first = encoding.char_to_token(border)
        if first is None or (encoding.token_to_chars(first) or (None,))[0] != border:
            raise TokenizationError(
                f"the tokens of the prompt change when an answer follows, at {text[max(0, border - 30) : border]!r}: "
                "the tokenizer merges across the turn boundary, and no loss mask is exact."
            )
        ids: list[int] = encoding.ids
        if self._unknown is not None and self._unknown in ids[first:]:
            span = encoding.token_to_chars(ids.index(self._unknown, first))
            lost = text[slice(*span)] if span else ""
            raise TokenizationError(
                f"the tokenizer has no token for {lost!r} in the completion {text[border : border + 80]!r}: "
                "the model would be trained to write an unknown token. Drop the row, or use another tokenizer."
            )
        return EncodedRow(ids, [IGNORED] * first + ids[first:])
