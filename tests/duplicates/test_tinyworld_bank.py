"""Rows of the embedded benchmark, certified once more by a reader of English that shares no code with the package's."""

from __future__ import annotations

import re
from collections import Counter
from dataclasses import dataclass
from functools import lru_cache
from pathlib import Path

import numpy as np
import pytest

from softcontam.benchmarks import tinyworld as benchmark_module
from softcontam.benchmarks.item import Item
from softcontam.config import EvalBenchmark
from softcontam.duplicates import BankRow, read_bank, write_bank
from softcontam.duplicates.distance import Similarity, overlap_coefficient
from softcontam.duplicates.exact import text
from softcontam.duplicates.matched import matched
from softcontam.duplicates.tinyworld import CANDIDATES, LEVELS, PER_LEVEL, rows
from softcontam.tinyworld.generator import essence, premise
from softcontam.tinyworld.language import read
from softcontam.tinyworld.lexicon import CHANGE, CONTESTED_CHANGE, NAMES, OBJECTS
from softcontam.tinyworld.solver import equivalent

LATER = ("Then ", "After that ", "Later ", "Last of all ", "In the end ")
"""How a sentence begins that tells of something after the first step, wherever in the story it stands."""


@dataclass(frozen=True)
class Told:
    """What an attentive reader takes from a story."""

    people: frozenset[str]
    things: frozenset[str]
    start: int
    first: tuple[str, int]
    later: frozenset[tuple[str, int]]
    question: str

    @property
    def end(self) -> int:
        return self.start + sum(CHANGE[verb] * amount for verb, amount in (self.first, *self.later))


def listen(story: str) -> Told:
    """Understand a story by looking for known words and numbers, sentence by sentence."""
    *told, question = re.findall(r"[^.?]+[.?]", story)
    words = set(re.findall(r"\w+", story))
    start, first, later = None, None, []
    for sentence in map(str.strip, told):
        (number,) = map(int, re.findall(r"\d+", sentence))
        verbs = [word for word in re.findall(r"\w+", sentence) if word in CHANGE]
        if not verbs:
            assert start is None, f"two starts in {story!r}"
            start = number
        elif sentence.startswith(LATER):
            later.append((verbs[0], number))
        else:
            assert first is None, f"two first steps in {story!r}"
            first = (verbs[0], number)
        assert len(verbs) <= 1
    assert start is not None
    assert first is not None
    people, things = frozenset(words & set(NAMES)), frozenset(words & set(OBJECTS))
    return Told(people, things, start, first, frozenset(later), question.strip())


def asks_for_the_end(question: str) -> bool:
    return any(words in question for words in (" have now?", " in the end?", " at the end.", " after it all?"))


@lru_cache(maxsize=1)
def items() -> tuple[Item, ...]:
    params = {"world": "holdings", "draw": "main", "n_families": 100}
    return benchmark_module.load(EvalBenchmark(name="tinyworld", module="tinyworld", params=params), Path()).items


@lru_cache(maxsize=8)
def made(kind: str) -> list[tuple[Item, BankRow]]:
    by_id = {item.item_id: item for item in items()}
    return [(by_id[row.item_id], row) for row in rows(kind, items())]


@pytest.mark.parametrize(
    ("story", "end"),
    [
        ("Mia has 5 pears. Mia loses 3 pears. How many pears does Mia have now?", 2),
        ("Last of all 2 bells are what Leo gets. It is 5 bells that Leo loses. At the start Leo had 9 bells. "
         "How many bells does Leo have after it all?", 6),
        (
     "Tom starts with 9 keys. "
     "Soon Tom sells 4 keys. Later Tom also buys 2 keys. Count the keys that Tom has at the end.",
     7),
        (
     "There are 6 hats with Gus. "
     "The next day Gus eats 6 of the hats. What is the number of hats with Gus in the end?",
     0),
    ],
)  # fmt: skip
def test_the_listener_itself_understands(story: str, end: int) -> None:
    told = listen(story)
    assert told.end == end
    assert len(told.people) == len(told.things) == 1
    assert asks_for_the_end(told.question)


