"""Every problem that the check of a bank names, with made-up banks, and what it must leave alone."""

from __future__ import annotations

import json
import time
from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

import pandas as pd
import pytest

from softcontam.benchmarks import Benchmark, Item, Score, Source
from softcontam.benchmarks.python_code import fence, parse_block, task_prompt
from softcontam.chat import Chat
from softcontam.config import ModelConfig
from softcontam.duplicates import BankRow, exact, write_bank
from softcontam.duplicates.check import check_table
from softcontam.duplicates.problems import Problem
from softcontam.duplicates.tables import read_table
from softcontam.errors import ConfigError, DataError
from softcontam.sandbox import AssertTests, Sandbox, Submission

SUBJECTS = ("apples", "boats", "candles", "drums", "eagles", "ferns")
SOLUTION = "def {name}(n):\n    total = 0\n    for part in range(n):\n        total += part * {k}\n    return total"


def question(k: int) -> str:
    return f"A trader counts {SUBJECTS[k]} on {k + 3} tables in the yard, {k + 2} on each. How many are there?"


def riddles() -> Benchmark:
    items = tuple(
        Item(
            f"riddles/{k}",
            "riddles",
            f"riddles/{k}",
            f"{question(k)}\n\nReply with the number alone.",
            str((k + 3) * (k + 2)),
            meta={"task": question(k)},
        )
        for k in range(len(SUBJECTS))
    )
    return Benchmark(
        "riddles",
        items,
        0.0,
        "answer",
        Source("made up", "1", "CC0"),
        lambda item, output: output if output.strip().isdigit() else None,
        lambda item, parsed: Score(parsed == item.target),
    )


def programs() -> Benchmark:
    items = tuple(
        Item(
            f"sums/{k}",
            "sums",
            f"sums/{k}",
            task_prompt(f"Write a function that adds up all {SUBJECTS[k]} below a number."),
            fence(SOLUTION.format(name=f"add_{k}", k=k)),
            tests=(f"assert add_{k}(3) == {3 * k}",),
            meta={
                "task": f"Write a function that adds up all {SUBJECTS[k]} below a number.",
                "entry_point": f"add_{k}",
            },
        )
        for k in range(4)
    )
    return Benchmark(
        "sums",
        items,
        0.0,
        "answer",
        Source("made up", "1", "CC0"),
        lambda item, output: parse_block(output),
        submission=lambda item, parsed: Submission(parsed, AssertTests("\n".join(item.tests))),
    )


RIDDLES, SUMS = riddles(), programs()


def semd(k: int = 0, **changes: Any) -> BankRow:
    """A row that nothing is wrong with."""
    row = BankRow(
        f"semd/{k}",
        f"riddles/{k}",
        "semd_synthetic",
        "reworded",
        f"{k + 3} shelves hold {k + 2} {SUBJECTS[k]} each. Give their number.",
        str((k + 3) * (k + 2)),
        "answer",
        "made up",
        "equivalent",
        "me",
    )
    return replace(row, **changes)


def topical(k: int = 0, **changes: Any) -> BankRow:
    prompt = f"Where do people keep {SUBJECTS[k]}?"
    row = semd(k, row_id=f"topical/{k}", kind="topical", level=None, prompt=prompt, match_type="related")
    return replace(row, **changes)


def put(folder: Path, rows: Sequence[BankRow], **columns: Any) -> Path:
    """A bank as a careless program writes it: nothing is checked; ``columns`` replace whole columns."""
    frame = pd.DataFrame([{**vars(row), "sha256": row.sha256} for row in rows])
    for name, values in columns.items():
        frame[name] = pd.Series(values, dtype=object)
    path = folder / "bank.parquet"
    frame.to_parquet(path, index=False)
    return path


def found(folder: Path, rows: Sequence[BankRow], benchmark: Benchmark | None = RIDDLES, **more: Any) -> list[Problem]:
    return check_table(read_table(put(folder, rows)), benchmark, **more)


def only(problems: Sequence[Problem]) -> Problem:
    assert len(problems) == 1, problems
    return problems[0]


