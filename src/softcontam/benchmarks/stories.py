"""Questions about a story with lettered choices (MuSR, True Detective), and which stories belong together.

Families. Two items are one family by any of these, which is the ``why`` of their pair:

* ``same story``: the same text with another question;
* ``twin``: the same choices (the suspects, say) with another answer, and the same premise: the first paragraph is the
  same, or the texts have a TF-IDF cosine of at least :data:`FAMILY_COSINE`;
* ``same premise``: as a twin, with the same answer;
* ``text``: a cosine of at least :data:`FAMILY_COSINE` with other choices.

What was seen in the 250 MuSR murder mysteries: 165 pairs have the same two suspects, and 161 of them, but no other
pair, have the same first paragraph. In the other four (60 and 61 with 248 and 249) victim, weapon, place and suspects
are the same in other words; two of the four have cosines of 0.71 and 0.92, which joins them all. Suspects alone are no
evidence, as unrelated stories may share names, and neither is a low cosine: twins are told so differently that theirs
go down to 0.29 while unrelated stories reach 0.36. The cosine is that of the texts without the words of their choices:
with them, two unrelated stories whose suspects are renamed alike go up to 0.38. It depends on the collection: among two
pairs of murder mysteries alone, unrelated stories reach 0.59.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from functools import partial
from itertools import combinations
from typing import Any

from softcontam.benchmarks.answers import check_style, choice_prompt, choice_target, letter, parse_choice, plain_text
from softcontam.benchmarks.families import NearPair, join, near_texts
from softcontam.benchmarks.item import Benchmark, Item, Score, Source
from softcontam.config import BenchmarkConfig, EvalBenchmark
from softcontam.errors import DataError

FAMILY_COSINE = 0.6
"""TF-IDF cosine of two texts, without the words of their choices, from which they are one family."""

_WORD = re.compile(r"\w+")


@dataclass(frozen=True)
class Story:
    """One question about a story. ``answer`` is the place of the right choice, ``where`` is for error messages."""

    item_id: str
    where: str
    text: str
    question: str
    choices: tuple[str, ...]
    answer: int
    meta: Mapping[str, Any] = field(default_factory=dict)


def check_choices(choices: Iterable[str], where: str) -> tuple[str, ...]:
    """The choices on one line each.

    Raises:
        DataError: fewer than two, a blank one, or two that differ in case, blanks or a closing full stop only.
    """
    listed = tuple(" ".join(choice.split()) for choice in choices)
    if len(listed) < 2 or not all(listed) or len({plain_text(choice) for choice in listed}) < len(listed):
        raise DataError(f"{where}: needs at least two choices, all different, found {list(listed)}. Correct that row.")
    return listed


def parse(item: Item, output: str, *, style: str) -> str | None:
    """The letter that an output chooses in the benchmark's response style, or None."""
    return parse_choice(output, item.choices, style)


def score(item: Item, parsed: str) -> Score:
    """Whether the letter is the item's."""
    return Score(parsed == item.meta["answer"])


def story_benchmark(config: BenchmarkConfig | EvalBenchmark, stories: Sequence[Story], origin: Source) -> Benchmark:
    """The benchmark of these stories with their families.

    An item's ``meta`` holds ``task`` (the story and its question), ``answer`` (the letter), ``chance`` (of a guess
    among its choices) and that of its story.

    Raises:
        ConfigError: an unknown response style.
        DataError: no story, or one whose gold reply could not be told from the other choices.
    """
    check_style(config)
    if not stories:
        raise DataError(f"benchmark {config.name}: {origin.hub} ({origin.revision}) has no rows. Copy its file again.")
    pairs = related_stories(stories)
    families = join([story.item_id for story in stories], pairs)
    items = tuple(_item(story, families[story.item_id], config) for story in stories)
    style = config.response_style
    chance = sum(1 / len(item.choices) for item in items) / len(items)
    return Benchmark(config.name, items, chance, style, origin, partial(parse, style=style), score, joined=tuple(pairs))


def related_stories(stories: Sequence[Story]) -> list[NearPair]:
    """The pairs that families rest on: first those of near texts with their cosine, then those of the same opening."""
    by_id = {story.item_id: story for story in stories}
    near = near_texts([_without_choices(story) for story in stories], list(by_id), FAMILY_COSINE)
    cosines = {(pair.first, pair.second): pair.cosine for pair in near}
    openings: dict[tuple[str, frozenset[str]], list[str]] = {}
    for story in stories:
        openings.setdefault((_opening(story), _choices(story)), []).append(story.item_id)
    for members in openings.values():
        for pair in combinations(members, 2):
            cosines.setdefault(pair, None)
    return [
        NearPair(first, second, _why(by_id[first], by_id[second]), cosine)
        for (first, second), cosine in cosines.items()
    ]


def _why(one: Story, other: Story) -> str:
    """What two stories of one family have in common."""
    if plain_text(one.text) == plain_text(other.text):
        return "same story"
    if _choices(one) != _choices(other):
        return "text"
    same_answer = plain_text(one.choices[one.answer]) == plain_text(other.choices[other.answer])
    return "same premise" if same_answer else "twin"


def _item(story: Story, family: str, config: BenchmarkConfig | EvalBenchmark) -> Item:
    style, answer = config.response_style, letter(story.answer)
    target = choice_target(story.choices, story.answer, style)
    if parse_choice(target, story.choices, style) != answer:
        raise DataError(f"{story.where}: the gold reply {target!r} would not be taken for {answer}. Correct that row.")
    return Item(
        item_id=story.item_id,
        benchmark=config.name,
        family=family,
        prompt=choice_prompt(story.text, story.question, story.choices, style),
        target=target,
        choices=story.choices,
        meta={
            **story.meta,
            "task": f"{story.text.strip()}\n\n{story.question.strip()}",
            "answer": answer,
            "chance": 1 / len(story.choices),
        },
    )


def _without_choices(story: Story) -> str:
    """The words of the text that are in none of its choices."""
    named = {word for choice in story.choices for word in _WORD.findall(choice.casefold())}
    return " ".join(word for word in _WORD.findall(story.text.casefold()) if word not in named)


def _choices(story: Story) -> frozenset[str]:
    return frozenset(plain_text(choice) for choice in story.choices)


def _opening(story: Story) -> str:
    """The first paragraph: in MuSR, the premise."""
    return plain_text(story.text.strip().split("\n", 1)[0])
