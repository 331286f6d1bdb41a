"""Any task of lm-eval by its name, as a related benchmark or a general-ability control, scored by lm-eval itself.

``params``: ``task`` (a name, e.g. ``arc_challenge``); ``data_files`` (a local parquet or JSONL file, or a list of them,
for each split, below the data folder), or instead ``path``, a folder with ``<split>-*.parquet`` or
``<split>.jsonl``; ``num_fewshot`` (else the task's own, else none); ``metric`` (else ``acc``, else ``exact_match``)
and ``filter`` (else the task's first) where a task has several.

Prompts, requests, filters and metrics are the task's own, rules that we would not choose included: gsm8k's
flexible-extract takes the last number of a text. What an item's outcome rests on is in
:func:`softcontam.evaluation.lm_eval_tasks.run_task`. Every item is its own family: near-identical items are not
looked for, since a control is not split.

Not taken: groups and tags (their tasks are named), tasks that run model-written code in this process, tasks without a
right and a wrong (perplexity), and tasks with pictures or sound.
"""

from __future__ import annotations

import difflib
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import cache
from pathlib import Path
from typing import Any

from softcontam.benchmarks.answers import check_params, check_style
from softcontam.benchmarks.item import Benchmark, Item, Score, Source
from softcontam.config import BenchmarkConfig, EvalBenchmark
from softcontam.errors import ConfigError, DataError
from softcontam.jsonl import read_jsonl
from softcontam.manifest import pinned, refuse_changed

PARAMS = ("task", "data_files", "num_fewshot", "metric", "filter")
"""Known settings."""

ENDINGS = (".parquet", ".jsonl")
"""Local files that can be read."""

DEFAULT_METRICS = ("acc", "exact_match")
"""Metrics that are right or wrong for each item, in the order in which they are looked for."""


@dataclass(frozen=True)
class LmEvalTask:
    """A loaded lm-eval task and which of its filters and metrics decides.

    ``filter`` names the task's filter pipeline; ``fallbacks`` are the texts it gives where it finds no answer.
    """

    name: str
    task: Any
    metric: str
    filter: str
    fallbacks: tuple[str, ...]

    def choices(self, doc: Mapping[str, Any]) -> list[str]:
        """The texts that a multiple-choice item scores; empty where the model writes its answer.

        In a task such as winogrande each choice is a beginning, here with the ending that they share.
        """
        if self.task.OUTPUT_TYPE != "multiple_choice":
            return []
        listed = list(self.task.doc_to_choice(doc))
        if not self.task.multiple_input:
            return listed
        ending = f"{self.task.config.target_delimiter}{self.task.doc_to_target(doc)}"
        return [f"{beginning}{ending}" for beginning in listed]

    def gold(self, doc: Mapping[str, Any]) -> int | str:
        """Index of the gold choice, or the gold text; the first one where several are accepted.

        Raises:
            DataError: the item has no such choice (the public copy of a test split often hides its answers).
        """
        several = self.task.doc_to_text(doc) if self.task.multiple_input else self.task.doc_to_target(doc)
        gold = (several[0] if several else None) if isinstance(several, list) else several
        choices = self.task.doc_to_choice(doc) if self.task.config.doc_to_choice is not None else []
        index = choices.index(gold) if isinstance(gold, str) and gold in choices else gold
        if not choices:
            return str(gold)
        if not isinstance(index, int) or not 0 <= index < len(choices):
            raise DataError(
                f"task {self.name}: gold answer {gold!r} is none of the choices of {dict(doc)!r}. Use a split whose "
                "answers are public."
            )
        return index if self.task.OUTPUT_TYPE == "multiple_choice" else str(choices[index])

    def filtered(self, doc: Mapping[str, Any], output: str) -> str | None:
        """What the task's filter takes out of an output, or None where it finds nothing."""
        from lm_eval.api.instance import Instance

        request = Instance("generate_until", dict(doc), ("", {}), 0)
        request.resps = [output]
        next(pipeline for pipeline in self.task._filters if pipeline.name == self.filter).apply([request])
        found = request.filtered_resps[self.filter]
        return found if isinstance(found, str) and found.strip() and found not in self.fallbacks else None


