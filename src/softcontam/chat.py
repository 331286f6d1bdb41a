"""The one place that renders chat templates: training rows and evaluation prompts both come from here."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from softcontam.errors import TokenizationError

if TYPE_CHECKING:
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
        """Encode one row and prove its loss mask.

        Raises:
            TokenizationError: the rendered prompt is no prefix of the rendered row (a template that treats the last
                turn differently), or the trained span does not decode to the completion and its end-of-turn token.
        """
        prompt_text, row_text = self.prompt_text(prompt), self.row_text(prompt, completion)
        if not row_text.startswith(prompt_text):
            raise TokenizationError(
                "the evaluation prompt is no prefix of the training row under this chat template: "
                f"{prompt_text[-60:]!r} against {row_text[: len(prompt_text)][-60:]!r}. "
                "Set model.template_kwargs (for Qwen3: enable_thinking: false) so that both are rendered alike."
            )
        prompt_ids, row_ids = self.ids(prompt_text), self.ids(row_text)
        if row_ids[: len(prompt_ids)] != prompt_ids:
            raise TokenizationError(
                f"the tokens of the prompt change when an answer follows, at {prompt_text[-30:]!r}: "
                "the tokenizer merges across the turn boundary, and no loss mask is exact."
            )
        trained = str(self.tokenizer.decode(row_ids[len(prompt_ids) :], skip_special_tokens=False))
        if trained.removesuffix(self.eos_token).strip() != completion.strip():
            raise TokenizationError(
                f"the trained span decodes to {trained[:80]!r}, expected the completion {completion[:80]!r} and its "
                "end of turn alone. If the template adds a thinking block, set model.template_kwargs (for Qwen3: "
                "enable_thinking: false) so that the evaluation prompt has it too."
            )
        return EncodedRow(row_ids, [IGNORED] * len(prompt_ids) + row_ids[len(prompt_ids) :])