class TestWithoutABenchmark:
    def test_a_sound_bank_of_mixed_kinds_has_no_problem(self, tmp_path: Path) -> None:
        write_bank(tmp_path / "b.parquet", [semd(0), semd(1, cosine=1.0), topical(0, ngram_overlap=0.0)])
        assert check_table(read_table(tmp_path / "b.parquet")) == []

    @pytest.mark.parametrize("column", ["item_id", "prompt", "response_style"])
    def test_a_missing_column_is_one_problem_and_not_one_for_each_row(self, tmp_path: Path, column: str) -> None:
        path = put(tmp_path, [semd(k) for k in range(5)])
        pd.read_parquet(path).drop(columns=column).to_parquet(path)
        problem = only(check_table(read_table(path)))
        assert (problem.error, problem.key, problem.found) == (True, column, f"lacks the column {column}")
        assert "docs/banks.md" in problem.remedy
        assert "row_id" in problem.remedy

    def test_a_column_that_can_be_filled_in_names_the_command_that_does(self, tmp_path: Path) -> None:
        path = put(tmp_path, [semd()])
        pd.read_parquet(path).drop(columns=["sha256", "cosine"]).to_parquet(path)
        problems = check_table(read_table(path))
        assert [problem.key for problem in problems] == ["cosine", "sha256"]
        assert f"softcontam.bank convert {path}" in problems[0].remedy

    def test_every_flaw_of_every_row_is_found_not_only_the_first(self, tmp_path: Path) -> None:
        rows = [
            semd(0, item_id="", prompt=" "),
            semd(1, kind="semd_sythetic", cosine=62.0),
            semd(2),
            semd(3, completion=""),
            semd(3),
        ]
        problems = check_table(read_table(put(tmp_path, rows)))
        assert {(problem.number, problem.sort) for problem in problems} == {
            (1, "empty item_id"),
            (1, "empty prompt"),
            (2, "unknown kind"),
            (2, "similarity out of range"),
            (4, "empty completion"),
            (4, "repeated row id"),
            (5, "repeated row id"),
        }
        assert all(problem.error and problem.remedy for problem in problems)
        assert "Did you mean semd_synthetic?" in next(p.remedy for p in problems if p.sort == "unknown kind")

    @pytest.mark.parametrize("column", ["item_id", "kind", "completion"])
    def test_a_missing_value(self, tmp_path: Path, column: str) -> None:
        path = put(
            tmp_path, [semd(0), semd(1)], **{column: [getattr(semd(0), column), None]}, sha256=[semd(0).sha256, "?"]
        )
        problem = next(p for p in check_table(read_table(path)) if p.sort == "missing value")
        assert (problem.number, problem.row_id, problem.key) == (2, "semd/1", column)

    @pytest.mark.parametrize(
        ("column", "value", "sort"),
        [
            ("level", 2, "no text"),
            ("row_id", 7, "no text"),
            ("cosine", "near", "no number"),
            ("judge", True, "no text"),
        ],
    )
    def test_a_value_of_another_type(self, tmp_path: Path, column: str, value: object, sort: str) -> None:
        problem = only(check_table(read_table(put(tmp_path, [semd()], **{column: [value]}))))
        assert (problem.sort, problem.key, problem.error) == (sort, column, True)

    def test_text_that_was_changed_after_it_was_written(self, tmp_path: Path) -> None:
        path = put(tmp_path, [semd(0), semd(1)], prompt=[semd(0).prompt, "Another question?"])
        problem = only(check_table(read_table(path)))
        assert (problem.number, problem.row_id, problem.key) == (2, "semd/1", "sha256")
        assert "convert" in problem.remedy

    def test_the_same_text_twice_for_one_item_is_a_warning_that_names_the_first(self, tmp_path: Path) -> None:
        rows = [semd(0), semd(0, row_id="again"), semd(0, row_id="other", item_id="riddles/5")]
        problem = only(found(tmp_path, rows, None))
        assert (problem.error, problem.number, problem.row_id) == (False, 2, "again")
        assert "row 1 (semd/0)" in problem.found

    @pytest.mark.parametrize("value", [1.2, -1.5, 85.0, float("inf")])
    @pytest.mark.parametrize("key", ["cosine", "ngram_overlap"])
    def test_a_similarity_out_of_range(self, tmp_path: Path, key: str, value: float) -> None:
        problem = only(found(tmp_path, [semd(0, **{key: value})], None))
        assert (problem.sort, problem.key, problem.error) == ("similarity out of range", key, True)

    def test_a_cosine_that_rounding_put_above_1_is_fine_and_a_negative_one_a_warning(self, tmp_path: Path) -> None:
        rows = [semd(0, cosine=1.0000001), semd(1, cosine=-0.1), semd(2, cosine=0.0)]
        assert [(p.number, p.error) for p in found(tmp_path, rows, None)] == [(2, False)]

    @pytest.mark.parametrize("column", ["match_type", "judge"])
    def test_a_failed_judgement_is_no_verdict(self, tmp_path: Path, column: str) -> None:
        problem = only(found(tmp_path, [semd(0, **{column: "judge_error"})], None))
        assert (problem.sort, problem.error, problem.key) == ("failed judgement", True, column)
        assert "Judge it again" in problem.remedy

    @pytest.mark.parametrize(
        ("row", "match_type", "sort", "error"),
        [
            (semd(), "duplicate", "unknown match type", True),
            (semd(), "related", "judged to be no duplicate", True),
            (semd(kind="semd_natural"), "unrelated", "judged to be no duplicate", True),
            (semd(), "superset", "duplicate by the loose count only", False),
            (topical(), "equivalent", "judged to be a duplicate", True),
            (topical(kind="coverage_expanding"), "subset", "judged to be a duplicate", True),
        ],
    )
    def test_a_match_type_that_is_unknown_or_speaks_against_the_kind(
        self, tmp_path: Path, row: BankRow, match_type: str, sort: str, error: bool
    ) -> None:
        problem = only(found(tmp_path, [replace(row, match_type=match_type)], None))
        assert (problem.sort, problem.error) == (sort, error)

    @pytest.mark.parametrize("match_type", [None, "exact", "equivalent", "subset"])
    def test_a_match_type_that_suits_a_semd(self, tmp_path: Path, match_type: str | None) -> None:
        assert found(tmp_path, [semd(match_type=match_type)], None) == []

    @pytest.mark.parametrize("kind", ["exact", "near", "unrelated", "prompt_repetition"])
    def test_kinds_that_no_bank_is_read_for_are_a_warning(self, tmp_path: Path, kind: str) -> None:
        problem = only(found(tmp_path, [semd(kind=kind, match_type=None)], None))
        assert (problem.sort, problem.error) == ("never read", False)


