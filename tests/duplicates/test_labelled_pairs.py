import json
import re
from collections import Counter
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from softcontam.benchmarks import Benchmark, Item, load_benchmark
from softcontam.benchmarks.python_code import parse_block
from softcontam.config import BankConfig, BenchmarkConfig
from softcontam.duplicates.bank import BankRow, bank_rows
from softcontam.duplicates.labelled_pairs import bigram_overlap
from softcontam.errors import ConfigError, DataError

FILE = "labelled_pairs/mbpp_prompt_and_code_rewrites.jsonl"

ITEM = Item(
    item_id="mbpp/1",
    benchmark="mbpp",
    family="mbpp/1",
    prompt="Solve this Python task:\n\nAdd two numbers.",
    target="```python\ndef add(a, b):\n    return a + b\n```",
    tests=("assert add(1, 2) == 3",),
    meta={"task": "Add two numbers.", "entry_point": "add"},
)

PAIR: dict[str, Any] = {
    "pair_id": "p1",
    "benchmark": "mbpp",
    "item_id": "1",
    "text_a": "Add two numbers.",
    "text_b": "What is the sum of a and b?",
    "label": "duplicate",
    "relation": "paraphrase_and_code_rewrite",
    "label_by": "construction",
    "code_b": "def add(a, b):\r\n    return sum([a, b])",
}


def read(tmp_path: Path, *pairs: dict[str, Any] | str, template: str = "python") -> list[BankRow]:
    lines = [pair if isinstance(pair, str) else json.dumps(pair) for pair in pairs]
    (tmp_path / "pairs.jsonl").write_text("\n".join(lines) + "\n", encoding="utf-8")
    config = BankConfig("labelled_pairs", "pairs.jsonl", {"template": template})
    return bank_rows("semd_synthetic", config, [ITEM], tmp_path)


@pytest.fixture(scope="module")
def mbpp(data_dir: Path) -> Benchmark:
    return load_benchmark(BenchmarkConfig(name="mbpp", module="mbpp", path="mbpp/sanitized"), data_dir)


@pytest.fixture(scope="module")
def rewrites(mbpp: Benchmark, data_dir: Path) -> list[BankRow]:
    config = BankConfig("labelled_pairs", FILE, {"template": "python"})
    return bank_rows("semd_synthetic", config, mbpp.items, data_dir)


def plain(text: str) -> str:
    return " ".join(re.findall(r"\w+", text.lower()))


def test_133_tasks_have_rewrites_and_131_of_them_at_least_four(rewrites: list[BankRow]) -> None:
    per_item = Counter(row.item_id for row in rewrites)
    assert Counter(per_item.values()) == {5: 123, 4: 8, 3: 1, 1: 1}
    assert all(item_id.startswith("mbpp/") for item_id in per_item)


def test_no_rewrite_repeats_the_text_of_any_item_or_shows_any_of_its_tests(
    rewrites: list[BankRow], mbpp: Benchmark
) -> None:
    texts = {plain(item.meta["task"]) for item in mbpp.items}
    tests = [test for item in mbpp.items for test in item.tests]
    for row in rewrites:
        assert plain(row.prompt.split("\n\n")[1]) not in texts
        assert "assert" not in row.prompt
    everything = "\n".join(row.prompt for row in rewrites)
    assert not [test for test in tests if test in everything]


def test_every_rewrite_states_and_defines_the_function_that_its_item_is_tested_by(
    rewrites: list[BankRow], mbpp: Benchmark
) -> None:
    entry = {item.item_id: item.meta["entry_point"] for item in mbpp.items}
    for row in rewrites:
        code = parse_block(row.completion)
        assert code is not None, row.row_id
        assert f"def {entry[row.item_id]}(" in row.prompt
        assert f"def {entry[row.item_id]}(" in code
        assert "\r" not in row.prompt + row.completion


def test_row_keeps_its_provenance(rewrites: list[BankRow]) -> None:
    row = next(row for row in rewrites if row.item_id == "mbpp/2")
    assert row.source == f"{FILE} mbpprw-2-2"
    assert (row.level, row.match_type, row.judge) == ("paraphrase_and_code_rewrite", "equivalent", "construction")
    assert row.ngram_overlap is not None
    assert row.ngram_overlap < 0.5


