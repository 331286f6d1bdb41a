"""The command line: what it refuses before running anything, what overrides mean, exit codes."""

from __future__ import annotations

import json
import os
import shutil
from collections.abc import Callable
from pathlib import Path

import pytest
from test_cell import frozen
from tiny_cells import TINY, Ran, composed, run_cli, run_here

from softcontam.benchmarks import load_benchmark
from softcontam.duplicates import BankRow, write_bank
from softcontam.inputs import TINYWORLD_BASE
from softcontam.store import DONE, FAILED, Cell, Store

Runner = Callable[..., Ran]


@pytest.fixture
def run(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]) -> Runner:
    """``python -m softcontam.run`` on tiny cells, in this process, in an empty folder."""

    def call(*overrides: str, tiny: bool = True) -> Ran:
        settings = [*TINY, "cluster.workers=0"] if tiny else []
        flags = [word for word in overrides if word.startswith("-")]
        rest = [word for word in overrides if not word.startswith("-")]
        return run_here([*flags, *settings, *rest] if tiny else overrides, tmp_path, monkeypatch, capsys)

    return call


def states(folder: Path) -> list[str]:
    return sorted(Store(folder / "runs").cell(p.name).status["state"] for p in (folder / "runs").glob("[0-9a-f]*"))


class TestRefusals:
    """Bad input: a sentence with the key and the remedy, exit code 2 (Hydra's own: 1), and nothing run."""

    @pytest.mark.parametrize(
        ("overrides", "code", "says"),
        [
            (["condition=semantic"], 1, ["condition/semantic", "exact", "topical", "format_only"]),
            (["train.learning_rate=1"], 1, ["learning_rate"]),
            (["mixture.rat=0.1"], 1, ["rat"]),
            (["train.epochs=many"], 1, ["train.epochs", "many"]),
            (["exp=nothing"], 1, ["exp/nothing", "semd_rate_sweep"]),
            (["condition=exact", "mixture.rate=0"], 2, ["mixture.rate=0", "condition=clean"]),
            (["condition=exact", "mixture.rate=1.5"], 2, ["mixture.rate=1.5", "at most 1"]),
            (["condition=exact", "mixture.rate=0.001"], 2, ["mixture.rate=0.001", "less than one row", "Raise"]),
            (["model.path=/no/such/model"], 2, ["model.path=/no/such/model", "does not exist", "config.json"]),
            (["mixture.pool.files=[gone.jsonl]"], 2, ["gone.jsonl", "does not exist", "SOFTCONTAM_DATA"]),
            (["condition=topical", "~benchmark.banks.topical"], 2, ["kind=topical", "benchmark.banks.topical"]),
        ],
        ids=lambda value: value[0] if isinstance(value, list) else "",
    )  # fmt: skip
    def test_before_anything_is_run(
        self, run: Runner, tmp_path: Path, overrides: list[str], code: int, says: list[str]
    ) -> None:
        ended = run(*overrides)
        assert ended.code == code, ended.text
        for words in says:
            assert words in ended.text
        assert "Traceback" not in ended.text
        assert states(tmp_path) == []

    @pytest.mark.parametrize(
        ("overrides", "says"),
        [
            (["condition=format_only", "mixture.copies=6", "mixture.rate=0.2"], ["asks for 5 rows", "format_only"]),
            (["condition=exact", "mixture.copies=1", "mixture.rate=0.9"], ["mixture.rate=0.9", "mixture.copies=1"]),
            (["benchmark.params.n_families=2"], ["2 families", "at least 4"]),
            (["benchmark.max_items=2"], ["1 families", "at least 4"]),
            (["mixture.n_rows=9000", "condition=clean"], ["mixture.n_rows=9000", "8000 rows"]),
            (["benchmark.module=puzzles"], ["'puzzles' does not exist", "tinyworld"]),
        ],
        ids=lambda value: value[0] if isinstance(value, list) else "",
    )
    @pytest.mark.parametrize("early", [False, True], ids=["at all", "early"])
    def test_what_only_loading_the_data_shows(
        self,
        run: Runner,
        tmp_path: Path,
        overrides: list[str],
        says: list[str],
        early: bool,
        request: pytest.FixtureRequest,
    ) -> None:
        ended = run(*overrides)
        for words in says:
            assert words in ended.text
        assert "Traceback" not in ended.out + ended.err
        assert DONE not in states(tmp_path)
        if early:
            assert ended.code == 2
            assert states(tmp_path) in ([], ["pending"])
        else:
            assert ended.code in (1, 2)

    def test_every_bad_cell_of_a_sweep_is_named_and_the_good_ones_do_not_run(self, run: Runner, tmp_path: Path) -> None:
        ended = run("-m", "condition=exact", "mixture.rate=0.1,0.001,2")
        assert ended.code == 2
        assert "mixture.rate=0.001" in ended.text
        assert "mixture.rate=2" in ended.text
        assert set(states(tmp_path)) <= {"pending"}

    def test_a_model_folder_with_cut_weights_says_so(self, run: Runner, tmp_path: Path) -> None:
        folder = tmp_path / "model"
        shutil.copytree(TINYWORLD_BASE, folder)
        weights = folder / "model.safetensors"
        weights.write_bytes(weights.read_bytes()[:5000])
        ended = run(f"model.path={folder}")
        assert ended.code in (1, 2)
        assert str(folder) in ended.text
        assert "cannot be loaded" in ended.text

    def test_a_folder_that_cannot_be_written_says_so(self, run: Runner, tmp_path: Path) -> None:
        (tmp_path / "file").write_text("")
        ended = run(f"paths.runs={tmp_path}/file/runs")
        assert ended.code == 2
        assert "paths.runs" in ended.text
        assert "Traceback" not in ended.text


