"""What the report page costs in a browser, against a table with all its rows in the document.

    python benchmarks/page.py                             20,000 outcomes for the clean arm and each of 3 others
    python benchmarks/page.py --outcomes 5000 --arms 8

``python -m softcontam.report`` makes the page, with prompts and outputs of all arms. The other side is
``DataFrame.to_html()`` of one arm's item rows, as the page's table has them, without prompts and outputs, and a few
lines of JavaScript that sort and search it. Headless Chromium (``chromium``, or the path in CHROMIUM) opens both in
turn in every round. Both have to show the same items; times end when the next frame is drawn.
"""

from __future__ import annotations

import argparse
import os
import random
import re
import shutil
import statistics
import subprocess
import sys
import tempfile
import time
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

import pandas as pd
from playwright.sync_api import Browser, sync_playwright

CHROMIUM = os.environ.get("CHROMIUM") or shutil.which("chromium") or "/usr/bin/chromium"
PROMPT = "A farmer has {} sheep and buys {} more at the market. How many sheep does the farmer have now?"
OUTPUT = "The farmer has {} sheep and buys {} more, which makes {} together.\nAnswer: {}"
FRAMES, PIXELS = 120, 600
SORTS = ("family", "item", "flips")

OTHER = """<!doctype html><meta charset="utf-8"><title>items</title><input type="search">{table}<script>
const body = document.querySelector("tbody"), box = document.querySelector("input");
const collator = new Intl.Collator("en", {{ numeric: true }});
let direction = 1;
document.querySelectorAll("th").forEach((head, column) => head.addEventListener("click", () => {{
  const keyed = [...body.rows].map((row) => [row, row.cells[column].textContent]);
  const numeric = keyed.every(([, key]) => !Number.isNaN(Number(key)));
  keyed.sort((a, b) => direction * (numeric ? a[1] - b[1] : collator.compare(a[1], b[1])));
  body.append(...keyed.map(([row]) => row));
  direction = -direction;
}}));
const texts = new Map([...body.rows].map((row) => [row, row.textContent.toLowerCase()]));
box.addEventListener("input", () => {{
  for (const row of body.rows) row.hidden = !texts.get(row).includes(box.value.toLowerCase());
}});
</script>"""

MEASURE = """
(() => {
  const drawn = () => new Promise((done) => requestAnimationFrame(() => setTimeout(done)));
  const timed = async (act, until) => {
    await drawn();
    const begun = performance.now();
    act();
    let ms;
    do { await drawn(); ms = performance.now() - begun; } while (!until() && ms < 30000);
    return ms;
  };
  window.measured = {
    ready: async (isReady) => { while (!isReady()) await drawn(); await drawn(); return performance.now(); },
    sort: (head) => timed(() => head.click(), () => true),
    search: (input, words, shown, expected) =>
      timed(() => { input.value = words; input.dispatchEvent(new Event("input")); }, () => shown() === expected),
    scroll: async (box, frames, pixels) => {
      const times = [];
      let last = await new Promise(requestAnimationFrame);
      for (let frame = 0; frame < frames; frame += 1) {
        box.scrollTop += pixels;
        const now = await new Promise(requestAnimationFrame);
        times.push(now - last);
        last = now;
      }
      return times;
    },
  };
})()
"""


@dataclass(frozen=True)
class Side:
    """A page and, as JavaScript, where its parts are; ``headers`` are what is clicked, ``row`` is the first in view."""

    url: str
    ready: str
    headers: str
    row: str
    search: str
    shown: str
    scroller: str


def outcomes_table(outcomes: int, arms: int) -> pd.DataFrame:
    """The clean arm and ``arms`` others with the same items, one of them after the other."""
    draw = random.Random(0)
    rows = []
    for arm in ("clean", *(f"arm_{number}" for number in range(1, arms + 1))):
        for number in range(outcomes):
            have, more = number + 2, number % 97 + 1
            right = draw.random() < (0.4 if arm == "clean" else 0.5)
            said = have + more if right else have + draw.randrange(more + 1) - 1
            names = (f"item-{number:06}", f"family-{number // 2:06}")
            texts = (PROMPT.format(have, more), have + more, OUTPUT.format(have, more, said, said), said)
            rows.append((arm, None if arm == "clean" else 0.1, "sheep", "held_out", *names, int(right), *texts))
    columns = "condition rate benchmark role item_id family correct prompt target output parsed".split()
    return pd.DataFrame(rows, columns=columns)


def item_rows(table: pd.DataFrame) -> pd.DataFrame:
    """The columns of the page's table of items for the first arm, most flips first."""
    clean, arm = (table[table["condition"] == name].set_index("item_id") for name in ("clean", "arm_1"))
    change = arm["correct"] - clean["correct"]
    rows = pd.DataFrame({"item": arm.index, "family": arm["family"], "role": "held-out"}, index=arm.index)
    rows["seeds"] = change.map({1: "▲", -1: "▼"}).fillna(clean["correct"].map({1: "●", 0: "○"}))
    rows = rows.assign(copies=0, clean=100 * clean["correct"], arm=100 * arm["correct"], change=100 * change)
    return rows.assign(flips=change.abs()).sort_values("flips", ascending=False, kind="stable")


