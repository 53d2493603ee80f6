/** Service accounts: principals of pipelines and apps. A tenant admin adds them. */

import { api } from "../api.js";
import { FormDialog } from "../components/dialog.js";
import { Field, faultAt } from "../components/field.js";
import { Filters, filtered } from "../components/filters.js";
import { Id } from "../components/id.js";
import { PageHead } from "../components/page-head.js";
import { Pager, useList } from "../components/pager.js";
import { useActs } from "../components/acts.js";
import { State } from "../components/state.js";
import { Empty } from "../components/states.js";
import { announce } from "../components/status.js";
import { Table } from "../components/table.js";
import { Time } from "../components/time.js";
import { mayGrant } from "../permit.js";
import { go, href } from "../route.js";
import { h, tags, useState } from "../ui.js";

/** @import { ServiceAccount } from "agent-runtime/types" */

const { button, div } = tags;

/** @type {import("../components/filters.js").Filter[]} */
const FILTERS = [{ name: "status", label: "State", any: "Active", options: [{ value: "deactivated", label: "Deactivated" }, { value: "all", label: "All" }] }];

/** @type {import("../components/table.js").Column[]} */
const COLUMNS = [
  { title: "Name", show: (/** @type {ServiceAccount} */ one) => one.name },
  { title: "State", show: (/** @type {ServiceAccount} */ one) => h(State, { state: one.deactivatedAt ? "deactivated" : "active" }) },
  { title: "Added (UTC)", show: (/** @type {ServiceAccount} */ one) => h(Time, { at: one.createdAt, short: true }), from: "middle", isSecond: true },
  { title: "Id", show: (/** @type {ServiceAccount} */ one) => h(Id, { id: one.id, what: "service account" }), from: "wide", isSecond: true },
];

export default function ServiceAccounts() {
  const [isAdding, setAdding] = useState(false);
  const { status } = filtered(FILTERS);
  const list = useList("service accounts", { status: status === "all" ? undefined : (status ?? "active") }, (wanted, options) => api.serviceAccounts.list(wanted, options));
  const adds = mayGrant("tenant");
  const add = adds ? button({ type: "button", class: "primary", onClick: () => setAdding(true) }, "Add a service account") : null;
  useActs(adds ? [{ title: "Add a service account", about: "Act", icon: "plus", run: () => setAdding(true) }] : []);
  return div(
    null,
    h(PageHead, { title: "Service accounts", lead: "For pipelines and apps: each has keys and roles of its own, and nobody signs in as one.", actions: add }),
    h(Filters, { filters: FILTERS }),
    h(Table, {
      label: "Service accounts, newest first",
      columns: COLUMNS,
      list,
      rowHref: (/** @type {ServiceAccount} */ one) => href(`service-accounts/${one.id}`),
      empty: status === "deactivated" ? h(Empty, { title: "None was deactivated." }) : h(Empty, { title: "No service account yet.", action: add }, "Give each pipeline and app one of its own, so that its keys can be revoked alone."),
    }),
    h(Pager, { list }),
    isAdding ? h(Add, { onClose: () => setAdding(false) }) : null,
  );
}

/** @param {{ onClose: () => void }} props */
function Add({ onClose }) {
  const [name, setName] = useState("");
  return h(FormDialog, {
    title: "Add a service account",
    act: "Add",
    isReady: Boolean(name.trim()),
    onClose,
    onSubmit: async () => {
      const made = await api.serviceAccounts.create({ name: name.trim() });
      announce("Added");
      go(href(`service-accounts/${made.id}`));
    },
    fields: (error) => h(Field, { label: "Name", hint: "What it does, such as nightly-report. No other active one has it.", value: name, onInput: setName, most: 200, isRequired: true, autofocus: true, autoComplete: "off", error: faultAt(error, "name", "already-exists") }),
  });
}
