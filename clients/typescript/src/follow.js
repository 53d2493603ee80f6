/**
 * A stream that survives its connections.
 *
 * Guarantees: the caller gets every numbered event after the first number once and in order, whatever happens to
 * connections, servers and replicas. It ends with the run; the streams of reviewers and of changes do not end. What has no
 * number is given as it comes. A caller that leaves, also in the middle, leaves no connection open.
 */

import { AgentRuntimeError, errorOf } from "./errors.js";
import { EventParser, Place } from "./events.js";
import { Guard, pause } from "./guard.js";
import { mayRepeat } from "./retry.js";

/** @import { FollowOptions, Transport } from "./transport.js" */

const LONGEST_PAUSE_MS = 15_000;

/**
 * @param {Transport} transport
 * @param {string} path
 * @param {FollowOptions} [options]
 * @param {object} [filters]
 * @returns {AsyncGenerator<any, void, undefined>}
 */
export async function* follow(transport, path, options = {}, filters = {}) {
  const { after, signal, maxSilenceMs = 45_000, failures: most = 20, ...others } = options;
  const place = new Place(after);
  let retryMs = 2_000;
  for (let failures = 0; ; ) {
    const parser = new EventParser();
    const guard = new Guard(signal, maxSilenceMs);
    let error;
    try {
      const had = place.after;
      // Both: a proxy may take the header away.
      const headers = { ...others.headers, accept: "text/event-stream", ...(had === undefined ? {} : { "last-event-id": String(had) }) };
      const query = { ...filters, after: had };
      const answer = await transport.send("GET", path, { ...others, query, headers, signal: guard.signal });
      if (!answer.ok) throw errorOf(answer.status, answer.headers, await answer.text());
      if (!answer.body || !answer.headers.get("content-type")?.startsWith("text/event-stream"))
        throw new AgentRuntimeError("protocol", `GET ${path}: the answer is no stream of events.`, { status: answer.status });
      const reader = answer.body.getReader();
      const decoder = new TextDecoder();
      reading: for (let read; !(read = await reader.read()).done; ) {
        // How long the caller takes is no silence of the server.
        guard.rest();
        // A run may be quiet for days, and a connection does not last as long.
        failures = 0;
        for (const event of parser.push(decoder.decode(read.value, { stream: true }))) {
          const taken = place.take(event);
          if (taken?.kind === "stream.end" && taken.data?.reason === "run-finished") return;
          // Come back. Where the caller may not, the server says why.
          if (taken?.kind === "stream.end" || taken?.kind === "stream.reset") break reading;
          if (taken !== undefined) yield taken;
        }
        guard.renew();
      }
    } catch (cause) {
      error = guard.errorOf(cause, `GET ${path}`, `for ${maxSilenceMs} ms`);
      if (!(error instanceof AgentRuntimeError) || !mayRepeat(error, "GET", false)) throw error;
    } finally {
      guard.end();
    }
    retryMs = parser.retryMs ?? retryMs;
    if (++failures >= most)
      throw error ?? new AgentRuntimeError("unavailable", `GET ${path}: ${failures} connections in a row brought nothing.`);
    // The first time as the server asks, then longer. At random, so that readers do not come back all at once.
    const growing = Math.min(retryMs * 2 ** (failures - 1), Math.max(LONGEST_PAUSE_MS, retryMs));
    await pause(Math.max(growing, Math.min(error?.retryAfterMs ?? 0, 60_000)) * (1 + Math.random() / 4), signal);
  }
}
