"""SemDs made by rule and certified, without any model: one module per kind of benchmark."""

from __future__ import annotations

from collections.abc import Sequence

from softcontam.benchmarks import Item
from softcontam.config import BankConfig
from softcontam.duplicates.bank import BankRow
from softcontam.errors import ConfigError

MODULES = ("gsm8k", "humaneval", "mbpp", "musr", "zebralogic")
"""Benchmark modules that there are rules for."""


def rows(module: str, config: BankConfig, items: Sequence[Item]) -> list[BankRow]:
    """Rows of kind ``semd_synthetic`` for items of a benchmark, by the rules of its module.

    Raises:
        ConfigError: no rules for this benchmark, or parameters that they do not know.
    """
    if module in ("mbpp", "humaneval"):
        from softcontam.duplicates.rules import python_code

        return python_code.rows(config, items)
    if module == "gsm8k":
        from softcontam.duplicates.rules import gsm8k

        return gsm8k.rows(config, items)
    if module == "musr":
        from softcontam.duplicates.rules import musr

        return musr.rows(config, items)
    if module == "zebralogic":
        from softcontam.duplicates.rules import zebralogic

        return zebralogic.rows(config, items)
    raise ConfigError(f"bank source rules: there are none for benchmark module {module}, but for {', '.join(MODULES)}.")
