"""``python -m softcontam.bank``: check a bank of your own, make a configured one, describe how far its rows are.

* ``check FILE``: every problem of a bank file with row and remedy, and what the bank holds.
* ``make benchmark=NAME kind=KIND out=FILE``: the bank that a benchmark's config describes, as a file.
* ``describe FILE benchmark=NAME``: distances from the items, and what standard filters would remove.
* ``convert FILE out=FILE``: a CSV or JSONL bank as the parquet file that runs read.

Words that a command does not know itself are settings as for ``softcontam.run`` (``eval=NAME``,
``benchmark.params.subset=full``). docs/banks.md shows how to bring a bank of your own.
"""

from __future__ import annotations

import sys
from collections import Counter
from collections.abc import Collection, Sequence
from contextlib import nullcontext
from dataclasses import dataclass, field, fields, is_dataclass, replace
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Any, TypeVar

from hydra import compose, initialize_config_dir
from hydra.errors import HydraException
from omegaconf import MISSING, OmegaConf
from omegaconf.errors import OmegaConfBaseException
from rich.console import Console
from yaml import YAMLError

from softcontam.benchmarks import Benchmark, load_benchmark
from softcontam.benchmarks.musr import TASKS
from softcontam.config import BankConfig, BenchmarkConfig, Config, MixtureConfig, conf_dir, resolve
from softcontam.duplicates import bank_rows, items_with_rows, read_bank, write_bank
from softcontam.duplicates.bank import REQUIRED
from softcontam.duplicates.check import check_table
from softcontam.duplicates.describe import by_level, distances
from softcontam.duplicates.embedding import load_embedder
from softcontam.duplicates.filters import check_filters
from softcontam.duplicates.rules.python_code import certify
from softcontam.duplicates.tables import read_table, rows_of
from softcontam.errors import ConfigError, DataError, SoftcontamError
from softcontam.reporting.bank_tables import contents, distance_table, problem_frame, problem_lines
from softcontam.sandbox import Sandbox
from softcontam.store import write_text

if TYPE_CHECKING:
    from softcontam.chat import Chat

USAGE = (
    "Usage: python -m softcontam.bank check FILE [benchmark=NAME] [model=NAME max_length=2048] [certify=true] "
    "[show=10] [csv=FILE], or make benchmark=NAME kind=KIND out=FILE [source=NAME] [path=FILE] [params.KEY=VALUE] "
    "[certify=true] [overwrite=true], or describe FILE benchmark=NAME [embedder=NAME] "
    "[filters=[ngram_13]] [csv=FILE], or convert FILE out=FILE [overwrite=true]; data=DIR with any"
)

VERSIONS = {
    "mbpp": ("subset", ("sanitized", "full")),
    "gsm8k": ("split", ("test", "train")),
    "musr": ("task", TASKS),
    "codeforces": ("split", ("test", "train")),
}
"""Benchmark modules that hold other items under another value of one of their params."""

T = TypeVar("T")


@dataclass
class Settings:
    """What every command knows: ``data`` replaces paths.data."""

    data: str | None = None


@dataclass
class CheckSettings(Settings):
    """``show``: problems of one sort that are printed, 0 for all. ``certify``: run programs against their items' tests.

    ``max_length`` counts tokens of ``model=NAME``, and is 2,048 where only that is given.
    """

    max_length: int | None = None
    certify: bool = False
    show: int = 10
    csv: str | None = None


@dataclass
class MakeSettings(Settings):
    """``source`` replaces the configured bank by another; ``path`` and ``params`` change it.

    ``certify``: leave out rows that do not pass their item's tests; null does so for programs that were made by rule.
    """

    kind: str = MISSING
    out: str = MISSING
    source: str | None = None
    path: str | None = None
    params: dict[str, Any] = field(default_factory=dict)
    certify: bool | None = None
    overwrite: bool = False


@dataclass
class DescribeSettings(Settings):
    """``filters`` are those of a mixture where none are named; ``embedder`` is an embedding model as mixture.embedder.

    ``csv`` takes one line per row of the bank.
    """

    filters: list[str] = field(default_factory=list)
    embedder: str | None = None
    csv: str | None = None


@dataclass
class ConvertSettings(Settings):
    """Where the converted bank goes."""

    out: str = MISSING
    overwrite: bool = False


