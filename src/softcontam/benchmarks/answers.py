"""Response styles and strict parsing of short answers.

``answer``: the reply is the answer and nothing else. ``cot``: the model may think first; the reply's last line is
``Answer: ...``. What does not follow its style has no answer: it is counted as unparsable and is wrong, never guessed.
The usual traps are an output such as "A detective ..." whose article looks like the letter A, an output that names
several letters, "none of the above", and an output cut off at the token limit.
"""

from __future__ import annotations

import re
from collections.abc import Sequence

from softcontam.config import BenchmarkConfig, EvalBenchmark
from softcontam.errors import ConfigError

STYLES = ("answer", "cot")
"""Response styles."""

_FINAL = re.compile(r"^[ \t]*(?:\*\*)?answer(?:\*\*)?[ \t]*:[ \t]*(?:\*\*)?[ \t]*(.*?)[ \t]*$", re.IGNORECASE)
_CHOICE = re.compile(r"(?:\(([A-Za-z])\)|([A-Za-z])[.:)]?)(?:\s+(.*))?", re.DOTALL)


def check_style(config: BenchmarkConfig | EvalBenchmark, known: Sequence[str] = STYLES) -> None:
    """Refuse a response style that the benchmark does not have.

    Raises:
        ConfigError: naming the styles it has.
    """
    if config.response_style not in known:
        raise ConfigError(
            f"benchmark {config.name}: response_style={config.response_style} is unknown. "
            f"Choose one of: {', '.join(known)}."
        )


def check_params(config: BenchmarkConfig | EvalBenchmark, known: Sequence[str]) -> None:
    """Refuse parameters that would be silently ignored.

    Raises:
        ConfigError: naming the parameter and the known ones.
    """
    unknown = sorted(set(config.params) - set(known))
    if unknown:
        listed = ", ".join(known) or "none"
        raise ConfigError(f"benchmark {config.name}: params.{unknown[0]} is unknown. Known: {listed}.")


def final_answer(output: str) -> str | None:
    """What stands after ``Answer:`` in the last line that is not blank; None where that line is no such line.

    Bold marks around the word or the whole line are allowed. An earlier ``Answer:`` line with something else in it
    makes the output ambiguous, which is None too.
    """
    lines = [line for line in output.splitlines() if line.strip()]
    found = [match[1].removesuffix("**").strip() for line in lines if (match := _FINAL.match(line))]
    if not found or not _FINAL.match(lines[-1]) or not found[-1]:
        return None
    return found[-1] if len(set(found)) == 1 else None


def answer_text(output: str, style: str) -> str | None:
    """The part of an output that has to be the answer: all of it, or what :func:`final_answer` gives."""
    return (output.strip() or None) if style == "answer" else final_answer(output)


def gold_text(answer: str, style: str, reasoning: str = "") -> str:
    """The gold reply: the answer alone, or the reasoning (where the data set has any) and the final line."""
    if style == "answer":
        return answer
    return f"{reasoning.strip()}\n\nAnswer: {answer}" if reasoning.strip() else f"Answer: {answer}"


def letter(index: int) -> str:
    """``A`` for the first choice, and so on."""
    return chr(ord("A") + index)


def choice_prompt(text: str, question: str, choices: Sequence[str], style: str) -> str:
    """The user turn for a question with choices."""
    listed = "\n".join(f"{letter(index)}. {choice}" for index, choice in enumerate(choices))
    wanted = "the letter of the right choice, a full stop and its text"
    if style == "answer":
        ask = f"Reply with {wanted}, and nothing else."
    else:
        ask = f"Think step by step, then end with a line that holds `Answer: ` and {wanted}."
    return "\n\n".join(part for part in (text.strip(), question.strip(), listed, ask) if part)


def choice_target(choices: Sequence[str], index: int, style: str, reasoning: str = "") -> str:
    """The gold reply to :func:`choice_prompt`."""
    return gold_text(f"{letter(index)}. {choices[index]}", style, reasoning)


def parse_choice(output: str, choices: Sequence[str], style: str) -> str | None:
    """The letter that an output chooses, or None.

    Taken: a letter of a choice alone (``B``, ``(B)``, ``B.``, ``B)``), the letter and its own text, or the text alone.
    Case, blanks and a full stop at the end do not matter. Anything else, a letter with another choice's text
    included, is no answer.
    """
    text = answer_text(output, style)
    if text is None:
        return None
    plain = [plain_text(choice) for choice in choices]
    by_text = [index for index, choice in enumerate(plain) if choice == plain_text(text)]
    readings = set(by_text if len(by_text) == 1 else [])
    found = _CHOICE.fullmatch(text)
    if found is not None:
        index = ord((found[1] or found[2]).upper()) - ord("A")
        if 0 <= index < len(choices) and plain_text(found[3] or "") in ("", plain[index]):
            readings.add(index)
    return letter(readings.pop()) if len(readings) == 1 else None


def plain_text(text: str) -> str:
    """A text as it is compared: without case, doubled blanks and closing full stop."""
    return " ".join(text.casefold().split()).removesuffix(".").rstrip()
