"""CodeForces on five made-up problems in the schema of open-r1/codeforces."""

import json
import logging
from pathlib import Path
from typing import Any

import pandas as pd
import pytest

from softcontam.benchmarks import Benchmark, load_benchmark
from softcontam.benchmarks.codeforces import INTERPRETER_MIB, submission
from softcontam.config import BenchmarkConfig, HubConfig
from softcontam.errors import ConfigError, DataError, SandboxError
from softcontam.sandbox import Limits, StdioTests, execute

HUB = HubConfig("open-r1/codeforces", "default", None, "CC BY 4.0")

STATEMENTS = {
    "9001/A": ("Kite Strings", "Mira has n kites and wants the total length of their strings."),
    "9001/B1": ("Tea Party (easy version)", "Guests arrive at minutes a and b. Print how long the first one waits."),
    "9001/B2": (
        "Tea Party (hard version)",
        "There are up to 200000 arrivals now; find the longest waiting time of all.",
    ),
    "9002/A": ("Snail Race", "A snail climbs u metres a day and slides d at night. On which day is it at the top?"),
    "9003/C": ("Kite Strings II", "Mira has n kites and wants the total length of their strings, doubled."),
}
PROGRAM = "n = int(input())\nprint(sum(map(int, input().split())))\n"


def row(problem: str, **changes: Any) -> dict[str, Any]:
    contest, index = problem.split("/")
    title, description = STATEMENTS[problem]
    return {
        "id": problem,
        "aliases": None,
        "contest_id": contest,
        "index": index,
        "title": title,
        "description": description,
        "input_format": "The first line holds n, the second n integers.",
        "output_format": "Print one integer.",
        "interaction_format": None,
        "note": None,
        "examples": [{"input": "2\n3 4", "output": "7"}],
        "time_limit": 2.0,
        "memory_limit": 256.0,
        "input_mode": "stdio",
        "generated_checker": None,
        "official_tests": [{"input": "2\n3 4\n", "output": "7\n"}, {"input": "1\n5\n", "output": "5\n"}],
        "official_tests_complete": True,
        **changes,
    }


def write(
    folder: Path, changes: dict[str, dict[str, Any]] | None = None, solutions: list[Any] | None = None
) -> BenchmarkConfig:
    """Write the problems (with changes by id) and their programs, and return the config that loads them."""
    rows = [row(problem, **(changes or {}).get(problem, {})) for problem in STATEMENTS]
    pd.DataFrame(rows).to_parquet(folder / "test-00000-of-00001.parquet")
    if solutions is None:
        solutions = [{"id": problem, "solution": PROGRAM} for problem in STATEMENTS]
    (folder / "solutions.jsonl").write_text("".join(json.dumps(line) + "\n" for line in solutions))
    return BenchmarkConfig(
        name="codeforces", module="codeforces", path=".", hub=HUB, params={"solutions": "solutions.jsonl"}
    )


@pytest.fixture
def codeforces(tmp_path: Path) -> Benchmark:
    return load_benchmark(write(tmp_path), tmp_path)


def test_the_prompt_has_statement_formats_examples_and_limits(codeforces: Benchmark) -> None:
    prompt = codeforces.items[0].prompt
    for part in (
        "Kite Strings",
        "total length of their strings",
        "Input:\nThe first line holds n",
        "Output:\nPrint one integer.",
        "Example input:\n\n```\n2\n3 4\n```\n\nExample output:\n\n```\n7\n```",
        "2 s, 256 MB",
        "one Python code block",
    ):
        assert part in prompt
    assert "Note" not in prompt
    assert "nan" not in prompt.lower()


def test_the_gold_reply_is_the_program_and_parses_back_to_it(codeforces: Benchmark) -> None:
    item = codeforces.items[0]
    assert item.item_id == "codeforces/9001/A"
    assert codeforces.parse(item, item.target) == PROGRAM.strip()


@pytest.mark.parametrize(
    "output", ["", "print(1)", "```python\nprint(1)", "```cpp\nint main() {}\n```", "```\na\n```\n```\nb\n```"]
)
def test_output_without_exactly_one_python_block_has_no_answer(codeforces: Benchmark, output: str) -> None:
    assert codeforces.parse(codeforces.items[0], output) is None


def test_a_program_is_decided_by_all_official_tests_within_the_limits_for_python(codeforces: Benchmark) -> None:
    made = submission(codeforces.items[0], "print(7)")
    assert made.program == "print(7)"
    assert made.tests == StdioTests((("2\n3 4\n", "7\n"), ("1\n5\n", "5\n")))
    limits = made.limits_within(Limits(output_kib=9000))
    assert (limits.cpu_s, limits.memory_mib, limits.output_kib) == (6.0, 256 + INTERPRETER_MIB, 9000)


def test_the_sandbox_passes_the_gold_program_and_no_program_that_knows_the_example_only(codeforces: Benchmark) -> None:
    item = codeforces.items[0]
    categories = []
    for program in (codeforces.parse(item, item.target) or "", "print(7)"):
        made = submission(item, program)
        try:
            categories.append(execute(made.program, made.tests, made.limits_within(Limits())).category)
        except SandboxError as error:
            pytest.skip(f"no isolating sandbox works here: {error}")
    assert categories == ["pass", "wrong"]


def test_the_slack_for_python_can_be_set(tmp_path: Path) -> None:
    config = write(tmp_path)
    config.params["python_slack"] = 1
    made = submission(load_benchmark(config, tmp_path).items[0], "print(7)")
    assert made.limits_within(Limits()).cpu_s == 2.0


