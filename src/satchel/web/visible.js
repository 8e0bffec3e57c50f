/**
 * Hidden characters, made visible. The finished text comes from the server without any; names, ids, notes and the exact
 * text of a source may hold what reorders, hides or commands. Emoji and joiners between letters or emoji stay.
 */

const SUSPECT = new RegExp(
  "[\\u0000-\\u0008\\u000b-\\u001f\\u007f-\\u009f\\u00ad\\u034f\\u061c\\u115f\\u1160\\u17b4\\u17b5\\u180b-\\u180f" +
    "\\u200b-\\u200f\\u2028-\\u202e\\u2060-\\u206f\\u3164\\ufe00-\\ufe0f\\ufeff\\uffa0\\ufff0-\\ufffb\\ufffe\\uffff" +
    "\\ud800-\\udfff\\u{13430}-\\u{1343f}\\u{1bca0}-\\u{1bca3}\\u{1d173}-\\u{1d17a}\\u{e0000}-\\u{e0fff}]",
  "gu",
);
const JOINERS = /[\u200c\u200d]/;
const SELECTOR = /[\ufe00-\ufe0f]/;
const JOINS_BEFORE = /[\p{Lo}\p{Lm}\p{Mn}\p{Mc}\p{So}\p{Sk}]\ufe0f?$/u;
const JOINS_AFTER = /^[\p{Lo}\p{Lm}\p{Mn}\p{Mc}\p{So}]/u;
const TAKES_SELECTOR = /[\p{So}\p{Sm}\p{Po}\p{Lo}\d#*©®]$/u;

/** @param {string} found @param {number} at @param {string} whole */
function shown(found, at, whole) {
  const before = whole.slice(Math.max(0, at - 3), at);
  const after = whole.slice(at + found.length, at + found.length + 2);
  if (JOINERS.test(found) && JOINS_BEFORE.test(before) && JOINS_AFTER.test(after)) return found;
  if (SELECTOR.test(found) && TAKES_SELECTOR.test(before)) return found;
  const code = found.codePointAt(0);
  if (code < 0x20) return String.fromCharCode(0x2400 + code);
  if (code === 0x7f) return "\u2421";
  return `\u27e6U+${code.toString(16).toUpperCase().padStart(4, "0")}\u27e7`;
}

/**
 * The text with every hidden character shown; lines stay lines.
 * @param {unknown} text
 */
export function visible(text) {
  return String(text ?? "").replace(/\r\n/g, "\n").replace(SUSPECT, shown);
}

/**
 * The same for what must stay on one line.
 * @param {unknown} text
 */
export function visibleLine(text) {
  return visible(text).replace(/\n/g, "\u240a").replace(/\t/g, "\u2409");
}
