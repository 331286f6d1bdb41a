"""One cell's own figures for the terminal, without the analysis of a sweep."""

from __future__ import annotations

from rich.box import SIMPLE_HEAD
from rich.markup import escape
from rich.table import Table

from softcontam.store import Cell


def cell_table(cell: Cell) -> Table:
    """One cell's own figures: accuracy, parse rate and gold log-probability per role."""
    metrics = cell.metrics
    title = (
        f"cell {cell.id}: {metrics['inserted_rows']} of {metrics['n_rows']} rows inserted for "
        f"{metrics['covered_items']} items, {metrics['steps']} steps"
    )
    table = Table(title=escape(title), title_justify="left", box=SIMPLE_HEAD, pad_edge=False)
    table.add_column("benchmark / role")
    for name in ("items", "accuracy", "parsed", "chance", "log-prob per token"):
        table.add_column(name, justify="right")
    for name, figures in metrics["roles"].items():
        benchmark = name.rpartition("/")[0]
        chance = metrics["chance"].get(name, metrics["chance"].get(benchmark))  # older cells: by benchmark only
        shares = (figures["accuracy"], figures["parse_rate"], chance)
        percent = ("–" if share is None else f"{100 * share:.1f} %" for share in shares)
        table.add_row(escape(name), str(figures["items"]), *percent, f"{figures['gold_logprob_per_token']:.3f}")
    return table
