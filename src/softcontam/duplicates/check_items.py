"""What is wrong with the rows of a bank when they are held against the items that they are for."""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Callable, Collection, Iterator, Mapping, Sequence
from dataclasses import dataclass

from sklearn.feature_extraction.text import TfidfVectorizer

from softcontam.benchmarks import Benchmark, Item
from softcontam.benchmarks.python_code import definition
from softcontam.duplicates.filters import Detector
from softcontam.duplicates.ngrams import words
from softcontam.duplicates.problems import NON_DUPLICATE_KINDS, SEMD_KINDS, Numbered, Problem
from softcontam.sandbox import Sandbox, Submission

SHORTEST_TEXT = 5
"""Words from which an item's text inside a longer one is no chance."""

SHORTEST_ANSWER = 13
"""The same for its gold answer: short ones (a number, a name) are anybody's."""

FEWEST_COMPARED, MOST_COMPARED = 10, 2000
"""SemDs whose nearest items tell whether ids are shifted."""

NEAR_FILTER = "ngram_13"
"""What a row that is to hold nothing of an item is looked through with for parts of one."""

OWN_ANSWER_KINDS = ("exact", "near", "semd_synthetic")
"""Kinds whose completion answers the item itself."""

IN_FORMAT_KINDS = (*OWN_ANSWER_KINDS, "topical", "format_only", "benchmark_aligned")
"""Kinds whose completion has the form of the benchmark's answers."""


def against_items(
    rows: Sequence[Numbered],
    benchmark: Benchmark,
    elsewhere: Callable[[Collection[str]], Mapping[str, str]] | None = None,
    sandbox: Sandbox | None = None,
) -> Iterator[Problem]:
    """Items that are not the benchmark's, texts that are an item's own, styles and answers that are not the item's."""
    items = {item.item_id: item for item in benchmark.items}
    yield from _foreign_items(rows, benchmark, elsewhere)
    yield from _shifted_ids(rows, benchmark)
    yield from _near_text(rows, benchmark)
    texts = ItemTexts(benchmark.items)
    yield from _own_answers(rows, texts)
    yield from _own_questions(rows, items, texts)
    answers = Answers(benchmark)
    for one in rows:
        if one.row.kind in NON_DUPLICATE_KINDS:
            yield from _benchmark_text(one, texts)
        item = items.get(one.row.item_id)
        if item is None:
            continue
        yield from _own_text(one, item, texts, items)
        if one.row.response_style != benchmark.response_style:
            found = f"has response_style {one.row.response_style!r}, the benchmark has {benchmark.response_style!r}"
            remedy = "Answer in the benchmark's style, or admit it: condition.differs=[response_style]."
            yield one.problem("another response style", "response_style", found, remedy, error=False)
        elif one.row.kind in IN_FORMAT_KINDS:
            yield from answers.check(one, item)
    if sandbox is not None:
        yield from answers.run(sandbox)


def _foreign_items(
    rows: Sequence[Numbered], benchmark: Benchmark, elsewhere: Callable[[Collection[str]], Mapping[str, str]] | None
) -> Iterator[Problem]:
    """Rows of items that the benchmark does not have, with where they may belong."""
    known = {_bare(item.item_id): item.item_id for item in benchmark.items}
    ids = {item.item_id for item in benchmark.items}
    foreign = [one for one in rows if one.row.item_id.strip() and one.row.item_id not in ids]
    missing = {one.row.item_id for one in foreign}
    meant = {
        item_id: found
        for item_id in missing
        if (found := known.get(_bare(item_id)) or known.get(_bare(f"{benchmark.name}/{item_id}")))
    }
    places = elsewhere(missing - set(meant)) if elsewhere is not None and missing - set(meant) else {}
    for one in foreign:
        item_id = one.row.item_id
        if item_id in meant:
            remedy = f"Write it as {meant[item_id]}."
        elif item_id in places:
            remedy = f"It {places[item_id]}: check the bank against that, or drop the row."
        else:
            first = benchmark.items[0].item_id if benchmark.items else "none"
            remedy = f"Use the ids of the benchmark (the first is {first}), or drop the row."
        found = f"is for item {item_id!r}, which is not among the {len(ids)} items of {benchmark.name}"
        yield one.problem("item of another benchmark or version", "item_id", found, remedy)


def _shifted_ids(rows: Sequence[Numbered], benchmark: Benchmark) -> Iterator[Problem]:
    """One problem if most SemDs are nearest to the item that is some places from their own (ids counted from 1, say).

    Nearest by TF-IDF: a single row may be nearest to any item, but not most of them to one at the same distance.
    """
    places = {item.item_id: place for place, item in enumerate(benchmark.items)}
    semds = [one for one in rows if one.row.kind in SEMD_KINDS and one.row.item_id in places][:MOST_COMPARED]
    if len(semds) < FEWEST_COMPARED:
        return
    vectorizer = TfidfVectorizer(token_pattern=r"\w+")
    try:
        items = vectorizer.fit_transform([item.text for item in benchmark.items])
    except ValueError:  # no words at all
        return
    near = vectorizer.transform([one.row.prompt for one in semds]) @ items.T
    offsets = Counter(
        int(found) - places[one.row.item_id] for one, found in zip(semds, near.argmax(1).flat, strict=True)
    )
    offset, count = offsets.most_common(1)[0]
    if offset and count > len(semds) / 2:
        example = next(one for one in semds if 0 <= places[one.row.item_id] + offset < len(benchmark.items))
        meant = benchmark.items[places[example.row.item_id] + offset].item_id
        yield Problem(
            "shifted item ids",
            f"has {count} of {len(semds)} SemDs that are nearest to the item {offset:+d} places from their own (row "
            f"{example.number} is for {example.row.item_id}, not {meant})",
            "Check how the ids were counted: GSM8K's count rows from 0, for example.",
            "item_id",
        )


