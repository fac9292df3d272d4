// What operators see when something is not as usual: hostile names, refusals, a gateway that is away, a queue that is gone.

import { readFileSync } from "node:fs";
import { createRequire } from "node:module";

const AXE = readFileSync(createRequire(import.meta.url).resolve("axe-core/axe.min.js"), "utf8");
const SERIOUS = ["serious", "critical"];

// What axe-core finds on a page that keeps people out.
export async function findBarriers(page) {
  await page.evaluate(AXE);
  const { violations } = await page.evaluate(() => axe.run(document, { resultTypes: ["violations"] }));
  return violations.filter((one) => SERIOUS.includes(one.impact)).map((one) => `${one.id}, ${one.impact}: ${one.nodes[0].target.join(" ")}`);
}

// Every page of a thing that has markup for a name; nothing of it runs, and the page does not grow wider.
export async function showHostileNames({ browser, base, markup, wrong }) {
  const context = await browser.newContext({ viewport: { width: 500, height: 800 }, httpCredentials: { username: "guest", password: "guest" } });
  const page = await context.newPage();
  page.on("dialog", (dialog) => (wrong("hostile names", `a dialog opens on ${page.url()}`), dialog.dismiss()));
  page.on("pageerror", (error) => wrong("hostile names", error.message));
  const name = encodeURIComponent(markup);
  const places = [`queues/%2F/${name}`, `exchanges/%2F/${name}`, `sessions/${name}`, `users/${name}`, `route?topic=${name}/a`, `route?exchange=${name}&key=${name}`];
  for (const where of [...places, "queues", "exchanges", "sessions", "subscriptions", "users", "policies", "vhosts", "retained", "topics", "fan-out", "held", "log", "logs"]) {
    await page.goto(`${base}/#/${where}`);
    await page.waitForFunction((text) => document.querySelector("main").innerText.includes(text), markup, { timeout: 8_000 }).catch(() => wrong(where, `${markup} is not shown as it is`));
    if (where.startsWith("route?topic=")) await page.waitForSelector("svg.graph .reader", { state: "attached", timeout: 8_000 }).catch(() => wrong(where, "no reader is drawn"));
    if (await page.locator("main img").count()) wrong(where, "markup became an element");
    if (await page.evaluate(() => document.documentElement.scrollWidth > innerWidth)) wrong(where, "it is wider than the window");
  }
  await context.close();
}

// Names as long as they may be leave the columns beside them on the page, and are shown whole wherever a queue is.
export async function showLongNames({ page, go, expectText, wrong }) {
  for (const where of ["queues", "subscriptions", "held", `queues/%2F/${"x".repeat(240)}`]) {
    await go(page, where);
    await page.waitForSelector("main td");
    await page.waitForTimeout(700);
    const wide = await page.evaluate(() => [...document.querySelectorAll("main .scroll")].filter((one) => one.scrollWidth > one.clientWidth + 1).map((one) => `${one.ariaLabel}: ${one.scrollWidth} in ${one.clientWidth} px`));
    for (const one of wide) wrong(where, `a table is wider than its page: ${one}`);
  }
  const topicFilter = `filter ${"x".repeat(240)}/#`;
  await go(page, "held");
  await expectText(page, "a long filter that waits", topicFilter);
  await page.click(`main a:has-text('${topicFilter}')`);
  await page.waitForFunction((text) => document.querySelector("main h1").textContent === text, topicFilter, { timeout: 8_000 }).catch(() => wrong("a long filter", "its page has another title"));
  await page.click("main td a >> nth=0");
  await expectText(page, "a message of a long filter", topicFilter);
}

// A message with JSON, one of bytes, the properties of MQTT 5 and the headers of AMQP.
export async function readMessages({ page, go, expectText, wrong }) {
  const open = async (queue, number) => {
    await go(page, `queues/%2F/${queue}`);
    await page.click(`main .scroll[aria-label*=message] tbody tr:nth-child(${number}) td a >> nth=0`);
  };
  await open("bodies", 1);
  await expectText(page, "JSON", '  "big": 12345678901234567890,');
  for (const text of ["content_type", "application/json", "header", "kind", "job", "As it was sent"]) await expectText(page, "headers of AMQP", text);
  await open("bodies", 2);
  await expectText(page, "bytes", "00000000  00 ff 41 42");
  await open("bodies", 3);
  await expectText(page, "no bytes", "It is empty.");
  await open("bodies", 4);
  await expectText(page, "a deep body", "As it was sent");
  const shown = await page.evaluate(() => document.querySelector("main pre").textContent.length);
  if (shown > 2_000_000) wrong("a deep body", `${shown} characters are shown`);
  await open("fives", 1);
  for (const text of ["user property", "first", "second", "response topic", "re/1", "hex 00 01 ff"]) await expectText(page, "properties of MQTT 5", text);
}

