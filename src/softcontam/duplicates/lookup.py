"""Questions whose answer is a number that stands in the text: nothing to work out, but the form of a word problem.

Length varies with the number of sentences, and that of the reading with the place of the one that is asked for, so that
rows of about any length can be had.
"""

from __future__ import annotations

import random
from dataclasses import dataclass

from softcontam.tinyworld.lexicon import NAMES, OBJECTS

PLACES = "kitchen garden attic cellar harbour market library garage hall tower office shed".split()
"""Where things are kept."""

SENTENCES = (2, 7)
"""Fewest and most sentences of a text."""

_KEEPS = (
    "{name} keeps {number} {things} in the {place}.",
    "In the {place} there are {number} {things} that {name} owns.",
    "{name} has put {number} {things} into the {place}.",
    "{number} {things} of {name}'s are in the {place}.",
)


@dataclass(frozen=True)
class Lookup:
    """A question, how its answer is found by reading, and the answer in digits."""

    text: str
    reading: str
    answer: str


def lookup(rng: random.Random) -> Lookup:
    """A question about one of several people, each of whom keeps things of another sort."""
    size = rng.randint(*SENTENCES)
    names, things = rng.sample(NAMES, size), rng.sample(OBJECTS, size)
    places, numbers = [rng.choice(PLACES) for _ in names], [rng.randint(2, 200) for _ in names]
    sentences = [
        rng.choice(_KEEPS).format(name=name, number=number, things=thing, place=place)
        for name, number, thing, place in zip(names, numbers, things, places, strict=True)
    ]
    asked = rng.randrange(size)
    kept = [
        f"{name} has {number} {thing} in the {place}"
        for name, number, thing, place in zip(names, numbers, things, places, strict=True)
    ]
    reading = [
        f"The question is how many {things[asked]} {names[asked]} has.",
        *(f"{fact}, but these are not asked for." for fact in kept[:asked]),
        f"{kept[asked]}, and that is the number asked for.",
    ]
    question = f"How many {things[asked]} does {names[asked]} have in the {places[asked]}?"
    return Lookup(" ".join([*sentences, question]), "\n".join(reading), str(numbers[asked]))
