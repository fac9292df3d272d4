// The doors: where each listens, what goes through it, and the bridges to other brokers.

import { get } from "../api.js";
import { card, h } from "../dom.js";
import { bytes, count, isUsed, rate, reasons } from "../format.js";
import { table } from "../list.js";
import { live } from "../live.js";
import { plot } from "../plot.js";

const showHost = (host) => (host.includes(":") && !host.startsWith("unix:") ? `[${host}]` : host);

const LISTENERS = [
  { title: "Door", read: (one) => one.protocol },
  { title: "Address", read: (one) => h("code", { className: "mono" }, showHost(one.ip_address)) },
  { title: "Port", isNumber: true, read: (one) => one.port || "" },
];

function showDoor(name, door) {
  const inward = live.rates((one) => one.doors[name]?.messages_in ?? 0);
  const outward = live.rates((one) => one.doors[name]?.messages_out ?? 0);
  return h(
    "section",
    { ariaLabel: name },
    h("h2", {}, name),
    h(
      "div",
      { className: "cards" },
      card("In", rate(inward.at(-1)), "/s", plot(inward, `messages into ${name}`)),
      card("Out", rate(outward.at(-1)), "/s", plot(outward, `messages out of ${name}`)),
      card("Connections", count(door.connections), `${count(door.connections_total)} since the start`),
      card("Bodies in and out", bytes(door.bytes_in), `in, ${bytes(door.bytes_out)} out`),
    ),
    h("p", { className: "faint" }, `Refused: ${reasons(door.refused) || "none"}. Dropped: ${reasons(door.dropped) || "none"}.`),
  );
}

export const doors = {
  title: () => "Doors and listeners",
  async show(main, { signal }) {
    const shown = h("div", {}, h("p", { className: "faint" }, "looking"));
    main.append(h("div", { id: "listeners" }), shown);
    const { listeners } = await get("api/overview", {}, signal);
    main.querySelector("#listeners").replaceChildren(table("Listeners", LISTENERS, listeners));
    const draw = () => live.last?.doors && shown.replaceChildren(...Object.entries(live.last.doors).filter(isUsed).map(([name, door]) => showDoor(name, door)));
    draw();
    live.follow(draw, signal);
  },
};

function showBridge(name, bridge) {
  const inward = live.rates((one) => one.bridges[name]?.messages_in ?? 0);
  const outward = live.rates((one) => one.bridges[name]?.messages_out ?? 0);
  return h(
    "section",
    { ariaLabel: name },
    h("h2", {}, name, " ", h("span", { className: bridge.is_connected ? "faint" : "bad" }, `${bridge.is_connected ? "connected" : "not connected"} to ${bridge.address}${bridge.cause && `: ${bridge.cause}`}`)),
    h(
      "div",
      { className: "cards" },
      card("From the other broker", rate(inward.at(-1)), "/s", plot(inward, `messages from ${name}`)),
      card("To the other broker", rate(outward.at(-1)), "/s", plot(outward, `messages to ${name}`)),
      card("Connects", count(bridge.connects), `${count(bridge.failures)} failed`),
    ),
    h("p", { className: "faint" }, `${count(bridge.messages_in)} in and ${count(bridge.messages_out)} out since the start. Dropped: ${reasons(bridge.dropped) || "none"}.`),
  );
}

export const bridges = {
  title: () => "Bridges",
  show(main, { signal }) {
    const shown = h("div");
    main.append(h("p", { className: "faint" }, "Each carries messages to and from another MQTT broker; what it is to send waits in a durable session."), shown);
    const draw = () => {
      const found = Object.entries(live.last?.bridges ?? {});
      shown.replaceChildren(...(found.length ? found.map(([name, bridge]) => showBridge(name, bridge)) : [h("p", {}, "There is none. The settings name them, below ", h("code", { className: "mono" }, "[bridges]"), ".")]));
    };
    draw();
    live.follow(draw, signal);
  },
};
