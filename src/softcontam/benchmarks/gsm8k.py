"""GSM8K (Cobbe et al. 2021, arXiv 2110.14168): grade-school word problems whose answer is one number, as on the hub.

``params.split``: ``test`` (1,319 problems, the default) or ``train`` (7,473).

Scoring. The answer has to be one number and nothing else: an optional minus, an optional ``$`` before the digits,
thousands commas that stand where they belong, decimals, and a full stop at the end. All else has no answer: a unit or a
percent sign (60 % of what, or 0.6?), "about 18", "18 or 19", a fraction, a sum, an exponent, an empty output. A number
is never searched for in a text; the last one of a solution that was cut off is a guess. Numbers are compared by value,
so 18.00 is 18. All gold answers of both splits are whole numbers.

Families. Two problems are one family if their questions have a TF-IDF cosine of at least :data:`FAMILY_COSINE`, or if
they have one of at least :data:`TEMPLATE_COSINE` after numbers and names are masked, which finds a template with other
numbers. What was seen in the 1,319 test questions: five pairs lie at 0.96 to 0.57 and are one story with another
unknown (418 and 558, lockers; 33 and 863, coins; 488 and 761, puppies; 339 and 1317, chickens and cows; 587 and 1142,
jelly beans), the next at 0.44 and below share a subject only (two bakeries, two runners). Masked, the pairs from 0.98
to 0.80 are two of these and four more: 462 and 1167 (half, a fifth of her $100), 312 with 536 and 92 (chains of ages),
and 637 and 1101, which are alike in wording only; below lie problems on one subject, ages above all. No two test
questions are equal when masked. Joined: 1,310 families, the largest of 3 problems (train: 7,337 of 7,473, the largest
of 11).
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import replace
from decimal import Decimal
from pathlib import Path

from softcontam.benchmarks.answers import answer_text, check_params, check_style, gold_text
from softcontam.benchmarks.families import NearPair, join, near_texts
from softcontam.benchmarks.item import Benchmark, Item, Score
from softcontam.benchmarks.records import Record, read_records, source
from softcontam.config import BenchmarkConfig, EvalBenchmark
from softcontam.errors import ConfigError, DataError

FAMILY_COSINE = 0.5
"""TF-IDF cosine of two questions from which they are one family; see the module's text for why."""

TEMPLATE_COSINE = 0.8
"""The same for questions whose numbers and names are masked."""

SPLITS = ("test", "train")
"""Splits of the hub; one is loaded."""

_NUMBER = re.compile(r"([-\u2212]?)\$?([0-9]+|[0-9]{1,3}(?:,[0-9]{3})+)?(\.[0-9]+)?\.?")
_CALCULATOR = re.compile(r"<<[^<>]*>>")
_WORDS = (
    "one two three four five six seven eight nine ten eleven twelve thirteen fourteen fifteen sixteen seventeen "
    "eighteen nineteen twenty thirty forty fifty sixty seventy eighty ninety hundred thousand million dozen half third "
    "quarter fourth fifth twice thrice double triple"
).split()
_QUANTITY = re.compile(rf"\$?[0-9][0-9,]*(?:\.[0-9]+)?(?:/[0-9]+)?%?|\b(?:{'|'.join(_WORDS)})s?\b", re.IGNORECASE)
_NAME = re.compile(r"\b[A-Z][a-z]+(?:['’]s)?\b")


def load(config: BenchmarkConfig | EvalBenchmark, data: Path) -> Benchmark:
    """The problems of one split in the order of the hub, with their families.

    Item ids are ``gsm8k/<row>`` for the test split, as in the labelled pairs, and ``gsm8k/train/<row>``; rows count
    from 0. ``meta`` holds ``task`` (the question alone), ``answer`` (digits without commas) and ``rationale`` (the
    worked solution without the calculator's ``<<...>>`` marks).

    Raises:
        ConfigError: an unknown split, setting or response style.
        DataError: files, columns or rows that are missing or damaged, or a hub that cannot be reached.
    """
    check_style(config)
    check_params(config, ("split",))
    split = config.params.get("split", "test")
    if split not in SPLITS:
        raise ConfigError(f"benchmark {config.name}: params.split={split!r} is unknown. Choose test or train.")
    prefix = "gsm8k" if split == "test" else f"gsm8k/{split}"
    records = read_records(config, data, (split,), ("question", "answer"))
    items = [_item(record, f"{prefix}/{row}", config) for row, record in enumerate(records)]
    pairs = near_identical(items)
    families = join([item.item_id for item in items], pairs)
    named = tuple(replace(item, family=families[item.item_id]) for item in items)

    def parse(item: Item, output: str) -> str | None:
        return parse_number(output, config.response_style)

    return Benchmark(
        config.name, named, 0.0, config.response_style, source(config, data), parse, score=score, joined=tuple(pairs)
    )


def parse_number(output: str, style: str) -> str | None:
    """The one number that an output gives as its answer, in plain digits, or None; see the module's text."""
    text = answer_text(output, style)
    found = _NUMBER.fullmatch(text) if text is not None else None
    if found is None or not (found[2] or found[3]):
        return None
    return ("-" if found[1] else "") + (found[2] or "0").replace(",", "") + (found[3] or "")


def score(item: Item, parsed: str) -> Score:
    """Right if the number has the gold answer's value."""
    return Score(Decimal(parsed) == Decimal(item.meta["answer"]))


def near_identical(items: Sequence[Item]) -> list[NearPair]:
    """The pairs that families rest on: near questions, then near templates (``why`` is ``template``)."""
    ids = [item.item_id for item in items]
    questions = [item.meta["task"] for item in items]
    masked = near_texts([template(question) for question in questions], ids, TEMPLATE_COSINE)
    return near_texts(questions, ids, FAMILY_COSINE) + [replace(pair, why="template") for pair in masked]


def template(question: str) -> str:
    """A question with its numbers (digits or words) and capitalized words, names among them, masked."""
    return _NAME.sub(" aname ", _QUANTITY.sub(" anumber ", question))


def _item(record: Record, item_id: str, config: BenchmarkConfig | EvalBenchmark) -> Item:
    """One problem; its family is still itself."""
    question = record.text("question").strip()
    solution, marked, last = record.text("answer").rpartition("#### ")
    answer = parse_number(last, "answer") if marked else None
    rationale = _CALCULATOR.sub("", solution).strip()
    if answer is None or not rationale:
        raise DataError(
            f"{record.where}: column 'answer' should hold a worked solution and a last line `#### <number>`, found "
            f"{record.values['answer']!r}. Copy the file again."
        )
    if config.response_style == "answer":
        ask = "Reply with the number alone: no words, no unit."
    else:
        ask = "Think step by step, then end with a line that holds `Answer: ` and the number alone, without a unit."
    return Item(
        item_id=item_id,
        benchmark=config.name,
        family=item_id,
        prompt=f"{question}\n\n{ask}",
        target=gold_text(answer, config.response_style, rationale),
        meta={"task": question, "answer": answer, "rationale": rationale},
    )
