"""The typed schema of every config group, seeds, and the checks that run before anything is loaded."""

from __future__ import annotations

import hashlib
from dataclasses import dataclass, field
from difflib import get_close_matches
from pathlib import Path
from typing import Any, TypeVar

from hydra.core.config_store import ConfigStore
from omegaconf import MISSING, DictConfig, OmegaConf

from softcontam.errors import ConfigError

SCHEDULES = ("linear", "cosine", "constant", "constant_with_warmup")
"""Learning-rate schedules of transformers that need no further settings."""

BANK_SOURCES = ("tinyworld", "parquet", "labelled_pairs", "nearest", "rules", "corpus")
"""Where the rows of a bank can come from; see :class:`BankConfig`."""

T = TypeVar("T")

SANDBOX_BACKENDS = ("auto", "bubblewrap", "landlock", "wasi", "unsafe")
"""Ways to isolate model-written code; see :class:`SandboxConfig`."""

KINDS = (
    "clean",
    "exact",
    "near",
    "semd_synthetic",
    "semd_natural",
    "topical",
    "format_only",
    "shuffled_label",
    "question_only",
    "unrelated",
    "benchmark_aligned",
    "coverage_expanding",
    "prompt_repetition",
)
"""Kinds of row that can be inserted; docs/conditions.md says what each isolates. ``clean`` inserts none."""

DERIVED_KINDS = ("exact", "near", "shuffled_label", "question_only", "unrelated", "prompt_repetition")
"""Kinds that need no bank of their own: their rows are made from the items, from another kind's, or from the pool."""

LEVELLESS_KINDS = ("exact", "unrelated", "prompt_repetition")
"""Kinds whose rows have no levels."""

BASED_KINDS = ("shuffled_label", "question_only")
"""Kinds that are made from the rows of ``condition.base``."""

MATCHED = ("tokens", "trained_tokens", "response_style")
"""What arms of one seed and dose are to have in common beside rows, slots and steps."""

PLACEMENTS = ("uniform", "early", "late")
"""Where in the training order the inserted rows stand."""

TESTS = ("effect", "no_transfer", "against", "difference_in_differences", "gap", "dose_response")
"""What a declared contrast asks; see :class:`ContrastConfig`."""

DECLARABLE = ("accuracy", "logprob_per_token")
"""Outcomes that a declared contrast may be of, by the names in the ``outcome`` column of the tables."""

SPLIT_ROLES = ("seen", "held_out")
"""Roles of the benchmark that is split."""


@dataclass
class HubConfig:
    """Where a data set comes from on the hub; ``path`` of the owner overrides it."""

    id: str = ""
    config: str | None = None
    revision: str | None = None
    licence: str = ""


@dataclass
class BankConfig:
    """Where the rows of one kind of duplicate come from.

    ``source``: ``tinyworld`` (generated and certified by the solver), ``parquet`` (a bank file),
    ``labelled_pairs`` (a JSONL of pairs), ``nearest`` (nearest non-duplicates in an SFT corpus), ``rules`` (rewritten
    by rule and certified) or ``corpus`` (rows of a corpus or of another split that stand for no item).
    """

    source: str = MISSING
    path: str | None = None
    params: dict[str, Any] = field(default_factory=dict)


@dataclass
class BenchmarkConfig:
    """A benchmark: what is split into seen and held-out.

    ``only_items_with`` names kinds of bank; items with fewer than ``min_rows`` rows in any of these are left out of
    all arms alike. ``difficulty`` is a table (parquet, csv or jsonl, relative to ``paths.data``) with ``item_id`` and
    ``difficulty``, any number that grows with it: the halves are then balanced for it as well.
    """

    name: str = MISSING
    module: str = MISSING
    path: str | None = None
    hub: HubConfig = field(default_factory=HubConfig)
    response_style: str = "answer"
    seen_share: float = 0.5
    difficulty: str | None = None
    banks: dict[str, BankConfig] = field(default_factory=dict)
    only_items_with: list[str] = field(default_factory=list)
    min_rows: int = 1
    max_items: int | None = None
    params: dict[str, Any] = field(default_factory=dict)


