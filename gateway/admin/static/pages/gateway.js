// The gateway itself: its log's last lines, and the settings it goes by.

import { get } from "../api.js";
import { h, told } from "../dom.js";
import { count } from "../format.js";
import { live } from "../live.js";

const AGAIN_MS = 2_000;
const SHOWN = 1_000;

export const logs = {
  title: () => "Log lines",
  show(main, { signal }) {
    const wanted = h("input", { type: "search", spellcheck: false, oninput: () => draw() });
    const box = h("div");
    const shown = h("pre", { tabIndex: 0, className: "tail" });
    const said = h("p", { className: "faint" });
    let lines = [];
    let written = 0;
    let upMs = 0;
    const draw = () => {
      const word = wanted.value.toLowerCase();
      const found = word ? lines.filter((line) => line.toLowerCase().includes(word)) : lines;
      const isAtEnd = shown.scrollHeight - shown.scrollTop - shown.clientHeight < 40;
      shown.replaceChildren(...found.map((line) => h("span", { className: / (warning|error|critical) /.test(line) || /"level": "(warning|error|critical)"/.test(line) ? "warn" : "" }, `${line}\n`)));
      said.textContent = `${count(found.length)} of the last ${count(lines.length)} lines; ${count(written)} since the start`;
      if (isAtEnd) shown.scrollTop = shown.scrollHeight;
    };
    const load = async () => {
      const nowMs = live.last?.uptime_ms ?? upMs;
      const wasStarted = nowMs < upMs; // meanwhile: it counts its lines from 0 again
      const found = await get("api/lmq/logs", { since: wasStarted ? 0 : written }, signal);
      upMs = nowMs;
      if (found.written === written && lines.length) return;
      const fresh = new Set(found.lines);
      lines = [...(wasStarted ? lines.filter((line) => !fresh.has(line)) : lines), ...found.lines].slice(-SHOWN);
      written = found.written;
      draw();
    };
    const tryLoad = () => load().then(() => box.replaceChildren(), (error) => error.name === "AbortError" || box.replaceChildren(told(error.message, true)));
    main.append(h("div", { className: "bar" }, h("label", { className: "grow" }, "Lines that have", wanted)), box, shown, said);
    const timer = setInterval(() => document.hidden || tryLoad(), AGAIN_MS);
    signal.addEventListener("abort", () => clearInterval(timer));
    return tryLoad();
  },
};

export const settings = {
  title: () => "Settings in force",
  async show(main, { signal }) {
    const { text } = await get("api/lmq/settings", {}, signal);
    main.append(
      h("p", { className: "faint" }, "As a file that lmq serve --config takes. Secrets are hidden."),
      h("pre", { tabIndex: 0, className: "tail" }, text),
    );
  },
};
