"""GSM8K: other names, other objects, the same arithmetic (kind ``semd_synthetic``).

Levels. ``names``: every person that the lexicon knows gets another name of the same gender. ``objects``: nouns of
:data:`~softcontam.duplicates.rules.gsm8k_lexicon.FAMILIES` become others of their family, one to one, singular and
plural, with the article that they need. ``names_objects``: both. Question and worked solution change alike; numbers,
units and money do not change.

Gender is that of the name; in a problem about one person whose pronouns are all of the other gender, it is that of the
pronouns. Names that are words, months or places (May is never replaced) count as names only with a sign that a person
is meant, and not where the word also stands in lower case. A name beside another capitalized word (Jordan River, San
Diego) and a problem about the letters of a name are left alone.

Certified for each row, or there is no row: the numbers of question and solution are the same in the same order, and so
are the values of the solution's calculations (``a op b = c``; GSM8K's ``<<...>>`` marks are not in our items); the
final answer is the item's; putting the old words back gives the original, character by character; no new word stands in
the original and no replaced name is left. Calculations with words among their terms are not read (3,613 of the test
split's 4,756 equal signs belong to calculations that are; 17 of these are wrong or misread in the original), but their
numbers are compared. That the story stays sensible is what the lexicon was written for; it is not certified.

Of the 1,319 test problems 1,004 have a row at ``names``, 322 at ``objects`` and 266 at ``names_objects``.
"""

from __future__ import annotations

import ast
import random
import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from fractions import Fraction

from softcontam.benchmarks import Item
from softcontam.benchmarks.answers import gold_text
from softcontam.benchmarks.gsm8k import parse_number
from softcontam.benchmarks.python_code import syntax_tree
from softcontam.config import BankConfig, derive_seed
from softcontam.duplicates.bank import BankRow
from softcontam.duplicates.distance import bigram_overlap
from softcontam.duplicates.rules.asked import levels_and_count
from softcontam.duplicates.rules.gsm8k_lexicon import (
    EITHER,
    FAMILIES,
    FEMALE,
    FIRST_NAMES,
    MONTHS,
    NEW_NAMES,
    NOUN_GUARDS,
    PLURAL_ONLY,
    SURNAMES,
    TITLES,
    WORDLIKE,
)
from softcontam.errors import DataError

LEVELS = ("names", "objects", "names_objects")
"""What is replaced."""

_WORD = re.compile(r"[^\W\d_]+")
_NUMBER = re.compile(
    r"\d[\d,]*(?:\.\d+)?|\.\d+|\b(?:one|two|three|four|five|six|seven|eight|nine|ten|eleven|twelve|twenty|thirty|forty|"
    r"fifty|sixty|hundred|thousand|million|dozen|half|thirds?|quarters?|fourths?|fifths?|twice|thrice|doubled?|tripled?)\b",
    re.IGNORECASE,
)
_CALCULATION = re.compile(
    r"(?<![\d.,$%)+*/×÷−-])(?<![+*/x×÷−-] )((?:[\d($]|\.\d)[\d .,$%()+*/x×÷−-]*?[+*/x×÷−-][\d .,$%()+*/x×÷−-]*?)"
    r" *= *\$? *(-?\d[\d,]*(?:\.\d+)?|\.\d+)(?![\d.,]*\d|%| *[+*/x×÷−-])"
)
_PRONOUNS = {"female": {"she", "her", "hers", "herself"}, "male": {"he", "him", "his", "himself"}}
_KIN = frozenset(
    "brother sister mother father mom dad son daughter husband wife uncle aunt nephew niece grandfather grandmother "
    "grandma grandpa man woman boy girl boys girls men women boyfriend girlfriend".split()
)
_BESIDE = frozenset("Monday Tuesday Wednesday Thursday Friday Saturday Sunday Christmas I".split())
_TIME = re.compile(
    r"\b(?:month|months|January|February|March|May|July|August|September|October|November|December)\b|"
    r"\b(?:[Bb]y|[Ff]rom|[Ss]ince|[Oo]f|[Oo]n|[Tt]o)\s+(?:April|June)\b"
)
_PLACE = frozenset("San Santa Los St Saint Lake Mount Mt Fort New Port North South East West".split())
_ACTS = re.compile(
    r"['’]s?\b|,\s+[A-Z]|\s+(?:and\s+[A-Z]|(?:has|had|is|was|have|will|can|just|bought|sold|ate|got|gave|went|made|ran|"
    r"took|read|found|spent|paid|left|drew|threw|grew|wrote|won|lost|[a-z]+(?:ed|[^s]s))\b)"
)
_TO_PLACE = re.compile(r"\b(?:in|during|until|through|near|at|visit|visits|visiting|last|next)\s+$", re.I)


