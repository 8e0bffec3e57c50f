/**
 * One shape for both kinds of answers, pieces of files and sections of a workspace. Nothing here touches the page.
 */

import { inUnits } from "./offsets.js";

/**
 * @typedef {{id: string, fate: string, reason: string, relevance: number, score: number, tokens: number,
 *   number: number | null, into: string | null, collector: string, signals: Record<string, number>}} Entry
 * @typedef {{number: number, id: string, title: string, place: string, type: string, tokens: number,
 *   file?: string, relevance: number, score: number | null, reasons: string[], signals: Record<string, number>,
 *   fate: string, reason: string, span: [number, number], shown: string, group: number, canOpen: boolean,
 *   missing: {lines: number, characters: number} | null, also: Entry[]}} Piece
 * @typedef {{name: string, tokens: number, count: number}} Group
 * @typedef {{kind: string, asked: Record<string, any>, at: Date, text: string, tokens: number, budget: number,
 *   format: string, milliseconds: number, notes: string[], madeVisible: number, failed: Record<string, string>,
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
  const sections = answer.kind === "sections";
  const text = String(sections ? answer.serialized : answer.context);
  const meta = answer.metadata ?? {};
  /** @type {Entry[]} */
  const ledger = answer.ledger ?? [];
  const units = inUnits(text, answer.spans ?? []);
  const pieces = sections ? fromSections(answer.sections, ledger, units) : fromSources(answer, ledger, units);
  const tokens = sections ? meta.totalTokens : answer.estimated_tokens;
  const groups = sections ? sectionGroups(answer.sections) : fileGroups(pieces);
  const written = groups.reduce((sum, group) => sum + group.tokens, 0);
  return {
    kind: answer.kind,
    asked,
    at: new Date(),
    text,
    tokens,
    budget: answer.max_tokens || meta.tokenBudget || tokens,
    format: asked.format,
    milliseconds: sections ? meta.buildMs : answer.build_time_ms,
    notes: answer.notes ?? [],
    madeVisible: (sections ? meta.charactersMadeVisible : answer.characters_made_visible) || 0,
    failed: meta.collectorsFailed ?? {},
    pieces,
    left: ledger.filter((entry) => entry.fate === "merged" || entry.fate === "dropped"),
    groups,
    frame: Math.max(0, tokens - written),
  };
}

/** @param {Record<string, any>} answer @param {Entry[]} ledger @param {[number, number][]} units @returns {Piece[]} */
function fromSources(answer, ledger, units) {
  return answer.sources.map((source, i) => {
    const { lead, also } = entriesOf(ledger, source.number, source.entity_id);
    return {
      ...fateOf(lead, source),
      number: source.number,
      id: source.entity_id,
      title: source.name === source.file ? "" : source.name,
      place: placeOf(source),
      type: source.type,
      reasons: lead ? [lead.collector] : [],
      span: units[i],
      shown: answer.shown?.[i] ?? "",
      group: -1,
      file: source.file || source.type,
      canOpen: true,
      missing: lead?.fate === "trimmed" ? { lines: linesMissing(source), characters: 0 } : null,
      also,
    };
  });
}

/** @param {any[]} sections @param {Entry[]} ledger @param {[number, number][]} units @returns {Piece[]} */
function fromSections(sections, ledger, units) {
  const items = sections.flatMap((section, group) => section.items.map((item) => ({ item, group })));
  return items.map(({ item, group }, i) => {
    const { lead, also } = entriesOf(ledger, item.number, item.blockId);
    return {
      ...fateOf(lead, item),
      number: item.number ?? 0,
      id: item.blockId,
      ...namesOf(item),
      type: item.blockType,
      relevance: item.relevance,
      reasons: item.reasons.length ? item.reasons : lead ? [lead.collector] : [],
      signals: item.signals,
      span: units[i],
      shown: item.content,
      group,
      canOpen: Boolean(item.number),
      missing: item.truncated ?? null,
      also,
    };
  });
}

