"""Topical rows: the rows of an SFT corpus that are nearest to an item without being duplicates.

Nearness is the TF-IDF cosine between the item's task and the instruction of the corpus row (its user turn up to the
first blank line, after which these corpora put an example input), over single words without their endings, without
English stop words and without the words that every programming task has (:data:`COMMON_WORDS`). It knows no synonyms;
embedding models come later. A row counts as a possible duplicate, and is left out altogether, if

* its cosine to *any* item, or to any known rewording of one, is ``params.max_cosine`` or more: a row that is topical
  for a seen item must not be a duplicate of a held-out one; or
* its code differs from the solution of any item in names only.

``params``:

* ``max_cosine``. What was seen between MBPP (sanitized) and the Python rows of code_dup_corpus, by the item's own text
  alone: from 1.0 to 0.7 most pairs are the same task, the others near misses (first repeated against first non-repeated
  character, 0.89). Duplicates thin out but go on: 0.59 (smallest number of a list), 0.55 (sum of an array), 0.50
  (common elements of two lists), 0.42 (a to the power b), and two even at 0.33 and 0.30 (first character that does not
  repeat; integer to binary form). Rewordings and word endings bring those two above the ceiling. With them, one was
  seen between 0.40 and 0.45 (frequency of the elements of a list) and none among the 180 nearest rows below 0.40, which
  are other tasks about the same things (sort each sublist, sort the list; nth hexagonal, nth Fibonacci number). Hence
  0.4 in ``conf/benchmark/mbpp.yaml``.
* ``per_item``: rows per item. An item has fewer where the corpus runs out of rows that share a word with it.
* ``rewordings``: JSONL files of labelled pairs whose ``text_b`` is a rewording of an item (label ``duplicate``).
* ``template``: ``python`` keeps only rows whose answer is Python code, and words prompt and answer as the benchmark
  does, so that this arm teaches the same format as the others; ``verbatim`` (default) takes both turns as they are.
"""

from __future__ import annotations

import ast
import re
from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray
from sklearn.feature_extraction.text import ENGLISH_STOP_WORDS, TfidfVectorizer

from softcontam.benchmarks import Item
from softcontam.benchmarks.python_code import fence, parse_block, same_code_key, syntax_tree, task_prompt
from softcontam.config import BankConfig
from softcontam.duplicates.bank import BankRow
from softcontam.duplicates.jsonl import bank_file, check_params, read_lines, text_field
from softcontam.errors import ConfigError, DataError

_VERBS = {"write", "create", "implement", "develop", "design", "build", "generate", "use", "using", "given"}
_NOUNS = {"code", "program", "script", "function", "method", "class", "take", "takes", "return", "returns", "input"}
_LANGUAGES = {"python", "java", "javascript", "js", "typescript", "c", "c++", "c#", "kotlin", "swift", "ruby", "php"}

COMMON_WORDS = frozenset(_VERBS | _NOUNS | _LANGUAGES | {"output", "rust", "go"})
"""Words that say "write a program in this language" and nothing about the task."""

TELLING_WORDS = frozenset(
    {"first", "last", "two", "three", "four", "between", "up", "down", "top", "bottom"}
    | {"empty", "full", "every", "all", "none", "not", "above", "below"}
)
"""English stop words that do tell one programming task from another, and so are kept."""

_ENDING = re.compile(r"(?:ing|ed|es|s|e)$")
"""Ending taken off words of more than four letters, so that "repeated" and "repeat" are one word."""

_STOP = (frozenset(ENGLISH_STOP_WORDS) - TELLING_WORDS) | COMMON_WORDS


@dataclass(frozen=True)
class CorpusRow:
    """One conversation of the corpus: its id, first user turn and first assistant turn."""

    row_id: str
    user: str
    assistant: str


def rows(config: BankConfig, items: Sequence[Item], data: Path, others: Sequence[Item] = ()) -> list[BankRow]:
    """Up to ``params.per_item`` rows of kind ``topical`` for each item, no corpus row twice.

    Rows are handed out in rounds: every item gets its first row before any gets its second. Within a round the nearest
    pair goes first, ties in the order of items and corpus. No row is a possible duplicate of one of ``others`` (items
    of related benchmarks) either.

    Raises:
        ConfigError: no path, or parameters that are missing or out of range.
        DataError: a missing file, a damaged line, or no usable row at all; names file and line.
    """
    check_params(config, {"max_cosine": (int, float), "per_item": int, "rewordings": list, "template": str})
    ceiling, per_item = config.params.get("max_cosine", 0.0), config.params.get("per_item", 0)
    if not 0 < ceiling <= 1 or per_item < 1:
        raise ConfigError(
            "bank source nearest needs params.max_cosine above 0 and at most 1, and params.per_item of at least 1; "
            f"found {ceiling} and {per_item}."
        )
    template = config.params.get("template", "verbatim")
    if template not in ("python", "verbatim"):
        raise ConfigError(f"bank source nearest: params.template={template!r}, expected python or verbatim.")
    path = bank_file(config, data)
    corpus = read_corpus(path)
    usable = [row for row in corpus if template == "verbatim" or python_answer(row) is not None]
    if not usable:
        raise DataError(f"{path} has no row that params.template={template} can use. Use another corpus or template.")
    vectorizer = TfidfVectorizer(analyzer=task_words, sublinear_tf=True)
    vectorizer.fit([*(item.text for item in items), *(row.user for row in corpus)])
    instructions = [row.user for row in usable]
    near = cosines(vectorizer, [item.text for item in items], instructions)
    avoided = [*(item.text for item in others), *known_rewordings(config, items, data)]
    nearest = np.vstack([near, cosines(vectorizer, avoided, instructions)]).max(axis=0)
    allowed = (nearest < ceiling) & ~same_code([*items, *others], [python_answer(row) or "" for row in usable])
    chosen = _assign(np.where(allowed, near, 0.0), per_item)
    return [
        _row(items[item], usable[index], cosine, float(ceiling), template, str(config.path))
        for item, index, cosine in chosen
    ]


