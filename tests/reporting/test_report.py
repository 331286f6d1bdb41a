import re
import subprocess
import sys
from pathlib import Path

import numpy as np
import pandas as pd
import pytest
from fake_sweep import Outcomes, add_cell, config, sweep, sweep_of
from rich.console import Console
from statsmodels.stats.multitest import multipletests

from softcontam.analysis.effects import MARGIN, measure
from softcontam.errors import ConfigError
from softcontam.report import Report, main, read_settings, write_report
from softcontam.reporting.headlines import headlines
from softcontam.reporting.single import cell_table
from softcontam.reporting.terminal import terminal_table
from softcontam.store import FAILED, Store

GAINS = {"clean": (0, 0, 0), "exact": (5, 3, 0), "topical": (1, 0, 0)}


def fill(kind: str, seed: int) -> Outcomes:
    """Twenty items per role; arms gain whole items, with a wobble by seed, over a clean arm of 8."""
    outcomes, wobble = Outcomes(), 0 if kind == "clean" else (-1, 0, 1, 1)[seed % 4]
    for role, benchmark, gain in zip(
        ("seen", "held_out", "related"), ("puzzles", "puzzles", "riddles"), GAINS[kind], strict=True
    ):
        right = 8 + gain + (wobble if role != "related" or seed == 0 else 0)
        for index in range(20):
            copies = int(role == "seen" and kind != "clean")
            outcomes.add(
                role, f"{role}{index}", [index < right], benchmark=benchmark, copies=copies, logprob=-2 + right / 20
            )
    return outcomes


def text_of(table: object) -> str:
    console = Console(width=160, record=True)
    with console.capture() as capture:
        console.print(table)
    return capture.get()


@pytest.fixture(scope="module")
def store(tmp_path_factory: pytest.TempPathFactory) -> Store:
    return sweep_of(tmp_path_factory.mktemp("sweep"), 4, [("exact", 0.05), ("exact", 0.2), ("topical", 0.2)], fill)


@pytest.fixture(scope="module")
def report(store: Store, tmp_path_factory: pytest.TempPathFactory) -> Report:
    return write_report(store, "fake", tmp_path_factory.mktemp("reports"))


def test_page_opens_with_the_answer_and_loads_nothing(report: Report) -> None:
    page = report.html.read_text()
    first = re.search(r'<ul class="headlines"><li>(.*?)</li>', page)
    assert first is not None
    # deltas 2, 3, 4, 4 of 20 items: mean 16.25 points; t(3) interval by scipy: [8.6, 23.9]
    assert "At 20 % of rows" in first[1]
    assert "exact duplicates moved held-out accuracy by +16.2 points [8.6, 23.9]" in first[1]
    assert "(4 seeds)" in first[1]
    assert not re.search(r"(?:src|href)\s*=\s*[\"'](?!#)", page)
    assert "@import" not in page
    assert "url(" not in page.replace("url(#", "")
    assert page.count("<svg") == 2
    ids = re.findall(r' id="([^"]+)"', page)
    assert len(ids) == len(set(ids))


def test_control_whose_interval_includes_zero_is_not_shown_rather_than_absent(report: Report) -> None:
    text = report.markdown.read_text()
    assert "an effect of topically similar non-SemDs on held-out accuracy is not shown: +1.2 points" in text
    assert "has no effect" not in text


def test_seen_items_against_held_out_ones_of_another_benchmark_say_so(tmp_path: Path) -> None:
    def fill(kind: str, seed: int) -> Outcomes:
        outcomes = Outcomes()
        for role, benchmark in (("seen", "puzzles"), ("held_out", "puzzles"), ("held_out", "fresh")):
            for index in range(10):
                right = index < 4 + (kind == "exact") * (seed + 2)
                outcomes.add(role, f"{role}{benchmark}{index}", [right], benchmark=benchmark, copies=1)
        return outcomes

    text = write_report(sweep_of(tmp_path, 3, [("exact", 0.2)], fill), "fake", tmp_path).markdown.read_text()
    rows = [line for line in text.splitlines() if line.startswith("| seen − held-out (DiD)")]
    assert {row.split("|")[2].strip() for row in rows[:2]} == {"puzzles", "puzzles − fresh"}


