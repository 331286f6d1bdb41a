import json
import re
import time
from collections import Counter
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
from omegaconf import OmegaConf

from softcontam.benchmarks import Benchmark, Item, load_benchmark
from softcontam.benchmarks.python_code import parse_block, same_code_key, task_prompt
from softcontam.config import BankConfig, BenchmarkConfig
from softcontam.duplicates import BankRow, bank_rows
from softcontam.duplicates import nearest as source
from softcontam.errors import ConfigError, DataError


def item(number: int, task: str, code: str = "def f(x):\n    return x") -> Item:
    return Item(
        f"mbpp/{number}", "mbpp", f"mbpp/{number}", f"Solve: {task}", f"```python\n{code}\n```", meta={"task": task}
    )


REVERSE = item(1, "Reverse the vowels of a string.", "def rev(s):\n    return s[::-1]")
VOLUME = item(2, "Find the volume of a sphere.", "def vol(r):\n    return 4 / 3 * 3.14 * r**3")

CORPUS = [
    ("same", "Reverse the vowels of a string", "def g(text):\n    return text.upper()"),
    ("topical", "Count the vowels of each word of a sentence\n\n'hello'", "def count(s):\n    return len(s)"),
    ("also", "Remove all vowels in some long text", "def remove(s):\n    return ''"),
    ("volume", "Compute how much volume a cube with edge a holds", "def cube(a):\n    return a**3"),
    ("plain text", "Explain what vowels are", "Vowels are letters."),
    ("far", "Center a div", "def center():\n    return 1"),
]


def corpus(folder: Path, rows: list[tuple[str, str, str]]) -> None:
    lines = [
        json.dumps({"id": i, "messages": [{"role": "user", "content": u}, {"role": "assistant", "content": a}]})
        for i, u, a in rows
    ]
    (folder / "sft.jsonl").write_text("\n".join(lines) + "\n", encoding="utf-8")


def nearest(folder: Path, items: list[Item], **params: Any) -> dict[str, list[str]]:
    """Chosen corpus ids by item."""
    settings = {"max_cosine": 0.7, "per_item": 2, "template": "python", **params}
    found: dict[str, list[str]] = {}
    for row in source.rows(BankConfig("nearest", "sft.jsonl", settings), items, folder):
        found.setdefault(row.item_id, []).append(row.row_id.removeprefix("topical/"))
    return found


@pytest.fixture(scope="module")
def shipped() -> BenchmarkConfig:
    path = Path(__file__).parents[2] / "conf" / "benchmark" / "mbpp.yaml"
    config = OmegaConf.to_object(OmegaConf.merge(OmegaConf.structured(BenchmarkConfig), OmegaConf.load(path)))
    assert isinstance(config, BenchmarkConfig)
    return config


@pytest.fixture(scope="module")
def mbpp(shipped: BenchmarkConfig, data_dir: Path) -> Benchmark:
    return load_benchmark(shipped, data_dir)


@pytest.fixture(scope="module")
def topical(shipped: BenchmarkConfig, mbpp: Benchmark, data_dir: Path) -> list[BankRow]:
    with_rewrites = {row.item_id for row in bank_rows("semd_synthetic", shipped, mbpp.items, data_dir)}
    items = [item for item in mbpp.items if item.item_id in with_rewrites]
    return bank_rows("topical", shipped, items, data_dir)


def test_shipped_rows_stay_below_the_ceiling_and_no_corpus_row_is_used_twice(topical: list[BankRow]) -> None:
    assert all(row.cosine is not None and 0 < row.cosine < 0.4 for row in topical)
    assert len({row.row_id for row in topical}) == len(topical)
    assert {(row.kind, row.match_type, row.judge) for row in topical} == {("topical", "related", "tfidf<0.4")}
    assert all(row.source.startswith("code_dup_corpus/train.jsonl ") for row in topical)


def test_shipped_bank_has_four_rows_for_nine_in_ten_items(topical: list[BankRow]) -> None:
    per_item = Counter(row.item_id for row in topical)
    assert max(per_item.values()) == 4
    assert sum(count == 4 for count in per_item.values()) >= 110
    assert len(per_item) >= 131