@dataclass(frozen=True)
class Substitution:
    """Words and the words that replace them, each in the case it is written in."""

    words: Mapping[str, str]

    def apply(self, text: str) -> str:
        """The text with the words replaced, and ``a`` or ``an`` before them as the new word needs it."""
        if not self.words:
            return text
        forms = "|".join(sorted(map(re.escape, self.words), key=lambda form: (-len(form), form)))
        return re.sub(rf"(?<![\w-])(?:([Aa])n?( +))?({forms})(?!\w)", self._replace, text)

    def inverse(self) -> Substitution:
        """The substitution that puts the old words back."""
        return Substitution({new: old for old, new in self.words.items()})

    def _replace(self, found: re.Match[str]) -> str:
        new = self.words[found[3]]
        if found[1] is None:
            return new
        return f"{found[1]}{'n' if new[0].lower() in 'aeiou' else ''}{found[2]}{new}"


def rows(config: BankConfig, items: Sequence[Item]) -> list[BankRow]:
    """Rows for every item and level that something can be replaced in; the same rows for the same items.

    ``params.levels`` selects levels, ``params.per_level`` (1) says how many different rows each is to have.

    Raises:
        ConfigError: an unknown level or parameter.
        DataError: an item without a question or worked solution in its ``meta``.
    """
    levels, per_level = levels_and_count(config, "gsm8k", LEVELS)
    made = []
    for item in items:
        for level in levels:
            texts: set[str] = set()
            for draft in range(per_level * 2):
                row = _row(item, level, draft, len(texts))
                if row is not None and row.prompt not in texts:
                    texts.add(row.prompt)
                    made.append(row)
                if len(texts) == per_level:
                    break
    return made


def certified(question: str, solution: str, substitution: Substitution) -> tuple[str, str] | None:
    """The question and solution with the words replaced, or None where the substitution is not certified."""
    changed = substitution.apply(question), substitution.apply(solution)
    back = substitution.inverse()
    original, rewritten = f"{question}\n{solution}".lower(), "\n".join(changed)
    names = [word for word in substitution.words if word[0].isupper() and word.lower() not in substitution.words]
    sound = (
        changed[0] != question
        and (back.apply(changed[0]), back.apply(changed[1])) == (question, solution)
        and numbers(question) == numbers(changed[0])
        and numbers(solution) == numbers(changed[1])
        and calculations(solution) == calculations(changed[1])
        and not any(new.lower() in original for new in substitution.words.values())
        and not any(re.search(rf"\b{name}", rewritten) for name in map(re.escape, names))
    )
    return changed if sound else None


def numbers(text: str) -> list[str]:
    """The numbers of a text in their order, digits and number words."""
    return [found[0].lower() for found in _NUMBER.finditer(text)]


def calculations(text: str) -> list[tuple[Fraction, Fraction]]:
    """The value of each calculation ``a op b = c`` of a text and the value ``c`` that the text gives it.

    Those with words among their terms (``3 hours * 20 = 60``) are not read; their numbers are compared all the same.
    """
    found = ((_value(match[1]), _value(match[2])) for match in _CALCULATION.finditer(text))
    return [(value, stated) for value, stated in found if value is not None and stated is not None]


