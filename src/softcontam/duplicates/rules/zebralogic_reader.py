"""Reads back the ZebraLogic texts that the rules write, to certify them.

It shares no table with the writer (:mod:`softcontam.duplicates.rules.zebralogic_lexicon`): what a sentence says is
written down here a second time, as patterns. It is strict as the benchmark's own reader is: what is not understood, or
in more than one way, is an error.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from functools import lru_cache

from softcontam.benchmarks.zebra_clues import Attribute, Clue, Puzzle
from softcontam.errors import DataError

_NUMBERS = {"one": 1, "two": 2, "three": 3, "four": 4, "five": 5, "six": 6}
_ORDINALS = {"first": 1, "second": 2, "third": 3, "fourth": 4, "fifth": 5, "sixth": 6}
_WORD = "one|two|three|four|five|six"

_OPENINGS = tuple(
    re.compile(pattern, re.IGNORECASE)
    for pattern in (
        r"There are (?P<n>\d) houses, numbered 1 to (?P<last>\d) from left to right, .*different person\..*:",
        rf"A street has (?P<n>{_WORD}) homes .*1 \(far left\) up to (?P<last>\d) \(far right\).*every number\..*",
        rf"(?P<n>{_WORD}) neighbors .*number 1 is the leftmost .*number (?P<last>\d) the rightmost\. No two .*",
        rf"Picture a line of (?P<n>{_WORD}) homes.* 1 at the left end to (?P<last>\d) at the right end .*nobody else.*",
    )
)
_LIST = re.compile(r"[-*] ([^:]+): (.+)")
_NUMBERED = re.compile(r"(\d+)[.)] (.+)")
_HEADINGS = ("## Clues:", "What is known:", "Facts:", "Hints to work from:")

_TITLES = {
    "Name": r"first names, one|residents are called",
    "Nationality": r"countries|passport",
    "BookGenre": r"reading",
    "Food": r"noon|lunch",
    "Color": r"colors",
    "Animal": r"animals?\b",
    "Occupation": r"earn|jobs",
    "PhoneModel": r"phones?\b",
    "Children": r"\bchild|sons and",
    "MusicGenre": r"music\b|stereo",
    "Height": r"tall or short|heights",
    "Mother": r"mothers",
    "Vacation": r"holidays|free weeks",
    "Pet": r"pets?\b",
    "Birthday": r"months|a year older",
    "HouseStyle": r"architecture|manner",
    "Flower": r"blossoms|florist",
    "Education": r"qualifications|schooling",
    "FavoriteSport": r"sports?\b",
    "Cigar": r"cigars?\b",
    "CarModel": r"cars\b|they drive",
    "Hobby": r"pastimes|after work",
    "HairColor": r"hair\b",
    "Smoothie": r"smoothies?\b",
    "Drink": r"beverages|cups",
    "FirstName": r"given names|friends call|different first name",
    "Surname": r"surnames?\b|family names",
    "Instrument": r"instruments?\b",
    "Spice": r"spices?\b|season",
    "Gemstone": r"gem(stone)?s?\b|which stone",
    "Tree": r"trees?\b",
    "Dance": r"dances?\b",
    "Cheese": r"cheeses?\b",
    "BoardGame": r"games?\b",
    "Planet": r"planets?\b",
    "Metal": r"metals?\b|coins",
    "Fabric": r"fabrics?\b|curtains",
    "Language": r"languages?\b",
    "Transport": r"transport|commute",
    "Dessert": r"desserts?\b|ends their meals",
    "Subject": r"subjects|fields",
    "Weekday": r"laundry|washing",
    "Furniture": r"furniture",
    "Pasta": r"pasta",
    "Insect": r"insects?\b",
    "River": r"rivers?\b",
    "Bread": r"bread|loaves",
    "Constellation": r"constellations?\b|star chart",
    "MartialArt": r"martial|self-defense",
    "Shape": r"shapes?\b",
    "Herb": r"herbs?\b",
    "Hat": r"hats?\b|headgear",
    "Vegetable": r"vegetables?\b",
}
"""What the title or description of a list has only where the list is that of the category."""

_PHRASES = {
    "Name": r"(?:the one called )?(\w+)",
    "Nationality": r"the (?:resident from|neighbor with roots in) (.+)",
    "BookGenre": r"the (.+) reader|the resident whose shelves are full of (.+)",
    "Food": r"the resident having (.+) at noon|the neighbor lunching on (.+)",
    "Color": r"the resident fond of anything (.+)|the neighbor picking (.+) from every paint box",
    "Animal": r"the keeper of the (.+)|the neighbor caring for the (.+)",
    "Occupation": r"the (?:resident working|neighbor employed) as an? (.+)",
    "PhoneModel": r"the (?:resident calling from|neighbor whose phone is) the (.+)",
    "Children": r"the (?:resident raising|parent of little) (.+)",
    "MusicGenre": r"the (.+) listener|the resident with a stack of (.+) records",
    "Height": r"the resident of (.+) stature|the neighbor whose size is called (.+)",
    "Mother": r"the (?:son or daughter of|resident who was raised by) (.+)",
    "Vacation": r"the (?:traveler keen on|resident saving up for) (.+)",
    "Pet": r"the resident whose pet is a (.+)|the neighbor with a (.+) as house pet",
    "Birthday": r"the (?:resident born|neighbor celebrating) in (.+)",
    "HouseStyle": r"the occupant of the (.+) building|the resident behind the (.+) facade",
    "Flower": r"the admirer of (.+)|the neighbor buying (.+) at the florist",
    "Education": r"the (?:holder of|neighbor whose schooling ended with) an? (.+)",
    "FavoriteSport": r"the (.+) fan|the neighbor mad about (.+)",
    "Cigar": r"the resident lighting a (.+) cigar|the neighbor with a box of (.+)",
    "CarModel": r"the driver of the (.+)|the resident parking a (.+) outside",
    "Hobby": r"the (?:resident whose pastime is|neighbor relaxing through) (.+)",
    "HairColor": r"the resident whose hair is (.+)|the (.+)-haired neighbor",
    "Smoothie": r"the resident ordering the (.+) smoothie|the neighbor blending a (.+) smoothie",
    "Drink": r"the (?:resident sipping|neighbor whose cup holds) (.+)",
    "FirstName": r"(?:the one known as )?(\w+)",
    "Surname": r"the (?:bearer of the surname|neighbor listed under|person whose surname is) (.+)",
    "Instrument": r"the (?:musician on|resident practicing|person who plays) the (.+)",
    "Spice": r"the (?:cook seasoning with|resident whose spice rack holds|person who cooks with) (.+)",
    "Gemstone": r"the (?:wearer of|person who wears) the (.+)|the resident with the (.+) ring",
    "Tree": (
        r"the resident with the (.+) by the gate|the neighbor raking (.+) leaves|"
        r"the person with the (.+) tree in front"
    ),
    "Dance": r"the (.+) dancer|the resident enrolled in the (.+) class|the person who is learning the (.+)",
    "Cheese": r"the resident with (.+) on the cheese board|the (?:neighbor slicing|person who buys) (.+)",
    "BoardGame": r"the (.+) player|the (?:resident setting up a game of|person who plays) (.+)",
    "Planet": r"the (?:stargazer watching|resident whose telescope points at|person with the poster of) (.+)",
    "Metal": r"the (?:collector of|person who collects) (.+) coins|the resident with coins of (.+)",
    "Fabric": r"the (?:resident behind the|person who has) (.+) curtains|the neighbor who sews with (.+)",
    "Language": r"the (?:student of|person who studies) (.+)|the resident with the (.+) dictionary",
    "Transport": r"the commuter on the (.+)|the (?:resident arriving|person who goes to work) by (.+)",
    "Dessert": (
        r"the (?:resident finishing a meal with|neighbor who spoons up) (.+)|the person who has (.+) for dessert"
    ),
    "Subject": r"the (?:graduate in|resident whose field is|person who studied) (.+)",
    "Weekday": r"the (?:resident washing clothes on|neighbor whose laundry day is|person who does the laundry on) (.+)",
    "Furniture": r"the (?:buyer of|resident awaiting delivery of|person who bought) the (.+)",
    "Pasta": r"the (?:resident boiling|neighbor with a pot of|person who cooks) (.+)",
    "Insect": r"the (?:sketcher of|person who draws) the (.+)|the resident with the (.+) on paper",
    "River": r"the (?:visitor to|resident back from|person who traveled along) the (.+)",
    "Bread": r"the (?:baker of|person who bakes) (.+)|the resident with (.+) in the oven",
    "Constellation": (
        r"the resident looking for (.+) at night|the (?:neighbor with a chart of|person who can point out) (.+)"
    ),
    "MartialArt": r"the (.+) trainee|the (?:resident with a belt|person who trains) in (.+)",
    "Shape": r"the (?:resident marked by|neighbor whose entrance bears) the (.+)|the person with the (.+) on the door",
    "Herb": r"the (?:grower of|resident watering|person who grows) (.+)",
    "Hat": r"the (?:resident under|neighbor tipping|person in) the (.+)",
    "Vegetable": r"the (?:seller of|resident with a stall of|person who sells) (.+)",
}
"""How the person with a value of the category is spoken of."""

_ALIASES = {
    "Nationality": {
        "norway": "norwegian",
        "germany": "german",
        "denmark": "dane",
        "britain": "brit",
        "sweden": "swede",
        "china": "chinese",
    },
    "Vacation": {
        "city trips": "city",
        "mountain stays": "mountain",
        "nights in a tent": "camping",
        "days at the seaside": "beach",
        "voyages by ship": "cruise",
        "culture tours": "cultural",
    },
    "Birthday": {"january": "jan", "february": "feb", "march": "mar", "september": "sept"},
    "Education": {
        "master's degree": "master",
        "bachelor's degree": "bachelor",
        "high school diploma": "high school",
        "associate's degree": "associate",
        "trade school certificate": "trade school",
    },
    "CarModel": {"ford f-150": "ford f150"},
}
"""Values by what a phrase calls them, where that is not the value itself."""


@dataclass(frozen=True)
class _Sentence:
    """How a clue may be stated: ``before``, a person, ``middle``, another person and ``after``, all of them patterns.

    ``swapped``: the second person of the sentence is the clue's first. ``middle`` is None where there is one person.
    ``less`` is what to take off a count for the number of houses between.
    """

    form: str
    before: re.Pattern[str]
    middle: re.Pattern[str] | None
    after: re.Pattern[str]
    swapped: bool
    less: int


def _sentence(form: str, pattern: str, less: int = 0) -> _Sentence:
    """A sentence from one pattern in which ``<a>`` and ``<b>`` stand for the clue's first and second person."""
    parts = re.split("<([ab])>", pattern)
    middle = re.compile(parts[2], re.IGNORECASE) if len(parts) == 5 else None
    before, after = re.compile(parts[0], re.IGNORECASE), re.compile(rf"(?:{parts[-1]})\Z", re.IGNORECASE)
    return _Sentence(form, before, middle, after, parts[1] == "b", less)


