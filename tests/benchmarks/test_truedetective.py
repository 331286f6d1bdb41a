"""True Detective on five mysteries made up for this test: the real ones may not be passed on."""

from __future__ import annotations

import csv
import random
from dataclasses import replace
from math import sqrt
from pathlib import Path
from typing import Any

import pytest

from softcontam.benchmarks import Benchmark, load_benchmark
from softcontam.benchmarks.answers import choice_target
from softcontam.config import EvalBenchmark, HubConfig
from softcontam.errors import ConfigError, DataError

HUB = HubConfig("github.com/TartuNLP/true-detective", None, None, "academic research only, not to be passed on")
COLUMNS = [
    "case_name", "case_url", "author_name", "author_url", "attempts", "solve_rate", "mystery_text", "answer_options",
    "answer", "outcome",
]  # fmt: skip

VASE = (
    "The blue vase had stood in Mrs Ostrow's hall for forty years.\nOn Sunday it lay in pieces. The cat had been at "
    "the vet since Friday, the window was locked, and flour was on the floor. Only the baker's boy wears flour."
)
CASES: list[dict[str, str]] = [
    {
        "case_name": "The Broken Vase",
        "solve_rate": "61.5",
        "mystery_text": VASE,
        "answer_options": "(a) Mrs Ostrow; (b) The baker's boy; (c) The cat; (d) The vet",
        "answer": "(b) The baker's boy",
    },
    {
        "case_name": "Low Tide",
        "solve_rate": "34",
        "mystery_text": 'Captain Rourke swore he had rowed home at noon, "with the tide".\n\nBut at noon the harbour '
        "was mud from wall to wall, said the ferryman; no boat could have moved before four.",
        "answer_options": "(a) Rourke; (b) The ferryman; (c) Nell Grady; (d) Tomas; (e) Nobody; it was an accident",
        "answer": "(a) Rourke",
    },
    {
        "case_name": "A Cold Cup of Tea",
        "solve_rate": "0.9",
        "mystery_text": "Four guests sat in the library. The tea of three was warm. Doctor Hale's was cold, and he "
        "said that he had just poured it. The safe had been opened twenty minutes before.",
        "answer_options": "(a) Doctor Hale; (b) Miss Pym; (c) Sir Edgar; (d) Lady Wren",
        "answer": "(a) Doctor Hale",
    },
    {
        "case_name": "The Broken Vase",
        "solve_rate": "58%",
        "mystery_text": VASE.replace("forty years", "fifty years"),
        "answer_options": "(a) Mrs Ostrow; (b) The baker's boy; (c) The cat",
        "answer": "(b) The baker's boy",
    },
    {
        "case_name": "Café Noir",
        "solve_rate": "",
        "mystery_text": "The till was empty at closing time. Jules had swept, Anouk had counted, and Remi had never "
        "learnt the code, yet he named the sum to the last coin before anybody had told him.",
        "answer_options": "(a) Jules\n(b) Anouk\n(c) Remi\n(d) All of them",
        "answer": "(c)  remi",
    },
]


def write(folder: Path, cases: list[dict[str, str]]) -> Path:
    file = folder / "detective-puzzles.csv"
    with file.open("w", encoding="utf-8", newline="") as lines:
        writer = csv.DictWriter(lines, COLUMNS, restval="x")
        writer.writeheader()
        writer.writerows(cases)
    return file


def config(style: str = "answer", path: str | None = "detective-puzzles.csv") -> EvalBenchmark:
    return EvalBenchmark("truedetective", "truedetective", path, HUB, style)


def load(folder: Path, cases: list[dict[str, str]] = CASES, style: str = "answer") -> Benchmark:
    write(folder, cases)
    return load_benchmark(config(style), folder)


def changed(**changes: str) -> list[dict[str, str]]:
    """The made-up cases with changes in the second one."""
    return [CASES[0], {**CASES[1], **changes}, *CASES[2:]]


@pytest.mark.parametrize("style", ["answer", "cot"])
def test_all_gold_answers_are_right(tmp_path: Path, style: str) -> None:
    benchmark = load(tmp_path, style=style)
    assert benchmark.score is not None
    for item in benchmark.items:
        parsed = benchmark.parse(item, item.target)
        assert parsed is not None
        assert benchmark.score(item, parsed).correct
    assert [item.meta["answer"] for item in benchmark.items] == ["B", "A", "A", "B", "C"]


