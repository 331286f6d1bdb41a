"""Workspace and report: their panels show what the tracker logs; nothing is lost without an account."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from fake_sweep import Outcomes, add_cell, config, sweep
from read_wandb import records, summary
from wandb_server import KEY, wandb_server

from softcontam import dashboard
from softcontam.analysis.effects import measure
from softcontam.errors import ConfigError, StoreError
from softcontam.reporting.dashboards import contents, report, specification, workspace
from softcontam.reporting.effects_run import JOB_TYPE, effect_curves
from softcontam.store import Store

pytest.importorskip("wandb_workspaces", reason="pip install 'softcontam[wandb]'")

LOG = [
    {"inserted_token_accuracy": 0.1, "clean_token_accuracy": 0.2, "epoch": 0.0, "step": 0},
    {"loss": 2.0, "learning_rate": 0.1, "mean_token_accuracy": 0.5, "epoch": 0.5, "step": 1},
    {"inserted_token_accuracy": 0.6, "clean_token_accuracy": 0.3, "epoch": 1.0, "step": 2},
    {"train_runtime": 3.0, "train_loss": 1.5, "epoch": 1.0, "step": 2},
]


def store_of(root: Path, *arms: tuple[str, dict[str, Any]], seeds: int = 2) -> Store:
    """A store with a clean cell and one of each arm (kind, config changes) for each seed."""
    store = Store(root / "runs")
    cells = []
    for seed in range(seeds):
        for kind, changes in (("clean", {}), *arms):
            right = kind != "clean"
            outcomes = Outcomes()
            for item in range(4):
                outcomes.add("seen", f"s{item}", [right], copies=1 if right else 0)
                outcomes.add("held_out", f"h{item}", [right and item + seed > 1])
                outcomes.add("related", f"r{item}", [item > 1], benchmark="riddles")
            figures = {"accuracy": 0.5, "parse_rate": 1.0, "finished": 1.0, "gold_logprob_per_token": -1.0, "items": 4}
            roles = dict.fromkeys(("puzzles/seen", "puzzles/held_out", "riddles/related"), figures)
            cell = add_cell(store, config(kind, seed, **changes), outcomes, roles=roles)
            (cell.folder / "train_log.jsonl").write_text("".join(json.dumps(line) + "\n" for line in LOG))
            cells.append(cell)
    sweep(store, cells)
    return store


RATES = [("exact", {"rate": 0.05}), ("exact", {"rate": 0.1}), ("topical", {"rate": 0.1})]


@pytest.fixture
def store(tmp_path: Path) -> Store:
    return store_of(tmp_path, *RATES)


@pytest.fixture(autouse=True)
def no_account(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> Iterator[None]:
    """Whatever this machine's user has: no key, no settings, nothing that goes out."""
    import wandb

    for name in ("WANDB_API_KEY", "WANDB_MODE", "WANDB_BASE_URL", "WANDB_ENTITY"):
        monkeypatch.delenv(name, raising=False)
    monkeypatch.setenv("HOME", str(tmp_path / "home"))
    monkeypatch.setenv("NETRC", str(tmp_path / "home" / "netrc"))
    monkeypatch.setenv("WANDB_ERROR_REPORTING", "false")
    wandb.teardown()  # the session remembers credentials and address
    yield
    wandb.teardown()


class Recorder:
    """Stands for every wandb run: the keys that it is told, and the keys of the cells' configs."""

    def __init__(self) -> None:
        self.keys: set[str] = set()
        self.settings: list[set[str]] = []
        self.summary = self

    def init(self, **given: Any) -> Recorder:
        if given["job_type"] != JOB_TYPE:
            self.settings.append(set(given["config"]))
        return self

    def log(self, values: dict[str, Any], step: int | None = None) -> None:
        self.keys |= values.keys()

    def update(self, values: dict[str, Any]) -> None:
        self.keys |= values.keys()

    def define_metric(self, name: str, **how: Any) -> None:
        pass

    def finish(self, exit_code: int | None = None) -> None:
        pass


