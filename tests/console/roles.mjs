/**
 * One caller of each kind, each with a key: what the tests of permissions go through. All of them meet one project with an
 * agent, a flow, a tool, runs, a team, an org, and what belongs to the tenant.
 */

import { AgentRuntime } from "../../clients/typescript/src/index.js";
import { newSigningSecret } from "../../static/console/signing-secret.js";
import { eventually, example } from "./look-up.mjs";

/** @typedef {{ token: string, api: AgentRuntime, userId: string }} Caller */

const ALL = ["access:write", "env:write", "keys:write", "secrets:write"];

/** A flow that waits, so that its runs can be cancelled; and one that fails. */
const WAITS = { document: { dsl: "1.0.3", namespace: "permit", name: "waits", version: "1.0.0" }, do: [{ wait: { wait: { hours: 5 } } }] };
const FAILS = { document: { dsl: "1.0.3", namespace: "permit", name: "fails", version: "1.0.0" }, do: [{ stop: { raise: { error: { type: "https://example.com/errors/none", status: 500, title: "It fails" } } } }] };
const ASKS = { document: { dsl: "1.0.3", namespace: "permit", name: "asks", version: "1.0.0" }, do: [{ ask: { call: "approval", with: { title: "May it go on?", requiredRole: "standard" } } }] };

/**
 * @param {string} url of the server
 * @param {AgentRuntime} api of the tenant admin that the server began with
 */
export async function callers(url, api) {
  const org = await api.orgs.create({ name: "Permit" });
  const project = await api.orgs.projects.create(org.id, { name: "permit" });
  // Another one with the same roles, which is archived in the end.
  const attic = await api.orgs.projects.create(org.id, { name: "permit before" });
  const both = [project.id, attic.id];
  const team = await api.teams.create({ name: "Permit", slug: "permit" });
  for (const id of both) await api.projects.teamGrants.add(id, { teamId: team.id, role: "editor" });
  /** @param {string} name @param {any} [more] */
  const person = async (name, more = {}) => {
    const user = await api.users.add({ email: `${name}@permit.example`, displayName: name, tenantRole: "member", ...more });
    const { code } = await api.users.enrolments.create(user.id);
    return caller((await api.enrolments.redeem({ code })).token, user.id);
  };
  /** @param {string} token @param {string} userId @returns {Caller} */
  const caller = (token, userId) => ({ token, userId, api: new AgentRuntime({ baseUrl: url, token }) });
  /** Another key of a person's. @param {Caller} of @param {any} limits */
  const key = async (of, limits) => caller((await of.api.tokens.create({ name: "limited", ...limits })).token, of.userId);
  /** @type {Record<string, Caller>} */
  const by = {};
  by["tenant admin"] = await person("admin", { tenantRole: "admin" });
  by.member = await person("member");
  by["org admin"] = await person("org-admin");
  await api.orgs.admins.add(org.id, { userId: by["org admin"].userId });
  for (const role of ["owner", "admin", "editor", "viewer"]) {
    by[`project ${role}`] = await person(`project-${role}`);
    for (const id of both) await api.projects.memberships.add(id, { userId: by[`project ${role}`].userId, role });
  }
  for (const role of ["admin", "member"]) {
    by[`team ${role}`] = await person(`team-${role}`);
    await api.teams.memberships.add(team.id, { userId: by[`team ${role}`].userId, role });
  }
  by.reviewer = await person("reviewer");
  // One who reviews and may read the runs as well.
  for (const reviewer of [by.reviewer, by["project editor"]]) await api.reviewers.register({ userId: reviewer.userId, role: "standard" });
  by["tenant admin's key without capabilities"] = await key(by["tenant admin"], { role: "admin", capabilities: [] });
  by["tenant admin's member key"] = await key(by["tenant admin"], { role: "member", capabilities: ALL });
  await api.projects.archive(attic.id);
  // A key that is limited to a project signs nobody in.
  return { by, project: project.id, attic: attic.id, org: org.id, team: team.id };
}

/**
 * What the callers meet in the project and in the tenant.
 * @param {AgentRuntime} api of the tenant admin that the server began with
 * @param {string} projectId
 * @param {Record<string, Caller>} by the callers
 */
