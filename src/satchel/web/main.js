/** The page: what is on the stage, and how one thing leads to the next. */

import * as address from "./address.js";
import * as api from "./api.js";
import * as ask from "./ask.js";
import * as browse from "./browse.js";
import { comparison } from "./compare.js";
import { announce, byId, counted, figure } from "./dom.js";
import * as historyPanel from "./history.js";
import * as keys from "./keys.js";
import { buildFrom } from "./model.js";
import { result } from "./result.js";
import * as state from "./state.js";
import { failed, loading, welcome } from "./states.js";
import { turnedBy } from "./theme.js";
import * as upkeep from "./upkeep.js";

/** @typedef {import("./model.js").Build} Build */

const PATIENCE_MS = 300;

const stage = byId("stage");
/** @type {Build | null} */
let current = null;
/** @type {ReturnType<typeof result> | null} */
let view = null;
/** @type {{told: string, stop: AbortController} | null} */
let underWay = null;
/** What was on the stage before anything was waited for. @type {[Node, typeof view]} */
let settled = [stage, null];

/** @param {Node} what @param {typeof view} made */
function put(what, made = null) {
  stage.replaceChildren(what);
  view = made;
  settled = [what, made];
}

/** @param {Build} build */
function show(build) {
  current = build;
  address.tell(build.asked);
  const made = result(build, { compare: () => compare(build, null) });
  put(made.made, made);
}

/** Show what the page's address asks for; whether it asks for anything. */
function followAddress() {
  const told = address.asked();
  if (!told || JSON.stringify(told) === JSON.stringify(current?.asked)) return Boolean(told);
  ask.fill(told);
  build(told);
  return true;
}

/**
 * @param {Build} first
 * @param {Build | null} second
 * @param {{asked?: Record<string, any>, problem?: Node}} [otherwise]
 */
function compare(first, second, otherwise = {}) {
  const again = (/** @type {Record<string, any>} */ told) =>
    build(told, (made) => compare(first, made), (problem, retry) => {
      compare(first, null, { asked: told, problem: failed(problem, retry) });
      if (problem.fields.includes("user")) byId("other-user").focus();
    });
  put(
    comparison(
      first,
      second,
      { ask: again, choose: (chosen) => compare(first, chosen), back: () => show(first), ...otherwise },
    ),
  );
  announce(second ? "The two builds are compared." : "Choose what to compare with.");
  if (!second) byId("other-budget").select();
}

/**
 * Ask, and show what comes back. A question that is under way gives way to the next one.
 * @param {Record<string, any>} told
 * @param {(made: Build) => void} then
 * @param {(problem: api.Problem, retry: () => void) => void} otherwise
 */
async function build(told, then = show, otherwise = showFailure) {
  const key = JSON.stringify(told);
  if (underWay?.told === key) return;
  underWay?.stop.abort();
  const mine = { told: key, stop: new AbortController() };
  underWay = mine;
  const stop = () => {
    mine.stop.abort();
    underWay = null;
    put(...settled);
    announce("Stopped.");
  };
  const slow = setTimeout(() => {
    stage.replaceChildren(loading(stop));
    view = null;
    announce("Building the context.");
  }, PATIENCE_MS);
  try {
    const made = buildFrom(await api.context(told, mine.stop.signal), told);
    if (underWay !== mine) return;
    state.remember(made);
    upkeep.banner("");
    then(made);
    const figures = `${figure(made.tokens)} of ${counted(made.budget, "token")}`;
    announce(made.pieces.length ? `${counted(made.pieces.length, "piece")}, ${figures}.` : "No results.");
  } catch (error) {
    if (mine.stop.signal.aborted) return;
    if (!(error instanceof api.Problem)) throw error;
    otherwise(error, () => build(told, then, otherwise));
  } finally {
    clearTimeout(slow);
    if (underWay === mine) underWay = null;
  }
}

/** @param {api.Problem} problem @param {() => void} retry */
function showFailure(problem, retry) {
  if (problem.status === 401) document.body.dataset.session = "none";
  put(failed(problem, retry));
  ask.markFaults(problem.fields);
}

/** @param {api.Problem} problem */
function refused(problem) {
  showFailure(problem, () => location.reload());
}

function loggedOut() {
  current = null;
  state.forgetAll();
  refused(new api.Problem({ status: 401 }));
}

/** @param {string} query */
function askFor(query) {
  ask.fillQuestion(query);
  const told = ask.asked();
  if (told) build(told);
}

const openBrowse = () => browse.openBrowse(ask.fillFocus);
const openIndex = () => upkeep.openIndex(loggedOut);
const openHistory = () =>
  historyPanel.openHistory({
    show: (chosen) => {
      ask.fill(chosen.asked);
      show(chosen);
    },
    compare: (chosen) => current && compare(current, chosen),
    ask: askFor,
    shown: () => current,
  });

ask.begin(
  (told) => build(told, (made) => {
    show(made);
    stage.focus({ preventScroll: true });
  }),
  (told) => current && (view || underWay) && told.query === current.asked.query && JSON.stringify(
    told,
  ) !== JSON.stringify(current.asked) && build(told),
);
historyPanel.begin();
browse.begin();
upkeep.begin();
keys.begin({
  "/": ask.toQuestion,
  j: () => view?.step(1),
  k: () => view?.step(-1),
  c: () => view?.copy(),
  x: () => current && view && compare(current, null),
  b: openBrowse,
  h: openHistory,
  "?": keys.openKeys,
});
turnedBy(byId("theme"));
byId("open-index").addEventListener("click", openIndex);
byId("open-browse").addEventListener("click", openBrowse);
byId("open-history").addEventListener("click", openHistory);
byId("open-keys").addEventListener("click", keys.openKeys);
put(welcome(askFor, openIndex));
upkeep.poll(refused);
followAddress();
addEventListener("popstate", () => followAddress() || put(welcome(askFor, openIndex)));
byId("query").focus({ preventScroll: true });