def check(file: Path, settings: CheckSettings, overrides: Sequence[str]) -> int:
    """Print every problem of a bank file and what it holds; 1 if there are errors.

    Raises:
        ConfigError: no such file, or settings that mean nothing together.
    """
    asked, model = _asks_for("benchmark", overrides), _asks_for("model", overrides)
    if settings.max_length is not None and not model:
        raise ConfigError("max_length counts tokens: add model=NAME, a file of conf/model.")
    if settings.certify and not asked:
        raise ConfigError("certify=true runs the tests of items: add benchmark=NAME.")
    config = _composed(overrides, settings.data)
    try:
        table = read_table(file)
    except DataError as error:
        _say(f"error: {error}")
        return 1
    benchmark = load_benchmark(config.benchmark, _data(config)) if asked else None
    with _sandbox(config, benchmark) if settings.certify else nullcontext() as sandbox:
        problems = check_table(
            table,
            benchmark,
            elsewhere=partial(_elsewhere, config.benchmark, overrides, settings.data),
            chat=_chat(config) if model else None,
            max_length=settings.max_length or 2048,
            sandbox=sandbox,
        )
    if settings.csv is not None:
        write_text(Path(settings.csv), problem_frame(table, problems).to_csv(index=False))
    for line in problem_lines(table, problems, settings.show):
        _say(line)
    rows = [row for row in rows_of(table) if all(isinstance(getattr(row, name), str) for name in REQUIRED)]
    if rows:
        _console().print(contents(rows, benchmark))
    errors = sum(one.error for one in problems)
    beside = (
        f"benchmark {benchmark.name}" if benchmark else "no benchmark: add benchmark=NAME to check rows against items"
    )
    _say(f"{file}: {len(table.records)} rows, {errors} errors, {len(problems) - errors} warnings ({beside})")
    return int(errors > 0)


def make(settings: MakeSettings, overrides: Sequence[str]) -> int:
    """Write the bank of a benchmark's config to a file and check it; 1 if that finds errors.

    The items are those that an experiment would include (``benchmark.only_items_with``).

    Raises:
        ConfigError: no such bank, or a file that is there already.
        DataError: rows that cannot be read or made.
    """
    if not _asks_for("benchmark", overrides):
        raise ConfigError(f"no benchmark named: add benchmark=NAME. {USAGE}")
    out = _free(settings.out, settings.overwrite)
    config = _composed(overrides, settings.data)
    data = _data(config)
    config.benchmark.banks[settings.kind] = _bank(config.benchmark, settings)
    others = [
        item
        for entries in (config.eval.fresh, config.eval.related, config.eval.general)
        for entry in entries
        for item in load_benchmark(entry, data).limited(entry.max_items).items
    ]
    benchmark = load_benchmark(config.benchmark, data)
    benchmark = items_with_rows(config.benchmark, benchmark, data, others).limited(config.benchmark.max_items)
    rows = bank_rows(settings.kind, config.benchmark, benchmark.items, data, others)
    if not rows:
        raise DataError(
            f"benchmark={benchmark.name} has no rows of kind {settings.kind} for its items. Nothing written."
        )
    by_rule = config.benchmark.banks[settings.kind].source == "rules" and benchmark.submission is not None
    if by_rule if settings.certify is None else settings.certify:
        with _sandbox(config, benchmark) as sandbox:
            passed, rejected = certify(rows, benchmark, sandbox)
        reasons = Counter(one.reason.partition(":")[0] for one in rejected)
        left_out = (
            f"; left out: {', '.join(f'{count} {reason}' for reason, count in reasons.items())}" if reasons else ""
        )
        _say(f"certified by running the items' tests: {len(passed)} of {len(rows)} rows{left_out}")
        if not passed:
            raise DataError(f"no row passes the tests of its item. Nothing written to {out}.")
        rows = passed
    write_bank(out, rows)
    setting = f"'++benchmark.banks={{{settings.kind}: {{source: parquet, path: \"{out.resolve()}\"}}}}'"
    _say(f"written: {out}. To use it in a run: {setting}")
    kept = [word for word in overrides if not word.startswith("eval")]
    return check(out, CheckSettings(data=settings.data), kept)


