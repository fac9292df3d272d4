// AMQP's exchanges, and one of them.

import { tried, whenChanged } from "../again.js";
import { get, path, post } from "../api.js";
import { facts, h, renew, told } from "../dom.js";
import { count, rate, yes } from "../format.js";
import { List } from "../list.js";
import { showBindings } from "./queues.js";

const DEFAULT = "amq.default"; // what the API calls the exchange without a name

const COLUMNS = [
  { title: "Exchange", sort: "name", read: ({ vhost, name }) => h("a", { href: `#/exchanges/${path(vhost, name || DEFAULT)}` }, name || "(default)") },
  { title: "Virtual host", sort: "vhost", read: (exchange) => exchange.vhost },
  { title: "Type", sort: "type", read: (exchange) => exchange.type },
  { title: "In /s", isNumber: true, sort: "message_stats.publish_in_details.rate", read: (exchange) => rate(exchange.message_stats.publish_in_details.rate) },
  { title: "Out /s", isNumber: true, sort: "message_stats.publish_out_details.rate", read: (exchange) => rate(exchange.message_stats.publish_out_details.rate) },
  { title: "Durable", read: (exchange) => yes(exchange.durable) },
  { title: "Internal", read: (exchange) => yes(exchange.internal) },
  { title: "Policy", read: (exchange) => exchange.policy ?? "" },
];

function makePublisher(vhost, name) {
  const key = h("input", { placeholder: "routing key" });
  const body = h("textarea", { rows: 2, placeholder: "a message" });
  const box = h("div");
  const send = async () => {
    try {
      const sent = { properties: {}, routing_key: key.value, payload: body.value, payload_encoding: "string" };
      const { routed } = await post(`api/exchanges/${path(vhost, name)}/publish`, sent);
      box.replaceChildren(told(routed ? "Published." : "It leads to no queue.", !routed));
    } catch (error) {
      box.replaceChildren(told(error.message, true));
    }
  };
  return [
    h("h2", {}, "Publish"),
    h(
      "form",
      { className: "bar", onsubmit: (event) => (event.preventDefault(), send()) },
      h("label", { className: "grow" }, "Routing key", key),
      h("label", { className: "grow" }, "Message", body),
      h("button", { className: "act" }, "Publish"),
    ),
    box,
  ];
}

async function showExchange(main, signal, vhost, name) {
  const where = `api/exchanges/${path(vhost, name)}`;
  const [trouble, shown] = [h("div"), h("div")];
  const load = async () => {
    const exchange = await get(where, {}, signal);
    const stats = exchange.message_stats;
    const bindings = name !== DEFAULT && [h("h2", {}, "Bindings"), await showBindings(`${where}/bindings/source`, signal)];
    renew(
      shown,
      facts([
        ["Virtual host", exchange.vhost],
        ["Messages in", `${count(stats.publish_in)}, ${rate(stats.publish_in_details.rate)} a second`],
        ["Copies out, into queues", `${count(stats.publish_out)}, ${rate(stats.publish_out_details.rate)} a second`],
        ["Type", exchange.type],
        ["Durable", yes(exchange.durable)],
        ["Internal", yes(exchange.internal)],
        ["Arguments", Object.keys(exchange.arguments).length ? h("code", { className: "mono" }, JSON.stringify(exchange.arguments)) : ""],
        ["Policy", exchange.policy],
      ]),
      bindings,
    );
    return exchange;
  };
  const exchange = await load();
  main.append(trouble, shown);
  if (exchange.internal) main.append(h("p", { className: "faint" }, "It is internal: messages come to it from other exchanges only."));
  else main.append(...makePublisher(vhost, name));
  whenChanged("exchanges", () => tried(load, trouble), signal);
}

export const exchanges = {
  title: ([, name]) => (name === undefined ? "Exchanges" : `Exchange ${name === DEFAULT ? "(default)" : name}`),
  show(main, { parts: [vhost, name], signal }) {
    if (name !== undefined) return showExchange(main, signal, vhost, name);
    return void new List(main, signal, { from: "api/exchanges", columns: COLUMNS, changes: "exchanges" });
  },
};
