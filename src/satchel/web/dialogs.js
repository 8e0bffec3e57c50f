/**
 * Dialogs: one at a time, closed by Escape, by their button or by a click beside them; focus goes back where it was.
 */

import { button, el } from "./dom.js";

let count = 0;

/**
 * Open a dialog. Returns its body, to be filled, and a way to close it.
 * @param {string | Node} title
 * @param {{kind?: string, closed?: () => void, tools?: Node[]}} [told]
 */
export function openDialog(title, { kind = "", closed = () => {}, tools = [] } = {}) {
  document.querySelector("dialog[open]")?.dispatchEvent(new Event("cancel", { cancelable: true }));
  const before = document.activeElement;
  const id = `dialog-${(count += 1)}`;
  const heading = el("h2", { id, tabindex: "-1" }, title);
  const body = el("div", { class: "dialog-body" });
  const dialog = /** @type {HTMLDialogElement} */ (
    el(
      "dialog",
      { class: kind, "aria-labelledby": id },
      el(
        "div",
        { class: "dialog-head" },
        heading,
        el("div", { class: "dialog-tools" }, tools, button("Close", () => close(), { class: "quiet" })),
      ),
      body,
    )
  );
  const close = () => {
    if (!dialog.isConnected) return;
    dialog.close();
    dialog.remove();
    closed();
    if (before instanceof HTMLElement && before.isConnected) before.focus({ preventScroll: true });
  };
  dialog.addEventListener("cancel", (event) => {
    event.preventDefault();
    close();
  });
  dialog.addEventListener("click", (event) => {
    if (event.target === dialog) close();
  });
  document.body.append(dialog);
  dialog.showModal();
  heading.focus();
  return { dialog, heading, body, close };
}

/** Whether a dialog is open. */
export function isOpen() {
  return document.querySelector("dialog[open]") !== null;
}
