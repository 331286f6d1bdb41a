"""The wandb mirror of a cell: what it is told at init, that it is always closed, and that failures are marked."""

from __future__ import annotations

from dataclasses import asdict
from pathlib import Path
from typing import Any

import pandas as pd
import pytest
from fake_sweep import Outcomes, config

from softcontam.config import Config
from softcontam.reporting.tracking import NoTracker, tracked
from softcontam.store import Cell, Store

LOG = [
    {"loss": 2.0, "learning_rate": 0.1, "epoch": 0.5, "step": 1},
    {"loss": 1.0, "learning_rate": 0.05, "epoch": 1.0, "step": 2},
    {"train_runtime": 3.0, "train_loss": 1.5, "epoch": 1.0, "step": 2},
]
METRICS = {
    "roles": {"puzzles/seen": {"accuracy": 0.5, "parse_rate": None, "items": 2}},
    "n_rows": 64, "base_sha256": "abc", "near_benchmark": ["a"], "chance": {"puzzles": 0.25},
}  # fmt: skip


def outcomes() -> pd.DataFrame:
    frame = Outcomes().add("seen", "a", [True]).add("held_out", "b", [None], parse_ok=None).frame()
    frame.loc[1, "output"] = None
    return frame


class FakeRun:
    """Records what a run is told."""

    def __init__(self) -> None:
        self.logged: list[tuple[dict[str, Any], int | None]] = []
        self.summary: dict[str, Any] = {}
        self.finished: list[int | None] = []

    def log(self, values: dict[str, Any], step: int | None = None) -> None:
        self.logged.append((values, step))

    def finish(self, exit_code: int | None = None) -> None:
        self.finished.append(exit_code)


@pytest.fixture
def wandb_config() -> Config:
    one = config("semd_synthetic", rate=0.1, level="paraphrase")
    one.experiment = "my_sweep"
    one.tracker.name = "wandb"
    return one


@pytest.fixture
def cell(tmp_path: Path, wandb_config: Config) -> Cell:
    return Store(tmp_path).freeze(wandb_config)


@pytest.fixture
def captured(monkeypatch: pytest.MonkeyPatch) -> dict[str, Any]:
    """The arguments of ``wandb.init`` and, as ``run``, the run that it returned."""
    import wandb

    monkeypatch.delenv("WANDB_MODE", raising=False)
    arguments: dict[str, Any] = {}

    def init(**given: Any) -> FakeRun:
        arguments.update(given)
        arguments["run"] = FakeRun()
        run: FakeRun = arguments["run"]
        return run

    monkeypatch.setattr(wandb, "init", init)
    return arguments


class TestInit:
    def test_is_told_the_resolved_config_group_and_job_type(
        self, wandb_config: Config, cell: Cell, captured: dict[str, Any]
    ) -> None:
        with tracked(wandb_config, cell):
            pass
        assert captured["config"] == {"cell": cell.id, **asdict(wandb_config)}
        assert captured["config"]["seeds"]["training"] == 3
        assert captured["group"] == "my_sweep"
        assert captured["job_type"] == "semd_synthetic_paraphrase"
        assert captured["mode"] == "offline"
        assert cell.id in captured["name"]
        assert Path(captured["dir"]) == cell.folder

    def test_job_type_without_a_level_is_the_condition(self, cell: Cell, captured: dict[str, Any]) -> None:
        one = config("exact", rate=0.1)
        one.tracker.name = "wandb"
        with tracked(one, cell):
            pass
        assert captured["job_type"] == "exact"

    @pytest.mark.parametrize(
        ("setting", "variable", "mode"), [("online", None, "online"), ("online", "offline", "offline")]
    )
    def test_mode_is_the_settings_unless_the_environment_says_otherwise(
        self, setting: str, variable: str | None, mode: str, wandb_config: Config, cell: Cell,
        captured: dict[str, Any], monkeypatch: pytest.MonkeyPatch,
    ) -> None:  # fmt: skip
        wandb_config.tracker.mode = setting
        if variable:
            monkeypatch.setenv("WANDB_MODE", variable)
        with tracked(wandb_config, cell):
            pass
        assert captured["mode"] == mode

    def test_each_attempt_is_a_run_of_its_own(self, wandb_config: Config, cell: Cell, captured: dict[str, Any]) -> None:
        names = []
        for fails in (True, False):
            try:
                with cell.attempt(), tracked(wandb_config, cell):
                    names.append(captured["name"])
                    if fails:
                        raise RuntimeError
            except RuntimeError:
                pass
        assert len(set(names)) == 2
        assert "id" not in captured
        assert captured.get("resume") is None


