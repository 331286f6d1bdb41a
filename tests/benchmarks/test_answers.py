"""What counts as an answer, and above all what does not."""

import pytest

from softcontam.benchmarks.answers import check_style, choice_prompt, choice_target, final_answer, parse_choice
from softcontam.config import EvalBenchmark
from softcontam.errors import ConfigError

NAMES = ("Mackenzie", "Ana", "A. Nother")


@pytest.mark.parametrize(
    ("output", "letter"),
    [
        ("A", "A"),
        (" b \n", "B"),
        ("(B)", "B"),
        ("B.", "B"),
        ("B)", "B"),
        ("B: Ana", "B"),
        ("A. Mackenzie", "A"),
        ("a. mackenzie.", "A"),
        ("Mackenzie", "A"),
        ("C. A. Nother", "C"),
        ("A. Nother", "C"),
    ],
)
def test_a_letter_its_text_or_both_choose(output: str, letter: str) -> None:
    assert parse_choice(output, NAMES, "answer") == letter


@pytest.mark.parametrize(
    "output",
    [
        "",
        "   ",
        "A detective would say Mackenzie",
        "A or B",
        "A, B",
        "AB",
        "A\nB",
        "A. Mackenzie\nB. Ana",
        "None of the above",
        "D",
        "D. Nobody",
        "A. Ana",
        "B. Mackenzie",
        "A. Macken",
        "I",
        "The answer is A",
        "Answer: A",
        "Mackenzie or Ana",
        "1",
        "(A",
        "?",
    ],
)
def test_what_is_no_choice_is_not_guessed(output: str) -> None:
    assert parse_choice(output, NAMES, "answer") is None


@pytest.mark.parametrize(
    "output",
    [
        "Answer: B",
        "She had a motive.\n\nAnswer: B. Ana",
        "A. Mackenzie is the obvious one.\n**Answer:** B. Ana\n\n",
        "**Answer: B**",
        "x\nanswer:B",
        "Answer: B\nso\nAnswer: B",
    ],
)
def test_a_chain_of_thought_ends_with_its_answer(output: str) -> None:
    assert parse_choice(output, NAMES, "cot") == "B"


@pytest.mark.parametrize(
    "output",
    [
        "",
        "B",
        "B. Ana",
        "Ana did it, because",
        "Answer:",
        "Answer: \nB",
        "Answer: B\nor rather the other one",
        "Answer: A\nwait\nAnswer: B",
        "Answer: A or B",
        "Answer: A detective",
        "Answer: none of the above",
        "The answer: B is wrong",
        "Answer: B. An",
    ],
)
def test_a_chain_of_thought_without_one_final_answer_has_none(output: str) -> None:
    assert parse_choice(output, NAMES, "cot") is None


def test_a_letter_that_is_also_another_choices_text_is_ambiguous() -> None:
    assert parse_choice("B", ("B", "C"), "answer") is None
    assert parse_choice("A. B", ("B", "C"), "answer") == "A"


def test_the_gold_reply_of_each_style_is_parsed_back_and_the_prompt_names_every_choice() -> None:
    for style in ("answer", "cot"):
        prompt = choice_prompt("A story.", "Who?", NAMES, style)
        for index, name in enumerate(NAMES):
            assert f"{'ABC'[index]}. {name}" in prompt
            assert parse_choice(choice_target(NAMES, index, style), NAMES, style) == "ABC"[index]
    assert parse_choice(choice_target(NAMES, 1, "cot", "It rained.\nAna was in."), NAMES, "cot") == "B"


def test_numbers_are_left_as_they_stand_in_the_final_line() -> None:
    assert final_answer("so 3 + 4\nAnswer: 7") == "7"
    assert final_answer("Answer: 7\nAnswer: 8") is None


def test_a_style_that_a_benchmark_lacks_is_refused_with_those_it_has() -> None:
    with pytest.raises(ConfigError, match="response_style=loud is unknown. Choose one of: answer, cot"):
        check_style(EvalBenchmark(name="x", module="x", response_style="loud"))