@pytest.mark.parametrize("style", ["answer", "cot"])
def test_shuffled_gold_is_at_chance(tmp_path: Path, style: str) -> None:
    benchmark = load(tmp_path, style=style)
    assert benchmark.score is not None
    assert benchmark.chance == pytest.approx((3 / 4 + 1 / 5 + 1 / 3) / 5)
    rng = random.Random(0)
    runs, right = 2000, 0
    for item in benchmark.items * runs:
        parsed = benchmark.parse(item, choice_target(item.choices, rng.randrange(len(item.choices)), style))
        right += parsed is not None and benchmark.score(item, parsed).correct
    variance = sum((p := 1 / len(item.choices)) * (1 - p) for item in benchmark.items) / len(benchmark.items) ** 2
    assert abs(right / (runs * len(benchmark.items)) - benchmark.chance) < 4 * sqrt(variance / runs)


def test_an_option_may_hold_a_semicolon_and_lines_may_separate_them(tmp_path: Path) -> None:
    items = load(tmp_path).items
    assert items[1].choices == ("Rourke", "The ferryman", "Nell Grady", "Tomas", "Nobody; it was an accident")
    assert items[4].choices == ("Jules", "Anouk", "Remi", "All of them")
    assert "D. Tomas\nE. Nobody; it was an accident" in items[1].prompt


def test_the_solution_of_a_case_is_not_in_its_prompt(tmp_path: Path) -> None:
    cases = [{**case, "outcome": "the-solution-in-full"} for case in CASES]
    assert not any("the-solution-in-full" in item.prompt + item.target for item in load(tmp_path, cases).items)


@pytest.mark.parametrize(
    "output",
    [
        "",
        "A captain did it.",
        "A and B",
        "A. Rourke\nB. The ferryman",
        "A. The ferryman",
        "F",
        "None of the above",
        "A. Rour",
        "(e) Nobody",
        "Rourke because at noon the harbour",
    ],
)
def test_no_answer_is_guessed(tmp_path: Path, output: str) -> None:
    benchmark = load(tmp_path)
    assert benchmark.parse(benchmark.items[1], output) is None


@pytest.mark.parametrize(
    "output", ["", "A. Rourke", "Answer: A\nAnswer: C", "Answer: A ferryman", "It was mud.\nAnswer:", "Answer: A, or B"]
)
def test_no_answer_is_guessed_after_reasoning(tmp_path: Path, output: str) -> None:
    benchmark = load(tmp_path, style="cot")
    assert benchmark.parse(benchmark.items[1], output) is None


def test_a_case_that_is_told_twice_is_one_family(tmp_path: Path) -> None:
    benchmark = load(tmp_path)
    families = [item.family for item in benchmark.items]
    assert families[0] == families[3]
    assert len(set(families)) == 4
    assert [(pair.first, pair.second, pair.why) for pair in benchmark.joined] == [
        ("truedetective/the-broken-vase", "truedetective/the-broken-vase-2", "text")
    ]


def test_ids_are_the_names_of_the_cases_whatever_the_order(tmp_path: Path) -> None:
    ids = {item.meta["case_name"]: item.item_id for item in load(tmp_path, CASES[1:]).items}
    assert ids["Café Noir"] == "truedetective/cafe-noir"
    assert ids == {item.meta["case_name"]: item.item_id for item in load(tmp_path, CASES[:0:-1]).items}


@pytest.mark.parametrize(
    ("rates", "expected"),
    [
        (["61.5", "34", "0.9", "58%", ""], [0.615, 0.34, 0.009, 0.58, None]),
        (["0.615", "0.34", "1", "58%", "0"], [0.615, 0.34, 1.0, 0.58, 0.0]),
        (["61.5 %", "34%", ".9", "5%", "0.5"], [0.615, 0.34, 0.9, 0.05, 0.5]),
    ],
    ids=["per cent", "shares", "marked"],
)
def test_solve_rates_become_shares(tmp_path: Path, rates: list[str], expected: list[float | None]) -> None:
    cases = [{**case, "solve_rate": rate} for case, rate in zip(CASES, rates, strict=True)]
    found = [item.meta["solve_rate"] for item in load(tmp_path, cases).items]
    assert found == pytest.approx(expected)


