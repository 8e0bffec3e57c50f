/** The budget as a bar: a segment for each section or file, the frame around them, and what is unused. */

import { el, figure, foreign, button, counted } from "./dom.js";
import { visibleLine } from "./visible.js";

/** @typedef {import("./model.js").Build} Build */

const FOR_LACK_OF_ROOM = ["over-budget", "less-value-for-its-tokens", "after-the-first-that-did-not-fit"];

/** @param {number} part @param {number} whole */
function percent(part, whole) {
  const share = whole ? (100 * part) / whole : 0;
  return `${share > 0 && share < 10 ? share.toFixed(1) : Math.round(share)} %`;
}

/** The last part of each path; two, where one alone would not tell them apart. @param {string[]} names */
function shortened(names) {
  const tails = (/** @type {number} */ count) => names.map((name) => name.split("/").slice(-count).join("/") || name);
  const [one, two] = [tails(1), tails(2)];
  return one.map((tail, i) => (one.indexOf(tail) === one.lastIndexOf(tail) ? tail : two[i]));
}

/** The parts of the whole, in order. @param {Build} build */
function partsOf(build) {
  const short = shortened(build.groups.map((group) => group.name));
  const parts = build.groups.map((group, i) => ({
    name: group.name,
    short: short[i],
    tokens: group.tokens,
    told: counted(group.count, "piece"),
    tone: `tone-${(i % 8) + 1}`,
    group: i,
  }));
  if (build.frame) parts.push(
    {
      name: "Frame",
      short: "Frame",
      tokens: build.frame,
      told: "headings, question, marks",
      tone: "tone-frame",
      group: -1,
    },
  );
  const unused = Math.max(0, build.budget - build.tokens);
  if (unused) parts.push(
    { name: "Unused", short: "Unused", tokens: unused, told: whyUnused(build), tone: "tone-unused", group: -1 },
  );
  return parts;
}

/**
 * @param {Build} build
 * @param {{over?: (group: number | null) => void, chosen?: (group: number) => void, label?: string}} [heard]
 */
export function bar(build, { over = () => {}, chosen, label = "Budget by part" } = {}) {
  const parts = partsOf(build);
  const whole = Math.max(build.budget, build.tokens);
  const said = el("p", { class: "bar-said", "aria-hidden": "true" });
  const tell = (/** @type {typeof parts[number] | null} */ part) => {
    said.replaceChildren(...(part ? [foreign(part.name), `: ${toldOf(part, whole)}`] : [saidOf(build)]));
    over(part && part.group >= 0 ? part.group : null);
  };
  const segments = parts.map((part) => {
    const segment = button([
      el("span", { class: "segment-name" }, foreign(part.short)),
    ], () => part.group >= 0 && chosen?.(part.group), {
      class: `segment ${part.tone}`,
      "aria-label": `${visibleLine(part.name)}: ${toldOf(part, whole)}`,
      on: {
        mouseenter: () => tell(part),
        mouseleave: () => tell(null),
        focus: () => tell(part),
        blur: () => tell(null),
      },
    });
    const place = el("li", { class: "segment-place" }, segment);
    place.style.setProperty("--share", String(part.tokens));
    return place;
  });
  const legend = parts.map(
    (part) => el(
      "li",
      {},
      el("span", { class: `swatch ${part.tone}` }),
      foreign(part.short),
      ` ${figure(part.tokens)}`,
    ),
  );
  tell(null);
  return el(
    "div",
    { class: "budget-bar" },
    el("ol", { class: "bar", "aria-label": label }, segments),
    el("ul", { class: "legend", "aria-hidden": "true" }, legend),
    said,
    el("details", { class: "figures" }, el("summary", { text: "Figures" }), table(parts, build, whole)),
  );
}

/** @param {{tokens: number, told: string}} part @param {number} whole */
function toldOf(part, whole) {
  return [`${counted(part.tokens, "token")}`, percent(part.tokens, whole), part.told].filter(Boolean).join(", ");
}

/** @param {Build} build */
export function figuresOf(build) {
  return `${figure(build.tokens)} of ${counted(build.budget, "token")}, ${percent(build.tokens, build.budget)}`;
}

/** What was left unspent and why; without a reason, what was spent. @param {Build} build */
function saidOf(build) {
  const why = whyUnused(build);
  const unused = build.budget - build.tokens;
  if (unused <= 0 || !why) return figuresOf(build);
  return `${figure(unused)} of ${counted(build.budget, "token")} left unspent: ${why}`;
}

/** Why packing stopped before the budget was spent; empty if it is not known. @param {Build} build */
function whyUnused({ left, pieces }) {
  const dropped = left.filter((entry) => entry.fate === "dropped");
  const has = (/** @type {string} */ reason) => dropped.some((entry) => entry.reason === reason);
  if (has("max-chunks")) return "the maximum number of pieces was reached";
  if (FOR_LACK_OF_ROOM.some(has)) return "what was left out does not fit";
  if (has("not-worth-its-tokens")) return "nothing left was likely enough to help";
  const isComplete = pieces.length && pieces.every((piece) => piece.fate !== "trimmed");
  return isComplete && !dropped.length ? "everything that was found is shown" : "";
}

/** @param {ReturnType<typeof partsOf>} parts @param {Build} build @param {number} whole */
function table(parts, build, whole) {
  const row = (/** @type {any} */ name, /** @type {number} */ tokens, tone = "") =>
    el(
      "tr",
      {},
      el("th", { scope: "row" }, tone && el("span", { class: `swatch ${tone}` }), name),
      el("td", { text: figure(tokens) }),
      el("td", { text: percent(tokens, whole) }),
    );
  return el(
    "table",
    {},
    el("caption", { class: "unseen", text: "Tokens by part of the context" }),
    el("thead", {}, el("tr", {}, ...["Part", "Tokens", "Share"].map((name) => el("th", { scope: "col", text: name })))),
    el("tbody", {}, parts.map((part) => row(foreign(part.name), part.tokens, part.tone))),
    el("tfoot", {}, row("Budget", build.budget)),
  );
}