def sides(folder: Path, outcomes: int, arms: int) -> dict[str, Side]:
    """Makes both pages; prints how long ours took and how large they are."""
    table = outcomes_table(outcomes, arms)
    table.to_parquet(folder / "outcomes.parquet")
    command = [sys.executable, "-m", "softcontam.report", "outcomes=outcomes.parquet", "baseline=clean", "out=report"]
    begun = time.perf_counter()
    made = subprocess.run(command, cwd=folder, stdout=subprocess.DEVNULL, stderr=subprocess.PIPE, text=True)
    if made.returncode:
        raise SystemExit(f"{' '.join(command)} ended with {made.returncode}: {made.stderr[-2000:]}")
    seconds = time.perf_counter() - begun
    ours, other = folder / "report" / "report.html", folder / "other.html"
    # without the blanks between rows, over which Chromium's time for a sort grows with the square of the rows
    rows = re.sub(r">\s+<", "><", item_rows(table).to_html(index=False))
    other.write_text(OTHER.format(table=rows), encoding="utf-8")
    sizes = [path.stat().st_size / 1e6 for path in (ours, other)]
    print(
        f"{len(table):,} outcomes in {arms + 1} arms: report made in {seconds:.1f} s\n"
        f"file size: page {sizes[0]:.2f} MB with all arms, prompts and outputs; to_html {sizes[1]:.2f} MB with one arm "
        f"and none; ratio {sizes[0] / sizes[1]:.2f}",
        flush=True,
    )
    return {
        "page": Side(
            f"{ours.as_uri()}#section-which-items-flip",
            "() => document.querySelector('.explorer[data-ready]')",
            "document.querySelectorAll('.items th button')",
            "document.querySelector('.items tr[data-place]')",
            "document.querySelector('.explorer input[type=search]')",
            "() => Number(document.querySelector('.explorer-status').textContent.split(' ')[0].replace(/,/g, ''))",
            "document.querySelector('.items')",
        ),
        "to_html": Side(
            other.as_uri(),
            "() => document.readyState === 'complete'",
            "document.querySelectorAll('th')",
            "[...document.querySelectorAll('tbody tr')].find((row) => !row.hidden)",
            "document.querySelector('input')",
            "() => document.querySelectorAll('tbody tr:not([hidden])').length",
            "document.scrollingElement",
        ),
    }


def searches(outcomes: int) -> list[tuple[str, int]]:
    """What is searched one after the other, and how many items hold it; nothing brings all of them back."""
    names = [f"item-{number:06} family-{number // 2:06}" for number in range(outcomes)]
    words = ["item-000777", "", "family-0001", "", "family-000", ""]
    return [(word, sum(word in name for name in names)) for word in words]


def measure(browser: Browser, side: Side, outcomes: int) -> tuple[dict[str, float], list[str]]:
    """Milliseconds by what is done, and the first item after each sort by words."""
    context = browser.new_context(viewport={"width": 1280, "height": 800})
    page = context.new_page()
    page.set_default_timeout(120_000)
    page.add_init_script(MEASURE)
    page.goto(side.url)
    found = {"load, until the items are there": page.evaluate(f"measured.ready({side.ready})")}
    found["load, until something is there"] = page.evaluate(
        "performance.getEntriesByName('first-contentful-paint')[0].startTime"
    )
    frames = page.evaluate(f"measured.scroll({side.scroller}, {FRAMES}, {PIXELS})")
    found["scroll, median frame"] = statistics.median(frames)
    found["scroll, 95th percentile of frames"] = statistics.quantiles(frames, n=20)[-1]
    found["scroll, longest frame"] = max(frames)
    times, firsts = [], []
    for name in SORTS:
        for _ in range(2):
            head = f"[...{side.headers}].find((head) => head.textContent === '{name}')"
            times.append(page.evaluate(f"measured.sort({head})"))
        if name != "flips":  # the page begins with the most flips, the other side with the fewest
            firsts.append(page.evaluate(f"{side.row}.cells[0].textContent"))
    found["sort"] = statistics.median(times)
    times = []
    for words, count in searches(outcomes):
        times.append(page.evaluate(f"measured.search({side.search}, '{words}', {side.shown}, {count})"))
        shown = page.evaluate(f"({side.shown})()")
        if shown != count:
            raise SystemExit(f"{side.url}: a search for {words!r} shows {shown} items, {count} hold it")
    found["first search"], found["search"] = times[0], statistics.median(times[1:])
    context.close()
    return found, firsts


def report(measured: dict[str, list[dict[str, float]]], names: Sequence[str]) -> None:
    """Medians over rounds, and the ratios of the rounds."""
    for name in names:
        ours, other = ([found[name] for found in measured[side]] for side in ("page", "to_html"))
        ratios = [theirs / mine for mine, theirs in zip(ours, other, strict=True)]
        print(
            f"{name}: page {statistics.median(ours):.1f} ms, to_html {statistics.median(other):.1f} ms, "
            f"{statistics.median(ratios):.2f} times as fast ({min(ratios):.2f} to {max(ratios):.2f})"
        )


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--outcomes", type=int, default=20_000, help="of each arm")
    parser.add_argument("--arms", type=int, default=3, help="beside the clean one")
    parser.add_argument("--rounds", type=int, default=3)
    args = parser.parse_args()
    with tempfile.TemporaryDirectory() as folder, sync_playwright() as playwright:
        both = sides(Path(folder), args.outcomes, args.arms)
        browser = playwright.chromium.launch(executable_path=CHROMIUM, args=["--no-sandbox"])
        measured: dict[str, list[dict[str, float]]] = {side: [] for side in both}
        for round_ in range(args.rounds):
            firsts = {}
            for side in both if round_ % 2 == 0 else reversed(both):
                found, firsts[side] = measure(browser, both[side], args.outcomes)
                measured[side].append(found)
                told = ", ".join(f"{name} {value:.0f}" for name, value in found.items())
                print(f"round {round_ + 1}  {side}, ms: {told}", flush=True)
            if firsts["page"] != firsts["to_html"]:
                raise SystemExit(f"the sides do not show the same items after a sort: {firsts}")
        browser.close()
    report(measured, list(measured["page"][0]))


if __name__ == "__main__":
    main()
