/**
 * A project: what lies in it, and who may do what (specification 2.2 to 2.5, 4.3 and 4.5).
 *
 * Who may work in it sees the access list, with every way in; its admins change the members. Who may read it alone sees their
 * own ways in. A team's role is shown and not changed: that is for the API.
 */

import { api } from "../api.js";
import { FormDialog, confirm } from "../components/dialog.js";
import { Field, faultAt } from "../components/field.js";
import { Id } from "../components/id.js";
import { Menu } from "../components/menu.js";
import { useNames, Name } from "../components/names.js";
import { PageHead, Unread } from "../components/page-head.js";
import { FactsLine, Section } from "../components/section.js";
import { State } from "../components/state.js";
import { Empty, Failure, Loaded } from "../components/states.js";
import { announce } from "../components/status.js";
import { Table } from "../components/table.js";
import { Tabs } from "../components/tabs.js";
import { Duration, Time } from "../components/time.js";
import { Ways } from "../components/ways.js";
import { dollars } from "../number.js";
import { may, ownWays } from "../permit.js";
import { useAct, useResource } from "../resource.js";
import { href } from "../route.js";
import { serverNow } from "../time.js";
import { fragment, h, tags, useState } from "../ui.js";
import { Access } from "./project-access.js";
import { ProjectPolicy } from "./policies.js";

/** @import { Agent, Project, Run } from "agent-runtime/types" */

const { a, button, div } = tags;

const DAY_MS = 86_400_000;

/** @param {{ projectId: string, tab?: string }} props */
export default function ProjectPage({ projectId, tab = "overview" }) {
  const project = useResource(`project ${projectId}`, (options) => api.projects.get(projectId, options));
  const crumbs = [{ title: "Projects", href: href("projects") }];
  if (!project.data) return h(Unread, { title: "Project", crumbs, of: project, notFound: "No project has this id, or you may not read it." });
  const base = `projects/${projectId}`;
  return div(
    null,
    h(Head, { project: project.data, crumbs, onChange: project.set }),
    h(Tabs, {
      label: "Parts of the project",
      tabs: [
        { title: "Overview", href: href(base), isCurrent: tab === "overview" },
        { title: "Access", href: href(`${base}/access`), isCurrent: tab === "access" },
        { title: "Policy", href: href(`${base}/policy`), isCurrent: tab === "policy" },
        ...["Agents", "Flows", "Tools", "Usage"].map((title) => ({ title, href: href(title.toLowerCase(), { project: projectId }), isCurrent: false })),
      ],
    }),
    tab === "access" ? h(Access, { project: project.data, key: projectId }) : tab === "policy" ? h(ProjectPolicy, { project: project.data, key: projectId }) : h(Overview, { project: project.data, key: projectId }),
  );
}

/** @param {{ project: Project, crumbs: { title: string, href: string }[], onChange: (project: Project) => void }} props */
function Head({ project, crumbs, onChange }) {
  const [isNaming, setNaming] = useState(false);
  const back = useAct(async () => {
    onChange(await api.projects.unarchive(project.id));
    announce("In use again");
  });
  const isAdmin = may("admin", "project", { projectId: project.id });
  const archive = () =>
    confirm({
      title: `Archive ${project.name}?`,
      says: "Lists leave it and its agents out, and nothing new is made or started in it. Runs under way go on. You can bring it back.",
      act: "Archive the project",
      run: async () => {
        onChange(await api.projects.archive(project.id));
        announce("Archived");
      },
    });
  return fragment(
    h(PageHead, {
      title: project.name,
      crumbs,
      state: project.archivedAt ? h(State, { state: "archived" }) : null,
      actions: isAdmin
        ? [
            project.archivedAt
              ? button({ key: "back", type: "button", disabled: back.isBusy, onClick: () => back.run() }, "Bring it back")
              : h(Menu, { key: "more", label: "More acts", face: "More", items: [{ title: "Archive …", isDanger: true, run: archive }] }),
            button({ key: "name", type: "button", onClick: () => setNaming(true) }, "Rename"),
          ]
        : undefined,
    }),
    h(Failure, { error: back.error }),
    isNaming ? h(Rename, { title: `Rename ${project.name}`, name: project.name, onClose: () => setNaming(false), save: async (name) => onChange(await api.projects.update(project.id, { name })) }) : null,
  );
}

