// AMQP's queues, and one of them.

import { get, path, post, remove } from "../api.js";
import { card, confirmed, facts, h, told } from "../dom.js";
import { age, bytes, count, moment, rate, yes } from "../format.js";
import { List, table } from "../list.js";
import { plot, tall } from "../plot.js";
import { logLink } from "./log.js";

const KEPT = 900; // looks that the page of one queue draws: half an hour
const SHOWN = 60; // depths that a sparkline has
const depths = new Map();

function noteDepth(queue) {
  const key = `${queue.vhost}\n${queue.name}`;
  const known = depths.get(key) ?? [];
  depths.delete(key);
  depths.set(key, [...known, queue.messages].slice(-SHOWN));
  if (depths.size > 2_000) depths.delete(depths.keys().next().value);
  return depths.get(key);
}

export function queueLink(vhost, name) {
  return h("a", { href: `#/queues/${path(vhost, name)}` }, name);
}

const COLUMNS = [
  { title: "Queue", sort: "name", read: (queue) => queueLink(queue.vhost, queue.name) },
  { title: "Virtual host", sort: "vhost", read: (queue) => queue.vhost },
  { title: "Type", sort: "type", read: (queue) => queue.type },
  { title: "Ready", isNumber: true, sort: "messages_ready", read: (queue) => count(queue.messages_ready) },
  { title: "Unacked", isNumber: true, sort: "messages_unacknowledged", read: (queue) => count(queue.messages_unacknowledged) },
  { title: "Consumers", isNumber: true, sort: "consumers", read: (queue) => count(queue.consumers) },
  { title: "In /s", isNumber: true, sort: "message_stats.publish_details.rate", read: (queue) => rate(queue.message_stats.publish_details.rate) },
  { title: "Out /s", isNumber: true, read: (queue) => rate(queue.message_stats.ack_details.rate) },
  { title: "Oldest", isNumber: true, read: (queue) => age(queue.lmq.oldest_at_ms) },
  { title: "Depth", read: (queue) => plot(noteDepth(queue), `depth of ${queue.name}`, "spark") },
  { title: "Policy", read: (queue) => queue.policy ?? "" },
];

function listQueues(main, signal) {
  main.append(h("p", { className: "faint" }, "A queue is an index into the log: a message in a thousand queues is stored once."));
  new List(main, signal, { from: "api/queues", columns: COLUMNS });
}

async function act(box, doing, done) {
  try {
    const said = await doing();
    box.replaceChildren(done === undefined ? said : told(done));
  } catch (error) {
    box.replaceChildren(told(error.message, true));
  }
}

// What a message carries, as people read it.
export function message(found) {
  const body = found.payload_encoding === "base64" ? `${found.payload} (base64)` : found.payload;
  return h(
    "article",
    { className: "card" },
    facts([
      ["Exchange", found.exchange || "(default)"],
      ["Routing key", found.routing_key],
      ["Redelivered", yes(found.redelivered)],
      ["Properties", Object.keys(found.properties ?? {}).length ? h("code", { className: "mono" }, JSON.stringify(found.properties)) : ""],
      ["Bytes", count(found.payload_bytes)],
    ]),
    h("pre", {}, body),
  );
}

function makeBrowser(where, box) {
  const number = h("input", { type: "number", min: 1, max: 50, value: 10 });
  const messages = h("div", { className: "cards" });
  const look = async () => {
    const asked = { count: Number(number.value), ackmode: "ack_requeue_true", encoding: "auto", truncate: 10_000 };
    const found = await post(`${where}/get`, asked);
    messages.replaceChildren(...found.map(message));
    if (!found.length) messages.replaceChildren(h("p", { className: "faint" }, "No message is ready."));
  };
  return [
    h("h2", {}, "Messages"),
    h("p", { className: "faint" }, "Takes messages from the head and puts them back, and consumers see them as redelivered. The log's page looks without taking."),
    h("div", { className: "bar" }, h("label", {}, "How many", number), h("button", { className: "act", type: "button", onclick: () => act(box, look, "Put back.") }, "Look")),
    messages,
  ];
}