_COUNT, _ORDINAL, _DIGIT = rf"(?P<count>{_WORD})", rf"(?P<count>{'|'.join(_ORDINALS)})", r"(?P<count>\d)"
_SENTENCES = (
    # the benchmark's own sentences, which texts that are not reworded keep
    _sentence("in_house", rf"<a> is in the {_ORDINAL} house"),
    _sentence("not_in_house", rf"<a> is not in the {_ORDINAL} house"),
    _sentence("left_of", "<a> is somewhere to the left of <b>"),
    _sentence("right_of", "<a> is somewhere to the right of <b>"),
    _sentence("directly_left_of", "<a> is directly left of <b>"),
    _sentence("directly_right_of", "<a> is directly right of <b>"),
    _sentence("next_to", "<a> and <b> are next to each other"),
    _sentence("between", rf"there (?:is|are) {_COUNT} houses? between <a> and <b>"),
    _sentence("same_house", "<a> is <b>"),
    # other sentences
    _sentence("in_house", rf"number {_DIGIT} is home to <a>"),
    _sentence("in_house", rf"you will find <a> at number {_DIGIT}"),
    _sentence("in_house", rf"<a> lives at number {_DIGIT}"),
    _sentence("not_in_house", rf"number {_DIGIT} is not home to <a>"),
    _sentence("not_in_house", rf"you will not find <a> at number {_DIGIT}"),
    _sentence("not_in_house", rf"<a> lives at some number other than {_DIGIT}"),
    _sentence("same_house", "<a> and <b> are one and the same"),
    _sentence("same_house", "<a> also happens to be <b>"),
    _sentence("same_house", "nobody but <a> can be <b>"),
    _sentence("left_of", "<a> (?:lives further left|has a lower number) than <b>"),
    _sentence("left_of", "coming from the left, you pass <a> before <b>"),
    _sentence("right_of", "<a> (?:lives further right|has a higher number) than <b>"),
    _sentence("right_of", "coming from the left, you pass <a> after <b>"),
    _sentence("directly_left_of", "<a> lives one door to the left of <b>"),
    _sentence("directly_left_of", "the number of <a> is one less than that of <b>"),
    _sentence("directly_left_of", "<b> has <a> as immediate neighbor on the left side"),
    _sentence("directly_right_of", "<a> lives one door to the right of <b>"),
    _sentence("directly_right_of", "the number of <a> is one more than that of <b>"),
    _sentence("directly_right_of", "<b> has <a> as immediate neighbor on the right side"),
    _sentence("next_to", "<a> (?:lives next door to|shares a garden fence with) <b>"),
    _sentence("next_to", "the numbers of <a> and <b> differ by one"),
    _sentence("between", rf"the numbers of <a> and <b> differ by {_COUNT}", less=1),
    _sentence("between", rf"going from <a> to <b>, in whichever direction .* you walk past {_COUNT} other homes?"),
    _sentence("between", rf"{_COUNT} other homes? would have to go to make <a> and <b> adjacent"),
)
"""All sentences, without their full stop."""