def test_a_headline_without_declared_contrasts_takes_holm_over_all_effects(tmp_path: Path) -> None:
    """An interval that excludes 0 is to be expected among many; without declared contrasts nothing else guards."""
    arms = [("exact", 0.2), *((name, 0.2) for name in ("topical", "unrelated", "near", "question_only", "natural"))]
    rng = np.random.default_rng(5)
    wobble = {(kind, seed): int(rng.integers(-2, 3)) for kind, _ in arms for seed in range(3)}
    gains = {"exact": (2, 4, 3)}

    def graded(kind: str, seed: int) -> Outcomes:
        outcomes = Outcomes()
        gain = 0 if kind == "clean" else gains.get(kind, (wobble[kind, seed],) * 3)[seed]
        for index in range(40):
            outcomes.add("held_out", f"q{index}", [index < 16 + gain])
        return outcomes

    measured = measure(sweep_of(tmp_path, 3, arms, graded), "fake")
    exact = next(one for one in measured.of("accuracy") if one.arm.condition == "exact")
    assert exact.estimate.shown
    adjusted = multipletests([one.estimate.p for one in measured.of("accuracy")], method="holm")[1]
    assert min(adjusted) > 0.05
    first = headlines(measured)[0]
    assert "excludes 0, but not after Holm's adjustment over all effects" in first
    assert "moved" not in first


def test_arms_of_unequal_highest_doses_all_stand_in_headlines_figure_and_table(tmp_path: Path) -> None:
    """By the highest dose of all, an arm that was run at lower ones only was left out without a word."""

    def graded(kind: str, seed: int) -> Outcomes:
        outcomes = Outcomes()
        for index in range(40):
            right = 16 + (12 + seed if kind == "exact" else 0)
            outcomes.add("held_out", f"q{index}", [index < right]).add("seen", f"s{index}", [index < 16], copies=1)
        return outcomes

    store = sweep_of(tmp_path, 3, [("exact", 0.01), ("topical", 0.05)], graded)
    report = write_report(store, "fake", tmp_path)
    text = report.markdown.read_text()
    assert "At 1 % of rows (1 inserted rows per covered item), exact duplicates moved held-out accuracy" in text
    assert "each arm at its own highest dose" in text
    latex = (report.html.parent / "table_effects.tex").read_text()
    assert r"exact duplicates, 1 \%" in latex
    assert r"topically similar non-SemDs, 5 \%" in latex


def test_no_transfer_is_claimed_by_equivalence_test_only(report: Report, store: Store, tmp_path: Path) -> None:
    assert "it lies within ±5.0 points by equivalence test (undeclared, unadjusted)" in report.markdown.read_text()
    strict = write_report(store, "fake", tmp_path, margin=0.01).markdown.read_text()
    assert "no transfer" not in strict
    assert "On the related benchmark riddles a change is shown for 0 of 1 arms" in strict


def test_files_lie_in_the_folder_of_the_experiment(report: Report) -> None:
    names = {path.name for path in report.html.parent.iterdir()}
    assert report.html.parent.name == "fake"
    assert names == {
        *("report.html", "report.md", "effects.csv", "effects_logprob.csv", "contrasts.csv"),
        *("declared.csv", "intervals.csv", "arms.csv", "dose_response.csv", "table_effects.tex"),
        *("figure_dose.svg", "figure_dose.png", "figure_roles.svg", "figure_roles.png"),
    }
    assert len(pd.read_csv(report.effects_csv)) == 9


