/** The whole of a piece that was cut: fetched when it is asked for, with what was missing marked. */

import { expand } from "./api.js";
import { button, el, foreign } from "./dom.js";
import { visible } from "./visible.js";

/** @typedef {import("./model.js").Build} Build @typedef {import("./model.js").Piece} Piece */

/** @param {Piece} piece @param {Build} build */
export function wholeOf(piece, build) {
  const place = el("div", { class: "whole", hidden: true });
  const made = button("Show the whole source", async () => {
    if (!place.hidden) return close();
    made.setAttribute("aria-busy", "true");
    try {
      const found = await expand(piece.id, 0, build.asked.user);
      place.replaceChildren(marked(found.text, piece.shown, found.start_line, found.path));
    } catch (error) {
      place.replaceChildren(el("p", { class: "fault" }, foreign(error.detail || error.message)));
    }
    made.removeAttribute("aria-busy");
    place.hidden = false;
    made.textContent = "Hide it";
    made.setAttribute("aria-expanded", "true");
    return undefined;
  }, { class: "small", "aria-expanded": "false" });
  const close = () => {
    place.hidden = true;
    made.textContent = "Show the whole source";
    made.setAttribute("aria-expanded", "false");
  };
  return el("div", {}, made, place);
}

/**
 * Lines with their numbers; those that are not in what was shown are marked.
 * @param {string} whole @param {string} shown @param {number} first @param {string} path
 */
function marked(whole, shown, first, path) {
  const there = visible(shown).split("\n");
  let next = 0;
  const lines = visible(whole).split("\n").map((line) => {
    const found = there.indexOf(line, next);
    const isShown = found >= 0 && (found - next < 3 || line.trim() !== "");
    if (isShown) next = found + 1;
    return { line, state: isShown ? "" : "missing" };
  });
  return numbered(lines, path ? first : 1);
}

/**
 * Lines of somebody else's text, numbered.
 * @param {{line: string, state: string}[]} lines already made visible
 * @param {number} first
 */
export function numbered(lines, first) {
  const body = lines.map(({ line, state }, i) =>
    el(
      "div",
      { class: `line ${state}` },
      el("span", { class: "line-number", "aria-hidden": "true", text: first + i }),
      el("code", { dir: "auto", text: line }),
    ),
  );
  return el("div", { class: "lines", tabindex: "0", role: "region", "aria-label": "Lines of the source" }, body);
}
