import ast
import re
import subprocess
import sys
from collections import Counter
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from softcontam.benchmarks import Benchmark, Item, load_benchmark
from softcontam.benchmarks.answers import choice_prompt, choice_target, parse_choice
from softcontam.config import BankConfig, BenchmarkConfig
from softcontam.duplicates.bank import BankRow
from softcontam.duplicates.rules.musr import LEVELS, Renaming, certify, rows
from softcontam.duplicates.rules.musr_lexicon import EITHER, FEMALE, MALE, NEW_NAMES
from softcontam.errors import ConfigError, DataError

STORY = (
    "In a mill, Tommy met his end by a sickle; Detective Winston suspects Mack and Mackenzie.\n\n"
    "Winston saw Mack's van. “Mack? Tommy’s friend,” said Mackenzie.\n\n"
    "Was it Mackenzie who hated Tommy?"
)
QUESTION = "Who is the most likely murderer?"


def made_item(story: str = STORY, choices: tuple[str, ...] = ("Mack", "Mackenzie"), question: str = QUESTION) -> Item:
    return Item(
        item_id="musr_x/0",
        benchmark="musr",
        family="musr_x/0",
        prompt=choice_prompt(story, question, choices, "answer"),
        target=choice_target(choices, 1, "answer"),
        choices=choices,
        meta={"task": f"{story}\n\n{question}", "answer": "B"},
    )


def made(item: Item, **params: Any) -> dict[str, BankRow]:
    return {str(row.level): row for row in rows(BankConfig("rules", params=params), [item])}


def renamed(story: str, suspects: tuple[str, ...] = ("Mack", "Mackenzie")) -> str:
    """The story of the row of level ``rename``."""
    return made(made_item(story, suspects))["rename"].prompt.split(f"\n\n{QUESTION}")[0]


def listed(prompt: str) -> tuple[str, ...]:
    """The choices of a prompt."""
    return tuple(re.findall(r"^[A-Z]\. (.+)$", prompt.rsplit("\n\n", 2)[1], re.MULTILINE))


def load(data_dir: Path, task: str, style: str = "answer") -> Benchmark:
    config = BenchmarkConfig("musr", "musr", path="musr", response_style=style, params={"task": task})
    return load_benchmark(config, data_dir)


@pytest.fixture(scope="module")
def murders(data_dir: Path) -> Benchmark:
    return load(data_dir, "murder_mysteries")


@pytest.fixture(scope="module")
def bank(murders: Benchmark) -> list[BankRow]:
    return rows(BankConfig("rules"), murders.items)


def test_every_murder_mystery_has_a_row_at_every_level(bank: list[BankRow]) -> None:
    assert Counter(row.level for row in bank) == dict.fromkeys(LEVELS, 250)
    assert len({row.item_id for row in bank}) == 250


@pytest.mark.parametrize(("task", "count"), [("object_placements", 20), ("team_allocation", 5)])
def test_items_at_hand_of_the_other_tasks_have_rows_too(data_dir: Path, task: str, count: int) -> None:
    made = rows(BankConfig("rules"), load(data_dir, task).items)
    assert Counter(row.level for row in made) == dict.fromkeys(LEVELS, count)


def test_no_suspect_or_detective_of_the_item_is_in_any_row(bank: list[BankRow], murders: Benchmark) -> None:
    items = {item.item_id: item for item in murders.items}
    for row in bank:
        item = items[row.item_id]
        for name in (*item.choices, "Winston"):
            assert not re.search(rf"\b{name}\b", row.prompt), (row.row_id, name)
            assert name not in row.completion.split(". ")
        assert len(set(listed(row.prompt))) == len(item.choices)


def test_stories_differ_from_their_item_in_names_only(bank: list[BankRow], murders: Benchmark) -> None:
    """Word by word, one old word stands for each new one, and all that differ are capitalized."""
    items = {item.item_id: item for item in murders.items}
    for row in bank:
        if row.level != "rename":
            continue
        old, new = (re.findall(r"\w+|\W+", text) for text in (items[row.item_id].prompt, row.prompt))
        assert len(old) == len(new)
        changed = {(one, other) for one, other in zip(old, new, strict=True) if one != other}
        assert len(dict(changed)) == len(changed)
        assert len({other for _, other in changed}) == len(changed)
        assert all(one[0].isupper() and other[0].isupper() for one, other in changed)
        assert not {other for _, other in changed} & set(old)
        assert 3 <= len(changed) <= 12


def test_answer_is_the_person_in_the_place_of_the_murderer(bank: list[BankRow], murders: Benchmark) -> None:
    items = {item.item_id: item for item in murders.items}
    for row in bank:
        item, choices = items[row.item_id], listed(row.prompt)
        chosen = parse_choice(row.completion, choices, "answer")
        assert chosen is not None
        if row.level == "rename":
            assert chosen == item.meta["answer"]
        else:
            assert chosen != item.meta["answer"]
        guilty = item.choices["AB".index(item.meta["answer"])]
        body, original = row.prompt.rsplit("\n\n", 2)[0], item.prompt.rsplit("\n\n", 2)[0]
        count = len(re.findall(rf"\b{guilty}\b", original))
        assert len(re.findall(rf"\b{choices['AB'.index(chosen)]}\b", body)) == count


