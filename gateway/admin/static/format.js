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

// How many messages a consumer may hold at once; AMQP's 0 is no limit.
export const prefetch = (value) => (value ? count(value) : "no limit");

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
  return at.toDateString() === new Date().toDateString() ? time : `${dateOf(at)} ${time}`;
}

const pad = (number) => String(number).padStart(2, "0");
const dateOf = (at) => `${String(at.getFullYear()).padStart(4, "0")}-${pad(at.getMonth() + 1)}-${pad(at.getDate())}`;

// The same with its date and how far it is from UTC, for what is asked and told of it: where clocks go back an hour
// comes twice, and where they go forward one is left out.
export function exactMoment(ms) {
  const at = new Date(ms);
  const ahead = -at.getTimezoneOffset();
  const far = ahead ? `${ahead < 0 ? "−" : "+"}${pad(Math.floor(Math.abs(ahead) / 60))}:${pad(Math.abs(ahead) % 60)}` : "";
  return `${dateOf(at)} ${at.toLocaleTimeString("en-GB")} UTC${far}`;
}

// The moment that a field `datetime-local` says, in this browser's time: of two the first. undefined: it says none.
export function momentOf(text) {
  const ms = new Date(text).getTime();
  return Number.isNaN(ms) ? undefined : ms;
}

export function yes(value) {
  return value ? "yes" : "no";
}

const LIGHT = /^%LMQ%(mqtt|amqp)%(.*)$/;
const AMQP = /^(\|r|\|x|\|y(\d+)%)?(.*)$/; // what it refuses, an exchange, messages of a priority
const ESCAPED = /\|(p|h|[0-9a-f]{2})|%/g;
const SPECIAL = { p: "+", h: "#" };

function unescapeName(text) {
  const latin = text.replace(ESCAPED, (whole, code) => (whole === "%" ? "/" : (SPECIAL[code] ?? String.fromCharCode(parseInt(code, 16)))));
  return new TextDecoder().decode(Uint8Array.from(latin, (one) => one.charCodeAt(0)));
}

// The name of a light queue as people know it. Of a long one it has only some digits: `told` is what the gateway says,
// with `name` and `vhost`.
// Source: docs/storage-format.md, "Names of light queues".
export function lightName(name, told) {
  const [, kind, rest] = LIGHT.exec(name) ?? [];
  if (!kind) return name;
  const long = (what, given) => (told && !told.name.startsWith("(") ? given(told) : `${what} with a long name, ${/\|z(.{8})/.exec(rest)[1]}…`);
  if (kind === "mqtt") return rest.startsWith("|z") ? long("filter", ({ name: filter }) => `filter ${filter}`) : `filter ${unescapeName(rest)}`;
  const [, special, level, parts] = AMQP.exec(rest);
  const end = parts.indexOf("%");
  if (end < 0 && !parts.startsWith("|z")) return name;
  const [vhost, own] = [unescapeName(parts.slice(0, end)), parts.slice(end + 1)];
  if (own.startsWith("|t")) return `queue that ends with its users in ${vhost}`;
  if (special === "|x") return `exchange ${unescapeName(own)} in ${vhost}`;
  const queue = parts.startsWith("|z") ? long("queue", (one) => `queue ${one.name} in ${one.vhost}`) : `queue ${unescapeName(own)} in ${vhost}`;
  if (special === "|r") return `${queue}, what it refused`;
  return level ? `${queue}, priority ${level}` : queue;
}

// The virtual host of a light queue of AMQP, undefined for other ones.
export function vhostOf(name) {
  const [, kind, rest] = LIGHT.exec(name) ?? [];
  if (kind !== "amqp" || rest.startsWith("|z")) return undefined;
  const parts = AMQP.exec(rest)[3];
  return parts.includes("%") ? unescapeName(parts.slice(0, parts.indexOf("%"))) : undefined;
}

// What a light queue is called in a list: by its door where that knows its name.
export const calledName = (name, told) => (name.startsWith("%LMQ%") ? lightName(name, told) : name);

// Of RocketMQ's response codes, which count what its door refused.
const CODES = {
  1: "system error", 2: "system busy", 3: "request code not supported", 10: "flush disk timeout", 13: "message illegal",
  14: "service not available", 16: "no permission", 17: "topic not exist", 21: "pull offset moved", 22: "query not found",
  23: "subscription parse failed", 24: "subscription not exist", 25: "subscription not latest", 26: "subscription group not exist",
  29: "invalid parameter", 206: "consumer not online", 207: "consume message timeout", 604: "illegal operation",
};

// Whether a door has anything to tell: the admin API and the gateway's own events are mostly silent ones, without
// connections that count.
const SILENT = new Set(["admin", "events"]);
export const isUsed = ([name, door]) => !SILENT.has(name) || Boolean(door.messages_in || door.messages_out || Object.keys(door.refused).length || Object.keys(door.dropped).length);

// Counts by reason, in words; the gateway's names of reasons have lines between their words.
export function reasons(counts) {
  const said = (reason) => {
    const [, code] = /^code_(\d+)$/.exec(reason) ?? [];
    return CODES[code] ? `${CODES[code]} (${code})` : reason.replaceAll("_", " ");
  };
  return Object.entries(counts).map(([reason, number]) => `${said(reason)}: ${count(number)}`).join(", ");
}

export const plural = (number, one, many = `${one}s`) => `${count(number)} ${number === 1 ? one : many}`;
