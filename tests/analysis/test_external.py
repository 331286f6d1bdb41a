"""Per-item results from elsewhere, as csv or parquet, with the mistakes that such tables have."""

from __future__ import annotations

import math
from pathlib import Path

import numpy as np
import pandas as pd
import pytest
from fake_sweep import Outcomes, sweep_of
from scipy import stats
from statsmodels.stats.contingency_tables import mcnemar

from softcontam.analysis import Effect, measure
from softcontam.analysis.effects import SweepEffects
from softcontam.analysis.frames import EFFECT_COLUMNS
from softcontam.errors import ConfigError, DataError
from softcontam.report import main, measure_table


def results(seeds: int = 3, items: int = 40, samples: int = 1) -> pd.DataFrame:
    """Made-up results of two conditions on two benchmarks; the contaminated one solves more seen and held-out items."""
    rng = np.random.default_rng(7)
    rows = []
    for seed in range(seeds):
        for condition, gain in (("clean", 0.0), ("contaminated", 0.3)):
            for role, benchmark in (("seen", "puzzles"), ("held_out", "puzzles"), ("related", "riddles")):
                for item in range(items):
                    chance = 0.3 + (gain if role != "related" else 0.0)
                    family = f"{role}-{item // 2}"
                    for sample in range(samples):
                        correct = bool(rng.random() < chance)
                        rows.append((condition, seed, benchmark, role, f"{role}-{item}", family, sample, correct))
    return pd.DataFrame(
        rows, columns=["condition", "seed", "benchmark", "role", "item_id", "family", "sample", "correct"]
    )


def written(table: pd.DataFrame, folder: Path, name: str = "results.csv") -> Path:
    path = folder / name
    if path.suffix == ".parquet":
        table.to_parquet(path)
    else:
        table.to_csv(path, index=False)
    return path


def effect(measured: SweepEffects, role: str) -> Effect:
    (found,) = [one for one in measured.of("accuracy") if one.role == role]
    return found


def test_csv_and_parquet_give_the_effects_that_scipy_gives_by_hand(tmp_path: Path) -> None:
    table = results()
    measured = measure_table(written(table, tmp_path))
    held_out = table[table["role"] == "held_out"]
    families = held_out.groupby(["condition", "seed", "family"])["correct"].mean().groupby(["condition", "seed"]).mean()
    deltas = (families["contaminated"] - families["clean"]).to_numpy()
    test = stats.ttest_1samp(deltas, 0)
    bounds = test.confidence_interval(0.95)
    found = effect(measured, "held_out").estimate
    assert (found.mean, found.p) == pytest.approx((deltas.mean(), test.pvalue), abs=1e-9)
    assert (found.low, found.high) == pytest.approx((bounds.low, bounds.high), abs=1e-9)
    again = effect(measure_table(written(table, tmp_path, "results.parquet")), "held_out")
    assert again.estimate == found


def test_each_pair_of_runs_has_the_exact_mcnemar_p_of_statsmodels(tmp_path: Path) -> None:
    table = results()
    measured = measure_table(written(table, tmp_path))
    expected = []
    for seed in range(3):
        one = table[(table["role"] == "related") & (table["seed"] == seed)]
        wide = one.pivot_table(index="item_id", columns="condition", values="correct", aggfunc="first").astype(bool)
        both = (
            pd.crosstab(wide["contaminated"], wide["clean"])
            .reindex([True, False], axis=0)
            .reindex([True, False], axis=1)
        )
        expected.append(mcnemar(both.fillna(0).to_numpy(), exact=True).pvalue)
    assert effect(measured, "related").mcnemar == pytest.approx(expected, abs=1e-9)


def test_twenty_samples_of_an_item_are_one_observation(tmp_path: Path) -> None:
    """Entered as twenty, McNemar and the interval over items would claim a certainty that is not there."""
    measured = effect(measure_table(written(results(seeds=1, samples=20), tmp_path)), "held_out")
    assert (measured.n_items, measured.n_families) == (40, 20)
    assert math.isnan(measured.estimate.low)
    assert all(math.isnan(p) for p in measured.mcnemar)
    assert measured.family.low < measured.estimate.mean < measured.family.high


