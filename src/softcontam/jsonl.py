"""Reads JSONL, and says in which line something is wrong."""

from __future__ import annotations

import json
from collections.abc import Iterator
from pathlib import Path
from typing import Any

from softcontam.errors import DataError


def read_jsonl(path: Path, remedy: str) -> Iterator[tuple[int, dict[str, Any]]]:
    """The object of each line with the number of its line, counted from 1.

    Args:
        remedy: what to do where the file does not exist, as a sentence.

    Raises:
        DataError: the file is missing or unreadable, or a line is no JSON object; names file and line.
    """
    try:
        with path.open(encoding="utf-8") as lines:
            for number, line in enumerate(lines, 1):
                try:
                    record = json.loads(line)
                except json.JSONDecodeError as error:
                    raise DataError(
                        f"{path}, line {number}: not valid JSON ({error.msg}). Copy the file again."
                    ) from None
                if not isinstance(record, dict):
                    found = type(record).__name__
                    raise DataError(f"{path}, line {number}: expected a JSON object, found {found}. Correct that line.")
                yield number, record
    except FileNotFoundError:
        raise DataError(f"{path} does not exist. {remedy}") from None
    except (OSError, UnicodeDecodeError) as error:
        raise DataError(f"{path} cannot be read ({error}). Copy it again.") from error
