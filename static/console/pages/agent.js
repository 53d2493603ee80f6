/** An agent: which version is live, its versions, comparing two of them, and what it is called. */

import { api } from "../api.js";
import { FormDialog } from "../components/dialog.js";
import { Field, faultAt } from "../components/field.js";
import { Unread } from "../components/page-head.js";
import { Promoted, usePromotion } from "../components/promotion.js";
import { Empty, Failure } from "../components/states.js";
import { announce } from "../components/status.js";
import { AboutVersioned, Archived, LastRun, VersionedHead, Versions } from "../components/versions.js";
import { may } from "../permit.js";
import { useResource } from "../resource.js";
import { href, withProjectOf } from "../route.js";
import { fragment, h, tags, useState } from "../ui.js";

/** @import { Agent } from "agent-runtime/types" */

const { a, div } = tags;

const crumbs = () => [{ title: "Agents", href: href("agents") }];

/** @param {{ agentId: string }} props */
export default function AgentPage({ agentId }) {
  const read = useResource(`agent ${agentId}`, (options) => api.agents.get(agentId, options), { live: ["agent"] });
  const agent = read.data;
  if (!agent) return h(Unread, { title: "Agent", crumbs: crumbs(), of: read, notFound: "No agent has this id, or you may not read it." });
  return h(Known, { agent, set: read.set, error: read.error, reload: read.reload, key: agentId });
}

/** @param {{ agent: Agent, set: (agent: Agent) => void, error: any, reload: () => void }} props */
function Known({ agent, set, error, reload }) {
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
      h(AboutVersioned, {
        of: agent,
        kind: "agent",
        links: [
          ["Last run", h(LastRun, { of: { agentId: agent.id } })],
          ["Runs", a({ href: href("runs", { children: "true", agentId: agent.id, ...withProjectOf(agent) }) }, "Its runs")],
          ["Conversations", a({ href: href("conversations", { agentId: agent.id, ...withProjectOf(agent) }) }, "Its conversations")],
        ],
      }),
    ),
  );
}

/** @param {{ agent: Agent, set: (agent: Agent) => void, promotion: ReturnType<typeof usePromotion> }} props */
function Head({ agent, set, promotion }) {
  const mayWrite = may("write", "agent", { projectId: agent.projectId });
  return h(VersionedHead, {
    of: agent,
    kind: "agent",
    title: agent.name,
    crumbs: crumbs(),
    lead: agent.description || undefined,
    calls: api.agents,
    promotion,
    set,
    actions: [
      mayWrite && agent.latestVersion && !agent.archivedAt ? a({ key: "try", class: "button", href: href("conversations/new", { agent: agent.id, ...withProjectOf(agent) }) }, "Try it") : null,
      mayWrite && !agent.archivedAt ? a({ key: "new", class: "button primary", href: href(`agents/${agent.id}/new-version`) }, "New version") : null,
    ],
    change: "Change name or description …",
    form: (/** @type {() => void} */ onClose) => h(Change, { agent, set, onClose }),
  });
}

/** @param {{ agent: Agent, set: (agent: Agent) => void, onClose: () => void }} props */
function Change({ agent, set, onClose }) {
  const [name, setName] = useState(agent.name);
  const [description, setDescription] = useState(agent.description);
  return h(FormDialog, {
    title: `Change ${agent.name}`,
    act: "Save",
    isReady: Boolean(name.trim()),
    onClose,
    onSubmit: async () => {
      set(await api.agents.update(agent.id, { name: name.trim(), description: description.trim() }));
      announce("Saved");
    },
    fields: (error) =>
      fragment(
        h(Field, { label: "Name", hint: "Flows that call it by its name have to change too.", value: name, onInput: setName, isRequired: true, most: 200, error: faultAt(error, "name") }),
        h(Field, { label: "What it does", isRequired: false, value: description, onInput: setDescription, lines: 3, most: 4000, error: faultAt(error, "description") }),
      ),
  });
}