def test_shares_of_correct_samples_are_read_as_such(tmp_path: Path) -> None:
    table = results(samples=4)
    keys = ["condition", "seed", "benchmark", "role", "item_id", "family"]
    means = table.groupby(keys, sort=False)["correct"].mean().reset_index()
    whole, shares = (
        effect(measure_table(written(one, tmp_path, name)), "seen")
        for one, name in (
            (table, "samples.csv"),
            (means, "shares.csv"),
        )
    )
    assert shares.estimate.mean == pytest.approx(whole.estimate.mean)


def test_the_command_writes_the_first_reports_columns_and_a_page(tmp_path: Path) -> None:
    path = written(results(), tmp_path)
    out = tmp_path / "out"
    assert main([f"outcomes={path}", "baseline=clean", f"out={out}"]) == 0
    assert tuple(pd.read_csv(out / "effects.csv").columns) == EFFECT_COLUMNS
    page = (out / "report.html").read_text()
    assert "contaminated" in page
    assert "The condition clean is what is called the clean arm here" in page
    assert f"python -m softcontam.report outcomes={path} baseline=clean out={out}" in page


def test_missing_seed_and_family_are_filled_in_and_said(tmp_path: Path) -> None:
    table = results(seeds=1).drop(columns=["seed", "family", "sample"])
    measured = measure_table(written(table, tmp_path))
    notes = " ".join(measured.declaration.notes)
    assert "no column seed" in notes
    assert "no column family" in notes
    assert effect(measured, "seen").n_families == 40
    doubled = pd.concat([table, table.iloc[[3]]])
    with pytest.raises(DataError, match=r"item seen-3 .* has 2 rows, others have 1\. Number the samples"):
        measure_table(written(doubled, tmp_path))


def test_another_baseline_can_be_named_and_takes_the_place_of_the_clean_arm(tmp_path: Path) -> None:
    table = results().replace({"clean": "base"})
    measured = measure_table(written(table, tmp_path), "base")
    assert [one.role for one in measured.baselines if one.outcome == "accuracy"] == ["seen", "held_out", "related"]
    with pytest.raises(
        DataError, match=r"no rows of condition 'clean' \(there are: base, contaminated\).*baseline=NAME"
    ):
        measure_table(written(table, tmp_path))


def test_a_seed_without_a_baseline_is_left_out_and_named(tmp_path: Path) -> None:
    table = results()
    table = table[~((table["condition"] == "clean") & (table["seed"] == 2))]
    measured = measure_table(written(table, tmp_path))
    assert effect(measured, "seen").estimate.n == 2
    assert [one.reason for one in measured.cells.missing] == ["the table has no rows of clean with seed 2"]


@pytest.mark.parametrize(
    ("spoil", "message"),
    [
        (lambda t: t.drop(columns="correct"), r"lacks the columns correct"),
        (lambda t: t.assign(role="test"), r"row 1: role is 'test'.*seen items had duplicates"),
        (lambda t: t.assign(correct=["maybe", *t["correct"][1:]]), r"row 1: correct is 'maybe'"),
        (lambda t: t.assign(correct=[*t["correct"][:-1].astype(float), 7.0]), r"row 720: correct is '7.0'"),
        (lambda t: pd.concat([t, t.iloc[[5]]]), r"row 721: a second result of item seen-5"),
        (lambda t: t.assign(item_id=[None, *t["item_id"][1:]]), r"row 1: item_id is empty"),
        (lambda t: t.assign(sample=[None, *t["sample"][1:]]), r"row 1: sample is empty"),
        (
            lambda t: t.iloc[1:],
            r"1 items have results in contaminated or in the baseline only; contaminated has seen-0",
        ),
        (lambda t: t.assign(family="same"), r"family same of puzzles has both seen and held-out items"),
        (lambda t: t.assign(rate="5 %"), r"row 1: rate is '5 %'. It has to be a share from 0 to 1 \(0.05 for 5 %\)"),
        (lambda t: t.assign(rate=5), r"row 1: rate is '5'. It has to be a share"),
        (lambda t: t.assign(chance=25.0), r"row 1: chance is '25.0'. It has to be a share"),
        (lambda t: t.assign(copies=1.5), r"row 1: copies is '1.5'. It has to be a whole number of at least 0"),
        (lambda t: t.assign(copies=-1), r"row 1: copies is '-1'"),
        (lambda t: t.assign(gold_logprob="-inf", gold_tokens=3), r"row 1: gold_logprob is '-inf'.*a finite number"),
        (lambda t: t.assign(gold_logprob=-1.0, gold_tokens=0), r"row 1: gold_tokens is '0'.*at least 1"),
        (lambda t: t.assign(gold_logprob=-1.0), r"one of gold_logprob and gold_tokens: give both, or neither"),
        (lambda t: t.assign(parse_ok="often"), r"row 1: parse_ok is 'often'. Write true or false"),
        (lambda t: t.assign(family=t["family"].mask(t["seed"] == 1, "x")), r"item 'seen-0' of puzzles has several fam"),
        (
            lambda t: pd.concat([t, t[t["role"] == "seen"].assign(role="related", family="f", sample=1)]),
            r"item 'seen-0' of puzzles has several families",
        ),
        (
            lambda t: pd.concat([t, t[t["role"] == "seen"].assign(role="related", sample=1)]),
            r"row 1: item 'seen-0' of puzzles has several roles in condition clean, seed 0",
        ),
        (
            lambda t: t.assign(seed=t["seed"].mask(t["condition"] == "clean", t["seed"] + 10)),
            r"no condition has a seed in common with clean.*give both the same seed",
        ),
        (lambda t: t[t["condition"] == "clean"], r"no condition beside 'clean'"),
        (lambda t: t.iloc[:0], r"has no rows"),
    ],
)
def test_a_spoilt_table_is_refused_with_row_and_remedy(spoil: object, message: str, tmp_path: Path) -> None:
    table = results(seeds=3, items=40)
    assert callable(spoil)
    with pytest.raises(DataError, match=message):
        measure_table(written(spoil(table), tmp_path))


