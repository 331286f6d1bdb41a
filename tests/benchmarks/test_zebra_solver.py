from itertools import permutations, product
from pathlib import Path

import pandas as pd
import pytest

from softcontam.benchmarks.zebra_clues import Attribute, Clue, Puzzle, parse_puzzle
from softcontam.benchmarks.zebra_solver import Houses, broken_clues, solutions, unique_solution
from softcontam.errors import DataError

CATEGORIES = {"Name": ("Eric", "Alice", "Arnold"), "Pet": ("cat", "dog", "bird")}
ERIC, ALICE, CAT, DOG = (
    Attribute(*pair) for pair in (("Name", "Eric"), ("Name", "Alice"), ("Pet", "cat"), ("Pet", "dog"))
)
IN_ORDER = (Clue("in_house", (ERIC,), 1), Clue("directly_left_of", (ERIC, ALICE)))
"""Eric, Alice, Arnold."""


def puzzles(data_dir: Path, *sizes: str) -> list[Puzzle]:
    frame = pd.read_parquet(data_dir / "zebralogic" / "grid_mode" / "test-00000-of-00001.parquet")
    return [
        parse_puzzle(text, size) for size, text in zip(frame["size"], frame["puzzle"], strict=True) if size in sizes
    ]


def brute_force(puzzle: Puzzle) -> list[Houses]:
    """Every grid that meets all clues, found by trying all orders of all categories."""
    orders = [list(permutations(range(1, puzzle.n_houses + 1)))] * len(puzzle.categories)
    attributes = list(puzzle.attributes())
    grids = (dict(zip(attributes, sum(chosen, ()), strict=True)) for chosen in product(*orders))
    return [grid for grid in grids if all(clue.holds(grid) for clue in puzzle.clues)]


def test_the_only_grid_that_meets_the_clues_is_found() -> None:
    puzzle = Puzzle(3, CATEGORIES, (*IN_ORDER, Clue("same_house", (CAT, ALICE)), Clue("right_of", (DOG, CAT))))
    found = unique_solution(puzzle, "here")
    by_house = sorted((house, attribute.value) for attribute, house in found.items())
    assert by_house == [(1, "Eric"), (1, "bird"), (2, "Alice"), (2, "cat"), (3, "Arnold"), (3, "dog")]


def test_puzzle_with_two_solutions_is_refused_and_says_what_is_open() -> None:
    puzzle = Puzzle(3, CATEGORIES, (*IN_ORDER, Clue("in_house", (CAT,), 1)))
    assert len(list(solutions(puzzle))) == 2
    with pytest.raises(DataError, match=r"row 3, puzzle x: the clues allow more than one grid \(Pet 'dog' fits house"):
        unique_solution(puzzle, "row 3, puzzle x")


def test_puzzle_without_a_solution_is_refused() -> None:
    puzzle = Puzzle(3, CATEGORIES, (*IN_ORDER, Clue("not_in_house", (ALICE,), 2)))
    with pytest.raises(DataError, match="row 3, puzzle x: the clues contradict each other"):
        unique_solution(puzzle, "row 3, puzzle x")


def test_clues_that_a_grid_breaks_are_counted_from_1() -> None:
    puzzle = Puzzle(3, CATEGORIES, (*IN_ORDER, Clue("next_to", (CAT, DOG))))
    grid = {ERIC: 1, ALICE: 3, Attribute("Name", "Arnold"): 2, CAT: 1, DOG: 3, Attribute("Pet", "bird"): 2}
    assert broken_clues(puzzle, grid) == [2, 3]


def test_brute_force_finds_the_same_single_grid_in_all_puzzles_of_up_to_1296_grids(data_dir: Path) -> None:
    small = puzzles(data_dir, "2*2", "2*3", "2*4", "2*5", "2*6", "3*2", "3*3", "3*4", "4*2")
    assert len(small) == 360
    for puzzle in small:
        assert brute_force(puzzle) == [unique_solution(puzzle, "here")]


@pytest.mark.slow
def test_brute_force_finds_the_same_single_grid_in_all_puzzles_of_up_to_46656_grids(data_dir: Path) -> None:
    larger = puzzles(data_dir, "3*5", "3*6", "4*3", "5*2")
    assert len(larger) == 160
    for puzzle in larger:
        assert brute_force(puzzle) == [unique_solution(puzzle, "here")]
