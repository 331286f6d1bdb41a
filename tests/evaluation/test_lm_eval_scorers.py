"""The same outputs judged by our parsers and by lm-eval's own filters and metrics: where they differ, and why.

lm-eval's tasks are loaded with their own yaml on the local data. As each wants the answer marked in its own way, a
comparison is made like for like: the output's ``Answer:`` becomes the task's mark before the task judges it.
"""

from __future__ import annotations

import re
from collections.abc import Callable
from pathlib import Path
from typing import Any

import datasets
import pytest

from softcontam.benchmarks import Benchmark, Item, load_benchmark
from softcontam.benchmarks.answers import choice_target, parse_choice
from softcontam.benchmarks.lm_eval_task import LmEvalTask, _manager, verdict
from softcontam.config import BenchmarkConfig, EvalBenchmark

COT = {
    "gold reply": "{r}\n\nAnswer: {g}",
    "thousands commas": "{r}\nAnswer: {c}",
    "dollar": "{r}\nAnswer: ${g}",
    "dollar and blank": "{r}\nAnswer: $ {g}",
    "dollar behind": "{r}\nAnswer: {g}$",
    "euro": "{r}\nAnswer: €{g}",
    "full stop": "{r}\nAnswer: {g}.",
    "exclamation mark": "{r}\nAnswer: {g}!",
    "decimals": "{r}\nAnswer: {g}.00",
    "one decimal": "{r}\nAnswer: {g}.0",
    "other decimals": "{r}\nAnswer: {g}.5",
    "bold line": "{r}\n**Answer: {g}**",
    "bold number": "{r}\nAnswer: **{g}**",
    "lower case": "{r}\nanswer: {g}",
    "no blank": "{r}\nAnswer:{g}",
    "two blanks": "{r}\nAnswer:  {g}",
    "blank lines behind": "{r}\nAnswer: {g}\n\n",
    "bullet": "{r}\n- Answer: {g}",
    "final answer": "{r}\nFinal answer: {g}",
    "unit": "{r}\nAnswer: {g} dollars",
    "percent": "{r}\nAnswer: {g}%",
    "sum": "{r}\nAnswer: 1 * {g} = {g}",
    "equation": "{r}\nAnswer: x = {g}",
    "sum of a wrong number": "{r}\nAnswer: {g} + 1 = {w}",
    "reason in brackets": "{r}\nAnswer: {g} (that is 1 * {g})",
    "right or wrong": "{r}\nAnswer: {g} or {w}",
    "wrong or right": "{r}\nAnswer: {w} or {g}",
    "right, not wrong": "{r}\nAnswer: {g}, not {w}",
    "about": "{r}\nAnswer: about {g}",
    "fraction": "{r}\nAnswer: {g}/1",
    "half": "{r}\nAnswer: {g}/2",
    "exponent": "{r}\nAnswer: {g}e0",
    "exponent of another": "{r}\nAnswer: {g}e3",
    "brackets": "{r}\nAnswer: ({g})",
    "boxed": "{r}\nAnswer: \\boxed{{{g}}}",
    "leading zero": "{r}\nAnswer: 0{g}",
    "plus": "{r}\nAnswer: +{g}",
    "other sign": "{r}\nAnswer: -{n}",
    "typographic minus": "{r}\nAnswer: \u2212{n}",
    "misplaced comma": "{r}\nAnswer: {g},",
    "comma as decimal point": "{r}\nAnswer: {g},00",
    "words": "{r}\nAnswer: eighteen",
    "no answer": "{r}\nAnswer: none",
    "nothing behind": "{r}\nAnswer:",
    "cut off before the answer": "{r}",
    "cut off in the solution": "First, 2 * {g}",
    "wrong": "{r}\nAnswer: {w}",
    "wrong after a right sum": "So it is {g}.\nAnswer: {w}",
    "answer twice": "{r}\nAnswer: {g}\nAnswer: {g}",
    "right, then wrong": "{r}\nAnswer: {g}\nAnswer: {w}",
    "wrong, then right": "{r}\nAnswer: {w}\nAnswer: {g}",
    "goes on with a check": "{r}\nAnswer: {g}\nCheck: 1 + 1 = 2",
    "goes on with a wrong number": "{r}\nAnswer: {g}\nOr rather {w}",
    "goes on with another problem": "{r}\nAnswer: {g}\n\nQ2: Tom has {w} cups.",
    "in the middle of a line": "{r} Answer: {g}",
    "other wording": "{r}\nThe answer is {g}.",
    "hub mark": "{r}\n#### {g}",
    "empty": "",
}
"""Outputs in the style ``cot`` by name: {r} is the worked solution, {g} the gold number, {c} the same with thousands
commas, {n} without its sign, {w} another number."""

