/** Guardrails as somebody types them: JSON of a list, and what is wrong with it. Pure. */

/** @import { AgentRuntimeError } from "agent-runtime" */
/** @import { Guardrail } from "agent-runtime/types" */

import { lineOfError } from "./json-lines.js";

/** @typedef {{ path?: string, line?: number, message: string }} Fault */

/** What a text says as a list; an empty text is an empty list. @param {string} typed @returns {{ value: Guardrail[], fault?: Fault }} */
export function listOf(typed) {
  if (!typed.trim()) return { value: [] };
  try {
    const value = JSON.parse(typed);
    return Array.isArray(value) ? { value } : { value: [], fault: { line: 1, message: "This is no list: guardrails stand in brackets." } };
  } catch (cause) {
    return { value: [], fault: { line: lineOfError(typed, cause), message: `This is not JSON yet: ${/** @type {Error} */ (cause).message}` } };
  }
}

/** No fault: always the same list, since the editor looks at a new one anew. @type {any[]} */
export const NONE = [];
/** @type {WeakMap<AgentRuntimeError, Fault[]>} */
const ofErrors = new WeakMap();
/** @type {Fault[]} */
let last = NONE;

/**
 * The faults of the list, each at its place in it: while it is no list that, else what the server said.
 * @param {AgentRuntimeError | undefined} error @param {Fault} [fault] of `listOf`
 */
export function listFaults(error, fault) {
  if (fault) {
    if (last[0]?.line !== fault.line || last[0]?.message !== fault.message) last = [fault];
    return last;
  }
  if (!error) return NONE;
  const known = ofErrors.get(error);
  if (known) return known;
  const given = /** @type {any} */ (error.details);
  const all = /** @type {any[]} */ (Array.isArray(given.faults) ? given.faults : given.path ? [given] : []);
  const found = all
    .filter((one) => String(one.path ?? "").startsWith("$.guardrails"))
    .map((one) => ({ path: `$${String(one.path).slice("$.guardrails".length)}`, message: one.message ?? (one.expected ? `Expected ${one.expected}.` : error.message) }));
  ofErrors.set(error, found);
  return found;
}
