/**
 * What the pages of work show: an agent with versions, a flow that asks a person, approvals that wait and are closed, and a
 * conversation. What stands already is taken as it is, so that a server may be used again.
 */

import { eventually, example, found, named } from "./look-up.mjs";

const INSTRUCTIONS = "You answer customers of a bookshop.\n\n- Answer in one sentence.\n- Use the tools that you have.\n- Never guess where an order is.\n- Say so when you do not know.\n\nBe kind. Do not promise a refund.";
const NEWER = INSTRUCTIONS.replace("one sentence", "two sentences at most").replace("- Never guess where an order is.\n", "").replace("Do not promise", "Never promise");

/** The definition of a flow that asks a person from 50 EUR on. @param {string} version */
export function refund(version) {
  return {
    document: { dsl: "1.0.3", namespace: "shop", name: "refund", version, title: "Refund an order", summary: "Assesses an order, asks a person from 50 EUR on, and pays." },
    input: {
      schema: {
        format: "json",
        document: {
          type: "object",
          required: ["orderId", "amount"],
          properties: {
            orderId: { type: "string", title: "Order", description: "As it stands on the invoice.", maxLength: 40 },
            amount: { type: "number", title: "Amount in EUR", minimum: 0 },
            reason: { type: "string", title: "Reason", enum: ["damaged", "late", "other"] },
            notify: { type: "boolean", title: "Tell the customer", default: true },
          },
        },
      },
    },
    do: [
      { order: { call: "tool", with: { tool: "clock", arguments: { utcOffsetHours: 1 } }, output: { as: "$input" } } },
      { assess: { call: "agent", with: { agent: "support", message: '${ "Assess order \\(.orderId)" }' }, output: { as: "$input + { advice: .text }" } } },
      { small: { switch: [{ yes: { when: ".amount < 50", then: "pay" } }, { no: { then: "ask" } }] } },
      { ask: { call: "approval", with: { title: "Refund of 50 EUR or more", requiredRole: "finance", context: "${ . }", expiresAfter: "P2D", escalation: [{ after: "PT8H", requiredRole: "finance-lead" }] }, output: { as: "$input" } } },
      {
        pay: {
          try: [{ refund: { call: "tool", with: { tool: "clock", arguments: { utcOffsetHours: 2 } } } }],
          catch: { errors: { with: { status: 503 } }, retry: { delay: { seconds: 1 }, backoff: { exponential: {} }, limit: { attempt: { count: 5 } } } },
        },
      },
      { tell: { fork: { branches: [{ mail: { set: { sent: true } } }, { ledger: { call: "tool", with: { tool: "clock", arguments: { utcOffsetHours: 3 } } } }] } } },
      ...(version === "1.0.0" ? [] : [{ note: { set: { refunded: true } } }]),
    ],
  };
}

/**
 * @param {import("../../clients/typescript/src/index.js").AgentRuntime} api
 * @param {import("../../clients/typescript/src/index.js").AgentRuntime} [reviewer] who decides
 */
export async function work(api, reviewer = api) {
  const { id: agent, projectId: project } = await example(api);
  const me = await api.me.get();
  for (const role of ["standard", "finance", "finance-lead"]) await api.reviewers.register({ userId: me.id, role });
  const given = await api.agents.versions.get(agent, "0.1.0");
  const tool = (/** @type {string} */ name) => found(api.tools.list({ projectId: project, limit: 200 }), named(name));
  const clock = await tool("clock");
  const refundTool =
    (await tool("pay_refund")) ??
    (await api.tools.register({
      projectId: project,
      name: "pay_refund",
      description: "Pays the price of an order back.",
      argumentsSchema: { type: "object", required: ["utcOffsetHours"], properties: { utcOffsetHours: { type: "number", title: "Hours", default: 4 }, note: { type: "string", title: "Note", maxLength: 200 } } },
      url: clock.url,
      idempotent: true,
      approval: { title: "Pay a refund", requiredRole: "finance", expiresAfter: "P2D", escalation: [{ after: "PT8H", requiredRole: "finance-lead" }] },
    }));
  const model = { modelProviderId: given.modelProviderId, model: given.model };
  const support = (await found(api.agents.list({ projectId: project, limit: 200 }), named("support"))) ?? (await api.agents.create({ projectId: project, name: "support", description: "Answers customers of the shop." }));
  if (!support.latestVersion) {
    await api.agents.versions.create(support.id, { version: "1.0.0", instructions: INSTRUCTIONS, ...model, toolIds: [clock.id], parameters: { temperature: 0.2 } });
    await api.agents.versions.create(support.id, { version: "1.1.0", instructions: NEWER, ...model, toolIds: [clock.id, refundTool.id], parameters: { temperature: 0.4, maxTokens: 2000 }, limits: { maxSteps: 24, historyCalls: false }, overrides: ["parameters"], guardrails: [{ builtin: "hidden-text", at: ["tool.result"], action: "redact" }], streaming: "unchecked" });
    await api.agents.promote(support.id, { version: "1.0.0" });
  }
  let flow = await found(api.flows.list({ projectId: project, flowId: "shop.refund" }), () => true);
  if (!flow) {
    flow = await api.flows.create({ projectId: project, definition: refund("1.0.0") });
    await api.flows.versions.create(flow.id, { definition: refund("1.1.0") });
    await api.flows.promote(flow.id, { version: "1.0.0" });
  }
  // One asks in a flow, one for a tool's call, and one is decided.
  const asks = await started(api, { flowId: "shop.refund", projectId: project, input: { orderId: "A-17", amount: 70, reason: "late" } }, "approval");
  const pays = await started(api, { agentId: support.id, version: "1.1.0", message: "Please pay refund of order A-18." }, "approval");
  const decided = await started(api, { flowId: "shop.refund", projectId: project, input: { orderId: "A-16", amount: 90 } }, "approval");
  const approval = await approvalOf(api, asks);
  const toolApproval = await approvalOf(api, pays);
  const closed = await approvalOf(api, decided);
  await reviewer.approvals.decide(closed, { decision: "approve", comment: "The receipt is in order." });
  await api.runs.wait(decided);
  const conversation = await api.conversations.create({ agentId: support.id, title: "Order A-17" });
  for (const message of ["Where is order A-17?", "What time is it in the shop?"]) {
    const { run } = await api.runs.create({ agentId: support.id, conversationId: conversation.id, message });
    await api.runs.wait(run.id);
  }
  return { shopProject: project, support: support.id, shopFlow: flow.id, shopRun: decided, askingRun: asks, shopApproval: approval, toolApproval, closedApproval: closed, conversation: conversation.id };
}

/** A run that waits for what is named. */
export async function started(api, body, waitsFor) {
  const { run } = await api.runs.create(body);
  return eventually(async () => {
    const now = await api.runs.get(run.id);
    if (["completed", "failed", "cancelled"].includes(now.status)) throw new Error(`the run is ${now.status}: ${now.failureMessage}`);
    return now.waitingFor === waitsFor && run.id;
  }, `a run that waits for ${waitsFor}`);
}

/** The approval for which a run waits. */
export async function approvalOf(api, runId) {
  const page = await api.approvals.list({ runId });
  if (!page.data[0]) throw new Error("the run asks nobody");
  return page.data[0].id;
}
