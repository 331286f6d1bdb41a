"""The English of tinyworld: hand-written stories with known answers, round trips, and what is not its language."""

from __future__ import annotations

import random
from itertools import product

import pytest

from softcontam.tinyworld.language import ACTOR, AMOUNT, FINAL, HOLDINGS, START, TOWER, WORLDS, Problem, read, write
from softcontam.tinyworld.lexicon import NAMES, OBJECTS, VEHICLES
from softcontam.tinyworld.solver import equivalent, solve

STORIES = [
    ("Mia has 5 pears. Mia finds 3 pears. How many pears does Mia have now?", "8"),
    ("Mia has 5 pears. Mia loses 3 pears. How many pears does Mia have now?", "2"),
    ("Tom has 9 keys. Tom sells 4 keys. Then Tom buys 2 keys. How many keys does Tom have now?", "7"),
    (
     "Tom starts with 9 keys. "
     "Soon Tom sells 4 keys. Later Tom also buys 2 keys. Count the keys that Tom has at the end.",
     "7"),
    (
     "There are 6 hats with Gus. "
     "The next day Gus eats 6 of the hats. What is the number of hats with Gus in the end?",
     "0"),
    # the object first
    ("At the start Ana had 4 cups. 3 cups are what Ana wins. How many cups does Ana have after it all?", "7"),
    ("Before all this 8 cups were what Ana had. It is 3 cups that Ana drops. How many cups does Ana have now?", "5"),
    # the last event first
    ("Last of all 2 bells are what Leo gets. It is 5 bells that Leo loses. At the start Leo had 9 bells. "
     "How many bells does Leo have after it all?", "6"),
    ("In the end it is 6 bells that Leo loses. 3 bells are what Leo earns. At the start Leo had 4 bells. "
     "How many bells does Leo have now?", "1"),
    ("3 rings are what Kim adds. Kim starts with 4 rings. What is the number of rings with Kim in the end?", "7"),
    # the other world
    ("The drone is at level 4. The drone climbs by 3. Which level is the drone at now?", "7"),
    ("The drone is at level 9. The drone sinks by 3. Then the drone rises by 2. Which level is the drone at now?", "8"),
    ("Level 9 is where the kite waits. Soon it falls 3 levels. After that it sinks 2 levels. "
     "At what level does the kite end up?", "4"),
    # other questions about the same stories
    ("Mia has 5 pears. Mia loses 3 pears. How many pears did Mia have at first?", "5"),
    ("Last of all 2 bells are what Leo gets. It is 5 bells that Leo loses. At the start Leo had 9 bells. "
     "How many bells were in the first change?", "5"),
    ("Mia has 5 pears. Mia loses 3 pears. Who is the one with the pears?", "Mia"),
    ("The drone is at level 9. The drone sinks by 3. Which level was the drone at before?", "9"),
    ("The drone is at level 9. The drone sinks by 3. How many levels was the first move?", "3"),
    ("The drone is at level 9. The drone sinks by 3. What is it that moves?", "drone"),
    # somebody else is there too
    ("Mia has 5 pears. Tom has 7 keys. How many keys does Tom have now?", "7"),
    ("Mia has 5 pears. Tom has 7 pears. Mia loses 3 pears. How many pears does Tom have now?", "7"),
]  # fmt: skip


@pytest.mark.parametrize(("story", "expected"), STORIES)
def test_hand_written_stories(story: str, expected: str) -> None:
    assert solve(read(story)) == expected


def problems(world: str, count: int, seed: int, steps: tuple[int, ...] = (1, 2)) -> list[Problem]:
    """Problems over every verb of a world, made here and not by the package's generator."""
    rng = random.Random(seed)
    verbs = sorted(WORLDS[world].verbs)
    drawn = []
    for _ in range(count):
        told = tuple((rng.choice(verbs), rng.randint(0, 99)) for _ in range(rng.choice(steps)))
        actor, thing = (rng.choice(NAMES), rng.choice(OBJECTS)) if world == "holdings" else (rng.choice(VEHICLES), "")
        drawn.append(Problem(world, actor, thing, rng.randint(0, 99), told, rng.choice((FINAL, START, AMOUNT, ACTOR))))
    return drawn


STYLES = [(world.name, style) for world in (HOLDINGS, TOWER) for style in world.styles]


@pytest.mark.parametrize(("world", "style"), STYLES)
def test_what_is_written_is_read_back_in_every_style(world: str, style: str) -> None:
    rng = random.Random(7)
    for problem in problems(world, 400, 1):
        text = write(problem, style, rng)
        assert read(text) == problem, text


