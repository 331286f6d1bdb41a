"""Reads the JSONL files and the settings of banks, and says in which line something is wrong."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import Any

from softcontam.benchmarks.records import unix_lines
from softcontam.config import BankConfig
from softcontam.errors import ConfigError, DataError
from softcontam.jsonl import read_jsonl


def bank_file(config: BankConfig, data: Path) -> Path:
    """The file that a bank is read from.

    Raises:
        ConfigError: ``path`` is not set.
    """
    if config.path is None:
        raise ConfigError(
            f"a bank of source {config.source} needs a file. Set benchmark.banks.<kind>.path, relative to paths.data."
        )
    return data / config.path


def read_lines(path: Path) -> Iterator[tuple[str, dict[str, Any]]]:
    """Each line's object with ``where`` it stands.

    Raises:
        DataError: the file is missing or a line is no JSON object; names file and line.
    """
    remedy = (
        "Set SOFTCONTAM_DATA (paths.data) to the folder of local data, "
        "or benchmark.banks.<kind>.path to a file of your own."
    )
    for number, record in read_jsonl(path, remedy):
        yield f"{path}, line {number}", record


def text_field(record: dict[str, Any], name: str, where: str) -> str:
    r"""The text of a field, line ends ``\n``.

    Raises:
        DataError: it is missing, no text, or blank.
    """
    value = record.get(name)
    if not isinstance(value, str) or not value.strip():
        raise DataError(f"{where}: field {name!r} should hold text, found {value!r}.")
    return unix_lines(value)


def check_params(config: BankConfig, known: dict[str, type | tuple[type, ...]]) -> None:
    """Refuse parameters that would be silently ignored, or have the wrong type.

    Raises:
        ConfigError: naming the parameter.
    """
    for name, value in config.params.items():
        if name not in known:
            raise ConfigError(f"bank source {config.source}: unknown params.{name}. Known: {', '.join(sorted(known))}.")
        if not isinstance(value, known[name]):
            raise ConfigError(f"bank source {config.source}: params.{name}={value!r} has the wrong type.")
