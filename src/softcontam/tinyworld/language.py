"""Sentences of the tinyworld: one table of patterns, used to write stories and to read them back.

A story states a start, some steps and a question. Each part can be worded in several ways, grouped in
styles: ``plain`` (the wording of the benchmarks), ``reworded`` (paraphrase) and ``inverted`` (the object
comes first, the last event is told first).
"""

from __future__ import annotations

import random
import re
from collections.abc import Mapping
from dataclasses import dataclass, replace

from softcontam.tinyworld.lexicon import CHANGE, MOVE

FINAL, START, AMOUNT, ACTOR = "final", "start", "amount", "actor"
"""What a question asks for: the last number, the first one, the size of the first step, or who acts."""


@dataclass(frozen=True)
class Problem:
    """What a story says, free of wording: the unit that the solver works on and equivalence is defined on."""

    world: str
    actor: str
    thing: str
    start: int
    steps: tuple[tuple[str, int], ...]
    query: str = FINAL


@dataclass(frozen=True)
class Style:
    """Patterns of one wording. ``later`` introduces a step after the first; ``told_backwards`` reverses the story."""

    start: tuple[str, ...]
    first: tuple[str, ...]
    later: tuple[str, ...]
    questions: Mapping[str, tuple[str, ...]]
    told_backwards: bool = False


@dataclass(frozen=True)
class World:
    """A way to dress the same arithmetic: its verbs with their directions, and its styles by name."""

    name: str
    verbs: dict[str, int]
    styles: dict[str, Style]


_HOLDINGS_QUESTIONS = {
    FINAL: ("How many {o} does {a} have now?",),
    START: ("How many {o} did {a} have at first?",),
    AMOUNT: ("How many {o} were in the first change?",),
    ACTOR: ("Who is the one with the {o}?",),
}
_TOWER_QUESTIONS = {
    FINAL: ("Which level is the {a} at now?",),
    START: ("Which level was the {a} at before?",),
    AMOUNT: ("How many levels was the first move?",),
    ACTOR: ("What is it that moves?",),
}

HOLDINGS = World(
    "holdings",
    CHANGE,
    {
        "plain": Style(
            start=("{a} has {s} {o}.",),
            first=("{a} {v} {n} {o}.",),
            later=("Then {a} {v} {n} {o}.",),
            questions=_HOLDINGS_QUESTIONS,
        ),
        "reworded": Style(
            start=("{a} starts with {s} {o}.", "There are {s} {o} with {a}."),
            first=("The next day {a} {v} {n} of the {o}.", "Soon {a} {v} {n} {o}."),
            later=("After that {a} {v} {n} more {o}.", "Later {a} also {v} {n} {o}."),
            questions={
                **_HOLDINGS_QUESTIONS,
                FINAL: ("What is the number of {o} with {a} in the end?", "Count the {o} that {a} has at the end."),
            },
        ),
        "inverted": Style(
            start=("Before all this {s} {o} were what {a} had.", "At the start {a} had {s} {o}."),
            first=("{n} {o} are what {a} {v}.", "It is {n} {o} that {a} {v}."),
            later=("Last of all {n} {o} are what {a} {v}.", "In the end it is {n} {o} that {a} {v}."),
            questions={**_HOLDINGS_QUESTIONS, FINAL: ("How many {o} does {a} have after it all?",)},
            told_backwards=True,
        ),
    },
)

TOWER = World(
    "tower",
    MOVE,
    {
        "plain": Style(
            start=("The {a} is at level {s}.",),
            first=("The {a} {v} by {n}.",),
            later=("Then the {a} {v} by {n}.",),
            questions=_TOWER_QUESTIONS,
        ),
        "reworded": Style(
            start=("Level {s} is where the {a} waits.",),
            first=("Soon it {v} {n} levels.",),
            later=("After that it {v} {n} levels.",),
            questions={**_TOWER_QUESTIONS, FINAL: ("At what level does the {a} end up?",)},
        ),
    },
)

WORLDS = {world.name: world for world in (HOLDINGS, TOWER)}


