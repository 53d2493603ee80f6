/**
 * Every page: its address, its name, where it stands in the rail, and who is offered it.
 *
 * A page is a row here and a file in `pages/` whose `default` is its component; it gets what the pattern names. Rows without
 * `rail` are reached from others. `may` goes by `permit.js`, never by the name of a role.
 */

import { isReviewer, isTenantAdmin, may, seesTeams } from "./permit.js";

/**
 * @typedef {object} Route
 * @property {string} pattern below `/console/`
 * @property {string} title
 * @property {() => Promise<{ default: (props: any) => any }>} load
 * @property {"Work" | "Build" | "Improve" | "Settings" | "Me"} [rail] the part of the rail that has it
 * @property {string} [icon]
 * @property {string} [keys] the single keys that go there, such as `g r`
 * @property {() => boolean} [may] who is offered it; everybody without
 * @property {boolean} [isFirst] it is the first view of most people, and does without the later styles
 */

/** @type {Route[]} */
export const ROUTES = [
  // Work
  { pattern: "inbox", title: "Inbox", rail: "Work", icon: "inbox", keys: "g i", load: () => import("./pages/inbox.js"), may: isReviewer },
  { pattern: "approvals", title: "Approvals", rail: "Work", icon: "approvals", keys: "g p", load: () => import("./pages/approvals.js"), may: isReviewer },
  { pattern: "approvals/:approvalId", title: "Approval", load: () => import("./pages/approval.js") },
  { pattern: "runs", title: "Runs", rail: "Work", icon: "runs", keys: "g r", load: () => import("./pages/runs.js"), may: () => may("read", "run"), isFirst: true },
  { pattern: "runs/:runId", title: "Run", load: () => import("./pages/run.js") },
  { pattern: "runs/:runId/:tab", title: "Run", load: () => import("./pages/run.js") },
  { pattern: "conversations", title: "Conversations", rail: "Work", icon: "conversations", keys: "g c", load: () => import("./pages/conversations.js"), may: () => may("read", "conversation") },
  { pattern: "conversations/:conversationId", title: "Conversation", load: () => import("./pages/conversation.js") },
  { pattern: "welcome", title: "Welcome", load: () => import("./pages/welcome.js") },

  // Build
  { pattern: "projects", title: "Projects", rail: "Build", icon: "projects", keys: "g o", load: () => import("./pages/projects.js"), may: () => may("read", "project") },
  { pattern: "projects/:projectId", title: "Project", load: () => import("./pages/project.js") },
  { pattern: "projects/:projectId/:tab", title: "Project", load: () => import("./pages/project.js") },
  { pattern: "agents", title: "Agents", rail: "Build", icon: "agents", keys: "g a", load: () => import("./pages/agents.js"), may: () => may("read", "agent") },
  { pattern: "agents/:agentId", title: "Agent", load: () => import("./pages/agent.js") },
  { pattern: "agents/:agentId/new-version", title: "New version", load: () => import("./pages/agent-new-version.js") },
  { pattern: "agents/:agentId/compare", title: "Compare versions", load: () => import("./pages/agent-compare.js") },
  { pattern: "agents/:agentId/versions/:version", title: "Version of an agent", load: () => import("./pages/agent-version.js") },
  { pattern: "flows", title: "Flows", rail: "Build", icon: "flows", keys: "g f", load: () => import("./pages/flows.js"), may: () => may("read", "flow") },
  { pattern: "flows/new", title: "New flow", load: () => import("./pages/flow-definition.js") },
  { pattern: "flows/:id", title: "Flow", load: () => import("./pages/flow.js") },
  { pattern: "flows/:id/new-version", title: "New version", load: () => import("./pages/flow-definition.js") },
  { pattern: "flows/:id/compare", title: "Compare versions", load: () => import("./pages/flow-compare.js") },
  { pattern: "flows/:id/start", title: "Start a run", load: () => import("./pages/flow-start.js") },
  { pattern: "flows/:id/versions/:version", title: "Version of a flow", load: () => import("./pages/flow-version.js") },
  { pattern: "tools", title: "Tools", rail: "Build", icon: "tools", keys: "g t", load: () => import("./pages/tools.js"), may: () => may("read", "tool") },
  { pattern: "tools/new", title: "Register a tool", load: () => import("./pages/tool-form.js") },
  { pattern: "tools/:toolId", title: "Tool", load: () => import("./pages/tool.js") },
  { pattern: "guardrails", title: "Guardrails", rail: "Build", icon: "guardrails", load: () => import("./pages/guardrails.js"), may: () => may("write", "project") },

  // Improve
  { pattern: "usage", title: "Usage", rail: "Improve", icon: "usage", keys: "g u", load: () => import("./pages/usage.js"), may: () => may("read", "run") },

  // Settings
  { pattern: "people", title: "People", rail: "Settings", icon: "people", load: () => import("./pages/people.js"), may: isTenantAdmin },
  { pattern: "people/:userId", title: "Person", load: () => import("./pages/person.js") },
  { pattern: "teams", title: "Teams", rail: "Settings", icon: "teams", load: () => import("./pages/teams.js"), may: seesTeams },
  { pattern: "teams/:teamId", title: "Team", load: () => import("./pages/team.js") },
  { pattern: "service-accounts", title: "Service accounts", rail: "Settings", icon: "accounts", load: () => import("./pages/service-accounts.js"), may: isTenantAdmin },
  { pattern: "service-accounts/:serviceAccountId", title: "Service account", load: () => import("./pages/service-account.js") },
  { pattern: "orgs", title: "Orgs", rail: "Settings", icon: "orgs", load: () => import("./pages/orgs.js"), may: () => may("read", "org") },
  { pattern: "orgs/:orgId", title: "Org", load: () => import("./pages/org.js") },
  { pattern: "reviewers", title: "Reviewers", rail: "Settings", icon: "reviewers", load: () => import("./pages/reviewers.js"), may: isTenantAdmin },
  { pattern: "webhooks", title: "Webhooks", rail: "Settings", icon: "webhooks", keys: "g w", load: () => import("./pages/webhook-endpoints.js"), may: isTenantAdmin },
  { pattern: "webhooks/:endpointId", title: "Endpoint", load: () => import("./pages/webhook-endpoint.js") },
  { pattern: "webhooks/:endpointId/deliveries/:deliveryId", title: "Delivery", load: () => import("./pages/webhook-delivery.js") },
  { pattern: "secrets", title: "Secrets", rail: "Settings", icon: "secrets", load: () => import("./pages/secrets.js"), may: isTenantAdmin },
  { pattern: "environments", title: "Environments", rail: "Settings", icon: "environments", load: () => import("./pages/environments.js"), may: () => may("read", "tenant") },
  { pattern: "environments/:environment", title: "Environment", load: () => import("./pages/environment.js") },
  { pattern: "policies", title: "Policies", rail: "Settings", icon: "policies", load: () => import("./pages/policies.js"), may: () => may("read", "tenant") },
  { pattern: "model-providers", title: "Model providers", rail: "Settings", icon: "providers", load: () => import("./pages/model-providers.js"), may: () => may("read", "tenant") },
  { pattern: "model-providers/:modelProviderId", title: "Model provider", load: () => import("./pages/model-provider.js") },
  { pattern: "sign-in-settings", title: "Sign-in", rail: "Settings", icon: "signin", load: () => import("./pages/sign-in-settings.js"), may: isTenantAdmin },
  { pattern: "identity-providers/:identityProviderId", title: "Identity provider", load: () => import("./pages/identity-provider.js") },
  { pattern: "audit", title: "Access audit", rail: "Settings", icon: "audit", load: () => import("./pages/audit.js"), may: isTenantAdmin },
  { pattern: "audit/:decisionId", title: "Decision", load: () => import("./pages/decision.js") },

  // Me
  { pattern: "me", title: "Profile", rail: "Me", icon: "profile", load: () => import("./pages/me.js") },
  { pattern: "keys", title: "Keys", rail: "Me", icon: "keys", load: () => import("./pages/keys.js") },

  // In no rail
  { pattern: "dev/components", title: "Components", load: () => import("./pages/components.js") },
];

/** The parts of the rail, in order. */
export const AREAS = /** @type {const} */ (["Work", "Build", "Improve", "Settings", "Me"]);

/** Those of the rail that the caller is offered. */
export function offered() {
  return ROUTES.filter((route) => route.rail && (route.may?.() ?? true));
}
