"""Reads a ZebraLogic puzzle text into data: houses, attribute lists and clues as constraints.

A strict reader: an attribute, a value or a clue that it does not know is an error, never skipped. The 1,000 puzzles of
``grid_mode`` use 25 categories with 6 values each, one wording a value (:data:`WORDINGS`; "the cat lover" has
an Animal, "the person who has a cat" a Pet), and :data:`FORMS` of clue. How many puzzles are read and solved stands in
:mod:`softcontam.benchmarks.zebralogic`.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass
from typing import NamedTuple

from softcontam.errors import DataError


class Attribute(NamedTuple):
    """One value of one category, e.g. Pet and cat; exactly one house has it."""

    category: str
    value: str


@dataclass(frozen=True)
class Clue:
    """One constraint on the houses of one or two attributes.

    ``form`` is a key of :data:`RELATIONS`. ``number`` is the house of ``in_house`` and ``not_in_house``, how many
    houses lie between for ``between``, else 0.
    """

    form: str
    attributes: tuple[Attribute, ...]
    number: int = 0

    def holds(self, house: Mapping[Attribute, int]) -> bool:
        """Whether the constraint is met where each attribute is in the given house, counted from 1 at the left."""
        return RELATIONS[self.form](self.number, *(house[attribute] for attribute in self.attributes))


@dataclass(frozen=True)
class Puzzle:
    """A puzzle as data: each category (named as in the header of the solution) has one value per house."""

    n_houses: int
    categories: Mapping[str, tuple[str, ...]]
    clues: tuple[Clue, ...]

    def attributes(self) -> Iterator[Attribute]:
        """All values of all categories, in the order of the text."""
        for category, values in self.categories.items():
            for value in values:
                yield Attribute(category, value)


RELATIONS: Mapping[str, Callable[..., bool]] = {
    "in_house": lambda number, a: a == number,
    "not_in_house": lambda number, a: a != number,
    "same_house": lambda _, a, b: a == b,
    "left_of": lambda _, a, b: a < b,
    "right_of": lambda _, a, b: a > b,
    "directly_left_of": lambda _, a, b: a + 1 == b,
    "directly_right_of": lambda _, a, b: a == b + 1,
    "next_to": lambda _, a, b: abs(a - b) == 1,
    "between": lambda number, a, b: abs(a - b) == number + 1,
}
"""What each form of clue demands of its number and the houses of its attributes."""


@dataclass(frozen=True)
class Form:
    """The sentence of a form: ``before``, an attribute, ``middle``, then another attribute and ``after`` it.

    Where the clue is about one attribute only, ``middle`` ends the sentence and ``after`` is None.
    """

    relation: str
    before: str
    middle: str
    after: str | None = "."
    number: int = 0


_ORDINALS = ("first", "second", "third", "fourth", "fifth", "sixth")
_COUNTS = ("two", "three", "four")

FORMS: tuple[Form, ...] = (
    *(Form("in_house", "", f" is in the {word} house.", None, n) for n, word in enumerate(_ORDINALS, 1)),
    *(Form("not_in_house", "", f" is not in the {word} house.", None, n) for n, word in enumerate(_ORDINALS, 1)),
    Form("same_house", "", " is "),
    Form("left_of", "", " is somewhere to the left of "),
    Form("right_of", "", " is somewhere to the right of "),
    Form("directly_left_of", "", " is directly left of "),
    Form("directly_right_of", "", " is directly right of "),
    Form("next_to", "", " and ", " are next to each other."),
    Form("between", "There is one house between ", " and ", number=1),
    *(Form("between", f"There are {word} houses between ", " and ", number=n) for n, word in enumerate(_COUNTS, 2)),
)
"""The sentences that clues are made of; ``directly right of`` does not occur in the 1,000 puzzles."""

DESCRIPTIONS: Mapping[str, str] = {
    "Name": "Each person has a unique name",
    "Nationality": "The people are of nationalities",
    "BookGenre": "People have unique favorite book genres",
    "Food": "Everyone has something unique for lunch",
    "Color": "Each person has a favorite color",
    "Animal": "The people keep unique animals",
    "Occupation": "Each person has an occupation",
    "PhoneModel": "People use unique phone models",
    "Children": "Each mother is accompanied by their child",
    "MusicGenre": "People have unique favorite music genres",
    "Height": "People have unique heights",
    "Mother": "The mothers' names in different houses are unique",
    "Vacation": "Each person prefers a unique type of vacation",
    "Pet": "Each person has a unique type of pet",
    "Birthday": "Each person has a unique birthday month",
    "HouseStyle": "Each person lives in a unique style of house",
    "Flower": "They all have a unique favorite flower",
    "Education": "Each person has a unique level of education",
    "FavoriteSport": "People have unique favorite sports",
    "Cigar": "Everyone has a unique favorite cigar",
    "CarModel": "People own unique car models",
    "Hobby": "Each person has a unique hobby",
    "HairColor": "People have unique hair colors",
    "Smoothie": "Everyone has a favorite smoothie",
    "Drink": "Each person has a unique favorite drink",
}
"""The line that opens a category's list of values."""

