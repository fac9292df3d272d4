// Makes elements. Text is only ever set as text: what comes from the gateway is never read as HTML.

const SVG = "http://www.w3.org/2000/svg";

function fill(node, attributes, children) {
  for (const [name, value] of Object.entries(attributes ?? {})) {
    if (value === undefined || value === null || value === false) continue;
    if (name.startsWith("on")) node.addEventListener(name.slice(2), value);
    else if (name in node && name !== "list" && !(node instanceof SVGElement)) node[name] = value;
    else node.setAttribute(name, value === true ? "" : value);
  }
  node.append(...children.flat(Infinity).filter((child) => child !== undefined && child !== null && child !== false));
  return node;
}

// An HTML element; `onclick` and the like are listeners, other attributes are set as properties where there are such.
export function h(tag, attributes, ...children) {
  return fill(document.createElement(tag), attributes, children);
}

// An SVG element.
export function svg(tag, attributes, ...children) {
  return fill(document.createElementNS(SVG, tag), attributes, children);
}

// Put other children into a node that is drawn anew by itself: the focus stays on what is the same, and what was
// scrolled sideways stays so.
export function renew(node, ...children) {
  const held = node.contains(document.activeElement) && document.activeElement !== node ? document.activeElement : null;
  const isLike = (one) => (held.className === "scroll" ? one.className === "scroll" : one.getAttribute("href") === held.getAttribute("href") && one.textContent === held.textContent);
  const alike = () => [...node.querySelectorAll(held.tagName)].filter(isLike);
  const place = held ? alike().indexOf(held) : -1;
  const scrolled = [...node.querySelectorAll(".scroll")].map((one) => one.scrollLeft);
  node.replaceChildren(...children.flat(Infinity).filter((child) => child !== undefined && child !== null && child !== false));
  node.querySelectorAll(".scroll").forEach((one, i) => (one.scrollLeft = scrolled[i] ?? 0));
  if (held) alike()[place]?.focus({ preventScroll: true });
}

// Rows of names and values; those without a value are left out.
export function facts(rows) {
  const shown = rows.filter(([, value]) => value !== undefined && value !== null && value !== "");
  return h("dl", {}, shown.map(([name, value]) => [h("dt", {}, name), h("dd", {}, value)]));
}

// A paragraph that tells what went wrong, or what was done; screen readers say it.
export function told(text, isBad = false) {
  return h("p", { className: isBad ? "told bad" : "told", role: isBad ? "alert" : "status" }, text);
}

// Do something, and tell in a box how it went: what it says, or `done`.
export async function act(box, doing, done) {
  try {
    const said = await doing();
    box.replaceChildren(done === undefined ? said : told(done));
  } catch (error) {
    box.replaceChildren(told(error.message, true));
  }
}

// A card with a figure and, below it, what else is given.
export function card(name, value, unit, ...more) {
  return h(
    "section",
    { className: "card" },
    h("h2", {}, name),
    h("div", { className: "value" }, value, " ", h("span", { className: "unit" }, unit ?? "")),
    more,
  );
}

// Ask before something that cannot be taken back; the answer is a promise of true or false.
export function confirmed(question, verb) {
  return new Promise((resolve) => {
    const dialog = h(
      "dialog",
      { onclose: () => (dialog.remove(), resolve(dialog.returnValue === "yes")) },
      h(
        "form",
        { method: "dialog" },
        h("p", {}, question),
        h(
          "div",
          { className: "bar" },
          h("button", { className: "act danger", value: "yes" }, verb),
          h("button", { className: "act", value: "no", autofocus: true }, "Cancel"),
        ),
      ),
    );
    document.body.append(dialog);
    dialog.showModal();
  });
}
