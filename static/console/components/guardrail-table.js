/** A list of guardrails in plain words, in the order in which they judge: of a policy, or of an agent's version. */

import { counted } from "../number.js";
import { fragment, h, tags } from "../ui.js";
import { Table } from "./table.js";

/** @import { Guardrail } from "agent-runtime/types" */
/** @import { Child } from "../ui.js" */

const { code, small, span } = tags;

/** The points, in the order in which a turn comes to them. @type {[string, string][]} */
export const POINTS = [
  ["input", "The message"],
  ["tool.arguments", "Arguments of a call"],
  ["tool.result", "Result of a call"],
  ["output", "The model's text"],
];

/** @type {Record<string, string>} */
const LOOKS_FOR = {
  pattern: "Patterns",
  pii: "Personal data",
  secrets: "Credentials",
  "tool-arguments": "Arguments that do not fit a schema",
  links: "Links",
  "hidden-text": "Hidden characters",
};
/** @type {Record<string, string>} */
const ACTIONS = { block: "Block", redact: "Redact", approve: "Ask a reviewer" };
/** @type {Record<string, string>} */
const ON_BLOCK = { fail: "The run fails", answer: "A fixed answer", tell: "The model is told", retry: "The model is asked again" };
/** @type {Record<string, string>} */
const ON_ERROR = { block: "Block", "allow-unsafely": "Goes on unchecked" };

/** A point in words; one that is not known as it is. @param {string} point */
export const pointOf = (point) => POINTS.find(([name]) => name === point)?.[1] ?? point;

/** When readers of a stream see what is judged at `output`. @param {string} streaming */
export const streamingOf = (streaming) => (streaming === "held" ? "After the verdict" : streaming === "unchecked" ? "Before the verdict, unchecked" : streaming);

/** What it looks for in particular, in a few words. @param {Guardrail} one */
function particularOf({ builtin, config }) {
  if (builtin === "pattern") return `${config?.mustMatch ? "none matches of " : ""}${counted(config?.patterns?.length ?? 0, "pattern")}`;
  if (builtin === "pii") return config?.kinds?.length ? config.kinds.join(", ") : "of every kind";
  if (builtin === "links") return config?.hosts?.length ? `to other hosts than ${config.hosts.slice(0, 3).join(", ")}${config.hosts.length > 3 ? ` and ${config.hosts.length - 3} more` : ""}` : "to any host";
  if (builtin === "tool-arguments") return config?.tool ? `of ${config.tool}` : "of every tool";
  return "";
}

/** What becomes of a block; where nothing is said, what the points have. @param {Guardrail} one */
function onBlockOf(one) {
  if (one.action !== "block") return "–";
  if (one.onBlock === "retry") return `The model is asked again, ${counted(one.retries ?? 1, "time")} at most`;
  if (one.onBlock) return ON_BLOCK[one.onBlock] ?? one.onBlock;
  const tells = one.at.filter((point) => point.startsWith("tool."));
  return tells.length === one.at.length ? "The model is told" : tells.length ? "The run fails; of calls the model is told" : "The run fails";
}

/** @type {import("./table.js").Column[]} */
const COLUMNS = [
  { title: "Name", show: ({ one }) => code(null, one.name ?? one.builtin), wraps: true },
  { title: "Looks for", show: ({ one }) => fragment(span(null, LOOKS_FOR[one.builtin] ?? one.builtin), " ", small({ class: "faint" }, particularOf(one))), wraps: true },
  { title: "At", show: ({ one }) => one.at.map(pointOf).join(", "), from: "middle", wraps: true },
  { title: "Action", show: ({ one }) => ACTIONS[one.action] ?? one.action },
  { title: "On block", show: ({ one }) => onBlockOf(one), from: "wide", wraps: true },
  { title: "On error", show: ({ one }) => ON_ERROR[one.onError ?? "block"] ?? one.onError, from: "wide", wraps: true },
];

/** @param {{ label: string, guardrails: Guardrail[], empty: Child }} props */
export function Guardrails({ label, guardrails, empty }) {
  return h(Table, { label, columns: COLUMNS, isPlain: true, rows: guardrails.map((one, at) => ({ one, at })), rowKey: ({ at }) => String(at), empty });
}
