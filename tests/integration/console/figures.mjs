// Pages whose figures are held to what was done: rates under a load, bridges, and lists whose rows are told apart.

import { retain } from "./changes.mjs";

const login = { Authorization: `Basic ${Buffer.from("guest:guest").toString("base64")}`, "Content-Type": "application/json" };
const TURN_MS = 100;
const RATES_MS = 5_000; // that rates are those of
const LOAD_MS = 25_000; // at most
const OFF = 0.25; // of a rate, which is of whole seconds

async function ask(base, where, said) {
  const answer = await fetch(`${base}/api/${where}`, { method: "POST", headers: login, body: JSON.stringify(said) });
  return answer.json();
}

// The columns of the page of virtual hosts, while as much as is counted here is published, taken, given back and
// taken again.
export async function seeRates({ page, base, go, wrong }) {
  await go(page, "vhosts");
  const done = { "Published /s": [], "Delivered /s": [], "Redelivered /s": [], "Acknowledged /s": [] };
  const note = (name) => done[name].push(Date.now());
  const publish = async () => {
    await ask(base, "exchanges/v/amq.default/publish", { properties: {}, routing_key: "loaded", payload: "x", payload_encoding: "string" });
    note("Published /s");
  };
  const take = async (ackmode) => {
    const [taken] = await ask(base, "queues/v/loaded/get", { count: 1, ackmode, encoding: "auto" });
    note("Delivered /s");
    if (taken.redelivered) note("Redelivered /s");
    if (ackmode === "ack_requeue_false") note("Acknowledged /s");
  };
  const read = () =>
    page.evaluate(() => {
      const titles = [...document.querySelectorAll("main thead th")].map((node) => node.innerText.replace(/\s+/g, " "));
      const row = [...document.querySelectorAll("main tbody tr")].find((node) => node.cells[0].innerText === "v");
      return Object.fromEntries(titles.map((title, i) => [title, row?.cells[i].innerText]));
    });
  const begun = Date.now();
  const isLike = (shown, wanted) => Math.abs(Number(shown) - wanted) <= wanted * OFF;
  for (let turn = 0; ; turn++) {
    const turned = Date.now();
    for (let i = 0; i < 3; i++) await publish();
    await take(turn % 2 ? "ack_requeue_false" : "ack_requeue_true");
    const since = Date.now() - RATES_MS;
    const rates = Object.entries(done).map(([name, times]) => [name, times.filter((at) => at >= since).length / (RATES_MS / 1_000)]);
    const shown = await read();
    if (begun < since && rates.every(([name, wanted]) => wanted > 0 && isLike(shown[name], wanted))) break;
    if (begun < Date.now() - LOAD_MS) {
      wrong("vhosts under a load", `of ${rates.map((one) => one.join(" "))} it shows ${JSON.stringify(shown)}`);
      break;
    }
    await new Promise((resolve) => setTimeout(resolve, Math.max(TURN_MS - (Date.now() - turned), 0)));
  }
}

// A bridge that stands, what it carries, and one whose other broker is away.
export async function seeBridges({ page, go, expectText, wrong, mqttHost, mqttPort }) {
  await go(page, "bridges");
  await expectText(page, "a bridge", "site connected to ");
  await expectText(page, "a bridge that does not stand", "gone not connected to ");
  const figures = (name) => page.innerText(`main section[aria-label="${name}"]`);
  if (!(await figures("site")).includes("1 in and 0 out since the start. Dropped: none.")) wrong("a bridge", `it says ${await figures("site")}`);
  if (!/[1-9]\d* failed/.test(await figures("gone"))) wrong("a bridge that does not stand", `it says ${await figures("gone")}`);
  await retain(mqttHost, mqttPort, "over/1", "");
  await expectText(page, "what a bridge carries", "1 in and 1 out since the start");
  if ((await page.locator("main section[aria-label=site] svg polyline").count()) < 2) wrong("a bridge", "its plots are missing");
  await go(page, "overview");
  await page.waitForSelector("main table tr:has(td:text-is('site')):has(td:text-is('yes'))", { timeout: 8_000 }).catch(() => wrong("overview", "the bridge that stands is not there"));
  await page.waitForSelector("main table tr:has(td:text-is('gone')):has(.bad:text-is('no'))", { timeout: 8_000 }).catch(() => wrong("overview", "the bridge that does not stand is not there"));
}

// One word for no limit, rows of two virtual hosts that differ, and kinds in one line beside a long name.
export async function seeWhatIsAlike({ page, go, expectText, wrong }) {
  await go(page, "consumers");
  await expectText(page, "consumers", "a greedy one");
  const link = page.locator("main tr:has-text('a greedy one') td a[href^='#/connections/']");
  const greedy = (await link.getAttribute("href")).slice(2);
  for (const where of ["consumers", greedy, "queues/%2F/unrouted"]) {
    await go(page, where);
    await page.waitForSelector("main td.number:text-is('no limit')", { timeout: 8_000 }).catch(() => wrong(where, "it does not say that there is no limit"));
  }
  await go(page, "letters");
  await page.waitForSelector("main td a:has-text('graves') >> nth=1", { timeout: 8_000 }).catch(() => wrong("dead letters", "one of two queues is missing"));
  const rows = await page.evaluate(() => [...document.querySelectorAll("main tbody tr")].map((row) => row.innerText).filter((text) => text.startsWith("graves")));
  if (new Set(rows.map((text) => text.split("\t").slice(0, 2).join())).size !== 2) wrong("dead letters", `queues of two virtual hosts look alike: ${rows}`);
  await go(page, "overview");
  await expectText(page, "what waits", "MQTT session, filter plant/#");
  const isBroken = await page.evaluate(() => {
    const cell = [...document.querySelectorAll("main td")].find((node) => node.textContent === "MQTT session, filter plant/#");
    const range = document.createRange();
    range.selectNodeContents(cell);
    return range.getClientRects().length > 1;
  });
  if (isBroken) wrong("what waits", "what waits is in several lines beside a long name");
}
