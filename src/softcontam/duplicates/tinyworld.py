"""Rows for the tinyworld benchmark: SemDs certified equivalent by the solver, topical rows certified not to be."""

from __future__ import annotations

import random
from collections.abc import Iterator, Sequence
from dataclasses import replace

from softcontam.benchmarks import Item
from softcontam.config import derive_seed
from softcontam.duplicates.bank import BankRow
from softcontam.errors import ConfigError, DataError
from softcontam.tinyworld.generator import answer, format_only_row, topical_problem
from softcontam.tinyworld.language import Problem, read, write
from softcontam.tinyworld.lexicon import NAMES, OBJECTS
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
    while True:
        if kind == "semd_synthetic":
            for level in LEVELS:
                yield level, semantic_duplicate(item, level, rng), item.target
        elif kind == "topical":
            problem = topical_problem(read(item.prompt), rng)
            text = write(problem, rng.choice(("plain", "reworded", "inverted")), rng)
            if equivalent(text, item.prompt):
                raise DataError(f"topical row {text!r} is equivalent to item {item.item_id}")
            yield None, text, answer(solve(problem))
        elif kind == "format_only":
            yield None, *format_only_row(rng)
        else:
            raise ConfigError(f"tinyworld has no rows of kind {kind!r}")


def rows(kind: str, items: Sequence[Item]) -> list[BankRow]:
    """:data:`PER_LEVEL` distinct rows of ``kind`` for each item and level; the same rows for the same items.

    Where a level admits fewer distinct texts than that (few wordings of a short story), the item has fewer rows.
    """
    match_type = {"semd_synthetic": "equivalent", "topical": "related", "format_only": "unrelated"}.get(kind)
    made = []
    for item in items:
        rng = random.Random(derive_seed(0, f"bank:{kind}:{item.item_id}"))
        drafts = _drafts(kind, item, rng)
        levels = len(LEVELS) if kind == "semd_synthetic" else 1
        texts: dict[str | None, dict[str, str]] = {}
        for _ in range(PER_LEVEL * levels * 8):
            level, prompt, completion = next(drafts)
            if len(texts.setdefault(level, {})) < PER_LEVEL:
                texts[level].setdefault(prompt, completion)
            if len(texts) == levels and all(len(drafted) == PER_LEVEL for drafted in texts.values()):
                break
        for level, drafted in texts.items():
            for number, (prompt, completion) in enumerate(drafted.items()):
                made.append(
                    BankRow(
                        row_id=f"{kind}/{level or 'any'}/{item.item_id}/{number}",
                        item_id=item.item_id,
                        kind=kind,
                        level=level,
                        prompt=prompt,
                        completion=completion,
                        response_style="answer",
                        source="softcontam.tinyworld",
                        match_type=match_type,
                        judge="solver" if kind != "format_only" else "construction",
                    )
                )
    return made
