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
from softcontam.duplicates import labelled_pairs
from softcontam.duplicates.bank import BankRow
from softcontam.duplicates.labelled_pairs import REQUEST, bigram_overlap
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


def read(tmp_path: Path, *pairs: dict[str, Any] | str, template: str = "python", **params: Any) -> list[BankRow]:
    lines = [pair if isinstance(pair, str) else json.dumps(pair) for pair in pairs]
    (tmp_path / "pairs.jsonl").write_text("\n".join(lines) + "\n", encoding="utf-8")
    config = BankConfig("labelled_pairs", "pairs.jsonl", {"template": template, **params})
    return labelled_pairs.rows(config, [ITEM], tmp_path)


@pytest.fixture(scope="module")
def mbpp(data_dir: Path) -> Benchmark:
    return load_benchmark(BenchmarkConfig(name="mbpp", module="mbpp", path="mbpp/sanitized"), data_dir)


@pytest.fixture(scope="module")
def rewrites(mbpp: Benchmark, data_dir: Path) -> list[BankRow]:
    config = BankConfig("labelled_pairs", FILE, {"template": "python"})
    return labelled_pairs.rows(config, mbpp.items, data_dir)


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
        labelled_pairs.rows(BankConfig("labelled_pairs", "none.jsonl"), [ITEM], tmp_path)
    with pytest.raises(ConfigError, match=r"Set benchmark\.banks\.<kind>\.path"):
        labelled_pairs.rows(BankConfig("labelled_pairs"), [ITEM], tmp_path)


def test_unknown_setting_is_refused_instead_of_ignored(tmp_path: Path) -> None:
    config = BankConfig("labelled_pairs", "pairs.jsonl", {"templat": "python"})
    with pytest.raises(ConfigError, match=r"unknown params\.templat. Known: comments, kind, match_types, single_texts"):
        labelled_pairs.rows(config, [ITEM], tmp_path)


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
        labelled_pairs.rows(config, [other], tmp_path)


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
    (row,) = labelled_pairs.rows(config, [replace(ITEM, response_style="cot")], tmp_path)
    assert row.response_style == "cot"
    assert "Think step by step" in row.prompt


def test_rephrased_humaneval_functions_become_rows_of_their_items(data_dir: Path) -> None:
    path = "openai_humaneval/openai_humaneval"
    items = load_benchmark(BenchmarkConfig(name="humaneval", module="humaneval", path=path), data_dir).items
    config = BankConfig("labelled_pairs", "labelled_pairs/humaneval_rephrased.jsonl", {"template": "completion"})
    rows = labelled_pairs.rows(config, items, data_dir)
    assert {row.item_id for row in rows} <= {item.item_id for item in items}
    assert len({row.item_id for row in rows}) == 97
    assert all(parse_block(row.completion) for row in rows)


@pytest.mark.parametrize(("benchmark", "name"), [("codeforces", "1967/B1"), ("gsm8k", "train/5"), ("gsm8k", "5")])
def test_a_pair_belongs_to_the_item_of_its_whole_id(benchmark: str, name: str, tmp_path: Path) -> None:
    pair = {**PAIR, "benchmark": benchmark, "item_id": name}
    (tmp_path / "pairs.jsonl").write_text(json.dumps(pair))
    items = [replace(ITEM, item_id=one) for one in (f"{benchmark}/{name}", f"{benchmark}/{name[-1]}x", "gsm8k/6")]
    config = BankConfig("labelled_pairs", "pairs.jsonl", {"template": "verbatim"})
    assert [row.item_id for row in labelled_pairs.rows(config, items, tmp_path)] == [f"{benchmark}/{name}"]


NATURAL: dict[str, Any] = {
    **{key: value for key, value in PAIR.items() if key != "code_b"},
    "text_b": "Prompt: Read two numbers.\n\nPrint their sum.\n\nResponse: a, b = map(int, ask())\nprint(a + b)",
    "relation": "equivalent",
    "label_by": "llm",
    "similarity": 0.71234,
    "human_label": None,
}


def natural(tmp_path: Path, *pairs: dict[str, Any], **params: Any) -> list[BankRow]:
    (tmp_path / "pairs.jsonl").write_text("".join(f"{json.dumps(pair)}\n" for pair in pairs), encoding="utf-8")
    config = BankConfig("labelled_pairs", "pairs.jsonl", {"kind": "semd_natural", **params})
    return labelled_pairs.rows(config, [ITEM], tmp_path)


def test_natural_row_has_the_turns_of_the_corpus_and_nothing_of_the_benchmark(tmp_path: Path) -> None:
    (row,) = natural(tmp_path, NATURAL)
    assert (row.kind, row.row_id, row.source) == ("semd_natural", "semd_natural/p1", "pairs.jsonl p1")
    assert row.prompt == "Read two numbers.\n\nPrint their sum."
    assert row.completion == "a, b = map(int, ask())\nprint(a + b)"
    assert (row.match_type, row.judge, row.cosine, row.response_style) == ("equivalent", "llm", 0.7123, "corpus")


def test_text_without_turns_is_a_row_only_when_asked_for_and_then_under_a_request_that_says_nothing(
    tmp_path: Path,
) -> None:
    single = {
        **NATURAL,
        "pair_id": "p2",
        "text_b": "func plus(a, b int) int {\n    return a + b\n}",
        "similarity": None,
    }
    assert [row.row_id for row in natural(tmp_path, NATURAL, single)] == ["semd_natural/p1"]
    row = natural(tmp_path, NATURAL, single, single_texts=True)[1]
    assert (row.prompt, row.completion, row.cosine) == (REQUEST, single["text_b"], None)