ANSWER = {
    "number": "{g}",
    "with commas": "{c}",
    "with dollar": "${g}",
    "with full stop": "{g}.",
    "with decimals": "{g}.0",
    "with unit": "{g} apples",
    "with percent": "{g}%",
    "hedged": "about {g}",
    "either, right first": "{g} or {w}",
    "either, right last": "{w} or {g}",
    "two lines": "{w}\n{g}",
    "in a sentence": "She has {g} left.",
    "sum instead": "1 * {g} = {g}",
    "solution instead": "{r}",
    "marked": "#### {g}",
    "wrong number": "{w}",
    "word": "eighteen",
    "no output": "",
}
"""Outputs in the style ``answer``."""

ROWS = (0, 40, 146)
"""Test problems that are judged; their gold answers are 18, 8 and 2,125."""

MARKS: dict[str, tuple[str, str, Callable[[str], str]]] = {
    "gsm8k strict-match": ("gsm8k", "strict-match", lambda text: re.sub(r"Answer:\s*", "#### ", text)),
    "gsm8k flexible-extract": ("gsm8k", "flexible-extract", lambda text: text),
    "gsm8k_cot strict-match": (
        "gsm8k_cot",
        "strict-match",
        lambda text: re.sub(r"Answer: *(.*)", r"The answer is \1.", text),
    ),
    "gsm8k_cot flexible-extract": ("gsm8k_cot", "flexible-extract", lambda text: text),
}
"""lm-eval's scorers: task, filter, and how our mark of the answer becomes the task's."""

STARTS_RIGHT = "lm-eval reads the number at the beginning of what follows the mark, whatever stands behind it"
TAKES_LAST = "flexible-extract takes the last number of the whole output"
BY_TEXT = "lm-eval compares texts, we compare values"
ANYWHERE = "lm-eval looks for the mark anywhere, we want it to begin the last line"
FIRST_MARK = "lm-eval takes the first mark, we refuse two different answers"
OWN_MARK = "the mark that the task itself asks for is none to us: our prompt asks for another"
OUR_MARK = "we take the word Answer in any case and with bold around the number"

BEHIND = (
    "exclamation mark",
    "dollar behind",
    "unit",
    "percent",
    "sum of a wrong number",
    "reason in brackets",
    "right or wrong",
    "right, not wrong",
    "fraction",
    "half",
    "exponent",
    "exponent of another",
)
STRICT = {
    **dict.fromkeys(BEHIND, STARTS_RIGHT),
    "misplaced comma": "lm-eval drops all commas",
    "dollar": "lm-eval's strict patterns know no dollar sign",
    **dict.fromkeys(("decimals", "one decimal", "leading zero"), BY_TEXT),
    **dict.fromkeys(("bold number", "lower case"), OUR_MARK),
    **dict.fromkeys(("bullet", "in the middle of a line"), ANYWHERE),
    **dict.fromkeys(("goes on with a check", "goes on with a wrong number", "goes on with another problem"), ANYWHERE),
    "right, then wrong": FIRST_MARK,
}
FLEXIBLE = {
    **dict.fromkeys(
        (
            *("dollar and blank", "dollar behind", "euro", "exclamation mark", "bullet", "final answer", "unit"),
            *("percent", "sum", "equation", "reason in brackets", "wrong or right", "about", "brackets", "boxed"),
            *("plus", "typographic minus", "words", "no answer", "nothing behind", "cut off before the answer"),
            *("cut off in the solution", "wrong, then right", "in the middle of a line", "other wording", "hub mark"),
        ),
        TAKES_LAST,
    ),
    "misplaced comma": "lm-eval drops all commas",
    **dict.fromkeys(("decimals", "one decimal", "leading zero"), BY_TEXT),
}
FLEXIBLE_ANSWER = {
    **dict.fromkeys(
        (
            *("with unit", "with percent", "hedged", "either, right last", "two lines", "in a sentence"),
            *("sum instead", "solution instead", "marked"),
        ),
        TAKES_LAST,
    ),
    "with decimals": BY_TEXT,
}
EXPECTED: dict[tuple[str, str], dict[str, str]] = {
    ("cot", "gsm8k strict-match"): STRICT | {"hub mark": OWN_MARK},
    ("cot", "gsm8k_cot strict-match"): STRICT | {"other wording": OWN_MARK},
    ("cot", "gsm8k flexible-extract"): FLEXIBLE,
    ("cot", "gsm8k_cot flexible-extract"): FLEXIBLE,
    ("answer", "gsm8k flexible-extract"): FLEXIBLE_ANSWER,
    ("answer", "gsm8k_cot flexible-extract"): FLEXIBLE_ANSWER,
}
"""Every output that the two judge differently, with the reason, by style and scorer."""


