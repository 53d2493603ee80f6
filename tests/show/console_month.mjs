/** A month of work of a house, for the console's show: what customers asked, refunds, a month that does not close, decisions. */

import { once } from "node:events";
import http from "node:http";
import { eventually } from "../console/look-up.mjs";

/** @import { AgentRuntime } from "../../clients/typescript/src/index.js" */

const DAYS = 30;
const ASKED = [
  "Where is order A-1017? It should have come on Tuesday.",
  "Please send me the invoice of May again.",
  "What time does the shop in Kyoto open?",
  "My book came with a torn cover. Can I send it back?",
  "Is the second edition still to be had?",
  "Can you change the address of order A-1031?",
  "Do you deliver to Tromsø?",
];
const CHANNELS = ["mail", "chat", "shop"];

/** A receiver of webhooks that takes everything. @param {(() => unknown)[]} ends */
async function receiver(ends) {
  const one = http.createServer((request, answer) => request.resume().on("end", () => answer.writeHead(204).end())).listen(0, "127.0.0.1");
  await once(one, "listening");
  ends.push(() => (one.close(), one.closeAllConnections()));
  return `http://127.0.0.1:${/** @type {import("node:net").AddressInfo} */ (one.address()).port}/ledger/runs`;
}

/**
 * @param {AgentRuntime} api of a tenant admin who reviews
 * @param {Record<string, string>} names of the world (`tests/console/server.mjs`)
 * @param {(() => unknown)[]} ends what ends it
 * @returns {Promise<{ runs: number, waiting: number }>}
 */
export async function month(api, names, ends) {
  await api.webhookEndpoints.create({ url: await receiver(ends), events: ["run.finished"], secretRef: { envName: "production", name: "WEBHOOK_SECRET" } });
  const [over, asking] = [[], []];
  const start = async (body, to) => to.push((await api.runs.create(body)).run.id);
  const refund = (day, amount) => ({ flowId: "shop.refund", projectId: names.shopProject, input: { orderId: `A-${1000 + day}`, amount, reason: "damaged" }, labels: { customer: `c-${day % 9}` } });
  for (let day = 1; day <= DAYS; day++) {
    await start({ agentId: names.support, message: ASKED[day % ASKED.length], labels: { channel: CHANNELS[day % CHANNELS.length], customer: `c-${day % 9}` } }, over);
    if (day % 3 === 0) await start(refund(day, 12 + day), over);
    if (day % 4 === 0) await start(refund(day, 50 + 3 * day), asking);
    if (day % 10 === 0) await start({ flowId: "billing.close-month", projectId: names.project }, over);
  }
  for (const run of over) await api.runs.wait(run);
  // Half of what was asked is decided.
  for (const [index, runId] of asking.entries()) {
    const approval = await eventually(async () => (await api.approvals.list({ runId })).data[0], "an approval");
    if (index % 2) continue;
    await api.approvals.decide(approval.id, index % 4 ? { decision: "reject", comment: "No receipt was sent." } : { decision: "approve", comment: "The receipt is in order." });
    await api.runs.wait(runId);
  }
  return { runs: over.length + asking.length, waiting: Math.floor(asking.length / 2) };
}
