/** Policies: the guardrails of the tenant, and of a project. They judge before those of an agent's version. */

import { api } from "../api.js";
import { Guardrails, streamingOf } from "../components/guardrail-table.js";
import { Name, useNames } from "../components/names.js";
import { PageHead } from "../components/page-head.js";
import { PolicyForm } from "../components/policy-form.js";
import { FactsLine, Section } from "../components/section.js";
import { Empty, Loaded } from "../components/states.js";
import { Time } from "../components/time.js";
import { isTenantAdmin, may } from "../permit.js";
import { useResource } from "../resource.js";
import { fragment, h, tags, useState } from "../ui.js";

/** @import { Policy, Project, PutPolicy } from "agent-runtime/types" */

const { button, div } = tags;

export default function Policies() {
  const read = useResource("policy", (options) => api.policies.get(options), { fresh: true });
  return div(
    null,
    h(PageHead, { title: "Policies", lead: "The tenant's guardrails judge every turn of an agent first. Each project may have a policy of its own after it." }),
    h(Standing, { read, whose: "tenant", mayPut: isTenantAdmin(), put: (body) => api.policies.put(body) }),
  );
}

/** @param {{ project: Project }} props */
export function ProjectPolicy({ project }) {
  const read = useResource(`policy ${project.id}`, (options) => api.projects.policies.get(project.id, options), { fresh: true });
  return h(Standing, { read, whose: "project", mayPut: may("admin", "project", { projectId: project.id }) && !project.archivedAt, put: (body) => api.projects.policies.put(project.id, body) });
}

/** @param {{ read: import("../resource.js").Resource<Policy>, whose: string, mayPut: boolean, put: (body: PutPolicy) => Promise<Policy> }} props */
function Standing({ read, whose, mayPut, put }) {
  const names = useNames(["user", "service-account"]);
  const [isPutting, setPutting] = useState(false);
  const begin = mayPut && !isPutting ? button({ type: "button", class: "primary", onClick: () => setPutting(true) }, "Put the next version") : null;
  return h(Loaded, {
    of: read,
    notFound: "There is no such policy, or you may not read it.",
    show: (/** @type {Policy} */ policy) =>
      fragment(
        policy.version
          ? h(FactsLine, {
              facts: [
                ["Version", String(policy.version)],
                ["Put", policy.createdAt ? h(Time, { at: policy.createdAt }) : undefined],
                ["By", h(Name, { id: policy.createdBy, names })],
                ["Streaming", streamingOf(policy.streaming)],
              ],
            })
          : null,
        h(Section, { title: `Guardrails of the ${whose}`, isFlush: true, actions: begin }, h(Guardrails, { label: `Guardrails of the ${whose}, in the order in which they judge`, guardrails: policy.guardrails, empty: h(Empty, { title: policy.version ? "The policy has no guardrail." : "No policy yet." }, "The next version may have guardrails, which judge from then on, also runs under way.") })),
        isPutting && mayPut ? h(Section, { title: "The next version" }, h(PolicyForm, { policy, put, onPut: (stands) => (read.set(stands), setPutting(false)), onClose: () => setPutting(false) })) : null,
      ),
  });
}
