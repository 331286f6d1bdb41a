"""The exact solver of the tinyworld and the two certificates that rest on it."""

from __future__ import annotations

from dataclasses import replace

from softcontam.tinyworld.language import ACTOR, AMOUNT, FINAL, START, WORLDS, Problem, read


def solve(problem: Problem) -> str:
    """The answer to ``problem`` as text.

    Raises:
        ValueError: a verb that the problem's world does not have.
    """
    verbs = WORLDS[problem.world].verbs
    unknown = [verb for verb, _ in problem.steps if verb not in verbs]
    if unknown:
        raise ValueError(f"verb {unknown[0]!r} does not exist in the world {problem.world!r}")
    if problem.query == FINAL:
        return str(problem.start + sum(verbs[verb] * amount for verb, amount in problem.steps))
    if problem.query == START:
        return str(problem.start)
    if problem.query == AMOUNT:
        return str(problem.steps[0][1])
    if problem.query == ACTOR:
        return problem.actor
    raise ValueError(f"unknown question {problem.query!r}")


def equivalent(text: str, other: str) -> bool:
    """Whether two stories state the same problem up to a renaming of actor and thing, read from their words alone."""
    first, second = read(text), read(other)
    renamed = replace(second, actor=first.actor, thing=first.thing)
    return first == renamed and solve(first) == solve(second)
