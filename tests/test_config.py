"""What the typed config refuses before anything is loaded, and the seeds that it derives."""

from __future__ import annotations

import re
from collections.abc import Callable

import pytest
from fake_sweep import config
from omegaconf import OmegaConf
from tiny_cells import composed

from softcontam.config import BankConfig, Config, check, derive_seed, resolve
from softcontam.errors import ConfigError


def refuses(*overrides: str, says: tuple[str, ...], tiny: bool = True) -> None:
    with pytest.raises(ConfigError) as caught:
        composed(*overrides, tiny=tiny)
    for words in says:
        assert words in str(caught.value)


class TestRefusals:
    @pytest.mark.parametrize("rate", ["0", "-0.1", "1.01", "5", "nan", "inf"])
    def test_rate_outside_zero_to_one(self, rate: str) -> None:
        refuses("condition=exact", f"mixture.rate={rate}", says=("mixture.rate=", "at most 1", "condition=clean"))

    def test_rate_of_less_than_one_row_names_the_least_rate(self) -> None:
        refuses("condition=exact", "mixture.rate=0.001", says=("mixture.rate=0.001", "less than one row", "0.015625"))

    def test_rate_that_is_one_row_is_enough(self) -> None:
        assert composed("condition=exact", "mixture.rate=0.015625").mixture.rate == 0.015625

    def test_whole_mixture_may_be_replaced(self) -> None:
        assert composed("condition=exact", "mixture.rate=1").mixture.rate == 1

    def test_unknown_kind_lists_the_choices(self) -> None:
        refuses("condition.kind=nearby", says=("condition.kind=nearby", "clean", "exact", "semd_synthetic", "topical"))

    def test_words_that_mean_nothing(self) -> None:
        refuses("mixture.placement=middle", says=("mixture.placement=middle", "uniform", "early", "late"))
        refuses("mixture.differs=[steps]", says=("mixture.differs.0=steps", "tokens", "response_style"))
        refuses(
            "condition=unrelated", "condition.differs=[colour,tokens]",
            says=("condition.differs.0=colour", "tokens", "trained_tokens", "response_style"),
        )  # fmt: skip

    def test_more_copies_than_slots(self) -> None:
        refuses(
            "condition=exact", "mixture.rate=0.1", "mixture.copies=7",
            says=("mixture.copies=7", "6 slots", "mixture.rate=0.1", "mixture.n_rows=64", "Lower the copies"),
        )  # fmt: skip

    def test_banks_that_no_condition_could_read(self) -> None:
        refuses(
            "++benchmark.banks={semd_syntetic: {source: tinyworld}}",
            says=("semd_syntetic", "did you mean semd_synthetic"),
        )
        refuses(
            "condition=topical", "benchmark.banks.topical.source=parquet",
            says=("benchmark.banks.topical.path", "source parquet"),
        )  # fmt: skip
        refuses("benchmark.only_items_with=[near]", says=("only_items_with", "near", "semd_synthetic"))

    def test_a_dose_larger_than_the_mixture(self) -> None:
        refuses("condition=dose_ladder", "condition.ladder=[0,100]", says=("dose of 100", "6 slots"))

    @pytest.mark.parametrize("ladder", ["[0]", "[-1,2]", "[1,1]"])
    def test_a_ladder_of_nothing(self, ladder: str) -> None:
        refuses("condition=dose_ladder", f"condition.ladder={ladder}", says=("condition.ladder=", "above 0"))

    def test_a_ladder_beside_copies(self) -> None:
        refuses("condition=dose_ladder", "mixture.copies=2", says=("condition.ladder", "mixture.copies=null"))

    def test_a_base_that_has_no_use_or_no_bank(self) -> None:
        refuses("condition=exact", "condition.base=exact", says=("condition.base", "condition.kind=exact", "unset"))
        refuses(
            "condition=shuffled_label", "benchmark=gsm8k", "~benchmark.banks.semd_synthetic",
            says=("condition.base=semd_synthetic", "gsm8k", "benchmark.banks.semd_synthetic"), tiny=False,
        )  # fmt: skip
        refuses("condition=shuffled_label", "condition.base=unrelated", says=("condition.base=unrelated", "duplicate"))

    def test_kind_without_a_bank_names_the_key_to_add(self) -> None:
        refuses(
            "condition=topical", "benchmark=mbpp", "~benchmark.banks.topical",
            says=("condition.kind=topical", "benchmark=mbpp", "benchmark.banks.topical", "semd_synthetic"),
            tiny=False,
        )  # fmt: skip

    @pytest.mark.parametrize("copies", ["0", "-1"])
    def test_copies(self, copies: str) -> None:
        refuses("condition=exact", f"mixture.copies={copies}", says=("mixture.copies=", "at least 1", "null"))

    @pytest.mark.parametrize("share", ["0", "1", "-1", "nan"])
    def test_seen_share(self, share: str) -> None:
        refuses(f"benchmark.seen_share={share}", says=("benchmark.seen_share=", "between 0 and 1"))

    def test_fewer_rows_than_none(self) -> None:
        refuses("condition=exact", "mixture.n_rows=-5", says=("mixture.n_rows",))

    def test_batches_that_do_not_add_up(self) -> None:
        refuses("train.micro_batch_size=5", says=("train.batch_size=32", "train.micro_batch_size=5"))

    def test_many_greedy_samples(self) -> None:
        refuses("eval.samples=4", says=("eval.samples=4", "eval.temperature"))

    @pytest.mark.parametrize("share", ["0", "1.5"])
    def test_top_p(self, share: str) -> None:
        refuses(f"eval.top_p={share}", says=(f"eval.top_p={float(share)}", "above 0 and at most 1"))

    def test_pass_at_more_than_there_are_samples(self) -> None:
        refuses("eval.pass_at=[1,5]", says=("eval.pass_at has 5", "eval.samples=1", "Raise eval.samples"))
        refuses("eval.pass_at=[0]", says=("eval.pass_at has 0",))

    def test_unknown_tracker_and_cluster(self) -> None:
        refuses("tracker.name=mlflow", says=("tracker.name=mlflow", "wandb"))
        refuses("cluster.name=slurm", says=("cluster.name=slurm", "local"))

    def test_missing_settings_are_all_named(self) -> None:
        with pytest.raises(ConfigError, match=r"missing settings: .*benchmark\.name.*model\.path.*train\.lr"):
            resolve(OmegaConf.structured(Config))

    def test_a_config_without_the_schema(self) -> None:
        with pytest.raises(ConfigError, match="schema"):
            resolve(OmegaConf.create({"a": 1}))

    @pytest.mark.parametrize(
        ("override", "key"),
        [
            ("mixture.n_rows=0", "mixture.n_rows"),
            ("train.micro_batch_size=0", "train.micro_batch_size"),
            ("train.batch_size=0", "train.batch_size"),
            ("train.batch_size=-32", "train.batch_size"),
            ("train.epochs=0", "train.epochs"),
            ("train.max_length=0", "train.max_length"),
            ("train.lr=-1", "train.lr"),
            ("train.lora.r=0", "train.lora.r"),
            ("eval.batch_size=0", "eval.batch_size"),
            ("eval.samples=-1", "eval.samples"),
            ("eval.max_new_tokens=0", "eval.max_new_tokens"),
            ("cluster.workers=-1", "cluster.workers"),
            ("cluster.threads=0", "cluster.threads"),
            ("cluster.attempts=0", "cluster.attempts"),
            ("sandbox.cpu_s=0", "sandbox.cpu_s"),
            ("sandbox.workers=0", "sandbox.workers"),
            ("sandbox.memory_mib=0", "sandbox.memory_mib"),
            ("eval.top_k=-1", "eval.top_k"),
            ("benchmark.max_items=-1", "benchmark.max_items"),
        ],
    )
    @pytest.mark.parametrize("condition", ["clean", "exact"])
    def test_numbers_that_must_be_positive(self, condition: str, override: str, key: str) -> None:
        refuses(f"condition={condition}", override, says=(key,))

    @pytest.mark.parametrize(
        ("override", "key"),
        [
            ("model.dtype=float33", "model.dtype"),
            ("sandbox.backend=docker", "sandbox.backend"),
            ("model.dtype=nn", "model.dtype"),
            ("train.schedule=cosinus", "train.schedule"),
            ("tracker.mode=offlin", "tracker.mode"),
        ],
    )
    def test_words_that_must_be_known(self, override: str, key: str) -> None:
        refuses(override, says=(key,))

    def test_a_level_that_the_condition_has_no_use_for(self) -> None:
        refuses("condition=exact", "condition.level=paraphrase", says=("condition.level",))

    def test_a_bank_of_an_unknown_source(self) -> None:
        refuses("condition=topical", "benchmark.banks.topical.source=internet", says=("internet", "tinyworld"))