def test_runs_with_names_and_categories_are_read_as_they_are_meant(tmp_path: Path) -> None:
    table = results()
    plain = effect(measure_table(written(table, tmp_path)), "held_out").estimate
    named = table.assign(seed=table["seed"].map({0: "run a", 1: "run b", 2: "run c"}))
    measured = measure_table(written(named, tmp_path, "named.csv"))
    assert effect(measured, "held_out").estimate == plain
    assert "The column seed was numbered: run a is 0, run b is 1, run c is 2." in measured.declaration.notes
    words = ["condition", "benchmark", "role", "family"]
    coded = table.astype(dict.fromkeys(words, "category")).assign(setup=pd.Categorical(["m"] * len(table)))
    assert effect(measure_table(written(coded, tmp_path, "coded.parquet")), "held_out").estimate == plain
    with (tmp_path / "bom.csv").open("w", encoding="utf-8-sig", newline="") as stream:
        table.to_csv(stream, index=False, lineterminator="\r\n")
    assert effect(measure_table(tmp_path / "bom.csv"), "held_out").estimate == plain
    loose = table.assign(role=table["role"].str.title().str.replace("_", "-"), condition=" " + table["condition"] + " ")
    assert effect(measure_table(written(loose, tmp_path, "LOOSE.CSV")), "held_out").estimate == plain
    table.to_csv(tmp_path / "packed.csv.gz", index=False)
    assert effect(measure_table(tmp_path / "packed.csv.gz"), "held_out").estimate == plain


def test_names_that_look_like_numbers_or_nothing_stay_names(tmp_path: Path) -> None:
    """Read as a number, 007 and 7 would be one item; read as nothing, NA would be none."""
    names = {f"seen-{index}": name for index, name in enumerate(["007", "7", "NA", "1234567", "null"])}
    table = results().assign(item_id=lambda t: t["item_id"].replace(names))
    measured = measure_table(written(table, tmp_path))
    found = {str(name) for one in effect(measured, "seen").differences.values() for name in one.item_ids}
    assert set(names.values()) <= found
    numbered = table[table["role"] == "related"].assign(item_id=lambda t: t["item_id"].str[8:].astype(float) + 1234567)
    measured = measure_table(written(numbered, tmp_path, "numbers.parquet"))
    assert "1234568" in {str(name) for one in effect(measured, "related").differences.values() for name in one.item_ids}


def test_runs_that_are_told_apart_by_an_unknown_column_are_not_pooled_as_samples(tmp_path: Path) -> None:
    table = results().drop(columns="sample")
    two = pd.concat([table.assign(checkpoint="step-100"), table.assign(checkpoint="step-200")])
    message = r"told apart by checkpoint \(step-100, step-200\).*call the column setup or keep one"
    with pytest.raises(DataError, match=message):
        measure_table(written(two, tmp_path))
    two["time"] = range(len(two))
    kept = two.drop(columns="checkpoint")
    assert effect(measure_table(written(kept, tmp_path)), "seen").n_items == 40


