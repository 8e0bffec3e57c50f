/** Where a piece comes from: the exact lines with some around them, or the page of a document with its picture. */

import { expand, pagePicture } from "./api.js";
import { button, el, foreign } from "./dom.js";
import { openDialog } from "./dialogs.js";
import { copyButton } from "./text.js";
import { visible, visibleLine } from "./visible.js";
import { numbered } from "./whole.js";

/** @typedef {{id: string, title: string, place: string}} Source */

const AROUND = 8;
const MORE = 40;

/**
 * Open the source of a piece; `others` are those that one can go on to.
 * @param {Source} first
 * @param {Source[]} others
 * @param {string | undefined} user who asks
 */
export function openSource(first, others, user) {
  let source = first;
  let around = AROUND;
  let going = new AbortController();
  /** @type {string[]} */
  let pictures = [];
  const forget = () => {
    going.abort();
    pictures.forEach((url) => URL.revokeObjectURL(url));
    pictures = [];
  };
  const step = (/** @type {number} */ by) => {
    const at = others.indexOf(source) + by;
    if (others.includes(source) && others[at]) show(others[at]);
  };
  const previous = button("Previous", () => step(-1), { class: "quiet" });
  const next = button("Next", () => step(1), { class: "quiet" });
  const opened = openDialog("", { kind: "source wide", closed: forget, tools: [previous, next] });
  opened.dialog.addEventListener("keydown", (event) => {
    if (event.key === "j" || event.key === "k") step(event.key === "j" ? 1 : -1);
  });

  async function show(/** @type {Source} */ wanted) {
    if (wanted !== source) around = AROUND;
    source = wanted;
    forget();
    going = new AbortController();
    const { signal } = going;
    const at = others.indexOf(source);
    previous.toggleAttribute("disabled", at <= 0);
    next.toggleAttribute("disabled", at < 0 || at === others.length - 1);
    opened.heading.replaceChildren(foreign(source.title || source.place));
    opened.body.setAttribute("aria-busy", "true");
    if (!opened.body.childElementCount) opened.body.replaceChildren(
      el("p", { class: "faint", text: "Fetching the source …" }),
    );
    try {
      const [exact, wide] = await Promise.all(
        [expand(source.id, 0, user, signal), expand(source.id, around, user, signal)],
      );
      fill(exact, wide);
      if (exact.page && exact.path) await addPicture(exact, signal);
    } catch (error) {
      if (error instanceof DOMException) return;
      opened.body.replaceChildren(
        el("p", { class: "fault" }, foreign(error.title || error.message)),
        el("p", {}, foreign(error.detail || "")),
      );
    } finally {
      if (!signal.aborted) opened.body.removeAttribute("aria-busy");
    }
  }

  function fill(/** @type {any} */ exact, /** @type {any} */ wide) {
    const isPage = Boolean(exact.page);
    const found = isPage ? exact : wide;
    const lines = visible(found.text).split("\n").map((line, i) => {
      const number = found.start_line + i;
      return {
        line,
        state: isPage || !exact.path || (number >= exact.start_line && number <= exact.end_line) ? "" : "around",
      };
    });
    const where = exact.path ? (
      isPage ? `${exact.path}, page ${exact.page}` : `${exact.path}, lines ${exact.start_line} to ${exact.end_line}`
    ) : source.id;
    const canWiden = !isPage && exact.path && (wide.start_line < exact.start_line || wide.end_line > exact.end_line);
    opened.body.replaceChildren(
      el(
        "div",
        { class: "source-head" },
        foreign(where, { class: "place" }),
        canWiden && button("More lines", () => widen(), { class: "small" }),
        copyButton(exact.text, isPage || !exact.path ? "Copy the text" : "Copy these lines"),
      ),
      exact.stale ? el(
        "p",
        { class: "note", text: "The file was changed or deleted since it was indexed; this is the indexed text." },
      ) : "",
      el("div", { class: isPage ? "page-and-text" : "" }, numbered(lines, exact.path ? found.start_line : 1)),
    );
    const begin = opened.body.querySelector(".line:not(.around)");
    const box = opened.body.querySelector(".lines");
    if (begin instanceof HTMLElement && box && !isPage) box.scrollTop = begin.offsetTop - box.clientHeight / 4;
  }

  function widen() {
    around += MORE;
    show(source);
  }

  async function addPicture(/** @type {any} */ exact, /** @type {AbortSignal} */ signal) {
    const place = opened.body.querySelector(".page-and-text");
    const waiting = el(
      "div",
      { class: "page-picture skeleton", role: "status" },
      el("span", { class: "unseen", text: "Rendering the page" }),
    );
    place?.prepend(waiting);
    const picture = await pagePicture(exact.path, exact.page, user, signal).catch((error) => {
      if (error instanceof DOMException) throw error;
      return null;
    });
    if (signal.aborted) return;
    if (!picture) {
      place?.classList.add("text-only");
      waiting.replaceWith(el("p", { class: "note", text: "There is no picture of this page; this is its text." }));
      return;
    }
    const url = URL.createObjectURL(picture);
    pictures.push(url);
    const image = /** @type {HTMLImageElement} */ (
      el("img", { alt: `Page ${exact.page} of ${visibleLine(exact.path)}` })
    );
    image.src = url;
    waiting.replaceWith(el("div", { class: "page-picture" }, image));
  }

  show(first);
}
