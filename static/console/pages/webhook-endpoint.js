/**
 * An endpoint (specification sections 3.4 and 6.4): what it is sent, the secret it signs with by name, and its deliveries,
 * newest first, each with its story. A test, sending again, and unregistering are done here.
 */

import { api } from "../api.js";
import { confirm, FormDialog } from "../components/dialog.js";
import { Field } from "../components/field.js";
import { Id } from "../components/id.js";
import { Menu } from "../components/menu.js";
import { useNames } from "../components/names.js";
import { PageHead, Unread } from "../components/page-head.js";
import { Pager, useList } from "../components/pager.js";
import { useActs } from "../components/acts.js";
import { Facts } from "../components/section.js";
import { State } from "../components/state.js";
import { Empty, Failure } from "../components/states.js";
import { announce } from "../components/status.js";
import { Table } from "../components/table.js";
import { Tabs } from "../components/tabs.js";
import { Time } from "../components/time.js";
import { count, counted } from "../number.js";
import { isTenantAdmin } from "../permit.js";
import { useAct, useResource } from "../resource.js";
import { go, href, query } from "../route.js";
import { serverNow } from "../time.js";
import { fragment, h, tags, useState } from "../ui.js";
import { EndpointForm } from "./webhook-endpoint-form.js";
import { reasonOf, sends, signsWith, stateOf } from "./webhook-endpoints.js";

/** @import { WebhookDelivery, WebhookEndpoint } from "agent-runtime/types" */

const { a, button, div, p, span } = tags;

const FILTERS = /** @type {const} */ ([["All", ""], ["Failed", "failed"], ["Being sent", "being-sent"], ["Delivered", "delivered"]]);
const NO_ENDPOINT = "No endpoint has this id.";
const MOST_ROUNDS = 20;

/**
 * The story of a delivery, in the server's words; the time of the next attempt is written as times are here.
 * @param {WebhookDelivery} delivery
 */
export function story(delivery) {
  const [words = "", ...rest] = delivery.nextAttemptAt ? delivery.summary.split(delivery.nextAttemptAt) : [delivery.summary];
  const state = h(State, { state: delivery.state === "being-sent" ? (delivery.attemptCount ? "retrying" : "sending") : delivery.state, word: delivery.state === "being-sent" ? "being sent" : delivery.state });
  const text = words.charAt(0).toUpperCase() + words.slice(1);
  return span({ class: "story" }, state, delivery.isTest ? span({ class: "tag" }, "test") : null, span(null, text, rest.length ? h(Time, { at: delivery.nextAttemptAt, ago: false }) : null));
}

/** How the run ended that a delivery tells of, with the way to it. @param {{ delivery: WebhookDelivery }} props */
export function RunOf({ delivery }) {
  if (!delivery.runId) return span({ class: "faint" }, "–");
  return a({ href: href(`runs/${delivery.runId}`) }, h(State, { state: delivery.runStatus ?? "idle", word: `run ${delivery.runStatus ?? ""}`.trim() }));
}

/** @param {{ endpointId: string }} props */
export default function WebhookEndpointPage({ endpointId }) {
  const endpoint = useResource(`webhook endpoint ${endpointId}`, (options) => api.webhookEndpoints.get(endpointId, options), { live: ["webhook-delivery", "webhook-endpoint"] });
  const crumbs = [{ title: "Webhooks", href: href("webhooks") }];
  if (endpoint.error?.status === 404) return div(null, h(PageHead, { title: "Endpoint", crumbs }), h(Empty, { title: NO_ENDPOINT, action: a({ class: "button", href: href("webhooks") }, "To the endpoints") }, "One that was unregistered cannot be restored. Add it again instead."));
  if (!endpoint.data) return h(Unread, { title: "Endpoint", crumbs, of: endpoint });
  return div(null, endpoint.error ? h(Failure, { error: endpoint.error, retry: endpoint.reload }) : null, h(Whole, { endpoint: endpoint.data, crumbs, onChange: endpoint.set, reload: endpoint.reload }));
}