@pytest.fixture(scope="module")
def ours(data_dir: Path) -> dict[str, Benchmark]:
    """GSM8K as softcontam has it, by response style."""
    return {
        style: load_benchmark(
            BenchmarkConfig(name="gsm8k", module="gsm8k", path="gsm8k/main", response_style=style), data_dir
        )
        for style in ("answer", "cot")
    }


@pytest.fixture(scope="module")
def theirs(data_dir: Path) -> dict[str, LmEvalTask]:
    """lm-eval's tasks with each of their filters."""
    made = {}
    for scorer, (task, chosen, _) in MARKS.items():
        params = {"task": task, "filter": chosen, "num_fewshot": 0}
        loaded = load_benchmark(EvalBenchmark(task, "lm_eval_task", "gsm8k/main", params=params), data_dir).task
        assert loaded is not None
        made[scorer] = loaded
    return made


def written(template: str, item: Item) -> str:
    """An output about an item."""
    gold = item.meta["answer"]
    return template.format(
        r=item.meta["rationale"], g=gold, c=f"{int(gold):,}", n=gold.lstrip("-"), w=str(int(gold) + 1)
    )


def our_verdict(benchmark: Benchmark, item: Item, output: str) -> bool:
    parsed = benchmark.parse(item, output)
    assert benchmark.score is not None
    return parsed is not None and benchmark.score(item, parsed).correct


def their_verdict(task: LmEvalTask, number: int, output: str) -> bool:
    """The task's filter, then its metric, on the document of that number."""
    doc = task.task.eval_docs[number]
    found = task.filtered(doc, output)
    return verdict(task, task.task.process_results(doc, ["[invalid]" if found is None else found]))


@pytest.mark.parametrize(("style", "scorer"), EXPECTED, ids=[" ".join(pair) for pair in EXPECTED])
def test_gsm8k_outputs_get_lm_evals_verdict_or_a_listed_difference(
    ours: dict[str, Benchmark], theirs: dict[str, LmEvalTask], style: str, scorer: str
) -> None:
    adapted = MARKS[scorer][2]
    for row in ROWS:
        item = ours[style].items[row]
        outputs = {name: written(template, item) for name, template in {"cot": COT, "answer": ANSWER}[style].items()}
        differ = {
            name
            for name, output in outputs.items()
            if our_verdict(ours[style], item, output) != their_verdict(theirs[scorer], row, adapted(output))
        }
        assert differ == set(EXPECTED[style, scorer])


@pytest.mark.parametrize("scorer", MARKS)
def test_gsm8k_gold_replies_and_those_of_the_next_problem_get_the_same_verdicts(
    ours: dict[str, Benchmark], theirs: dict[str, LmEvalTask], scorer: str
) -> None:
    items = ours["cot"].items
    right = wrong = 0
    for row, (item, other) in enumerate(zip(items, (*items[1:], items[0]), strict=True)):
        for reply in (item.target, other.target):
            verdicts = (
                our_verdict(ours["cot"], item, reply),
                their_verdict(theirs[scorer], row, MARKS[scorer][2](reply)),
            )
            assert verdicts[0] is verdicts[1], item.item_id
            right, wrong = right + verdicts[0], wrong + (not verdicts[0])
    assert right >= 1319
    assert wrong > 1250


def test_lm_evals_cot_pattern_cuts_a_digit_off_a_number_at_the_end_of_an_output(
    ours: dict[str, Benchmark], theirs: dict[str, LmEvalTask]
) -> None:
    """Its pattern wants one more character behind the number. Only outputs with a full stop are compared above."""
    task = theirs["gsm8k_cot strict-match"]
    assert task.filtered(task.task.eval_docs[0], "The answer is 18") == "1"
    assert our_verdict(ours["cot"], ours["cot"].items[0], "Answer: 18")


def test_a_minus_counts_in_both_forms_with_us_and_in_one_with_lm_eval(
    ours: dict[str, Benchmark], theirs: dict[str, LmEvalTask]
) -> None:
    item, strict = ours["cot"].items[489], theirs["gsm8k strict-match"]
    assert item.meta["answer"] == "-10"
    assert our_verdict(ours["cot"], item, "Answer: -10") is their_verdict(strict, 489, "#### -10") is True
    assert our_verdict(ours["cot"], item, "Answer: -$10")
    assert our_verdict(ours["cot"], item, "Answer: \u221210")
    assert not their_verdict(strict, 489, "#### \u221210")