@dataclass
class ConditionConfig:
    """What is inserted into the chosen slots.

    ``kind`` and ``level`` name the rows of a bank, null for every level. Kinds derived from another kind's rows start
    from those of ``base`` (and its ``level``). ``filter`` takes out again the inserted rows that a standard
    decontamination filter finds; the clean rows stay in their slots. ``ladder`` replaces ``mixture.copies``: families
    of seen items are assigned at random to these numbers of copies, as many as the rate allows. ``match_to`` chooses
    rows whose similarity to the items is that of another kind's rows (``match_level`` of them). ``differs`` admits
    what of :data:`MATCHED` this arm cannot have in common with the others; the report states it.
    """

    kind: str = MISSING
    level: str | None = None
    base: str | None = None
    filter: str | None = None
    ladder: list[int] = field(default_factory=list)
    match_to: str | None = None
    match_level: str | None = None
    differs: list[str] = field(default_factory=list)

    @property
    def label(self) -> str:
        """What the report calls the arm, beside its level."""
        parts = [self.kind]
        if self.base is not None:
            parts.append(f"of_{self.base}")
        if self.filter is not None:
            parts.append(f"after_{self.filter}")
        return "_".join([*parts, "ladder"] if self.ladder else parts)


@dataclass
class PoolConfig:
    """The clean pool: ``tinyworld``, or JSONL/parquet ``files`` with a ``messages`` column."""

    name: str = MISSING
    files: list[str] = field(default_factory=list)


@dataclass
class MixtureConfig:
    """The SFT set: ``n_rows`` rows of which ``rate`` are replaced in place.

    ``copies``: inserted rows per covered item; null spreads the inserted rows over all seen items in turn. Each is
    trained on ``train.epochs`` times. ``cover`` names kinds of bank: only seen items with a row in each are covered, in
    all arms alike. ``placement``: slots anywhere (``uniform``, rows shuffled each epoch), or in the
    first or last third of rows that are trained on in their order (``early``, ``late``), in every epoch.
    ``tolerance``: share of the mixture's tokens by which an arm may differ from exact duplicates in the same slots.
    ``differs`` admits what of :data:`MATCHED` arms may differ in all the same; the report states it. ``filters``:
    standard decontamination filters whose verdict on every inserted row is recorded, ``clean_filters`` those for clean
    rows. ``near_filter`` says which clean rows count as near a benchmark item; ``near_clean_rows``: ``keep`` them and
    warn, or ``drop`` them, in all arms alike. ``near_held_out``: ``refuse`` an inserted row that ``near_filter`` finds
    near a held-out item, or ``leave_out`` such rows of the bank. ``embedder``: sentence-embedding model for filters and
    similarities, or null for none.
    """

    pool: PoolConfig = field(default_factory=PoolConfig)
    n_rows: int = MISSING
    rate: float = 0.05
    copies: int | None = None
    cover: list[str] = field(default_factory=list)
    placement: str = "uniform"
    tolerance: float = 0.02
    differs: list[str] = field(default_factory=list)
    filters: list[str] = field(
        default_factory=lambda: ["ngram_13", "question_ngram_13", "ngram_8", "ngram_coverage_50", "minhash_80"]
    )
    clean_filters: list[str] = field(default_factory=lambda: ["ngram_13", "ngram_8", "ngram_coverage_50", "minhash_80"])
    near_filter: str = "ngram_13"
    near_clean_rows: str = "keep"
    near_held_out: str = "refuse"
    embedder: str | None = None


@dataclass
class ModelConfig:
    """A base model: a hub id (with revision) or a folder. ``path: tinyworld`` is the one that ships with softcontam.

    ``chat_template`` (Jinja text) is for a base that has none; it stands here, not in a file, to be part of the cell.
    """

    name: str = MISSING
    path: str = MISSING
    revision: str | None = None
    gguf_file: str | None = None
    dtype: str = "float32"
    attn_implementation: str = "sdpa"
    eos_token: str | None = None
    chat_template: str | None = None
    template_kwargs: dict[str, Any] = field(default_factory=dict)
    note: str = ""