class TestAgainstItems:
    def test_sound_rows(self, tmp_path: Path) -> None:
        assert found(tmp_path, [semd(k) for k in range(6)] + [topical(k) for k in range(6)]) == []

    def test_items_of_another_version_say_where_they_are(self, tmp_path: Path) -> None:
        asked: list[set[str]] = []

        def elsewhere(ids: Any) -> dict[str, str]:
            asked.append(set(ids))
            return {"riddles/77": "is in params.subset=full"}

        rows = [semd(0), semd(1, item_id="riddles/77"), semd(2, item_id="gsm8k/4")]
        problems = found(tmp_path, rows, elsewhere=elsewhere)
        assert asked == [{"riddles/77", "gsm8k/4"}]
        assert [(p.number, p.key, p.error) for p in problems] == [(2, "item_id", True), (3, "item_id", True)]
        assert "'riddles/77', which is not among the 6 items of riddles" in problems[0].found
        assert "is in params.subset=full" in problems[0].remedy
        assert "the first is riddles/0" in problems[1].remedy

    def test_ids_counted_from_1_instead_of_0(self, tmp_path: Path) -> None:
        rows = [semd(k, row_id=f"{k}/{n}", prompt=f"{n} {semd(k).prompt}") for k in range(5) for n in range(3)]
        shifted = [replace(row, item_id=f"riddles/{int(row.item_id[-1]) + 1}") for row in rows]
        problem = next(p for p in found(tmp_path, shifted) if p.sort == "shifted item ids")
        assert (problem.number, problem.error) == (None, True)
        assert "15 of 15 SemDs" in problem.found
        assert "row 1 is for riddles/1, not riddles/0" in problem.found
        assert found(tmp_path, rows) == []

    @pytest.mark.parametrize("written", ["1", "Riddles/1", "riddles/1 ", "riddles_/1"])
    def test_an_id_written_otherwise_names_the_one_that_is_meant(self, tmp_path: Path, written: str) -> None:
        problem = only(found(tmp_path, [semd(1, item_id=written)]))
        assert problem.remedy == "Write it as riddles/1."

    def test_an_exact_row_of_an_older_text_of_the_item(self, tmp_path: Path) -> None:
        now = exact.row(RIDDLES.items[0])
        older = replace(now, row_id="old", prompt=now.prompt.replace("tables", "desks"))
        answered = replace(now, row_id="cot", completion="3 times 2 is 6")
        problems = [p for p in found(tmp_path, [now, older, answered]) if p.error]
        assert [(p.row_id, p.key) for p in problems if p.sort == "exact row of another version"] == [
            ("old", "prompt"),
            ("cot", "completion"),
        ]
        assert "another version" in problems[0].remedy

    @pytest.mark.parametrize("kind", ["semd_synthetic", "semd_natural"])
    @pytest.mark.parametrize(
        "prompt",
        [question(2), question(2).upper().replace(",", ""), f"Please: {question(2)} Thanks.", RIDDLES.items[2].prompt],
    )
    def test_a_semd_in_the_items_own_words_is_exact(self, tmp_path: Path, kind: str, prompt: str) -> None:
        problem = only(found(tmp_path, [semd(0), semd(2, kind=kind, prompt=prompt)]))
        assert (problem.sort, problem.number, problem.error) == ("SemD that is exact", 2, True)
        assert "riddles/2" in problem.found

    def test_a_rewritten_program_under_the_item_s_own_question_is_one_warning(self, tmp_path: Path) -> None:
        item = SUMS.items[1]
        rewritten = fence("def add_1(n):\n    return sum(range(n))")
        row = semd(0, item_id="sums/1", prompt=item.prompt, completion=rewritten)
        problem = only(found(tmp_path, [row], SUMS))
        assert (problem.error, problem.sort) == (False, "questions word for word")
        assert "1 of 1 SemDs" in problem.found
        same = replace(row, completion=item.target)
        assert "SemD that is exact" in {p.sort for p in found(tmp_path, [same], SUMS) if p.error}
        natural = replace(row, kind="semd_natural")
        assert "SemD that is exact" in {p.sort for p in found(tmp_path, [natural], SUMS) if p.error}

    def test_a_semd_whose_answer_repeats_the_items_text_is_exact(self, tmp_path: Path) -> None:
        row = semd(2, kind="semd_natural", prompt="Write a piece of text.", completion=question(2), match_type="subset")
        assert only(found(tmp_path, [row])).sort == "SemD that is exact"

    def test_a_semd_that_holds_another_family_s_item_is_a_warning(self, tmp_path: Path) -> None:
        problem = only(found(tmp_path, [semd(0, prompt=f"{semd(0).prompt} {question(3)}")]))
        assert (problem.error, problem.sort) == (False, "text of another item")
        assert "riddles/3" in problem.found

    @pytest.mark.parametrize("kind", ["topical", "format_only", "benchmark_aligned", "coverage_expanding"])
    @pytest.mark.parametrize("place", ["prompt", "completion"])
    def test_benchmark_text_in_an_arm_that_is_to_hold_none(self, tmp_path: Path, kind: str, place: str) -> None:
        broken = topical(0, kind=kind, **{place: f"Some words first. {question(4).lower()}\n\nAnd more."})
        problems = [p for p in found(tmp_path, [topical(1), broken]) if p.error]
        problem = only(problems)
        assert (problem.number, problem.key, problem.sort) == (2, place, "benchmark text where none may be")
        assert "text of item riddles/4" in problem.found
        assert "Drop it" in problem.remedy

    def test_a_run_of_words_shared_with_an_item_is_one_warning_for_all_rows(self, tmp_path: Path) -> None:
        """A copy with a word changed: what the usual filter would find, and a build refuse if the item is held out."""
        edited = question(1).replace("there", "here")
        problem = only(found(tmp_path, [topical(0), topical(1, prompt=edited), topical(2, prompt=f"Now {edited}")]))
        assert (problem.error, problem.number) == (False, None)
        assert "2 of 3 rows" in problem.found
        assert "row 2 (topical/1) with riddles/1" in problem.found

    def test_the_gold_solution_under_a_reworded_question_is_one_warning(self, tmp_path: Path) -> None:
        gold = semd(0, item_id="sums/0", completion=SUMS.items[0].target)
        own = semd(1, item_id="sums/1", completion=fence("def add_1(n):\n    return sum(range(n))"))
        problem = only(found(tmp_path, [own, gold], SUMS))
        assert (problem.error, problem.sort) == (False, "answers word for word")
        assert "1 of 2 SemDs" in problem.found
        assert "row 2 (semd/0)" in problem.found

    def test_a_reference_solution_in_a_topical_arm(self, tmp_path: Path) -> None:
        row = topical(0, item_id="sums/0", completion=f"Sure:\n{SUMS.items[3].target}\nDone.")
        problem = only([p for p in found(tmp_path, [row], SUMS) if p.error])
        assert "holds the answer of item sums/3" in problem.found

    def test_part_of_an_item_s_text_and_a_short_answer_are_no_benchmark_text(self, tmp_path: Path) -> None:
        half = " ".join(question(1).split()[:9])
        assert found(tmp_path, [topical(1, prompt=f"{half} and so on?", completion="12")]) == []

    def test_another_response_style_is_a_warning_and_its_answer_is_not_read(self, tmp_path: Path) -> None:
        row = semd(0, response_style="cot", completion="3 x 2, so\n\nAnswer: 6")
        problem = only(found(tmp_path, [row]))
        assert (problem.sort, problem.error, problem.key) == ("another response style", False, "response_style")
        assert "condition.differs" in problem.remedy

    def test_an_answer_that_the_benchmark_cannot_read(self, tmp_path: Path) -> None:
        rows = [semd(0, completion="six"), topical(0, completion="in a bowl")]
        assert [(p.sort, p.error, p.number) for p in found(tmp_path, rows)] == [
            ("unreadable answer", False, 1),
            ("unreadable answer", False, 2),
        ]

    def test_answers_of_other_items_are_not_read_where_they_depend_on_the_item(self, tmp_path: Path) -> None:
        """Choices differ from item to item: a topical row cannot have this item's."""
        choosy = replace(RIDDLES, parse=lambda item, output: output if output == item.target else None)
        assert found(tmp_path, [topical(0, completion="in a bowl"), semd(0, completion="7")], choosy) == []
        assert only(found(tmp_path, [semd(0, kind="near", completion="7")], choosy)[:1]).error

    def test_a_wrong_answer_of_a_semd_is_a_warning_and_that_of_a_superset_is_none(self, tmp_path: Path) -> None:
        rows = [semd(0, completion="7"), semd(1, completion="7", match_type="subset")]
        problem = only(found(tmp_path, rows))
        assert (problem.sort, problem.number, problem.error) == ("another answer than the item's", 1, False)

    def test_a_program_without_the_function_that_is_tested(self, tmp_path: Path) -> None:
        row = semd(0, item_id="sums/1", completion=fence("def other(n):\n    return n"))
        problem = only(found(tmp_path, [row], SUMS))
        assert "defines no function 'add_1'" in problem.found

    def test_programs_are_run_where_there_is_a_sandbox(self, tmp_path: Path) -> None:
        right = fence("def add_1(n):\n    return sum(range(n))")
        wrong = fence("def add_1(n):\n    return 17")
        rows = [
            semd(0, row_id="right", item_id="sums/1", completion=right),
            semd(0, row_id="wrong", item_id="sums/1", completion=wrong),
        ]
        with Sandbox(workers=1) as sandbox:
            problem = only(found(tmp_path, rows, SUMS, sandbox=sandbox))
        assert (problem.row_id, problem.sort) == ("wrong", "fails its item's tests")
        assert found(tmp_path, rows, SUMS) == []


