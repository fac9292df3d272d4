// The files of the log and what keeps them: which queues and sessions have not read for long, and how old each file is.

import { again } from "../again.js";
import { get, path, post } from "../api.js";
import { mayAskAll } from "../caller.js";
import { card, confirmed, h, renew, told } from "../dom.js";
import { age, bytes, calledName, count, moment, plural } from "../format.js";
import { List, table } from "../list.js";
import { logLink } from "./log.js";
import { queueLink } from "./queues.js";

const AGAIN_MS = 10_000;
const SHOWN = 100;

const HOLDERS = [
  { title: "Who", read: (one) => (one.kind === "session" ? h("a", { href: `#/sessions/${path(one.name)}` }, one.name) : queueLink(one.vhost, one.name)) },
  { title: "Kind", read: (one) => one.kind },
  { title: "Virtual host", read: (one) => one.vhost },
  { title: "Oldest waits", isNumber: true, read: (one) => age(one.stored_at_ms) },
  { title: "Stored", read: (one) => moment(one.stored_at_ms) },
  { title: "Waiting", isNumber: true, read: (one) => count(one.waiting) },
  { title: "Light queue, from where on", read: (one) => logLink(one.light_queue, one.offset, `${calledName(one.light_queue, { name: one.queue, vhost: one.vhost })}, offset ${count(one.offset)}`) },
];

export const held = {
  title: () => "Held back",
  show(main, { signal }) {
    const box = h("div");
    const shown = h("div", {}, h("p", { className: "faint" }, "looking"));
    main.append(h("p", { className: "faint" }, "Queues and sessions with the oldest messages that are not consumed yet: the log keeps these past its retention time."), box, shown);
    const load = async () => {
      const found = await get("api/lmq/held", { count: SHOWN }, signal);
      renew(
        shown,
        h(
          "div",
          { className: "cards small" },
          card("Oldest waits", age(found.items[0]?.stored_at_ms) || "–"),
          card("The log has", bytes(found.log_bytes)),
        ),
        table(found.items.length ? `${count(found.items.length)} that wait, the oldest first` : "Nothing waits.", HOLDERS, found.items),
        found.not_looked_at ? h("p", { className: "warn" }, `${count(found.not_looked_at)} more were not looked at.`) : "",
      );
    };
    return again(load, box, signal, AGAIN_MS);
  },
};

const FILES = [
  { title: "File", sort: "name", read: (one) => h("code", { className: "mono" }, one.name) },
  { title: "On disk", isNumber: true, sort: "bytes", read: (one) => bytes(one.bytes) },
  { title: "Written", read: (one) => (one.first_written_at_ms ? `${moment(one.first_written_at_ms)} to ${one.newest ? "now" : moment(one.last_written_at_ms)}` : "") },
  { title: "State", sort: "due", read: (one) => (one.newest ? "is written to" : one.held ? h("span", { className: "warn" }, "past its time, and held") : one.due ? "past its time" : "kept") },
  { title: "Needed entries", isNumber: true, sort: "needed", read: (one) => count(one.needed) },
  { title: "Held for", read: (one) => (one.held_for ?? []).map((holder, i) => [i ? ", " : "", holderLink(holder)]) },
];

function holderLink({ door, name, vhost }) {
  if (door === "amqp" && !name.startsWith("%LMQ%")) return queueLink(vhost, name);
  return `${door} ${calledName(name)}`;
}

// Have what is past its time go now, and say how much went.
function makeRetention(box) {
  const run = async () => {
    if (!(await confirmed("Delete files whose retention time is over or that exceed the size limit? What is still needed stays.", "Delete"))) return;
    try {
      const done = await post("api/lmq/retention");
      box.replaceChildren(told(`${plural(done.segments, "file")} deleted; the log has ${bytes(done.log_bytes)}.`));
    } catch (error) {
      box.replaceChildren(told(error.message, true));
    }
  };
  return h("div", { className: "bar" }, h("button", { className: "act", type: "button", onclick: run }, "Delete expired files"));
}

export const files = {
  title: () => "Log files",
  show(main, { signal }) {
    const box = h("div");
    main.append(
      h("p", { className: "faint" }, "A file is deleted when its retention time is over and nothing in it is needed. ", h("a", { href: "#/held" }, "Held back"), " lists what reads slowest."),
      mayAskAll() ? makeRetention(box) : "",
      box,
    );
    new List(main, signal, { from: "api/lmq/segments", columns: FILES, empty: "The first message makes the first file." });
  },
};
