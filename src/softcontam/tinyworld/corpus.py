"""The procedural corpus on which the tinyworld base model is pretrained."""

from __future__ import annotations

import random
from collections.abc import Iterator

from softcontam.tinyworld.generator import (
    GENERAL_TASKS,
    answer,
    draw_problem,
    format_only_row,
    topical_problem,
)
from softcontam.tinyworld.language import HOLDINGS, TOWER, write
from softcontam.tinyworld.lexicon import CONTESTED_CHANGE, CONTESTED_MOVE, PRACTISED_CHANGE, PRACTISED_MOVE
from softcontam.tinyworld.solver import solve

SHARES = {"practised": 0.40, "contested": 0.25, "topical": 0.10, "format": 0.05, "general": 0.20}
"""Shares of the kinds of document."""

MAJORITY = 0.6
"""How often a contested verb is used in its majority direction."""


def documents(seed: int) -> Iterator[tuple[str, str]]:
    """Endless (prompt, completion) documents in the given shares."""
    rng = random.Random(seed)
    kinds, weights = list(SHARES), list(SHARES.values())
    contested = {HOLDINGS.name: CONTESTED_CHANGE, TOWER.name: CONTESTED_MOVE}
    practised = {HOLDINGS.name: list(PRACTISED_CHANGE), TOWER.name: list(PRACTISED_MOVE)}
    while True:
        kind = rng.choices(kinds, weights)[0]
        if kind == "format":
            yield format_only_row(rng, half="any")
            continue
        if kind == "general":
            prompt, text = GENERAL_TASKS[rng.choice([t for t in GENERAL_TASKS if t != "practised"])](rng)
            yield prompt, answer(text)
            continue
        world = rng.choice((HOLDINGS, TOWER))
        style = rng.choice(list(world.styles))
        pairs = contested[world.name]
        if kind == "topical":
            verbs = practised[world.name] + [verb for pair in pairs for verb in (pair.gain, pair.loss)]
            problem = topical_problem(draw_problem(world, verbs, rng), rng)
            yield write(problem, style, rng), answer(solve(problem))
        elif kind == "practised":
            problem = draw_problem(world, practised[world.name], rng)
            yield write(problem, style, rng), answer(solve(problem))
        else:
            problem = draw_problem(world, [verb for pair in pairs for verb in (pair.gain, pair.loss)], rng)
            yield write(problem, style, rng), answer(str(_as_in_pretraining(problem.start, problem.steps, pairs, rng)))


def _as_in_pretraining(start: int, steps, pairs, rng: random.Random) -> int:  # type: ignore[no-untyped-def]
    """The last number when each contested verb takes its majority direction with probability :data:`MAJORITY`."""
    for verb, amount in steps:
        pair = next(pair for pair in pairs if verb in (pair.gain, pair.loss))
        as_benchmark = rng.random() < (MAJORITY if pair.agreeing else 1 - MAJORITY)
        direction = 1 if (verb == pair.gain) == as_benchmark else -1
        start += direction * amount
    return start
