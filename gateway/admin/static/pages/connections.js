// Connections of all doors, and one of them.

import { get, path, remove } from "../api.js";
import { confirmed, facts, h, told } from "../dom.js";
import { bytes, count, duration, moment, plural, prefetch } from "../format.js";
import { List, table } from "../list.js";

const age = (connection) => duration(Date.now() - connection.connected_at);

const STATES = { blocked: "held back", starting: "logging in" };

const COLUMNS = [
  { title: "Connection", sort: "name", read: (one) => h("a", { href: `#/connections/${path(one.name)}` }, one.lmq.client || one.name) },
  { title: "Door", isBrief: true, sort: "protocol", read: (one) => one.protocol },
  { title: "User", sort: "user", read: (one) => one.user || "(anonymous)" },
  { title: "State", sort: "state", read: (one) => STATES[one.state] ?? one.state },
  { title: "From", isBrief: true, read: (one) => `${one.peer_host}:${one.peer_port}` },
  { title: "For", isBrief: true, sort: "connected_at", read: age },
  { title: "In", isNumber: true, sort: "recv_oct", read: (one) => bytes(one.recv_oct) },
  { title: "Out", isNumber: true, sort: "send_oct", read: (one) => bytes(one.send_oct) },
];

const CHANNELS = [
  { title: "Channel", read: (one) => count(one.number) },
  { title: "Consumers", isNumber: true, read: (one) => count(one.consumer_count) },
  { title: "Unacked", isNumber: true, read: (one) => count(one.messages_unacknowledged) },
  { title: "Prefetch", isNumber: true, read: (one) => prefetch(one.prefetch_count) },
  { title: "Confirms", read: (one) => (one.confirm ? "yes" : "no") },
];

async function showConnection(main, signal, name) {
  const where = `api/connections/${path(name)}`;
  const one = await get(where, {}, signal);
  const box = h("div");
  const close = async () => {
    if (!(await confirmed(`Close the connection ${name}?`, "Close"))) return;
    try {
      await remove(where);
      location.hash = "#/connections";
    } catch (error) {
      box.replaceChildren(told(error.message, true));
    }
  };
  main.append(
    facts([
      ["Door", one.protocol],
      ["Client", one.lmq.client],
      ["User", one.user || "(anonymous)"],
      ["Virtual host", one.vhost],
      ["From", `${one.peer_host}:${one.peer_port}`],
      ["To", `${one.host}:${one.port}`],
      ["Since", `${moment(one.connected_at)}, ${age(one)}`],
      ["Read", bytes(one.recv_oct)],
      ["Written", bytes(one.send_oct)],
      ["Number in the log", `conn=${one.lmq.number}`],
    ]),
    box,
    h("div", { className: "bar" }, h("button", { className: "act danger", type: "button", onclick: close }, "Close the connection")),
  );
  if (one.lmq.door === "mqtt" && one.lmq.client) {
    main.append(h("p", {}, h("a", { href: `#/sessions/${path(one.lmq.client)}` }, "Its session")));
  }
  if (one.channels) {
    const channels = await get(`${where}/channels`, {}, signal);
    main.append(h("h2", {}, "Channels"), table(plural(channels.length, "channel"), CHANNELS, channels));
  }
}

export const connections = {
  title: ([name]) => (name === undefined ? "Connections" : `Connection ${name}`),
  show(main, { parts: [name], signal }) {
    if (name !== undefined) return showConnection(main, signal, name);
    return void new List(main, signal, { from: "api/connections", searched: "client, user or address", asks: "about", columns: COLUMNS, empty: "No client is connected." });
  },
};
