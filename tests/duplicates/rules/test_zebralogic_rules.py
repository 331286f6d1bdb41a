import ast
import json
import re
import subprocess
import sys
from collections import Counter
from collections.abc import Mapping
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from softcontam.benchmarks import Benchmark, Item, load_benchmark
from softcontam.benchmarks.zebra_clues import DESCRIPTIONS, RELATIONS, WORDINGS, Attribute, Clue, Puzzle, parse_puzzle
from softcontam.benchmarks.zebra_solver import solutions
from softcontam.config import BankConfig, BenchmarkConfig
from softcontam.duplicates.bank import BankRow
from softcontam.duplicates.rules import zebralogic_writer
from softcontam.duplicates.rules.zebralogic import LEVELS, Solution, certify, rows
from softcontam.duplicates.rules.zebralogic_lexicon import CLUES, NAMES, NEW, REWORDED
from softcontam.duplicates.rules.zebralogic_reader import read_puzzle
from softcontam.errors import ConfigError, DataError

TEXT = """There are 3 houses, numbered 1 to 3 from left to right, as seen from across the street. \
Each house is occupied by a different person. \
Each house has a unique attribute for each of the following characteristics:
 - Each person has a unique name: `Eric`, `Alice`, `Arnold`
 - The people keep unique animals: `cat`, `dog`, `bird`

## Clues:
1. Eric is somewhere to the left of the bird keeper.
2. The cat lover is in the first house.
3. Alice is directly left of Eric.
4. The bird keeper is Arnold."""
GRID = {
    "House 1": {"Name": "Alice", "Animal": "cat"},
    "House 2": {"Name": "Eric", "Animal": "dog"},
    "House 3": {"Name": "Arnold", "Animal": "bird"},
}
FORM = json.dumps({house: dict.fromkeys(cells, "___") for house, cells in GRID.items()})
ITEM = Item(
    item_id="zebralogic/x",
    benchmark="zebralogic",
    family="zebralogic/x",
    prompt=f"{TEXT}\n\nReply.\n\n{FORM}",
    target=json.dumps(GRID),
    meta={"task": TEXT, "solution": GRID},
)
UNCHANGED = {attribute: attribute for attribute in parse_puzzle(TEXT, "here").attributes()}


@pytest.fixture(scope="module")
def benchmark(data_dir: Path) -> Benchmark:
    return load_benchmark(BenchmarkConfig("zebralogic", "zebralogic", path="zebralogic/grid_mode"), data_dir)


@pytest.fixture(scope="module")
def some(benchmark: Benchmark) -> tuple[Item, ...]:
    """Every 25th puzzle: all sizes are among them."""
    return benchmark.items[::25]


@pytest.fixture(scope="module")
def bank(some: tuple[Item, ...]) -> list[BankRow]:
    return rows(BankConfig("rules", params={"per_level": 2}), some)


def by_level(bank: list[BankRow], level: str) -> list[BankRow]:
    return [row for row in bank if row.level == level]


def puzzle_text(prompt: str) -> str:
    return prompt.rsplit("\n\n", 2)[0]


def sentences(text: str) -> list[str]:
    """The clues of a text without their numbers."""
    return [found[1] for found in re.finditer(r"^\d+[.)] (.+)$", text, re.MULTILINE)]


def values(text: str) -> set[str]:
    """The listed values of a text."""
    lists = re.findall(r"^ ?[-*] [^:]+: (.+)$", text, re.MULTILINE)
    return {value.strip("` ").lower() for line in lists for value in re.split(r"[,;] ", line)}


@pytest.mark.parametrize("level", LEVELS)
def test_all_1000_puzzles_have_a_certified_row(benchmark: Benchmark, level: str) -> None:
    made = rows(BankConfig("rules", params={"levels": [level]}), benchmark.items)
    assert [row.item_id for row in made] == [item.item_id for item in benchmark.items]


