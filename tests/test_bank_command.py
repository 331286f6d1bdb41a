"""``python -m softcontam.bank`` as a user calls it."""

from __future__ import annotations

import subprocess
import sys
from dataclasses import replace
from pathlib import Path

import pandas as pd
import pytest
from tiny_cells import cli_environment, composed

from softcontam.bank import main
from softcontam.duplicates import BankRow, read_bank, write_bank

TINY = ("benchmark=tinyworld", "benchmark.params.n_families=4", "eval.related=[]", "eval.general=[]")


@pytest.fixture(autouse=True)
def wide_terminal(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("COLUMNS", "200")
    for name in ("RUNS", "REPORTS", "DATA"):
        monkeypatch.delenv(f"SOFTCONTAM_{name}", raising=False)


@pytest.fixture
def made(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> Path:
    """The tinyworld's bank of synthetic SemDs as a file."""
    path = tmp_path / "semd.parquet"
    assert main(["make", *TINY, "kind=semd_synthetic", f"out={path}"]) == 0
    capsys.readouterr()
    return path


def changed(path: Path, *rows: BankRow) -> Path:
    """The bank with these rows at its end, sha256 and all."""
    write_bank(path, [*read_bank(path), *rows])
    return path


class TestCheck:
    def test_a_made_bank_is_fine_and_its_contents_are_shown(
        self, made: Path, capsys: pytest.CaptureFixture[str]
    ) -> None:
        assert main(["check", str(made), *TINY]) == 0
        out = capsys.readouterr().out
        for word in (
            "paraphrase",
            "combined",
            "8 of 8",
            "solver",
            "answer",
            "0 errors, 0 warnings (benchmark tinyworld)",
        ):
            assert word in out

    def test_every_problem_is_printed_with_file_row_and_remedy(
        self, made: Path, capsys: pytest.CaptureFixture[str]
    ) -> None:
        row = read_bank(made)[0]
        count = len(read_bank(made))
        changed(
            made,
            replace(row, row_id="x1", item_id="tinyworld/v1/0a", prompt="A"),
            replace(row, row_id="x2", match_type="related", prompt="B"),
            replace(row, row_id="x3", cosine=1.5, prompt="C"),
        )
        assert main(["check", str(made), *TINY]) == 1
        out = capsys.readouterr().out
        for number, row_id, remedy in (
            (1, "x1", "the first is tinyworld/v2/0a"),
            (2, "x2", "topical"),
            (3, "x3", "share"),
        ):
            line = next(line for line in out.splitlines() if f"({row_id})" in line)
            assert f"{made}, row {count + number} ({row_id})" in line
            assert remedy in line
        assert "3 errors" in out

    def test_long_lists_are_cut_and_the_csv_has_all(
        self, made: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
    ) -> None:
        row = read_bank(made)[0]
        changed(made, *(replace(row, row_id=f"x{n}", prompt=f"A {n}", match_type="unrelated") for n in range(30)))
        assert main(["check", str(made), "show=5", f"csv={tmp_path / 'problems.csv'}"]) == 1
        out = capsys.readouterr().out
        assert "judged to be no duplicate (30)" in out
        assert "and 25 more (show=0 lists all" in out
        frame = pd.read_csv(tmp_path / "problems.csv")
        assert list(frame["row_id"]) == [f"x{n}" for n in range(30)]
        assert set(frame["severity"]) == {"error"}
        assert main(["check", str(made), "show=0"]) == 1
        assert "x29" in capsys.readouterr().out

    def test_warnings_alone_end_well(self, made: Path, capsys: pytest.CaptureFixture[str]) -> None:
        row = read_bank(made)[0]
        changed(made, replace(row, row_id="x", prompt="A", response_style="cot"))
        assert main(["check", str(made), *TINY]) == 0
        assert "warning: another response style (1)" in capsys.readouterr().out

    def test_tokens_are_counted_with_the_tokenizer_that_is_named(
        self, made: Path, capsys: pytest.CaptureFixture[str]
    ) -> None:
        assert main(["check", str(made), "model=tinyworld", "max_length=20"]) == 1
        assert "would be cut off at 20. Drop it, or raise train.max_length." in capsys.readouterr().out
        assert main(["check", str(made), "model=tinyworld"]) == 0

    def test_a_damaged_file_is_a_problem_and_a_missing_one_a_bad_request(
        self, made: Path, capsys: pytest.CaptureFixture[str]
    ) -> None:
        made.write_bytes(made.read_bytes()[:100])
        assert main(["check", str(made)]) == 1
        assert f"error: {made} is no readable parquet file" in capsys.readouterr().out
        assert main(["check", str(made.with_name("gone.parquet"))]) == 2
        assert "gone.parquet does not exist" in capsys.readouterr().err

    def test_as_a_command_of_its_own(self, made: Path) -> None:
        command = [sys.executable, "-m", "softcontam.bank", "check", str(made), *TINY]
        done = subprocess.run(command, env=cli_environment(), capture_output=True, text=True, timeout=120, check=False)
        assert (done.returncode, done.stderr) == (0, "")
        assert "0 errors" in done.stdout

    @pytest.mark.parametrize(
        ("words", "says"),
        [
            ([], "no command of softcontam.bank"),
            (["chek", "b.parquet"], "'chek' is no command"),
            (["check"], "needs the path of a bank file"),
            (["check", "benchmark=mbpp"], "needs the path of a bank file"),
            (["check", "b.parquet", "loud"], "'loud' is not of the form key=value"),
            (["check", "b.parquet", "max_length=20"], "add model=NAME"),
            (["check", "b.parquet", "certify=true"], "add benchmark=NAME"),
            (["check", "b.parquet", "show=many"], "many"),
            (["check", "b.parquet", "benchmark=nothing"], "nothing"),
            (["check", "b.parquet", "colour=red"], "colour"),
            (["make", "benchmark=tinyworld", "kind=topical"], "missing: out"),
            (["make", "kind=topical", "out=b.parquet"], "add benchmark=NAME"),
            (["make", "benchmark=tinyworld", "kind=topical", "out=b.csv"], "should end in .parquet"),
            (["convert", "b.csv", "out=b.parquet", "model=tinyworld"], "convert does not know 'model=tinyworld'"),
        ],
    )
    def test_a_bad_request_says_what_to_do(
        self,
        words: list[str],
        says: str,
        tmp_path: Path,
        monkeypatch: pytest.MonkeyPatch,
        capsys: pytest.CaptureFixture[str],
    ) -> None:
        monkeypatch.chdir(tmp_path)
        assert main(words) == 2
        assert says in capsys.readouterr().err
        assert not list(tmp_path.iterdir())


class TestMake:
    def test_the_same_settings_make_the_same_bytes(self, made: Path, tmp_path: Path) -> None:
        assert main(["make", *TINY, "kind=semd_synthetic", f"out={tmp_path / 'again.parquet'}"]) == 0
        assert (tmp_path / "again.parquet").read_bytes() == made.read_bytes()

    def test_a_file_is_not_replaced_unless_told_to(self, made: Path, capsys: pytest.CaptureFixture[str]) -> None:
        before = made.read_bytes()
        words = ["make", *TINY, "kind=topical", f"out={made}"]
        assert main(words) == 2
        assert "overwrite=true" in capsys.readouterr().err
        assert made.read_bytes() == before
        assert main([*words, "overwrite=true"]) == 0
        assert {row.kind for row in read_bank(made)} == {"topical"}

    @pytest.mark.parametrize(
        ("more", "says"),
        [
            (["kind=near"], "no bank of kind near (it has: "),
            (["kind=semd_synthetic", "source=internet"], "internet"),
            (["kind=semd_synthetic", "source=labelled_pairs", "path=gone.jsonl"], "gone.jsonl does not exist"),
            (["kind=semd_synthetic", "certify=true"], "the answers of benchmark=tinyworld are none"),
        ],
    )
    def test_what_cannot_be_made_leaves_no_file(
        self, more: list[str], says: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]
    ) -> None:
        assert main(["make", *TINY, *more, f"out={tmp_path / 'b.parquet'}", f"data={tmp_path}"]) == 2
        assert says in capsys.readouterr().err
        assert not list(tmp_path.iterdir())

    def test_the_setting_that_is_printed_makes_a_run_read_the_file(
        self, made: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
    ) -> None:
        for kind, source in (("semd_synthetic", made), ("semd_natural", tmp_path / "natural.parquet")):
            words = []
            if kind == "semd_natural":
                write_bank(source, [replace(row, kind=kind) for row in read_bank(made)])
                words = ["source=parquet", f"path={source}"]
            out = tmp_path / f"{kind}_copy.parquet"
            assert main(["make", *TINY, f"kind={kind}", f"out={out}", *words]) == 0
            setting = capsys.readouterr().out.split("To use it in a run: ")[1].splitlines()[0]
            for benchmark in ("tinyworld", "gsm8k"):  # that have a bank of the kind, and that have none
                bank = composed(f"benchmark={benchmark}", setting.strip("'"), tiny=False).benchmark.banks[kind]
                assert (bank.source, bank.path) == ("parquet", str(out))


class TestDescribe:
    def test_a_table_by_level_and_a_csv_by_row(
        self, made: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
    ) -> None:
        words = ["describe", str(made), *TINY, "filters=[ngram_8,minhash_80]", f"csv={tmp_path / 'rows.csv'}"]
        assert main(words) == 0
        out = capsys.readouterr().out
        for word in ("paraphrase", "combined", "word pairs", "difflib", "cosine", "ngram_8", "minhash_80", "TF-IDF"):
            assert word in out
        assert "ngram_13" not in out
        frame = pd.read_csv(tmp_path / "rows.csv")
        assert list(frame["row_id"]) == [row.row_id for row in read_bank(made)]
        assert set(frame["minhash_80"]) <= {True, False}

    def test_rows_of_other_items_are_counted(self, made: Path, capsys: pytest.CaptureFixture[str]) -> None:
        changed(made, replace(read_bank(made)[0], row_id="x", item_id="gsm8k/1", prompt="A"))
        assert main(["describe", str(made), *TINY]) == 0
        assert "1 rows of other items left out" in capsys.readouterr().out
        assert main(["describe", str(made), "benchmark=tinyworld", "benchmark.params.draw=another"]) == 2
        assert "has no row for an item of tinyworld" in capsys.readouterr().err

    @pytest.mark.parametrize(
        ("words", "says"),
        [
            ([], "add benchmark=NAME"),
            ([*TINY, "filters=[ngram]"], "'ngram' is unknown"),
            ([*TINY, "filters=[embedding_80]"], "embedder"),
        ],
    )
    def test_a_bad_request(self, made: Path, words: list[str], says: str, capsys: pytest.CaptureFixture[str]) -> None:
        assert main(["describe", str(made), *words]) == 2
        assert says in capsys.readouterr().err


class TestConvert:
    def test_a_csv_of_a_spreadsheet_becomes_a_bank(
        self, made: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
    ) -> None:
        rows = read_bank(made)[:6]
        columns = ["row_id", "item_id", "kind", "prompt", "completion", "response_style", "source", "match_type"]
        table = tmp_path / "mine.csv"
        pd.DataFrame([vars(row) for row in rows])[columns].to_csv(table, index=False, encoding="utf-8-sig")
        assert main(["check", str(table), *TINY]) == 0
        assert f"softcontam.bank convert {table}" in capsys.readouterr().out
        assert main(["convert", str(table), f"out={tmp_path / 'mine.parquet'}"]) == 0
        assert read_bank(tmp_path / "mine.parquet") == [
            replace(row, level=None, judge=None, cosine=None, ngram_overlap=None) for row in rows
        ]

    def test_rows_that_no_bank_may_hold_are_not_converted(
        self, tmp_path: Path, capsys: pytest.CaptureFixture[str]
    ) -> None:
        table = tmp_path / "mine.csv"
        table.write_text("row_id,item_id,kind,prompt,completion,response_style,source\n1,a/1,topic,Q,A,answer,me\n")
        assert main(["convert", str(table), f"out={tmp_path / 'mine.parquet'}"]) == 2
        assert "row 1 has unknown kind 'topic'" in capsys.readouterr().err
        assert list(tmp_path.iterdir()) == [table]
        table.write_text("row_id,kind\n1,topical\n")
        assert main(["convert", str(table), f"out={tmp_path / 'mine.parquet'}"]) == 2
        assert "lacks the columns item_id, prompt" in capsys.readouterr().err


class TestRealBanks:
    def test_the_example_of_the_docs_makes_a_bank_without_problems(
        self, data_dir: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
    ) -> None:
        page = (Path(__file__).parents[1] / "docs" / "banks.md").read_text("utf-8")
        begin = page.index("```python\n") + len("```python\n")
        monkeypatch.chdir(tmp_path)
        exec(page[begin : page.index("\n```\n", begin)], {})
        words = ["check", "mine.parquet", "benchmark=mbpp", "certify=true", f"data={data_dir}"]
        assert main(words) == 0
        assert "1 rows, 0 errors, 0 warnings" in capsys.readouterr().out

    @pytest.mark.parametrize(
        ("benchmark", "kind", "more", "warning"),
        [
            ("gsm8k", "semd_synthetic", [], "answers word for word"),
            ("mbpp", "semd_synthetic", ["benchmark.only_items_with=[]"], ""),
            ("mbpp", "topical", [], "near items"),
        ],
    )
    def test_the_configured_banks_have_no_errors(
        self,
        benchmark: str,
        kind: str,
        more: list[str],
        warning: str,
        data_dir: Path,
        tmp_path: Path,
        capsys: pytest.CaptureFixture[str],
    ) -> None:
        words = [f"benchmark={benchmark}", *more, f"kind={kind}", f"out={tmp_path / 'b.parquet'}", f"data={data_dir}"]
        assert main(["make", *words]) == 0
        out = capsys.readouterr().out
        assert "0 errors" in out
        warnings = [line for line in out.splitlines() if line.startswith("warning:")]
        assert warnings == ([f"warning: {warning} (1)"] if warning else [])

    def test_certified_rows_are_those_whose_program_passes(
        self, data_dir: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
    ) -> None:
        few = ["benchmark=mbpp", "benchmark.only_items_with=[]", "benchmark.max_items=20", f"data={data_dir}"]
        sound, broken = tmp_path / "sound.parquet", tmp_path / "broken.parquet"
        assert main(["make", *few, "kind=semd_synthetic", f"out={sound}"]) == 0
        rows = read_bank(sound)
        wrong = replace(rows[0], completion=rows[0].completion.replace("return", "return not"))
        write_bank(broken, [wrong, replace(rows[1], completion="no program"), *rows[2:]])
        out = tmp_path / "certified.parquet"
        words = ["make", *few, "kind=semd_synthetic", "source=parquet", f"path={broken}", f"out={out}", "certify=true"]
        capsys.readouterr()
        assert main(words) == 0
        out_text = capsys.readouterr().out
        assert f"tests: {len(rows) - 2} of {len(rows)} rows; left out: 1 " in out_text
        assert [row.row_id for row in read_bank(out)] == [row.row_id for row in rows[2:]]
        assert all("tests passed" in str(row.judge) for row in read_bank(out))

    def test_programs_made_by_rule_are_run_without_being_told_to(
        self, data_dir: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
    ) -> None:
        few = ["benchmark=mbpp", "benchmark.only_items_with=[]", "benchmark.max_items=15", f"data={data_dir}"]
        words = ["make", *few, "kind=semd_synthetic", "source=rules", "params.levels=[rename]"]
        assert main([*words, f"out={tmp_path / 'a.parquet'}"]) == 0
        assert "certified by running the items' tests" in capsys.readouterr().out
        assert all("tests passed" in str(row.judge) for row in read_bank(tmp_path / "a.parquet"))
        assert main([*words, f"out={tmp_path / 'b.parquet'}", "certify=false"]) == 0
        assert "certified" not in capsys.readouterr().out

    def test_rows_for_the_full_set_say_so_when_held_against_the_sanitized_one(
        self, data_dir: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
    ) -> None:
        row = BankRow("mine/1", "mbpp/5", "semd_natural", None, "A task", "An answer", "corpus", "me", "subset", "me")
        strange = replace(row, row_id="mine/2", item_id="gsm8k/7", prompt="Another task")
        write_bank(tmp_path / "b.parquet", [row, strange])
        assert main(["check", str(tmp_path / "b.parquet"), "benchmark=mbpp", f"data={data_dir}"]) == 1
        out = capsys.readouterr().out
        assert (
            "(mine/1) is for item 'mbpp/5', which is not among the 427 items of mbpp. It is in benchmark.params" in out
        )
        assert "subset=full" in out
        assert "(mine/2) is for item 'gsm8k/7'" in out
        assert "looks like one of benchmark=gsm8k" in out
