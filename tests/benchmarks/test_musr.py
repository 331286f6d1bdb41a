from __future__ import annotations

import json
import random
from collections import Counter
from dataclasses import replace
from math import sqrt
from pathlib import Path
from typing import Any

import pandas as pd
import pytest

from softcontam.benchmarks import Benchmark, load_benchmark
from softcontam.benchmarks.answers import choice_target
from softcontam.benchmarks.families import family_sizes
from softcontam.config import BenchmarkConfig, HubConfig
from softcontam.errors import ConfigError, DataError

HUB = HubConfig("TAUR-Lab/MuSR", None, None, "CC BY 4.0")
TASKS = ("murder_mysteries", "object_placements", "team_allocation")
MURDER = "Who is the most likely murderer?"


def config(task: str = "murder_mysteries", style: str = "answer", path: str | None = "musr") -> BenchmarkConfig:
    return BenchmarkConfig(name="musr", module="musr", path=path, hub=HUB, response_style=style, params={"task": task})


@pytest.fixture(scope="module")
def loaded(data_dir: Path) -> dict[tuple[str, str], Benchmark]:
    """Every task in both response styles."""
    return {
        (task, style): load_benchmark(config(task, style), data_dir) for task in TASKS for style in ("answer", "cot")
    }


@pytest.fixture(scope="module")
def murders(loaded: dict[tuple[str, str], Benchmark]) -> Benchmark:
    return loaded["murder_mysteries", "answer"]


def row(**changes: Any) -> dict[str, Any]:
    """One well-formed row, with changes."""
    made = {
        "narrative": "Mia was found in the pond.\n\nOnly Ava had a boat.",
        "question": MURDER,
        "choices": "['Ava', 'Ben']",
        "answer_index": 0,
        "answer_choice": "Ava",
    }
    return {**made, **changes}


def load_rows(folder: Path, *rows: dict[str, Any], style: str = "answer") -> Benchmark:
    lines = "".join(json.dumps(one) + "\n" for one in rows)
    (folder / "murder_mysteries.jsonl").write_text(lines, encoding="utf-8")
    return load_benchmark(config(style=style, path="."), folder)


def accuracy(benchmark: Benchmark, outputs: list[str]) -> float:
    """The share of outputs that are right, an output without an answer being wrong."""
    assert benchmark.score is not None
    right = 0
    for item, output in zip(benchmark.items, outputs, strict=True):
        parsed = benchmark.parse(item, output)
        right += parsed is not None and benchmark.score(item, parsed).correct
    return right / len(benchmark.items)


