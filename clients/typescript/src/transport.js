/**
 * Requests: where they go, what they carry, how long they may take, and when they are sent again.
 *
 * Guarantees: the token goes to the server of the base URL and nowhere else; it is in no message and in nothing that a
 * program can print of a client. Every try has a deadline, which covers the whole answer.
 */

import { AgentRuntimeError, errorOf } from "./errors.js";
import { follow } from "./follow.js";
import { Guard, pause } from "./guard.js";
import { pages } from "./page.js";
import { comesSoon, mayRepeat, pauseMs } from "./retry.js";
import { VERSION } from "./version.js";

/**
 * @typedef {string | (() => string | Promise<string>)} Token
 * @typedef {object} ClientOptions
 * @property {string} [baseUrl] the server; left out: in a page the page's own origin, in Node `AGENT_RUNTIME_URL`, else
 *   `http://127.0.0.1:4000`
 * @property {Token} [token] a bearer token, or what gives one for each try; in Node, left out: that of the file
 *   `AGENT_RUNTIME_TOKEN_FILE`, else `AGENT_RUNTIME_TOKEN`. Without one, a page sends its session's cookie to its own
 *   origin, and to no other; with one, it sends no cookie.
 * @property {typeof globalThis.fetch} [fetch] in place of the platform's
 * @property {number} [timeoutMs] how long a try may take with its whole answer; 60,000
 * @property {number} [retries] how often a request is sent again, where that does no harm; 2
 * @property {Record<string, string>} [headers] further headers of each request
 * @property {(answer: Response) => void} [onAnswer] is told of each answer before its body is read
 *
 * @typedef {object} CallOptions
 * @property {AbortSignal} [signal] ends the call; it throws the signal's reason
 * @property {number} [timeoutMs]
 * @property {number} [retries]
 * @property {string} [idempotencyKey] names the request, where the call takes such a key; left out: a random one
 * @property {Record<string, string>} [headers]
 * @property {(answer: Response) => void} [onAnswer]
 *
 * @typedef {object} FollowOptions
 * @property {number} [after] events after this number
 * @property {AbortSignal} [signal] ends the stream; it throws the signal's reason
 * @property {number} [maxSilenceMs] a connection is taken for dead after so long without a byte; 45,000, three of the
 *   server's signs of life
 * @property {number} [failures] how many connections in a row may fail or bring not one byte before it gives up; 20. With 1
 *   the end of a connection ends the stream
 * @property {Record<string, string>} [headers]
 * @property {(answer: Response) => void} [onAnswer]
 *
 * @typedef {object} Request
 * @property {object} [query]
 * @property {unknown} [body]
 * @property {boolean} [takesKey] the route takes an idempotency key
 */

const environment = /** @type {any} */ (globalThis).process?.env ?? {};
const isNode = Boolean(/** @type {any} */ (globalThis).process?.versions?.node);
const LOCAL = isNode ? "http://127.0.0.1:4000" : globalThis.location?.origin;

/** What the command line takes, too. A file is read for each try. @returns {Token | undefined} */
function tokenOfEnvironment() {
  const file = environment.AGENT_RUNTIME_TOKEN_FILE;
  return file ? async () => (await import("./token-file.js")).tokenOf(file) : environment.AGENT_RUNTIME_TOKEN;
}

export class Transport {
  #token;
  #options;

  /** @param {ClientOptions} options */
  constructor({ token = tokenOfEnvironment(), baseUrl = environment.AGENT_RUNTIME_URL || LOCAL, ...options }) {
    const url = URL.canParse(baseUrl ?? "") ? new URL(baseUrl) : undefined;
    if (!url || !/^https?:$/.test(url.protocol) || url.username || url.password || url.search || url.hash)
      throw new AgentRuntimeError("invalid", "baseUrl must be the server's address, such as https://runtime.example, without a password, query or fragment.");
    this.baseUrl = url.href.replace(/\/+$/, "");
    this.#token = token;
    this.#options = options;
  }