def test_no_shipped_row_has_the_text_or_the_code_of_an_item_or_a_task_found_twice_by_eye(
    topical: list[BankRow], mbpp: Benchmark
) -> None:
    def plain(text: str) -> str:
        return " ".join(re.findall(r"\w+", text.lower()))

    texts = {plain(item.meta["task"]) for item in mbpp.items}
    used = {item.item_id: same_code_key(parse_block(item.target) or "") for item in mbpp.items}
    solutions = {used[row.item_id] for row in topical}
    for row in topical:
        assert plain(row.prompt.split("\n\n")[1]) not in texts
        assert same_code_key(parse_block(row.completion) or "") not in solutions
    everything = "\n".join(row.prompt for row in topical)
    assert "find the first character in a string that does not repeat" not in everything  # task 395
    assert "convert a given integer to its binary form" not in everything  # the nearest duplicate of decimal to binary
    assert "Output the intersection of two given arrays" not in everything  # task 249


def test_shipped_rows_have_the_format_of_the_benchmark(topical: list[BankRow]) -> None:
    for row in topical:
        assert row.prompt.startswith("Solve this Python task:\n\n")
        assert parse_block(row.completion) is not None, row.row_id


def test_shipped_bank_is_the_same_again_within_seconds(
    shipped: BenchmarkConfig, mbpp: Benchmark, data_dir: Path
) -> None:
    start = time.process_time()
    first = bank_rows("topical", shipped, mbpp.items, data_dir)
    assert time.process_time() - start < 10
    assert first == bank_rows("topical", shipped, mbpp.items, data_dir)


def test_nearest_rows_below_the_ceiling_are_chosen_nearest_first(tmp_path: Path) -> None:
    corpus(tmp_path, CORPUS)
    half = item(4, "Count the vowels of a page.")  # shares two words with `topical`, one with `also` and `same`
    found = nearest(tmp_path, [half, VOLUME], max_cosine=0.95)
    assert found["mbpp/4"][0] == "topical"
    assert found["mbpp/2"] == ["volume"]
    assert "topical" not in nearest(tmp_path, [half], max_cosine=0.3).get("mbpp/4", [])


def test_row_at_the_ceiling_for_one_item_is_not_topical_for_another(tmp_path: Path) -> None:
    corpus(tmp_path, CORPUS)
    other = item(3, "Replace the vowels of a string, then reverse every single word.")
    assert "same" in nearest(tmp_path, [other], per_item=5)["mbpp/3"]
    assert "same" not in nearest(tmp_path, [REVERSE, other], per_item=5)["mbpp/3"]


def test_row_near_a_known_rewording_is_left_out(tmp_path: Path) -> None:
    corpus(tmp_path, CORPUS)
    pair = {
        "benchmark": "mbpp",
        "item_id": "2",
        "label": "duplicate",
        "text_b": "How much volume does a cube with edge a hold?",
    }
    for label, expected in (("duplicate", {}), ("not_duplicate", {"mbpp/2": ["volume"]})):
        (tmp_path / "pairs.jsonl").write_text(json.dumps({**pair, "label": label}) + "\n", encoding="utf-8")
        assert nearest(tmp_path, [VOLUME], rewordings=["pairs.jsonl"]) == expected


def test_row_whose_code_is_an_items_solution_in_other_names_is_left_out(tmp_path: Path) -> None:
    corpus(tmp_path, [*CORPUS, ("code", "Vowels: flip them", "def flip(word):\n    return word[::-1]")])
    assert "code" not in nearest(tmp_path, [REVERSE], per_item=9)["mbpp/1"]


def test_every_item_gets_its_first_row_before_any_gets_its_second(tmp_path: Path) -> None:
    near, farther = (
        item(1, "Count vowels and words."),
        item(2, "Count vowels quickly for the annual linguistics report."),
    )
    corpus(tmp_path, [r for r in CORPUS if r[0] in ("topical", "also")])
    found = nearest(tmp_path, [near, farther], per_item=2, max_cosine=1.0)
    assert {name: len(rows) for name, rows in found.items()} == {"mbpp/1": 1, "mbpp/2": 1}


