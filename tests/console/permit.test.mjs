/**
 * Hidden if and only if refused: each act that the console offers, for a caller of each kind. Where its button stands the
 * server must not answer 403 to its call, and where the server does not, the button must stand. So a rule that changes on one
 * side alone fails here.
 *
 * What ends the thing that it acts on acts on another one each time. Every call of the console that changes something is among
 * what the acts ask: a new one without an act here fails.
 */

import assert from "node:assert/strict";
import { readFileSync, readdirSync } from "node:fs";
import { after, describe, test } from "node:test";
import { fileURLToPath } from "node:url";
import { goTo, open, settled, visit } from "./browser.mjs";
import { changes, operationOf } from "./contract.mjs";
import { callers, objects } from "./roles.mjs";
import { sql } from "./server.mjs";
import { browser, place, stage } from "./stage.mjs";

/**
 * @typedef {{ names: Record<string, any>, fresh: Record<string, () => Promise<string>>, api: import("../../clients/typescript/src/index.js").AgentRuntime, ask: (method: string, path: string, body?: unknown) => Promise<number>, lists: (path: string) => Promise<number> }} World
 * @typedef {object} Act
 * @property {string} name
 * @property {string} at the page, as in `pages.mjs`
 * @property {string} [inside] the part of the page, where another one has a button of the same name
 * @property {string | RegExp} [button] the button or link that offers it
 * @property {string | RegExp} [menu] the button of the menu that has it
 * @property {string} [item] its beginning in the menu
 * @property {(page: any) => Promise<void>} [before] what opens first, where it is there
 * @property {(world: World) => Promise<number>} call the status of the server's answer
 */

/** How long an act that the server allows may take to be in sight, on a busy machine. */
const LATER_MS = 60_000;
const NOBODY = "00000000-0000-7000-8000-000000000000";
const NEW_TOOL = (projectId, more = {}) => ({ projectId, name: "no name", description: "", argumentsSchema: { type: "object" }, url: "http://127.0.0.1:9/", ...more });

/** An act of a page that takes reading something else, too. @param {string} path of what is read @param {Act["call"]} call @returns {Act["call"]} */
function withRead(path, call) {
  return async (world) => {
    const status = await world.ask("GET", path.replace(/\{(\w+)\}/g, (_, name) => world.names[name]));
    return status === 403 ? status : call(world);
  };
}

/** @param {Act["call"]} call */
const onAccount = (call) => withRead("/v1/service-accounts/{account}", call);

/** Opens the approval where it stands in its run. @param {any} page */
async function opensApproval(page) {
  const line = page.locator(".step-line", { hasText: "Asks" });
  if (!(await line.count())) return;
  await line.focus();
  await page.keyboard.press("ArrowRight");
  await settled(page);
}

