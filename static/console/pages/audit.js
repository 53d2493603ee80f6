/** Access audit: every decision about who may do what, newest first, 50 a page (specification 4.6, 5.6 and 8). */

import { api } from "../api.js";
import { Filters, clearFilters, filtered, inUtc, isFiltered } from "../components/filters.js";
import { named } from "../components/named.js";
import { useNames } from "../components/names.js";
import { PageHead } from "../components/page-head.js";
import { Pager, useList } from "../components/pager.js";
import { State } from "../components/state.js";
import { Empty } from "../components/states.js";
import { Table } from "../components/table.js";
import { Time } from "../components/time.js";
import { href } from "../route.js";
import { h, tags } from "../ui.js";

/** @import { AccessDecision } from "agent-runtime/types" */
/** @import { Named } from "../components/names.js" */

const { button, div, span } = tags;

/** @type {import("../components/filters.js").Filter[]} */
const FILTERS = [
  { name: "outcome", label: "Outcome", options: [{ value: "allowed", label: "Allowed" }, { value: "denied", label: "Denied" }] },
  { name: "action", label: "Action", options: ["read", "write", "admin", "sign-in"].map((value) => ({ value, label: value })) },
  { name: "actorSubject", label: "Actor", placeholder: "user:<id>" },
  { name: "resource", label: "Resource", placeholder: "project:<id>" },
  { name: "from", label: "From (UTC)", type: "datetime-local" },
  { name: "to", label: "Before (UTC)", type: "datetime-local" },
  { name: "runId", label: "Run", placeholder: "A run's id" },
  { name: "requestId", label: "Request", placeholder: "req-<id>" },
];

/** `user:<id>` by name, with the kind before it where it is nobody. @param {{ text: string, names: Map<string, Named> }} props */
function Subject({ text, names }) {
  const { kind, id, name } = named(text, names);
  const what = { user: "", "service-account": "", tenant: "The tenant" }[kind] ?? kind;
  if (kind === "tenant") return span({ title: text }, what);
  if (id === "*") return span({ title: text }, `${kind}s`);
  return span({ title: text }, what ? `${what} ` : "", name ?? span({ class: "mono" }, `…${id.slice(-12)}`));
}

/** A reason with names in place of ids, as far as they are known. @param {string} reason @param {Map<string, Named>} names */
function withNames(reason, names) {
  return reason.replace(/\b([a-z-]+):([0-9a-f]{8}-[0-9a-f-]{27})\b/g, (text, kind, id) => {
    const name = names.get(id)?.name;
    return kind === "tenant" ? "the tenant" : name ? (kind === "user" ? name : `${kind} ${name}`) : `${kind}:…${id.slice(-12)}`;
  });
}

/** @param {Map<string, Named>} names @returns {import("../components/table.js").Column[]} */
const columns = (names) => [
  { title: "Time (UTC)", show: (/** @type {AccessDecision} */ one) => h(Time, { at: one.timestamp, short: true, ago: false }) },
  { title: "Outcome", show: (/** @type {AccessDecision} */ one) => h(State, { state: String(one.outcome) }) },
  { title: "Actor", show: (/** @type {AccessDecision} */ one) => h(Subject, { text: one.actorSubject, names }) },
  { title: "Action", show: (/** @type {AccessDecision} */ one) => one.action, from: "middle" },
  { title: "Resource", show: (/** @type {AccessDecision} */ one) => h(Subject, { text: one.resource, names }), from: "middle" },
  { title: "Reason", show: (/** @type {AccessDecision} */ one) => span({ title: one.reason }, withNames(one.reason, names)), from: "wide", isSecond: true, isRest: true },
];

export default function Audit() {
  const { from, to, ...filters } = filtered(FILTERS);
  const list = useList("decisions", { ...filters, from: inUtc(from), to: inUtc(to) }, (wanted, options) => api.audit.authz(wanted, options));
  const names = useNames(["user", "service-account", "project", "team", "org"]);
  return div(
    null,
    h(PageHead, { title: "Access audit", lead: "Who asked for what, and whether they might. Each opens with the check behind it." }),
    h(Filters, { filters: FILTERS }),
    h(Table, {
      label: "Access decisions, newest first",
      columns: columns(names),
      list,
      rowHref: (/** @type {AccessDecision} */ one) => href(`audit/${one.id}`),
      empty: isFiltered(FILTERS)
        ? h(Empty, { title: "No decision matches these filters.", action: button({ type: "button", onClick: () => clearFilters(FILTERS) }, "Clear filters") })
        : h(Empty, { title: "Nothing was decided yet." }, "Where authorization is off, nothing is: SVC_AUTHZ_API_URL turns it on."),
    }),
    h(Pager, { list }),
  );
}
