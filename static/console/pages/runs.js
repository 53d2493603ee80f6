/** Runs: every run that the caller may read, newest first, with its filters in the address. */

import { api } from "../api.js";
import { Filters, clearFilters, filtered, inUtc, isFiltered } from "../components/filters.js";
import { useNames } from "../components/names.js";
import { PageHead } from "../components/page-head.js";
import { Pager, useList } from "../components/pager.js";
import { State } from "../components/state.js";
import { Empty } from "../components/states.js";
import { Table } from "../components/table.js";
import { Duration, Time } from "../components/time.js";
import { shortId } from "../components/id.js";
import { dollars } from "../number.js";
import { chosenProject, href } from "../route.js";
import { h, tags } from "../ui.js";

/** @import { Run } from "agent-runtime/types" */
/** @import { Named } from "../components/names.js" */

const { button, div, span } = tags;

const one = (/** @type {string[]} */ ...values) => values.map((value) => ({ value, label: value.charAt(0).toUpperCase() + value.slice(1) }));

/** @type {import("../components/filters.js").Filter[]} */
const FILTERS = [
  { name: "status", label: "State", options: one("queued", "running", "waiting", "completed", "failed", "cancelled") },
  { name: "waitingFor", label: "Waits for", options: one("approval", "children", "timer", "retry", "model") },
  { name: "origin", label: "Started by", options: [{ value: "app", label: "An app" }, { value: "command-line", label: "The command line" }, { value: "run", label: "Another run" }] },
  { name: "children", label: "Child runs", options: [{ value: "true", label: "Listed too" }] },
  { name: "agentId", label: "Agent", placeholder: "Any agent's id" },
  { name: "flowId", label: "Flow", placeholder: "billing.refund" },
  { name: "via", label: "Version", options: one("live", "latest", "explicit", "conversation") },
  { name: "dryRun", label: "Dry run", options: [{ value: "true", label: "Yes" }, { value: "false", label: "No" }] },
  { name: "label", label: "Label", placeholder: "key:value" },
  { name: "from", label: "From (UTC)", type: "datetime-local" },
  { name: "to", label: "Before (UTC)", type: "datetime-local" },
];

/** The name of the task at a path. @param {string} path */
const taskOf = (path) => path.slice(path.lastIndexOf("/") + 1).replaceAll("~1", "/").replaceAll("~0", "~");

/** What runs: the flow, or the agent and its version. @param {Run} run @param {Map<string, Named>} agents */
function what(run, agents) {
  if (run.agent) return `${agents.get(run.agent.id)?.name ?? "Agent"} ${run.agent.version}`;
  const flow = `${run.flowId} ${run.flowVersion}`;
  return run.branch ? `${flow} (${taskOf(run.branch.path)} ${run.branch.index + 1})` : flow;
}

/** @param {Map<string, Named>} agents @returns {import("../components/table.js").Column[]} */
const columns = (agents) => [
  { title: "Run", show: (/** @type {Run} */ run) => what(run, agents) },
  { title: "State", show: (/** @type {Run} */ run) => h(State, { state: run.status, word: run.status === "waiting" && run.waitingFor ? `waiting: ${run.waitingFor}` : undefined }) },
  { title: "Started (UTC)", show: (/** @type {Run} */ run) => h(Time, { at: run.createdAt, short: true }), from: "middle" },
  { title: "Took", show: (/** @type {Run} */ run) => h(Duration, { from: run.startedAt ?? run.createdAt, to: run.completedAt }), isNumber: true },
  { title: "Calls", show: (/** @type {Run} */ run) => run.usage?.calls ?? 0, isNumber: true, from: "wide" },
  { title: "Child runs", show: (/** @type {Run} */ run) => run.childCount || "–", isNumber: true, from: "wide" },
  { title: "Cost", show: (/** @type {Run} */ run) => dollars(run.usage?.costUsd ?? 0), isNumber: true, from: "wide" },
  { title: "Started by", show: (/** @type {Run} */ run) => span(null, { app: "App", "command-line": "Command line", run: "Run" }[String(run.origin)] ?? run.origin, run.dryRun ? span({ class: "tag" }, "dry run") : null), from: "wide", isSecond: true },
  { title: "Id", show: (/** @type {Run} */ run) => span({ class: "mono", title: run.id }, shortId(run.id)), from: "widest", isSecond: true },
];

export default function Runs() {
  const project = chosenProject.value;
  const { label, from, to, ...filters } = filtered(FILTERS);
  const list = useList("runs", { projectId: project, ...filters, from: inUtc(from), to: inUtc(to), label: label ? [label] : undefined }, (wanted, options) => api.runs.list(wanted, options), { live: ["run"] });
  const agents = useNames(["agent"], { projectId: project });
  return div(
    null,
    h(PageHead, { title: "Runs" }),
    h(Filters, { filters: FILTERS }),
    h(Table, {
      label: "Runs, newest first",
      columns: columns(agents),
      list,
      rowHref: (/** @type {Run} */ run) => href(`runs/${run.id}`),
      empty: isFiltered(FILTERS)
        ? h(Empty, { title: "No run matches these filters.", action: button({ type: "button", onClick: () => clearFilters(FILTERS) }, "Clear filters") })
        : h(Empty, { title: "No run yet." }, "Runs appear here when an app or the command line starts one: agent-runtime run, or POST /v1/runs."),
    }),
    h(Pager, { list }),
  );
}
