// A list that the gateway pages, sorts and searches: only what is on the screen crosses the network.

import { whenChanged } from "./again.js";
import { get } from "./api.js";
import { h, renew, told } from "./dom.js";
import { count } from "./format.js";

const AGAIN_MS = 3_000;

// The title of a column, where a short word stays with what follows it.
const titleOf = (column) => column.title.replace(/^(\S{1,4}) /, "$1\u00a0");

// Text without a break in it that is longer than this is broken anywhere, so that a table fits its page.
const LONG = /\S{25}/;

// A cell, whose column says what is in it.
function cell(column, ...read) {
  const kind = column.isNumber ? "number" : column.isActions ? "brief actions" : column.isBrief ? "brief" : column.isName ? "name" : "";
  const node = h("td", { className: kind }, ...read);
  if (!column.isNumber && LONG.test(node.textContent)) node.classList.add("long");
  return node;
}

// `empty` is said where there is nothing. One column: `{name, title, read(item), isNumber, sort}`. `sort` is the field the gateway sorts by; without it the
// column cannot be sorted by. `read` gives text or elements. `asks` is the field that the search is sent as.
// `changes` names the list as the gateway's stream does that says when it changed;
// without it the list is asked for every few seconds.
export class List {
  #query = { page: 1, page_size: 100, name: "", sort: "", sort_reverse: false };
  #rows = h("tbody");
  #head = h("thead");
  #caption = h("caption", {}, "loading");
  #trouble = h("div");
  #pager = h("div", { className: "bar" });

  constructor(main, signal, { from, columns, searched = "name", asks = "name", extra = {}, changes, empty = "none" }) {
    this.signal = signal;
    this.from = from;
    this.columns = columns.map((column, i) => ({ ...column, isName: i === 0 }));
    this.extra = extra;
    this.asks = asks;
    this.empty = empty;
    const search = h("input", { type: "search", oninput: () => this.#search(search.value), spellcheck: false });
    main.append(
      h("form", { className: "bar", role: "search", onsubmit: (event) => event.preventDefault() }, h("label", { className: "grow" }, `Search by ${searched}`, search)),
      this.#trouble,
      h("div", { className: "scroll", tabIndex: 0, role: "region", ariaLabel: main.querySelector("h1")?.textContent ?? "Table" }, h("table", {}, this.#caption, this.#head, this.#rows)),
      this.#pager,
    );
    this.#showHead();
    this.load();
    if (changes) {
      whenChanged(changes, () => this.load(), signal);
    } else {
      const timer = setInterval(() => document.hidden || this.asking || this.load(), AGAIN_MS);
      signal.addEventListener("abort", () => clearInterval(timer));
    }
  }

  #search(name) {
    clearTimeout(this.typing);
    this.typing = setTimeout(() => this.#ask({ name, page: 1 }), 250);
  }

  #ask(change) {
    Object.assign(this.#query, change);
    this.#showHead();
    return this.load();
  }

  // Gives what went wrong, if anything did.
  async load() {
    this.asking?.abort();
    const asking = (this.asking = new AbortController());
    const signal = AbortSignal.any([asking.signal, this.signal]);
    try {
      const found = await get(this.from, { ...this.#query, name: undefined, [this.asks]: this.#query.name || undefined, ...this.extra }, signal);
      this.#trouble.replaceChildren();
      this.#show(found);
    } catch (error) {
      if (error.word === "page_out_of_range") return this.#ask({ page: 1 }); // the list is shorter by now
      if (error.name !== "AbortError") this.#trouble.replaceChildren(told(error.message, true));
      return error;
    } finally {
      if (this.asking === asking) this.asking = undefined; // a gateway that is slow is not asked anew before it answers
    }
    return undefined;
  }

  #showHead() {
    const { sort, sort_reverse } = this.#query;
    renew(
      this.#head,
      h(
        "tr",
        {},
        this.columns.map((column) => {
          const isSorted = column.sort && column.sort === sort;
          const head = h("th", { scope: "col", className: column.isNumber ? "number" : "" });
          if (isSorted) head.setAttribute("aria-sort", sort_reverse ? "descending" : "ascending");
          const turn = () => this.#ask({ sort: column.sort, sort_reverse: isSorted ? !sort_reverse : Boolean(column.isNumber), page: 1 });
          head.append(column.sort ? h("button", { type: "button", onclick: turn }, titleOf(column)) : titleOf(column));
          return head;
        }),
      ),
    );
  }

  #show(found) {
    const items = Array.isArray(found) ? found : found.items;
    this.#caption.textContent = this.#describe(found, items);
    renew(
      this.#rows,
      items.map((item) =>
        h(
          "tr",
          {},
          this.columns.map((column) => cell(column, column.read(item, this))),
        ),
      ),
    );
    this.#showPager(found);
  }

  #describe(found, items) {
    if (Array.isArray(found)) return `${count(items.length)} in all`;
    const { total_count, filtered_count } = found;
    if (total_count === 0) return this.empty;
    return filtered_count === total_count ? `${count(total_count)} in all` : `${count(filtered_count)} of ${count(total_count)}`;
  }

  #showPager({ page, page_count }) {
    if (!page_count || page_count < 2) return this.#pager.replaceChildren();
    const turn = (to) => () => this.#ask({ page: to });
    return renew(
      this.#pager,
      h("button", { className: "act", type: "button", disabled: page <= 1, onclick: turn(page - 1) }, "Previous"),
      h("span", {}, `page ${count(page)} of ${count(page_count)}`),
      h("button", { className: "act", type: "button", disabled: page >= page_count, onclick: turn(page + 1) }, "Next"),
    );
  }
}

// A table of a few rows that are at hand; without a caption where a heading says what it is, which is its label then.
export function table(caption, columns, items, label = caption) {
  return h(
    "div",
    { className: "scroll", tabIndex: 0, role: "region", ariaLabel: label || "Table" },
    h(
      "table",
      {},
      caption && h("caption", {}, caption),
      h("thead", {}, h("tr", {}, columns.map((column) => h("th", { scope: "col", className: column.isNumber ? "number" : "" }, column.isUnseen ? h("span", { className: "unseen" }, column.title) : titleOf(column))))),
      h("tbody", {}, items.map((item) => h("tr", {}, columns.map((column) => cell(column, column.read(item)))))),
    ),
  );
}
