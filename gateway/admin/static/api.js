// Asks the gateway. Where a login is needed the browser asks for it by itself.

export class Refused extends Error {
  constructor(status, reason, word) {
    super(reason);
    this.status = status;
    this.word = word; // what the gateway calls it
  }
}

async function ask(method, path, body, signal) {
  let answer;
  try {
    answer = await fetch(path, {
      method,
      signal,
      headers: body === undefined ? {} : { "Content-Type": "application/json" },
      body: body === undefined ? undefined : JSON.stringify(body),
    });
  } catch (error) {
    if (error.name === "AbortError") throw error;
    throw new Refused(0, "The gateway does not answer.");
  }
  const text = await answer.text();
  let found;
  try {
    found = text ? JSON.parse(text) : null;
  } catch {
    found = text;
  }
  if (!answer.ok) throw new Refused(answer.status, reasonOf(found) || `${answer.status} ${answer.statusText}`, found?.error);
  return found;
}

function reasonOf(found) {
  const reason = found?.reason ?? found?.detail ?? found;
  return typeof reason === "string" ? reason : reason && JSON.stringify(reason);
}

// A path below the console's own, each part of it encoded.
export function path(...parts) {
  return parts.map((part) => encodeURIComponent(part)).join("/");
}

export function get(where, params, signal) {
  // Of a list each part is given by itself.
  const given = Object.entries(params ?? {}).flatMap(([name, value]) => (Array.isArray(value) ? value : [value]).map((one) => [name, one]));
  const query = new URLSearchParams(given.filter(([, value]) => value !== undefined));
  return ask("GET", query.size ? `${where}?${query}` : where, undefined, signal);
}

// Wait for something that is of no use any more when the page was left.
export async function unlessLeft(doing) {
  try {
    return await doing;
  } catch (error) {
    if (error.name !== "AbortError") throw error;
  }
}

export const put = (where, body) => ask("PUT", where, body ?? {});
export const post = (where, body) => ask("POST", where, body ?? {});
export const remove = (where) => ask("DELETE", where);