/** @param {{ endpoint: WebhookEndpoint, crumbs: { title: string, href: string }[], onChange: (endpoint: WebhookEndpoint) => void, reload: () => void }} props */
function Whole({ endpoint, crumbs, onChange, reload }) {
  const id = endpoint.endpointId;
  const projects = useNames(["project"], { isWhole: true });
  const [open, setOpen] = useState(/** @type {"change" | "again" | null} */ (null));
  const state = FILTERS.some(([, value]) => value && value === query.value.state) ? query.value.state : undefined;
  const list = useList(`deliveries ${id}`, { state }, (wanted, options) => api.webhookEndpoints.deliveries.list(id, wanted, options), { live: ["webhook-delivery"] });
  const refresh = () => (list.reload(), reload());
  const test = useAct(async () => {
    await api.webhookEndpoints.sendTest(id);
    announce("A test is on its way");
    if (state === "failed" || state === "delivered") go(href(`webhooks/${id}`));
    refresh();
  });
  const unregister = () =>
    confirm({
      title: `Unregister ${endpoint.url}?`,
      says: "What waits to be sent fails, and nothing more goes there. An unregistered endpoint cannot be restored; it is added again.",
      act: "Unregister",
      typed: endpoint.url,
      run: async () => {
        await api.webhookEndpoints.unregister(id);
        announce("Unregistered");
        go(href("webhooks"), { replace: true });
      },
    });
  const mayAct = isTenantAdmin();
  const again = () => setOpen("again");
  useActs(mayAct ? [{ title: "Send a test", about: "Act", icon: "webhooks", run: () => void test.run() }, { title: "Send again what failed", about: "Act", icon: "again", run: again }, { title: "Unregister this endpoint", about: "Act", icon: "stop", run: unregister }] : []);
  const items = [{ title: "Change …", run: () => setOpen("change") }, { title: "Send again what failed …", run: again }, /** @type {const} */ ("line"), { title: "Unregister …", isDanger: true, run: unregister }];
  return fragment(
    h(PageHead, {
      title: endpoint.url,
      documentTitle: `Webhooks to ${endpoint.url.slice(0, 80)}`,
      crumbs,
      state: stateOf(endpoint),
      actions: mayAct ? [h(Menu, { key: "more", label: "More", items }), button({ key: "test", type: "button", class: "primary", disabled: test.isBusy, onClick: () => test.run() }, "Send a test")] : null,
    }),
    h(Failure, { error: test.error }),
    div({ class: "card pad" }, h(Facts, { facts: facts(endpoint, projects) })),
    h(Tabs, { label: "Which deliveries", tabs: FILTERS.map(([title, value]) => ({ title, href: href(`webhooks/${id}`, { state: value }), isCurrent: (state ?? "") === value, count: amount(endpoint, value) })) }),
    state === "failed" && mayAct && list.rows?.length ? div({ class: "row end above" }, button({ type: "button", onClick: again }, "Send again what failed …")) : null,
    h(Table, {
      label: "Deliveries, newest first",
      columns: columns(mayAct, refresh),
      list,
      rowHref: (/** @type {WebhookDelivery} */ one) => href(`webhooks/${id}/deliveries/${one.id}`),
      empty: state ? h(Empty, { title: "No delivery is in this state.", action: a({ class: "button", href: href(`webhooks/${id}`) }, "All deliveries") }) : h(Empty, { title: "Nothing was sent yet." }, "Send a test to see whether the receiver answers."),
    }),
    h(Pager, { list }),
    open === "change" ? h(EndpointForm, { endpoint, projects, onClose: () => setOpen(null), onDone: (/** @type {WebhookEndpoint} */ changed) => (setOpen(null), onChange(changed)) }) : null,
    open === "again" ? h(SendAgain, { endpoint, onClose: () => setOpen(null), onDone: refresh }) : null,
  );
}

/** @param {WebhookEndpoint} endpoint @param {string} state */
function amount({ deliveries }, state) {
  if (state === "failed") return deliveries.failed;
  if (state === "delivered") return deliveries.delivered;
  return state === "being-sent" ? deliveries.beingSent : undefined;
}

