/** A version of an agent: what it says. It never changes; it can be made live, tried, and taken as the base of the next. */

import { api } from "../api.js";
import { partsOf } from "../agent-version.js";
import { Json } from "../components/json.js";
import { Guardrails, streamingOf } from "../components/guardrail-table.js";
import { Empty } from "../components/states.js";
import { Name, useNames } from "../components/names.js";
import { PageHead, Unread } from "../components/page-head.js";
import { Promoted, usePromotion } from "../components/promotion.js";
import { FactsSection, Section } from "../components/section.js";
import { State } from "../components/state.js";
import { TextBlock } from "../components/text-block.js";
import { Time } from "../components/time.js";
import { count } from "../number.js";
import { may } from "../permit.js";
import { useResource } from "../resource.js";
import { href, withProjectOf } from "../route.js";
import { duration } from "../time.js";
import { h, tags } from "../ui.js";

/** @import { Agent, AgentVersion } from "agent-runtime/types" */

const { a, button, div, li, ul } = tags;

/** @param {{ agentId: string, version: string }} props */
export default function AgentVersionPage({ agentId, version }) {
  const agent = useResource(`agent ${agentId}`, (options) => api.agents.get(agentId, options), { live: ["agent"] });
  const read = useResource(`agent ${agentId} version ${version}`, (options) => api.agents.versions.get(agentId, version, options));
  const crumbs = [{ title: "Agents", href: href("agents") }, { title: agent.data?.name ?? "Agent", href: href(`agents/${agentId}`) }];
  if (!read.data || !agent.data) return h(Unread, { title: version, crumbs, of: { error: read.error ?? agent.error, reload: () => (read.reload(), agent.reload()) }, notFound: "The agent has no such version, or you may not read it." });
  return h(Known, { agent: agent.data, version: read.data, set: agent.set, crumbs });
}

/** @param {{ agent: Agent, version: AgentVersion, set: (agent: Agent) => void, crumbs: { title: string, href: string }[] }} props */
function Known({ agent, version, set, crumbs }) {
  const people = useNames(["user", "service-account"]);
  const promotion = usePromotion(agent, (to) => api.agents.promote(agent.id, { version: to }), set);
  const tools = useResource(`tools of ${agent.projectId}`, async (options) => (await api.tools.list({ projectId: agent.projectId, limit: 200 }, options)).data);
  const providers = useResource("names of providers", async (options) => (await api.modelProviders.list({ limit: 200 }, options)).data);
  const place = { projectId: agent.projectId };
  const isLive = agent.liveVersion === version.version;
  const base = agent.liveVersion && !isLive ? agent.liveVersion : undefined;
  const parts = partsOf(version, { tools: tools.data ?? [], providers: providers.data ?? [] });
  const parameters = parts.find((part) => part.name === "Parameters");
  return div(
    null,
    h(PageHead, {
      title: `${agent.name} ${version.version}`,
      crumbs,
      state: isLive ? h(State, { state: "live" }) : agent.latestVersion === version.version ? h(State, { state: "newest", tone: "idle" }) : undefined,
      actions: [
        base ? a({ key: "compare", class: "button", href: href(`agents/${agent.id}/compare`, { before: base, after: version.version }) }, `Compare with ${base}, live`) : null,
        may("write", "agent", place) && !agent.archivedAt ? a({ key: "try", class: "button", href: href("conversations/new", { agent: agent.id, version: version.version, ...withProjectOf(agent) }) }, "Try it") : null,
        may("write", "agent", place) && !agent.archivedAt ? a({ key: "new", class: "button", href: href(`agents/${agent.id}/new-version`, { from: version.version }) }, "New version from it") : null,
        may("admin", "agent", place) && !isLive && !agent.archivedAt ? button({ key: "promote", type: "button", class: "primary", disabled: promotion.act.isBusy, onClick: () => promotion.act.run(version.version, false) }, "Make live") : null,
      ],
    }),
    h(Promoted, { of: agent, promotion }),
    div(
      { class: "columns side" },
      div(
        { class: "stack" },
        h(Section, { title: "Instructions" }, version.instructions ? h(TextBlock, { text: version.instructions, label: "Instructions" }) : "None."),
        version.outputSchema ? h(Section, { title: "Schema of the answer" }, h(Json, { value: version.outputSchema, label: "Schema of the answer", openLevels: 3 })) : null,
        parameters?.text ? h(Section, { title: "Parameters of the model" }, h(Json, { value: JSON.parse(parameters.text), label: "Parameters of the model" })) : null,
        h(Section, { title: "Guardrails", isFlush: true }, h(Guardrails, { label: "Guardrails of the version, in the order in which they judge", guardrails: version.guardrails, empty: h(Empty, { title: "None of its own." }, "The policies of the tenant and of the project judge all the same.") })),
      ),
      h(FactsSection, {
        title: "About it",
        facts: [
          ["Model", version.model],
          ["Provider", a({ href: href(`model-providers/${version.modelProviderId}`) }, providers.data?.find((one) => one.id === version.modelProviderId)?.name ?? "The provider")],
          ["Tools", version.toolIds.length ? ul(null, version.toolIds.map((id) => li({ key: id }, a({ href: href(`tools/${id}`) }, tools.data?.find((one) => one.id === id)?.name ?? id)))) : "None"],
          ["Answers with", version.outputSchema ? "JSON that fits its schema" : "Text"],
          ["Steps at most", version.limits.maxSteps === undefined ? undefined : count(version.limits.maxSteps)],
          ["Time of a turn", version.limits.turnTimeoutMs === undefined ? undefined : duration(version.limits.turnTimeoutMs)],
          ["Tokens of a call", version.limits.maxOutputTokens ? count(version.limits.maxOutputTokens) : undefined],
          ["Streaming", version.guardrails.some((one) => one.at.includes("output")) || version.streaming !== "held" ? streamingOf(version.streaming) : undefined],
          ["A run may set", version.overrides.length ? version.overrides.join(", ") : "Nothing"],
          ["Made", h(Time, { at: version.createdAt })],
          ["Made by", h(Name, { id: version.createdBy, names: people })],
        ],
      }),
    ),
  );
}