def test_a_condition_called_clean_beside_another_baseline_is_refused(tmp_path: Path) -> None:
    """Taken for the baseline, it would silently be what the arms are compared with."""
    table = results()
    base = table[table["condition"] == "clean"].assign(condition="base")
    with pytest.raises(DataError, match=r"condition called clean beside the baseline base.*Rename that condition"):
        measure_table(written(pd.concat([table, base]), tmp_path), "base")


def test_parse_rates_are_read_from_words_and_shares(tmp_path: Path) -> None:
    table = results()
    words = table.assign(parse_ok=np.where(table["condition"] == "clean", "True", "no"))
    found = effect(measure_table(written(words, tmp_path)), "held_out")
    assert (found.parse_rate, found.baseline_parse_rate) == (0.0, 1.0)
    shares = table.assign(parse_ok=np.where(table["condition"] == "clean", 0.75, 0.5))
    measured = measure_table(written(shares, tmp_path, "shares.parquet"))
    found = effect(measured, "held_out")
    assert (found.parse_rate, found.baseline_parse_rate) == (0.5, 0.75)
    assert any("contaminated on puzzles (held_out): 50.0 % against 75.0 %" in note for note in measured.notes)


def test_runs_without_a_partner_and_without_covered_items_are_noted(tmp_path: Path) -> None:
    table = results()
    short = table[~((table["condition"] == "contaminated") & (table["seed"] == 2))]
    notes = measure_table(written(short, tmp_path)).declaration.notes
    assert "contaminated has no runs of the seeds 2 that clean has." in notes
    none = table.assign(copies=0)
    measured = measure_table(written(none, tmp_path))
    assert "No seen item of contaminated, seed 0, has copies above 0: none is compared." in measured.declaration.notes
    assert {one.role for one in measured.effects} == {"held_out", "related"}


def test_the_bootstrap_does_not_depend_on_the_order_of_rows(tmp_path: Path) -> None:
    table = results()
    shuffled = table.sample(frac=1.0, random_state=3)
    one, other = (
        effect(measure_table(written(rows, tmp_path, name)), "held_out")
        for rows, name in ((table, "a.csv"), (shuffled, "b.csv"))
    )
    assert (one.hierarchical, one.family) == (other.hierarchical, other.family)
    assert one.estimate == other.estimate


def test_a_damaged_parquet_file_has_a_remedy_of_its_own(tmp_path: Path) -> None:
    path = written(results(), tmp_path, "results.parquet")
    path.write_bytes(path.read_bytes()[:500])
    with pytest.raises(DataError, match=r"results\.parquet cannot be read as parquet .*Save it again\.$"):
        measure_table(path)


def test_one_baseline_serves_every_dose_and_a_repeated_one_is_told(tmp_path: Path) -> None:
    table = results()
    clean, arm = table[table["condition"] == "clean"], table[table["condition"] != "clean"]
    doses = pd.concat([clean.assign(rate=0.0), arm.assign(rate=0.05), arm.assign(rate=0.2)])
    measured = measure_table(written(doses, tmp_path))
    assert {one.arm.rate for one in measured.effects} == {0.05, 0.2}
    repeated = pd.concat([doses, clean.assign(rate=0.2)])
    with pytest.raises(DataError, match=r"repeats the baseline clean for several values of rate \(0\.0, 0\.2\)"):
        measure_table(written(repeated, tmp_path))


def test_columns_that_mean_something_else_do_no_harm(tmp_path: Path) -> None:
    table = results()
    plain = effect(measure_table(written(table, tmp_path)), "held_out").estimate
    words = table.assign(verdict="good", prompt="?", target="x")
    assert effect(measure_table(written(words, tmp_path, "words.csv")), "held_out").estimate == plain
    lists = table.assign(prompt="?", target=[["x", "y"]] * len(table))
    assert effect(measure_table(written(lists, tmp_path, "lists.parquet")), "held_out").estimate == plain
    lines = (tmp_path / "results.csv").read_text().splitlines()
    (tmp_path / "commas.csv").write_text("\n".join([lines[0], *(f"{line}," for line in lines[1:])]))
    with pytest.raises(DataError, match="rows with more cells than its header has names"):
        measure_table(tmp_path / "commas.csv")
    large = table.assign(seed=table["seed"].map({0: "1" + "0" * 20, 1: "2" + "0" * 20, 2: "3" + "0" * 20}))
    measured = measure_table(written(large, tmp_path, "large.csv"))
    assert effect(measured, "held_out").estimate == plain
    assert "The column seed was numbered" in " ".join(measured.declaration.notes)


