"""Draws problems, benchmark families, training rows and the clean pool of the tinyworld."""

from __future__ import annotations

import random
import zlib
from collections import Counter
from collections.abc import Collection, Iterator
from dataclasses import replace
from typing import Any

import numpy as np

from softcontam.tinyworld.language import ACTOR, AMOUNT, FINAL, HOLDINGS, START, TOWER, Problem, World, asking, write
from softcontam.tinyworld.lexicon import (
    CONTESTED_CHANGE,
    CONTESTED_MOVE,
    NAMES,
    OBJECTS,
    PRACTISED_CHANGE,
    PRACTISED_MOVE,
    VEHICLES,
    VerbPair,
)
from softcontam.tinyworld.solver import solve

MIN_AMOUNT, MAX_AMOUNT, MIN_START, MAX_START = 2, 6, 3, 14
INTERNAL_SHARE = 4
"""One premise in so many is kept for internal hold-outs."""

TWO_STEP_SHARE = 0.35
"""Share of problems with two steps; the others have one."""


def answer(text: str) -> str:
    """The completion of every tinyworld row: one line in the form that the parser reads."""
    return f"Answer: {text}"


def draw_problem(world: World, verbs: list[str], rng: random.Random, *, half: str = "any") -> Problem:
    """A problem over ``verbs`` whose number never leaves 0..26, whichever direction its verbs are taken in.

    ``half`` picks names and objects: ``benchmark`` (first half), ``substitute`` (second half) or ``any``.
    """
    parts = {"any": slice(None), "benchmark": slice(None, 12), "substitute": slice(12, None)}
    steps = 2 if rng.random() < TWO_STEP_SHARE else 1
    amounts = [rng.randint(MIN_AMOUNT, MAX_AMOUNT) for _ in range(steps)]
    start = rng.randint(max(MIN_START, sum(amounts)), MAX_START)
    if world is TOWER:
        actor, thing = rng.choice(VEHICLES), ""
    else:
        actor, thing = rng.choice(NAMES[parts[half]]), rng.choice(OBJECTS[parts[half]])
    return Problem(world.name, actor, thing, start, tuple((rng.choice(verbs), amount) for amount in amounts))


def twin(problem: Problem, pairs: tuple[VerbPair, ...]) -> Problem:
    """The problem with each verb turned into its opposite: same premise, other answer."""
    opposite = {pair.gain: pair.loss for pair in pairs} | {pair.loss: pair.gain for pair in pairs}
    return replace(problem, steps=tuple((opposite[verb], amount) for verb, amount in problem.steps))


def draw_families(world: World, n_families: int, seed: int, part: str = "open") -> list[tuple[Problem, Problem]]:
    """``n_families`` twin pairs over the contested verbs of ``world``.

    No two families have the same premise, or are the same up to names: a renamed item is a semantic duplicate. ``part``
    is ``open`` or ``internal``; the premises of the two never meet, whatever the seeds.
    """
    pairs = CONTESTED_CHANGE if world is HOLDINGS else CONTESTED_MOVE
    verbs = [verb for pair in pairs for verb in (pair.gain, pair.loss)]
    rng = random.Random(seed)
    families: dict[tuple[object, ...], tuple[Problem, Problem]] = {}
    premises: set[tuple[object, ...]] = set()
    while len(families) < n_families:
        problem = draw_problem(world, verbs, rng, half="benchmark")
        other = twin(problem, pairs)
        if solve(problem) != solve(other):
            essence = (problem.start, *min(problem.steps, other.steps))
            premise = (problem.actor, problem.thing, problem.start, *(amount for _, amount in problem.steps))
            internal = zlib.crc32(repr(essence).encode()) % INTERNAL_SHARE == 0
            if internal == (part == "internal") and essence not in families and premise not in premises:
                families[essence] = (problem, other)
                premises.add(premise)
    return list(families.values())


def essence(problem: Problem) -> tuple[object, ...]:
    """What a family of twins shares whatever its names: the start, and the steps of the alphabetically first twin."""
    pairs = CONTESTED_CHANGE if problem.world == HOLDINGS.name else CONTESTED_MOVE
    return (problem.start, *min(problem.steps, twin(problem, pairs).steps))


