/** Lines left out of a piece: found in its text, drawn as dividers, and fetched in place when they are asked for. */

import { expand } from "./api.js";
import { announce, el, foreign } from "./dom.js";
import { visible, visibleLine } from "./visible.js";
import { numbered } from "./whole.js";

/**
 * @typedef {{line: string, first: number, last: number, names: string}} Elision
 * @typedef {import("./model.js").Piece} Piece
 */

const ELISION = /^(⋮+) \d+ lines? \((\d+)(?:-(\d+))?\)(?:: (.*))?$/;

/**
 * The elisions in the text of a piece. Only a piece that counts elided lines has any, and they are the lines with the
 * longest mark: a line of the source that looks like an elision has a shorter one.
 * @param {string} text
 * @param {number} elided
 * @returns {Elision[]}
 */
export function elisionsIn(text, elided) {
  if (!elided) return [];
  const found = text.split("\n").map((line) => ELISION.exec(line)).filter((match) => match !== null);
  const longest = Math.max(...found.map((match) => match[1].length));
  return found.filter((match) => match[1].length === longest).map((match) => ({
    line: match[0],
    first: Number(match[2]),
    last: Number(match[3] ?? match[2]),
    names: match[4] ?? "",
  }));
}

/**
 * The text of a piece as nodes that together have exactly this text, with a divider for each elision line.
 * @param {string} text as it is in the finished text: escaped, if the format escapes
 * @param {Piece} piece
 * @param {string | undefined} user who asks
 * @returns {Node[]}
 */
export function withDividers(text, piece, user) {
  const nodes = [];
  let at = 0;
  for (const elision of piece.elisions) {
    const found = lineIn(text, [elision.line, escaped(elision.line)], at);
    if (!found) continue; // a format that writes lines otherwise, such as JSON
    nodes.push(document.createTextNode(text.slice(at, found.start)));
    at = Math.min(text.length, found.end + 1); // with the line end, which would be an empty line after a divider
    nodes.push(...divider(text.slice(found.start, at), elision, piece, user));
  }
  return [...nodes, document.createTextNode(text.slice(at))];
}

/**
 * Where one of the lines is in a text, as a whole line.
 * @param {string} text @param {string[]} lines @param {number} from
 */
function lineIn(text, lines, from) {
  for (const line of lines) {
    for (let start = text.indexOf(line, from); start >= 0; start = text.indexOf(line, start + 1)) {
      const end = start + line.length;
      const isWhole = (!start || text[start - 1] === "\n") && (end === text.length || text[end] === "\n");
      if (isWhole) return { start, end };
    }
  }
  return null;
}

/** @param {string} line */
function escaped(line) {
  return line.replaceAll("&", "&amp;").replaceAll("<", "&lt;").replaceAll(">", "&gt;");
}

/**
 * An elision line with its button, and the place where its lines are shown. The button's label is drawn by the style
 * sheet, so that the pane has the finished text and nothing else.
 * @param {string} text the line, with its line end
 * @param {Elision} elision
 * @param {Piece} piece
 * @param {string | undefined} user
 */
function divider(text, elision, piece, user) {
  const { first, last } = elision;
  const range = first === last ? `line ${first}` : `lines ${first} to ${last}`;
  const place = el("div", { class: "elided-lines", hidden: true });
  const label = (/** @type {string} */ verb) => {
    made.dataset.label = verb;
    made.setAttribute("aria-label", visibleLine(`${verb} ${range}${elision.names ? `: ${elision.names}` : ""}`));
    made.setAttribute("aria-expanded", String(!place.hidden));
  };
  const toggle = async () => {
    if (made.hasAttribute("aria-busy")) return;
    if (place.hidden) {
      made.setAttribute("aria-busy", "true");
      place.replaceChildren(await linesOf(`${piece.base}:${first}-${last}`, user));
      made.removeAttribute("aria-busy");
    }
    place.hidden = !place.hidden;
    label(place.hidden ? "Show" : "Hide");
    announce(`${range} ${place.hidden ? "hidden" : "shown"}.`);
  };
  const made = el("button", { type: "button", class: "elision-button", on: { click: toggle } });
  label("Show");
  const [mark, count, where, rest] = partsOf(text);
  const quiet = (/** @type {string} */ part) => el("span", { class: "elision-quiet", text: part });
  return [el("span", { class: "elision" }, made, quiet(mark), count, quiet(where), rest), place];
}

/** The mark, the number of lines, their place, and the rest of an elision line. @param {string} text */
function partsOf(text) {
  const [, mark, count, where, rest] = /^(⋮+ )(\d+ lines?)( \([\d-]+\))(.*)$/s.exec(text) ?? ["", "", text, "", ""];
  return [mark, count, where, rest];
}

/** @param {string} id @param {string | undefined} user */
async function linesOf(id, user) {
  try {
    const found = await expand(id, 0, user);
    const lines = visible(found.text).split("\n").map((line) => ({ line, state: "missing" }));
    const stale = "The file was changed or deleted since it was indexed; this is the indexed text.";
    return el("div", {}, found.stale && el("p", { class: "note", text: stale }), numbered(lines, found.start_line));
  } catch (error) {
    return el("p", { class: "fault" }, foreign(error.detail || error.message));
  }
}