WORDINGS: Mapping[str, Mapping[str, str]] = {
    "Name": {name: name for name in ("Alice", "Arnold", "Bob", "Carol", "Eric", "Peter")},
    "Nationality": {
        "norwegian": "the Norwegian",
        "german": "the German",
        "dane": "the Dane",
        "brit": "the British person",
        "swede": "the Swedish person",
        "chinese": "the Chinese",
    },
    "BookGenre": {
        genre: f"the person who loves {genre} books"
        for genre in ("fantasy", "biography", "romance", "mystery", "science fiction", "historical fiction")
    },
    "Food": {
        "stir fry": "the person who loves stir fry",
        "grilled cheese": "the person who loves eating grilled cheese",
        "pizza": "the person who is a pizza lover",
        "spaghetti": "the person who loves the spaghetti eater",
        "stew": "the person who loves the stew",
        "soup": "the person who loves the soup",
    },
    "Color": {
        "red": "the person whose favorite color is red",
        "green": "the person whose favorite color is green",
        "blue": "the person who loves blue",
        "yellow": "the person who loves yellow",
        "white": "the person who loves white",
        "purple": "the person who loves purple",
    },
    "Animal": {
        "bird": "the bird keeper",
        "dog": "the dog owner",
        "cat": "the cat lover",
        "horse": "the person who keeps horses",
        "fish": "the fish enthusiast",
        "rabbit": "the rabbit owner",
    },
    "Occupation": {
        "artist": "the person who is an artist",
        "engineer": "the person who is an engineer",
        "teacher": "the person who is a teacher",
        "doctor": "the person who is a doctor",
        "lawyer": "the person who is a lawyer",
        "nurse": "the person who is a nurse",
    },
    "PhoneModel": {
        "google pixel 6": "the person who uses a Google Pixel 6",
        "iphone 13": "the person who uses an iPhone 13",
        "oneplus 9": "the person who uses a OnePlus 9",
        "samsung galaxy s21": "the person who uses a Samsung Galaxy S21",
        "huawei p50": "the person who uses a Huawei P50",
        "xiaomi mi 11": "the person who uses a Xiaomi Mi 11",
    },
    "Children": {
        "Timothy": "the person who is the mother of Timothy",
        **{name: f"the person's child is named {name}" for name in ("Fred", "Samantha", "Alice", "Meredith", "Bella")},
    },
    "MusicGenre": {
        "hip hop": "the person who loves hip-hop music",
        **{genre: f"the person who loves {genre} music" for genre in ("pop", "classical", "jazz", "rock", "country")},
    },
    "Height": {
        "average": "the person who has an average height",
        **{
            height: f"the person who is {height}"
            for height in ("very tall", "tall", "super tall", "very short", "short")
        },
    },
    "Mother": {
        name: f"the person whose mother's name is {name}"
        for name in ("Sarah", "Janelle", "Aniya", "Kailyn", "Holly", "Penny")
    },
    "Vacation": {
        "city": "the person who prefers city breaks",
        "mountain": "the person who enjoys mountain retreats",
        "camping": "the person who enjoys camping trips",
        "beach": "the person who loves beach vacations",
        "cruise": "the person who likes going on cruises",
        "cultural": "the person who goes on cultural tours",
    },
    "Pet": {
        "dog": "the person who owns a dog",
        "cat": "the person who has a cat",
        "bird": "the person who keeps a pet bird",
        "fish": "the person with an aquarium of fish",
        "hamster": "the person with a pet hamster",
        "rabbit": "the person who owns a rabbit",
    },
    "Birthday": {
        "jan": "the person whose birthday is in January",
        "feb": "the person whose birthday is in February",
        "mar": "the person whose birthday is in March",
        "april": "the person whose birthday is in April",
        "may": "the person whose birthday is in May",
        "sept": "the person whose birthday is in September",
    },
    "HouseStyle": {
        "ranch": "the person in a ranch-style home",
        "colonial": "the person living in a colonial-style house",
        "victorian": "the person residing in a Victorian house",
        "craftsman": "the person in a Craftsman-style house",
        "modern": "the person in a modern-style house",
        "mediterranean": "the person in a Mediterranean-style villa",
    },
    "Flower": {
        "carnations": "the person who loves a carnations arrangement",
        "daffodils": "the person who loves a bouquet of daffodils",
        "lilies": "the person who loves the boquet of lilies",
        "tulips": "the person who loves the vase of tulips",
        "iris": "the person who loves the boquet of iris",
        "roses": "the person who loves the rose bouquet",
    },
    "Education": {
        "master": "the person with a master's degree",
        "bachelor": "the person with a bachelor's degree",
        "doctorate": "the person with a doctorate",
        "high school": "the person with a high school diploma",
        "associate": "the person with an associate's degree",
        "trade school": "the person who attended trade school",
    },
    "FavoriteSport": {
        sport: f"the person who loves {sport}"
        for sport in ("soccer", "basketball", "tennis", "baseball", "swimming", "volleyball")
    },
    "Cigar": {
        "prince": "the Prince smoker",
        "pall mall": "the person partial to Pall Mall",
        "blends": "the person who smokes many unique blends",
        "dunhill": "the Dunhill smoker",
        "blue master": "the person who smokes Blue Master",
        "yellow monster": "the person who smokes Yellow Monster",
    },
    "CarModel": {
        "tesla model 3": "the person who owns a Tesla Model 3",
        "honda civic": "the person who owns a Honda Civic",
        "toyota camry": "the person who owns a Toyota Camry",
        "ford f150": "the person who owns a Ford F-150",
        "bmw 3 series": "the person who owns a BMW 3 Series",
        "chevrolet silverado": "the person who owns a Chevrolet Silverado",
    },
    "Hobby": {
        "painting": "the person who paints as a hobby",
        "cooking": "the person who loves cooking",
        "gardening": "the person who enjoys gardening",
        "photography": "the photography enthusiast",
        "knitting": "the person who enjoys knitting",
        "woodworking": "the woodworking hobbyist",
    },
    "HairColor": {
        color: f"the person who has {color} hair" for color in ("black", "red", "brown", "blonde", "gray", "auburn")
    },
    "Smoothie": {
        "watermelon": "the Watermelon smoothie lover",
        "cherry": "the person who likes Cherry smoothies",
        "dragonfruit": "the Dragonfruit smoothie lover",
        "lime": "the person who drinks Lime smoothies",
        "desert": "the Desert smoothie lover",
        "blueberry": "the person who drinks Blueberry smoothies",
    },
    "Drink": {
        "tea": "the tea drinker",
        "root beer": "the root beer lover",
        "milk": "the person who likes milk",
        "water": "the one who only drinks water",
        "coffee": "the coffee drinker",
        "boba tea": "the boba tea drinker",
    },
}
"""How clues speak of a value, by category and value; the misspellings are the data set's."""

