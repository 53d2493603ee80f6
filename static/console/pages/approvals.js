/** Approvals: all that the reader's roles open, by how they stand; those that wait unless asked otherwise. */

import { api } from "../api.js";
import { Filters, clearFilters, filtered, isFiltered } from "../components/filters.js";
import { Name, useNames } from "../components/names.js";
import { PageHead } from "../components/page-head.js";
import { Pager, useList } from "../components/pager.js";
import { State } from "../components/state.js";
import { Empty } from "../components/states.js";
import { Table } from "../components/table.js";
import { Time } from "../components/time.js";
import { Until } from "../components/until.js";
import { chosenProject, href } from "../route.js";
import { permissions } from "../session.js";
import { h, tags } from "../ui.js";

/** @import { Approval } from "agent-runtime/types" */

const { button, div } = tags;

/** @returns {import("../components/filters.js").Filter[]} */
const filters = () => [
  { name: "status", label: "State", any: "Waiting", options: ["approved", "rejected", "escalated", "expired", "voided"].map((value) => ({ value, label: value.charAt(0).toUpperCase() + value.slice(1) })) },
  { name: "role", label: "Role", options: (permissions.value?.reviewerRoles ?? []).map((value) => ({ value, label: value })) },
  { name: "assignedTo", label: "Assigned to", options: [{ value: "me", label: "Me" }, { value: "none", label: "Nobody" }] },
  { name: "runId", label: "Run", placeholder: "Any run's id" },
];

export default function Approvals() {
  const [projects, people] = [useNames(["project"]), useNames(["user", "service-account"])];
  const shown = filters();
  const given = filtered(shown);
  const isWaiting = !given.status;
  const list = useList("approvals", { projectId: chosenProject.value, ...given }, (wanted, options) => api.approvals.list(wanted, options), { live: ["approval"] });
  return div(
    null,
    h(PageHead, { title: "Approvals" }),
    h(Filters, { filters: shown }),
    h(Table, {
      label: "Approvals, newest first",
      list,
      rowHref: (/** @type {Approval} */ row) => href(`approvals/${row.id}`),
      columns: [
        { title: "What is asked", show: (/** @type {Approval} */ row) => row.title },
        { title: "State", show: (/** @type {Approval} */ row) => h(State, { state: row.status }) },
        { title: "Role", show: (/** @type {Approval} */ row) => row.requiredRole, from: "middle" },
        { title: "Project", show: (/** @type {Approval} */ row) => projects.get(row.projectId)?.name ?? "–", from: "wide" },
        { title: "Assigned to", show: (/** @type {Approval} */ row) => h(Name, { id: row.assignedTo, names: people }), from: "wide", isSecond: true },
        { title: "Asked (UTC)", show: (/** @type {Approval} */ row) => h(Time, { at: row.createdAt, short: true }), from: "wide", isSecond: true },
        isWaiting ? { title: "Ends", show: (/** @type {Approval} */ row) => h(Until, { at: row.expiresAt }), from: "middle" } : { title: "Closed by", show: (/** @type {Approval} */ row) => h(Name, { id: row.decidedBy, names: people }), from: "middle" },
      ],
      empty: isFiltered(shown)
        ? h(Empty, { title: "No approval matches these filters.", action: button({ type: "button", onClick: () => clearFilters(shown) }, "Clear filters") })
        : h(Empty, { title: "No approval waits." }, "A flow asks by its task call: approval, and a tool by its field approval. Those that were decided stand under their state."),
    }),
    h(Pager, { list }),
  );
}
