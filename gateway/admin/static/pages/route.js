// Where a publish goes: asked of the gateway, drawn as a graph.

import { get } from "../api.js";
import { h, renew, svg, told } from "../dom.js";
import { count, duration, lightName, plural } from "../format.js";
import { findReaders } from "../readers.js";
import { logLink } from "./log.js";

const SHOWN = 100; // queues of a topic of RocketMQ
const ROW = 62;
const BOX = { width: 210, height: 42 };
const STEPS = [10, 275, 540, 805]; // left edges of what is given, what matches, what it leads to, and what reads there

function cut(text, length = 26) {
  return text.length > length ? `${text.slice(0, length - 1)}…` : text;
}

function box(x, y, kind, name, className = "") {
  return svg(
    "g",
    { class: className },
    svg("title", {}, `${kind}: ${name}`),
    svg("rect", { x, y, width: BOX.width, height: BOX.height, rx: 6 }),
    svg("text", { class: "kind", x: x + 9, y: y + 14 }, cut(kind, 36)),
    svg("text", { x: x + 9, y: y + 31 }, cut(name)),
  );
}

function line(fromX, fromY, toX, toY, className = "") {
  const [x1, y1, y2] = [fromX + BOX.width, fromY + BOX.height / 2, toY + BOX.height / 2];
  const bend = (toX - x1) / 2;
  return svg("path", { class: className, d: `M${x1},${y1} C${x1 + bend},${y1} ${toX - bend},${y2} ${toX},${y2}` });
}

// A queue of AMQP says its bindings, which its filters are made of; of a chain of exchanges, which are drawn on the
// left, the drawing has room for the last.
function waysOf({ bindings, filters }) {
  return bindings.length ? bindings.map((name) => ["binding", name]) : filters.map((name) => ["filter", name]);
}

// One of MQTT is called as its filter; a name in the log does not tell a long one.
function nameOf(queue) {
  if (queue.filters.length && queue.name.startsWith("%LMQ%mqtt%")) return `filter ${queue.filters[0]}`;
  return /\|[zt]/.test(queue.name) && queue.called ? queue.called : lightName(queue.name);
}

const exchangeOf = (found) => `${found.kind} exchange ${found.exchange || "(default)"}`;

// The user, and what decides whether it may publish this; none where that was not asked.
function rightsOf(found) {
  if (found.is_allowed === null) return [];
  const by = found.verdict.split(" by ").slice(1).join(" by ");
  const className = found.is_allowed ? "" : "refused";
  return [["user", found.user || "(no login)", ""], [found.is_allowed ? "allowed by" : "refused by", by && by !== "this door" ? by : found.verdict, className]];
}

// What is published, and the exchanges that it passes, as boxes from top to bottom: kind, name and class.
function givenOf(found) {
  const said = found.door !== "amqp" ? ["topic", found.topic, "given"] : [exchangeOf(found), found.routing_key || "(no routing key)", "given"];
  const passed = found.exchanges.filter((one) => found.door !== "amqp" || one.name !== found.exchange);
  return [...rightsOf(found), said, ...passed.map((one) => [`${one.kind} exchange`, one.name || "(default)", ""])];
}

const NONE = { named: [], more: 0 };

// Boxes of the readers of a queue: the first by name, and one of how many more there are.
const boxesOf = ({ named, more }) => [...named, ...(more ? [["and", plural(more, "more", "more")]] : [])];

