// Looks for messages and publishes them again by the moment, in browsers of several time zones:
// node times.mjs BASE_URL CHROMIUM
// Prints one line for each thing that was wrong, and "ok N" at the end, N being the number of time zones.
// The gateway has the queues `few`, of five messages in as many seconds or more, `gone`, whose first files are deleted,
// `many`, of more than a click publishes again, and `empty`.

import { chromium } from "playwright-core";

const [base, executablePath] = process.argv.slice(2);
const FLAGS = ["--no-sandbox", "--disable-gpu", "--no-first-run", "--disable-background-networking", "--disable-component-update", "--disable-sync"];
const ZONES = ["UTC", "Europe/Berlin", "America/New_York", "Asia/Kolkata", "Pacific/Kiritimati", "Pacific/Pago_Pago"]; // two of them have another date than UTC at any time
const HOUR_MS = 3_600_000;
const DAY_MS = 24 * HOUR_MS;
const login = { Authorization: `Basic ${Buffer.from("guest:guest").toString("base64")}` };

function wrong(where, what) {
  console.log(`wrong: ${where}: ${what}`);
}

const lightName = (queue) => `%LMQ%amqp%|2f%${queue}`;
const ask = async (where) => (await fetch(`${base}/api/${where}`, { headers: login })).json();
const readAll = async (queue) => (await ask(`lmq/messages?queue=${encodeURIComponent(lightName(queue))}&offset=0&count=200`)).items;

// A moment as the field of a browser there has it, its date and its time.
function local(ms, timeZone) {
  const [date, time] = new Intl.DateTimeFormat("sv-SE", { timeZone, dateStyle: "short", timeStyle: "medium" }).format(ms).split(" ");
  return { field: `${date}T${time}`, date, time };
}

async function expectText(page, step, text) {
  await page
    .waitForFunction((wanted) => document.querySelector("main").innerText.includes(wanted), text, { timeout: 8_000 })
    .catch(async () => wrong(step, `"${text}" does not come; there is: ${(await page.innerText("main")).slice(-500)}`));
}

async function open(browser, timezoneId) {
  const context = await browser.newContext({ timezoneId, viewport: { width: 1280, height: 800 }, httpCredentials: { username: "guest", password: "guest" } });
  const page = await context.newPage();
  page.on("pageerror", (error) => wrong(page.url(), error.message));
  page.zone = timezoneId;
  return page;
}

async function go(page, queue) {
  await page.goto("about:blank"); // what was shown before does not count
  await page.goto(`${base}/#/queues/%2F/${queue}`);
  await page.waitForSelector("main button:has-text('Look from the moment')");
  await page.waitForSelector("main .scroll[aria-label*=message], main .scroll[aria-label*=binding]");
}

async function lookFrom(page, ms) {
  const { field, date, time } = local(ms, page.zone);
  await page.fill("label:has-text('From moment') >> nth=1", field);
  await page.click("button:has-text('Look from the moment')");
  return `from ${date} ${time} UTC`;
}

async function replayFrom(page, text, asked) {
  await page.fill("label:has-text('From moment') >> nth=0", text);
  await page.click("button:has-text('Replay from the moment')");
  const question = await page.innerText("dialog p");
  if (!question.includes(asked)) wrong(`replay in ${page.zone}`, `it asks "${question}", not "${asked}"`);
}

// Each message is found by its own second, in whatever zone the browser is, and those that came before it are not shown.
async function lookByMoment(page, stored) {
  await go(page, "few");
  const first = stored[0].stored_at_ms;
  for (const [i, one] of stored.entries()) {
    const said = await lookFrom(page, one.stored_at_ms);
    await expectText(page, `the moment of message ${i} in ${page.zone}`, said);
    await expectText(page, `the moment of message ${i} in ${page.zone}`, `${stored.length - i} message`);
  }
  await lookFrom(page, first - HOUR_MS);
  await expectText(page, `before the first in ${page.zone}`, `${stored.length} messages, from`);
  const after = await lookFrom(page, Date.now() + HOUR_MS);
  await expectText(page, `after the last in ${page.zone}`, `no message was stored ${after}`);
  await page.click("main button:has-text('Earlier')");
  await expectText(page, `after the last in ${page.zone}`, "few 0");
}

