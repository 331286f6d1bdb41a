"""Which ZebraLogic puzzles are one template, so that no split puts one into each half.

Two puzzles of the same size are one family in two cases, both exact:

* ``renaming``: one becomes the other when its categories and values are renamed and its clues reordered. That is what
  category substitution and clue shuffle do to an item, so such a pair are semantic duplicates of each other.
* ``template``: they list the same categories and their clues have the same forms, each as often; houses and values in
  the clues differ.

Seen in the 1,000 puzzles (25 sizes, 40 puzzles each): 17 groups of puzzles are equal up to renaming, all of them small
(2*2, 2*3, 2*5, 3*2), and four pairs share a template (three 2*2, one 5*2). Joined: 971 families, the largest of 7
puzzles; 954 puzzles stay alone. 2*2 has 22 families, every other size at least 33. No two puzzles have the same text,
and no two of one size share more than a third of their clues (as a share of the clues that either has). The same
categories alone join too much: 873 groups, up to 5 puzzles each, but together with renaming 33 of the 40 puzzles of
size 2*2 become one family. Two puzzles that share categories share a vocabulary, as all do: there are 25 categories.
"""

from __future__ import annotations

from collections import Counter, defaultdict
from collections.abc import Mapping
from dataclasses import replace
from itertools import permutations

from softcontam.benchmarks.families import NearPair, same_keys
from softcontam.benchmarks.zebra_clues import Puzzle
from softcontam.benchmarks.zebra_solver import Houses

SYMMETRIC = ("same_house", "next_to", "between")
"""Forms of clue that say the same with their two attributes exchanged."""

MIRRORED = {"right_of": "left_of", "directly_right_of": "directly_left_of"}
"""Forms that are another one with the two attributes exchanged."""

_Place = tuple[int, int]  # house of the attribute in the solution, number of its category
_Skeleton = tuple[tuple[str, int, tuple[_Place, ...]], ...]


def near_identical(puzzles: Mapping[str, tuple[Puzzle, Houses]]) -> list[NearPair]:
    """The pairs that families rest on: equal up to renaming (``why`` is ``renaming``), then of one ``template``.

    Args:
        puzzles: each puzzle and its only solution, by item id.
    """
    renamed = [replace(pair, why="renaming") for pair in same_keys(_renaming_keys(puzzles))]
    keys = {item_id: repr(template(puzzle)) for item_id, (puzzle, _) in puzzles.items()}
    return renamed + [replace(pair, why="template") for pair in same_keys(keys)]


def template(puzzle: Puzzle) -> tuple[int, tuple[str, ...], tuple[tuple[str, int], ...]]:
    """Number of houses, categories, and how often each form of clue occurs; the order of the text does not matter."""
    forms = Counter(clue.form for clue in puzzle.clues)
    return puzzle.n_houses, tuple(sorted(puzzle.categories)), tuple(sorted(forms.items()))


def same_up_to_renaming(puzzle: Puzzle, houses: Houses) -> str:
    """A text that two puzzles have in common exactly if renaming categories and values makes their clues the same.

    A renaming maps the only solution of one puzzle to that of the other, so it maps values by their houses: what is
    left to choose is which category becomes which, at most 6! ways. The smallest of the skeletons is taken.
    """
    named = list(puzzle.categories)
    skeletons = (
        _skeleton(puzzle, houses, dict(zip(named, order, strict=True))) for order in permutations(range(len(named)))
    )
    return f"{puzzle.n_houses} {min(skeletons)}"


def _renaming_keys(puzzles: Mapping[str, tuple[Puzzle, Houses]]) -> dict[str, str | None]:
    """:func:`same_up_to_renaming` of the puzzles, None where a cheap comparison shows that no other is like it."""
    alike: dict[tuple[int, int, _Skeleton], list[str]] = defaultdict(list)
    for item_id, (puzzle, houses) in puzzles.items():
        blanked = _skeleton(puzzle, houses, dict.fromkeys(puzzle.categories, 0))
        alike[puzzle.n_houses, len(puzzle.categories), blanked].append(item_id)
    keys: dict[str, str | None] = dict.fromkeys(puzzles)
    for ids in alike.values():
        if len(ids) > 1:
            keys.update({item_id: same_up_to_renaming(*puzzles[item_id]) for item_id in ids})
    return keys


def _skeleton(puzzle: Puzzle, houses: Houses, numbers: Mapping[str, int]) -> _Skeleton:
    """The clues without order and names: each attribute is its house and the number given to its category."""
    clues = []
    for clue in puzzle.clues:
        places = [(houses[attribute], numbers[attribute.category]) for attribute in clue.attributes]
        if clue.form in MIRRORED:
            places.reverse()
        elif clue.form in SYMMETRIC:
            places.sort()
        clues.append((MIRRORED.get(clue.form, clue.form), clue.number, tuple(places)))
    return tuple(sorted(clues))
