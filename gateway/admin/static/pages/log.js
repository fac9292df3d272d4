// Every light queue of the log, its messages from an offset or a moment, and where a message went.

import { get, path } from "../api.js";
import { makeBrowser } from "../browser.js";
import { mayAskAll, seesAll } from "../caller.js";
import { card, facts, h } from "../dom.js";
import { calledName, count, lightName, moment, rate } from "../format.js";
import { List } from "../list.js";

// A link into a queue of the log, from an offset on; text where that is not shown: clients share the queues of MQTT.
export function logLink(lightQueue, offset, text) {
  if (!seesAll() && !lightQueue.startsWith("%LMQ%amqp%")) return text;
  return h("a", { href: `#/log/${path(lightQueue)}${offset === undefined ? "" : `?offset=${offset}`}` }, text);
}

const COLUMNS = [
  { title: "Queue", sort: "name", read: (one) => logLink(one.light_queue, undefined, calledName(one.name)) },
  { title: "Door", sort: "door", read: (one) => one.door },
  { title: "Virtual host", sort: "vhost", read: (one) => one.vhost },
  { title: "Kept", isNumber: true, sort: "kept", read: (one) => count(one.kept) },
  { title: "Ready", isNumber: true, sort: "messages_ready", read: (one) => count(one.messages_ready) },
  { title: "Readers", isNumber: true, sort: "readers", read: (one) => count(one.readers) },
  { title: "In /s", isNumber: true, sort: "rate_in", read: (one) => rate(one.rate_in) },
  { title: "Out /s", isNumber: true, read: (one) => rate(one.rate_out) },
  { title: "Redelivered /s", isNumber: true, sort: "rate_again", read: (one) => rate(one.rate_again) },
  { title: "Next offset", isNumber: true, sort: "next_offset", read: (one) => count(one.next_offset) },
];

function listQueues(main, signal) {
  main.append(h("p", { className: "faint" }, "Each MQTT filter, AMQP queue and RocketMQ topic queue is an index into the one log, and can be read again from any offset."));
  new List(main, signal, { from: "api/lmq/queues", columns: COLUMNS, empty: "There is no queue: nobody subscribed, declared or sent." });
}

async function showQueue(main, signal, name, params) {
  const queue = await get(`api/lmq/queues/${path(name)}`, {}, signal);
  const called = lightName(name, queue);
  main.querySelector("h1").textContent = called;
  document.title = `${called} – LMQ Gateway`;
  main.append(
    h("div", { className: "cards" }, card("Kept", count(queue.kept)), card("Readers", count(queue.readers)), queue.messages_ready === null ? "" : card("Ready", count(queue.messages_ready))),
    facts([
      ["Door", queue.door],
      ["Virtual host", queue.vhost],
      ["Offsets", `${count(queue.first_offset)} to ${count(queue.next_offset)}`],
      ["Oldest message", moment(queue.oldest_at_ms)],
      ["Newest message", moment(queue.newest_at_ms)],
    ]),
    h("h2", {}, "Messages"),
  );
  if (!mayAskAll()) {
    main.append(h("p", { className: "faint" }, "They are shown to administrators here."));
    return;
  }
  const browser = makeBrowser(name, signal);
  main.append(browser.node);
  await (params.has("offset") ? browser.begin(params.get("offset")) : browser.look({}));
}

export const log = {
  title: ([name]) => (name === undefined ? "The log's queues" : lightName(name)),
  show: (main, { parts: [name], params, signal }) => (name === undefined ? listQueues(main, signal) : showQueue(main, signal, name, params)),
};
