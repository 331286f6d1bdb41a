"""Command lines of key=value words, and what is said of those that are wanting."""

from __future__ import annotations

import re
from dataclasses import dataclass, field

import pytest
from omegaconf import MISSING

from softcontam.dashboard import main as dashboard
from softcontam.errors import ConfigError
from softcontam.power import main as power
from softcontam.report import main as report
from softcontam.settings import settings_of


@dataclass
class Paths:
    runs: str = "runs"


@dataclass
class Settings:
    project: str = MISSING
    margin: float = 0.05
    paths: Paths = field(default_factory=Paths)


def test_words_are_read_into_their_types_and_nested_keys() -> None:
    found = settings_of(Settings, ["project=a", "margin=0.1", "paths.runs=there"], "Usage: x")
    assert (found.project, found.margin, found.paths.runs) == ("a", 0.1, "there")


@pytest.mark.parametrize(
    ("words", "message"),
    [
        ([], "project not given. Usage: x"),
        (["project=a", "margn=0.1"], "unknown key margn, did you mean margin"),
        (["project=a", "margin=wide"], "margin=wide: "),
        (["project=a", "--margin"], "'--margin' is not of the form key=value"),
        (["project=a", "paths.rusn=x"], "unknown key paths.rusn"),
    ],
)
def test_a_wanting_word_is_named_with_the_usage(words: list[str], message: str) -> None:
    with pytest.raises(ConfigError, match=re.escape(message)) as caught:
        settings_of(Settings, words, "Usage: x")
    assert "Usage: x" in str(caught.value)


@pytest.mark.parametrize("command", [report, dashboard, power])
def test_help_is_help_and_no_error(command: object, capsys: pytest.CaptureFixture[str]) -> None:
    assert callable(command)
    assert command(["--help"]) == 0
    assert "Usage: python -m softcontam." in capsys.readouterr().out
