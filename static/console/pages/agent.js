/** An agent: which version is live, its versions, comparing two of them, and what it is called. */

import { api } from "../api.js";
import { FormDialog } from "../components/dialog.js";
import { Field, faultAt } from "../components/field.js";
import { Id } from "../components/id.js";
import { Menu } from "../components/menu.js";
import { Name, useNames } from "../components/names.js";
import { PageHead } from "../components/page-head.js";
import { Promoted, usePromotion } from "../components/promotion.js";
import { FactsSection } from "../components/section.js";
import { State } from "../components/state.js";
import { Empty, Failure, Loading } from "../components/states.js";
import { announce } from "../components/status.js";
import { Time } from "../components/time.js";
import { Archived, Versions, archiveItem } from "../components/versions.js";
import { may } from "../permit.js";
import { useResource } from "../resource.js";
import { href } from "../route.js";
import { fragment, h, tags, useState } from "../ui.js";

/** @import { Agent } from "agent-runtime/types" */

const { a, div } = tags;

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
  const [projects, people] = [useNames(["project"]), useNames(["user", "service-account"])];
  const promotion = usePromotion(agent, (version) => api.agents.promote(agent.id, { version }), set);
  return div(
    null,
    h(Head, { agent, set, promotion }),
    error ? h(Failure, { error, retry: reload }) : null,
    h(Promoted, { of: agent, promotion }),
    h(Archived, { of: agent }),
    div(
      { class: "columns side" },
      h(Versions, {
        of: agent,
        kind: "agent",
        promotion,
        call: (wanted, options) => api.agents.versions.list(agent.id, wanted, options),
        more: [{ title: "Model", show: (row) => row.model, from: "middle" }],
        empty: h(Empty, { title: "No version yet.", action: may("write", "agent", { projectId: agent.projectId }) ? a({ class: "button primary", href: href(`agents/${agent.id}/new-version`) }, "Make the first version") : undefined }, "A version says the instructions, the model and the tools. It never changes."),
      }),
      h(FactsSection, {
        title: "About it",
        facts: [
          ["Live", agent.liveVersion ? a({ href: href(`agents/${agent.id}/versions/${agent.liveVersion}`) }, agent.liveVersion) : agent.latestVersion ? "None: the newest version runs" : "No version yet"],
          ["Newest", agent.latestVersion ? a({ href: href(`agents/${agent.id}/versions/${agent.latestVersion}`) }, agent.latestVersion) : null],
          ["Project", h(Name, { id: agent.projectId, names: projects })],
          ["Runs", a({ href: href("runs", { agentId: agent.id }) }, "Its runs")],
          ["Conversations", a({ href: href("conversations", { agentId: agent.id }) }, "Its conversations")],
          ["Made", h(Time, { at: agent.createdAt })],
          ["Made by", h(Name, { id: agent.createdBy, names: people })],
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
                archiveItem(agent, agent.name, "agent", api.agents, set),
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
