"""The mixture and its manifest: what arms share, where rows come from, what is refused."""

from __future__ import annotations

import hashlib
import logging
from collections import Counter
from collections.abc import Iterable
from dataclasses import dataclass, replace
from functools import cache
from itertools import combinations
from pathlib import Path
from tempfile import TemporaryDirectory, mkdtemp
from typing import Any

import pandas as pd
import pytest
from byte_chat import byte_chat
from tiny_cells import composed, made_up_benchmark

from softcontam.benchmarks.item import Benchmark, Item
from softcontam.cell import Experiment, prepare
from softcontam.chat import IGNORED
from softcontam.config import ConditionConfig, Config, EvalBenchmark, MixtureConfig, PoolConfig
from softcontam.duplicates import Bank, BankRow, exact
from softcontam.duplicates.filters import Detector
from softcontam.errors import ConfigError, LeakageError, TokenizationError
from softcontam.mixture import (
    FamilySplit,
    Mixture,
    MixtureRow,
    Pool,
    PoolRow,
    build_mixture,
    split_by_family,
)
from softcontam.mixture.choose import choose
from softcontam.mixture.plan import plan_for, refuse_short_bank

FOLDER = TemporaryDirectory()
"""Where mixtures are built; gone when the tests end."""

ARMS = {
    "clean": (),
    "exact": (),
    "semd_synthetic": (),
    "semd_paraphrase": (),
    "semd_reorder": (),
    "semd_substitute": (),
    "semd_combined": (),
    "topical": (),
    "format_only": (),
}


@dataclass(frozen=True)
class Built:
    """A mixture whose rows are read into memory."""

    mixture: Mixture
    rows: tuple[MixtureRow, ...]

    def __getattr__(self, name: str) -> Any:
        return getattr(self.mixture, name)


@dataclass(frozen=True)
class Prepared:
    """A prepared cell whose rows are read into memory."""

    experiment: Experiment
    mixture: Built

    def __getattr__(self, name: str) -> Any:
        return getattr(self.experiment, name)


def read_back(mixture: Mixture) -> Built:
    return Built(mixture, tuple(mixture.rows))


def prepared(config: Config) -> Prepared:
    experiment = prepare(config, Path(mkdtemp(dir=FOLDER.name)))
    return Prepared(experiment, read_back(experiment.mixture))


@cache
def arm(condition: str, seed: int, rate: float = 0.2) -> Prepared:
    return prepared(composed(f"condition={condition}", f"seed={seed}", f"mixture.rate={rate}"))


BENCHMARK = made_up_benchmark(10)
SPLIT = split_by_family(BENCHMARK, 0.5, 0)
POOL = tuple(
    PoolRow(f"pool/{i}", f"What is {i} plus {i % 7}?", f"Answer: {i + i % 7}", f"made up {i % 3}") for i in range(90)
)


def bank_of(kind: str, per_item: int, items: Iterable[Item] = BENCHMARK.items) -> Bank:
    rows = [
        BankRow(
            f"{kind}/{item.item_id}/{number}", item.item_id, kind, "paraphrase" if kind == "semd_synthetic" else None,
            f"Now {number} boats. {item.prompt}", item.target, "answer", f"a {kind} maker",
        )
        for item in items
        for number in range(per_item)
    ]  # fmt: skip
    return Bank.of(kind, None, rows)


def build(bank: Bank | None = None, **changes: Any) -> Built:
    """Plan, choose and build as a cell does."""
    config: MixtureConfig = changes.get("config", MixtureConfig(PoolConfig("made up"), n_rows=40, rate=0.25))
    split, max_length, seed = changes.get("split", SPLIT), changes.get("max_length", 150), changes.get("seed", 5)
    chosen = None
    if bank is not None:
        plan = plan_for(config, ConditionConfig(bank.kind), split.seen, seed)
        refuse_short_bank(plan, bank)
        chosen = choose(plan, bank, byte_chat(), max_length, seed)
    detector = Detector((*split.seen, *split.held_out), ["ngram_13"])
    return read_back(
        build_mixture(
            config,
            split,
            chosen.insertions if chosen else (),
            Pool([list(changes.get("pool", POOL))]),
            byte_chat(),
            max_length,
            seed,
            Path(mkdtemp(dir=FOLDER.name)),
            near=lambda rows: detector.flags(rows)["ngram_13"],
        )
    )


