"""The page in headless Chromium: that it works by mouse and keyboard, wide and narrow, light, dark and on paper."""

from __future__ import annotations

import io
import os
import re
import shutil
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import pytest
from fake_sweep import Outcomes
from matplotlib.image import imread
from test_explorer import HOSTILE, contrast, sweep_view

from softcontam.reporting.blocks import Block, Bullets, Code, Figure, Folded, Heading, Paragraph, Table
from softcontam.reporting.document import to_html
from softcontam.reporting.drawing import Drawing, canvas
from softcontam.reporting.explorer import item_blocks

CHROMIUM = os.environ.get("CHROMIUM") or shutil.which("chromium") or "/usr/bin/chromium"
VALUES = ["–", "−3.4", "+12.0", "<0.001", "1,200", "0.5"]
FEW, MANY = 40, 20_000


@pytest.fixture(scope="module")
def chromium() -> Iterator[Any]:
    playwright = pytest.importorskip(
        "playwright.sync_api", reason="playwright is not installed: pip install playwright"
    )
    if not Path(CHROMIUM).is_file():
        pytest.skip(f"no Chromium at {CHROMIUM}: install it, or set CHROMIUM to its path")
    with playwright.sync_playwright() as running:
        browser = running.chromium.launch(executable_path=CHROMIUM, args=["--no-sandbox"])
        yield browser
        browser.close()


def fill(kind: str, seed: int, items: int = FEW) -> Outcomes:
    """Item 0 is gained in each seed, item 1 is lost in seed 0, item 2 is right, all others are wrong in both arms."""
    made, arm = Outcomes(), kind != "clean"
    for number in range(items):
        right = {0: arm, 1: seed == 0 and not arm, 2: True}.get(number, False)
        made.add("held_out", f"q{number}", [right], family=f"f{number // 2}")
    return made.add("seen", "s0", [arm], copies=2 * arm)


def figure(inches: float, name: str) -> Figure:
    """An empty figure, so that only the page's own marks are seen in it; legible from 66 pixels per inch on."""
    with canvas(inches, 2.0) as drawn:
        return Figure(Drawing(drawn, name), name, f"About {name}.")


def blocks(view: Any) -> list[Block]:
    wide = [f"column {number}" for number in range(18)]
    return [
        Heading("An experiment with_a_name_that_does_not_break_anywhere_at_all_on_a_phone", 1),
        Bullets(["The answer."], style="headlines"),
        Heading("Numbers"),
        Table(("name", "value"), [[f"row {at}", value] for at, value in enumerate(VALUES)], ("name",)),
        Heading("Wide"),
        Table(wide, [[f"{row}.{column}00" for column in range(18)] for row in range(60)], ()),
        Folded("Folded away", [Paragraph("Inside the fold.")]),
        Folded("Unfolded", [Paragraph("Inside the other fold.")]),
        Heading("Figures"),
        figure(8.0, "wide"),
        figure(4.0, "slim"),
        Code("python -m softcontam.run " + "x" * 300),
        *item_blocks(view),
    ]


