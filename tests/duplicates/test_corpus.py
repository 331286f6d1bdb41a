"""Rows that stand for no item: aligned with the benchmark, spread over a corpus, or in its format alone."""

from __future__ import annotations

import json
import re
from collections import Counter
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from sklearn.feature_extraction.text import TfidfVectorizer

from softcontam.benchmarks import Benchmark, Item, load_benchmark
from softcontam.benchmarks.gsm8k import parse_number
from softcontam.benchmarks.python_code import parse_block, same_code_key
from softcontam.config import BankConfig, BenchmarkConfig
from softcontam.duplicates import BankRow
from softcontam.duplicates.bank import check_rows
from softcontam.duplicates.corpus import rows, spread
from softcontam.errors import ConfigError, DataError

MBPP = BenchmarkConfig("mbpp", "mbpp", "mbpp/sanitized", params={"subset": "sanitized"})
GSM8K = BenchmarkConfig("gsm8k", "gsm8k", "gsm8k/main", response_style="cot", params={"split": "test"})
ALIGNED = {"benchmark": {"subset": "full"}, "max_cosine": 0.5, "per_item": 4}


def item(number: int, task: str, code: str = "def f(x):\n    return x", style: str = "answer") -> Item:
    name = f"mbpp/{number}"
    target = f"```python\n{code}\n```"
    return Item(name, "mbpp", name, f"Solve: {task}", target, response_style=style, meta={"task": task})


ITEMS = [item(1, "Reverse the vowels of a string.", "def rev(s):\n    return s[::-1]"), item(2, "Volume of a sphere")]

CORPUS = [
    ("same", "Reverse the vowels of a string", "def g(text):\n    return text.upper()"),
    ("code", "Flip whatever comes along", "def flip(word):\n    return word[::-1]"),
    ("mail", "Send an email through a server", "import smtplib\n\ndef send():\n    return 1"),
    ("plot", "Draw a histogram", "def draw(values):\n    return len(values)"),
    ("talk", "Explain photosynthesis", "Plants turn light into sugar."),
    ("clock", "Print the time of day", "import time\nprint(time.time())"),
    ("clock again", "Print the time of day", "import time\nprint(time.time())"),
]


def write(folder: Path, lines: list[tuple[str, str, str]] = CORPUS) -> None:
    (folder / "sft.jsonl").write_text(
        "".join(
            json.dumps({"id": i, "messages": [{"role": "user", "content": u}, {"role": "assistant", "content": a}]})
            + "\n"
            for i, u, a in lines
        ),
        encoding="utf-8",
    )


def made(
    kind: str, folder: Path, items: list[Item] = ITEMS, others: tuple[Item, ...] = (), **params: Any
) -> list[BankRow]:
    settings = {"max_cosine": 0.5, "per_item": 9, "template": "python", **params}
    found = rows(kind, BankConfig("corpus", "sft.jsonl", settings), MBPP, items, folder, others)
    check_rows(found, "test")
    return found


def ids(found: list[BankRow]) -> list[str]:
    return [row.row_id.split("/", 1)[1] for row in found]


@pytest.fixture(scope="module")
def sanitized(data_dir: Path) -> Benchmark:
    return load_benchmark(MBPP, data_dir)


@pytest.fixture(scope="module")
def aligned(sanitized: Benchmark, data_dir: Path) -> list[BankRow]:
    return rows("benchmark_aligned", BankConfig("corpus", "mbpp/full", ALIGNED), MBPP, sanitized.items, data_dir)


class TestAligned:
    def test_rows_are_tasks_of_the_full_set_in_the_benchmarks_own_wording(
        self, aligned: list[BankRow], data_dir: Path
    ) -> None:
        full = load_benchmark(BenchmarkConfig("mbpp", "mbpp", "mbpp/full", params={"subset": "full"}), data_dir)
        own = {(one.prompt, one.target): one.item_id for one in full.items}
        assert len(aligned) > 100
        for row in aligned:
            assert row.row_id == f"benchmark_aligned/{own[row.prompt, row.completion]}"
            assert row.source == f"mbpp/full {own[row.prompt, row.completion]}"
            assert row.response_style == "answer"

    def test_no_row_is_a_task_of_the_benchmark_or_one_of_its_solutions(
        self, aligned: list[BankRow], sanitized: Benchmark
    ) -> None:
        solutions = {same_code_key(parse_block(one.target) or "") for one in sanitized.items}
        for row in aligned:
            assert row.row_id.removeprefix("benchmark_aligned/") not in {one.item_id for one in sanitized.items}
            assert same_code_key(parse_block(row.completion) or "") not in solutions

    def test_items_that_are_left_out_of_an_experiment_are_no_rows_either(
        self, sanitized: Benchmark, data_dir: Path
    ) -> None:
        few = sanitized.items[:20]
        found = rows("benchmark_aligned", BankConfig("corpus", "mbpp/full", ALIGNED), MBPP, few, data_dir)
        assert {one.item_id for one in sanitized.items}.isdisjoint(ids(found))
        assert Counter(row.item_id for row in found) == {one.item_id: 4 for one in few}

    def test_needs_a_split_and_other_kinds_must_not_have_one(self, tmp_path: Path) -> None:
        write(tmp_path)
        with pytest.raises(ConfigError, match="belongs to kind benchmark_aligned"):
            made("benchmark_aligned", tmp_path)
        with pytest.raises(ConfigError, match="belongs to kind benchmark_aligned"):
            made("format_only", tmp_path, benchmark={"subset": "full"})


