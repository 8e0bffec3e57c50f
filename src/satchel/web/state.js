/** What the session knows: its builds (in memory alone), the questions, the workspace's status. */

import { counted } from "./dom.js";

/** @typedef {import("./model.js").Build} Build */

const KEPT = "satchel.questions";
const MOST_BUILDS = 50;
const MOST_QUESTIONS = 30;

/** @type {Build[]} */
let builds = [];
/** @type {Record<string, any> | null} */
let known = null;
/** @type {Map<() => void, Node | undefined>} */
const watchers = new Map();

/**
 * Call when something has changed; as long as an element is on the page, if one is given.
 * @param {() => void} heard
 * @param {Node} [place]
 */
export function watch(heard, place) {
  watchers.set(heard, place);
}

function tell() {
  for (const [heard, place] of watchers) {
    if (place && !place.isConnected) watchers.delete(heard);
    else heard();
  }
}

/** The newest first. */
export function history() {
  return builds;
}

/** @param {Build} build */
export function remember(build) {
  builds = [build, ...builds].slice(0, MOST_BUILDS);
  keepQuestions([build.asked.query, ...questions()]);
  tell();
}

export function forgetAll() {
  builds = [];
  keepQuestions([]);
  tell();
}

/** What was asked in this tab, also before the page was loaded again; answers are not kept. @returns {string[]} */
export function questions() {
  try {
    const kept = JSON.parse(sessionStorage.getItem(KEPT) ?? "[]");
    return Array.isArray(kept) ? kept.filter((one) => typeof one === "string") : [];
  } catch {
    return [];
  }
}

/** @param {string[]} asked */
function keepQuestions(asked) {
  try {
    sessionStorage.setItem(KEPT, JSON.stringify([...new Set(asked)].slice(0, MOST_QUESTIONS)));
  } catch {
    // storage may be full or forbidden; then a reload forgets them
  }
}

/** @param {Record<string, any> | null} status */
export function learn(status) {
  known = status;
  tell();
}

export function status() {
  return known;
}

/** How much there is: files, and in a workspace of notes its blocks. */
export function size() {
  const { files = 0, blocks = 0 } = known ?? {};
  return files ? counted(files, "file") : counted(blocks, "block");
}

/** Only an owner is told how much there is. */
export function isOwner() {
  return known !== null && known.files !== null && known.files !== undefined;
}

/** Whether a request has to say who asks. */
export function hasSeveralUsers() {
  return isOwner() && known?.default_access !== "owner";
}
