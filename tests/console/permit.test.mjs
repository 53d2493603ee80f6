/**
 * Hidden if and only if refused: each act that the console offers, for a caller of each kind. Where its button stands the
 * server must not answer 403 to its call, and where the server does not, the button must stand. So a rule that changes on one
 * side alone fails here.
 *
 * What ends the thing that it acts on acts on another one each time.
 */

import assert from "node:assert/strict";
import { after, describe, test } from "node:test";
import { open, settled, visit } from "./browser.mjs";
import { callers, objects } from "./roles.mjs";
import { browser, place, stage } from "./stage.mjs";

/**
 * @typedef {{ names: Record<string, any>, fresh: Record<string, () => Promise<string>>, api: import("../../clients/typescript/src/index.js").AgentRuntime, ask: (method: string, path: string, body?: unknown) => Promise<number> }} World
 * @typedef {object} Act
 * @property {string} name
 * @property {string} at the page, as in `pages.mjs`
 * @property {string | RegExp} [button] the button or link that offers it
 * @property {string | RegExp} [menu] the button of the menu that has it
 * @property {string} [item] its beginning in the menu
 * @property {(world: World) => Promise<number>} call the status of the server's answer
 */

const NOBODY = "00000000-0000-7000-8000-000000000000";
const NEW_TOOL = (projectId, more = {}) => ({ projectId, name: "no name", description: "", argumentsSchema: { type: "object" }, url: "http://127.0.0.1:9/", ...more });