// Where a message goes that a headers exchange looks into, and one to a topic of RocketMQ.
export async function findOtherWays({ page, go, expectText }) {
  await go(page, "route?exchange=by-headers&key=j");
  await expectText(page, "without headers", "An exchange of the type headers looks at headers");
  await page.fill("main label:has-text('Headers') textarea", "kind=job");
  await page.click("main form:has(textarea) button");
  await expectText(page, "with headers", "queue jobs in /");
  await go(page, "route?exchange=by-alternate&key=two");
  await expectText(page, "by the alternate exchange", "queue unrouted in /");
  await go(page, "queues/v/hers");
  await page.click("main a[href*='exchange=only-here']");
  await expectText(page, "an exchange of another virtual host", "queue hers in v");
  await go(page, "route?rocketmq=Orders");
  await expectText(page, "a topic of RocketMQ", "Orders/0: ");
  await go(page, "route?rocketmq=NoSuch");
  await expectText(page, "no topic of RocketMQ", "There is no topic of RocketMQ of that name yet");
}

// A queue that another operator deletes while its page is shown.
export async function loseAQueue({ page, base, go, expectText, wrong }) {
  const login = { Authorization: `Basic ${Buffer.from("guest:guest").toString("base64")}` };
  await fetch(`${base}/api/queues/%2F/short-lived`, { method: "PUT", headers: login, body: "{}" });
  await go(page, "queues/%2F/short-lived");
  await expectText(page, "a queue", "Nobody consumes.");
  await fetch(`${base}/api/queues/%2F/short-lived`, { method: "DELETE", headers: login });
  await expectText(page, "a queue that is gone", "no queue 'short-lived'");
  if (await page.locator("main button, main .card").count()) wrong("a queue that is gone", "it is shown as if it were there");
}

// What may not be done is told, and a question comes before what cannot be taken back.
export async function beRefused({ browser, base, wrong, expectText }) {
  const context = await browser.newContext({ httpCredentials: { username: "ann", password: "ann" } });
  const page = await context.newPage();
  await page.goto(base);
  await page.evaluate(() => fetch("api/whoami")); // from this machine it would look without a login
  for (const [queue, button, said] of [["v/hers", "Move", ""], ["%2F/watched", "Purge", "refused for user 'ann'"], ["%2F/watched", "Delete", "refused for user 'ann'"]]) {
    await page.goto(`${base}/#/queues/${queue}`);
    await page.click(`main button:text-is('${button}')`);
    const asked = await page.innerText("dialog").catch(() => "");
    if (!asked.includes(decodeURIComponent(queue).split("/").at(-1))) wrong(button, `it asks "${asked}" before it does it`);
    await page.click(`dialog button:text-is('${said ? button : "Cancel"}')`);
    if (said) await expectText(page, `${button} without rights`, said);
  }
  await context.close();
}

// A stream that is refused, as by a proxy whose gateway is away, and one of a gateway that has no sample yet.
export async function comeAgain({ browser, base, wrong }) {
  const context = await browser.newContext();
  const page = await context.newPage();
  page.on("pageerror", (error) => wrong("a stream that comes again", error.message));
  const answers = [{ status: 502, body: "bad gateway" }, { contentType: "text/event-stream", body: "retry: 300\nevent: history\ndata: []\n\n" }];
  await page.route("**/api/lmq/live", (route) => (answers.length ? route.fulfill(answers.shift()) : route.continue()));
  await page.goto(base);
  const isReady = () => document.getElementById("state").textContent === "ready" && document.querySelector("main .card svg polyline");
  await page.waitForFunction(isReady, null, { timeout: 15_000 }).catch(async () => wrong("a stream that comes again", `it is said: ${await page.innerText("#state")}`));
  if (answers.length) wrong("a stream that comes again", "it was not asked for again");
  await context.close();
}
