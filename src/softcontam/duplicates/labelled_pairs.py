"""SemDs from a JSONL file of labelled pairs: ``text_a`` is the item's text, ``text_b`` (and ``code_b``) the other one.

A pair belongs to item ``<benchmark>/<item_id>``. Only pairs labelled ``duplicate`` become rows, by ``human_label``
where a pair has one (``judge`` is ``human`` then), and only with the match types of ``params.match_types`` (exact,
equivalent and subset, the strict count). ``params.kind`` is ``semd_synthetic`` (default) or ``semd_natural``.

``semd_synthetic``, ``params.template``:

* ``python``: the prompt is worded as the benchmark's own (:func:`~softcontam.benchmarks.python_code.task_prompt`), with
  ``text_b`` as the task and the first line of the function (name and parameters, as in ``code_b``) in place of the
  item's tests, none of which is shown; the completion is ``code_b`` (or the item's own solution where the pair has no
  code) as one fenced block. ``params.comments: false`` leaves comments and docstrings of the code out: the LLM that
  wrote the rewrites of MBPP explained every step, which no item's own solution does.
* ``completion``: ``text_b`` is a whole function with a docstring. The prompt asks, in the benchmark's own words, to
  complete what stands up to the docstring's end; the completion is all of it as one fenced block. Texts that are no
  such function (some back-translated ones are no Python) are left out.
* ``item``: the item's own prompt with ``text_b`` in place of its text, and the item's target.
* ``verbatim`` (default): the prompt is ``text_b`` and the completion the item's target.

``semd_natural``: ``text_b`` was found in a corpus, and a row holds nothing that the corpus does not: neither the
benchmark's wording nor the item's solution (``params.template`` is ``corpus``). A text of the form ``Prompt: ...
Response: ...`` (a row of an SFT corpus) is split there: user turn and answer as the corpus has them, but for the
indentation of code, which natural_annotated.jsonl has lost. A text without turns (a part of a web page or repository,
or an answer alone, as all of CodeAlpaca's are here) is left out unless ``params.single_texts`` is true: it is then the
completion of :data:`REQUEST`, which says nothing of what is asked. Texts of fewer than :data:`MIN_WORDS` words beside
links, pictures and tags are left out even then: there is no task in them, whatever the judge saw behind the link.
``response_style`` is ``corpus``, ``cosine`` the search's ``similarity`` where the file has one, ``source`` file and
pair (the files name no corpus row).

What the files hold. natural_annotated.jsonl has 59 pairs of MBPP that count strictly: 6 have turns (5 items), 37 are
links, pictures and ids, 16 are other single texts, of which 10 hold the task or a solution and 6 hold neither. All 14
whose ``similarity`` is given hold one. Of 31 of Codeforces 27 have turns (24 items).
humaneval_codealpaca_verdicts.jsonl has 11 (11 items), all answers alone, some headed by the instruction as a docstring.

Left out are pairs whose ``text_b`` repeats the text of any item word for word (in the MBPP rewrites 8 of 659: these
would be exact duplicates) and rows that repeat an earlier row.
"""

from __future__ import annotations

import logging
import math
import re
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from softcontam.benchmarks import Item
from softcontam.benchmarks.humaneval import completion_prompt
from softcontam.benchmarks.python_code import (
    definition,
    fence,
    parse_block,
    task_prompt,
    up_to_docstring,
    without_comments,
)
from softcontam.config import BankConfig
from softcontam.duplicates.bank import BankRow
from softcontam.duplicates.distance import bigram_overlap
from softcontam.duplicates.jsonl import bank_file, check_params, read_lines, text_field
from softcontam.errors import ConfigError, DataError

log = logging.getLogger(__name__)

LABELS = ("duplicate", "not_duplicate", "borderline")
"""What a pair can be labelled."""

TEMPLATES = ("python", "completion", "item", "verbatim")
"""How a pair becomes a row."""

MATCH_TYPES = ("exact", "equivalent", "subset", "superset", "related")
"""Relations that are match types; any other relation of a pair labelled duplicate is ``equivalent``."""

STRICT = MATCH_TYPES[:3]
"""Match types that count strictly: the corpus text solves the item."""

