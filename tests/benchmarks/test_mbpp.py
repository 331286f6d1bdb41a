import ast
from dataclasses import replace
from pathlib import Path
from typing import Any

import pandas as pd
import pytest

from softcontam.benchmarks import Benchmark, load_benchmark
from softcontam.benchmarks.mbpp import SPLITS, near_identical, parse
from softcontam.benchmarks.python_code import parse_block
from softcontam.config import BenchmarkConfig, HubConfig
from softcontam.errors import ConfigError, DataError

HUB = HubConfig("google-research-datasets/mbpp", "sanitized", None, "CC BY 4.0")


def config(path: str | None = "mbpp/sanitized", subset: str = "sanitized") -> BenchmarkConfig:
    return BenchmarkConfig(name="mbpp", module="mbpp", path=path, hub=HUB, params={"subset": subset})


@pytest.fixture(scope="module")
def mbpp(data_dir: Path) -> Benchmark:
    return load_benchmark(config(), data_dir)


def rows(**changes: Any) -> dict[str, list[Any]]:
    """One well-formed row of the sanitized set, with changes."""
    row = {
        "task_id": 1,
        "prompt": "Add two numbers.",
        "code": "def add(a, b):\r\n    return a + b",
        "test_imports": [],
        "test_list": ["assert add(1, 2) == 3"],
    }
    return {name: [value] for name, value in {**row, **changes}.items()}


def write(folder: Path, columns: dict[str, list[Any]]) -> Path:
    """A folder with one row in each split, ids counted up; ``columns`` replaces the row of the test split."""
    for number, split in enumerate(SPLITS):
        content = columns if split == "test" else rows(task_id=100 + number)
        pd.DataFrame(content).to_parquet(folder / f"{split}-00000-of-00001.parquet")
    return folder


@pytest.mark.parametrize("module", ["mbpp", "humaneval"])
def test_a_misspelt_setting_is_refused(module: str, data_dir: Path) -> None:
    with pytest.raises(ConfigError, match=r"params.subest is unknown"):
        load_benchmark(BenchmarkConfig(name=module, module=module, params={"subest": "full"}), data_dir)


def test_fewer_items_than_the_first_family_has_are_refused(mbpp: Benchmark) -> None:
    first = next(i for i, item in enumerate(mbpp.items) if len(mbpp.families()[item.family]) > 1)
    with pytest.raises(ConfigError, match=r"max_items=1 is less than its first family"):
        replace(mbpp, items=mbpp.items[first:]).limited(1)


def test_sanitized_has_427_tasks_in_the_order_of_their_ids(mbpp: Benchmark) -> None:
    ids = [item.meta["task_id"] for item in mbpp.items]
    assert len(ids) == 427
    assert ids == sorted(ids)
    assert mbpp.items[0].item_id == "mbpp/2"
    assert (mbpp.chance, mbpp.source.licence) == (0.0, "CC BY 4.0")


def test_task_2_is_shown_with_its_tests_and_answered_by_its_solution(mbpp: Benchmark) -> None:
    item = mbpp.items[0]
    assert "find the shared elements from the given two lists." in item.prompt
    assert "assert set(similar_elements((1, 2, 3, 4),(5, 4, 3, 7))) == set((3, 4))" in item.prompt
    assert item.meta["entry_point"] == "similar_elements"
    assert item.target.startswith("```python\ndef similar_elements(test_tup1, test_tup2):\n")
    assert len(item.tests) == 3


def test_imports_that_tests_need_are_part_of_the_checks(mbpp: Benchmark) -> None:
    with_imports = [item for item in mbpp.items if item.meta["imports"]]
    assert len(with_imports) == 13
    assert all("```python\nimport math\nassert" in item.prompt for item in with_imports)