// The graph of an answer of /api/explain/publish: each light queue is reached by its filters and bindings, and leads to
// its readers. A publish that is refused goes nowhere: its ways are broken lines.
export function drawRoute(found, readers = new Map()) {
  const given = givenOf(found);
  const steps = found.queues.map(waysOf);
  const ends = found.queues.map((queue) => boxesOf(readers.get(queue.name) ?? NONE));
  const heights = steps.map((ways, i) => Math.max(ways.length, ends[i].length, 1) * ROW);
  const barred = found.is_allowed === false ? "refused" : "";
  const height = Math.max(heights.reduce((total, one) => total + one, 0), given.length * ROW) + 10;
  const graph = svg("svg", { class: "graph", viewBox: `0 0 ${STEPS.at(-1) + BOX.width + 10} ${height}`, role: "img", "aria-label": `where ${found.topic || found.routing_key} goes` });
  const first = (height - given.length * ROW) / 2 + (ROW - BOX.height) / 2;
  const middle = first + (given.length - 1) * ROW;
  let top = 8;
  found.queues.forEach((queue, i) => {
    const queueTop = top + (heights[i] - ROW) / 2;
    const from = (many) => top + (heights[i] - many * ROW) / 2;
    steps[i].forEach(([kind, whole], j) => {
      const y = from(steps[i].length) + j * ROW;
      const name = whole.slice(whole.lastIndexOf(" > ") + 1).replace(/^> /, "… ");
      graph.append(line(STEPS[0], middle, STEPS[1], y, barred), line(STEPS[1], y, STEPS[2], queueTop, barred), box(STEPS[1], y, kind, name));
    });
    if (!steps[i].length) graph.append(line(STEPS[0], middle, STEPS[2], queueTop, barred));
    ends[i].forEach((one, j) => {
      const y = from(ends[i].length) + j * ROW;
      graph.append(line(STEPS[2], queueTop, STEPS[3], y, barred), box(STEPS[3], y, ...one, "reader"));
    });
    graph.append(box(STEPS[2], queueTop, `${plural(queue.readers, "reader")}, next ${count(queue.max_offset)}`, nameOf(queue)));
    top += heights[i];
  });
  given.forEach((one, i) => {
    const y = first + i * ROW;
    if (i) graph.append(svg("path", { class: barred && i <= 2 ? barred : "", d: `M${STEPS[0] + BOX.width / 2},${y - ROW + BOX.height} V${y}` }));
    graph.append(box(STEPS[0], y, ...one));
  });
  return graph;
}

function sayWays(queue) {
  if (nameOf(queue) === `filter ${queue.filters[0]}` || !queue.name.startsWith("%LMQ%")) return ""; // it is called as what leads to it
  return ` by ${waysOf(queue).map((way) => way.join(" ")).join(", ") || "its name"}`;
}

// Those of MQTT that are away, and groups that share a filter, have places in the queue without reading now.
function sayReaders(queue, readers) {
  const subscribed = queue.name.startsWith("%LMQ%mqtt%") ? `${plural(queue.subscriptions, "subscription")}, ` : "";
  const named = boxesOf(readers.get(queue.name) ?? NONE).map(([kind, name]) => `${kind} ${name}`);
  return `: ${subscribed}${plural(queue.readers, "reader")} now${named.length ? ` (${named.join(", ")})` : ""}`;
}

// The same in words, for those that do not see the graph, with links to each queue's messages.
function sayRoute(found, readers) {
  return h(
    "ul",
    {},
    found.queues.map((queue) => h("li", {}, logLink(queue.name, undefined, nameOf(queue)), `${sayWays(queue)}${sayReaders(queue, readers)}`)),
  );
}

// The route at once, and with the names of its readers when they are known.
function drawn(found, signal) {
  const node = h("div");
  const draw = (readers) =>
    renew(
      node,
      h("div", { className: "scroll", tabIndex: 0, role: "region", ariaLabel: "Drawing of the route" }, drawRoute(found, readers)),
      h("details", { open: node.querySelector("details")?.open ?? true }, h("summary", {}, "In words"), sayRoute(found, readers)),
    );
  draw(new Map());
  findReaders(found.queues, signal).then((readers) => signal.aborted || draw(readers));
  return [node];
}

function ask(box, question, signal) {
  return get("api/explain/publish", question, signal).then(
    (found) => {
      const number = found.queues.length;
      box.replaceChildren(
        found.is_allowed === null ? "" : told(`${found.is_allowed ? "Allowed" : "Refused"}: ${found.verdict}`, !found.is_allowed),
        h("p", {}, number ? `${found.is_allowed === false ? "It would be stored" : "Stored"} once on ${found.parent_topic}; ${plural(number, "light queue has", "light queues have")} an entry of it.` : "No queue gets it."),
        found.waits_ms ? h("p", {}, `It waits ${duration(found.waits_ms)} first.`) : "",
        found.kind === "headers" && !question.header?.length ? h("p", { className: "warn" }, "An exchange of the type headers looks at headers: give those of the message.") : "",
        found.notes.map((note) => h("p", { className: "faint" }, note)),
        ...(number ? drawn(found, signal) : []),
      );
    },
    (error) => error.name === "AbortError" || box.replaceChildren(told(error.message, true)),
  );
}