KINDS = ("semd_synthetic", "semd_natural")
"""Kinds of row that pairs can become."""

REQUEST = "Write a piece of text or code."
"""The prompt for a corpus text that has no user turn."""

MIN_WORDS = 4
"""Words that a text without turns needs to be more than a reference."""

_TURNS = re.compile(r"\s*Prompt:\s*(.+?)\n+\s*Response:\s*(.+)", re.DOTALL)
_REFERENCE = re.compile(r"!?\[[^\]]*\]\([^)]*\)|<[^<>]*>|\S*(?:https?://|www\.)\S*")


def rows(config: BankConfig, items: Sequence[Item], data: Path) -> list[BankRow]:
    """The pairs of these items that are duplicates, as rows in the order of the file.

    ``level`` is the pair's ``relation``, ``judge`` its ``label_by``, ``ngram_overlap`` the share of the word pairs of
    the pair's text (of its user turn, if it has turns) that the item's text has too (0 to 1).

    Raises:
        ConfigError: no path, or an unknown parameter.
        DataError: a missing file, a damaged line, or no pair for any of the items; names file and line.
    """
    settings = _settings(config)
    path = bank_file(config, data)
    by_id = {item.item_id: item for item in items}
    own_texts = {_plain(item.text) for item in items}
    made: dict[str, BankRow] = {}
    pairs = repeats = unfit = 0
    for where, record in read_lines(path):
        item = by_id.get(_item_id(record, where))
        if (
            item is None
            or _label(record, where) != "duplicate"
            or _match_type(record, where) not in settings.match_types
        ):
            continue
        pairs += 1
        row = _row(record, where, item, settings)
        if row is None:
            unfit += 1
            continue
        text = row.prompt if settings.kind == "semd_natural" else text_field(record, "text_b", where)
        if _plain(text) in own_texts or row.sha256 in made:
            repeats += 1
        else:
            made[row.sha256] = row
    if not pairs:
        raise DataError(f"{path} has no pair labelled duplicate for any of the {len(items)} items of the benchmark.")
    if repeats:
        log.info("%s: left out %d pairs that repeat an item's text or an earlier row", path, repeats)
    if unfit:
        log.info("%s: left out %d pairs whose text_b does not suit template %s", path, unfit, settings.template)
    return list(made.values())


@dataclass(frozen=True)
class _Settings:
    """The checked settings of a bank."""

    file: str
    kind: str
    template: str
    match_types: tuple[str, ...]
    single_texts: bool
    comments: bool


def _settings(config: BankConfig) -> _Settings:
    known: dict[str, type | tuple[type, ...]] = {"template": str, "kind": str, "match_types": (list, tuple)}
    check_params(config, {**known, "single_texts": bool, "comments": bool})
    kind = config.params.get("kind", "semd_synthetic")
    if kind not in KINDS:
        raise ConfigError(f"bank source labelled_pairs: params.kind={kind!r}, expected one of {', '.join(KINDS)}.")
    natural = kind == "semd_natural"
    templates = ("corpus",) if natural else TEMPLATES
    template = config.params.get("template", "corpus" if natural else "verbatim")
    if template not in templates:
        raise ConfigError(
            f"bank source labelled_pairs: params.template={template!r}, expected one of {', '.join(templates)} "
            f"for rows of kind {kind}."
        )
    single_texts = bool(config.params.get("single_texts", False))
    if single_texts and not natural:
        raise ConfigError("bank source labelled_pairs: params.single_texts has no meaning but for kind semd_natural.")
    match_types = tuple(config.params.get("match_types", STRICT))
    unknown = [name for name in match_types if name not in MATCH_TYPES]
    if unknown or not match_types:
        raise ConfigError(
            f"bank source labelled_pairs: params.match_types={list(match_types)}, choose from {', '.join(MATCH_TYPES)}."
        )
    comments = bool(config.params.get("comments", True))
    if not comments and template != "python":
        raise ConfigError("bank source labelled_pairs: params.comments has no meaning but for template python.")
    return _Settings(str(config.path), kind, template, match_types, single_texts, comments)


