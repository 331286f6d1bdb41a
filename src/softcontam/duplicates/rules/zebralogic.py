"""ZebraLogic: the same puzzle in other words, in another order, about other things (kind ``semd_synthetic``).

Levels, named after the paper's. ``paraphrase``: the opening, the headings of the lists and every clue are written in
wordings that the benchmark does not use. ``shuffle``: the lines of the benchmark with clues, lists and the values of a
list in another order. ``substitute``: categories and values are replaced one to one by others, names by other names,
in sentences of the benchmark's form. ``shuffle_paraphrase``, ``shuffle_substitute`` and
``shuffle_substitute_paraphrase`` do several of these. The reply is the item's solution in these words, its attributes
in the order of the lists.

Certified for each row, or the bank is not made: a reader that shares no table with the writer
(:mod:`~softcontam.duplicates.rules.zebralogic_reader`; for ``shuffle``, whose lines are the benchmark's own, the
benchmark's reader) reads the text back, the solver finds exactly one solution, and replacing the new words by the old
ones gives the item's lists, clues (as demands on the houses, in any order) and solution, which the reply states too.
All 1,000 puzzles have a row at every level.
"""

from __future__ import annotations

import json
import random
from collections import Counter
from collections.abc import Mapping, Sequence

from softcontam.benchmarks import Item
from softcontam.benchmarks.answers import answer_text, gold_text
from softcontam.benchmarks.zebra_clues import Attribute, Clue, Puzzle, parse_puzzle
from softcontam.benchmarks.zebra_solver import unique_solution
from softcontam.benchmarks.zebralogic import BLANK
from softcontam.config import BankConfig, derive_seed
from softcontam.duplicates.bank import BankRow
from softcontam.duplicates.distance import bigram_overlap
from softcontam.duplicates.rules.asked import levels_and_count
from softcontam.duplicates.rules.zebralogic_reader import read_puzzle
from softcontam.duplicates.rules.zebralogic_writer import replaced, replacements, reworded, shuffled, substituted
from softcontam.errors import DataError

LEVELS = (
    "paraphrase",
    "shuffle",
    "substitute",
    "shuffle_paraphrase",
    "shuffle_substitute",
    "shuffle_substitute_paraphrase",
)
"""What is changed."""

DRAFTS = 20
"""How often a level is drawn anew for a row whose text is that of another row, or the item's."""

Solution = Mapping[str, Mapping[str, str]]
"""Houses (``House 1``), their categories and values, as in an item's ``meta``."""


def rows(config: BankConfig, items: Sequence[Item]) -> list[BankRow]:
    """Rows for every item and level; the same rows for an item whatever items are beside it.

    ``params.levels`` selects levels, ``params.per_level`` (1) says how many different rows each is to have. Small
    puzzles have fewer orders than a large ``per_level`` asks for, and fewer rows then.

    Raises:
        ConfigError: an unknown level or parameter.
        DataError: a row that is not certified, or an item that is no ZebraLogic puzzle; names the item.
    """
    levels, per_level = levels_and_count(config, "zebralogic", LEVELS)
    made = []
    for item in items:
        if "solution" not in item.meta:
            raise DataError(f"item {item.item_id} is no ZebraLogic puzzle with its solution; its rules need one.")
        original = parse_puzzle(item.text, f"item {item.item_id}")
        for level in levels:
            texts = {item.prompt}
            for draft in range(per_level * DRAFTS):
                row = _row(item, original, level, draft, len(texts) - 1)
                if row.prompt not in texts:
                    texts.add(row.prompt)
                    made.append(row)
                if len(texts) > per_level:
                    break
    return made


