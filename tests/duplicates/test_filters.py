"""Filters find what a set of tuples of words finds, and nothing by the wording around a question."""

from __future__ import annotations

import random
from collections.abc import Sequence

import numpy as np
import pytest
from numpy.typing import NDArray

from softcontam.benchmarks import Item
from softcontam.duplicates.filters import Detector, Evidence, check_filters
from softcontam.duplicates.ngrams import RowWords, RunIndex, words
from softcontam.errors import ConfigError

QUESTION = "A farmer in the north has twelve sheep and sells five of them to a trader from Spain"
ALPHABET = "a ab B b_1 ß É é ñandú 日本 日 Σ İ ǅ ٣ ½ x² naïve — , . ' \x00 \ud800 \n ÿ".split(" ")


def item(item_id: str, text: str, target: str = "B", wording: str = "{}") -> Item:
    return Item(item_id, "b", item_id, wording.format(text), target, meta={"task": text})


def shared_runs(rows: Sequence[str], texts: Sequence[str], n: int) -> list[set[tuple[str, ...]]]:
    """By row, the runs it shares, as sets of tuples of words find them."""

    def runs(text: Sequence[str], size: int) -> set[tuple[str, ...]]:
        return {tuple(text[i : i + size]) for i in range(len(text) - size + 1)}

    known = [words(text) for text in texts]
    wanted = set().union(*(runs(text, min(n, len(text))) for text in known if text))
    sizes = {len(run) for run in wanted}
    return [set().union(*(runs(words(row), size) & wanted for size in sizes)) for row in rows]


@pytest.mark.parametrize("n", [1, 2, 3, 4, 8])
def test_runs_are_those_of_sets_of_tuples(n: int) -> None:
    rng = random.Random(n)

    def text(longest: int) -> str:
        joints = (" ", " ", "", "\n", ", ", "-", "\u00a0")
        return "".join(rng.choice(ALPHABET) + rng.choice(joints) for _ in range(rng.randint(0, longest)))

    texts = [text(12) for _ in range(20)]
    rows = [text(40) for _ in range(400)] + texts + ["", " ", *map(str.upper, texts)]
    index = RunIndex(texts, n)
    found = index.find(RowWords(rows))
    wanted = shared_runs(rows, texts, n)
    assert [{index.runs[run] for run in found.get(row, [])} for row in range(len(rows))] == wanted
    assert sum(map(bool, wanted)) > 50


def test_runs_do_not_reach_from_one_row_into_the_next() -> None:
    index = RunIndex(["one two three four"], 4)
    assert index.find(RowWords(["one two", "three four", "zero one", "two three four", ""])) == {}


def test_rows_of_any_length_are_searched_to_the_end() -> None:
    filler = "lorem ipsum " * 60_000
    index = RunIndex([QUESTION], 8)
    rows = [filler + QUESTION, "é " + filler + QUESTION, filler, QUESTION]
    assert sorted(index.find(RowWords(rows))) == [0, 1, 3]


def test_words_with_the_same_letters_in_another_order_differ() -> None:
    index = RunIndex(["tea eat ate", "ab c"], 3)
    assert index.find(RowWords(["eat tea ate", "a bc", "abc", "ate eat tea", "tea eat ates"])) == {}


def test_a_row_shares_a_run_with_every_text_that_has_it() -> None:
    index = RunIndex(["p q r s", "", "x p q r", "p q r p q r"], 3)
    (runs,) = index.find(RowWords(["say p q r"])).values()
    assert [index.has(text, runs[0]) for text in range(4)] == [True, False, True, True]
    assert index.covered(runs).tolist() == [3, 0, 3, 6]


@pytest.mark.parametrize(
    ("name", "row", "found"),
    [
        ("ngram_13", "He said: a FARMER in the north has twelve sheep, and sells five of... them", True),
        ("ngram_13", "a farmer in the north has twelve sheep and sells five", False),
        ("ngram_8", "a farmer in the north has twelve sheep and sells five", True),
        ("ngram_8", "a farmer in the north has nine sheep and sells five of them", False),
        ("ngram_coverage_50", "a farmer in the north has twelve sheep and now", True),
        ("ngram_coverage_60", "a farmer in the north has twelve sheep and now", False),
        ("ngram_coverage_50", "a farmer in the north has twelve sheep", False),
        ("minhash_80", QUESTION + "?", True),
        ("minhash_80", QUESTION.replace("twelve", "nine"), False),
        ("minhash_20", QUESTION.replace("twelve", "nine"), True),
    ],
)
def test_what_each_filter_finds(name: str, row: str, found: bool) -> None:
    """The question has 18 words; a changed word in its middle leaves 9 of 14 + 5 shingles."""
    assert Detector([item("a", QUESTION)], [name]).flags([(row, "")])[name].tolist() == [found]


