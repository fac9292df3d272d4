// Where a publish goes: asked of the gateway, drawn as a graph.

import { get } from "../api.js";
import { h, svg, told } from "../dom.js";
import { count, lightName } from "../format.js";

const ROW = 62;
const BOX = { width: 220, height: 42 };
const STEPS = [10, 300, 590]; // left edges of what is given, what matches, and what it leads to

function cut(text, length = 28) {
  return text.length > length ? `${text.slice(0, length - 1)}…` : text;
}

function box(x, y, kind, name, className = "") {
  return svg(
    "g",
    { class: className },
    svg("title", {}, `${kind}: ${name}`),
    svg("rect", { x, y, width: BOX.width, height: BOX.height, rx: 6 }),
    svg("text", { class: "kind", x: x + 9, y: y + 14 }, kind),
    svg("text", { x: x + 9, y: y + 31 }, cut(name)),
  );
}

function line(fromX, fromY, toX, toY) {
  const [x1, y1, y2] = [fromX + BOX.width, fromY + BOX.height / 2, toY + BOX.height / 2];
  const bend = (toX - x1) / 2;
  return svg("path", { d: `M${x1},${y1} C${x1 + bend},${y1} ${toX - bend},${y2} ${toX},${y2}` });
}

// A queue of AMQP says its bindings, which its filters are made of.
function waysOf({ bindings, filters }) {
  return bindings.length ? bindings.map((name) => ["binding", name]) : filters.map((name) => ["filter", name]);
}

// The graph of an answer of /api/explain: each light queue is reached by its filters and bindings.
export function drawRoute(found) {
  const given = found.exchange === undefined ? ["topic", found.topic] : [`${found.kind} exchange ${found.exchange || "(default)"}`, found.routing_key];
  const steps = found.queues.map(waysOf);
  const heights = steps.map((ways) => Math.max(ways.length, 1) * ROW);
  const height = Math.max(heights.reduce((total, one) => total + one, 0), ROW) + 10;
  const graph = svg("svg", { class: "graph", viewBox: `0 0 ${STEPS[2] + BOX.width + 10} ${height}`, role: "img", "aria-label": `where ${given[1]} goes` });
  const middle = (height - BOX.height) / 2;
  let top = 8;
  found.queues.forEach((queue, i) => {
    const queueTop = top + (heights[i] - ROW) / 2;
    steps[i].forEach(([kind, name], j) => {
      const y = top + j * ROW;
      graph.append(line(STEPS[0], middle, STEPS[1], y), line(STEPS[1], y, STEPS[2], queueTop), box(STEPS[1], y, kind, name));
    });
    if (!steps[i].length) graph.append(line(STEPS[0], middle, STEPS[2], queueTop));
    graph.append(box(STEPS[2], queueTop, `${count(queue.readers)} readers, next ${count(queue.max_offset)}`, lightName(queue.name)));
    top += heights[i];
  });
  graph.append(box(STEPS[0], middle, ...given, "given"));
  return graph;
}

// The same in words, for those that do not see the graph.
function sayRoute(found) {
  return h(
    "ul",
    {},
    found.queues.map((queue) => h("li", {}, `${lightName(queue.name)} by ${waysOf(queue).map((way) => way.join(" ")).join(", ") || "its name"}: ${count(queue.readers)} readers`)),
  );
}

function ask(box, question, signal) {
  return get("api/explain", question, signal).then(
    (found) => {
      const number = found.queues.length;
      box.replaceChildren(
        h("p", {}, number ? `Stored once on ${found.parent_topic}; ${count(number)} light ${number === 1 ? "queue has" : "queues have"} an entry of it.` : "No queue gets it."),
        number ? h("div", { className: "scroll", tabIndex: 0, role: "region", ariaLabel: "Drawing of the route" }, drawRoute(found)) : "",
        h("details", {}, h("summary", {}, "In words"), sayRoute(found)),
      );
    },
    (error) => error.name === "AbortError" || box.replaceChildren(told(error.message, true)),
  );
}

export const route = {
  title: () => "Where does it go?",
  show(main, { params, signal }) {
    const found = h("div");
    const topic = h("input", { value: params.get("topic") ?? "", placeholder: "plant/1/temp", required: true });
    const exchange = h("input", { value: params.get("exchange") ?? "", placeholder: "amq.topic; empty for the default one" });
    const key = h("input", { value: params.get("key") ?? "", placeholder: "plant.1.temp" });
    const form = (submit, ...parts) => h("form", { className: "bar", onsubmit: (event) => (event.preventDefault(), submit()) }, parts, h("button", { className: "act" }, "Show"));
    const byTopic = () => ask(found, { topic: topic.value }, signal);
    const byExchange = () => ask(found, { exchange: exchange.value || "", routing_key: key.value }, signal);
    main.append(
      h("p", { className: "faint" }, "Asks the gateway where a message would go now. Nothing is published."),
      h("h2", {}, "An MQTT topic"),
      form(byTopic, h("label", { className: "grow" }, "Topic", topic)),
      h("h2", {}, "A publish to an exchange"),
      form(byExchange, h("label", { className: "grow" }, "Exchange", exchange), h("label", { className: "grow" }, "Routing key", key)),
      found,
    );
    if (params.has("topic")) return byTopic();
    return params.has("exchange") ? byExchange() : undefined;
  },
};
