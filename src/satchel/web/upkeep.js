/** What the index holds, how far a run is, and a button that starts one. The server is asked seldom. */

import * as api from "./api.js";
import { openDialog } from "./dialogs.js";
import { announce, button, byId, counted, el, figure, foreign, setText } from "./dom.js";
import * as state from "./state.js";
import { visibleLine } from "./visible.js";

const IDLE_MS = 30_000;
const BUSY_MS = 1_500;
const GONE_MS = 5_000;

let timer = 0;
let running = false;

/** Ask for the status, and again later. @param {(problem: api.Problem) => void} refused */
export async function poll(refused) {
  clearTimeout(timer);
  let wait = IDLE_MS;
  try {
    const known = await api.status();
    state.learn(known);
    banner("");
    if (known.indexing) wait = BUSY_MS;
  } catch (error) {
    if (!(error instanceof api.Problem)) throw error;
    if (error.status === 401) return refused(error);
    if (error.code === "unreachable") banner(
      "The server does not answer. The results on this page remain; new questions need the server.",
    );
    wait = GONE_MS;
  }
  timer = setTimeout(() => (document.hidden ? onceVisible(refused) : poll(refused)), wait);
  return undefined;
}

/** @param {(problem: api.Problem) => void} refused */
function onceVisible(refused) {
  document.addEventListener("visibilitychange", () => poll(refused), { once: true });
}

/** @param {string} words */
export function banner(words) {
  const place = byId("banner");
  if (place.textContent !== words) place.textContent = words;
  place.hidden = !words;
}

export function begin() {
  state.watch(() => {
    const known = state.status();
    if (!known) return;
    setText("workspace", known.workspace.split(/[\\/]/).pop() || known.workspace);
    byId("workspace").title = visibleLine(known.workspace);
    byId("index-dot").className = `dot ${known.indexing ? "busy" : known.generation ? "good" : "empty"}`;
    setText("index-said", inShort(known));
  });
}

/** @param {Record<string, any>} known */
function inShort(known) {
  if (known.indexing) return known.of ? `Indexing ${figure(known.done)} of ${figure(known.of)}` : "Indexing";
  if (!known.generation) return "Not indexed";
  return state.isOwner() ? state.size() : "Indexed";
}

/** @param {() => void} loggedOut */
export function openIndex(loggedOut) {
  const { body, close } = openDialog("Index", { kind: "index" });
  const facts = el("dl", { class: "facts-list" });
  const fill = () => {
    const known = state.status();
    if (known) facts.replaceChildren(...rows(known));
  };
  fill();
  state.watch(fill, facts);
  const progress = /** @type {HTMLProgressElement} */ (
    el("progress", { max: 1, "aria-label": "Index run", hidden: true })
  );
  const said = el("p", { class: "index-said", role: "status" });
  const start = button("Refresh the index", () => run(start, progress, said), { class: "main" });
  const out = button("Log out", async () => {
    await api.logOut().catch(() => {});
    close();
    loggedOut();
  }, { class: "quiet" });
  body.append(
    facts,
    progress,
    said,
    el(
      "div",
      { class: "buttons" },
      state.isOwner() ? start : el("p", { class: "faint", text: "The owner of this server can refresh the index." }),
      out,
    ),
  );
  start.toggleAttribute("disabled", running);
  state.watch(() => start.toggleAttribute("disabled", running), start);
}

/** @param {HTMLElement} start @param {HTMLProgressElement} progress @param {HTMLElement} said */
async function run(start, progress, said) {
  if (running) return;
  running = true;
  start.setAttribute("disabled", "");
  progress.hidden = false;
  progress.removeAttribute("value");
  try {
    const report = await api.index((at) => {
      if (at.of) progress.value = at.done / at.of;
      const far = at.of ? `: ${figure(at.done)} of ${counted(at.of, "file")}` : "";
      said.textContent = `${at.doing || "checking"}${far}`;
      state.learn({ ...state.status(), indexing: true, state: said.textContent, done: at.done, of: at.of });
    });
    progress.value = 1;
    const found = counted(report.found, "file");
    const done = `${figure(report.read)} of ${found} read, ${figure(report.dropped)} dropped`;
    const isSame = !report.read && !report.dropped;
    const words = isSame ? `No changes in ${found}.` : `${done}, in ${report.seconds.toFixed(1)} s.`;
    said.replaceChildren(
      words,
      el("ul", { class: "notes" }, report.notes.map((note) => el("li", { class: "note" }, foreign(note)))),
    );
    announce(words);
  } catch (error) {
    progress.hidden = true;
    said.replaceChildren(
      el("span", { class: "fault" }, foreign(`${error.title || "It failed"}. ${error.detail || error.message}`)),
    );
  } finally {
    running = false;
    state.learn(await api.status().catch(state.status));
    start.removeAttribute("disabled");
  }
}

/** @param {Record<string, any>} known */
function rows(known) {
  const told = [
    ["Workspace", known.workspace],
    ["State", known.state],
    ["Files", known.files],
    ["Blocks", known.blocks],
    ["Pieces", known.pieces],
    ["Size on disk", known.bytes_on_disk === null ? null : bytes(known.bytes_on_disk)],
    ["Commit", known.generation],
    ["Embedder", known.embedder],
    ["Language model", known.language_model],
    [
      "Who may read",
      { owner: "only the owner", deny: "users with a grant", allow: "every named user" }[known.default_access],
    ],
    ["Satchel", known.version],
  ];
  return told
    .filter(([, value]) => value !== null && value !== undefined && value !== "")
    .map(
      ([name, value]) => el(
        "div",
        {},
        el("dt", { text: name }),
        el("dd", {}, foreign(typeof value === "number" ? figure(value) : value)),
      ),
    );
}

/** @param {number} count */
function bytes(count) {
  return count < 1e6 ? `${figure(Math.round(count / 1e3))} kB` : `${(count / 1e6).toFixed(1)} MB`;
}
