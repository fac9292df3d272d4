// Dead letters: where they lie, why they died, and sending them back.

import { get, path, post, unlessLeft } from "../api.js";
import { confirmed, h, told } from "../dom.js";
import { age, count, moment, plural } from "../format.js";
import { List, table } from "../list.js";
import { logLink } from "./log.js";
import { queueLink } from "./queues.js";

const SHOWN = 20;

const where = (one) => (one.door === "amqp" ? h("a", { href: `#/letters/${path(one.vhost, one.name)}` }, one.name) : logLink(one.light_queue, undefined, one.name));

const COLUMNS = [
  { title: "Queue", sort: "name", read: where },
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

async function showLetters(main, signal, vhost, name) {
  const api = `api/queues/${path(vhost, name)}`;
  const box = h("div");
  const letters = h("div");
  const figures = h("p", {});
  const destination = h("input", { placeholder: "empty: where each died first", spellcheck: false });
  const many = h("input", { type: "number", min: 1, max: 10_000, value: 1_000 });
  const load = async () => {
    const queue = await get(api, {}, signal);
    figures.replaceChildren(`${plural(queue.messages_ready, "letter")} in `, queueLink(vhost, name), queue.lmq.oldest_at_ms ? `; the oldest is there for ${age(queue.lmq.oldest_at_ms)}.` : ".");
  };
  const look = async () => {
    try {
      const found = await post(`${api}/get`, { count: SHOWN, ackmode: "ack_requeue_true", encoding: "auto", truncate: 4_096 });
      letters.replaceChildren(table(found.length ? `The first ${count(found.length)}` : "No letter is there.", LETTERS, found));
    } catch (error) {
      letters.replaceChildren(told(error.message, true));
    }
  };
  const sendBack = async () => {
    const to = destination.value || "the queues they died in";
    if (!(await confirmed(`Send up to ${count(Number(many.value))} letters of ${name} to ${to}?`, "Send"))) return;
    try {
      const { moved, left, reasons } = await post("api/lmq/move", { vhost, source: name, destination: destination.value || undefined, count: Number(many.value) });
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
      h("label", { className: "grow" }, "To the queue", destination),
      h("button", { className: "act", type: "button", onclick: sendBack }, "Send back"),
    ),
    h("p", { className: "faint" }, "Each is only done with here when it is stored there: one that fails is in both queues, none in neither. Looking puts letters back as redelivered."),
    box,
    letters,
  );
  await load();
}

export const letters = {
  title: ([, name]) => (name === undefined ? "Dead letters" : `Dead letters in ${name}`),
  show(main, { parts: [vhost, name], signal }) {
    if (name !== undefined) return showLetters(main, signal, vhost, name);
    main.append(h("p", { className: "faint" }, "Queues to which others send what is rejected, expires, is too much or was delivered too often."));
    return void new List(main, signal, { from: "api/lmq/dead-letters", columns: COLUMNS });
  },
};