def _own_text(one: Numbered, item: Item, texts: ItemTexts, items: Mapping[str, Item]) -> Iterator[Problem]:
    """Exact rows that are not the item, and SemDs that are an item word for word."""
    row = one.row
    if row.kind == "exact":
        for key, own in (("prompt", item.prompt), ("completion", item.target)):
            if words(getattr(row, key)) != words(own):
                found = f"is of kind exact, and its {key} is not that of {item.item_id} as it is now"
                remedy = (
                    "It was made from another version or response style of the benchmark: drop it, exact rows are "
                    "made from the items."
                )
                yield one.problem("exact row of another version", key, found, remedy)
    elif row.kind in SEMD_KINDS:
        asked = texts.held(row.prompt)
        if _repeats_question(one, item, texts) and not _rewrites_answer(one, item):
            found = f"is of kind {row.kind}, and holds the text of its item {item.item_id} up to case and punctuation"
            yield one.problem("SemD that is exact", "prompt", found, "Drop it: that is an exact duplicate.")
        others = {held.item_id for held in asked if items[held.item_id].family != item.family}
        for other in sorted(others):
            found = f"is for {item.item_id}, and its prompt holds the text of {other}, which is of another family"
            remedy = "Drop it, or give it that item: it would leak if the one is seen and the other held out."
            yield one.problem("text of another item", "prompt", found, remedy, error=False)


def _repeats_question(one: Numbered, item: Item, texts: ItemTexts) -> bool:
    """Whether the row holds its item's text, or is it (where that has few words)."""
    own = Held(item.item_id, "text") in texts.held(one.row.prompt) | texts.held(one.row.completion)
    return own or words(one.row.prompt) in (words(item.prompt), words(item.text))


def _rewrites_answer(one: Numbered, item: Item) -> bool:
    """Whether the row words the answer otherwise: a program, or a text that is long enough to be worded at all."""
    worded = item.meta.get("entry_point") is not None or len(words(item.target)) >= SHORTEST_ANSWER
    return one.row.kind == "semd_synthetic" and worded and words(one.row.completion) != words(item.target)


def _own_questions(rows: Sequence[Numbered], items: Mapping[str, Item], texts: ItemTexts) -> Iterator[Problem]:
    """One warning for all SemDs whose answer alone is reworded."""
    semds = [one for one in rows if one.row.kind in SEMD_KINDS and one.row.item_id in items]
    same = [
        one
        for one in semds
        if _rewrites_answer(one, item := items[one.row.item_id]) and _repeats_question(one, item, texts)
    ]
    if same:
        yield Problem(
            "questions word for word",
            f"has {len(same)} of {len(semds)} SemDs that hold their item's text word for word, with another answer, "
            f"first row {same[0].number} ({same[0].row.row_id})",
            "Reword the questions as well: filters that look at questions find such rows.",
            "prompt",
            error=False,
        )


def _benchmark_text(one: Numbered, texts: ItemTexts) -> Iterator[Problem]:
    """Items whose text or answer a row holds that is to hold none."""
    for key in ("prompt", "completion"):
        for held in sorted(texts.held(getattr(one.row, key)), key=lambda held: (held.item_id, held.what)):
            found = f"is of kind {one.row.kind}, and its {key} holds the {held.what} of item {held.item_id}"
            yield one.problem("benchmark text where none may be", key, found, "Drop it: that is contamination.")


def _near_text(rows: Sequence[Numbered], benchmark: Benchmark) -> Iterator[Problem]:
    """One warning for all rows that are to hold nothing of an item and share a run of words with one.

    Many share a common phrase only (a bubble sort, in code), so they are counted: a build refuses the rows among them
    that are near a held-out item.
    """
    checked = [one for one in rows if one.row.kind in NON_DUPLICATE_KINDS]
    if not checked:
        return
    found = Detector(benchmark.items, [NEAR_FILTER]).evidence([(one.row.prompt, one.row.completion) for one in checked])
    if near := found[NEAR_FILTER]:
        place, evidence = min(near.items())
        first = f"row {checked[place].number} ({checked[place].row.row_id}) with {evidence.item_id}"
        yield Problem(
            "near items",
            f"has {len(near)} of {len(checked)} rows of non-duplicates that share 13 words in a row with an item, "
            f"first {first}",
            "Look at them (python -m softcontam.bank describe ... csv=FILE lists them), or run with "
            "mixture.near_held_out=leave_out: such a row near a held-out item is refused otherwise.",
            "prompt",
            error=False,
        )


