// AMQP's queues, and one of them.

import { keepOn } from "../again.js";
import { get, path, post, remove } from "../api.js";
import { makeBrowser } from "../browser.js";
import { mayAskAll } from "../caller.js";
import { act, card, confirmed, facts, h, renew, told } from "../dom.js";
import { age, bytes, count, exactMoment, moment, momentOf, plural, prefetch, rate, yes } from "../format.js";
import { List, table } from "../list.js";
import { plot, tall } from "../plot.js";
import { logLink } from "./log.js";

const KEPT = 900; // looks that the page of one queue draws: half an hour
const MOVED = 10_000; // messages at most that one click moves, as many as the gateway takes
const REPLAYED = 1_000; // messages at most that one click publishes again, as many as the gateway does unasked
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

// AMQP calls connections by their ends; what clients call themselves is on the page.
export const connectionLink = (name) => h("a", { href: `#/connections/${path(name)}` }, name);

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
  { title: "Out /s", isNumber: true, read: (queue) => rate(queue.message_stats.ack_details?.rate) },
  { title: "Redelivered /s", isNumber: true, sort: "message_stats.redeliver_details.rate", read: (queue) => rate(queue.message_stats.redeliver_details?.rate) },
  { title: "Oldest", isNumber: true, read: (queue) => age(queue.lmq.oldest_at_ms) },
  { title: "Depth", read: (queue) => plot(noteDepth(queue), `depth of ${queue.name}`, "spark") },
  { title: "Policy", read: (queue) => queue.policy ?? "" },
];

function listQueues(main, signal) {
  main.append(h("p", { className: "faint" }, "A queue is an index into the log: a message in a thousand queues is stored once."));
  new List(main, signal, { from: "api/queues", columns: COLUMNS, empty: "No AMQP queue is declared." });
}

// Messages of higher priorities are in light queues of their own.
// Source: docs/storage-format.md, "Names of light queues".
function levelLinks(lightQueue, most) {
  if (!most || lightQueue.includes("|z")) return "";
  const level = (number) => logLink(number ? lightQueue.replace("%LMQ%amqp%", `%LMQ%amqp%|y${number}%`) : lightQueue, undefined, `${number}`);
  return h("p", {}, "Shown are those of priority 0. Of each priority: ", Array.from({ length: most + 1 }, (_, number) => [level(number), " "]));
}

function makeReplay(vhost, name, box) {
  const ask = async (wanted, said) => {
    if (!(await confirmed(`Publish to ${name} again what came to it ${said}? Its consumers get it once more.`, "Replay"))) return;
    await act(box, async () => {
      const { replayed, left, next_offset: next } = await post("api/lmq/replay", { vhost, source: name, ...wanted });
      if (!replayed && !left) return told(`Nothing came ${said} that the log still has: nothing was published again.`);
      const isMore = replayed + left >= REPLAYED;
      if (isMore) offset.value = next; // a moment would have what was published just now, too
      return told(`Published ${plural(replayed, "message")} again, up to offset ${count(next)}.${left ? ` ${count(left)} of other users stay.` : ""}${isMore ? ` There may be more: go on from offset ${count(next)}.` : ""}`, left > 0);
    });
  };
  const offset = h("input", { type: "number", min: 0, required: true });
  const at = h("input", { type: "datetime-local", step: 1, required: true });
  const form = (field, label, verb, submit) => h("form", { className: "bar", onsubmit: (event) => (event.preventDefault(), submit()) }, h("label", {}, label, field), h("button", { className: "act" }, verb));
  return [
    h("h2", {}, "Replay"),
    h("p", { className: "faint" }, "Publishes what the log still has once more, a thousand messages at a time; what is there stays."),
    h(
      "div",
      { className: "bar" },
      form(offset, "From offset", "Replay from the offset", () => ask({ offset: Number(offset.value) }, `from offset ${count(Number(offset.value))} on`)),
      form(at, "From moment", "Replay from the moment", () => ask({ at_ms: momentOf(at.value) }, `from ${exactMoment(momentOf(at.value))} on`)),
    ),
  ];
}