def read_corpus(path: Path) -> list[CorpusRow]:
    """The conversations of a JSONL corpus with ``id`` and ``messages``.

    Raises:
        DataError: a line without id, or without a user turn and an assistant turn; names file and line.
    """
    corpus = []
    for where, record in read_lines(path):
        turns = record.get("messages")
        if not isinstance(turns, list) or not all(isinstance(turn, dict) for turn in turns):
            raise DataError(f"{where}: field 'messages' should be a list of turns with role and content.")
        user: dict[str, Any] = next((turn for turn in turns if turn.get("role") == "user"), {})
        assistant: dict[str, Any] = next((turn for turn in turns if turn.get("role") == "assistant"), {})
        corpus.append(
            CorpusRow(
                text_field(record, "id", where),
                text_field(user, "content", f"{where}, user turn"),
                text_field(assistant, "content", f"{where}, assistant turn"),
            )
        )
    repeated = [row_id for row_id, count in Counter(row.row_id for row in corpus).items() if count > 1]
    if repeated:
        raise DataError(f"{path}: id {repeated[0]!r} occurs more than once; ids must be unique.")
    return corpus


def cosines(vectorizer: TfidfVectorizer, texts: Sequence[str], others: Sequence[str]) -> NDArray[np.float64]:
    """Cosines between texts and others by a fitted vectorizer, shape (texts, others)."""
    if not texts or not others:
        return np.zeros((len(texts), len(others)))
    product = vectorizer.transform(texts) @ vectorizer.transform(others).T
    return np.asarray(product.toarray(), dtype=np.float64)


def known_rewordings(config: BankConfig, items: Sequence[Item], data: Path) -> list[str]:
    """The known rewordings of these items, from the files of ``params.rewordings``."""
    known = {item.item_id for item in items}
    return [
        text_field(record, "text_b", where)
        for file in config.params.get("rewordings", [])
        for where, record in read_lines(data / str(file))
        if record.get("label") == "duplicate" and f"{record.get('benchmark')}/{record.get('item_id')}" in known
    ]


def same_code(items: Sequence[Item], codes: Sequence[str]) -> NDArray[np.bool_]:
    """Whether each code is the solution of an item up to names, shape (codes,); code without a statement never is."""
    empty = same_code_key("")
    solutions = {same_code_key(parse_block(item.target) or "") for item in items} - {None, empty}
    return np.array([same_code_key(code) in solutions for code in codes], dtype=np.bool_)


def _assign(near: NDArray[np.float64], per_item: int) -> list[tuple[int, int, float]]:
    """(item, row, cosine) triples from cosines of shape (items, rows), 0 where a row may not be used; by item."""
    item_index, row_index = np.nonzero(near)
    order = np.lexsort((row_index, item_index, -near[item_index, row_index]))
    ranked = [(int(item_index[k]), int(row_index[k])) for k in order]
    used: set[int] = set()
    chosen: list[tuple[int, int, float]] = []
    for _ in range(per_item):
        served: set[int] = set()
        for item, row in ranked:
            if item not in served and row not in used:
                served.add(item)
                used.add(row)
                chosen.append((item, row, float(near[item, row])))
    return sorted(chosen, key=lambda triple: triple[0])


def _row(item: Item, row: CorpusRow, cosine: float, ceiling: float, template: str, file: str) -> BankRow:
    prompt, completion = row.user, row.assistant
    if template == "python":
        prompt = task_prompt(row.user, style=item.response_style)
        completion = fence(python_answer(row) or "")
    return BankRow(
        row_id=f"topical/{row.row_id}",
        item_id=item.item_id,
        kind="topical",
        level=None,
        prompt=prompt,
        completion=completion,
        response_style=item.response_style if template == "python" else "corpus",
        source=f"{file} {row.row_id}",
        match_type="related",
        judge=f"tfidf<{ceiling:g}",
        cosine=round(cosine, 4),
    )


def python_answer(row: CorpusRow) -> str | None:
    """The answer's code if it is Python with a statement beyond values and assignments, else None."""
    code: str = parse_block(row.assistant) or row.assistant
    tree = syntax_tree(code)
    plain: tuple[type[Any], ...] = (ast.Expr, ast.Assign)
    return code if tree and any(not isinstance(node, plain) for node in tree.body) else None


def task_words(text: str) -> list[str]:
    """The words of the first paragraph that say something about the task, without their endings."""
    paragraph = re.sub(r"https?://\S+", "", text).strip().split("\n\n")[0]
    words = [word for word in re.findall(r"[\w+#]+", paragraph.lower()) if word not in _STOP]
    return [_ENDING.sub("", word) if len(word) > 4 else word for word in words]
