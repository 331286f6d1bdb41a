"""Rows that stand for no item in particular: other rows of the benchmark's kind, rows chosen for breadth, format alone.

They come from a JSONL corpus (``path``), or from another split of the benchmark: with ``params.benchmark``, ``path`` is
that split's folder and ``params.benchmark`` the ``params`` of the benchmark's module that it is loaded with, so prompt
and answer have the benchmark's own template. Which item a row is handed to is bookkeeping: every item gets one before
any gets a second, up to ``params.per_item``.

What is taken, and in which order:

* ``benchmark_aligned`` (Benchmark Shadows, arXiv 2604.07363): rows of another split, in an order drawn at random.
* ``coverage_expanding`` (the same): rows of a corpus, greedily the one farthest from those taken before (Gonzalez 1985,
  k-center), in the space of latent semantic analysis (:data:`DIMENSIONS` dimensions of the TF-IDF vectors). The first
  is the one nearest to the corpus as a whole.
* ``format_only``: rows of a corpus in an order drawn at random, which a low ``params.max_cosine`` keeps far from every
  item; or, with ``params.template: item``, made-up questions whose answer only has to be read off
  (:mod:`softcontam.duplicates.lookup`), in the prompt of an item that asks for a number.

No row is a possible duplicate of an item, of a known rewording of one (``params.rewordings``, JSONL files of labelled
pairs), or of an item of the other benchmarks: it is left out if

* its TF-IDF cosine to any of them is ``params.max_cosine`` or more: for Python as in
  :mod:`softcontam.duplicates.nearest`, for all else over words without numbers, so that other numbers in the same words
  count as a duplicate;
* its code differs from the solution of an item in names only;
* it is of another split, and the benchmark's own rule (``near_identical`` of its module) would put it into one family
  with an item.

``params.template`` for rows of a corpus: ``python`` keeps only rows whose answer is Python and words prompt and answer
as the benchmark does; ``verbatim`` (default) takes both turns as they are, whose ``response_style`` is ``corpus``.

What was seen with the ceilings in ``conf/benchmark``. MBPP, tasks of the full set that are not in the sanitized one:
both are made of the same few words (reverse, count, tuple, list), so that a low ceiling leaves few (of 547, for the 129
items with rewrites and topical rows: 236 below 0.4, 377 below 0.5, 449 below 0.6). From 0.6 to 0.5 the nearest pairs
are other tasks about the same things (is a list a subset of another; are all characters the same, or unique), below
0.5 a few mirror images are left (n cheapest, n most expensive items; 0.46), which are no duplicates. GSM8K, training
problems: from 0.9 to 0.7 there are test problems with other numbers (a train, a plane travels n miles in 3 hours),
below 0.6 the pairs that were looked at share a subject only.
"""

from __future__ import annotations

import importlib
import random
import re
from collections.abc import Sequence
from dataclasses import dataclass, replace
from pathlib import Path

import numpy as np
from sklearn.decomposition import TruncatedSVD
from sklearn.feature_extraction.text import TfidfVectorizer
from sklearn.preprocessing import normalize

from softcontam.benchmarks import Item, load_benchmark
from softcontam.benchmarks.answers import gold_text
from softcontam.benchmarks.families import join
from softcontam.benchmarks.python_code import fence, parse_block, task_prompt
from softcontam.config import BankConfig, BenchmarkConfig, derive_seed
from softcontam.duplicates.bank import BankRow
from softcontam.duplicates.jsonl import bank_file, check_params
from softcontam.duplicates.lookup import lookup
from softcontam.duplicates.nearest import (
    cosines,
    known_rewordings,
    python_answer,
    read_corpus,
    same_code,
    task_words,
)
from softcontam.errors import ConfigError, DataError

KINDS = ("benchmark_aligned", "coverage_expanding", "format_only")
"""Kinds that this source has rows of."""

TEMPLATES = ("python", "verbatim", "item")
"""How a row is worded."""

DIMENSIONS = 100
"""Dimensions of the space that rows are spread over."""


@dataclass(frozen=True)
class _Candidate:
    """A row before it is handed to an item. ``task`` is what it is about, without wording that all rows share."""

    row_id: str
    task: str
    prompt: str
    completion: str
    style: str


@dataclass(frozen=True)
class _Settings:
    """The checked settings of a bank."""

    kind: str
    ceiling: float
    per_item: int
    template: str
    split: dict[str, object] | None