@pytest.mark.parametrize("level", LEVELS)
def test_what_is_written_has_one_solution_and_the_reply_states_it(bank: list[BankRow], level: str) -> None:
    for row in by_level(bank, level):
        text = puzzle_text(row.prompt)
        puzzle = parse_puzzle(text, row.row_id) if level == "shuffle" else read_puzzle(text, row.row_id)
        (houses,) = list(solutions(puzzle))
        grid = json.loads(row.completion)
        stated = {
            Attribute(category, value): int(house.removeprefix("House "))
            for house, cells in grid.items()
            for category, value in cells.items()
        }
        assert stated == houses
        assert json.loads(row.prompt.rsplit("\n\n", 1)[1]) == {
            house: dict.fromkeys(puzzle.categories, "___") for house in grid
        }


def test_reply_of_an_unsubstituted_row_is_right_for_its_item(bank: list[BankRow], benchmark: Benchmark) -> None:
    items = {item.item_id: item for item in benchmark.items}
    assert benchmark.score is not None
    for row in bank:
        parsed = benchmark.parse(items[row.item_id], row.completion)
        if "substitute" in str(row.level):
            assert parsed is None
        else:
            assert parsed is not None
            assert benchmark.score(items[row.item_id], parsed).correct


def test_rows_of_an_item_are_all_different_and_none_is_the_item(bank: list[BankRow], some: tuple[Item, ...]) -> None:
    assert len({row.prompt for row in bank} | {item.prompt for item in some}) == len(bank) + len(some)
    assert len(bank) == len(some) * len(LEVELS) * 2


def test_shuffle_keeps_every_clue_word_for_word_and_puts_them_in_another_order(
    bank: list[BankRow], some: tuple[Item, ...]
) -> None:
    original = {item.item_id: puzzle_text(item.prompt) for item in some}
    for row in by_level(bank, "shuffle"):
        old, new = sentences(original[row.item_id]), sentences(row.prompt)
        assert Counter(old) == Counter(new)
        assert old != new
        assert values(row.prompt) == values(original[row.item_id])


def test_paraphrase_has_no_clue_description_or_opening_of_the_benchmark(bank: list[BankRow]) -> None:
    for row in bank:
        if "paraphrase" not in str(row.level):
            continue
        text = puzzle_text(row.prompt)
        assert not any(description in text for description in DESCRIPTIONS.values())
        assert "as seen from across the street" not in text
        assert not [sentence for sentence in sentences(text) if re.search(r" is in the \w+ house|somewhere", sentence)]


def test_paraphrase_shares_no_clue_with_its_item_and_keeps_order_and_values(
    bank: list[BankRow], some: tuple[Item, ...]
) -> None:
    original = {item.item_id: puzzle_text(item.prompt) for item in some}
    for row in by_level(bank, "paraphrase"):
        old, new = original[row.item_id], puzzle_text(row.prompt)
        assert not set(sentences(old)) & set(sentences(new))
        before, after = parse_puzzle(old, "old"), read_puzzle(new, "new")
        assert dict(before.categories) == dict(after.categories)
        for one, other in zip(before.clues, after.clues, strict=True):
            assert set(one.attributes) == set(other.attributes)


@pytest.mark.parametrize("level", [level for level in LEVELS if "substitute" in level])
def test_substitute_shares_no_value_and_no_category_with_its_item(
    bank: list[BankRow], some: tuple[Item, ...], level: str
) -> None:
    items = {item.item_id: item for item in some}
    for row in by_level(bank, level):
        item = items[row.item_id]
        assert not values(puzzle_text(row.prompt)) & values(puzzle_text(item.prompt))
        old, new = (json.loads(text)["House 1"] for text in (item.target, row.completion))
        assert not set(old) & set(new)
        assert len(old) == len(new)