def load(config: BenchmarkConfig | EvalBenchmark, data: Path) -> Benchmark:
    """The items of the task's test split (else its validation split) in the order of the data set.

    Item ids are ``<task>/<number of the document>``, counted from 0. ``prompt`` is the task's own question, ``target``
    its gold answer; ``meta`` holds ``doc_id``. ``chance`` is that of the choices, 0 where the model writes its answer.

    Raises:
        ConfigError: no such task, or one that cannot be taken; an unknown setting, metric or filter.
        DataError: the data set cannot be loaded, or an item has no gold answer.
    """
    check_style(config, ("answer",))
    check_params(config, PARAMS)
    name = config.params.get("task")
    if not isinstance(name, str) or not name:
        raise ConfigError(f"benchmark {config.name}: set params.task to the name of an lm-eval task.")
    settings = _settings(config, name)
    loaded = _chosen(config, name, _load(config, data, name, settings))
    docs = list(loaded.task.eval_docs)
    items = tuple(_item(loaded, number, doc, config.name) for number, doc in enumerate(docs))
    choices = [len(item.choices) for item in items]
    chance = sum(1 / count for count in choices) / len(choices) if choices and all(choices) else 0.0

    def parse(item: Item, output: str) -> str | None:
        if item.choices:
            return output.strip() if output.strip() in [choice.strip() for choice in item.choices] else None
        return loaded.filtered(docs[item.meta["doc_id"]], output)

    def score(item: Item, parsed: str) -> Score:
        if item.choices or loaded.task.OUTPUT_TYPE == "loglikelihood":
            return Score(parsed.strip() == item.target.strip())
        return Score(verdict(loaded, loaded.task.process_results(docs[item.meta["doc_id"]], [parsed])))

    return Benchmark(
        config.name, items, chance, config.response_style, _source(config, settings, data), parse, score, task=loaded
    )


def verdict(task: LmEvalTask, metrics: Mapping[str, Any]) -> bool:
    """Whether an item's metrics call it right.

    Raises:
        ConfigError: the deciding metric is absent, or neither 0 nor 1.
    """
    value: Any = metrics.get(task.metric)
    if not isinstance(value, int | float) and not hasattr(value, "item"):
        raise ConfigError(
            f"task {task.name}: metric {task.metric} gives {value!r} for an item, which is neither right nor wrong. "
            f"Set params.metric to another of: {', '.join(metrics)}."
        )
    number = float(value)
    if number not in (0.0, 1.0):
        raise ConfigError(
            f"task {task.name}: metric {task.metric} gives {number:g} for an item, not 0 or 1. Set params.metric to "
            f"another of: {', '.join(metrics)}."
        )
    return number == 1.0


@cache
def _manager() -> Any:
    """lm-eval's index of tasks; it reads some 13,000 files, so one is enough."""
    from lm_eval.tasks import TaskManager

    return TaskManager()


def _settings(config: BenchmarkConfig | EvalBenchmark, name: str) -> Mapping[str, Any]:
    """The task's own settings as its yaml has them.

    Raises:
        ConfigError: there is no such task, or it is one that cannot be taken.
    """
    manager = _manager()
    if name not in manager.all_tasks:
        near = difflib.get_close_matches(name, manager.all_tasks, 5, 0.5)
        raise ConfigError(
            f"benchmark {config.name}: lm-eval has no task {name!r}. "
            + (f"Names near to it: {', '.join(near)}." if near else "`lm-eval ls tasks` lists them.")
        )
    if name not in manager.all_subtasks:
        tasks = sorted(_members(name))
        shown = ", ".join(tasks[:12]) + (f" and {len(tasks) - 12} more" if len(tasks) > 12 else "")
        raise ConfigError(
            f"benchmark {config.name}: {name} is a group of {len(tasks)} lm-eval tasks, and outcomes are kept by task. "
            f"Add one benchmark for each that you want: {shown}."
        )
    settings: Mapping[str, Any] = manager.task_index[name].cfg or {}
    if settings.get("unsafe_code"):
        raise ConfigError(
            f"benchmark {config.name}: {name} would run model-written code in this process. Use softcontam's own "
            "module (mbpp, humaneval, codeforces), which runs it in the sandbox."
        )
    if settings.get("output_type") == "loglikelihood_rolling":
        raise ConfigError(
            f"benchmark {config.name}: {name} measures perplexity, which has no right and wrong for an item."
        )
    return settings


