"""``python -m softcontam.power`` and what a launch prints: stated designs, planned experiments, bad requests."""

from __future__ import annotations

import re
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path

import numpy as np
import pandas as pd
import pytest
from fake_sweep import Outcomes, add_cell
from rich.console import Console
from tiny_cells import TINY, composed

from softcontam.analysis.planned import Planned, planned, planned_cell
from softcontam.arms import lay_out
from softcontam.config import Config
from softcontam.errors import ConfigError
from softcontam.power import main, planned_power, read_settings, stated, write_files
from softcontam.reporting.power import answer, power_figure
from softcontam.store import Store

SWEEP = ("exp=semd_rate_sweep", *TINY, "condition=exact", "mixture.rate=0.2", "seed=0,1")


class Run:
    """A command line in this process, in an empty folder."""

    def __init__(self, folder: Path, capsys: pytest.CaptureFixture[str]) -> None:
        self.folder, self.capsys = folder, capsys
        self.err = ""

    def __call__(self, *arguments: str, code: int = 0) -> str:
        self.capsys.readouterr()
        ended = main(arguments)
        printed = self.capsys.readouterr()
        self.err = printed.err
        assert ended == code, printed.err
        return " ".join((printed.out + printed.err).split())

    def table(self, *arguments: str) -> pd.DataFrame:
        """``power.csv`` of a command line."""
        self(*arguments, f"out={self.folder}/out")
        return pd.read_csv(self.folder / "out" / "power.csv")


@pytest.fixture
def power(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]) -> Run:
    monkeypatch.chdir(tmp_path)
    for name in ("RUNS", "REPORTS", "DATA"):
        monkeypatch.delenv(f"SOFTCONTAM_{name}", raising=False)
    return Run(tmp_path, capsys)


def clean_runs(store: Store, seeds: int, changed: int, *overrides: str) -> None:
    """Clean cells of the tiny sweep in which every run changes its answer to ``changed`` of 40 held-out items."""
    for seed in range(seeds):
        outcomes = Outcomes()
        for item in range(40):
            flips = item >= 40 - changed and (item + seed) % 2 == 0
            outcomes.add("held_out", f"i{item}", [(item < 20) != flips], family=f"f{item // 2}", benchmark="tinyworld")
        settings = composed("exp=semd_rate_sweep", "condition=clean", f"seed={seed}", f"paths.runs={store.runs}",
                            *overrides)  # fmt: skip
        add_cell(store, settings, outcomes)


def planned_design(*arguments: str) -> Planned:
    return stated(read_settings(arguments)[0])