def rows(
    kind: str,
    config: BankConfig,
    benchmark: BenchmarkConfig,
    items: Sequence[Item],
    data: Path,
    others: Sequence[Item] = (),
) -> list[BankRow]:
    """Up to ``params.per_item`` rows of ``kind`` for each item, fewer where the source runs out; no row twice.

    Args:
        benchmark: the benchmark that the items are of; another split of it is loaded with its module and style.
        others: items of the other benchmarks, none of which a row duplicates either.

    Raises:
        ConfigError: a kind that this source does not have, no path, or parameters that are missing or out of range.
        DataError: a missing or damaged file, or no usable row at all.
    """
    settings = _settings(kind, config)
    if settings.template == "item":
        return _lookups(items, settings.per_item)
    if settings.split is not None:
        found = _other_split(benchmark, config, settings.split, items, data)
    else:
        found = _corpus(bank_file(config, data), settings.template, items[0].response_style)
    found = _allowed(found, config, settings, items, others, data)
    if not found:
        raise DataError(
            f"{data / str(config.path)} has no row of kind {kind} that is no possible duplicate of an item. "
            "Raise params.max_cosine, or use another corpus or template."
        )
    wanted = settings.per_item * len(items)
    if kind == "coverage_expanding":
        taken = spread([one.task for one in found], wanted)
    else:
        taken = random.Random(derive_seed(0, f"bank:{kind}")).sample(range(len(found)), len(found))[:wanted]
    judge = f"tfidf<{settings.ceiling:g}"
    return [
        BankRow(
            row_id=f"{kind}/{found[index].row_id}",
            item_id=items[place % len(items)].item_id,
            kind=kind,
            level=None,
            prompt=found[index].prompt,
            completion=found[index].completion,
            response_style=found[index].style,
            source=f"{config.path} {found[index].row_id}",
            match_type="related" if kind == "benchmark_aligned" else "unrelated",
            judge=judge,
        )
        for place, index in enumerate(taken)
    ]


def spread(texts: Sequence[str], count: int) -> list[int]:
    """Indices of up to ``count`` texts, each the farthest (by cosine) from all before it; ties in the order of texts.

    Texts without a word of their own have no place in the space and are passed over.
    """
    weights = TfidfVectorizer(analyzer=story_words, sublinear_tf=True).fit_transform(texts)
    if min(weights.shape) > DIMENSIONS:
        # arpack from a fixed start: the randomized solver's last digits depend on threads
        points = TruncatedSVD(DIMENSIONS, algorithm="arpack", random_state=0).fit_transform(weights)
    else:
        points = weights.toarray()
    points = normalize(points)
    placed = np.flatnonzero(np.linalg.norm(points, axis=1))
    if not len(placed):
        return []
    points = points[placed]
    # rounded, so that what differs by a last digit between machines is a tie everywhere
    taken = [int(np.argmax((points @ points.mean(axis=0)).round(6)))]
    similarity = np.full(len(placed), -2.0)
    while len(taken) < min(count, len(placed)):
        similarity = np.maximum(similarity, (points @ points[taken[-1]]).round(6))
        similarity[taken[-1]] = np.inf
        taken.append(int(np.argmin(similarity)))
    return [int(placed[index]) for index in taken[:count]]


def story_words(text: str) -> list[str]:
    """The words of a text that is no program, without their endings, numbers and stop words."""
    plain = re.sub(r"\s*\n\s*", " ", text)
    return [word for word in task_words(plain) if not any(letter.isdigit() for letter in word)]


def _settings(kind: str, config: BankConfig) -> _Settings:
    known: dict[str, type | tuple[type, ...]] = {"max_cosine": (int, float), "per_item": int, "rewordings": list}
    check_params(config, {**known, "template": str, "benchmark": dict})
    if kind not in KINDS:
        raise ConfigError(f"bank source corpus has no rows of kind {kind}, but of {', '.join(KINDS)}.")
    ceiling, per_item = config.params.get("max_cosine", 0.0), config.params.get("per_item", 0)
    template, split = config.params.get("template", "verbatim"), config.params.get("benchmark")
    if template not in TEMPLATES:
        raise ConfigError(f"bank source corpus: params.template={template!r}, expected one of {', '.join(TEMPLATES)}.")
    if per_item < 1:
        raise ConfigError(f"bank source corpus needs params.per_item of at least 1, found {per_item}.")
    if template == "item":
        if kind != "format_only" or config.path is not None or set(config.params) - {"template", "per_item"}:
            raise ConfigError(
                "bank source corpus: params.template=item makes rows of kind format_only and has params.per_item "
                "alone. Set path to null and drop the other params."
            )
        return _Settings(kind, 0.0, per_item, template, None)
    if not 0 < ceiling <= 1:
        raise ConfigError(f"bank source corpus needs params.max_cosine above 0 and at most 1, found {ceiling}.")
    if (kind == "benchmark_aligned") != (split is not None):
        raise ConfigError(
            "bank source corpus: params.benchmark (settings of another split) belongs to kind benchmark_aligned and to "
            f"no other; found {split} for {kind}."
        )
    if split is not None and "template" in config.params:
        raise ConfigError("bank source corpus: rows of another split have the benchmark's template. Drop template.")
    return _Settings(kind, float(ceiling), per_item, template, split)