/** @type {Act[]} */
const ACTS = [
  { name: "see webhooks", at: "runs", button: "Webhooks", call: ({ ask }) => ask("GET", "/v1/webhook-endpoints") },
  { name: "see secrets", at: "runs", button: "Secrets", call: ({ ask }) => ask("GET", "/v1/secrets") },
  { name: "see model providers", at: "runs", button: "Model providers", call: ({ ask }) => ask("GET", "/v1/model-providers") },
  { name: "see approvals", at: "runs", button: "Approvals", call: ({ ask }) => ask("GET", "/v1/approvals") },
  { name: "register an endpoint", at: "webhooks", button: "Add an endpoint", call: ({ ask }) => ask("POST", "/v1/webhook-endpoints", { url: "http://127.0.0.1:9/", events: ["run.finished"], secretRef: { envName: "permit", name: "NONE" } }) },
  { name: "send a test", at: "webhooks/{endpoint}", button: "Send a test", call: ({ ask, names }) => ask("POST", `/v1/webhook-endpoints/${names.endpoint}/test`) },
  { name: "change an endpoint", at: "webhooks/{endpoint}", menu: "More", item: "Change", call: ({ ask, names }) => ask("PATCH", `/v1/webhook-endpoints/${names.endpoint}`, {}) },
  { name: "send again what failed", at: "webhooks/{endpoint}", menu: "More", item: "Send again", call: ({ ask, names }) => ask("POST", `/v1/webhook-endpoints/${names.endpoint}/resend`, { failedSince: new Date().toISOString() }) },
  { name: "unregister an endpoint", at: "webhooks/{endpoint}", menu: "More", item: "Unregister", call: async ({ ask, fresh }) => ask("DELETE", `/v1/webhook-endpoints/${await fresh.endpoint()}`) },
  { name: "send a delivery again", at: "webhooks/{endpoint}/deliveries/{delivery}", button: "Send again", call: ({ ask, names }) => ask("POST", `/v1/webhook-endpoints/${names.endpoint}/deliveries/${names.delivery}/resend`) },
  { name: "put a secret", at: "secrets", button: "Put a secret", call: ({ ask }) => ask("PUT", "/v1/secrets/permit/PUT_BY_ALL", { value: "one" }) },
  { name: "delete a secret", at: "secrets?environment=permit", menu: /^Acts/, item: "Delete", call: async ({ ask, fresh }) => ask("DELETE", `/v1/secrets/permit/${await fresh.secret()}`) },
  { name: "register a provider", at: "model-providers", button: "Register a provider", call: ({ ask }) => ask("POST", "/v1/model-providers", { name: "permit", baseUrl: "nowhere", models: [{ name: "m" }] }) },
  { name: "change a provider", at: "model-providers/{provider}", button: "Change", call: ({ ask, names }) => ask("PATCH", `/v1/model-providers/${names.provider}`, {}) },
  { name: "delete a provider", at: "model-providers/{provider}", menu: "More", item: "Delete", call: async ({ ask, fresh }) => ask("DELETE", `/v1/model-providers/${await fresh.provider()}`) },
  { name: "register a tool", at: "tools?project={project}", button: "Register a tool", call: ({ ask, names }) => ask("POST", "/v1/tools", NEW_TOOL(names.project)) },
  { name: "register a tool like another", at: "tools/{tool}", button: "Register another like it", call: ({ ask, names }) => ask("POST", "/v1/tools", NEW_TOOL(names.project)) },
  { name: "delete a tool", at: "tools/{tool}", menu: "More", item: "Delete", call: async ({ ask, fresh }) => ask("DELETE", `/v1/tools/${await fresh.tool()}`) },
  { name: "name a secret in a tool", at: "tools/new?project={project}", button: "Add a header with a secret", call: ({ ask, names }) => ask("POST", "/v1/tools", NEW_TOOL(names.project, { headers: [{ name: "Authorization", secret: "KEY" }] })) },
  { name: "make an agent", at: "agents?project={project}", button: "New agent", call: ({ ask, names }) => ask("POST", "/v1/agents", { projectId: names.project, name: "permit" }) },
  { name: "make a version", at: "agents/{agent}", button: "New version", call: ({ ask, names }) => ask("POST", `/v1/agents/${names.agent}/versions`, { version: "9.0.0", instructions: "", model: "none", modelProviderId: names.provider }) },
  { name: "change an agent", at: "agents/{agent}", menu: "More", item: "Change name", call: ({ ask, names }) => ask("PATCH", `/v1/agents/${names.agent}`, {}) },
  { name: "archive an agent", at: "agents/{agent}", menu: "More", item: "Archive", call: async ({ ask, fresh }) => ask("POST", `/v1/agents/${await fresh.agent()}/archive`) },
  { name: "make no version live", at: "agents/{agent}", menu: "More", item: "Make no version live", call: async ({ ask, fresh }) => ask("POST", `/v1/agents/${await fresh.agent()}/promote`, { version: null }) },
  { name: "promote a version", at: "agents/{agent}/versions/1.1.0", button: "Make live", call: ({ ask, names }) => ask("POST", `/v1/agents/${names.agent}/promote`, { version: "9.9.9" }) },
  { name: "begin a conversation", at: "conversations?project={project}", button: /conversation$/i, call: ({ ask, names }) => ask("POST", "/v1/conversations", { agentId: names.agent }) },
  { name: "erase a conversation", at: "conversations/{conversation}", button: "Erase", call: async ({ ask, fresh }) => ask("DELETE", `/v1/conversations/${await fresh.conversation()}`) },
  { name: "cancel a run", at: "runs/{waits}", button: "Cancel", call: async ({ ask, fresh }) => ask("POST", `/v1/runs/${await fresh.waits()}/cancel`) },
  { name: "take up a failed run", at: "runs/{fails}", button: "Run again", call: async ({ ask, fresh }) => ask("POST", `/v1/runs/${await fresh.fails()}/retry`, {}) },
  { name: "approve", at: "approvals/{approval}", button: "Approve", call: ({ ask, names }) => ask("POST", `/v1/approvals/${names.approval}/decide`, { decision: "approve", expectedDigest: "0".repeat(64) }) },
  { name: "assign an approval", at: "approvals/{approval}", button: "Assign to me", call: ({ ask, names }) => ask("POST", `/v1/approvals/${names.approval}/assign`, { userId: NOBODY }) },
  { name: "escalate an approval", at: "approvals/{approval}", button: "Escalate", call: ({ ask, names }) => ask("POST", `/v1/approvals/${names.approval}/escalate`, { requiredRole: "No role" }) },
  { name: "see people", at: "runs", button: "People", call: ({ ask }) => ask("GET", "/v1/identity/users") },
  { name: "see service accounts", at: "runs", button: "Service accounts", call: ({ ask }) => ask("GET", "/v1/service-accounts") },
  { name: "see reviewers", at: "runs", button: "Reviewers", call: ({ ask }) => ask("GET", "/v1/reviewers") },
  { name: "see the access audit", at: "runs", button: "Access audit", call: ({ ask }) => ask("GET", "/v1/audit/authz") },
  { name: "store a flow", at: "flows?project={project}", button: "New flow", call: ({ ask, names }) => ask("POST", "/v1/flows", { projectId: names.project, definition: {} }) },
  { name: "store a version of a flow", at: "flows/{flow}", button: "New version", call: ({ ask, names }) => ask("POST", `/v1/flows/${names.flow}/versions`, { definition: {} }) },
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
  { name: "give a role on a project", at: "projects/{project}/access", button: "Add a person", call: ({ ask, names }) => ask("POST", `/v1/projects/${names.project}/memberships`, { userId: NOBODY, role: "viewer" }) },
  { name: "change a role on a project", at: "projects/{project}/access", menu: /Change project-viewer/, item: "Change the role", call: ({ ask, names }) => ask("PATCH", `/v1/projects/${names.project}/memberships/${names.viewer}`, { role: "viewer" }) },
  { name: "add a person", at: "people", button: "Add a person", call: ({ ask }) => ask("POST", "/v1/identity/users", { email: "none", displayName: "", tenantRole: "member" }) },
  { name: "change a person", at: "people/{person}", button: "Change", call: ({ ask, names }) => ask("PATCH", `/v1/identity/users/${names.person}`, {}) },
  { name: "sign a person out", at: "people/{person}", menu: /^More/, item: "Sign out everywhere", call: async ({ ask, fresh }) => ask("POST", `/v1/identity/users/${await fresh.person()}/sign-out`) },
  { name: "deactivate a person", at: "people/{person}", menu: /^More/, item: "Deactivate", call: async ({ ask, fresh }) => ask("POST", `/v1/identity/users/${await fresh.person()}/deactivate`) },
  { name: "make a team", at: "teams", button: "Make a team", call: ({ ask }) => ask("POST", "/v1/teams", { name: "", slug: "" }) },
  { name: "change a team", at: "teams/{team}", button: "Change", call: ({ ask, names }) => ask("PATCH", `/v1/teams/${names.team}`, {}) },
  {
    name: "add to a team",
    at: "teams/{team}",
    button: "Add to the team",
    // Finding a person reads the tenant's people (section 5.4, rule 3).
    call: async ({ ask, names }) => {
      const status = await ask("GET", "/v1/identity/users?limit=1");
      return status === 403 ? status : ask("POST", `/v1/teams/${names.team}/memberships`, { userId: NOBODY, role: "member" });
    },
  },
  { name: "add a service account", at: "service-accounts", button: "Add a service account", call: ({ ask }) => ask("POST", "/v1/service-accounts", { name: "" }) },
  { name: "rename a service account", at: "service-accounts/{account}", button: "Rename", call: ({ ask, names }) => ask("PATCH", `/v1/service-accounts/${names.account}`, {}) },
  { name: "make a key of a service account", at: "service-accounts/{account}", button: "Make a key", call: ({ ask, names }) => ask("POST", `/v1/service-accounts/${names.account}/tokens`, { name: "" }) },
  {
    name: "give a service account a role",
    at: "service-accounts/{account}",
    button: "Give a role",
    // Its page is the tenant admins'.
    call: async ({ ask, names }) => {
      const status = await ask("GET", `/v1/service-accounts/${names.account}`);
      return status === 403 ? status : ask("POST", `/v1/projects/${names.project}/memberships`, { userId: NOBODY, role: "viewer" });
    },
  },
  { name: "see how people sign in", at: "runs", button: "Sign-in", call: ({ ask }) => ask("GET", "/v1/sign-in-settings") },
  { name: "register an identity provider", at: "sign-in-settings", button: "Register a provider", call: ({ ask }) => ask("POST", "/v1/identity-providers", { name: "" }) },
  { name: "change who signs in", at: "sign-in-settings", button: "Change", call: ({ ask }) => ask("PUT", "/v1/sign-in-settings", { tokenSignIn: "never" }) },
  { name: "change an identity provider", at: "identity-providers/{signin}", button: "Change", call: ({ ask, names }) => ask("PATCH", `/v1/identity-providers/${names.signin}`, {}) },
  { name: "check an identity provider", at: "identity-providers/{signin}", button: "Check", call: ({ ask, names }) => ask("POST", `/v1/identity-providers/${names.signin}/check`) },
  { name: "make an org", at: "orgs", button: "Make an org", call: ({ ask }) => ask("POST", "/v1/orgs", { name: "" }) },
  { name: "rename an org", at: "orgs/{org}", button: "Rename", call: ({ ask, names }) => ask("PATCH", `/v1/orgs/${names.org}`, {}) },
  { name: "make a project in an org", at: "orgs/{org}", button: /^Make a project/, call: ({ ask, names }) => ask("POST", `/v1/orgs/${names.org}/projects`, { name: "" }) },
  { name: "add an admin to an org", at: "orgs/{org}", button: "Add an admin", call: ({ ask, names }) => ask("POST", `/v1/orgs/${names.org}/admins`, { userId: NOBODY }) },
  { name: "give a reviewer role", at: "reviewers", button: "Give a reviewer role", call: ({ ask }) => ask("POST", "/v1/reviewers", { userId: NOBODY, role: "standard" }) },
  { name: "make a key", at: "keys", button: "Make a key", call: ({ ask }) => ask("POST", "/v1/tokens", { name: "" }) },
];

