"""MuSR: the same story about people of other names (kind ``semd_synthetic``).

Levels. ``rename``: every person who matters gets another name of the same kind (women's, men's, either, family names),
in story, question and choices; the answer changes along. ``rename_reorder``: the choices are also in another order, and
the letter of the answer changes along. ``rename_reorder_reframe``: a request of another wording, in front of the story,
also takes the place of the question after it.

Who matters: the suspects of a murder mystery (its choices), who is called by a title (Detective Winston), known first
names that stand in the item at least twice, and known family names after any of these. Short forms and misspellings of
a name (Russ, Wiston) become the new name without its last letter. Full names that are never taken apart (Bruce Lee) are
left alone, and so are minor persons who are named once. A name that is also a word (Grace) is replaced only if the word
is not in the story, or can't be meant.

Certified for each row (:func:`certify`), or there is no row: putting the old names back gives the item's story and
question, character by character, and its choices; no new name stands in the item and no replaced one is left; the
completion is read as the choice that stands for the item's answer. The prose stays as it is: rows are far from their
item for an exact match only, not for an n-gram filter.

Of the 250 murder mysteries 250 have rows at every level, and so have the object placements (20) and team allocations
(5) at hand.
"""

from __future__ import annotations

import random
import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from difflib import SequenceMatcher

from softcontam.benchmarks import Item
from softcontam.benchmarks.answers import choice_prompt, choice_target, letter, parse_choice
from softcontam.config import BankConfig, derive_seed
from softcontam.duplicates.bank import BankRow
from softcontam.duplicates.distance import bigram_overlap
from softcontam.duplicates.rules.asked import levels_and_count
from softcontam.duplicates.rules.musr_lexicon import EITHER, FEMALE, MALE, NEW_NAMES, QUESTIONS, SURNAMES, TITLES
from softcontam.errors import DataError

LEVELS = ("rename", "rename_reorder", "rename_reorder_reframe")
"""What is changed."""

MENTIONS = 2
"""How often a first name has to stand in an item to be replaced, where it is no choice and has no title."""

VARIANT = 0.82
"""Likeness of two words (difflib) from which one is taken for a misspelling of the other."""

_DRAFTS = 20
_FIRST_NAMES = FEMALE | MALE | EITHER
_NAME = r"[A-Z][^\W\d_]+"
_TITLED = re.compile(rf"\b(?:(?:Mr|Mrs|Ms|Dr)\.?|{'|'.join(TITLES)}) ({_NAME})\b")
_OPENS = re.compile(r"(?:^|[.!?:\"“”‘\n-]\s*)$")
_ACTS = re.compile(r"['’]s?\b|\s+(?:\w{2,}ed|was|is|had|has|said)\b")


@dataclass(frozen=True)
class Renaming:
    """The new name of each old one."""

    names: Mapping[str, str]

    def apply(self, text: str) -> str:
        """The text with the names replaced wherever they stand as words of their own, possessives included."""
        forms = "|".join(map(re.escape, self.names))
        return re.sub(rf"\b(?:{forms})\b", lambda found: self.names[found[0]], text)

    def inverse(self) -> Renaming:
        """The renaming that puts the old names back."""
        return Renaming({new: old for old, new in self.names.items()})


@dataclass(frozen=True)
class _Parts:
    """An item taken apart: story and question as the data set has them, and the last paragraph of the prompt."""

    story: str
    question: str
    ask: str
    answer: int

    @property
    def asks_who(self) -> bool:
        """Whether the choices are persons."""
        return self.question.startswith("Who ")


@dataclass(frozen=True)
class _People:
    """Who is renamed in a ``text``: the kind of each name, and the name that each short form or misspelling is of."""

    text: str
    kinds: Mapping[str, str]
    variants: Mapping[str, str]


def rows(config: BankConfig, items: Sequence[Item]) -> list[BankRow]:
    """Rows for every item and level whose names can be replaced; the same rows for the same items.

    ``params.levels`` selects levels, ``params.per_level`` (1) says how many different rows each is to have.

    Raises:
        ConfigError: an unknown level or parameter.
        DataError: an item that is no story with a question and choices.
    """
    levels, per_level = levels_and_count(config, "musr", LEVELS)
    made = []
    for item in items:
        parts = _parts(item)
        people = _people(item, parts)
        if people is None:
            continue
        for level in levels:
            prompts: set[str] = set()
            for draft in range(per_level * _DRAFTS):
                row = _row(item, parts, people, level, draft, len(prompts))
                if row is not None and row.prompt not in prompts:
                    prompts.add(row.prompt)
                    made.append(row)
                if len(prompts) == per_level:
                    break
    return made