class TestTokens:
    @pytest.fixture(scope="class")
    def chat(self) -> Chat:
        from softcontam.models import load_chat

        return load_chat(ModelConfig("tinyworld", "tinyworld"))

    def test_rows_longer_than_the_limit(self, tmp_path: Path, chat: Chat) -> None:
        rows = [semd(0), semd(1, prompt="How many boats? " * 100)]
        problem = only(found(tmp_path, rows, chat=chat, max_length=200))
        assert (problem.sort, problem.number, problem.error) == ("too long", 2, True)
        assert "cut off at 200" in problem.found
        tokens = len(chat.encode(semd(0).prompt, semd(0).completion).input_ids)
        assert found(tmp_path, rows[:1], chat=chat, max_length=tokens) == []
        assert len(found(tmp_path, rows[:1], chat=chat, max_length=tokens - 1)) == 1


class TestFiles:
    def test_jsonl_names_the_line(self, tmp_path: Path) -> None:
        lines = [json.dumps(vars(semd(0))), "", json.dumps({**vars(semd(1)), "kind": "semd"})]
        path = tmp_path / "bank.jsonl"
        path.write_text("\n".join(line for line in lines if line))
        problems = check_table(read_table(path), RIDDLES)
        assert [(p.number, p.sort, p.error) for p in problems] == [
            (2, "unknown kind", True),
            (None, "no parquet", False),
        ]
        assert "softcontam.bank convert" in problems[1].remedy

    def test_csv_with_a_byte_order_mark_and_lines_within_fields(self, tmp_path: Path) -> None:
        path = tmp_path / "bank.csv"
        rows = [semd(0, prompt='He said: "two",\nor NA?'), semd(1, level=None, completion="None", cosine=0.25)]
        pd.DataFrame([vars(row) for row in rows]).to_csv(path, index=False, encoding="utf-8-sig")
        table = read_table(path)
        assert table.columns[0] == "row_id"
        assert [record["prompt"] for record in table.records] == [row.prompt for row in rows]
        assert (table.records[1]["completion"], table.records[1]["level"], table.records[1]["cosine"]) == (
            "None",
            None,
            0.25,
        )
        assert {p.sort for p in check_table(table)} == {"no parquet"}

    def test_csv_in_another_encoding_says_how_to_save_it(self, tmp_path: Path) -> None:
        path = tmp_path / "bank.csv"
        path.write_bytes("row_id,prompt\n1,Größe\n".encode("latin-1"))
        with pytest.raises(DataError, match=r"bank\.csv is no readable csv file.*UTF-8"):
            read_table(path)

    @pytest.mark.parametrize("keep", [0.0, 0.5, 0.99])
    def test_damaged_parquet(self, tmp_path: Path, keep: float) -> None:
        path = put(tmp_path, [semd(0)])
        path.write_bytes(path.read_bytes()[: int(path.stat().st_size * keep)])
        with pytest.raises(DataError, match=r"bank\.parquet is no readable parquet file.*again"):
            read_table(path)

    @pytest.mark.parametrize(("name", "says"), [("gone.parquet", "does not exist"), ("bank.xlsx", r"\.parquet, \.csv")])
    def test_a_file_that_cannot_be_asked_for(self, tmp_path: Path, name: str, says: str) -> None:
        with pytest.raises(ConfigError, match=says):
            read_table(tmp_path / name)

    def test_text_that_is_no_unicode(self, tmp_path: Path) -> None:
        path = tmp_path / "bank.jsonl"
        path.write_text(json.dumps({**vars(semd(0)), "prompt": "half a \ud83d pair"}))
        assert "no Unicode" in {p.sort for p in check_table(read_table(path), RIDDLES)}

    def test_a_bank_without_rows(self, tmp_path: Path) -> None:
        write_bank(tmp_path / "bank.parquet", [])
        assert only(check_table(read_table(tmp_path / "bank.parquet"), RIDDLES)).sort == "no rows"


def test_a_bank_of_ten_thousand_rows_takes_seconds(tmp_path: Path) -> None:
    rows = [
        topical(
            k % 6, row_id=f"r{k}", prompt=f"Number {k}: where do people keep {SUBJECTS[k % 6]}? " * 20, completion="4"
        )
        for k in range(10_000)
    ]
    rows[7_000] = replace(rows[7_000], prompt=f"{rows[7_000].prompt} {question(1)}")
    table = read_table(put(tmp_path, rows))
    began = time.process_time()
    assert only([problem for problem in check_table(table, RIDDLES) if problem.error]).number == 7_001
    assert time.process_time() - began < 10
