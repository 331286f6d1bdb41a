"""One drawing for the page and for papers: SVG with the page's colours, and plain SVG, PNG and PDF."""

from __future__ import annotations

import io
import re
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from functools import cached_property
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from matplotlib.figure import Figure

INK, SOFT, GRID, BAND, PAPER = "#24292f", "#57606a", "#d8dee4", "#eef1f4", "#ffffff"
"""Text and the clean line; secondary text; grid; the equivalence band; the page itself, inside hollow markers."""

CONDITION_COLOURS = {
    "exact": ("#d55e00",),
    "near": ("#a87900",),
    "semd_synthetic": ("#0072b2", "#4a9fd8", "#332288", "#2a94a6", "#004488"),
    "semd_natural": ("#882255",),
    "topical": ("#009e73", "#3a938a"),
    "format_only": ("#7f7f7f",),
    "shuffled_label": ("#aa4499",),
    "question_only": ("#c2689b",),
}
"""One colour for each level of a condition; every one of them stands out from white by 3:1 at least."""

OTHER_COLOURS = ("#8a8a2b", "#6b5b4b", "#3f6f3f", "#5c6bc0")
"""For conditions without a colour of their own."""

_DPI = 200
_SANS = "system-ui, -apple-system, 'Segoe UI', Roboto, 'Helvetica Neue', Arial, sans-serif"


def _variables() -> dict[str, str]:
    names = {INK: "ink", SOFT: "soft", GRID: "grid", BAND: "band", PAPER: "paper"}
    for condition, colours in (*CONDITION_COLOURS.items(), ("other", OTHER_COLOURS)):
        for place, colour in enumerate(colours, start=1):
            names[colour] = f"c-{condition}" + (f"-{place}" if len(colours) > 1 else "")
    return names


CSS_VARIABLES = _variables()
"""The page's name of each colour, without the leading dashes. A page that doesn't define one gets the light colour."""


@dataclass(frozen=True)
class Drawing:
    """A drawn figure; ``name`` tells its ids apart from those of other figures of a page."""

    figure: Figure
    name: str

    @cached_property
    def inline(self) -> str:
        """One ``<svg>`` element for the page: transparent, in the page's colours, as wide as its column allows.

        ``--legible`` is the width in pixels below which its text gets too small to read.
        """
        svg = self._svg(transparent=True)
        svg = svg[svg.index("<svg") :]
        svg = re.sub(r"<metadata>.*?</metadata>|<style[^>]*>.*?</style>", "", svg, flags=re.DOTALL)
        svg = re.sub(r"#[0-9a-f]{6}\b", lambda found: _variable(found[0]), svg)
        width = self.figure.get_figwidth()
        style = f"max-width:{width * 88:.0f}px;--legible:{width * 66:.0f}px"
        style += ";stroke-linejoin:round;stroke-linecap:butt"
        opening = re.sub(r' (height|width)="[^"]*"', "", svg[: svg.index(">")])
        return f'{opening} style="{style}"{svg[svg.index(">") :]}'.strip() + "\n"

    @cached_property
    def svg(self) -> str:
        """A standalone SVG file: plain colours on white, its text as text."""
        return self._svg(transparent=False)

    def png(self) -> bytes:
        """A PNG file of 200 dots per inch on white."""
        return self._saved("png", dpi=_DPI, metadata={"Software": None})

    def pdf(self) -> bytes:
        """A PDF file with its fonts embedded, for a paper."""
        return self._saved("pdf", metadata={"CreationDate": None, "Creator": None, "Producer": None})

    def _svg(self, *, transparent: bool) -> str:
        metadata = {"Date": None, "Creator": None, "Format": None, "Type": None}
        svg = self._saved("svg", transparent=transparent, metadata=metadata).decode()
        svg = svg.replace("'DejaVu Sans'", _SANS)
        return re.sub(r"((?:id=\"|url\(#|href=\"#))", rf"\1{self.name}-", svg)

    def _saved(self, kind: str, **options: Any) -> bytes:
        stream = io.BytesIO()
        with _settings():
            self.figure.savefig(stream, format=kind, **options)
        return stream.getvalue()


@contextmanager
def canvas(width: float, height: float) -> Iterator[Figure]:
    """A figure of that many inches, drawn with the report's own settings whatever the user's are."""
    from matplotlib.figure import Figure

    with _settings():
        yield Figure(figsize=(width, height), layout="constrained")


@contextmanager
def _settings() -> Iterator[None]:
    import matplotlib

    settings: dict[Any, Any] = {"svg.fonttype": "none", "svg.hashsalt": "softcontam", "pdf.fonttype": 42}
    settings |= {"font.family": "DejaVu Sans", "font.size": 9.5, "axes.unicode_minus": True}
    settings |= {"text.color": INK, "axes.labelcolor": INK, "axes.edgecolor": INK, "hatch.color": INK}
    settings |= {"xtick.color": INK, "ytick.color": INK, "legend.frameon": False}
    with matplotlib.rc_context():
        matplotlib.rcdefaults()
        matplotlib.rcParams.update(settings)
        yield


def _variable(colour: str) -> str:
    name = CSS_VARIABLES.get(colour)
    return colour if name is None else f"var(--{name}, {colour})"