def _row(item: Item, level: str, draft: int, number: int) -> BankRow | None:
    """The row of one draft of a level, or None where nothing can be replaced or it is not certified."""
    question, solution, answer = (item.meta.get(key) for key in ("task", "rationale", "answer"))
    if not (isinstance(question, str) and isinstance(solution, str) and isinstance(answer, str)):
        raise DataError(f"item {item.item_id} has no question, worked solution and answer; gsm8k's rules need them.")
    rng = random.Random(derive_seed(0, f"rules:gsm8k:{level}:{item.item_id}:{draft}"))
    words: dict[str, str] = {}
    for part in level.split("_"):
        found = _names(question, solution, rng) if part == "names" else _objects(question, solution, rng)
        if not found:
            return None
        words.update(found)
    changed = certified(question, solution, Substitution(words))
    if changed is None or item.prompt.count(question) != 1:
        return None
    completion = gold_text(answer, item.response_style, changed[1])
    if parse_number(completion, item.response_style) != answer:
        return None
    return BankRow(
        row_id=f"semd_synthetic/{level}/{item.item_id}/{number}",
        item_id=item.item_id,
        kind="semd_synthetic",
        level=level,
        prompt=item.prompt.replace(question, changed[0]),
        completion=completion,
        response_style=item.response_style,
        source="softcontam.duplicates.rules.gsm8k",
        match_type="equivalent",
        judge="construction",
        ngram_overlap=round(bigram_overlap(changed[0], question), 4),
    )


def _names(question: str, solution: str, rng: random.Random) -> dict[str, str]:
    """New names for the persons of a problem; none where one of them can't be told from another word."""
    text = f"{question}\n{solution}"
    lower = set(re.findall(r"(?<!\w)[a-z]+", text))
    if ("letters" in lower or "letter" in lower or "alphabetical" in lower) and {"name", "names"} & lower:
        return {}
    persons, surnames = _persons(text, lower), _surnames(text)
    taken = {word.lower() for word in _WORD.findall(text)}
    initials = set(re.findall(r"(?<![\w'’.])([B-HJ-Z])(?![\w.'’])", text))
    words: dict[str, str] = {}
    for name in [*persons, *(name for name in surnames if name not in persons)]:
        gender = "surname" if name in surnames else _gender(name, persons, text)
        pool = [
            new
            for new in NEW_NAMES[gender]
            if new.lower() not in text.lower()
            and new.lower() not in taken
            and new.endswith("s") == name.endswith("s")
            and (name[0] not in initials or new[0] == name[0])
        ]
        if not pool:
            return {}
        words[name] = rng.choice(pool)
        taken.add(words[name].lower())
    return words


def _persons(text: str, lower: set[str]) -> list[str]:
    """First names in the order of the text, without those that are beside another capitalized word."""
    found: dict[str, None] = {}
    for match in re.finditer(r"(?<![\w-])[A-Z][^\W\d_]+", text):
        if match[0] in FIRST_NAMES and match[0].lower() not in lower:
            found.setdefault(match[0])
    return [name for name in found if _stands_alone(name, text) and (name not in WORDLIKE or _is_person(name, text))]


def _stands_alone(name: str, text: str) -> bool:
    """Whether no occurrence has a capitalized word beside it that could make it the name of a place or firm."""
    for match in re.finditer(rf"(?<![\w-]){name}\b(?!-)", text):
        before = re.search(r"([\w.]+)[ ]$", text[: match.start()])
        after = re.match(r"[ ]([A-Z]\w*)", text[match.end() :])
        if before is not None and before[1] in _PLACE:
            return False
        if after is not None and after[1] not in FIRST_NAMES | SURNAMES | _BESIDE:
            return False
    return True


def _is_person(name: str, text: str) -> bool:
    """Whether a name that is also a word stands for a person here: it owns or does something, or is one of a list."""
    if name in MONTHS and _TIME.search(text):
        return False
    signs = 0
    for match in re.finditer(rf"(?<![\w-]){name}\b", text):
        before, after = text[: match.start()], text[match.end() :]
        if _TO_PLACE.search(before):
            return False
        inside = re.search(r"[a-z0-9,;]\s+$", before) is not None
        acts = _ACTS.match(after)
        signs += inside or acts is not None
    return signs > 0


