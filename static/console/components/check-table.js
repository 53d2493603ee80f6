/** Checks that guardrails made, in order: of a text that was tried, or of a run. */

import { fragment, h, tags } from "../ui.js";
import { pointOf } from "./guardrail-table.js";
import { State } from "./state.js";
import { Table } from "./table.js";

/** @import { RunCheck, TriedCheck } from "agent-runtime/types" */
/** @import { Child } from "../ui.js" */

const { code, small, span } = tags;

/** What a verdict is, and its colour. @type {Record<string, [string, "good" | "bad" | "wait" | "busy" | "idle"]>} */
const VERDICTS = { allow: ["allowed", "good"], block: ["blocked", "bad"], redact: ["redacted", "busy"], approve: ["asks a reviewer", "wait"], failed: ["the check failed", "bad"] };

/** @param {{ verdict: string }} props */
export function Verdict({ verdict }) {
  const [word, tone] = VERDICTS[verdict] ?? [verdict, /** @type {const} */ ("idle")];
  return h(State, { state: verdict, word, tone });
}

/** Whose a check is. @param {{ origin: string, policyVersion?: number | null }} check @param {string} own what one is that no policy has */
function originOf({ origin, policyVersion }, own) {
  const whose = origin === "tenant" ? "Tenant's policy" : origin === "project" ? "Project's policy" : origin === "agent" ? own : origin;
  return policyVersion ? `${whose}, version ${policyVersion}` : whose;
}

/** @param {{ reason?: string | null, onError?: string | null }} check */
function reasonOf({ reason, onError }) {
  const became = onError === "allow-unsafely" ? "The text went on unchecked." : onError === "block" ? "The text was blocked." : "";
  return [reason, became].filter(Boolean).join(" ") || "–";
}

/** @param {number} us */
const took = (us) => (us < 1000 ? `${us} µs` : `${(us / 1000).toFixed(us < 10_000 ? 1 : 0)} ms`);

/**
 * @param {object} props
 * @param {string} props.label
 * @param {(RunCheck | TriedCheck)[]} [props.rows]
 * @param {import("./pager.js").List<any>} [props.list] in place of `rows`
 * @param {boolean} [props.isOfRun] each has a point
 * @param {boolean} [props.hasSteps] each has its step beside it
 * @param {Child} props.empty
 */
export function Checks({ label, rows, list, isOfRun = false, hasSteps = false, empty }) {
  const own = isOfRun ? "Agent's version" : "Given here";
  /** @type {import("./table.js").Column[]} */
  const columns = [
    { title: "Name", show: (one) => code(null, one.name), wraps: true },
    { title: "Verdict", show: (one) => h(Verdict, { verdict: one.verdict }) },
    ...(hasSteps ? [{ title: "Step", show: (/** @type {RunCheck} */ one) => (one.attempt > 1 ? fragment(String(one.step), small({ class: "faint" }, ` attempt ${one.attempt}`)) : String(one.step)) }] : []),
    ...(isOfRun ? [{ title: "At", show: (/** @type {RunCheck} */ one) => span(null, pointOf(one.point), one.call === null || one.call === undefined ? null : small({ class: "faint" }, ` ${one.call + 1}`)), from: /** @type {const} */ ("middle"), wraps: true }] : []),
    { title: "Origin", show: (one) => originOf(one, own), from: "middle", wraps: true },
    { title: "Reason", show: reasonOf, from: "middle", wraps: true },
    { title: "Took", show: (one) => took(one.durationUs), isNumber: true, from: "wide" },
  ];
  return h(Table, { label, columns, isPlain: true, ...(list ? { list } : { rows }), rowKey: (one) => (isOfRun ? `${one.step} ${one.attempt} ${one.ordinal}` : `${rows?.indexOf(one)}`), empty });
}
