// Looks that are taken again and again while a page is shown, one after the other: a gateway that is slow is not asked
// once more before it has answered.

import { told } from "./dom.js";
import { live } from "./live.js";

const GONE = 404;
const PAUSE_MS = 3_000; // at least, between two looks at a list that changes all the time
const SHARE = 50; // times what a look took passes before the next one

// Call `load` `pauseMs` after each time that it is done, unless the page is hidden. What goes wrong is told in `box`; of
// what is there no longer the page says only that.
export function keepOn(load, box, signal, pauseMs) {
  const next = async () => {
    if (signal.aborted) return;
    if (!document.hidden && (await tried(load, box))?.status === GONE && box.isConnected) return;
    setTimeout(next, pauseMs);
  };
  setTimeout(next, pauseMs);
}

// The same, beginning now; the promise is that of the first time.
export async function again(load, box, signal, pauseMs) {
  await tried(load, box);
  keepOn(load, box, signal, pauseMs);
}

// Call `load` when the gateway says that one of its lists that seldom change did, unless the page is hidden: then once
// it is shown. `load` gives what went wrong, if anything did; of what is gone nothing is asked again.
export function whenChanged(list, load, signal) {
  let seen = live.mark(list);
  let dueAt = 0;
  let isAsking = false;
  const look = async () => {
    const mark = live.mark(list);
    if (mark === undefined || mark === seen || isAsking || document.hidden || performance.now() < dueAt) return;
    isAsking = true;
    const beganAt = performance.now();
    const error = await load();
    seen = error && error.status !== GONE ? undefined : mark;
    const endedAt = performance.now();
    dueAt = error?.status === GONE ? Infinity : endedAt + Math.max(PAUSE_MS, SHARE * (endedAt - beganAt));
    isAsking = false;
  };
  live.follow(look, signal);
}

// Load once. What goes wrong is told in `box` and given; of what is there no longer the page says only that.
export async function tried(load, box) {
  try {
    await load();
    box.replaceChildren();
  } catch (error) {
    if (error.name !== "AbortError") box.replaceChildren(told(error.message, true));
    if (error.status === GONE && box.isConnected) {
      const main = document.getElementById("main");
      main.replaceChildren(main.querySelector("h1"), box);
    }
    return error;
  }
  return undefined;
}