/** @param {{ title: string, name: string, save: (name: string) => Promise<unknown>, onClose: () => void }} props */
export function Rename({ title, name: before, save, onClose }) {
  const [name, setName] = useState(before);
  return h(FormDialog, {
    title,
    act: "Rename",
    isReady: Boolean(name.trim()) && name.trim() !== before,
    onClose,
    onSubmit: async () => {
      await save(name.trim());
      announce("Renamed");
    },
    fields: (error) => h(Field, { label: "Name", value: name, onInput: setName, most: 200, isRequired: true, autofocus: true, autoComplete: "off", error: faultAt(error, "name") }),
  });
}

/** @param {{ project: Project }} props */
function Overview({ project }) {
  const of = { projectId: project.id };
  const runs = useResource(`last runs ${project.id}`, (options) => api.runs.list({ ...of, limit: 5, order: "desc" }, options), { live: ["run"] });
  const from = new Date(serverNow() - 7 * DAY_MS).toISOString();
  const used = useResource(`cost ${project.id}`, (options) => api.usage.sum({ ...of, from }, options));
  const agents = useResource(`agents ${project.id}`, (options) => api.agents.list({ ...of, limit: 50 }, options));
  const names = useNames(["user"]);
  const own = ownWays(project.id);
  const agentNames = new Map((agents.data?.data ?? []).map((agent) => [agent.id, agent.name]));
  return div(
    null,
    h(FactsLine, {
      facts: [
        ["Your role", own?.role ?? "–"],
        ["By", own ? h(Ways, { via: own.via }) : undefined],
        ["Cost of 7 days", used.data ? dollars(used.data.data[0]?.costUsd ?? 0) : undefined],
        ["Made", h(Time, { at: project.createdAt })],
        ["By whom", h(Name, { id: project.createdBy, names })],
        ["Archived", project.archivedAt ? h(Time, { at: project.archivedAt }) : undefined],
        ["Id", h(Id, { id: project.id, what: "project" })],
      ],
    }),
    div(
      { class: "stack" },
      h(Section, { title: "Last runs", isFlush: true, actions: a({ class: "button", href: href("runs", { project: project.id }) }, "All runs") }, h(Loaded, {
        of: runs,
        show: (/** @type {any} */ page) =>
          h(Table, {
            label: "The last runs of the project",
            rows: page.data,
            rowHref: (/** @type {Run} */ run) => href(`runs/${run.id}`),
            columns: [
              { title: "Run", show: (/** @type {Run} */ run) => (run.agent ? `${agentNames.get(run.agent.id) ?? "Agent"} ${run.agent.version}` : `${run.flowId} ${run.flowVersion}`) },
              { title: "State", show: (/** @type {Run} */ run) => h(State, { state: run.status }) },
              { title: "Started (UTC)", show: (/** @type {Run} */ run) => h(Time, { at: run.createdAt, short: true }), from: "middle" },
              { title: "Took", show: (/** @type {Run} */ run) => h(Duration, { from: run.startedAt ?? run.createdAt, to: run.completedAt }), isNumber: true, from: "wide" },
            ],
            empty: h(Empty, { title: "No run yet." }, "An app, agent-runtime run or POST /v1/runs starts one."),
          }),
      })),
      h(Section, { title: "Agents", isFlush: true, actions: a({ class: "button", href: href("agents", { project: project.id }) }, "All agents") }, h(Loaded, {
        of: agents,
        show: (/** @type {any} */ page) =>
          h(Table, {
            label: "Agents of the project",
            rows: page.data,
            rowHref: (/** @type {Agent} */ agent) => href(`agents/${agent.id}`),
            columns: [
              { title: "Agent", show: (/** @type {Agent} */ agent) => agent.name },
              { title: "Live", show: (/** @type {Agent} */ agent) => agent.liveVersion ?? "–" },
              { title: "Newest", show: (/** @type {Agent} */ agent) => agent.latestVersion ?? "–", from: "middle" },
            ],
            empty: h(Empty, { title: "No agent yet." }, "An agent is a model with instructions and tools."),
          }),
      })),
    ),
  );
}
