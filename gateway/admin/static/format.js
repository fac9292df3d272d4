// Figures as people read them.

const COUNT = new Intl.NumberFormat("en");
const BYTES = ["B", "KiB", "MiB", "GiB", "TiB", "PiB"];

export function count(value) {
  return value === undefined || value === null ? "" : COUNT.format(value);
}

export function bytes(value) {
  if (value === undefined || value === null) return "";
  let power = 0;
  while (value >= 1024 && power < BYTES.length - 1) [value, power] = [value / 1024, power + 1];
  return `${power === 0 || value >= 100 ? Math.round(value) : value.toFixed(1)} ${BYTES[power]}`;
}

// A number a second, short.
export function rate(value) {
  if (value === undefined || value === null || Number.isNaN(value)) return "";
  if (value >= 1e6) return `${(value / 1e6).toFixed(1)} M`;
  if (value >= 1e4) return `${(value / 1e3).toFixed(1)} k`;
  return value >= 100 || value === 0 ? COUNT.format(Math.round(value)) : value.toFixed(1);
}

export function duration(ms) {
  if (ms === undefined || ms === null) return "";
  if (ms < 1_000) return `${ms < 10 ? ms.toFixed(1) : Math.round(ms)} ms`;
  const s = ms / 1_000;
  if (s < 60) return `${s < 10 ? s.toFixed(1) : Math.floor(s)} s`;
  if (s < 3_600) return `${Math.floor(s / 60)} min ${Math.floor(s % 60)} s`;
  if (s < 86_400) return `${Math.floor(s / 3_600)} h ${Math.floor((s % 3_600) / 60)} min`;
  return `${Math.floor(s / 86_400)} d ${Math.floor((s % 86_400) / 3_600)} h`;
}

// How long ago a moment was.
export function age(ms) {
  return ms ? duration(Math.max(Date.now() - ms, 0)) : "";
}

// A moment in this browser's time, with the date where that is not today's.
export function moment(ms) {
  if (!ms) return "";
  const at = new Date(ms);
  const time = at.toLocaleTimeString("en-GB");
  return at.toDateString() === new Date().toDateString() ? time : `${at.toISOString().slice(0, 10)} ${time}`;
}

export function yes(value) {
  return value ? "yes" : "no";
}

const LIGHT = /^%LMQ%(mqtt|amqp)%(.*)$/;
const ESCAPED = /\|(p|h|[0-9a-f]{2})|%/g;
const SPECIAL = { p: "+", h: "#" };

function unescapeName(text) {
  const latin = text.replace(ESCAPED, (whole, code) => (whole === "%" ? "/" : (SPECIAL[code] ?? String.fromCharCode(parseInt(code, 16)))));
  return new TextDecoder().decode(Uint8Array.from(latin, (one) => one.charCodeAt(0)));
}

// The name of a light queue as people know it; one that is shortened by a hash stays as it is.
// Source: docs/storage-format.md, "Names of light queues".
export function lightName(name) {
  const [, kind, rest] = LIGHT.exec(name) ?? [];
  if (!kind || rest.includes("|z") || rest.includes("|t")) return name;
  if (kind === "mqtt") return `filter ${unescapeName(rest)}`;
  const end = rest.indexOf("%");
  return end < 0 ? name : `queue ${unescapeName(rest.slice(end + 1))} in ${unescapeName(rest.slice(0, end))}`;
}