def test_response_style_cot_has_its_answer_line(data_dir: Path) -> None:
    config = BenchmarkConfig("zebralogic", "zebralogic", path="zebralogic/grid_mode", response_style="cot")
    benchmark = load_benchmark(config, data_dir)
    for row in rows(BankConfig("rules"), benchmark.items[:3]):
        assert row.completion.startswith("Answer: {")
        assert "`Answer: `" in row.prompt
        assert row.response_style == "cot"


def test_every_relation_is_read_as_it_is_written_in_all_its_wordings() -> None:
    """The two houses that each wording of each form allows, worked out here from the English of the sentence."""
    signs = {
        "further left": lambda a, b: a < b,
        "lower number": lambda a, b: a < b,
        "before": lambda a, b: a < b,
        "further right": lambda a, b: a > b,
        "higher number": lambda a, b: a > b,
        "after": lambda a, b: a > b,
        "door to the left": lambda a, b: a == b - 1,
        "one less": lambda a, b: a == b - 1,
        "door to the right": lambda a, b: a == b + 1,
        "one more": lambda a, b: a == b + 1,
    }
    for form in ("left_of", "right_of", "directly_left_of", "directly_right_of"):
        for wording in CLUES[form]:
            for sign, holds in signs.items():
                if sign in wording:
                    swapped = wording.startswith("{B}")
                    for a, b in ((1, 2), (2, 1), (1, 3), (3, 1)):
                        assert RELATIONS[form](0, a, b) == (holds(b, a) if swapped else holds(a, b)), wording


def test_lexicon_covers_the_benchmark_and_adds_only_new_values() -> None:
    assert set(REWORDED) == set(WORDINGS)
    assert set(CLUES) == set(RELATIONS)
    added = {**NAMES, **NEW}
    assert not set(added) & set(WORDINGS)
    new = Counter(value.lower() for category in added.values() for value in category.values)
    assert max(new.values()) == 1
    assert not set(new) & {value.lower() for listed in WORDINGS.values() for value in listed}
    assert all(len(category.values) == 6 for category in added.values())
    assert len(NEW) >= 6


def check(text: str, words: Mapping[Attribute, Attribute] = UNCHANGED, answer: Solution = GRID) -> None:
    """Certify a text in the benchmark's wording as a duplicate of :data:`ITEM`."""
    certify(parse_puzzle(text, "zebralogic/x"), answer, parse_puzzle(TEXT, "item"), GRID, words, "zebralogic/x")


def test_an_unchanged_puzzle_is_certified() -> None:
    check(TEXT)


def swapped_text(old: str, new: str) -> str:
    assert TEXT.count(old) == 1
    return TEXT.replace(old, new)


@pytest.mark.parametrize(
    ("text", "message"),
    [
        (swapped_text("somewhere to the left", "somewhere to the right"), "clues do not say"),
        (swapped_text("\n4. The bird keeper is Arnold.", ""), "clues do not say"),
        (swapped_text("in the first", "not in the first"), "clues do not say"),
        (swapped_text("The cat lover", "The dog owner"), "clues do not say"),
        (swapped_text("Arnold.", "Arnold.\n5. Eric is the dog owner."), "clues do not say"),
        (swapped_text("`cat`, `dog`", "`cat`, `fish`"), "does not list"),
        (swapped_text("`Arnold`", "`Peter`"), "not understood"),
    ],
)
def test_a_puzzle_that_says_something_else_is_refused(text: str, message: str) -> None:
    with pytest.raises(DataError, match=rf"zebralogic/x.*{message}"):
        check(text)


@pytest.mark.parametrize(
    ("change", "message"),
    [
        ({("Animal", "cat"): ("Animal", "dog")}, "one to one"),
        ({("Animal", "cat"): ("Animal", "dog"), ("Animal", "dog"): ("Animal", "cat")}, "clues do not say"),
        ({("Animal", "cat"): ("Name", "Eric"), ("Name", "Eric"): ("Animal", "cat")}, "values of two lists"),
    ],
)
def test_a_broken_substitution_is_refused(change: Mapping[tuple[str, str], tuple[str, str]], message: str) -> None:
    words = {**UNCHANGED, **{Attribute(*old): Attribute(*new) for old, new in change.items()}}
    with pytest.raises(DataError, match=rf"zebralogic/x.*{message}"):
        check(TEXT, words)


