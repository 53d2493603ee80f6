/**
 * The server, by the TypeScript client. Everything that the console asks goes through here.
 *
 * Guarantees: what is asked without a person's doing says so (`quiet`) and does not keep the session open. An answer 401
 * to a person who was signed in says that the session has ended.
 */

import { signal } from "@preact/signals";
import { AgentRuntime } from "agent-runtime/client.js";
import { AgentRuntimeError } from "agent-runtime/errors.js";
import { takeServerTime } from "./time.js";

export { AgentRuntimeError };

/** A request was answered 401. */
export const unauthenticated = signal(false);
/** The server is another build than the one that this page came from. */
export const updated = signal(false);
/** @type {string | null} */
let build = null;

/** @param {Response} answer */
function onAnswer(answer) {
  takeServerTime(answer.headers.get("date"));
  if (answer.status === 401 && !answer.url.includes("/v1/sign-in")) unauthenticated.value = true;
  const is = answer.headers.get("x-agent-runtime-build");
  build ??= is;
  if (is && is !== build) updated.value = true;
}

export const api = new AgentRuntime({ baseUrl: location.origin, onAnswer });

/** Options of a call that the page makes by itself. */
export const quiet = { headers: { "svc-background": "1" } };

/** An error of the client, whatever was thrown. @param {unknown} error @returns {AgentRuntimeError} */
export function errorOf(error) {
  if (error instanceof AgentRuntimeError) return error;
  return new AgentRuntimeError("protocol", error instanceof Error ? error.message : String(error), { cause: error });
}

/** Whether it is the end of a request that the page itself gave up. @param {unknown} error */
export function isAborted(error) {
  return error instanceof Error && error.name === "AbortError";
}