class TestSemanticDuplicates:
    @pytest.mark.parametrize("level", LEVELS)
    def test_tell_the_same_story_with_the_same_answer(self, level: str) -> None:
        count = 0
        for item, row in made("semd_synthetic"):
            if row.level == level:
                count += 1
                original, other = listen(item.prompt), listen(row.prompt)
                assert (other.start, other.first, other.later) == (original.start, original.first, original.later)
                assert asks_for_the_end(other.question)
                assert row.completion == item.target == f"Answer: {other.end}"
                assert len(other.people) == len(other.things) == 1
        assert count

    @pytest.mark.parametrize("level", LEVELS)
    def test_names_change_where_the_level_says_so_and_only_there(self, level: str) -> None:
        for item, row in made("semd_synthetic"):
            if row.level != level:
                continue
            original, other = listen(item.prompt), listen(row.prompt)
            if level in ("substitute", "combined"):
                assert not other.people & set(NAMES[:12])
                assert not other.things & set(OBJECTS[:12])
            else:
                assert (other.people, other.things) == (original.people, original.things)

    def test_no_row_is_an_item(self) -> None:
        prompts = {item.prompt for item in items()}
        assert not [row.row_id for _, row in made("semd_synthetic") if row.prompt in prompts]

    def test_paraphrases_keep_the_order_and_change_the_words(self) -> None:
        for item, row in made("semd_synthetic"):
            if row.level == "paraphrase":
                order = [re.findall(r"\d+", text) for text in (item.prompt, row.prompt)]
                assert order[0] == order[1]
                assert item.prompt.split(".")[0] not in row.prompt

    def test_reordered_rows_put_the_object_or_the_end_first(self) -> None:
        for item, row in made("semd_synthetic"):
            if row.level == "reorder":
                assert re.findall(r"\d+", row.prompt) == re.findall(r"\d+", item.prompt)[::-1]

    def test_substituted_rows_keep_every_other_word(self) -> None:
        names = set(NAMES) | set(OBJECTS)
        for item, row in made("semd_synthetic"):
            if row.level == "substitute":
                texts = [[w for w in re.findall(r"\w+", t) if w not in names] for t in (item.prompt, row.prompt)]
                assert texts[0] == texts[1]

    def test_a_row_for_one_family_is_no_duplicate_of_an_item_of_another(self) -> None:
        by_essence: dict[object, set[str]] = {}
        for item in items():
            told = listen(item.prompt)
            by_essence.setdefault((told.start, told.first, told.later), set()).add(item.family)
        for item, row in made("semd_synthetic"):
            told = listen(row.prompt)
            assert by_essence[told.start, told.first, told.later] == {item.family}, row.row_id


class TestTopicalRows:
    def test_are_not_equivalent_and_have_the_right_answer(self) -> None:
        for item, row in made("topical"):
            told, original = listen(row.prompt), listen(item.prompt)
            assert not equivalent(row.prompt, item.prompt)
            assert not asks_for_the_end(told.question)
            (person,) = told.people
            expected = {
                "at first?": str(told.start),
                "first change?": str(told.first[1]),
                "Who is": person,
            }
            (right,) = [answer for words, answer in expected.items() if words in told.question]
            assert row.completion == f"Answer: {right}"
            for own, names, lexicon in ((told.people, original.people, NAMES), (told.things, original.things, OBJECTS)):
                assert own == names or own <= set(lexicon[12:])

    def test_are_not_equivalent_to_any_other_item_either(self) -> None:
        for _, row in made("topical")[:40]:
            assert not any(equivalent(row.prompt, item.prompt) for item in items())

    def test_are_as_similar_to_their_items_as_semds_of_any_level_can_be(self) -> None:
        similarity = Similarity([text(item) for item in items()])
        topical, semds = ([row for _, row in made(kind)] for kind in ("topical", "semd_synthetic"))
        by_id = {item.item_id: text(item) for item in items()}
        for level in LEVELS:
            wanted = [row for row in semds if row.level == level]
            ours = [row.cosine or 0.0 for row in matched(topical, wanted, items(), similarity.cosines)]
            theirs = similarity.cosines([(f"{row.prompt}\n{row.completion}", by_id[row.item_id]) for row in wanted])
            assert len(ours) == len(theirs)
            assert abs(np.mean(ours) - np.mean(theirs)) < 0.03
            assert overlap_coefficient(ours, theirs) > 0.4


class TestNaturalRows:
    def test_are_found_stories_that_the_solver_reads_as_their_item(self) -> None:
        for item, row in made("semd_natural"):
            assert equivalent(row.prompt, item.prompt)
            assert row.prompt != item.prompt
            assert row.completion == item.target

    def test_nearly_every_item_has_as_many_as_any_other_stories_of_two_steps_included(self) -> None:
        counts = Counter(row.item_id for _, row in made("semd_natural"))
        assert sum(count == PER_LEVEL for count in counts.values()) >= 0.98 * len(items())

    def test_come_from_different_places_of_a_corpus_that_does_not_depend_on_the_items(self) -> None:
        sources = [row.source for _, row in made("semd_natural")]
        assert len(set(sources)) == len(sources)
        few = items()[40:43]
        of_few = [row for item, row in made("semd_natural") if item in few]
        assert sorted(map(repr, rows("semd_natural", few))) == sorted(map(repr, of_few))