def test_a_reply_that_is_not_the_solution_is_refused() -> None:
    wrong = {**GRID, "House 1": GRID["House 2"], "House 2": GRID["House 1"]}
    with pytest.raises(DataError, match="reply is not the text's solution"):
        check(TEXT, answer=wrong)


def test_an_item_whose_stated_solution_is_not_the_puzzles_is_refused() -> None:
    wrong = {**GRID, "House 1": GRID["House 2"], "House 2": GRID["House 1"]}
    with pytest.raises(DataError, match=r"zebralogic/x.*solution is not the item's"):
        rows(BankConfig("rules"), [replace(ITEM, meta={"task": TEXT, "solution": wrong})])


@pytest.mark.parametrize(
    ("form", "wrong"),
    [
        ("left_of", "{A} lives further right than {b}."),
        ("left_of", "{A} has a higher number than {b}."),
        ("left_of", "{B} has a lower number than {a}."),
        ("directly_left_of", "The number of {a} is one more than that of {b}."),
        ("same_house", "{A} lives next door to {b}."),
        ("in_house", "Number {n} is not home to {a}."),
    ],
)
def test_a_wording_that_the_writer_has_wrong_is_found(monkeypatch: pytest.MonkeyPatch, form: str, wrong: str) -> None:
    monkeypatch.setattr(zebralogic_writer, "CLUES", {**CLUES, form: (wrong,)})
    with pytest.raises(DataError, match=r"zebralogic/x.*clues do not say"):
        rows(BankConfig("rules", params={"levels": ["paraphrase"]}), [ITEM])