class TestStated:
    @pytest.mark.parametrize(("items", "points"), [(164, 6.9), (250, 5.6), (500, 4.0), (1319, 2.4)])
    def test_one_run_per_arm_at_ten_percent_discordant_items(self, power: Run, items: int, points: float) -> None:
        table = power.table(f"items={items}", "seeds=1", "discordance=0.1", "run_logit_sd=0", "margin=0.02")
        assert 100 * table["detectable"][0] == pytest.approx(points, abs=0.05)
        assert table["equivalence_items"][0] == 2706

    def test_margin_of_five_points_takes_433_items(self, power: Run) -> None:
        assert "433" in power("items=164", "seeds=1", "discordance=0.1")

    def test_design_of_125_items_and_one_run_sees_12_to_15_points_and_says_for_whom(self, power: Run) -> None:
        text = power("families=125", "seeds=1", "base_accuracy=0.51")
        found = re.search(r"Between ([\d.]+) points .*? and ([\d.]+)", text)
        assert found is not None
        assert 12 < float(found[1]) < float(found[2]) <= 15
        assert "They hold for that one run" in text

    def test_a_stated_discordance_gives_one_figure_and_no_range(self, power: Run) -> None:
        assert "Between" not in power("families=125", "seeds=1", "discordance=0.3")

    @pytest.mark.parametrize(
        "sizes", [("families=50", "items=100"), ("families=50", "family_size=2"), ("items=100", "family_size=2")]
    )
    def test_any_two_of_families_items_and_their_size_say_the_same(self, power: Run, sizes: tuple[str, ...]) -> None:
        table = power.table(*sizes)
        assert (table["families"][0], table["items"][0]) == (50, 100)

    def test_more_seeds_or_items_see_smaller_effects(self, power: Run) -> None:
        effects = [power.table(*words)["detectable"][0] for words in (
            ("families=100",), ("families=400",), ("families=400", "seeds=6"))]  # fmt: skip
        assert effects == sorted(effects, reverse=True)

    def test_what_no_number_of_items_reaches_is_left_empty(self, power: Run) -> None:
        table = power.table("families=100", "run_logit_sd=0.6", "target=0.01")
        assert table["items_needed"].isna().all()
        assert table["seeds_needed"].isna().all()

    def test_an_effect_beyond_the_headroom_cannot_be_seen(self, power: Run) -> None:
        assert "a gain cannot be seen: accuracy can rise by 4.0 points only" in power(
            "families=20", "base_accuracy=0.96"
        )
        assert "cannot be seen" not in power("families=2000", "base_accuracy=0.6")

    @pytest.mark.parametrize(
        ("words", "says"),
        [
            (["families=1000", "seeds=20"], "A gain of 5.0 points is found in 80 % of such sweeps."),
            (
                ["families=125", "seeds=3"],
                "A gain of 5.0 points is found in fewer than 80 % of such sweeps. The smallest found in 80 %: 23.6 on",
            ),
            (["families=125", "seeds=1"], "With one seed this holds for that run only, and not for the condition."),
            (
                ["families=1000", "target=0.2", "base_accuracy=0.9"],
                "There is no room for a gain of 20.0 points on these items.",
            ),
            (["families=200", "run_logit_sd=0.3", "target=0.01"], "(no number of seeds finds 1.0)"),
            (
                ["families=4"],
                "No gain that there is room for is found on these items (if clean accuracy is 50 %, which is assumed).",
            ),
            (
                ["families=1000", "target=0.6"],
                "There is no room for a gain of 60.0 points on these items "
                "(if clean accuracy is 50 %, which is assumed).",
            ),
        ],
        ids=lambda value: " ".join(value) if isinstance(value, list) else "",
    )
    def test_the_first_sentence_answers_whether_the_target_can_be_found(
        self, power: Run, words: list[str], says: str
    ) -> None:
        assert says in power(*words)
        power(*words, f"out={power.folder}/out")
        assert says in (power.folder / "out" / "power.md").read_text()

    def test_a_gain_beyond_the_room_is_not_named_as_one_that_is_found(self, power: Run) -> None:
        assert ">100" not in answer([planned_design("families=2", "seeds=2")])

    def test_one_seed_is_said_of_those_contrasts_that_have_one(self) -> None:
        several = replace(planned_design("families=125"), role="held_out", benchmark="riddles", setup="lr=1")
        one = replace(several, setup="lr=2", design=replace(several.design, seeds=1))
        said = "With one seed (held-out riddles (lr=2)) this holds"
        assert said in answer([several, one])
        assert said in answer([one, several])

    def test_a_contrast_that_cannot_be_measured_is_named_beside_those_that_can(self) -> None:
        held_out = replace(planned_design("families=125"), role="held_out", benchmark="riddles")
        related = replace(held_out, role="related", design=replace(held_out.design, discordance=0.0))
        text = answer([held_out, related])
        assert "The smallest found in 80 %: 23.6 on held-out riddles" in text
        assert text.endswith("Nothing can be told on related riddles: there is no noise to plan with.")

    def test_a_plan_without_any_noise_is_written_without_a_figure(self, tmp_path: Path) -> None:
        one = planned_design("families=125")
        write_files([replace(one, design=replace(one.design, discordance=0.0))], "silent", tmp_path, "power")
        assert {path.name for path in tmp_path.iterdir()} == {"power.csv", "power.md"}
        page = (tmp_path / "power.md").read_text()
        assert "Whether a gain of 5.0 points can be found cannot be told" in page
        assert "power.svg" not in page

    def test_what_rests_on_an_assumed_accuracy_says_so(self, power: Run) -> None:
        assert "50.0 points only (if clean accuracy is 50 %, which is assumed)" in power("families=4")
        assert "assumed)" not in power("families=4", "base_accuracy=0.5")

    def test_the_figure_reaches_the_seeds_that_the_target_takes(self, power: Run) -> None:
        found = [planned_design(f"families={n}") for n in (125, 1000, 10)]
        assert [one.seeds_needed for one in found] == [19, 12, 106]
        ends = []
        for one in found:
            (axis,) = power_figure([one], "x").figure.axes
            lines = [np.asarray(line.get_xdata()) for line in axis.lines]
            ends.append(max(int(seeds[-1]) for seeds in lines if len(seeds) > 2))
        assert ends == [19, 12, 10], "106 seeds would leave the design in a corner"

    def test_the_files_hold_what_was_printed(self, power: Run, tmp_path: Path) -> None:
        power("families=125", f"out={tmp_path}/new/folder")
        folder = tmp_path / "new" / "folder"
        assert {path.name for path in folder.iterdir()} == {"power.csv", "power.svg", "power.png", "power.md"}
        assert "(power.svg)" in (folder / "power.md").read_text()
        assert "python -m softcontam.power families=125" in (folder / "power.md").read_text()
        assert (folder / "power.png").read_bytes().startswith(b"\x89PNG")
        assert "smallest detectable effect" in (folder / "power.svg").read_text()


