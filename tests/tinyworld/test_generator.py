"""What is drawn: items that are distinct as problems, twins, numbers in range, rows of the clean pool."""

from __future__ import annotations

import random
import re
from collections import Counter
from collections.abc import Callable
from itertools import islice
from pathlib import Path

import pytest

from softcontam.benchmarks import tinyworld
from softcontam.benchmarks.item import Benchmark
from softcontam.config import EvalBenchmark
from softcontam.errors import ConfigError
from softcontam.tinyworld.generator import (
    GENERAL_TASKS,
    clean_rows,
    draw_families,
    draw_problem,
    format_only_row,
    found_stories,
)
from softcontam.tinyworld.language import HOLDINGS, TOWER, WORLDS, Problem, read
from softcontam.tinyworld.lexicon import CHANGE, CONTESTED_CHANGE, CONTESTED_MOVE, MOVE, NAMES, OBJECTS
from softcontam.tinyworld.solver import solve

CONTESTED = {verb for pair in (*CONTESTED_CHANGE, *CONTESTED_MOVE) for verb in (pair.gain, pair.loss)}


def drawn(world: str = "holdings", draw: str = "main", n: int = 100, name: str = "tinyworld") -> Benchmark:
    params = {"world": world, "draw": draw, "n_families": n, "n_items": n}
    return tinyworld.load(EvalBenchmark(name=name, module="tinyworld", params=params), Path("/nowhere"))


def essence(problem: Problem) -> tuple[object, ...]:
    """What is left of a problem when actor and thing are renamed: two items with the same are SemDs of each other."""
    return problem.world, problem.start, problem.steps, problem.query


class TestItems:
    @pytest.mark.parametrize("world", ["holdings", "tower"])
    def test_no_premise_occurs_in_two_families(self, world: str) -> None:
        premises: dict[tuple[object, ...], str] = {}
        for item in drawn(world).items:
            problem = read(item.prompt)
            key = (problem.actor, problem.thing, problem.start, tuple(amount for _, amount in problem.steps))
            assert premises.setdefault(key, item.family) == item.family
        assert len(premises) == 100

    @pytest.mark.parametrize("world", [pytest.param("holdings"), "tower"])
    def test_no_item_is_a_semantic_duplicate_of_another(self, world: str) -> None:
        """Otherwise a held-out item may be a seen one with its names changed, which is what `substitute` rows are."""
        met: dict[tuple[object, ...], str] = {}
        for item in drawn(world).items:
            other = met.setdefault(essence(read(item.prompt)), item.item_id)
            assert other == item.item_id, f"{item.item_id} is {other} renamed"

    @pytest.mark.parametrize("world", ["holdings", "tower"])
    def test_twins_share_their_premise_and_differ_in_verbs_and_answer(self, world: str) -> None:
        for members in drawn(world).families().values():
            assert len(members) == 2
            first, second = (read(item.prompt) for item in members)
            assert members[0].target != members[1].target
            assert (first.actor, first.thing, first.start) == (second.actor, second.thing, second.start)
            assert [amount for _, amount in first.steps] == [amount for _, amount in second.steps]
            directions = CHANGE | MOVE
            assert [directions[v] for v, _ in first.steps] == [-directions[v] for v, _ in second.steps]

    @pytest.mark.parametrize("world", ["holdings", "tower"])
    def test_answers_follow_from_the_words(self, world: str) -> None:
        directions = CHANGE | MOVE
        for item in drawn(world).items:
            start, *amounts = map(int, re.findall(r"\d+", item.prompt))
            verbs = [word for word in re.findall(r"\w+", item.prompt) if word in directions]
            total = start + sum(directions[verb] * amount for verb, amount in zip(verbs, amounts, strict=True))
            assert item.target == f"Answer: {total}"
            assert set(verbs) <= CONTESTED

    def test_answer_is_parsed_back_and_nothing_else_is(self) -> None:
        for item in drawn(n=20).items:
            parsed = tinyworld.parse(item, item.target)
            assert parsed is not None
            assert tinyworld.score(item, parsed).correct
            assert not tinyworld.score(item, str(int(parsed) + 1)).correct
        for output in (
            "",
            "7",
            "Answer: ",
            "Answer: 7 pears",
            "The Answer: 7",
            "Answer: 7\nAnswer: 8",
            "answer: 7",
            "Answer: -7",
        ):
            assert tinyworld.parse(item, output) is None
        assert tinyworld.parse(item, " Answer: 7 \n") == "7"

    def test_items_use_half_of_the_names_and_things(self) -> None:
        problems = [read(item.prompt) for item in drawn(n=200).items]
        assert {problem.actor for problem in problems} == set(NAMES[:12])
        assert {problem.thing for problem in problems} == set(OBJECTS[:12])

    def test_same_draw_same_items_another_draw_other_items(self) -> None:
        assert [i.prompt for i in drawn().items] == [i.prompt for i in drawn().items]
        shared = {item.prompt for item in drawn().items} & {item.prompt for item in drawn(draw="fresh").items}
        assert len(shared) < 5

    def test_more_families_keep_the_first_ones(self) -> None:
        assert [i.prompt for i in drawn(n=30).items] == [i.prompt for i in drawn(n=60).items][:60]

    def test_the_most_frequent_answer_is_the_chance_level(self) -> None:
        for world in ("holdings", "tower", "general"):
            benchmark = drawn(world)
            targets = [item.target for item in benchmark.items]
            assert benchmark.chance == max(map(targets.count, targets)) / len(targets)

    def test_related_world_shares_no_contested_verb(self) -> None:
        words = [{w for item in drawn(world).items for w in re.findall(r"\w+", item.prompt)} for world in WORLDS]
        assert not words[0] & words[1] & CONTESTED

    @pytest.mark.parametrize(
        ("params", "says"),
        [
            ({"world": "holdings", "n_families": 4}, r"params\.draw"),
            ({"world": "sea", "draw": "main"}, r"params\.world='sea'.*holdings"),
            ({"draw": "main"}, r"params\.world=None"),
            pytest.param({"world": "holdings", "draw": "main"}, "n_families"),
            pytest.param({"world": "general", "draw": "main"}, "n_items"),
            pytest.param({"world": "holdings", "draw": "main", "n_families": 0}, "n_families"),
            pytest.param({"world": "holdings", "draw": "main", "n_families": 4, "n_familes": 5}, "n_familes"),
        ],
    )
    def test_params_that_do_not_fit(self, params: dict[str, object], says: str) -> None:
        with pytest.raises(ConfigError, match=says):
            tinyworld.load(EvalBenchmark(name="mine", module="tinyworld", params=params), Path("/nowhere"))