def panels(spec: dict[str, Any]) -> list[dict[str, Any]]:
    """All panels of a specification, in workspaces and reports."""
    found = []
    for view in spec["workspaces"]:
        found += [p for s in view["spec"]["section"]["panelBankConfig"]["sections"] for p in s["panels"]]
    for view in spec["reports"]:
        grids = [block for block in view["spec"]["blocks"] if block["type"] == "panel-grid"]
        found += [p for grid in grids for p in grid["metadata"]["panelBankSectionConfig"]["panels"]]
    return found


def keys_of(panel: dict[str, Any]) -> set[str]:
    """The keys of history, summary and media that a panel draws."""
    settings = panel["config"]
    keys = {*settings.get("metrics", []), *settings.get("mediaKeys", [])}
    if panel["viewType"] == "Run History Line Plot":
        keys.add(settings["xAxis"])
    if panel["viewType"] == "Scatter Plot":
        keys.add(settings["yAxis"].removeprefix("summary:"))
    if panel["viewType"] == "Weave":
        keys.add(settings["panel2Config"]["exp"]["fromOp"]["inputs"]["key"]["val"])
    return keys


def config_keys_of(panel: dict[str, Any]) -> set[str]:
    """The keys of the config that a panel groups by or has on its x axis."""
    settings = panel["config"]
    keys = {settings["groupBy"]} if settings.get("groupBy") else set()
    if panel["viewType"] == "Scatter Plot":
        keys.add(settings["xAxis"].removeprefix("config:"))
    return {key.removesuffix(".value") for key in keys}


def made_from(store: Store) -> dict[str, Any]:
    found = contents(measure(store, "fake"))
    return specification([workspace(found, "p", "me")], [report(found, "p", "me")])


class TestPanels:
    def test_seen_held_out_and_related_stand_side_by_side_in_workspace_and_report(self, store: Store) -> None:
        spec = made_from(store)
        for part in ("workspaces", "reports"):
            drawn = panels({"workspaces": [], "reports": [], part: spec[part]})
            bars = [panel for panel in drawn if panel["viewType"] == "Bar Chart"]
            first = [panel["config"]["metrics"] for panel in bars[:3]]
            assert first == [["seen/accuracy"], ["held_out/accuracy"], ["related/riddles/accuracy"]]
            assert bars[0]["config"]["groupBy"] == "arm_at_dose.value"

    def test_changes_from_clean_are_drawn_against_the_dose_with_one_line_per_arm(self, store: Store) -> None:
        lines = [panel["config"] for panel in panels(made_from(store)) if panel["config"].get("xAxis") == "dose/rate"]
        assert ["delta/seen/exact", "delta/seen/topical"] in [sorted(one["metrics"]) for one in lines]

    def test_token_accuracy_on_inserted_rows_and_parse_rates_have_panels(self, store: Store) -> None:
        drawn = set().union(*map(keys_of, panels(made_from(store))))
        assert drawn >= {"train/inserted_token_accuracy", "train/loss", "seen/parse_rate", "related/riddles/parse_rate"}

    def test_a_curve_that_no_cell_logged_has_no_panel(self, store: Store) -> None:
        for path in store.runs.glob("*/train_log.jsonl"):
            path.write_text(json.dumps(LOG[1]) + "\n")
        drawn = set().union(*map(keys_of, panels(made_from(store))))
        assert "train/loss" in drawn
        assert "train/inserted_token_accuracy" not in drawn

    def test_cells_scored_by_log_probability_alone_are_compared_on_it(self, store: Store) -> None:
        for path in store.runs.glob("*/metrics.json"):
            figures = json.loads(path.read_text())
            for role in figures["roles"].values():
                role["accuracy"] = None
            path.write_text(json.dumps(figures))
        drawn = set().union(*map(keys_of, panels(made_from(store))))
        assert "held_out/gold_logprob_per_token" in drawn
        assert "held_out/accuracy" not in drawn

    def test_only_runs_of_the_experiment_are_shown(self, store: Store) -> None:
        spec = made_from(store)
        sets = spec["workspaces"][0]["spec"]["section"]["runSets"]
        for block in spec["reports"][0]["spec"]["blocks"]:
            sets += block.get("metadata", {}).get("runSets", [])
        for one in sets:
            (only,) = one["filters"]["filters"]
            assert (only["key"], only["op"], only["value"]) == ({"section": "run", "name": "group"}, "=", "fake")

    def test_the_report_states_the_command_and_what_came_out(self, store: Store) -> None:
        text = json.dumps(made_from(store)["reports"][0])
        assert "python -m softcontam.run -m exp=fake" in text
        (finding, *_) = contents(measure(store, "fake")).findings
        assert json.dumps(finding)[1:-1] in text

    def test_bars_never_average_over_two_models(self, tmp_path: Path) -> None:
        arms = [(kind, {"rate": 0.1, "model": model}) for kind in ("clean", "exact") for model in ("one", "two")]
        found = contents(measure(store_of(tmp_path, *arms), "fake"))
        bars = [panel for panel in panels(specification([workspace(found, "p", "me")], [])) if config_keys_of(panel)]
        grouped = {panel["config"]["groupBy"] for panel in bars if "groupBy" in panel["config"]}
        assert grouped == {"arm_in_setup.value"}