_OPENING = re.compile(
    r"There are ([2-6]) houses, numbered 1 to \1 from left to right, as seen from across the street\. Each house is "
    r"occupied by a different person\. Each house has a unique attribute for each of the following characteristics:"
)
_LIST = re.compile(r"- ([^:]+): (`[^`]+`(?:, `[^`]+`)*)")
_NUMBERED = re.compile(r"([1-9][0-9]*)\. (.+)")
_CLUES_HEADING = "## Clues:"
_CATEGORY_OF = {description: category for category, description in DESCRIPTIONS.items()}


def parse_puzzle(text: str, where: str) -> Puzzle:
    """The puzzle of a text.

    Args:
        text: the opening sentence, one line per category, ``## Clues:`` and the numbered clues.
        where: file, row and puzzle id, for error messages.

    Raises:
        DataError: a line that is not understood, which it quotes.
    """
    lines = [line.strip() for line in text.splitlines() if line.strip()]
    opening = _OPENING.fullmatch(lines[0]) if lines else None
    if opening is None:
        raise _not_understood(where, "the opening line", lines[0] if lines else "")
    if lines.count(_CLUES_HEADING) != 1:
        raise DataError(f"{where}: there should be one line {_CLUES_HEADING!r}. Copy the file again.")
    n_houses, heading = int(opening[1]), lines.index(_CLUES_HEADING)
    categories: dict[str, tuple[str, ...]] = {}
    for line in lines[1:heading]:
        category, values = _read_list(line, n_houses, where)
        if category in categories:
            raise DataError(f"{where}: the category {category} is listed twice. Copy the file again.")
        categories[category] = values
    known = {
        _without_capital(WORDINGS[category][value]): Attribute(category, value)
        for category, values in categories.items()
        for value in values
    }
    clues = [
        _read_clue(line, number, n_houses, known, where) for number, line in enumerate(lines[heading + 1 :], start=1)
    ]
    if not categories or not clues:
        raise DataError(f"{where}: a puzzle needs at least one category and one clue. Copy the file again.")
    return Puzzle(n_houses, categories, tuple(clues))