def test_easy_and_hard_version_are_one_family_and_so_are_near_statements(codeforces: Benchmark) -> None:
    family = {item.item_id: item.family for item in codeforces.items}
    assert family["codeforces/9001/B1"] == family["codeforces/9001/B2"]
    assert family["codeforces/9001/A"] == family["codeforces/9003/C"]
    assert len(set(family.values())) == 3
    assert {pair.why for pair in codeforces.joined} == {"version", "text"}


def test_one_problem_in_two_contests_is_one_family(tmp_path: Path) -> None:
    config = write(tmp_path, {"9002/A": {"aliases": ["9001/B1", "9999/Z"]}})
    benchmark = load_benchmark(config, tmp_path)
    family = {item.item_id: item.family for item in benchmark.items}
    assert family["codeforces/9002/A"] == family["codeforces/9001/B1"]
    assert "alias" in {pair.why for pair in benchmark.joined}


@pytest.mark.parametrize(
    ("changes", "reason"),
    [
        ({"official_tests": []}, "1 without tests"),
        ({"official_tests": None}, "1 without tests"),
        ({"official_tests_complete": False}, "1 with a part of the tests"),
        ({"official_tests_complete": None}, "1 with a part of the tests"),
        ({"generated_checker": "import sys\nprint(1)"}, "1 with a checker"),
        ({"interaction_format": "Ask at most 10 questions."}, "1 interactive"),
        ({"input_mode": "file"}, "1 without standard input"),
        ({"input_mode": None}, "1 without standard input"),
        ({"time_limit": None}, "1 without limits"),
    ],
)
def test_a_problem_that_outputs_cannot_decide_is_left_out_and_counted(
    tmp_path: Path, caplog: pytest.LogCaptureFixture, changes: dict[str, Any], reason: str
) -> None:
    config = write(tmp_path, {"9002/A": changes})
    with caplog.at_level(logging.WARNING):
        benchmark = load_benchmark(config, tmp_path)
    assert len(benchmark.items) == 4
    assert "codeforces/9002/A" not in {item.item_id for item in benchmark.items}
    assert f"4 of 5 problems kept; left out: {reason}" in caplog.text


def test_problems_with_a_part_of_their_tests_can_be_kept(tmp_path: Path) -> None:
    config = write(tmp_path, {"9002/A": {"official_tests_complete": False}})
    config.params["keep_incomplete"] = True
    assert len(load_benchmark(config, tmp_path).items) == 5


def test_a_problem_without_a_program_is_left_out_and_counted(tmp_path: Path, caplog: pytest.LogCaptureFixture) -> None:
    config = write(tmp_path, solutions=[{"id": "9001/A", "solution": PROGRAM}])
    assert [item.item_id for item in load_benchmark(config, tmp_path).items] == ["codeforces/9001/A"]
    assert "1 of 5 problems kept; left out: 4 no program in params.solutions" in caplog.text


def test_without_any_program_it_says_what_to_give(tmp_path: Path) -> None:
    config = write(tmp_path, solutions=[])
    with pytest.raises(DataError, match=r"none of 5 problems can be used.*params\.solutions"):
        load_benchmark(config, tmp_path)
    config.params = {}
    with pytest.raises(ConfigError, match=r"has no programs.*params\.solutions.*`id` and `solution`"):
        load_benchmark(config, tmp_path)
    config.params = {"solutions": "elsewhere.jsonl"}
    with pytest.raises(DataError, match=r"elsewhere\.jsonl does not exist.*params\.solutions"):
        load_benchmark(config, tmp_path)


@pytest.mark.parametrize(
    ("line", "message"),
    [
        ({"id": "9001/A"}, "line 1: should hold the texts `id` and `solution`"),
        ({"id": "9001/A", "solution": "int main() {"}, "line 1: the solution of 9001/A is no Python"),
        (["9001/A", PROGRAM], "line 1: expected a JSON object"),
    ],
)
def test_an_unusable_program_is_named_with_its_line(tmp_path: Path, line: Any, message: str) -> None:
    with pytest.raises(DataError, match=message):
        load_benchmark(write(tmp_path, solutions=[line]), tmp_path)


def test_two_programs_for_one_problem_are_refused(tmp_path: Path) -> None:
    lines = [{"id": "9001/A", "solution": PROGRAM}, {"id": "9001/A", "solution": "print(1)"}]
    with pytest.raises(DataError, match=r"line 2: a second solution of 9001/A"):
        load_benchmark(write(tmp_path, solutions=lines), tmp_path)


def test_damaged_tests_are_named_with_their_row(tmp_path: Path) -> None:
    config = write(tmp_path, {problem: {"official_tests": [{"given": "1"}]} for problem in STATEMENTS})
    with pytest.raises(DataError, match=r"row 1: column 'official_tests' should hold a list of \{input, output\}"):
        load_benchmark(config, tmp_path)


@pytest.mark.parametrize(
    ("params", "message"),
    [
        ({"split": "dev"}, "Choose test or train"),
        ({"slack": 2}, "Known: split, solutions, keep_incomplete, python_slack"),
        ({"python_slack": 0}, "python_slack=0 must be a number above 0"),
    ],
)
def test_settings_that_cannot_be_met_are_refused(tmp_path: Path, params: dict[str, Any], message: str) -> None:
    config = write(tmp_path)
    config.params |= params
    with pytest.raises(ConfigError, match=message):
        load_benchmark(config, tmp_path)