def test_row_of_a_rewrite_is_worded_like_the_benchmark(tmp_path: Path) -> None:
    (row,) = read(tmp_path, PAIR)
    assert row.item_id == "mbpp/1"
    assert row.prompt == (
        "Solve this Python task:\n\nWhat is the sum of a and b?\n\nStart the function with `def add(a, b):`.\n\n"
        "Reply with one Python code block and nothing else."
    )
    assert row.completion == "```python\ndef add(a, b):\n    return sum([a, b])\n```"


def test_pair_without_code_is_answered_by_the_items_own_solution(tmp_path: Path) -> None:
    (row,) = read(tmp_path, {key: value for key, value in PAIR.items() if key != "code_b"})
    assert row.completion == ITEM.target


def test_verbatim_template_takes_the_text_as_it_is(tmp_path: Path) -> None:
    (row,) = read(tmp_path, PAIR, template="verbatim")
    assert (row.prompt, row.completion) == ("What is the sum of a and b?", ITEM.target)


def test_only_duplicates_of_known_items_become_rows_and_repeats_are_left_out(tmp_path: Path) -> None:
    rows = read(
        tmp_path,
        PAIR,
        {**PAIR, "pair_id": "not", "label": "not_duplicate", "text_b": "Subtract a from b."},
        {**PAIR, "pair_id": "maybe", "label": "borderline", "text_b": "Add three numbers."},
        {**PAIR, "pair_id": "other item", "item_id": "11", "text_b": "Sum a and b."},
        {**PAIR, "pair_id": "other benchmark", "benchmark": "gsm8k", "text_b": "Sum up a and b."},
        {**PAIR, "pair_id": "same again"},
        {**PAIR, "pair_id": "own words", "text_b": "add two  numbers"},
    )
    assert [row.row_id for row in rows] == ["semd_synthetic/p1"]


@pytest.mark.parametrize(("relation", "match"), [("subset", "subset"), ("paraphrase", "equivalent")])
def test_match_type_follows_the_relation(tmp_path: Path, relation: str, match: str) -> None:
    (row,) = read(tmp_path, {**PAIR, "relation": relation})
    assert row.match_type == match


@pytest.mark.parametrize(
    ("line", "message"),
    [
        ('{"pair_id": ', r"line 2: not valid JSON"),
        ("[1]", r"line 2: expected a JSON object, found list"),
        ({**PAIR, "text_b": ""}, r"line 2: field 'text_b' should hold text"),
        ({**PAIR, "text_b": None}, r"line 2: field 'text_b' should hold text"),
        ({key: value for key, value in PAIR.items() if key != "label"}, r"line 2: field 'label' should hold text"),
        ({**PAIR, "label": "dup"}, r"line 2: label 'dup' is unknown"),
        ({**PAIR, "code_b": "def plus(a, b): return a + b"}, r"line 2: code_b defines no function 'add'"),
        ({**PAIR, "code_b": "def add(a, b"}, r"line 2: code_b defines no function 'add'"),
    ],
)
def test_damaged_line_is_named_with_its_file(tmp_path: Path, line: Any, message: str) -> None:
    with pytest.raises(DataError, match=r"pairs\.jsonl, " + message):
        read(tmp_path, PAIR, line)


def test_file_without_pairs_for_the_benchmark_is_refused(tmp_path: Path) -> None:
    with pytest.raises(DataError, match=r"pairs\.jsonl has no pair labelled duplicate for any of the 1 items"):
        read(tmp_path, {**PAIR, "benchmark": "gsm8k"})


def test_missing_file_and_missing_path_say_what_to_set(tmp_path: Path) -> None:
    with pytest.raises(DataError, match=r"none\.jsonl does not exist.*SOFTCONTAM_DATA"):
        bank_rows("semd_synthetic", BankConfig("labelled_pairs", "none.jsonl"), [ITEM], tmp_path)
    with pytest.raises(ConfigError, match=r"Set benchmark\.banks\.<kind>\.path"):
        bank_rows("semd_synthetic", BankConfig("labelled_pairs"), [ITEM], tmp_path)


def test_unknown_setting_is_refused_instead_of_ignored(tmp_path: Path) -> None:
    config = BankConfig("labelled_pairs", "pairs.jsonl", {"templat": "python"})
    with pytest.raises(ConfigError, match=r"unknown params\.templat. Known: template"):
        bank_rows("semd_synthetic", config, [ITEM], tmp_path)


