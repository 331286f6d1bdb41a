import ast
import re
import subprocess
import sys
from collections import Counter
from fractions import Fraction
from pathlib import Path
from typing import Any

import pytest

from softcontam.benchmarks import Benchmark, Item, load_benchmark
from softcontam.benchmarks.gsm8k import parse_number
from softcontam.config import BankConfig, BenchmarkConfig
from softcontam.duplicates.bank import BankRow
from softcontam.duplicates.rules.gsm8k import LEVELS, Substitution, calculations, certified, numbers, rows
from softcontam.duplicates.rules.gsm8k_lexicon import EITHER, FAMILIES, FEMALE, MALE, NEW_NAMES
from softcontam.errors import ConfigError, DataError

BANK = BankConfig("rules")


def made_item(question: str, solution: str, answer: str = "5") -> Item:
    return Item(
        item_id="gsm8k/x",
        benchmark="gsm8k",
        family="gsm8k/x",
        prompt=f"{question}\n\nThink step by step.",
        target=f"{solution}\n\nAnswer: {answer}",
        response_style="cot",
        meta={"task": question, "rationale": solution, "answer": answer},
    )


def made(question: str, solution: str = "3+2=5", **params: Any) -> dict[str, BankRow]:
    bank = BankConfig("rules", params=params)
    return {str(row.level): row for row in rows(bank, [made_item(question, solution)])}


def question_of(row: BankRow) -> str:
    return row.prompt.split("\n\nThink step by step")[0]


@pytest.fixture(scope="module")
def gsm8k(data_dir: Path) -> Benchmark:
    config = BenchmarkConfig(name="gsm8k", module="gsm8k", path="gsm8k/main", response_style="cot")
    return load_benchmark(config, data_dir)


@pytest.fixture(scope="module")
def bank(gsm8k: Benchmark) -> list[BankRow]:
    return rows(BANK, gsm8k.items)


def test_three_of_four_problems_get_other_names_and_a_quarter_other_objects(bank: list[BankRow]) -> None:
    counts = Counter(row.level for row in bank)
    assert counts == {"names": 1004, "objects": 322, "names_objects": 266}


def test_every_row_of_the_test_split_keeps_numbers_arithmetic_and_answer(bank: list[BankRow], gsm8k: Benchmark) -> None:
    items = {item.item_id: item for item in gsm8k.items}
    for row in bank:
        item = items[row.item_id]
        solution = row.completion.rpartition("\n\nAnswer: ")[0]
        assert re.findall(r"[\d.,$%]+", row.prompt) == re.findall(r"[\d.,$%]+", item.prompt), row.row_id
        assert re.findall(r"[\d.,$%=+*/-]+", solution) == re.findall(r"[\d.,$%=+*/-]+", item.meta["rationale"])
        assert parse_number(row.completion, "cot") == item.meta["answer"]
        assert gsm8k.parse(item, row.completion) == gsm8k.parse(item, item.target)
        assert question_of(row) != item.text


def test_the_calculations_that_are_read_are_right_in_almost_all_solutions(gsm8k: Benchmark) -> None:
    found = [pair for item in gsm8k.items for pair in calculations(item.meta["rationale"])]
    assert len(found) > 2500
    assert sum(abs(value - stated) <= abs(stated) / 100 for value, stated in found) / len(found) > 0.98


def test_rows_of_an_item_have_the_same_words_whatever_items_are_beside_it(
    gsm8k: Benchmark, bank: list[BankRow]
) -> None:
    alone = rows(BANK, gsm8k.items[40:60])
    assert alone == [row for row in bank if row.item_id in {item.item_id for item in gsm8k.items[40:60]}]


def test_response_style_answer_has_the_number_alone(data_dir: Path) -> None:
    config = BenchmarkConfig(name="gsm8k", module="gsm8k", path="gsm8k/main", response_style="answer", max_items=40)
    items = load_benchmark(config, data_dir).limited(40).items
    answers = {item.item_id: item.meta["answer"] for item in items}
    assert all(row.completion == answers[row.item_id] for row in rows(BANK, items))