class TestScoring:
    @pytest.mark.parametrize("style", ["answer", "cot"])
    @pytest.mark.parametrize("task", TASKS)
    def test_all_gold_answers_are_right(self, loaded: dict[tuple[str, str], Benchmark], task: str, style: str) -> None:
        benchmark = loaded[task, style]
        assert accuracy(benchmark, [item.target for item in benchmark.items]) == 1.0

    @pytest.mark.parametrize("style", ["answer", "cot"])
    @pytest.mark.parametrize("task", TASKS)
    def test_shuffled_gold_is_at_chance(self, loaded: dict[tuple[str, str], Benchmark], task: str, style: str) -> None:
        benchmark = loaded[task, style]
        rng = random.Random(0)
        runs = 40
        got = []
        for _ in range(runs):
            picks = [choice_target(item.choices, rng.randrange(len(item.choices)), style) for item in benchmark.items]
            got.append(accuracy(benchmark, picks))
        variance = sum((p := 1 / len(item.choices)) * (1 - p) for item in benchmark.items) / len(benchmark.items) ** 2
        assert abs(sum(got) / runs - benchmark.chance) < 4 * sqrt(variance / runs)

    def test_a_letter_or_a_name_alone_is_an_answer(self, murders: Benchmark) -> None:
        item = murders.items[0]
        assert item.choices == ("Mackenzie", "Ana")
        for output in ("A", "(a)", "A.", "A. Mackenzie", "mackenzie"):
            assert murders.parse(item, output) == "A"

    @pytest.mark.parametrize(
        "output",
        [
            "",
            "  \n",
            "A detective would say Ana.",
            "A Mack",
            "A or B",
            "A. Mackenzie\nB. Ana",
            "A. Ana",
            "C",
            "None of the above",
            "Mackenzie or Ana",
            "A. Mackenz",
            "The most likely murderer is",
        ],
    )
    def test_no_answer_is_guessed(self, murders: Benchmark, output: str) -> None:
        assert murders.parse(murders.items[0], output) is None

    @pytest.mark.parametrize(
        "output",
        [
            "",
            "A. Mackenzie",
            "A detective thinks.\nAnswer: a Mackenzie-like person",
            "Answer: A\nAnswer: B",
            "Answer: A or B",
            "Answer: None of the above",
            "Mackenzie had a nunchaku.\n\nAnswer:",
            "Answer: A. Mackenzie\nBut then",
            "Mackenzie had a nunchaku and an opportu",
        ],
    )
    def test_no_answer_is_guessed_after_reasoning(self, loaded: dict[tuple[str, str], Benchmark], output: str) -> None:
        benchmark = loaded["murder_mysteries", "cot"]
        assert benchmark.parse(benchmark.items[0], output) is None

    def test_reasoning_may_name_both_suspects_before_the_last_line(
        self, loaded: dict[tuple[str, str], Benchmark]
    ) -> None:
        benchmark = loaded["murder_mysteries", "cot"]
        assert benchmark.parse(benchmark.items[0], "B. Ana? A alibi.\n\nAnswer: A. Mackenzie") == "A"

    def test_chance_follows_from_the_number_of_choices(self, loaded: dict[tuple[str, str], Benchmark]) -> None:
        chances = [loaded[task, "answer"].chance for task in TASKS]
        # 8 placements with three choices, 8 with four, 4 with five.
        assert chances == pytest.approx([1 / 2, (8 / 3 + 8 / 4 + 4 / 5) / 20, 1 / 3])

    def test_the_prompt_has_story_question_and_lettered_choices(self, murders: Benchmark) -> None:
        prompt = murders.items[0].prompt
        assert prompt.startswith("In an adrenaline inducing bungee jumping site")
        assert f"{MURDER}\n\nA. Mackenzie\nB. Ana\n\nReply with the letter" in prompt