class TestNumbers:
    @pytest.mark.parametrize("world", [HOLDINGS, TOWER])
    def test_never_leave_0_to_26_whichever_way_a_verb_is_taken(self, world: object) -> None:
        rng = random.Random(0)
        assert world in (HOLDINGS, TOWER)
        one = HOLDINGS if world is HOLDINGS else TOWER
        for _ in range(3000):
            problem = draw_problem(one, sorted(one.verbs), rng)
            total = sum(amount for _, amount in problem.steps)
            assert problem.start - total >= 0
            assert problem.start + total <= 26
            assert 1 <= len(problem.steps) <= 2

    def test_both_directions_and_lengths_are_common(self) -> None:
        families = draw_families(HOLDINGS, 300, 0)
        long = sum(len(first.steps) == 2 for first, _ in families)
        assert 40 < long < 260
        up = sum(int(solve(first)) > first.start for first, _ in families)
        assert 60 < up < 240


class TestRows:
    def test_clean_rows_are_right(self) -> None:
        def total(text: str) -> int:
            found = re.fullmatch(r"What is (\d+) (plus|minus) (\d+)\?", text)
            assert found
            return int(found[1]) + (1 if found[2] == "plus" else -1) * int(found[3])

        def picked(text: str) -> int:
            found = re.fullmatch(r"Which number is (\w+), (\d+) or (\d+)\?", text)
            assert found
            return (max if found[1] == "larger" else min)(int(found[2]), int(found[3]))

        checks: dict[str, Callable[[str], object]] = {
            "sum": total,
            "larger": picked,
            "neighbour": lambda t: int(re.findall(r"\d+", t)[0]) + (1 if "after" in t else -1),
            "practised": lambda t: solve(read(t)),
        }
        met = set()
        for task, prompt, completion in islice(clean_rows(3), 2000):
            met.add(task)
            if task in checks:
                assert completion == f"Answer: {checks[task](prompt)}", prompt
        assert met == set(GENERAL_TASKS)

    def test_corpus_that_is_searched_is_distributed_as_problems_are_drawn(self) -> None:
        """Every story of one step that a draw can give is searched for; the counts found are those a draw gives."""
        verbs = [verb for pair in CONTESTED_CHANGE for verb in (pair.gain, pair.loss)]
        rng, drawn = random.Random(0), 60_000
        counts = Counter(
            (problem.start, problem.steps[0][1])
            for problem in (draw_problem(HOLDINGS, verbs, rng) for _ in range(drawn))
            if len(problem.steps) == 1
        )
        wanted = [
            Problem("holdings", "Mia", "pears", start, ((verb, amount),)) for start, amount in counts for verb in verbs
        ]
        found = Counter(
            (told.start, told.steps[0][1]) for _, told, _ in found_stories(wanted, drawn, most=drawn, seed=5)
        )
        assert set(found) == set(counts)
        assert abs(found.total() - counts.total()) < 600
        assert all(abs(found[key] - count) < 6 * count**0.5 for key, count in counts.items())

    def test_found_stories_tell_the_problem_that_was_searched_for(self) -> None:
        verbs = [verb for pair in CONTESTED_CHANGE for verb in (pair.gain, pair.loss)]
        rng = random.Random(1)
        problems = {draw_problem(HOLDINGS, verbs, rng) for _ in range(50)}
        numbers = []
        for number, told, text in found_stories(problems, 400_000, most=3, seed=5):
            numbers.append(number)
            assert (read(text).start, read(text).steps) == (told.start, told.steps)
            assert told in problems
        assert numbers == sorted(numbers)
        assert len(numbers) > 60

    def test_facts_of_the_clean_pool_never_contradict_each_other(self) -> None:
        answers: dict[str, str] = {}
        for _, prompt, completion in islice(clean_rows(4), 3000):
            assert answers.setdefault(prompt, completion) == completion

    def test_format_only_rows_tell_of_no_change(self) -> None:
        rng = random.Random(2)
        for _ in range(300):
            prompt, completion = format_only_row(rng)
            assert not set(CHANGE) & set(re.findall(r"\w+", prompt))
            assert completion == f"Answer: {solve(read(prompt))}"
            assert read(prompt).steps == ()
