/**
 * A flow as it is drawn: tasks in their order, lists in lists, branches beside each other, and what leads elsewhere than to
 * the next task. A run colours it.
 *
 * Guarantees: the drawing is a list, so that it is read in order; a state is a word as well as a colour.
 */

import { href } from "../route.js";
import { duration } from "../time.js";
import { classes, h, tags } from "../ui.js";
import { Icon } from "./icon.js";
import { State } from "./state.js";

/** @import { FlowEdge, FlowNode } from "agent-runtime/types" */

const { a, div, li, ol, small, span } = tags;

const ICONS = /** @type {Record<string, string>} */ ({ agent: "agents", tool: "tools", http: "webhooks", wait: "clock", approval: "approvals", guardrail: "approvals", run: "flows", switch: "flows", for: "again", fork: "flows", try: "secrets", raise: "warning", set: "check", do: "menu", list: "menu" });
const KINDS = /** @type {Record<string, string>} */ ({
  do: "list of tasks",
  set: "makes a value",
  switch: "chooses what follows",
  for: "for each item",
  fork: "beside each other",
  try: "handles errors",
  raise: "raises an error",
  wait: "waits",
  http: "request",
  agent: "agent",
  tool: "tool",
  approval: "asks a person",
  guardrail: "checks a text",
  run: "flow",
});
const LISTS = /** @type {Record<string, string>} */ ({ try: "Tried", catch: "On an error" });

/**
 * What a run did at a task.
 * @typedef {object} Done
 * @property {"running" | "waiting" | "completed" | "failed" | "skipped"} state
 * @property {number} [ms] how long it took
 * @property {number} [times] how often it began
 * @property {string} [says] why it failed
 * @property {{ runId: string, index: number, status?: string }[]} [children] the runs that it began
 */

/** @param {{ graph: FlowNode, doneOf?: (path: string) => Done | undefined, label?: string }} props `doneOf`: what a run did at a task's path */
export function FlowTree({ graph, doneOf, label = "The tasks of the flow, in order" }) {
  return div({ class: "flow-tree", role: "group", "aria-label": label, tabIndex: 0, "data-run": doneOf ? true : undefined }, h(List, { of: graph, doneOf }));
}

/** @param {{ of: FlowNode, doneOf?: (path: string) => Done | undefined }} props */
function List({ of, doneOf }) {
  const isFork = of.type === "fork";
  return ol(
    { class: isFork ? "branches" : "tasks" },
    of.children.map((node, index) => h(Task, { key: node.path, node, edges: isFork ? [] : elsewhere(of, node, of.children[index + 1]), doneOf, branch: isFork ? doneOf?.(of.path)?.children?.find((one) => one.index === index) : undefined })),
  );
}

/** What leads from a task elsewhere than to the next one. @param {FlowNode} list @param {FlowNode} node @param {FlowNode | undefined} next @returns {FlowEdge[]} */
function elsewhere(list, node, next) {
  const all = list.edges.filter((edge) => edge.from === node.name);
  return all.filter((edge) => edge.label || (next ? edge.to !== next.name : edge.to !== "exit"));
}

const TO = /** @type {Record<string, string>} */ ({ exit: "out of the list", end: "end of the run" });

/** @param {{ node: FlowNode, edges: FlowEdge[], doneOf?: (path: string) => Done | undefined, branch?: { runId: string, status?: string } }} props */
function Task({ node, edges, doneOf, branch }) {
  const done = doneOf?.(node.path) ?? (branch ? /** @type {Done} */ ({ state: branch.status ?? "running" }) : undefined);
  const isList = node.type === "list";
  // What stands in a branch or an iteration is done by a run of its own.
  const isElsewhere = Boolean(branch ?? (node.type === "for" && done?.children?.length));
  const [begun, ended] = [done?.children ?? [], (done?.children ?? []).filter((one) => one.status)];
  const run = branch ?? (node.type === "agent" || node.type === "run" || node.type === "tool" ? done?.children?.at(-1) : undefined);
  return li(
    { "data-state": done?.state ?? (doneOf && !isList ? "none" : undefined), class: classes(node.children.length > 0 && "holds", isList && "part-of") },
    isList
      ? div({ class: "list-name" }, LISTS[node.name] ?? node.name)
      : div(
          { class: "task" },
          div(
            { class: "task-name" },
            h(Icon, { name: ICONS[node.type] ?? "right" }),
            span({ class: "name" }, node.name),
            small({ class: "faint" }, node.target ? `${KINDS[node.type] ?? node.type}: ${node.target}` : (KINDS[node.type] ?? node.type)),
            done ? h(State, { state: done.state }) : null,
            done?.times && done.times > 1 ? small({ class: "faint" }, `${done.times} times`) : null,
            done?.ms !== undefined ? small({ class: "faint" }, duration(done.ms)) : null,
            node.type === "for" && begun.length ? small({ class: "faint" }, `${ended.length} of ${begun.length} done`) : null,
            run ? a({ href: href(`runs/${run.runId}`) }, "Its run") : null,
          ),
          done?.says ? div({ class: "says" }, done.says) : null,
          edges.length ? div({ class: "edges" }, edges.map((edge, key) => span({ key, class: "edge" }, edge.label ? span(null, edge.label) : null, span({ "aria-hidden": "true" }, " → "), span({ class: "hidden" }, " leads to "), TO[edge.to] ?? edge.to))) : null,
        ),
    node.children.length ? h(List, { of: node, doneOf: isElsewhere ? undefined : doneOf }) : null,
  );
}