@pytest.mark.parametrize(
    ("arguments", "says"),
    [
        ([], ["neither an experiment nor a number of families", "Usage"]),
        (["seeds=3"], ["neither an experiment nor a number of families"]),
        (["familes=3"], ["'familes=3'", "no setting", "Usage"]),
        (["families"], ["'families'", "key=value"]),
        (["families=many"], ["families=many: ", "Usage"]),
        (["families=10", "seeds=1.5"], ["seeds=1.5: ", "Integer", "Usage"]),
        (["families=0"], ["families=0", "at least 1"]),
        (["families=10", "seeds=0"], ["seeds=0", "at least 1"]),
        (["families=10", "discordance=30"], ["discordance=30", "fraction"]),
        (["families=10", "base_accuracy=1"], ["base_accuracy=1", "fraction"]),
        (["families=10", "target=0"], ["target=0", "fraction"]),
        (["families=10", "family_correlation=2"], ["family_correlation=2"]),
        (["families=10", "discordance=0.5", "base_accuracy=0.2"], ["discordance=0.5", "at most 0.4"]),
        (["families=10", "items=20", "family_size=2"], ["one too many"]),
        (["families=10", "items=5"], ["items=5", "less than families=10"]),
        (["families=10", "paths.runs=x"], ["paths.runs=x", "without exp=NAME"]),
        (["exp=semd_rate_sweep", "families=10"], ["families comes from the experiment", "benchmark.max_items"]),
    ],
    ids=lambda value: " ".join(value) if isinstance(value, list) else "",
)
def test_bad_requests_are_refused_with_the_key_and_the_remedy(arguments: list[str], says: list[str]) -> None:
    with pytest.raises(ConfigError) as refused:
        read_settings(arguments)
    for words in says:
        assert words in str(refused.value)


class TestExperiment:
    def test_items_and_seeds_come_from_the_config_and_nothing_is_written(self, power: Run, tmp_path: Path) -> None:
        table = power.table(*SWEEP[:-2], "mixture.rate=0.1,0.2", "seed=0,1")
        assert list(table["role"]) == ["seen", "seen", "held_out", "related", "general"]
        assert set(table["seeds"]) == {2}
        by_role = table.drop_duplicates("role").set_index("role")
        assert list(table["dose"][:2]) == ["10 %", "20 %"]
        arm = lay_out(composed("condition=exact", "mixture.rate=0.1"))
        sets = {one.role: one for one in arm.item_sets}
        assert by_role["items"]["seen"] == len(arm.plan.copies)
        assert by_role["items"]["held_out"] == len(sets["held_out"].items)
        assert by_role["chance"]["related"] == pytest.approx(sets["related"].chance)
        assert set(table["noise"]) == {"assumed"}
        assert {path.name for path in tmp_path.iterdir()} == {"out"}

    def test_two_clean_runs_of_the_same_settings_are_measured(self, power: Run, tmp_path: Path) -> None:
        clean_runs(Store(tmp_path / "runs"), 2, 10)
        rows = power.table(*SWEEP).set_index("role")
        held_out = rows.loc["held_out"]
        assert held_out["noise"] == "measured, 2 clean runs"
        assert held_out["discordance"] == pytest.approx(10 / 40)
        assert rows["noise"]["related"] == "assumed"

    def test_one_clean_run_tells_of_no_noise(self, power: Run, tmp_path: Path) -> None:
        clean_runs(Store(tmp_path / "runs"), 1, 10)
        assert set(power.table(*SWEEP)["noise"]) == {"assumed"}

    def test_clean_runs_of_another_recipe_are_said_to_be_that(self, power: Run, tmp_path: Path) -> None:
        clean_runs(Store(tmp_path / "runs"), 3, 10, "train.lr=0.5")
        assert "measured, 3 clean runs, other settings" in set(power.table(*SWEEP)["noise"])

    def test_clean_runs_of_another_model_do_not_count(self, power: Run, tmp_path: Path) -> None:
        clean_runs(Store(tmp_path / "runs"), 3, 10, "model.path=/some/other/model")
        assert set(power.table(*SWEEP)["noise"]) == {"assumed"}

    def test_runs_that_answer_alike_give_nothing_to_plan_with(self, power: Run, tmp_path: Path) -> None:
        clean_runs(Store(tmp_path / "runs"), 3, 0)
        rows = power.table(*SWEEP).set_index("role")
        assert np.isnan(rows["detectable"]["held_out"])
        assert "nothing to plan with" in rows["warnings"]["held_out"]

    def test_a_damaged_cell_of_the_store_is_passed_over(self, power: Run, tmp_path: Path) -> None:
        store = Store(tmp_path / "runs")
        clean_runs(store, 3, 10)
        first = min(path.parent for path in store.runs.glob("*/config.yaml"))
        (first / "outcomes.parquet").write_bytes(b"PAR1")
        (store.runs / "ff00").mkdir()
        (store.runs / "ff00" / "config.yaml").write_text("condition:\n  kind: clean\nmodel: [")
        assert "measured, 2 clean runs" in set(power.table(*SWEEP)["noise"])

    def test_what_is_given_goes_before_what_is_measured(self, power: Run, tmp_path: Path) -> None:
        clean_runs(Store(tmp_path / "runs"), 2, 10)
        rows = power.table(*SWEEP, "discordance=0.4", "seeds=7").set_index("role")
        assert set(rows["discordance"]) == {0.4}
        assert set(rows["seeds"]) == {7}
        assert rows["noise"]["held_out"] == "measured, 2 clean runs, in part given"

    def test_a_wrong_setting_of_the_run_stops_it(self, power: Run) -> None:
        told = power("exp=semd_rate_sweep", "train.learning_rate=1", code=2)
        assert "Could not override 'train.learning_rate'" in told
        assert "mixture.rate=2" in power("exp=semd_rate_sweep", "condition=exact", "mixture.rate=2", "seed=0", code=2)

    def test_an_experiment_of_clean_cells_plans_no_contrast(self, power: Run) -> None:
        text = power("exp=semd_rate_sweep", "condition=clean", "mixture.rate=0.1", "seed=0", code=2)
        assert "no contrast" in text


