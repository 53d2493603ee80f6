/** Tools: what agents and flows of a project may call, by project. */

import { api } from "../api.js";
import { useNames } from "../components/names.js";
import { PageHead } from "../components/page-head.js";
import { Pager, useList } from "../components/pager.js";
import { useActs } from "../components/acts.js";
import { Empty } from "../components/states.js";
import { Table } from "../components/table.js";
import { may } from "../permit.js";
import { chosenProject, go, href } from "../route.js";
import { h, tags } from "../ui.js";

/** @import { Tool } from "agent-runtime/types" */
/** @import { Named } from "../components/names.js" */

const { a, code, div, span } = tags;

/** The first line of a description. @param {string} text */
const firstLine = (text) => text.trim().split("\n", 1)[0]?.slice(0, 90) ?? "";

/** What a call of it goes to. @param {Tool} tool @param {Map<string, Named>} names of agents */
export function target(tool, names) {
  const version = tool.agent?.version ?? tool.flow?.version;
  const which = tool.target === "http" ? null : span({ class: "faint" }, version ? ` ${version}` : " live version");
  if (tool.agent) return span(null, "agent ", names.get(tool.agent.id)?.name ?? "of the project", which);
  if (tool.flow) return span(null, "flow ", code(null, tool.flow.flowId), which);
  return code(null, tool.url);
}

/** @param {Map<string, Named>} names @returns {import("../components/table.js").Column[]} */
const columns = (names) => [
  { title: "Name", show: (/** @type {Tool} */ one) => code(null, one.name) },
  { title: "Calls", show: (/** @type {Tool} */ one) => target(one, names), from: "middle" },
  { title: "What it does", show: (/** @type {Tool} */ one) => firstLine(one.description), from: "wide", isSecond: true },
  { title: "Asks first", show: (/** @type {Tool} */ one) => (one.approval ? span({ class: "tag" }, one.approval.requiredRole ?? "standard") : span({ class: "faint" }, "–")) },
  { title: "Project", show: (/** @type {Tool} */ one) => names.get(one.projectId)?.name ?? "–", from: "wide", isSecond: true },
];

export default function Tools() {
  const project = chosenProject.value;
  const list = useList("tools", { projectId: project }, (wanted, options) => api.tools.list(wanted, options));
  const names = useNames(["project", "agent"], { projectId: project });
  const mayAdd = may("admin", "tool", project ? { projectId: project } : undefined);
  const to = href("tools/new", { project });
  useActs(mayAdd ? [{ title: "Register a tool", about: "Act", icon: "plus", run: () => go(to) }] : []);
  const add = mayAdd ? a({ class: "button primary", href: to }, "Register a tool") : null;
  return div(
    null,
    h(PageHead, { title: "Tools", lead: "An HTTP server, an agent or a flow: versions of agents and flows call them by name.", actions: list.rows?.length ? add : null }),
    h(Table, {
      label: "Tools, newest first",
      columns: columns(names),
      list,
      rowHref: (/** @type {Tool} */ one) => href(`tools/${one.id}`),
      empty: h(Empty, { title: project ? "This project has no tool yet." : "No tool yet.", action: add }, mayAdd ? "Register what an agent may call: a server of yours, another agent, a flow." : "An admin of the project registers what its agents may call."),
    }),
    h(Pager, { list }),
  );
}
