/** The pieces in their order, and everything that was considered and is not among them, with the reasons. */

import { button, counted, el, figure, foreign } from "./dom.js";
import { signalBars } from "./signals.js";
import { visibleLine } from "./visible.js";
import { FATES, REASONS, inWords } from "./words.js";
import { wholeOf } from "./whole.js";

/**
 * @typedef {import("./model.js").Build} Build
 * @typedef {import("./model.js").Piece} Piece
 * @typedef {import("./model.js").Entry} Entry
 * @typedef {{over: (piece: Piece | null) => void, chosen: (piece: Piece) => void,
 *   opened: (piece: {id: string, title: string, place: string}) => void}} Heard
 */

const MOST_ROWS = 100;

/**
 * The list with its filters. `cards` finds a piece's card.
 * @param {Build} build
 * @param {Heard} heard
 */
export function piecesList(build, heard) {
  /** @type {Map<Piece, HTMLElement>} */
  const cards = new Map();
  for (const piece of build.pieces) cards.set(piece, card(piece, build, heard));
  const written = el("ol", { class: "cards", "aria-label": "Pieces in the context" }, [...cards.values()]);
  const left = el("ul", { class: "rows", "aria-label": "Pieces left out of the context, with reasons" });
  const fill = (/** @type {string} */ fate) => {
    for (const [piece, made] of cards) made.hidden = fate !== "all" && piece.fate !== fate;
    const entries = build.left.filter((entry) => fate === "all" || entry.fate === fate);
    left.replaceChildren(...byReason(entries, build, heard));
    heading.hidden = !entries.length;
    nothing.hidden = entries.length > 0 || [...cards.values()].some((made) => !made.hidden);
  };
  const heading = el("h3", { class: "rows-head", text: "Left out or merged" });
  const nothing = el("p", { class: "faint", text: "No pieces." });
  const sort = (/** @type {string} */ order) => {
    const sorted = order === "relevance" ? [...build.pieces].sort((a, b) => b.relevance - a.relevance) : build.pieces;
    written.append(...sorted.map((piece) => /** @type {HTMLElement} */ (cards.get(piece))));
  };
  const tools = el("div", { class: "list-tools" }, filters(build, fill), orders(sort));
  const made = el("div", { class: "pieces" }, tools, written, nothing, heading, left);
  fill("all");
  return { made, cards };
}

/** @param {Build} build @param {(fate: string) => void} chosen */
function filters(build, chosen) {
  const all = [...build.pieces, ...build.left];
  const choices = ["all", ...Object.keys(FATES)].map((fate) => {
    const count = fate === "all" ? all.length : all.filter((one) => one.fate === fate).length;
    const input = /** @type {HTMLInputElement} */ (
      el("input", { type: "radio", name: "fate", value: fate, class: "unseen", on: { change: () => chosen(fate) } })
    );
    input.checked = fate === "all";
    return el(
      "label",
      { class: `choice fate-${fate}` },
      input,
      el("span", {}, fate === "all" ? "all" : FATES[fate], el("span", { class: "count", text: figure(count) })),
    );
  });
  return el("fieldset", { class: "choices" }, el("legend", { class: "unseen", text: "Show by fate" }), choices);
}

/** In which order the cards stand. @param {(order: string) => void} chosen */
function orders(chosen) {
  const select = /** @type {HTMLSelectElement} */ (
    el(
      "select",
      { class: "order", "aria-label": "Order of the pieces" },
      el("option", { value: "place", text: "as in the text" }),
      el("option", { value: "relevance", text: "most relevant first" }),
    )
  );
  select.addEventListener("change", () => chosen(select.value));
  return select;
}

/** @param {Piece} piece @param {Build} build @param {Heard} heard */
function card(piece, build, heard) {
  const name = piece.title || piece.place;
  const place = piece.title && piece.place !== piece.title ? foreign(piece.place, { class: "place" }) : null;
  const head = button(
    [foreign(name)],
    () => heard.opened(piece),
    { class: "open", "aria-label": openLabel(piece), on: { focus: () => heard.chosen(piece) } },
  );
  const cut = piece.fate === "trimmed";
  const made = el(
    "li",
    {
      class: `card tone-${(piece.group % 8) + 1}${cut ? " is-cut" : ""}`,
      on: {
        mouseenter: () => heard.over(piece),
        mouseleave: () => heard.over(null),
        click: (/** @type {MouseEvent} */ event) => {
          const at = event.target;
          if (!(at instanceof Element) || !at.closest("button, summary, details, .lines")) heard.chosen(piece);
        },
      },
    },
    el(
      "div",
      { class: "card-head" },
      el("span", { class: "number", text: piece.number }),
      el("div", { class: "name" }, head, place),
      el("span", { class: "tokens", text: piece.tokens ? counted(piece.tokens, "token") : "" }),
    ),
    snippet(piece),
    facts(piece),
    cut ? cutNote(piece, build) : null,
    also(piece),
    signalBars(piece.signals, piece.place),
  );
  return made;
}