class TestPossibleDuplicates:
    @pytest.mark.parametrize("kind", ["coverage_expanding", "format_only"])
    def test_near_task_and_renamed_solution_are_left_out(self, kind: str, tmp_path: Path) -> None:
        write(tmp_path)
        assert set(ids(made(kind, tmp_path))) == {"mail", "plot", "clock"}

    def test_so_is_a_duplicate_of_a_related_benchmarks_item(self, tmp_path: Path) -> None:
        write(tmp_path)
        related = item(9, "Sending emails through servers")
        assert set(ids(made("format_only", tmp_path, others=(related,)))) == {"plot", "clock"}

    def test_and_of_a_known_rewording(self, tmp_path: Path) -> None:
        write(tmp_path)
        pair = {"benchmark": "mbpp", "item_id": "2", "label": "duplicate", "text_b": "Draw histograms"}
        (tmp_path / "pairs.jsonl").write_text(json.dumps(pair) + "\n", encoding="utf-8")
        assert set(ids(made("format_only", tmp_path, rewordings=["pairs.jsonl"]))) == {"mail", "clock"}

    def test_a_word_problem_with_other_numbers_is_one(self, tmp_path: Path) -> None:
        question = "A train travels 360 miles in 3 hours. How far does it travel in 12 hours?"
        word_problem = Item("gsm8k/0", "gsm8k", "gsm8k/0", question, "1440")
        write(
            tmp_path, [("other numbers", re.sub(r"\d+", "77", question), "9"), ("far", "Who painted it?", "Rembrandt")]
        )
        assert ids(made("format_only", tmp_path, [word_problem], template="verbatim", max_cosine=0.9)) == ["far"]

    def test_nothing_left_is_said_with_the_way_out(self, tmp_path: Path) -> None:
        write(tmp_path, CORPUS[:2])
        with pytest.raises(DataError, match=r"no row of kind format_only .* Raise params\.max_cosine"):
            made("format_only", tmp_path)


class TestHandingOut:
    def test_every_item_gets_a_row_before_any_gets_a_second(self, tmp_path: Path) -> None:
        write(tmp_path)
        assert Counter(row.item_id for row in made("format_only", tmp_path)) == {"mbpp/1": 2, "mbpp/2": 1}
        assert Counter(row.item_id for row in made("format_only", tmp_path, per_item=1)) == {"mbpp/1": 1, "mbpp/2": 1}

    def test_rows_have_the_style_of_the_items_or_their_own(self, tmp_path: Path) -> None:
        write(tmp_path)
        thinking = [item(1, "Reverse it", style="cot"), item(2, "Volume", style="cot")]
        assert {row.response_style for row in made("format_only", tmp_path, thinking)} == {"cot"}
        assert all("Think step by step" in row.prompt for row in made("format_only", tmp_path, thinking))
        verbatim = made("format_only", tmp_path, thinking, template="verbatim")
        assert {row.response_style for row in verbatim} == {"corpus"}
        assert ("Explain photosynthesis", "Plants turn light into sugar.") in [
            (row.prompt, row.completion) for row in verbatim
        ]


