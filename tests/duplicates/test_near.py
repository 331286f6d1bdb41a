import ast
import re
import subprocess
import sys
from collections import Counter
from difflib import SequenceMatcher
from pathlib import Path

import pytest

from softcontam.benchmarks import Item, load_benchmark
from softcontam.benchmarks.python_code import parse_block
from softcontam.config import BenchmarkConfig
from softcontam.duplicates import near
from softcontam.duplicates.bank import BankRow
from softcontam.duplicates.near import LEVELS
from softcontam.errors import ConfigError

TASK = (
    "Write a function that checks whether the given list, which holds 12 numbers, contains every one of `other_list`."
    " Then return the smallest element, named Total Sum, or three if nothing remains."
)
ITEM = Item(
    item_id="made/1",
    benchmark="made",
    family="made/1",
    prompt=f"Solve this task:\n\n{TASK}\n\n```python\nassert check_all([1, 2]) == True\n```\n\nReply with code.",
    target="```python\ndef check_all(x):\n    return 3\n```",
    meta={"task": TASK},
)
BENCHMARKS = {
    "mbpp": BenchmarkConfig(name="mbpp", module="mbpp", path="mbpp/sanitized"),
    "humaneval": BenchmarkConfig(name="humaneval", module="humaneval", path="openai_humaneval/openai_humaneval"),
    "gsm8k": BenchmarkConfig(name="gsm8k", module="gsm8k", path="gsm8k/main", response_style="cot", max_items=300),
}
TINYWORLD = BenchmarkConfig(
    name="tinyworld", module="tinyworld", params={"world": "holdings", "draw": "near", "n_families": 40}
)


def longest_run(text: str, other: str) -> int:
    """Words in a row that two texts share, read as filters read them: lower case, no punctuation."""
    words, others = (re.findall(r"\w+", one.lower()) for one in (text, other))
    return SequenceMatcher(None, words, others, autojunk=False).find_longest_match().size


def loaded(name: str, data: Path) -> tuple[Item, ...]:
    config = TINYWORLD if name == "tinyworld" else BENCHMARKS[name]
    return load_benchmark(config, data).limited(300).items


def edited(row: BankRow, item: Item) -> str:
    """The item's text as the row has it; everything around it must be as it was."""
    start = item.prompt.index(item.text)
    after = item.prompt[start + len(item.text) :]
    assert row.prompt.startswith(item.prompt[:start])
    assert row.prompt.endswith(after)
    return row.prompt[start : len(row.prompt) - len(after)]


@pytest.mark.parametrize("name", ["tinyworld", "mbpp", "gsm8k"])
def test_edits_stay_inside_the_items_text_and_rows_differ(
    name: str, request: pytest.FixtureRequest, tmp_path: Path
) -> None:
    items = {
        item.item_id: item
        for item in loaded(name, tmp_path if name == "tinyworld" else request.getfixturevalue("data_dir"))
    }
    rows = near.rows(tuple(items.values()))
    assert {row.level for row in rows} == set(LEVELS)
    assert len({row.prompt for row in rows} | {item.prompt for item in items.values()}) == len(rows) + len(items)
    for row in rows:
        item = items[row.item_id]
        assert row.completion == item.target
        assert edited(row, item) != item.text
        assert re.findall(r"\d+", row.prompt) == re.findall(r"\d+", item.prompt)


@pytest.mark.parametrize("name", ["tinyworld", "mbpp", "gsm8k"])
def test_n_gram_filters_still_see_every_text_that_is_long_enough(
    name: str, request: pytest.FixtureRequest, tmp_path: Path
) -> None:
    items = {
        item.item_id: item
        for item in loaded(name, tmp_path if name == "tinyworld" else request.getfixturevalue("data_dir"))
    }
    for row in near.rows(tuple(items.values())):
        item = items[row.item_id]
        if len(item.text.split()) > 8:
            assert longest_run(row.prompt, item.prompt) >= 8, row.row_id
        if row.level in ("case_punctuation", "sentence_prefix") and len(item.text.split()) > 13:
            assert longest_run(edited(row, item), item.text) >= 13, row.row_id


