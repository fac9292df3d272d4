// Users, and one of them: password, tags, what it may do in each virtual host.

import { tried, whenChanged } from "../again.js";
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

function makeTags() {
  const boxes = TAGS.map((tag) => h("input", { type: "checkbox", value: tag }));
  let others = []; // that mean nothing here, and stay
  let shown = "";
  const node = h("fieldset", {}, h("legend", {}, "Tags: what it may do here"), boxes.map((box) => h("label", {}, box, box.value)));
  // What is chosen on the page stays until the gateway has other tags than it had.
  const fill = (tags) => {
    if (shown === tags.join()) return;
    shown = tags.join();
    boxes.forEach((box) => (box.checked = tags.includes(box.value)));
    others = tags.filter((tag) => !TAGS.includes(tag));
  };
  return { node, fill, read: () => [...boxes.filter((box) => box.checked).map((box) => box.value), ...others] };
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

// The permissions of a user: `fill` shows what they are now, and what is being entered stays.
function makePermissions(name, box, again) {
  const where = (vhost) => `api/permissions/${path(vhost, name)}`;
  const take = async (vhost) => {
    if (await confirmed(`Take back what ${name} may do in ${vhost}?`, "Take back")) await act(box, async () => (await remove(where(vhost)), again("Taken back.")));
  };
  const columns = [
    { title: "Virtual host", read: (one) => one.vhost },
    { title: "Configure", read: (one) => code(one.configure) },
    { title: "Write", read: (one) => code(one.write) },
    { title: "Read", read: (one) => code(one.read) },
    { title: "Change", isUnseen: true, isActions: true, read: (one) => h("button", { className: "act danger", type: "button", onclick: () => take(one.vhost) }, "Take back") },
  ];
  const rows = h("div");
  const vhost = h("select");
  const rights = ["configure", "write", "read"].map((right) => [right, h("input", { value: EVERYTHING, spellcheck: false })]);
  const set = () => act(box, async () => (await put(where(vhost.value), Object.fromEntries(rights.map(([right, field]) => [right, field.value]))), again("Set.")));
  const fill = (hosts, permissions) => {
    renew(rows, table(permissions.length ? "Regular expressions on names of queues and exchanges" : "none: it may do nothing", columns, permissions));
    const names = hosts.map((one) => one.name);
    if (names.join("\n") === [...vhost.options].map((one) => one.value).join("\n")) return;
    const chosen = vhost.value;
    vhost.replaceChildren(...names.map((one) => h("option", { value: one }, one)));
    if (names.includes(chosen)) vhost.value = chosen;
  };
  const node = h("div", {}, h("h2", {}, "Permissions"), rows, form(set, "Set the permissions", h("label", {}, "Virtual host", vhost), rights.map(([right, field]) => h("label", {}, right[0].toUpperCase() + right.slice(1), field))));
  return { node, fill };
}

// What changes a user; `fill` follows what it is now.
function makeChanges(name, box, again) {
  const ours = `api/lmq/users/${path(name)}`;
  const password = passwordField();
  const tags = makeTags();
  let turn = "";
  const disable = async () => {
    const asked = turn; // which may be another one once the question is answered
    if (asked === "disable" && !(await confirmed(`Let nobody in as ${name}? Its connections are closed.`, "Disable"))) return;
    await act(box, async () => (await post(`${ours}/${asked}`), again(asked === "enable" ? "Enabled." : "Disabled.")));
  };
  const drop = async () => {
    if (await confirmed(`Delete ${name} with its permissions? Its connections are closed.`, "Delete")) {
      await act(box, async () => (await remove(`api/users/${path(name)}`), (location.hash = "#/users")), "Deleted.");
    }
  };
  const turner = h("button", { type: "button", onclick: disable });
  const fill = (user) => {
    tags.fill(user.tags);
    turn = user.lmq.is_disabled ? "enable" : "disable";
    turner.textContent = user.lmq.is_disabled ? "Enable" : "Disable";
    turner.className = user.lmq.is_disabled ? "act" : "act danger";
  };
  const node = h(
    "div",
    {},
    h("h2", {}, "Change it"),
    form(() => act(box, async () => (await put(`${ours}/password`, { password: password.value }), (password.value = ""), again("The password is another one; connections that came in by the old one are closed."))), "Set the password", h("label", {}, "New password", password)),
    form(() => act(box, async () => (await put(`${ours}/tags`, { tags: tags.read() }), again("Set."))), "Set the tags", tags.node),
    h("div", { className: "bar" }, turner, h("button", { className: "act danger", type: "button", onclick: drop }, "Delete")),
  );
  return { node, fill };
}

async function showUser(main, signal, name) {
  const [trouble, box, shown] = [h("div"), h("div"), h("div")];
  const where = `api/users/${path(name)}`;
  let parts;
  const load = async () => {
    const [user, permissions, hosts] = await Promise.all([where, `${where}/permissions`, "api/vhosts?columns=name"].map((one) => get(one, {}, signal)));
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
    );
    if (parts === undefined) {
      parts = isOurs ? [makePermissions(name, box, again), makeChanges(name, box, again)] : [];
      main.append(trouble, box, shown, ...parts.map((part) => part.node));
      if (!isOurs) main.append(told("It is one of the settings, and is changed there: auth.users."));
    }
    parts[0]?.fill(hosts, permissions);
    parts[1]?.fill(user);
  };
  // Shows what is so now, and says what was done.
  const again = async (done) => {
    await load();
    return told(done);
  };
  await load();
  whenChanged("permissions", () => tried(load, trouble), signal);
}

export const users = {
  title: ([name]) => (name === undefined ? "Users" : `User ${name}`),
  show(main, { parts: [name], signal }) {
    if (name !== undefined) return showUser(main, signal, name);
    return listUsers(main, signal);
  },
};
