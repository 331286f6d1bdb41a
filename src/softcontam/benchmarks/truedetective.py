"""True Detective (Del and Fishel 2023, arXiv 2212.10114): short mysteries with the culprit to be chosen from a list.

Its stories may be used for academic research only and not be passed on, so softcontam ships no copy and fetches none:
``path`` names the user's own ``detective-puzzles.csv``. Of its columns these are read: ``case_name``, ``mystery_text``,
``answer_options`` (``(a) Name; (b) Name; ...``), ``answer`` (``(a) Name``) and ``solve_rate``, the share of the people
who solved the case.

Families are those of :mod:`~softcontam.benchmarks.stories`; that the real file was not at hand when this was written
means that its number of families is not known.
"""

from __future__ import annotations

import csv
import re
import unicodedata
from collections.abc import Mapping, Sequence
from pathlib import Path

from softcontam.benchmarks.answers import check_params
from softcontam.benchmarks.item import Benchmark
from softcontam.benchmarks.records import Record, source
from softcontam.benchmarks.stories import Story, check_choices, story_benchmark
from softcontam.config import BenchmarkConfig, EvalBenchmark
from softcontam.errors import ConfigError, DataError

COLUMNS = ("case_name", "mystery_text", "answer_options", "answer", "solve_rate")
"""Columns that are read."""

QUESTION = "Which of these answers solves the mystery?"
"""The question of every item; the file has none."""

REMEDY = (
    "Get detective-puzzles.csv from github.com/TartuNLP/true-detective (academic research only, not to be passed on: "
    "softcontam ships no copy) and set the path of this benchmark to it, e.g. eval.related.0.path=FILE; "
    "it may be relative to paths.data."
)

_MARKER = re.compile(r"(?:^|(?<=[;,\s]))\(([a-z])\)", re.IGNORECASE)
_ANSWER = re.compile(r"\(([a-z])\)\s*(.+)", re.IGNORECASE | re.DOTALL)
_RATE = re.compile(r"(\d+(?:\.\d+)?|\.\d+)\s*(%?)")


def load(config: BenchmarkConfig | EvalBenchmark, data: Path) -> Benchmark:
    """The cases in the order of the file.

    An item's id is ``truedetective/`` and the name of its case; a second case of that name gets ``-2``. ``meta`` holds
    ``case_name`` and ``solve_rate`` (0 to 1, None where the file has none), the difficulty for people.

    Raises:
        ConfigError: no path, an unknown parameter or response style.
        DataError: the file, a column or a row is missing or damaged; names row and case.
    """
    check_params(config, ())
    if config.path is None:
        raise ConfigError(f"benchmark {config.name}: path is not set. {REMEDY}")
    rows = _rows(data / config.path)
    rates = _solve_rates(rows)
    ids = _ids([row.text("case_name") for row in rows])
    stories = [_story(row, item_id, rate) for row, item_id, rate in zip(rows, ids, rates, strict=True)]
    return story_benchmark(config, stories, source(config, data))


def _rows(file: Path) -> list[Record]:
    """The rows of the file, counted from 1 without the line of column names."""
    try:
        with file.open(encoding="utf-8-sig", newline="") as lines:
            reader = csv.DictReader(lines, strict=True)
            absent = [column for column in COLUMNS if column not in (reader.fieldnames or ())]
            if absent:
                raise DataError(
                    f"{file} lacks the column {', '.join(absent)}. Use the file of the benchmark's authors."
                )
            return [_row(values, f"{file}, row {number}") for number, values in enumerate(reader, 1)]
    except FileNotFoundError:
        raise DataError(f"{file} does not exist. {REMEDY}") from None
    except (OSError, UnicodeDecodeError, csv.Error) as error:
        raise DataError(f"{file} is no readable CSV file ({error}). Copy it again.") from error


def _row(values: Mapping[str | None, object], where: str) -> Record:
    where = f"{where}, case {values['case_name']!r}"
    if None in values or None in values.values():
        raise DataError(f"{where}: has not as many fields as the file has columns. Copy the file again.")
    return Record(where, {str(name): value for name, value in values.items()})


def _solve_rates(rows: Sequence[Record]) -> list[float | None]:
    """The share of solvers in each row. Plain numbers are per cent where one of them is above 1, else shares."""
    found: list[tuple[float, bool] | None] = []
    for row in rows:
        text = str(row.values["solve_rate"]).strip()
        match = _RATE.fullmatch(text)
        if text and (match is None or float(match[1]) > 100):
            raise DataError(
                f"{row.where}: column 'solve_rate' should hold a share or a percentage, found {text!r}. Correct it."
            )
        found.append((float(match[1]), match[2] == "%") if match else None)
    plain_percent = any(rate > 1 for rate, percent in filter(None, found) if not percent)
    return [None if one is None else one[0] / 100 if one[1] or plain_percent else one[0] for one in found]


def _ids(names: Sequence[str]) -> list[str]:
    """An id for each case that does not depend on the order of the file, as long as no two have the same name."""
    taken: dict[str, None] = {}
    for name in names:
        ascii_name = unicodedata.normalize("NFKD", name).encode("ascii", "ignore").decode().casefold()
        slug = re.sub(r"[^a-z0-9]+", "-", ascii_name).strip("-") or "case"
        item_id, number = f"truedetective/{slug}", 1
        while item_id in taken:
            number += 1
            item_id = f"truedetective/{slug}-{number}"
        taken[item_id] = None
    return list(taken)


def _story(row: Record, item_id: str, solve_rate: float | None) -> Story:
    choices = check_choices(_options(row), row.where)
    answer = row.text("answer").strip()
    found = _ANSWER.fullmatch(answer)
    index = ord(found[1].lower()) - ord("a") if found else -1
    if found is None or index >= len(choices) or _bare(found[2]).casefold() != choices[index].casefold():
        raise DataError(f"{row.where}: the answer {answer!r} is none of the options {list(choices)}. Correct that row.")
    meta = {"case_name": row.text("case_name").strip(), "solve_rate": solve_rate}
    return Story(item_id, row.where, row.text("mystery_text"), QUESTION, choices, index, meta)


def _options(row: Record) -> list[str]:
    """The texts between the markers (a), (b), ...; an option may hold a semicolon.

    Raises:
        DataError: the markers are not a, b, c, ... in this order, or something stands before the first.
    """
    text = row.text("answer_options").strip()
    markers = list(_MARKER.finditer(text))
    letters = "".join(marker[1].lower() for marker in markers)
    if not markers or markers[0].start() or not "abcdefghijklmnopqrstuvwxyz".startswith(letters):
        raise DataError(
            f"{row.where}: column 'answer_options' should read '(a) ...; (b) ...', found {text!r}. Correct that row."
        )
    ends = [*(marker.start() for marker in markers[1:]), len(text)]
    return [_bare(text[marker.end() : end]) for marker, end in zip(markers, ends, strict=True)]


def _bare(text: str) -> str:
    """An option on one line, without the semicolon that ends it."""
    return " ".join(text.split()).removesuffix(";").rstrip()