  /**
   * One try: the answer, whatever its status. It must be read, or `signal` aborted.
   * @param {string} method
   * @param {string} path
   * @param {Request & { headers?: Record<string, string>, signal: AbortSignal, onAnswer?: (answer: Response) => void }} request
   */
  async send(method, path, { query, body, headers, signal, onAnswer = this.#options.onAnswer }) {
    const token = typeof this.#token === "function" ? await this.#token() : this.#token;
    const all = new Headers({ accept: "application/json", ...this.#options.headers, ...headers });
    // Browsers name themselves.
    if (isNode) all.set("user-agent", `agent-runtime-js/${VERSION}`);
    if (token) {
      // What fetch says of a bad header has the header in it.
      if (!/^[\x21-\x7e]+$/.test(token.trim()))
        throw new AgentRuntimeError("invalid", "The token has a character that no token has: a space, a line break, or one beyond ASCII.");
      all.set("authorization", `Bearer ${token.trim()}`);
    }
    if (body !== undefined) all.set("content-type", "application/json");
    const answer = await (this.#options.fetch ?? fetch)(`${this.baseUrl}${path}${written(query)}`, {
      method,
      headers: all,
      body: body === undefined ? undefined : JSON.stringify(body),
      signal,
      // A session counts on the server's own pages alone, and is no use beside a token.
      credentials: token ? "omit" : "same-origin",
      // Elsewhere, the token would go along.
      redirect: "manual",
    });
    onAnswer?.(answer);
    return answer;
  }

  /**
   * A call: the answer's JSON, or nothing where it has no body.
   * @param {string} method
   * @param {string} path
   * @param {Request} [request]
   * @param {CallOptions} [options]
   * @returns {Promise<any>}
   */
  async call(method, path, request = {}, options = {}) {
    const retries = options.retries ?? this.#options.retries ?? 2;
    if (!(retries >= 0)) throw new AgentRuntimeError("invalid", `retries is 0 or more, not ${retries}.`);
    if (options.idempotencyKey && !request.takesKey) throw new AgentRuntimeError("invalid", `${path} takes no idempotency key.`);
    const key = options.idempotencyKey ?? (request.takesKey && method !== "GET" ? randomKey() : undefined);
    const headers = key ? { ...options.headers, "idempotency-key": key } : options.headers;
    for (let tries = 1, isLost = false; ; tries++) {
      try {
        return await this.#once(method, path, { ...request, headers, onAnswer: options.onAnswer }, options);
      } catch (error) {
        if (!(error instanceof AgentRuntimeError)) throw error;
        // A try whose answer was lost has removed it.
        if (isLost && method === "DELETE" && error.serverCode === "not-found") return undefined;
        if (tries > retries || !comesSoon(error) || !mayRepeat(error, method, Boolean(key))) throw error;
        isLost ||= error.status === undefined || error.status === 502 || error.status === 504;
        await pause(pauseMs(tries, error.retryAfterMs), options.signal);
      }
    }
  }

  /**
   * @param {string} method
   * @param {string} path
   * @param {Request & { headers?: Record<string, string>, onAnswer?: (answer: Response) => void }} request
   * @param {CallOptions} options
   */
  async #once(method, path, request, { signal, timeoutMs = this.#options.timeoutMs ?? 60_000 }) {
    const guard = new Guard(signal, timeoutMs);
    let isRead = false;
    try {
      const answer = await this.send(method, path, { ...request, signal: guard.signal });
      const text = await answer.text();
      isRead = true;
      if (!answer.ok) throw errorOf(answer.status, answer.headers, text);
      if (text === "") return undefined;
      try {
        return JSON.parse(text);
      } catch (cause) {
        throw new AgentRuntimeError("protocol", `${method} ${path}: the answer is not JSON.`, { status: answer.status, cause });
      }
    } catch (cause) {
      throw guard.errorOf(cause, `${method} ${path}`, `within ${timeoutMs} ms`);
    } finally {
      guard.end(isRead);
    }
  }

  /**
   * A list, page by page.
   * @param {string} path
   * @param {object} [query]
   * @param {CallOptions} [options]
   * @returns {any}
   */
  list(path, query, options) {
    return pages((cursor) => this.call("GET", path, { query: cursor ? { ...query, cursor } : query }, options));
  }

  /**
   * A stream of events, over as many connections as it takes.
   * @param {string} path
   * @param {FollowOptions} [options]
   * @param {object} [query]
   */
  follow(path, options, query) {
    return follow(this, path, options, query);
  }
}

/**
 * The query of a URL; what is undefined or null is left out, and a list is repeated.
 * @param {object} [query]
 */
function written(query = {}) {
  const given = Object.entries(query).flatMap(([name, values]) => [values].flat().map((value) => [name, value]));
  const texts = given.filter(([, value]) => value != null).map(([name, value]) => [name, textOf(value)]);
  return texts.length ? `?${new URLSearchParams(texts)}` : "";
}

/** @param {unknown} value */
function textOf(value) {
  return value instanceof Date ? value.toISOString() : String(value);
}

/** Not `crypto.randomUUID`, which pages without TLS lack. */
export function randomKey() {
  return Array.from(crypto.getRandomValues(new Uint8Array(16)), (byte) => byte.toString(16).padStart(2, "0")).join("");
}