/** What a block is called and where it stands: in a file by its lines, else by the way down to it. @param {any} item */
function namesOf({ blockId, blockType, metadata, place, filePath, sourcePath }) {
  const page = metadata.pageTitle || "";
  if (place) {
    const told = placeOf({ ...place, file: place.path, type: blockType });
    return { title: page && page !== place.path ? page : blockId.split("#").slice(1).join("#"), place: told };
  }
  const way = metadata.path.join(" › ") || filePath || sourcePath || "";
  return { title: page || blockId, place: way === page ? blockId : way };
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
 * @param {Entry[]} ledger @param {number | undefined} number @param {string} id
 */
function entriesOf(ledger, number, id) {
  if (!number) return { lead: undefined, also: [] };
  const numbered = ledger.filter((entry) => entry.number === number);
  const lead = numbered.find((entry) => entry.id === id) ?? numbered.find((entry) => entry.tokens) ?? numbered[0];
  const ids = new Set([id, ...numbered.map((entry) => entry.id)]);
  const gaveWay = ledger.filter((entry) => !entry.number && entry.into !== null && ids.has(entry.into));
  return { lead, also: [...numbered.filter((entry) => entry !== lead), ...gaveWay] };
}

/**
 * @param {{file: string | null, page: number | null, line: number | null, end_line: number | null, type: string}}
 *   source
 */
function placeOf({ file, page, line, end_line: end, type }) {
  if (!file) return type;
  if (page) return `${file}, page ${page}`;
  if (!line) return file;
  return end && end !== line ? `${file}:${line}-${end}` : `${file}:${line}`;
}

/** How many of the lines that the id names are not shown. @param {any} source */
function linesMissing({ entity_id: id, line, end_line: end }) {
  const named = /:(\d+)-(\d+)$/.exec(id);
  return named && line && end ? Math.max(0, Number(named[2]) - end + (line - Number(named[1]))) : 0;
}

/** @param {any[]} sections @returns {Group[]} */
function sectionGroups(sections) {
  return sections.map((section) => ({ name: section.title, tokens: section.tokenCount, count: section.items.length }));
}

/**
 * By file, the largest first; what is more than can be told apart goes together.
 * @param {any[]} pieces
 * @returns {Group[]}
 */
function fileGroups(pieces) {
  /** @type {Map<string, {name: string, tokens: number, count: number}>} */
  const files = new Map();
  for (const piece of pieces) {
    const group = files.get(piece.file) ?? { name: piece.file, tokens: 0, count: 0 };
    group.tokens += piece.tokens;
    group.count += 1;
    files.set(piece.file, group);
  }
  const sorted = [...files.values()].sort((a, b) => b.tokens - a.tokens);
  const kept = sorted.length > MOST_GROUPS ? sorted.slice(0, MOST_GROUPS - 1) : sorted;
  const rest = sorted.slice(kept.length);
  for (const piece of pieces) {
    const at = kept.findIndex((group) => group.name === piece.file);
    piece.group = at < 0 ? kept.length : at;
  }
  if (!rest.length) return kept;
  const sum = (/** @type {"tokens" | "count"} */ what) => rest.reduce((all, group) => all + group[what], 0);
  return [...kept, { name: `${rest.length} more files`, tokens: sum("tokens"), count: sum("count") }];
}

/** How many pieces can be cited. @param {Build} build */
export function countOf(build) {
  return build.pieces.filter((piece) => piece.number).length;
}

/** How a build was asked for, in a few words. @param {Build} build */
export function toldHow({ asked, format, budget }) {
  const parts = [`${new Intl.NumberFormat("en").format(budget)} tokens`, format];
  if (asked.user) parts.push(`as ${asked.user}`);
  if (asked.focus) parts.push(`focus ${asked.focus}`);
  if (asked.type) parts.push(asked.type);
  return parts.join(", ");
}
