// Small line plots.

import { h, svg } from "./dom.js";

const WIDTH = 240;
const HEIGHT = 60;

function points(values, top) {
  const step = WIDTH / Math.max(values.length - 1, 1);
  return values.map((value, i) => `${(i * step).toFixed(1)},${(HEIGHT - 2 - (value / top) * (HEIGHT - 6)).toFixed(1)}`);
}

// A curve through `values`, oldest first, from zero; `label` says what it is to those that cannot see it.
export function plot(values, label, className = "") {
  const known = values.filter((value) => Number.isFinite(value));
  const top = Math.max(...known, 1e-9);
  const line = points(known, top);
  const shape = svg("svg", {
    class: `plot ${className}`,
    viewBox: `0 0 ${WIDTH} ${HEIGHT}`,
    preserveAspectRatio: "none",
    role: "img",
    "aria-label": label,
  });
  if (line.length > 1) {
    shape.append(
      svg("polygon", { class: "area", points: `0,${HEIGHT} ${line.join(" ")} ${WIDTH},${HEIGHT}` }),
      svg("polyline", { class: "curve", points: line.join(" ") }),
    );
  }
  return shape;
}

// A plot with its highest value beside it.
export function tall(values, name, write) {
  const known = values.filter((value) => Number.isFinite(value));
  const top = known.length ? write(Math.max(...known)) : "";
  return h("figure", { className: "card" }, h("figcaption", { className: "faint" }, `${name}, highest ${top}`), plot(values, name, "tall"));
}