/** @type {Act[]} */
const ACTS = [
  // Whoever reviews, is in a team or in an org has something to see there: the lists are everybody's.
  { name: "see the inbox", at: "runs", button: /^Inbox/, call: ({ ask }) => ask("GET", "/v1/approvals") },
  { name: "see teams", at: "runs", button: "Teams", call: ({ lists }) => lists("/v1/teams") },
  { name: "see orgs", at: "runs", button: "Orgs", call: ({ lists }) => lists("/v1/orgs") },
  { name: "see webhooks", at: "runs", button: "Webhooks", call: ({ ask }) => ask("GET", "/v1/webhook-endpoints") },
  { name: "see secrets", at: "runs", button: "Secrets", call: ({ ask }) => ask("GET", "/v1/secrets") },
  { name: "see model providers", at: "runs", button: "Model providers", call: ({ ask }) => ask("GET", "/v1/model-providers") },
  { name: "see approvals", at: "runs", button: "Approvals", call: ({ ask }) => ask("GET", "/v1/approvals") },
  { name: "register an endpoint", at: "webhooks", button: "Add an endpoint", call: ({ ask }) => ask("POST", "/v1/webhook-endpoints", { url: "http://127.0.0.1:9/", events: ["run.finished"], secretRef: { envName: "permit", name: "NONE" } }) },
  { name: "check the address of an endpoint", at: "webhooks", button: "Add an endpoint", call: ({ ask }) => ask("POST", "/v1/webhook-endpoints/check-url", { url: "http://127.0.0.1:9/" }) },
  { name: "send a test", at: "webhooks/{endpoint}", button: "Send a test", call: ({ ask, names }) => ask("POST", `/v1/webhook-endpoints/${names.endpoint}/test`) },
  { name: "change an endpoint", at: "webhooks/{endpoint}", menu: "More", item: "Change", call: ({ ask, names }) => ask("PATCH", `/v1/webhook-endpoints/${names.endpoint}`, {}) },
  { name: "send again what failed", at: "webhooks/{endpoint}", menu: "More", item: "Send again", call: ({ ask, names }) => ask("POST", `/v1/webhook-endpoints/${names.endpoint}/resend`, { failedSince: new Date().toISOString() }) },
  { name: "send again in its row", at: "webhooks/{endpoint}", button: "Send again", call: ({ ask, names }) => ask("POST", `/v1/webhook-endpoints/${names.endpoint}/deliveries/${names.delivery}/resend`) },
  { name: "unregister an endpoint", at: "webhooks/{endpoint}", menu: "More", item: "Unregister", call: async ({ ask, fresh }) => ask("DELETE", `/v1/webhook-endpoints/${await fresh.endpoint()}`) },
  { name: "send a delivery again", at: "webhooks/{endpoint}/deliveries/{delivery}", button: "Send again", call: ({ ask, names }) => ask("POST", `/v1/webhook-endpoints/${names.endpoint}/deliveries/${names.delivery}/resend`) },
  { name: "put a secret", at: "secrets", button: "Put a secret", call: ({ ask }) => ask("PUT", "/v1/secrets/permit/PUT_BY_ALL", { value: "one" }) },
  { name: "put another value of a secret", at: "secrets?environment=permit", menu: /Acts on (?!the use)/, item: "Put another value", call: ({ ask }) => ask("PUT", "/v1/secrets/permit/PUT_BY_ALL", { value: "another" }) },
  { name: "delete a secret", at: "secrets?environment=permit", menu: /Acts on (?!the use)/, item: "Delete", call: async ({ ask, fresh }) => ask("DELETE", `/v1/secrets/permit/${await fresh.secret()}`) },
  { name: "allow a use of a secret", at: "secrets", button: "Allow a use", call: ({ ask, names }) => ask("POST", "/v1/secret-uses", { name: "KEY", target: "origin:http://127.0.0.1:9", projectId: names.project }) },
  { name: "delete a use of a secret", at: "secrets", menu: /Acts on the use/, item: "Delete", call: async ({ ask, fresh }) => ask("DELETE", `/v1/secret-uses/${await fresh.use()}`) },
  { name: "see environments", at: "runs", button: "Environments", call: ({ ask }) => ask("GET", "/v1/environments") },
  { name: "put a variable", at: "environments", button: "Put a variable", call: ({ ask }) => ask("PUT", "/v1/environments/permit/variables/PUT_BY_ALL", { value: "one" }) },
  { name: "put another value of a variable", at: "environments/permit", menu: /^Acts/, item: "Put another value", call: ({ ask }) => ask("PUT", "/v1/environments/permit/variables/PUT_BY_ALL", { value: "another" }) },
  { name: "delete a variable", at: "environments/permit", menu: /^Acts/, item: "Delete", call: async ({ ask, fresh }) => ask("DELETE", `/v1/environments/permit/variables/${await fresh.variable()}`) },
  { name: "see guardrails", at: "runs", button: "Guardrails", call: ({ ask, names }) => ask("POST", "/v1/guardrails/try", { projectId: names.project, point: "input", text: "" }) },
  { name: "try guardrails", at: "guardrails?project={project}", button: "Try it", call: ({ ask, names }) => ask("POST", "/v1/guardrails/try", { projectId: names.project, point: "input", text: "" }) },
  { name: "see policies", at: "runs", button: "Policies", call: ({ ask }) => ask("GET", "/v1/policies") },
  { name: "put the tenant's policy", at: "policies", button: "Put the next version", call: ({ ask }) => ask("PUT", "/v1/policies", {}) },
  { name: "put a project's policy", at: "projects/{project}/policy", button: "Put the next version", call: ({ ask, names }) => ask("PUT", `/v1/projects/${names.project}/policies`, {}) },
  { name: "register a provider", at: "model-providers", button: "Register a provider", call: ({ ask }) => ask("POST", "/v1/model-providers", { name: "permit", baseUrl: "nowhere", models: [{ name: "m" }] }) },
  { name: "change a provider", at: "model-providers/{provider}", button: "Change", call: ({ ask, names }) => ask("PATCH", `/v1/model-providers/${names.provider}`, {}) },
  { name: "check a provider", at: "model-providers/{provider}", button: "Check", call: ({ ask, names }) => ask("POST", `/v1/model-providers/${names.provider}/check`, { model: "" }) },
  { name: "delete a provider", at: "model-providers/{provider}", menu: "More", item: "Delete", call: async ({ ask, fresh }) => ask("DELETE", `/v1/model-providers/${await fresh.provider()}`) },
  { name: "register a tool", at: "tools?project={project}", button: "Register a tool", call: ({ ask, names }) => ask("POST", "/v1/tools", NEW_TOOL(names.project)) },
  { name: "register a tool like another", at: "tools/{tool}", button: "Register another like it", call: ({ ask, names }) => ask("POST", "/v1/tools", NEW_TOOL(names.project)) },
  { name: "delete a tool", at: "tools/{tool}", menu: "More", item: "Delete", call: async ({ ask, fresh }) => ask("DELETE", `/v1/tools/${await fresh.tool()}`) },
  { name: "name a secret in a tool", at: "tools/new?project={project}", button: "Add a header with a secret", call: ({ ask, names }) => ask("POST", "/v1/tools", NEW_TOOL(names.project, { headers: [{ name: "Authorization", secret: "KEY" }] })) },
  { name: "make an agent", at: "agents?project={project}", button: "New agent", call: ({ ask, names }) => ask("POST", "/v1/agents", { projectId: names.project, name: "permit" }) },
  { name: "make a version", at: "agents/{agent}", button: "New version", call: ({ ask, names }) => ask("POST", `/v1/agents/${names.agent}/versions`, { version: "9.0.0", instructions: "", model: "none", modelProviderId: names.provider }) },
  { name: "change an agent", at: "agents/{agent}", menu: "More", item: "Change name", call: ({ ask, names }) => ask("PATCH", `/v1/agents/${names.agent}`, {}) },
  { name: "archive an agent", at: "agents/{agent}", menu: "More", item: "Archive", call: async ({ ask, fresh }) => ask("POST", `/v1/agents/${await fresh.agent()}/archive`) },
  { name: "bring an agent back", at: "agents/{oldAgent}", menu: "More", item: "Bring it back", call: async ({ ask, fresh }) => ask("POST", `/v1/agents/${await fresh.agent()}/unarchive`) },
  { name: "make no version live", at: "agents/{agent}", menu: "More", item: "Make no version live", call: async ({ ask, fresh }) => ask("POST", `/v1/agents/${await fresh.agent()}/promote`, { version: null }) },
  { name: "promote a version", at: "agents/{agent}/versions/1.1.0", button: "Make live", call: ({ ask, names }) => ask("POST", `/v1/agents/${names.agent}/promote`, { version: "9.9.9" }) },
  { name: "promote a version in the list", at: "agents/{agent}", button: "Make live: 1.1.0", call: ({ ask, names }) => ask("POST", `/v1/agents/${names.agent}/promote`, { version: "9.9.9" }) },
  { name: "try an agent", at: "agents/{agent}", button: "Try it", call: ({ ask, names }) => ask("POST", "/v1/conversations", { agentId: names.agent }) },
  { name: "try a version", at: "agents/{agent}/versions/1.1.0", button: "Try it", call: ({ ask, names }) => ask("POST", "/v1/conversations", { agentId: names.agent }) },
  { name: "begin a conversation", at: "conversations?project={project}", button: /conversation$/i, call: ({ ask, names }) => ask("POST", "/v1/conversations", { agentId: names.agent }) },
  { name: "erase a conversation", at: "conversations/{conversation}", button: "Erase", call: async ({ ask, fresh }) => ask("DELETE", `/v1/conversations/${await fresh.conversation()}`) },
  { name: "write in a conversation", at: "conversations/{conversation}", button: "Send", call: ({ ask, names }) => ask("POST", "/v1/runs", { agentId: names.agent, conversationId: NOBODY, message: "Here?" }) },
  { name: "stop an agent", at: "conversations/{asking}", button: "Stop", call: async ({ ask, fresh }) => ask("POST", `/v1/runs/${await fresh.waits()}/cancel`) },
  { name: "try a failed turn again", at: "conversations/{failing}", inside: ".talk", button: "Try again", call: async ({ ask, fresh }) => ask("POST", `/v1/runs/${await fresh.fails()}/retry`, {}) },
  { name: "cancel a run", at: "runs/{waits}", button: "Cancel", call: async ({ ask, fresh }) => ask("POST", `/v1/runs/${await fresh.waits()}/cancel`) },
  { name: "take up a failed run", at: "runs/{fails}", button: "Run again", call: async ({ ask, fresh }) => ask("POST", `/v1/runs/${await fresh.fails()}/retry`, {}) },
  { name: "approve", at: "approvals/{approval}", button: "Approve", call: ({ ask, names }) => ask("POST", `/v1/approvals/${names.approval}/decide`, { decision: "approve", expectedDigest: "0".repeat(64) }) },
  { name: "reject", at: "approvals/{approval}", button: "Reject", call: ({ ask, names }) => ask("POST", `/v1/approvals/${names.approval}/decide`, { decision: "reject", expectedDigest: "0".repeat(64) }) },
  { name: "approve in the run", at: "runs/{asks}", before: opensApproval, button: "Approve", call: withRead("/v1/runs/{asks}", ({ ask, names }) => ask("POST", `/v1/approvals/${names.approval}/decide`, { decision: "approve", expectedDigest: "0".repeat(64) })) },
  { name: "assign an approval", at: "approvals/{approval}", button: "Assign to me", call: ({ ask, names }) => ask("POST", `/v1/approvals/${names.approval}/assign`, { userId: NOBODY }) },
  { name: "escalate an approval", at: "approvals/{approval}", button: "Escalate", call: ({ ask, names }) => ask("POST", `/v1/approvals/${names.approval}/escalate`, { requiredRole: "No role" }) },
  { name: "see people", at: "runs", button: "People", call: ({ ask }) => ask("GET", "/v1/identity/users") },
  { name: "see service accounts", at: "runs", button: "Service accounts", call: ({ ask }) => ask("GET", "/v1/service-accounts") },
  { name: "see reviewers", at: "runs", button: "Reviewers", call: ({ ask }) => ask("GET", "/v1/reviewers") },
  { name: "see the access audit", at: "runs", button: "Access audit", call: ({ ask }) => ask("GET", "/v1/audit/authz") },
  { name: "store a flow", at: "flows?project={project}", button: "New flow", call: ({ ask, names }) => ask("POST", "/v1/flows", { projectId: names.project, definition: {} }) },
  { name: "store a version of a flow", at: "flows/{flow}", button: "New version", call: ({ ask, names }) => ask("POST", `/v1/flows/${names.flow}/versions`, { definition: {} }) },
  { name: "check a definition", at: "flows/{flow}", button: "New version", call: ({ ask, names }) => ask("POST", "/v1/flows/validate", { projectId: names.project, definition: {} }) },
  { name: "change a flow", at: "flows/{flow}", menu: "More", item: "Change title", call: ({ ask, names }) => ask("PATCH", `/v1/flows/${names.flow}`, {}) },
  { name: "make a flow live", at: "flows/{flow}/versions/1.1.0", button: "Make live", call: ({ ask, names }) => ask("POST", `/v1/flows/${names.flow}/promote`, { version: "9.9.9" }) },
  { name: "make a flow live in the list", at: "flows/{flow}", button: "Make live: 1.1.0", call: ({ ask, names }) => ask("POST", `/v1/flows/${names.flow}/promote`, { version: "9.9.9" }) },
  { name: "make no version of a flow live", at: "flows/{flow}", menu: "More", item: "Make no version live", call: async ({ ask, fresh }) => ask("POST", `/v1/flows/${await fresh.flow()}/promote`, { version: null }) },
  { name: "archive a flow", at: "flows/{flow}", menu: "More", item: "Archive", call: async ({ ask, fresh }) => ask("POST", `/v1/flows/${await fresh.flow()}/archive`) },
  { name: "bring a flow back", at: "flows/{oldFlow}", menu: "More", item: "Bring it back", call: async ({ ask, fresh }) => ask("POST", `/v1/flows/${await fresh.flow()}/unarchive`) },
  { name: "start a flow", at: "flows/{flow}", button: "Start a run", call: ({ ask, names }) => ask("POST", "/v1/runs", { projectId: names.project, flowId: "permit.fails" }) },
  {
    name: "make a project",
    at: "projects",
    button: "Make a project",
    // In an org, or in none.
    call: async ({ ask, names }) => {
      const status = await ask("POST", "/v1/projects", { name: "" });
      return status === 403 ? ask("POST", `/v1/orgs/${names.org}/projects`, { name: "" }) : status;
    },
  },
  { name: "rename a project", at: "projects/{project}", button: "Rename", call: ({ ask, names }) => ask("PATCH", `/v1/projects/${names.project}`, {}) },
  {
    name: "archive a project",
    at: "projects/{project}",
    menu: /^More/,
    item: "Archive",
    // In one like it, where it is nothing new: the others go on with theirs.
    call: ({ ask, names }) => ask("POST", `/v1/projects/${names.attic}/archive`),
  },
  // In the other one, where it is nothing new.
  { name: "bring a project back", at: "projects/{attic}", button: "Bring it back", call: ({ ask, names }) => ask("POST", `/v1/projects/${names.project}/unarchive`) },
  { name: "give a role on a project", at: "projects/{project}/access", button: "Add a person", call: ({ ask, names }) => ask("POST", `/v1/projects/${names.project}/memberships`, { userId: NOBODY, role: "viewer" }) },
  { name: "change a role on a project", at: "projects/{project}/access", menu: /Change project-viewer/, item: "Change the role", call: ({ ask, names }) => ask("PATCH", `/v1/projects/${names.project}/memberships/${names.viewer}`, { role: "viewer" }) },
  { name: "remove a member of a project", at: "projects/{project}/access", menu: /Change project-viewer/, item: "Remove", call: ({ ask, names }) => ask("DELETE", `/v1/projects/${names.project}/memberships/${NOBODY}`) },
  { name: "add a person", at: "people", button: "Add a person", call: ({ ask }) => ask("POST", "/v1/identity/users", { email: "none", displayName: "", tenantRole: "member" }) },
  { name: "change a person", at: "people/{person}", button: "Change", call: ({ ask, names }) => ask("PATCH", `/v1/identity/users/${names.person}`, {}) },
  { name: "make a sign-in link", at: "people/{person}", menu: /^More/, item: "Make a sign-in link", call: async ({ ask, fresh }) => ask("POST", `/v1/identity/users/${await fresh.person()}/enrolments`) },
  { name: "unlink an identity", at: "people/{person}", button: "Unlink from Permit", call: ({ ask, names }) => ask("DELETE", `/v1/identity/users/${names.person}/identities/${NOBODY}`) },
  { name: "sign a person out", at: "people/{person}", menu: /^More/, item: "Sign out everywhere", call: async ({ ask, fresh }) => ask("POST", `/v1/identity/users/${await fresh.person()}/sign-out`) },
  { name: "deactivate a person", at: "people/{person}", menu: /^More/, item: "Deactivate", call: async ({ ask, fresh }) => ask("POST", `/v1/identity/users/${await fresh.person()}/deactivate`) },
  { name: "make a team", at: "teams", button: "Make a team", call: ({ ask }) => ask("POST", "/v1/teams", { name: "", slug: "" }) },
  { name: "change a team", at: "teams/{team}", button: "Change", call: ({ ask, names }) => ask("PATCH", `/v1/teams/${names.team}`, {}) },
  // Finding a person reads the tenant's people (section 5.4, rule 3).
  { name: "add to a team", at: "teams/{team}", button: "Add to the team", call: withRead("/v1/identity/users?limit=1", ({ ask, names }) => ask("POST", `/v1/teams/${names.team}/memberships`, { userId: NOBODY, role: "member" })) },
  { name: "change a role in a team", at: "teams/{team}", menu: /Change team-member/, item: "Change the role", call: ({ ask, names }) => ask("PATCH", `/v1/teams/${names.team}/memberships/${NOBODY}`, { role: "member" }) },
  { name: "remove from a team", at: "teams/{team}", menu: /Change team-member/, item: "Remove", call: ({ ask, names }) => ask("DELETE", `/v1/teams/${names.team}/memberships/${NOBODY}`) },
  { name: "add a service account", at: "service-accounts", button: "Add a service account", call: ({ ask }) => ask("POST", "/v1/service-accounts", { name: "" }) },
  { name: "rename a service account", at: "service-accounts/{account}", button: "Rename", call: ({ ask, names }) => ask("PATCH", `/v1/service-accounts/${names.account}`, {}) },
  { name: "make a key of a service account", at: "service-accounts/{account}", button: "Make a key", call: ({ ask, names }) => ask("POST", `/v1/service-accounts/${names.account}/tokens`, { name: "" }) },
  // Its page is the tenant admins'.
  { name: "give a service account a role", at: "service-accounts/{account}", button: "Give a role", call: onAccount(({ ask, names }) => ask("POST", `/v1/projects/${names.project}/memberships`, { userId: NOBODY, role: "viewer" })) },
  { name: "change a service account's role", at: "service-accounts/{account}", menu: /Change the role on permit/, item: "Change the role", call: onAccount(({ ask, names }) => ask("PATCH", `/v1/projects/${names.project}/memberships/${NOBODY}`, { role: "viewer" })) },
  { name: "remove a service account's role", at: "service-accounts/{account}", menu: /Change the role on permit/, item: "Remove", call: onAccount(({ ask, names }) => ask("DELETE", `/v1/projects/${names.project}/memberships/${NOBODY}`)) },
  { name: "revoke a service account's key", at: "service-accounts/{account}", button: /^Revoke permit,/, call: ({ ask, names }) => ask("DELETE", `/v1/service-accounts/${names.account}/tokens/${NOBODY}`) },
  { name: "deactivate a service account", at: "service-accounts/{account}", menu: /^More/, item: "Deactivate", call: async ({ ask, fresh }) => ask("POST", `/v1/service-accounts/${await fresh.account()}/deactivate`) },
  { name: "see how people sign in", at: "runs", button: "Sign-in", call: ({ ask }) => ask("GET", "/v1/sign-in-settings") },
  { name: "register an identity provider", at: "sign-in-settings", button: "Register a provider", call: ({ ask }) => ask("POST", "/v1/identity-providers", { name: "" }) },
  { name: "change who signs in", at: "sign-in-settings", button: "Change", call: ({ ask }) => ask("PUT", "/v1/sign-in-settings", { tokenSignIn: "never" }) },
  { name: "change an identity provider", at: "identity-providers/{signin}", button: "Change", call: ({ ask, names }) => ask("PATCH", `/v1/identity-providers/${names.signin}`, {}) },
  { name: "delete an identity provider", at: "identity-providers/{signin}", menu: /^More/, item: "Delete", call: async ({ ask, fresh }) => ask("DELETE", `/v1/identity-providers/${await fresh.signin()}`) },
  { name: "check an identity provider", at: "identity-providers/{signin}", button: "Check", call: ({ ask, names }) => ask("POST", `/v1/identity-providers/${names.signin}/check`) },
  { name: "make an org", at: "orgs", button: "Make an org", call: ({ ask }) => ask("POST", "/v1/orgs", { name: "" }) },
  { name: "rename an org", at: "orgs/{org}", button: "Rename", call: ({ ask, names }) => ask("PATCH", `/v1/orgs/${names.org}`, {}) },
  { name: "make a project in an org", at: "orgs/{org}", button: /^Make a project/, call: ({ ask, names }) => ask("POST", `/v1/orgs/${names.org}/projects`, { name: "" }) },
  { name: "add an admin to an org", at: "orgs/{org}", button: "Add an admin", call: ({ ask, names }) => ask("POST", `/v1/orgs/${names.org}/admins`, { userId: NOBODY }) },
  { name: "remove an admin of an org", at: "orgs/{org}", button: "Remove org-admin", call: ({ ask, names }) => ask("DELETE", `/v1/orgs/${names.org}/admins/${NOBODY}`) },
  { name: "give a reviewer role", at: "reviewers", button: "Give a reviewer role", call: ({ ask }) => ask("POST", "/v1/reviewers", { userId: NOBODY, role: "standard" }) },
  { name: "take a reviewer role", at: "reviewers", button: "Take the role standard from reviewer", call: ({ ask, names }) => ask("DELETE", `/v1/reviewers/${names.viewer}/standard`) },
  { name: "make a key", at: "keys", button: "Make a key", call: ({ ask }) => ask("POST", "/v1/tokens", { name: "" }) },
  { name: "revoke a key of one's own", at: "keys", button: /^Revoke /, call: ({ ask }) => ask("DELETE", `/v1/tokens/${NOBODY}`) },
  { name: "end a session", at: "me", button: /^End: /, call: ({ ask }) => ask("DELETE", `/v1/identity/me/sessions/${NOBODY}`) },
  { name: "end all other sessions", at: "me", button: "End all others", call: ({ ask }) => ask("DELETE", `/v1/identity/me/sessions/${NOBODY}`) },
];