def test_reframed_row_asks_first_and_not_in_the_benchmarks_words(bank: list[BankRow]) -> None:
    for row in bank:
        if row.level == "rename_reorder_reframe":
            assert "most likely murderer" not in row.prompt
            assert re.search(r"murder|killer", row.prompt.split("\n\n")[0])


def test_response_style_cot_has_its_answer_line(data_dir: Path) -> None:
    benchmark = load(data_dir, "murder_mysteries", "cot")
    for row in rows(BankConfig("rules"), benchmark.items[:4]):
        assert re.fullmatch(r"Answer: [AB]\. \w+", row.completion)
        assert "`Answer: `" in row.prompt


def test_first_names_possessives_and_names_that_begin_alike_change_consistently() -> None:
    pattern = (
        r"In a mill, (?P<victim>\w+) met his end by a sickle; Detective (?P<det>\w+) suspects (?P<a>\w+) and "
        r"(?P<b>\w+)."
        r"\n\n(?P=det) saw (?P=a)'s van. “(?P=a)\? (?P=victim)’s friend,” said (?P=b).\n\n"
        r"Was it (?P=b) who hated (?P=victim)\?"
    )
    found = re.fullmatch(pattern, renamed(STORY))
    assert found is not None
    assert len(set(found.groups())) == 4
    assert found["victim"] in NEW_NAMES["male"]


def test_name_in_s_is_replaced_by_one_whose_possessive_is_written_alike() -> None:
    new = renamed("Mack saw Travis' hat. Travis' friend Mackenzie left.", ("Travis", "Mack"))
    assert re.search(r"(\w+s)' hat\. \1' friend", new)


def test_title_and_family_name_change_along() -> None:
    new = renamed(STORY + " Officer McNulty knew Mack Diaz. Diaz lied, said McNulty.")
    found = re.search(r"Officer (\w+) knew (\w+) (\w+)\. \3 lied, said \1", new)
    assert found is not None
    assert {found[1], found[3]} <= set(NEW_NAMES["surname"])


def test_misspelled_and_shortened_names_do_not_stay_behind() -> None:
    new = renamed(STORY + " Then Wiston left, and Tomm too, and Mackenzi.")
    assert not re.search(r"Wiston|Winston|Mackenz", new)


@pytest.mark.parametrize(
    "sentence",
    [
        "He admired Bruce Lee, and Bruce Lee alone.",
        "Like Peter, Luke and John, he was poor.",
        "His Ford stood by a White house.",
        "They met on Times Square in August.",
    ],
)
def test_known_persons_of_the_world_cars_and_places_are_left_alone(sentence: str) -> None:
    assert renamed(f"{STORY} {sentence}").endswith(sentence)


def test_word_after_an_article_keeps_its_article() -> None:
    for item in range(10):
        new = renamed(STORY + f" There was an Ana here, a Rufus there. Ana and Rufus ate {item} figs.")
        assert re.search(r"an [AEIOU]\w+ here, a [^AEIOU]\w+ there", new)


@pytest.mark.parametrize("sentence", ["Rose from the ashes.", "“Rose red is a color.", "Rose petals fell."])
def test_suspect_whose_name_may_be_a_word_has_no_row(sentence: str) -> None:
    item = made_item(f"{STORY} A rose lay there. {sentence}", ("Rose", "Mack"))
    assert rows(BankConfig("rules"), [item]) == []


def test_suspect_whose_name_is_a_word_is_renamed_where_a_person_is_meant() -> None:
    new = renamed(f"{STORY} A rose lay there. Rose's hat was Rose. Rose laughed at Rose.", ("Rose", "Mack"))
    assert "Rose" not in new
    assert "A rose lay there." in new


def test_story_with_a_form_that_cannot_be_replaced_has_no_row() -> None:
    assert rows(BankConfig("rules"), [made_item(f"{STORY} The Mackster came.")]) == []


def test_place_that_is_a_choice_is_not_renamed() -> None:
    question = "Which location is the most likely place Emma would look to find the map given the story?"
    item = made_item("Emma put the map on Earth. Emma slept.", ("Earth", "the desk"), question)
    row = made(item)["rename_reorder_reframe"]
    assert set(listed(row.prompt)) == {"Earth", "the desk"}
    assert row.completion == "A. the desk"
    assert "Emma" not in row.prompt
    assert "most likely place" not in row.prompt
    assert "the map" in row.prompt.split("\n\n")[0]


def test_question_that_is_not_known_has_no_reframed_row() -> None:
    levels = set(made(made_item(question="Who did it?")))
    assert levels == {"rename", "rename_reorder"}


GOOD = Renaming({"Mack": "Boyd", "Mackenzie": "Arden", "Winston": "Wendell", "Tommy": "Anselm"})


