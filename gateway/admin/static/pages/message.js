// One message: what it carries, and where it went.

import { get, path } from "../api.js";
import { showBody } from "../body.js";
import { addressLink, messageLink } from "../browser.js";
import { facts, h } from "../dom.js";
import { count, lightName, moment, plural, vhostOf, yes } from "../format.js";
import { table } from "../list.js";
import { logLink } from "./log.js";

function when({ from_ms: from, until_ms: until }) {
  if (from && moment(from) === moment(until)) return moment(from);
  if (from && until) return `${moment(from)} to ${moment(until)}`;
  return from ? `after ${moment(from)}` : until ? `before ${moment(until)}` : "";
}

const READERS = [
  { title: "Reader", read: (one) => (one.kind === "session" ? h("a", { href: `#/sessions/${path(one.reader)}` }, one.reader) : one.reader) },
  { title: "Kind", read: (one) => one.kind },
  { title: "How far", read: (one) => h("span", { className: one.stage === "done" ? "" : "warn" }, one.outcome ?? one.stage) },
  { title: "When", read: when },
  { title: "By", read: (one) => one.by },
  { title: "Dead letter", read: (one) => (one.letter ? messageLink(one.letter.id) : "") },
  { title: "Became", read: (one) => (one.became ? messageLink(one.became) : "") },
  { title: "Note", read: (one) => one.note },
];

const FIELDS = [
  { title: "Kind", isBrief: true, read: (one) => one.kind },
  { title: "Name", read: (one) => one.name },
  { title: "Value", read: (one) => h("span", { className: "mono" }, one.value) },
];

function showQueue(queue) {
  const stages = Object.entries(queue.stages).map(([stage, number]) => `${count(number)} ${stage}`).join(", ");
  const called = lightName(queue.light_queue, queue);
  const name = queue.offset === null ? called : logLink(queue.light_queue, queue.offset, called);
  return h(
    "section",
    {},
    h("h3", {}, name, h("span", { className: "faint" }, queue.offset === null ? " (not found there)" : ` at offset ${count(queue.offset)}`)),
    queue.readers.length ? table(stages, READERS.filter(({ read }) => queue.readers.some(read)), queue.readers) : h("p", { className: "faint" }, queue.is_kept ? "No reader is known." : "The queue no longer has it."),
  );
}

async function showMessage(main, signal, id) {
  const found = await get(`api/lmq/messages/${path(id)}`, {}, signal);
  main.append(
    facts([
      [typeof found.exchange === "string" ? "Exchange, key" : "Topic", addressLink(found, found.queues.map((queue) => vhostOf(queue.light_queue)).find(Boolean))],
      ["Stored", moment(found.stored_at_ms)],
      ["Published", moment(found.published_at_ms)],
      ["Expires", moment(found.expires_at_ms)],
      ["Door", found.door],
      ["Publisher", [found.client, found.user && `user ${found.user}`].filter(Boolean).join(", ")],
      ["QoS", found.door === "mqtt" ? found.qos : ""],
      ["Dead letter of", found.letter_of === null ? "" : messageLink(found.letter_of)],
      ["Retained", found.retain ? yes(true) : ""],
      ["Body", `${plural(found.body_bytes, "byte")}${found.is_cut ? ", the first of them shown" : ""}`],
    ]),
    ...showBody(found),
  );
  if (found.fields.length) main.append(h("h2", {}, "Properties"), table("", FIELDS, found.fields, "Properties"));
  main.append(
    h("h2", {}, `Where it went: ${plural(found.queue_count, "queue")}`),
    h("p", { className: "faint" }, "Times are exact to a few seconds. Where it is not known how a reader was done with it, the possible endings are listed."),
    ...found.queues.map(showQueue),
  );
  if (found.queue_count > found.queues.length) main.append(h("p", {}, `The first ${count(found.queues.length)} are shown.`));
}

export const message = {
  title: ([id]) => (id === undefined ? "A message" : `Message ${id}`),
  show(main, { parts: [id], signal }) {
    const wanted = h("input", { value: id ?? "", placeholder: "1208997, or an offset message id", required: true, spellcheck: false });
    const submit = (event) => (event.preventDefault(), (location.hash = `#/message/${path(wanted.value.trim())}`));
    main.append(h("form", { className: "bar", onsubmit: submit }, h("label", { className: "grow" }, "Identifier", wanted), h("button", { className: "act" }, "Show")));
    if (id === undefined) main.append(h("p", { className: "faint" }, "Pages of queues show their messages with identifiers: ", h("a", { href: "#/log" }, "the log's queues"), " are those of all doors."));
    return id === undefined ? undefined : showMessage(main, signal, id);
  },
};