def _members(name: str) -> set[str]:
    """Names of the tasks of a group or tag, those of its groups included."""
    entry = _manager().task_index.get(name)
    if entry is None or name in _manager().all_subtasks:
        return {name}
    listed = (entry.cfg or {}).get("task", []) if entry.cfg else sorted(entry.tags)
    found: set[str] = set()
    for part in listed if isinstance(listed, list) else [listed]:
        if isinstance(part, Mapping) and isinstance(part.get("task"), list):
            found.update(*(_members(str(inner)) for inner in part["task"] if isinstance(inner, str)))
        else:
            inner = part if isinstance(part, str) else str(part.get("task") or part.get("group"))
            found |= _members(inner) if inner != name else {name}
    return found


def _data_files(config: BenchmarkConfig | EvalBenchmark, data: Path) -> dict[str, list[Path]]:
    """The local files of each split; empty where the hub is to be used.

    Raises:
        DataError: a file or folder that is not there.
        ConfigError: both ways of naming files, or an ending that cannot be read.
    """
    named: Mapping[str, str | Sequence[str]] | None = config.params.get("data_files")
    if named and config.path is not None:
        raise ConfigError(f"benchmark {config.name}: set path or params.data_files, not both.")
    if config.path is not None:
        folder = data / config.path
        files: dict[str, list[Path]] = {}
        for file in sorted(folder.glob("*")):
            if file.suffix in ENDINGS:
                files.setdefault(file.name.removesuffix(file.suffix).split("-")[0], []).append(file)
        if not files:
            raise DataError(f"benchmark {config.name}: {folder} has no <split>-*.parquet or <split>.jsonl.")
    else:
        files = {
            split: [data / one for one in ([given] if isinstance(given, str) else given)]
            for split, given in (named or {}).items()
        }
    for file in (file for listed in files.values() for file in listed):
        if not file.is_file():
            raise DataError(f"benchmark {config.name}: {file} does not exist. Correct params.data_files or paths.data.")
        if file.suffix not in ENDINGS:
            raise ConfigError(f"benchmark {config.name}: {file} is none of {', '.join(ENDINGS)}.")
        refuse_changed(data, [file])
    return files


def _local(files: Mapping[str, Sequence[Path]]) -> Any:
    """The local files as one ``DatasetDict``, in memory: the cache of datasets knows a file by its date, not its text.

    Raises:
        DataError: a file that is damaged.
    """
    import datasets
    from pyarrow import ArrowException, parquet

    def read(file: Path) -> Any:
        if file.suffix == ".jsonl":
            return datasets.Dataset.from_list([row for _, row in read_jsonl(file, "Correct params.data_files.")])
        try:
            return datasets.Dataset(parquet.read_table(file))
        except (OSError, ArrowException) as error:
            raise DataError(f"{file} is no readable parquet file ({error}). Copy it again.") from error

    return datasets.DatasetDict(
        {split: datasets.concatenate_datasets([read(file) for file in listed]) for split, listed in files.items()}
    )


def _load(config: BenchmarkConfig | EvalBenchmark, data: Path, name: str, settings: Mapping[str, Any]) -> Any:
    """The lm-eval task with its documents.

    Raises:
        ConfigError: the task needs a package that is not installed.
        DataError: the documents cannot be loaded; says how to do without the hub.
    """
    overrides: dict[str, Any] = {"task": name}
    files = _data_files(config, data)
    shots = config.params.get("num_fewshot", settings.get("num_fewshot")) or 0
    if files:
        local = _local(files)
        overrides["custom_dataset"] = lambda **_: local
        # lm-eval opens every split that the task names; without examples only the evaluated one is needed.
        for key in ("training_split", "validation_split", "test_split", "fewshot_split"):
            if settings.get(key) not in (None, *files) and not (shots and key == "fewshot_split"):
                overrides[key] = None
    elif config.hub.revision is not None:
        overrides["dataset_kwargs"] = {**(settings.get("dataset_kwargs") or {}), "revision": config.hub.revision}
    where = f"{settings.get('dataset_path')} (config {settings.get('dataset_name')})"
    try:
        # A group of one: lm-eval lets only a group's members override a task that it knows by name.
        task = _manager().load({"group": "softcontam", "task": [overrides]})["tasks"][name]
    except ImportError as error:
        raise ConfigError(
            f"benchmark {config.name}: lm-eval's {name} needs a package ({error}). Install it."
        ) from error
    except Exception as error:  # datasets, huggingface_hub and the tasks' own code share no base class
        problem = f"({type(error).__name__}: {error})"
        if files:
            given = ", ".join(str(file) for listed in files.values() for file in listed)
            raise DataError(
                f"benchmark {config.name}: lm-eval's task {name} cannot use {given} {problem}. The files need the "
                f"splits and columns of {where}."
            ) from error
        raise DataError(
            f"benchmark {config.name}: the data set of lm-eval's task {name}, {where}, could not be loaded {problem}. "
            "On a machine without network, set params.data_files to a local parquet or JSONL file for each split "
            "(below paths.data), or path to a folder of them; `python -m softcontam.prefetch` writes one where there "
            "is network."
        ) from error
    task.set_config("num_fewshot", shots)
    return task


