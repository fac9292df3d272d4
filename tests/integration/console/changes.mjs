// Pages whose lists seldom change go on by themselves, and ask for nothing as long as nothing changed.

import { connect } from "node:net";

const STILL_MS = 4_500; // longer than other pages wait until they ask again
const FIRST = { retained: "plant/1/temp", "exchanges/%2F/by-alternate": "Publish", "users/ann": "Set the permissions" };
const RATES_MS = 11_000; // twice as long as rates are those of, and longer
const login = { Authorization: `Basic ${Buffer.from("guest:guest").toString("base64")}`, "Content-Type": "application/json" };

// Publish a retained message by MQTT 3.1.1, at QoS 0; an empty body takes it away.
export function retain(host, port, topic, body) {
  const text = (said) => Buffer.concat([Buffer.from([said.length >> 8, said.length & 0xff]), Buffer.from(said)]);
  const packet = (kind, ...parts) => {
    const content = Buffer.concat(parts);
    return Buffer.concat([Buffer.from([kind, content.length]), content]);
  };
  return new Promise((resolve, reject) => {
    const socket = connect(port, host, () => {
      socket.write(packet(0x10, text("MQTT"), Buffer.from([4, 2, 0, 60]), text("a retainer")));
      socket.write(packet(0x31, text(topic), Buffer.from(body)));
      socket.end(packet(0xe0));
    });
    socket.on("error", reject);
    socket.on("close", resolve);
    socket.resume();
  });
}

// Make something, and take it away, while its page is shown; then leave all as it is.
export async function seeChanges({ page, base, go, expectText, wrong, mqttHost, mqttPort }) {
  const change = async (method, where, said = {}) => {
    const answer = await fetch(`${base}/api/${where}`, { method, headers: login, body: method === "DELETE" ? undefined : JSON.stringify(said) });
    if (!answer.ok) wrong(where, `${method} is answered with ${answer.status}`);
  };
  const parts = [
    ["exchanges", "came-just-now", (method) => change(method, "exchanges/%2F/came-just-now", { type: "fanout" })],
    ["vhosts", "came-just-now", (method) => change(method, "vhosts/came-just-now")],
    ["users", "came-just-now", (method) => change(method, "users/came-just-now", { password: "x", tags: "" })],
    ["policies", "came-just-now", (method) => change(method, "policies/%2F/came-just-now", { pattern: "^none$", definition: { "max-length": 1 } })],
    ["exchanges/%2F/by-alternate", "came-just-now", (method) => (method === "PUT" ? change("POST", "bindings/%2F/e/by-alternate/q/jobs", { routing_key: "came-just-now" }) : change(method, "bindings/%2F/e/by-alternate/q/jobs/came-just-now"))],
    ["users/ann", "^came-just-now", (method) => change("PUT", "permissions/v/ann", { configure: method === "PUT" ? "^came-just-now" : ".*", write: ".*", read: ".*" })],
    ["retained", "came/just/now", (method) => retain(mqttHost, mqttPort, "came/just/now", method === "PUT" ? "x" : "")],
  ];
  await page.waitForTimeout(RATES_MS); // what was published before changes no rate any more
  for (const [where, name, make] of parts) {
    await go(page, where);
    await expectText(page, where, FIRST[where] ?? "in all");
    await make("PUT");
    await expectText(page, `${where}, live`, name);
    await make("DELETE");
    const isGone = (text) => !document.querySelector("main table").innerText.includes(text);
    await page.waitForFunction(isGone, name, { timeout: 8_000 }).catch(() => wrong(`${where}, live`, `${name} is shown still`));
    await page.waitForTimeout(STILL_MS); // what was left to be seen is seen
    let asked = 0;
    const note = (request) => (asked += !request.url().endsWith("/live"));
    page.on("request", note);
    await page.waitForTimeout(STILL_MS);
    page.off("request", note);
    if (asked) wrong(`${where}, live`, `it asked ${asked} times though nothing changed`);
  }
}
