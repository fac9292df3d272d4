// Walks through the console in Chromium, as an operator would: node walk.mjs BASE_URL CHROMIUM MQTT_HOST MQTT_PORT
// Prints one line for each thing that was wrong, and "ok N" at the end, N being the number of pages that were seen.

import { chromium } from "playwright-core";

import { seeChanges } from "./changes.mjs";
import { findFaintTexts, findMisplaced, findNameless, walkByKeys } from "./checks.mjs";
import { seeBridges, seeRates, seeWhatIsAlike } from "./figures.mjs";
import { beRefused, comeAgain, findBarriers, findOtherWays, loseAQueue, readMessages, showHostileNames, showLongNames } from "./trouble.mjs";

const [base, executablePath, mqttHost, mqttPort] = process.argv.slice(2);
const FLAGS = ["--no-sandbox", "--disable-gpu", "--no-first-run", "--disable-background-networking", "--disable-component-update", "--disable-sync"];
const WIDTHS = [1280, 500];
const MARKUP = "<img src=x onerror=alert(1)>";
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
  page.on("console", (said) => ["error", "warning"].includes(said.type()) && !page.mayMiss && wrong(page.url(), said.text()));
  page.on("request", (asked) => asked.url().startsWith(base) || wrong(page.url(), `it asks ${asked.url()}`));
  page.on("pageerror", (error) => wrong(page.url(), error.message));
  return page;
}

async function findPages(page) {
  await page.goto(base);
  await page.waitForSelector("nav a");
  return page.evaluate(() => [...document.querySelectorAll("nav a")].map((node) => node.hash.slice(2)));
}

// Pages of one thing each, for which there is no entry in the navigation.
async function findDetails(page) {
  const linked = async (where, text) => {
    await go(page, where);
    const link = page.locator(`main td a:has-text('${text}')`).first();
    return (await link.getAttribute("href")).slice(2);
  };
  const plain = ["users/ann", "queues/%2F/readings", "exchanges/%2F/amq.topic", "sessions/away", "groups/billing", "letters/%2F/graves", "route?topic=plant/1/temp", "route?rocketmq=Orders"];
  const log = [await linked("log", "plant/#"), await linked("log", "readings"), await linked("log", "Orders/0")];
  return [...plain, ...log, await linked(log[0], ""), await linked(log[1], ""), await linked("letters", "%DLQ%shipping"), await linked("connections", "to be closed")];
}

// Show a page, and wait until it is that one and no longer the one before.
async function go(page, where) {
  const isThere = page.url() === `${base}/#/${where}`;
  if (!isThere) await page.evaluate(() => document.querySelector("main h1")?.setAttribute("data-before", ""));
  await page.goto(`${base}/#/${where}`);
  await page.waitForSelector(isThere ? "main h1" : "main h1:not([data-before])");
}