def test_a_benchmark_may_be_split_in_one_arm_and_related_in_another(tmp_path: Path) -> None:
    table = results().assign(split_benchmark="puzzles")
    turned = table.assign(split_benchmark="riddles", role="related")
    turned = turned[(table["benchmark"] == "puzzles") & (table["role"] == "seen")]
    own = table[table["role"] == "related"].assign(split_benchmark="riddles", role="held_out")
    measured = measure_table(written(pd.concat([table, turned, own]), tmp_path))
    found = {(one.arm.split_benchmark, one.role, one.benchmark) for one in measured.of("accuracy")}
    assert {
        ("puzzles", "seen", "puzzles"),
        ("riddles", "related", "puzzles"),
        ("riddles", "held_out", "riddles"),
    } <= found


def test_an_arm_without_parse_rates_does_not_disturb_those_of_others(tmp_path: Path) -> None:
    table = results()
    first = table.assign(parse_ok=np.where(table["item_id"].str.endswith("1"), "0", "1"))
    other = table[table["condition"] != "clean"].assign(condition="other", parse_ok="")
    path = written(pd.concat([other, first]), tmp_path)
    assert main([f"outcomes={path}", f"out={tmp_path}/out"]) == 0
    assert "parsed 90.0 %" in (tmp_path / "out" / "report.md").read_text()


def test_an_empty_rate_and_0_are_one_arm(tmp_path: Path) -> None:
    """Taken for two, each run would count twice, and two seeds would pass for four."""
    table = results(seeds=2)
    arm = table[table["condition"] != "clean"]
    mixed = pd.concat([table.assign(rate=""), arm.assign(rate=0)])
    with pytest.raises(DataError, match="a second result of item"):
        measure_table(written(mixed, tmp_path))
    halves = table.assign(rate=np.where(table["seed"] == 0, "", "0"))
    assert effect(measure_table(written(halves, tmp_path)), "held_out").estimate.n == 2


def test_a_run_without_counted_copies_beside_counted_ones_has_all_its_seen_items(tmp_path: Path) -> None:
    table = results()
    other = table[table["condition"] != "clean"].assign(condition="counted", copies=2.0)
    measured = measure_table(written(pd.concat([table, other]), tmp_path))
    assert not [note for note in measured.declaration.notes if "copies above 0" in note]
    copies = {one.arm.condition: one.copies for one in measured.of("accuracy") if one.role == "seen"}
    assert copies["counted"] == 2
    assert math.isnan(copies["contaminated"])
    half = table.assign(copies=np.where(table["item_id"] == "seen-3", "1", ""))
    with pytest.raises(DataError, match=r"copies is empty for seen item 'seen-0', but not for others of contaminated"):
        measure_table(written(half, tmp_path))


def test_chance_that_only_the_baseline_states_holds_for_all(tmp_path: Path) -> None:
    """Dropped, it would let a benchmark at chance pass for one without transfer."""
    table = results()
    stated = table.assign(chance=np.where((table["condition"] == "clean") & (table["role"] != "seen"), "0.3", ""))
    measured = measure_table(written(stated, tmp_path))
    assert [one.chance for one in measured.of("accuracy")] == pytest.approx([0.3] * 3)


def test_a_run_without_a_baseline_of_its_model_is_told_so(tmp_path: Path) -> None:
    small = results().assign(setup="small")
    large = results().assign(setup="large")
    large = large[~((large["condition"] == "clean") & (large["seed"] == 1))]
    measured = measure_table(written(pd.concat([small, large]), tmp_path))
    assert [one.reason for one in measured.cells.missing] == ["the table has no rows of clean of large with seed 1"]


def test_what_the_page_says_of_launched_runs_is_not_said_of_tables(tmp_path: Path) -> None:
    path = written(results(), tmp_path)
    assert main([f"outcomes={path}", f"out={tmp_path}/one"]) == 0
    page = (tmp_path / "one" / "report.md").read_text()
    assert "An unparsable output is wrong" not in page
    other = written(results(), tmp_path, "other.csv")
    assert main([f"outcomes={path}", f"against={other}", f"out={tmp_path}/two"]) == 0
    page = (tmp_path / "two" / "report.md").read_text()
    assert "How results and other were run is not known" in page
    assert "No setting differs" not in page