class TestEnd:
    def test_a_finished_cell_logs_curves_summary_and_outcomes(
        self, wandb_config: Config, cell: Cell, captured: dict[str, Any]
    ) -> None:
        with tracked(wandb_config, cell) as tracker:
            tracker.finish(LOG, METRICS, outcomes())
        run: FakeRun = captured["run"]
        assert run.finished == [None]
        assert [step for _, step in run.logged[:3]] == [1, 2, 2]
        assert run.logged[0][0] == {"train/loss": 2.0, "train/learning_rate": 0.1}
        assert run.summary["puzzles/seen/accuracy"] == 0.5
        assert run.summary["n_rows"] == 64
        table = run.logged[-1][0]["outcomes"]
        assert table.columns == list(outcomes().columns)
        assert len(table.data) == 2
        assert table.data[1][table.columns.index("output")] is None
        assert table.data[0][table.columns.index("correct")] is True

    @pytest.mark.parametrize("error", [ValueError("x"), KeyboardInterrupt(), SystemExit(3)])
    def test_a_failing_cell_is_marked_and_closed_and_its_error_goes_on(
        self, error: BaseException, wandb_config: Config, cell: Cell, captured: dict[str, Any]
    ) -> None:
        with pytest.raises(type(error)), tracked(wandb_config, cell):
            raise error
        assert captured["run"].finished == [1]

    def test_without_a_tracker_wandb_is_not_even_asked(self, cell: Cell, captured: dict[str, Any]) -> None:
        with tracked(config(), cell) as tracker:
            assert isinstance(tracker, NoTracker)
            tracker.finish(LOG, METRICS, outcomes())
        assert captured == {}


@pytest.mark.slow
class TestRealOffline:
    """With wandb itself, offline: its files are read back."""

    def records(self, cell: Cell) -> list[Any]:
        """The records of a run's log: a header of 7 bytes, then blocks of 32 KiB as LevelDB writes them."""
        from wandb.proto import wandb_internal_pb2

        (path,) = cell.folder.glob("wandb/offline-run-*/run-*.wandb")
        data = path.read_bytes()
        assert data[:4] == b":W&B"
        found, position, part = [], 7, b""
        while position + 7 <= len(data):
            if 32768 - position % 32768 < 7:
                position += 32768 - position % 32768
                continue
            size, kind = int.from_bytes(data[position + 4 : position + 6], "little"), data[position + 6]
            part += data[position + 7 : position + 7 + size]
            position += 7 + size
            if kind in (1, 4):  # whole, or the last part of one
                record = wandb_internal_pb2.Record()
                record.ParseFromString(part)
                found.append(record)
                part = b""
        return found

    def test_a_finished_run(self, wandb_config: Config, cell: Cell) -> None:
        with tracked(wandb_config, cell) as tracker:
            tracker.finish(LOG, METRICS, outcomes())
        records = self.records(cell)
        (run,) = [record.run for record in records if record.WhichOneof("record_type") == "run"][:1]
        settings = {update.key: update.value_json for update in run.config.update}
        assert settings["cell"] == f'"{cell.id}"'
        assert '"lr": 0.0001' in settings["train"].replace('":', '": ').replace("  ", " ")
        assert (run.run_group, run.job_type) == ("my_sweep", "semd_synthetic_paraphrase")
        exits = [record.exit for record in records if record.WhichOneof("record_type") == "exit"]
        assert [one.exit_code for one in exits] == [0]
        assert list(cell.folder.glob("wandb/offline-run-*/files/media/table/outcomes*.table.json"))

    def test_a_failing_run_and_the_next_one_do_not_merge(self, wandb_config: Config, tmp_path: Path) -> None:
        import wandb

        first, second = Store(tmp_path / "a").freeze(wandb_config), Store(tmp_path / "b").freeze(wandb_config)
        with pytest.raises(ValueError, match="broken"), tracked(wandb_config, first):
            raise ValueError("broken")
        assert wandb.run is None
        with tracked(wandb_config, second) as tracker:
            tracker.finish(LOG, METRICS, outcomes())
        codes = []
        for cell in (first, second):
            exits = [record.exit for record in self.records(cell) if record.WhichOneof("record_type") == "exit"]
            codes.append([one.exit_code for one in exits])
        assert codes == [[1], [0]]
