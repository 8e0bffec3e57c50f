/**
 * Everything that is asked of the server: our own, with the session's cookie, as JSON. What goes wrong is a Problem.
 */

/** What a request was refused with (RFC 9457), or that there was no answer. */
export class Problem extends Error {
  /** @param {Record<string, any>} told */
  constructor(told) {
    super(String(told.title || "Unknown error"));
    this.title = this.message;
    this.status = Number(told.status) || 0;
    this.detail = String(told.detail || "");
    this.code = String(told.code || "unexpected");
    this.requestId = String(told.request_id || "");
    /** The fields that are at fault, as the server names them. @type {string[]} */
    this.fields = [told.field, ...(Array.isArray(told.errors) ? told.errors.map((one) => one.field) : [])]
      .filter((name) => typeof name === "string")
      .map((name) => name.replace(/^body\./, "").split(".")[0]);
    if (this.code === "budget-cannot-be-met") this.fields.push("token_budget");
  }
}

/** Begin a session with a token. @param {string} token */
export function logIn(token) {
  const headers = { Authorization: `Bearer ${token}`, "Content-Type": "application/json" };
  return answer("/login", { method: "POST", headers, body: "{}" });
}

const UNREACHABLE = { code: "unreachable", title: "The server does not answer" };

/** @param {string} path @param {RequestInit} [how] */
async function answer(path, how = {}) {
  let response;
  try {
    response = await fetch(path, { credentials: "same-origin", redirect: "error", cache: "no-store", ...how });
  } catch (error) {
    if (error instanceof DOMException && error.name === "AbortError") throw error;
    throw new Problem(UNREACHABLE);
  }
  if (response.ok) return response;
  let told = {};
  try {
    told = await response.json();
  } catch {
    // not one of ours; the status has to do
  }
  const title = response.status >= 500 ? "The server could not do this" : "The server refused this";
  throw new Problem({ title, ...told, status: response.status });
}

/** @param {string} path @param {unknown} body @param {AbortSignal} [signal] @param {string} [accept] */
function post(path, body, signal, accept = "application/json") {
  const headers = { "Content-Type": "application/json", Accept: accept };
  return answer(path, { method: "POST", headers, body: JSON.stringify(body), signal });
}

/** @param {Response} response */
async function json(response) {
  try {
    return await response.json();
  } catch (error) {
    if (error instanceof DOMException && error.name === "AbortError") throw error;
    throw new Problem({ ...UNREACHABLE, detail: "The answer is incomplete." });
  }
}

/** @param {Record<string, unknown>} asked @param {AbortSignal} [signal] */
export async function context(asked, signal) {
  return json(await post("/v1/context", asked, signal));
}

/**
 * The exact text behind an id, as a user may read it.
 * @param {string} id @param {number} lines @param {string | undefined} user @param {AbortSignal} [signal]
 */
export async function expand(id, lines, user, signal) {
  return json(await post("/v1/expand", { id, lines, ...(user ? { user } : {}) }, signal));
}

/**
 * The picture of a page; null where there is none.
 * @param {string} document @param {number} page @param {string | undefined} user @param {AbortSignal} [signal]
 */
export async function pagePicture(document, page, user, signal) {
  const asked = new URLSearchParams({ document, page: String(page), ...(user ? { user } : {}) });
  try {
    const picture = await (await answer(`/v1/pages?${asked}`, { signal })).blob();
    return /^image\/(jpeg|png|webp)$/.test(picture.type) ? picture : null;
  } catch (error) {
    if (error instanceof Problem && error.status !== 401) return null;
    throw error;
  }
}

/** What there is to ask about. @param {string | undefined} user */
export async function contents(user) {
  return json(await answer(`/v1/contents${user ? `?${new URLSearchParams({ user })}` : ""}`));
}

/** Upload a file and index it. @param {File} file */
export async function upload(file) {
  const headers = { "Content-Type": "application/octet-stream" };
  return json(await answer(`/v1/documents/${encodeURIComponent(file.name)}`, { method: "PUT", headers, body: file }));
}

export async function status() {
  return json(await answer("/v1/status"));
}

export async function logOut() {
  await post("/logout", {});
}

/**
 * The model's answer to a question, event by event.
 * @param {Record<string, unknown>} asked @param {AbortSignal} signal
 */
export async function* answers(asked, signal) {
  yield* events(await post("/v1/ask", asked, signal, "text/event-stream"));
}

/**
 * Bring the index up; `heard` is told about each step. Ends with the report.
 * @param {(state: {doing: string, done: number, of: number}) => void} heard
 */
export async function index(heard) {
  const response = await post("/v1/index", {}, undefined, "text/event-stream");
  for await (const { kind, data } of events(response)) {
    if (kind === "progress") heard(data);
    else if (kind === "done") return data;
    else if (kind === "problem") throw new Problem(data);
  }
  throw new Problem({ ...UNREACHABLE, detail: "The index run continues, but its progress is unknown." });
}

/** @param {Response} response */
async function* events(response) {
  if (!response.body) return;
  const reader = response.body.pipeThrough(new TextDecoderStream()).getReader();
  let held = "";
  try {
    for (;;) {
      const { value, done } = await reader.read();
      if (done) return;
      const parts = (held + value).split("\n\n");
      held = parts.pop() ?? "";
      for (const part of parts) {
        const lines = part.split("\n");
        const kind = lines.find((line) => line.startsWith("event: "))?.slice(7);
        const data = lines.filter((line) => line.startsWith("data: ")).map((line) => line.slice(6));
        if (kind && data.length) yield { kind, data: JSON.parse(data.join("\n")) };
      }
    }
  } catch (error) {
    if (error instanceof TypeError) throw new Problem(UNREACHABLE);
    throw error;
  }
}