def _row(record: dict[str, Any], where: str, item: Item, settings: _Settings) -> BankRow | None:
    """The row of a pair, or None where its text does not suit the template."""
    text, relation = text_field(record, "text_b", where), text_field(record, "relation", where)
    pair_id = text_field(record, "pair_id", where)
    compared, prompt, completion = text, text, item.target
    if settings.template == "python":
        prompt, completion = _python_turns(record, where, item, text, settings)
    elif settings.template == "completion":
        start = up_to_docstring(text)
        if start is None:
            return None
        prompt, completion = completion_prompt(start, item.response_style), fence(text)
    elif settings.template == "item":
        prompt = _reworded(item, text)
    elif settings.template == "corpus":
        turns = _corpus_turns(text, settings.single_texts)
        if turns is None:
            return None
        prompt, completion = turns
        compared = text if prompt == REQUEST else prompt
    natural = settings.kind == "semd_natural"
    return BankRow(
        row_id=f"{settings.kind}/{pair_id}",
        item_id=item.item_id,
        kind=settings.kind,
        level=relation,
        prompt=prompt,
        completion=completion,
        response_style="corpus" if natural else item.response_style,
        source=f"{settings.file} {pair_id}",
        match_type=_match_type(record, where),
        judge="human" if record.get("human_label") else text_field(record, "label_by", where),
        cosine=_similarity(record, where),
        ngram_overlap=round(bigram_overlap(compared, item.text), 4),
    )


def _corpus_turns(text: str, single_texts: bool) -> tuple[str, str] | None:
    """User turn and answer as the corpus has them, a text without turns under :data:`REQUEST`, or None."""
    turns = _TURNS.fullmatch(text)
    if turns is not None:
        return turns[1].strip(), turns[2].strip()
    words = re.findall(r"[^\W\d_]{2,}", _REFERENCE.sub(" ", text))
    return (REQUEST, text.strip()) if single_texts and len(words) >= MIN_WORDS else None


def _python_turns(record: dict[str, Any], where: str, item: Item, text: str, settings: _Settings) -> tuple[str, str]:
    """Prompt and completion of a Python task."""
    name = item.meta.get("entry_point")
    if not name:
        raise ConfigError(f"params.template=python needs items with an entry point; {item.item_id} has none.")
    code = text_field(record, "code_b", where) if "code_b" in record else parse_block(item.target) or ""
    line = definition(code, name)
    if line is None:
        raise DataError(f"{where}: code_b defines no function {name!r}, which {item.item_id} is tested by.")
    written = code if settings.comments else without_comments(code)
    return task_prompt(text, definition=line, style=item.response_style), fence(written)


def _reworded(item: Item, text: str) -> str:
    """The item's prompt with another text in place of its own."""
    own = item.text
    if item.prompt.count(own) != 1:
        raise ConfigError(
            f"params.template=item needs items whose prompt holds their text once; that of {item.item_id} does not. "
            "Use params.template=verbatim."
        )
    return item.prompt.replace(own, text.strip())


def _item_id(record: dict[str, Any], where: str) -> str:
    name = text_field(record, "item_id", where).removeprefix("HumanEval/")
    return f"{text_field(record, 'benchmark', where)}/{name}"


def _label(record: dict[str, Any], where: str) -> str:
    """A person's label where there is one, else the pair's."""
    field = "human_label" if record.get("human_label") else "label"
    label = text_field(record, field, where)
    if label not in LABELS:
        raise DataError(f"{where}: {field} {label!r} is unknown; known: {', '.join(LABELS)}.")
    return label


def _match_type(record: dict[str, Any], where: str) -> str:
    relation = text_field(record, "relation", where)
    return relation if relation in MATCH_TYPES else "equivalent"


def _similarity(record: dict[str, Any], where: str) -> float | None:
    """The cosine that the search measured, None where the file has none."""
    value = record.get("similarity")
    if value is None:
        return None
    if isinstance(value, bool) or not isinstance(value, int | float):
        raise DataError(f"{where}: field 'similarity' should hold a number, found {value!r}.")
    return None if math.isnan(value) else round(float(value), 4)


def _plain(text: str) -> str:
    return " ".join(re.findall(r"\w+", text.lower()))
