from dataclasses import replace
from itertools import pairwise
from pathlib import Path
from typing import Any

import pandas as pd
import pytest

from softcontam.benchmarks import Benchmark, load_benchmark
from softcontam.benchmarks.gsm8k import parse_number, score, template
from softcontam.config import BenchmarkConfig, HubConfig
from softcontam.errors import ConfigError, DataError

HUB = HubConfig("openai/gsm8k", "main", None, "MIT")


def config(style: str = "answer", path: str | None = "gsm8k/main", **params: Any) -> BenchmarkConfig:
    return BenchmarkConfig(name="gsm8k", module="gsm8k", path=path, hub=HUB, response_style=style, params=params)


@pytest.fixture(scope="module")
def gsm8k(data_dir: Path) -> Benchmark:
    return load_benchmark(config(), data_dir)


def write(folder: Path, **changes: Any) -> Path:
    row = {"question": "Ann has 3 cups. She buys 2. How many has she?", "answer": "3+2=<<3+2=5>>5\n#### 5", **changes}
    pd.DataFrame([row]).to_parquet(folder / "test-00000-of-00001.parquet")
    return folder


@pytest.mark.parametrize("style", ["answer", "cot"])
def test_every_gold_answer_of_the_1319_scores_as_correct(data_dir: Path, style: str) -> None:
    benchmark = load_benchmark(config(style), data_dir)
    assert len(benchmark.items) == 1319
    assert benchmark.chance == 0.0
    for item in benchmark.items:
        parsed = benchmark.parse(item, item.target)
        assert parsed is not None, item.item_id
        assert score(item, parsed).correct, item.item_id


def test_the_gold_answer_of_another_problem_is_right_only_where_the_numbers_agree(gsm8k: Benchmark) -> None:
    items = gsm8k.items
    right = [
        score(item, parsed).correct for item, other in pairwise(items) if (parsed := gsm8k.parse(other, other.target))
    ]
    assert len(right) == 1318
    assert sum(right) / len(right) < 0.03


def test_problem_0_asks_for_the_number_and_its_gold_reply_is_that_number(gsm8k: Benchmark) -> None:
    item = gsm8k.items[0]
    assert item.item_id == "gsm8k/0"
    assert item.prompt.startswith("Janet’s ducks lay 16 eggs per day.")
    assert item.target == "18"


def test_the_worked_solution_of_the_cot_target_has_no_calculator_marks(data_dir: Path) -> None:
    benchmark = load_benchmark(config("cot"), data_dir)
    target = benchmark.items[0].target
    assert target.splitlines()[0] == "Janet sells 16 - 3 - 4 = 9 duck eggs a day."
    assert target.splitlines()[-1] == "Answer: 18"
    assert not [item.item_id for item in benchmark.items if "<<" in item.target or "####" in item.target]


@pytest.mark.parametrize(
    ("output", "parsed"),
    [
        ("18", "18"),
        (" 18.\n", "18"),
        ("$18", "18"),
        ("-$18.50", "-18.50"),
        ("\u22123", "-3"),
        ("2,125", "2125"),
        ("1,450,000.00", "1450000.00"),
        (".5", "0.5"),
    ],
)
def test_one_number_is_the_answer(output: str, parsed: str) -> None:
    assert parse_number(output, "answer") == parsed


@pytest.mark.parametrize(
    "output",
    [
        "",
        "  \n",
        "18 apples",
        "18%",
        "18 or 19",
        "about 18",
        "~18",
        "1/2",
        "1 800",
        "1,80",
        "18,",
        "1,8000",
        "9 * 2 = 18",
        "16\n18",
        "eighteen",
        "1.8e1",
        "x = 18",
        "The answer is 18.",
        "Answer: 18",
        "#### 18",
        "**18**",
        "18?",
        "18..",
        "$",
        ".",
        "-",
        "٣",
        "nan",
        "Infinity",
    ],
)
def test_anything_else_than_one_number_has_no_answer(output: str) -> None:
    assert parse_number(output, "answer") is None


@pytest.mark.parametrize(
    "output",
    ["9 * 2 = 18.\nAnswer: 18", "9 * 2 = 18.\n\n**Answer: $18.00**\n", "answer: 18."],
)
def test_the_last_line_gives_the_answer_after_thinking(output: str) -> None:
    parsed = parse_number(output, "cot")
    assert parsed is not None
    assert float(parsed) == 18


