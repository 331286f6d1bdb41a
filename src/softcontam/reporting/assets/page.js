"use strict";
/* What the page does beside being read: theme, contents, tables to sort and search, wide figures, and paper. */
(() => {
  const root = document.documentElement;
  const KEY = "softcontam-theme";
  const system = matchMedia("(prefers-color-scheme: dark)");

  /* A page opened from disk may be refused storage; the choice then lasts as long as the page. */
  const remembered = () => { try { return localStorage.getItem(KEY); } catch { return null; } };
  const remember = (value) => { try { localStorage.setItem(KEY, value); } catch { /* not remembered */ } };
  const isDark = () => (root.dataset.theme || (system.matches ? "dark" : "light")) === "dark";

  const chosen = remembered();
  if (chosen === "dark" || chosen === "light") root.dataset.theme = chosen;

  function themeButton() {
    const button = document.querySelector(".theme");
    if (!button) return;
    const show = () => {
      button.textContent = isDark() ? "Light" : "Dark";
      button.setAttribute("aria-label", `Use ${isDark() ? "light" : "dark"} colours`);
    };
    button.hidden = false;
    button.addEventListener("click", () => {
      root.dataset.theme = isDark() ? "light" : "dark";
      remember(root.dataset.theme);
      show();
    });
    system.addEventListener("change", show);
    show();
  }

  /* The contents stand open beside a wide page and fold above a narrow one; the section that is read is marked. */
  function contents() {
    const box = document.querySelector(".toc");
    if (!box) return;
    const wide = matchMedia("(min-width: 78rem)");
    const place = () => { box.open = wide.matches; };
    wide.addEventListener("change", place);
    place();
    const links = [...box.querySelectorAll("a")];
    links.forEach((link) => link.addEventListener("click", () => { if (!wide.matches) box.open = false; }));
    const headings = links.map((link) => document.getElementById(link.hash.slice(1)));
    let waiting = false;
    const mark = () => {
      waiting = false;
      const atEnd = innerHeight + scrollY >= document.body.scrollHeight - 4;
      let current = atEnd ? headings.length - 1 : -1;
      if (!atEnd) headings.forEach((heading, place) => { if (heading.getBoundingClientRect().top < 140) current = place; });
      links.forEach((link, place) => {
        if (place === current) link.setAttribute("aria-current", "location"); else link.removeAttribute("aria-current");
      });
    };
    addEventListener("scroll", () => { if (!waiting) { waiting = true; requestAnimationFrame(mark); } }, { passive: true });
    mark();
  }

  /* The number that a cell begins with, as tables write it: "−3.4", "<0.001", "1,200", "[8.6, 23.9]", "–" for none. */
  function numberIn(text) {
    const found = text.replace(/\u2212/g, "-").replace(/(\d),(?=\d{3}\b)/g, "$1").match(/[+-]?\d+(?:\.\d+)?(?:e[+-]?\d+)?/i);
    if (!found) return NaN;
    return text.trim().startsWith("<") ? Number(found[0]) * 0.999 : Number(found[0]);
  }

  const collator = new Intl.Collator("en", { numeric: true, sensitivity: "base" });

  function compare(left, right, numeric) {
    if (!numeric) return collator.compare(left, right);
    return numberIn(left) - numberIn(right);
  }

  function sortRows(rows, column, numeric, direction) {
    const keyed = rows.map((row, place) => ({ row, place, text: row.cells[column].textContent.trim() }));
    const isEmpty = (entry) => (numeric ? Number.isNaN(numberIn(entry.text)) : entry.text === "" || entry.text === "–");
    const isTotal = (entry) => entry.row.cells[0].textContent.trim() === "mean";
    keyed.sort((left, right) =>
      isTotal(left) - isTotal(right) || isEmpty(left) - isEmpty(right) ||
      (isEmpty(left) ? 0 : direction * compare(left.text, right.text, numeric)) || left.place - right.place);
    return keyed.map((entry) => entry.row);
  }

  /* Headers of a table become buttons: first click, other way, back to the report's own order. */
  function sortable(table) {
    const head = table.tHead && table.tHead.rows[0];
    const body = table.tBodies[0];
    if (!head || !body || body.rows.length < 2) return;
    const original = [...body.rows];
    const headers = [...head.cells];
    headers.forEach((header, column) => {
      const numeric = header.classList.contains("n");
      const button = document.createElement("button");
      button.type = "button";
      button.className = "sort";
      button.append(...header.childNodes);
      header.append(button);
      header.scope = "col";
      header.setAttribute("aria-sort", "none");
      button.addEventListener("click", () => {
        const first = numeric ? "descending" : "ascending";
        const second = numeric ? "ascending" : "descending";
        const before = header.getAttribute("aria-sort");
        const now = before === "none" ? first : before === first ? second : "none";
        headers.forEach((other) => other.setAttribute("aria-sort", "none"));
        header.setAttribute("aria-sort", now);
        body.append(...(now === "none" ? original : sortRows(original, column, numeric, now === "ascending" ? 1 : -1)));
      });
    });
  }

  /* Long tables get a box to search their rows; every word has to occur in a row. */
  function searchable(box, table) {
    const rows = [...table.tBodies[0].rows];
    if (rows.length < 16) return;
    const texts = rows.map((row) => row.textContent.toLowerCase());
    const bar = document.createElement("div");
    bar.className = "filter";
    const input = document.createElement("input");
    input.type = "search";
    input.placeholder = `Search ${rows.length} rows`;
    input.setAttribute("aria-label", "Search the rows of the next table");
    const count = document.createElement("span");
    count.setAttribute("role", "status");
    input.addEventListener("input", () => {
      const words = input.value.toLowerCase().split(/\s+/).filter(Boolean);
      let shown = 0;
      rows.forEach((row, place) => {
        row.hidden = !words.every((word) => texts[place].includes(word));
        shown += row.hidden ? 0 : 1;
      });
      count.textContent = words.length ? `${shown} of ${rows.length} rows` : "";
    });
    bar.append(input, count);
    box.before(bar);
  }

  /* Verdicts are told by their words; weight and colour only help the eye. */
  function verdicts(table) {
    const headers = [...table.tHead.rows[0].cells];
    const column = headers.findIndex((header) => header.textContent.trim() === "verdict");
    if (column < 0) return;
    for (const row of table.tBodies[0].rows) {
      const text = row.cells[column].textContent;
      const corrected = text.startsWith("shown") && !text.includes("not after");
      row.cells[column].dataset.verdict = text.startsWith("not shown") ? "not-shown" : corrected ? "shown" : "";
    }
  }

  function tables() {
    for (const box of document.querySelectorAll(".scroll")) {
      const table = box.querySelector("table");
      if (!table || !table.tHead) continue;
      verdicts(table);
      searchable(box, table);
      sortable(table);
      if (!box.querySelector("button")) { box.tabIndex = 0; box.setAttribute("role", "group"); box.setAttribute("aria-label", "Table"); }
    }
  }

  /* A figure that is wider than its box says so, and can be scrolled by keyboard; turning a phone may change it. */
  function figures() {
    const look = ({ target }) => {
      const wide = target.scrollWidth > target.clientWidth + 1;
      target.toggleAttribute("data-wide", wide);
      if (wide) target.tabIndex = 0; else target.removeAttribute("tabindex");
    };
    const watcher = new ResizeObserver((entries) => entries.forEach(look));
    for (const figure of document.querySelectorAll("figure")) watcher.observe(figure);
  }

  /* The fold that page.css opens on paper, for browsers whose style sheets can't (Firefox before 143, Safari before 18.4). */
  function printing() {
    let closed = [];
    addEventListener("beforeprint", () => {
      closed = [...document.querySelectorAll(".explorer details:not([open])")];
      closed.forEach((one) => { one.open = true; });
    });
    addEventListener("afterprint", () => { closed.forEach((one) => { one.open = false; }); });
  }

  document.addEventListener("DOMContentLoaded", () => {
    themeButton();
    contents();
    tables();
    figures();
    printing();
  });
})();
