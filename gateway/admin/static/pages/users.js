// Users, and one of them: password, tags, what it may do in each virtual host.

import { get, path, post, put, remove } from "../api.js";
import { act, confirmed, facts, h, renew, told } from "../dom.js";
import { yes } from "../format.js";
import { List, table } from "../list.js";

const TAGS = ["administrator", "monitoring", "policymaker", "management"];
const EVERYTHING = ".*";
const code = (text) => h("code", { className: "mono" }, text === "" ? "(nothing)" : text);

export const userLink = (name) => h("a", { href: `#/users/${path(name)}` }, name);

const COLUMNS = [
  { title: "User", sort: "name", read: (one) => userLink(one.name) },
  { title: "Tags", read: (one) => one.tags.join(", ") },
  { title: "Kept in", read: (one) => (one.lmq.of_settings ? "the settings" : "the data folder") },
  { title: "Comes in", read: (one) => (one.lmq.is_disabled ? "no, disabled" : "yes") },
];

// A field for a password that no form of the browser fills in: it is another user's.
const passwordField = () => h("input", { type: "password", required: true, autocomplete: "new-password" });

function makeTags(chosen = []) {
  const boxes = TAGS.map((tag) => h("input", { type: "checkbox", value: tag, checked: chosen.includes(tag) }));
  const others = chosen.filter((tag) => !TAGS.includes(tag)); // that mean nothing here stay
  const node = h("fieldset", {}, h("legend", {}, "Tags: what it may do here"), boxes.map((box) => h("label", {}, box, box.value)));
  return { node, read: () => [...boxes.filter((box) => box.checked).map((box) => box.value), ...others] };
}

const form = (submit, verb, ...fields) => h("form", { className: "bar", onsubmit: (event) => (event.preventDefault(), submit()) }, fields, h("button", { className: "act" }, verb));

function listUsers(main, signal) {
  const box = h("div");
  const list = new List(main, signal, { from: "api/users", columns: COLUMNS, changes: "users", empty: "No user was added." });
  const name = h("input", { required: true, spellcheck: false, autocomplete: "off" });
  const password = passwordField();
  const tags = makeTags();
  const add = () =>
    act(box, async () => {
      const known = await get("api/users", { columns: "name" }, signal);
      if (known.some((one) => one.name === name.value)) return told(`User ${name.value} is there already.`, true);
      await put(`api/users/${path(name.value)}`, { password: password.value, tags: tags.read() });
      const done = told(`Added ${name.value}, that may do nothing yet: `);
      done.append(h("a", { href: `#/users/${path(name.value)}` }, "set its permissions"));
      name.value = password.value = "";
      await list.load();
      return done;
    });
  main.append(h("h2", {}, "Add a user"), box, form(add, "Add the user", h("label", {}, "Name", name), h("label", {}, "Password", password), tags.node));
}

function makePermissions(name, hosts, permissions, box, again) {
  const where = (vhost) => `api/permissions/${path(vhost, name)}`;
  const take = async (vhost) => {
    if (await confirmed(`Take back what ${name} may do in ${vhost}?`, "Take back")) await act(box, async () => (await remove(where(vhost)), again("Taken back.")));
  };
  const columns = [
    { title: "Virtual host", read: (one) => one.vhost },
    { title: "Configure", read: (one) => code(one.configure) },
    { title: "Write", read: (one) => code(one.write) },
    { title: "Read", read: (one) => code(one.read) },
    { title: "Change", isUnseen: true, read: (one) => h("button", { className: "act danger", type: "button", onclick: () => take(one.vhost) }, "Take back") },
  ];
  const vhost = h("select", {}, hosts.map((one) => h("option", { value: one.name }, one.name)));
  const rights = ["configure", "write", "read"].map((right) => [right, h("input", { value: EVERYTHING, spellcheck: false })]);
  const set = () => act(box, async () => (await put(where(vhost.value), Object.fromEntries(rights.map(([right, field]) => [right, field.value]))), again("Set.")));
  return [
    h("h2", {}, "Permissions"),
    table(permissions.length ? "Regular expressions on names of queues and exchanges" : "none: it may do nothing", columns, permissions),
    form(set, "Set the permissions", h("label", {}, "Virtual host", vhost), rights.map(([right, field]) => h("label", {}, right[0].toUpperCase() + right.slice(1), field))),
  ];
}

function makeChanges(user, box, again) {
  const ours = `api/lmq/users/${path(user.name)}`;
  const password = passwordField();
  const tags = makeTags(user.tags);
  const turn = user.lmq.is_disabled ? "enable" : "disable";
  const disable = async () => {
    if (turn === "disable" && !(await confirmed(`Let nobody in as ${user.name}? Its connections are closed.`, "Disable"))) return;
    await act(box, async () => (await post(`${ours}/${turn}`), again(turn === "enable" ? "Enabled." : "Disabled.")));
  };
  const drop = async () => {
    if (await confirmed(`Delete ${user.name} with its permissions? Its connections are closed.`, "Delete")) {
      await act(box, async () => (await remove(`api/users/${path(user.name)}`), (location.hash = "#/users")), "Deleted.");
    }
  };
  return [
    h("h2", {}, "Change it"),
    form(() => act(box, async () => (await put(`${ours}/password`, { password: password.value }), again("The password is another one; connections that came in by the old one are closed."))), "Set the password", h("label", {}, "New password", password)),
    form(() => act(box, async () => (await put(`${ours}/tags`, { tags: tags.read() }), again("Set."))), "Set the tags", tags.node),
    h(
      "div",
      { className: "bar" },
      h("button", { className: user.lmq.is_disabled ? "act" : "act danger", type: "button", onclick: disable }, user.lmq.is_disabled ? "Enable" : "Disable"),
      h("button", { className: "act danger", type: "button", onclick: drop }, "Delete"),
    ),
  ];
}

async function showUser(main, signal, name) {
  const box = h("div");
  const shown = h("div");
  main.append(box, shown);
  const where = `api/users/${path(name)}`;
  const load = async () => {
    const [user, permissions, hosts] = await Promise.all([where, `${where}/permissions`, "api/vhosts"].map((one) => get(one, {}, signal)));
    const isOurs = !user.lmq.of_settings;
    renew(
      shown,
      facts([
        ["Tags", user.tags.join(", ") || "none: it does not come in here"],
        ["Kept in", isOurs ? "the data folder" : "the settings"],
        ["Comes in", user.lmq.is_disabled ? "no, disabled" : "yes"],
        ["Signs with a secret at RocketMQ's door", yes(user.lmq.has_secret)],
        ["Limits", Object.entries(user.limits).map(([limit, value]) => `${limit} ${value}`).join(", ")],
      ]),
      isOurs && makePermissions(name, hosts, permissions, box, again),
      isOurs ? makeChanges(user, box, again) : told("It is one of the settings, and is changed there: auth.users."),
    );
  };
  // Shows what is so now, and says what was done.
  const again = async (done) => {
    await load();
    return told(done);
  };
  await load();
}

export const users = {
  title: ([name]) => (name === undefined ? "Users" : `User ${name}`),
  show(main, { parts: [name], signal }) {
    if (name !== undefined) return showUser(main, signal, name);
    return listUsers(main, signal);
  },
};
