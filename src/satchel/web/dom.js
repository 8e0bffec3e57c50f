/**
 * Making elements. Everything indexed is hostile: content becomes text nodes and nothing else, and no attribute that
 * could run, load or lead anywhere can be set here.
 */

import { visibleLine } from "./visible.js";

const FORBIDDEN = /^(on|style$|src|href$|xlink|action$|formaction$|data$|background$|ping$|is$)/i;

/** @typedef {Node | string | number | null | undefined | false} Child */

/**
 * An element. `class` and `text` are what they say, `on` maps events to listeners, and everything else is an attribute
 * (true: without a value; false and null: not at all).
 * @param {string} tag
 * @param {Record<string, any>} [told]
 * @param {...(Child | Child[])} children
 * @returns {HTMLElement}
 */
export function el(tag, told = {}, ...children) {
  const made = document.createElement(tag);
  for (const [name, value] of Object.entries(told)) {
    if (value === null || value === undefined || value === false) continue;
    if (name === "class") made.className = value;
    else if (name === "text") made.textContent = String(value);
    else if (name === "on") for (const [event, heard] of Object.entries(value)) made.addEventListener(event, heard);
    else if (FORBIDDEN.test(name)) throw new TypeError(`${name} must not be set`);
    else made.setAttribute(name, value === true ? "" : String(value));
  }
  made.append(...children.flat().filter((one) => one !== null && one !== undefined && one !== false).map(asNode));
  return made;
}

/** @param {any} child */
function asNode(child) {
  return child instanceof Node ? child : document.createTextNode(String(child));
}

/**
 * Somebody else's text within a line: isolated, so that its direction ends with it, and nothing hidden.
 * @param {unknown} text
 * @param {Record<string, any>} [told]
 */
export function foreign(text, told = {}) {
  const parts = visibleLine(text).split(/(?<=[/\\])/);
  return el(
    "bdi",
    { ...told, dir: "auto" },
    parts.flatMap((part, i) => (i && parts.length < 100 ? [el("wbr"), part] : [part])),
  );
}

/**
 * A button.
 * @param {Child | Child[]} label
 * @param {(event: MouseEvent) => void} pressed
 * @param {Record<string, any>} [told]
 */
export function button(label, pressed, told = {}) {
  return el("button", { type: "button", ...told, on: { click: pressed, ...told.on } }, label);
}

/**
 * An element of the page by its id.
 * @param {string} id
 * @returns {any}
 */
export function byId(id) {
  const found = document.getElementById(id);
  if (!found) throw new Error(`the page has no #${id}`);
  return found;
}

/** @param {string} id @param {any} value */
export function setText(id, value) {
  byId(id).textContent = visibleLine(value);
}

/**
 * Tell those who listen rather than look.
 * @param {string} words
 */
export function announce(words) {
  const said = byId("said");
  said.textContent = "";
  requestAnimationFrame(() => (said.textContent = visibleLine(words)));
}

const NUMBERS = new Intl.NumberFormat("en");

/** @param {number} value */
export function figure(value) {
  return NUMBERS.format(value);
}

/**
 * "1 piece", "3 pieces".
 * @param {number} count
 * @param {string} what
 * @param {string} [many]
 */
export function counted(count, what, many = `${what}s`) {
  return `${figure(count)} ${count === 1 ? what : many}`;
}

/** Whether things may move. */
export function mayMove() {
  return !matchMedia("(prefers-reduced-motion: reduce)").matches;
}