def describe(file: Path, settings: DescribeSettings, overrides: Sequence[str]) -> int:
    """Print how far the rows of a bank are from their items, and what standard filters would find of them.

    Raises:
        ConfigError: no benchmark, an unknown filter, or an embedding model that is not there.
        DataError: a bank that cannot be read, or none of whose rows is for an item of the benchmark.
    """
    if not _asks_for("benchmark", overrides):
        raise ConfigError(f"no benchmark named: add benchmark=NAME. {USAGE}")
    config = _composed(overrides, settings.data)
    embedder = None if settings.embedder is None else load_embedder(settings.embedder)
    filters = settings.filters or [*MixtureConfig().filters, *(["embedding_80"] if embedder else [])]
    check_filters(filters, settings.embedder)
    rows = read_bank(file)
    benchmark = load_benchmark(config.benchmark, _data(config))
    frame = distances(rows, benchmark, filters, embedder)
    if frame.empty:
        raise DataError(
            f"{file} has no row for an item of {benchmark.name}. Check it: python -m softcontam.bank check."
        )
    if settings.csv is not None:
        write_text(Path(settings.csv), frame.to_csv(index=False))
    _console().print(distance_table(by_level(frame, filters), filters))
    left_out = f", {len(rows) - len(frame)} rows of other items left out" if len(frame) < len(rows) else ""
    cosine = embedder.name if embedder else "TF-IDF"
    _say(f"medians; cosine by {cosine}; filters against all {len(benchmark.items)} items of {benchmark.name}{left_out}")
    return 0


def convert(file: Path, settings: ConvertSettings) -> int:
    """Write a bank of another format as parquet, with its sha256 and columns that may be empty.

    Raises:
        DataError: rows that no bank may hold.
    """
    out = _free(settings.out, settings.overwrite)
    table = read_table(file)
    absent = [name for name in REQUIRED if name not in table.columns]
    if absent:
        raise DataError(f"{file} lacks the columns {', '.join(absent)}. Add them; docs/banks.md says what they hold.")
    write_bank(out, rows_of(table))
    _say(f"written: {out}, {len(table.records)} rows. Check it: python -m softcontam.bank check {out} benchmark=NAME")
    return 0


def _bank(config: BenchmarkConfig, settings: MakeSettings) -> BankConfig:
    """The bank's settings: the configured ones with changes, or those of another source.

    Raises:
        ConfigError: the benchmark has no bank of the kind, and no source is given.
    """
    if settings.source is not None:
        return BankConfig(settings.source, settings.path, settings.params)
    configured = config.banks.get(settings.kind)
    if configured is None:
        known = ", ".join(sorted(config.banks)) or "none"
        raise ConfigError(
            f"benchmark={config.name} has no bank of kind {settings.kind} (it has: {known}). Choose one of these, or "
            "say where the rows come from: source=NAME."
        )
    path = configured.path if settings.path is None else settings.path
    return replace(configured, path=path, params={**configured.params, **settings.params})


def _elsewhere(
    config: BenchmarkConfig, overrides: Sequence[str], data: str | None, ids: Collection[str]
) -> dict[str, str]:
    """Where item ids that the benchmark does not have may belong: its other versions, or another benchmark."""
    found: dict[str, str] = {}
    param, values = VERSIONS.get(config.module, ("", ()))
    for value in values:
        version = f"benchmark.params.{param}={value}"
        try:
            changed = _composed([*overrides, f"+{version}" if param not in config.params else version], data)
            items = load_benchmark(changed.benchmark, _data(changed)).items
        except SoftcontamError:
            continue  # only what is at hand can be compared
        for item in items:
            if item.item_id in ids:
                found.setdefault(item.item_id, f"is in {version}")
    names = {path.stem for path in (conf_dir() / "benchmark").glob("*.yaml")}
    for item_id in set(ids) - set(found):
        name = item_id.split("/")[0].strip().lower()
        if name in names and name != config.name:
            found[item_id] = f"looks like one of benchmark={name}"
    return found


def _composed(overrides: Sequence[str], data: str | None) -> Config:
    """The checked config of some overrides.

    Raises:
        ConfigError: Hydra cannot compose them.
    """
    try:
        with initialize_config_dir(str(conf_dir()), version_base="1.3"):
            composed = compose("config", overrides=["condition=exact", *overrides])
        OmegaConf.resolve(composed)
    except (HydraException, OmegaConfBaseException) as error:
        raise ConfigError(f"{' '.join(str(error).split())} {USAGE}") from None
    config = resolve(composed)
    config.paths.data = config.paths.data if data is None else data
    return config