CHOICES = ("Mackenzie", "Ana")
"""Of a made-up murder mystery in the form of MuSR; the first is the murderer."""

ARTICLE = "lm-eval takes the article, or the letter of any other word that stands alone"
LOOSE = "lm-eval takes the first letter that it finds, whatever else is said"
NO_LETTER = "we take the text of a choice without its letter"

LETTER_OUTPUTS: dict[str, str | None] = {
    "A. Mackenzie": None,
    "A": None,
    "(A)": None,
    "A)": None,
    " A.\n": None,
    "B. Ana": None,
    "B": None,
    "C": None,
    "": None,
    "none of the above": None,
    "Neither of them": None,
    "B or A": None,
    "I think B, not A": None,
    "A detective would suspect Ana": ARTICLE,
    "Ana. A motive is not enough": ARTICLE,
    "A or B": LOOSE,
    "A. Ana": LOOSE,
    "A. Mackenzie\nB. Ana": LOOSE,
    "A. Mackenzie, because she lied": LOOSE,
    "The answer is A": LOOSE,
    "Answer: A": LOOSE,
    "**A**": LOOSE,
    "A/B": LOOSE,
    "Not A": LOOSE,
    "Mackenzie": NO_LETTER,
    "mackenzie.": NO_LETTER,
    "a": "we take a letter in any case",
}
"""Direct answers, and why the two judge them differently (None where they agree)."""

MARKED_OUTPUTS: dict[str, str | None] = {
    "She lied.\nAnswer: A. Mackenzie": None,
    "She lied.\nAnswer: A": None,
    "She lied.\nAnswer: (A)": None,
    "She lied.\n**Answer: A. Mackenzie**": None,
    "Not B.\nAnswer: A": None,
    "A detective came.\nAnswer: B": None,
    "A detective came.\nAnswer:": None,
    "A detective came. Mackenzie lied, so": None,
    "The answer is A": None,
    "Answer: none of the above": None,
    "Answer: B\nAnswer: B": None,
    "Answer: A\nAnswer: B": None,
    "Answer: B\nAnswer: A": "lm-eval takes the last mark, we refuse two different answers",
    "Answer: A or B": LOOSE,
    "Answer: A. Ana": LOOSE,
    "Answer: A detective did it": ARTICLE,
    "Answer: A, because she lied": LOOSE,
    "Answer: A. Mackenzie\nBut Ana lied too.": ANYWHERE,
    "It is settled. Answer: A": ANYWHERE,
    "Answer: Mackenzie": NO_LETTER,
    "Answer: **A**": OUR_MARK,
    "answer: A": OUR_MARK,
}
"""Answers after thinking."""


@pytest.fixture(scope="module")
def mystery() -> Any:
    """A task of lm-eval that generates and takes the letter by a pattern, as such tasks do."""
    docs = [{"question": "Who is the murderer?", "letter": "A"}]

    def pattern(name: str, pattern: str, select: int) -> dict[str, Any]:
        regex = {"function": "regex", "regex_pattern": pattern, "group_select": select}
        return {"name": name, "filter": [regex, {"function": "take_first"}]}

    settings = {
        "task": "mystery",
        "custom_dataset": lambda **_: datasets.DatasetDict({"test": datasets.Dataset.from_list(docs)}),
        "test_split": "test",
        "output_type": "generate_until",
        "doc_to_text": "{{question}}",
        "doc_to_target": "{{letter}}",
        "filter_list": [
            pattern("answer", r"\b([A-E])\b", 0),
            pattern("cot", r"Answer:\s*\(?([A-E])\b", -1),
        ],
        "metric_list": [{"metric": "exact_match", "aggregation": "mean", "higher_is_better": True}],
    }
    return _manager().load(settings)["tasks"]["mystery"]


@pytest.mark.parametrize("style", ["answer", "cot"])
def test_a_letter_gets_lm_evals_verdict_or_a_listed_difference(mystery: Any, style: str) -> None:
    task = LmEvalTask("mystery", mystery, "exact_match", style, ("[invalid]",))
    for output, reason in {"answer": LETTER_OUTPUTS, "cot": MARKED_OUTPUTS}[style].items():
        same = (parse_choice(output, CHOICES, style) == "A") is their_verdict(task, 0, output)
        assert same is (reason is None), output
    for index in (0, 1):
        gold = choice_target(CHOICES, index, style, "A long story: A, B.")
        assert (parse_choice(gold, CHOICES, style) == "A") is their_verdict(task, 0, gold) is (index == 0)