@pytest.mark.parametrize(
    ("changes", "message"),
    [
        ({"answer": "(b) Rourke"}, "the answer '\\(b\\) Rourke' is none of the options"),
        ({"answer": "(f) Rourke"}, "the answer '\\(f\\) Rourke' is none of the options"),
        ({"answer": "Rourke"}, "the answer 'Rourke' is none of the options"),
        ({"answer": "(a)"}, "the answer '\\(a\\)' is none of the options"),
        ({"answer": ""}, "column 'answer' should hold text"),
        ({"answer_options": "Rourke; Tomas"}, "column 'answer_options' should read"),
        ({"answer_options": "(a) Rourke; (c) Tomas"}, "column 'answer_options' should read"),
        ({"answer_options": "(b) Rourke; (a) Tomas"}, "column 'answer_options' should read"),
        ({"answer_options": "One of (a) Rourke; (b) Tomas"}, "column 'answer_options' should read"),
        ({"answer_options": "(a) Rourke; (b) Tomas; (b) Nell"}, "column 'answer_options' should read"),
        ({"answer_options": "(a) Rourke"}, "needs at least two choices"),
        ({"answer_options": "(a) Rourke; (b) ; (c) Tomas"}, "needs at least two choices"),
        ({"answer_options": "(a) Rourke; (b) rourke"}, "needs at least two choices, all different"),
        ({"solve_rate": "most"}, "column 'solve_rate' should hold a share or a percentage, found 'most'"),
        ({"solve_rate": "140"}, "column 'solve_rate' should hold a share or a percentage, found '140'"),
        ({"solve_rate": "-0.2"}, "column 'solve_rate' should hold a share or a percentage, found '-0.2'"),
        ({"solve_rate": "nan"}, "column 'solve_rate' should hold a share or a percentage, found 'nan'"),
        ({"mystery_text": " "}, "column 'mystery_text' should hold text"),
    ],
)
def test_an_unusable_row_is_named_with_its_case(tmp_path: Path, changes: dict[str, str], message: str) -> None:
    with pytest.raises(DataError, match=r"detective-puzzles\.csv, row 2, case 'Low Tide': " + message):
        load(tmp_path, changed(**changes))


@pytest.mark.parametrize(
    ("damage", "message"),
    [
        (lambda text: text.replace(b"answer_options", b"options"), "lacks the column answer_options"),
        (lambda text: b"", "lacks the column case_name, mystery_text"),
        (lambda text: text[: text.index(b"Doctor Hale; (b)")], "is no readable CSV file|as many fields"),
        (lambda text: text[: text.index(b"he had just poured")], "is no readable CSV file|as many fields"),
        (lambda text: text + b"Short,row\r\n", "row 6, case 'Short': has not as many fields"),
        (lambda text: text + b"Long" + b",x" * 12 + b"\r\n", "row 6, case 'Long': has not as many fields"),
        (lambda text: text.replace("é".encode(), b"\xe9"), "is no readable CSV file"),
        (lambda text: text[: text.index(b"\r\n") + 2], "has no rows"),
    ],
    ids=[
        "renamed column",
        "empty",
        "cut in a row",
        "cut in a story",
        "short row",
        "long row",
        "latin-1",
        "header only",
    ],
)
def test_a_damaged_file_is_named(tmp_path: Path, damage: Any, message: str) -> None:
    file = write(tmp_path, CASES)
    file.write_bytes(damage(file.read_bytes()))
    with pytest.raises(DataError, match=message) as caught:
        load_benchmark(config(), tmp_path)
    assert "detective-puzzles.csv" in str(caught.value)


def test_a_file_that_a_spreadsheet_has_saved_with_a_byte_order_mark_is_read(tmp_path: Path) -> None:
    file = write(tmp_path, CASES)
    file.write_bytes(b"\xef\xbb\xbf" + file.read_bytes())
    assert len(load_benchmark(config(), tmp_path).items) == 5


def test_without_a_path_the_error_says_where_to_get_the_file_and_on_which_terms(tmp_path: Path) -> None:
    with pytest.raises(ConfigError, match=r"path is not set.*github\.com/TartuNLP/true-detective.*academic research"):
        load_benchmark(config(path=None), tmp_path)


def test_a_missing_file_says_the_same(tmp_path: Path) -> None:
    with pytest.raises(DataError, match=r"gone\.csv does not exist.*TartuNLP.*eval\.related\.0\.path"):
        load_benchmark(config(path="gone.csv"), tmp_path)


def test_an_absolute_path_is_taken_as_it_is(tmp_path: Path) -> None:
    file = write(tmp_path, CASES)
    assert len(load_benchmark(config(path=str(file)), Path("/nowhere")).items) == 5


def test_parameters_are_refused(tmp_path: Path) -> None:
    write(tmp_path, CASES)
    with pytest.raises(ConfigError, match=r"params\.task is unknown\. Known: none"):
        load_benchmark(replace(config(), params={"task": "x"}), tmp_path)