def test_name_changes_everywhere_with_its_gender_and_possessive() -> None:
    row = made("Maria’s dog ate 3 of Maria's pies. Her son Tom ate 2.", "Maria and Tom: 3+2=5")["names"]
    found = re.fullmatch(r"(\w+)’s dog ate 3 of (\w+)'s pies. Her son (\w+) ate 2.", question_of(row))
    assert found is not None
    assert found[1] == found[2]
    assert found[1] in NEW_NAMES["female"]
    assert found[3] in NEW_NAMES["male"]
    assert row.completion.startswith(f"{found[1]} and {found[3]}: 3+2=5")
    assert (row.match_type, row.judge, row.kind) == ("equivalent", "construction", "semd_synthetic")


def test_pronouns_tell_the_gender_of_the_only_person() -> None:
    assert question_of(made("Robin has 3 cups. She buys 2 for herself.")["names"]).split()[0] in NEW_NAMES["female"]
    assert question_of(made("Robin has 3 cups. He buys 2.")["names"]).split()[0] in NEW_NAMES["male"]
    assert question_of(made("Robin has 3 cups and gets 2.")["names"]).split()[0] in NEW_NAMES["either"]


def test_name_in_s_is_replaced_by_one_whose_possessive_is_written_alike() -> None:
    new = question_of(made("James' 3 cups and James' 2 jars are red.")["names"]).split("'")[0]
    assert new.endswith("s")


@pytest.mark.parametrize(
    "question",
    [
        "In May there were 3 cups. By June there were 2 more.",
        "Will the 3 cups and 2 jars fit? Mark the right answer.",
        "The bill was 3 dollars. Bill had 2 more.",
        "Roses are 3 dollars. She visits Florence for 2 days.",
        "They leave San Jose with 3 cups and get 2.",
        "They cross the Jordan River 3 times and 2 times more.",
        "How many letters are in the name of Maria, 3 or 2?",
        "The 3 cups and 2 jars are from Paris.",
        "Is Frankfurter 3 or 2?",
    ],
)
def test_word_that_is_no_persons_name_is_left_alone(question: str) -> None:
    assert "names" not in made(question)


def test_name_that_is_a_word_is_replaced_where_a_person_is_meant() -> None:
    assert "Mark" not in made("Mark has 3 cups. He buys 2.")["names"].prompt
    assert "Rose" not in made("Rose's 3 cups and 2 jars are red.")["names"].prompt


def test_letter_that_stands_for_a_name_still_does() -> None:
    row = made("Maria has 3 cups and Tom 2.", "M = 3, T = 2\nM + T = 5")["names"]
    found = re.fullmatch(r"(\w+) has 3 cups and (\w+) 2.", question_of(row))
    assert found is not None
    assert (found[1][0], found[2][0]) == ("M", "T")


def test_objects_change_one_to_one_with_their_article_and_number() -> None:
    row = made("An apple costs 3. Apples are cheap. He eats an apple and a pear.", "1 apple and 1 pear: 3+2=5")[
        "objects"
    ]
    found = re.fullmatch(r"(An?) (\w+) costs 3. (\w+) are cheap. He eats an? (\w+) and an? (\w+).", question_of(row))
    assert found is not None
    one = found[2]
    assert found[4] == one
    assert found[5] != one
    assert found[3].lower() in {f"{one}s", f"{one}es"}
    assert (found[1] == "An") == (one[0] in "aeiou")
    assert not {"apple", "pear"} & {one, found[5]}
    assert row.completion.startswith(f"1 {one} and 1 {found[5]}: 3+2=5")


@pytest.mark.parametrize(
    "question",
    [
        "A dog barks 3 times at 2 men.",
        "She eats 3 hot dogs and 2 more.",
        "The orange ball costs 3 and the red one 2.",
        "The price rose by 3 and 2.",
        "Apple Store sells 3 cups and 2 jars.",
        "He has 3 pencils; sharpen 2.",
        "The pineapples cost 3 and 2.",
        "A T-shirt costs 3 and 2.",
    ],
)
def test_noun_with_another_meaning_or_bound_to_its_surroundings_is_left_alone(question: str) -> None:
    assert "objects" not in made(question)


def test_wrong_article_in_the_original_cannot_be_put_back_and_gives_no_row() -> None:
    assert certified("A apple costs 3.", "3", Substitution({"apple": "pear"})) is None
    assert certified("An apple costs 3.", "3", Substitution({"apple": "pear"})) == ("A pear costs 3.", "3")