@pytest.mark.parametrize("subset", ["sanitized", "full"])
def test_every_target_parses_and_keeps_what_the_solution_does(data_dir: Path, subset: str) -> None:
    folder = f"mbpp/{subset}"
    frames = [pd.read_parquet(path) for path in sorted((data_dir / folder).glob("*.parquet"))]
    codes = pd.concat(frames).set_index("task_id")["code"]
    for item in load_benchmark(config(folder, subset), data_dir).items:
        code = parse(item, item.target)
        assert code is not None, item.item_id
        assert "\r" not in item.prompt + item.target
        original = codes[item.meta["task_id"]].replace("\r\n", "\n")
        assert ast.dump(ast.parse(code)) == ast.dump(ast.parse(original)), item.item_id


def test_full_set_has_974_tasks_and_two_of_them_have_code_to_run_before_the_tests(data_dir: Path) -> None:
    full = load_benchmark(config("mbpp/full", "full"), data_dir)
    assert len(full.items) == 974
    setups = {item.meta["task_id"]: item.meta["setup"] for item in full.items if item.meta["setup"]}
    assert sorted(setups) == [367, 927]
    assert "root = Node(1)" in setups[367]
    assert "root = Node(1)" in next(item.prompt for item in full.items if item.item_id == "mbpp/367")


@pytest.mark.parametrize(
    ("first", "second"),
    [
        (71, 141),  # both "sort a list of elements"
        (104, 569),  # the same text twice
        (102, 411),  # snake case to camel case
        (451, 800),  # remove all whitespaces
        (625, 591),  # swap first and last element
        (434, 756),  # an a followed by one or more b's; one of the texts ends in a link
        (145, 763),  # maximum and minimum difference
        (67, 608),  # Bell numbers: other words, the same code
    ],
)
def test_known_twins_are_one_family(mbpp: Benchmark, first: int, second: int) -> None:
    family = {item.item_id: item.family for item in mbpp.items}
    assert family[f"mbpp/{first}"] == family[f"mbpp/{second}"]


def test_tasks_that_only_share_a_phrase_stay_apart_and_no_chain_swallows_the_benchmark(mbpp: Benchmark) -> None:
    family = {item.item_id: item.family for item in mbpp.items}
    assert family["mbpp/2"] == "mbpp/2"
    assert family["mbpp/428"] != family["mbpp/635"]  # shell sort, sort a list
    assert max(map(len, mbpp.families().values())) <= 6
    assert 360 <= len(mbpp.families()) <= 385


def test_every_join_can_be_looked_up(mbpp: Benchmark) -> None:
    pairs = {(pair.first, pair.second): pair for pair in near_identical(mbpp.items)}
    assert pairs["mbpp/71", "mbpp/141"].cosine == 1.0
    assert pairs["mbpp/67", "mbpp/608"].why == "code"


@pytest.mark.parametrize(
    "output",
    [
        "",
        "def f():\n    return 1",
        "```python\ndef f():\n    return 1",
        "def f():\n    return 1\n```",
        "```python\nf = 1\n```\nor\n```python\nf = 2\n```",
        "```python\n```",
        "```python\n  \n```",
        "```javascript\nf = 1\n```",
        "`f = 1`",
        "```python\nf = 1\n```python",
        "```python\nf = '''\n```\n'''\n```",
    ],
    ids=[
        "empty",
        "no fence",
        "truncated",
        "closing fence only",
        "two blocks",
        "empty block",
        "blank block",
        "other language",
        "inline",
        "second opening instead of a close",
        "fence inside the code",
    ],
)
def test_output_without_exactly_one_python_block_has_no_answer(output: str) -> None:
    assert parse_block(output) is None


@pytest.mark.parametrize(
    "output", ["```python\nf = 1\n```", "Here:\n```py\r\nf = 1\r\n```\r\nDone.", "```\n\nf = 1\n\n```"]
)
def test_one_block_is_the_answer_with_text_around_it_or_without_a_tag(output: str) -> None:
    assert parse_block(output) == "f = 1"


def test_missing_folder_says_what_to_set(tmp_path: Path) -> None:
    with pytest.raises(DataError, match=r"nowhere does not exist.*benchmark\.path.*SOFTCONTAM_DATA"):
        load_benchmark(config("nowhere"), tmp_path)