def write(problem: Problem, style: str | dict[str, str], rng: random.Random) -> str:
    """Word ``problem``. ``style`` names one style for the whole story, or one for each of start, steps, question."""
    world = WORLDS[problem.world]
    parts = style if isinstance(style, dict) else {"start": style, "steps": style, "question": style}
    fields = {"a": problem.actor, "o": problem.thing}
    steps_style = world.styles[parts["steps"]]
    sentences = [rng.choice(world.styles[parts["start"]].start).format(s=problem.start, **fields)]
    for position, (verb, amount) in enumerate(problem.steps):
        pattern = rng.choice(steps_style.first if position == 0 else steps_style.later)
        sentences.append(pattern.format(v=verb, n=amount, **fields))
    if steps_style.told_backwards:
        sentences.reverse()
    question = rng.choice(world.styles[parts["question"]].questions[problem.query]).format(**fields)
    return " ".join([*sentences, question])


def _reader(pattern: str) -> re.Pattern[str]:
    groups = {"a": r"(?P<a>\w+)", "o": r"(?P<o>\w+)", "v": r"(?P<v>\w+)", "s": r"(?P<s>\d+)", "n": r"(?P<n>\d+)"}
    seen: set[str] = set()

    def group(match: re.Match[str]) -> str:
        name = match.group(1)
        if name in seen:
            return f"(?P={name})"
        seen.add(name)
        return groups[name]

    return re.compile(re.sub(r"\\\{(\w)\\\}", group, re.escape(pattern)) + r"\Z")


def _readers() -> list[tuple[str, str, str, re.Pattern[str]]]:
    """(world, role of the sentence, query or position, regular expression), most specific first."""
    table: dict[str, tuple[str, str, str, re.Pattern[str]]] = {}
    for world in WORLDS.values():
        for style in world.styles.values():
            groups = {("start", ""): style.start, ("step", "first"): style.first, ("step", "later"): style.later}
            groups.update({("question", query): patterns for query, patterns in style.questions.items()})
            for (role, detail), patterns in groups.items():
                for pattern in patterns:
                    table[pattern] = (world.name, role, detail, _reader(pattern))
    return [table[pattern] for pattern in sorted(table, key=lambda p: (p.count("{"), -len(p)))]


_READERS = _readers()


def _read_sentence(sentence: str) -> tuple[str, str, str, dict[str, str]]:
    """World, role and detail of one sentence, and the words in its pattern's places."""
    for world, role, detail, reader in _READERS:
        found = reader.match(sentence)
        if found and (role != "step" or found["v"] in WORLDS[world].verbs):
            return world, role, detail, found.groupdict()
    raise ValueError(f"not a sentence of the tinyworld: {sentence!r}")


def read(text: str) -> Problem:
    """Recover the :class:`Problem` that a story states, for the actor and thing that its question names.

    Raises:
        ValueError: a sentence is not of the tinyworld, or the question has no start to refer to.
    """
    starts: dict[tuple[str, str], int] = {}
    steps: list[tuple[str, str, str, int, str]] = []
    question: tuple[str, str, str, str] | None = None
    for sentence in re.split(r"(?<=[.?]) ", text):
        world, role, detail, fields = _read_sentence(sentence)
        actor, thing = fields.get("a", ""), fields.get("o", "")
        if role == "start":
            if (actor, thing) in starts:
                raise ValueError(f"{text!r} states two starts for {actor or thing}")
            starts[actor, thing] = int(fields["s"])
        elif role == "step":
            steps.append((actor, thing, fields["v"], int(fields["n"]), detail))
        elif question is not None:
            raise ValueError(f"{text!r} asks two questions")
        else:
            question = (world, actor, thing, detail)
    if question is None:
        raise ValueError(f"no question in {text!r}")
    world, actor, thing, query = question
    owners = [key for key in starts if actor in ("", key[0]) and thing in ("", key[1])]
    if len(owners) != 1:
        raise ValueError(f"the question of {text!r} refers to {len(owners)} of its starts, expected 1")
    owner = owners[0]
    mine = [step for step in steps if step[0] in ("", owner[0]) and step[1] in ("", owner[1])]
    if mine and mine[0][4] != "first":  # told backwards, the last event first
        mine.reverse()
    return Problem(world, *owner, starts[owner], tuple((verb, amount) for _, _, verb, amount, _ in mine), query)


def asking(problem: Problem, query: str) -> Problem:
    """The same story with another question."""
    return replace(problem, query=query)
