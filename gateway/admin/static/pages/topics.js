// The tree of topics that were published to lately, with rates.

import { again } from "../again.js";
import { get } from "../api.js";
import { h, renew } from "../dom.js";
import { bytes, count, duration, moment, plural, rate } from "../format.js";

const AGAIN_MS = 5_000;
const SMALL = 60; // topics that are shown whole

// Put a topic into the tree, and add to what is known of each level above it.
function plant(root, topic) {
  let node = root;
  for (const level of topic.topic.split("/")) {
    node = node.below.get(level) ?? node.below.set(level, { below: new Map(), count: 0, bytes: 0 }).get(level);
    node.count += topic.count;
    node.bytes += topic.body_bytes;
  }
  node.topic = topic;
}

// Levels are open at first where they are few, and below the second one only where there are few topics in all.
function isOpen(node, path, open, isSmall) {
  return open.get(path) ?? (node.below.size < 40 && (isSmall || path.split("/").length < 2));
}

// Levels in which there is only one other stand in a line with it.
function draw(node, level, path, span, open, isSmall) {
  if (node.below.size === 1 && !node.topic) {
    const [[next, inner]] = node.below;
    return draw(inner, `${level}/${next}`, `${path}/${next}`, span, open, isSmall);
  }
  const said = ` ${rate((node.count / span) * 1_000)}/s, ${plural(node.count, "message")}, ${bytes(node.bytes)}`;
  const name = node.topic ? h("a", { href: `#/route?topic=${encodeURIComponent(node.topic.topic)}` }, level || "(empty)") : level || "(empty)";
  const last = node.topic ? `, last ${moment(node.topic.last_at_ms)}` : "";
  const label = [name, h("span", { className: "faint" }, said + last)];
  if (!node.below.size) return h("li", {}, label);
  const below = h("ul", {}, [...node.below].map(([next, inner]) => draw(inner, next, `${path}/${next}`, span, open, isSmall)));
  const details = h("details", { open: isOpen(node, path, open, isSmall) }, h("summary", {}, label), below);
  details.addEventListener("toggle", () => open.set(path, details.open));
  return h("li", {}, details);
}

export const topics = {
  title: () => "Topics",
  show(main, { signal }) {
    const said = h("p", { className: "faint" });
    const box = h("div");
    const tree = h("div", { className: "tree card", hidden: true });
    const open = new Map();
    main.append(said, box, tree);
    const load = async () => {
      const found = await get("api/lmq/topics", { messages: 5_000 }, signal);
      const root = { below: new Map() };
      found.topics.forEach((topic) => plant(root, topic));
      const span = Math.max(found.span_ms, 1_000);
      if (!found.messages) said.textContent = "Nothing was published by MQTT or AMQP yet.";
      else said.textContent = `Topics of the newest ${plural(found.messages, "message")} by MQTT and AMQP, which came within ${duration(span)}: ${count(found.topic_count)} in all.`;
      if (found.by_exchange) said.textContent += ` ${count(found.by_exchange)} of the messages went to other exchanges than amq.topic, and so to no topic.`;
      tree.hidden = !found.topics.length;
      renew(tree, h("ul", {}, [...root.below].map(([level, node]) => draw(node, level, level, span, open, found.topics.length <= SMALL))));
    };
    return again(load, box, signal, AGAIN_MS);
  },
};
