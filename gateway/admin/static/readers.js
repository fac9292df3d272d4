// The readers of the light queues of a route, by name: the first of each queue, and how many more there are.

import { get, path } from "./api.js";
import { plural } from "./format.js";

const NAMED = 4; // of a queue; chosen: a drawing of ten queues stays on two screens
const ASKED = 16; // queues whose readers are asked for, at one question each
const GROUPS = 500; // that are looked through, the longest page of the gateway

const CALLED = /^queue '(.*)' in vhost '(.*)'$/s;
const SHARED = /^\$share\/([^/]+)\//;

const escape = (text) => text.replace(/[\\^$.|?*+()[\]{}]/g, "\\$&");

async function ofMqtt(queue, signal) {
  const name = `^(\\$share/[^/]+/|\\$queue/|\\$exclusive/)?${escape(queue.filters[0])}$`;
  const { items, filtered_count: number } = await get("api/lmq/subscriptions", { name, use_regex: true, page: 1, page_size: NAMED, sort: "name" }, signal);
  const kind = (filter) => (SHARED.test(filter) ? `session, of group ${SHARED.exec(filter)[1]}` : "session");
  return { named: items.map((one) => [kind(one.filter), one.client]), more: number - items.length };
}

async function ofAmqp(name, vhost, signal) {
  const { consumers: number, consumer_details: found } = await get(`api/queues/${path(vhost, name)}`, {}, signal);
  const named = found.slice(0, NAMED).map((one) => [`consumer of user ${one.channel_details.user}`, one.consumer_tag]);
  return { named, more: number - named.length };
}

// Those of a topic of RocketMQ: its groups, which are listed by group and not by queue.
async function findGroups(signal) {
  const { items } = await get("api/lmq/groups", { page: 1, page_size: GROUPS, sort: "name" }, signal);
  return items.filter((one) => one.door === "rocketmq");
}

function ofRocketmq(queue, groups) {
  const found = groups.filter((one) => one.light_queue === queue.name);
  return { named: found.slice(0, NAMED).map((one) => [`${plural(one.members, "member")} of group`, one.group]), more: Math.max(found.length - NAMED, 0) };
}

// The readers by the names of their queues; queues that nothing is told of are left out.
export async function findReaders(queues, signal) {
  const groups = queues.some((one) => !one.name.startsWith("%LMQ%")) ? findGroups(signal) : [];
  const found = await Promise.allSettled(
    queues.slice(0, ASKED).map(async (queue) => {
      if (queue.name.startsWith("%LMQ%mqtt%") && queue.filters.length) return [queue.name, await ofMqtt(queue, signal)];
      if (!queue.name.startsWith("%LMQ%")) return [queue.name, ofRocketmq(queue, await groups)];
      const [, name, vhost] = CALLED.exec(queue.called) ?? [];
      return [queue.name, name === undefined ? { named: [], more: 0 } : await ofAmqp(name, vhost, signal)];
    }),
  );
  return new Map(found.flatMap((one) => (one.value ? [one.value] : [])));
}