@pytest.mark.parametrize(
    "output",
    [
        "She sells 9 eggs for $2 each, so she makes 9 * 2 = 18",
        "So she makes 18.\nAnswer:",
        "Answer: 18\nAnswer: 19",
        "Answer: 18\nLet me check: 9 * 2",
        "Answer: 18 dollars",
        "Answer: 9 * 2 = 18",
        "The answer is 18",
        "#### 18",
        "Answer: \\boxed{18}",
    ],
    ids=["cut off", "nothing after it", "two answers", "goes on", "unit", "sum", "other wording", "hub mark", "boxed"],
)
def test_thinking_without_one_clear_last_line_has_no_answer(output: str) -> None:
    assert parse_number(output, "cot") is None


@pytest.mark.parametrize(("parsed", "correct"), [("18", True), ("18.00", True), ("018", True), ("18.01", False)])
def test_numbers_are_compared_by_value(gsm8k: Benchmark, parsed: str, correct: bool) -> None:
    assert score(gsm8k.items[0], parsed).correct is correct


def test_two_wholes_that_floats_cannot_tell_apart_differ(gsm8k: Benchmark) -> None:
    item = replace(gsm8k.items[0], meta={"answer": str(2**53)})
    assert not score(item, str(2**53 + 1)).correct


@pytest.mark.parametrize(("first", "second"), [(418, 558), (33, 863), (488, 761), (339, 1317), (587, 1142)])
def test_one_story_with_another_unknown_is_one_family(gsm8k: Benchmark, first: int, second: int) -> None:
    assert gsm8k.items[first].family == gsm8k.items[second].family


def test_one_template_with_other_names_and_numbers_is_one_family(gsm8k: Benchmark) -> None:
    assert gsm8k.items[462].family == gsm8k.items[1167].family  # "half / 1/5 of her $100"
    why = {(pair.first, pair.second): pair.why for pair in gsm8k.joined}
    assert why["gsm8k/462", "gsm8k/1167"] == "template"


def test_problems_that_share_a_subject_only_stay_apart(gsm8k: Benchmark) -> None:
    assert gsm8k.items[306].family != gsm8k.items[523].family  # two bakeries
    assert len(gsm8k.families()) > 1300
    assert max(map(len, gsm8k.families().values())) <= 3


def test_a_template_does_not_depend_on_names_and_numbers() -> None:
    ours, other = "Ann has 3 cups and $4.50. How many?", "Bob has twelve cups and $1,200. How many?"
    assert template(ours).split() == template(other).split()


def test_item_ids_of_the_test_split_are_those_of_the_labelled_pairs(gsm8k: Benchmark, data_dir: Path) -> None:
    questions = {item.item_id: item.meta["task"] for item in gsm8k.items}
    pairs = pd.read_json(data_dir / "labelled_pairs/gsm8k_rephrased.jsonl", lines=True)
    for row in pairs.head(50).to_dict("records"):
        assert questions[f"{row['benchmark']}/{row['item_id']}"] == row["text_a"].strip()


def test_the_train_split_has_ids_of_its_own(data_dir: Path) -> None:
    item = load_benchmark(config(split="train"), data_dir).items[0]
    assert item.item_id == "gsm8k/train/0"
    assert item.target == "72"


@pytest.mark.parametrize(
    ("changes", "message"),
    [
        ({"answer": "3+2=5\n#### five"}, "a last line `#### <number>`"),
        ({"answer": "3+2=5"}, "a last line `#### <number>`"),
        ({"answer": "#### 5"}, "a worked solution"),
        ({"question": " "}, "column 'question' should hold text"),
    ],
)
def test_unusable_row_is_named_with_its_file(tmp_path: Path, changes: dict[str, Any], message: str) -> None:
    write(tmp_path, **changes)
    with pytest.raises(DataError, match=r"test-00000-of-00001\.parquet, row 1: .*" + message):
        load_benchmark(config(path="."), tmp_path)


def test_unknown_split_style_and_setting_are_refused_with_the_known_ones(tmp_path: Path) -> None:
    with pytest.raises(ConfigError, match="Choose test or train"):
        load_benchmark(config(split="dev"), tmp_path)
    with pytest.raises(ConfigError, match="Known: split"):
        load_benchmark(config(spilt="test"), tmp_path)
    with pytest.raises(ConfigError, match="answer, cot"):
        load_benchmark(config("essay"), tmp_path)
