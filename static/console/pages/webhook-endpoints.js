/**
 * Webhooks (specification section 6.4): every endpoint with its delivery results, those that fail first. The head counts
 * them. Where webhooks are not turned on, the page says so and what has to be set.
 *
 * `sends`, `signsWith` and `reasonOf` have the words of the pages below it, too.
 */

import { api } from "../api.js";
import { useNames } from "../components/names.js";
import { PageHead } from "../components/page-head.js";
import { useActs } from "../components/acts.js";
import { State } from "../components/state.js";
import { Empty } from "../components/states.js";
import { Table } from "../components/table.js";
import { Time } from "../components/time.js";
import { count, counted } from "../number.js";
import { isTenantAdmin } from "../permit.js";
import { useResource } from "../resource.js";
import { go, href } from "../route.js";
import { fragment, h, tags, useState } from "../ui.js";
import { EndpointForm } from "./webhook-endpoint-form.js";

/** @import { WebhookEndpoint } from "agent-runtime/types" */
/** @import { Named } from "../components/names.js" */

const { button, code, div, span } = tags;

/** Why an attempt failed, in the words of the specification. @type {Record<string, string>} */
const REASONS = {
  "no-answer": "no answer in time",
  "host-not-resolved": "the host name does not resolve",
  "nothing-listening": "nothing listening",
  "url-refused": "the address is one webhooks may not go to",
  "tls-refused": "TLS certificate not accepted",
  "connection-failed": "connection failed",
  "secret-unavailable": "the signing secret cannot be used",
  "endpoint-unregistered": "the endpoint was unregistered",
};

/** @param {string} reason @param {number | null | undefined} status */
export function reasonOf(reason, status) {
  return reason === "http-status" ? `HTTP ${status ?? ""}`.trim() : (REASONS[reason] ?? reason);
}

/**
 * What an endpoint is sent, and which of it.
 * @param {WebhookEndpoint} endpoint
 * @param {Map<string, Named>} projects
 */
export function sends({ events, filter }, projects) {
  const tag = (/** @type {string} */ text) => span({ key: text, class: "tag" }, text);
  const only = filter
    ? [
        filter.projectId ? tag(`project ${projects.get(filter.projectId)?.name ?? filter.projectId}`) : null,
        filter.flowIds?.map((flow) => tag(flow)),
        events.includes("run.finished") ? tag(filter.includeDryRuns ? "with dry runs" : "without dry runs") : null,
      ]
    : null;
  return span({ class: "tags" }, events.map((kind) => code({ key: kind }, kind)), only);
}

/** @param {{ envName: string, name: string }} secret */
export function signsWith(secret) {
  return code(null, `${secret.envName}/${secret.name}`);
}

/** @param {WebhookEndpoint} endpoint */
export function stateOf(endpoint) {
  const hasSent = endpoint.lastDeliveredAt || endpoint.lastFailedAt;
  return endpoint.state === "failing" ? h(State, { state: "failing" }) : h(State, { state: hasSent ? "healthy" : "idle", word: hasSent ? "healthy" : "nothing sent yet", tone: hasSent ? "good" : "idle" });
}

/** A tenant has 1000 at most. @param {import("agent-runtime").CallOptions} options */
async function everyEndpoint(options) {
  /** @type {WebhookEndpoint[]} */
  const rows = [];
  for await (const endpoint of api.webhookEndpoints.list({ limit: 200, order: "desc" }, options)) rows.push(endpoint);
  return rows.sort((one, other) => Number(other.state === "failing") - Number(one.state === "failing"));
}

/** @param {WebhookEndpoint} one */
function stateAndError(one) {
  return span({ class: "lines" }, stateOf(one), one.lastError ? span({ class: "faint" }, reasonOf(one.lastError, one.lastStatus), ", ", h(Time, { at: one.lastFailedAt, short: true, ago: false })) : null);
}

/** @param {Map<string, Named>} projects @returns {import("../components/table.js").Column[]} */
const columns = (projects) => [
  { title: "Endpoint", show: (/** @type {WebhookEndpoint} */ one) => one.url, wraps: true },
  { title: "State, last error (UTC)", show: stateAndError, wraps: true },
  { title: "Delivered", show: (/** @type {WebhookEndpoint} */ one) => count(one.deliveries.delivered), isNumber: true, from: "middle" },
  { title: "Failed", show: (/** @type {WebhookEndpoint} */ one) => count(one.deliveries.failed), isNumber: true, from: "wide" },
  { title: "Being sent", show: (/** @type {WebhookEndpoint} */ one) => (one.deliveries.beingSent >= 1000 ? "1000 or more" : count(one.deliveries.beingSent)), isNumber: true, from: "wide" },
  { title: "Sends, signs with", show: (/** @type {WebhookEndpoint} */ one) => span({ class: "lines" }, sends(one, projects), span({ class: "faint" }, "signs with ", signsWith(one.secretRef))), from: "wide", wraps: true },
];

export default function WebhookEndpoints() {
  const endpoints = useResource("webhook endpoints", everyEndpoint, { live: ["webhook-delivery", "webhook-endpoint"] });
  const projects = useNames(["project"], { isWhole: true });
  const [isForm, setForm] = useState(false);
  const rows = endpoints.data;
  const mayAdd = isTenantAdmin() && endpoints.error?.status !== 501;
  const add = () => setForm(true);
  useActs(mayAdd ? [{ title: "Add a webhook endpoint", about: "Act", icon: "plus", run: add }] : []);
  const failing = rows?.filter((one) => one.state === "failing").length ?? 0;
  const addButton = (/** @type {string} */ key) => (mayAdd ? button({ key, type: "button", class: "primary", onClick: add }, "Add an endpoint") : null);
  return div(
    null,
    h(PageHead, {
      title: "Webhooks",
      state: rows?.length ? span({ class: failing ? "count bad" : "count" }, `${counted(rows.length, "endpoint")}, ${count(failing)} failing`) : null,
      lead: "The service posts to these addresses what happens here, each post signed.",
      actions: rows?.length ? addButton("add") : null,
    }),
    h(Table, {
      label: "Webhook endpoints, those that fail first",
      columns: columns(projects),
      rows,
      rowKey: (/** @type {WebhookEndpoint} */ one) => one.endpointId,
      rowHref: (/** @type {WebhookEndpoint} */ one) => href(`webhooks/${one.endpointId}`),
      isBusy: endpoints.isLoading && !rows,
      error: endpoints.error,
      retry: endpoints.reload,
      empty: h(Empty, { title: "No endpoint yet.", action: fragment(addButton("first")) }, "Add the address of a program of yours. It is told when a run finishes, or when an approval begins to wait."),
    }),
    isForm ? h(EndpointForm, { projects, onClose: () => setForm(false), onDone: (/** @type {WebhookEndpoint} */ made) => go(href(`webhooks/${made.endpointId}`)) }) : null,
  );
}