@pytest.fixture(scope="module")
def page_file(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("page")
    texts = [("puzzles", f"q{number}", f"Question {number}: {HOSTILE}", "Answer: 7") for number in range(FEW)]
    frame = pd.DataFrame(texts, columns=["benchmark", "item_id", "prompt", "target"])
    view = sweep_view(folder, fill, 2, lambda row: f"{row.cell}/{row.item_id} {HOSTILE}", frame, (0.1, 0.2))
    path = folder / "report.html"
    path.write_text(to_html(blocks(view), "fake"), encoding="utf-8")
    return path


@pytest.fixture
def opened(chromium: Any, page_file: Path) -> Iterator[Any]:
    """Opens the page with settings of a browser context; fails on any error in it and on anything that it loads."""
    troubles: list[str] = []
    contexts = []

    def open_page(path: Path = page_file, width: int = 1280, height: int = 800, **settings: Any) -> Any:
        contexts.append(chromium.new_context(viewport={"width": width, "height": height}, **settings))
        page = contexts[-1].new_page()
        page.set_default_timeout(10_000)
        page.on("console", lambda message: troubles.append(f"console: {message.text}"))
        page.on("pageerror", lambda error: troubles.append(f"error: {error}"))
        page.on("request", lambda request: request.url != path.as_uri() and troubles.append(f"loads {request.url}"))
        page.goto(path.as_uri())
        return page

    yield open_page
    for context in contexts:
        context.close()
    assert not troubles


def items_of(page: Any) -> Any:
    """Scrolls to the items, so that they are unpacked."""
    page.evaluate("document.querySelector('.explorer').scrollIntoView({behavior: 'instant'})")
    page.locator(".explorer[data-ready]").wait_for()
    return page.locator(".items tr[data-place]")


def texts(rows: Any) -> list[str]:
    return [str(text) for text in rows.all_inner_texts()]


def column(page: Any, number: int) -> list[str]:
    return texts(page.locator(f"#section-numbers ~ .scroll tbody td:nth-child({number})"))


class TestTables:
    def test_a_header_sorts_by_keyboard_and_comes_back_to_the_reports_order(self, opened: Any) -> None:
        page = opened()
        page.locator("#section-numbers ~ .scroll th button").first.focus()
        page.keyboard.press("Tab")
        header = page.locator("#section-numbers ~ .scroll th").nth(1)
        page.keyboard.press("Enter")
        assert header.get_attribute("aria-sort") == "descending"
        assert column(page, 2) == ["1,200", "+12.0", "0.5", "<0.001", "−3.4", "–"]
        page.keyboard.press("Enter")
        assert header.get_attribute("aria-sort") == "ascending"
        assert column(page, 2) == ["−3.4", "<0.001", "0.5", "+12.0", "1,200", "–"], "what is missing stays last"
        page.keyboard.press("Enter")
        assert header.get_attribute("aria-sort") == "none"
        assert column(page, 2) == VALUES

    def test_the_focused_header_can_be_seen(self, opened: Any) -> None:
        page = opened()
        page.keyboard.press("Tab")
        assert page.evaluate("document.activeElement.textContent") == "Skip to the content"
        page.locator("#section-numbers ~ .scroll th button").first.focus()
        page.keyboard.press("Shift+Tab")
        page.keyboard.press("Tab")
        assert page.evaluate("getComputedStyle(document.activeElement).outlineStyle") == "solid"

    def test_a_long_table_is_searched_by_its_rows(self, opened: Any) -> None:
        page = opened()
        page.get_by_placeholder("Search 60 rows").fill("59.000")
        page.get_by_text("1 of 60 rows").wait_for()
        assert page.locator("#section-wide ~ .scroll tbody tr:visible").count() == 1


class TestItems:
    def test_nothing_is_unpacked_before_a_reader_comes_to_it(self, opened: Any) -> None:
        page = opened(height=300)
        assert page.locator(".items").count() == 0
        items_of(page)
        assert page.locator(".items").count() == 1

    def test_flips_are_counted_and_flipped_items_come_first(self, opened: Any) -> None:
        page = opened()
        rows = items_of(page)
        counts = page.locator(".counts").inner_text()
        assert counts.startswith("3 of 80 results flip, net +1: exact duplicates at 20")
        assert "against the clean arm, 40 items over 2 seeds." in counts
        assert re.sub(r"\s+", " ", counts).count("2 wrong → right") == 1
        first = [row.split("\t") for row in texts(rows)[:2]]
        assert [row[0] for row in first] == ["q0", "q1"]
        assert first[0][4:] == ["0", "0", "100", "+100", "2"]
        assert first[1][4:] == ["0", "50", "0", "−50", "1"]

    def test_only_flipped_search_and_sort_narrow_and_order_the_table(self, opened: Any) -> None:
        page = opened()
        rows = items_of(page)
        page.get_by_label("Only flipped").check()
        assert rows.count() == 2
        page.get_by_label("Only flipped").uncheck()
        page.get_by_label("Search", exact=True).fill("Question 17:")
        page.get_by_text("1 of 40 items. Choose a row").wait_for()
        assert texts(rows)[0].startswith("q17")
        page.get_by_label("Search", exact=True).fill("nowhere")
        page.get_by_text("0 of 40 items.", exact=True).wait_for()
        page.get_by_label("Search", exact=True).fill("")
        page.locator(".items th button", has_text="item").press("Enter")
        assert [row.split("\t")[0] for row in texts(rows)[:4]] == ["q0", "q1", "q2", "q3"]
        assert page.locator(".items th").first.get_attribute("aria-sort") == "ascending"
        page.get_by_label("Items", exact=True).select_option(label="seen · puzzles")
        assert texts(rows)[0].split("\t")[0] == "s0"

    def test_a_row_opens_by_keyboard_with_its_prompt_and_both_outputs_as_text(self, opened: Any) -> None:
        page = opened()
        rows = items_of(page)
        rows.first.focus()
        page.keyboard.press("ArrowDown")
        page.keyboard.press("Enter")
        dialog = page.locator("dialog[open]")
        dialog.locator(".seed").first.wait_for()
        assert dialog.locator("h3").inner_text() == "q1"
        assert (
            dialog.locator(".asked pre").first.evaluate("node => node.textContent").startswith("Question 1: </script>")
        )
        sides = dialog.locator(".seed").first.locator(".side")
        assert ["✓ right" in text for text in texts(sides)] == [True, False]
        held = [side.locator("pre").evaluate("node => node.textContent") for side in sides.all()]
        assert all(text.split(" ", 1)[1] == HOSTILE for text in held)
        assert held[0].split("/q1")[0] != held[1].split("/q1")[0], "two cells"
        assert page.evaluate("window.hacked === undefined && document.querySelectorAll('img').length === 0")
        page.get_by_label("Next item of the table").click()
        assert dialog.locator("h3").inner_text() == "q2"
        page.keyboard.press("Escape")
        # the focus is where the reader was; a dialog tells of its end in a later task
        page.wait_for_function("document.activeElement.dataset.place === '2'")

    def test_the_search_box_says_what_is_searched(self, opened: Any, tmp_path: Path) -> None:
        page = opened()
        items_of(page)
        box = page.get_by_label("Search", exact=True)
        assert box.get_attribute("placeholder") == "Item, family, prompt, answer"
        for text in ("q17", "f8 q17", "question 17:"):
            box.fill(text)
            page.get_by_text("1 of 40 items").wait_for()
        box.fill("answer: 7")
        page.get_by_text("40 of 40 items").wait_for()
        path = tmp_path / "bare.html"
        path.write_text(to_html(list(item_blocks(sweep_view(tmp_path, fill))), "no prompts"), encoding="utf-8")
        page = opened(path)
        items_of(page)
        assert page.get_by_label("Search", exact=True).get_attribute("placeholder") == "Item, family"

    def test_arrow_keys_step_through_the_items_in_the_order_of_the_table(self, opened: Any) -> None:
        page = opened()
        rows = items_of(page)
        page.locator(".items th button", has_text="item").click()
        page.locator(".items th button", has_text="item").click()
        assert [row.split("\t")[0] for row in texts(rows)[:3]] == ["q39", "q38", "q37"]
        rows.first.click()
        dialog = page.locator("dialog[open]")
        assert dialog.get_by_text("Keys ← → step through the items").is_visible()

        def stands_at(item: str) -> bool:
            dialog.locator(".asked pre", has_text=f"Question {item[1:]}:").wait_for()
            return str(dialog.locator("h3").inner_text()) == item

        page.keyboard.press("ArrowLeft")
        assert stands_at("q39"), "there is none before the first"
        page.keyboard.press("ArrowRight")
        assert stands_at("q38")
        # a click on plain text takes the focus out of the dialog, and one into an output is gone with the next item
        dialog.locator(".about").click()
        page.keyboard.press("ArrowRight")
        assert stands_at("q37")
        dialog.locator("pre").first.focus()
        page.keyboard.press("ArrowRight")
        assert stands_at("q36")
        assert page.evaluate("document.activeElement.tagName") == "H3"
        page.keyboard.press("ArrowLeft")
        assert stands_at("q37")
        page.keyboard.press("Alt+ArrowRight")
        assert stands_at("q37"), "the browser's own keys stay"
        page.keyboard.press("Escape")
        page.wait_for_function("document.activeElement.dataset.place === '2'")
        page.keyboard.press("ArrowRight")
        assert page.locator("dialog[open]").count() == 0

    def test_a_button_of_the_dialog_keeps_the_focus_until_it_cannot_be_pressed(self, opened: Any) -> None:
        page = opened()
        rows = items_of(page)
        page.get_by_label("Only flipped").check()
        rows.first.click()
        page.get_by_label("Next item of the table").press("Enter")
        assert page.locator("dialog[open] h3").inner_text() == "q1"
        assert page.evaluate("document.activeElement.tagName") == "H3", "the last item"
        page.keyboard.press("ArrowLeft")
        assert page.locator("dialog[open] h3").inner_text() == "q0"
        page.keyboard.press("Escape")
        page.get_by_label("Only flipped").uncheck()
        rows.first.click()
        page.get_by_label("Next item of the table").press("Enter")
        assert page.evaluate("document.activeElement.textContent") == "Next →"

    def test_another_dose_keeps_the_chosen_items_and_shows_its_own_outputs(self, opened: Any) -> None:
        page = opened()
        rows = items_of(page)
        page.get_by_label("Items", exact=True).select_option(label="seen · puzzles")
        for dose in ("20 % of rows", "10 % of rows"):
            page.get_by_label("Dose").select_option(label=dose)
            page.locator(".counts p", has_text=dose.replace(" %", "\u00a0%")).wait_for()
            assert texts(rows)[0].split("\t")[0] == "s0"
            rows.first.click()
            page.locator("dialog[open] h5", has_text=f"exact duplicates, {dose}").first.wait_for()
            page.keyboard.press("Escape")

    def test_a_click_opens_a_row(self, opened: Any) -> None:
        page = opened()
        items_of(page).first.click()
        page.locator("dialog[open] .seed").first.wait_for()
        assert page.locator("dialog[open] .badge").first.inner_text() == "▲ wrong → right"

    def test_an_old_browser_is_told_and_has_the_short_table(self, opened: Any) -> None:
        page = opened(height=300)
        page.evaluate("delete window.DecompressionStream")
        page.evaluate("document.querySelector('.explorer').scrollIntoView({behavior: 'instant'})")
        page.get_by_text("This browser can't unpack the items").wait_for()
        page.get_by_text("flip most often, over all arms").click()
        assert page.locator(".explorer details td", has_text="q0").is_visible()

    def test_a_file_that_was_cut_short_says_so(self, opened: Any, page_file: Path, tmp_path: Path) -> None:
        cut = tmp_path / "cut.html"
        text = re.sub(r'(data-chunk="index">[^<]{40})[^<]*', r"\1", page_file.read_text(encoding="utf-8"))
        cut.write_text(text, encoding="utf-8")
        page = opened(cut)
        page.evaluate("document.querySelector('.explorer').scrollIntoView({behavior: 'instant'})")
        page.get_by_text("this file may be cut short").wait_for()

    def test_a_page_without_script_still_reads(self, opened: Any) -> None:
        page = opened(java_script_enabled=False)
        page.get_by_text("flip most often, over all arms").click()
        assert page.locator(".explorer details td", has_text="q0").is_visible()
        assert page.get_by_text("The table of items needs JavaScript.").is_visible()


def test_twenty_thousand_items_stay_fluid(opened: Any, tmp_path: Path) -> None:
    path = tmp_path / "large.html"
    view = sweep_view(tmp_path, lambda kind, seed: fill(kind, seed, MANY))
    path.write_text(to_html(list(item_blocks(view)), "large"), encoding="utf-8")
    page = opened(path)
    rows = items_of(page)
    page.get_by_text("20,000 of 20,000 items").wait_for()
    assert rows.count() < 60, "only what can be seen is drawn"
    begun = time.monotonic()
    page.get_by_label("Search", exact=True).fill("q19999")
    page.get_by_text("1 of 20,000 items").wait_for()
    page.get_by_label("Search", exact=True).fill("")
    page.get_by_text("20,000 of 20,000 items").wait_for()
    rows.first.focus()
    page.keyboard.press("End")
    assert page.evaluate("document.activeElement.cells[0].textContent") == "q19999"
    assert rows.count() < 60
    assert time.monotonic() - begun < 20, "generous: a fraction of a second on an idle machine"


class TestLooks:
    @pytest.mark.parametrize("scheme", ["light", "dark"])
    def test_text_has_contrast_in_both_themes(self, opened: Any, scheme: str) -> None:
        page = opened(color_scheme=scheme)
        names = ("ink", "soft", "accent", "gain", "loss", "caution", "paper", "wash", "caution-wash", "gain-wash")
        read = "names => names.map(n => getComputedStyle(document.documentElement).getPropertyValue('--' + n).trim())"
        colours = dict(zip(names, page.evaluate(read, list(names)), strict=True))
        for text in ("ink", "soft", "accent", "gain", "loss"):
            for ground in ("paper", "wash"):
                assert contrast(colours[text], colours[ground]) >= 4.5, (text, ground)
        assert contrast(colours["ink"], colours["caution-wash"]) >= 7
        assert contrast(colours["gain"], colours["gain-wash"]) >= 4.5

    def test_the_readers_theme_wins_and_is_remembered(self, opened: Any) -> None:
        page = opened(color_scheme="light")
        ground = "getComputedStyle(document.body).backgroundColor"
        light = page.evaluate(ground)
        page.get_by_role("button", name="Use dark colours").press("Enter")
        dark = page.evaluate(ground)
        page.reload()
        assert light == "rgb(255, 255, 255)" != dark == page.evaluate(ground)

    @pytest.mark.parametrize("width", [360, 768])
    def test_a_narrow_page_does_not_scroll_sideways(self, opened: Any, width: int) -> None:
        page = opened(width=width, height=740)
        items_of(page)
        page.locator("details.toc > summary").click()
        assert page.evaluate("document.documentElement.scrollWidth") == width
        items_of(page).first.click()
        page.locator("dialog[open] .seed").first.wait_for()
        assert page.evaluate("document.querySelector('dialog .detail').scrollWidth <= innerWidth")

    @pytest.mark.parametrize("scheme", ["light", "dark"])
    def test_a_figure_that_is_too_wide_for_a_phone_shows_that_it_scrolls(self, opened: Any, scheme: str) -> None:
        page = opened(width=360, height=740, color_scheme=scheme)
        wide, slim = page.locator("figure").nth(0), page.locator("figure").nth(1)
        page.locator("figure[data-wide]").wait_for()
        hint = "node => getComputedStyle(node.querySelector('figcaption'), '::before').content"
        assert "sideways" in wide.evaluate(hint)
        assert slim.evaluate(hint) == "none"

        def shade(at_end: bool) -> float:
            """How much the right edge of the empty figure differs from its middle."""
            wide.evaluate("(node, end) => { node.scrollLeft = end ? node.scrollWidth : 0; }", at_end)
            drawn = imread(io.BytesIO(wide.screenshot()))[20:60, :, :3]
            return float(np.abs(drawn[:, -3:].mean((0, 1)) - drawn[:, 150:200].mean((0, 1))).max())

        assert shade(at_end=False) > 0.03
        assert shade(at_end=True) < 0.01
        caption = "node => node.querySelector('figcaption').getBoundingClientRect().left >= 0"
        assert wide.evaluate(caption), "the caption stays where it can be read"
        page.set_viewport_size({"width": 700, "height": 740})
        page.locator("figure[data-wide]").wait_for(state="detached")

    def test_a_wide_figure_scrolls_by_keyboard(self, opened: Any) -> None:
        page = opened(width=360, height=740)
        page.locator("figure[data-wide]").focus()
        page.keyboard.press("ArrowRight")
        page.wait_for_function("document.activeElement.scrollLeft > 0")
        assert page.locator("figure").nth(1).get_attribute("tabindex") is None

    @pytest.mark.parametrize("width", [800, 1400])
    def test_a_jump_from_the_contents_takes_the_focus_to_the_heading(self, opened: Any, width: int) -> None:
        page = opened(width=width)
        if width == 800:
            page.locator("details.toc > summary").press("Enter")
        page.locator(".toc a", has_text="Numbers").press("Enter")
        page.wait_for_function("document.activeElement.id === 'section-numbers'")
        page.keyboard.press("Tab")
        assert page.evaluate("document.activeElement.textContent") == "name", "the first header of its table"

    def test_the_contents_stand_open_beside_a_wide_page_only_and_mark_the_place(self, opened: Any) -> None:
        assert not opened(width=800).locator(".toc a").first.is_visible()
        page = opened(width=1400)
        page.locator(".toc a", has_text="Wide").click()
        page.locator(".toc a[aria-current]", has_text="Wide").wait_for()
        assert page.locator("#section-wide").evaluate("node => node.getBoundingClientRect().top < 200")

    def test_paper_is_white_and_shows_whole_tables_and_the_folds_as_they_were_left(self, opened: Any) -> None:
        page = opened(width=1030, color_scheme="dark")
        items_of(page)
        page.get_by_text("Unfolded", exact=True).click()
        page.emulate_media(media="print")
        assert page.evaluate("getComputedStyle(document.body).backgroundColor") == "rgb(255, 255, 255)"
        assert page.get_by_text("Folded away").is_visible()
        assert not page.get_by_text("Inside the fold.").is_visible()
        assert page.get_by_text("Inside the other fold.").is_visible()
        told = "name => getComputedStyle(document.querySelector(name + ' > summary'), '::after').content"
        assert "open it on the page to print it" in page.evaluate(told, "main > section > details:not([open])")
        assert page.evaluate(told, "main > section > details[open]") == "none"
        assert page.locator(".explorer details td", has_text="q0").is_visible()
        assert not page.locator(".items").is_visible()
        assert not page.locator(".toc").is_visible()
        boxes = "[...document.querySelectorAll('.scroll')].filter(b => b.scrollHeight > b.clientHeight + 1).length"
        assert page.evaluate(boxes) == 0
        assert page.evaluate("document.documentElement.scrollWidth <= innerWidth")

    def test_a_closed_fold_takes_no_pages(self, opened: Any, tmp_path: Path) -> None:
        path = tmp_path / "folds.html"
        rows = [[str(row), "text"] for row in range(400)]
        long = Folded("A long table", [Table(("row", "text"), rows, ())])
        items = list(item_blocks(sweep_view(tmp_path, fill)))
        path.write_text(to_html([*items, long], "folds"), encoding="utf-8")
        page = opened(path)
        closed = pages(page)
        page.get_by_text("A long table").click()
        assert closed <= 2 < pages(page)
        assert page.locator(".explorer details[open]").count() == 0, "printing leaves the page as it was"


def pages(page: Any) -> int:
    return len(re.findall(rb"/Type\s*/Page\b", page.pdf(prefer_css_page_size=True)))