class TestOverrides:
    def composed(self, run: Runner, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, *overrides: str) -> list[Cell]:
        """The cells that a command line would launch."""
        from softcontam import run as run_module

        launched: list[Cell] = []

        def launch(cells: list[Cell], *_: object) -> list[object]:
            launched.extend(cells)
            return []

        monkeypatch.setattr(run_module, "launch", launch)
        ended = run(*overrides, tiny=False)
        assert ended.code in (0, 1), ended.text
        return launched

    def arms(self, cells: list[Cell]) -> set[tuple[str, str | None, float, int]]:
        found = [cell.config for cell in cells]
        return {(one.condition.kind, one.condition.level, one.mixture.rate, one.seed) for one in found}

    @pytest.mark.slow
    def test_the_sweep_is_its_grid_with_clean_once_per_seed(
        self, run: Runner, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        cells = self.composed(run, tmp_path, monkeypatch, "exp=semd_rate_sweep")
        arms = self.arms(cells)
        assert len(arms) == len(cells)
        kinds = {kind for kind, *_ in arms}
        assert kinds == {"clean", "exact", "semd_synthetic", "topical", "format_only"}
        rates = {rate for kind, _, rate, _ in arms if kind == "exact"}
        seeds = {seed for *_, seed in arms}
        assert len(rates) >= 4
        assert min(rates) <= 0.01
        assert len(seeds) >= 3
        assert sum(kind == "clean" for kind, *_ in arms) == len(seeds)

    def test_clean_at_every_rate_is_one_cell(
        self, run: Runner, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        cells = self.composed(run, tmp_path, monkeypatch, "exp=semd_rate_sweep", "condition=clean,exact", "seed=0")
        arms = self.arms(cells)
        assert len(arms) == len(cells)
        assert sum(kind == "clean" for kind, *_ in arms) == 1
        assert len({rate for kind, _, rate, _ in arms if kind == "exact"}) >= 4

    def test_overrides_narrow_a_sweep(self, run: Runner, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
        cells = self.composed(run, tmp_path, monkeypatch, "exp=semd_rate_sweep", "condition=exact", "seed=3")
        assert {(kind, seed) for kind, _, _, seed in self.arms(cells)} == {("exact", 3)}
        assert len(cells) >= 4

    def test_mode_run_is_one_cell(self, run: Runner, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
        overrides = ("exp=semd_rate_sweep", "hydra.mode=RUN", "condition=exact", "mixture.rate=0.1", "seed=1")
        assert self.arms(self.composed(run, tmp_path, monkeypatch, *overrides)) == {("exact", None, 0.1, 1)}

    def test_no_experiment_is_one_cell(self, run: Runner, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
        cells = self.composed(run, tmp_path, monkeypatch, "condition=exact", "mixture.rate=0.1", "seed=1")
        assert self.arms(cells) == {("exact", None, 0.1, 1)}

    def test_m_sweeps_without_an_experiment(self, run: Runner, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
        cells = self.composed(run, tmp_path, monkeypatch, "-m", "condition=clean,exact", "mixture.rate=0.1,0.2")
        assert self.arms(cells) == {("clean", None, 0.0, 0), ("exact", None, 0.1, 0), ("exact", None, 0.2, 0)}

    def test_every_cell_is_frozen_before_the_launch(
        self, run: Runner, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        cells = self.composed(run, tmp_path, monkeypatch, "-m", "condition=clean,exact")
        assert all((cell.folder / "config.yaml").is_file() for cell in cells)
        record = Store(tmp_path / "runs").sweep("single")
        assert record["cells"] == [cell.id for cell in cells]
        assert "condition=clean,exact" in record["command"]

    def test_environment_variables_say_where(
        self, run: Runner, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        cells = self.composed(run, tmp_path, monkeypatch, "condition=clean", f"paths.runs={tmp_path}/there")
        assert cells[0].folder.parent == tmp_path / "there"

    def test_nothing_is_left_beside_runs_and_reports(
        self, run: Runner, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        self.composed(run, tmp_path, monkeypatch, "-m", "condition=clean,exact")
        assert {path.name for path in tmp_path.iterdir()} <= {"runs", "reports"}


class TestShows:
    def test_help_names_the_groups_and_three_examples(self, run: Runner, tmp_path: Path) -> None:
        ended = run("--help", tiny=False)
        assert ended.code == 0
        assert ended.out.count("python -m softcontam.run") >= 3
        for group in ("benchmark: ", "condition: ", "exp: ", "mixture: ", "model: ", "train: ", "eval: ", "tracker: "):
            assert group in ended.out
        for choice in ("semd_rate_sweep", "format_only", "tinyworld"):
            assert choice in ended.out
        assert not list(tmp_path.iterdir())

    def test_cfg_job_prints_the_settings_and_runs_nothing(self, run: Runner, tmp_path: Path) -> None:
        ended = run("--cfg", "job", "condition=exact", "seed=7", tiny=False)
        assert ended.code == 0
        assert "kind: exact" in ended.out
        assert "seed: 7" in ended.out
        assert not list(tmp_path.iterdir())


class TestSweep:
    """Real tiny cells, in this process."""

    def test_first_call_runs_second_runs_nothing_and_prints_the_same_table(self, run: Runner, tmp_path: Path) -> None:
        overrides = ("-m", "condition=clean,exact", "experiment=mine")
        first = run(*overrides)
        assert first.code == 0, first.text
        assert "2 cells, 0 done before, 2 to run" in first.text
        assert "cell 2 of 2" in first.text
        assert "min left" in first.text
        before = {path: path.stat().st_mtime_ns for path in tmp_path.glob("runs/*/*") if path.parent.name[0] != "_"}
        second = run(*overrides)
        assert second.code == 0
        assert "2 done before, 0 to run" in second.text
        assert "cell 1 of" not in second.text
        tables = [ended.out[ended.out.index("mine: change") :] for ended in (first, second)]
        assert tables[0] == tables[1]
        assert before == {path: path.stat().st_mtime_ns for path in before}
        for name in ("effects.csv", "report.md", "report.html"):
            assert (tmp_path / "reports" / "mine" / name).is_file()

    def test_one_cell_without_a_clean_arm_still_ends_well(self, run: Runner, tmp_path: Path) -> None:
        ended = run("condition=exact", "mixture.rate=0.1", "seed=1")
        assert ended.code == 0, ended.text
        assert states(tmp_path) == [DONE]

    def test_rows_that_would_be_truncated_stop_the_sweep_before_any_cell(self, run: Runner, tmp_path: Path) -> None:
        items = load_benchmark(composed().benchmark, tmp_path).items
        long = "Here are keys and maps. " * 60
        rows = [BankRow(i.item_id, i.item_id, "topical", None, long, i.target, "answer", "made up") for i in items]
        write_bank(tmp_path / "bank.parquet", rows)
        banks = ("benchmark.banks.topical.source=parquet", "+benchmark.banks.topical.path=bank.parquet")
        ended = run("-m", "condition=topical,clean,exact", *banks, f"paths.data={tmp_path}")
        assert ended.code == 2, ended.text
        assert "would be truncated" in ended.text
        assert DONE not in states(tmp_path)

    def test_a_failing_cell_is_recorded_the_others_go_on_and_the_code_is_1(self, run: Runner, tmp_path: Path) -> None:
        """A layer that the model does not have shows only when the cell puts the adapter on."""
        modules = "train.lora.target_modules=[gate_proj],[up_proj],[no_such_layer]"
        ended = run("-m", "condition=clean", modules)
        assert ended.code == 1, ended.text
        assert "1 of 3 cells failed" in ended.text
        assert states(tmp_path) == [DONE, DONE, FAILED]
        cells = [Store(tmp_path / "runs").cell(path.name) for path in (tmp_path / "runs").glob("[0-9a-f]*")]
        (failed,) = [cell for cell in cells if cell.status["state"] == FAILED]
        assert "Traceback" in failed.status["traceback"]

    def test_a_damaged_bank_stops_the_sweep_before_any_cell(self, run: Runner, tmp_path: Path) -> None:
        (tmp_path / "bank.parquet").write_bytes(b"PAR1 not really")
        banks = ("benchmark.banks.topical.source=parquet", "+benchmark.banks.topical.path=bank.parquet")
        ended = run("-m", "condition=clean,topical", *banks, f"paths.data={tmp_path}")
        assert ended.code == 2, ended.text
        assert "bank.parquet" in ended.text
        assert "again" in ended.text
        assert DONE not in states(tmp_path)

    def test_a_damaged_status_is_named_with_its_remedy_and_nothing_runs(self, run: Runner, tmp_path: Path) -> None:
        cell = frozen(tmp_path / "runs", "condition=clean")
        (cell.folder / "status.json").write_text('{"state":')
        ended = run("condition=clean")
        assert ended.code == 2
        assert str(cell.folder) in ended.text
        assert "Delete the folder" in ended.text

    def test_a_damaged_config_of_a_cell_that_is_not_done_is_written_anew(self, run: Runner, tmp_path: Path) -> None:
        cell = frozen(tmp_path / "runs", "condition=clean")
        (cell.folder / "config.yaml").write_text("experiment: [")
        ended = run("-m", "condition=clean,exact")
        assert ended.code == 0, ended.text
        assert states(tmp_path) == [DONE, DONE]

    def test_a_single_cell_joins_the_record_of_its_experiment(self, run: Runner, tmp_path: Path) -> None:
        """Else running one cell of a finished sweep would leave its report with that cell alone."""
        run("-m", "condition=clean,exact", "analysis.margin=0.1")
        run("condition=topical")
        record = Store(tmp_path / "runs").sweep("single")
        assert len(record["cells"]) == 3
        # nor does it state another margin, by saying nothing of one
        assert [one["analysis"]["margin"] for one in record["declared"]] == [0.1]
        assert [one["done"] for one in record["added"]] == [0, 2]

    def test_damaged_outcomes_of_a_done_cell_are_named_with_their_remedy(self, run: Runner, tmp_path: Path) -> None:
        sweep = ("-m", "condition=clean,exact")
        run(*sweep)
        path = sorted((tmp_path / "runs").glob("*/outcomes.parquet"))[0]
        path.write_bytes(path.read_bytes()[:500])
        ended = run(*sweep)
        assert ended.code == 2
        assert str(path) in ended.text
        assert "Delete the folder" in ended.text
        shutil.rmtree(path.parent)
        assert run("condition=clean").code == 0

    def test_data_that_moved_after_a_failure_are_found(self, run: Runner, tmp_path: Path) -> None:
        """The place of the data is no part of a cell, so a cell that failed must take the new place."""
        for name in ("old", "new"):
            (tmp_path / name).mkdir()
            turns = [("What is 1 plus 1?", "Answer: 2"), ("What is 2 plus 1?", "Answer: 3")] * 32
            rows = [
                {"messages": [{"role": "user", "content": ask}, {"role": "assistant", "content": reply}]}
                for ask, reply in turns
            ]
            (tmp_path / name / "pool.jsonl").write_text("".join(json.dumps(row) + "\n" for row in rows))
        cell = frozen(
            tmp_path / "runs", "condition=clean", "mixture.pool.files=[pool.jsonl]", f"paths.data={tmp_path}/old"
        )
        shutil.rmtree(tmp_path / "old")
        ended = run("condition=clean", "mixture.pool.files=[pool.jsonl]", f"paths.data={tmp_path}/new")
        assert cell.done, ended.text
        assert ended.code == 0


@pytest.mark.slow
class TestOwnProcess:
    """The same as a user calls it."""

    def test_exit_codes_and_messages(self, tmp_path: Path) -> None:
        bad = run_cli("condition=exact", "mixture.rate=2", folder=tmp_path)
        assert (bad.code, "mixture.rate=2" in bad.err) == (2, True)
        unknown = run_cli("condition=semantic", folder=tmp_path)
        assert unknown.code == 1
        assert "format_only" in unknown.text
        assert not (tmp_path / "runs").exists()

    def test_a_sweep_with_workers(self, tmp_path: Path) -> None:
        overrides = ("-m", *TINY, "condition=clean,exact", "seed=0,1", "cluster.workers=2")
        first = run_cli(*overrides, folder=tmp_path)
        assert first.code == 0, first.text
        assert states(tmp_path) == [DONE] * 4
        second = run_cli(*overrides, folder=tmp_path)
        assert "4 done before, 0 to run" in second.text
        assert second.out.split("\n", 1)[1] == first.out[-len(second.out.split("\n", 1)[1]) :]
        assert "Traceback" not in first.err
        assert "Warning" not in first.err

    def test_from_another_folder_and_with_a_closed_pipe(self, tmp_path: Path) -> None:
        ended = run_cli("--cfg", "job", folder=Path(os.sep), SOFTCONTAM_RUNS=str(tmp_path / "r"))
        assert ended.code == 0