@dataclass
class LoraSettings:
    """LoRA adapter. ``target_modules`` are stated in full, PEFT has no defaults for Olmo."""

    r: int = 16
    alpha: int = 32
    dropout: float = 0.0
    target_modules: list[str] = field(
        default_factory=lambda: ["q_proj", "k_proj", "v_proj", "o_proj", "gate_proj", "up_proj", "down_proj"]
    )


@dataclass
class TrainConfig:
    """The recipe. ``batch_size`` is the effective batch, ``micro_batch_size`` what fits on the device at once."""

    recipe: str = MISSING
    lora: LoraSettings = field(default_factory=LoraSettings)
    lr: float = MISSING
    schedule: str = "cosine"
    warmup_ratio: float = 0.03
    weight_decay: float = 0.0
    max_grad_norm: float = 1.0
    epochs: int = MISSING
    batch_size: int = MISSING
    micro_batch_size: int = MISSING
    max_length: int = MISSING
    kl_penalty: float = 0.0
    gradient_checkpointing: bool = False
    checkpoint_every_s: float = 120.0


@dataclass
class EvalBenchmark:
    """A benchmark evaluated beside the split one: related or general."""

    name: str = MISSING
    module: str = MISSING
    path: str | None = None
    hub: HubConfig = field(default_factory=HubConfig)
    response_style: str = "answer"
    max_items: int | None = None
    params: dict[str, Any] = field(default_factory=dict)


@dataclass
class EvalConfig:
    """Evaluation through lm-eval. ``samples: 0`` scores the gold answer's log-probability only.

    ``top_p`` and ``top_k`` (0 for all) narrow what is sampled from where ``temperature`` is above 0. ``pass_at`` lists
    the k for which the unbiased pass@k is reported beside the mean over samples.
    """

    samples: int = 1
    temperature: float = 0.0
    top_p: float = 1.0
    top_k: int = 0
    pass_at: list[int] = field(default_factory=list)
    max_new_tokens: int = 16
    batch_size: int = 64
    related: list[EvalBenchmark] = field(default_factory=list)
    general: list[EvalBenchmark] = field(default_factory=list)
    fresh: list[EvalBenchmark] = field(default_factory=list)


@dataclass
class SandboxConfig:
    """How model-written code is run; limits are those of :class:`softcontam.sandbox.Limits`.

    ``backend``: ``auto`` takes the first that works here of bubblewrap, landlock and wasi. ``allow_unsafe`` permits a
    plain process with the user's own rights. ``workers``: programs at once in each cell.
    """

    backend: str = "auto"
    allow_unsafe: bool = False
    workers: int = 1
    cpu_s: float = 4.0
    wall_factor: float = 5.0
    memory_mib: int = 1024
    output_kib: int = 1024
    files_mib: int = 16


@dataclass
class TrackerConfig:
    """``none`` or ``wandb``. Mode is offline unless told otherwise."""

    name: str = "none"
    mode: str = "offline"
    project: str = "softcontam"
    entity: str | None = None


@dataclass
class ClusterConfig:
    """How cells are spread: ``workers`` processes (null: one for each CPU or GPU) with ``threads`` threads each."""

    name: str = "local"
    workers: int | None = None
    threads: int = 1
    attempts: int = 2


@dataclass
class ContrastConfig:
    """A contrast that the experiment is run for. Those declared are adjusted together (Holm) and get a verdict each.

    ``test``: ``effect`` (arm - clean arm), ``no_transfer`` (the effect lies within ``analysis.margin``), ``against``
    (arm - the arm ``than``), ``difference_in_differences`` (effect on seen - on held-out items), ``gap`` (effect on
    held-out - on related items) or ``dose_response`` (slope of logit accuracy on log dose). ``condition`` is the arm's
    label as in ``effects.csv``; ``level`` null is every level. ``rate`` and ``copies`` null are the highest dose of the
    arm. ``role`` is read by the first three and the last, ``benchmark`` names one of several. ``outcome`` is one of
    ``DECLARABLE``; null is accuracy, or the log-probability where correctness is nowhere decided.
    """

    test: str = MISSING
    condition: str = MISSING
    level: str | None = None
    role: str = "held_out"
    benchmark: str | None = None
    than: str = "exact"
    than_level: str | None = None
    rate: float | None = None
    copies: int | None = None
    outcome: str | None = None


