/** A delivery: its story, every attempt with what the receiver answered, the event as it is sent, and how its signature is made. */

import { api } from "../api.js";
import { Id } from "../components/id.js";
import { PageHead, Unread } from "../components/page-head.js";
import { Facts, Section } from "../components/section.js";
import { Empty } from "../components/states.js";
import { TextBlock } from "../components/text-block.js";
import { Time } from "../components/time.js";
import { State } from "../components/state.js";
import { isTenantAdmin } from "../permit.js";
import { useResource } from "../resource.js";
import { go, href } from "../route.js";
import { duration } from "../time.js";
import { fragment, h, tags } from "../ui.js";
import { Again, RunOf, story } from "./webhook-endpoint.js";
import { reasonOf, signsWith } from "./webhook-endpoints.js";

/** @import { WebhookAttempt, WebhookDelivery, WebhookDeliveryWithAttempts, WebhookEndpoint } from "agent-runtime/types" */

const { a, code, details, div, li, ol, p, span, summary } = tags;

const RECIPE = `signed    = webhook-id + "." + webhook-timestamp + "." + body
key       = base64 decoded, of what follows "whsec_" in the secret
signature = "v1," + base64(HMAC-SHA256(key, signed))`;

const TYPESCRIPT = `import { parseEvent } from "agent-runtime/webhooks";

const event = await parseEvent({ body, headers: request.headers, secret: process.env.WEBHOOK_SECRET });`;

/** @param {{ endpointId: string, deliveryId: string }} props */
export default function WebhookDeliveryPage({ endpointId, deliveryId }) {
  const endpoint = useResource(`webhook endpoint ${endpointId}`, (options) => api.webhookEndpoints.get(endpointId, options));
  const delivery = useResource(`delivery ${deliveryId}`, (options) => api.webhookEndpoints.deliveries.get(endpointId, deliveryId, options), { live: ["webhook-delivery"] });
  const isGone = endpoint.error?.status === 404;
  const crumbs = [{ title: "Webhooks", href: href("webhooks") }, ...(endpoint.data ? [{ title: endpoint.data.url.length > 60 ? `${endpoint.data.url.slice(0, 60)}…` : endpoint.data.url, href: href(`webhooks/${endpointId}`) }] : [])];
  if (isGone) return div(null, h(PageHead, { title: "Delivery", crumbs }), h(Empty, { title: "No endpoint has this id.", action: a({ class: "button", href: href("webhooks") }, "To the endpoints") }));
  if (!delivery.data) return h(Unread, { title: "Delivery", crumbs, of: delivery, notFound: "No delivery to this endpoint has this id." });
  const one = delivery.data;
  const again = h(Again, { delivery: one, onDone: (/** @type {WebhookDelivery} */ queued) => go(href(`webhooks/${endpointId}/deliveries/${queued.id}`)) });
  return div(
    null,
    h(PageHead, { title: one.isTest ? "Test" : `Delivery of ${one.type}`, documentTitle: `Delivery ${one.id.slice(-12)}`, crumbs, lead: story(one), actions: isTenantAdmin() ? again : null }),
    div(
      { class: "stack" },
      div({ class: "card pad" }, h(Facts, { facts: facts(one) })),
      h(Section, { title: "Attempts" }, h(Attempts, { delivery: one })),
      h(Section, { title: "What is sent" }, one.event ? h(TextBlock, { label: "The event", text: JSON.stringify(one.event, null, 2) }) : h(Empty, { title: "What was sent was dropped." }, "Bodies are kept for a time; the story stays.")),
      h(Section, { title: "How it is signed" }, h(Signature, { delivery: one, endpoint: endpoint.data })),
    ),
  );
}

/** @param {WebhookDeliveryWithAttempts} one @returns {[string, import("../ui.js").Child][]} */
function facts(one) {
  const other = (/** @type {string} */ id) => a({ href: href(`webhooks/${one.endpointId}/deliveries/${id}`) }, "another delivery");
  return [
    ["Run", one.runId ? h(RunOf, { delivery: one }) : undefined],
    ["Event", code(null, one.type)],
    ["Since", h(Time, { at: one.createdAt })],
    ["Ended", one.endedAt ? h(Time, { at: one.endedAt }) : undefined],
    ["Sends again", one.resends ? other(one.resends) : undefined],
    ["Sent again as", one.resentAs ? other(one.resentAs) : undefined],
    ["webhook-id", h(Id, { id: one.eventId, what: "event" })],
  ];
}

/** @param {{ delivery: WebhookDeliveryWithAttempts }} props */
function Attempts({ delivery }) {
  if (!delivery.attempts.length) return h(Empty, { title: delivery.state === "failed" ? "It failed before the first attempt." : "No attempt has ended yet." });
  return ol({ class: "attempt-list" }, delivery.attempts.map((attempt) => li({ key: attempt.attempt }, h(Attempt, { attempt }))));
}

/** @param {{ attempt: WebhookAttempt }} props */
function Attempt({ attempt }) {
  const line = span(
    { class: "attempt-line" },
    span({ class: "faint" }, `Attempt ${attempt.attempt}`),
    h(State, { state: attempt.reason ? "failed" : attempt.status ? "delivered" : "sending", word: attempt.reason ? reasonOf(attempt.reason, attempt.status) : attempt.status ? `HTTP ${attempt.status}` : undefined }),
    h(Time, { at: attempt.begunAt, ago: false }),
    span({ class: "faint" }, attempt.durationMs === null || attempt.durationMs === undefined ? null : `took ${duration(attempt.durationMs)}`),
    attempt.address ? code({ class: "faint" }, attempt.address) : null,
  );
  // What the reason says already is not said twice.
  const message = attempt.message && attempt.message !== reasonOf(attempt.reason ?? "", attempt.status) ? attempt.message : null;
  if (!message && !attempt.answer) return line;
  return details(
    null,
    summary(null, line),
    div({ class: "stack attempt-more" }, message ? p(null, message) : null, attempt.answer ? h(TextBlock, { label: "What the receiver answered, at most 16 KiB of it", text: attempt.answer }) : null),
  );
}

/** @param {{ delivery: WebhookDeliveryWithAttempts, endpoint: WebhookEndpoint | undefined }} props */
function Signature({ delivery, endpoint }) {
  return div(
    { class: "stack" },
    p(null, "By HMAC-SHA256, as Standard Webhooks 1.0 says", endpoint ? fragment(", with the secret ", signsWith(endpoint.secretRef)) : null, ". It is made over the bytes of the body as they come: JSON that was parsed and written again has others."),
    h(TextBlock, { label: "The recipe", text: RECIPE }),
    h(Facts, { rows: true, facts: [["webhook-id", code(null, delivery.eventId)], ["webhook-timestamp", "when the attempt was signed, in seconds since 1970; refuse one that is five minutes off"], ["webhook-signature", "v1, and the signature; two of them with a space between while a secret changes over"]] }),
    p(null, "The clients for TypeScript and Python verify it in one call. docs/webhooks-receiver.md has programs in more languages."),
    h(TextBlock, { label: "In TypeScript", text: TYPESCRIPT }),
  );
}
