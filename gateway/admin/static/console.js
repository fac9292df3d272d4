// Shows the page that the address names, and what is true on every page.

import { askCaller, mayAskAll, seesAll } from "./caller.js";
import { h, told } from "./dom.js";
import { moment } from "./format.js";
import { live } from "./live.js";
import { FOR_ADMINISTRATORS, FOR_MONITORS, NAVIGATION, PAGES } from "./pages.js";

const main = document.getElementById("main");
const nav = document.getElementById("nav");
const state = document.getElementById("state");
const menu = document.getElementById("menu");
const SCHEMES = ["", "light", "dark"];
let leaving = new AbortController();

// `#/queues/%2F/readings?from=5` is the page `queues`, two parts and a question.
function readAddress() {
  const [where, question = ""] = location.hash.replace(/^#\/?/, "").split("?");
  const [name, ...parts] = where.split("/").map(decodeURIComponent);
  return { name: name || "overview", parts, params: new URLSearchParams(question) };
}

const isShown = (name) => mayAskAll() || !(FOR_ADMINISTRATORS.has(name) || (FOR_MONITORS.has(name) && !seesAll()));

async function showPage() {
  leaving.abort();
  leaving = new AbortController();
  const { signal } = leaving;
  const { name, parts, params } = readAddress();
  const page = PAGES[name];
  main.replaceChildren();
  showNavigation(name);
  if (!page) {
    main.append(h("h1", {}, "No such page"), h("p", {}, h("a", { href: "#/" }, "Overview")));
    return;
  }
  const title = page.title(parts);
  document.title = `${title} – LMQ Gateway`;
  main.append(h("h1", {}, title));
  if (!isShown(name)) {
    main.append(h("p", {}, FOR_MONITORS.has(name) ? "This page is for administrators and monitors." : "This page is for administrators."));
    return;
  }
  const waiting = h("p", { className: "faint" }, "looking");
  try {
    const shown = page.show(main, { parts, params, signal });
    if (main.children.length === 1) main.append(waiting); // nothing but its title yet
    await shown;
  } catch (error) {
    if (error.name !== "AbortError") main.append(told(error.message, true));
  } finally {
    waiting.remove();
  }
}

function showNavigation(name) {
  nav.replaceChildren(
    h(
      "div",
      { className: "stay" },
      NAVIGATION.map(([group, names]) => [
        group && h("h2", {}, group),
        ...names.filter(([page]) => isShown(page)).map(([page, title]) => h("a", { href: `#/${page}`, "aria-current": page === name ? "page" : undefined }, title)),
      ]),
    ),
  );
  nav.querySelector("[aria-current]")?.scrollIntoView({ block: "nearest", inline: "nearest" });
}

function showState() {
  const sample = live.last;
  const troubles = [];
  if (!live.isConnected) troubles.push("no answer from the gateway");
  else if (!sample?.is_ready) troubles.push("not ready"); // no sample: it started this second
  if (live.isConnected && sample) {
    troubles.push(...sample.alarms);
    for (const one of sample.certificates_ending ?? []) troubles.push(`the certificate of ${one.listener} ${one.expires_at_ms < Date.now() ? "expired" : "expires"} ${moment(one.expires_at_ms)}`);
  }
  state.textContent = troubles.join(", ") || "ready";
  state.className = troubles.length ? "bad" : "";
}

// On a narrow screen the pages are behind a button.
function openMenu(isOpen) {
  menu.setAttribute("aria-expanded", isOpen);
  nav.classList.toggle("open", isOpen);
}

function switchScheme() {
  const next = SCHEMES[(SCHEMES.indexOf(document.documentElement.dataset.scheme ?? "") + 1) % SCHEMES.length];
  document.documentElement.dataset.scheme = next;
  localStorage.setItem("scheme", next);
}

document.documentElement.dataset.scheme = localStorage.getItem("scheme") ?? "";
document.getElementById("scheme").addEventListener("click", switchScheme);
menu.addEventListener("click", () => openMenu(menu.getAttribute("aria-expanded") !== "true"));
nav.addEventListener("click", (event) => event.target.closest("a") && openMenu(false));
addEventListener("keydown", (event) => {
  if (event.key !== "Escape" || menu.getAttribute("aria-expanded") !== "true") return;
  openMenu(false);
  menu.focus();
});
addEventListener("hashchange", async () => {
  showPage();
  scrollTo(0, 0);
  main.focus({ preventScroll: true });
  if (await askCaller()) {
    live.restart(); // it logged in meanwhile
    showPage();
  }
});
live.addEventListener("change", showState);
live.start();
await askCaller();
showPage();