def certify(
    read: Puzzle,
    answer: Solution,
    original: Puzzle,
    solution: Solution,
    words: Mapping[Attribute, Attribute],
    where: str,
) -> None:
    """Check that a puzzle is another one with other words, and its answer the other one's solution.

    Args:
        read: the puzzle as it was read from the new text, ``answer`` what its reply states.
        original: the item's puzzle, ``solution`` its solution.
        words: what stands for each value of the original.
        where: item and level, for the message.

    Raises:
        DataError: not certified, and why.
    """
    back = {new: old for old, new in words.items()}
    if len(back) != len(words) or set(words) != set(original.attributes()):
        raise DataError(f"{where}: not certified, the values are not replaced one to one.")
    if set(read.attributes()) != set(back) or read.n_houses != original.n_houses:
        raise DataError(f"{where}: not certified, the text does not list what the item lists.")
    listed = {
        frozenset(back[Attribute(category, value)] for value in values) for category, values in read.categories.items()
    }
    if listed != {
        frozenset(Attribute(category, value) for value in values) for category, values in original.categories.items()
    }:
        raise DataError(f"{where}: not certified, a list holds values of two lists of the item.")
    if demands(replaced(read, back).clues) != demands(original.clues):
        raise DataError(f"{where}: not certified, the clues do not say what those of the item say.")
    houses = unique_solution(read, where)
    if {back[attribute]: house for attribute, house in houses.items()} != _houses(solution):
        raise DataError(f"{where}: not certified, the text's solution is not the item's.")
    if dict(houses) != _houses(answer):
        raise DataError(f"{where}: not certified, the reply is not the text's solution.")


def demands(clues: Sequence[Clue]) -> Counter[Clue]:
    """The clues with one form for each demand: left instead of right, and attributes in a fixed order where it's free.

    "A is left of B" and "B is right of A" count as one.
    """
    counted: Counter[Clue] = Counter()
    for clue in clues:
        form, attributes = clue.form, clue.attributes
        if form in ("right_of", "directly_right_of"):
            form, attributes = form.replace("right", "left"), attributes[::-1]
        elif form in ("same_house", "next_to", "between"):
            attributes = tuple(sorted(attributes))
        counted[Clue(form, attributes, clue.number)] += 1
    return counted


def _row(item: Item, original: Puzzle, level: str, draft: int, number: int) -> BankRow:
    where = f"item {item.item_id}, level {level}"
    solution: Solution = item.meta["solution"]
    rng = random.Random(derive_seed(0, f"rules:zebralogic:{level}:{item.item_id}:{draft}"))
    parts = level.split("_")
    text, puzzle = item.text, original
    if "shuffle" in parts:
        text = shuffled(text, rng)
        puzzle = parse_puzzle(text, where)
    words = {attribute: attribute for attribute in puzzle.attributes()}
    if "substitute" in parts:
        words = replacements(puzzle, rng)
        puzzle = replaced(puzzle, words)
        text = substituted(puzzle)
    if "paraphrase" in parts:
        text = reworded(puzzle, rng)
    grid = {
        house: {new.category: new.value for new in (words[Attribute(*cell)] for cell in cells.items())}
        for house, cells in solution.items()
    }
    ordered = {house: {category: cells[category] for category in puzzle.categories} for house, cells in grid.items()}
    completion = gold_text(json.dumps(ordered), item.response_style)
    read = puzzle if level == "shuffle" else read_puzzle(text, where)
    stated = json.loads(answer_text(completion, item.response_style) or "null")
    certify(read, stated, original, solution, words, where)
    return BankRow(
        row_id=f"semd_synthetic/{level}/{item.item_id}/{number}",
        item_id=item.item_id,
        kind="semd_synthetic",
        level=level,
        prompt=_prompt(item, text, solution, ordered, where),
        completion=completion,
        response_style=item.response_style,
        source="softcontam.duplicates.rules.zebralogic",
        match_type="equivalent",
        judge="solver",
        ngram_overlap=round(bigram_overlap(text, item.text), 4),
    )


def _prompt(item: Item, text: str, solution: Solution, new: Solution, where: str) -> str:
    """The item's prompt with another puzzle and the blank form of its reply."""
    form = _form(solution)
    if item.prompt.count(item.text) != 1 or item.prompt.count(form) != 1:
        raise DataError(f"{where}: its prompt should hold the puzzle and the blank form of the reply once each.")
    return item.prompt.replace(item.text, text).replace(form, _form(new))


def _form(solution: Solution) -> str:
    return json.dumps({house: dict.fromkeys(cells, BLANK) for house, cells in solution.items()})


def _houses(solution: Solution) -> dict[Attribute, int]:
    """The house of each value, counted from 1."""
    return {
        Attribute(category, value): int(house.removeprefix("House "))
        for house, cells in solution.items()
        for category, value in cells.items()
    }
