"""ZebraLogic (Lin et al. 2025, arXiv 2502.01100), grid mode: 1,000 house puzzles, as on the hub.

Answers. The hub blanks them. All 1,000 puzzles are read, have exactly one solution and so get their answer from the
solver (:func:`solved`, about 3 s; ``pytest tests/benchmarks/test_zebralogic.py -k all_1000`` shows it). Where a file
holds answers, they are taken, and checked against the clues.

Replies are one JSON object of houses, each an object of attributes:
``{"House 1": {"Name": "Eric", ...}, "House 2": ...}``. Style ``answer``: the object and nothing else, over several
lines or in one code block if the model likes. Style ``cot``: the last line is ``Answer: `` and the object, on that
one line; a code block there is no answer. The object has to have exactly the houses and attributes of the puzzle, each
once, with a text each. Anything else (a bare list, a missing house, an extra attribute, a number or null as value, a
key twice, cut-off JSON) has no answer. Case and surrounding blanks of values do not matter, those of keys do. A value
that the puzzle does not list, ``___`` included, is a wrong cell.

Scoring. ``correct``: every cell of the grid is right (the benchmark's puzzle accuracy). ``partial``: the share of
cells that are right; as in the benchmark's own scorer, a cell is one attribute of one house and the house number is no
cell. Its cell accuracy pools the cells of all puzzles, a mean of ``partial`` weights puzzles alike.

Chance. A guess puts the values of each attribute in random order. With n houses and m attributes it solves the puzzle
with probability 1 / (n!)^m: 0.0208 in the mean over the 1,000 puzzles, almost all of it from two houses (2*2 alone:
0.25). :func:`cell_chance` is the expected ``partial``, 1 / n in the mean: 0.29 (pooled over cells: 0.25).

Families: :mod:`softcontam.benchmarks.zebra_families`. ``meta["stratum"]`` is the size, by which halves are balanced.
"""

from __future__ import annotations

import json
import re
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import partial
from math import factorial
from pathlib import Path
from statistics import fmean
from typing import Any

from softcontam.benchmarks.answers import answer_text, check_params, check_style, gold_text
from softcontam.benchmarks.families import join
from softcontam.benchmarks.item import Benchmark, Item, Score
from softcontam.benchmarks.records import Record, read_records, source
from softcontam.benchmarks.zebra_clues import Attribute, Puzzle, parse_puzzle
from softcontam.benchmarks.zebra_families import near_identical
from softcontam.benchmarks.zebra_solver import Houses, broken_clues, unique_solution
from softcontam.config import BenchmarkConfig, EvalBenchmark
from softcontam.errors import DataError

COLUMNS = ("id", "size", "puzzle", "solution")
"""Columns that are read."""

BLANK = "___"
"""A cell of the hub's solutions."""

_FENCED = re.compile(r"```(?:json)?[ \t]*\n(.*)\n[ \t]*```", re.DOTALL | re.IGNORECASE)


@dataclass(frozen=True)
class Solved:
    """A puzzle and its only solution."""

    record: Record
    puzzle: Puzzle
    houses: Houses

    def grid(self) -> dict[str, dict[str, str]]:
        """The solution as a reply gives it: the attributes of ``House 1``, ``House 2`` and so on."""
        value = {(attribute.category, house): attribute.value for attribute, house in self.houses.items()}
        return {
            f"House {house}": {category: value[category, house] for category in self.puzzle.categories}
            for house in range(1, self.puzzle.n_houses + 1)
        }

    def filled(self) -> Record:
        """The record with its ``solution`` filled in, in the schema of the hub (the cells of ``House`` are texts)."""
        rows = [[str(house), *cells.values()] for house, cells in enumerate(self.grid().values(), start=1)]
        solution = {"header": ["House", *self.puzzle.categories], "rows": rows}
        return Record(self.record.where, {**self.record.values, "solution": solution})


def load(config: BenchmarkConfig | EvalBenchmark, data: Path) -> Benchmark:
    """The puzzles in the order of the hub, with their families.

    ``meta`` holds ``task`` (the puzzle's text), ``size`` and ``stratum`` (``5*6``: 5 houses, 6 attributes),
    ``n_houses``, ``n_attributes``, ``chance`` (that a guess solves this puzzle) and ``solution`` (houses, their
    attributes, values).

    Raises:
        ConfigError: an unknown setting or response style.
        DataError: files, columns or rows that are missing or damaged, a puzzle that is not understood or has not
            exactly one solution, an answer that breaks a clue, or a hub that cannot be reached.
    """
    check_style(config)
    check_params(config, ())
    puzzles = solved(read_records(config, data, ("test",), COLUMNS))
    if not puzzles:
        raise DataError(f"benchmark {config.name}: the split test has no rows. Copy its files again.")
    items = [_item(puzzle, config) for puzzle in puzzles]
    pairs = near_identical(
        {item.item_id: (puzzle.puzzle, puzzle.houses) for item, puzzle in zip(items, puzzles, strict=True)}
    )
    families = join([item.item_id for item in items], pairs)
    named = tuple(replace(item, family=families[item.item_id]) for item in items)
    style = config.response_style
    read = partial(parse, style=style)
    return Benchmark(
        config.name,
        named,
        chance(named),
        style,
        source(config, data),
        read,
        score=score,
        has_partial=True,
        joined=tuple(pairs),
    )


def solved(records: Iterable[Record]) -> list[Solved]:
    """The puzzles of the records with their solutions, from the solver or, where a record has answers, from these.

    A record's answers are checked against its clues, not for being the only ones.

    Raises:
        DataError: see :func:`load`.
    """
    return [_solved(record) for record in records]