const figures = { "shown and allowed": 0, "hidden and refused": 0, wrong: 0 };
const [offered, kept] = [new Set(), new Set()];
/** What the acts asked, by the names of the client's calls. @type {Set<string>} */
const askedOf = new Set();
let met;

stage(async () => {
  const { by, ...places } = await callers(place.api.baseUrl ?? place.url, place.api);
  const { fresh, ...found } = await objects(place.api, places.project, by);
  met = { by, fresh, names: { ...places, ...found, person: by.member.userId, viewer: by["project viewer"].userId } };
  // Whom a member is at the provider: the act needs the row, and no sign-in.
  sql(place, `insert into identities select tenant_id, gen_random_uuid(), identity_provider_id, 'permit', '${by.member.userId}', 'member@permit.example', now(), now() from identity_providers where identity_provider_id = '${found.signin}'`);
}, { authorization: true });

after(() => {
  console.log(`acts ${Object.entries(figures).map(([name, count]) => `${name}: ${count}`).join(", ")}`);
});

/** Whether the page in sight offers the act. @param {any} page @param {Act} act */
async function offers(page, act) {
  await act.before?.(page);
  const place = act.inside ? page.locator(act.inside) : page;
  const named = (role, name) => place.getByRole(role, { name, exact: typeof name === "string" });
  if (act.button) return (await named("button", act.button).or(named("link", act.button)).count()) > 0;
  const menu = named("button", act.menu).first();
  if (!(await menu.count())) return false;
  await menu.click();
  await page.getByRole("menu").waitFor();
  const found = await page.getByRole("menuitem", { name: new RegExp(`^${act.item}`) }).count();
  await page.keyboard.press("Escape");
  await page.getByRole("menu").waitFor({ state: "detached" });
  return found > 0;
}