class TestEffectCurves:
    def test_copies_are_the_dose_where_they_vary_at_one_rate(self, tmp_path: Path) -> None:
        arms = [("exact", {"rate": 0.1, "copies": copies}) for copies in (1, 4)]
        curves = effect_curves(measure(store_of(tmp_path, *arms), "fake"))
        assert curves.x == "dose/copies"
        assert set(curves.lines()["seen"]) == {"delta/seen/exact"}

    def test_points_hold_the_effects_of_the_report(self, store: Store) -> None:
        measured = measure(store, "fake")
        curves = effect_curves(measured)
        wanted = next(
            one.estimate
            for one in measured.effects
            if (one.arm.condition, one.arm.rate, one.role, one.outcome) == ("exact", 0.1, "held_out", "accuracy")
        )
        (point,) = [one for one in curves.points if one["dose/rate"] == 0.1]
        assert point["delta/held_out/exact"] == wanted.mean
        assert (point["delta_low/held_out/exact"], point["delta_high/held_out/exact"]) == (wanted.low, wanted.high)

    def test_one_seed_has_no_bounds(self, tmp_path: Path) -> None:
        curves = effect_curves(measure(store_of(tmp_path, *RATES, seeds=1), "fake"))
        assert not any(key.startswith(("delta_low", "delta_high")) for point in curves.points for key in point)

    def test_no_key_has_a_dot_which_wandb_reads_as_a_nested_key(self, tmp_path: Path) -> None:
        arms = [("exact", {"rate": 0.1, "model": model}) for model in ("qwen3_0.6b", "olmo3.1")]
        clean = [("clean", {"model": model}) for model in ("qwen3_0.6b", "olmo3.1")]
        curves = effect_curves(measure(store_of(tmp_path, *clean, *arms), "fake"))
        keys = {key for point in curves.points for key in point}
        assert len([key for key in keys if key.startswith("delta/seen/")]) == 2
        assert not any("." in key for key in keys)


