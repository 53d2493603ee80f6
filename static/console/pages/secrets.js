/**
 * Secrets of the tenant: their names, environments, versions, times and who put them. A value goes in by a paste, or is made
 * in this browser; none ever comes back.
 */

import { api } from "../api.js";
import { Banner } from "../components/banner.js";
import { FormDialog, confirm } from "../components/dialog.js";
import { Field, faultAt } from "../components/field.js";
import { Filters, filtered, isFiltered } from "../components/filters.js";
import { Menu } from "../components/menu.js";
import { useNames } from "../components/names.js";
import { PageHead } from "../components/page-head.js";
import { Pager, useList } from "../components/pager.js";
import { useActs } from "../components/acts.js";
import { SecretOnce } from "../components/secret-once.js";
import { Empty } from "../components/states.js";
import { announce } from "../components/status.js";
import { Table } from "../components/table.js";
import { Time } from "../components/time.js";
import { holds, isTenantAdmin } from "../permit.js";
import { newSigningSecret } from "../signing-secret.js";
import { fragment, h, tags, useState } from "../ui.js";
import { SecretUses } from "./secret-uses.js";

/** @import { Secret } from "agent-runtime/types" */

const { button, code, div, p, span } = tags;

/** @type {import("../components/filters.js").Filter[]} */
const FILTERS = [{ name: "environment", label: "Environment", placeholder: "Any" }];

/** What a form begins with. @typedef {{ environment: string, name: string, isFixed: boolean }} Begun */

export default function Secrets() {
  const { environment } = filtered(FILTERS);
  const list = useList("secrets", { environment }, (wanted, options) => api.secrets.list(wanted, options), { order: null });
  const names = useNames(["user", "service-account"], { isWhole: true });
  const [form, setForm] = useState(/** @type {Begun | null} */ (null));
  const [kept, setKept] = useState(/** @type {{ at: string, value: string } | null} */ (null));
  const mayPut = isTenantAdmin() && holds("secrets:write") && list.error?.status !== 404;
  const add = () => setForm({ environment: environment ?? "production", name: "", isFixed: false });
  useActs(mayPut ? [{ title: "Put a secret", about: "Act", icon: "plus", run: add }] : []);
  const head = h(PageHead, { title: "Secrets", lead: "Model providers, tools and webhooks use them by name. A value goes in and is never shown.", actions: mayPut && list.rows?.length ? button({ type: "button", class: "primary", onClick: add }, "Put a secret") : null });
  // Without a backend the server has no routes of secrets.
  if (list.error?.status === 404) return div(null, head, h(Banner, { tone: "idle", title: "Secrets are not turned on" }, p(null, "A secrets backend must be set: whoever operates the server sets SVC_SECRETS_BACKEND. Webhooks, and tools and providers that use a secret, are off until then.")));
  return div(
    null,
    head,
    list.rows?.length || isFiltered(FILTERS) ? h(Filters, { filters: FILTERS }) : null,
    div(
      { class: "stack" },
      h(Table, {
        label: "Secrets, by environment and name",
        columns: columns(names, mayPut, setForm, list.reload),
        list,
        rowKey: keyOf,
        empty: isFiltered(FILTERS) ? h(Empty, { title: "No secret is in this environment." }) : h(Empty, { title: "No secret yet.", action: mayPut ? button({ type: "button", class: "primary", onClick: add }, "Put a secret") : null }, "Put the key of a model provider, a header of a tool, or a secret that signs webhooks."),
      }),
      h(Pager, { list, newest: "First", newer: "Back", older: "On" }),
      h(SecretUses, {}),
    ),
    form ? h(PutForm, { begun: form, onClose: () => setForm(null), onDone: (made) => (list.reload(), made && setKept(made)) }) : null,
    kept ? h(SecretOnce, { title: `The signing secret ${kept.at}`, secret: kept.value, says: "Give it to whoever verifies: the receiver of webhooks, the server of a tool. It is stored here, and nobody can read it here.", onClose: () => setKept(null) }) : null,
  );
}

/** @param {Secret} one */
const keyOf = (one) => `${one.environment}/${one.name}`;

/**
 * @param {Map<string, import("../components/names.js").Named>} names
 * @param {boolean} mayPut
 * @param {(form: Begun) => void} open
 * @param {() => void} reload
 * @returns {import("../components/table.js").Column[]}
 */