const figures = { "shown and allowed": 0, "hidden and refused": 0, wrong: 0 };
const [offered, kept] = [new Set(), new Set()];
let met;

stage(async () => {
  const { by, ...places } = await callers(place.api.baseUrl ?? place.url, place.api);
  const { fresh, ...found } = await objects(place.api, places.project);
  met = { by, fresh, names: { ...places, ...found, person: by.member.userId, viewer: by["project viewer"].userId } };
}, { authorization: true });

after(() => {
  console.log(`acts ${Object.entries(figures).map(([name, count]) => `${name}: ${count}`).join(", ")}`);
});

/** Whether the page in sight offers the act. @param {any} page @param {Act} act */
async function offers(page, act) {
  const named = (role, name) => page.getByRole(role, { name, exact: typeof name === "string" });
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

const CALLERS = ["tenant admin", "member", "org admin", "project owner", "project admin", "project editor", "project viewer", "team admin", "team member", "reviewer", "tenant admin's key without capabilities", "tenant admin's member key"];

/** Goes to a page as a link does, without loading the document anew. @param {any} page @param {string} path */
async function goTo(page, path) {
  await page.evaluate(async (to) => (await import("/console/assets/route.js")).go(to), `/console/${path.replace(/\{(\w+)\}/g, (_, name) => met.names[name])}`);
  await settled(page);
}

/** Goes through every act as a caller of this kind. @param {string} kind */
async function tried(kind) {
  const tab = await open(browser, place.url, { token: met.by[kind].token });
  /** As the page itself asks, with its session. */
  const ask = (method, path, body) =>
    tab.page.evaluate(async ([method, path, body]) => (await fetch(path, { method, ...(body ? { headers: { "content-type": "application/json" }, body: JSON.stringify(body) } : {}) })).status, [method, path, body]);
  const wrong = [];
  try {
    await visit(tab, "welcome");
    for (const path of new Set(ACTS.map((act) => act.at))) {
      await goTo(tab.page, path);
      const acts = ACTS.filter((one) => one.at === path);
      const inSight = [];
      for (const act of acts) inSight.push(await offers(tab.page, act));
      const statuses = await Promise.all(acts.map((act) => act.call({ ...met, api: place.api, ask })));
      for (const [index, act] of acts.entries()) {
        const [isOffered, status] = [inSight[index], statuses[index]];
        const isAllowed = status !== 403;
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
describe("what each is offered is what the server allows", { concurrency: 3 }, () => {
  for (const kind of CALLERS) test(`a ${kind}`, () => tried(kind));
});

/** What everybody may do. */
const EVERYBODYS = new Set(["see model providers"]);

test("every act is offered to somebody, and kept from somebody", () => {
  const names = ACTS.map((act) => act.name);
  assert.deepEqual(names.filter((name) => !offered.has(name)), []);
  assert.deepEqual(names.filter((name) => !kept.has(name) && !EVERYBODYS.has(name)), []);
});