/** How a piece begins: several may be of the same page or file. @param {Piece} piece */
function snippet({ shown, title }) {
  const line = shown.split("\n").find((one) => one.trim() && one.trim() !== title);
  return line ? el("p", { class: "snippet" }, foreign(line.trim().slice(0, 200))) : null;
}

/** @param {Piece} piece */
function openLabel(piece) {
  const told = [
    `Piece ${piece.number}`,
    piece.title,
    piece.place,
    counted(piece.tokens, "token"),
    FATES[piece.fate],
  ];
  return `${told.filter(Boolean).map(visibleLine).join(", ")}. Open its source`;
}

/** @param {Piece} piece */
function facts(piece) {
  const relevance = el(
    "span",
    { class: "relevance", title: piece.score === null ? "" : `score ${piece.score.toFixed(3)}` },
  );
  const meter = el("span", { class: "meter", "aria-hidden": "true" });
  meter.style.setProperty("--size", String(Math.min(1, Math.max(0, piece.relevance))));
  relevance.append("relevance ", piece.relevance.toFixed(2), meter);
  const parts = [el("span", {}, foreign(piece.type, { class: "type" }))];
  if (piece.section) parts.push(el("span", {}, foreign(piece.section)));
  if (piece.reasons.length) parts.push(el("span", {}, foreign(piece.reasons.join(", "))));
  parts.push(relevance);
  if (piece.score !== null && Math.abs(piece.score - piece.relevance) > 0.005) parts.push(
    el("span", { text: `score ${piece.score.toFixed(2)}` }),
  );
  if (piece.fate !== "trimmed" && piece.reason !== "fits") parts.push(
    el("span", { text: inWords(REASONS, piece.reason) }),
  );
  return el("p", { class: "facts" }, parts);
}

/** What is missing of a piece, and how to get it. @param {Piece} piece @param {Build} build */
function cutNote(piece, build) {
  const lines = piece.linesMissing;
  const told = el(
    "p",
    {},
    `${inWords(REASONS, piece.reason)} `,
    lines ? `Missing: ${counted(lines, "line")}.` : "Part of it is missing.",
  );
  return el("div", { class: "cut" }, told, wholeOf(piece, build));
}

/** @param {Piece} piece */
function also(piece) {
  if (!piece.also.length) return null;
  const items = piece.also.map((entry) => el("li", {}, foreign(entry.id), ` – ${inWords(REASONS, entry.reason)}`));
  return el(
    "details",
    { class: "also" },
    el("summary", { text: `${counted(piece.also.length, "more hit")} in this piece` }),
    el("ul", {}, items),
  );
}

/**
 * What is not written, by the reason; the reasons in the order in which they come up.
 * @param {Entry[]} entries
 * @param {Build} build
 * @param {Heard} heard
 */
function byReason(entries, build, heard) {
  /** @type {Map<string, Entry[]>} */
  const reasons = new Map();
  for (const entry of entries) {
    const key = `${entry.fate} ${entry.reason}`;
    reasons.set(key, [...(reasons.get(key) ?? []), entry]);
  }
  return [...reasons.values()].map((those) => {
    const [{ fate, reason }] = those;
    const rest = those.length - MOST_ROWS;
    return el(
      "li",
      { class: "reason" },
      el(
        "p",
        { class: "why" },
        el("span", { class: `fate fate-${fate}`, text: inWords(FATES, fate) }),
        inWords(REASONS, reason),
        el("span", { class: "count", text: figure(those.length) }),
      ),
      el(
        "ul",
        {},
        those.slice(0, MOST_ROWS).map((entry) => row(entry, build, heard)),
        rest > 0 ? el("li", { class: "faint", text: `and ${figure(rest)} more` }) : null,
      ),
    );
  });
}

/** @param {Entry} entry @param {Build} build @param {Heard} heard */
function row(entry, build, heard) {
  const known = build.pieces.find((piece) => piece.id === entry.into || piece.also.includes(entry));
  const figures = [
    known ? `is in [${known.number}]` : "",
    entry.collector,
    `relevance ${entry.relevance.toFixed(2)}`,
    entry.tokens ? counted(entry.tokens, "token") : "",
  ];
  return el(
    "li",
    { class: "row" },
    button([foreign(entry.id)], () => heard.opened({ id: entry.id, title: "", place: entry.id }), { class: "open" }),
    el("span", { class: "facts" }, figures.filter(Boolean).map((one) => el("span", {}, foreign(one)))),
  );
}
