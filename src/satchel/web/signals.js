/** Why a piece stands where it does: its signals as small bars to the right (for it) and to the left (against it). */

import { counted, el, foreign } from "./dom.js";
import { SIGNALS, inWords } from "./words.js";
import { visibleLine } from "./visible.js";

const FIRST = 3;

/** Signals with the same words are one reason: their contributions are added. @param {Record<string, number>} signals @param {string} place */
export function signalBars(signals, place) {
  const sorted = Object.entries(asReasons(signals, place))
    .filter(([, value]) => Number.isFinite(value) && value !== 0)
    .sort(([, a], [, b]) => Math.abs(b) - Math.abs(a));
  if (!sorted.length) return null;
  const largest = Math.max(1, Math.abs(sorted[0][1]));
  const rows = sorted.map(([name, value]) => row(name, value, largest));
  const made = el("dl", { class: "signals" }, rows.slice(0, FIRST));
  if (rows.length <= FIRST) return made;
  const rest = el(
    "details",
    {},
    el("summary", { text: counted(rows.length - FIRST, "more signal") }),
    el("dl", { class: "signals" }, rows.slice(FIRST)),
  );
  return el("div", {}, made, rest);
}

/** @param {Record<string, number>} signals @param {string} place */
function asReasons(signals, place) {
  const path = place.split(":")[0];
  const file = path.slice(path.lastIndexOf("/") + 1);
  const name = file.includes(".", 1) ? file.slice(0, file.lastIndexOf(".")) : file;
  const folder = path.includes("/") ? path.slice(0, path.lastIndexOf("/")) : "the uppermost folder";
  /** @type {Record<string, number>} */
  const added = {};
  for (const [signal, value] of Object.entries(signals)) {
    const told = inWords(SIGNALS, signal).replace("{name}", () => name).replace("{folder}", () => folder);
    added[told] = (Object.hasOwn(added, told) ? added[told] : 0) + value;
  }
  return added;
}

/** @param {string} told @param {number} value @param {number} largest */
function row(told, value, largest) {
  const filled = el("span", { class: value < 0 ? "against" : "for" });
  filled.style.setProperty("--size", String(Math.min(1, Math.abs(value) / largest)));
  return el(
    "div",
    { class: "signal", title: visibleLine(told) },
    el("dt", {}, foreign(told)),
    el(
      "dd",
      {},
      el("span", { class: "track", "aria-hidden": "true" }, filled),
      el("span", { class: "value", text: value.toFixed(2).replace("-", "−") }),
    ),
  );
}
