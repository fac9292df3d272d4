// Rights in force: what users may do, and why somebody may or may not publish somewhere.

import { get } from "../api.js";
import { h, told } from "../dom.js";
import { count, plural } from "../format.js";
import { table } from "../list.js";
import { userLink } from "./users.js";

const code = (text) => h("code", { className: "mono" }, text === "" ? "(nothing)" : text);

const PERMISSIONS = [
  { title: "User", read: (one) => userLink(one.user) },
  { title: "Virtual host", read: (one) => one.vhost },
  { title: "Configure", read: (one) => code(one.configure) },
  { title: "Write", read: (one) => code(one.write) },
  { title: "Read", read: (one) => code(one.read) },
];

const TOPICS = [
  { title: "User", read: (one) => userLink(one.user) },
  { title: "Virtual host", read: (one) => one.vhost },
  { title: "Exchange", read: (one) => one.exchange },
  { title: "Write", read: (one) => code(one.write) },
  { title: "Read", read: (one) => code(one.read) },
];

// In the order in which they are asked: the first that is for a question decides.
const RULES = [
  { title: "Order", isNumber: true, read: (one) => count(one.place) },
  { title: "Rule", read: (one) => h("span", { className: one.permit === "deny" ? "bad" : "" }, one.permit) },
  { title: "What", read: (one) => one.actions.join(", ") },
  { title: "Says", read: (one) => code(one.text.split(" ").slice(2).join(" ") || "everybody, everything") },
  { title: "Name", read: (one) => one.name },
  { title: "Kept in", read: (one) => (one.of_settings ? "the settings" : "the data folder") },
];

function makeQuestion(signal) {
  const user = h("input", { placeholder: "empty: no login", spellcheck: false });
  const topic = h("input", { placeholder: "plant/1/temp", required: true, spellcheck: false });
  const box = h("div");
  const ask = async () => {
    try {
      const found = await get("api/explain/publish", { door: "mqtt", topic: topic.value, user: user.value }, signal);
      box.replaceChildren(told(`${found.is_allowed === false ? "No" : "Yes"}: ${found.verdict || "nothing forbids it"}`, found.is_allowed === false));
    } catch (error) {
      if (error.name !== "AbortError") box.replaceChildren(told(error.message, true));
    }
  };
  return [
    h("form", { className: "bar", onsubmit: (event) => (event.preventDefault(), ask()) }, h("label", {}, "User", user), h("label", { className: "grow" }, "Topic", topic), h("button", { className: "act" }, "May it publish there?")),
    box,
  ];
}

export const rights = {
  title: () => "Rights in force",
  async show(main, { signal }) {
    const [permissions, topics, users] = await Promise.all(["api/permissions", "api/topic-permissions", "api/users"].map((where) => get(where, {}, signal)));
    main.append(
      ...makeQuestion(signal),
      h("h2", {}, "Permissions"),
      table(permissions.length ? "Regular expressions on names of queues and exchanges" : "no permission is written down", PERMISSIONS, permissions),
      h("h2", {}, "Topic permissions"),
      table(topics.length ? "Regular expressions on routing keys" : "none: no topic is kept from anybody by these", TOPICS, topics),
    );
    const box = h("div");
    main.append(h("h2", {}, "Rules"), box);
    try {
      const found = await get("api/lmq/rules", {}, signal);
      const said = `What no rule is for is ${found.default === "allow" ? "allowed" : "denied"}; there ${users.length === 1 ? "is" : "are"} ${plural(users.length, "user")}.`;
      box.replaceChildren(table(said, RULES, found.rules.map((rule, i) => ({ ...rule, place: i + 1 }))));
    } catch (error) {
      if (error.name !== "AbortError") box.replaceChildren(told(error.message, true));
    }
  },
};
