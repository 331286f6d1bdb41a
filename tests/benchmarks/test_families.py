from softcontam.benchmarks.families import NearPair, family_sizes, join, near_texts, same_keys
from softcontam.benchmarks.python_code import same_code_key

TEXTS = [
    "find the maximum of a list",
    "remove all blanks from a string",
    "remove all the blanks from a string",
    "count vowels",
]
IDS = ["max", "blanks", "the blanks", "vowels"]


def grouped(texts: list[str], ids: list[str], threshold: float) -> dict[str, str]:
    return join(ids, near_texts(texts, ids, threshold))


def test_reworded_twin_shares_the_family_of_the_first_and_others_stay_alone() -> None:
    assert grouped(TEXTS, IDS, 0.7) == {
        "max": "max",
        "blanks": "blanks",
        "the blanks": "blanks",
        "vowels": "vowels",
    }


def test_evidence_names_the_pair_and_its_cosine() -> None:
    (pair,) = near_texts(TEXTS, IDS, 0.7)
    assert (pair.first, pair.second, pair.why) == ("blanks", "the blanks", "text")
    assert pair.cosine is not None
    assert 0.7 <= pair.cosine < 1


def test_threshold_of_one_still_joins_identical_texts() -> None:
    assert grouped(["sort a list", "sort a list", "sort"], ["a", "b", "c"], 1.0) == {
        "a": "a",
        "b": "a",
        "c": "c",
    }


def test_texts_without_words_are_their_own_families() -> None:
    assert grouped(["", " "], ["a", "b"], 0.5) == {"a": "a", "b": "b"}


def test_joining_is_transitive_and_does_not_depend_on_the_order_of_pairs() -> None:
    pairs = [NearPair("c", "d", "text", 0.9), NearPair("a", "d", "code"), NearPair("b", "c", "text", 0.8)]
    expected = {"a": "a", "b": "a", "c": "a", "d": "a", "e": "e"}
    assert join(list("abcde"), pairs) == expected
    assert join(list("abcde"), pairs[::-1]) == expected
    assert family_sizes(expected) == {1: 1, 4: 1}


def test_code_that_differs_in_names_only_is_the_same_and_another_operation_is_not() -> None:
    codes = {
        "plain": "def add(a, b):\n    total = a + b\n    return total",
        "renamed": "def plus(x, y):\r\n  # sum\r\n  s = x + y\r\n  return s",
        "minus": "def sub(a, b):\n    total = a - b\n    return total",
        "broken": "def add(a, b:",
    }
    assert same_keys({name: same_code_key(code) for name, code in codes.items()}) == [
        NearPair("plain", "renamed", "code")
    ]


def test_swapped_operands_are_not_the_same_code() -> None:
    assert same_code_key("def f(a, b):\n    return a - b") != same_code_key("def f(a, b):\n    return b - a")
