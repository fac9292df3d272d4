// Messages that wait for their moment, at any door, and taking one back.

import { get, path, remove } from "../api.js";
import { mayAskAll } from "../caller.js";
import { confirmed, h, renew, told } from "../dom.js";
import { bytes, count, duration, moment, plural } from "../format.js";
import { table } from "../list.js";

const COUNT = 100;

export const delayed = {
  title: () => "Delayed messages",
  show(main, { signal }) {
    const box = h("div");
    const shown = h("div");
    const said = h("p", { className: "faint" });
    const name = h("input", { type: "search", spellcheck: false });
    const door = h("select", {}, h("option", { value: "" }, "all"), ["mqtt", "amqp", "rocketmq"].map((one) => h("option", { value: one }, one)));
    const takeBack = async (one) => {
      if (!(await confirmed(`Take the message to ${one.to} back? Nobody gets it.`, "Take back"))) return;
      try {
        await remove(`api/lmq/delayed/${path(one.id)}`);
        box.replaceChildren(told("Taken back."));
      } catch (error) {
        box.replaceChildren(told(error.message, true));
      }
      await load();
    };
    const columns = [
      { title: "Due", read: (one) => `${moment(one.due_at_ms)}, ${one.due_at_ms > Date.now() ? `in ${duration(one.due_at_ms - Date.now())}` : "now"}` },
      { title: "Goes to", read: (one) => one.to },
      { title: "Door", read: (one) => one.door },
      { title: "Publisher", read: (one) => one.client || one.user || "" },
      { title: "Bytes", isNumber: true, read: (one) => bytes(one.body_bytes) },
      { title: "Body", read: (one) => h("span", { className: "mono" }, one.body.length > 120 ? `${one.body.slice(0, 120)}…` : one.body) },
      { title: "Change", isUnseen: true, isActions: true, read: (one) => mayAskAll() && h("button", { className: "act danger", type: "button", onclick: () => takeBack(one) }, "Take back") },
    ];
    const load = async (after) => {
      try {
        const found = await get("api/lmq/delayed", { count: COUNT, after, door: door.value || undefined, name: name.value }, signal);
        // The gateway counts those too that were taken back, until they were due.
        const isAll = !after && !found.next && !door.value && !name.value;
        const waiting = isAll ? plural(found.items.length, "message") : `At most ${plural(found.waiting, "message")}`;
        said.textContent = isAll && !found.items.length ? "No message waits for its moment." : `${waiting}, about in the order in which they are due.`;
        renew(
          shown,
          (!isAll || found.items.length > 0) && table(found.items.length ? `${count(found.items.length)} shown` : "none of them goes there", columns, found.items),
          found.next ? h("div", { className: "bar" }, h("button", { className: "act", type: "button", onclick: () => load(found.next) }, "Next")) : "",
        );
      } catch (error) {
        if (error.name !== "AbortError") box.replaceChildren(told(error.message, true));
      }
    };
    main.append(
      h(
        "form",
        { className: "bar", role: "search", onsubmit: (event) => (event.preventDefault(), load()) },
        h("label", { className: "grow" }, "A part of where they go", name),
        h("label", {}, "Door", door),
        h("button", { className: "act" }, "Show"),
      ),
      box,
      said,
      shown,
    );
    return load();
  },
};
