/**
 * Which requests are sent again, and when. Pure.
 *
 * Guarantees: a request that may have taken effect is sent again only if that does no harm: it reads, or sets or removes
 * a thing by its name, or carries an idempotency key.
 */

/** @import { AgentRuntimeError } from "./errors.js" */

const STATUSES = [408, 429, 502, 503, 504];
/** With these the server says that it did nothing. */
const UNTOUCHED = ["too-many-requests", "overloaded", "audit-unavailable", "shutting-down"];
/** For longer nobody waits: the caller learns how long the server asks to wait. */
const LONGEST_PAUSE_MS = 8_000;

/** @param {AgentRuntimeError} error */
export function comesSoon(error) {
  return (error.retryAfterMs ?? 0) <= LONGEST_PAUSE_MS;
}

/**
 * Whether a failed try may be followed by another.
 * @param {AgentRuntimeError} error
 * @param {string} method
 * @param {boolean} hasKey the request carries an idempotency key
 */
export function mayRepeat(error, method, hasKey) {
  if (UNTOUCHED.includes(error.serverCode ?? "")) return true;
  if (!hasKey && method !== "GET" && method !== "PUT" && method !== "DELETE") return false;
  if (error.status === undefined) return error.code === "network" || error.code === "timeout";
  // A first try whose answer was lost is still under way.
  if (error.serverCode === "idempotency-in-flight") return true;
  return STATUSES.includes(error.status) || error.serverCode === "authorization-unavailable";
}

/**
 * How long to wait before the next try, in milliseconds: what the server asks for, else half a second, doubled each time,
 * and shortened at random by up to a half, so that clients do not come back all at once.
 * @param {number} tries how many were made
 * @param {number} [retryAfterMs]
 */
export function pauseMs(tries, retryAfterMs, random = Math.random()) {
  return retryAfterMs ?? 500 * 2 ** Math.min(tries - 1, 4) * (1 - random / 2);
}
