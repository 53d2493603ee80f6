/** What the pages of webhooks, secrets, model providers and tools show. */

import { newSigningSecret } from "../../static/console/signing-secret.js";

/** @import { AgentRuntime } from "../../clients/typescript/src/index.js" */

/** @param {AgentRuntime} api @param {string} projectId */
export async function operated(api, projectId) {
  await api.secrets.put("production", "WEBHOOK_SECRET", { value: newSigningSecret() });
  await api.secretUses.create({ name: "WEATHER_KEY", target: "origin:https://api.weather.example", projectId });
  await api.secretUses.create({ name: "MAP_KEY", target: "origin:https://maps.example:8443" });
  await api.environments.variables.put("production", "API_URL", { value: "https://api.mill.example" });
  await api.environments.variables.put("production", "GREETING", { value: "Good morning. ".repeat(30) });
  const secretRef = { envName: "production", name: "WEBHOOK_SECRET" };
  // Nothing listens there.
  const endpoint = await api.webhookEndpoints.create({ url: "http://127.0.0.1:9/erp/runs", events: ["run.finished", "approval.requested"], secretRef, filter: { projectId } });
  const delivery = await api.webhookEndpoints.sendTest(endpoint.endpointId);
  const provider = await api.modelProviders.create({ name: "models-eu", baseUrl: "https://models.example.com/v1", apiKeySecretRef: secretRef, models: [{ name: "small-4", contextWindow: 128_000, prices: { prompt: 0.15, completion: 0.6 } }, { name: "embed", prices: {} }] });
  const tool = await api.tools.register({
    projectId,
    name: "order_status",
    description: "Says where an order is.",
    argumentsSchema: { type: "object", properties: { order: { type: "string", description: "Such as A-1001." }, detail: { enum: ["short", "long"] } }, required: ["order"] },
    url: "https://tools.example.com/order-status",
    headers: [{ name: "Authorization", secret: "BILLING_KEY", prefix: "Bearer " }],
    approval: { title: "Look an order up", requiredRole: "standard", expiresAfter: "PT8H", onReject: "tell" },
  });
  return { endpoint: endpoint.endpointId, delivery: delivery.id, provider: provider.id, tool: tool.id };
}