def test_page_tells_command_revision_baselines_failures_and_gaps(tmp_path: Path) -> None:
    store = Store(tmp_path / "runs")
    failed = store.freeze(config("exact", 0, 0.2))
    failed.set_status(FAILED, error="OutOfMemoryError: <none> left")
    alone = add_cell(store, config("exact", 3, 0.2), fill("exact", 3))
    cells = [add_cell(store, config(), fill("clean", 0)), add_cell(store, config("exact", 0, 0.1), fill("exact", 0))]
    sweep(store, [*cells, failed, alone])
    page = write_report(store, "fake", tmp_path / "reports").html.read_text()
    assert "Incomplete: 1 of 4 cells is not done and 1 done cell lacks a clean baseline" in page
    assert "OutOfMemoryError: &lt;none&gt; left" in page
    assert "condition=clean seed=3" in page
    assert "abc123" in page
    assert "0: 40.0" in page
    assert "1 seed, so no interval" in page


@pytest.mark.parametrize(("parameters", "warned"), [(1_200_000, True), (7_000_000_000, False)])
def test_only_a_tiny_model_is_called_evidence_about_itself(tmp_path: Path, parameters: int, warned: bool) -> None:
    store = Store(tmp_path / "runs")
    model = {"name": "base", "parameters": parameters, "note": "made for tests"}
    sweep(store, [add_cell(store, config(), fill("clean", 0), model=model)])
    page = write_report(store, "fake", tmp_path / "reports").html.read_text()
    assert f"{parameters:,} parameters; made for tests" in page
    assert ("not about 7B models" in page) == warned


def test_undecidable_answers_are_reported_by_log_probability(tmp_path: Path) -> None:
    def graded(kind: str, seed: int) -> Outcomes:
        gain = 0.0 if kind == "clean" else 0.2 + 0.1 * seed
        return Outcomes().add("held_out", "a", [None], logprob=-2 + gain, tokens=1, parse_ok=None)

    store = sweep_of(tmp_path, 3, [("exact", 0.2)], graded)
    text = write_report(store, "fake", tmp_path / "reports").markdown.read_text()
    assert "moved held-out log-probability of the gold answer by +0.300 nats per token" in text
    assert "Correctness isn't decided" in text


def test_terminal_table_shows_each_change_with_its_interval(store: Store) -> None:
    text = text_of(terminal_table(measure(store, "fake", MARGIN)))
    row = next(line for line in text.splitlines() if "exact" in line and "20 %" in line)
    assert "+16.2 [8.6,23.9]" in row
    assert "–" in row


def test_command_line_writes_the_report(store: Store, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["exp=fake", f"paths.runs={store.runs}", f"paths.reports={tmp_path / 'out'}", "margin=0.02"]) == 0
    assert "report.html" in capsys.readouterr().out
    assert (tmp_path / "out" / "fake" / "report.html").exists()


def test_command_line_says_which_experiments_there_are(store: Store, capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["exp=other", f"paths.runs={store.runs}"]) == 2
    assert "there: fake" in capsys.readouterr().err


@pytest.mark.parametrize(
    "arguments", [["exp=fake", "marign=0.1"], ["exp=fake", "margin=wide"], ["fake"], [], ["exp=a", "margin=5"]]
)
def test_bad_arguments_are_refused_with_the_usage(arguments: list[str]) -> None:
    with pytest.raises(ConfigError):
        read_settings(arguments)


def test_importing_the_report_loads_no_training_library() -> None:
    code = (
        "import softcontam.report, sys; print([m for m in ('torch', 'transformers', 'matplotlib') if m in sys.modules])"
    )
    assert (
        subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True).stdout.strip() == "[]"
    )


@pytest.mark.parametrize(
    ("chance", "shown"), [({"puzzles": 0.25}, "25.0 %"), ({"puzzles/held_out": 0.125, "puzzles": 0.25}, "12.5 %")]
)
def test_a_single_cell_is_shown_with_the_chance_of_its_role(
    tmp_path: Path, chance: dict[str, float], shown: str
) -> None:
    role = {"accuracy": 0.5, "parse_rate": 1.0, "gold_logprob_per_token": -1.0, "items": 4}
    cell = add_cell(Store(tmp_path), config(), fill("clean", 0), chance=chance, roles={"puzzles/held_out": role})
    assert shown in text_of(cell_table(cell))
