"""The parts of a page, each of which can write itself as HTML and as Markdown."""

from __future__ import annotations

from collections.abc import Collection, Sequence
from dataclasses import dataclass
from html import escape
from typing import Protocol

from softcontam.reporting.drawing import Drawing


class Block(Protocol):
    """A part of a page."""

    def html(self) -> str:
        """This part as HTML."""

    def markdown(self) -> str:
        """This part as Markdown."""


@dataclass(frozen=True)
class Heading:
    """A heading; level 1 is the page's title."""

    text: str
    level: int = 2

    def html(self) -> str:
        """This part as HTML."""
        return f"<h{self.level}>{escape(self.text)}</h{self.level}>"

    def markdown(self) -> str:
        """This part as Markdown."""
        return f"{'#' * self.level} {self.text}"


@dataclass(frozen=True)
class Paragraph:
    """Plain prose; ``style`` is a CSS class of the page."""

    text: str
    style: str = ""

    def html(self) -> str:
        """This part as HTML."""
        return f'<p class="{self.style}">{escape(self.text)}</p>' if self.style else f"<p>{escape(self.text)}</p>"

    def markdown(self) -> str:
        """This part as Markdown."""
        return self.text


@dataclass(frozen=True)
class Bullets:
    """A list of sentences; ``style`` is a CSS class of the page."""

    items: Sequence[str]
    style: str = ""

    def html(self) -> str:
        """This part as HTML."""
        rows = "".join(f"<li>{escape(item)}</li>" for item in self.items)
        return f'<ul class="{self.style}">{rows}</ul>'

    def markdown(self) -> str:
        """This part as Markdown."""
        return "\n".join(f"- {item}" for item in self.items)


@dataclass(frozen=True)
class Verdicts:
    """Sentences, each with its verdict before it. The verdict, hyphenated, is a CSS class of the page."""

    items: Sequence[tuple[str, str]]

    def html(self) -> str:
        """This part as HTML."""
        rows = "".join(
            f'<li class="{verdict.replace(" ", "-")}"><strong class="verdict">{escape(verdict)}</strong> '
            f"<span>{escape(text)}</span></li>"
            for verdict, text in self.items
        )
        return f'<ul class="headlines verdicts">{rows}</ul>'

    def markdown(self) -> str:
        """This part as Markdown."""
        return "\n".join(f"- **{verdict}**: {text}" for verdict, text in self.items)


@dataclass(frozen=True)
class Table:
    """Rows of text. Columns named in ``words`` are left-aligned; the others hold numbers and are right-aligned."""

    header: Sequence[str]
    rows: Sequence[Sequence[str]]
    words: Collection[str]

    def _is_text(self, column: int) -> bool:
        return self.header[column] in self.words

    def html(self) -> str:
        """This part as HTML, in a box that scrolls sideways on narrow screens."""
        head = self._row("th", self.header)
        body = "".join(self._row("td", row) for row in self.rows)
        return f'<div class="scroll"><table><thead>{head}</thead><tbody>{body}</tbody></table></div>'

    def markdown(self) -> str:
        """This part as Markdown."""
        rule = [":--" if self._is_text(column) else "--:" for column in range(len(self.header))]
        cells = [[cell.replace("|", "\\|").replace("\n", " ") for cell in row] for row in (self.header, *self.rows)]
        return "\n".join(f"| {' | '.join(row)} |" for row in (cells[0], rule, *cells[1:]))

    def _row(self, tag: str, cells: Sequence[str]) -> str:
        inner = "".join(
            f"<{tag}{'' if self._is_text(column) else ' class=n'}>{escape(cell)}</{tag}>"
            for column, cell in enumerate(cells)
        )
        return f"<tr>{inner}</tr>"


@dataclass(frozen=True)
class Figure:
    """A drawing that stands in the HTML itself, and as files beside it: ``name`` with its endings for papers."""

    drawing: Drawing
    name: str
    caption: str

    def html(self) -> str:
        """This part as HTML."""
        drawing = self.drawing.inline.replace("<svg", f'<svg role="img" aria-label="{escape(self.caption)}"', 1)
        return f"<figure>{drawing}<figcaption>{escape(self.caption)}</figcaption></figure>"

    def markdown(self) -> str:
        """This part as Markdown."""
        return f"![{self.caption}]({self.name}.svg)\n\n*{self.caption}*"


@dataclass(frozen=True)
class Code:
    """Text to be read or copied letter by letter."""

    text: str

    def html(self) -> str:
        """This part as HTML."""
        return f"<pre><code>{escape(self.text)}</code></pre>"

    def markdown(self) -> str:
        """This part as Markdown."""
        return f"```text\n{self.text.rstrip()}\n```"


@dataclass(frozen=True)
class Folded:
    """Other blocks behind a line to click on."""

    summary: str
    blocks: Sequence[Block]

    def html(self) -> str:
        """This part as HTML."""
        inner = "\n".join(block.html() for block in self.blocks)
        return f"<details><summary>{escape(self.summary)}</summary>{inner}</details>"

    def markdown(self) -> str:
        """This part as Markdown."""
        inner = "\n\n".join(block.markdown() for block in self.blocks)
        return f"<details><summary>{escape(self.summary)}</summary>\n\n{inner}\n\n</details>"
