import ast
from pathlib import Path

import pandas as pd
import pytest

from softcontam.benchmarks import Benchmark, load_benchmark
from softcontam.benchmarks.humaneval import parse
from softcontam.config import EvalBenchmark, HubConfig
from softcontam.errors import DataError

PATH = "openai_humaneval/openai_humaneval"


def config(path: str = PATH) -> EvalBenchmark:
    hub = HubConfig("openai/openai_humaneval", "openai_humaneval", None, "MIT")
    return EvalBenchmark(name="humaneval", module="humaneval", path=path, hub=hub)


@pytest.fixture(scope="module")
def humaneval(data_dir: Path) -> Benchmark:
    return load_benchmark(config(), data_dir)


def test_has_164_tasks_numbered_from_0(humaneval: Benchmark) -> None:
    assert [item.item_id for item in humaneval.items] == [f"humaneval/{n}" for n in range(164)]
    assert (humaneval.chance, humaneval.source.licence) == (0.0, "MIT")


def test_task_0_asks_to_complete_the_function_and_is_answered_by_the_whole_of_it(humaneval: Benchmark) -> None:
    item = humaneval.items[0]
    assert item.meta["entry_point"] == "has_close_elements"
    assert "def has_close_elements(numbers: List[float], threshold: float) -> bool:" in item.prompt
    assert "return True" not in item.prompt.replace("    True", "")
    assert item.target.startswith("```python\nfrom typing import List\n")
    assert "def check(candidate):" in item.tests[0]


def test_every_target_parses_and_keeps_what_the_solution_does(humaneval: Benchmark, data_dir: Path) -> None:
    frame = pd.read_parquet(next((data_dir / PATH).glob("test-*.parquet")))
    for item, original in zip(humaneval.items, frame.prompt + frame.canonical_solution, strict=True):
        code = parse(item, item.target)
        assert code is not None, item.item_id
        assert ast.dump(ast.parse(code)) == ast.dump(ast.parse(original)), item.item_id
        assert item.meta["entry_point"] in code


@pytest.mark.parametrize(("first", "second"), [(56, 61), (40, 43), (38, 50), (33, 37), (7, 29)])
def test_known_twins_are_one_family(humaneval: Benchmark, first: int, second: int) -> None:
    assert humaneval.items[first].family == humaneval.items[second].family


def test_other_tasks_are_families_of_their_own(humaneval: Benchmark) -> None:
    assert len(humaneval.families()) == 158
    assert humaneval.items[71].family != humaneval.items[157].family  # triangle: its area, is it right-angled


def test_entry_point_that_the_code_does_not_define_is_named_with_its_row(tmp_path: Path) -> None:
    row = {"task_id": ["HumanEval/0"], "prompt": ["def f():\n"], "canonical_solution": ["    return 1\n"]}
    frame = pd.DataFrame({**row, "test": ["def check(candidate): ..."], "entry_point": ["g"]})
    frame.to_parquet(tmp_path / "test-00000-of-00001.parquet")
    with pytest.raises(DataError, match=r"test-00000-of-00001\.parquet, row 1: task HumanEval/0 .* 'g'"):
        load_benchmark(config("."), tmp_path)


def test_mbpp_files_are_refused_by_their_columns(data_dir: Path) -> None:
    with pytest.raises(DataError, match=r"mbpp/sanitized/test-.* lacks the columns canonical_solution, test, entry"):
        load_benchmark(config("mbpp/sanitized"), data_dir)