/** Whether the page comes to offer the act. @param {any} page @param {Act} act */
async function isOfferedLater(page, act) {
  for (const end = Date.now() + LATER_MS; Date.now() < end; await page.waitForTimeout(100)) if (await offers(page, act)) return true;
  return false;
}

const CALLERS = ["tenant admin", "member", "org admin", "project owner", "project admin", "project editor", "project viewer", "team admin", "team member", "reviewer", "tenant admin's key without capabilities", "tenant admin's member key"];

/** @param {any} page @param {string} path */
async function goToNamed(page, path) {
  await goTo(page, path.replace(/\{(\w+)\}/g, (_, name) => met.names[name]));
  await settled(page);
}

/** Goes through every act as a caller of this kind. @param {string} kind */
async function tried(kind) {
  const tab = await open(browser, place.url, { token: met.by[kind].token });
  /** As the page itself asks, with its session. */
  const ask = (method, path, body) => {
    askedOf.add(operationOf(place.url, method, path));
    return tab.page.evaluate(
      async ([method, path, body]) => {
        const answer = await fetch(path, { method, ...(body ? { headers: { "content-type": "application/json" }, body: JSON.stringify(body) } : {}) });
        // Until it is read it counts as being read.
        await answer.arrayBuffer();
        return answer.status;
      },
      [method, path, body],
    );
  };
  /** Whether a list has anything for them. */
  const lists = (path) => tab.page.evaluate(async (path) => ((await (await fetch(path)).json()).data.length ? 200 : 403), path);
  const wrong = [];
  try {
    // In another browser, too.
    await fetch(`${place.url}/v1/sign-in/token`, { method: "POST", headers: { "content-type": "application/json", origin: new URL(place.url).origin }, body: JSON.stringify({ token: met.by[kind].token }) });
    await visit(tab, "welcome");
    for (const path of new Set(ACTS.map((act) => act.at))) {
      await goToNamed(tab.page, path);
      const acts = ACTS.filter((one) => one.at === path);
      const inSight = [];
      for (const act of acts) inSight.push(await offers(tab.page, act));
      const statuses = await Promise.all(acts.map((act) => act.call({ ...met, api: place.api, ask, lists })));
      for (const [index, act] of acts.entries()) {
        const status = statuses[index];
        const isAllowed = status !== 403;
        // What comes a moment later on a busy machine is offered as well.
        const isOffered = inSight[index] || (isAllowed && (await isOfferedLater(tab.page, act)));
        if (status === 401 || status >= 500) wrong.push(`${act.name}: the server answered ${status}`);
        if (isOffered !== isAllowed) wrong.push(`${act.name}: ${isOffered ? "offered" : "hidden"}, and answered ${status}`);
        if (isOffered === isAllowed) figures[isOffered ? "shown and allowed" : "hidden and refused"]++;
        else figures.wrong++;
        (isOffered ? offered : kept).add(act.name);
      }
    }
    wrong.push(...tab.faults());
  } finally {
    await tab.context.close();
  }
  assert.deepEqual(wrong, [], `a ${kind}:\n  ${wrong.join("\n  ")}`);
}