class TestArmsOfOneSeed:
    """Real arms on tinyworld, row by row."""

    @pytest.mark.parametrize("seed", [0, 1])
    def test_share_clean_rows_order_slots_and_items(self, seed: int) -> None:
        clean = arm("clean", seed).mixture
        assert [row.slot for row in clean.rows] == list(range(64))
        for condition in ARMS:
            if condition == "clean":
                continue
            mixture, plan = arm(condition, seed).mixture, arm(condition, seed).arm.plan
            assert mixture.base_sha256 == clean.base_sha256
            assert plan == arm("exact", seed).arm.plan
            assert len(mixture.rows) == len(clean.rows)
            for index, (row, other) in enumerate(zip(mixture.rows, clean.rows, strict=True)):
                if index in plan.slots:
                    assert row.kind != "clean"
                    assert row.item_id is not None
                    assert row.slot == index
                else:
                    assert row == other

    @pytest.mark.parametrize("seed", [0, 1])
    def test_insert_rows_for_the_same_items_in_the_same_slots(self, seed: int) -> None:
        placed = [
            [(row.slot, row.item_id) for row in arm(condition, seed).mixture.rows if row.kind != "clean"]
            for condition in ARMS
            if condition != "clean"
        ]
        assert all(one == placed[0] for one in placed)
        assert len(placed[0]) == round(0.2 * 64)

    @pytest.mark.parametrize("condition", [name for name in ARMS if name != "clean"])
    def test_insert_rows_of_seen_families_only(self, condition: str) -> None:
        for seed in range(2):
            experiment = arm(condition, seed)
            seen = {item.item_id: item.family for item in experiment.arm.split.seen}
            held_out = {item.family for item in experiment.arm.split.held_out}
            inserted = [row for row in experiment.mixture.rows if row.kind != "clean"]
            assert inserted
            assert all(row.item_id in seen for row in inserted)
            assert not {seen[str(row.item_id)] for row in inserted} & held_out

    def test_split_alike(self) -> None:
        for seed in range(2):
            assert all(arm(condition, seed).arm.split == arm("clean", seed).arm.split for condition in ARMS)

    def test_differ_in_what_is_inserted(self) -> None:
        texts = {c: {row.prompt for row in arm(c, 0).mixture.rows if row.kind != "clean"} for c in ARMS if c != "clean"}
        for one, other in combinations([c for c in texts if c != "semd_synthetic"], 2):
            assert not texts[one] & texts[other], f"{one} and {other} insert the same text"

    def test_of_another_seed_are_different(self) -> None:
        assert arm("exact", 0).mixture.base_sha256 != arm("exact", 1).mixture.base_sha256
        assert arm("exact", 0).arm.plan.slots != arm("exact", 1).arm.plan.slots
        assert arm("exact", 0).arm.split != arm("exact", 1).arm.split

    def test_keep_the_rows_of_a_lower_rate(self) -> None:
        for condition in ("exact", "semd_synthetic", "topical"):
            low, high = arm(condition, 0, 0.1).mixture, arm(condition, 0, 0.2).mixture
            assert low.base_sha256 == high.base_sha256
            for row, other in zip(low.rows, high.rows, strict=True):
                assert row == other or row.kind == "clean" or (condition == "topical" and row.item_id == other.item_id)

    def test_state_the_dose_three_ways(self) -> None:
        experiment = arm("exact", 0)
        kinds = Counter(row.kind for row in experiment.mixture.rows)
        assert kinds == {"clean": 51, "exact": 13}
        assert sum(experiment.mixture.copies.values()) == 13
        assert max(experiment.mixture.copies.values()) - min(experiment.mixture.copies.values()) <= 1

    def test_have_exact_rows_that_are_the_items(self) -> None:
        experiment = arm("exact", 0)
        items = {item.item_id: item for item in experiment.arm.split.seen}
        for row in experiment.mixture.rows:
            if row.kind == "exact":
                item = items[str(row.item_id)]
                assert (row.prompt, row.completion) == (item.prompt, item.target)

    def test_have_a_level_where_one_was_asked_for(self) -> None:
        for level in ("paraphrase", "reorder", "substitute", "combined"):
            rows = arm(f"semd_{level}", 0).mixture.rows
            assert {row.level for row in rows if row.kind != "clean"} == {level}
        assert len({row.level for row in arm("semd_synthetic", 0).mixture.rows if row.kind != "clean"}) > 1