class TestLaunch:
    @pytest.fixture
    def config(self, tmp_path: Path) -> Callable[..., Config]:
        return lambda *overrides: composed(*overrides, f"paths.runs={tmp_path}/runs")

    def printed(self, table: object) -> str:
        console = Console(width=110, record=True)
        with console.capture() as capture:
            console.print(table)
        return capture.get()

    def test_seeds_are_counted_over_the_sweep_and_not_over_what_is_left_to_run(
        self, config: Callable[..., Config], tmp_path: Path
    ) -> None:
        configs = [config(f"condition={kind}", f"seed={seed}") for kind in ("clean", "exact") for seed in range(4)]
        left = [planned_cell(configs[-1], lay_out(configs[-1]))]
        (held_out,) = [one for one in planned(left, configs) if one.role == "held_out"]
        assert held_out.design.seeds == 4
        table = planned_power(left, configs, Store(tmp_path / "runs"))
        assert table is not None
        text = self.printed(table)
        assert "held-out tinyworld" in text
        assert max(map(len, text.splitlines())) <= 110

    def test_nothing_is_printed_where_nothing_was_laid_out_or_nothing_is_contrasted(
        self, config: Callable[..., Config], tmp_path: Path
    ) -> None:
        store = Store(tmp_path / "runs")
        clean, exact, scored = config("condition=clean"), config("condition=exact"), config("eval.samples=0")
        assert planned_power([], [clean, exact], store) is None
        assert planned_power([planned_cell(clean, lay_out(clean))], [clean], store) is None
        assert planned_power([planned_cell(scored, lay_out(scored))], [scored], store) is None

    def test_the_margin_is_the_one_that_the_experiment_declares(self, config: Callable[..., Config]) -> None:
        exact = config("condition=exact", "analysis.margin=0.1")
        assert {one.margin for one in planned([planned_cell(exact, lay_out(exact))], [exact])} == {0.1}

    def test_two_recipes_are_planned_apart(self, config: Callable[..., Config]) -> None:
        configs = [config("condition=exact", f"train.epochs={n}", f"seed={s}") for n, s in ((1, 0), (2, 0), (2, 1))]
        found = planned([planned_cell(one, lay_out(one)) for one in configs], configs)
        assert {(one.setup, one.design.seeds) for one in found} == {("train.epochs=1", 1), ("train.epochs=2", 2)}


@pytest.mark.parametrize(
    ("words", "told"),
    [
        (["exp=semd_rate_swep"], "Could not find 'exp/semd_rate_swep' Available options in 'exp': "),
        (["exp=dose_ladder", "eval.sampels=0"], "Could not override 'eval.sampels'"),
    ],
)
def test_what_hydra_cannot_compose_is_told_on_one_line(
    words: list[str], told: str, capsys: pytest.CaptureFixture[str]
) -> None:
    assert main(words) == 2
    error = capsys.readouterr().err.strip()
    assert told in error
    assert "\n" not in error
    assert "search path" not in error
