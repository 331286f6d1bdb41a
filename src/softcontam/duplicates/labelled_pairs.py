"""SemDs from a JSONL file of labelled pairs: ``text_a`` is the item's text, ``text_b`` (and ``code_b``) the other one.

A pair belongs to item ``<benchmark>/<item_id>``. Only pairs labelled ``duplicate`` become rows. ``params.template``:

* ``python``: the prompt is worded as the benchmark's own (:func:`~softcontam.benchmarks.python_code.task_prompt`), with
  ``text_b`` as the task and the first line of the function (name and parameters, as in ``code_b``) in place of the
  item's tests, none of which is shown; the completion is ``code_b`` (or the item's own solution where the pair has no
  code) as one fenced block.
* ``completion``: ``text_b`` is a whole function with a docstring. The prompt asks, in the benchmark's own words, to
  complete what stands up to the docstring's end; the completion is all of it as one fenced block. Texts that are no
  such function (some back-translated ones are no Python) are left out.
* ``item``: the item's own prompt with ``text_b`` in place of its text, and the item's target.
* ``verbatim`` (default): the prompt is ``text_b`` and the completion the item's target.

Left out are pairs whose ``text_b`` repeats the text of any item word for word (in the MBPP rewrites 8 of 659: these
would be exact duplicates) and rows that repeat an earlier row.
"""

from __future__ import annotations

import logging
import re
from collections.abc import Sequence
from itertools import pairwise
from pathlib import Path
from typing import Any

from softcontam.benchmarks import Item
from softcontam.benchmarks.humaneval import completion_prompt
from softcontam.benchmarks.python_code import definition, fence, parse_block, task_prompt, up_to_docstring
from softcontam.config import BankConfig
from softcontam.duplicates.bank import BankRow
from softcontam.duplicates.jsonl import bank_file, check_params, read_lines, text_field
from softcontam.errors import ConfigError, DataError

log = logging.getLogger(__name__)

LABELS = ("duplicate", "not_duplicate", "borderline")
"""What a pair can be labelled."""

TEMPLATES = ("python", "completion", "item", "verbatim")
"""How a pair becomes a row."""

MATCH_TYPES = ("exact", "equivalent", "subset")
"""Relations that are match types of a duplicate; any other relation of a pair labelled duplicate is ``equivalent``."""


def rows(config: BankConfig, items: Sequence[Item], data: Path) -> list[BankRow]:
    """The pairs of these items that are duplicates, as rows of kind ``semd_synthetic``, in the order of the file.

    ``level`` is the pair's ``relation``, ``judge`` its ``label_by``, ``ngram_overlap`` the share of the word pairs of
    ``text_b`` that the item's text has too (0 to 1).

    Raises:
        ConfigError: no path, or an unknown parameter.
        DataError: a missing file, a damaged line, or no pair for any of the items; names file and line.
    """
    check_params(config, {"template": str})
    template = config.params.get("template", "verbatim")
    if template not in TEMPLATES:
        raise ConfigError(
            f"bank source labelled_pairs: params.template={template!r}, expected one of {', '.join(TEMPLATES)}."
        )
    path = bank_file(config, data)
    by_id = {item.item_id: item for item in items}
    own_texts = {_plain(item.text) for item in items}
    made: dict[str, BankRow] = {}
    pairs = repeats = unfit = 0
    for where, record in read_lines(path):
        item = by_id.get(_item_id(record, where))
        if item is None or _label(record, where) != "duplicate":
            continue
        pairs += 1
        row = _row(record, where, item, template, str(config.path))
        if row is None:
            unfit += 1
            continue
        if _plain(text_field(record, "text_b", where)) in own_texts or row.sha256 in made:
            repeats += 1
        else:
            made[row.sha256] = row
    if not pairs:
        raise DataError(f"{path} has no pair labelled duplicate for any of the {len(items)} items of the benchmark.")
    if repeats:
        log.info("%s: left out %d pairs that repeat an item's text or an earlier row", path, repeats)
    if unfit:
        log.info("%s: left out %d pairs whose text_b is no function with a docstring", path, unfit)
    return list(made.values())


def bigram_overlap(text: str, item_text: str) -> float:
    """The share of the word pairs of ``text`` that ``item_text`` has too; 0 for a text of one word."""
    own, other = _bigrams(text), set(_bigrams(item_text))
    return sum(pair in other for pair in own) / len(own) if own else 0.0


def _row(record: dict[str, Any], where: str, item: Item, template: str, file: str) -> BankRow | None:
    """The row of a pair, or None where its text does not suit the template."""
    text, relation = text_field(record, "text_b", where), text_field(record, "relation", where)
    pair_id = text_field(record, "pair_id", where)
    prompt, completion = text, item.target
    if template == "python":
        prompt, completion = _python_turns(record, where, item, text)
    elif template == "completion":
        start = up_to_docstring(text)
        if start is None:
            return None
        prompt, completion = completion_prompt(start, item.response_style), fence(text)
    elif template == "item":
        prompt = _reworded(item, text)
    return BankRow(
        row_id=f"semd_synthetic/{pair_id}",
        item_id=item.item_id,
        kind="semd_synthetic",
        level=relation,
        prompt=prompt,
        completion=completion,
        response_style=item.response_style,
        source=f"{file} {pair_id}",
        match_type=relation if relation in MATCH_TYPES else "equivalent",
        judge=text_field(record, "label_by", where),
        ngram_overlap=round(bigram_overlap(text, item.text), 4),
    )


def _python_turns(record: dict[str, Any], where: str, item: Item, text: str) -> tuple[str, str]:
    """Prompt and completion of a Python task."""
    name = item.meta.get("entry_point")
    if not name:
        raise ConfigError(f"params.template=python needs items with an entry point; {item.item_id} has none.")
    code = text_field(record, "code_b", where) if "code_b" in record else parse_block(item.target) or ""
    line = definition(code, name)
    if line is None:
        raise DataError(f"{where}: code_b defines no function {name!r}, which {item.item_id} is tested by.")
    return task_prompt(text, definition=line, style=item.response_style), fence(code)


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
    label = text_field(record, "label", where)
    if label not in LABELS:
        raise DataError(f"{where}: label {label!r} is unknown; known: {', '.join(LABELS)}.")
    return label


def _plain(text: str) -> str:
    return " ".join(re.findall(r"\w+", text.lower()))


def _bigrams(text: str) -> list[tuple[str, str]]:
    words = _plain(text).split()
    return list(pairwise(words))
