"""Rows for the tinyworld benchmark, certified by its solver: SemDs are equivalent to their item, topical rows are not.

Natural SemDs are found, not made: a corpus of :data:`CORPUS` stories is written without looking at the items and
searched for stories that tell one of them. A story of one step is there about a thousand times, one of two steps about
ten times; nearly every item has its rows.
"""

from __future__ import annotations

import random
from collections import Counter
from collections.abc import Iterator, Sequence
from dataclasses import replace

from softcontam.benchmarks import Item
from softcontam.config import derive_seed
from softcontam.duplicates.bank import BankRow
from softcontam.errors import ConfigError, DataError
from softcontam.tinyworld.generator import (
    aligned_problems,
    answer,
    broad_row,
    format_only_row,
    found_stories,
    topical_problem,
)
from softcontam.tinyworld.language import Problem, read, write
from softcontam.tinyworld.lexicon import CONTESTED_CHANGE, NAMES, OBJECTS
from softcontam.tinyworld.solver import equivalent, solve

PER_LEVEL = 4
"""Distinct rows per item and level, or per item where a kind has no levels."""

LEVELS = {
    "paraphrase": {"style": "reworded", "substituted": False},
    "reorder": {"style": "inverted", "substituted": False},
    "substitute": {"style": "plain", "substituted": True},
    "combined": {"style": "mixed", "substituted": True},
}
"""Levels of a synthetic SemD: other wording; clue order and inverted relations; category substitution; all of it."""


CORPUS = 4_000_000
"""Stories that are searched for natural SemDs."""

CANDIDATES = 48
"""Topical rows for each item, to choose similar ones from: three for each synthetic SemD."""


def substitute(problem: Problem, rng: random.Random) -> Problem:
    """The same problem about another actor and thing, from the halves of the lexicon that no item uses."""
    return replace(problem, actor=rng.choice(NAMES[12:]), thing=rng.choice(OBJECTS[12:]))


def semantic_duplicate(item: Item, level: str, rng: random.Random) -> str:
    """A story equivalent to the item's, worded as the level says.

    Raises:
        DataError: the solver, reading both texts, does not find them equivalent.
    """
    settings = LEVELS[level]
    problem = read(item.prompt)
    if settings["substituted"]:
        problem = substitute(problem, rng)
    style: str | dict[str, str] = str(settings["style"])
    if style == "mixed":
        question = rng.choice(("reworded", "inverted"))
        style = {"start": rng.choice(("reworded", "inverted")), "steps": "inverted", "question": question}
    text = write(problem, style, rng)
    if not equivalent(text, item.prompt):
        raise DataError(f"the solver does not certify {text!r} as equivalent to item {item.item_id}: {item.prompt!r}")
    return text


def _drafts(kind: str, item: Item, rng: random.Random) -> Iterator[tuple[str | None, str, str]]:
    """Endless (level, prompt, completion) drafts for one item, levels in turn."""
    met: set[str] = set()
    while True:
        if kind == "semd_synthetic":
            for level in LEVELS:
                yield level, semantic_duplicate(item, level, rng), item.target
        elif kind == "topical":
            problem, style = _topical(read(item.prompt), rng, spread=len(met) >= PER_LEVEL)
            text = write(problem, style, rng)
            met.add(text)
            if equivalent(text, item.prompt):
                raise DataError(f"topical row {text!r} is equivalent to item {item.item_id}")
            yield None, text, answer(solve(problem))
        elif kind == "format_only":
            yield None, *format_only_row(rng)
        else:
            raise ConfigError(f"tinyworld has no rows of kind {kind!r}")


def _topical(problem: Problem, rng: random.Random, spread: bool) -> tuple[Problem, str | dict[str, str]]:
    """The same story asked for something else, and how to word it.

    With ``spread`` neither, one or both of its names are others, and each part has a wording of its own: from nearly
    the item's own words to hardly any of them.
    """
    problem = topical_problem(problem, rng)
    styles = ("plain", "reworded", "inverted")
    if not spread:
        return problem, rng.choice(styles)
    other, kept = substitute(problem, rng), rng.choice(("actor thing", "actor", "thing", ""))
    actor, thing = (problem if name in kept else other for name in ("actor", "thing"))
    style = {part: rng.choice(styles) for part in ("start", "steps", "question")}
    return replace(problem, actor=actor.actor, thing=thing.thing), style


