// Walks through the console in Chromium, as an operator would: node walk.mjs BASE_URL CHROMIUM
// Prints one line for each thing that was wrong, and "ok N" at the end, N being the number of pages that were seen.

import { chromium } from "playwright-core";

const [base, executablePath] = process.argv.slice(2);
const FLAGS = ["--no-sandbox", "--disable-gpu", "--no-first-run", "--disable-background-networking", "--disable-component-update", "--disable-sync"];
const WIDTHS = [1280, 500];
let seen = 0;

function wrong(where, what) {
  console.log(`wrong: ${where}: ${what}`);
}

async function open(browser, width, colorScheme, user = "guest") {
  const context = await browser.newContext({
    viewport: { width, height: 800 },
    colorScheme,
    httpCredentials: { username: user, password: user },
  });
  const page = await context.newPage();
  page.on("console", (said) => ["error", "warning"].includes(said.type()) && wrong(page.url(), said.text()));
  page.on("pageerror", (error) => wrong(page.url(), error.message));
  return page;
}

async function findPages(page) {
  await page.goto(base);
  await page.waitForSelector("nav a");
  return page.evaluate(() => [...document.querySelectorAll("nav a")].map((node) => node.hash.slice(2)));
}

async function look(page, where) {
  await page.goto(`${base}/#/${where}`);
  await page.waitForSelector("main h1");
  await page.waitForTimeout(700);
  seen += 1;
  const found = await page.evaluate(() => ({
    title: document.title,
    current: document.querySelectorAll("nav [aria-current=page]").length,
    isTooWide: document.documentElement.scrollWidth > innerWidth,
    refusals: [...document.querySelectorAll("main .told.bad")].map((node) => node.textContent),
    nameless: [...document.querySelectorAll("main input, main textarea, main select")].filter((node) => !node.labels?.length).length,
    silent: [...document.querySelectorAll("main button")].filter((node) => !node.textContent.trim()).length,
  }));
  if (!found.title.endsWith("LMQ Gateway")) wrong(where, `its title is ${found.title}`);
  if (found.current !== 1) wrong(where, `${found.current} entries of the navigation are the current one`);
  if (found.isTooWide) wrong(where, `it is wider than ${page.viewportSize().width} px`);
  if (found.nameless) wrong(where, `${found.nameless} fields have no label`);
  if (found.silent) wrong(where, `${found.silent} buttons have no name`);
  for (const refusal of found.refusals) wrong(where, refusal);
}

// Fails with the name of the step where what is waited for does not come.
async function expectText(page, step, text) {
  try {
    await page.waitForFunction((wanted) => document.querySelector("main").innerText.includes(wanted), text, { timeout: 8_000 });
  } catch {
    wrong(step, `"${text}" does not come; there is: ${(await page.innerText("main")).slice(0, 300)}`);
  }
}

async function walkThrough(page) {
  await page.goto(`${base}/#/queues`);
  await page.click("text=readings");
  await expectText(page, "a queue", "Unacknowledged");
  await page.fill("textarea", "from the console");
  await page.click("button:has-text('Publish')");
  await expectText(page, "publish", "Published.");
  await page.click("button:has-text('Look')");
  await expectText(page, "look at messages", "21.5");
  await page.goto(`${base}/#/route?topic=plant/1/temp`);
  await expectText(page, "where it goes", "2 light queues");
  if ((await page.locator("svg.graph rect").count()) < 5) wrong("where it goes", "the graph lacks boxes");
  await page.goto(`${base}/#/log`);
  await page.click("main a:has-text('plant/#')");
  await expectText(page, "messages of a filter", "21.5");
  await page.click("main table td a");
  await expectText(page, "where a message went", "Where it went: 2 queues");
  await expectText(page, "where a message went", "readings in /");
  await page.goto(`${base}/#/sessions`);
  await page.click("main a:has-text('away')");
  await expectText(page, "a session", "Waiting for it");
  await page.goto(`${base}/#/queues`);
  await page.click("text=readings");
  await page.click("button:has-text('Purge')");
  await page.click("dialog button:has-text('Purge')");
  await expectText(page, "purge", "Purged.");
  await page.keyboard.press("Escape");
}

async function sendBack(page) {
  await page.goto(`${base}/#/letters`);
  await page.click("main a:has-text('graves')");
  await expectText(page, "dead letters", "1 letters in graves");
  await page.click("button:has-text('Look at the first')");
  await expectText(page, "why a letter died", "rejected");
  await page.click("button:has-text('Send back')");
  await page.click("dialog button:has-text('Send')");
  await expectText(page, "send back", "Sent 1.");
  await expectText(page, "send back", "0 letters in graves");
}

