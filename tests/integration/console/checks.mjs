// What every page is held to, run inside the page: text that can be read, and keys that reach everything in order.

// Texts whose contrast is below WCAG 2's level AA (1.4.3): 4.5, for large ones 3.
export function findFaintTexts() {
  const context = document.createElement("canvas").getContext("2d", { willReadFrequently: true });
  const read = (colour) => {
    context.clearRect(0, 0, 1, 1);
    context.fillStyle = colour;
    context.fillRect(0, 0, 1, 1);
    return [...context.getImageData(0, 0, 1, 1).data];
  };
  const light = ([r, g, b]) => {
    const [x, y, z] = [r, g, b].map((one) => one / 255).map((one) => (one <= 0.04045 ? one / 12.92 : ((one + 0.055) / 1.055) ** 2.4));
    return 0.2126 * x + 0.7152 * y + 0.0722 * z;
  };
  const behind = (node) => {
    for (let at = node; at; at = at.parentElement) {
      const colour = read(getComputedStyle(at).backgroundColor);
      if (colour[3] === 255) return colour;
    }
    return read("white");
  };
  const faint = new Map();
  for (const node of document.querySelectorAll("body *")) {
    const isTold = [...node.childNodes].some((child) => child.nodeType === Node.TEXT_NODE && child.textContent.trim());
    if (!isTold || node.disabled || !node.checkVisibility() || node.closest(".unseen, .skip, noscript")) continue;
    const style = getComputedStyle(node);
    const ink = node instanceof SVGElement ? style.fill : style.color;
    const [one, other] = [light(read(ink)), light(behind(node))].sort((a, b) => b - a);
    const ratio = (one + 0.05) / (other + 0.05);
    const size = parseFloat(style.fontSize);
    const isLarge = size >= 24 || (size >= 18.66 && Number(style.fontWeight) >= 700);
    if (ratio < (isLarge ? 3 : 4.5)) faint.set(`${node.tagName.toLowerCase()}.${node.className?.baseVal ?? node.className}`, `${ratio.toFixed(2)}: ${node.textContent.trim().slice(0, 40)}`);
  }
  return [...faint].map((one) => one.join(" "));
}

// Fields and buttons that a screen reader has no name for, and what is said twice or out of order.
export function findNameless() {
  const named = (node) => node.ariaLabel || node.labels?.length || node.textContent.trim() || node.title;
  const nameless = [...document.querySelectorAll("input, textarea, select, button, a, [role=region], [role=img], summary")].filter((node) => node.checkVisibility() && !named(node));
  const heads = [...document.querySelectorAll("th")].filter((node) => !node.textContent.trim());
  const levels = [...document.querySelectorAll("main h1, main h2, main h3")].map((node) => Number(node.tagName[1]));
  const jumps = levels.filter((level, i) => i && level > levels[i - 1] + 1);
  return [...nameless, ...heads].map((node) => node.outerHTML.slice(0, 120)).concat(jumps.map((level) => `a heading of level ${level} follows one of level ${level - 2} or less`));
}

// What is not where it can be seen: pages that are longer than the window for nothing, navigation below the window, short
// texts in two lines, and what a row offers outside of its table's box.
export function findMisplaced() {
  const faults = [];
  const { scrollY, innerHeight } = window;
  const last = Math.max(...[...document.querySelectorAll("main > *")].map((node) => node.getBoundingClientRect().bottom));
  const room = parseFloat(getComputedStyle(document.querySelector("main")).paddingBottom);
  const whole = document.documentElement.scrollHeight;
  const filled = last + scrollY + room + 24; // the margin below the last text
  if (whole > innerHeight && filled < innerHeight) faults.push(`it is ${whole} px high for at most ${Math.round(filled)} px in a window of ${innerHeight}`);
  const stay = document.querySelector("nav .stay");
  if (stay.checkVisibility() && scrollY === 0 && stay.getBoundingClientRect().bottom > innerHeight) faults.push("the navigation goes on below the window");
  const broken = [...document.querySelectorAll("td.brief a")].find((node) => node.getClientRects().length > 1);
  if (broken) faults.push(`"${broken.textContent}" is broken in lines`);
  for (const button of document.querySelectorAll("td button")) {
    const [one, box] = [button, button.closest(".scroll")].map((node) => node.getBoundingClientRect());
    if (one.left < box.left || one.right > box.right) faults.push(`${button.textContent} is reached only by scrolling sideways`);
  }
  return faults;
}

// Where the keys are: what has the focus, whether it is seen, and whether it comes behind what had it before.
function noteFocus() {
  const node = document.activeElement;
  if (!node || node === document.body) return null;
  const before = window.focusedBefore;
  if (node.className !== "skip" || !before) window.focusedBefore = node;
  const { width, height, top, bottom } = node.getBoundingClientRect();
  const { outlineStyle, outlineWidth } = getComputedStyle(node);
  return {
    isFirst: node.className === "skip",
    what: `${node.tagName.toLowerCase()} ${(node.ariaLabel || node.textContent || node.placeholder || "").trim().slice(0, 40)}`,
    isSeen: width > 1 && height > 1 && bottom > 0 && top < innerHeight && outlineStyle !== "none" && parseFloat(outlineWidth) >= 1,
    isSame: before === node, // a field for a moment has a stop for each of its parts, which the browser draws
    isInOrder: !before?.isConnected || Boolean(before.compareDocumentPosition(node) & Node.DOCUMENT_POSITION_FOLLOWING),
  };
}

// What comes behind what had the focus last.
function findWhatFollows() {
  const before = window.focusedBefore;
  const all = [...document.querySelectorAll("a[href], button:not(:disabled), input, select, textarea, summary, [tabindex='0']")].filter((node) => node.checkVisibility());
  const at = all.findIndex((node) => node !== before && before.compareDocumentPosition(node) & Node.DOCUMENT_POSITION_FOLLOWING && !before.contains(node));
  return before.isConnected ? all[at]?.outerHTML.slice(0, 80) : `anything: ${before.outerHTML.slice(0, 80)} is gone`;
}

// Go through a page by Tab alone; what is wrong is told, with how many stops there were.
export async function walkByKeys(page, most = 120) {
  const faults = [];
  await page.evaluate(() => {
    window.focusedBefore = undefined;
    document.activeElement.blur();
    document.querySelector(".skip").focus();
  });
  let stops = 0;
  for (; stops < most; stops++) {
    const found = await page.evaluate(noteFocus);
    if (!found || (stops && found.isFirst)) {
      const left = await page.evaluate(findWhatFollows); // else it begins anew behind the last one
      if (left) faults.push(`the focus does not come to ${left}`);
      break;
    }
    if (!found.isSame && !found.isSeen) faults.push(`the focus on ${found.what} is not seen`);
    if (!found.isSame && !found.isInOrder) faults.push(`${found.what} comes out of order`);
    await page.keyboard.press("Tab");
  }
  return { stops, faults };
}
