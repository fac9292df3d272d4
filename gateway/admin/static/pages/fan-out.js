// In how many queues messages are, now, and what a copy in each had cost; and the report that Spark made.

import { again } from "../again.js";
import { get } from "../api.js";
import { addressLink } from "../browser.js";
import { card, h, renew } from "../dom.js";
import { bytes, count, duration } from "../format.js";
import { table } from "../list.js";

const AGAIN_MS = 5_000;

const mean = (entries, messages) => (messages ? (entries / messages).toFixed(entries / messages < 100 ? 1 : 0) : "0");

const COLUMNS = [
  { title: "Published to", read: (one) => addressLink(one) },
  { title: "Messages", isNumber: true, read: (one) => count(one.messages) },
  { title: "Queues each", isNumber: true, read: (one) => mean(one.entries, one.messages) },
  { title: "Most", isNumber: true, read: (one) => count(one.widest) },
  { title: "Entries", isNumber: true, read: (one) => count(one.entries) },
  { title: "Bodies", isNumber: true, read: (one) => bytes(one.body_bytes) },
];

// Bars of how many messages are in how many queues.
function showWidths(widths) {
  const most = Math.max(1, ...widths.map((one) => one.messages));
  const label = ({ from }) => (from < 2 ? `${from}` : `${count(from)} to ${count(2 * from - 1)}`);
  return h(
    "table",
    { className: "bars" },
    h("caption", {}, "Messages by the number of queues that each is in"),
    h("tbody", {}, widths.map((one) => h("tr", {}, h("th", { scope: "row" }, label(one)), h("td", {}, h("meter", { min: 0, max: most, value: one.messages, ariaLabel: `${count(one.messages)} messages` })), h("td", { className: "number" }, count(one.messages))))),
  );
}

export const fanOut = {
  title: () => "Fan-out",
  show(main, { signal }) {
    const box = h("div");
    const shown = h("div");
    main.append(h("p", { className: "faint" }, "A message is stored once; each queue that it belongs to has 4 bytes that point to it."), box, shown);
    const load = async () => {
      const found = await get("api/lmq/fan-out", { messages: 1_000 }, signal);
      renew(
        shown,
        h(
          "div",
          { className: "cards" },
          card("Queues a message", mean(found.entries, found.messages)),
          card("Stored once", bytes(found.body_bytes), "of bodies"),
          card("With a copy in each", bytes(found.copied_bytes), found.body_bytes ? `${(found.copied_bytes / found.body_bytes).toFixed(1)} times as much` : ""),
          card("Looked at", count(found.messages), found.messages ? `newest ${found.messages === 1 ? "message" : "messages"}, of ${duration(found.span_ms)}` : "messages"),
        ),
        h("h2", {}, "How wide"),
        found.messages ? h("div", { className: "card" }, showWidths(found.widths)) : h("p", {}, "Nothing was published by MQTT or AMQP yet."),
        found.messages > 0 && h("h2", {}, "Widest"),
        found.messages > 0 && h("div", { className: "wide" }, table(`${count(found.topic_count)} in all, topics and pairs of exchange and routing key; those with most entries first`, COLUMNS, found.topics)),
        h("h2", {}, "By device, over the whole log"),
        found.has_report
          ? h("p", {}, h("a", { href: "api/lmq/fan-out/report", target: "_blank", rel: "noopener" }, "The last report of Spark"))
          : h("p", { className: "faint" }, "Make a report with ", h("code", { className: "mono" }, "lmq report fan-out --data-dir DIR --out FOLDER"), ", and name the folder in ", h("code", { className: "mono" }, "admin.fan_out_report"), "."),
      );
    };
    return again(load, box, signal, AGAIN_MS);
  },
};