def _other_split(
    benchmark: BenchmarkConfig, config: BankConfig, params: dict[str, object], items: Sequence[Item], data: Path
) -> list[_Candidate]:
    """The items of another split that are none of the whole benchmark, and in no family of these items."""
    bank_file(config, data)
    other = replace(benchmark, path=config.path, params={**benchmark.params, **params})
    own = {item.item_id for item in load_benchmark(benchmark, data).items}
    found = [item for item in load_benchmark(other, data).items if item.item_id not in own]
    module = importlib.import_module(f"softcontam.benchmarks.{benchmark.module}")
    if hasattr(module, "near_identical"):
        every = [*items, *found]
        families = join([item.item_id for item in every], module.near_identical(every))
        taken = {families[item.item_id] for item in items}
        found = [item for item in found if families[item.item_id] not in taken]
    return [_Candidate(item.item_id, item.text, item.prompt, item.target, item.response_style) for item in found]


def _corpus(path: Path, template: str, style: str) -> list[_Candidate]:
    """The rows of a corpus file that the template can use."""
    corpus = read_corpus(path)
    if template == "verbatim":
        return [_Candidate(row.row_id, row.user, row.user, row.assistant, "corpus") for row in corpus]
    return [
        _Candidate(row.row_id, row.user, task_prompt(row.user, style=style), fence(code), style)
        for row in corpus
        if (code := python_answer(row)) is not None
    ]


def _allowed(
    found: Sequence[_Candidate],
    config: BankConfig,
    settings: _Settings,
    items: Sequence[Item],
    others: Sequence[Item],
    data: Path,
) -> list[_Candidate]:
    """Those that are no possible duplicate; each text once."""
    python = settings.template == "python" or parse_block(items[0].target) is not None
    every = [*items, *others]
    known = [*(item.text for item in every), *known_rewordings(config, items, data)]
    tasks = [one.task for one in found]
    vectorizer = TfidfVectorizer(analyzer=task_words if python else story_words, sublinear_tf=True)
    vectorizer.fit([*known, *tasks])
    allowed = cosines(vectorizer, known, tasks).max(axis=0, initial=0.0) < settings.ceiling
    allowed &= ~same_code(every, [parse_block(one.completion) or "" for one in found])
    first: dict[tuple[str, str], _Candidate] = {}
    for one, fit in zip(found, allowed, strict=True):
        if fit:
            first.setdefault((one.prompt, one.completion), one)
    return list(first.values())


def _lookups(items: Sequence[Item], per_item: int) -> list[BankRow]:
    """Made-up questions in the prompts of these items.

    Raises:
        ConfigError: XX
    """
    made: list[BankRow] = []
    met: set[str] = set()
    for item in items:
        if "rationale" not in item.meta or item.prompt.count(item.text) != 1:
            raise ConfigError(
                "bank source corpus: params.template=item needs items whose answer is a number with a worked solution "
                f"(GSM8K); {item.item_id} has none. Use template python or verbatim with a corpus."
            )
        rng = random.Random(derive_seed(0, f"bank:format_only:{item.item_id}"))
        for number in range(per_item):
            question = lookup(rng)
            while question.text in met:
                question = lookup(rng)
            met.add(question.text)
            made.append(
                BankRow(
                    row_id=f"format_only/{item.item_id}/{number}",
                    item_id=item.item_id,
                    kind="format_only",
                    level=None,
                    prompt=item.prompt.replace(item.text, question.text),
                    completion=gold_text(question.answer, item.response_style, question.reading),
                    response_style=item.response_style,
                    source="softcontam.duplicates.lookup",
                    match_type="unrelated",
                    judge="construction",
                )
            )
    return made