const CONSUMERS = [
  { title: "Consumer", read: (one) => one.consumer_tag },
  { title: "Client", read: (one) => one.lmq.client },
  { title: "Connection", read: (one) => connectionLink(one.channel_details.connection_name) },
  { title: "User", read: (one) => one.channel_details.user },
  { title: "Prefetch", isNumber: true, read: (one) => prefetch(one.prefetch_count) },
  { title: "Acknowledges", read: (one) => yes(one.ack_required) },
  { title: "Active", read: (one) => yes(one.active) },
];

function showConsumers(queue) {
  const found = queue.consumer_details;
  if (!found.length) return h("p", { className: queue.messages_ready ? "bad" : "" }, queue.messages_ready ? "Nobody consumes: what comes stays." : "Nobody consumes.");
  return table(found.length < queue.consumers ? `The first ${count(found.length)} of ${count(queue.consumers)}` : plural(found.length, "consumer"), CONSUMERS, found);
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
  const move = async () => {
    const wanted = { vhost, source: name, destination: destination.value || undefined, count: MOVED };
    if (!(await confirmed(`Move up to ${count(MOVED)} messages of ${name} to ${wanted.destination ? `the queue ${wanted.destination}` : "the queues they died in"}?`, "Move"))) return;
    await act(box, async () => {
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
  const [box, figures, bindings, messages, trouble] = Array.from({ length: 5 }, () => h("div"));
  main.append(trouble, figures);
  const seen = [];
  const load = async () => {
    const queue = await get(where, {}, signal);
    const stats = queue.message_stats;
    seen.push({ depth: queue.messages, given: stats.publish_details.rate, left: stats.ack_details?.rate ?? null });
    if (seen.length > KEPT) seen.shift();
    renew(
      figures,
      h(
        "div",
        { className: "cards small" },
        card("Ready", count(queue.messages_ready)),
        card("Unacknowledged", count(queue.messages_unacknowledged)),
        card("Consumers", count(queue.consumers)),
        card("In", rate(stats.publish_details.rate), "/s"),
        card("Out", rate(stats.ack_details?.rate), "/s"),
        card("Redelivered", rate(stats.redeliver_details?.rate), "/s"),
        card("Oldest waits", age(queue.lmq.oldest_at_ms) || "–"),
      ),
      seen.length > 1 && h(
        "div",
        { className: "cards tall" },
        tall(seen.map((one) => one.depth), "Depth since this page opened", count),
        tall(seen.map((one) => one.given), "In /s", rate),
        tall(seen.map((one) => one.left), "Out /s", rate),
      ),
      h("h2", {}, "Consumers"),
      showConsumers(queue),
      h("h2", {}, "Queue"),
      facts([
        ["Virtual host", queue.vhost],
        ["Type", queue.type],
        ["Durable", yes(queue.durable)],
        ["Arguments", Object.keys(queue.arguments).length ? h("code", { className: "mono" }, JSON.stringify(queue.arguments)) : ""],
        ["Policy", queue.policy],
        ["Messages that ever came", count(stats.publish)],
        ["Bytes of those that are there, about", bytes(queue.message_bytes)],
        ["Newest message", moment(queue.lmq.newest_at_ms)],
        ["In the log", logLink(queue.lmq.light_queue, undefined, "its messages, from any offset or moment")],
        ["Kept offsets", `${count(queue.lmq.first_offset)} to ${count(queue.lmq.next_offset)}`],
      ]),
    );
    return queue;
  };
  const queue = await load();
  main.append(h("h2", {}, "Change it"), box, makeActions(vhost, name, where, box), ...makeReplay(vhost, name, box), bindings, messages);
  bindings.replaceChildren(h("h2", {}, "Bindings"), await showBindings(`${where}/bindings`, signal));
  messages.replaceChildren(h("h2", {}, "Messages"));
  if (mayAskAll()) {
    const browser = makeBrowser(queue.lmq.light_queue, signal);
    messages.append(levelLinks(queue.lmq.light_queue, queue.arguments["x-max-priority"]), browser.node);
    browser.look({});
  } else {
    messages.append(h("p", { className: "faint" }, "They are shown to administrators here."));
  }
  keepOn(load, trouble, signal, 2_000);
}

export async function showBindings(where, signal) {
  const found = await get(where, {}, signal);
  return table(
    found.length ? plural(found.length, "binding") : "no binding",
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
