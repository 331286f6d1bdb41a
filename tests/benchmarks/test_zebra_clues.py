from pathlib import Path

import pandas as pd
import pytest

from softcontam.benchmarks.zebra_clues import WORDINGS, Attribute, Clue, parse_puzzle
from softcontam.errors import DataError

LISTS = (
    " - Each person has a unique name: `Eric`, `Alice`, `Arnold`",
    " - Each mother is accompanied by their child: `Alice`, `Timothy`, `Fred`",
    " - The people keep unique animals: `cat`, `dog`, `bird`",
    " - Each person has a unique type of pet: `cat`, `dog`, `bird`",
    " - Each person has an occupation: `artist`, `doctor`, `nurse`",
    " - People have unique heights: `tall`, `very tall`, `short`",
)
ERIC, ALICE = Attribute("Name", "Eric"), Attribute("Name", "Alice")


def text(*clues: str, houses: int = 3, lists: tuple[str, ...] = LISTS) -> str:
    """A puzzle text in the data set's layout."""
    opening = (
        f"There are {houses} houses, numbered 1 to {houses} from left to right, as seen from across the street. Each "
        "house is occupied by a different person. Each house has a unique attribute for each of the following "
        "characteristics:"
    )
    numbered = "".join(f"{number}. {clue}\n" for number, clue in enumerate(clues, start=1))
    return "\n".join((opening, *lists, "", "## Clues:", numbered))


def sentence(clue: Clue) -> str:
    """The clue in the data set's words, written from scratch to check the reader."""
    one, *other = (WORDINGS[attribute.category][attribute.value] for attribute in clue.attributes)
    ordinal = ["", "first", "second", "third", "fourth", "fifth", "sixth"][clue.number]
    count = ["", "is one house", "are two houses", "are three houses", "are four houses"]
    return {
        "in_house": lambda: f"{one} is in the {ordinal} house.",
        "not_in_house": lambda: f"{one} is not in the {ordinal} house.",
        "same_house": lambda: f"{one} is {other[0]}.",
        "left_of": lambda: f"{one} is somewhere to the left of {other[0]}.",
        "right_of": lambda: f"{one} is somewhere to the right of {other[0]}.",
        "directly_left_of": lambda: f"{one} is directly left of {other[0]}.",
        "directly_right_of": lambda: f"{one} is directly right of {other[0]}.",
        "next_to": lambda: f"{one} and {other[0]} are next to each other.",
        "between": lambda: f"There {count[clue.number]} between {one} and {other[0]}.",
    }[clue.form]()


@pytest.mark.parametrize(
    ("clue", "form", "number", "met_by"),
    [
        ("Eric is in the second house.", "in_house", 2, {(2, 1), (2, 2), (2, 3)}),
        ("Eric is not in the first house.", "not_in_house", 1, {(a, b) for a in (2, 3) for b in (1, 2, 3)}),
        ("Eric is the person's child is named Alice.", "same_house", 0, {(1, 1), (2, 2), (3, 3)}),
        ("Eric is somewhere to the left of Alice.", "left_of", 0, {(1, 2), (1, 3), (2, 3)}),
        ("Eric is somewhere to the right of Alice.", "right_of", 0, {(2, 1), (3, 1), (3, 2)}),
        ("Eric is directly left of Alice.", "directly_left_of", 0, {(1, 2), (2, 3)}),
        ("Eric is directly right of Alice.", "directly_right_of", 0, {(2, 1), (3, 2)}),
        ("Eric and Alice are next to each other.", "next_to", 0, {(1, 2), (2, 3), (2, 1), (3, 2)}),
        ("There is one house between Eric and Alice.", "between", 1, {(1, 3), (3, 1)}),
        ("There are two houses between Eric and Alice.", "between", 2, set()),
    ],
)
def test_each_form_of_clue_means_what_it_says(clue: str, form: str, number: int, met_by: set[tuple[int, int]]) -> None:
    read = parse_puzzle(text(clue), "here").clues[0]
    assert (read.form, read.number, read.attributes[0]) == (form, number, ERIC)
    other = read.attributes[-1] if len(read.attributes) == 2 else ALICE
    houses = [(a, b) for a in (1, 2, 3) for b in (1, 2, 3)]
    assert {(a, b) for a, b in houses if read.holds({ERIC: a, other: b})} == met_by


