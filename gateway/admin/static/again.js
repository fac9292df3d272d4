// Looks that are taken again and again while a page is shown, one after the other: a gateway that is slow is not asked
// once more before it has answered.

import { told } from "./dom.js";

const GONE = 404;

// Call `load` `pauseMs` after each time that it is done, unless the page is hidden. What goes wrong is told in `box`; of
// what is there no longer the page says only that.
export function keepOn(load, box, signal, pauseMs) {
  const next = async () => {
    if (signal.aborted) return;
    if (!document.hidden && (await once(load, box)) === GONE) return;
    setTimeout(next, pauseMs);
  };
  setTimeout(next, pauseMs);
}

// The same, beginning now; the promise is that of the first time.
export async function again(load, box, signal, pauseMs) {
  await once(load, box);
  keepOn(load, box, signal, pauseMs);
}

async function once(load, box) {
  try {
    await load();
    box.replaceChildren();
  } catch (error) {
    if (error.name !== "AbortError") box.replaceChildren(told(error.message, true));
    if (error.status !== GONE || !box.isConnected) return undefined;
    const main = document.getElementById("main");
    main.replaceChildren(main.querySelector("h1"), box);
    return GONE;
  }
  return undefined;
}