@dataclass
class PaperFigure:
    """A published figure that stands beside ours and never enters it; accuracies as fractions.

    ``clean`` and ``value`` are of the clean and of the contaminated model, ``source`` says where they are printed.
    """

    source: str = MISSING
    model: str = MISSING
    benchmark: str = MISSING
    condition: str = MISSING
    role: str = MISSING
    value: float = MISSING
    clean: float | None = None
    level: str | None = None
    note: str = ""


@dataclass
class AnalysisConfig:
    """What the experiment asks, stated before it is run; kept with the sweep's record, no part of a cell.

    ``margin`` is the difference in accuracy, as a fraction, below which an effect would count as none;
    ``logprob_margin`` the same for the log-probability per token, in nats, null for no such test.
    """

    question: str = ""
    margin: float = 0.05
    logprob_margin: float | None = None
    contrasts: list[ContrastConfig] = field(default_factory=list)
    paper: list[PaperFigure] = field(default_factory=list)


@dataclass
class PathsConfig:
    """Where cells, reports and local data lie."""

    runs: str = MISSING
    reports: str = MISSING
    data: str = MISSING


@dataclass
class SeedsConfig:
    """One seed per purpose; null ones are derived from ``seed``."""

    split: int | None = None
    mixture: int | None = None
    training: int | None = None
    sampling: int | None = None


@dataclass
class Config:
    """Everything that describes one cell, and where and how it is run."""

    experiment: str = "single"
    seed: int = 0
    seeds: SeedsConfig = field(default_factory=SeedsConfig)
    benchmark: BenchmarkConfig = field(default_factory=BenchmarkConfig)
    condition: ConditionConfig = field(default_factory=ConditionConfig)
    mixture: MixtureConfig = field(default_factory=MixtureConfig)
    model: ModelConfig = field(default_factory=ModelConfig)
    train: TrainConfig = field(default_factory=TrainConfig)
    eval: EvalConfig = field(default_factory=EvalConfig)
    sandbox: SandboxConfig = field(default_factory=SandboxConfig)
    tracker: TrackerConfig = field(default_factory=TrackerConfig)
    cluster: ClusterConfig = field(default_factory=ClusterConfig)
    analysis: AnalysisConfig = field(default_factory=AnalysisConfig)
    paths: PathsConfig = field(default_factory=PathsConfig)


ConfigStore.instance().store(name="schema", node=Config)


def from_settings(kind: type[T], settings: dict[str, Any]) -> T:
    """A config dataclass from its plain settings, nested ones included."""
    made = OmegaConf.to_object(OmegaConf.merge(OmegaConf.structured(kind), settings))
    assert isinstance(made, kind)
    return made


def conf_dir() -> Path:
    """The folder of yaml files: inside an installed wheel, or at the root of a checkout."""
    package = Path(__file__).parent
    for folder in (package / "conf", package.parents[1] / "conf"):
        if (folder / "config.yaml").is_file():
            return folder
    raise ConfigError(f"no conf/ beside {package}: the installation is incomplete, reinstall softcontam")


def derive_seed(seed: int, purpose: str) -> int:
    """A seed for one purpose (``split``, ``mixture``, ``training``, ``sampling``), the same on every machine."""
    return int.from_bytes(hashlib.sha256(f"softcontam:{purpose}:{seed}".encode()).digest()[:4], "big") >> 1


def resolve(composed: DictConfig) -> Config:
    """Turn what Hydra composed into a checked :class:`Config` with every seed and interpolation filled in.

    Raises:
        ConfigError: a value that is missing, of the wrong type, or cannot be met.
    """
    missing = sorted(key for key in OmegaConf.missing_keys(composed) if not key.startswith("hydra."))
    if missing:
        raise ConfigError(f"missing settings: {', '.join(missing)}. Choose a file for their group, or set them.")
    config = OmegaConf.to_object(composed)
    if not isinstance(config, Config):
        raise ConfigError("the composed config does not follow softcontam's schema: keep `schema` first in `defaults`")
    for purpose in ("split", "mixture", "training", "sampling"):
        if getattr(config.seeds, purpose) is None:
            setattr(config.seeds, purpose, derive_seed(config.seed, purpose))
    check(config)
    return config


