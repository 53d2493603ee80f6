/** An agent: which version is live, its versions, comparing two of them, and what it is called. */

import { api } from "../api.js";
import { confirm, FormDialog } from "../components/dialog.js";
import { Banner } from "../components/banner.js";
import { Field, faultAt } from "../components/field.js";
import { Id } from "../components/id.js";
import { Menu } from "../components/menu.js";
import { Person, ProjectLink, usePeopleNames, useProjectNames } from "../components/named.js";
import { PageHead } from "../components/page-head.js";
import { Pager, useList } from "../components/pager.js";
import { Promoted, usePromotion } from "../components/promotion.js";
import { FactsSection, Section } from "../components/section.js";
import { State } from "../components/state.js";
import { Empty, Failure, Loading } from "../components/states.js";
import { announce } from "../components/status.js";
import { Table } from "../components/table.js";
import { Time } from "../components/time.js";
import { may } from "../permit.js";
import { useResource } from "../resource.js";
import { go, href } from "../route.js";
import { fragment, h, tags, useState } from "../ui.js";

/** @import { Agent, ListedAgentVersion } from "agent-runtime/types" */

const { a, button, div, span } = tags;

const CRUMBS = [{ title: "Agents", href: href("agents") }];

/** @param {{ agentId: string }} props */
export default function AgentPage({ agentId }) {
  const read = useResource(`agent ${agentId}`, (options) => api.agents.get(agentId, options), { live: ["agent"] });
  const agent = read.data;
  if (!agent) return div(null, h(PageHead, { title: "Agent", crumbs: CRUMBS }), read.error ? h(Failure, { error: read.error, retry: read.reload, notFound: "No agent has this id, or you may not read it." }) : h(Loading, {}));
  return h(Known, { agent, set: read.set, error: read.error, reload: read.reload, key: agentId });
}

/** @param {{ agent: Agent, set: (agent: Agent) => void, error: any, reload: () => void }} props */
function Known({ agent, set, error, reload }) {
  const [projects, people] = [useProjectNames(), usePeopleNames()];
  const promotion = usePromotion(agent, (version) => api.agents.promote(agent.id, { version }), set);
  return div(
    null,
    h(Head, { agent, set, promotion }),
    error ? h(Failure, { error, retry: reload }) : null,
    h(Promoted, { of: agent, promotion }),
    agent.archivedAt ? div({ class: "promoted" }, h(Banner, { tone: "idle", title: "It is archived" }, "Lists leave it out, it starts nothing and gets no versions. Runs under way go on.")) : null,
    div(
      { class: "columns side" },
      h(Versions, { agent, promotion }),
      h(FactsSection, {
        title: "About it",
        facts: [
          ["Live", agent.liveVersion ? a({ href: href(`agents/${agent.id}/versions/${agent.liveVersion}`) }, agent.liveVersion) : agent.latestVersion ? "None: the newest version runs" : "No version yet"],
          ["Newest", agent.latestVersion ? a({ href: href(`agents/${agent.id}/versions/${agent.latestVersion}`) }, agent.latestVersion) : null],
          ["Project", h(ProjectLink, { id: agent.projectId, names: projects })],
          ["Runs", a({ href: href("runs", { agentId: agent.id }) }, "Its runs")],
          ["Conversations", a({ href: href("conversations", { agentId: agent.id }) }, "Its conversations")],
          ["Made", h(Time, { at: agent.createdAt })],
          ["Made by", h(Person, { id: agent.createdBy, names: people })],
          ["Changed", h(Time, { at: agent.updatedAt })],
          ["Id", h(Id, { id: agent.id, what: "agent" })],
        ],
      }),
    ),
  );
}

/** @param {{ agent: Agent, set: (agent: Agent) => void, promotion: any }} props */
function Head({ agent, set, promotion }) {
  const [isChanging, setChanging] = useState(false);
  const place = { projectId: agent.projectId };
  const [mayWrite, mayAdmin] = [may("write", "agent", place), may("admin", "agent", place)];
  const archive = () =>
    confirm({
      title: `Archive ${agent.name}?`,
      says: "Lists leave it out, it starts nothing and gets no versions. Runs under way go on. It can be brought back.",
      act: "Archive the agent",
      run: async () => {
        set(await api.agents.archive(agent.id));
        announce("Archived");
      },
    });
  const back = async () => {
    set(await api.agents.unarchive(agent.id));
    announce("It is in use again");
  };
  return fragment(
    h(PageHead, {
      title: agent.name,
      crumbs: CRUMBS,
      state: agent.archivedAt ? h(State, { state: "archived" }) : agent.liveVersion ? h(State, { state: "live", word: `${agent.liveVersion} live` }) : undefined,
      lead: agent.description || undefined,
      actions: [
        mayAdmin
          ? h(Menu, {
              key: "more",
              label: "More",
              items: [
                { title: "Change name or description …", run: () => setChanging(true) },
                ...(agent.liveVersion ? [{ title: "Make no version live", run: () => void promotion.act.run(null, false) }] : []),
                "line",
                agent.archivedAt ? { title: "Bring it back", run: () => void back() } : { title: "Archive …", isDanger: true, run: archive },
              ],
            })
          : null,
        mayWrite && agent.latestVersion && !agent.archivedAt ? a({ key: "try", class: "button", href: href("conversations/new", { agent: agent.id }) }, "Try it") : null,
        mayWrite && !agent.archivedAt ? a({ key: "new", class: "button primary", href: href(`agents/${agent.id}/new-version`) }, "New version") : null,
      ],
    }),
    isChanging ? h(Change, { agent, set, onClose: () => setChanging(false) }) : null,
  );
}

