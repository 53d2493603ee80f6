/**
 * The story of `tests/show/clients`, told with the TypeScript client. `client_story.py` tells the same: line by line the
 * output is equal, but for the last one, which has what was counted.
 */

import { createServer } from "node:http";
import { isDeepStrictEqual } from "node:util";
import { AgentRuntime, AgentRuntimeError, WebhookSignatureError, parseEvent } from "../../clients/typescript/src/index.js";

const { NAME: name, PROVIDER_URL: providerUrl, SECRET: secret } = process.env;
const ENVIRONMENT = "prod";
const say = (line) => console.log(line);
const check = (holds, otherwise) => {
  if (!holds) throw new Error(otherwise);
};

const admin = new AgentRuntime();

// People.
const email = `ada.${name}@example.com`;
const person = await admin.users.add({ email, displayName: "Ada", tenantRole: "member" });
const { token } = await admin.enrolments.redeem({ code: person.enrolment.code, name: "laptop" });
const ada = new AgentRuntime({ token });
say("people: Ada was added, and has a key");

// A project, first without a role in it.
const project = await admin.projects.create({ name: `story ${name}` });
try {
  await ada.projects.access.list(project.id);
  check(false, "Ada reads who may do what");
} catch (error) {
  check(error instanceof AgentRuntimeError && error.code === "auth" && error.reason === "forbidden", String(error));
  check(error.message.includes("permission denied") && error.requestId, error.message);
  say(`denial: ${error.serverCode}`);
}
await admin.projects.memberships.add(project.id, { email: email.toUpperCase(), role: "viewer" });
try {
  await admin.projects.memberships.add(project.id, { email, role: "editor" });
  check(false, "a second role was added");
} catch (error) {
  say(`conflict: ${error.serverCode}, Ada is ${error.details.role}`);
}
await admin.projects.memberships.updateRole(project.id, person.id, { role: "editor" });
const roles = [];
for await (const entry of ada.projects.access.list(project.id)) if (entry.principal.id === person.id) roles.push(entry.role);
say(`project: Ada is ${roles}`);

// Webhooks, which this process receives.
await admin.secrets.put(ENVIRONMENT, `SIGNING_${name}`, { value: secret });
const events = [];
let arrived;
let refused = 0;
const receiver = createServer(async (request, response) => {
  const body = Buffer.concat(await request.toArray());
  try {
    events.push(await parseEvent({ body, headers: request.headers, secret }));
    response.writeHead(204).end();
    arrived?.();
  } catch (error) {
    if (!(error instanceof WebhookSignatureError)) throw error;
    refused++;
    response.writeHead(400).end();
  }
});
await new Promise((listening) => receiver.listen(0, "127.0.0.1", listening));
const hook = `http://127.0.0.1:${receiver.address().port}/`;
const { endpointId } = await admin.webhookEndpoints.create({
  url: hook,
  events: ["run.finished"],
  secretRef: { envName: ENVIRONMENT, name: `SIGNING_${name}` },
  filter: { projectId: project.id, flowIds: ["agent.turn"] },
});

// An agent, whose answer is followed while the server is killed.
const model = await admin.modelProviders.create({ name: `model ${name}`, baseUrl: providerUrl, models: [{ name: "show-model" }] });
const agent = await admin.agents.create({ projectId: project.id, name: "forecaster" });
await admin.agents.versions.create(agent.id, { version: "1.0.0", instructions: "Be brief.", modelProviderId: model.id, model: "show-model" });
say(`agent: ${(await admin.agents.promote(agent.id, { version: "1.0.0" })).liveVersion} is live`);
const { run } = await ada.runs.create({ agentId: agent.id, message: "What is the weather?" });
const seen = [];
let text = "";
let isSaid = false;
for await (const event of ada.runs.follow(run.id, { maxSilenceMs: 10_000 })) {
  if (event.kind !== "text.delta") {
    seen.push(event);
    if (event.kind === "step.started") text = "";
    continue;
  }
  check([...text].length === event.data.offset, `text of ${event.data.step}.${event.data.attempt} at ${event.data.offset}`);
  text += event.data.text;
  if (text.length < 40 || isSaid) continue;
  isSaid = true;
  say("run: the answer is half said");
}
const { data: wanted } = await ada.runs.progress(run.id, { limit: 200 });
check(isDeepStrictEqual(seen, wanted), `${seen.length} events of ${wanted.length}`);
const finished = await ada.runs.wait(run.id);
check((await ada.runs.payload(run.id)).output.text === text, `the text is ${text}`);
say(`run: ${finished.status} by ${finished.agent.version}, ${text}`);
while (!events.length) await new Promise((next) => (arrived = next));
const [{ type, data }] = events;
check(data.run.id === run.id, data.run.id);
const forged = await fetch(hook, { method: "POST", body: "{}", headers: { "webhook-id": "1", "webhook-timestamp": "1", "webhook-signature": "v1,AAAA" } });
check(forged.status === 400 && refused === 1, "a forged delivery was taken");
say(`webhook: ${type}, version ${data.run.agent.version}, ${data.run.usage.calls > 0}`);
await admin.webhookEndpoints.unregister(endpointId);
receiver.close();
receiver.closeAllConnections();

// A flow, which asks Ada.
await admin.reviewers.register({ userId: person.id, role: "finance" });
const definition = {
  document: { dsl: "1.0.3", namespace: `story-${name}`, name: "refund", version: "1.0.0" },
  do: [{ ask: { call: "approval", with: { title: "Refund of 180 EUR", requiredRole: "finance", context: "${ . }" } } }],
};
await admin.flows.create({ projectId: project.id, definition });
let refund;
for await (const event of ada.approvals.follow()) {
  if (event.kind === "stream.start")
    refund = (await admin.runs.create({ flowId: `story-${name}.refund`, input: { orderId: "A-17" } })).run;
  if (event.kind !== "approval.waiting") continue;
  const approval = await ada.approvals.get(event.data.approvalId);
  const { counts } = await ada.inbox.list();
  say(`flow: ${approval.title}, ${JSON.stringify(approval.subject.context)}, ${Object.values(counts).some((count) => count > 0)}`);
  await ada.approvals.decide(approval.id, { decision: "approve", comment: "It came broken.", expectedDigest: approval.subject.digest });
  break;
}
const steps = [];
const ended = await admin.runs.wait(refund.id);
for await (const step of admin.runs.steps.list(refund.id)) steps.push(`${step.kind} ${step.status}`);
say(`flow: ${ended.status}, ${steps}`);
const first = await admin.audit.authz({ order: "desc", limit: 1, outcome: "denied" });
say(`audit: ${first.data[0].outcome} ${first.data[0].actorSubject === `user:${person.id}`}`);
console.log(JSON.stringify({ seen: seen.length, events: finished.lastSeq }));
