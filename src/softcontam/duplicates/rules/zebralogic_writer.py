"""Writes ZebraLogic puzzles anew: lines in another order, other categories and values, other sentences."""

from __future__ import annotations

import random
from collections.abc import Mapping
from typing import TypeVar

from softcontam.benchmarks.zebra_clues import FORMS, Attribute, Clue, Form, Puzzle
from softcontam.duplicates.rules.zebralogic_lexicon import CLUES, HEADINGS, NAMES, NEW, OPENINGS, REWORDED, Words

T = TypeVar("T")

_CATEGORIES = {**NAMES, **NEW}
_COUNTS = ("no", "one", "two", "three", "four", "five", "six")
_EITHER_WAY = ("same_house", "next_to", "between")
_HEADING = "## Clues:"


def shuffled(text: str, rng: random.Random) -> str:
    """The benchmark's own lines with the lists, the values in each and the clues in another order.

    Args:
        text: a puzzle that :func:`~softcontam.benchmarks.zebra_clues.parse_puzzle` reads.
    """
    lines = text.split("\n")
    heading = next(number for number, line in enumerate(lines) if line.strip() == _HEADING)
    lists = [number for number in range(1, heading) if lines[number].strip()]
    clues = [number for number in range(heading + 1, len(lines)) if lines[number].strip()]
    new = dict(enumerate(lines))
    for place, number in zip(lists, _order(lists, rng), strict=True):
        title, _, values = lines[number].rstrip().partition(": ")
        new[place] = f"{title}: {', '.join(_order(values.split(', '), rng))}"
    for count, (place, number) in enumerate(zip(clues, _other_order(clues, rng), strict=True), start=1):
        new[place] = f"{count}. {lines[number].strip().partition('. ')[2]}"
    return "\n".join(new.values())


def replacements(puzzle: Puzzle, rng: random.Random) -> dict[Attribute, Attribute]:
    """What is to stand for each value: values of one new category for those of one category, names for names."""
    others = iter(rng.sample(sorted(NEW), len(puzzle.categories)))
    words = {}
    for category, values in puzzle.categories.items():
        new = rng.choice(sorted(NAMES)) if category == "Name" else next(others)
        drawn = rng.sample(_CATEGORIES[new].values, len(values))
        words.update(
            {Attribute(category, old): Attribute(new, value) for old, value in zip(values, drawn, strict=True)}
        )
    return words


def replaced(puzzle: Puzzle, words: Mapping[Attribute, Attribute]) -> Puzzle:
    """The puzzle with other values; those that come to be of one category make one list."""
    categories: dict[str, tuple[str, ...]] = {}
    for attribute in puzzle.attributes():
        new = words[attribute]
        categories[new.category] = (*categories.get(new.category, ()), new.value)
    clues = (Clue(clue.form, tuple(words[one] for one in clue.attributes), clue.number) for clue in puzzle.clues)
    return Puzzle(puzzle.n_houses, categories, tuple(clues))


def substituted(puzzle: Puzzle) -> str:
    """The text of a puzzle about new categories, in the benchmark's form."""
    n = puzzle.n_houses
    lists = [
        f" - {_CATEGORIES[category].description}: {', '.join(f'`{value}`' for value in values)}"
        for category, values in puzzle.categories.items()
    ]
    return "\n".join(
        (
            f"There are {n} houses, numbered 1 to {n} from left to right, as seen from across the street. Each house "
            "is occupied by a different person. Each house has a unique attribute for each of the following "
            "characteristics:",
            *lists,
            "",
            _HEADING,
            *(f"{number}. {_plain(clue)}" for number, clue in enumerate(puzzle.clues, start=1)),
        )
    )


def reworded(puzzle: Puzzle, rng: random.Random) -> str:
    """The text of a puzzle in sentences, phrases and a layout that the benchmark does not have.

    Phrases and titles are drawn anew for each use, so that one value may be spoken of in two ways.
    """
    n = puzzle.n_houses
    bullet, mark, quote, stop = rng.choice("-*"), rng.choice(("", "`")), rng.choice((", ", "; ")), rng.choice(".)")
    lists = [
        f"{bullet} {rng.choice(_words(category).titles)}: {quote.join(f'{mark}{value}{mark}' for value in values)}"
        for category, values in puzzle.categories.items()
    ]
    count = _COUNTS[n]
    return "\n".join(
        (
            rng.choice(OPENINGS).format(n=n, count=count, Count=count.capitalize()),
            *lists,
            "",
            rng.choice(HEADINGS),
            *(f"{number}{stop} {_reworded(clue, rng)}" for number, clue in enumerate(puzzle.clues, start=1)),
        )
    )


def _plain(clue: Clue) -> str:
    """A clue about new categories in the benchmark's sentence."""
    form = _FORMS[clue.form, clue.number]
    phrases = []
    for attribute in clue.attributes:
        category = _CATEGORIES[attribute.category]
        phrases.append(category.plain.format(category.words.shown.get(attribute.value, attribute.value)))
    if form.after is None:
        return _capital(f"{form.before}{phrases[0]}{form.middle}")
    return _capital(f"{form.before}{phrases[0]}{form.middle}{phrases[1]}{form.after}")


def _reworded(clue: Clue, rng: random.Random) -> str:
    """A clue in another sentence; where it is the same either way round, either attribute comes first."""
    attributes = clue.attributes
    if clue.form in _EITHER_WAY and rng.random() < 0.5:
        attributes = attributes[::-1]
    phrases = [_phrase(attribute, rng) for attribute in attributes]
    a, b = phrases[0], phrases[-1]
    count = _COUNTS[clue.number]
    return rng.choice(CLUES[clue.form]).format(
        a=a,
        b=b,
        A=_capital(a),
        B=_capital(b),
        n=clue.number,
        count=count,
        Count=count.capitalize(),
        home="home" if clue.number == 1 else "homes",
        gap=_COUNTS[min(clue.number + 1, len(_COUNTS) - 1)],
    )


def _phrase(attribute: Attribute, rng: random.Random) -> str:
    words = _words(attribute.category)
    return rng.choice(words.phrases).format(words.shown.get(attribute.value, attribute.value))


def _words(category: str) -> Words:
    return REWORDED[category] if category in REWORDED else _CATEGORIES[category].words


def _capital(text: str) -> str:
    return text[:1].upper() + text[1:]


def _order(values: list[T], rng: random.Random) -> list[T]:
    return rng.sample(values, len(values))


def _other_order(values: list[T], rng: random.Random) -> list[T]:
    """An order that is not the given one, where there is another."""
    while (order := _order(values, rng)) == values and len(values) > 1:
        pass
    return order


_FORMS: Mapping[tuple[str, int], Form] = {(form.relation, form.number): form for form in FORMS}
