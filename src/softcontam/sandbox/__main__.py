"""``python -m softcontam.sandbox``: which back-ends work here; ``... escapes [BACKEND]``: the attempts to get out."""

from __future__ import annotations

import sys
from collections.abc import Sequence

from rich.console import Console
from rich.table import Table

from softcontam.errors import SoftcontamError
from softcontam.sandbox.backends import BACKENDS, missing
from softcontam.sandbox.escapes import run_all
from softcontam.sandbox.pool import Sandbox, works

console = Console(width=None if sys.stdout.isatty() else 150)


def main(arguments: Sequence[str]) -> int:
    """Print what was asked for; 1 where an attempt got out or no isolating back-end works, 2 for a bad request."""
    if not arguments:
        return _show_backends()
    if arguments[0] != "escapes" or len(arguments) > 2:
        Console(stderr=True).print("usage: python -m softcontam.sandbox [escapes [BACKEND]]")
        return 2
    try:
        names = arguments[1:] or [name for name, reason in _reasons().items() if reason is None and name != "unsafe"]
        return max([_show_escapes(name) for name in names], default=1)
    except SoftcontamError as error:
        Console(stderr=True).print(f"[red]error:[/red] {error}", highlight=False, soft_wrap=True)
        return 2


def _reasons() -> dict[str, str | None]:
    return {name: missing(name) or works(backend) for name, backend in BACKENDS.items()}


def _show_backends() -> int:
    reasons = _reasons()
    for name, reason in reasons.items():
        note = " (no isolation: only with sandbox.allow_unsafe=true)" if name == "unsafe" else ""
        console.print(f"{name}: {'works' if reason is None else reason}{note}", highlight=False, soft_wrap=True)
    return 0 if any(reason is None and name != "unsafe" for name, reason in reasons.items()) else 1


def _show_escapes(name: str) -> int:
    table = Table("attempt", "verdict", "outcome", title=f"attempts to get out of {name}")
    with Sandbox(name, allow_unsafe=True, workers=1) as sandbox:
        attempts = run_all(sandbox, only_cheats=name == "unsafe")
    for one in attempts:
        table.add_row(one.escape.name, one.verdict.category, f"[red]{one.escaped}[/red]" if one.escaped else "stopped")
    console.print(table)
    got_out = sum(one.escaped is not None for one in attempts)
    console.print(f"{name}: {len(attempts)} attempts, {got_out} got out", highlight=False)
    return int(got_out > 0)


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