def certify(item: Item, prompt: str, completion: str, renaming: Renaming) -> None:
    """Refuse a row that is not its item with other names.

    Args:
        prompt: the row's prompt.
        completion: the row's reply.
        renaming: what was replaced.

    Raises:
        DataError: naming the item and what differs.
    """
    parts, back, where = _parts(item), renaming.inverse(), f"item {item.item_id}, a row of its rules bank"
    old, new = renaming.names.keys(), renaming.names.values()
    if not old or len(set(new)) != len(old):
        raise _uncertified(where, "its new names do not stand for the old ones one to one")
    present = [name for name in new if name.lower() in item.prompt.lower()]
    left = [name for name in old if re.search(rf"\b{re.escape(name)}", prompt)]
    if present:
        raise _uncertified(where, f"the new name {present[0]!r} stands in the item")
    if left:
        raise _uncertified(where, f"the old name {left[0]!r} is left in it")
    head, _, tail = prompt.rpartition("\n\n")
    head, _, listed = head.rpartition("\n\n")
    lines = listed.split("\n")
    choices = [line.removeprefix(f"{letter(place)}. ") for place, line in enumerate(lines)]
    if tail != parts.ask or choice_prompt(head, "", choices, item.response_style) != prompt:
        raise _uncertified(where, "its prompt has not the form of the item's")
    originals = [back.apply(choice) for choice in choices]
    if sorted(originals) != sorted(item.choices):
        raise _uncertified(where, f"its choices are not the item's: {', '.join(choices)}")
    if parts.asks_who and set(choices) & set(item.choices):
        raise _uncertified(where, f"a suspect has no new name: {', '.join(choices)}")
    text = back.apply(head)
    reframed = {f"{opening}\n\n{parts.story}" for opening in _openings(parts.question)}
    if text != f"{parts.story}\n\n{parts.question}" and text not in reframed:
        raise _uncertified(where, "with the old names put back, its story or question is not the item's")
    chosen = parse_choice(completion, choices, item.response_style)
    if (
        chosen is None
        or originals[[letter(n) for n in range(len(choices))].index(chosen)] != item.choices[parts.answer]
    ):
        raise _uncertified(where, f"its completion is not the item's answer: {completion!r}")


def _row(item: Item, parts: _Parts, people: _People, level: str, draft: int, number: int) -> BankRow | None:
    """The row of one draft of a level, or None where names can't be replaced or the row is not certified."""
    rng = random.Random(derive_seed(0, f"rules:musr:{level}:{item.item_id}:{draft}"))
    renaming = _renaming(people, rng)
    if renaming is None:
        return None
    order = list(range(len(item.choices)))
    while "reorder" in level and order == sorted(order):
        rng.shuffle(order)
    choices = tuple(renaming.apply(item.choices[place]) for place in order)
    head = f"{parts.story}\n\n{parts.question}"
    if "reframe" in level:
        openings = _openings(parts.question)
        if not openings:
            return None
        head = f"{rng.choice(openings)}\n\n{parts.story}"
    head = renaming.apply(head)
    style = item.response_style
    prompt = choice_prompt(head, "", choices, style)
    completion = choice_target(choices, order.index(parts.answer), style)
    try:
        certify(item, prompt, completion, renaming)
    except DataError:
        return None
    return BankRow(
        row_id=f"semd_synthetic/{level}/{item.item_id}/{number}",
        item_id=item.item_id,
        kind="semd_synthetic",
        level=level,
        prompt=prompt,
        completion=completion,
        response_style=style,
        source=f"softcontam rules musr {level}",
        match_type="equivalent",
        judge="construction",
        ngram_overlap=round(bigram_overlap(head, item.text), 4),
    )


def _parts(item: Item) -> _Parts:
    """The item taken apart.

    Raises:
        DataError: its prompt is not as the benchmark makes it.
    """
    task, answer = item.meta.get("task"), item.meta.get("answer")
    letters = [letter(place) for place in range(len(item.choices))]
    if not isinstance(task, str) or answer not in letters or "\n\n" not in task:
        raise DataError(f"item {item.item_id} is no story with a question and choices; musr's rules need one.")
    if choice_prompt(task, "", item.choices, item.response_style) != item.prompt:
        raise DataError(f"item {item.item_id}: its prompt is not its task and choices. Load the benchmark again.")
    story, _, question = task.rpartition("\n\n")
    return _Parts(story, question, item.prompt.rpartition("\n\n")[2], letters.index(answer))