@pytest.mark.parametrize(
    "words",
    [
        {"Tom": "Two"},  # a number more
        {"Tom": "Ann"},  # already there
        {"Tom": "Ulrich", "Ann": "Ulrich"},  # two persons become one
        {"Bob": "Ulrich"},  # nothing to replace
    ],
)
def test_substitution_that_changes_the_problem_is_not_certified(words: dict[str, str]) -> None:
    assert certified("Tom and Ann have 3 cups.", "Tom: 3+2=5", Substitution(words)) is None


def test_name_that_is_left_in_another_word_is_not_certified() -> None:
    assert certified("Jean has 3 cups. Jeans red cup is one.", "3", Substitution({"Jean": "Inez"})) is None


def test_calculations_are_evaluated_as_written() -> None:
    assert calculations("So 48/2 = 24 and $1,000 x 5% = $50, 2*(3+4)=14, one = 1 and 3 cups = 3, 1/0=0") == [
        (Fraction(24), Fraction(24)),
        (Fraction(50), Fraction(50)),
        (Fraction(14), Fraction(14)),
    ]
    assert calculations("2 + 2 = 5") == [(Fraction(4), Fraction(5))]


def test_numbers_are_listed_in_order_words_included() -> None:
    assert numbers("Two of 1,200 apples, $.50 each, twice a day") == ["two", "1,200", ".50", "twice"]


def test_levels_and_rows_per_level_can_be_chosen() -> None:
    item = made_item("Maria has 3 apples and 2 pears.", "3+2=5")
    chosen = rows(BankConfig("rules", params={"levels": ["names"], "per_level": 3}), [item])
    assert [row.level for row in chosen] == ["names"] * 3
    assert len({row.prompt for row in chosen}) == len({row.row_id for row in chosen}) == 3
    assert [row.level for row in rows(BANK, [item])] == list(LEVELS)


@pytest.mark.parametrize(
    ("params", "message"),
    [
        ({"levels": ["name"]}, "params.levels=.*choose from names, objects, names_objects"),
        ({"levels": []}, "params.levels="),
        ({"per_level": 0}, "per_level=0.*at least 1"),
        ({"level": "names"}, "unknown params.level"),
    ],
)
def test_unknown_settings_are_refused(params: dict[str, Any], message: str) -> None:
    with pytest.raises(ConfigError, match=message):
        made("Maria has 3 cups and 2 jars.", **params)


def test_item_of_another_benchmark_is_refused() -> None:
    with pytest.raises(DataError, match="mbpp/1 has no question, worked solution and answer"):
        rows(BANK, [Item("mbpp/1", "mbpp", "mbpp/1", "Add.", "x")])


def test_lexicon_is_one_to_one() -> None:
    forms = [form for family in FAMILIES for noun in family.nouns for form in noun]
    assert [form for form, count in Counter(forms).items() if count > 1] == []
    assert not [family for family in FAMILIES if set(family.guards) & {form for noun in family.nouns for form in noun}]
    assert not FEMALE & MALE
    assert not EITHER & (FEMALE | MALE)


def test_rows_do_not_depend_on_the_process_or_its_hash_seed() -> None:
    item = made_item("Maria has 3 apples and Tom 2 pears.", "Maria and Tom: 3+2=5")
    here = [row.sha256 for row in rows(BankConfig("rules", params={"per_level": 3}), [item])]
    code = (
        "from softcontam.benchmarks import Item\nfrom softcontam.config import BankConfig\n"
        f"from softcontam.duplicates.rules.gsm8k import rows\nitem = {item!r}\n"
        "print([row.sha256 for row in rows(BankConfig('rules', params={'per_level': 3}), [item])])"
    )
    out = subprocess.run(
        [sys.executable, "-c", code], capture_output=True, text=True, check=True, env={"PYTHONHASHSEED": "7"}
    )
    assert ast.literal_eval(out.stdout) == here


def test_brackets_that_follow_each_other_are_no_calculation_and_no_warning(recwarn: pytest.WarningsRecorder) -> None:
    assert calculations("(2)(3) = 6 and 2**3 = 8 and 2*(3 = 6") == []
    assert not recwarn.list