// A message of another day is shown with the date that it had where the browser is.
async function readDates(page, stored) {
  await page.clock.setFixedTime(Date.now() + 3 * DAY_MS);
  await go(page, "few");
  const { date, time } = local(stored[0].stored_at_ms, page.zone);
  await expectText(page, `the date in ${page.zone}`, `${date} ${time}`);
}

// Where clocks go back an hour comes twice, and where they go forward one is left out: what is meant is asked.
async function askAboutShiftedClocks(page) {
  await go(page, "few");
  for (const [text, asked] of [["2026-10-25T02:30:00", "from 2026-10-25 02:30:00 UTC+02:00 on"], ["2026-10-25T03:30:00", "from 2026-10-25 03:30:00 UTC+01:00 on"], ["2026-03-29T02:30:00", "from 2026-03-29 03:30:00 UTC+02:00 on"]]) {
    await replayFrom(page, text, asked);
    await page.click("dialog button:has-text('Cancel')");
  }
}

async function replayByMoment(page, stored) {
  await go(page, "few");
  const { field, date, time } = local(stored[2].stored_at_ms, page.zone);
  await replayFrom(page, field, `from ${date} ${time} UTC`);
  await page.click("dialog button:has-text('Replay')");
  await expectText(page, "replay from the third", "Published 3 messages again, up to offset 5.");
  const bodies = (await readAll("few")).map((one) => one.body);
  if (bodies.join() !== "few 0,few 1,few 2,few 3,few 4,few 2,few 3,few 4") wrong("replay from the third", `the queue has ${bodies}`);
  const later = local(Date.now() + HOUR_MS, page.zone);
  await replayFrom(page, later.field, "from");
  await page.click("dialog button:has-text('Replay')");
  await expectText(page, "replay after the last", `Nothing came from ${later.date} ${later.time}`);
  await go(page, "empty");
  await lookFrom(page, Date.now() - HOUR_MS);
  await expectText(page, "a queue that is empty", "no message was stored from");
}

async function replayWhatIsLeft(page) {
  const { lmq } = await ask("queues/%2F/gone");
  const [first, end] = [lmq.first_offset, lmq.next_offset];
  const begins = `The log has this queue from offset ${first.toLocaleString("en")} on: what came before is gone.`;
  await go(page, "gone");
  await page.fill("label:has-text('From offset') >> nth=1", "0");
  await page.click("button:has-text('Look from the offset')");
  await expectText(page, "an offset that is gone", begins);
  await page.click("main button:has-text('Later')");
  await page.waitForFunction((text) => !document.querySelector("main").innerText.includes(text), begins, { timeout: 8_000 }).catch(() => wrong("behind what is gone", "it is said that something is gone before it"));
  await lookFrom(page, Date.now() - DAY_MS);
  await expectText(page, "a moment that is gone", begins);
  const day = local(Date.now() - DAY_MS, page.zone);
  await replayFrom(page, day.field, `from ${day.date} ${day.time}`);
  await page.click("dialog button:has-text('Replay')");
  await expectText(page, "replay of what is left", ` messages again, up to offset ${end.toLocaleString("en")}.`); // fewer where more went meanwhile
  await go(page, "many");
  await replayFrom(page, day.field, `from ${day.date} ${day.time}`);
  await page.click("dialog button:has-text('Replay')");
  await expectText(page, "replay of many", "There may be more: go on from offset 1,000.");
  await page.click("button:has-text('Replay from the offset')");
  await page.click("dialog button:has-text('Replay')");
  await expectText(page, "go on with a replay of many", "Published 1,000 messages again, up to offset 2,000.");
}

const browser = await chromium.launch({ executablePath, args: FLAGS });
const stored = await readAll("few");
for (const zone of ZONES) {
  const page = await open(browser, zone);
  await lookByMoment(page, stored);
  await readDates(page, stored);
  await page.context().close();
}
const berlin = await open(browser, "Europe/Berlin");
await askAboutShiftedClocks(berlin);
await replayByMoment(berlin, stored);
await replayWhatIsLeft(berlin);
await berlin.goto(`${base}/#/bridges`);
await expectText(berlin, "no bridge", "There is none.");
await browser.close();
console.log(`ok ${ZONES.length}`);