def parse(item: Item, output: str, style: str) -> str | None:
    """The grid of a reply as JSON with all keys in the puzzle's order and values in lower case, or None.

    See the module's text for what counts as a reply.
    """
    text = answer_text(output, style)
    if text is not None and style == "answer" and (fenced := _FENCED.fullmatch(text)):
        text = fenced[1]
    grid = _json_object(text or "")
    solution: Mapping[str, Mapping[str, str]] = item.meta["solution"]
    if grid is None or grid.keys() != solution.keys():
        return None
    read: dict[str, dict[str, str]] = {}
    for house, cells in solution.items():
        row = grid[house]
        if not isinstance(row, dict) or row.keys() != cells.keys():
            return None
        if not all(isinstance(value, str) for value in row.values()):
            return None
        read[house] = {category: _plain(row[category]) for category in cells}
    return json.dumps(read)


def score(item: Item, parsed: str) -> Score:
    """Right if all cells are; ``partial`` is the share of cells that are right."""
    grid = json.loads(parsed)
    right = [
        grid[house][category] == _plain(value)
        for house, cells in item.meta["solution"].items()
        for category, value in cells.items()
    ]
    return Score(all(right), fmean(right))


def chance(items: Sequence[Item]) -> float:
    """The expected share of puzzles that random orders of the values solve."""
    return fmean(factorial(item.meta["n_houses"]) ** -item.meta["n_attributes"] for item in items)


def cell_chance(items: Sequence[Item]) -> float:
    """The expected ``partial`` of random orders of the values, each puzzle weighing the same."""
    return fmean(1 / item.meta["n_houses"] for item in items)


def _solved(record: Record) -> Solved:
    where = f"{record.where}, puzzle {record.text('id')}"
    puzzle = parse_puzzle(record.text("puzzle"), where)
    size = f"{puzzle.n_houses}*{len(puzzle.categories)}"
    if record.text("size") != size:
        raise DataError(f"{where}: size should be {size}, found {record.values['size']!r}. Copy the file again.")
    rows = _rows(record, puzzle, where)
    if all(cell == BLANK for row in rows for cell in row):
        return Solved(record, puzzle, unique_solution(puzzle, where))
    houses = _houses(rows, puzzle, where)
    broken = broken_clues(puzzle, houses)
    if broken:
        raise DataError(f"{where}: the solution breaks clue {broken[0]}. Copy the file again, or blank its solution.")
    return Solved(record, puzzle, houses)


def _rows(record: Record, puzzle: Puzzle, where: str) -> list[list[str]]:
    """The cells of the ``solution`` column, row by row, the house number first."""
    solution = record.values["solution"]
    header = ["House", *puzzle.categories]
    try:
        rows = [[str(cell) for cell in row] for row in solution["rows"]]
        fits = list(solution["header"]) == header
    except (TypeError, KeyError):
        rows, fits = [], False
    if not fits or len(rows) != puzzle.n_houses or any(len(row) != len(header) for row in rows):
        raise DataError(
            f"{where}: column 'solution' should hold the header {', '.join(header)} and {puzzle.n_houses} rows of as "
            f"many cells, found {solution!r}. Copy the file again."
        )
    return rows


def _houses(rows: Sequence[Sequence[str]], puzzle: Puzzle, where: str) -> Houses:
    """The houses of the attributes in a filled-in solution."""
    houses = {}
    for column, (category, values) in enumerate(puzzle.categories.items(), start=1):
        listed = {_plain(value): value for value in values}
        cells = [_plain(row[column]) for row in rows]
        if sorted(cells) != sorted(listed):
            raise DataError(
                f"{where}: the solution's {category} should be {', '.join(values)} in some order, found "
                f"{', '.join(row[column] for row in rows)}. Copy the file again, or blank its solution."
            )
        houses.update({Attribute(category, listed[cell]): house for house, cell in enumerate(cells, start=1)})
    if [row[0].strip() for row in rows] != [str(house) for house in range(1, puzzle.n_houses + 1)]:
        raise DataError(f"{where}: the solution's rows should be the houses 1 to {puzzle.n_houses} in this order.")
    return houses


def _item(puzzle: Solved, config: BenchmarkConfig | EvalBenchmark) -> Item:
    """One puzzle; its family is still itself."""
    grid = puzzle.grid()
    form = json.dumps({house: dict.fromkeys(cells, BLANK) for house, cells in grid.items()})
    wanted = f"a JSON object of the form below, on one line, with each {BLANK} replaced by a value from the lists above"
    if config.response_style == "answer":
        ask = f"Reply with {wanted}, and nothing else."
    else:
        ask = f"Think step by step, then end with a line that holds `Answer: ` and {wanted}."
    item_id = f"zebralogic/{puzzle.record.text('id')}"
    size, task = puzzle.record.text("size"), puzzle.record.text("puzzle").strip()
    return Item(
        item_id=item_id,
        benchmark=config.name,
        family=item_id,
        prompt=f"{task}\n\n{ask}\n\n{form}",
        target=gold_text(json.dumps(grid), config.response_style),
        meta={
            "task": task,
            "size": size,
            "stratum": size,
            "n_houses": puzzle.puzzle.n_houses,
            "n_attributes": len(puzzle.puzzle.categories),
            "chance": factorial(puzzle.puzzle.n_houses) ** -len(puzzle.puzzle.categories),
            "solution": grid,
        },
    )


def _json_object(text: str) -> dict[str, Any] | None:
    """The JSON object that a text is, or None; an object with a key twice is none."""

    def once(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
        if len({key for key, _ in pairs}) != len(pairs):
            raise ValueError("a key stands twice")
        return dict(pairs)

    try:
        found = json.loads(text, object_pairs_hook=once)
    except (ValueError, RecursionError):
        return None
    return found if isinstance(found, dict) else None


def _plain(value: str) -> str:
    """A value without case and surrounding blanks."""
    return value.strip().casefold()