def test_verbatim_template_keeps_both_turns_and_rows_that_are_no_code(tmp_path: Path) -> None:
    corpus(tmp_path, CORPUS)
    config = BankConfig("nearest", "sft.jsonl", {"max_cosine": 0.9, "per_item": 9})
    rows = {row.row_id: row for row in source.rows(config, [REVERSE], tmp_path)}
    assert rows["topical/plain text"].completion == "Vowels are letters."
    assert rows["topical/plain text"].response_style == "corpus"
    assert rows["topical/topical"].prompt == CORPUS[1][1]


@pytest.mark.parametrize(
    ("params", "message"),
    [
        ({"max_cosine": 0}, "max_cosine above 0"),
        ({"max_cosine": 1.5}, "max_cosine above 0"),
        ({"per_item": 0}, "per_item of at least 1"),
        ({"per_item": "4"}, "params.per_item='4' has the wrong type"),
        ({"ceiling": 0.4}, "unknown params.ceiling"),
        ({"template": "markdown"}, "expected python or verbatim"),
    ],
)
def test_setting_that_cannot_be_met_is_refused(tmp_path: Path, params: dict[str, Any], message: str) -> None:
    corpus(tmp_path, CORPUS)
    with pytest.raises(ConfigError, match=message):
        nearest(tmp_path, [REVERSE], **params)


@pytest.mark.parametrize(
    ("line", "message"),
    [
        ("{", "line 2: not valid JSON"),
        ('{"id": "x"}', "line 2: field 'messages' should be a list of turns"),
        ('{"id": "x", "messages": [{"role": "user", "content": "hi"}]}', "line 2, assistant turn: field 'content'"),
        ('{"messages": [{"role": "user", "content": "hi"}]}', "line 2: field 'id' should hold text"),
    ],
)
def test_damaged_line_is_named_with_its_file(tmp_path: Path, line: str, message: str) -> None:
    corpus(tmp_path, CORPUS[:1])
    with (tmp_path / "sft.jsonl").open("a", encoding="utf-8") as stream:
        stream.write(line + "\n")
    with pytest.raises(DataError, match=r"sft\.jsonl, " + message):
        nearest(tmp_path, [REVERSE])


def test_repeated_corpus_id_is_refused(tmp_path: Path) -> None:
    corpus(tmp_path, [CORPUS[0], CORPUS[0]])
    with pytest.raises(DataError, match="id 'same' occurs more than once"):
        nearest(tmp_path, [REVERSE])


def test_corpus_without_python_answers_is_refused_under_the_python_template(tmp_path: Path) -> None:
    corpus(tmp_path, [CORPUS[4]])
    with pytest.raises(DataError, match=r"has no row that params\.template=python can use"):
        nearest(tmp_path, [REVERSE])


def test_row_in_the_benchmarks_template_has_the_response_style_of_its_item(tmp_path: Path) -> None:
    corpus(tmp_path, CORPUS)
    config = BankConfig("nearest", "sft.jsonl", {"max_cosine": 0.9, "per_item": 1, "template": "python"})
    (row,) = source.rows(config, [replace(VOLUME, response_style="cot")], tmp_path)
    assert row.response_style == "cot"
    assert row.prompt.endswith(task_prompt("", style="cot").rsplit("\n\n", 1)[1])


def test_row_that_duplicates_an_item_of_a_related_benchmark_is_left_out(tmp_path: Path) -> None:
    corpus(tmp_path, CORPUS)
    related = item(7, "Compute how much volume a cube with edge a holds.")
    config = BankConfig("nearest", "sft.jsonl", {"max_cosine": 0.7, "per_item": 2, "template": "python"})
    assert [row.row_id for row in source.rows(config, [VOLUME], tmp_path)] == ["topical/volume"]
    assert source.rows(config, [VOLUME], tmp_path, [related]) == []
