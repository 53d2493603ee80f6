/** Tools: what agents and flows of a project may call, by project. */

import { api } from "../api.js";
import { PageHead } from "../components/page-head.js";
import { Pager, useList } from "../components/pager.js";
import { useActs } from "../components/acts.js";
import { Empty } from "../components/states.js";
import { Table } from "../components/table.js";
import { may } from "../permit.js";
import { useResource } from "../resource.js";
import { go, href, query } from "../route.js";
import { h, tags } from "../ui.js";

/** @import { Tool } from "agent-runtime/types" */

const { a, code, div, span } = tags;

/** The first line of a description. @param {string} text */
const firstLine = (text) => text.trim().split("\n", 1)[0]?.slice(0, 90) ?? "";

/** What a call of it goes to. @param {Tool} tool @param {Map<string, string>} [agents] their names */
export function target(tool, agents) {
  const version = tool.agent?.version ?? tool.flow?.version;
  const which = tool.target === "http" ? null : span({ class: "faint" }, version ? ` ${version}` : " live version");
  if (tool.agent) return span(null, "agent ", agents?.get(tool.agent.id) ?? "of the project", which);
  if (tool.flow) return span(null, "flow ", code(null, tool.flow.flowId), which);
  return code(null, tool.url);
}

/** @param {Map<string, string>} projects @param {Map<string, string>} agents @returns {import("../components/table.js").Column[]} */
const columns = (projects, agents) => [
  { title: "Name", show: (/** @type {Tool} */ one) => code(null, one.name) },
  { title: "Calls", show: (/** @type {Tool} */ one) => target(one, agents), from: "middle" },
  { title: "What it does", show: (/** @type {Tool} */ one) => firstLine(one.description), from: "wide", isSecond: true },
  { title: "Asks first", show: (/** @type {Tool} */ one) => (one.approval ? span({ class: "tag" }, one.approval.requiredRole ?? "standard") : span({ class: "faint" }, "–")) },
  { title: "Project", show: (/** @type {Tool} */ one) => projects.get(one.projectId) ?? "–", from: "wide", isSecond: true },
];

/** The names of the projects and of the agents of a project, or of all. @param {string | undefined} project */
export function useNames(project) {
  const projects = useResource("projects' names of tools", (options) => api.projects.list({ limit: 200 }, options));
  const agents = useResource(`agents' names ${project ?? ""}`, (options) => api.agents.list({ projectId: project, limit: 200 }, options));
  return { projects: new Map((projects.data?.data ?? []).map((one) => [one.id, one.name])), agents: new Map((agents.data?.data ?? []).map((one) => [one.id, one.name])) };
}

export default function Tools() {
  const project = query.value.project;
  const list = useList("tools", { projectId: project }, (wanted, options) => api.tools.list(wanted, options));
  const { projects, agents } = useNames(project);
  const mayAdd = may("admin", "tool", project ? { projectId: project } : undefined);
  const to = href("tools/new", { project });
  useActs(mayAdd ? [{ title: "Register a tool", about: "Act", icon: "plus", run: () => go(to) }] : []);
  const add = mayAdd ? a({ class: "button primary", href: to }, "Register a tool") : null;
  return div(
    null,
    h(PageHead, { title: "Tools", lead: "An HTTP server, an agent or a flow: versions of agents and flows call them by name.", actions: list.rows?.length ? add : null }),
    h(Table, {
      label: "Tools, newest first",
      columns: columns(projects, agents),
      rows: list.rows,
      rowHref: (/** @type {Tool} */ one) => href(`tools/${one.id}`, { project }),
      isBusy: list.isLoading && !list.rows,
      error: list.error,
      retry: list.reload,
      empty: h(Empty, { title: project ? "This project has no tool yet." : "No tool yet.", action: add }, mayAdd ? "Register what an agent may call: a server of yours, another agent, a flow." : "An admin of the project registers what its agents may call."),
    }),
    h(Pager, { list }),
  );
}