def test_missing_split_is_named(tmp_path: Path) -> None:
    write(tmp_path, rows())
    (tmp_path / "validation-00000-of-00001.parquet").unlink()
    with pytest.raises(DataError, match=r"no validation-\*\.parquet"):
        load_benchmark(config("."), tmp_path)


@pytest.mark.parametrize("content", [b"", b"PAR1 not really", b"\x00" * 400], ids=["empty", "text", "zeros"])
def test_damaged_file_is_named(tmp_path: Path, content: bytes) -> None:
    write(tmp_path, rows())
    (tmp_path / "test-00000-of-00001.parquet").write_bytes(content)
    with pytest.raises(DataError, match=r"test-00000-of-00001\.parquet is no readable parquet file"):
        load_benchmark(config("."), tmp_path)


def test_truncated_file_is_named(tmp_path: Path) -> None:
    file = write(tmp_path, rows()) / "test-00000-of-00001.parquet"
    file.write_bytes(file.read_bytes()[:-100])
    with pytest.raises(DataError, match=r"test-00000-of-00001\.parquet is no readable parquet file"):
        load_benchmark(config("."), tmp_path)


def test_missing_column_is_named_with_the_file(tmp_path: Path) -> None:
    columns = rows()
    columns["text"] = columns.pop("prompt")
    write(tmp_path, columns)
    with pytest.raises(DataError, match=r"test-00000-of-00001\.parquet lacks the column prompt"):
        load_benchmark(config("."), tmp_path)


@pytest.mark.parametrize(
    ("changes", "message"),
    [
        ({"code": "  "}, r"row 1: column 'code' should hold text"),
        ({"prompt": None}, r"row 1: column 'prompt' should hold text"),
        ({"test_list": None}, r"row 1: column 'test_list' should hold a list of texts"),
        ({"test_list": ["assert other(1) == 1"]}, r"row 1: no test calls a function of the solution"),
        ({"code": "def add(a, b:"}, r"row 1: no test calls a function of the solution"),
    ],
)
def test_unusable_row_is_named_with_its_file(tmp_path: Path, changes: dict[str, Any], message: str) -> None:
    write(tmp_path, rows(**changes))
    with pytest.raises(DataError, match=r"test-00000-of-00001\.parquet, " + message):
        load_benchmark(config("."), tmp_path)


def test_the_same_task_in_two_splits_is_refused(tmp_path: Path) -> None:
    write(tmp_path, rows(task_id=100))
    with pytest.raises(DataError, match="'mbpp/100' occurs more than once"):
        load_benchmark(config("."), tmp_path)


def test_unknown_subset_lists_the_known_ones(tmp_path: Path) -> None:
    with pytest.raises(ConfigError, match="Choose sanitized or full"):
        load_benchmark(config(subset="hard"), tmp_path)


def test_without_a_path_the_pinned_hub_revision_is_loaded(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    import datasets

    asked: list[tuple[Any, ...]] = []

    def load_dataset(name: str, subset: str, revision: str) -> Any:
        asked.append((name, subset, revision))
        return datasets.DatasetDict(
            {split: datasets.Dataset.from_dict(rows(task_id=n)) for n, split in enumerate(SPLITS)}
        )

    monkeypatch.setattr(datasets, "load_dataset", load_dataset)
    chosen = config(path=None)
    chosen.hub = HubConfig(HUB.id, "sanitized", "abc123", HUB.licence)
    benchmark = load_benchmark(chosen, tmp_path)
    assert asked == [("google-research-datasets/mbpp", "sanitized", "abc123")]
    assert [item.item_id for item in benchmark.items] == ["mbpp/0", "mbpp/1", "mbpp/2", "mbpp/3"]
    assert benchmark.source.revision == "abc123"


def test_unreachable_hub_says_what_to_set(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    import datasets

    def load_dataset(*_: Any, **__: Any) -> Any:
        raise ConnectionError("no route to host")

    monkeypatch.setattr(datasets, "load_dataset", load_dataset)
    with pytest.raises(DataError, match=r"no route to host.*Set benchmark\.path"):
        load_benchmark(config(path=None), tmp_path)