def check(config: Config) -> None:
    """Refuse what can be known to be wrong without loading anything.

    Raises:
        ConfigError: naming the key and the remedy.
    """
    _check_numbers(config)
    _check_words(config)
    _check_banks(config.benchmark)
    _check_condition(config)
    check_analysis(config.analysis)
    if not 0 < config.benchmark.seen_share < 1:
        raise ConfigError(f"benchmark.seen_share={config.benchmark.seen_share} must lie between 0 and 1.")
    batch, micro_batch = config.train.batch_size, config.train.micro_batch_size
    if batch % micro_batch:
        raise ConfigError(f"train.batch_size={batch} is no multiple of train.micro_batch_size={micro_batch}.")
    if not 0 < config.eval.top_p <= 1:
        raise ConfigError(f"eval.top_p={config.eval.top_p} must be above 0 and at most 1.")
    for k in config.eval.pass_at:
        if not 1 <= k <= max(config.eval.samples, 1):
            raise ConfigError(
                f"eval.pass_at has {k}, but eval.samples={config.eval.samples}: pass@k needs k samples per item. "
                "Raise eval.samples, or drop that k."
            )
    if config.eval.samples > 1 and config.eval.temperature <= 0:
        raise ConfigError(
            f"eval.samples={config.eval.samples} with eval.temperature={config.eval.temperature} would repeat one "
            "greedy output. Set eval.temperature above 0, or eval.samples=1."
        )


def _check_numbers(config: Config) -> None:
    """Counts of at least one, or of at least zero where zero has a meaning."""
    train, evaluation, cluster = config.train, config.eval, config.cluster
    at_least_one = {
        "mixture.n_rows": config.mixture.n_rows,
        "train.epochs": train.epochs,
        "train.batch_size": train.batch_size,
        "train.micro_batch_size": train.micro_batch_size,
        "train.max_length": train.max_length,
        "train.lora.r": train.lora.r,
        "eval.batch_size": evaluation.batch_size,
        "eval.max_new_tokens": evaluation.max_new_tokens,
        "cluster.threads": cluster.threads,
        "cluster.attempts": cluster.attempts,
        "benchmark.min_rows": config.benchmark.min_rows,
        "sandbox.workers": config.sandbox.workers,
        "sandbox.memory_mib": config.sandbox.memory_mib,
        "sandbox.output_kib": config.sandbox.output_kib,
        "sandbox.files_mib": config.sandbox.files_mib,
        "sandbox.wall_factor": config.sandbox.wall_factor,
    }
    at_least_zero = {
        "eval.samples": evaluation.samples,
        "eval.temperature": evaluation.temperature,
        "eval.top_k": evaluation.top_k,
        "train.kl_penalty": train.kl_penalty,
        "train.weight_decay": train.weight_decay,
        "cluster.workers": cluster.workers or 0,
        "mixture.tolerance": config.mixture.tolerance,
    }
    if config.benchmark.max_items is not None:
        at_least_one["benchmark.max_items"] = config.benchmark.max_items
    for minimum, values in ((1, at_least_one), (0, at_least_zero)):
        for key, value in values.items():
            if value < minimum:
                raise ConfigError(f"{key}={value} must be at least {minimum}.")
    for key, number in (("train.lr", train.lr), ("sandbox.cpu_s", config.sandbox.cpu_s)):
        if number <= 0:
            raise ConfigError(f"{key}={number} must be above 0.")


