"""What every benchmark offers, and the way to load one by its module name."""

from __future__ import annotations

import importlib
from collections import Counter
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field, replace
from pathlib import Path
from statistics import fmean
from typing import TYPE_CHECKING, Any

from softcontam.benchmarks.families import NearPair
from softcontam.config import BenchmarkConfig, EvalBenchmark
from softcontam.errors import ConfigError, DataError
from softcontam.sandbox import Submission

if TYPE_CHECKING:
    from softcontam.benchmarks.lm_eval_task import LmEvalTask


@dataclass(frozen=True)
class Item:
    """One test item.

    ``prompt`` is the user turn and ``target`` the gold assistant turn, both without chat markup. ``family``
    groups items that share a passage, template or twin: splits and resampling never cut through a family.
    ``response_style`` is that of the benchmark it was loaded with.
    """

    item_id: str
    benchmark: str
    family: str
    prompt: str
    target: str
    choices: tuple[str, ...] = ()
    tests: tuple[str, ...] = ()
    response_style: str = "answer"
    meta: Mapping[str, Any] = field(default_factory=dict)

    @property
    def text(self) -> str:
        """The item's own text (``meta["task"]``), without the wording that the benchmark puts around it."""
        return str(self.meta.get("task", self.prompt))


@dataclass(frozen=True)
class Source:
    """Where the items come from: hub id, revision and licence, or the generator that made them."""

    hub: str
    revision: str
    licence: str


@dataclass(frozen=True)
class Score:
    """Whether a parsed answer solves its item; ``partial`` is the share of it that is right, where there is one."""

    correct: bool
    partial: float | None = None


@dataclass(frozen=True)
class Benchmark:
    """A benchmark with its items and rules.

    ``parse`` turns a model output into an answer, or None where there is none: an unparsable output is wrong,
    never guessed. A parsed answer is decided in one of two ways: by ``score``, a pure function, or, where it is a
    program, by ``submission``, which says what the sandbox has to run.

    ``has_partial`` says that answers can be right in part (:attr:`Score.partial`); an unparsable output has 0 then.

    ``joined`` holds the pairs of items that were put into one family because they are near-identical, with the
    evidence. ``chance`` is the expected accuracy of a parsable guess. ``task`` is set where lm-eval evaluates and
    scores the items itself (:func:`softcontam.evaluation.lm_eval_tasks.run_task`).
    """

    name: str
    items: tuple[Item, ...]
    chance: float
    response_style: str
    source: Source
    parse: Callable[[Item, str], str | None]
    score: Callable[[Item, str], Score] | None = None
    submission: Callable[[Item, str], Submission] | None = None
    has_partial: bool = False
    joined: tuple[NearPair, ...] = ()
    task: LmEvalTask | None = None

    def families(self) -> dict[str, list[Item]]:
        """Items by family, in the order of the benchmark."""
        grouped: dict[str, list[Item]] = {}
        for item in self.items:
            grouped.setdefault(item.family, []).append(item)
        return grouped

    def limited(self, max_items: int | None) -> Benchmark:
        """The first families that together hold at most ``max_items`` items; all of them for None.

        Raises:
            ConfigError: the first family is larger.
        """
        if max_items is None:
            return self
        kept: list[Item] = []
        for members in self.families().values():
            if len(kept) + len(members) > max_items:
                break
            kept.extend(members)
        if not kept and self.items:
            first = len(self.families()[self.items[0].family])
            raise ConfigError(
                f"benchmark {self.name}: max_items={max_items} is less than its first family has items ({first}). "
                f"Raise max_items to at least {first}."
            )
        return replace(self, items=tuple(kept))


@dataclass(frozen=True)
class ItemSet:
    """Items of one benchmark in one role: seen, held_out, related or general."""

    role: str
    benchmark: Benchmark
    items: tuple[Item, ...]

    @property
    def chance(self) -> float:
        """The expected accuracy of a parsable guess: the mean over families of the mean of ``meta["chance"]`` in each.

        It is over families as accuracies are, and that of the whole benchmark where an item does not have its own, or
        there is no item.
        """
        by_family: dict[str, list[float]] = {}
        for item in self.items:
            if item.meta.get("chance") is None:
                return self.benchmark.chance
            by_family.setdefault(item.family, []).append(float(item.meta["chance"]))
        return fmean(map(fmean, by_family.values())) if by_family else self.benchmark.chance


def load_benchmark(config: BenchmarkConfig | EvalBenchmark, data: Path) -> Benchmark:
    """Load ``softcontam.benchmarks.<module>`` with its settings.

    Args:
        data: the folder of local data (``paths.data``) that relative paths of the config refer to.

    Raises:
        ConfigError: no such module.
        DataError: the items cannot be read, or two have the same id.
    """
    try:
        module = importlib.import_module(f"softcontam.benchmarks.{config.module}")
    except ModuleNotFoundError as error:
        if error.name != f"softcontam.benchmarks.{config.module}":
            raise
        known = ", ".join(
            sorted(path.stem for path in Path(__file__).parent.glob("*.py") if "\ndef load(" in path.read_text("utf-8"))
        )
        raise ConfigError(f"benchmark module {config.module!r} does not exist. There are: {known}.") from None
    benchmark: Benchmark = module.load(config, data)
    repeated = [item_id for item_id, count in Counter(item.item_id for item in benchmark.items).items() if count > 1]
    if repeated:
        raise DataError(f"benchmark {config.name}: item id {repeated[0]!r} occurs more than once")
    styled = tuple(replace(item, response_style=benchmark.response_style) for item in benchmark.items)
    return replace(benchmark, items=styled)