class TestOffline:
    def test_without_an_account_the_specification_is_written_and_the_next_step_named(
        self, store: Store, capsys: pytest.CaptureFixture[str]
    ) -> None:
        status = dashboard.main(["project=p", f"paths.runs={store.runs}", "effects=false"])
        told = capsys.readouterr().out
        assert status == 0
        assert "not logged in to wandb" in told
        assert f"wandb sync {store.runs}/*/wandb" in told
        written = json.loads((store.runs / "_dashboard" / "p.json").read_text())
        assert written["project"] == "p"
        assert panels(written)

    def test_cells_that_were_not_tracked_are_counted(self, store: Store, capsys: pytest.CaptureFixture[str]) -> None:
        dashboard.main(["project=p", f"paths.runs={store.runs}", "effects=false"])
        assert "8 of 8 done cells were run without tracker=wandb" in capsys.readouterr().out

    def test_wandb_mode_offline_sends_nothing(
        self, store: Store, monkeypatch: pytest.MonkeyPatch, tmp_path: Path, capsys: pytest.CaptureFixture[str]
    ) -> None:
        monkeypatch.setenv("WANDB_API_KEY", KEY)
        monkeypatch.setenv("WANDB_MODE", "offline")
        assert dashboard.main(["project=p", f"paths.runs={store.runs}", "effects=false"]) == 0
        assert "nothing was sent (WANDB_MODE=offline)" in capsys.readouterr().out

    def test_no_panel_waits_for_a_key_that_nothing_logs(
        self, store: Store, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        import wandb

        told = Recorder()
        monkeypatch.setattr(wandb, "init", told.init)
        spec = tmp_path / "spec.json"
        assert dashboard.main(["project=p", f"paths.runs={store.runs}", f"spec={spec}", "mirror=true"]) == 0
        drawn = panels(json.loads(spec.read_text()))
        assert set().union(*map(keys_of, drawn)) <= told.keys
        assert set().union(*map(config_keys_of, drawn)) <= set.intersection(*told.settings)

    @pytest.mark.slow
    def test_every_key_in_a_panel_is_in_a_run_file(self, tmp_path: Path) -> None:
        """The tracker and the command write offline runs; wandb's own reader says what is in them."""
        store = store_of(tmp_path, *RATES[1:], seeds=1)
        spec = tmp_path / "spec.json"
        settings = dashboard.read_settings(["project=p", f"paths.runs={store.runs}", f"spec={spec}", "mirror=true"])
        made = dashboard.make_dashboard(settings)
        assert (made.mirrored, made.tracked, made.done) == (3, 3, 3)
        logged: set[str] = set()
        settings_of_cells: list[set[str]] = []
        for path in store.runs.glob("*/wandb/offline-run-*/*.wandb"):
            read = summary(path)
            logged |= {key for key, _ in _flat(read["summary"])}
            logged |= {key.split(".")[0] for point in records(path, "history") for key in point}
            if path.parents[2].name != dashboard.FOLDER:
                settings_of_cells.append(set(read["config"]))
        drawn = panels(json.loads(spec.read_text()))
        assert set().union(*map(keys_of, drawn)) <= logged
        assert set().union(*map(config_keys_of, drawn)) <= set.intersection(*settings_of_cells)

    def test_effects_are_logged_once_until_they_change(self, store: Store) -> None:
        settings = dashboard.read_settings(["project=p", f"paths.runs={store.runs}"])
        assert dashboard.make_dashboard(settings).effects_logged == ("fake",)
        assert dashboard.make_dashboard(settings).effects_logged == ()
        record = store.sweep("fake")
        sweep(store, [store.cell(cell) for cell in record["cells"][:4]])
        assert dashboard.make_dashboard(settings).effects_logged == ("fake",)


class TestErrors:
    def test_the_missing_package_is_named_with_the_command_that_installs_it(
        self, store: Store, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
    ) -> None:
        monkeypatch.setitem(sys.modules, "wandb_workspaces", None)
        assert dashboard.main(["project=p", f"paths.runs={store.runs}"]) == 2
        assert "pip install 'softcontam[wandb]'" in capsys.readouterr().err

    def test_an_empty_store(self, tmp_path: Path) -> None:
        settings = dashboard.read_settings(["project=p", f"paths.runs={tmp_path}"])
        with pytest.raises(StoreError, match="Run one first"):
            dashboard.make_dashboard(settings)

    def test_a_sweep_without_a_done_cell_names_its_command(self, tmp_path: Path) -> None:
        store = Store(tmp_path)
        sweep(store, [store.freeze(config())])
        settings = dashboard.read_settings(["project=p", "exp=fake", f"paths.runs={tmp_path}"])
        with pytest.raises(StoreError, match=r"no cell of fake is done.*softcontam\.run -m exp=fake"):
            dashboard.make_dashboard(settings)

    @pytest.mark.parametrize(
        ("given", "told"),
        [
            ([], "project not given"),
            (["project=p", "expp=x"], "expp"),
            (["project"], "not of the form key=value"),
            (["project=p", "effects=perhaps"], "effects"),
        ],
    )
    def test_a_command_line_that_is_wanting(self, given: list[str], told: str) -> None:
        with pytest.raises(ConfigError, match=told):
            dashboard.read_settings(given)


@pytest.mark.slow
class TestAgainstAServer:
    """wandb's own client against a stand-in on this machine."""

    def test_the_documented_command_sends_every_offline_run_once(self, store: Store, tmp_path: Path) -> None:
        settings = dashboard.read_settings(["project=p", f"paths.runs={store.runs}", "mirror=true"])
        dashboard.make_dashboard(settings)
        with wandb_server() as (address, received):
            environment = {**os.environ, "WANDB_BASE_URL": address, "WANDB_API_KEY": KEY}
            folders = [str(path) for path in sorted(store.runs.glob("*/wandb"))]
            command = [sys.executable, "-m", "wandb", "sync", *folders]
            told = [
                subprocess.run(command, env=environment, capture_output=True, text=True, check=True, timeout=300)
                for _ in range(2)
            ]
        assert "No runs to sync" in told[1].stderr
        runs = {one["name"]: one for one in received.of("upsertBucket") if one.get("groupName")}
        assert {one["groupName"] for one in runs.values()} == {"fake"}
        names = sorted(one["displayName"] for one in runs.values())
        assert names[:3] == ["clean s0", "clean s1", "exact r0.05 s0"]
        assert len(names) == 9
        assert len([point for point in received.history if "train/loss" in point]) == 8

    def test_logged_in_it_saves_both_and_prints_where(
        self, store: Store, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
    ) -> None:
        import wandb

        with wandb_server() as (address, received):
            monkeypatch.setenv("WANDB_BASE_URL", address)
            monkeypatch.setenv("WANDB_API_KEY", KEY)
            status = dashboard.main(["project=softcontam", f"paths.runs={store.runs}", "exp=fake"])
            wandb.teardown()
        told = capsys.readouterr()
        assert status == 0, told.err
        assert f"saved: {address}/me/softcontam?nw=" in told.out
        assert f"saved: {address}/me/softcontam/reports/" in told.out
        views = received.of("upsertView")
        assert [view["type"] for view in views] == ["project-view", "runs"]
        assert all("delta/held_out/exact" in view["spec"] for view in views)

    def test_a_server_that_refuses_is_named_with_what_to_check(
        self, store: Store, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
    ) -> None:
        import wandb_workspaces.workspaces.internal as internal

        def refuse(view: Any) -> None:
            raise RuntimeError("permission denied")

        monkeypatch.setattr(internal, "upsert_view2", refuse)
        with wandb_server() as (address, _):
            monkeypatch.setenv("WANDB_BASE_URL", address)
            monkeypatch.setenv("WANDB_API_KEY", KEY)
            status = dashboard.main(["project=softcontam", f"paths.runs={store.runs}", "effects=false"])
        told = capsys.readouterr().err
        assert status == 2
        assert "permission denied" in told
        assert "entity=me" in told
        assert "spec=FILE" in told


def _flat(value: dict[str, Any], prefix: str = "") -> Iterator[tuple[str, Any]]:
    """Keys of a summary; a table or figure counts by its own key, not by its parts."""
    for key, inner in value.items():
        if isinstance(inner, dict) and "_type" not in inner:
            yield from _flat(inner, f"{prefix}{key}.")
        else:
            yield f"{prefix}{key}", inner