@pytest.mark.parametrize(
    ("clue", "attributes"),
    [
        ("Alice is the person's child is named Alice.", [("Name", "Alice"), ("Children", "Alice")]),
        ("The person who is the mother of Timothy is Eric.", [("Children", "Timothy"), ("Name", "Eric")]),
        ("The cat lover is the person who has a cat.", [("Animal", "cat"), ("Pet", "cat")]),
        ("The person who owns a dog is the dog owner.", [("Pet", "dog"), ("Animal", "dog")]),
        (
            "The bird keeper is directly left of The person who keeps a pet bird.",
            [("Animal", "bird"), ("Pet", "bird")],
        ),
        (
            "The person who is an artist is the person who is very tall.",
            [("Occupation", "artist"), ("Height", "very tall")],
        ),
        ("The person who is tall is the person who is a nurse.", [("Height", "tall"), ("Occupation", "nurse")]),
    ],
)
def test_words_that_two_values_share_are_told_apart(clue: str, attributes: list[tuple[str, str]]) -> None:
    read = parse_puzzle(text(clue), "here").clues[0]
    assert [tuple(attribute) for attribute in read.attributes] == attributes


@pytest.mark.parametrize(
    "clue",
    [
        "Eric lives in the second house.",
        "Eric is in the second house",
        "Eric is in the seventh house.",
        "Eric is in the fourth house.",
        "Eric is not in the third or second house.",
        "Bob is in the second house.",
        "Eric is directly above Alice.",
        "Eric is Eric.",
        "There is one house between Eric and Alice and Arnold.",
        "There are no houses between Eric and Alice.",
        "The person who owns a horse is Eric.",
        "The person who is tall.",
        "Eric is the person who is.",
    ],
)
def test_clue_that_is_not_understood_is_quoted_with_its_place(clue: str) -> None:
    with pytest.raises(DataError) as caught:
        parse_puzzle(text("Eric is in the second house.", clue), "file.parquet, row 7, puzzle lgp")
    assert "file.parquet, row 7, puzzle lgp: clue 2" in str(caught.value)
    assert repr(clue) in str(caught.value)


@pytest.mark.parametrize(
    ("line", "message"),
    [
        (" - Each person has a unique name: `Eric`, `Alice`, `Zoe`", "the Name 'Zoe' is not understood"),
        (" - Each person has a unique name: `Eric`, `Alice`", "Name should have 3 different values"),
        (" - Each person has a unique name: `Eric`, `Alice`, `Eric`", "Name should have 3 different values"),
        (" - Each person has a unique name: Eric, Alice, Arnold", "the list of values is not understood"),
        (" - Each person has a unique car: `Eric`, `Alice`, `Arnold`", "the list of values is not understood"),
        (LISTS[1], "the category Children is listed twice"),
    ],
)
def test_list_of_values_that_is_not_understood_is_named(line: str, message: str) -> None:
    with pytest.raises(DataError, match=f"here: {message}"):
        parse_puzzle(text("Eric is in the second house.", lists=(line, *LISTS[1:])), "here")


@pytest.mark.parametrize(
    ("broken", "message"),
    [
        ("", "the opening line is not understood"),
        (text("Eric is in the first house.").replace("1 to 3", "1 to 4"), "the opening line is not understood"),
        (text("Eric is in the first house.").replace("## Clues:", "Clues"), "there should be one line '## Clues:'"),
        (text("Eric is in the first house.").replace("1. Eric", "2. Eric"), "clue 1 is not understood"),
        (text("Eric is in the first house.").replace("1. Eric", "Eric"), "clue 1 is not understood"),
        (text(), "a puzzle needs at least one category and one clue"),
    ],
    ids=["empty", "house numbers", "no heading", "wrong number", "no number", "no clues"],
)
def test_text_of_another_layout_is_refused(broken: str, message: str) -> None:
    with pytest.raises(DataError, match=f"here: {message}"):
        parse_puzzle(broken, "here")


def test_no_wording_stands_for_two_values() -> None:
    wordings = [wording for values in WORDINGS.values() for wording in values.values()]
    assert len(wordings) == len(set(wordings)) == 25 * 6


def test_all_10388_clues_written_again_from_what_was_read_give_the_text_back(data_dir: Path) -> None:
    frame = pd.read_parquet(data_dir / "zebralogic" / "grid_mode" / "test-00000-of-00001.parquet")
    count = 0
    for puzzle in frame["puzzle"]:
        written = [sentence(clue).casefold() for clue in parse_puzzle(puzzle, "here").clues]
        stands = puzzle.split("## Clues:\n")[1].strip().splitlines()
        assert [f"{number}. {clue}" for number, clue in enumerate(written, start=1)] == [s.casefold() for s in stands]
        count += len(written)
    assert count == 10_388