class TestManifest:
    def test_has_the_columns_of_the_design_and_one_row_per_slot(self) -> None:
        frame = arm("semd_synthetic", 0).mixture.manifest
        wanted = "slot kind item_id row_id source sha256 tokens trained_tokens".split()
        assert [column for column in frame.columns if column in wanted] == wanted
        assert list(frame["slot"]) == list(range(64))
        assert frame[["kind", "row_id", "source", "sha256"]].notna().all().all()
        assert frame.loc[frame["kind"] == "clean", "item_id"].isna().all()
        assert frame.loc[frame["kind"] != "clean", "item_id"].notna().all()
        assert frame["row_id"].is_unique, "no copies were asked for"

    @pytest.mark.parametrize("condition", ["clean", "exact", "semd_combined", "format_only"])
    def test_counts_tokens_and_hashes_text_as_they_are_trained_on(self, condition: str) -> None:
        mixture = arm(condition, 0).mixture
        tokenizer: Any = arm(condition, 0).base.tokenizer
        for row, record in zip(mixture.rows, mixture.manifest.to_dict("records"), strict=True):
            turns = [{"role": "user", "content": row.prompt}, {"role": "assistant", "content": row.completion}]
            ids = tokenizer.apply_chat_template(turns, tokenize=True, return_dict=False)
            assert row.encoded.input_ids == ids[: len(row.encoded.input_ids)]
            assert tokenizer.decode(ids[len(row.encoded.input_ids) :]).strip() == ""
            assert record["tokens"] == len(row.encoded.input_ids)
            trained = [token for token in row.encoded.labels if token != IGNORED]
            assert record["trained_tokens"] == len(trained)
            assert tokenizer.decode(trained).replace(tokenizer.eos_token, "").strip() == row.completion
            assert record["sha256"] == hashlib.sha256(f"{row.prompt}\0{row.completion}".encode()).hexdigest()

    def test_of_a_small_mixture_has_not_drifted(self) -> None:
        """Golden: text and provenance of a made-up mixture. A change needs ``FORMAT`` in store.py raised."""
        columns = ["slot", "kind", "level", "item_id", "row_id", "source", "sha256"]
        digests = {}
        for name, bank in {"clean": None, "semd": bank_of("semd_synthetic", 3), "exact": exact_bank()}.items():
            frame = build(bank).manifest[columns]
            text = frame.astype(object).where(frame.notna(), None).to_json(orient="split", index=False)
            digests[name] = hashlib.sha256(str(text).encode()).hexdigest()[:16]
        assert digests == {"clean": "a7438313bfe51953", "semd": "b2d186b351511071", "exact": "9870827e50c57adc"}

    def test_survives_parquet(self, tmp_path: Any) -> None:
        frame = arm("semd_synthetic", 0).mixture.manifest
        frame.to_parquet(tmp_path / "m.parquet", index=False)
        read = pd.read_parquet(tmp_path / "m.parquet")
        assert read["sha256"].tolist() == frame["sha256"].tolist()
        assert read["tokens"].dtype.kind == read["slot"].dtype.kind == "i"


def exact_bank(items: Iterable[Item] = BENCHMARK.items) -> Bank:
    return Bank.of("exact", None, map(exact.row, items), repeated=True)