def test_coverage_counts_one_row_by_itself() -> None:
    halves = [(" ".join(QUESTION.split()[:9]), ""), (" ".join(QUESTION.split()[9:]), "")]
    found = Detector([item("a", QUESTION)], ["ngram_coverage_50", "ngram_coverage_51"]).flags(halves)
    assert found["ngram_coverage_50"].tolist() == [True, True]
    assert found["ngram_coverage_51"].tolist() == [False, False]


def test_a_short_question_is_looked_for_whole_and_a_very_short_one_not_at_all() -> None:
    detector = Detector(
        [item("a", "Sort a list of pairs"), item("b", "Sort a list")], ["ngram_13", "ngram_coverage_50"]
    )
    rows = [("Please sort a list of pairs now", ""), ("sort a list of numbers", ""), ("Sort a list", "")]
    for found in detector.flags(rows).values():
        assert found.tolist() == [True, False, False]


def test_short_answers_say_nothing_and_long_ones_are_found_in_the_completion() -> None:
    solution = "def f(a): total = 0; for x in a: total = total + x * x; return total - 1"
    items = [item("a", QUESTION, "Answer: 15"), item("b", "Square and sum them", solution)]
    detector = Detector(items, ["ngram_13", "question_ngram_13"])
    rows = [("What is it?", "Answer: 15"), ("Write f.", f"```python\n{solution}\n```"), (solution, "."), ("", QUESTION)]
    assert detector.flags(rows)["ngram_13"].tolist() == [False, True, True, True]
    assert detector.flags(rows)["question_ngram_13"].tolist() == [False, False, False, True]


def test_the_wording_around_every_question_is_not_looked_for() -> None:
    wording = "{}\n\nThink step by step, then end with a line that holds the answer and the number alone, please."
    items = [item("a", QUESTION, wording=wording), item("b", QUESTION.replace("sheep", "goats"), wording=wording)]
    other = wording.format("How many days are there in a leap year of the calendar?"), "366"
    names = ["ngram_13", "ngram_8", "ngram_coverage_50", "minhash_80"]
    assert not any(found.any() for found in Detector(items, names).flags([other]).values())


def test_the_question_without_its_wording_or_answer_is_found_by_minhash() -> None:
    wording = "{}\n\nThink step by step, then end with a line that holds the answer and the number alone, please."
    detector = Detector([item("a", QUESTION, "7 sheep", wording)], ["minhash_80"])
    rows = [(QUESTION, "seven"), (wording.format(QUESTION), "It has " + "many " * 50), ("Repeat.", QUESTION)]
    assert detector.flags(rows)["minhash_80"].tolist() == [True, True, False]


def test_minhash_is_near_the_true_jaccard_similarity() -> None:
    rng = random.Random(0)
    vocabulary = [f"w{number}" for number in range(400)]
    errors = []
    for _ in range(60):
        original = rng.choices(vocabulary, k=120)
        changed = [rng.choice(vocabulary) if rng.random() < 0.02 else word for word in original]
        own, other = ({tuple(text[i : i + 5]) for i in range(116)} for text in (original, changed))
        (found,) = (
            Detector([item("a", " ".join(original), "")], ["minhash_1"])
            .evidence([(" ".join(changed), "")])["minhash_1"]
            .values()
        )
        errors.append(found.amount - len(own & other) / len(own | other))
    assert np.mean(np.abs(errors)) < 0.05  # the standard error of one estimate is at most 0.044
    assert abs(np.mean(errors)) < 0.02