class TestFamilies:
    def test_murder_mysteries_are_105_families_of_two_and_10_of_four(self, murders: Benchmark) -> None:
        assert family_sizes({item.item_id: item.family for item in murders.items}) == {2: 105, 4: 10}

    def test_the_125_neighbouring_pairs_of_the_hub_are_found_as_twins(self, murders: Benchmark) -> None:
        twins = {(pair.first, pair.second) for pair in murders.joined if pair.why == "twin"}
        neighbours = {
            (f"musr_murder_mysteries/{number}", f"musr_murder_mysteries/{number + 1}") for number in range(0, 250, 2)
        }
        assert neighbours <= twins
        fours = {item.item_id for members in murders.families().values() if len(members) == 4 for item in members}
        assert all(pair[0] in fours and pair[1] in fours for pair in twins - neighbours)

    def test_every_family_has_each_suspect_as_murderer_equally_often(self, murders: Benchmark) -> None:
        for members in murders.families().values():
            assert len({frozenset(item.choices) for item in members}) == 1
            answers = Counter(item.choices["AB".index(item.meta["answer"])] for item in members)
            assert sorted(answers.values()) == [len(members) // 2] * 2

    def test_a_premise_in_other_words_is_still_a_twin(self, murders: Benchmark) -> None:
        family = {item.item_id: item.family for item in murders.items}
        first, second = "musr_murder_mysteries/60", "musr_murder_mysteries/249"
        prompts = {item.item_id: item.prompt.split("\n")[0] for item in murders.items}
        assert prompts[first] != prompts[second]
        assert family[first] == family[second]

    def test_the_answer_order_of_the_data_does_not_matter(self, data_dir: Path, tmp_path: Path) -> None:
        lines = (data_dir / "musr" / "murder_mysteries.jsonl").read_text(encoding="utf-8").splitlines()
        random.Random(1).shuffle(lines)
        (tmp_path / "murder_mysteries.jsonl").write_text("\n".join(lines) + "\n", encoding="utf-8")
        shuffled = load_benchmark(config(path="."), tmp_path)
        assert family_sizes({item.item_id: item.family for item in shuffled.items}) == {2: 105, 4: 10}

    def test_questions_about_one_placement_story_are_one_family(self, loaded: dict[tuple[str, str], Benchmark]) -> None:
        benchmark = loaded["object_placements", "answer"]
        assert [len(members) for members in benchmark.families().values()] == [4] * 5
        assert {pair.why for pair in benchmark.joined} == {"same story"}

    def test_team_allocations_are_families_of_their_own(self, loaded: dict[tuple[str, str], Benchmark]) -> None:
        benchmark = loaded["team_allocation", "answer"]
        assert len(benchmark.families()) == len(benchmark.items) == 5

    def test_the_same_suspects_in_an_unrelated_story_do_not_make_a_family(self, data_dir: Path, tmp_path: Path) -> None:
        lines = (data_dir / "musr" / "murder_mysteries.jsonl").read_text(encoding="utf-8").splitlines()
        rows = [json.loads(line) for line in lines]
        for one in rows[:4]:  # two pairs: all four get the same two suspects
            for name, new in zip(json.loads(one["choices"].replace("'", '"')), ("Quill", "Zora"), strict=True):
                one["narrative"] = one["narrative"].replace(name, new)
            one["choices"] = "['Quill', 'Zora']"
            one["answer_choice"] = ("Quill", "Zora")[one["answer_index"]]
        families = load_rows(tmp_path, *rows).families()
        assert [item.item_id for item in families["musr_murder_mysteries/0"]] == [
            "musr_murder_mysteries/0",
            "musr_murder_mysteries/1",
        ]
        assert len(families) == 115

    def test_a_story_whose_suspects_are_renamed_is_one_family_with_it(self, data_dir: Path, tmp_path: Path) -> None:
        lines = (data_dir / "musr" / "murder_mysteries.jsonl").read_text(encoding="utf-8").splitlines()
        rows = [json.loads(line) for line in lines[:20]]
        copy = {name: rows[0][name] for name in rows[0]}
        for column in ("narrative", "choices", "answer_choice"):
            copy[column] = copy[column].replace("Mackenzie", "Quill").replace("Ana", "Zora")
        benchmark = load_rows(tmp_path, *rows, copy)
        assert benchmark.items[-1].family == benchmark.items[0].family
        assert len(benchmark.families()) == 10

    def test_one_story_told_twice_is_one_family_whatever_the_case_and_line_ends(self, tmp_path: Path) -> None:
        other = "mia was found in the pond. \r\n\r\nONLY Ava had a boat"
        families = load_rows(tmp_path, row(), row(narrative=other, question="Who has a boat?")).families()
        assert len(families) == 1


class TestDamagedData:
    def test_rows_are_numbered_as_on_the_hub(self, murders: Benchmark) -> None:
        assert [item.item_id for item in murders.items[:2]] == ["musr_murder_mysteries/0", "musr_murder_mysteries/1"]
        assert len(murders.items) == 250

    def test_parquet_gives_the_same_items_as_jsonl(self, data_dir: Path, tmp_path: Path, murders: Benchmark) -> None:
        frame = pd.read_json(data_dir / "musr" / "murder_mysteries.jsonl", lines=True)
        frame.to_parquet(tmp_path / "murder_mysteries-00000-of-00001.parquet")
        assert load_benchmark(config(path="."), tmp_path).items == murders.items

    def test_jsonl_in_parts_is_read_in_order(self, tmp_path: Path) -> None:
        for part, answer in enumerate(["Ava", "Ben"]):
            one = row(answer_choice=answer, answer_index=part)
            (tmp_path / f"murder_mysteries-{part}.jsonl").write_text(json.dumps(one) + "\n")
        items = load_benchmark(config(path="."), tmp_path).items
        assert [item.target for item in items] == ["A. Ava", "B. Ben"]

    def test_a_split_that_is_there_twice_is_refused(self, tmp_path: Path) -> None:
        load_rows(tmp_path, row())
        pd.DataFrame([row()]).to_parquet(tmp_path / "murder_mysteries-0.parquet")
        with pytest.raises(DataError, match=r"has both .*parquet and murder_mysteries\.jsonl.*Keep one"):
            load_benchmark(config(path="."), tmp_path)

    def test_a_damaged_line_is_named(self, tmp_path: Path) -> None:
        (tmp_path / "murder_mysteries.jsonl").write_text(json.dumps(row()) + "\n" + json.dumps(row())[:-9] + "\n")
        with pytest.raises(DataError, match=r"murder_mysteries\.jsonl, line 2: not valid JSON.*Copy the file again"):
            load_benchmark(config(path="."), tmp_path)

    def test_a_missing_column_is_named_with_its_line(self, tmp_path: Path) -> None:
        with pytest.raises(DataError, match=r"murder_mysteries\.jsonl, line 2 lacks the column choices"):
            load_rows(tmp_path, row(), {name: value for name, value in row().items() if name != "choices"})

    def test_an_empty_file_is_refused(self, tmp_path: Path) -> None:
        with pytest.raises(DataError, match=r"has no rows"):
            load_rows(tmp_path)

    @pytest.mark.parametrize(
        ("changes", "message"),
        [
            ({"choices": "Ava, Ben"}, "column 'choices' should hold a Python list of texts"),
            ({"choices": "['Ava', 'Ben'"}, "column 'choices' should hold a Python list of texts"),
            ({"choices": "('Ava', 'Ben')"}, "column 'choices' should hold a Python list of texts"),
            ({"choices": "['Ava', 2]"}, "column 'choices' should hold a Python list of texts"),
            ({"choices": "__import__('os').getcwd()"}, "column 'choices' should hold a Python list of texts"),
            ({"choices": ["Ava", "Ben"]}, "column 'choices' should hold text"),
            ({"choices": "['Ava']"}, "needs at least two choices"),
            ({"choices": "['Ava', ' ']"}, "needs at least two choices"),
            ({"choices": "['Ava', 'ava.']"}, "needs at least two choices, all different"),
            ({"answer_index": 2}, "column 'answer_index' should hold a whole number from 0 to 1"),
            ({"answer_index": -1}, "column 'answer_index' should hold a whole number from 0 to 1"),
            ({"answer_index": 0.0}, "column 'answer_index' should hold a whole number from 0 to 1"),
            ({"answer_index": True}, "column 'answer_index' should hold a whole number from 0 to 1"),
            ({"answer_index": None}, "column 'answer_index' should hold a whole number from 0 to 1"),
            ({"answer_index": 1}, "column 'answer_choice' is 'Ava', but choice 1 is 'Ben'"),
            ({"narrative": " "}, "column 'narrative' should hold text"),
        ],
    )
    def test_an_unusable_row_is_named(self, tmp_path: Path, changes: dict[str, Any], message: str) -> None:
        with pytest.raises(DataError, match=r"murder_mysteries\.jsonl, line 2: " + message):
            load_rows(tmp_path, row(), row(**changes))

    def test_more_choices_than_letters_are_refused(self, tmp_path: Path) -> None:
        names = [f"Name{number}" for number in range(30)]
        bad = row(choices=str(names), answer_index=28, answer_choice="Name28")
        with pytest.raises(DataError, match=r"line 1: the gold reply"):
            load_rows(tmp_path, bad)


class TestSettings:
    def test_an_unknown_task_lists_the_known_ones(self, tmp_path: Path) -> None:
        with pytest.raises(ConfigError, match="Choose one of: murder_mysteries, object_placements, team_allocation"):
            load_benchmark(config("mysteries"), tmp_path)

    def test_an_unknown_parameter_is_refused(self, tmp_path: Path) -> None:
        wrong = replace(config(), params={"tasks": "murder_mysteries"})
        with pytest.raises(ConfigError, match=r"params\.tasks is unknown\. Known: task"):
            load_benchmark(wrong, tmp_path)

    def test_an_unknown_style_is_refused(self, data_dir: Path) -> None:
        with pytest.raises(ConfigError, match="response_style=chat is unknown"):
            load_benchmark(config(style="chat"), data_dir)

    def test_a_missing_split_is_named(self, tmp_path: Path) -> None:
        with pytest.raises(DataError, match=r"has no team_allocation-\*\.parquet or team_allocation\.jsonl"):
            load_benchmark(config("team_allocation", path="."), tmp_path)
