/**
 * A month of work of a house, for the console's show: what customers asked, refunds, a month that does not close, decisions.
 *
 * The runs are real ones of now. What has ended is then moved to its day in the server's database, its events and steps with it;
 * what waits for a person stays of now, so that nothing ends in the midst of the show.
 */

import { once } from "node:events";
import http from "node:http";
import { eventually } from "../console/look-up.mjs";
import { sql } from "../console/server.mjs";

export const DAYS = 30;
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
 * @param {Awaited<ReturnType<typeof import("../console/server.mjs").server>>} place its server, by a tenant admin who reviews
 * @param {Record<string, string>} names of the world (`tests/console/server.mjs`)
 * @param {(() => unknown)[]} ends what ends it
 * @returns {Promise<{ runs: number, waiting: number }>}
 */
export async function month(place, names, ends) {
  const { api } = place;
  await api.webhookEndpoints.create({ url: await receiver(ends), events: ["run.finished"], secretRef: { envName: "production", name: "WEBHOOK_SECRET" } });
  const [over, asking] = [[], []];
  /** @type {Map<string, number>} */
  const days = new Map();
  const start = async (day, body, to) => {
    const { run } = await api.runs.create(body);
    days.set(run.id, day);
    to.push(run.id);
  };
  const refund = (day, amount) => ({ flowId: "shop.refund", projectId: names.shopProject, input: { orderId: `A-${1000 + day}`, amount, reason: "damaged" }, labels: { customer: `c-${day % 9}` } });
  for (let day = 1; day <= DAYS; day++) {
    await start(day, { agentId: names.support, message: ASKED[day % ASKED.length], labels: { channel: CHANNELS[day % CHANNELS.length], customer: `c-${day % 9}` } }, over);
    if (day % 3 === 0) await start(day, refund(day, 12 + day), over);
    if (day % 4 === 0) await start(day, refund(day, 50 + 3 * day), asking);
    if (day % 10 === 0) await start(day, { flowId: "billing.close-month", projectId: names.project }, over);
  }
  for (const run of over) await api.runs.wait(run);
  // Half of what was asked is decided.
  for (const [index, runId] of asking.entries()) {
    const approval = await eventually(async () => (await api.approvals.list({ runId })).data[0], "an approval");
    if (index % 2) continue;
    await api.approvals.decide(approval.id, index % 4 ? { decision: "reject", comment: "No receipt was sent." } : { decision: "approve", comment: "The receipt is in order." });
    await api.runs.wait(runId);
    over.push(runId);
  }
  for (let day = 1; day < DAYS; day++) moved(place, over.filter((run) => days.get(run) === day), DAYS - day);
  return { runs: days.size, waiting: Math.floor(asking.length / 2) };
}

/** What each table of a run says of when. */
const TIMES = { runs: ["created_at", "started_at", "completed_at"], run_events: ["created_at"], run_steps: ["started_at", "completed_at"], approvals: ["created_at", "expires_at", "escalate_at", "closed_at"] };

/** Moves runs that have ended, and those below them, so many days back. @param {{ data: string }} place @param {string[]} runs @param {number} days */
function moved(place, runs, days) {
  if (!runs.length) return;
  const below = `select run_id from runs where root_run_id in (${runs.map((run) => `'${run}'`).join(", ")})`;
  const each = Object.entries(TIMES).map(([table, columns]) => `update ${table} set ${columns.map((column) => `${column} = ${column} - interval '${days} days'`).join(", ")} where run_id in (${below})`);
  sql(place, ["begin", ...each, "commit"].join("; "));
}