def read_puzzle(text: str, where: str) -> Puzzle:
    """The puzzle that a text states.

    Args:
        where: the row, for error messages.

    Raises:
        DataError: a line that is not understood in exactly one way, which it quotes.
    """
    lines = [line.strip() for line in text.splitlines() if line.strip()]
    headings = [number for number, line in enumerate(lines) if line in _HEADINGS]
    opening = next((found for pattern in _OPENINGS if (found := pattern.fullmatch(lines[0]))), None) if lines else None
    if opening is None or len(headings) != 1:
        raise _not_understood(where, lines[0] if lines else "")
    n_houses = _number(opening["n"])
    if n_houses != int(opening["last"]):
        raise _not_understood(where, lines[0])
    categories: dict[str, tuple[str, ...]] = {}
    for line in lines[1 : headings[0]]:
        category, values = _read_list(line, where)
        if category in categories or len(values) != n_houses or len(set(values)) != n_houses:
            raise _not_understood(where, line)
        categories[category] = values
    clues = []
    for number, line in enumerate(lines[headings[0] + 1 :], start=1):
        numbered = _NUMBERED.fullmatch(line)
        readings = set(_readings(numbered[2], categories)) if numbered and int(numbered[1]) == number else set()
        if len(readings) != 1:
            raise _not_understood(where, line)
        clues.append(readings.pop())
        if len(set(clues[-1].attributes)) != len(clues[-1].attributes) or clues[-1].number > n_houses:
            raise _not_understood(where, line)
    return Puzzle(n_houses, categories, tuple(clues))


