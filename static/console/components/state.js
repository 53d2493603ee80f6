/** A state: a dot of a colour and a word, never the colour alone. What is not known is shown as its own word. */

import { tags } from "../ui.js";

/** @type {Record<string, [tone: string, word?: string]>} */
const TONES = {
  queued: ["idle"],
  running: ["busy"],
  waiting: ["wait"],
  completed: ["good"],
  failed: ["bad"],
  cancelled: ["idle"],
  approved: ["good"],
  rejected: ["bad"],
  escalated: ["idle"],
  expired: ["bad"],
  voided: ["idle", "void"],
  active: ["good"],
  deactivated: ["idle"],
  archived: ["idle"],
  erased: ["idle"],
  skipped: ["idle", "left out"],
  live: ["good"],
  delivered: ["good"],
  retrying: ["wait"],
  sending: ["busy", "being sent"],
  failing: ["bad"],
  allowed: ["good"],
  denied: ["bad"],
};

/** @param {{ state: string, word?: string, tone?: "good" | "bad" | "busy" | "wait" | "idle" }} props `word` in place of the state's own */
export function State({ state, word, tone }) {
  const [known, own] = TONES[state] ?? ["idle"];
  const text = word ?? own ?? state;
  return tags.span({ class: "state", "data-tone": tone ?? known }, text.charAt(0).toUpperCase() + text.slice(1));
}
