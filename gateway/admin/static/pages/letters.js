// Dead letters: where they lie, why they died, and sending them back.

import { get, path, post, unlessLeft } from "../api.js";
import { cut, messageLink } from "../browser.js";
import { confirmed, h, told } from "../dom.js";
import { age, count, moment, plural } from "../format.js";
import { List, table } from "../list.js";
import { logLink } from "./log.js";
import { queueLink } from "./queues.js";

const SHOWN = 20;

const where = (one) => h("a", { href: `#/letters/${one.door === "amqp" ? path(one.vhost, one.name) : path("/", one.name, one.door)}` }, one.name);

const COLUMNS = [
  { title: "Queue", sort: "name", read: where },
  { title: "Virtual host", sort: "vhost", read: (one) => one.vhost },
  { title: "Door", isBrief: true, sort: "door", read: (one) => one.door },
  { title: "Letters", isNumber: true, sort: "messages", read: (one) => count(one.messages) },
  { title: "Oldest", isNumber: true, sort: "oldest_at_ms", read: (one) => age(one.oldest_at_ms) },
  { title: "Come from", read: (one) => one.from.join(", ") + (one.from_count > one.from.length ? `, and ${count(one.from_count - one.from.length)} more` : "") },
];

// RabbitMQ's header: the newest death first.
const death = (letter) => letter.properties.headers?.["x-death"]?.[0] ?? {};

const LETTERS = [
  { title: "Died in", read: (one) => death(one).queue ?? "" },
  { title: "Why", read: (one) => ({ rejected: "rejected", expired: "expired", maxlen: "too many in the queue", delivery_limit: "delivered too often" })[death(one).reason] ?? death(one).reason ?? "" },
  { title: "Times", isNumber: true, read: (one) => count(death(one).count) },
  { title: "When", read: (one) => moment(death(one).time && death(one).time * 1_000) },
  { title: "Key", read: (one) => one.routing_key },
  { title: "Body", read: (one) => h("span", { className: "mono" }, one.payload.length > 160 ? `${one.payload.slice(0, 160)}…` : one.payload) },
];

// RocketMQ's, which say where they come from in their properties.
const GROUPS_LETTERS = [
  { title: "Message", read: (one) => messageLink(one.id) },
  { title: "Died in", read: (one) => one.properties.RETRY_TOPIC ?? one.topic },
  { title: "When", read: (one) => moment(one.stored_at_ms) },
  { title: "Tags", read: (one) => one.properties.TAGS ?? "" },
  { title: "Keys", read: (one) => one.properties.KEYS ?? "" },
  { title: "Body", read: (one) => h("span", { className: "mono" }, cut(one.body)) },
];

// What differs between the doors: where letters go by themselves, what they may be sent to, how they are counted and
// looked at. `count` gives how many wait, since when, and a link.
function ofAmqp(vhost, name, signal) {
  const api = `api/queues/${path(vhost, name)}`;
  return {
    asked: { vhost, source: name },
    home: "the queues they died in",
    field: "To the queue",
    empty: "empty: where each died first",
    note: "Looking puts letters back as redelivered.",
    columns: LETTERS,
    count: async () => {
      const queue = await get(api, {}, signal);
      return { many: queue.messages_ready, since: queue.lmq.oldest_at_ms, link: queueLink(vhost, name) };
    },
    look: () => post(`${api}/get`, { count: SHOWN, ackmode: "ack_requeue_true", encoding: "auto", truncate: 4_096 }),
  };
}

function ofRocketmq(name, signal) {
  let first = 0;
  const queue = `${name}/0`;
  return {
    isFree: true, // to look changes nothing
    asked: { door: "rocketmq", source: name },
    home: `the group ${name.replace("%DLQ%", "")}`,
    field: "To the topic",
    empty: "empty: to their group alone",
    note: "Sent letters stay in the log, and are no longer counted here.",
    columns: GROUPS_LETTERS,
    count: async () => {
      const found = (await get("api/lmq/dead-letters", { name }, signal)).find((one) => one.name === name && one.door === "rocketmq");
      first = found?.next_offset ?? 0;
      return { many: found?.messages ?? 0, since: found?.oldest_at_ms, link: found ? logLink(queue, undefined, name) : name };
    },
    look: async () => (await get("api/lmq/messages", { queue, offset: first, count: SHOWN }, signal)).items,
  };
}

async function showLetters(main, signal, name, of) {
  const box = h("div");
  const letters = h("div");
  const figures = h("p", {});
  const destination = h("input", { placeholder: of.empty, spellcheck: false });
  const many = h("input", { type: "number", min: 1, max: 10_000, value: 1_000 });
  const load = async () => {
    const { many: waiting, since, link } = await of.count();
    figures.replaceChildren(`${plural(waiting, "letter")} in `, link, since ? `; the oldest has been there for ${age(since)}.` : ".");
  };
  const look = async () => {
    try {
      const found = await of.look();
      letters.replaceChildren(table(found.length ? `The first ${count(found.length)}` : "No letter is there.", of.columns, found));
    } catch (error) {
      letters.replaceChildren(told(error.message, true));
    }
  };
  const sendBack = async () => {
    const to = destination.value || of.home;
    if (!(await confirmed(`Send up to ${count(Number(many.value))} letters of ${name} to ${to}?`, "Send"))) return;
    try {
      const { moved, left, reasons } = await post("api/lmq/move", { ...of.asked, destination: destination.value || undefined, count: Number(many.value) });
      box.replaceChildren(told(left ? `Sent ${count(moved)}; ${count(left)} stay: ${reasons.join(", ")}.` : `Sent ${count(moved)}.`, left > 0));
    } catch (error) {
      box.replaceChildren(told(error.message, true));
    }
    await unlessLeft(load());
  };
  main.append(
    figures,
    h(
      "div",
      { className: "bar" },
      h("button", { className: "act", type: "button", onclick: look }, "Look at the first"),
      h("label", {}, "At most", many),
      h("label", { className: "grow" }, of.field, destination),
      h("button", { className: "act", type: "button", onclick: sendBack }, "Send back"),
    ),
    h("p", { className: "faint" }, `A letter leaves only after it is stored at its destination, so none is lost; after a failure one may be in both places. ${of.note}`),
    box,
    letters,
  );
  await load();
  if (of.isFree) await look();
}

export const letters = {
  title: ([, name]) => (name === undefined ? "Dead letters" : `Dead letters in ${name}`),
  show(main, { parts: [vhost, name, door], signal }) {
    if (name !== undefined) return showLetters(main, signal, name, door === "rocketmq" ? ofRocketmq(name, signal) : ofAmqp(vhost, name, signal));
    main.append(h("p", { className: "faint" }, "Queues that receive dead letters (messages that were rejected, expired, were over a limit or were delivered too often), and the dead-letter topics of RocketMQ's groups."));
    return void new List(main, signal, { from: "api/lmq/dead-letters", columns: COLUMNS, empty: "No queue sends its dead letters anywhere, and no group of RocketMQ has one." });
  },
};
