/**
 * The client: every noun of the service, and what is no call of a single route.
 */

import { AgentRuntimeError } from "./errors.js";
import { path } from "./path.js";
import { Nouns, Runs as RunCalls } from "./resources.js";
import { Transport } from "./transport.js";

/** @import { CallOptions, ClientOptions, FollowOptions, Token } from "./transport.js" */
/** @import { Progress, Run, RunStreamEvent, RunsProgressQuery } from "./types.js" */

/** The calls of runs, and what is made of them. */
class Runs extends RunCalls {
  /**
   * Waits for the end of a run, however long it takes, and reads it.
   * @param {string} runId
   * @param {FollowOptions} [options] `signal` ends the wait
   * @returns {Promise<Run>}
   */
  async wait(runId, options) {
    for await (const _ of this.follow(runId, options));
    return this.get(runId, { signal: options?.signal });
  }
}

export class AgentRuntime extends Nouns {
  #transport;

  /** @param {ClientOptions} [options] */
  constructor(options = {}) {
    const transport = new Transport(options);
    super(transport);
    this.#transport = transport;
    this.runs = new Runs(transport);
  }

  /** The server's address. */
  get baseUrl() {
    return this.#transport.baseUrl;
  }

  /**
   * A route that is newer than this client, or any other.
   * @param {"GET" | "POST" | "PUT" | "PATCH" | "DELETE"} method
   * @param {string} path such as `/v1/runs`
   * @param {CallOptions & { query?: object, body?: unknown }} [options] with `idempotencyKey`, a POST may be sent again
   * @returns {Promise<any>} the answer's JSON; undefined where it has no body
   */
  async request(method, path, { query, body, ...options } = {}) {
    if (!/^\/(?![/\\])/.test(path)) throw new AgentRuntimeError("invalid", "The path of a request begins with one slash, such as /v1/runs.");
    return this.#transport.call(method, path, { query, body, takesKey: Boolean(options.idempotencyKey) }, options);
  }

  /**
   * What a page of an app may hold: a public run token reads the progress of its runs alone.
   * @param {Omit<ClientOptions, "token"> & { publicToken: Token }} options
   */
  static forRun({ publicToken, ...options }) {
    // In Node, a token of the environment would take its place.
    if (!publicToken) throw new AgentRuntimeError("invalid", "forRun takes the public token of a run.");
    return new RunReader(new Transport({ ...options, token: publicToken }));
  }
}

/** Reads the progress of runs. */
export class RunReader {
  #transport;

  /** @param {Transport} transport */
  constructor(transport) {
    this.#transport = transport;
  }

  /**
   * A run, and a page of its events.
   * @param {string} runId
   * @param {RunsProgressQuery} [query]
   * @param {CallOptions} [options]
   * @returns {Promise<Progress>}
   */
  async progress(runId, query, options) {
    return this.#transport.call("GET", path`/v1/runs/${runId}/progress`, { query }, options);
  }

  /**
   * A run's events as they happen, to its end.
   * @param {string} runId
   * @param {FollowOptions} [options]
   * @returns {AsyncGenerator<RunStreamEvent, void, undefined>}
   */
  follow(runId, options) {
    return this.#transport.follow(path`/v1/runs/${runId}/progress/stream`, options);
  }
}