def row_of(renaming: Renaming, item: Item, answer: int = 1) -> tuple[str, str]:
    """Prompt and completion as a row of level ``rename`` has them."""
    choices = tuple(renaming.apply(choice) for choice in item.choices)
    prompt = choice_prompt(renaming.apply(item.meta["task"]), "", choices, "answer")
    return prompt, choice_target(choices, answer, "answer")


def test_sound_renaming_is_certified() -> None:
    item = made_item()
    certify(item, *row_of(GOOD, item), GOOD)


@pytest.mark.parametrize(
    ("names", "message"),
    [
        ({**GOOD.names, "Tommy": "Boyd"}, "one to one"),
        ({**GOOD.names, "Tommy": "Sickle"}, "'Sickle' stands in the item"),
        ({**GOOD.names, "Mack": "Mackenzie", "Mackenzie": "Mack"}, "stands in the item"),
        ({"Winston": "Wendell"}, "a suspect has no new name"),
        ({key: name for key, name in GOOD.names.items() if key != "Mackenzie"}, "'Mack' is left"),
        ({}, "one to one"),
    ],
)
def test_broken_renaming_is_refused(names: dict[str, str], message: str) -> None:
    item = made_item()
    renaming = Renaming(names)
    prompt, completion = row_of(renaming, item) if names else (item.prompt, item.target)
    with pytest.raises(DataError, match=rf"item musr_x/0.*{message}"):
        certify(item, prompt, completion, renaming)


def test_altered_rows_are_refused() -> None:
    item = made_item()
    prompt, completion = row_of(GOOD, item)
    for changed, message in (
        (prompt.replace("hated", "loved"), "story or question"),
        (prompt.replace("said Arden", "said Boyd"), "story or question"),
        (prompt.replace("most likely", "least likely"), "story or question"),
        (prompt.replace("A. Boyd\nB. Arden", "A. Boyd\nB. Wendell"), "choices"),
        (prompt.replace("A. Boyd\nB. Arden", "A. Arden\nB. Boyd"), "completion"),
        (prompt.replace("said Arden", "said Mackenzie"), "is left"),
        (prompt.replace("Reply with", "Answer with"), "form"),
    ):
        assert changed != prompt
        with pytest.raises(DataError, match=rf"item musr_x/0.*{message}"):
            certify(item, changed, completion, GOOD)
    with pytest.raises(DataError, match="completion"):
        certify(item, prompt, "A. Boyd", GOOD)
    with pytest.raises(DataError, match="completion"):
        certify(item, prompt, "A. Arden", GOOD)


def test_levels_and_rows_per_level_can_be_chosen() -> None:
    chosen = rows(BankConfig("rules", params={"levels": ["rename"], "per_level": 3}), [made_item()])
    assert [row.level for row in chosen] == ["rename"] * 3
    assert len({row.prompt for row in chosen}) == len({row.row_id for row in chosen}) == 3


@pytest.mark.parametrize(
    ("params", "message"),
    [
        ({"levels": ["reorder"]}, "params.levels=.*choose from rename, rename_reorder"),
        ({"levels": []}, "params.levels="),
        ({"per_level": 0}, "per_level=0.*at least 1"),
        ({"per_level": True}, "per_level=True.*at least 1"),
        ({"level": "rename"}, "unknown params.level"),
    ],
)
def test_unknown_settings_are_refused(params: dict[str, Any], message: str) -> None:
    with pytest.raises(ConfigError, match=message):
        made(made_item(), **params)


def test_item_of_another_benchmark_or_changed_item_is_refused() -> None:
    with pytest.raises(DataError, match="mbpp/1 is no story"):
        rows(BankConfig("rules"), [Item("mbpp/1", "mbpp", "mbpp/1", "Add.", "x")])
    with pytest.raises(DataError, match="musr_x/0: its prompt is not its task and choices"):
        rows(BankConfig("rules"), [replace(made_item(), prompt="Another one.")])


def test_names_are_of_one_kind_and_new_ones_are_no_words_of_another_kind() -> None:
    assert not FEMALE & MALE
    assert not EITHER & (FEMALE | MALE)
    counts = Counter(name for names in NEW_NAMES.values() for name in names)
    assert [name for name, count in counts.items() if count > 1] == []


def test_rows_depend_on_the_item_alone_not_on_process_hash_seed_or_neighbors(
    bank: list[BankRow], murders: Benchmark
) -> None:
    alone = rows(BankConfig("rules"), murders.items[40:42])
    assert alone == [row for row in bank if row.item_id in {item.item_id for item in murders.items[40:42]}]
    item = made_item()
    code = (
        "from softcontam.benchmarks import Item\nfrom softcontam.config import BankConfig\n"
        f"from softcontam.duplicates.rules.musr import rows\nitem = {item!r}\n"
        "print([row.sha256 for row in rows(BankConfig('rules'), [item])])"
    )
    out = subprocess.run(
        [sys.executable, "-c", code], capture_output=True, text=True, check=True, env={"PYTHONHASHSEED": "7"}
    )
    assert ast.literal_eval(out.stdout) == [row.sha256 for row in rows(BankConfig("rules"), [item])]