const columns = (names, mayPut, open, reload) => [
  { title: "Name", show: (/** @type {Secret} */ one) => code(null, one.name) },
  { title: "Environment", show: (/** @type {Secret} */ one) => one.environment },
  { title: "Version", show: (/** @type {Secret} */ one) => version(one), from: "middle" },
  { title: "Put (UTC)", show: (/** @type {Secret} */ one) => h(Time, { at: one.updatedAt, short: true }), from: "middle" },
  { title: "First put (UTC)", show: (/** @type {Secret} */ one) => h(Time, { at: one.createdAt, short: true, ago: false }), from: "wide", isSecond: true },
  { title: "First put by", show: (/** @type {Secret} */ one) => (one.createdBy ? (names.get(one.createdBy)?.name ?? "somebody else") : "–"), from: "wide", isSecond: true },
  ...(mayPut ? [{ title: "Acts", show: (/** @type {Secret} */ one) => h(Menu, { label: `Acts on ${one.name}`, face: "Acts", items: [{ title: "Put another value …", run: () => open({ environment: one.environment, name: one.name, isFixed: true }) }, "line", { title: "Delete …", isDanger: true, run: () => remove(one, reload) }] }) }] : []),
];

/** The version that stands, and until when the one before it signs. @param {Secret} one */
function version(one) {
  const before = one.versions.find((other) => other.expiresAt && Date.parse(other.expiresAt) > Date.now());
  return span(null, one.version, before ? span({ class: "tag", title: `Version ${before.version} still signs webhooks` }, `${before.version} signs too`) : null);
}

/** @param {Secret} one @param {() => void} reload */
function remove(one, reload) {
  confirm({
    title: `Delete the secret ${keyOf(one)}?`,
    says: "Its versions are gone for good. What uses it by name fails from then on: webhooks that sign with it, tools, model providers.",
    act: "Delete",
    typed: one.name,
    run: async () => {
      await api.secrets.delete(one.environment, one.name);
      announce("Deleted");
      reload();
    },
  });
}

/** @param {{ begun: Begun, onClose: () => void, onDone: (made?: { at: string, value: string }) => void }} props */
function PutForm({ begun, onClose, onDone }) {
  const [environment, setEnvironment] = useState(begun.environment);
  const [name, setName] = useState(begun.name);
  const [value, setValue] = useState("");
  const [made, setMade] = useState("");
  const given = made || value;
  const submit = async () => {
    await api.secrets.put(environment.trim(), name.trim(), { value: given });
    announce(begun.isFixed ? "The new value stands" : "Stored");
    onDone(made ? { at: `${environment.trim()}/${name.trim()}`, value: made } : undefined);
  };
  return h(FormDialog, {
    title: begun.isFixed ? `Another value for ${begun.name}` : "Put a secret",
    act: "Store it",
    isReady: Boolean(environment.trim() && name.trim() && given),
    onSubmit: submit,
    onClose,
    fields: (error) =>
      fragment(
        begun.isFixed
          ? p(null, "It takes the place of the value that stands in ", code(null, begun.environment), ". The one before it signs webhooks beside it for 24 hours.")
          : [
              h(Field, { key: "environment", label: "Environment", hint: "Tools find a secret under the environment that the server serves (SVC_ENVIRONMENT).", value: environment, onInput: setEnvironment, isRequired: true, isMono: true, most: 100, autoComplete: "off", error: faultAt(error, "environment") }),
              h(Field, { key: "name", label: "Name", hint: "Letters, digits and underscores, such as BILLING_KEY.", value: name, onInput: setName, isRequired: true, isMono: true, most: 128, autoComplete: "off", error: faultAt(error, "name") }),
            ],
        made
          ? h(Banner, { tone: "good", actions: button({ type: "button", onClick: () => setMade("") }, "Paste a value instead") }, "A signing secret of 32 random bytes was made in this browser. It is shown once it is stored.")
          : div({ class: "stack tight" }, div({ class: "masked" }, h(Field, { label: "Value", hint: "Paste it. It is never shown again.", value, onInput: setValue, isRequired: true, isMono: true, lines: 3, autoComplete: "off", error: faultAt(error, "value") })), div(null, button({ type: "button", onClick: () => setMade(newSigningSecret()) }, "Make a signing secret"))),
      ),
  });
}
