/** A build on the page: its figures, the bar, the pieces and the text, which light each other up. */

import { answerOf } from "./answer.js";
import { bar, figuresOf } from "./bar.js";
import { button, counted, el, foreign, mayMove } from "./dom.js";
import { piecesList } from "./pieces.js";
import { openSource } from "./source.js";
import { nothingFound } from "./states.js";
import { copyButton, scrollTo, textPane } from "./text.js";
import { toldHow } from "./model.js";

/** @typedef {import("./model.js").Build} Build @typedef {import("./model.js").Piece} Piece */

/**
 * @param {Build} build
 * @param {{compare: () => void}} told
 */
export function result(build, { compare }) {
  /** @type {Piece | null} */
  let selected = null;
  const openPiece = (/** @type {any} */ piece) => openSource(piece, build.pieces, build.asked.user);
  const light = (/** @type {(piece: Piece) => boolean} */ isLit) => {
    for (const [piece, mark] of marks) mark.classList.toggle("lit", isLit(piece));
    for (const [piece, card] of cards) card.classList.toggle("lit", isLit(piece));
  };
  const over = (/** @type {Piece | null} */ piece) => light((one) => one === piece);
  const overGroup = (/** @type {number | null} */ group) => light((one) => one.group === group);
  const select = (/** @type {Piece} */ piece, from = "") => {
    selected = piece;
    for (const [one, card] of cards) {
      if (one === piece) card.setAttribute("aria-current", "true");
      else card.removeAttribute("aria-current");
    }
    for (const [one, mark] of marks) mark.classList.toggle("selected", one === piece);
    const mark = marks.get(piece);
    const card = cards.get(piece);
    if (mark && from !== "text") scrollTo(pane, mark);
    if (card && from !== "list") card.scrollIntoView({ block: "nearest", behavior: mayMove() ? "smooth" : "auto" });
  };
  const { made: list, cards } = piecesList(
    build,
    { over, chosen: (piece) => select(piece, "list"), opened: openPiece },
  );
  const { pane, marks } = textPane(build, { over, chosen: (piece) => (show("pieces"), select(piece, "text")) });
  const selectGroup = (/** @type {number} */ group) => {
    const first = build.pieces.find((piece) => piece.group === group);
    if (first) select(first);
  };
  const isEmpty = !build.pieces.length;
  const columns = el(
    "div",
    { class: "columns", "data-view": "pieces" },
    el("section", { class: "column pieces-column", "aria-label": "Pieces" }, list),
    el(
      "section",
      { class: "column text-column", "aria-label": "Text" },
      el(
        "div",
        { class: "text-head" },
        el("h3", { text: "The finished text" }),
        el("span", { class: "faint", text: figuresOf(build) }),
        copyButton(build.text),
      ),
      pane,
    ),
  );
  const tabs = ["pieces", "text"].map(
    (view) => button(
      view === "pieces" ? "Pieces" : "Text",
      () => show(view),
      { "aria-pressed": String(view === "pieces"), class: "tab" },
    ),
  );
  const show = (/** @type {string} */ view) => {
    columns.dataset.view = view;
    for (const [i, name] of ["pieces", "text"].entries()) tabs[i].setAttribute("aria-pressed", String(view === name));
    if (view === "text" && selected) scrollTo(pane, marks.get(selected) ?? pane);
  };
  const holdsNothing = isEmpty && !build.left.length && !build.text.trim();
  const made = el(
    "article",
    { class: "result" },
    head(build, button("Compare", compare, { class: "compare-button" })),
    notesOf(build),
    isEmpty ? nothingFound(build) : null,
    sufficiencyOf(build),
    isEmpty ? null : answerOf(build, (piece) => (show("pieces"), select(piece))),
    holdsNothing ? null : bar(build, { over: overGroup, chosen: selectGroup }),
    holdsNothing ? null : el("div", { class: "tabs", role: "group", "aria-label": "Show" }, tabs),
    holdsNothing ? null : columns,
  );
  return {
    made,
    step: (/** @type {number} */ by) => step(build, cards, selected, by),
    copy: () => made.querySelector(".copy")?.click(),
  };
}

/**
 * Go to the piece before or after; focusing its button selects it.
 * @param {Build} build
 * @param {Map<Piece, HTMLElement>} cards
 * @param {Piece | null} selected
 * @param {number} by
 */
function step(build, cards, selected, by) {
  const open = build.pieces.filter((piece) => !cards.get(piece)?.hidden);
  const at = selected ? open.indexOf(selected) + by : 0;
  const wanted = open[Math.min(open.length - 1, Math.max(0, at))];
  const target = wanted && cards.get(wanted)?.querySelector("button.open");
  if (!(target instanceof HTMLElement)) return;
  target.focus({ preventScroll: true });
  cards.get(wanted)?.scrollIntoView({ block: "nearest", behavior: mayMove() ? "smooth" : "auto" });
}

/** @param {Build} build @param {...Node} tools */
function head(build, ...tools) {
  const count = new Set(build.pieces.map((piece) => piece.file).filter(Boolean)).size;
  const files = count ? ` from ${counted(count, "file")}` : "";
  const facts = [
    `${counted(build.pieces.length, "piece")}${files}`,
    `built in ${build.milliseconds < 10 ? build.milliseconds.toFixed(1) : Math.round(build.milliseconds)} ms`,
  ];
  if (build.madeVisible) facts.push(`${counted(build.madeVisible, "hidden character")} made visible`);
  return el(
    "div",
    { class: "result-head" },
    el(
      "div",
      { class: "result-title" },
      el("h2", {}, foreign(build.asked.query)),
      el("p", { class: "faint" }, foreign(toldHow(build)), " · ", facts.join(" · ")),
    ),
    el("div", { class: "result-tools" }, tools),
  );
}

/** How likely the context answers, in plain words, and why it may not. @param {Build} build */
function sufficiencyOf({ sufficiency }) {
  if (!sufficiency) return null;
  const { probability, reasons } = sufficiency;
  const isLow = reasons.length > 0;
  const verdict = isLow ? "This probably does not answer the question" : "This probably answers the question";
  return el(
    "p",
    { class: isLow ? "sufficiency low" : "sufficiency" },
    el("strong", { text: verdict }),
    ` (${Math.round(100 * probability)} %)`,
    isLow ? ": " : ".",
    ...(isLow ? emphasized(`${reasons.join("; ")}.`) : []),
  );
}

/** The words between asterisks as emphasis. @param {string} text */
function emphasized(text) {
  return text.split(/\*([^*]+)\*/).map((part, i) => (i % 2 ? el("em", {}, foreign(part)) : foreign(part)));
}

/** @param {Build} build */
function notesOf(build) {
  const notes = [...build.notes];
  for (const [name, why] of Object.entries(build.failed)) {
    if (!notes.some((note) => note.includes(name))) notes.push(`the collector ${name} failed: ${why}`);
  }
  return notes.length ? el(
    "ul",
    { class: "notes", "aria-label": "Notes" },
    notes.map((note) => el("li", { class: "note" }, foreign(note))),
  ) : null;
}
