/** What was built in this session, and asked before the page was loaded again. */

import { openDialog } from "./dialogs.js";
import { button, counted, el, figure, foreign, setText } from "./dom.js";
import { toldHow } from "./model.js";
import * as state from "./state.js";

/** @typedef {import("./model.js").Build} Build */

/**
 * @param {{show: (build: Build) => void, compare: (build: Build) => void, ask: (query: string) => void, shown: () =>
 *   Build | null}} told
 */
export function openHistory({ show, compare, ask, shown }) {
  const { body, close } = openDialog("History", { kind: "side-panel" });
  const then = (/** @type {() => void} */ todo) => () => {
    close();
    todo();
  };
  const builds = state.history();
  const asked = new Set(builds.map((build) => build.asked.query));
  const before = state.questions().filter((query) => !asked.has(query));
  const current = shown();
  if (!builds.length && !before.length) body.append(
    el(
      "p",
      {
        class: "faint",
        text: "No questions yet. Builds of this session are listed here until the page is closed.",
      },
    ),
  );
  if (builds.length) {
    body.append(
      el(
        "ol",
        { class: "history" },
        builds.map((build) =>
          el(
            "li",
            { "aria-current": build === current ? "true" : null },
            button(
              [
                foreign(build.asked.query, { class: "history-question" }),
                el(
                  "span",
                  { class: "faint" },
                  foreign(toldHow(build)),
                  ` · ${figure(build.tokens)} used · ${counted(build.pieces.length, "piece")} · ${clock(build.at)}`,
                ),
              ],
              then(() => show(build)),
              { class: "history-show" },
            ),
            current && build !== current ? button("Compare", then(() => compare(build)), { class: "small" }) : null,
          ),
        ),
      ),
    );
  }
  if (before.length) {
    body.append(
      el("h3", { text: "Asked before" }),
      el("p", { class: "faint", text: "Answers are lost when the page is reloaded." }),
    );
    body.append(
      el(
        "ul",
        { class: "history" },
        before.map(
          (query) => el(
            "li",
            {},
            button([foreign(query, { class: "history-question" })], then(() => ask(query)), { class: "history-show" }),
          ),
        ),
      ),
    );
  }
  if (builds.length || before.length) body.append(
    el("p", {}, button("Forget all", then(state.forgetAll), { class: "quiet" })),
  );
}

/** @param {Date} at */
function clock(at) {
  return at.toLocaleTimeString([], { hour: "2-digit", minute: "2-digit" });
}

export function begin() {
  state.watch(() => setText("history-count", state.history().length));
}