async function look(page, where) {
  await go(page, where);
  await page.waitForTimeout(700);
  const isDone = () => ![...document.querySelectorAll("main p.faint")].some((node) => node.textContent === "looking");
  await page.waitForFunction(isDone, null, { timeout: 8_000 }).catch(() => wrong(where, "it keeps looking"));
  seen += 1;
  const found = await page.evaluate(() => ({
    title: document.title,
    current: document.querySelectorAll("nav [aria-current=page]").length,
    isTooWide: document.documentElement.scrollWidth > innerWidth,
    names: document.querySelector("main").innerText.match(/%LMQ%\S+/g) ?? [],
    isEmpty: document.querySelector("main").innerText.trim().split("\n").length < 2,
    refusals: [...document.querySelectorAll("main .told.bad")].map((node) => node.textContent),
    isLoading: [...document.querySelectorAll("main caption")].some((node) => node.textContent === "loading"),
  }));
  if (!found.title.endsWith("LMQ Gateway")) wrong(where, `its title is ${found.title}`);
  if (found.current !== 1) wrong(where, `${found.current} entries of the navigation are the current one`);
  if (found.isTooWide) wrong(where, `it is wider than ${page.viewportSize().width} px`);
  if (found.isEmpty || found.isLoading) wrong(where, "it does not fill");
  if (found.names.length) wrong(where, `it shows ${found.names[0]}`);
  for (const fault of await page.evaluate(findNameless)) wrong(where, `a reader has no name for ${fault}`);
  for (const fault of await page.evaluate(findMisplaced)) wrong(where, fault);
  for (const fault of await page.evaluate(findFaintTexts)) wrong(where, `it cannot be read well: ${fault}`);
  for (const barrier of await findBarriers(page)) wrong(where, barrier);
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

// From the overview to who holds a growing queue up: two clicks.
async function findWhatGrows(page) {
  await go(page, "overview");
  await expectText(page, "overview", "What waits most");
  for (const name of ["Messages in", "Sync to disk, mean", "Free on disk", "Memory", "Connections"]) {
    const plot = page.locator(`main .card:has(h2:text-is("${name}")) svg polyline`);
    await plot.waitFor({ state: "attached", timeout: 8_000 }).catch(() => wrong("overview", `${name} has no plot`));
  }
  await expectText(page, "what waits", "MQTT session, filter plant/#");
  await page.click("main a:has-text('watched')");
  await expectText(page, "what waits", "Nobody consumes: what comes stays.");
}

async function lookIntoAQueue(page) {
  await go(page, "queues");
  await page.fill("main input[type=search]", "readi");
  await expectText(page, "search for a queue", "1 of ");
  await page.click("main th button:has-text('Ready')");
  await page.waitForSelector("main th[aria-sort=descending]:has-text('Ready')");
  await page.waitForSelector("main td svg.spark polyline", { state: "attached", timeout: 10_000 }).catch(() => wrong("queues", "no sparkline is drawn"));
  await page.click("text=readings");
  await expectText(page, "a queue", "Unacknowledged");
  await expectText(page, "who consumes", "a worker");
  await expectText(page, "who consumes", "->");
  await page.waitForSelector("main figure:has-text('Depth') svg polyline", { state: "attached", timeout: 8_000 }).catch(() => wrong("a queue", "its depth is not drawn"));
  await page.fill("textarea", "from the console");
  await page.click("button:has-text('Publish')");
  await expectText(page, "publish", "Published.");
  await page.click("button:has-text('Newest')");
  await expectText(page, "look at the newest", "from the console");
  await page.fill("label:has-text('From offset') >> nth=1", "4");
  await page.click("button:has-text('Look from the offset')");
  await expectText(page, "look from an offset", "2 messages");
  await page.fill("label:has-text('From moment') >> nth=1", "2020-01-01T00:00:00");
  await page.click("button:has-text('Look from the moment')");
  await expectText(page, "look from a moment", "6 messages");
}

async function replayAndPurge(page) {
  await page.fill("label:has-text('From offset') >> nth=0", "5");
  await page.click("button:has-text('Replay from the offset')");
  await page.keyboard.press("Escape"); // the question is taken back: nothing is done
  await page.waitForSelector("dialog", { state: "detached", timeout: 8_000 }).catch(() => wrong("a question", "Escape does not close it"));
  const back = await page.evaluate(() => document.activeElement.textContent);
  if (back !== "Replay from the offset") wrong("a question", `the keys are on ${back} when it is closed`);
  await page.click("button:has-text('Replay from the offset')");
  await page.click("dialog button:has-text('Replay')");
  await expectText(page, "replay", "Published 1 message again, up to offset 6.");
  await page.click("button:has-text('Purge')");
  await page.click("dialog button:has-text('Purge')");
  await expectText(page, "purge", "Purged.");
}

// Readers and rights are boxes of the drawing: the first by name, and how many more there are.
async function seeReaders(page) {
  const isDrawn = async (step, ...boxes) => {
    for (const box of boxes) await page.waitForSelector(`svg.graph title:text-is("${box}")`, { state: "attached", timeout: 8_000 }).catch(() => wrong(step, `"${box}" is not drawn`));
  };
  await isDrawn("readers", "session: away", "session: of ann", "consumer of user guest: a worker");
  await expectText(page, "readers in words", "session away");
  await go(page, "route?topic=many/1");
  await isDrawn("many readers", "session: many-0", "session: many-3", "and: 2 more", "session, of group team: many-0");
  if (await page.locator("svg.graph .reader title:text-is('session: many-4')").count()) wrong("many readers", "more are drawn than the first");
  await go(page, "route?rocketmq=Orders");
  await isDrawn("groups", "0 members of group: billing");
  await go(page, "route?topic=plant/1/temp&user=ann");
  await isDrawn("rights", "user: ann");
  const right = page.locator("svg.graph g.refused title");
  if (!/^refused by: permissions of the user/.test(await right.textContent())) wrong("rights", `the drawing says ${await right.textContent()}`);
  if (!(await page.locator("svg.graph path.refused").count())) wrong("rights", "a publish that is refused is drawn as others");
  await go(page, "route?exchange=amq.topic&key=plant.1.temp&user=guest");
  await expectText(page, "rights", "Allowed");
  if (await page.locator("svg.graph .refused").count()) wrong("rights", "a publish that is allowed is drawn as refused");
  await go(page, "route?topic=plant/1/temp");
  await expectText(page, "where it goes", "2 light queues");
}

async function seeWhereItGoes(page) {
  await go(page, "route?topic=plant/1/temp");
  await expectText(page, "where it goes", "2 light queues");
  await expectText(page, "where it goes", "queue readings in /");
  await expectText(page, "where it goes", "1 reader");
  if ((await page.locator("svg.graph rect").count()) < 6) wrong("where it goes", "the graph lacks boxes");
  await seeReaders(page);
  await page.fill("label:has-text('Published by') >> nth=0", "ann");
  await page.click("button:has-text('Show') >> nth=0");
  await expectText(page, "who may publish", "Refused: user 'ann' may not publish to topic 'plant/1/temp'");
  await go(page, "log");
  await page.click("main a:has-text('plant/#')");
  await expectText(page, "messages of a filter", "21.5");
  await page.click("main table td a");
  await expectText(page, "where a message went", "Where it went: 2 queues");
  await expectText(page, "where a message went", "readings in /");
  await expectText(page, "where a message went", "away");
  await go(page, "topics");
  await expectText(page, "topics", "plant");
  await expectText(page, "topics", "5 messages");
  await page.click("main .tree a:has-text('temp')");
  await expectText(page, "a topic", "2 light queues");
}

async function seeSessionsAndConnections(page) {
  await go(page, "sessions");
  await page.click("main a:has-text('away')");
  await expectText(page, "a session", "Waiting for it");
  await expectText(page, "a session", "plant/#");
  await go(page, "connections");
  await page.fill("main input[type=search]", "To Be");
  await expectText(page, "search for a connection", "1 of ");
  await page.click("main a:has-text('to be closed')");
  await expectText(page, "a connection", "AMQP 0-9-1");
  await page.click("button:has-text('Close the connection')");
  await page.click("dialog button:has-text('Close')");
  await page.waitForFunction(() => location.hash === "#/connections");
  await page.waitForFunction(() => document.querySelector("main caption") && !document.querySelector("main").innerText.includes("to be closed"), null, { timeout: 8_000 }).catch(() => wrong("close", "the connection is still there"));
}

async function resetAGroup(page) {
  await go(page, "groups");
  await page.click("main a:has-text('billing')");
  await expectText(page, "a group", "Orders/0");
  await page.fill("label:has-text('Offset')", "0");
  await page.click("button:has-text('Go to the offset')");
  await page.click("dialog button:has-text('Reset')");
  await expectText(page, "reset a group", "billing goes on at offset 0.");
}

async function seeWhatIsHeld(page) {
  await go(page, "held");
  await expectText(page, "held back", "away");
  await expectText(page, "held back", "filter plant/#, offset 0");
  await page.click("main a:has-text('filter plant/#') >> nth=0");
  await expectText(page, "what is held", "21.5");
  await go(page, "files");
  await expectText(page, "log files", "is written to");
  await page.click("main button:has-text('Delete expired files')");
  await page.click("dialog button:has-text('Delete')");
  await expectText(page, "retention", "0 files deleted");
}

async function sendBack(page) {
  await go(page, "letters");
  await page.click("main a[href='#/letters/%2F/graves']");
  await expectText(page, "dead letters", "1 letter in graves");
  await page.click("button:has-text('Look at the first')");
  await expectText(page, "why a letter died", "rejected");
  await page.click("button:has-text('Send back')");
  await page.click("dialog button:has-text('Send')");
  await expectText(page, "send back", "Sent 1.");
  await expectText(page, "send back", "0 letters in graves");
  await go(page, "letters");
  await page.click("main a:has-text('%DLQ%shipping')");
  await expectText(page, "a group's dead letters", "1 letter in %DLQ%shipping");
  await page.click("button:has-text('Look at the first')");
  for (const text of ["The first 1", "Orders", "o-1", "an order"]) await expectText(page, "a group's dead letters", text);
  await page.click("button:has-text('Send back')");
  if (!(await page.innerText("dialog")).includes("to the group shipping?")) wrong("send a group's back", "the question does not name the group");
  await page.click("dialog button:has-text('Send')");
  await expectText(page, "send a group's back", "Sent 1.");
  await expectText(page, "send a group's back", "0 letters in %DLQ%shipping");
  await page.click("button:has-text('Look at the first')");
  await expectText(page, "a group's dead letters", "No letter is there.");
}

async function takeBack(page) {
  await go(page, "delayed");
  await expectText(page, "delayed", "later/1");
  await page.click("button:has-text('Take back')");
  await page.click("dialog button:has-text('Take back')");
  await expectText(page, "take back", "Taken back.");
  await expectText(page, "take back", "No message waits for its moment.");
}

// What somebody with a password is told of itself, null where it does not come in.
async function askWhoami(user, password) {
  const login = Buffer.from(`${user}:${password}`).toString("base64");
  const answer = await fetch(`${base}/api/whoami`, { headers: { Authorization: `Basic ${login}` } });
  return answer.ok ? answer.json() : null;
}

async function changeUsers(page) {
  await go(page, "users");
  await page.fill("main form:not([role=search]) label:has-text('Name')", "eve");
  await page.fill("main label:has-text('Password')", "first");
  await page.check("main label:has-text('monitoring')");
  await page.click("button:has-text('Add the user')");
  await expectText(page, "add a user", "Added eve, that may do nothing yet");
  if ((await askWhoami("eve", "first"))?.tags?.join() !== "monitoring") wrong("add a user", "eve does not come in as a monitor");
  await page.fill("main form:not([role=search]) label:has-text('Name')", "eve");
  await page.fill("main label:has-text('Password')", "other");
  await page.click("button:has-text('Add the user')");
  await expectText(page, "add a user twice", "User eve is there already.");
  await page.click("main td a:text-is('eve')");
  await expectText(page, "a user", "none: it may do nothing");
  await page.selectOption("main label:has-text('Virtual host') select", "v");
  await page.fill("main label:has-text('Configure')", "^eve");
  await page.click("button:has-text('Set the permissions')");
  await expectText(page, "set permissions", "^eve");
  await page.fill("main label:has-text('New password')", "second");
  await page.click("button:has-text('Set the password')");
  await expectText(page, "set a password", "The password is another one");
  if (!(await askWhoami("eve", "second")) || (await askWhoami("eve", "first"))) wrong("set a password", "the old one is good still, or the new one is not");
  await page.check("main label:has-text('policymaker')");
  await page.click("button:has-text('Set the tags')");
  await expectText(page, "set tags", "monitoring, policymaker");
  await page.click("button:has-text('Disable')");
  await page.click("dialog button:has-text('Disable')");
  await expectText(page, "disable a user", "no, disabled");
  if (await askWhoami("eve", "second")) wrong("disable a user", "it comes in still");
  await page.click("button:has-text('Enable')");
  await expectText(page, "enable a user", "Enabled.");
  await page.click("button:has-text('Take back')");
  await page.click("dialog button:has-text('Take back')");
  await expectText(page, "take permissions back", "none: it may do nothing");
  await page.click("button:has-text('Delete')");
  await page.click("dialog button:has-text('Delete')");
  await page.waitForFunction(() => location.hash === "#/users");
  await page.waitForFunction(() => document.querySelector("main td") && !document.querySelector("main").innerText.includes("eve"), null, { timeout: 8_000 }).catch(() => wrong("delete a user", "it is still there"));
}

async function changePolicies(page) {
  await go(page, "policies");
  await page.fill("main form:not([role=search]) label:has-text('Name')", "short");
  await page.fill("main label:has-text('Pattern')", "^watched$");
  await page.selectOption("main label:has-text('Apply to') select", "queues");
  await page.fill("main label:has-text('Definition')", "{");
  await page.click("button:has-text('Set the policy')");
  await expectText(page, "a wrong policy", "The definition is no JSON");
  await page.fill("main label:has-text('Definition')", '{"max-length": 70}');
  await page.click("button:has-text('Set the policy')");
  await expectText(page, "set a policy", "Set. What it is for holds to it from now on.");
  await page.click("main tr:has-text('^watched$') button:has-text('Change')");
  await page.fill("main label:has-text('Priority')", "7");
  await page.click("button:has-text('Set the policy')");
  await page.waitForSelector("main tr:has-text('^watched$') td.number:has-text('7')", { timeout: 8_000 }).catch(() => wrong("change a policy", "its priority is not 7"));
  await go(page, "queues/%2F/watched");
  await expectText(page, "a queue with a policy", "short");
  await go(page, "policies");
  await page.click("main tr:has-text('^watched$') button:has-text('Delete')");
  await page.click("dialog button:has-text('Delete')");
  await expectText(page, "delete a policy", "Deleted.");
  if ((await page.innerText("main table")).includes("^watched$")) wrong("delete a policy", "it is still there");
}

async function seeTheGateway(page) {
  await go(page, "fan-out");
  await expectText(page, "fan-out", "plant/1/temp");
  const [report] = await Promise.all([page.context().waitForEvent("page"), page.click("main a:has-text('The last report of Spark')")]);
  await report.waitForLoadState();
  if (!(await report.innerText("body")).includes("Fan-out of yesterday")) wrong("fan-out", "the report of Spark does not open");
  await report.close();
  for (const [where, text] of [
    ["policies", "^graves$"],
    ["users", "management"],
    ["settings", "fan_out_report"],
    ["logs", "lines; "],
    ["subscriptions", "plant/#"],
    ["retained", "plant/1/temp"],
    ["exchanges", "amq.topic"],
    ["consumers", "a worker"],
    ["vhosts", "v"],
    ["doors", "rocketmq"],
  ]) {
    await go(page, where);
    await expectText(page, where, text);
  }
  await go(page, "logs");
  await page.fill("main input[type=search]", "no line has this");
  await expectText(page, "search in the log's lines", "0 of the last");
  await go(page, "doors");
  await expectText(page, "doors", "Bodies in and out");
  await go(page, "rights");
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
  await go(page, "queues");
  await expectText(page, "queues", "in all");
  await go(page, "overview"); // with no page loaded anew
  await expectText(page, "overview after a login", "Your virtual hosts");
  if (await page.evaluate(() => scrollY)) wrong("overview", "it is shown from somewhere in its middle");
  const offered = await findPages(page);
  for (const where of offered) await look(page, where);
  if (offered.includes("settings") || !offered.includes("queues")) wrong("management", `it is offered ${offered}`);
  await go(page, "queues");
  await expectText(page, "a queue of its own", "hers");
  await page.click("main a:has-text('hers')");
  await expectText(page, "a queue of its own", "Unacknowledged");
  await page.click("main a:has-text('its messages')");
  await expectText(page, "its messages", "They are shown to administrators here.");
  await go(page, "sessions/of ann");
  await expectText(page, "a session of its own", "offset 5");
  if (await page.locator("main a, main button").count()) wrong("a session of its own", "it is offered what it may not do");
  await go(page, "overview");
  await expectText(page, "its overview", "Your virtual hosts");
  await go(page, "settings");
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

async function useKeys(page, pages) {
  await go(page, "");
  await page.reload(); // where the keys were before does not count
  await page.waitForSelector("main h1");
  await page.keyboard.press("Tab");
  const first = await page.evaluate(() => document.activeElement.className);
  if (first !== "skip") wrong("keyboard", `the first stop is ${first}`);
  for (const where of pages) {
    await go(page, where);
    await page.waitForTimeout(500);
    const { stops, faults } = await walkByKeys(page);
    if (stops < 5) wrong(where, `there are ${stops} stops for the keys`);
    for (const fault of faults) wrong(where, fault);
  }
}

// A button that was pressed by a key is still where the keys are when what is around it is drawn anew.
async function pressByKey(page, where, button, isThere) {
  await go(page, where);
  await page.waitForSelector(button);
  await page.focus(button);
  await page.keyboard.press("Enter");
  await page.waitForSelector(isThere);
  await page.waitForTimeout(500);
  const held = await page.evaluate(() => document.querySelector("main").contains(document.activeElement) && document.activeElement.tagName);
  if (held !== "BUTTON") wrong(where, `the keys are lost when ${button} was pressed`);
}

// On a narrow screen the pages are behind a button, which Escape closes and the keys reach.
async function useTheMenu(browser) {
  const page = await open(browser, WIDTHS[1], "dark");
  await page.goto(base);
  await page.waitForSelector("main h1");
  if (await page.isVisible("nav")) wrong("menu", "it is open at first");
  await page.focus("#menu");
  await page.keyboard.press("Enter");
  await page.waitForSelector("nav a:has-text('Held back')");
  await page.keyboard.press("Escape");
  if (await page.isVisible("nav")) wrong("menu", "Escape does not close it");
  if ((await page.evaluate(() => document.activeElement.id)) !== "menu") wrong("menu", "the keys are lost when it closes");
  await page.keyboard.press("Enter");
  await page.click("nav a:has-text('Log files')");
  await expectText(page, "menu", "is written to");
  if (await page.isVisible("nav")) wrong("menu", "it stays open");
  await page.context().close();
}

async function showHostileText(page) {
  await go(page, "sessions");
  await expectText(page, "a name with markup", MARKUP);
  if (await page.locator("main img").count()) wrong("a name with markup", "it became an element");
}

const browser = await chromium.launch({ executablePath, args: FLAGS });
const page = await open(browser, WIDTHS[0], "light");
const named = await findPages(page);
const pages = [...named, ...(await findDetails(page))];
for (const width of WIDTHS) {
  for (const scheme of ["light", "dark"]) {
    const each = await open(browser, width, scheme);
    for (const where of pages) await look(each, where);
    await each.context().close();
  }
}
const met = { browser, page, base, go, expectText, wrong, markup: MARKUP };
await seeChanges({ ...met, mqttHost, mqttPort });
await showHostileNames(met);
await showLongNames(met);
await readMessages(met);
await findOtherWays(met);
await comeAgain(met);
await beRefused(met);
page.mayMiss = true; // the browser tells of an answer 404
await loseAQueue(met);
page.mayMiss = false;
await showHostileText(page);
await findWhatGrows(page);
await seeWhatIsAlike(met);
await seeBridges({ ...met, mqttHost, mqttPort });
await seeRates(met);
await useKeys(page, pages);
await pressByKey(page, "queues", "main th button:has-text('Ready')", "main th[aria-sort]");
await pressByKey(page, `log/${encodeURIComponent("%LMQ%amqp%|2f%watched")}`, "main button:has-text('Newest')", "main caption");
await lookIntoAQueue(page);
await replayAndPurge(page);
await seeWhereItGoes(page);
await seeSessionsAndConnections(page);
await resetAGroup(page);
await seeWhatIsHeld(page);
await sendBack(page);
await takeBack(page);
await changeUsers(page);
await changePolicies(page);
await seeTheGateway(page);
await useTheMenu(browser);
await seeWhatOneThatManagesMay(browser);
console.log(`first paint after ${await timeFirstPaint(browser)} ms`);
await browser.close();
console.log(`ok ${seen}`);
