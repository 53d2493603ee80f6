/**
 * How a try ends before its answer does: at its deadline, after a silence, or because the caller says so.
 *
 * Guarantees: whoever ends a guard leaves no timer, no listener and no connection behind.
 */

import { AgentRuntimeError } from "./errors.js";

export class Guard {
  #controller = new AbortController();
  /** @type {ReturnType<typeof setTimeout> | undefined} */
  #timer;
  #isLate = false;
  #caller;
  #mostMs;
  #leave = () => this.#controller.abort();

  /**
   * @param {AbortSignal | undefined} caller
   * @param {number} mostMs
   */
  constructor(caller, mostMs) {
    if (!(mostMs > 0)) throw new AgentRuntimeError("invalid", `A time limit is above 0 ms, not ${mostMs}.`);
    caller?.throwIfAborted();
    this.#caller = caller;
    this.#mostMs = mostMs;
    caller?.addEventListener("abort", this.#leave);
    this.renew();
  }

  get signal() {
    return this.#controller.signal;
  }

  /** Begins the time again. */
  renew() {
    clearTimeout(this.#timer);
    // What is more than the platform's longest time would be over at once.
    if (this.#mostMs >= 2 ** 31) return;
    this.#timer = setTimeout(() => {
      this.#isLate = true;
      this.#controller.abort();
    }, this.#mostMs);
  }

  /** Stops the time, until it is renewed. */
  rest() {
    clearTimeout(this.#timer);
  }

  /** Ends what is still open, unless all of it was read. */
  end(isRead = false) {
    clearTimeout(this.#timer);
    this.#caller?.removeEventListener("abort", this.#leave);
    if (!isRead) this.#controller.abort();
  }

  /**
   * What a failure of the try means to the caller.
   * @param {unknown} cause
   * @param {string} what
   * @param {string} limit
   */
  errorOf(cause, what, limit) {
    if (this.#caller?.aborted) return this.#caller.reason;
    if (this.#isLate) return new AgentRuntimeError("timeout", `${what}: nothing whole came ${limit}.`);
    if (cause instanceof AgentRuntimeError) return cause;
    // The fault of fetch itself; what a caller's own function throws is the caller's.
    if (!(cause instanceof TypeError) && !(cause instanceof DOMException)) return cause;
    return new AgentRuntimeError("network", `${what}: the connection failed.`, { cause });
  }
}

/**
 * @param {number} ms
 * @param {AbortSignal} [signal]
 */
export async function pause(ms, signal) {
  signal?.throwIfAborted();
  await new Promise((done) => {
    const end = () => {
      clearTimeout(timer);
      signal?.removeEventListener("abort", end);
      done(undefined);
    };
    const timer = setTimeout(end, ms);
    signal?.addEventListener("abort", end);
  });
  signal?.throwIfAborted();
}