class TestRowsAboutNoItem:
    def test_aligned_rows_are_in_the_benchmarks_wording_and_tell_none_of_its_stories(self) -> None:
        opposite = {pair.gain: pair.loss for pair in CONTESTED_CHANGE} | {p.loss: p.gain for p in CONTESTED_CHANGE}
        stories = {(told.start, told.first, told.later) for told in (listen(item.prompt) for item in items())}
        for _, row in made("benchmark_aligned"):
            told = listen(row.prompt)
            assert asks_for_the_end(told.question)
            (verb, amount), later = told.first, frozenset((opposite[verb], n) for verb, n in told.later)
            assert (told.start, told.first, told.later) not in stories
            assert (told.start, (opposite[verb], amount), later) not in stories

    def test_aligned_rows_share_no_premise_with_an_item(self) -> None:
        premises = {premise(read(item.prompt)) for item in items()}
        assert premises.isdisjoint(premise(read(row.prompt)) for _, row in made("benchmark_aligned"))

    def test_aligned_rows_tell_no_story_of_a_fresh_or_internal_hold_out(self) -> None:
        params = {"world": "holdings", "draw": "fresh", "n_families": 400}
        hold_outs = [
            item
            for part in ("open", "internal")
            for item in benchmark_module.load(
                EvalBenchmark(name="other", module="tinyworld", params={**params, "part": part}), Path()
            ).items
        ]
        tower = benchmark_module.load(
            EvalBenchmark(name="tower", module="tinyworld", params={**params, "world": "tower", "n_families": 5}),
            Path(),
        ).items
        aligned = rows("benchmark_aligned", items(), [*hold_outs, *tower])
        told = {essence(read(item.prompt)) for item in hold_outs}
        assert told.isdisjoint(essence(read(row.prompt)) for row in aligned)
        assert not told.isdisjoint(essence(read(row.prompt)) for row in rows("benchmark_aligned", items()))

    def test_aligned_rows_have_as_many_steps_as_the_items(self) -> None:
        def two_steps(prompts: list[str]) -> float:
            return sum(len(read(prompt).steps) == 2 for prompt in prompts) / len(prompts)

        ours = two_steps([row.prompt for _, row in made("benchmark_aligned")])
        assert abs(ours - two_steps([item.prompt for item in items()])) < 0.1

    def test_coverage_expanding_rows_use_no_verb_of_the_benchmark(self) -> None:
        verbs = {verb for pair in CONTESTED_CHANGE for verb in (pair.gain, pair.loss)}
        for _, row in made("coverage_expanding"):
            assert verbs.isdisjoint(row.prompt.split())
            assert not row.prompt.startswith(("The lift", "Level"))


def test_general_tasks_beside_the_benchmark_do_not_stand_in_the_way() -> None:
    """``conditions_all`` evaluates general items, some of them stories over verbs that the benchmark does not use."""
    params = {"world": "general", "draw": "v2", "n_items": 60}
    general = benchmark_module.load(EvalBenchmark(name="general", module="tinyworld", params=params), Path()).items
    assert rows("benchmark_aligned", items(), general)


class TestEveryKind:
    @pytest.mark.parametrize("kind", ["semd_synthetic", "topical", "format_only"])
    def test_rows_are_distinct_and_as_many_as_promised(self, kind: str) -> None:
        made_rows = [row for _, row in made(kind)]
        assert len({row.row_id for row in made_rows}) == len(made_rows)
        texts = Counter((row.item_id, row.prompt) for row in made_rows)
        assert max(texts.values()) == 1
        counts = Counter((row.item_id, row.level) for row in made_rows)
        levels = list(LEVELS) if kind == "semd_synthetic" else [None]
        assert set(counts) == {(item.item_id, level) for item in items() for level in levels}
        assert max(counts.values()) <= (CANDIDATES if kind == "topical" else PER_LEVEL)
        assert min(counts.values()) >= 2

    @pytest.mark.parametrize("kind", ["semd_synthetic", "topical", "format_only"])
    def test_a_prompt_has_one_answer(self, kind: str) -> None:
        answers: dict[str, str] = {}
        for _, row in made(kind):
            assert answers.setdefault(row.prompt, row.completion) == row.completion

    @pytest.mark.parametrize("kind", ["semd_synthetic", "topical", "format_only"])
    def test_do_not_depend_on_which_other_items_there_are(self, kind: str) -> None:
        assert rows(kind, items()[5:8]) == [row for item, row in made(kind) if item in items()[5:8]]

    @pytest.mark.parametrize("kind", ["semd_synthetic", "topical", "format_only"])
    def test_survive_a_bank_file(self, kind: str, tmp_path: Path) -> None:
        made_rows = [row for _, row in made(kind)]
        write_bank(tmp_path / "bank.parquet", made_rows)
        assert read_bank(tmp_path / "bank.parquet") == made_rows

    def test_format_only_rows_hold_no_change_and_the_right_number(self) -> None:
        for _, row in made("format_only"):
            words = re.findall(r"\w+", row.prompt)
            assert not set(words) & set(CHANGE)
            asked = re.search(r"How many (\w+) does (\w+) have now", row.prompt)
            assert asked
            assert f"{asked[2]} has {row.completion.removeprefix('Answer: ')} {asked[1]}." in row.prompt
