"""Near duplicates (kind ``near``): the item with small surface edits that n-gram filters still see.

Only the item's own text (:attr:`~softcontam.benchmarks.Item.text`) is edited, in its place in the prompt; the wording
around it and the target stay. Levels, dealt out in turn:

* ``case_punctuation``: some first letters in lower case, commas and full stops dropped or set apart, double spaces.
* ``typo``: two letters swapped, or one doubled, inside a few words.
* ``synonym_few``: a few common words swapped by :data:`SYNONYMS`.
* ``sentence_prefix``: a short sentence in front.

Never edited are numbers (in digits or words), names and other capitalized words (but for the case of an opening word),
code (fenced, in backticks, doctests, tokens with brackets, operators or underscores), short quotations, and words that
the rest of the prompt uses (tests, parameters, choices, the form of the reply); typos also avoid the words of a target
that is no code. The text of a HumanEval item is the wording of its docstring, which counts as text and not as code.

A run of :data:`RUN` words is left as it is where there is something to edit outside one, otherwise one of
:data:`SHORT_RUN` (texts of up to 13 words, and some of tinyworld's, which have about 15). Texts of up to 8 words (8 of
MBPP's 427 sanitized tasks, 23 of the full 974, 14 of HumanEval) keep no run for sure; the unchanged wording and tests
around them are what a filter finds. An item has no row at a level that finds nothing to edit there (no word of
:data:`SYNONYMS`), and none at all where its prompt does not hold its text exactly once.
"""

from __future__ import annotations

import random
import re
from bisect import bisect_left, bisect_right
from collections.abc import Iterator, Sequence
from dataclasses import dataclass

from softcontam.benchmarks import Item
from softcontam.config import derive_seed
from softcontam.duplicates.bank import BankRow
from softcontam.duplicates.distance import bigram_overlap
from softcontam.errors import ConfigError

LEVELS = ("case_punctuation", "typo", "synonym_few", "sentence_prefix")
"""Kinds of edit."""

RUN = 13
"""Words in a row that stay as they are: the usual length of an n-gram filter."""

SHORT_RUN = 8
"""The same for texts that are too short for :data:`RUN`."""

PREFIXES = (
    "Here is a problem.",
    "Please read this with care.",
    "Take a look at the following.",
    "This one is for you.",
    "Here comes the next one.",
    "Now to something else.",
    "Try your hand at this.",
    "Consider the following.",
)
"""Sentences that go in front; none says anything about the task."""

SYNONYMS: dict[str, str] = dict(
    pair.split(":")
    for pair in (
        "find the:identify the|finds the:identifies the|check if:verify if|check whether:verify whether|"
        "remove:delete|removes:deletes|removing:deleting|removed:deleted|begin:start|begins:starts|began:started|"
        "buys:purchases|bought:purchased|big:large|bigger:larger|biggest:largest|smallest:minimal|kids:children|"
        "entire:whole|required:needed|approximately:roughly|calculate:compute|calculates:computes|"
        "calculated:computed|convert:transform|whether:if|contains:includes|although:though|maybe:perhaps|"
        "often:frequently|quickly:rapidly|finally:eventually|elements:items|element:item|consecutive:successive|"
        "distinct:different|obtain:get|somewhere:someplace|unique:distinct|currently:presently|"
        "remaining:leftover|decides to:chooses to|decided to:chose to|receives:gets|earns:makes|"
        "initially:originally|altogether:overall|in total:altogether|additional:extra|person:individual|"
        "replied:responded|almost:nearly|collects:gathers|collected:gathered|mom:mother|dad:father|house:home|"
        "store:shop|the given:the provided|a given:a provided|are given:are provided|is given:is provided|"
        "given list:provided list|specified:given|return:give back|returns:gives back|needs to:has to|"
        "wants to:wishes to|a lot of:plenty of|lots of:plenty of|in order to:to|per day:each day|"
        "per hour:each hour|per week:each week|every day:each day|every week:each week|total cost:overall cost|"
        "total amount:overall amount|friends:pals|goes to:heads to|went to:headed to|as well as:along with|"
        "rest of:remainder of|now?:at present?"
    ).split("|")
)
"""Common words and what may stand for them in most places."""