// The queues of a topic of RocketMQ, in the form of an answer about a publish: its producers choose one for each message.
async function askTopic(box, topic, signal) {
  try {
    const name = `^${topic.replace(/[^\w-]/g, "\\$&")}/[0-9]+$`;
    const { items, filtered_count: number } = await get("api/lmq/queues", { name, use_regex: true, page: 1, page_size: SHOWN, sort: "name" }, signal);
    const queues = items.filter((one) => one.door === "rocketmq").map((one) => ({ name: one.light_queue, called: "", filters: [], bindings: [], readers: one.readers, max_offset: one.next_offset }));
    if (!queues.length) return box.replaceChildren(h("p", {}, "There is no topic of RocketMQ of that name yet; the first message makes it."));
    return box.replaceChildren(
      h("p", {}, number === 1 ? "Stored once, in its queue; each group of consumers reads it." : `Stored once, in one of ${count(number)} queues, which its producer chooses; each group of consumers reads all of them.`),
      number > queues.length ? h("p", {}, `The first ${count(queues.length)} are shown.`) : "",
      ...drawn({ door: "rocketmq", topic, user: null, is_allowed: null, exchanges: [], queues }, signal),
      h("p", { className: "faint" }, "With the property LMQ_TOPIC a message of RocketMQ goes to that MQTT topic instead."),
    );
  } catch (error) {
    return error.name === "AbortError" || box.replaceChildren(told(error.message, true));
  }
}

export const route = {
  title: () => "Where does it go?",
  show(main, { params, signal }) {
    const found = h("div");
    const field = (name, placeholder, isRequired = false) => h("input", { value: params.get(name) ?? "", placeholder, required: isRequired, spellcheck: false });
    const topic = field("topic", "plant/1/temp", true);
    const exchange = field("exchange", "amq.topic; empty for the default one");
    const key = field("key", "plant.1.temp");
    const vhost = field("vhost", "/");
    const headers = h("textarea", { rows: 1, value: params.getAll("header").join("\n"), placeholder: "kind=job; one a line", spellcheck: false });
    const header = () => headers.value.split("\n").map((one) => one.trim()).filter(Boolean);
    const rocketmq = field("rocketmq", "Orders", true);
    const users = [field("user", "empty: not asked"), field("user", "empty: not asked")];
    const form = (submit, ...parts) => h("form", { className: "bar", onsubmit: (event) => (event.preventDefault(), submit()) }, parts, h("button", { className: "act" }, "Show"));
    const byTopic = () => ask(found, { door: "mqtt", topic: topic.value, user: users[0].value || undefined }, signal);
    const byRocketmq = () => askTopic(found, rocketmq.value.trim(), signal);
    const byExchange = () => ask(found, { exchange: exchange.value, routing_key: key.value, header: header(), vhost: vhost.value || undefined, user: users[1].value || undefined }, signal);
    main.append(
      h("p", { className: "faint" }, "Asks the gateway where a message would go now, and whether a user may publish it. Nothing is published."),
      h("h2", {}, "An MQTT topic"),
      form(byTopic, h("label", { className: "grow" }, "Topic", topic), h("label", {}, "Published by", users[0])),
      h("h2", {}, "A publish to an exchange"),
      form(byExchange, h("label", { className: "grow" }, "Exchange", exchange), h("label", { className: "grow" }, "Routing key", key), h("label", { className: "grow" }, "Headers", headers), h("label", {}, "Virtual host", vhost), h("label", {}, "Published by", users[1])),
      h("h2", {}, "A RocketMQ topic"),
      form(byRocketmq, h("label", { className: "grow" }, "Topic", rocketmq)),
      found,
    );
    if (params.has("rocketmq")) return byRocketmq();
    if (params.has("topic")) return byTopic();
    return params.has("exchange") ? byExchange() : undefined;
  },
};
