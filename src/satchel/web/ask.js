/** The form: a question, its budget, and everything else that is asked for. */

import { byId, figure } from "./dom.js";
import * as state from "./state.js";

const STEPS = [
  200, 300, 500, 750, 1000, 1500, 2000, 3000, 4000, 6000, 8000, 12000, 16000, 24000, 32000, 48000, 64000, 96000, 128000,
];
const TEXTS = ["user", "focus", "type", "format"];
const COUNTS = ["token_budget", "top_k", "min_relevance"];
const LISTS = ["include", "exclude"];
const UNDER_MORE = new Set(["type", "top_k", "min_relevance", "include", "exclude"]);

/** @param {string} name @returns {HTMLInputElement} */
function input(name) {
  return name === "token_budget" ? byId("budget") : byId(name);
}

/** What the form asks for; null without a question. */
export function asked() {
  const query = byId("query").value;
  if (!query.trim()) return null;
  /** @type {Record<string, any>} */
  const told = { query };
  for (const name of TEXTS) if (input(name).value.trim()) told[name] = input(name).value.trim();
  for (const name of COUNTS) if (input(name).value !== "") told[name] = Number(input(name).value);
  for (const name of LISTS) {
    const globs = input(name).value.split(",").map((one) => one.trim()).filter(Boolean);
    if (globs.length) told[name] = globs;
  }
  return told;
}

/** Put what was asked back into the form. @param {Record<string, any>} told */
export function fill(told) {
  byId("query").value = told.query;
  for (const name of [...TEXTS, ...COUNTS]) if (name !== "format") input(name).value = told[name] ?? "";
  byId("format").value = told.format ?? "markdown";
  for (const name of LISTS) input(name).value = (told[name] ?? []).join(", ");
  followNumber();
  clearFaults();
  tellMore();
}

let isSettled = false;

/** The workspace's own budget and format, unless somebody has been here before. @param {Record<string, any>|null} known */
function takeDefaults(known) {
  if (isSettled || !known) return;
  isSettled = true;
  if (byId("budget").value !== byId("budget").defaultValue) return;
  byId("budget").value = String(known.token_budget);
  byId("format").value = known.format;
  followNumber();
}

/** @param {string} query */
export function fillQuestion(query) {
  byId("query").value = query;
}

/** Work on something; the question is next. @param {string} id */
export function fillFocus(id) {
  byId("focus").value = id;
  toQuestion();
}

export function toQuestion() {
  const query = byId("query");
  query.focus();
  query.select();
}

/** Mark the fields that are at fault and go to the first. Whether there is one. @param {string[]} names */
export function markFaults(names) {
  const known = names.filter((name) => [...TEXTS, ...COUNTS, ...LISTS, "query"].includes(name));
  for (const name of known) input(name).setAttribute("aria-invalid", "true");
  if (!known.length) return false;
  if (UNDER_MORE.has(known[0])) byId("more").open = true;
  input(known[0]).focus();
  return true;
}

/** Say how many of the fields that may be hidden are set. */
function tellMore() {
  const set = [...UNDER_MORE].filter((name) => input(name).value.trim()).length;
  byId("more-said").textContent = set ? `More (${set} set)` : "More";
}

function clearFaults() {
  for (const one of byId("ask").querySelectorAll("[aria-invalid]")) one.removeAttribute("aria-invalid");
}

function followNumber() {
  const slider = byId("budget-slider");
  const budget = Number(byId("budget").value) || 0;
  const nearest = STEPS.reduce(
    (best, step, i) => (Math.abs(step - budget) < Math.abs(STEPS[best] - budget) ? i : best),
    0,
  );
  slider.value = String(nearest);
  slider.setAttribute("aria-valuetext", `${figure(STEPS[nearest])} tokens`);
}

function followSlider() {
  const step = STEPS[Number(byId("budget-slider").value)];
  byId("budget").value = String(step);
  byId("budget-slider").setAttribute("aria-valuetext", `${figure(step)} tokens`);
}

/**
 * @param {(told: Record<string, any>) => void} ask What to do with a question.
 * @param {(told: Record<string, any>) => void} again What to do when the budget or format of one is changed.
 */
export function begin(ask, again) {
  const form = byId("ask");
  const submit = () => {
    const told = asked();
    if (!told) return markFaults(["query"]);
    clearFaults();
    return ask(told);
  };
  form.addEventListener("submit", (event) => {
    event.preventDefault();
    submit();
  });
  byId("query").addEventListener("keydown", (event) => {
    if (event.key !== "Enter" || event.shiftKey || event.isComposing) return;
    event.preventDefault();
    submit();
  });
  form.addEventListener("input", (event) => {
    event.target.removeAttribute("aria-invalid");
    tellMore();
  });
  state.watch(() => takeDefaults(state.status()));
  byId("budget").addEventListener("input", followNumber);
  byId("budget-slider").addEventListener("input", followSlider);
  for (const id of ["budget", "budget-slider", "format"]) {
    byId(id).addEventListener("change", () => {
      const told = asked();
      if (told) again(told);
    });
  }
  state.watch(showWhoMayAsk);
}

function showWhoMayAsk() {
  byId("user-field").hidden = !state.isOwner();
  byId("user").placeholder = state.hasSeveralUsers() ? "who asks" : "as the owner";
  byId("user").required = state.hasSeveralUsers();
}
