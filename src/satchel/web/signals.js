/** Why a piece stands where it does: its signals as small bars to the right (for it) and to the left (against it). */

import { counted, el, foreign } from "./dom.js";
import { SIGNALS, inWords } from "./words.js";
import { visibleLine } from "./visible.js";

const FIRST = 3;

/** @param {Record<string, number>} signals */
export function signalBars(signals) {
  const sorted = Object.entries(signals)
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

/** @param {string} name @param {number} value @param {number} largest */
function row(name, value, largest) {
  const told = inWords(SIGNALS, name);
  const filled = el("span", { class: value < 0 ? "against" : "for" });
  filled.style.setProperty("--size", String(Math.min(1, Math.abs(value) / largest)));
  return el(
    "div",
    { class: "signal", title: `${visibleLine(name)}: ${visibleLine(told)}` },
    el("dt", {}, foreign(told)),
    el(
      "dd",
      {},
      el("span", { class: "track", "aria-hidden": "true" }, filled),
      el("span", { class: "value", text: value.toFixed(2).replace("-", "−") }),
    ),
  );
}
