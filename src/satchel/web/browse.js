/** What there is: documents, notes, tasks and files to open or to focus on, questions they suggest, and uploading. */

import * as api from "./api.js";
import { openDialog } from "./dialogs.js";
import { announce, button, byId, counted, el, figure, foreign } from "./dom.js";
import { openSource } from "./source.js";
import * as state from "./state.js";
import * as upkeep from "./upkeep.js";

/** @typedef {{id: string, title: string, detail: string}} Named */
/** @typedef {{documents: Named[], notes: Named[], tasks: Named[], files: string[], questions: string[]}} Contents */

const COMPLETED = 300;
const SHOWN = 200;
const KINDS = /** @type {const} */ ([
  ["documents", "Documents"],
  ["notes", "Notes"],
  ["tasks", "Open tasks with a date"],
  ["files", "Files"],
]);

/** @type {Contents | null} */
let known = null;
let generation = -1;

/** What is known of the contents; null before the first answer. */
export function contents() {
  return known;
}

/** Ask again after each commit; tell everybody who watches. */
export function begin() {
  state.watch(() => {
    const status = state.status();
    if (!status?.generation || status.indexing || status.generation === generation) return;
    generation = status.generation;
    learn();
  });
  receiveFiles();
}

async function learn() {
  // In a workspace with several users the server asks for the user; then there is nothing to suggest before.
  try {
    known = await api.contents(user());
  } catch (error) {
    if (!(error instanceof api.Problem)) throw error;
    known = null;
  }
  const focusable = known ? [...known.notes.map((note) => note.title), ...known.files] : [];
  byId("focus-options").replaceChildren(
    ...[...new Set(focusable)].slice(0, COMPLETED).map((value) => el("option", { value })),
  );
  state.learn(state.status());
}

function user() {
  return byId("user").value.trim() || undefined;
}

/** @param {(id: string) => void} focus What to do with the id of something to work on. */
export async function openBrowse(focus) {
  const filter = /** @type {HTMLInputElement} */ (
    el("input", { type: "search", placeholder: "Filter by name", "aria-label": "Filter by name", class: "browse-filter" })
  );
  const listed = el("div", { class: "browse-list" }, el("p", { class: "faint", text: "Looking …" }));
  const { body, close } = openDialog("Browse", { kind: "side-panel" });
  body.append(filter, listed);
  filter.focus();
  await learn();
  const then = (/** @type {string} */ id) => {
    close();
    focus(id);
  };
  const fill = () => listed.replaceChildren(...sections(filter.value.trim().toLowerCase(), then));
  filter.addEventListener("input", fill);
  fill();
}

/** @param {string} wanted @param {(id: string) => void} focus */
function sections(wanted, focus) {
  const made = KINDS.map(([kind, title]) => {
    const all = (known?.[kind] ?? []).map((each) =>
      typeof each === "string" ? { id: each, title: each, detail: "" } : each,
    );
    const fitting = all.filter((each) => `${each.title} ${each.detail}`.toLowerCase().includes(wanted));
    if (!fitting.length) return null;
    const sources = fitting.slice(0, SHOWN).map(({ id, title: name }) => ({ id, title: name, place: id }));
    return el(
      "section",
      {},
      el("h3", {}, `${title} `, el("span", { class: "count", text: figure(fitting.length) })),
      el("ul", {}, sources.map((source, i) => row(source, fitting[i].detail, sources, focus))),
      fitting.length > SHOWN
        ? el("p", { class: "faint", text: `${counted(fitting.length - SHOWN, "more entry", "more entries")}; filter by name.` })
        : null,
    );
  }).filter((section) => section !== null);
  if (made.length) return made;
  return [el("p", { class: "faint", text: wanted ? "Nothing has such a name." : "There is nothing here that you may read." })];
}

/**
 * @param {{id: string, title: string, place: string}} source
 * @param {string} detail
 * @param {{id: string, title: string, place: string}[]} sources
 * @param {(id: string) => void} focus
 */
function row(source, detail, sources, focus) {
  return el(
    "li",
    {},
    button(
      [foreign(source.title), detail && detail !== source.title ? el("span", { class: "faint" }, " ", foreign(detail)) : null],
      () => openSource(source, sources, user()),
      { class: "browse-open" },
    ),
    button("Focus", () => focus(source.id), { class: "small", "aria-label": `Focus on ${source.title}` }),
  );
}

/** Files that an owner drops on the page are uploaded and indexed. */
function receiveFiles() {
  const isForUs = (/** @type {DragEvent} */ event) => state.isOwner() && event.dataTransfer?.types.includes("Files");
  addEventListener("dragover", (event) => {
    if (!isForUs(event)) return;
    event.preventDefault();
    document.body.dataset.drop = "here";
  });
  addEventListener("dragleave", (event) => {
    if (event.relatedTarget === null) delete document.body.dataset.drop;
  });
  addEventListener("drop", async (event) => {
    delete document.body.dataset.drop;
    if (!isForUs(event)) return;
    event.preventDefault();
    for (const file of event.dataTransfer?.files ?? []) await upload(file);
    upkeep.poll(() => {});
  });
}

/** @param {File} file */
async function upload(file) {
  upkeep.banner(`Uploading ${file.name} …`);
  try {
    await api.upload(file);
    upkeep.banner("");
    announce(`${file.name} is uploaded and indexed.`);
  } catch (error) {
    if (!(error instanceof api.Problem)) throw error;
    upkeep.banner(`${file.name} was not uploaded: ${error.title}. ${error.detail}`);
  }
}
