"""Question only: the text of a duplicate's question, without its answer.

The question is what is trained on, under a prompt that says nothing of its content. What is left of an effect here
needs no answer to have been seen. Answers are trained on nowhere in these rows, so trained tokens and response style
differ from other arms by nature.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

from softcontam.duplicates.bank import BankRow

REQUEST = "State a task that one could set."
"""The prompt of every row."""


def rows(base: Sequence[BankRow]) -> list[BankRow]:
    """Each row with its prompt as the completion."""
    return [
        replace(
            row,
            row_id=f"question_only/{row.row_id}",
            kind="question_only",
            prompt=REQUEST,
            completion=row.prompt,
            response_style="question",
        )
        for row in base
    ]
