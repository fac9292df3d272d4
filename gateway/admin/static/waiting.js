// What waits most, at any door: the first thing that is looked for when something grows.

import { again } from "./again.js";
import { get, path } from "./api.js";
import { h, renew } from "./dom.js";
import { age, calledName, count, rate } from "./format.js";
import { table } from "./list.js";
import { groupLink } from "./pages/groups.js";

const AGAIN_MS = 5_000;
const SHARED = "$share/"; // what waits for these is told of their groups
const SHOWN = 8;

const link = (...parts) => h("a", { href: `#/${path(...parts.slice(0, -1))}` }, parts.at(-1));

const KINDS = [
  {
    from: "api/queues",
    sort: "messages",
    tell: (one) => ({
      name: link("queues", one.vhost, one.name, one.name),
      kind: one.vhost === "/" ? "AMQP queue" : `AMQP queue in ${one.vhost}`,
      waiting: one.messages,
      change: one.messages_details?.rate,
      readers: count(one.consumers),
      oldest: age(one.lmq.oldest_at_ms),
    }),
  },
  {
    from: "api/lmq/subscriptions",
    sort: "waiting",
    count: 100, // members of groups are passed over
    tell: (one) => ({ name: link("sessions", one.client, one.client), kind: `MQTT session, filter ${one.filter}`, waiting: one.filter.startsWith(SHARED) ? 0 : one.waiting, readers: "" }),
  },
  {
    from: "api/lmq/groups",
    sort: "lag",
    tell: (one) => ({ name: groupLink(one), kind: one.door === "mqtt" ? `MQTT group, filter ${one.queue}` : `RocketMQ group, queue ${calledName(one.queue)}`, waiting: one.lag, readers: count(one.members) }),
  },
];

const COLUMNS = [
  { title: "Who", isName: true, read: (one) => one.name },
  { title: "What", read: (one) => one.kind },
  { title: "Waiting", isNumber: true, read: (one) => count(one.waiting) },
  { title: "Change /s", isNumber: true, read: (one) => (one.change > 0 ? h("span", { className: "warn" }, `+${rate(one.change)}`) : one.change < 0 ? `−${rate(-one.change)}` : one.change === 0 ? "0" : "") },
  { title: "Oldest", isNumber: true, read: (one) => one.oldest ?? "" },
  { title: "Consumers", isNumber: true, read: (one) => one.readers },
];

async function find({ from, sort, count: many = SHOWN, tell }, signal) {
  const found = await get(from, { page: 1, page_size: many, sort, sort_reverse: true }, signal);
  return found.items.map(tell);
}

// A table that is made anew every few seconds. A door that does not answer is left out: the page says so elsewhere.
export function showWaiting(signal) {
  const node = h("div", {}, h("p", { className: "faint" }, "looking"));
  const load = async () => {
    const found = await Promise.allSettled(KINDS.map((kind) => find(kind, signal)));
    if (signal.aborted) return;
    const waiting = found.flatMap((one) => one.value ?? []).filter((one) => one.waiting > 0);
    waiting.sort((one, other) => other.waiting - one.waiting);
    renew(node, waiting.length ? table("", COLUMNS, waiting.slice(0, SHOWN), "What waits most") : h("p", { className: "faint" }, found.some((one) => one.value) ? "Nothing waits." : "The gateway does not tell."));
  };
  again(load, h("div"), signal, AGAIN_MS);
  return node;
}
