/** The finished text, exactly, with each piece marked where it stands. */

import { announce, button, el, mayMove } from "./dom.js";
import { withDividers } from "./elisions.js";

/** @typedef {import("./model.js").Build} Build @typedef {import("./model.js").Piece} Piece */

/**
 * The text as an element. `marks` finds a piece's marked text.
 * @param {Build} build
 * @param {
   {
     over?: (piece: Piece | null) => void,
     chosen?: (piece: Piece) => void,
     classOf?: (piece: Piece) => string,
     label?: string,
   },
 } [heard]
 */
export function textPane(build, { over, chosen, classOf = () => "", label = "The finished text" } = {}) {
  const pane = el("pre", { class: "text", dir: "auto", tabindex: "0", role: "region", "aria-label": label });
  /** @type {Map<Piece, HTMLElement>} */
  const marks = new Map();
  const ordered = [...build.pieces].filter((piece) => piece.span).sort((a, b) => a.span[0] - b.span[0]);
  let at = 0;
  for (const piece of ordered) {
    const [start, end] = piece.span;
    if (start < at || end <= start) continue;
    pane.append(build.text.slice(at, start));
    const mark = el(
      "mark",
      { class: `tone-${(piece.group % 8) + 1} ${classOf(piece)}` },
      withDividers(build.text.slice(start, end), piece, build.asked.user),
    );
    if (over) {
      mark.addEventListener("mouseenter", () => over(piece));
      mark.addEventListener("mouseleave", () => over(null));
    }
    if (chosen) mark.addEventListener("click", (event) => isSelecting() || isInside(event) || chosen(piece));
    marks.set(piece, mark);
    pane.append(mark);
    at = end;
  }
  pane.append(build.text.slice(at));
  return { pane, marks };
}

/** Whether a click is meant for an elision. @param {MouseEvent} event */
function isInside(event) {
  return event.target instanceof Element && event.target.closest(".elision-button, .elided-lines") !== null;
}

/** Whether somebody is selecting text, which is no click. */
function isSelecting() {
  return Boolean(getSelection()?.toString());
}

/**
 * Bring a mark into view without moving the page around the pane.
 * @param {HTMLElement} pane
 * @param {HTMLElement} mark
 */
export function scrollTo(pane, mark) {
  const box = pane.getBoundingClientRect();
  const first = mark.getClientRects()[0];
  if (!first || pane.scrollHeight <= pane.clientHeight) return;
  if (first.top >= box.top && first.top < box.bottom - 60) return;
  pane.scrollTo({ top: pane.scrollTop + first.top - box.top - 16, behavior: mayMove() ? "smooth" : "auto" });
}

/**
 * A button that copies the exact text.
 * @param {string} text
 * @param {string} [label]
 */
export function copyButton(text, label = "Copy") {
  const made = button(label, async () => {
    const done = await copied(text);
    made.textContent = done ? "Copied" : "Not copied";
    announce(done ? "The text was copied." : "The text could not be copied.");
    setTimeout(() => (made.textContent = label), 1500);
  }, { class: "copy" });
  return made;
}

/** @param {string} text */
async function copied(text) {
  try {
    await navigator.clipboard.writeText(text);
    return true;
  } catch {
    return copiedByHand(text);
  }
}

/** For pages that are not served over HTTPS or from this machine. @param {string} text */
function copiedByHand(text) {
  const held = /** @type {HTMLTextAreaElement} */ (
    el("textarea", { class: "unseen", "aria-hidden": "true", tabindex: "-1" })
  );
  held.value = text;
  (document.querySelector("dialog[open]") ?? document.body).append(held);
  const before = document.activeElement;
  held.select();
  try {
    return document.execCommand("copy");
  } catch {
    return false;
  } finally {
    held.remove();
    if (before instanceof HTMLElement) before.focus();
  }
}
