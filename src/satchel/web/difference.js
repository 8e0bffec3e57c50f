/** What two builds have in common, and what not: as one list. */

/**
 * @typedef {import("./model.js").Build} Build
 * @typedef {import("./model.js").Piece} Piece
 * @typedef {{a: Piece | null, b: Piece | null, kind: "only-a" | "only-b" | "changed" | "same", told: string}} Row
 */

/**
 * @param {Build} first
 * @param {Build} second
 * @returns {Row[]}
 */
export function difference(first, second) {
  const pairs = paired(first.pieces, second.pieces);
  const inOrder = new Set(
    longestRise(first.pieces.filter((piece) => pairs.has(piece)), (piece) => second.pieces.indexOf(pairs.get(piece))),
  );
  const taken = new Set(pairs.values());
  /** @type {Row[]} */
  const rows = [];
  let next = 0;
  const onlyInSecond = (/** @type {number} */ until) => {
    for (; next < until; next += 1) {
      const b = second.pieces[next];
      if (!taken.has(b)) rows.push({ a: null, b, kind: "only-b", told: "only in B" });
    }
  };
  for (const a of first.pieces) {
    const b = pairs.get(a) ?? null;
    if (!b) rows.push({ a, b, kind: "only-a", told: "only in A" });
    else {
      if (inOrder.has(a)) onlyInSecond(second.pieces.indexOf(b));
      rows.push(both(a, b, !inOrder.has(a)));
    }
  }
  onlyInSecond(second.pieces.length);
  return rows;
}

/** @param {Piece} a @param {Piece} b @param {boolean} hasMoved @returns {Row} */
function both(a, b, hasMoved) {
  const told = [];
  if (hasMoved) told.push(`moved from ${a.number} to ${b.number}`);
  if (a.shown !== b.shown) {
    const [lines, others] = [a, b].map((piece) => piece.shown.split("\n").length);
    const shorter = a.shown.length < b.shown.length ? "A" : "B";
    const much = lines === others ? "" : `: ${Math.min(lines, others)} of ${Math.max(lines, others)} lines`;
    told.push(`cut in ${shorter}${much}`);
  }
  return { a, b, kind: told.length ? "changed" : "same", told: told.join("; ") || "the same in both" };
}

/** By id; what is left over by overlapping lines of the same file. @param {Piece[]} firsts @param {Piece[]} seconds */
function paired(firsts, seconds) {
  /** @type {Map<Piece, Piece>} */
  const pairs = new Map();
  const free = new Set(seconds);
  for (const isPair of [(/** @type {Piece} */ a, /** @type {Piece} */ b) => a.id === b.id, overlap]) {
    for (const a of firsts) {
      if (pairs.has(a)) continue;
      const b = [...free].find((one) => isPair(a, one));
      if (b) {
        pairs.set(a, b);
        free.delete(b);
      }
    }
  }
  return pairs;
}

/** @param {Piece} a @param {Piece} b */
function overlap(a, b) {
  const [one, other] = [linesOf(a), linesOf(b)];
  return Boolean(one && other && one.file === other.file && one.from <= other.to && other.from <= one.to);
}

/** @param {Piece} piece */
function linesOf({ id }) {
  const found = /^(.*):(\d+)-(\d+)$/s.exec(id);
  return found && { file: found[1], from: Number(found[2]), to: Number(found[3]) };
}

/**
 * The most things whose places rise: those stayed in order, the others moved.
 * @template T
 * @param {T[]} things
 * @param {(thing: T) => number} placeOf
 * @returns {T[]}
 */
function longestRise(things, placeOf) {
  const places = things.map(placeOf);
  /** @type {number[]} */
  const ends = []; // ends[n]: where the best rise of n + 1 things ends
  const before = places.map((place, i) => {
    let at = ends.findIndex((end) => places[end] >= place);
    if (at < 0) at = ends.length;
    ends[at] = i;
    return at ? ends[at - 1] : -1;
  });
  const found = [];
  for (let i = ends.at(-1) ?? -1; i >= 0; i = before[i]) found.push(things[i]);
  return found.reverse();
}