def _check_words(config: Config) -> None:
    """Names that stand for one of a few things."""
    choices = {
        "tracker.name": (config.tracker.name, ("none", "wandb")),
        "tracker.mode": (config.tracker.mode, ("offline", "online", "disabled")),
        "cluster.name": (config.cluster.name, ("local",)),
        "model.dtype": (config.model.dtype, ("float32", "bfloat16", "float16")),
        "train.schedule": (config.train.schedule, SCHEDULES),
        "sandbox.backend": (config.sandbox.backend, SANDBOX_BACKENDS),
        "mixture.placement": (config.mixture.placement, PLACEMENTS),
        "mixture.near_clean_rows": (config.mixture.near_clean_rows, ("keep", "drop")),
        "mixture.near_held_out": (config.mixture.near_held_out, ("refuse", "leave_out")),
    }
    for key, admitted in (("condition", config.condition.differs), ("mixture", config.mixture.differs)):
        choices |= {f"{key}.differs.{place}": (quantity, MATCHED) for place, quantity in enumerate(admitted)}
    for kind, bank in config.benchmark.banks.items():
        choices[f"benchmark.banks.{kind}.source"] = (bank.source, BANK_SOURCES)
    for key, (value, known) in choices.items():
        if value not in known:
            raise ConfigError(f"{key}={value} is unknown. Choose one of: {', '.join(known)}.")


def check_analysis(analysis: AnalysisConfig) -> None:
    """Refuse margins and declared contrasts that cannot be meant.

    Raises:
        ConfigError: naming the key and the remedy.
    """
    if not 0 < analysis.margin < 1:
        raise ConfigError(f"margin={analysis.margin} must lie between 0 and 1: it is a difference in accuracy.")
    if analysis.logprob_margin is not None and analysis.logprob_margin <= 0:
        raise ConfigError(f"analysis.logprob_margin={analysis.logprob_margin} must be above 0, or null for no test.")
    for place, one in enumerate(analysis.contrasts):
        key = f"analysis.contrasts.{place}"
        if one in analysis.contrasts[:place]:
            raise ConfigError(f"{key} is declared twice, and would count twice in Holm's adjustment. Drop one.")
        if one.test not in TESTS:
            near = get_close_matches(one.test, TESTS, 1)
            raise ConfigError(
                f"{key}.test={one.test} is unknown{f', did you mean {near[0]}' if near else ''}. "
                f"Choose one of: {', '.join(TESTS)}."
            )
        if one.role not in (*SPLIT_ROLES, "related", "general"):
            raise ConfigError(f"{key}.role={one.role} is unknown. Choose one of: seen, held_out, related, general.")
        if one.condition == "clean":
            raise ConfigError(f"{key}.condition=clean: contrasts are with the clean arm. Name the arm that is tested.")
        if one.outcome is not None and one.outcome not in DECLARABLE:
            raise ConfigError(f"{key}.outcome={one.outcome} is unknown. Choose one of: {', '.join(DECLARABLE)}.")
        if one.outcome == DECLARABLE[1] and one.test == "no_transfer" and analysis.logprob_margin is None:
            raise ConfigError(f"{key}: no transfer in log-probability needs a margin: set analysis.logprob_margin.")
        if one.outcome == DECLARABLE[1] and one.test == "dose_response":
            raise ConfigError(f"{key}: a dose_response is of accuracy. Drop outcome.")
        if one.test == "dose_response" and (one.rate is not None or one.copies is not None):
            raise ConfigError(f"{key}: a dose_response is over all doses of its arm. Drop rate and copies.")
        if one.test == "against" and (one.condition, one.level) == (one.than, one.than_level):
            raise ConfigError(f"{key} compares {one.condition} with itself. Set than to another arm.")


def _check_banks(benchmark: BenchmarkConfig) -> None:
    """The kinds that have a bank."""
    for kind in benchmark.banks:
        if kind not in KINDS[1:]:
            near = get_close_matches(kind, KINDS[1:], 1)
            raise ConfigError(
                f"benchmark.banks.{kind}: {kind} is no kind of row"
                f"{f', did you mean {near[0]}' if near else ''}. There are: {', '.join(KINDS[1:])}."
            )