export async function objects(api, projectId, by) {
  const { id, latestVersion } = await example(api);
  const given = await api.agents.versions.get(id, latestVersion);
  const version = { instructions: "Answer.", model: given.model, modelProviderId: given.modelProviderId, toolIds: [] };
  const agent = await api.agents.create({ projectId, name: "permit" });
  for (const one of ["1.0.0", "1.1.0"]) await api.agents.versions.create(agent.id, { ...version, version: one });
  await api.agents.promote(agent.id, { version: "1.0.0" });
  const flows = {};
  for (const definition of [WAITS, FAILS, ASKS]) flows[definition.document.name] = await api.flows.create({ projectId, definition });
  await api.flows.versions.create(flows.waits.id, { definition: { ...WAITS, document: { ...WAITS.document, version: "1.1.0" } } });
  await api.flows.promote(flows.waits.id, { version: "1.0.0" });
  const start = async (/** @type {string} */ name) => (await api.runs.create({ flowId: `permit.${name}`, projectId })).run.id;
  const waits = async () => {
    const id = await start("waits");
    await eventually(async () => (await api.runs.get(id)).status === "waiting");
    return id;
  };
  const fails = async () => (await api.runs.wait(await start("fails"))).id;
  const asks = await start("asks");
  const secretRef = { envName: "permit", name: "WEBHOOK_SECRET" };
  const secret = async (name = `FRESH_${Math.random().toString(36).slice(2).toUpperCase()}`) => (await api.secrets.put("permit", name, { value: newSigningSecret() }), name);
  await secret("WEBHOOK_SECRET");
  const use = async (name = `FRESH_${Math.random().toString(36).slice(2).toUpperCase()}`) => (await api.secretUses.create({ name, target: "origin:http://127.0.0.1:9", projectId })).id;
  // With it whoever may register a tool may send the secret there.
  await use("KEY");
  const variable = async (name = `FRESH_V_${Math.random().toString(36).slice(2).toUpperCase()}`) => (await api.environments.variables.put("permit", name, { value: "one" }), name);
  await variable("MODE");
  const endpoint = async () => (await api.webhookEndpoints.create({ url: "http://127.0.0.1:9/permit", events: ["improvement-pass.finished"], secretRef })).endpointId;
  const provider = async () => (await api.modelProviders.create({ name: `permit-${crypto.randomUUID()}`, baseUrl: "http://127.0.0.1:9/v1", models: [{ name: "m", prices: {} }] })).id;
  const tool = async () => (await api.tools.register({ projectId, name: `t_${crypto.randomUUID()}`, description: "", argumentsSchema: { type: "object" }, url: "http://127.0.0.1:9/" })).id;
  const freshAgent = async () => (await api.agents.create({ projectId, name: `fresh-${crypto.randomUUID()}` })).id;
  const person = async () => (await api.users.add({ email: `${crypto.randomUUID()}@permit.example`, displayName: "Another", tenantRole: "member" })).id;
  const conversation = async () => (await api.conversations.create({ agentId: agent.id })).id;
  const freshFlow = async () => (await api.flows.create({ projectId, definition: { ...WAITS, document: { ...WAITS.document, name: `fresh-${crypto.randomUUID()}` } } })).id;
  const freshAccount = async () => (await api.serviceAccounts.create({ name: `fresh-${crypto.randomUUID()}` })).id;
  const account = (await api.serviceAccounts.create({ name: "permit" })).id;
  await api.serviceAccounts.tokens.create(account, { name: "permit", role: "member", capabilities: [] });
  await api.projects.memberships.add(projectId, { userId: account, role: "viewer" });
  const freshSignin = async (name = crypto.randomUUID()) => (await api.identityProviders.create({ name, issuer: `https://${name.toLowerCase()}.permit.example/`, clientId: "permit" })).id;
  const signin = await freshSignin("Permit");
  const [oldAgent, oldFlow] = [await freshAgent(), await freshFlow()];
  await Promise.all([api.agents.archive(oldAgent), api.flows.archive(oldFlow)]);
  const { asking, failing } = await turns(api, projectId, version, by.reviewer);
  const first = await endpoint();
  const delivery = (await api.webhookEndpoints.sendTest(first)).id;
  const approval = await eventually(async () => {
    const step = (await api.runs.get(asks)).waitingFor === "approval";
    return step && (await api.runs.progress(asks, { limit: 200 })).data.map((event) => event.data?.approvalId).find(Boolean);
  });
  return {
    ...{ account, signin, agent: agent.id, flow: flows.waits.id, endpoint: first, delivery, secret: "WEBHOOK_SECRET", approval, asks, oldAgent, oldFlow, asking, failing },
    ...{ provider: await provider(), tool: await tool(), conversation: await conversation(), waits: await waits(), fails: await fails() },
    /** Another one each time: for what ends what it acts on. */
    fresh: { endpoint, secret, use, variable, provider, tool, agent: freshAgent, flow: freshFlow, account: freshAccount, signin: freshSignin, conversation, waits, fails, person },
  };
}

/**
 * A conversation whose turn waits for a person, and one whose turn has failed, since a person said no.
 * @param {AgentRuntime} api @param {string} projectId @param {any} version of an agent @param {Caller} reviewer who started neither
 */
async function turns(api, projectId, version, reviewer) {
  const tool = await api.tools.register({ projectId, name: "pay_refund", description: "", argumentsSchema: { type: "object" }, url: "http://127.0.0.1:9/", approval: { title: "Pay a refund", requiredRole: "standard", expiresAfter: "P2D", onReject: "fail" } });
  const agent = await api.agents.create({ projectId, name: "pays" });
  await api.agents.versions.create(agent.id, { ...version, version: "1.0.0", toolIds: [tool.id] });
  const asked = async () => {
    const conversation = await api.conversations.create({ agentId: agent.id });
    const { run } = await api.runs.create({ agentId: agent.id, conversationId: conversation.id, message: "Please pay refund of order A-1." });
    const approval = await eventually(async () => (await reviewer.api.approvals.list({ runId: run.id })).data[0], "an approval");
    return { conversation: conversation.id, run: run.id, approval: approval.id };
  };
  const [asking, failing] = [await asked(), await asked()];
  await reviewer.api.approvals.decide(failing.approval, { decision: "reject" });
  await eventually(async () => (await api.runs.get(failing.run)).status === "failed", "a failed turn");
  return { asking: asking.conversation, failing: failing.conversation };
}