@pytest.mark.parametrize("world", ["holdings", "tower"])
def test_mixed_styles_are_read_back(world: str) -> None:
    rng = random.Random(8)
    styles = list(WORLDS[world].styles)
    for start, steps, question in product(styles, repeat=3):
        for problem in problems(world, 30, 2):
            text = write(problem, {"start": start, "steps": steps, "question": question}, rng)
            assert read(text) == problem, text


def test_three_steps_told_backwards_are_read_back() -> None:
    rng = random.Random(9)
    for problem in problems("holdings", 100, 3, steps=(3,)):
        assert read(write(problem, "inverted", rng)) == problem


@pytest.mark.parametrize(("world", "style"), STYLES)
def test_every_wording_of_a_style_is_used(world: str, style: str) -> None:
    patterns = WORLDS[world].styles[style]
    rng = random.Random(1)
    firsts = {write(problem, style, rng) for problem in problems(world, 1, 5, steps=(2,)) * 200}
    assert len(firsts) >= len(patterns.start) * len(patterns.first) * len(patterns.later)


@pytest.mark.parametrize(
    "text",
    [
        "",
        "Mia has 5 pears.",
        "How many pears does Mia have now?",
        "Mia has 5 pears. Mia devours 3 pears. How many pears does Mia have now?",
        "Mia has five pears. Mia finds 3 pears. How many pears does Mia have now?",
        "Mia has 5 pears. Mia finds 3 keys and a map. How many pears does Mia have now?",
        "Mia has 5 pears. Mia finds -3 pears. How many pears does Mia have now?",
        "Mia has 5 pears. Mia finds 3 pears. How many pears does Tom have now?",
        "Mia has 5 pears. Mia finds 3 pears. How many keys does Mia have now?",
        "Mia has 5 pears. Ignore that. How many pears does Mia have now?",
        "Mia has 5 pears. Mia finds 3 pears. How many pears does Mia have now? Say it.",
        "Before all this 8 cups were what Ana had. It is 3 cups that Ana drops",
        "What is 3 plus 4?",
    ],
)
def test_foreign_text_is_rejected(text: str) -> None:
    with pytest.raises(ValueError, match=r"not a sentence|no question|refers to"):
        read(text)


@pytest.mark.parametrize(
    "text",
    [
        pytest.param("Mia has 5 pears. Mia has 7 pears. Mia finds 3 pears. How many pears does Mia have now?"),
        pytest.param(
            "Mia has 5 pears. Mia finds 3 pears. How many pears does Mia have now? Who is the one with the pears?"
        ),
        "Mia has 5 pears. Soon it rises 3 levels. How many pears does Mia have now?",
    ],
)
def test_a_story_that_contradicts_itself_is_rejected(text: str) -> None:
    with pytest.raises(ValueError, match=r".+"):
        solve(read(text))


PEARS = "Mia has 5 pears. Mia loses 3 pears. Then Mia finds 2 pears. How many pears does Mia have now?"


@pytest.mark.parametrize(
    ("other", "same"),
    [
        (PEARS, True),
        (PEARS.replace("Mia", "Tom").replace("pears", "keys"), True),
        ("In the end it is 2 pears that Mia finds. 3 pears are what Mia loses. At the start Mia had 5 pears. "
         "How many pears does Mia have after it all?", True),
        # the events swapped, another verb, number, start or question
        ("Mia has 5 pears. Mia finds 2 pears. Then Mia loses 3 pears. How many pears does Mia have now?", False),
        (PEARS.replace("loses", "finds"), False),
        (PEARS.replace("loses", "drops"), False),
        (PEARS.replace("3", "4"), False),
        (PEARS.replace("has 5", "has 6"), False),
        (PEARS.replace("How many pears does Mia have now?", "How many pears did Mia have at first?"), False),
        (
     "The drone is at level 5. "
     "The drone sinks by 3. Then the drone rises by 2. Which level is the drone at now?",
     False),
        ("Mia has 5 pears. Mia loses 3 pears. How many pears does Mia have now?", False),
    ],
)  # fmt: skip
def test_equivalence(other: str, same: bool) -> None:
    assert equivalent(PEARS, other) is same
    assert equivalent(other, PEARS) is same


def test_a_verb_of_another_world_has_no_answer() -> None:
    with pytest.raises(ValueError, match="'rises' does not exist in the world 'holdings'"):
        solve(Problem("holdings", "Mia", "pears", 5, (("rises", 3),)))
