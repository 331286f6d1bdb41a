"""What the cells of a command line need from the hub: data sets, models, and what is left out."""

from __future__ import annotations

import itertools
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import PurePosixPath
from typing import Any

from hydra import compose, initialize_config_dir
from hydra.core.override_parser.overrides_parser import OverridesParser
from hydra.errors import HydraException
from omegaconf import DictConfig, OmegaConf
from omegaconf.errors import OmegaConfBaseException

from softcontam.config import BenchmarkConfig, EvalBenchmark, EvalConfig, ModelConfig, conf_dir
from softcontam.errors import ConfigError
from softcontam.hub import first_line
from softcontam.inputs import model_folder

NOT_FETCHED = {"truedetective": "its terms forbid passing it on, get your own copy: softcontam fetches none"}
"""Benchmark modules whose data set is left alone, and why."""

_LOCAL_FORMATS = (None, "", "json", "csv", "parquet", "text", "arrow")
_SWEPT = ("exp", "benchmark", "eval", "model", "mixture")


@dataclass(frozen=True)
class DataSet:
    """A hub data set that a benchmark needs.

    ``folder`` is its place below the output folder, ``options`` are further arguments of ``datasets.load_dataset``.
    """

    benchmark: str
    module: str
    hub: str
    config: str | None
    revision: str | None
    licence: str
    folder: str
    options: Mapping[str, Any] = field(default_factory=dict)

    def __str__(self) -> str:
        return f"{self.benchmark}: {self.hub}" + (f" (config {self.config})" if self.config else "")


@dataclass(frozen=True)
class Model:
    """A hub model, and its place below the output folder."""

    name: str
    hub: str
    revision: str | None

    @property
    def folder(self) -> str:
        """``models/<hub id>``."""
        return f"models/{self.hub}"

    def __str__(self) -> str:
        return f"model {self.name}: {self.hub}"


@dataclass
class Needs:
    """What a run needs: from the hub, from elsewhere (``local`` files below paths.data), and what is left out.

    ``data_sets`` are by folder, ``models`` by hub id; ``overrides`` are the settings, by folder, that make a run read
    from there where its config does not do so by itself.
    """

    data_sets: dict[str, DataSet] = field(default_factory=dict)
    overrides: dict[str, list[str]] = field(default_factory=dict)
    models: dict[str, Model] = field(default_factory=dict)
    local: list[str] = field(default_factory=list)
    left_out: list[str] = field(default_factory=list)


def needs(overrides: Sequence[str]) -> Needs:
    """The data sets and models of all cells that the overrides stand for.

    Raises:
        ConfigError: the overrides cannot be composed, or two benchmarks want different data sets in one folder.
    """
    found = Needs()
    for composed in compose_all(overrides):
        try:
            benchmark, evaluation, model = (
                OmegaConf.to_object(composed[key]) for key in ("benchmark", "eval", "model")
            )
            files = [str(file) for file in composed.mixture.pool.files]
        except OmegaConfBaseException as error:
            raise ConfigError(f"{first_line(error)}.") from None
        assert isinstance(benchmark, BenchmarkConfig)
        assert isinstance(evaluation, EvalConfig)
        assert isinstance(model, ModelConfig)
        _add_benchmark(found, benchmark, "benchmark")
        for role in ("related", "general", "fresh"):
            for number, other in enumerate(getattr(evaluation, role)):
                _add_benchmark(found, other, f"eval.{role}.{number}")
        _add_model(found, model)
        for file in [*files, *_bank_files(benchmark)]:
            if file not in found.local:
                found.local.append(file)
    return found


def compose_all(overrides: Sequence[str]) -> list[DictConfig]:
    """The composed configs of a command line, one for each value that an experiment or a comma sweeps over.

    A sweep over anything but experiments, benchmarks, evaluations, models and mixtures takes its first value: the
    other values need the same data.

    Raises:
        ConfigError: Hydra cannot compose them.
    """
    found = []
    for chosen, given in _expand(overrides):
        first = _compose(chosen)
        params = first.hydra.sweeper.get("params") or {}
        swept = [f"{key}={value}" for key, value in params.items() if key not in given]
        found.extend([_compose([*more, *chosen]) for more, _ in _expand(swept)] if swept else [first])
    return found


def _expand(overrides: Sequence[str]) -> Iterator[tuple[list[str], set[str]]]:
    """Each choice of values of swept overrides, with the keys that are set."""
    try:
        parsed = OverridesParser.create().parse_overrides(list(overrides))
    except HydraException as error:
        raise ConfigError(f"{first_line(error)}.") from None
    keys, choices = set(), []
    for override in parsed:
        keys.add(override.key_or_group)
        values = [str(override.input_line)]
        if override.is_sweep_override():
            values = [f"{override.get_key_element()}={value}" for value in override.sweep_string_iterator()]
            if override.key_or_group.split(".")[0] not in _SWEPT:
                values = values[:1]
        choices.append(values)
    for chosen in itertools.product(*choices):
        yield list(chosen), keys


