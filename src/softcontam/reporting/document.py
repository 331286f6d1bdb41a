"""Blocks as one document: a self-contained HTML file, or Markdown."""

from __future__ import annotations

from collections.abc import Sequence
from html import escape

from softcontam.reporting.blocks import Block

_CSS = """
:root{color-scheme:light;--ink:#1f2328;--soft:#57606a;--line:#d8dee4;--wash:#f6f8fa;--accent:#0072b2}
*{box-sizing:border-box}
body{margin:0;background:#fff;color:var(--ink);
font:16px/1.55 system-ui,-apple-system,"Segoe UI",Roboto,Arial,sans-serif}
main{max-width:84rem;margin:0 auto;padding:2.5rem 1.25rem 5rem}
h1{font-size:1.9rem;line-height:1.2;margin:0 0 1rem;overflow-wrap:anywhere}
h2{font-size:1.3rem;margin:2.75rem 0 .75rem;padding-bottom:.3rem;border-bottom:1px solid var(--line)}
h3{font-size:1.05rem;margin:1.75rem 0 .5rem}
p,ul{max-width:50rem}
ul{padding-left:1.2rem}li{margin:.3rem 0}
.headlines{list-style:none;margin:0 0 1.5rem;padding:1rem 1.25rem;background:var(--wash);
border-left:4px solid var(--accent);font-size:1.08rem;max-width:none}
.headlines li+li{margin-top:.55rem}
.model{color:var(--soft)}
.caution{padding:.6rem .9rem;background:#fff8e5;border-left:4px solid #e69f00}
ul.caution{padding-left:2rem}
figure{margin:1.5rem 0 2rem}figure svg{display:block;width:100%;height:auto}
figcaption{color:var(--soft);font-size:.85rem;margin-top:.5rem;max-width:60rem}
.scroll{overflow-x:auto;margin:1rem 0;border:1px solid var(--line);border-radius:6px}
table{border-collapse:collapse;width:100%;font-size:.85rem;font-variant-numeric:tabular-nums}
th,td{padding:.38rem .65rem;text-align:left;vertical-align:top;border-bottom:1px solid var(--line);white-space:nowrap}
th{background:var(--wash);font-weight:600;vertical-align:bottom}
tbody tr:last-child td{border-bottom:0}tbody tr:hover td{background:var(--wash)}
.n{text-align:right}
td:last-child:not(.n){white-space:normal;min-width:12rem}
pre{overflow-x:auto;padding:.8rem 1rem;background:var(--wash);border-radius:6px;font-size:.82rem;line-height:1.45}
details{margin:.6rem 0}summary{cursor:pointer;color:var(--accent)}
@media (max-width:40rem){main{padding:1.25rem .9rem 3rem}h1{font-size:1.5rem}.headlines{font-size:1rem}
figure{overflow-x:auto}figure svg{min-width:var(--legible)}}
@media print{.scroll{overflow:visible}details>*{display:block}}
""".strip()


def to_html(blocks: Sequence[Block], title: str) -> str:
    """One HTML file that opens from disk and loads nothing."""
    body = "\n".join(block.html() for block in blocks)
    return (
        '<!doctype html>\n<html lang="en"><head><meta charset="utf-8">'
        '<meta name="viewport" content="width=device-width, initial-scale=1">'
        f"<title>{escape(title)}</title><style>{_CSS}</style></head>\n<body><main>\n{body}\n</main></body></html>\n"
    )


def to_markdown(blocks: Sequence[Block]) -> str:
    """The same page as Markdown; its figures are files beside it."""
    return "\n\n".join(block.markdown() for block in blocks) + "\n"
