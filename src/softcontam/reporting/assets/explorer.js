"use strict";
/* The item-level view: decodes the chunks that a reader comes to, and shows any number of items by drawing few. */
(() => {
  const ROW = 36; /* pixels, as in page.css */
  const AROUND = 8; /* rows drawn beyond those in view */
  const GAINED = 0, LOST = 1, RIGHT = 2, WRONG = 3, UNDECIDED = 4;
  const TOLD = ["wrong → right", "right → wrong", "right in both", "wrong in both", "undecided"];
  const MARKS = ["▲", "▼", "●", "○", "·"];
  const NAMES = ["gained", "lost", "right", "wrong", "undecided"];
  const MINUS = "−";

  function element(tag, attributes = {}, ...children) {
    const made = document.createElement(tag);
    for (const [name, value] of Object.entries(attributes)) {
      if (name === "class") made.className = value;
      else if (value !== null && value !== undefined) made.setAttribute(name, value);
    }
    made.append(...children.filter((child) => child !== null));
    return made;
  }

  async function unpack(packed) {
    const coded = atob(packed);
    const bytes = new Uint8Array(coded.length);
    for (let place = 0; place < coded.length; place += 1) bytes[place] = coded.charCodeAt(place);
    const stream = new Blob([bytes]).stream().pipeThrough(new DecompressionStream("gzip"));
    return JSON.parse(await new Response(stream).text());
  }

  const count = (value) => value.toLocaleString("en");
  const counted = (value, noun) => `${count(value)} ${noun}${value === 1 ? "" : "s"}`;
  const percent = (share) => (share === null ? "–" : String(Math.round(100 * share)));
  function signed(share) {
    if (share === null) return "–";
    const points = Math.round(100 * share);
    return points === 0 ? "0" : points > 0 ? `+${points}` : `${MINUS}${-points}`;
  }

  class Explorer {
    constructor(box) {
      this.box = box;
      this.view = box.querySelector(".explorer-view");
      this.status = box.querySelector(".explorer-status");
      this.decoded = new Map();
      this.order = { key: "flips", direction: -1 };
      this.active = 0;
    }

    chunk(name) {
      if (!this.decoded.has(name)) {
        const holder = this.box.querySelector(`script[data-chunk="${name}"]`);
        this.decoded.set(name, holder ? unpack(holder.textContent) : Promise.resolve(null));
      }
      return this.decoded.get(name);
    }

    async start() {
      if (typeof DecompressionStream === "undefined") {
        this.status.textContent =
          "This browser can't unpack the items (Chrome and Edge 80, Firefox 113 and Safari 16.4 can). " +
          "The items that flip most often are listed below; all outcomes are in the cells.";
        return;
      }
      try {
        this.status.textContent = "Unpacking the items …";
        this.index = await this.chunk("index");
        const ranks = this.index.items.id.map((id, place) => ({ id, place }));
        const collator = new Intl.Collator("en", { numeric: true });
        ranks.sort((left, right) => collator.compare(left.id, right.id));
        this.rank = new Uint32Array(ranks.length);
        ranks.forEach((entry, rank) => { this.rank[entry.place] = rank; });
        this.build();
        await this.show(this.firstArm());
        this.box.dataset.ready = "true";
      } catch (error) {
        this.status.textContent = `The items could not be unpacked (${error.message}): this file may be cut short.`;
      }
    }

    /* The last arm of the first condition: its highest dose. */
    firstArm() {
      const arms = this.index.arms;
      let last = 0;
      arms.forEach((arm, place) => {
        if (arm.context === arms[0].context && arm.condition === arms[0].condition) last = place;
      });
      return last;
    }

    build() {
      const labelled = (text, control, name = "") => {
        control.setAttribute("aria-label", text);
        return element("label", { class: `control ${name}` }, element("span", {}, text), control);
      };
      this.selects = ["context", "condition", "dose"].map((field, depth) => {
        const select = element("select");
        select.addEventListener("change", () => this.choose(depth));
        return { field, select, label: labelled({ context: "Benchmark", condition: "Arm", dose: "Dose" }[field], select) };
      });
      this.group = element("select");
      const searched = this.index.prompts ? "Item, family, prompt, answer" : "Item, family";
      this.search = element("input", { type: "search", placeholder: searched });
      this.flippedOnly = element("input", { type: "checkbox" });
      this.group.addEventListener("change", () => this.refresh());
      this.search.addEventListener("input", () => this.searched());
      this.flippedOnly.addEventListener("change", () => this.refresh());
      const only = element("label", { class: "check" }, this.flippedOnly, element("span", {}, "Only flipped"));
      const controls = element("div", { class: "controls" }, ...this.selects.map((one) => one.label),
        labelled("Items", this.group, "group"), labelled("Search", this.search, "wide"), only);
      this.counts = element("div", { class: "counts" });
      this.columns = [
        ["item", "item", "", "12rem"], ["family", "family", "", "9rem"], ["role", "role", "", "6.5rem"],
        ["seeds", "seeds", "", "6rem"], ["copies", "copies", "n", "4.6rem"], ["clean", "clean %", "n", "5rem"],
        ["arm", "arm %", "n", "4.6rem"], ["change", "change", "n", "5rem"], ["flips", "flips", "n", "4.6rem"],
      ];
      const head = element("tr", { "aria-rowindex": "1" });
      this.headers = this.columns.map(([key, text, style]) => {
        const button = element("button", { type: "button", class: "sort" }, text);
        button.addEventListener("click", () => this.sortBy(key));
        const header = element("th", { class: style || null, scope: "col", "aria-sort": "none" }, button);
        head.append(header);
        return header;
      });
      const widths = element("colgroup", {}, ...this.columns.map(([, , , width]) => element("col", { style: `width:${width}` })));
      this.body = element("tbody");
      this.table = element("table", { role: "grid", "aria-label": "Table of items" }, widths, element("thead", {}, head), this.body);
      this.scroller = element("div", { class: "items" }, this.table);
      let waiting = false;
      this.scroller.addEventListener("scroll", () => {
        if (!waiting) { waiting = true; requestAnimationFrame(() => { waiting = false; this.draw(); }); }
      }, { passive: true });
      this.body.addEventListener("click", (event) => {
        const row = event.target.closest("tr[data-place]");
        if (row) { this.active = Number(row.dataset.place); this.draw(true); this.open(this.active); }
      });
      this.body.addEventListener("keydown", (event) => this.key(event));
      this.view.replaceChildren(controls, this.counts, this.status, this.scroller);
      this.buildDialog();
    }

    buildDialog() {
      this.title = element("h3", { tabindex: "-1" });
      this.about = element("p", { class: "about" });
      const button = (text, told, act) => {
        const made = element("button", { type: "button", "aria-label": told }, text);
        made.addEventListener("click", act);
        return made;
      };
      const keys = element("span", { class: "keys" }, "Keys ← → step through the items");
      this.previous = button("← Previous", "Previous item of the table", () => this.step(-1));
      this.next = button("Next →", "Next item of the table", () => this.step(1));
      const close = button("Close", "Close", () => this.dialog.close());
      this.detail = element("div", { class: "detail" });
      this.dialog = element("dialog", { class: "item", "aria-label": "Item" },
        element("header", {}, element("div", { "aria-live": "polite" }, this.title, this.about),
          element("div", { class: "steps" }, keys, this.previous, this.next, close)),
        this.detail);
      /* On the document: after a click on plain text in the dialog, keys go to the body. */
      document.addEventListener("keydown", (event) => {
        const by = { ArrowLeft: -1, ArrowRight: 1 }[event.key];
        if (!this.dialog.open || !by || event.altKey || event.ctrlKey || event.metaKey || event.shiftKey) return;
        event.preventDefault();
        this.step(by);
      });
      this.dialog.addEventListener("click", (event) => { if (event.target === this.dialog) this.dialog.close(); });
      this.dialog.addEventListener("close", () => this.focusRow(this.active));
      this.view.append(this.dialog);
    }

    /* Options of the selects after the one at `depth`, which the reader has just changed, follow from it. */
    choose(depth) {
      const arms = this.index.arms;
      const wanted = this.selects.map((one) => one.select.value);
      const fits = (arm, upto) => this.selects.slice(0, upto + 1).every((one, place) => arm[one.field] === wanted[place]);
      let found = arms.findIndex((arm) => fits(arm, 2));
      if (found < 0 || depth < 2) {
        const sameDose = arms.findIndex((arm) => fits(arm, depth) && arm.dose === wanted[2]);
        found = sameDose >= 0 ? sameDose : arms.findIndex((arm) => fits(arm, depth));
      }
      this.show(found);
    }

    offer(place) {
      const arms = this.index.arms, arm = arms[place];
      this.selects.forEach((one, depth) => {
        const open = arms.filter((other) => this.selects.slice(0, depth).every((above) => other[above.field] === arm[above.field]));
        const values = [...new Set(open.map((other) => other[one.field]))];
        one.select.replaceChildren(...values.map((value) => element("option", { value }, value)));
        one.select.value = arm[one.field];
        one.label.hidden = values.length < 2 && depth === 0;
      });
    }

    async show(place) {
      const asked = (this.asked = place);
      this.offer(place);
      const seeds = await this.chunk(`arm-${place}`);
      if (asked !== this.asked) return; /* another arm was chosen meanwhile */
      this.arm = this.index.arms[place];
      this.rows = this.rowsOf(seeds);
      const before = this.group.value;
      const there = new Set(this.rows.map((row) => row.group));
      const options = this.index.groups.map((group, number) => ({ number, text: `${group.role} · ${group.benchmark}` }))
        .filter((option) => there.has(option.number));
      this.group.replaceChildren(element("option", { value: "" }, "all"),
        ...options.map((option) => element("option", { value: option.number }, option.text)));
      const heldOut = options.find((option) => this.index.groups[option.number].role === "held-out");
      if (before !== "" && there.has(Number(before))) this.group.value = before;
      else if (this.group.dataset.chosen !== "true" && heldOut) this.group.value = String(heldOut.number);
      this.group.dataset.chosen = "true";
      this.table.style.setProperty("--seeds", this.arm.seeds.length);
      this.refresh();
    }

    /* One row per item and group: its seeds side by side, accuracies averaged over them. */
    rowsOf(seeds) {
      const rows = new Map();
      const groups = this.index.groups.length;
      seeds.forEach((seed, place) => {
        for (let at = 0; at < seed.item.length; at += 1) {
          const key = seed.item[at] * groups + seed.group[at];
          let row = rows.get(key);
          if (!row) {
            row = { item: seed.item[at], group: seed.group[at], states: new Array(seeds.length).fill(null), seeds: 0,
              low: Infinity, high: 0, cleanSum: 0, armSum: 0, decided: 0, flips: 0, gained: 0, lost: 0 };
            rows.set(key, row);
          }
          const state = seed.state[at];
          row.states[place] = state;
          row.seeds += 1;
          row.low = Math.min(row.low, seed.copies[at]);
          row.high = Math.max(row.high, seed.copies[at]);
          if (state !== UNDECIDED) {
            row.cleanSum += seed.clean[at];
            row.armSum += seed.arm[at];
            row.decided += 1;
            row.gained += state === GAINED ? 1 : 0;
            row.lost += state === LOST ? 1 : 0;
          }
        }
      });
      return [...rows.values()].map((row) => ({
        ...row,
        flips: row.gained + row.lost,
        copies: row.high,
        clean: row.decided ? row.cleanSum / row.decided : null,
        arm: row.decided ? row.armSum / row.decided : null,
        change: row.decided ? (row.armSum - row.cleanSum) / row.decided : null,
      }));
    }

    async searched() {
      if (this.search.value.trim() && !this.searchTexts) {
        const texts = await this.chunk("texts");
        const items = this.index.items;
        this.searchTexts = items.id.map((id, place) => `${id}\n${items.family[place]}`.toLowerCase());
        texts.item.forEach((item, place) => { this.searchTexts[item] += `\n${texts.prompt[place]}\n${texts.target[place]}`.toLowerCase(); });
      }
      this.refresh();
    }

    refresh() {
      const group = this.group.value;
      const inGroup = group === "" ? this.rows : this.rows.filter((row) => row.group === Number(group));
      this.tell(inGroup);
      const words = this.search.value.toLowerCase().split(/\s+/).filter(Boolean);
      this.shown = inGroup.filter((row) =>
        (!this.flippedOnly.checked || row.flips > 0) && (!words.length || !this.searchTexts || words.every((word) => this.searchTexts[row.item].includes(word))));
      this.sort();
      this.active = 0;
      this.scroller.scrollTop = 0;
      this.draw(true);
      const hint = this.shown.length ? " Choose a row to read prompt and outputs." : "";
      this.status.textContent = `${count(this.shown.length)} of ${counted(inGroup.length, "item")}.${hint}`;
    }

    /* What became of all item results, as one bar and in numbers. */
    tell(rows) {
      const totals = [0, 0, 0, 0, 0];
      rows.forEach((row) => row.states.forEach((state) => { if (state !== null) totals[state] += 1; }));
      const all = totals.reduce((sum, value) => sum + value, 0);
      const order = [RIGHT, GAINED, LOST, WRONG, UNDECIDED].filter((state) => state !== UNDECIDED || totals[state]);
      const bar = element("div", { class: "bar", "aria-hidden": "true" },
        ...order.filter((state) => totals[state]).map((state) => element("i", { class: NAMES[state], style: `flex-grow:${totals[state]}` })));
      const legend = element("ul", {}, ...order.map((state) => element("li", { class: NAMES[state] },
        element("span", { class: "mark", "aria-hidden": "true" }, MARKS[state]), element("b", {}, count(totals[state])), ` ${TOLD[state]}`)));
      const seeds = this.arm.seeds.length;
      const net = totals[GAINED] - totals[LOST];
      const dose = this.arm.dose.replace(" %", "\u00a0%");
      const text = `${count(totals[GAINED] + totals[LOST])} of ${counted(all, "result")} flip, net ${net > 0 ? "+" : net < 0 ? MINUS : ""}${count(Math.abs(net))}: ` +
        `${this.arm.condition} at ${dose} against the clean arm, ${counted(rows.length, "item")} over ${counted(seeds, "seed")}.`;
      this.counts.replaceChildren(element("p", {}, text), bar, legend);
    }

    sortBy(key) {
      const words = ["item", "family", "role"].includes(key);
      const first = words ? 1 : -1;
      this.order = this.order.key === key ? { key, direction: -this.order.direction } : { key, direction: first };
      this.sort();
      this.active = 0;
      this.scroller.scrollTop = 0;
      this.draw(true);
    }

    sort() {
      const { key, direction } = this.order;
      const families = this.index.items.family;
      const collator = new Intl.Collator("en", { numeric: true });
      const orders = {
        item: () => 0,
        family: (left, right) => collator.compare(families[left.item], families[right.item]),
        role: (left, right) => left.group - right.group,
        flips: (left, right) => left.flips - right.flips || left.gained - right.gained,
      };
      const compare = orders[key] || ((left, right) => left[key] - right[key]);
      const empty = (row) => (key in orders ? false : row[key] === null);
      const byItem = (left, right) => this.rank[left.item] - this.rank[right.item];
      const tie = key === "item" ? direction : 1;
      this.shown.sort((left, right) =>
        empty(left) - empty(right) || (empty(left) ? 0 : direction * compare(left, right)) || tie * byItem(left, right));
      this.headers.forEach((header, place) => {
        const sorted = this.columns[place][0] === key;
        header.setAttribute("aria-sort", sorted ? (direction > 0 ? "ascending" : "descending") : "none");
      });
    }

    /* Draws the rows in view and a few around them; spacers stand for the others. */
    draw(anew = false) {
      const total = this.shown.length;
      const first = Math.max(0, Math.floor(this.scroller.scrollTop / ROW) - AROUND);
      const last = Math.min(total, first + Math.ceil(this.scroller.clientHeight / ROW) + 2 * AROUND);
      if (!anew && this.drawn && this.drawn[0] === first && this.drawn[1] === last) return;
      this.drawn = [first, last];
      const focused = document.activeElement && document.activeElement.closest("tr[data-place]");
      const hadFocus = focused && this.body.contains(focused);
      const spacer = (rows) => element("tr", { class: "spacer", "aria-hidden": "true" }, element("td", { colspan: this.columns.length, style: `height:${rows * ROW}px` }));
      const drawn = [];
      for (let place = first; place < last; place += 1) drawn.push(this.rowElement(place));
      if (!total) drawn.push(element("tr", { class: "none" }, element("td", { colspan: this.columns.length }, "No item fits.")));
      this.body.replaceChildren(...(first ? [spacer(first)] : []), ...drawn, ...(last < total ? [spacer(total - last)] : []));
      this.table.setAttribute("aria-rowcount", total + 1);
      const stop = this.body.querySelector(`tr[data-place="${this.active}"]`) || this.body.querySelector("tr[data-place]");
      if (stop) stop.tabIndex = 0;
      if (hadFocus && stop) stop.focus({ preventScroll: true });
    }

    rowElement(place) {
      const row = this.shown[place], items = this.index.items, group = this.index.groups[row.group];
      const told = row.states.map((state, at) => (state === null ? null : `seed ${this.arm.seeds[at]}: ${TOLD[state]}`)).filter(Boolean).join("; ");
      const strip = element("td", { class: "strip", title: told }, element("span", { class: "hidden" }, told),
        ...row.states.map((state) => element("span", { class: state === null ? "absent" : NAMES[state], "aria-hidden": "true" }, state === null ? " " : MARKS[state])));
      const number = (text, style = "") => element("td", { class: `n ${style}` }, text);
      const copies = row.low === row.high ? String(row.high) : `${row.low}–${row.high}`;
      const words = (text) => element("td", { title: text }, text);
      return element("tr", { "data-place": place, tabindex: "-1", "aria-rowindex": place + 2 },
        words(items.id[row.item]), words(items.family[row.item]), element("td", { title: group.benchmark }, group.role), strip,
        number(copies), number(percent(row.clean)), number(percent(row.arm)),
        number(signed(row.change), row.change > 0 ? "up" : row.change < 0 ? "down" : ""), number(row.flips ? String(row.flips) : "–"));
    }

    key(event) {
      const page = Math.max(1, Math.floor(this.scroller.clientHeight / ROW) - 1);
      const moves = { ArrowDown: 1, ArrowUp: -1, PageDown: page, PageUp: -page, Home: -Infinity, End: Infinity };
      if (event.key === "Enter" || event.key === " ") {
        event.preventDefault();
        this.active = Number(event.target.closest("tr[data-place]").dataset.place);
        this.open(this.active);
      } else if (event.key in moves) {
        event.preventDefault();
        const from = Number(event.target.closest("tr[data-place]").dataset.place);
        this.focusRow(Math.min(this.shown.length - 1, Math.max(0, from + moves[event.key])));
      }
    }

    focusRow(place) {
      this.active = place;
      const head = this.table.tHead.offsetHeight, top = place * ROW, height = this.scroller.clientHeight - head;
      if (top < this.scroller.scrollTop) this.scroller.scrollTop = top;
      else if (top + ROW > this.scroller.scrollTop + height) this.scroller.scrollTop = top + ROW - height;
      this.draw(true);
      const row = this.body.querySelector(`tr[data-place="${place}"]`);
      if (row) row.focus({ preventScroll: true });
    }

    step(by) {
      const place = this.active + by;
      if (place < 0 || place >= this.shown.length) return;
      this.active = place;
      this.open(place);
    }

    async open(place) {
      const row = this.shown[place], items = this.index.items, group = this.index.groups[row.group];
      this.title.textContent = items.id[row.item];
      this.about.textContent = `${group.role} item of ${group.benchmark}, family ${items.family[row.item]} · ${place + 1} of ${count(this.shown.length)}`;
      this.previous.disabled = place === 0;
      this.next.disabled = place === this.shown.length - 1;
      if (!this.dialog.open) this.dialog.showModal();
      /* A button keeps the focus while it can be pressed again. */
      if (!this.dialog.querySelector(".steps").contains(document.activeElement) || document.activeElement.disabled) this.title.focus();
      const asked = (this.opened = row);
      const texts = await this.chunk("texts");
      const sides = await Promise.all(this.arm.seeds.map(async (_, at) => (row.states[at] === null ? null : {
        clean: await this.outputs(this.arm.clean[at], row), arm: await this.outputs(this.arm.cells[at], row) })));
      if (asked !== this.opened) return;
      const found = texts.item.map((item, at) => (item === row.item ? at : -1)).filter((at) => at >= 0);
      const sections = found.flatMap((at, number) => {
        const which = found.length > 1 ? ` (${number + 1} of ${found.length} ways in which this sweep asks it)` : "";
        return [element("h4", {}, `Prompt${which}`), this.text(texts.prompt[at]), element("h4", {}, "Gold answer"), this.text(texts.target[at])];
      });
      const prompt = sections.length ? sections : [element("p", { class: "absent-text" }, "The prompt of this item is not stored; the notes below the table say why.")];
      const seeds = sides.flatMap((side, at) => (side === null ? [] : [this.seedElement(row.states[at], at, side)]));
      this.detail.replaceChildren(element("section", { class: "asked" }, ...prompt), ...seeds);
      this.detail.scrollTop = 0;
    }

    /* The samples of an item in one cell, or null where they were left out. */
    async outputs(cell, row) {
      const held = await this.chunk(`cell-${cell}`);
      if (!held) return null;
      if (!held.places) {
        const groups = this.index.groups.length;
        held.places = new Map();
        held.item.forEach((item, at) => {
          const key = item * groups + held.group[at];
          if (!held.places.has(key)) held.places.set(key, []);
          held.places.get(key).push(at);
        });
      }
      const places = held.places.get(row.item * this.index.groups.length + row.group);
      const text = (number) => (number === null ? null : held.strings[number]);
      return !places ? null : places.map((at) => ({
        sample: held.sample[at], correct: held.correct[at], parsed: text(held.parsed[at]), output: text(held.output[at]),
        verdict: text(held.verdict[at]), parse_ok: held.parse_ok[at], finished: held.finished[at] }));
    }

    /* Model text may hold anything: it is set as text, in its own direction, and never read as HTML. */
    text(value) {
      return element("pre", { dir: "auto", tabindex: "0" }, value);
    }

    seedElement(state, at, side) {
      const name = `${this.arm.condition}, ${this.arm.dose}`;
      return element("section", { class: "seed" },
        element("h4", {}, `Seed ${this.arm.seeds[at]} `, element("span", { class: `badge ${NAMES[state]}` }, `${MARKS[state]} ${TOLD[state]}`)),
        element("div", { class: "sides" }, this.side("Clean arm", side.clean), this.side(name, side.arm)));
    }

    side(name, samples) {
      const box = element("div", { class: "side" }, element("h5", {}, name));
      if (!samples) {
        box.append(element("p", { class: "absent-text" }, "The outputs are left out here; the notes below the table say why."));
        return box;
      }
      samples.forEach((one, place) => {
        const verdict = one.correct === null ? "undecided" : one.correct === 1 ? "✓ right" : one.correct === 0 ? "✗ wrong" : `${percent(one.correct)} % right`;
        const told = element("p", { class: "told" },
          samples.length > 1 ? `Sample ${one.sample === null ? place : one.sample}: ` : null,
          element("b", { class: one.correct === 1 ? "is-right" : one.correct === 0 ? "is-wrong" : null }, verdict));
        if (one.parsed !== null) told.append(" · answer ", element("code", { dir: "auto" }, one.parsed.length > 80 ? `${one.parsed.slice(0, 80)}…` : one.parsed));
        else if (one.parse_ok === 0) told.append(" · no answer found in it");
        if (one.verdict !== null) told.append(` · sandbox: ${one.verdict}`);
        if (one.finished === 0) told.append(" · cut off at the token limit");
        box.append(told, one.output === null ? element("p", { class: "absent-text" }, "No output is stored.") : this.text(one.output));
      });
      return box;
    }
  }

  document.addEventListener("DOMContentLoaded", () => {
    for (const box of document.querySelectorAll(".explorer")) {
      box.querySelector(".explorer-status").textContent = "The items are unpacked when you come to them.";
      const watcher = new IntersectionObserver((entries) => {
        if (entries.some((entry) => entry.isIntersecting)) { watcher.disconnect(); new Explorer(box).start(); }
      }, { rootMargin: "300px" });
      watcher.observe(box);
    }
  });
})();