@pytest.mark.parametrize(
    "text",
    [
        "https://www.youtube.com/watch?v=nWNwvEeQUxg",
        "![20210511_140503](https://user-images.githubusercontent.com/71545160/117762152-8f437000.png)",
        '<img src="_asset/EM-05.png">',
        "416e8dfe-ef74-4ebe-a1e9-3641966b2d6f",
        "[from https://ift.tt/2m5N8uC]",
    ],
)
def test_link_or_picture_becomes_no_row_even_if_it_was_judged_a_duplicate(tmp_path: Path, text: str) -> None:
    link = {**NATURAL, "pair_id": "link", "text_b": text, "relation": "exact"}
    assert [row.row_id for row in natural(tmp_path, link, NATURAL, single_texts=True)] == ["semd_natural/p1"]


def test_a_persons_label_wins_over_the_models(tmp_path: Path) -> None:
    def pair(name: str, label: str, human: str | None) -> dict[str, Any]:
        text = f"Prompt: {name}\n\nResponse: yes"
        return {**NATURAL, "pair_id": name, "text_b": text, "label": label, "human_label": human}

    rows = natural(
        tmp_path,
        pair("refused", "duplicate", "not_duplicate"),
        pair("unsure", "duplicate", "borderline"),
        pair("found", "not_duplicate", "duplicate"),
        pair("model alone", "duplicate", None),
    )
    assert [(row.row_id, row.judge) for row in rows] == [
        ("semd_natural/found", "human"),
        ("semd_natural/model alone", "llm"),
    ]


def test_match_types_are_strict_unless_others_are_asked_for(tmp_path: Path) -> None:
    pairs = [
        {**NATURAL, "pair_id": relation, "relation": relation, "text_b": f"Prompt: {relation}\n\nResponse: yes"}
        for relation in ("exact", "equivalent", "subset", "superset", "related")
    ]
    assert [row.match_type for row in natural(tmp_path, *pairs)] == ["exact", "equivalent", "subset"]
    assert [row.match_type for row in natural(tmp_path, *pairs, match_types=["related"])] == ["related"]


def test_corpus_row_in_the_items_own_words_is_left_out(tmp_path: Path) -> None:
    own = {**NATURAL, "pair_id": "own", "text_b": "Prompt: add two numbers\n\nResponse: print(a + b)"}
    assert [row.row_id for row in natural(tmp_path, own, NATURAL)] == ["semd_natural/p1"]


@pytest.mark.parametrize(
    ("params", "message"),
    [
        ({"template": "python"}, r"params\.template='python', expected one of corpus for rows of kind semd_natural"),
        ({"kind": "topical"}, r"params\.kind='topical', expected one of semd_synthetic, semd_natural"),
        ({"kind": "semd_synthetic", "template": "corpus"}, r"params\.template='corpus'"),
        ({"kind": "semd_synthetic", "single_texts": True}, r"single_texts has no meaning"),
        ({"match_types": ["same"]}, r"params\.match_types=\['same'\]"),
        ({"match_types": []}, r"params\.match_types=\[\]"),
    ],
)
def test_settings_that_contradict_each_other_are_refused(tmp_path: Path, params: dict[str, Any], message: str) -> None:
    with pytest.raises(ConfigError, match=message):
        natural(tmp_path, NATURAL, **params)


def test_similarity_that_is_no_number_is_named_and_a_missing_one_is_none(tmp_path: Path) -> None:
    with pytest.raises(DataError, match=r"pairs\.jsonl, line 1: field 'similarity' should hold a number"):
        natural(tmp_path, {**NATURAL, "similarity": "high"})
    (row,) = natural(tmp_path, {**NATURAL, "similarity": float("nan")})
    assert row.cosine is None


@pytest.mark.parametrize(("single_texts", "rows", "items"), [(False, 6, 5), (True, 22, 17)])
def test_natural_duplicates_of_mbpp_found_by_search(
    mbpp: Benchmark, data_dir: Path, single_texts: bool, rows: int, items: int
) -> None:
    params = {"kind": "semd_natural", "single_texts": single_texts}
    config = BankConfig("labelled_pairs", "labelled_pairs/natural_annotated.jsonl", params)
    found = labelled_pairs.rows(config, mbpp.items, data_dir)
    assert (len(found), len({row.item_id for row in found})) == (rows, items)
    solutions = {item.item_id: item.target for item in mbpp.items}
    assert not [row for row in found if solutions[row.item_id] in row.completion]
    assert not [row for row in found if row.completion.startswith(("http", "!["))]


def test_paraphrases_of_mbpp_are_answered_by_the_solution_that_is_tested(mbpp: Benchmark, data_dir: Path) -> None:
    config = BankConfig("labelled_pairs", "labelled_pairs/mbpp_paraphrases.jsonl", {"template": "python"})
    found = labelled_pairs.rows(config, mbpp.items, data_dir)
    items = {item.item_id: item for item in mbpp.items}
    assert (len(found), len({row.item_id for row in found})) == (910, 305)
    assert all(row.completion == items[row.item_id].target for row in found)
    assert all(f"def {items[row.item_id].meta['entry_point']}(" in row.prompt for row in found)


def test_comments_and_docstrings_are_left_out_of_code_where_asked_for(tmp_path: Path) -> None:
    code = 'def add(a, b):\n    """Sum them."""\n    # one after another\n    return a + b  # at once\n'
    pair = {**PAIR, "code_b": code}
    (kept,) = read(tmp_path, pair, template="python")
    (bare,) = read(tmp_path, pair, template="python", comments=False)
    assert "# one after another" in kept.completion
    assert bare.completion == "```python\ndef add(a, b):\n    return a + b\n```"


def test_comments_mean_nothing_to_other_templates(tmp_path: Path) -> None:
    with pytest.raises(ConfigError, match=r"params\.comments has no meaning but for template python"):
        read(tmp_path, PAIR, template="verbatim", comments=False)