function makeActions(vhost, name, where, box) {
  const purge = async () => {
    if (await confirmed(`Drop all messages of ${name} that are ready?`, "Purge")) await act(box, () => remove(`${where}/contents`), "Purged.");
  };
  const drop = async () => {
    if (await confirmed(`Delete the queue ${name} with all of its messages?`, "Delete")) {
      await act(box, async () => (await remove(where), (location.hash = "#/queues")), "Deleted.");
    }
  };
  const destination = h("input", { placeholder: "empty: where they died", spellcheck: false });
  const move = () => {
    const wanted = { vhost, source: name, destination: destination.value || undefined };
    return act(box, async () => {
      const { moved, left, reasons } = await post("api/lmq/move", wanted);
      return left ? told(`Moved ${count(moved)}; ${count(left)} stay: ${reasons.join(", ")}.`, true) : told(`Moved ${count(moved)}.`);
    });
  };
  const body = h("textarea", { rows: 2, placeholder: "a message" });
  const send = () => {
    const sent = { properties: {}, routing_key: name, payload: body.value, payload_encoding: "string" };
    return act(box, () => post(`api/exchanges/${path(vhost, "amq.default")}/publish`, sent), "Published.");
  };
  return h(
    "div",
    { className: "bar" },
    h("label", { className: "grow" }, "Publish to this queue", body),
    h("button", { className: "act", type: "button", onclick: send }, "Publish"),
    h("label", {}, "Move its messages to", destination),
    h("button", { className: "act", type: "button", onclick: move }, "Move"),
    h("button", { className: "act danger", type: "button", onclick: purge }, "Purge"),
    h("button", { className: "act danger", type: "button", onclick: drop }, "Delete"),
  );
}

async function showQueue(main, signal, vhost, name) {
  const where = `api/queues/${path(vhost, name)}`;
  const box = h("div");
  const figures = h("div");
  const bindings = h("div");
  main.append(figures, box, makeActions(vhost, name, where, box), bindings, ...makeBrowser(where, box));
  const seen = [];
  const load = async () => {
    const queue = await get(where, {}, signal);
    const stats = queue.message_stats;
    seen.push({ depth: queue.messages, given: stats.publish_details.rate, left: stats.ack_details.rate });
    if (seen.length > KEPT) seen.shift();
    figures.replaceChildren(
      h(
        "div",
        { className: "cards small" },
        card("Ready", count(queue.messages_ready)),
        card("Unacknowledged", count(queue.messages_unacknowledged)),
        card("Consumers", count(queue.consumers)),
        card("In", rate(stats.publish_details.rate), "/s"),
        card("Out", rate(stats.ack_details.rate), "/s"),
        card("Oldest waits", age(queue.lmq?.oldest_at_ms) || "–"),
      ),
      seen.length > 1 && h(
        "div",
        { className: "cards" },
        tall(seen.map((one) => one.depth), "Depth since this page opened", count),
        tall(seen.map((one) => one.given), "In /s", rate),
        tall(seen.map((one) => one.left), "Out /s", rate),
      ),
      h("h2", {}, "Queue"),
      facts([
        ["Virtual host", queue.vhost],
        ["Type", queue.type],
        ["Durable", yes(queue.durable)],
        ["Arguments", Object.keys(queue.arguments).length ? h("code", { className: "mono" }, JSON.stringify(queue.arguments)) : ""],
        ["Policy", queue.policy],
        ["Messages that ever came", count(stats.publish)],
        ["Bytes of those that are there, about", bytes(queue.message_bytes)],
        ["Newest message", moment(queue.lmq?.newest_at_ms)],
        ["In the log", queue.lmq && logLink(queue.lmq.light_queue, undefined, "its messages, from any offset or moment")],
        ["Kept offsets", queue.lmq && `${count(queue.lmq.first_offset)} to ${count(queue.lmq.next_offset)}`],
      ]),
    );
  };
  await load();
  bindings.replaceChildren(h("h2", {}, "Bindings"), await showBindings(`${where}/bindings`, signal));
  const timer = setInterval(() => document.hidden || load().catch((error) => signal.aborted || box.replaceChildren(told(error.message, true))), 2_000);
  signal.addEventListener("abort", () => clearInterval(timer));
}

export async function showBindings(where, signal) {
  const found = await get(where, {}, signal);
  return table(
    found.length ? `${count(found.length)} bindings` : "no binding",
    [
      { title: "From exchange", read: (binding) => (binding.source ? h("a", { href: `#/exchanges/${path(binding.vhost, binding.source)}` }, binding.source) : "(default)") },
      { title: "Key", read: (binding) => binding.routing_key },
      { title: "To", read: (binding) => (binding.destination_type === "queue" ? queueLink(binding.vhost, binding.destination) : binding.destination) },
      { title: "Arguments", read: (binding) => (Object.keys(binding.arguments).length ? h("code", { className: "mono" }, JSON.stringify(binding.arguments)) : "") },
    ],
    found.slice(0, 1_000),
  );
}

export const queues = {
  title: ([, name]) => (name === undefined ? "Queues" : `Queue ${name}`),
  show: (main, { parts: [vhost, name], signal }) => (name === undefined ? listQueues(main, signal) : showQueue(main, signal, vhost, name)),
};
