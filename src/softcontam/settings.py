"""Settings of a command as ``key=value`` arguments, with errors that name the key."""

from __future__ import annotations

from collections.abc import Sequence
from difflib import get_close_matches
from typing import TypeVar

from omegaconf import OmegaConf
from omegaconf.errors import ConfigKeyError, OmegaConfBaseException

from softcontam.errors import ConfigError

T = TypeVar("T")

HELP = ("--help", "-h", "help")
"""Arguments that ask for the usage."""


def settings_of(kind: type[T], arguments: Sequence[str], usage: str) -> T:
    """A settings dataclass from ``key=value`` arguments; fields without a default have to be given.

    Args:
        usage: ends every error.

    Raises:
        ConfigError: an argument of another form, an unknown key, a value of the wrong type, or a field not given.
    """
    merged = OmegaConf.structured(kind)
    for text in arguments:
        key, equals, _ = text.partition("=")
        if not equals:
            raise ConfigError(f"{text!r} is not of the form key=value. {usage}")
        try:
            merged = OmegaConf.merge(merged, OmegaConf.from_dotlist([text]))
        except ConfigKeyError:
            near = get_close_matches(key, [str(name) for name in merged], 1)
            meant = f", did you mean {near[0]}" if near else ""
            raise ConfigError(f"unknown key {key}{meant}. {usage}") from None
        except OmegaConfBaseException as error:
            raise ConfigError(f"{text}: {str(error).splitlines()[0]}. {usage}") from None
    if missing := sorted(OmegaConf.missing_keys(merged)):
        raise ConfigError(f"{', '.join(missing)} not given. {usage}")
    settings = OmegaConf.to_object(merged)
    assert isinstance(settings, kind)
    return settings