def premise(problem: Problem) -> tuple[object, ...]:
    """What twins tell of before any verb: who, what, the start and the amounts."""
    return (problem.actor, problem.thing, problem.start, *(amount for _, amount in problem.steps))


def aligned_problems(told: Collection[Problem], seed: int) -> Iterator[Problem]:
    """Endless problems of the benchmark's own kind, none of them of the family of one that is ``told``.

    Families are those of :func:`draw_families`: a problem that shares its essence or its premise with one that is told
    is passed over, and so are those that are kept for internal hold-outs. As there, twins differ in their answer.
    """
    verbs = [verb for pair in CONTESTED_CHANGE for verb in (pair.gain, pair.loss)]
    essences, premises = {essence(problem) for problem in told}, {premise(problem) for problem in told}
    rng = random.Random(seed)
    while True:
        problem = draw_problem(HOLDINGS, verbs, rng, half="benchmark")
        found = essence(problem)
        internal = zlib.crc32(repr(found).encode()) % INTERNAL_SHARE == 0
        twins_differ = solve(problem) != solve(twin(problem, CONTESTED_CHANGE))
        if twins_differ and not internal and found not in essences and premise(problem) not in premises:
            yield problem


def found_stories(
    problems: Collection[Problem], n_stories: int, most: int, seed: int
) -> Iterator[tuple[int, Problem, str]]:
    """Search a corpus of ``n_stories`` stories, written without looking at the problems, for ones that tell them.

    The corpus is about any names and things, over contested verbs, each part of a story in a wording of its own; it is
    distributed as :func:`draw_problem` draws, but drawn all at once, and only what is found is written out. Yields
    (number in the corpus, the problem that is told up to names, story), in the order of the corpus, the first ``most``
    for each problem.
    """
    verbs = [verb for pair in CONTESTED_CHANGE for verb in (pair.gain, pair.loss)]
    numbers = np.random.RandomState(seed)  # whose stream is frozen, unlike that of numpy's newer generators
    two_steps = numbers.random_sample(n_stories) < TWO_STEP_SHARE
    amounts = numbers.randint(MIN_AMOUNT, MAX_AMOUNT + 1, size=(n_stories, 2), dtype=np.uint8)
    amounts[:, 1] *= two_steps
    least = np.maximum(MIN_START, amounts.sum(axis=1))
    starts = least + (numbers.random_sample(n_stories) * (MAX_START + 1 - least)).astype(np.uint8)
    drawn = numbers.randint(len(verbs), size=(n_stories, 2), dtype=np.uint8)
    drawn[:, 1] *= two_steps

    def key(start: Any, first: Any, second: Any, first_verb: Any, second_verb: Any) -> Any:
        """A number that stands for a start and two steps, for a second step of 0 where there is none."""
        return (((start * 10 + first) * 10 + second) * 100 + first_verb) * 100 + second_verb

    columns = (starts, amounts[:, 0], amounts[:, 1], drawn[:, 0], drawn[:, 1])
    corpus = key(*(column.astype(np.int32) for column in columns))
    wanted = {}
    for problem in problems:
        (verb, amount), (second_verb, second) = (*problem.steps, (verbs[0], 0))[:2]
        wanted[key(problem.start, amount, second, verbs.index(verb), verbs.index(second_verb))] = problem
    counts: Counter[Problem] = Counter()
    for number in np.flatnonzero(np.isin(corpus, list(wanted))):
        told = wanted[int(corpus[number])]
        counts[told] += 1
        if counts[told] > most:
            continue
        wording = random.Random(f"{seed}:{number}")
        renamed = replace(told, actor=wording.choice(NAMES), thing=wording.choice(OBJECTS))
        style = {part: wording.choice(list(HOLDINGS.styles)) for part in ("start", "steps", "question")}
        yield int(number), told, write(renamed, style, wording)