def _check_condition(config: Config) -> None:
    """The condition and its dose; a clean cell has none, whatever was asked for."""
    kind = config.condition.kind
    if kind not in KINDS:
        raise ConfigError(f"condition.kind={kind} is unknown. Choose one of: {', '.join(KINDS)}.")
    if kind == "clean":
        config.condition = ConditionConfig("clean")
        config.mixture.rate, config.mixture.copies = 0.0, None
        return
    _check_dose(config)
    if kind in BASED_KINDS:
        config.condition.base = config.condition.base or "semd_synthetic"
    elif config.condition.base is not None:
        raise ConfigError(f"condition.base has no meaning for condition.kind={kind}: unset it.")
    level = config.condition.level
    if level is not None and (config.condition.base or kind) in LEVELLESS_KINDS:
        raise ConfigError(f"condition.level={level} has no meaning for {config.condition.base or kind} rows: unset it.")
    for key, needed in (("condition.kind", kind), ("condition.base", config.condition.base)):
        if needed is not None and needed not in config.benchmark.banks and needed not in DERIVED_KINDS:
            known = ", ".join(sorted(config.benchmark.banks)) or "none"
            raise ConfigError(
                f"benchmark={config.benchmark.name} has no bank for {key}={needed} (it has: {known}). "
                f"Add benchmark.banks.{needed}, or choose another condition."
            )
    if config.condition.match_level is not None and config.condition.match_to is None:
        raise ConfigError(f"condition.match_level={config.condition.match_level} needs condition.match_to.")
    used = {kind, config.condition.base, config.condition.match_to, *config.mixture.cover}
    for name in sorted(filter(None, used | set(config.benchmark.only_items_with))):
        bank = config.benchmark.banks.get(name)
        if bank is not None and bank.path is None and bank.source in ("parquet", "labelled_pairs", "nearest"):
            raise ConfigError(
                f"benchmark.banks.{name}: source {bank.source} needs a file. Set benchmark.banks.{name}.path, relative "
                "to paths.data."
            )
    asked: dict[str, list[str | None]] = {
        "condition.match_to": [config.condition.match_to],
        "mixture.cover": [*config.mixture.cover],
        "benchmark.only_items_with": [*config.benchmark.only_items_with],
    }
    for key, named in asked.items():
        for other in filter(None, named):
            if other not in config.benchmark.banks:
                raise ConfigError(
                    f"{key}={other}: benchmark={config.benchmark.name} has no bank of that kind (it has: "
                    f"{', '.join(sorted(config.benchmark.banks)) or 'none'}). Add benchmark.banks.{other}, or set "
                    f"{key} to another or none."
                )
    if config.condition.base in (*BASED_KINDS, "unrelated", "prompt_repetition"):
        raise ConfigError(
            f"condition.base={config.condition.base} has no questions about items. Use a kind of duplicate."
        )


def _check_dose(config: Config) -> None:
    """Rate, copies and ladder of an arm that inserts rows."""
    mixture, ladder = config.mixture, config.condition.ladder
    if not 0 < mixture.rate <= 1:
        raise ConfigError(
            f"mixture.rate={mixture.rate} must be above 0 and at most 1. Use condition=clean for no rows."
        )
    count = round(mixture.rate * mixture.n_rows)
    if count < 1:
        raise ConfigError(
            f"mixture.rate={mixture.rate} of mixture.n_rows={mixture.n_rows} is less than one row. "
            f"Raise the rate to at least {1 / mixture.n_rows:g} or enlarge the mixture."
        )
    if mixture.copies is not None and mixture.copies < 1:
        raise ConfigError(f"mixture.copies={mixture.copies} must be at least 1, or null to spread rows over all items.")
    if mixture.copies is not None and mixture.copies > count:
        raise ConfigError(
            f"mixture.copies={mixture.copies} is more than the {count} slots that mixture.rate={mixture.rate} of "
            f"mixture.n_rows={mixture.n_rows} gives: no item could have all of its copies. Lower the copies, or raise "
            "rate or n_rows."
        )
    if ladder and mixture.copies is not None:
        raise ConfigError("condition.ladder sets the copies of each item: set mixture.copies=null, or drop the ladder.")
    if ladder and max(ladder) > count:
        raise ConfigError(
            f"condition.ladder={ladder} has a dose of {max(ladder)}, but mixture.rate={mixture.rate} of "
            f"mixture.n_rows={mixture.n_rows} gives {count} slots. Raise rate or n_rows, or shorten the ladder."
        )
    if ladder and (min(ladder) < 0 or max(ladder) < 1 or len(set(ladder)) != len(ladder)):
        raise ConfigError(f"condition.ladder={ladder} should hold different numbers of copies, at least one above 0.")