def _read_list(line: str, where: str) -> tuple[str, tuple[str, ...]]:
    found = _LIST.fullmatch(line)
    named = [key for key, title in _TITLES.items() if found and re.search(rf"\b(?:{title})", found[1], re.IGNORECASE)]
    if found is None or len(named) != 1:
        raise _not_understood(where, line)
    return named[0], tuple(value.strip("`") for value in re.split(r"[,;] ", found[2]))


def _readings(line: str, categories: Mapping[str, tuple[str, ...]]) -> Iterator[Clue]:
    """Every way to read a sentence as a clue about the puzzle's values."""
    if not line.endswith("."):
        return
    for sentence in _SENTENCES:
        before = sentence.before.match(line)
        after = sentence.after.search(line, before.end(), len(line) - 1) if before else None
        if before is None or after is None:
            continue
        parts = {**before.groupdict(), **after.groupdict()}
        number = _number(parts["count"]) - sentence.less if "count" in parts else 0
        if number < 1 and "count" in parts:  # the houses of direct neighbors differ by one: none lies between
            continue
        for persons in _persons(line, before.end(), sentence.middle, after.start(), categories):
            yield Clue(sentence.form, persons[::-1] if sentence.swapped else persons, number)


def _persons(
    line: str, start: int, middle: re.Pattern[str] | None, end: int, categories: Mapping[str, tuple[str, ...]]
) -> Iterator[tuple[Attribute, ...]]:
    """The values meant by a stretch of a sentence, cut in two wherever ``middle`` fits."""
    if middle is None:
        yield from ((attribute,) for attribute in _attributes(line[start:end], categories))
        return
    cut = middle.search(line, start, end)
    while cut is not None:
        for first in _attributes(line[start : cut.start()], categories):
            yield from ((first, second) for second in _attributes(line[cut.end() : end], categories))
        cut = middle.search(line, cut.start() + 1, end)


def _attributes(phrase: str, categories: Mapping[str, tuple[str, ...]]) -> Iterator[Attribute]:
    """Every value of the puzzle that a phrase may mean."""
    for category, called in _called(phrase):
        for value in categories.get(category, ()):
            if value.casefold() == called:
                yield Attribute(category, value)


@lru_cache(maxsize=1 << 14)
def _called(phrase: str) -> tuple[tuple[str, str], ...]:
    """The categories whose phrases this may be, each with the value that it would then mean, in lower case."""
    readings = []
    for category, pattern in _PHRASES.items():
        found = re.fullmatch(pattern, phrase, re.IGNORECASE)
        if found:
            called = next(group for group in found.groups() if group is not None).casefold()
            readings.append((category, _ALIASES.get(category, {}).get(called, called)))
    return tuple(readings)


def _number(word: str) -> int:
    small = word.lower()
    return int(word) if word.isdigit() else {**_NUMBERS, **_ORDINALS}[small]


def _not_understood(where: str, line: str) -> DataError:
    return DataError(
        f"{where}: this line is not understood in exactly one way: {line!r}. A wording of "
        "softcontam/duplicates/rules/zebralogic_lexicon.py needs its pattern in zebralogic_reader.py."
    )