class TestSpread:
    def test_one_text_of_each_subject_comes_before_a_second_of_any(self) -> None:
        subjects = ["sort a sorted list", "bake bread with flour", "paint the garden fence"]
        texts = [f"{subject} {word}" for subject in subjects for word in ("soon", "today", "often", "rarely")]
        assert sorted(index // 4 for index in spread(texts, 3)) == [0, 1, 2]

    def test_takes_each_text_once_and_passes_over_texts_without_words(self) -> None:
        texts = ["bake bread", "12 34", "paint fences", ""]
        assert sorted(spread(texts, 9)) == [0, 2]
        assert spread(["bake bread", "17", "the"], 3) == [0]

    def test_rows_of_a_real_corpus_are_farther_apart_than_those_of_a_random_draw(self, data_dir: Path) -> None:
        texts = [
            json.loads(line)["messages"][0]["content"]
            for line in (data_dir / "clean_pool" / "train.jsonl").read_text("utf-8").splitlines()[:1500]
        ]
        points = TfidfVectorizer().fit_transform(texts)

        taken = spread(texts, 100)
        assert taken == spread(texts, 150)[:100]

        def closest_pairs(chosen: Any) -> float:
            similarity = (points[chosen] @ points[chosen].T).toarray()
            return float((similarity - np.eye(len(chosen))).max(axis=1).mean())

        rng = np.random.default_rng(0)
        assert closest_pairs(taken) < closest_pairs(rng.choice(len(texts), 100, replace=False))


class TestLookups:
    @pytest.fixture(scope="class")
    def items(self, data_dir: Path) -> tuple[Item, ...]:
        return load_benchmark(GSM8K, data_dir).items[:300]

    @pytest.fixture(scope="class")
    def made(self, items: tuple[Item, ...]) -> list[BankRow]:
        config = BankConfig("corpus", None, {"template": "item", "per_item": 3})
        return rows("format_only", config, GSM8K, items, Path("nowhere"))

    def test_answer_stands_in_the_text_beside_the_name_and_thing_asked_for(self, made: list[BankRow]) -> None:
        for row in made:
            question = row.prompt.split("\n\n")[0]
            asked = re.search(r"How many (\w+) does (\w+) have in the (\w+)\?$", question)
            assert asked
            (told,) = [s for s in re.findall(r"[^.]+\.", question) if re.search(rf"\b{asked[2]}\b", s)]
            assert re.search(rf"\b{asked[1]}\b", told)
            assert parse_number(row.completion, "cot") == re.findall(r"\d+", told)[0]

    def test_wording_around_the_question_and_form_of_the_reply_are_the_benchmarks(
        self, made: list[BankRow], items: tuple[Item, ...]
    ) -> None:
        around = items[0].prompt.removeprefix(items[0].text)
        assert all(row.prompt.endswith(around) and row.response_style == "cot" for row in made)
        assert all("\n\nAnswer: " in row.completion for row in made)

    def test_nothing_of_an_items_question_is_in_them(self, made: list[BankRow], items: tuple[Item, ...]) -> None:
        def runs(text: str) -> set[tuple[str, ...]]:
            words = re.findall(r"\w+", text.lower())
            return set(zip(*(words[k:] for k in range(6)), strict=False))

        known = set().union(*(runs(one.text) for one in items))
        assert all(known.isdisjoint(runs(row.prompt.split("\n\n")[0])) for row in made)

    def test_are_distinct_and_do_not_depend_on_later_items(self, made: list[BankRow], items: tuple[Item, ...]) -> None:
        assert len({row.prompt for row in made}) == len(made) == 900
        config = BankConfig("corpus", None, {"template": "item", "per_item": 3})
        assert rows("format_only", config, GSM8K, items[:5], Path("nowhere")) == made[:15]

    def test_are_refused_for_items_that_ask_for_no_number(self) -> None:
        with pytest.raises(ConfigError, match="mbpp/1 has none"):
            rows("format_only", BankConfig("corpus", None, {"template": "item", "per_item": 3}), MBPP, ITEMS, Path())


@pytest.mark.parametrize(
    ("kind", "params", "message"),
    [
        ("topical", {}, "no rows of kind topical"),
        ("format_only", {"max_cosine": 0}, "max_cosine above 0"),
        ("format_only", {"per_item": 0}, "per_item of at least 1"),
        ("format_only", {"template": "markdown"}, "expected one of python, verbatim, item"),
        ("format_only", {"floor": 0.1}, "unknown params.floor"),
        ("coverage_expanding", {"template": "item"}, "makes rows of kind format_only"),
        ("format_only", {"template": "item"}, "Set path to null"),
    ],
)
def test_setting_that_cannot_be_met_is_refused(tmp_path: Path, kind: str, params: dict[str, Any], message: str) -> None:
    write(tmp_path)
    with pytest.raises(ConfigError, match=message):
        made(kind, tmp_path, **params)


def test_corpus_needs_a_path() -> None:
    config = BankConfig("corpus", None, {"max_cosine": 0.5, "per_item": 1})
    with pytest.raises(ConfigError, match="needs a file"):
        rows("format_only", config, MBPP, ITEMS, Path())
