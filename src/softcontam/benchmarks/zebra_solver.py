"""Solves ZebraLogic puzzles with python-constraint2, and demands that the solution is the only one.

Why this solver: on all 1,000 puzzles it and OR-Tools 9.15 (CP-SAT, one worker, all solutions enumerated) found the
same single solutions, in 2.7 and 1.2 s of CPU time. OR-Tools pins ``protobuf<6.34``, older than the one that wandb
brings; python-constraint2 depends on nothing.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from functools import partial
from itertools import islice

from constraint import AllDifferentConstraint, FunctionConstraint, Problem

from softcontam.benchmarks.zebra_clues import RELATIONS, Attribute, Puzzle
from softcontam.errors import DataError

Houses = Mapping[Attribute, int]
"""A solution: the house of each attribute, counted from 1 at the left."""


def solutions(puzzle: Puzzle) -> Iterator[Houses]:
    """All solutions, found one by one as they are asked for."""
    problem = Problem()
    problem.addVariables(list(puzzle.attributes()), range(1, puzzle.n_houses + 1))
    for category, values in puzzle.categories.items():
        problem.addConstraint(AllDifferentConstraint(), [Attribute(category, value) for value in values])
    for clue in puzzle.clues:
        problem.addConstraint(FunctionConstraint(partial(RELATIONS[clue.form], clue.number)), list(clue.attributes))
    found: Iterator[dict[Attribute, int]] = problem.getSolutionIter()
    return iter(found)


def unique_solution(puzzle: Puzzle, where: str) -> Houses:
    """The one solution of a puzzle.

    Args:
        where: file, row and puzzle id, for error messages.

    Raises:
        DataError: the clues allow no solution, or more than one.
    """
    found = list(islice(solutions(puzzle), 2))
    if not found:
        raise DataError(f"{where}: the clues contradict each other, no grid meets them all. Copy the file again.")
    if len(found) > 1:
        loose = next(attribute for attribute in puzzle.attributes() if found[0][attribute] != found[1][attribute])
        raise DataError(
            f"{where}: the clues allow more than one grid ({loose.category} {loose.value!r} fits house "
            f"{found[0][loose]} and house {found[1][loose]}). Copy the file again."
        )
    return found[0]


def broken_clues(puzzle: Puzzle, houses: Houses) -> list[int]:
    """The numbers of the clues, counted from 1, that a grid does not meet."""
    return [number for number, clue in enumerate(puzzle.clues, start=1) if not clue.holds(houses)]
