/** The events of guardrails as sentences. Pure. */

import { pointOf } from "./guardrail-table.js";

/** @type {Record<string, string>} */
const DID = { block: "blocked it", redact: "replaced what it found", approve: "asks a reviewer about it", allow: "let it pass" };

/** @param {string} kind of the event @param {any} said its data */
export function guardrailSays(kind, said) {
  const at = `${pointOf(said.point)}${said.call === undefined || said.call === null ? "" : ` ${said.call + 1}`} of step ${said.step}`;
  if (kind === "guardrail.failed") return `${at}: the guardrail ${said.name} failed. ${said.onError === "allow-unsafely" ? "What it was to judge went on unchecked." : "What it was to judge was blocked."}`;
  return `${at}: the guardrail ${said.name} ${DID[said.verdict] ?? `decided: ${said.verdict}`}.`;
}
