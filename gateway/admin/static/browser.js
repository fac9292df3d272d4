// Messages of a light queue from an offset or a moment on: looked at in the log, where looking consumes nothing.

import { get, path } from "./api.js";
import { h, renew, told } from "./dom.js";
import { bytes, count, exactMoment, moment, momentOf, plural, vhostOf } from "./format.js";
import { table } from "./list.js";

const PAGE = 20;
const SHOWN = 160; // letters of a body

export function messageLink(id) {
  return h("a", { href: `#/message/${path(id)}` }, id);
}

// Where a message was published: a link to where that leads now. The message does not say the virtual host of its
// exchange; without `vhost` the default one is asked.
export function addressLink(one, vhost) {
  if (typeof one.exchange !== "string") return one.door === "rocketmq" ? h("a", { href: `#/route?rocketmq=${encodeURIComponent(one.topic)}` }, one.topic) : h("a", { href: `#/route?topic=${encodeURIComponent(one.topic)}` }, one.topic);
  const where = new URLSearchParams({ exchange: one.exchange, key: one.routing_key, ...(vhost && { vhost }) });
  return h("a", { href: `#/route?${where}` }, `${one.exchange || "(default)"} ${one.routing_key}`);
}

export const cut = (text, length = SHOWN) => (text.length > length ? `${text.slice(0, length)}…` : text);

const MESSAGES = [
  { title: "Offset", isNumber: true, read: (one) => count(one.offset) },
  { title: "Message", read: (one) => messageLink(one.id) },
  { title: "Published to", read: (one, vhost) => addressLink(one, vhost) },
  { title: "Stored", read: (one) => moment(one.stored_at_ms) },
  { title: "Stage", read: (one) => one.stage ?? "" },
  { title: "Given", isNumber: true, read: (one) => (one.given === null ? "" : count(one.given)) },
  { title: "Bytes", isNumber: true, read: (one) => bytes(one.body_bytes) },
  { title: "Body", read: (one) => h("span", { className: "mono" }, one.encoding === "base64" ? `base64 ${cut(one.body)}` : cut(one.body)) },
];

function describe(found, fromMs) {
  if (fromMs === undefined) return found.length ? plural(found.length, "message") : "no message there";
  return found.length ? `${plural(found.length, "message")}, from ${exactMoment(fromMs)} on` : `no message was stored from ${exactMoment(fromMs)} on`;
}

// Fields for an offset and a moment, and the messages from there on. `more` are columns beside the usual ones.
// `look` shows what is there from `{offset}` or `{at_ms}` on, without either the newest.
export function makeBrowser(name, signal, more = []) {
  const messages = h("div");
  const offset = h("input", { type: "number", min: 0 });
  const at = h("input", { type: "datetime-local", step: 1 });
  const look = async (asked) => {
    try {
      const found = await get("api/lmq/messages", { ...asked, queue: name, count: PAGE }, signal);
      renew(messages, table(describe(found.items, asked.at_ms), [...MESSAGES, ...more].map((column) => ({ ...column, read: (one) => column.read(one, vhostOf(name)) })), found.items), ...turns(found));
    } catch (error) {
      if (error.name !== "AbortError") messages.replaceChildren(told(error.message, true));
    }
  };
  const turns = ({ min_offset: first, max_offset: end, items }) => {
    if (first === end) return [];
    const [from, to] = items.length ? [items[0].offset, items.at(-1).offset] : [end, end];
    const turn = (wanted) => () => look({ offset: Math.max(wanted, first) });
    return [
      h(
        "div",
        { className: "bar" },
        h("button", { className: "act", type: "button", disabled: from <= first, onclick: turn(from - PAGE) }, "Earlier"),
        h("button", { className: "act", type: "button", disabled: to + 1 >= end, onclick: turn(to + 1) }, "Later"),
        h("button", { className: "act", type: "button", onclick: () => look({}) }, "Newest"),
        items[0]?.stage && h("button", { className: "act", type: "button", onclick: () => look({ undone: true }) }, "First not done"),
      ),
      first > 0 && from <= first && h("p", { className: "faint" }, `The log has this queue from offset ${count(first)} on: what came before is gone.`),
    ];
  };
  const form = (field, label, verb, asked) => h("form", { className: "bar", onsubmit: (event) => (event.preventDefault(), look(asked())) }, h("label", {}, label, field), h("button", { className: "act" }, verb));
  const node = h(
    "div",
    {},
    h("p", { className: "faint" }, "Looking consumes nothing, and shows what was consumed, too, for as long as the log keeps it."),
    h(
      "div",
      { className: "bar" },
      form(offset, "From offset", "Look from the offset", () => ({ offset: offset.value || undefined })),
      form(at, "From moment", "Look from the moment", () => ({ at_ms: momentOf(at.value) })),
    ),
    messages,
  );
  return { node, look, begin: (from) => ((offset.value = from), look({ offset: from })) };
}
