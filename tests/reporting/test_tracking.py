"""The wandb mirror of a cell: what it is told at init, that it is always closed, and that failures are marked."""

from __future__ import annotations

from dataclasses import asdict
from pathlib import Path
from typing import Any

import pandas as pd
import pytest
from fake_sweep import Outcomes, config
from read_wandb import records, summary

from softcontam.config import Config
from softcontam.reporting.tracking import NoTracker, arm_at_dose, figures_of, outcomes_within, run_name, tracked
from softcontam.store import Cell, Store

LOG = [
    {"loss": 2.0, "learning_rate": 0.1, "epoch": 0.5, "step": 1},
    {"loss": 1.0, "learning_rate": 0.05, "epoch": 1.0, "step": 2},
    {"inserted_token_accuracy": 0.25, "clean_token_accuracy": 0.5, "epoch": 0.0, "step": 0},
    {"train_runtime": 3.0, "train_loss": 1.5, "epoch": 1.0, "step": 2},
]
METRICS = {
    "roles": {
        "puzzles/seen": {"accuracy": 0.5, "parse_rate": None, "items": 2, "verdicts": {"passed": 1}},
        "riddles/related": {"accuracy": 0.25, "gold_logprob_per_token": float("nan"), "items": 4},
        "riddles/held_out": {"accuracy": 0.75},
    },
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
        self.axes: dict[str, str | None] = {}
        self.summary: dict[str, Any] = {}
        self.finished: list[int | None] = []

    def define_metric(self, name: str, **how: Any) -> None:
        self.axes[name] = how.get("step_metric")

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
        assert captured["config"].items() >= {"cell": cell.id, **asdict(wandb_config)}.items()
        assert captured["config"]["seeds"]["training"] == 3
        assert captured["group"] == "my_sweep"
        assert captured["job_type"] == "semd_synthetic-paraphrase"
        assert captured["mode"] == "offline"
        assert captured["tags"] == ["puzzles", "tiny", "plain", "semd_synthetic"]
        assert Path(captured["dir"]) == cell.folder

    def test_what_a_sweep_varies_stands_in_the_config_by_flat_keys(
        self, wandb_config: Config, cell: Cell, captured: dict[str, Any]
    ) -> None:
        with tracked(wandb_config, cell):
            pass
        flat = {key: value for key, value in captured["config"].items() if not isinstance(value, dict)}
        wanted = {"arm": "semd_synthetic-paraphrase", "rate": 0.1, "seed": 0, "base_model": "tiny", "recipe": "plain"}
        assert flat.items() >= wanted.items()

    def test_the_clean_arm_stands_at_dose_0(self, cell: Cell, captured: dict[str, Any]) -> None:
        one = config("clean", rate=0.05)  # a sweep composes a rate for it as well
        one.tracker.name = "wandb"
        with tracked(one, cell):
            pass
        assert (captured["config"]["rate"], captured["name"]) == (0.0, "clean s0")

    def test_a_tag_is_never_longer_than_wandb_admits(self, cell: Cell, captured: dict[str, Any]) -> None:
        one = config("exact", rate=0.1, model="m" * 100)
        one.tracker.name = "wandb"
        with tracked(one, cell):
            pass
        assert max(map(len, captured["tags"])) == 64

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
        assert names == ["semd_synthetic-paraphrase r0.1 s0", "semd_synthetic-paraphrase r0.1 s0 #2"]
        assert "id" not in captured
        assert captured.get("resume") is None


class TestNames:
    def test_arms_and_doses_of_a_sweep_are_told_apart(self) -> None:
        arms = [
            config(kind, rate=rate, level=level, copies=copies)
            for kind, level in (("exact", None), ("semd_synthetic", "paraphrase"), ("semd_synthetic", "reorder"))
            for rate in (0.05, 0.005)
            for copies in (None, 1, 4)
        ]
        assert len({arm_at_dose(one) for one in arms}) == len(arms)

    def test_a_name_reads_as_arm_dose_and_seed(self) -> None:
        assert run_name(config("exact", 7, rate=0.05, copies=4), 1) == "exact r0.05 c4 s7"
        assert run_name(config("topical", 0, rate=0.2), 3) == "topical r0.2 s0 #3"


class TestEnd:
    def test_a_finished_cell_logs_curves_figures_and_outcomes(
        self, wandb_config: Config, cell: Cell, captured: dict[str, Any]
    ) -> None:
        with tracked(wandb_config, cell) as tracker:
            tracker.finish(LOG, METRICS, outcomes())
        run: FakeRun = captured["run"]
        assert run.finished == [None]
        assert run.logged[1][0] == {"train/loss": 2.0, "train/learning_rate": 0.1, "train/step": 1}
        assert run.summary["puzzles/seen/accuracy"] == 0.5
        assert run.summary["n_rows"] == 64
        last = run.logged[-1][0]
        assert last["seen/accuracy"] == 0.5
        assert last["related/riddles/accuracy"] == 0.25
        table = last["outcomes"]
        assert table.columns == list(outcomes().columns)
        assert len(table.data) == 2
        assert table.data[1][table.columns.index("output")] is None
        assert table.data[0][table.columns.index("correct")] is True

    def test_curves_go_forward_in_steps_and_are_drawn_against_them(
        self, wandb_config: Config, cell: Cell, captured: dict[str, Any]
    ) -> None:
        with tracked(wandb_config, cell) as tracker:
            tracker.finish(LOG, METRICS, outcomes())
        run: FakeRun = captured["run"]
        assert [step for _, step in run.logged] == [0, 1, 2, None]
        assert run.logged[0][0]["train/inserted_token_accuracy"] == 0.25
        assert run.axes["train/*"] == "train/step"

    def test_curves_can_be_watched_and_are_not_logged_twice(
        self, wandb_config: Config, cell: Cell, captured: dict[str, Any]
    ) -> None:
        with tracked(wandb_config, cell) as tracker:
            lines = sorted(LOG, key=lambda line: int(line["step"]))
            for line in lines[:2]:
                tracker.record(line)
            run: FakeRun = captured["run"]
            assert [step for _, step in run.logged] == [0, 1]
            tracker.finish(lines, METRICS, outcomes())
        assert [step for _, step in run.logged] == [0, 1, 2, None]

    def test_totals_of_the_training_are_no_point_of_a_curve(
        self, wandb_config: Config, cell: Cell, captured: dict[str, Any]
    ) -> None:
        with tracked(wandb_config, cell) as tracker:
            tracker.finish(LOG, METRICS, outcomes())
        run: FakeRun = captured["run"]
        assert run.summary["train/train_runtime"] == 3.0
        assert not any("train/train_runtime" in values for values, _ in run.logged)

    def test_figures_that_were_not_decided_are_left_out(self) -> None:
        found = figures_of(config(), METRICS)
        assert "seen/parse_rate" not in found
        assert "related/riddles/gold_logprob_per_token" not in found

    def test_fresh_held_out_items_do_not_pass_for_those_of_the_split(self) -> None:
        assert figures_of(config(), METRICS).keys() & {"held_out/accuracy", "held_out/riddles/accuracy"} == {
            "held_out/riddles/accuracy"
        }

    def test_a_table_that_is_too_long_keeps_a_sample_of_every_item(self) -> None:
        many = Outcomes()
        for item in "abcd":
            many.add("seen", item, [True, False, True])
        kept = outcomes_within(many.frame(), 5)
        assert len(kept) == 5
        assert set(kept["item_id"]) == set("abcd")

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


class TestRealOffline:
    """With wandb itself, offline: its files are read back by wandb's own reader."""

    def test_a_finished_run(self, wandb_config: Config, cell: Cell) -> None:
        with tracked(wandb_config, cell) as tracker:
            tracker.finish(LOG, METRICS, outcomes())
        (path,) = cell.folder.glob("wandb/offline-run-*/run-*.wandb")
        told = summary(path)
        assert told["state"] == "finished"
        assert told["summary"].items() >= {"seen/accuracy": 0.5, "n_rows": 64, "train/loss": 1.0}.items()
        (run,) = records(path, "run")
        settings = told["config"]
        assert (settings["cell"], settings["rate"], settings["train"]["lr"]) == (cell.id, 0.1, 1e-4)
        assert (run["run_group"], run["job_type"]) == ("my_sweep", "semd_synthetic-paraphrase")
        assert run["display_name"] == "semd_synthetic-paraphrase r0.1 s0"
        assert set(run["tags"]) == {"puzzles", "tiny", "plain", "semd_synthetic"}
        curve = [
            (int(point["train/step"]), point["train/loss"])
            for point in records(path, "history")
            if "train/loss" in point
        ]
        assert curve == [(1, 2.0), (2, 1.0)]
        assert list(cell.folder.glob("wandb/offline-run-*/files/media/table/outcomes*.table.json"))

    def test_a_failing_run_and_the_next_one_do_not_merge(self, wandb_config: Config, tmp_path: Path) -> None:
        import wandb

        first, second = Store(tmp_path / "a").freeze(wandb_config), Store(tmp_path / "b").freeze(wandb_config)
        with pytest.raises(ValueError, match="broken"), tracked(wandb_config, first):
            raise ValueError("broken")
        assert wandb.run is None
        with tracked(wandb_config, second) as tracker:
            tracker.finish(LOG, METRICS, outcomes())
        paths = [next(cell.folder.glob("wandb/offline-run-*/run-*.wandb")) for cell in (first, second)]
        assert [summary(path)["exit_code"] for path in paths] == [1, 0]
