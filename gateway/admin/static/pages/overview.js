// What the whole gateway does now.

import { seesAll } from "../caller.js";
import { card, facts, h, renew } from "../dom.js";
import { bytes, count, duration, isUsed, rate, reasons } from "../format.js";
import { table } from "../list.js";
import { live } from "../live.js";
import { plot } from "../plot.js";
import { showWaiting } from "../waiting.js";

const sum = (sample, field) => Object.values(sample.doors).reduce((total, door) => total + door[field], 0);

function moving(name, unit, read) {
  const rates = live.rates(read);
  return card(name, rate(rates.at(-1)), unit, plot(rates, `${name}, the last ${count(rates.length)} seconds`));
}

function standing(name, read, write, unit) {
  const values = live.values(read);
  return card(name, write(values.at(-1)), unit, plot(values, `${name}, the last ${count(values.length)} seconds`));
}

function showDoors(sample) {
  const rates = (name, field) => live.rates((one) => one.doors[name]?.[field] ?? 0).at(-1);
  return table(
    "",
    [
      { title: "Door", read: ([name]) => name },
      { title: "Connections", isNumber: true, read: ([, door]) => count(door.connections) },
      { title: "In /s", isNumber: true, read: ([name]) => rate(rates(name, "messages_in")) },
      { title: "Out /s", isNumber: true, read: ([name]) => rate(rates(name, "messages_out")) },
      { title: "In", isNumber: true, read: ([, door]) => count(door.messages_in) },
      { title: "Out", isNumber: true, read: ([, door]) => count(door.messages_out) },
      { title: "Refused", read: ([, door]) => reasons(door.refused) },
      { title: "Dropped", read: ([, door]) => reasons(door.dropped) },
    ],
    Object.entries(sample.doors).filter(isUsed),
    "Doors",
  );
}

function showBridges(sample) {
  const bridges = Object.entries(sample.bridges);
  if (!bridges.length) return [];
  const columns = [
    { title: "Bridge", read: ([name]) => name },
    { title: "Connected", read: ([, bridge]) => (bridge.is_connected ? "yes" : h("span", { className: "bad" }, "no")) },
    { title: "In", isNumber: true, read: ([, bridge]) => count(bridge.messages_in) },
    { title: "Out", isNumber: true, read: ([, bridge]) => count(bridge.messages_out) },
    { title: "Failures", isNumber: true, read: ([, bridge]) => count(bridge.failures) },
    { title: "Dropped", isNumber: true, read: ([, bridge]) => count(Object.values(bridge.dropped).reduce((total, one) => total + one, 0)) },
  ];
  return [h("h2", {}, "Bridges"), table("", columns, bridges, "Bridges")];
}

// What a copy in each queue would have cost: the index entries of what was stored since the start, at its mean size.
function showFanOut(sample) {
  const [messages, entries] = [sample.messages_stored, sample.dispatches];
  return facts([
    ["Messages stored, once each", count(messages)],
    ["Entries in light queues", count(entries)],
    ["Entries a message", messages ? (entries / messages).toFixed(2) : ""],
    ["Bytes of bodies that came in", bytes(sum(sample, "bytes_in"))],
    // Where many went to no light queue (a queue of a RocketMQ topic is none) copies would not be more.
    ["The same with a copy in each queue", entries > messages ? `about ${bytes((sum(sample, "bytes_in") * entries) / messages)}` : ""],
  ]);
}

// What somebody is told that sees its own virtual hosts alone.
function showOwn(main, signal) {
  const cards = h("div", { className: "cards" });
  const about = h("div");
  main.append(cards, about);
  const draw = () => {
    const sample = live.last;
    if (!sample?.own) return;
    cards.replaceChildren(
      standing("Messages that wait", (one) => one.own?.ready ?? 0, count),
      standing("Messages that consumers have", (one) => one.own?.unacked ?? 0, count),
      standing("Consumers", (one) => one.own?.readers ?? 0, count),
      standing("Queues", (one) => one.own?.queues ?? 0, count),
    );
    about.replaceChildren(
      facts([
        ["Your virtual hosts", sample.own.vhosts.join(", ") || "none"],
        ["Version", sample.version],
        ["Up for", duration(sample.uptime_ms)],
      ]),
    );
  };
  draw();
  live.follow(draw, signal);
}

export const overview = {
  title: () => "Overview",
  show(main, { signal }) {
    if (!seesAll()) return showOwn(main, signal);
    const cards = h("div", { className: "cards" });
    const doors = h("div");
    const about = h("div");
    const bridges = h("div");
    const fanOut = h("div");
    main.append(cards, h("h2", {}, "What waits most"), showWaiting(signal), h("h2", {}, "Doors"), doors, bridges, h("h2", {}, "Fan-out since the start"), fanOut, h("h2", {}, "Gateway"), about);
    const draw = () => {
      const sample = live.last;
      if (!sample?.doors) return;
      cards.replaceChildren(
        moving("Messages in", "/s", (one) => sum(one, "messages_in")),
        moving("Messages out", "/s", (one) => sum(one, "messages_out")),
        moving("Index entries", "/s", (one) => one.dispatches),
        standing("Connections", (one) => sum(one, "connections"), count),
        standing("Sync to disk, mean", (one) => one.sync_ms, duration),
        standing("Loop held at most", (one) => one.loop_ms, duration),
        standing("Memory", (one) => one.memory_bytes, bytes),
        standing("Free on disk", (one) => one.disk_free_bytes, bytes),
      );
      renew(doors, showDoors(sample));
      renew(bridges, showBridges(sample));
      fanOut.replaceChildren(showFanOut(sample));
      about.replaceChildren(
        facts([
          ["Version", sample.version],
          ["Up for", duration(sample.uptime_ms)],
          ["Light queues", count(sample.light_queues)],
          ["Log", bytes(sample.log_bytes)],
          ["Processor", `${(sample.cpu_share * 100).toFixed(0)} % of one core`],
        ]),
      );
    };
    draw();
    live.follow(draw, signal);
  },
};
