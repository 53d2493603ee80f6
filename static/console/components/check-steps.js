/** The steps of a check, such as that of an identity provider: whether each is good, what was found, and what to do. */

import { fragment, h, tags } from "../ui.js";
import { State } from "./state.js";
import { Table } from "./table.js";

/** A step of any check. @typedef {{ step: string, ok?: boolean | null, value: string, whatToDo?: string | null }} Step */

const { p } = tags;

/** @param {{ label: string, steps: Step[], titles: Record<string, string> }} props `titles`: what each step is about */
export function CheckSteps({ label, steps, titles }) {
  return h(Table, {
    label,
    rows: steps,
    rowKey: (/** @type {Step} */ step) => step.step,
    columns: [
      { title: "Step", show: (/** @type {Step} */ step) => titles[step.step] ?? step.step },
      { title: "State", show: (/** @type {Step} */ step) => h(State, step.ok === null ? { state: "skipped", word: "not looked at" } : step.ok ? { state: "active", word: "good" } : { state: "failing", word: "fails" }) },
      { title: "What was found", wraps: true, show: (/** @type {Step} */ step) => fragment(step.value, step.whatToDo ? p({ class: "faint" }, step.whatToDo) : null) },
    ],
  });
}