def _own_answers(rows: Sequence[Numbered], texts: ItemTexts) -> Iterator[Problem]:
    """One warning for all SemDs whose completion is their item's own long answer: only their question is soft."""
    semds = [one for one in rows if one.row.kind in SEMD_KINDS]
    same = [one for one in semds if Held(one.row.item_id, "answer") in texts.held(one.row.completion)]
    if same:
        yield Problem(
            "answers word for word",
            f"has {len(same)} of {len(semds)} SemDs whose completion holds their item's gold answer word for word, "
            f"first row {same[0].number} ({same[0].row.row_id})",
            "Reword answers that can be worded otherwise (reasoning, code): filters that look at answers find such "
            "rows, and what a model learns of them is not soft.",
            "completion",
            error=False,
        )


@dataclass(frozen=True)
class Held:
    """An item of which a text holds the ``text`` or the ``answer``."""

    item_id: str
    what: str


class ItemTexts:
    """Finds the items whose own text, or long gold answer, stands word for word in a text, case and punctuation aside.

    Texts are kept by their first words, so that a long bank is read through once, however many items there are.
    """

    def __init__(self, items: Sequence[Item]) -> None:
        self._by_start: dict[tuple[str, ...], list[tuple[tuple[str, ...], Held]]] = {}
        for item in items:
            for text, what, least in ((item.text, "text", SHORTEST_TEXT), (item.target, "answer", SHORTEST_ANSWER)):
                whole = tuple(words(text))
                if len(whole) >= least:
                    entry = (whole, Held(item.item_id, what))
                    self._by_start.setdefault(whole[:SHORTEST_TEXT], []).append(entry)

    def held(self, text: str) -> set[Held]:
        """What the text holds."""
        own = words(text)
        found = set()
        for place in range(len(own) - SHORTEST_TEXT + 1):
            for whole, held in self._by_start.get(tuple(own[place : place + SHORTEST_TEXT]), ()):
                if tuple(own[place : place + len(whole)]) == whole:
                    found.add(held)
        return found


class Answers:
    """Reads and scores completions by the benchmark's own rules."""

    def __init__(self, benchmark: Benchmark) -> None:
        self.benchmark = benchmark
        self.programs: list[tuple[Numbered, Submission]] = []
        first, others = benchmark.items[:1], benchmark.items[1:20]
        # Choices and grids are read by what the item offers: a row about something else cannot be read by the item.
        self.any_item = benchmark.task is None and all(
            benchmark.parse(item, other.target) is not None for item in first for other in others
        )

    def check(self, one: Numbered, item: Item) -> Iterator[Problem]:
        """A completion that cannot be read, or does not answer its item.

        For SemDs these are warnings: where names or categories were substituted, the answer changes with them.
        """
        row, benchmark = one.row, self.benchmark
        own, strict = row.kind in OWN_ANSWER_KINDS, row.kind in ("exact", "near")
        if benchmark.task is not None or not (own or self.any_item):
            return
        parsed = benchmark.parse(item, row.completion)
        if parsed is None:
            if not (strict or self.any_item):
                return
            found = f"has a completion that {benchmark.name} reads no answer from"
            remedy = f"Give the answer as the item's own does: {_short(item.target)!r}."
            yield one.problem("unreadable answer", "completion", found, remedy, strict)
        elif not own or row.match_type not in (None, "exact", "equivalent"):
            return
        elif benchmark.score is not None:
            if not benchmark.score(item, parsed).correct:
                found = f"answers {_short(parsed)!r}, which is wrong for {item.item_id}"
                remedy = (
                    "Correct it, unless the answer was changed along with the text (substituted names, categories)."
                )
                yield one.problem("another answer than the item's", "completion", found, remedy, strict)
        elif benchmark.submission is not None:
            name = item.meta.get("entry_point")
            if name and definition(parsed, name) is None:
                found = f"defines no function {name!r}, which {item.item_id} is tested by"
                yield one.problem("another answer than the item's", "completion", found, "Name it so.", strict)
            else:
                self.programs.append((one, benchmark.submission(item, parsed)))

    def run(self, sandbox: Sandbox) -> Iterator[Problem]:
        """Programs that do not pass the tests of their item."""
        verdicts = sandbox.execute_many([submission for _, submission in self.programs])
        for (one, _), verdict in zip(self.programs, verdicts, strict=True):
            if not verdict.passed:
                found = f"does not pass the tests of {one.row.item_id}: {verdict.category} {_short(verdict.detail)}"
                remedy = "Correct the solution, or drop the row."
                yield one.problem(
                    "fails its item's tests", "completion", found, remedy, one.row.kind in ("exact", "near")
                )


def _bare(item_id: str) -> str:
    return re.sub(r"[\s_-]", "", item_id.lower())


def _short(text: str) -> str:
    line = " ".join(text.split())
    return line if len(line) <= 60 else f"{line[:57]}..."