class TestDose:
    def test_copies_of_an_exact_row_are_verbatim(self) -> None:
        mixture = build(exact_bank(), config=MixtureConfig(PoolConfig("made up"), n_rows=40, rate=0.25, copies=5))
        inserted = [row for row in mixture.rows if row.kind == "exact"]
        assert sorted(Counter(row.prompt for row in inserted).values()) == [5, 5]
        assert sorted(mixture.copies.values()) == [5, 5]

    def test_copies_of_a_paraphrase_are_different_rows(self) -> None:
        config = MixtureConfig(PoolConfig("made up"), n_rows=40, rate=0.25, copies=5)
        mixture = build(bank_of("semd_synthetic", 5), config=config)
        inserted = [row for row in mixture.rows if row.kind != "clean"]
        assert len({row.row_id for row in inserted}) == len(inserted) == 10

    def test_which_rows_of_the_bank_are_taken_varies_with_the_seed(self) -> None:
        bank = bank_of("semd_synthetic", 5)
        taken = {tuple(sorted(r.row_id for r in build(bank, seed=s).rows if r.kind != "clean")) for s in range(8)}
        assert len({row_id.rsplit("/", 1)[1] for rows in taken for row_id in rows}) == 5

    def test_a_bank_too_small_for_the_dose_names_item_bank_and_remedy(self) -> None:
        config = MixtureConfig(PoolConfig("made up"), n_rows=40, rate=0.25, copies=5)
        with pytest.raises(ConfigError) as caught:
            build(bank_of("semd_synthetic", 4), config=config)
        for words in ("asks for 5 rows of semd_synthetic", "item riddles/", "has 4", "mixture.rate or mixture.copies"):
            assert words in str(caught.value)

    def test_an_item_without_any_row(self) -> None:
        with pytest.raises(ConfigError, match=r"asks for 1 rows of topical for item riddles/.*its bank has 0"):
            build(bank_of("topical", 3, items=SPLIT.held_out))

    def test_a_pool_too_small(self) -> None:
        config = MixtureConfig(PoolConfig("made up"), n_rows=91, rate=0.25)
        with pytest.raises(ConfigError, match=r"mixture\.n_rows=91.*pool has 90 rows.*Lower n_rows"):
            build(config=config)

    def test_an_empty_pool(self) -> None:
        with pytest.raises(ConfigError, match="pool has 0 rows"):
            build(pool=())


class TestLength:
    def test_clean_rows_too_long_are_skipped_and_counted_in_every_arm_alike(self) -> None:
        long = tuple(replace(row, prompt=" ".join([row.prompt] * 20)) for row in POOL[::2])
        pool = [row for pair in zip(long, POOL[1::2], strict=True) for row in pair]
        plain, dosed = build(pool=pool), build(exact_bank(), pool=pool)
        assert plain.too_long == dosed.too_long > 0
        assert plain.base_sha256 == dosed.base_sha256
        assert max(len(row.encoded.input_ids) for row in dosed.rows) <= 150

    def test_an_inserted_row_that_would_be_cut_is_refused_by_name(self) -> None:
        bank = bank_of("semd_synthetic", 3)
        for rows in bank.rows.values():
            rows[:] = [replace(row, prompt=row.prompt + " Here are keys and maps." * 30) for row in rows]
        with pytest.raises(TokenizationError, match=r"inserted row semd_synthetic/riddles/.*max_length=150; \d+ other"):
            build(bank)

    def test_a_row_of_exactly_the_limit_fits(self) -> None:
        longest = max(len(row.encoded.input_ids) for row in build(exact_bank()).rows)
        assert build(exact_bank(), max_length=longest).too_long == 0
        with pytest.raises((TokenizationError, ConfigError)):
            build(exact_bank(), max_length=longest - 1, pool=POOL[:40])