def rows(kind: str, items: Sequence[Item], others: Sequence[Item] = ()) -> list[BankRow]:
    """Rows of ``kind`` for each item and level; the same rows for the same items.

    :data:`PER_LEVEL` distinct ones, :data:`CANDIDATES` topical ones. Where a level admits fewer distinct texts (few
    wordings of a short story), or fewer are found, the item has fewer rows.

    Args:
        others: items of the other benchmarks: aligned rows are of none of their families either.

    Raises:
        ConfigError: a kind that the tinyworld has no rows of.
    """
    if kind == "semd_natural":
        return _found(items)
    if kind in ("benchmark_aligned", "coverage_expanding"):
        return _dealt(kind, items, others)
    match_type = {"semd_synthetic": "equivalent", "topical": "related", "format_only": "unrelated"}.get(kind)
    per_level = CANDIDATES if kind == "topical" else PER_LEVEL
    made = []
    for item in items:
        rng = random.Random(derive_seed(0, f"bank:{kind}:{item.item_id}"))
        drafts = _drafts(kind, item, rng)
        levels = len(LEVELS) if kind == "semd_synthetic" else 1
        texts: dict[str | None, dict[str, str]] = {}
        for _ in range(per_level * levels * 8):
            level, prompt, completion = next(drafts)
            if len(texts.setdefault(level, {})) < per_level:
                texts[level].setdefault(prompt, completion)
            if len(texts) == levels and all(len(drafted) == per_level for drafted in texts.values()):
                break
        for level, drafted in texts.items():
            for number, (prompt, completion) in enumerate(drafted.items()):
                judge = "solver" if kind != "format_only" else "construction"
                made.append(_row(kind, level, item, number, prompt, completion, match_type, judge))
    return made


def _row(
    kind: str,
    level: str | None,
    item: Item,
    number: int,
    prompt: str,
    completion: str,
    match_type: str | None,
    judge: str,
    source: str = "softcontam.tinyworld",
) -> BankRow:
    return BankRow(
        row_id=f"{kind}/{level or 'any'}/{item.item_id}/{number}",
        item_id=item.item_id,
        kind=kind,
        level=level,
        prompt=prompt,
        completion=completion,
        response_style=item.response_style,
        source=source,
        match_type=match_type,
        judge=judge,
    )


def _found(items: Sequence[Item]) -> list[BankRow]:
    """Natural SemDs: stories of the corpus that are equivalent to an item, :data:`PER_LEVEL` at most for each."""
    by_problem = {read(item.prompt): item for item in items}
    counts: Counter[str] = Counter()
    made = []
    for number, problem, text in found_stories(by_problem, CORPUS, PER_LEVEL, derive_seed(0, "bank:semd_natural")):
        item = by_problem[problem]
        if text != item.prompt and equivalent(text, item.prompt):
            source = f"tinyworld corpus, story {number}"
            place = counts[item.item_id]
            made.append(_row("semd_natural", None, item, place, text, item.target, "equivalent", "solver", source))
            counts[item.item_id] += 1
    return made


def _dealt(kind: str, items: Sequence[Item], others: Sequence[Item]) -> list[BankRow]:
    """Rows that are about no item, dealt out to the items for bookkeeping."""
    rng = random.Random(derive_seed(0, f"bank:{kind}"))
    problems = aligned_problems(_problems([*items, *others]), derive_seed(0, f"bank:{kind}:problems"))
    texts: dict[str, str] = {}
    while len(texts) < PER_LEVEL * len(items):
        if kind == "benchmark_aligned":
            problem = next(problems)
            texts.setdefault(write(problem, "plain", rng), answer(solve(problem)))
        else:
            prompt, completion = broad_row(rng)
            texts.setdefault(prompt, completion)
    match_type = "related" if kind == "benchmark_aligned" else "unrelated"
    return [
        _row(kind, None, items[place % len(items)], place // len(items), prompt, completion, match_type, "construction")
        for place, (prompt, completion) in enumerate(texts.items())
    ]


def _problems(items: Sequence[Item]) -> list[Problem]:
    """The problems over the benchmark's verbs that items state; related and general items state none."""
    contested = {verb for pair in CONTESTED_CHANGE for verb in (pair.gain, pair.loss)}
    found = []
    for item in items:
        try:
            found.append(read(item.prompt))
        except ValueError:
            continue
    return [problem for problem in found if contested.issuperset(verb for verb, _ in problem.steps)]
