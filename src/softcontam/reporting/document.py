"""Blocks as one document: a self-contained HTML file, or Markdown."""

from __future__ import annotations

import base64
import hashlib
import re
from collections.abc import Sequence
from functools import cache
from html import escape
from importlib.resources import files

from softcontam.reporting.blocks import Block, Heading

_FEWEST = 3
"""Sections from which a page gets a table of contents."""


def to_html(blocks: Sequence[Block], title: str) -> str:
    """One HTML file that opens from disk and loads nothing: style and script are in it.

    Its content security policy forbids the browser to fetch anything and to run any script but the page's own, so what
    a model wrote cannot act in it whatever it holds.
    """
    script = _asset("page.js") + _asset("explorer.js")
    digest = base64.b64encode(hashlib.sha256(script.encode("utf-8")).digest()).decode("ascii")
    policy = f"default-src 'none'; style-src 'unsafe-inline'; script-src 'sha256-{digest}'; base-uri 'none'"
    sections = _sections(blocks)
    body = "\n".join(html for _, _, html in sections)
    return (
        '<!doctype html>\n<html lang="en"><head><meta charset="utf-8">'
        f'<meta http-equiv="Content-Security-Policy" content="{policy}">'
        '<meta name="viewport" content="width=device-width, initial-scale=1">'
        f"<title>{escape(title)}</title><style>{_style()}</style><script>{script}</script></head>\n"
        '<body><a class="skip" href="#content">Skip to the content</a>'
        '<button class="theme" type="button" hidden>Dark</button>'
        f'<div class="page">{_contents(sections)}<main id="content" tabindex="-1">\n{body}\n</main></div>'
        "</body></html>\n"
    )


def to_markdown(blocks: Sequence[Block]) -> str:
    """The same page as Markdown; its figures are files beside it."""
    return "\n\n".join(block.markdown() for block in blocks) + "\n"


def _sections(blocks: Sequence[Block]) -> list[tuple[str, str, str]]:
    """The page cut at its headings of level 2: id, heading and HTML of each section, the first without a heading.

    Headings can take the focus, so that a jump from the contents takes the keyboard along.
    """
    parts: list[tuple[str, str, list[str]]] = [("", "", [])]
    taken: set[str] = set()
    for block in blocks:
        if isinstance(block, Heading) and block.level == 2:
            name = _name(block.text, taken)
            heading = block.html().replace("<h2>", f'<h2 id="{name}" tabindex="-1">', 1)
            parts.append((name, block.text, [heading]))
        else:
            parts[-1][2].append(block.html())
    return [(name, text, _section(name, "\n".join(inner))) for name, text, inner in parts]


def _section(name: str, html: str) -> str:
    return f'<section aria-labelledby="{name}">\n{html}\n</section>' if name else html


def _name(text: str, taken: set[str]) -> str:
    """An id for a heading that no other has; figures' ids begin with their own names."""
    plain = re.sub(r"[^a-z0-9]+", "-", text.lower()).strip("-") or "section"
    name, number = f"section-{plain}", 1
    while name in taken:
        number += 1
        name = f"section-{plain}-{number}"
    taken.add(name)
    return name


def _contents(sections: Sequence[tuple[str, str, str]]) -> str:
    entries = [f'<li><a href="#{name}">{escape(text)}</a></li>' for name, text, _ in sections if name]
    if len(entries) < _FEWEST:
        return ""
    return (
        '<details class="toc"><summary>Contents</summary>'
        f'<nav aria-label="Contents"><ol>{"".join(entries)}</ol></nav></details>'
    )


@cache
def _style() -> str:
    """The style sheet; the dark colours stand in it twice, for the system's wish and for the reader's."""
    dark = _asset("dark.css")
    chosen = f':root[data-theme="dark"] {{\n{dark}}}'
    wished = f'@media (prefers-color-scheme: dark) {{ :root:not([data-theme="light"]) {{\n{dark}}} }}'
    return _asset("page.css").replace("/*DARK*/", f"{chosen}\n{wished}")


@cache
def _asset(name: str) -> str:
    return (files("softcontam.reporting") / "assets" / name).read_text(encoding="utf-8")