def _compose(overrides: Sequence[str]) -> DictConfig:
    try:
        with initialize_config_dir(str(conf_dir()), version_base="1.3"):
            return compose("config", overrides=list(overrides), return_hydra_config=True)
    except (HydraException, OmegaConfBaseException) as error:
        raise ConfigError(f"{error}") from None


def _add_benchmark(found: Needs, config: BenchmarkConfig | EvalBenchmark, key: str) -> None:
    """Note a benchmark's data set, or why it has none that can be fetched."""
    reason = NOT_FETCHED.get(config.module)
    if reason is None and config.module == "lm_eval_task":
        if config.params.get("data_files"):
            reason = "it reads the local files of its params.data_files"
    elif reason is None and not config.hub.id:
        reason = "no hub data set"
    if reason is not None:
        line = f"{config.name}: nothing fetched ({reason})"
        if line not in found.left_out:
            found.left_out.append(line)
        return
    wanted = _lm_eval_data_set(config) if config.module == "lm_eval_task" else _own_data_set(config)
    place = PurePosixPath(wanted.folder)
    if place.is_absolute() or ".." in place.parts:
        raise ConfigError(
            f"{key}.path={config.path} does not lie below the output folder. Give a path relative to it, or null."
        )
    other = found.data_sets.setdefault(wanted.folder, wanted)
    if (other.hub, other.config, other.revision) != (wanted.hub, wanted.config, wanted.revision):
        raise ConfigError(
            f"{key}.path: {wanted} and {other} would both be written to {wanted.folder}. Set another path for one."
        )
    setting = f"{key}.path={wanted.folder}"
    if config.path is None and setting not in found.overrides.setdefault(wanted.folder, []):
        found.overrides[wanted.folder].append(setting)


def _own_data_set(config: BenchmarkConfig | EvalBenchmark) -> DataSet:
    hub = config.hub
    folder = config.path or _folder(hub.id, hub.config)
    return DataSet(config.name, config.module, hub.id, hub.config, hub.revision, hub.licence, folder)


def _lm_eval_data_set(config: BenchmarkConfig | EvalBenchmark) -> DataSet:
    """The data set that an lm-eval task names itself.

    Raises:
        ConfigError: there is no such task, its data set is not on the hub, or the config names another.
    """
    from softcontam.benchmarks import lm_eval_task

    task = config.params.get("task")
    if not isinstance(task, str):
        raise ConfigError(f"benchmark {config.name}: set params.task to the name of an lm-eval task.")
    settings = lm_eval_task._settings(config, task)
    hub_id, hub_config = settings.get("dataset_path"), settings.get("dataset_name")
    options = dict(settings.get("dataset_kwargs") or {})
    options.pop("trust_remote_code", None)
    revision = options.pop("revision", None)
    if hub_id in _LOCAL_FORMATS or settings.get("custom_dataset") is not None:
        raise ConfigError(
            f"benchmark {config.name}: lm-eval's {task} does not read a hub data set. Write its documents to a file "
            "and set params.data_files."
        )
    if config.hub.id and (config.hub.id, config.hub.config) != (hub_id, hub_config):
        raise ConfigError(
            f"benchmark {config.name}: hub is {config.hub.id} (config {config.hub.config}), and lm-eval's {task} reads "
            f"{hub_id} (config {hub_config}). Correct the config."
        )
    folder = config.path or _folder(str(hub_id), hub_config) + (f"/{task}" if options else "")
    return DataSet(
        config.name,
        config.module,
        str(hub_id),
        hub_config,
        config.hub.revision or revision,
        config.hub.licence,
        folder,
        options=options,
    )


def _folder(hub_id: str, config: str | None) -> str:
    """A data set's folder where the config names none: ``gsm8k/main`` for ``openai/gsm8k`` and its config main."""
    return "/".join(filter(None, (hub_id.rstrip("/").split("/")[-1], config)))


def _add_model(found: Needs, config: ModelConfig) -> None:
    """Note a model that is on the hub; a local one, or one that is not there, is no matter of the hub."""
    try:
        on_hub = not config.path.startswith("package:") and model_folder(config) is None
    except ConfigError:
        on_hub = False
    if on_hub:
        found.models[config.path] = Model(config.name, config.path, config.revision)


def _bank_files(config: BenchmarkConfig) -> list[str]:
    """Files below paths.data, other than its items, that a benchmark's cells read."""
    files = [config.difficulty, config.params.get("solutions")]
    for bank in config.banks.values():
        files += [bank.path, *bank.params.get("rewordings", [])]
    return [str(file) for file in files if file]