def test_code_numbers_names_and_tests_are_never_edited() -> None:
    for row in near.rows([ITEM], per_item=80):
        text = edited(row, ITEM)
        for kept in ("12", "`other_list`", "Total Sum", "three"):
            assert kept in text
        assert "```python\nassert check_all([1, 2]) == True\n```" in row.prompt


def test_typo_changes_letters_inside_words_and_not_their_number() -> None:
    rows = [row for row in near.rows([ITEM], per_item=40) if row.level == "typo"]
    assert rows
    for row in rows:
        before, after = TASK.split(), edited(row, ITEM).split()
        assert len(before) == len(after)
        for old, new in zip(before, after, strict=True):
            assert (old[0], old[-1]) == (new[0], new[-1])
            assert sorted(new) == sorted(old) or len(new) == len(old) + 1


def test_case_and_punctuation_leave_every_word() -> None:
    for row in near.rows([ITEM], per_item=40):
        if row.level == "case_punctuation":
            words = (re.findall(r"\w+", text.lower()) for text in (edited(row, ITEM), TASK))
            assert len({tuple(one) for one in words}) == 1


def test_sentence_stands_in_front_and_the_text_is_whole() -> None:
    rows = [row for row in near.rows([ITEM]) if row.level == "sentence_prefix"]
    assert edited(rows[0], ITEM).endswith(f". {TASK}")


def test_docstring_of_humaneval_is_text_and_the_code_around_it_stays(data_dir: Path) -> None:
    items = {item.item_id: item for item in loaded("humaneval", data_dir)}
    rows = near.rows(tuple(items.values()))
    assert len({row.item_id for row in rows}) == 163

    def without_docstrings(prompt: str) -> str:
        tree = ast.parse((parse_block(prompt) or "") + "\n    pass\n")
        for node in ast.walk(tree):
            if isinstance(node, ast.FunctionDef) and ast.get_docstring(node) is not None:
                node.body = node.body[1:]
        return ast.dump(tree)

    for row in rows:
        item = items[row.item_id]
        assert without_docstrings(row.prompt) == without_docstrings(item.prompt), row.row_id
        assert re.findall(r"^ *>>>.*$", row.prompt, re.M) == re.findall(r"^ *>>>.*$", item.prompt, re.M)


def test_rows_are_dealt_out_over_the_levels_in_turn() -> None:
    assert Counter(row.level for row in near.rows([ITEM], per_item=8)) == dict.fromkeys(LEVELS, 2)


def test_item_whose_prompt_does_not_hold_its_text_has_no_rows() -> None:
    odd = Item("made/2", "made", "made/2", "Something else.", "x", meta={"task": "Write a function."})
    empty = Item("made/3", "made", "made/3", "Something.", "x", meta={"task": ""})
    assert near.rows([odd, empty]) == []


def test_less_than_one_row_is_refused() -> None:
    with pytest.raises(ConfigError, match="per_item=0 must be at least 1"):
        near.rows([ITEM], per_item=0)


def test_rows_do_not_depend_on_the_process_or_its_hash_seed() -> None:
    code = (
        "from softcontam.benchmarks import Item\nfrom softcontam.duplicates import near\n"
        f"item = Item('made/1', 'made', 'made/1', {ITEM.prompt!r}, {ITEM.target!r}, meta={{'task': {TASK!r}}})\n"
        "print([row.sha256 for row in near.rows([item], per_item=12)])"
    )
    here = [row.sha256 for row in near.rows([ITEM], per_item=12)]
    for seed in ("1", "2"):
        out = subprocess.run(
            [sys.executable, "-c", code], capture_output=True, text=True, check=True, env={"PYTHONHASHSEED": seed}
        )
        assert ast.literal_eval(out.stdout) == here