class TestClean:
    def test_takes_no_dose(self) -> None:
        one = composed("condition=clean", "mixture.rate=0.2", "mixture.copies=3")
        assert (one.mixture.rate, one.mixture.copies, one.condition.level) == (0.0, None, None)

    def test_needs_no_bank(self) -> None:
        one = config("clean")
        one.benchmark.banks = {}
        check(one)
        check(config("exact", rate=0.1))

    def test_a_bank_by_its_kind_is_enough(self) -> None:
        one = config("format_only", rate=0.1)
        one.benchmark.banks = {"format_only": BankConfig(source="parquet", path="x")}
        check(one)


class TestSeeds:
    def test_are_derived_one_per_purpose_and_stable(self) -> None:
        seeds = composed("seed=3").seeds
        values = (seeds.split, seeds.mixture, seeds.training, seeds.sampling)
        assert len(set(values)) == 4
        assert values == tuple(derive_seed(3, purpose) for purpose in ("split", "mixture", "training", "sampling"))
        assert derive_seed(3, "split") == 972445031

    def test_one_that_is_set_is_kept_and_the_others_are_derived(self) -> None:
        seeds = composed("seed=3", "seeds.split=0").seeds
        assert seeds.split == 0
        assert seeds.mixture == composed("seed=3").seeds.mixture

    @pytest.mark.parametrize("seed", [0, 1, 2**31, 2**63, -1])
    def test_fit_every_generator(self, seed: int) -> None:
        for purpose in ("split", "mixture", "training", "sampling"):
            assert 0 <= derive_seed(seed, purpose) < 2**31

    def test_do_not_collide_over_many_seeds(self) -> None:
        drawn = [derive_seed(seed, purpose) for seed in range(500) for purpose in ("split", "mixture", "training")]
        assert len(set(drawn)) == len(drawn)


def test_every_message_ends_with_a_remedy() -> None:
    attempts: list[Callable[[], object]] = [
        lambda: composed("condition=exact", "mixture.rate=0"),
        lambda: composed("condition=exact", "mixture.rate=0.0001"),
        lambda: composed("condition.kind=nothing"),
        lambda: composed("eval.samples=2"),
    ]
    for attempt in attempts:
        with pytest.raises(ConfigError) as caught:
            attempt()
        assert re.search(r"(Use|Raise|Choose|Set|Add|Lower)\b[^.]*", str(caught.value))