def _read_list(line: str, n_houses: int, where: str) -> tuple[str, tuple[str, ...]]:
    """The category of a line and its values, one per house."""
    found = _LIST.fullmatch(line)
    category = _CATEGORY_OF.get(found[1]) if found else None
    if found is None or category is None:
        raise _not_understood(where, "the list of values", line)
    values = tuple(part.strip("`") for part in found[2].split(", "))
    unknown = [value for value in values if value not in WORDINGS[category]]
    if unknown:
        raise _not_understood(where, f"the {category} {unknown[0]!r}", line)
    if len(values) != n_houses or len(set(values)) != n_houses:
        raise DataError(f"{where}: {category} should have {n_houses} different values: {line!r}. Copy the file again.")
    return category, values


def _read_clue(line: str, number: int, n_houses: int, known: Mapping[str, Attribute], where: str) -> Clue:
    """The clue of a numbered line; every form is tried, since a wording may itself hold words such as ``is``."""
    numbered = _NUMBERED.fullmatch(line)
    if numbered is None or int(numbered[1]) != number:
        raise _not_understood(where, f"clue {number}", line)
    readings = [clue for form in FORMS for clue in _readings(numbered[2], form, known)]
    if len(readings) != 1:
        raise _not_understood(where, f"clue {number}", numbered[2])
    clue = readings[0]
    if len(set(clue.attributes)) != len(clue.attributes) or clue.number > n_houses:
        raise _not_understood(where, f"clue {number} (one attribute twice, or a house that is not there)", numbered[2])
    return clue


def _readings(sentence: str, form: Form, known: Mapping[str, Attribute]) -> Iterator[Clue]:
    """Every way to read a sentence as a clue of one form."""
    if not sentence.startswith(form.before):
        return
    rest = sentence[len(form.before) :]
    if form.after is None:
        attribute = known.get(_without_capital(rest.removesuffix(form.middle)))
        if attribute and rest.endswith(form.middle):
            yield Clue(form.relation, (attribute,), form.number)
    elif rest.endswith(form.after):
        rest = rest.removesuffix(form.after)
        for cut in re.finditer(re.escape(form.middle), rest):
            first, second = (known.get(_without_capital(part)) for part in (rest[: cut.start()], rest[cut.end() :]))
            if first and second:
                yield Clue(form.relation, (first, second), form.number)


def _without_capital(wording: str) -> str:
    """A wording whose first letter is small: it may open a sentence, and clues write "The" in the middle too."""
    return wording[:1].lower() + wording[1:]


def _not_understood(where: str, what: str, line: str) -> DataError:
    return DataError(
        f"{where}: {what} is not understood: {line!r}. Copy the file again; a new wording has to be added to "
        "softcontam/benchmarks/zebra_clues.py."
    )
