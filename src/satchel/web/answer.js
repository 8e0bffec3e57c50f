/** The language model's answer to the question of a build, as it comes, with what the sources say about each sentence. */

import * as api from "./api.js";
import { announce, button, counted, el, foreign } from "./dom.js";
import { ADVICE, VERDICTS, inWords } from "./words.js";

/** @typedef {import("./model.js").Build} Build @typedef {import("./model.js").Piece} Piece */

/**
 * A button that asks, and the answer below it.
 * @param {Build} build
 * @param {(piece: Piece) => void} chosen What to do with a cited piece.
 */
export function answerOf(build, chosen) {
  const text = el("div", { class: "answer-text", "aria-live": "polite" });
  const start = button("Answer this", () => ask());
  const made = el("section", { class: "answer", "aria-label": "Answer" }, start, text);
  /** @type {AbortController | null} */
  let underWay = null;
  const stop = button("Stop", () => underWay?.abort(), { class: "quiet" });

  async function ask() {
    underWay = new AbortController();
    const live = el("p", { class: "answer-live", dir: "auto" });
    text.replaceChildren(live, stop);
    start.hidden = true;
    try {
      for await (const { kind, data } of api.answers(build.asked, underWay.signal)) {
        if (kind === "piece") live.append(data.text);
        else if (kind === "problem") throw new api.Problem(data);
        else if (kind === "done") {
          text.replaceChildren(...checked(data, build, chosen));
          announce("The answer is complete.");
        }
      }
    } catch (error) {
      if (error instanceof DOMException && error.name === "AbortError") text.replaceChildren(live);
      else if (error instanceof api.Problem) text.replaceChildren(...failure(error, live));
      else throw error;
    } finally {
      start.textContent = "Answer again";
      start.hidden = false;
      underWay = null;
    }
  }
  return made;
}

/** @param {api.Problem} problem @param {HTMLElement} live */
function failure(problem, live) {
  const advice = ADVICE[problem.code];
  return [
    live.textContent ? live : el("p", {}),
    el(
      "p",
      { class: "answer-problem", role: "alert" },
      el("strong", {}, foreign(problem.title)),
      " ",
      advice ?? foreign(problem.detail),
    ),
  ];
}

/**
 * The answer, sentence by sentence where it was checked.
 * @param {Record<string, any>} told
 * @param {Build} build
 * @param {(piece: Piece) => void} chosen
 */
function checked({ answer, report }, build, chosen) {
  const paragraph = el("p", { class: "answer-live", dir: "auto" });
  const claims = [...(report?.claims ?? [])].sort((a, b) => a.position - b.position);
  const letters = Array.from(answer);
  let at = 0;
  for (const claim of claims) {
    const end = claim.position + Array.from(claim.text).length;
    if (claim.position < at) continue;
    paragraph.append(...cited(letters.slice(at, claim.position).join(""), build, chosen));
    const sentence = cited(letters.slice(claim.position, end).join(""), build, chosen);
    paragraph.append(el("span", { class: `claim claim-${claim.verdict}` }, sentence, mark(claim)));
    at = end;
  }
  paragraph.append(...cited(letters.slice(at).join(""), build, chosen));
  const doubted = claims.filter((claim) => claim.verdict === "contradicted" || claim.verdict === "not-in-sources");
  const wrong = report?.findings ?? [];
  const supported = claims.filter((claim) => claim.verdict === "supported").length;
  const figures = report ? `${supported} of ${counted(claims.length, "sentence")} supported by its sources.` : "";
  return [
    paragraph,
    figures ? el("p", { class: "faint", text: figures }) : null,
    doubted.length || wrong.length ? el(
      "ul",
      { class: "answer-doubts", "aria-label": "Doubts" },
      wrong.map((/** @type {any} */ one) => el("li", {}, `${inWords(VERDICTS, one.problem)}: `, foreign(one.text))),
      doubted.map(
        (claim) => el(
          "li",
          {},
          `${inWords(VERDICTS, claim.verdict)}: `,
          foreign(claim.reason || claim.text),
          claim.evidence ? [" – ", foreign(claim.evidence)] : "",
        ),
      ),
    ) : null,
  ].filter((one) => one !== null);
}

/** What the sources say about a sentence, as a mark that can be read. @param {Record<string, any>} claim */
function mark(claim) {
  const words = inWords(VERDICTS, claim.verdict) + (claim.reason ? `: ${claim.reason}` : "");
  const sign = { "supported": "✓", "contradicted": "✗", "not-in-sources": "?" }[claim.verdict];
  if (!sign) return el("span", { class: "unseen", text: ` (${words})` });
  return el("span", { class: "verdict", title: words, role: "img", "aria-label": words, text: sign });
}

/**
 * A text whose numbers in brackets lead to their pieces.
 * @param {string} text
 * @param {Build} build
 * @param {(piece: Piece) => void} chosen
 */
function cited(text, build, chosen) {
  return text.split(/(\[\d{1,4}\])/).map((part, i) => {
    const piece = i % 2 ? build.pieces.find((one) => one.number === Number(part.slice(1, -1))) : null;
    if (!piece) return document.createTextNode(part);
    return button(part, () => chosen(piece), { class: "link cite", "aria-label": `Show piece ${piece.number}` });
  });
}
