/** Projects: those that the caller may read, with the role that they have on each, and one to make. */

import { api } from "../api.js";
import { FormDialog } from "../components/dialog.js";
import { Field, Select, faultAt } from "../components/field.js";
import { Filters, filtered } from "../components/filters.js";
import { Id } from "../components/id.js";
import { PageHead } from "../components/page-head.js";
import { Pager, useList } from "../components/pager.js";
import { useActs } from "../components/acts.js";
import { Empty } from "../components/states.js";
import { announce } from "../components/status.js";
import { Table } from "../components/table.js";
import { Time } from "../components/time.js";
import { may, ownWays } from "../permit.js";
import { useResource } from "../resource.js";
import { go, href } from "../route.js";
import { refresh } from "../session.js";
import { fragment, h, tags, useState } from "../ui.js";

/** @import { Project } from "agent-runtime/types" */

const { button, div } = tags;

/** @type {import("../components/filters.js").Filter[]} */
const FILTERS = [{ name: "archived", label: "Show", any: "Those in use", options: [{ value: "true", label: "Archived ones" }] }];

/** @type {import("../components/table.js").Column[]} */
const COLUMNS = [
  { title: "Project", show: (/** @type {Project} */ project) => project.name },
  { title: "Your role", show: (/** @type {Project} */ project) => ownWays(project.id)?.role ?? "–" },
  { title: "Made (UTC)", show: (/** @type {Project} */ project) => h(Time, { at: project.createdAt, short: true }), from: "middle", isSecond: true },
  { title: "Id", show: (/** @type {Project} */ project) => h(Id, { id: project.id, what: "project" }), from: "wide", isSecond: true },
];

export default function Projects() {
  const [isMaking, setMaking] = useState(false);
  const { archived } = filtered(FILTERS);
  const list = useList("projects", { archived: archived === "true" }, (wanted, options) => api.projects.list(wanted, options));
  const mayMake = may("write", "tenant") || may("admin", "org");
  const make = mayMake ? button({ type: "button", class: "primary", onClick: () => setMaking(true) }, "Make a project") : null;
  useActs(mayMake ? [{ title: "Make a project", about: "Act", icon: "plus", run: () => setMaking(true) }] : []);
  return div(
    null,
    h(PageHead, { title: "Projects", lead: "A project holds agents, flows, tools and their runs. Who may do what is set on each.", actions: make }),
    h(Filters, { filters: FILTERS }),
    h(Table, {
      label: "Projects, newest first",
      columns: COLUMNS,
      list,
      rowHref: (/** @type {Project} */ project) => href(`projects/${project.id}`),
      empty: archived ? h(Empty, { title: "No project is archived." }) : h(Empty, { title: "No project yet.", action: make }, mayMake ? "Agents, flows and their runs lie in one." : "Ask an admin of a project, or of the tenant, for a role on one."),
    }),
    h(Pager, { list }),
    isMaking ? h(MakeProject, { onClose: () => setMaking(false) }) : null,
  );
}

/** @param {{ orgId?: string, onClose: () => void }} props `orgId`: in this org, without a choice */
export function MakeProject({ orgId: fixed, onClose }) {
  const [name, setName] = useState("");
  const orgs = useResource(fixed ? null : "orgs to choose", (options) => api.orgs.list({ limit: 200 }, options));
  const options = [
    ...(may("write", "tenant") ? [{ value: "", label: "In no org" }] : []),
    ...(orgs.data?.data ?? []).filter((org) => may("admin", "org", { orgId: org.id })).map((org) => ({ value: org.id, label: org.name })),
  ];
  const [chosen, setChosen] = useState(/** @type {string | undefined} */ (undefined));
  const orgId = fixed ?? chosen ?? options[0]?.value ?? "";
  return h(FormDialog, {
    title: "Make a project",
    act: "Make the project",
    isReady: Boolean(name.trim()),
    onClose,
    onSubmit: async () => {
      const body = { name: name.trim() };
      const made = orgId ? await api.orgs.projects.create(orgId, body) : await api.projects.create(body);
      await refresh();
      announce("Made");
      go(href(`projects/${made.id}`));
    },
    fields: (error) =>
      fragment(
        h(Field, { label: "Name", hint: "You become its owner.", value: name, onInput: setName, most: 200, isRequired: true, autofocus: true, autoComplete: "off", error: faultAt(error, "name") }),
        fixed || options.length < 2 ? null : h(Select, { label: "Org", hint: "The org's admins are admins of the project.", value: orgId, onInput: setChosen, options }),
      ),
  });
}