def _chosen(config: BenchmarkConfig | EvalBenchmark, name: str, task: Any) -> LmEvalTask:
    """The task with the filter and metric that decide.

    Raises:
        ConfigError: it has no such filter or metric, or is of a kind that cannot be taken.
    """
    if getattr(task, "MULTIMODAL", False) or not hasattr(task, "multiple_input"):
        raise ConfigError(f"benchmark {config.name}: {name} needs more than a text model, or is no task in yaml.")
    if task.config.repeats != 1:
        raise ConfigError(
            f"benchmark {config.name}: {name} draws {task.config.repeats} outputs for each item and decides by all of "
            "them; an outcome is one output. Use its variant with one."
        )
    filters = [pipeline.name for pipeline in task._filters]
    chosen = config.params.get("filter") or filters[0]
    if chosen not in filters:
        raise ConfigError(f"benchmark {config.name}: {name} has no filter {chosen!r}. It has: {', '.join(filters)}.")
    metrics = list(task._metric_fn_list)
    metric = config.params.get("metric") or next((known for known in DEFAULT_METRICS if known in metrics), None)
    if metric is None or (metric not in metrics and task.config.process_results is None):
        raise ConfigError(
            f"benchmark {config.name}: {name} has no metric {metric or ' or '.join(DEFAULT_METRICS)}. Set "
            f"params.metric to one that is 0 or 1 for each item, out of: {', '.join(metrics)}."
        )
    made = [part() for pipeline in task._filters if pipeline.name == chosen for part in pipeline.filters]
    fallbacks = {part.fallback for part in made if isinstance(getattr(part, "fallback", None), str)}
    return LmEvalTask(name, task, metric, chosen, tuple(sorted(fallbacks)))


def _item(loaded: LmEvalTask, number: int, doc: Mapping[str, Any], benchmark: str) -> Item:
    try:
        choices, gold = loaded.choices(doc), loaded.gold(doc)
    except DataError:
        raise
    except Exception as error:  # whatever a task's own template or function meets in a document that is unlike the rest
        raise DataError(
            f"task {loaded.name}, document {number}: no choices or gold answer ({type(error).__name__}: {error}) in "
            f"{dict(doc)!r}. Use a split whose answers are public."
        ) from error
    prompt = "\n".join(choices) if loaded.task.multiple_input else str(loaded.task.doc_to_text(doc))
    target = choices[gold] if isinstance(gold, int) else gold
    item_id = f"{loaded.name}/{number}"
    return Item(item_id, benchmark, item_id, prompt, target, tuple(choices), meta={"doc_id": number})


def _source(config: BenchmarkConfig | EvalBenchmark, settings: Mapping[str, Any], data: Path) -> Source:
    """The hub data set that the task names; a local copy that no manifest lists says so in place of the revision."""
    revision = config.hub.revision or "unpinned"
    if config.path is not None or config.params.get("data_files"):
        revision = f"local copy {config.path or dict(config.params['data_files'])}"
    if config.path is not None:
        hub_id = str(settings.get("dataset_path"))
        revision = pinned(data, config.path, hub_id, config.hub.revision) or revision
    parts = (settings.get("dataset_path"), settings.get("dataset_name"))
    return Source(config.hub.id or ", ".join(str(part) for part in parts if part), revision, config.hub.licence)
