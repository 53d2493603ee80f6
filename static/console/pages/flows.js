/** Flows: every one that the reader may read, with its live version. */

import { api } from "../api.js";
import { Filters, clearFilters, filtered, isFiltered } from "../components/filters.js";
import { Icon } from "../components/icon.js";
import { useNames } from "../components/names.js";
import { PageHead } from "../components/page-head.js";
import { Pager, useList } from "../components/pager.js";
import { State } from "../components/state.js";
import { Empty } from "../components/states.js";
import { Table } from "../components/table.js";
import { Time } from "../components/time.js";
import { may } from "../permit.js";
import { chosenProject, href } from "../route.js";
import { h, tags } from "../ui.js";

/** @import { Flow } from "agent-runtime/types" */

const { a, button, div, span } = tags;

/** @type {import("../components/filters.js").Filter[]} */
const FILTERS = [
  { name: "flowId", label: "Flow", placeholder: "billing.refund" },
  { name: "archived", label: "Show", any: "In use", options: [{ value: "true", label: "Archived" }] },
];

export default function Flows() {
  const project = chosenProject.value;
  const projects = useNames(["project"]);
  const list = useList("flows", { projectId: project, ...filtered(FILTERS) }, (wanted, options) => api.flows.list(wanted, options), { live: ["flow"] });
  const push = may("admin", "project", { projectId: project || undefined }) ? a({ class: "button primary", href: href("flows/new", { project }) }, h(Icon, { name: "plus" }), "New flow") : null;
  return div(
    null,
    h(PageHead, { title: "Flows", actions: push }),
    h(Filters, { filters: FILTERS }),
    h(Table, {
      label: "Flows, newest first",
      list,
      rowHref: (/** @type {Flow} */ row) => href(`flows/${row.id}`),
      columns: [
        { title: "Flow", show: (/** @type {Flow} */ row) => row.flowId },
        { title: "Live", show: (/** @type {Flow} */ row) => (row.archivedAt ? h(State, { state: "archived" }) : row.liveVersion ? h(State, { state: "live", word: row.liveVersion }) : span({ class: "faint" }, "none: the newest runs")) },
        { title: "Newest", show: (/** @type {Flow} */ row) => row.latestVersion ?? "–", from: "middle" },
        { title: "What it does", show: (/** @type {Flow} */ row) => row.title || row.description, from: "wide", isSecond: true },
        { title: "Project", show: (/** @type {Flow} */ row) => projects.get(row.projectId)?.name ?? "–", from: "wide" },
        { title: "Changed (UTC)", show: (/** @type {Flow} */ row) => h(Time, { at: row.updatedAt, short: true }), from: "wide", isSecond: true },
      ],
      empty: isFiltered(FILTERS)
        ? h(Empty, { title: "No flow matches these filters.", action: button({ type: "button", onClick: () => clearFilters(FILTERS) }, "Clear filters") })
        : h(Empty, { title: "No flow yet.", action: push }, "A flow describes a process once: call a tool, let an agent assess, ask a person, wait, branch, repeat."),
    }),
    h(Pager, { list }),
  );
}
