/** Two versions of an agent beside each other: what changed, part by part. */

import { api } from "../api.js";
import { partsOf } from "../agent-version.js";
import { Diff } from "../components/diff.js";
import { PageHead } from "../components/page-head.js";
import { Section } from "../components/section.js";
import { Empty, Loaded } from "../components/states.js";
import { counted } from "../number.js";
import { ChooseTwo } from "../components/versions.js";
import { useResource } from "../resource.js";
import { href, query } from "../route.js";
import { fragment, h, tags } from "../ui.js";

/** @import { AgentVersion } from "agent-runtime/types" */

const { a, div, p } = tags;

/** @param {{ agentId: string }} props */
export default function AgentComparePage({ agentId }) {
  const { before, after } = query.value;
  const agent = useResource(`agent ${agentId}`, (options) => api.agents.get(agentId, options));
  const versions = useResource(`versions to compare ${agentId}`, async (options) => (await api.agents.versions.list(agentId, { order: "desc", limit: 200 }, options)).data.map((one) => one.version));
  const projectId = agent.data?.projectId;
  const both = useResource(before && after && projectId ? `compare ${agentId} ${before} ${after}` : null, async (options) => {
    const [one, other, tools, providers] = await Promise.all([api.agents.versions.get(agentId, before ?? "", options), api.agents.versions.get(agentId, after ?? "", options), api.tools.list({ projectId, limit: 200 }, options), api.modelProviders.list({ limit: 200 }, options)]);
    return { before: one, after: other, known: { tools: tools.data, providers: providers.data } };
  });
  return div(
    { class: "stack" },
    h(PageHead, {
      title: before && after ? `What changed from ${before} to ${after}` : "Compare versions",
      crumbs: [{ title: "Agents", href: href("agents") }, { title: agent.data?.name ?? "Agent", href: href(`agents/${agentId}`) }],
    }),
    h(ChooseTwo, { versions: versions.data, before, after }),
    before && after ? h(Loaded, { of: projectId ? both : /** @type {import("../resource.js").Resource<any>} */ (agent), notFound: "One of the two versions does not exist.", show: (/** @type {any} */ read) => h(Changes, read) }) : h(Empty, { title: "Choose two versions." }),
  );
}

/** @param {{ before: AgentVersion, after: AgentVersion, known: any }} props */
function Changes({ before, after, known }) {
  const [one, other] = [partsOf(before, known), partsOf(after, known)];
  const parts = one.map((part, index) => ({ name: part.name, before: part.text, after: other[index]?.text ?? "" }));
  const changed = parts.filter((part) => part.before !== part.after);
  const same = parts.filter((part) => part.before === part.after);
  if (!changed.length) return h(Empty, { title: "They say the same." });
  return fragment(
    p({ class: "faint" }, `${counted(changed.length, "part")} changed${same.length ? `, the same: ${same.map((part) => part.name.toLowerCase()).join(", ")}` : ""}.`),
    changed.map((part) => h(Section, { key: part.name, title: part.name }, h(Diff, { label: `Change of ${part.name.toLowerCase()}`, before: part.before, after: part.after, names: [before.version, after.version] }))),
    p(null, a({ href: href(`agents/${after.agentId}/versions/${encodeURIComponent(after.version)}`) }, `Open ${after.version}`)),
  );
}