_OPENERS = frozenset(
    "a after all an and as at before both but by check count create each every find for from given he her his how "
    "however if in it its let most no on one please return she since some sort take that the their then there they "
    "this to we what when where which while who with write you your".split()
)
_NUMBER_WORDS = frozenset(
    "one two three four five six seven eight nine ten eleven twelve thirteen fourteen fifteen sixteen seventeen "
    "eighteen nineteen twenty thirty forty fifty sixty seventy eighty ninety hundred thousand million dozen half third "
    "quarter first second fourth fifth sixth twice double triple".split()
)
_OTHER_WORD = frozenset(
    "trail trial angel angle quiet quite unite untie diary dairy silver sliver later super diner desert planed hoping "
    "taping staring sliding filing casual causal martial marital united there their brain bread board".split()
)
"""Words that a slip of two letters could turn into another word."""

_CODE = re.compile(
    r"```.*?(?:```|\Z)|`[^`\n]*`|^\s*>>>.*$|^\s*[{\[].*[}\]]\s*$|(?<!\w)([\"'])[^\"'\n]{1,30}\1(?!\w)|"
    r"\S*(?:[\d_=<>{}\[\]()/\\*+^@#|~:]|[a-z][A-Z])\S*",
    re.DOTALL | re.MULTILINE,
)
_TOKEN = re.compile(r"\S+")


@dataclass(frozen=True)
class _Edit:
    """Characters ``start`` to ``end`` of a text become ``new``."""

    start: int
    end: int
    new: str


def rows(items: Sequence[Item], per_item: int = 4) -> list[BankRow]:
    """Up to ``per_item`` different rows for each item, levels in turn; the same rows for the same item.

    Raises:
        ConfigError: ``per_item`` below 1.
    """
    if per_item < 1:
        raise ConfigError(f"near duplicates: per_item={per_item} must be at least 1.")
    made = []
    for item in items:
        prompts = {item.prompt}
        for number in range(per_item):
            level = LEVELS[number % len(LEVELS)]
            row = next((row for row in _drafts(item, level, number) if row.prompt not in prompts), None)
            if row is not None:
                prompts.add(row.prompt)
                made.append(row)
    return made