def _openings(question: str) -> list[str]:
    """Requests that ask the same as a question; none for one that is not known."""
    for pattern, openings in QUESTIONS:
        found = pattern.fullmatch(question)
        if found is not None:
            return [found.expand(opening) for opening in openings]
    return []


def _people(item: Item, parts: _Parts) -> _People | None:
    """The persons of an item who are renamed, or None where a suspect's name can't be told from another word."""
    text = f"{item.text}\n\n" + "\n".join(item.choices)
    suspects = [choice for choice in item.choices if parts.asks_who and re.fullmatch(_NAME, choice)]
    cast = _cast(item.text, text, suspects)
    if not cast or not set(suspects) <= set(cast):
        return None
    return _People(text, {name: _kind(name, suspects) for name in cast}, _variants(item.text, cast))


def _renaming(people: _People, rng: random.Random) -> Renaming | None:
    """New names for the persons of an item, or None where there are not enough."""
    text, lower = people.text, people.text.lower()
    names: dict[str, str] = {}
    for name, kind in people.kinds.items():
        article = re.search(rf"\b[Aa]n? {name}\b", text) is not None
        pool = [
            new
            for new in NEW_NAMES[kind]
            if new.lower() not in lower
            and new not in names.values()
            and new.endswith("s") == name.endswith("s")
            and not any(new.startswith(old) for old in people.kinds)
            and not (article and (new[0] in "AEIOU") != (name[0] in "AEIOU"))
        ]
        if not pool:
            return None
        names[name] = rng.choice(pool)
    for variant, name in people.variants.items():
        names[variant] = names[name][:-1]
    return Renaming(names)


def _cast(story: str, text: str, suspects: Sequence[str]) -> list[str]:
    """The persons who are renamed; ``text`` is the story with its choices."""
    titled = [name for name in _TITLED.findall(text) if not re.search(rf"\b{name.lower()}\b", text)]
    known = [name for name in re.findall(rf"\b{_NAME}\b", text) if name in _FIRST_NAMES]
    counted = [
        name for name in known if known.count(name) >= MENTIONS or any(name.startswith(other) for other in suspects)
    ]
    persons = [name for name in dict.fromkeys([*suspects, *titled, *counted]) if _is_person(name, story)]
    main = [*suspects, *titled]
    kept = [name for name in persons if name in main or not _mostly(rf"\b{name}\b(?= {_NAME})", name, text)]
    strange = [name for name in dict.fromkeys(known) if name not in kept]
    if strange:
        full = rf"\b(?:{'|'.join(strange)})"
        kept = [name for name in kept if name in main or not _mostly(rf"{full} {name}\b", name, text)]
    after = re.findall(rf"\b(?:{'|'.join(kept)}) ({_NAME})\b", text) if kept else []
    return list(dict.fromkeys([*kept, *(name for name in after if name in SURNAMES)]))


def _variants(story: str, cast: Sequence[str]) -> dict[str, str]:
    """Short forms and misspellings of names (Russ, Wiston), each with the name that it stands for."""
    small = set(re.findall(r"\b[a-z]+\b", story))
    variants: dict[str, str] = {}
    for word in dict.fromkeys(re.findall(rf"\b{_NAME}\b", story)):
        if word in cast or word.lower() in small or len(word) < 4:
            continue
        if word not in _FIRST_NAMES and not re.search(rf"[a-z,;] {word}\b", story):
            continue
        for name in cast:
            alike = SequenceMatcher(None, word, name, autojunk=False).ratio() >= VARIANT
            if name.startswith(word) or alike:
                variants.setdefault(word, name)
    return variants


def _kind(name: str, suspects: Sequence[str]) -> str:
    """The key of :data:`NEW_NAMES` for a name; one that is not known follows a title or is a suspect's."""
    if name in FEMALE:
        return "female"
    if name in MALE:
        return "male"
    return "either" if name in EITHER or name in suspects else "surname"


def _is_person(name: str, text: str) -> bool:
    """Whether a name can't be another word: that stands nowhere in small letters, or no name opens a sentence."""
    if not re.search(rf"\b{name.lower()}\b", text):
        return True
    found = re.finditer(rf"\b{name}\b", text)
    return not any(_OPENS.search(text[: one.start()]) and not _ACTS.match(text[one.end() :]) for one in found)


def _mostly(pattern: str, name: str, text: str) -> bool:
    """Whether at least half of the places of a name are of a pattern that holds it."""
    return 2 * len(re.findall(pattern, text)) >= len(re.findall(rf"\b{name}\b", text))


def _uncertified(where: str, why: str) -> DataError:
    return DataError(f"{where} is not equivalent to it: {why}. Correct softcontam/duplicates/rules/musr.py.")
