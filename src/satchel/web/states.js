/**
 * What is shown when there is no build to show: at first, while waiting, when nothing was found, when something failed.
 */

import { Problem, logIn } from "./api.js";
import { contents } from "./browse.js";
import { button, counted, el, figure, foreign } from "./dom.js";
import * as state from "./state.js";
import { ADVICE } from "./words.js";

/** Until the workspace has suggested its own. */
const EXAMPLES = ["How do I get started?", "What is left to do?"];

/** Words with `code` in them. @param {string} words */
function coded(words) {
  return words.split("`").map((part, i) => (i % 2 ? el("code", { text: part }) : part));
}

/** @param {(query: string) => void} ask @param {() => void} openIndex */
export function welcome(ask, openIndex) {
  const examples = el("ul", { class: "examples" });
  const suggest = () => {
    const questions = contents()?.questions ?? [];
    examples.replaceChildren(
      ...(questions.length ? questions : EXAMPLES).map((query) =>
        el("li", {}, button(foreign(query), () => ask(query), { class: "example" })),
      ),
    );
  };
  suggest();
  state.watch(suggest, examples);
  return el(
    "section",
    { class: "state welcome" },
    el("h2", { text: "See what a model would read" }),
    el("p", {
      class: "lead",
      text:
        "Ask a question. Satchel finds the pieces of this folder that answer it, packs them into a budget of tokens, " +
        "and shows which pieces were included or left out, and why.",
    }),
    examples,
    indexLine(openIndex),
  );
}

/** @param {() => void} openIndex */
function indexLine(openIndex) {
  const line = el("p", { class: "faint index-line" });
  const fill = () => {
    const known = state.status();
    if (!known) line.textContent = "Checking the index …";
    else if (
      known.indexing
    ) line.textContent = `The folder is being indexed: ${figure(known.done)} of ${counted(known.of, "file")}.`;
    else if (!known.generation) {
      line.replaceChildren(
        "The folder is not indexed yet; the first question starts indexing. ",
        button("Index it now", openIndex, { class: "link" }),
      );
    } else if (state.isOwner()) {
      line.textContent = `Indexed: ${state.size()}.`;
    } else line.textContent = "The folder is indexed.";
  };
  fill();
  state.watch(fill, line);
  return line;
}

/** @param {() => void} cancel */
export function loading(cancel) {
  const rows = (/** @type {number} */ count) => Array.from(
    { length: count },
    () => el("div", { class: "skeleton skeleton-line" }),
  );
  return el(
    "section",
    { class: "state-loading", "aria-busy": "true" },
    el(
      "div",
      { class: "loading-head" },
      el("p", { text: "Building the context …" }),
      button("Stop", cancel, { class: "quiet" }),
    ),
    el("div", { class: "skeleton skeleton-bar" }),
    el(
      "div",
      { class: "columns", "aria-hidden": "true" },
      el("div", {}, rows(6)),
      el("div", { class: "skeleton skeleton-text" }),
    ),
  );
}

/** @param {import("./api.js").Problem} problem @param {() => void} again */
export function failed(problem, again) {
  if (problem.status === 401) return loggedOut();
  if (problem.status === 422 && problem.fields[0] === "user" && state.hasSeveralUsers()) return whoAsks(problem);
  const advice = ADVICE[problem.code];
  return el(
    "section",
    { class: "state problem", role: "alert" },
    el("h2", {}, foreign(problem.title)),
    problem.detail ? el("p", { class: "lead" }, foreign(problem.detail)) : null,
    advice ? el("p", {}, coded(advice)) : null,
    problem.status === 422 ? null : el("p", {}, button("Try again", again, { class: "main" })),
    el(
      "p",
      { class: "faint" },
      "code ",
      el("code", {}, foreign(problem.code)),
      problem.status ? `, status ${problem.status}` : "",
      problem.requestId ? [", request ", el("code", {}, foreign(problem.requestId))] : "",
    ),
  );
}

/** @param {import("./api.js").Problem} problem */
function whoAsks(problem) {
  return el(
    "section",
    { class: "state problem", role: "alert" },
    el("h2", { text: "Who asks?" }),
    el(
      "p",
      {
        class: "lead",
        text:
          "This workspace has several users with different access. " +
          "Enter the user of the context in the field User.",
      },
    ),
    el("p", { class: "faint" }, foreign(problem.detail)),
  );
}

function loggedOut() {
  return el(
    "section",
    { class: "state logged-out", role: "alert" },
    el("h2", { text: "You are not logged in" }),
    el("p", { class: "lead" }, coded("This page needs a session. The login link works once.")),
    el(
      "ol",
      { class: "steps" },
      ...[
        "Go to the terminal where `satchel serve` runs.",
        "Open the link that it printed. If the link was used before, restart `satchel serve`: it prints a new link.",
        "A session lasts twelve hours, or until the server stops.",
      ].map((words) => el("li", {}, coded(words))),
    ),
    el("p", {}, button("I have done that", () => location.reload())),
    tokenForm(),
  );
}

/** For users who have a token of their own and no terminal. */
function tokenForm() {
  const token = /** @type {HTMLInputElement} */ (
    el("input", { id: "token", type: "password", autocomplete: "off", spellcheck: "false", required: true })
  );
  const said = el("p", { class: "faint", role: "status" });
  const form = el(
    "form",
    { class: "token" },
    el("label", { for: "token", text: "Or log in with your token" }),
    el("div", { class: "token-row" }, token, el("button", { type: "submit", text: "Log in" })),
    said,
  );
  form.addEventListener("submit", async (event) => {
    event.preventDefault();
    said.textContent = "";
    try {
      await logIn(token.value.trim());
      location.reload();
    } catch (error) {
      if (!(error instanceof Problem)) throw error;
      said.textContent = error.status === 401 ? "The server does not know this token." : error.title;
      token.select();
    }
  });
  return form;
}

/** @param {import("./model.js").Build} build */
export function nothingFound(build) {
  const dropped = build.left.length;
  const hints = [
    dropped
      ? `Considered: ${counted(dropped, "piece")}; none was included, for the reasons below. A larger budget may help.`
      : "Nothing in the index is related to the question.",
    build.asked.include || build.asked.exclude ? "The globs may exclude the answer." : "",
    build.asked.user ? `${build.asked.user} may have no access to the answer.` : "",
    dropped ? "" : "Use words from the files: names, terms, numbers.",
  ];
  return el(
    "section",
    { class: "state nothing" },
    el("h2", { text: dropped ? "Nothing fits" : "No results" }),
    el("ul", { class: "steps" }, hints.filter(Boolean).map((words) => el("li", {}, foreign(words)))),
  );
}