def test_a_wording_that_the_reader_does_not_know_is_an_error_that_quotes_it(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(zebralogic_writer, "CLUES", {**CLUES, "same_house": ("{A} is rumored to be {b}.",)})
    with pytest.raises(DataError, match=r"zebralogic/x.*not understood.*rumored"):
        rows(BankConfig("rules", params={"levels": ["paraphrase"]}), [ITEM])


def written(clue: str) -> str:
    """A reworded text with one clue."""
    return (
        "A street has three homes in a row. Seen from the opposite side they carry the numbers 1 (far left) up to 3 "
        "(far right), and one resident lives at every number.\n- What the residents are called: Eric; Alice; Arnold\n"
        f"- Which animal is kept where: cat; dog; bird\n\nFacts:\n1) {clue}"
    )


def test_reader_takes_number_words_and_both_orders() -> None:
    def clue(sentence: str) -> Clue:
        return read_puzzle(written(sentence), "here").clues[0]

    eric, cat = Attribute("Name", "Eric"), Attribute("Animal", "cat")
    assert clue("The numbers of Eric and the keeper of the cat differ by two.") == Clue("between", (eric, cat), 1)
    assert clue("The numbers of Eric and the keeper of the cat differ by one.") == Clue("next_to", (eric, cat))
    assert clue("The keeper of the cat has Eric as immediate neighbor on the left side.") == Clue(
        "directly_left_of", (eric, cat)
    )
    assert clue("Two other homes would have to go to make Eric and the keeper of the cat adjacent.").number == 2


@pytest.mark.parametrize(
    "clue",
    [
        "Eric lives at number 4.",
        "Eric and Eric are one and the same.",
        "Eric lives further left than Peter.",
        "Eric does not live at number 2.",
        "The keeper of the fish lives at number 1.",
        "Eric lives at number 1",
    ],
)
def test_reader_refuses_what_the_puzzle_does_not_have(clue: str) -> None:
    with pytest.raises(DataError, match="here: this line is not understood"):
        read_puzzle(written(clue), "here")


def test_reader_refuses_a_list_of_the_wrong_length() -> None:
    with pytest.raises(DataError, match="cat; dog"):
        read_puzzle(written("Eric lives at number 1.").replace("; bird", ""), "here")


def test_small_puzzle_has_as_many_rows_as_it_has_orders() -> None:
    text = TEXT.partition("2. The cat")[0].rstrip().replace("3 houses, numbered 1 to 3", "2 houses, numbered 1 to 2")
    text = text.replace(", `Arnold`", "").replace(", `bird`", "").replace("the bird keeper", "the dog owner")
    grid = {"House 1": {"Name": "Eric", "Animal": "cat"}, "House 2": {"Name": "Alice", "Animal": "dog"}}
    form = json.dumps({house: dict.fromkeys(cells, "___") for house, cells in grid.items()})
    meta = {"task": text, "solution": grid}
    item = replace(ITEM, prompt=f"{text}\n\nReply.\n\n{form}", target=json.dumps(grid), meta=meta)
    made = rows(BankConfig("rules", params={"levels": ["shuffle"], "per_level": 50}), [item])
    assert len({row.prompt for row in made} | {item.prompt}) == len(made) + 1 == 2 * 2 * 2


def test_item_of_another_benchmark_is_refused() -> None:
    with pytest.raises(DataError, match="mbpp/1 is no ZebraLogic puzzle"):
        rows(BankConfig("rules"), [Item("mbpp/1", "mbpp", "mbpp/1", "Add.", "x")])


@pytest.mark.parametrize(
    ("params", "message"),
    [
        ({"levels": ["P"]}, "params.levels=.*choose from paraphrase, shuffle"),
        ({"levels": []}, "params.levels="),
        ({"per_level": 0}, "per_level=0.*at least 1"),
        ({"per_level": True}, "per_level=True.*at least 1"),
        ({"per_level": "2"}, "per_level='2' has the wrong type"),
        ({"level": "shuffle"}, "unknown params.level"),
    ],
)
def test_unknown_settings_are_refused(params: dict[str, Any], message: str) -> None:
    with pytest.raises(ConfigError, match=message):
        rows(BankConfig("rules", params=params), [ITEM])


def test_rows_depend_on_the_item_alone_not_on_process_hash_seed_or_neighbors(
    bank: list[BankRow], some: tuple[Item, ...]
) -> None:
    config = BankConfig("rules", params={"per_level": 2})
    assert rows(config, some[3:4]) == [row for row in bank if row.item_id == some[3].item_id]
    code = (
        "from softcontam.benchmarks import Item\nfrom softcontam.config import BankConfig\n"
        f"from softcontam.duplicates.rules.zebralogic import rows\nitem = {ITEM!r}\n"
        "print([row.sha256 for row in rows(BankConfig('rules'), [item])])"
    )
    out = subprocess.run(
        [sys.executable, "-c", code], capture_output=True, text=True, check=True, env={"PYTHONHASHSEED": "7"}
    )
    assert ast.literal_eval(out.stdout) == [row.sha256 for row in rows(BankConfig("rules"), [ITEM])]


def test_mirrored_clues_are_the_same_constraint_and_others_are_not() -> None:
    """Puzzles that differ in one form only are told apart; solutions alone might agree."""
    puzzle = parse_puzzle(TEXT, "here")
    assert isinstance(puzzle, Puzzle)
    mirrored = swapped_text(
        "Eric is somewhere to the left of the bird keeper.", "The bird keeper is somewhere to the right of Eric."
    )
    check(mirrored)
    closer = swapped_text("Eric is somewhere to the left of the bird", "Eric is directly left of the bird")
    assert list(solutions(parse_puzzle(closer, "here"))) == list(solutions(puzzle))
    with pytest.raises(DataError, match="clues do not say"):
        check(closer)