class TestLeakage:
    def test_a_bank_row_for_a_held_out_item_is_refused_by_name(self) -> None:
        """A slot planned for a seen item whose bank hands out a held-out item's row."""
        held = SPLIT.held_out[0]
        wrong = {item.item_id: bank_of("topical", 3, [held]).rows[held.item_id] for item in SPLIT.seen}
        with pytest.raises(LeakageError, match=rf"topical/{held.item_id}/\d"):
            build(Bank("topical", None, wrong))

    def test_a_split_that_lets_a_family_into_both_halves_is_refused(self) -> None:
        stray = replace(SPLIT.held_out[0], item_id="stray", prompt="What is one plus one?")
        crossed = FamilySplit((*SPLIT.seen, stray), SPLIT.held_out)
        bank = exact_bank((*BENCHMARK.items, stray))
        config = MixtureConfig(PoolConfig("made up"), n_rows=40, rate=0.5)
        with pytest.raises(LeakageError, match="row exact/stray in slot"):
            build(bank, split=crossed, config=config)

    @pytest.mark.parametrize(
        "disguise",
        [str, str.upper, lambda text: text.replace(" ", "  ").replace("?", " ?!"), lambda text: f"\n{text}\n"],
    )
    def test_a_clean_row_that_repeats_a_held_out_item_is_refused_by_name(self, disguise: Any) -> None:
        held = SPLIT.held_out[3]
        pool = [replace(POOL[0], row_id="culprit", prompt=disguise(held.prompt)), *POOL[1:40]]
        with pytest.raises(LeakageError) as caught:
            build(pool=pool)
        for words in ("row culprit", "in slot", held.item_id, "Remove it"):
            assert words in str(caught.value)

    def test_an_inserted_row_that_repeats_a_held_out_item_is_refused(self) -> None:
        held = SPLIT.held_out[0]
        bank = bank_of("semd_synthetic", 1)
        for rows in bank.rows.values():
            rows[:] = [replace(row, prompt=held.prompt) for row in rows]
        with pytest.raises(LeakageError, match=held.item_id):
            build(bank)

    def test_a_clean_row_that_repeats_a_seen_item_is_allowed_but_told(self, caplog: pytest.LogCaptureFixture) -> None:
        seen = replace(SPLIT.seen[0], prompt=SPLIT.seen[0].prompt + " " + "Say it with one number and no more words.")
        split = FamilySplit((seen, *SPLIT.seen[1:]), SPLIT.held_out)
        pool = [replace(POOL[0], row_id="twin", prompt="Hello. " + seen.prompt), *POOL[1:40]]
        with caplog.at_level(logging.WARNING):
            mixture = build(pool=pool, split=split)
        assert mixture.near_benchmark == ("twin",)
        assert "twin" in caplog.text

    def test_twelve_shared_words_are_not_near(self, caplog: pytest.LogCaptureFixture) -> None:
        words = "one two three four five six seven eight nine ten eleven twelve".split()
        item = replace(SPLIT.held_out[0], prompt=" ".join([*words, "thirteen"]) + "?")
        split = FamilySplit(SPLIT.seen, (item, *SPLIT.held_out[1:]))
        pool = [replace(POOL[0], row_id="near", prompt=" ".join(words) + " lamps?"), *POOL[1:40]]
        assert build(pool=pool, split=split).near_benchmark == ()
        pool[0] = replace(pool[0], prompt="Hello, " + " ".join([*words, "thirteen", "fourteen"]))
        assert build(pool=pool, split=split).near_benchmark == ("near",)

    def test_fresh_items_that_are_seen_items_are_refused(self) -> None:
        """``eval.fresh`` counts as held-out: the same draw again would report training rows as held-out items."""
        config = composed("condition=exact", "mixture.rate=0.5")
        config.eval.fresh = [EvalBenchmark(name="tinyworld", module="tinyworld", params=config.benchmark.params)]
        with pytest.raises(LeakageError):
            prepared(config)

    def test_no_clean_row_of_tinyworld_is_an_item(self) -> None:
        experiment = arm("clean", 0)
        prompts = {item.prompt for one in experiment.arm.item_sets if one.role != "general" for item in one.items}
        assert not prompts & {row.prompt for row in experiment.mixture.rows}


def test_a_benchmark_is_not_changed_by_building() -> None:
    before: Benchmark = made_up_benchmark(10)
    build(exact_bank())
    assert before.items == BENCHMARK.items