async function takeBack(page) {
  await page.goto(`${base}/#/delayed`);
  await expectText(page, "delayed", "later/1");
  await page.click("button:has-text('Take back')");
  await page.click("dialog button:has-text('Take back')");
  await expectText(page, "take back", "Taken back.");
  await expectText(page, "take back", "none here");
}

async function seeTheGateway(page) {
  await page.goto(`${base}/#/fan-out`);
  await expectText(page, "fan-out", "plant/1/temp");
  await expectText(page, "fan-out", "lmq report fan-out");
  await page.goto(`${base}/#/doors`);
  await expectText(page, "doors", "Bodies in and out");
  await page.goto(`${base}/#/rights`);
  await page.fill("main input[placeholder='plant/1/temp']", "plant/1/temp");
  await page.click("button:has-text('May it publish there?')");
  await expectText(page, "a right", "Yes");
}

// One with the tag `management` is offered what it may see, and nothing asks it for another login.
async function seeWhatOneThatManagesMay(browser) {
  const page = await open(browser, WIDTHS[0], "light", "ann");
  await page.goto(base);
  await expectText(page, "overview without a login", "Messages in");
  await page.evaluate(() => fetch("api/whoami")); // from this machine it would look without a login
  await page.goto(`${base}/#/queues`);
  await expectText(page, "queues", "in all");
  await page.goto(`${base}/#/overview`); // with no page loaded anew
  await expectText(page, "overview after a login", "Your virtual hosts");
  if (await page.evaluate(() => scrollY)) wrong("overview", "it is shown from somewhere in its middle");
  const offered = await findPages(page);
  for (const where of offered) await look(page, where);
  if (offered.includes("settings") || !offered.includes("queues")) wrong("management", `it is offered ${offered}`);
  await page.goto(`${base}/#/queues`);
  await expectText(page, "a queue of its own", "hers");
  await page.click("main a:has-text('hers')");
  await expectText(page, "a queue of its own", "Unacknowledged");
  await page.click("main a:has-text('its messages')");
  await expectText(page, "its messages", "They are shown to administrators here.");
  await page.goto(`${base}/#/sessions/of ann`);
  await expectText(page, "a session of its own", "offset 5");
  if (await page.locator("main a, main button").count()) wrong("a session of its own", "it is offered what it may not do");
  await page.goto(`${base}/#/overview`);
  await expectText(page, "its overview", "Your virtual hosts");
  await page.goto(`${base}/#/settings`);
  await expectText(page, "settings", "This page is for administrators.");
  await page.context().close();
}

// In milliseconds, of the whole page from an empty cache.
async function timeFirstPaint(browser) {
  const page = await open(browser, WIDTHS[0], "light");
  await page.goto(base);
  await page.waitForSelector("main .card");
  const [paint] = await page.evaluate(() => performance.getEntriesByName("first-contentful-paint").map((entry) => entry.startTime));
  await page.context().close();
  return Math.round(paint);
}

async function useKeys(page) {
  await page.goto(`${base}/#/`);
  await page.reload(); // where the keys were before does not count
  await page.waitForSelector("main h1");
  await page.keyboard.press("Tab");
  const first = await page.evaluate(() => document.activeElement.className);
  if (first !== "skip") wrong("keyboard", `the first stop is ${first}`);
  await page.keyboard.press("Enter");
}

async function showHostileText(page) {
  await page.goto(`${base}/#/sessions`);
  await expectText(page, "a name with markup", "<img src=x onerror=alert(1)>");
  if (await page.locator("main img").count()) wrong("a name with markup", "it became an element");
}

const browser = await chromium.launch({ executablePath, args: FLAGS });
const page = await open(browser, WIDTHS[0], "light");
const pages = await findPages(page);
for (const width of WIDTHS) {
  const each = await open(browser, width, width === WIDTHS[0] ? "light" : "dark");
  for (const where of pages) await look(each, where);
  await each.context().close();
}
await showHostileText(page);
await walkThrough(page);
await sendBack(page);
await takeBack(page);
await seeTheGateway(page);
await useKeys(page);
await seeWhatOneThatManagesMay(browser);
console.log(`first paint after ${await timeFirstPaint(browser)} ms`);
await browser.close();
console.log(`ok ${seen}`);
