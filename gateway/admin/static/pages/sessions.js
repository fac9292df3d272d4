// MQTT's sessions, and what each was meant to get and has not.

import { keepOn } from "../again.js";
import { get, path, remove } from "../api.js";
import { mayAskAll } from "../caller.js";
import { card, confirmed, facts, h, renew, told } from "../dom.js";
import { count, yes } from "../format.js";
import { List, table } from "../list.js";
import { logLink } from "./log.js";

const COLUMNS = [
  { title: "Client", sort: "name", read: (one) => h("a", { href: `#/sessions/${path(one.client)}` }, one.client) },
  { title: "User", sort: "user", read: (one) => one.user || "(anonymous)" },
  { title: "Connected", sort: "connected", read: (one) => yes(one.connected) },
  { title: "Persistent", sort: "persistent", read: (one) => yes(one.persistent) },
  { title: "Subscriptions", isNumber: true, sort: "subscriptions", read: (one) => count(one.subscriptions) },
  { title: "In flight", isNumber: true, sort: "inflight", read: (one) => count(one.inflight) },
  { title: "Redelivered", isNumber: true, sort: "redelivered", read: (one) => count(one.redelivered) },
];

const OWED = [
  { title: "Filter", read: (one) => one.topic_filter },
  { title: "QoS", isNumber: true, read: (one) => count(one.qos) },
  { title: "Waiting", isNumber: true, read: (one) => count(one.waiting) },
  { title: "In flight", isNumber: true, read: (one) => count(one.inflight) },
  { title: "Next", isBrief: true, read: (one) => logLink(one.light_queue, one.next_offset, `offset ${count(one.next_offset)}`) },
];

async function showSession(main, signal, client) {
  const figures = h("div");
  const trouble = h("div");
  const box = h("div");
  const end = async () => {
    if (!(await confirmed(`End the session of ${client}? Its subscriptions and what waits for it are gone.`, "End"))) return;
    try {
      await remove(`api/lmq/sessions/${path(client)}`);
      location.hash = "#/sessions";
    } catch (error) {
      box.replaceChildren(told(error.message, true));
    }
  };
  main.append(trouble, figures);
  const load = async () => {
    const owed = await get(`api/lmq/devices/${path(client)}`, {}, signal);
    const inflight = owed.subscriptions.reduce((total, one) => total + one.inflight, 0);
    renew(
      figures,
      h("div", { className: "cards" }, card("Waiting for it", count(owed.waiting)), card("Sent, not acknowledged", count(inflight))),
      facts([
        ["Connected", owed.connected ? (owed.connection ? `yes, conn=${owed.connection} in the log lines` : "yes") : h("span", { className: "warn" }, "no")],
        ["User", owed.user || "(anonymous)"],
        ["Persistent", owed.persistent ? "yes" : "no, it ends with its connection"],
        ["Redelivered", count(owed.redelivered)],
      ]),
      h("h2", {}, "Subscriptions"),
      table(`${count(owed.subscriptions.length)} in all`, OWED, owed.subscriptions.slice(0, 1_000)),
    );
  };
  await load();
  main.append(box, mayAskAll() ? h("div", { className: "bar" }, h("button", { className: "act danger", type: "button", onclick: end }, "End the session")) : "");
  keepOn(load, trouble, signal, 3_000);
}

export const sessions = {
  title: ([client]) => (client === undefined ? "Sessions" : `Session ${client}`),
  show(main, { parts: [client], signal }) {
    if (client !== undefined) return showSession(main, signal, client);
    return void new List(main, signal, { from: "api/lmq/sessions", columns: COLUMNS, searched: "client", empty: "No MQTT client has a session." });
  },
};