def test_rows_that_minhash_passes_over_have_no_similarity() -> None:
    """The prefilter must not change a verdict: compare with all signatures, without it."""
    from softcontam.duplicates.filters import _signatures

    rng = random.Random(1)
    vocabulary = ["a", "b", "c"]
    texts = [" ".join(rng.choices(vocabulary, k=rng.randint(1, 9))) for _ in range(300)]
    items = [item(str(number), text, "") for number, text in enumerate(texts[:20])]
    found = Detector(items, ["minhash_30", "minhash_60"]).flags([(text, "") for text in texts])
    known, own = _signatures(texts[:20]), _signatures(texts)
    best = (own[:, None] == known).mean(axis=2).max(axis=1)
    assert found["minhash_30"].tolist() == (best >= 0.3).tolist()
    assert found["minhash_60"].tolist() == (best >= 0.6).tolist()
    assert 20 < found["minhash_60"].sum() < found["minhash_30"].sum() < 300


def test_evidence_names_the_item_that_a_row_is_nearest_to() -> None:
    items = [item("a", QUESTION.replace("sheep", "goats")), item("b", QUESTION), item("c", "Name a river in Asia now")]
    found = Detector(items, ["ngram_8", "ngram_coverage_50", "minhash_50"]).evidence([("Hi", "you"), (QUESTION, "")])
    assert found["ngram_8"] == {1: Evidence("b", 18.0, "a farmer in the north has twelve sheep")}
    assert found["ngram_coverage_50"] == {1: Evidence("b", 1.0, "a farmer in the north has twelve sheep")}
    assert found["minhash_50"] == {1: Evidence("b", 1.0)}


def test_flags_are_those_of_the_evidence_and_of_rows_one_by_one() -> None:
    rng = random.Random(2)
    items = [item(str(n), " ".join(rng.choices("abc", k=9)), " ".join(rng.choices("abc", k=12))) for n in range(30)]
    rows = [(" ".join(rng.choices("abc", k=12)), " ".join(rng.choices("abc", k=6))) for _ in range(200)]
    detector = Detector(items, ["ngram_8", "ngram_coverage_85", "minhash_30"])
    flags, evidence = detector.flags(rows), detector.evidence(rows)
    for name, found in flags.items():
        assert np.flatnonzero(found).tolist() == sorted(evidence[name])
        assert 0 < found.sum() < len(rows)
        assert found.tolist() == [bool(detector.flags([row])[name][0]) for row in rows]


def test_nothing_to_find_and_nothing_to_look_through() -> None:
    names = ["ngram_13", "ngram_coverage_50", "minhash_80"]
    for items in ([], [item("a", "", "")], [item("a", "?!", "—")]):
        assert not any(found.any() for found in Detector(items, names).flags([("", ""), ("a b c d e", "f")]).values())
    assert {found.shape for found in Detector([item("a", QUESTION)], names).flags([]).values()} == {(0,)}


class Fake:
    """Embeds texts by the share of letters they have."""

    spec = name = "fake"

    def encode(self, texts: Sequence[str]) -> NDArray[np.float32]:
        counts = np.array([[text.count(letter) for letter in "abcdefgh"] for text in texts], dtype=np.float32)
        return counts / np.linalg.norm(counts, axis=1, keepdims=True)


def test_embeddings_compare_the_prompt_with_the_question_bare_or_worded() -> None:
    items = [item("a", "aab", wording="{} ddddddd"), item("b", "cccc")]
    names = ["embedding_70", "embedding_85", "embedding_100"]
    detector = Detector(items, names, Fake())  # type: ignore[arg-type]
    rows = [("baa", "cccc"), ("abb", ""), ("aabddddddd", ""), ("gh", "aab")]
    found = detector.flags(rows)
    assert found["embedding_70"].tolist() == [True, True, True, False]
    assert found["embedding_85"].tolist() == [True, False, True, False]
    assert found["embedding_100"].tolist() == [True, False, True, False]
    assert detector.evidence(rows)["embedding_70"][1].amount == pytest.approx(0.8)


@pytest.mark.parametrize(
    ("name", "said"),
    [
        ("ngram", "unknown"),
        ("ngrams_13", "unknown"),
        ("ngram_-1", "unknown"),
        ("ngram_coverage_50 ", "unknown"),
        ("ngram_０", "unknown"),
        ("ngram_0", "between 1 and 1000"),
        ("minhash_101", "between 1 and 100"),
        ("embedding_80", "mixture.embedder"),
    ],
)
def test_filters_that_cannot_be_run_are_refused(name: str, said: str) -> None:
    with pytest.raises(ConfigError, match=said):
        check_filters([name], None)
    check_filters(["ngram_20", "question_ngram_8", "ngram_coverage_75", "minhash_80", "embedding_85"], "package:any")