def test_items_may_change_halves_between_seeds(tmp_path: Path) -> None:
    """Every seed splits anew; a family on both sides is a fault within one run only."""
    table = results()
    swap = {"seen": "held_out", "held_out": "seen", "related": "related"}
    second = table["seed"] == 1
    table.loc[second, "role"] = table.loc[second, "role"].map(swap)
    measured = measure_table(written(table, tmp_path))
    assert effect(measured, "seen").estimate.n == 3


def test_two_split_benchmarks_in_one_table_need_to_be_told_apart(tmp_path: Path) -> None:
    other = results().assign(benchmark=lambda t: t["benchmark"].replace({"puzzles": "mazes", "riddles": "jokes"}))
    both = pd.concat([results(), other], ignore_index=True)
    with pytest.raises(DataError, match="column split_benchmark"):
        measure_table(written(both, tmp_path))
    own = both["benchmark"].map({"puzzles": "puzzles", "riddles": "puzzles", "mazes": "mazes", "jokes": "mazes"})
    measured = measure_table(written(both.assign(split_benchmark=own), tmp_path))
    assert {one.arm.split_benchmark for one in measured.effects} == {"puzzles", "mazes"}


def test_not_a_table_or_no_out_is_told(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    with pytest.raises(DataError, match="does not exist"):
        measure_table(tmp_path / "nowhere.csv")
    (tmp_path / "results.xlsx").write_text("x")
    with pytest.raises(DataError, match=r"save it as one of them"):
        measure_table(tmp_path / "results.xlsx")
    assert main(["outcomes=results.csv"]) == 2
    assert "needs out=DIR" in capsys.readouterr().err


def test_contrasts_of_a_table_are_declared_in_a_file(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    path = written(results(), tmp_path)
    plan = tmp_path / "plan.yaml"
    plan.write_text("margin: 0.1\ncontrasts:\n- {test: effect, condition: contaminated}\n")
    out = tmp_path / "out"
    assert main([f"outcomes={path}", f"out={out}", f"analysis={plan}"]) == 0
    declared = pd.read_csv(out / "declared.csv")
    assert declared[["test", "condition", "role"]].to_numpy().tolist() == [["effect", "contaminated", "held_out"]]
    assert declared["holm"].item() == pytest.approx(declared["p_value"].item())
    plan.write_text("margins: 0.1\n")
    assert main([f"outcomes={path}", f"out={out}", f"analysis={plan}"]) == 2
    assert "question, margin" in capsys.readouterr().err


def test_margin_out_of_range_is_refused() -> None:
    from softcontam.report import read_analysis

    with pytest.raises(ConfigError, match="between 0 and 1"):
        read_analysis(None, 5.0)


def test_an_exported_sweep_has_the_effects_that_the_store_has(tmp_path: Path) -> None:
    def fill(kind: str, seed: int) -> Outcomes:
        outcomes = Outcomes()
        for role, benchmark in (("seen", "puzzles"), ("held_out", "puzzles"), ("related", "riddles")):
            for index in range(12):
                right = index < 4 + (kind != "clean") * (3 + seed)
                copies = int(role == "seen" and kind != "clean" and index < 9)
                family = f"{role}-{index // 2}"
                outcomes.add(role, f"{role}{index}", [right], family=family, benchmark=benchmark, copies=copies)
        return outcomes

    store = sweep_of(tmp_path, 3, [("exact", 0.05), ("exact", 0.2)], fill)
    cells = [store.cell(cell_id) for cell_id in store.sweep("fake")["cells"]]
    table = pd.concat(
        one.outcomes.assign(
            condition=one.config.condition.label, rate=one.config.mixture.rate or None, seed=one.config.seed
        )
        for one in cells
    )
    ours, theirs = measure(store, "fake"), measure_table(written(table, tmp_path))
    assert [one.estimate for one in theirs.effects] == [one.estimate for one in ours.effects]
    assert [(one.kind, one.estimate) for one in theirs.contrasts] == [
        (one.kind, one.estimate) for one in ours.contrasts
    ]
    assert [one.n_items for one in theirs.of("accuracy") if one.role == "seen"] == [9, 9]
