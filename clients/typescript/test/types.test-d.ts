/**
 * Uses of the client that the compiler takes, and uses that it must refuse: below each `@ts-expect-error` one. Nothing of
 * this runs.
 */

import { AgentRuntime, AgentRuntimeError, Page, RunReader, VERSION, WebhookSignatureError, parseEvent } from "agent-runtime";
import type { AgentVersion, AccessDecision, Approval, Inbox, Membership, Run, RunEvent, RunStreamEvent, Status, Usage, Way, WebhookEvent } from "agent-runtime/types";
import { parseEvent as parse } from "agent-runtime/webhooks";

const runtime = new AgentRuntime({ baseUrl: "https://runtime.example", token: async () => "t", timeoutMs: 1, retries: 0 });
// @ts-expect-error
new AgentRuntime({ url: "https://runtime.example" });
// @ts-expect-error
new AgentRuntime({ token: 7 });
// @ts-expect-error
runtime.baseUrl = "";
// @ts-expect-error
runtime.token;
// @ts-expect-error
runtime.workflows;
const version: string = VERSION;
// @ts-expect-error
const wrong: number = VERSION;

// Bodies.
const started = await runtime.runs.create({ agentId: "1", message: "Hello", labels: { channel: "mail" } });
await runtime.runs.create({ flowId: "a.b", input: { any: [1, null] } }, { idempotencyKey: "k", signal: AbortSignal.timeout(1) });
// @ts-expect-error
await runtime.runs.create({ message: "Hello" });
// @ts-expect-error
await runtime.runs.create({ agentId: 1, message: "Hello" });
// @ts-expect-error
await runtime.runs.create({ agentId: "1", message: "Hello" }, { timeout: 5 });
// @ts-expect-error
await runtime.runs.create();
await runtime.projects.memberships.add("1", { email: "a@example.com", role: "editor" });
// @ts-expect-error
await runtime.projects.memberships.add("1", { email: "a@example.com", role: "member" });
// @ts-expect-error
await runtime.projects.memberships.add({ email: "a@example.com", role: "editor" });
// @ts-expect-error
await runtime.projects.memberships.updateRole("1", { role: "viewer" });
await runtime.webhookEndpoints.create({ url: "https://a.example", events: ["run.finished"], secretRef: { envName: "a", name: "b" } });
// @ts-expect-error
await runtime.webhookEndpoints.create({ url: "https://a.example", events: "run.finished", secretRef: { envName: "a", name: "b" } });
// @ts-expect-error
await runtime.projects.teamGrants.add("1", { teamId: "1", role: "owner" });
const nothing: void = await runtime.teams.delete("1");
// @ts-expect-error
(await runtime.teams.delete("1")).id;

// Answers.
const run: Run = started.run;
const status: Status = run.status;
const later: Status = "a later status";
const failure: string | null | undefined = run.failureMessage;
// @ts-expect-error
const always: string = run.failureMessage;
// @ts-expect-error: a runtime before 0.1.3 sends none.
run.usage.calls;
const calls: number | undefined = run.usage?.calls;
// @ts-expect-error: nor an agent before 0.1.6, and a flow's run has none.
run.agent.version;
const used: Usage | undefined = run.usage;
// @ts-expect-error
run.nothingLikeThis;
// @ts-expect-error
started.publicToken.token;
const token: string | undefined = started.publicToken?.token;
const membership: Membership = await runtime.projects.memberships.updateRole("1", "2", { role: "viewer" });

// Lists.
for await (const one of runtime.runs.list({ status: "failed", label: ["a:b"] })) one.createdAt satisfies string;
for await (const one of await runtime.projects.access.list("1")) {
  const way: Way | undefined = one.via[0];
  if (way?.kind === "team") way.teamName satisfies string;
  // @ts-expect-error
  if (way?.kind === "direct") way.teamName;
}
const page: Page<AccessDecision> = await runtime.audit.authz({ order: "desc" });
const following: Page<AccessDecision> | undefined = await page.next();
// @ts-expect-error
await runtime.audit.authz({ direction: "desc" });
// @ts-expect-error
await runtime.runs.list("1");
// @ts-expect-error: the pages come first.
runtime.runs.list().data;
const inbox = await runtime.inbox.list();
const counts: Inbox["counts"] = inbox.counts;
// @ts-expect-error
(await runtime.runs.list()).counts;

// Streams.
for await (const event of runtime.runs.follow("1", { after: 5, maxSilenceMs: 1 })) {
  event satisfies RunStreamEvent;
  if (event.kind === "text.delta") {
    event.data.text satisfies string;
    // @ts-expect-error: text has no number.
    event.seq;
  } else if (event.kind === "reasoning.delta") event.data.text satisfies string;
  else event satisfies RunEvent;
  if (event.kind === "run.failed") event.data.failureMessage satisfies string;
  if (event.kind === "step.completed" && event.data.type === "model") event.data.text satisfies string;
  // @ts-expect-error
  if (event.kind === "run.failed") event.data.text;
}
for await (const event of runtime.approvals.follow()) {
  if (event.kind === "stream.start") event.data.seq satisfies number;
  else event.data.approvalId satisfies string;
  // @ts-expect-error
  if (event.kind === "stream.start") event.data.approvalId;
}
// @ts-expect-error
runtime.runs.follow("1", { from: 5 });
const finished: Run = await runtime.runs.wait("1");
const reader: RunReader = AgentRuntime.forRun({ baseUrl: "https://runtime.example", publicToken: "t" });
reader.follow("1");
// @ts-expect-error
reader.get("1");
// @ts-expect-error
AgentRuntime.forRun({ baseUrl: "https://runtime.example", token: "t" });

// Errors and webhooks.
const error = new AgentRuntimeError("auth", "no", { reason: "forbidden" });
const reason: "unauthenticated" | "forbidden" | undefined = error.reason;
// @ts-expect-error
new AgentRuntimeError("forbidden", "no");
// @ts-expect-error
error.code === "denied";
const event: WebhookEvent = await parseEvent({ body: "", headers: new Headers(), secret: ["a", "b"] });
if (event.type === "run.finished") event.data.run.agent?.version satisfies string | undefined;
if (event.type === "approval.requested") event.data.approval.assignedTo satisfies string | null | undefined;
// @ts-expect-error
if (event.type === "run.finished") event.data.run.agent.version;
// @ts-expect-error
await parse({ body: { parsed: true }, headers: {}, secret: "a" });
// @ts-expect-error
await parse({ body: "", headers: {} });
const request: any = await runtime.request("GET", "/v1/later", { query: { a: 1 } });
// @ts-expect-error
await runtime.request("FETCH", "/v1/later");
new WebhookSignatureError("no") satisfies Error;

export { calls, counts, failure, finished, following, later, membership, nothing, reason, request, status, token, used, version };
export type { AgentVersion, Approval };