def _asks_for(group: str, overrides: Sequence[str]) -> bool:
    return any(word.lstrip("+").startswith((f"{group}=", f"{group}.")) for word in overrides)


def _data(config: Config) -> Path:
    return Path(config.paths.data).expanduser().resolve()


def _chat(config: Config) -> Chat:
    from softcontam.models import load_chat  # brings torch, which the rest of a check does without

    return load_chat(config.model)


def _sandbox(config: Config, benchmark: Benchmark | None) -> Sandbox:
    """Where the benchmark's programs run.

    Raises:
        ConfigError: its answers are no programs.
    """
    if benchmark is None or benchmark.submission is None:
        raise ConfigError(f"certify=true runs programs, and the answers of benchmark={config.benchmark.name} are none.")
    return Sandbox.of(config.sandbox)


def _free(out: str, overwrite: bool) -> Path:
    """The path of a bank that may be written.

    Raises:
        ConfigError: it is there already, or no parquet file.
    """
    path = Path(out).expanduser()
    if path.suffix != ".parquet":
        raise ConfigError(f"out={out} should end in .parquet: that is what runs read.")
    if path.exists() and not overwrite:
        raise ConfigError(f"{path} exists. Choose another out, or replace it with overwrite=true.")
    return path


def read_settings(kind: type[T], words: Sequence[str]) -> tuple[T, list[str]]:
    """The settings that a command knows itself, and the words that are left for Hydra.

    Raises:
        ConfigError: a word that is not of the form key=value, a value of the wrong type, or one that is missing.
    """
    assert is_dataclass(kind)
    names = {one.name for one in fields(kind)}
    own: list[str] = []
    others: list[str] = []
    for word in words:
        key, equals, _ = word.partition("=")
        if not equals and not word.startswith("~"):
            raise ConfigError(f"{word!r} is not of the form key=value. {USAGE}")
        (own if key.split(".")[0] in names else others).append(word)
    try:
        merged = OmegaConf.merge(OmegaConf.structured(kind), OmegaConf.from_dotlist(own))
        missing = sorted(OmegaConf.missing_keys(merged))
        if missing:
            raise ConfigError(f"missing: {', '.join(missing)}. {USAGE}")
        settings = OmegaConf.to_object(merged)
    except (OmegaConfBaseException, YAMLError) as error:
        raise ConfigError(f"{str(error).splitlines()[0]}. {USAGE}") from None
    assert isinstance(settings, kind)
    return settings, others


def _run(words: Sequence[str]) -> int:
    """Carry out one command.

    Raises:
        SoftcontamError: a request that cannot be met.
    """
    command, rest = (words[0], words[1:]) if words else ("", [])
    if command == "make":
        return make(*read_settings(MakeSettings, rest))
    if command not in ("check", "describe", "convert"):
        raise ConfigError(f"{command or 'nothing'!r} is no command of softcontam.bank. {USAGE}")
    if not rest or ("=" in rest[0] and not Path(rest[0]).exists()):
        raise ConfigError(f"{command} needs the path of a bank file first. {USAGE}")
    file = Path(rest[0]).expanduser()
    if command == "check":
        return check(file, *read_settings(CheckSettings, rest[1:]))
    if command == "describe":
        return describe(file, *read_settings(DescribeSettings, rest[1:]))
    settings, overrides = read_settings(ConvertSettings, rest[1:])
    if overrides:
        raise ConfigError(f"convert does not know {overrides[0]!r}. {USAGE}")
    return convert(file, settings)


def main(arguments: Sequence[str] | None = None) -> int:
    """Run one command; returns 0, 1 where a bank has errors, 2 for a bad request."""
    try:
        return _run(sys.argv[1:] if arguments is None else list(arguments))
    except SoftcontamError as error:
        Console(stderr=True, soft_wrap=True).print(f"{type(error).__name__}: {error}", markup=False, highlight=False)
        return 2


def _console() -> Console:
    return Console(width=None if sys.stdout.isatty() else 160)


def _say(text: str) -> None:
    _console().print(text, markup=False, highlight=False, soft_wrap=True)


if __name__ == "__main__":
    sys.exit(main())
