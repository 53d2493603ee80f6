/** Model providers of the tenant: where models are asked, by which key, and at what price. Every member reads them. */

import { api } from "../api.js";
import { PageHead } from "../components/page-head.js";
import { Pager, useList } from "../components/pager.js";
import { ProviderState, useUnread } from "../components/provider-faults.js";
import { useActs } from "../components/acts.js";
import { Empty } from "../components/states.js";
import { Table } from "../components/table.js";
import { counted } from "../number.js";
import { isTenantAdmin } from "../permit.js";
import { go, href } from "../route.js";
import { h, tags, useState } from "../ui.js";
import { ProviderForm } from "./model-provider-form.js";

/** @import { ModelProvider } from "agent-runtime/types" */

const { button, code, div, span } = tags;

/** By what it lets the service in; never the key. @param {ModelProvider} provider */
export function keyOf(provider) {
  if (provider.apiKeySecretRef) return span(null, "secret ", code(null, `${provider.apiKeySecretRef.envName}/${provider.apiKeySecretRef.name}`));
  return provider.apiKeyName ? span(null, "operator's key ", code(null, provider.apiKeyName)) : span({ class: "faint" }, "none");
}

/** @param {ModelProvider} provider */
function models({ models }) {
  const names = models.slice(0, 3).map((model) => model.name);
  return span({ title: models.map((model) => model.name).slice(0, 50).join(", ") }, names.join(", "), models.length > names.length ? span({ class: "faint" }, ` and ${models.length - names.length} more`) : null);
}

export default function ModelProviders() {
  const list = useList("model providers", {}, (wanted, options) => api.modelProviders.list(wanted, options));
  const [isForm, setForm] = useState(false);
  const mayAdd = isTenantAdmin();
  const unread = useUnread(list.rows);
  const add = () => setForm(true);
  useActs(mayAdd ? [{ title: "Register a model provider", about: "Act", icon: "plus", run: add }] : []);
  const addButton = mayAdd ? button({ type: "button", class: "primary", onClick: add }, "Register a provider") : null;
  return div(
    null,
    h(PageHead, { title: "Model providers", lead: "Servers with an OpenAI-compatible API. A version of an agent names one, and its model.", actions: list.rows?.length ? addButton : null }),
    h(Table, {
      label: "Model providers, newest first",
      columns: [
        { title: "Name", show: (/** @type {ModelProvider} */ one) => one.name },
        ...(mayAdd ? [{ title: "Fault", show: (/** @type {ModelProvider} */ provider) => h(ProviderState, { provider, unread }) }] : []),
        { title: "Address", show: (/** @type {ModelProvider} */ one) => code(null, one.baseUrl), from: "middle" },
        { title: "Key", show: keyOf, from: "wide" },
        { title: "Models", show: models },
        { title: "Priced", show: (/** @type {ModelProvider} */ one) => priced(one), from: "wide", isSecond: true },
      ],
      list,
      rowHref: (/** @type {ModelProvider} */ one) => href(`model-providers/${one.id}`),
      empty: h(Empty, { title: "No model provider yet.", action: addButton }, mayAdd ? "Register the server that agents ask, with the models that they may name." : "A tenant admin registers the server that agents ask."),
    }),
    h(Pager, { list }),
    isForm ? h(ProviderForm, { onClose: () => setForm(false), onDone: (/** @type {ModelProvider} */ made) => go(href(`model-providers/${made.id}`)) }) : null,
  );
}

/** How many models have a price: the cost of others counts as nothing. @param {ModelProvider} provider */
function priced({ models }) {
  const without = models.filter((model) => model.prices?.prompt === undefined && model.prices?.completion === undefined).length;
  return without ? `${counted(without, "model")} without a price` : "all";
}
