/** What the page shows of a context: its pieces, its groups and its figures. Nothing here touches the page. */

import { elisionsIn } from "./elisions.js";
import { inUnits } from "./offsets.js";

/**
 * @typedef {{id: string, fate: string, reason: string, relevance: number, score: number, tokens: number,
 *   number: number | null, into: string | null, collector: string, signals: Record<string, number>}} Entry
 * @typedef {{number: number, id: string, title: string, place: string, type: string, tokens: number,
 *   file: string, relevance: number, score: number | null, reasons: string[], signals: Record<string, number>,
 *   fate: string, reason: string, span: [number, number], shown: string, group: number,
 *   section: string, linesMissing: number, base: string, elisions: import("./elisions.js").Elision[],
 *   also: Entry[]}} Piece
 * @typedef {{name: string, tokens: number, count: number}} Group
 * @typedef {{asked: Record<string, any>, at: Date, text: string, tokens: number, budget: number,
 *   format: string, milliseconds: number, notes: string[], madeVisible: number, failed: Record<string, string>,
 *   sufficiency: {probability: number, reasons: string[]} | null,
 *   pieces: Piece[], left: Entry[], groups: Group[], frame: number}} Build
 */

const MOST_GROUPS = 8;

/**
 * What was answered to what was asked.
 * @param {Record<string, any>} answer
 * @param {Record<string, any>} asked
 * @returns {Build}
 */
export function buildFrom(answer, asked) {
  const { text, tokens, format, notes, ledger, statistics } = answer;
  const pieces = piecesOf(answer);
  const groups = answer.sections.length ? sectionGroups(answer.sections, pieces) : fileGroups(pieces);
  const written = groups.reduce((sum, group) => sum + group.tokens, 0);
  return {
    asked,
    at: new Date(),
    text,
    tokens,
    budget: answer.budget || tokens,
    format,
    milliseconds: statistics.build_ms,
    notes,
    sufficiency: answer.sufficiency ?? null,
    madeVisible: statistics.characters_made_visible,
    failed: statistics.collectors_failed,
    pieces,
    left: ledger.filter((/** @type {Entry} */ entry) => entry.fate === "merged" || entry.fate === "dropped"),
    groups,
    frame: Math.max(0, tokens - written),
  };
}

/** The sources with their entries of the ledger and their places in the text. @param {any} answer @returns {Piece[]} */
function piecesOf({ text, sources, spans, sections, ledger }) {
  const units = inUnits(text, spans);
  return sources.map((/** @type {any} */ source, /** @type {number} */ i) => {
    const group = sections.findIndex((/** @type {any} */ section) => section.name === source.section);
    const { lead, also } = entriesOf(ledger, source.number, source.id);
    return {
      ...fateOf(lead, source),
      number: source.number,
      id: source.id,
      title: source.name === source.path ? "" : source.name,
      place: placeOf(source),
      type: source.type,
      reasons: lead ? [lead.collector] : [],
      span: units[i],
      shown: source.text,
      group,
      section: sections[group]?.title ?? "",
      file: source.path || "",
      linesMissing: linesMissing(source) + source.elided,
      base: baseOf(source),
      elisions: elisionsIn(source.text, source.elided),
      also,
    };
  });
}

/** @param {Entry | undefined} lead @param {{relevance: number}} otherwise */
function fateOf(lead, otherwise) {
  return {
    fate: lead?.fate ?? "kept",
    reason: lead?.reason ?? "fits",
    tokens: lead?.tokens ?? 0,
    relevance: lead?.relevance ?? otherwise.relevance,
    score: lead?.score ?? null,
    signals: lead?.signals ?? {},
  };
}

/**
 * The entry that a piece goes by, and those that are written as part of it or gave way to it.
 * @param {Entry[]} ledger @param {number} number @param {string} id
 */
function entriesOf(ledger, number, id) {
  const numbered = ledger.filter((entry) => entry.number === number);
  const lead = numbered.find((entry) => entry.id === id) ?? numbered.find((entry) => entry.tokens) ?? numbered[0];
  const ids = new Set([id, ...numbered.map((entry) => entry.id)]);
  const gaveWay = ledger.filter((entry) => !entry.number && entry.into !== null && ids.has(entry.into));
  return { lead, also: [...numbered.filter((entry) => entry !== lead), ...gaveWay] };
}

/** Where a source stands: in a file by its page or lines, or else its id. @param {any} source */
function placeOf({ path, page, line, end_line: end, id }) {
  if (!path) return id;
  if (page) return `${path}, page ${page}`;
  if (!line) return path;
  return end && end !== line ? `${path}:${line}-${end}` : `${path}:${line}`;
}

/** What the line numbers of a source's elisions count in: the file, or the block itself. @param {any} source */
function baseOf({ id, path }) {
  return path && id.startsWith(`${path}:`) ? path : id;
}

/** How many of the lines that the id names are not shown. @param {any} source */
function linesMissing({ id, line, end_line: end }) {
  const named = /:(\d+)-(\d+)$/.exec(id);
  return named && line && end ? Math.max(0, Number(named[2]) - end + (line - Number(named[1]))) : 0;
}

/** @param {any[]} sections @param {Piece[]} pieces @returns {Group[]} */
function sectionGroups(sections, pieces) {
  return sections.map(({ title, tokens }, i) => ({
    name: title,
    tokens,
    count: pieces.filter((piece) => piece.group === i).length,
  }));
}

/**
 * By file, the largest first; what is more than can be told apart goes together.
 * @param {Piece[]} pieces
 * @returns {Group[]}
 */
function fileGroups(pieces) {
  /** @type {Map<string, {name: string, tokens: number, count: number}>} */
  const files = new Map();
  for (const piece of pieces) {
    const name = piece.file || piece.type;
    const group = files.get(name) ?? { name, tokens: 0, count: 0 };
    group.tokens += piece.tokens;
    group.count += 1;
    files.set(name, group);
  }
  const sorted = [...files.values()].sort((a, b) => b.tokens - a.tokens);
  const kept = sorted.length > MOST_GROUPS ? sorted.slice(0, MOST_GROUPS - 1) : sorted;
  const rest = sorted.slice(kept.length);
  for (const piece of pieces) {
    const at = kept.findIndex((group) => group.name === (piece.file || piece.type));
    piece.group = at < 0 ? kept.length : at;
  }
  if (!rest.length) return kept;
  const sum = (/** @type {"tokens" | "count"} */ what) => rest.reduce((all, group) => all + group[what], 0);
  return [...kept, { name: `${rest.length} more files`, tokens: sum("tokens"), count: sum("count") }];
}

/** How a build was asked for, in a few words. @param {Build} build */
export function toldHow({ asked, format, budget }) {
  const parts = [`${new Intl.NumberFormat("en").format(budget)} tokens`, format];
  if (asked.user) parts.push(`as ${asked.user}`);
  if (asked.focus) parts.push(`focus ${asked.focus}`);
  if (asked.type) parts.push(asked.type);
  return parts.join(", ");
}