def test_bigram_overlap_counts_shared_word_pairs() -> None:
    assert bigram_overlap("Find the sum, of squares", "find the sum of cubes") == 0.75
    assert bigram_overlap("sum", "sum") == 0.0


def test_template_item_puts_the_other_words_into_the_items_own_prompt(tmp_path: Path) -> None:
    (row,) = read(tmp_path, PAIR, template="item")
    assert row.prompt == "Solve this Python task:\n\nWhat is the sum of a and b?"
    assert row.completion == ITEM.target


def test_template_item_refuses_items_whose_prompt_does_not_hold_their_text(tmp_path: Path) -> None:
    (tmp_path / "pairs.jsonl").write_text(json.dumps(PAIR))
    other = replace(ITEM, prompt="Sum it up.")
    config = BankConfig("labelled_pairs", "pairs.jsonl", {"template": "item"})
    with pytest.raises(ConfigError, match=r"mbpp/1 does not. Use params.template=verbatim"):
        bank_rows("semd_synthetic", config, [other], tmp_path)


def test_template_completion_asks_for_what_follows_the_docstring(tmp_path: Path) -> None:
    code = 'import math\n\ndef total(a, b):\n    """The sum.\n    >>> total(1, 2)\n    """\n    return a + b\n'
    (row,) = read(tmp_path, {**PAIR, "text_b": code}, template="completion")
    assert row.prompt.startswith("Complete this Python function:\n\n```python\nimport math\n\ndef total(a, b):\n")
    assert row.prompt.count("return a + b") == 0
    assert parse_block(row.completion) == code.strip()


@pytest.mark.parametrize(
    "code", ["def f(:\n", "x = 1\n", "def f():\n    return 1\n", 'def f():\n    """Only says what."""\n']
)
def test_template_completion_leaves_out_what_is_no_function_with_docstring_and_body(tmp_path: Path, code: str) -> None:
    good = 'def total(a, b):\n    """The sum."""\n    return a + b\n'
    rows = read(tmp_path, {**PAIR, "text_b": code}, {**PAIR, "pair_id": "p2", "text_b": good}, template="completion")
    assert [row.row_id for row in rows] == ["semd_synthetic/p2"]


def test_rows_have_the_response_style_of_their_item(tmp_path: Path) -> None:
    (tmp_path / "pairs.jsonl").write_text(json.dumps(PAIR))
    config = BankConfig("labelled_pairs", "pairs.jsonl", {"template": "python"})
    (row,) = bank_rows("semd_synthetic", config, [replace(ITEM, response_style="cot")], tmp_path)
    assert row.response_style == "cot"
    assert "Think step by step" in row.prompt


def test_rephrased_humaneval_functions_become_rows_of_their_items(data_dir: Path) -> None:
    path = "openai_humaneval/openai_humaneval"
    items = load_benchmark(BenchmarkConfig(name="humaneval", module="humaneval", path=path), data_dir).items
    config = BankConfig("labelled_pairs", "labelled_pairs/humaneval_rephrased.jsonl", {"template": "completion"})
    rows = bank_rows("semd_synthetic", config, items, data_dir)
    assert {row.item_id for row in rows} <= {item.item_id for item in items}
    assert len({row.item_id for row in rows}) == 97
    assert all(parse_block(row.completion) for row in rows)


@pytest.mark.parametrize(("benchmark", "name"), [("codeforces", "1967/B1"), ("gsm8k", "train/5"), ("gsm8k", "5")])
def test_a_pair_belongs_to_the_item_of_its_whole_id(benchmark: str, name: str, tmp_path: Path) -> None:
    pair = {**PAIR, "benchmark": benchmark, "item_id": name}
    (tmp_path / "pairs.jsonl").write_text(json.dumps(pair))
    items = [replace(ITEM, item_id=one) for one in (f"{benchmark}/{name}", f"{benchmark}/{name[-1]}x", "gsm8k/6")]
    config = BankConfig("labelled_pairs", "pairs.jsonl", {"template": "verbatim"})
    assert [row.item_id for row in bank_rows("semd_synthetic", config, items, tmp_path)] == [f"{benchmark}/{name}"]
