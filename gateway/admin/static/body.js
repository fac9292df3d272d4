// The body of a message, as people read it: JSON indented, bytes that are no text in hexadecimal digits.

import { h } from "./dom.js";

const INDENT = "  ";
const DEEP = 32; // levels that are indented: of thousands each line would be as long as the body
const IN_A_LINE = 16; // bytes
const TOKEN = /"(?:[^"\\]|\\.)*"|[{}[\],:]|[^\s{}[\],:"]+/g;

// Indents JSON without reading its values: long numbers, equal names and escapes stay as they were sent.
export function indentJson(text) {
  let depth = 0;
  let before = "";
  let found = "";
  const start = () => `\n${INDENT.repeat(Math.min(depth, DEEP))}`;
  for (const [token] of text.matchAll(TOKEN)) {
    const isOpened = before === "{" || before === "[";
    if (token === "}" || token === "]") {
      depth -= 1;
      found += isOpened ? token : start() + token;
    } else {
      if (isOpened || before === ",") found += start();
      found += token === ":" ? ": " : token;
      if (token === "{" || token === "[") depth += 1;
    }
    before = token;
  }
  return found;
}

function isJson(text) {
  if (!/^\s*[[{]/.test(text)) return false;
  try {
    JSON.parse(text);
    return true;
  } catch {
    return false;
  }
}

// Lines of a place, sixteen bytes, and the letters of ASCII that they are.
export function dumpBytes(base64) {
  const bytes = Uint8Array.from(atob(base64), (one) => one.charCodeAt(0));
  const lines = [];
  for (let at = 0; at < bytes.length; at += IN_A_LINE) {
    const some = [...bytes.subarray(at, at + IN_A_LINE)];
    const digits = some.map((one) => one.toString(16).padStart(2, "0")).join(" ").padEnd(3 * IN_A_LINE - 1);
    const letters = some.map((one) => (one >= 0x20 && one < 0x7f ? String.fromCharCode(one) : ".")).join("");
    lines.push(`${at.toString(16).padStart(8, "0")}  ${digits}  ${letters}`);
  }
  return lines.join("\n");
}

// What is shown of a body that the gateway told: elements.
export function showBody({ body, encoding, body_bytes: size }) {
  const text = (shown) => h("pre", { tabIndex: 0 }, shown);
  if (size === 0) return [h("p", { className: "faint" }, "It is empty.")];
  if (encoding === "base64") return [text(dumpBytes(body)), h("details", {}, h("summary", {}, "In base64"), h("pre", { tabIndex: 0, className: "wrapped" }, body))];
  if (!isJson(body)) return [text(body)];
  const indented = indentJson(body);
  return indented === body ? [text(body)] : [text(indented), h("details", {}, h("summary", {}, "As it was sent"), text(body))];
}
