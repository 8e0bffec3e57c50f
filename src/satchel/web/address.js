/**
 * The question in the page's address, after the #: it can be reloaded, kept and sent to a user of the same server, who
 * sees what they may. The part after the # is not sent to the server.
 */

const TEXTS = ["query", "user", "focus", "type", "format"];
const COUNTS = ["token_budget", "top_k", "min_relevance"];
const LISTS = ["include", "exclude"];

/** What the address asks for; null if it asks nothing. @returns {Record<string, any> | null} */
export function asked() {
  const fields = new URLSearchParams(location.hash.slice(1));
  if (!fields.get("query")?.trim()) return null;
  /** @type {Record<string, any>} */
  const told = {};
  for (const name of TEXTS) if (fields.get(name)) told[name] = fields.get(name);
  for (const name of COUNTS) {
    const count = Number(fields.get(name) || NaN);
    if (Number.isFinite(count)) told[name] = count;
  }
  for (const name of LISTS) if (fields.getAll(name).length) told[name] = fields.getAll(name);
  return told;
}

/** Put what is shown into the address. @param {Record<string, any>} told */
export function tell(told) {
  const fields = new URLSearchParams();
  for (const name of [...TEXTS, ...COUNTS]) if (told[name] !== undefined) fields.set(name, String(told[name]));
  for (const name of LISTS) for (const glob of told[name] ?? []) fields.append(name, glob);
  const hash = `#${fields}`;
  if (hash !== location.hash) history.pushState(null, "", hash);
}
