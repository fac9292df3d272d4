// Every light queue of the log, its messages from an offset or a moment, and where a message went.

import { get, path } from "../api.js";
import { mayAskAll, seesAll } from "../caller.js";
import { card, facts, h, told } from "../dom.js";
import { bytes, count, lightName, moment, rate } from "../format.js";
import { List, table } from "../list.js";

const PAGE = 20;

// A link into a queue of the log, from an offset on; text where that is not shown: clients share the queues of MQTT.
export function logLink(lightQueue, offset, text) {
  if (!seesAll() && !lightQueue.startsWith("%LMQ%amqp%")) return text;
  return h("a", { href: `#/log/${path(lightQueue)}${offset === undefined ? "" : `?offset=${offset}`}` }, text);
}

const COLUMNS = [
  { title: "Queue", sort: "name", read: (one) => logLink(one.light_queue, undefined, one.name) },
  { title: "Door", sort: "door", read: (one) => one.door },
  { title: "Virtual host", sort: "vhost", read: (one) => one.vhost },
  { title: "Kept", isNumber: true, sort: "kept", read: (one) => count(one.kept) },
  { title: "Ready", isNumber: true, sort: "messages_ready", read: (one) => count(one.messages_ready) },
  { title: "Readers", isNumber: true, sort: "readers", read: (one) => count(one.readers) },
  { title: "In /s", isNumber: true, sort: "rate_in", read: (one) => rate(one.rate_in) },
  { title: "Out /s", isNumber: true, read: (one) => rate(one.rate_out) },
  { title: "Next offset", isNumber: true, sort: "next_offset", read: (one) => count(one.next_offset) },
];

function listQueues(main, signal) {
  main.append(h("p", { className: "faint" }, "Each MQTT filter, AMQP queue and RocketMQ topic queue is an index into the one log, and can be read again from any offset."));
  new List(main, signal, { from: "api/lmq/queues", columns: COLUMNS });
}

export function messageLink(id) {
  return h("a", { href: `#/message/${path(id)}` }, id);
}

// Where a message was published, by its topic or its exchange and routing key: a link to where that leads now.
export function addressLink(one) {
  if (typeof one.exchange !== "string") return h("a", { href: `#/route?topic=${encodeURIComponent(one.topic)}` }, one.topic);
  const where = new URLSearchParams({ exchange: one.exchange, key: one.routing_key });
  return h("a", { href: `#/route?${where}` }, `${one.exchange || "(default)"} ${one.routing_key}`);
}

const cut = (text, length = 160) => (text.length > length ? `${text.slice(0, length)}…` : text);

const MESSAGES = [
  { title: "Offset", isNumber: true, read: (one) => count(one.offset) },
  { title: "Message", read: (one) => messageLink(one.id) },
  { title: "Published to", read: addressLink },
  { title: "Stored", read: (one) => moment(one.stored_at_ms) },
  { title: "Bytes", isNumber: true, read: (one) => bytes(one.body_bytes) },
  { title: "Body", read: (one) => h("span", { className: "mono" }, one.encoding === "base64" ? `base64 ${cut(one.body)}` : cut(one.body)) },
];

async function showQueue(main, signal, name, params) {
  const where = `api/lmq/queues/${path(name)}`;
  const box = h("div");
  const messages = h("div");
  const offset = h("input", { type: "number", min: 0, value: params.get("offset") ?? "" });
  const at = h("input", { type: "datetime-local", step: 1 });
  const queue = await get(where, {}, signal);
  const look = async (asked) => {
    try {
      const found = (await get("api/lmq/messages", { ...asked, queue: name, count: PAGE }, signal)).items;
      messages.replaceChildren(table(found.length ? `${count(found.length)} messages` : "no message there", MESSAGES, found), ...turns(found));
    } catch (error) {
      if (error.name !== "AbortError") messages.replaceChildren(told(error.message, true));
    }
  };
  const turns = (found) => {
    const [first, last] = [found[0]?.offset, found.at(-1)?.offset];
    if (first === undefined) return [];
    const turn = (to) => () => look({ offset: Math.max(to, queue.first_offset) });
    return [
      h(
        "div",
        { className: "bar" },
        h("button", { className: "act", type: "button", disabled: first <= queue.first_offset, onclick: turn(first - PAGE) }, "Earlier"),
        h("button", { className: "act", type: "button", onclick: turn(last + 1) }, "Later"),
      ),
    ];
  };
  main.append(
    h("div", { className: "cards" }, card("Kept", count(queue.kept)), card("Readers", count(queue.readers)), queue.messages_ready === undefined ? "" : card("Ready", count(queue.messages_ready))),
    facts([
      ["Door", queue.door],
      ["Virtual host", queue.vhost],
      ["Offsets", `${count(queue.first_offset)} to ${count(queue.next_offset)}`],
      ["Oldest message", moment(queue.oldest_at_ms)],
      ["Newest message", moment(queue.newest_at_ms)],
      ["Name in the log", h("code", { className: "mono" }, name)],
    ]),
    box,
    h("h2", {}, "Messages"),
  );
  if (!mayAskAll()) {
    main.append(h("p", { className: "faint" }, "They are shown to administrators here."));
    return;
  }
  main.append(
    h("p", { className: "faint" }, "Looking consumes nothing."),
    h(
      "div",
      { className: "bar" },
      h("label", {}, "From offset", offset),
      h("button", { className: "act", type: "button", onclick: () => look({ offset: offset.value || undefined }) }, "Look"),
      h("label", {}, "From moment", at),
      h("button", { className: "act", type: "button", onclick: () => look({ at_ms: at.value ? new Date(at.value).getTime() : undefined }) }, "Look"),
    ),
    messages,
  );
  await look(params.has("offset") ? { offset: params.get("offset") } : {});
}

export const log = {
  title: ([name]) => (name === undefined ? "The log's queues" : lightName(name)),
  show: (main, { parts: [name], params, signal }) => (name === undefined ? listQueues(main, signal) : showQueue(main, signal, name, params)),
};