def _surnames(text: str) -> list[str]:
    """Names after a title, and known surnames after a first name."""
    titled = re.findall(rf"\b(?:{'|'.join(TITLES)})\.?\s+([A-Z][a-z]+)\b(?!\s+[A-Z])", text)
    full = [
        last
        for first, last in re.findall(r"\b([A-Z][a-z]+)\s+([A-Z][a-z]+)\b", text)
        if first in FIRST_NAMES and last in SURNAMES
    ]
    return list(dict.fromkeys(name for name in [*titled, *full] if name not in FIRST_NAMES))


def _gender(name: str, persons: Sequence[str], text: str) -> str:
    """``female``, ``male`` or ``either``."""
    known = "either" if name in EITHER else "female" if name in FEMALE else "male"
    words = {word.lower() for word in _WORD.findall(text)}
    spoken = [gender for gender, pronouns in _PRONOUNS.items() if pronouns & words]
    if len(persons) == 1 and len(spoken) == 1 and not _KIN & words:
        return spoken[0]
    return known


def _objects(question: str, solution: str, rng: random.Random) -> dict[str, str]:
    """New nouns for the objects of a problem, singular, plural and capitalized forms."""
    text = f"{question}\n{solution}"
    lower, present = text.lower(), {word.lower() for word in _WORD.findall(text)}
    words: dict[str, str] = {}
    for family in FAMILIES:
        if family.guards & present:
            continue
        old = [noun for noun in family.nouns if set(noun) & present and _is_object(noun, text, present)]
        new = [noun for noun in family.nouns if not any(form in lower for form in noun)] if old else []
        if len(old) <= len(new):
            for (one, many), (new_one, new_many) in zip(old, rng.sample(new, len(old)), strict=True):
                pairs = ((one, new_one), (many, new_many))
                words.update(pairs)
                words.update((form.capitalize(), other.capitalize()) for form, other in pairs)
    return words


def _is_object(noun: tuple[str, str], text: str, present: set[str]) -> bool:
    """Whether a noun is meant, not another word that is written like it, and not a name."""
    one, many = noun
    capitals = f"(?:{one.capitalize()}|{many.capitalize()})"
    named = re.search(rf"[a-z,;]\s+{capitals}\b|\b{capitals}\s+[A-Z]", text) is not None
    guarded = NOUN_GUARDS.get(one, frozenset()) & present
    # a solution may call the apples x, but one that calls the cookies c would read oddly about muffins
    variable = one[0] != "a" and re.search(rf"(?<![^\W\d]|['’]){one[0]}(?![\w'’])", text) is not None
    return not named and not guarded and not variable and (one not in PLURAL_ONLY or many in present)


def _value(expression: str) -> Fraction | None:
    """The value of an expression of numbers, signs and brackets; None where it is not one."""
    text = re.sub(r"[$,\s]", "", expression).replace("−", "-").replace("×", "*").replace("x", "*").replace("÷", "/")
    text = re.sub(r"([\d.]+)%", r"(\1/100)", text)
    tree = syntax_tree(text)
    if tree is None or len(tree.body) != 1:
        return None
    try:
        return _evaluate(tree.body[0])
    except (ValueError, ZeroDivisionError, RecursionError):
        return None


def _evaluate(node: ast.AST) -> Fraction:
    if isinstance(node, ast.Expr):
        return _evaluate(node.value)
    if isinstance(node, ast.Constant) and isinstance(node.value, int | float):
        return Fraction(str(node.value))
    if isinstance(node, ast.UnaryOp) and isinstance(node.op, ast.USub):
        return -_evaluate(node.operand)
    if isinstance(node, ast.BinOp):
        left, right = _evaluate(node.left), _evaluate(node.right)
        if isinstance(node.op, ast.Add):
            return left + right
        if isinstance(node.op, ast.Sub):
            return left - right
        if isinstance(node.op, ast.Mult):
            return left * right
        if isinstance(node.op, ast.Div):
            return left / right
    raise ValueError("no arithmetic")
