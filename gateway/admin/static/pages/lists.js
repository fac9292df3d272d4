// Pages that are one list each.

import { path } from "../api.js";
import { h } from "../dom.js";
import { bytes, count, moment, prefetch, rate, yes } from "../format.js";
import { List } from "../list.js";
import { logLink } from "./log.js";
import { connectionLink, queueLink } from "./queues.js";

function listPage(title, said, settings) {
  return {
    title: () => title,
    show(main, { signal }) {
      if (said) main.append(h("p", { className: "faint" }, said));
      new List(main, signal, settings);
    },
  };
}

export const subscriptions = listPage("Subscriptions", "", {
  empty: "No MQTT client has subscribed.",
  from: "api/lmq/subscriptions",
  searched: "filter",
  columns: [
    { title: "Filter", sort: "name", read: (one) => one.filter },
    { title: "Client", sort: "client", read: (one) => h("a", { href: `#/sessions/${path(one.client)}` }, one.client) },
    { title: "QoS", isNumber: true, sort: "qos", read: (one) => count(one.qos) },
    { title: "Waiting", isNumber: true, sort: "waiting", read: (one) => count(one.waiting) },
    { title: "Next", isBrief: true, read: (one) => logLink(one.light_queue, one.next_offset, `offset ${count(one.next_offset)}`) },
  ],
});

export const retained = listPage("Retained messages", "", {
  empty: "No topic has a retained message.",
  from: "api/lmq/retained",
  searched: "topic",
  changes: "retained",
  columns: [
    { title: "Topic", sort: "name", read: (one) => h("a", { href: `#/route?topic=${encodeURIComponent(one.topic)}` }, one.topic) },
    { title: "Bytes", isNumber: true, read: (one) => bytes(one.payload_bytes) },
    { title: "Stored", read: (one) => moment(one.stored_at_ms) },
  ],
});

export const consumers = listPage("Consumers", "", {
  empty: "No AMQP client consumes.",
  from: "api/consumers",
  searched: "queue or tag",
  columns: [
    { title: "Queue", sort: "name", read: (one) => queueLink(one.queue.vhost, one.queue.name) },
    { title: "Tag", read: (one) => one.consumer_tag },
    { title: "Client", read: (one) => one.lmq.client },
    { title: "Connection", read: (one) => connectionLink(one.channel_details.connection_name) },
    { title: "Channel", isNumber: true, read: (one) => count(one.channel_details.number) },
    { title: "Prefetch", isNumber: true, read: (one) => prefetch(one.prefetch_count) },
    { title: "Acknowledges", read: (one) => yes(one.ack_required) },
    { title: "Active", read: (one) => yes(one.active) },
  ],
});

export const vhosts = listPage("Virtual hosts", "Delivered /s counts what consumers are sent and what clients take by basic.get.", {
  from: "api/vhosts",
  changes: "vhosts",
  columns: [
    { title: "Virtual host", sort: "name", read: (one) => one.name },
    { title: "Description", read: (one) => one.description ?? "" },
    { title: "Queues", isNumber: true, read: (one) => count(one.lmq.queues) },
    { title: "Connections", isNumber: true, read: (one) => count(one.lmq.connections) },
    { title: "Published /s", isNumber: true, read: (one) => rate(one.message_stats.publish_details.rate) },
    { title: "Delivered /s", isNumber: true, read: (one) => rate(one.message_stats.deliver_get_details.rate) },
    { title: "Redelivered /s", isNumber: true, read: (one) => rate(one.message_stats.redeliver_details.rate) },
    { title: "Acknowledged /s", isNumber: true, read: (one) => rate(one.message_stats.ack_details.rate) },
    { title: "Has MQTT's topics", read: (one) => yes(one.lmq.has_mqtt_topics) },
  ],
});
