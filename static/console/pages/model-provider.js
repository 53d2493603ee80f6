/** A model provider: its address and key, its models with their prices. Tenant admins change it here. */

import { api } from "../api.js";
import { confirm } from "../components/dialog.js";
import { Id } from "../components/id.js";
import { Menu } from "../components/menu.js";
import { PageHead, Unread } from "../components/page-head.js";
import { ProviderFaults } from "../components/provider-faults.js";
import { useActs } from "../components/acts.js";
import { Facts, Section } from "../components/section.js";
import { announce } from "../components/status.js";
import { Table } from "../components/table.js";
import { Time } from "../components/time.js";
import { count } from "../number.js";
import { isTenantAdmin } from "../permit.js";
import { useResource } from "../resource.js";
import { go, href } from "../route.js";
import { fragment, h, tags, useState } from "../ui.js";
import { ProviderCheck } from "./model-provider-check.js";
import { ProviderForm } from "./model-provider-form.js";
import { keyOf } from "./model-providers.js";

/** @import { Model, ModelProvider } from "agent-runtime/types" */

const { button, code, div, p, span } = tags;

/** @param {{ modelProviderId: string }} props */
export default function ModelProviderPage({ modelProviderId }) {
  const provider = useResource(`model provider ${modelProviderId}`, (options) => api.modelProviders.get(modelProviderId, options));
  const crumbs = [{ title: "Model providers", href: href("model-providers") }];
  if (!provider.data) return h(Unread, { title: "Model provider", crumbs, of: provider, notFound: "No model provider has this id." });
  return h(Whole, { provider: provider.data, crumbs, onChange: provider.set });
}

/** @param {number | null | undefined} value */
const price = (value) => (value === undefined || value === null ? span({ class: "faint" }, "–") : `$${value}`);

const COLUMNS = /** @type {import("../components/table.js").Column[]} */ ([
  { title: "Model", show: (/** @type {Model} */ one) => code(null, one.name) },
  { title: "Context", show: (/** @type {Model} */ one) => (one.contextWindow ? count(one.contextWindow) : span({ class: "faint" }, "–")), isNumber: true, from: "middle" },
  { title: "Prompt", show: (/** @type {Model} */ one) => price(one.prices?.prompt), isNumber: true },
  { title: "Completion", show: (/** @type {Model} */ one) => price(one.prices?.completion), isNumber: true },
  { title: "Cache read", show: (/** @type {Model} */ one) => price(one.prices?.cacheRead), isNumber: true, from: "wide" },
  { title: "Cache write", show: (/** @type {Model} */ one) => price(one.prices?.cacheWrite), isNumber: true, from: "wide" },
  { title: "Reasoning", show: (/** @type {Model} */ one) => price(one.prices?.reasoning), isNumber: true, from: "wide" },
]);

/** @param {{ provider: ModelProvider, crumbs: { title: string, href: string }[], onChange: (provider: ModelProvider) => void }} props */
function Whole({ provider, crumbs, onChange }) {
  const [isForm, setForm] = useState(false);
  const mayChange = isTenantAdmin();
  const change = () => setForm(true);
  const remove = () =>
    confirm({
      title: `Delete the model provider ${provider.name}?`,
      says: "It can be deleted only while no version of an agent names it.",
      act: "Delete",
      run: async () => {
        await api.modelProviders.delete(provider.id);
        announce("Deleted");
        go(href("model-providers"), { replace: true });
      },
    });
  useActs(mayChange ? [{ title: "Change this model provider", about: "Act", icon: "providers", run: change }] : []);
  return fragment(
    h(PageHead, {
      title: provider.name,
      crumbs,
      actions: mayChange ? [h(Menu, { key: "more", label: "More", items: [{ title: "Delete …", isDanger: true, run: remove }] }), button({ key: "change", type: "button", onClick: change }, "Change")] : null,
    }),
    div(
      { class: "stack" },
      h(ProviderFaults, { provider }),
      div(
        { class: "card pad" },
        h(Facts, {
          facts: [
            ["Address", code(null, provider.baseUrl)],
            ["Key", keyOf(provider)],
            ["Models", count(provider.models.length)],
            ["Registered", h(Time, { at: provider.createdAt })],
            ["Changed", h(Time, { at: provider.updatedAt })],
            ["Id", h(Id, { id: provider.id, what: "model provider" })],
          ],
        }),
      ),
      h(Section, { title: "Models, and their prices" }, h(Table, { label: "Models", columns: COLUMNS, rows: provider.models, rowKey: (/** @type {Model} */ one) => one.name })),
      mayChange ? h(ProviderCheck, { provider }) : null,
      p({ class: "faint" }, "In US dollars for a million tokens. Cache tokens are part of the prompt, and reasoning tokens of the completion: a part without a price costs what its whole costs. What has no price at all counts as nothing."),
    ),
    isForm ? h(ProviderForm, { provider, onClose: () => setForm(false), onDone: onChange }) : null,
  );
}