// Each in a browser of its own: some at once.
describe("4.2: what each is offered is what the server allows", { concurrency: 3 }, () => {
  for (const kind of CALLERS) test(`4.2: a ${kind}`, () => tried(kind));
});

/** What everybody may do. */
const EVERYBODYS = new Set(["see model providers", "see environments", "see policies"]);

/** The calls that change something which the console's source has. @returns {Set<string>} */
function callsOfTheConsole() {
  const folder = fileURLToPath(new URL("../../static/console/", import.meta.url));
  const files = readdirSync(folder, { recursive: true }).map(String).filter((file) => file.endsWith(".js") && !file.startsWith("node_modules"));
  const calls = new Set();
  for (const file of files) {
    const text = readFileSync(`${folder}${file}`, "utf8");
    for (const [, call] of text.matchAll(/\bapi\.([a-zA-Z.]+)\(/g)) calls.add(call);
    // What is handed on whole has its acts in `versions.js`.
    for (const [, noun] of text.matchAll(/\bcalls: api\.([a-zA-Z.]+)\b/g)) for (const verb of ["archive", "unarchive"]) calls.add(`${noun}.${verb}`);
  }
  return calls;
}

test("4.2: every call of the console that changes something is one of an act", () => {
  const changing = changes(place.url);
  const calls = [...callsOfTheConsole()].filter((call) => changing.has(call));
  assert.ok(calls.length > 50, `${calls.length} calls were found in the source`);
  assert.deepEqual(calls.filter((call) => !askedOf.has(call)), [], "ACTS needs a line for each of these");
});

test("4.2: every act is offered to somebody, and kept from somebody", () => {
  const names = ACTS.map((act) => act.name);
  assert.deepEqual(names.filter((name) => !offered.has(name)), []);
  assert.deepEqual(names.filter((name) => !kept.has(name) && !EVERYBODYS.has(name)), []);
});
