/** The keyboard: what each key does, and a way to switch the single keys off. */

import { isOpen, openDialog } from "./dialogs.js";
import { el } from "./dom.js";

const KEPT = "satchel.keys";
const TABLE = [
  ["/", "go to the question"],
  ["Enter", "ask; on a piece, open its source"],
  ["j  k", "next and previous piece; in a source, next and previous source"],
  ["↓  ↑", "the same, when a piece has the focus"],
  ["c", "copy the finished text"],
  ["x", "compare with another build"],
  ["b", "browse what there is"],
  ["h", "history"],
  ["?", "this table"],
  ["Escape", "close a dialog; leave a field"],
];

function areOn() {
  try {
    return localStorage.getItem(KEPT) !== "off";
  } catch {
    return true;
  }
}

/** @param {boolean} on */
function keep(on) {
  try {
    if (on) localStorage.removeItem(KEPT);
    else localStorage.setItem(KEPT, "off");
  } catch {
    // then it lasts as long as the page
  }
}

export function openKeys() {
  const { body } = openDialog("Keys", { kind: "keys" });
  const rows = TABLE.map(
    ([keys, what]) => el(
      "tr",
      {},
      el("th", { scope: "row" }, keys.split("  ").map((key) => el("kbd", { text: key }))),
      el("td", { text: what }),
    ),
  );
  const on = /** @type {HTMLInputElement} */ (
    el("input", { type: "checkbox", on: { change: () => keep(on.checked) } })
  );
  on.checked = areOn();
  body.append(
    el("table", {}, el("caption", { class: "unseen", text: "Keys and what they do" }), el("tbody", {}, rows)),
    el("label", { class: "check" }, on, "Enable single-key shortcuts when no field has the focus"),
  );
}

/** @param {Element | null} at */
function isField(at) {
  return at instanceof HTMLElement && (
    at.matches("input:not([type=radio], [type=checkbox], [type=range]), textarea, select") || at.isContentEditable
  );
}

/** @param {Record<string, () => void>} todo by key; `next` and `previous` for the pieces */
export function begin(todo) {
  addEventListener("keydown", (event) => {
    if (event.defaultPrevented || event.ctrlKey || event.metaKey || event.altKey || isOpen()) return;
    const at = document.activeElement;
    if (event.key === "Escape" && at instanceof HTMLElement && isField(at)) at.blur();
    if (isField(at)) return;
    const inList = at?.closest(".cards") !== null && at !== null;
    if (inList && (event.key === "ArrowDown" || event.key === "ArrowUp")) {
      event.preventDefault();
      todo[event.key === "ArrowDown" ? "j" : "k"]();
    } else if (areOn() && Object.hasOwn(todo, event.key)) {
      event.preventDefault();
      todo[event.key]();
    }
  });
}
