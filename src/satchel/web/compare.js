/** Two builds side by side: with another budget, format or user, or one from the history. */

import { bar } from "./bar.js";
import { difference } from "./difference.js";
import { button, counted, el, figure, foreign } from "./dom.js";
import { toldHow } from "./model.js";
import { openSource } from "./source.js";
import * as state from "./state.js";
import { textPane } from "./text.js";
import { visibleLine } from "./visible.js";

/** @typedef {import("./model.js").Build} Build @typedef {import("./difference.js").Row} Row */

const SIGNS = { "only-a": "−", "only-b": "+", changed: "±", same: "=" };
const FORMATS = ["markdown", "plain", "xml", "json"];

/**
 * @param {Build} first
 * @param {Build | null} second
 * @param {{ask: (told: Record<string, any>) => void, choose: (build: Build) => void, back: () => void,
 *   asked?: Record<string, any>, problem?: Node}} told `asked` and `problem` are those of a second build that failed
 */
export function comparison(first, second, { ask, choose, back, asked, problem }) {
  return el(
    "article",
    { class: "comparison" },
    el(
      "div",
      { class: "result-head" },
      el(
        "div",
        { class: "result-title" },
        el("h2", { text: "Two builds compared" }),
        el("p", { class: "faint" }, foreign(first.asked.query)),
      ),
      el("div", { class: "result-tools" }, button("Back to the build", back)),
    ),
    otherForm(first, second, asked, ask, choose),
    second ? found(first, second) : problem ?? el(
      "p",
      { class: "faint", text: "Choose another budget, format or user for B. Everything else stays as it was for A." },
    ),
  );
}

/**
 * @param {Build} first
 * @param {Build | null} second
 * @param {Record<string, any> | undefined} asked
 * @param {(told: Record<string, any>) => void} ask
 * @param {(build: Build) => void} choose
 */
function otherForm(first, second, asked, ask, choose) {
  const before = second?.asked ?? asked ?? { ...first.asked, token_budget: Math.max(1, Math.round(first.budget / 2)) };
  const budget = field(
    "Budget of B",
    el(
      "input",
      { type: "number", min: 1, max: 2000000, value: before.token_budget ?? first.budget, id: "other-budget" },
    ),
  );
  const format = field(
    "Format of B",
    el(
      "select",
      { id: "other-format" },
      FORMATS.map((name) => el("option", { value: name, selected: name === before.format, text: name })),
    ),
  );
  const user = field(
    "User of B",
    el(
      "input",
      {
        type: "text",
        maxlength: 256,
        value: before.user ?? "",
        id: "other-user",
        autocapitalize: "none",
        spellcheck: "false",
      },
    ),
  );
  const earlier = state.history().filter((build) => build !== first && build !== second);
  const choice = field(
    "or an earlier build",
    el(
      "select",
      { id: "other-build" },
      el("option", { value: "", text: "choose …" }),
      earlier.map(
        (build, i) => el(
          "option",
          { value: i, text: visibleLine(`${build.asked.query.slice(0, 60)} (${toldHow(build)})`) },
        ),
      ),
    ),
  );
  choice.addEventListener("change", () => {
    const chosen = earlier[Number(choice.querySelector("select").value)];
    if (chosen) choose(chosen);
  });
  const form = el(
    "form",
    { class: "ask other", "aria-label": "The other build", novalidate: true, autocomplete: "off" },
  );
  form.append(
    el(
      "div",
      { class: "fields" },
      budget,
      format,
      state.isOwner() ? user : null,
      el("button", { type: "submit", class: "main", text: "Build B" }),
      earlier.length ? choice : null,
    ),
  );
  form.addEventListener("submit", (event) => {
    event.preventDefault();
    const told = {
      ...first.asked,
      token_budget: Number(budget.querySelector("input").value),
      format: format.querySelector("select").value,
    };
    delete told.user;
    const who = user.querySelector("input").value.trim();
    ask(who ? { ...told, user: who } : told);
  });
  return form;
}

/** @param {string} label @param {HTMLElement} input @returns {any} */
function field(label, input) {
  return el("div", { class: "field" }, el("label", { for: input.id, text: label }), input);
}

/** @param {Build} first @param {Build} second */
function found(first, second) {
  const rows = difference(first, second);
  const kinds = new Map();
  for (const row of rows) {
    if (row.a) kinds.set(row.a, row.kind);
    if (row.b) kinds.set(row.b, row.kind);
  }
  const side = (/** @type {string} */ name, /** @type {Build} */ build) =>
    el(
      "section",
      { class: `side side-${name.toLowerCase()}`, "aria-label": `Build ${name}` },
      el("h3", {}, el("span", { class: "side-name", text: name }), foreign(toldHow(build))),
      bar(build, { label: `Budget of ${name} by part` }),
    );
  const text = (/** @type {string} */ name, /** @type {Build} */ build) =>
    el(
      "div",
      { class: "side" },
      el("h4", { text: `Text of ${name}` }),
      textPane(build, { classOf: (piece) => `is-${kinds.get(piece)}`, label: `The text of ${name}` }).pane,
    );
  return el(
    "div",
    {},
    el("div", { class: "sides" }, side("A", first), side("B", second)),
    el("p", { class: "tally", role: "status", text: tally(rows) }),
    table(rows, first, second),
    el(
      "details",
      { class: "texts" },
      el("summary", { text: "Both texts" }),
      el("div", { class: "sides" }, text("A", first), text("B", second)),
    ),
  );
}

/** @param {Row[]} rows */
function tally(rows) {
  const count = (/** @type {string} */ kind) => rows.filter((row) => row.kind === kind).length;
  const told = [
    [count("same"), "the same"],
    [count("changed"), "moved or cut"],
    [count("only-a"), "only in A"],
    [count("only-b"), "only in B"],
  ];
  const counts = told.map(([number, words]) => `${figure(Number(number))} ${words}`);
  return `${counted(rows.length, "piece")}: ${counts.join(", ")}.`;
}

/** @param {Row[]} rows @param {Build} first @param {Build} second */
function table(rows, first, second) {
  const all = [first, second].flatMap((build) => build.pieces);
  const side = (/** @type {string} */ name, /** @type {any} */ piece) => el(
    "td",
    { "data-side": name },
    piece ? [el("b", { text: piece.number ? `[${piece.number}]` : "–" }), ` ${figure(piece.tokens)}`] : el(
      "span",
      { class: "faint", text: "–" },
    ),
  );
  const body = rows.map((row) => {
    const piece = /** @type {any} */ (row.a ?? row.b);
    const user = (row.a ? first : second).asked.user;
    const name = [foreign(piece.title || piece.place)];
    return el(
      "tr",
      { class: `is-${row.kind}` },
      el("td", { class: "sign", text: SIGNS[row.kind] }),
      el(
        "th",
        { scope: "row" },
        button(name, () => openSource(piece, all.filter((one) => one === piece), user), { class: "open" }),
        piece.title ? foreign(piece.place, { class: "place" }) : null,
      ),
      el("td", { class: "told", text: row.told }),
      side("A", row.a),
      side("B", row.b),
    );
  });
  const heads = ["", "Piece", "Change", "A: number, tokens", "B: number, tokens"];
  return el(
    "table",
    { class: "difference" },
    el("caption", { class: "unseen", text: "Pieces of A and of B" }),
    el(
      "thead",
      {},
      el(
        "tr",
        {},
        heads.map((name) => el("th", { scope: "col" }, name || el("span", { class: "unseen", text: "Sign" }))),
      ),
    ),
    el("tbody", {}, body),
  );
}
