/**
 * The server counts characters, JavaScript counts UTF-16 units: beyond the basic plane (
   emoji,
   rare letters,
 ) a character
 * is two of them.
 */

/**
 * Spans in characters as spans in UTF-16 units, in the order in which they were given.
 * @param {string} text
 * @param {[number, number][]} spans
 * @returns {[number, number][]}
 */
export function inUnits(text, spans) {
  const wanted = [...new Set(spans.flat())].sort((a, b) => a - b);
  /** @type {Map<number, number>} */
  const units = new Map();
  let unit = 0;
  let character = 0;
  for (const offset of wanted) {
    while (character < offset && unit < text.length) {
      unit += text.codePointAt(unit) > 0xffff ? 2 : 1;
      character += 1;
    }
    units.set(offset, unit);
  }
  return spans.map(([start, end]) => [units.get(start) ?? 0, units.get(end) ?? 0]);
}