/** @param {{ agent: Agent, set: (agent: Agent) => void, onClose: () => void }} props */
function Change({ agent, set, onClose }) {
  const [name, setName] = useState(agent.name);
  const [description, setDescription] = useState(agent.description);
  const [error, setError] = useState(/** @type {any} */ (undefined));
  const submit = async () => {
    try {
      set(await api.agents.update(agent.id, { name: name.trim(), description: description.trim() }));
      announce("Saved");
    } catch (cause) {
      setError(cause);
      throw cause;
    }
  };
  return h(
    FormDialog,
    { title: `Change ${agent.name}`, act: "Save", isReady: Boolean(name.trim()), onSubmit: submit, onClose },
    h(Field, { label: "Name", hint: "Flows that call it by its name have to change too.", value: name, onInput: setName, isRequired: true, most: 200, error: faultAt(error, "name") }),
    h(Field, { label: "What it does", isRequired: false, value: description, onInput: setDescription, lines: 3, most: 4000, error: faultAt(error, "description") }),
  );
}

/** @param {{ agent: Agent, promotion: any }} props */
function Versions({ agent, promotion }) {
  const people = usePeopleNames();
  const [chosen, setChosen] = useState(/** @type {Set<string>} */ (new Set()));
  const list = useList(`versions of ${agent.id}`, {}, (wanted, options) => api.agents.versions.list(agent.id, wanted, options), { live: ["agent"] });
  const mayAdmin = may("admin", "agent", { projectId: agent.projectId });
  // In the order of the list, the newer one first.
  const [after, before] = (list.rows ?? []).map((row) => row.version).filter((version) => chosen.has(version));
  const canCompare = chosen.size === 2 && before && after;
  const many = (list.rows?.length ?? 0) > 1;
  return h(
    Section,
    {
      title: "Versions",
      actions: many ? button({ type: "button", "aria-disabled": canCompare ? undefined : "true", title: "Choose two versions", onClick: () => canCompare && go(href(`agents/${agent.id}/compare`, { before, after })) }, "Compare the two chosen") : undefined,
    },
    h(Table, {
      label: "Versions, newest first",
      rows: list.rows,
      rowKey: (/** @type {ListedAgentVersion} */ row) => row.version,
      rowHref: (/** @type {ListedAgentVersion} */ row) => href(`agents/${agent.id}/versions/${encodeURIComponent(row.version)}`),
      selected: many ? chosen : undefined,
      onSelect: setChosen,
      columns: [
        { title: "Version", show: (/** @type {ListedAgentVersion} */ row) => row.version },
        {
          title: "State",
          show: (/** @type {ListedAgentVersion} */ row) =>
            row.version === agent.liveVersion
              ? h(State, { state: "live" })
              : mayAdmin && !agent.archivedAt
                ? button({ type: "button", class: "link", "aria-label": `Make live: ${row.version}`, disabled: promotion.act.isBusy, onClick: () => promotion.act.run(row.version, false) }, "Make live")
                : span(null, ""),
        },
        { title: "Model", show: (/** @type {ListedAgentVersion} */ row) => row.model, from: "middle" },
        { title: "Made (UTC)", show: (/** @type {ListedAgentVersion} */ row) => h(Time, { at: row.createdAt, short: true }), from: "wide" },
        { title: "By", show: (/** @type {ListedAgentVersion} */ row) => h(Person, { id: row.createdBy, names: people }), from: "wide", isSecond: true },
      ],
      isBusy: list.isLoading && !list.rows,
      error: list.error,
      retry: list.reload,
      empty: h(Empty, { title: "No version yet.", action: may("write", "agent", { projectId: agent.projectId }) ? a({ class: "button primary", href: href(`agents/${agent.id}/new-version`) }, "Make the first version") : undefined }, "A version says the instructions, the model and the tools. It never changes."),
    }),
    h(Pager, { list }),
  );
}
