/** The checks of a step of a run: those that did not let something pass as it was, and in a fold all of them. */

import { api } from "../api.js";
import { useResource } from "../resource.js";
import { h, tags, useState } from "../ui.js";
import { Checks } from "./check-table.js";
import { Empty, Failure, Loading } from "./states.js";

/** @import { RunCheck } from "agent-runtime/types" */

const { details, div, h3, summary } = tags;

/** Of more the page of the run's checks tells. */
const MOST = 1000;

/** @param {string | null} key @param {string} runId @param {number} step */
function useChecks(key, runId, step) {
  return useResource(key, async (options) => {
    /** @type {RunCheck[]} */
    const found = [];
    for await (const one of api.runs.checks.list(runId, { order: "asc", limit: 200 }, options)) {
      if (one.step > step || found.length >= MOST) break;
      if (one.step === step) found.push(one);
    }
    return found;
  });
}

/** @param {{ runId: string, step: number, noted: number, isDone: boolean }} props `noted`: how many events told of a check; `isDone`: the step is */
export function StepChecks({ runId, step, noted, isDone }) {
  const [isOpen, setOpen] = useState(false);
  const read = useChecks(noted || isOpen ? `checks ${runId} ${step} ${noted} ${isDone}` : null, runId, step);
  const grave = read.data?.filter((one) => one.verdict !== "allow") ?? [];
  const shown = read.error ? h(Failure, { error: read.error, retry: read.reload }) : h(Loading, { lines: 2 });
  const empty = h(Empty, { title: "No check was made of this step." });
  return div(
    { class: "part" },
    noted ? h3(null, "Checks") : null,
    noted ? (read.data ? h(Checks, { label: "Checks that did not let something pass as it was", rows: grave, isOfRun: true, empty }) : shown) : null,
    details({ open: isOpen, onToggle: (event) => setOpen(event.currentTarget.open) }, summary(null, "All checks of the step"), isOpen ? (read.data ? h(Checks, { label: "All checks of the step", rows: read.data, isOfRun: true, empty }) : shown) : null),
  );
}