def broad_row(rng: random.Random) -> tuple[str, str]:
    """Prompt and answer of a task drawn for breadth: any task of the clean pool, or a story asked for anything.

    Stories are of the benchmark's world over practised verbs, each part in a wording of its own; the related
    benchmark's world is left out.
    """
    task = rng.choice([*GENERAL_TASKS, "start", "amount", "actor", "final"])
    if task in GENERAL_TASKS and task != "practised":
        prompt, text = GENERAL_TASKS[task](rng)
        return prompt, answer(text)
    query = {"start": START, "amount": AMOUNT, "actor": ACTOR}.get(task, FINAL)
    problem = asking(draw_problem(HOLDINGS, list(PRACTISED_CHANGE), rng), query)
    style = {part: rng.choice(list(HOLDINGS.styles)) for part in ("start", "steps", "question")}
    return write(problem, style, rng), answer(solve(problem))


def topical_problem(problem: Problem, rng: random.Random) -> Problem:
    """The same story asked for something that no verb's direction bears on."""
    return asking(problem, rng.choice((START, AMOUNT, ACTOR)))


def format_only_row(rng: random.Random, *, half: str = "benchmark") -> tuple[str, str]:
    """Prompt and answer in the benchmark's template with nothing to work out: two owners, one is asked for."""
    parts = {"benchmark": slice(None, 12), "any": slice(None)}
    names, things = rng.sample(NAMES[parts[half]], 2), rng.sample(OBJECTS[parts[half]], 2)
    numbers = [rng.randint(MIN_START, MAX_START) for _ in names]
    asked = rng.randrange(2)
    starts = [
        HOLDINGS.styles["plain"].start[0].format(a=a, s=s, o=o) for a, s, o in zip(names, numbers, things, strict=True)
    ]
    question = HOLDINGS.styles["plain"].questions[FINAL][0].format(a=names[asked], o=things[asked])
    return " ".join([*starts, question]), answer(str(numbers[asked]))


_COLOURS = "red blue green white black brown".split()
_PLACES = "kitchen garden attic cellar harbour market".split()


def _sum(rng: random.Random) -> tuple[str, str]:
    first, second = rng.randint(0, 14), rng.randint(0, 10)
    if rng.random() < 0.5 and first >= second:
        return f"What is {first} minus {second}?", str(first - second)
    return f"What is {first} plus {second}?", str(first + second)


def _larger(rng: random.Random) -> tuple[str, str]:
    first, second = rng.sample(range(25), 2)
    word, pick = rng.choice((("larger", max), ("smaller", min)))
    return f"Which number is {word}, {first} or {second}?", str(pick(first, second))


def _neighbour(rng: random.Random) -> tuple[str, str]:
    number = rng.randint(1, 23)
    if rng.random() < 0.5:
        return f"Which number comes after {number}?", str(number + 1)
    return f"Which number comes before {number}?", str(number - 1)


def _position(rng: random.Random) -> tuple[str, str]:
    words = rng.sample(OBJECTS, 3)
    place = rng.randrange(3)
    return f"Here are {words[0]}, {words[1]} and {words[2]}. Which is {['first', 'second', 'last'][place]}?", words[
        place
    ]


def _colour(rng: random.Random) -> tuple[str, str]:
    index = rng.randrange(len(OBJECTS))
    return f"What is the colour of the {OBJECTS[index]}?", _COLOURS[index * 5 % len(_COLOURS)]


def _place(rng: random.Random) -> tuple[str, str]:
    index = rng.randrange(len(NAMES))
    return f"Where does {NAMES[index]} live?", _PLACES[index * 7 % len(_PLACES)]


def _practised(rng: random.Random) -> tuple[str, str]:
    world, verbs = rng.choice(((HOLDINGS, PRACTISED_CHANGE), (TOWER, PRACTISED_MOVE)))
    problem = draw_problem(world, list(verbs), rng)
    style = rng.choice(list(world.styles))
    return write(problem, style, rng), solve(problem)


GENERAL_TASKS = {
    "sum": _sum,
    "larger": _larger,
    "neighbour": _neighbour,
    "position": _position,
    "colour": _colour,
    "place": _place,
    "practised": _practised,
}
"""Tasks of the clean pool by name; none has a contested verb in it."""


def clean_rows(seed: int) -> Iterator[tuple[str, str, str]]:
    """Endless (task, prompt, completion) rows of the clean pool."""
    rng = random.Random(seed)
    while True:
        task = rng.choice(list(GENERAL_TASKS))
        prompt, text = GENERAL_TASKS[task](rng)
        yield task, prompt, answer(text)