def _drafts(item: Item, level: str, number: int) -> Iterator[BankRow]:
    """A few rows of one level, none where there is nothing to edit."""
    place = _place(item)
    if place is None:
        return
    start, end = place
    text = item.prompt[start:end]
    kept = {word.lower() for word in re.findall(r"[^\W\d_]+", f"{item.prompt[:start]} {item.prompt[end:]}")}
    free = _free(text)
    kept |= {word.lower() for code in _CODE.finditer(text) for word in re.findall(r"[^\W\d_]+", code[0])}
    for draft in range(8):
        rng = random.Random(derive_seed(0, f"near:{level}:{item.item_id}:{number}:{draft}"))
        if level == "sentence_prefix":
            edits = [_Edit(0, 0, f"{rng.choice(PREFIXES)} ")]
        else:
            if level == "case_punctuation":
                found, least, every = _case_and_punctuation(text, free), 2, 10
            elif level == "typo":
                avoided = kept if "```" in item.target else kept | set(re.findall(r"[a-z]+", item.target.lower()))
                found, least, every = _typos(text, free, avoided, rng), 1, 20
            else:
                found, least, every = _synonyms(text, free, kept), 1, 15
            edits = _outside_a_run(text, found, min(max(least, len(text.split()) // every), 8), rng)
        if not edits:
            return
        edited = _apply(text, edits)
        yield BankRow(
            row_id=f"near/{level}/{item.item_id}/{number}",
            item_id=item.item_id,
            kind="near",
            level=level,
            prompt=item.prompt[:start] + edited + item.prompt[end:],
            completion=item.target,
            response_style=item.response_style,
            source="softcontam.duplicates.near",
            match_type="equivalent",
            judge="construction",
            ngram_overlap=round(bigram_overlap(edited, text), 4),
        )


def _place(item: Item) -> tuple[int, int] | None:
    """Where the prompt holds the item's text (blanks and line ends aside), or None where it isn't there just once."""
    words = item.text.split()
    if not words:
        return None
    pattern = re.compile(r"\s+".join(map(re.escape, words)))
    found = list(pattern.finditer(item.prompt))
    return found[0].span() if len(found) == 1 else None


def _free(text: str) -> list[bool]:
    """For each character whether it may be edited: not in code, a quotation or a token with a digit or sign."""
    free = [True] * len(text)
    for match in _CODE.finditer(text):
        free[match.start() : match.end()] = [False] * (match.end() - match.start())
    return free


def _case_and_punctuation(text: str, free: Sequence[bool]) -> list[_Edit]:
    """Opening words in lower case, commas dropped, full stops and question marks dropped or set apart, blanks."""
    edits = []
    for match in re.finditer(r"(?:\A|(?<=[.?!]\s)|(?<=[.?!]\s\s))[A-Z][a-z]*\b", text):
        if match[0].lower() in _OPENERS:
            edits.append(_Edit(match.start(), match.start() + 1, match[0][0].lower()))
    for match in re.finditer(r"(?<=[a-z]),(?=\s)", text):
        edits.append(_Edit(match.start(), match.end(), ""))
    for match in re.finditer(r"(?<=[a-z]{2})([.?])(\s|\Z)", text):
        edits.append(_Edit(match.start(), match.start() + 1, f" {match[1]}" if match[2] else ""))
    if len(edits) < 2:
        edits += [_Edit(match.start(), match.end(), "  ") for match in re.finditer(r"(?<=[a-z]) (?=[a-z])", text)]
    return [edit for edit in edits if free[edit.start] and free[edit.end - 1]]


def _typos(text: str, free: Sequence[bool], avoided: set[str], rng: random.Random) -> list[_Edit]:
    """One slip inside each longer word in lower case that is no number and not avoided."""
    edits = []
    for match in re.finditer(r"(?<![\w'’-])[a-z]{5,}(?![\w'’-])", text):
        word = match[0]
        if word in avoided | _NUMBER_WORDS | _OTHER_WORD or not all(free[match.start() : match.end()]):
            continue
        slips = [
            word[:at] + word[at + 1] + word[at] + word[at + 2 :]
            for at in range(1, len(word) - 2)
            if word[at] != word[at + 1]
        ]
        at = rng.randrange(1, len(word) - 1)
        slip = rng.choice([*slips, word[:at] + word[at] + word[at:]])
        edits.append(_Edit(match.start(), match.end(), slip))
    return edits


def _synonyms(text: str, free: Sequence[bool], kept: set[str]) -> list[_Edit]:
    """Every swap that the list allows; after a or an only one that needs no other article."""
    forms = "|".join(sorted(map(re.escape, SYNONYMS), key=lambda form: (-len(form), form)))
    edits = []
    for match in re.finditer(rf"(?<![\w'’-])({forms})(?![\w'’-])", text):
        old, new = match[0], SYNONYMS[match[0]]
        article = re.search(r"\b[Aa]n?\s+\Z", text[: match.start()])
        agrees = article is None or (old[0] in "aeiou") == (new[0] in "aeiou")
        if agrees and not set(old.split()) & (kept | _NUMBER_WORDS) and all(free[match.start() : match.end()]):
            edits.append(_Edit(match.start(), match.end(), new))
    return edits


def _outside_a_run(text: str, edits: Sequence[_Edit], wanted: int, rng: random.Random) -> list[_Edit]:
    """Up to ``wanted`` of the edits, so that a run of words stays as it is where the text is long enough."""
    spans = [match.span() for match in _TOKEN.finditer(text)]
    begins, ends = [start for start, _ in spans], [end for _, end in spans]
    words = {edit: range(bisect_right(ends, edit.start), bisect_left(begins, edit.end)) for edit in edits}
    for run in (RUN, SHORT_RUN) if len(spans) > SHORT_RUN else (0,):
        starts = range(max(len(spans) - run + 1, 0))
        best: list[_Edit] = []
        for start in rng.sample(starts, min(len(starts), 30)):
            outside = [edit for edit in edits if words[edit].stop <= start or words[edit].start >= start + run]
            if len(outside) > len(best):
                best = outside
            if len(best) >= wanted:
                break
        if best:
            return rng.sample(best, min(wanted, len(best)))
    return []


def _apply(text: str, edits: Sequence[_Edit]) -> str:
    for edit in sorted(edits, key=lambda edit: edit.start, reverse=True):
        text = text[: edit.start] + edit.new + text[edit.end :]
    return text