/** @param {WebhookEndpoint} endpoint @param {Map<string, import("../components/names.js").Named>} projects @returns {[string, import("../ui.js").Child][]} */
function facts(endpoint, projects) {
  const previous = endpoint.previousSecret;
  return [
    ["Sends", sends(endpoint, projects)],
    ["Signs with", signsWith(endpoint.secretRef)],
    ["Signs beside it", previous ? span(null, signsWith(previous.secretRef), " until ", h(Time, { at: previous.signsUntil, ago: false })) : undefined],
    ["Delivered", count(endpoint.deliveries.delivered)],
    ["Last delivered", endpoint.lastDeliveredAt ? h(Time, { at: endpoint.lastDeliveredAt }) : "Never"],
    ["Last error", endpoint.lastError ? span(null, reasonOf(endpoint.lastError, endpoint.lastStatus), ", ", h(Time, { at: endpoint.lastFailedAt })) : "None"],
    ["Added", h(Time, { at: endpoint.createdAt })],
    ["Id", h(Id, { id: endpoint.endpointId, what: "endpoint" })],
  ];
}

/** @param {boolean} mayAct @param {() => void} refresh @returns {import("../components/table.js").Column[]} */
const columns = (mayAct, refresh) => [
  { title: "Delivery", show: story, wraps: true },
  { title: "Event", show: (/** @type {WebhookDelivery} */ one) => span({ class: "tags" }, span(null, one.type), one.resends ? span({ class: "tag" }, "sent again") : null), from: "middle" },
  { title: "Run", show: (/** @type {WebhookDelivery} */ delivery) => h(RunOf, { delivery }), from: "middle" },
  { title: "Since (UTC)", show: (/** @type {WebhookDelivery} */ one) => h(Time, { at: one.createdAt, short: true }), from: "middle" },
  ...(mayAct ? [{ title: "Act", show: (/** @type {WebhookDelivery} */ delivery) => h(Again, { delivery, onDone: refresh }) }] : []),
];

/** Sends a delivery again, which makes a new one of the same event. @param {{ delivery: WebhookDelivery, onDone: (queued: WebhookDelivery) => void }} props */
export function Again({ delivery, onDone }) {
  const act = useAct(async () => {
    const queued = await api.webhookEndpoints.deliveries.resend(delivery.endpointId, delivery.id);
    announce("It is sent again");
    onDone(queued);
  });
  return fragment(button({ type: "button", disabled: act.isBusy, onClick: () => act.run() }, "Send again"), act.error ? span({ class: "error", role: "alert" }, act.error.message) : null);
}

/** Sends again all that failed since a time. @param {{ endpoint: WebhookEndpoint, onClose: () => void, onDone: () => void }} props */
function SendAgain({ endpoint, onClose, onDone }) {
  const [since, setSince] = useState(() => new Date(serverNow() - 86_400_000).toISOString().slice(0, 16).replace("T", " "));
  const at = Date.parse(`${since.trim().replace(" ", "T")}Z`);
  const submit = async () => {
    let sent = 0;
    // 1000 a request: what it leaves is asked for again.
    for (let round = 0; round < MOST_ROUNDS; round++) {
      const answer = await api.webhookEndpoints.resendFailed(endpoint.endpointId, { failedSince: new Date(at).toISOString() });
      sent += answer.count;
      if (!answer.hasMore) break;
    }
    announce(sent ? `${counted(sent, "delivery", "deliveries")} sent again` : "Nothing failed since then that was not sent again");
    onDone();
  };
  return h(
    FormDialog,
    { title: "Send again what failed", act: "Send again", onSubmit: submit, onClose, isReady: Number.isFinite(at) },
    p(null, `Each delivery to ${endpoint.url} that failed for good since then, and was not sent again yet, is sent once more. The receiver sees the same webhook-id.`),
    h(Field, { label: "Failed since (UTC)", hint: "Year-month-day hour:minute", value: since, onInput: setSince, isMono: true, isRequired: true, error: Number.isFinite(at) ? undefined : "Write it as 2026-01-31 08:00." }),
  );
}
