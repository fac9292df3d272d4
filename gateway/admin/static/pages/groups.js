// Groups of RocketMQ's consumers and of MQTT's shared subscriptions: how far each is on each queue, and where one of
// RocketMQ's is to go on.

import { keepOn } from "../again.js";
import { get, path, post, unlessLeft } from "../api.js";
import { card, confirmed, h, renew, told } from "../dom.js";
import { count, exactMoment, momentOf } from "../format.js";
import { List, table } from "../list.js";
import { logLink } from "./log.js";

const AGAIN_MS = 3_000;

const MQTT = "mqtt";

export const groupLink = (one) => h("a", { href: `#/groups/${one.door === MQTT ? path(one.group, MQTT) : path(one.group)}` }, one.group);

const COLUMNS = [
  { title: "Group", sort: "name", read: groupLink },
  { title: "Door", isBrief: true, sort: "door", read: (one) => one.door },
  { title: "Queue", sort: "queue", read: (one) => logLink(one.light_queue, one.next_offset, one.queue) },
  { title: "Lag", isNumber: true, sort: "lag", read: (one) => count(one.lag) },
  { title: "Next offset", isNumber: true, read: (one) => count(one.next_offset) },
  { title: "Members", isNumber: true, sort: "members", read: (one) => count(one.members) },
  { title: "Redelivered", isNumber: true, sort: "redelivered", read: (one) => count(one.redelivered) },
];

function makeReset(group, box, again) {
  const queue = h("select", { ariaLabel: "Queue" });
  const offset = h("input", { type: "number", min: 0 });
  const at = h("input", { type: "datetime-local", step: 1 });
  const names = () => (queue.value ? [queue.value] : [...queue.options].map((option) => option.value).filter(Boolean));
  const reset = async (wanted, said) => {
    const queues = names();
    if (!(await confirmed(`Have ${group} go on ${said}, in ${queues.length === 1 ? queues[0] : `all ${count(queues.length)} queues`}?`, "Reset"))) return;
    try {
      for (const one of queues) await post(`api/lmq/groups/${path(group)}/reset`, { queue: one, ...wanted });
      box.replaceChildren(told(`${group} goes on ${said}.`));
    } catch (error) {
      box.replaceChildren(told(error.message, true));
    }
    await unlessLeft(again());
  };
  const byOffset = () => offset.value !== "" && reset({ offset: Number(offset.value) }, `at offset ${count(Number(offset.value))}`);
  const byMoment = () => at.value && reset({ at_ms: momentOf(at.value) }, `at what was stored from ${exactMoment(momentOf(at.value))} on`);
  const form = h(
    "div",
    { className: "bar" },
    h("label", {}, "Queue", queue),
    h("label", {}, "Offset", offset),
    h("button", { className: "act", type: "button", onclick: byOffset }, "Go to the offset"),
    h("label", {}, "Moment", at),
    h("button", { className: "act", type: "button", onclick: byMoment }, "Go to the moment"),
  );
  const offer = (found) => {
    const chosen = queue.value;
    queue.replaceChildren(h("option", { value: "" }, "all of them"), ...found.map((one) => h("option", { value: one.light_queue }, one.queue)));
    queue.value = chosen;
  };
  return { form, offer };
}

async function showGroup(main, signal, group, door) {
  const figures = h("div");
  const trouble = h("div");
  const box = h("div");
  const load = async () => {
    const found = (await get("api/lmq/groups", { name: group, door }, signal)).filter((one) => one.group === group);
    const lag = found.reduce((total, one) => total + one.lag, 0);
    renew(
      figures,
      h("div", { className: "cards" }, card("Lag", count(lag), "messages"), card("Members", count(Math.max(0, ...found.map((one) => one.members)))), card("Queues", count(found.length))),
      table(found.length ? "Its places" : "The group has no place on any queue.", COLUMNS.slice(2), found.slice(0, 1_000)),
    );
    return found;
  };
  let offered = "";
  const show = async () => {
    const found = await load();
    const names = found.map((one) => one.queue).join("\n");
    if (names !== offered) reset.offer(found);
    offered = names;
  };
  const reset = makeReset(group, box, show);
  main.append(trouble, figures);
  if (door === MQTT) main.append(h("p", { className: "faint" }, "A shared subscription of MQTT: each message goes to one member, and to another one where that leaves without an acknowledgement."));
  else main.append(h("h2", {}, "Reset the offset"), h("p", { className: "faint" }, "Members go on from there when they next ask for the group's offset."), reset.form, box);
  await show();
  keepOn(show, trouble, signal, AGAIN_MS);
}

export const groups = {
  title: ([group]) => (group === undefined ? "Consumer groups" : `Group ${group}`),
  show(main, { parts: [group, door], signal }) {
    if (group !== undefined) return showGroup(main, signal, group, door === MQTT ? MQTT : "rocketmq");
    main.append(h("p", { className: "faint" }, "How far each group of RocketMQ's consumers is on each queue, and each group of MQTT's shared subscriptions on its filter."));
    return void new List(main, signal, { from: "api/lmq/groups", columns: COLUMNS, searched: "group", empty: "No group of RocketMQ's consumers has a place on a queue, and no MQTT client shares a subscription." });
  },
};
