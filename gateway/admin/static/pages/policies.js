// Policies: what queues and exchanges are told by patterns of their names.

import { get, path, put, remove } from "../api.js";
import { caller, mayAskAll } from "../caller.js";
import { act, confirmed, h, told } from "../dom.js";
import { count } from "../format.js";
import { List } from "../list.js";

const APPLIES_TO = ["all", "queues", "classic_queues", "quorum_queues", "streams", "exchanges"];
const mayChange = () => mayAskAll() || caller.tags.includes("policymaker");

function makeColumns(change, drop) {
  return [
    { title: "Policy", sort: "name", read: (one) => one.name },
    { title: "Virtual host", sort: "vhost", read: (one) => one.vhost },
    { title: "Pattern", read: (one) => h("code", { className: "mono" }, one.pattern) },
    { title: "Apply to", read: (one) => one["apply-to"] },
    { title: "Priority", isNumber: true, sort: "priority", read: (one) => count(one.priority) },
    { title: "Definition", read: (one) => h("code", { className: "mono" }, JSON.stringify(one.definition)) },
    { title: "Without effect here", read: (one) => one.lmq.without_effect.join(", ") },
    ...(mayChange()
      ? [
          {
            title: "Actions",
            isActions: true,
            read: (one) => [
              h("button", { className: "act", type: "button", ariaLabel: `Change ${one.name}`, onclick: () => change(one) }, "Change"),
              " ",
              h("button", { className: "act danger", type: "button", ariaLabel: `Delete ${one.name}`, onclick: () => drop(one) }, "Delete"),
            ],
          },
        ]
      : []),
  ];
}

// Fields of a policy, which are filled with one that is to be changed.
function makeForm(hosts, submit) {
  const choice = (values) => h("select", {}, values.map((one) => h("option", { value: one }, one)));
  const fields = {
    name: h("input", { required: true, spellcheck: false }),
    vhost: choice(hosts.map((one) => one.name)),
    pattern: h("input", { required: true, spellcheck: false, placeholder: "^orders\\." }),
    "apply-to": choice(APPLIES_TO),
    priority: h("input", { type: "number", value: 0, step: 1, required: true }),
    definition: h("textarea", { rows: 2, required: true, spellcheck: false, placeholder: '{"max-length": 1000, "message-ttl": 60000}' }),
  };
  const labels = { name: "Name", vhost: "Virtual host", pattern: "Pattern, looked for anywhere in names", "apply-to": "Apply to", priority: "Priority", definition: "Definition, as JSON" };
  const node = h(
    "form",
    { className: "bar", onsubmit: (event) => (event.preventDefault(), submit(fields)) },
    Object.entries(fields).map(([name, field]) => h("label", { className: name === "definition" ? "grow" : "" }, labels[name], field)),
    h("button", { className: "act" }, "Set the policy"),
  );
  const fill = (policy) => {
    for (const name of ["name", "vhost", "pattern", "apply-to", "priority"]) fields[name].value = policy[name];
    fields.definition.value = JSON.stringify(policy.definition);
    fields.definition.focus();
  };
  return { node, fill };
}

function readDefinition(text) {
  try {
    return JSON.parse(text);
  } catch (error) {
    throw new Error(`The definition is no JSON: ${error.message}`);
  }
}

export const policies = {
  title: () => "Policies",
  async show(main, { signal }) {
    const box = h("div");
    const where = ({ vhost, name }) => `api/policies/${path(vhost, name)}`;
    let edited;
    const drop = async (one) => {
      if (await confirmed(`Delete the policy ${one.name} of ${one.vhost}? What it was for holds to what is left.`, "Delete")) {
        await act(box, async () => (await remove(where(one)), await list.load(), told("Deleted.")));
      }
    };
    const list = new List(main, signal, { from: "api/policies", changes: "policies", empty: "No policy is set.", columns: makeColumns((one) => edited?.fill(one), drop) });
    if (!mayChange()) return;
    edited = makeForm(await get("api/vhosts", {}, signal), ({ name, vhost, pattern, priority, definition, ...more }) =>
      act(box, async () => {
        const said = { pattern: pattern.value, definition: readDefinition(definition.value), priority: Number(priority.value), "apply-to": more["apply-to"].value };
        await put(where({ vhost: vhost.value, name: name.value }), said);
        await list.load();
        return told("Set. What it is for holds to it from now on.");
      }),
    );
    main.append(h("h2", {}, "Set a policy"), box, edited.node);
  },
};
