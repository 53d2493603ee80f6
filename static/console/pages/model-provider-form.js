/** The form of a model provider: its address, how the service is let in, its models with their prices. */

import { api } from "../api.js";
import { FormDialog } from "../components/dialog.js";
import { Field, Select, faultAt } from "../components/field.js";
import { refOf, textOf, useSecrets } from "../components/secret-ref.js";
import { announce } from "../components/status.js";
import { typedNumber } from "../number.js";
import { holds } from "../permit.js";
import { fragment, h, tags, useState } from "../ui.js";
import { OptionFields, optionsOf, typedOptions } from "./model-provider-options.js";

/** @import { Model, ModelProvider } from "agent-runtime/types" */

const { button, details, div, fieldset, legend, p, summary } = tags;

const PRICES = /** @type {const} */ ([["prompt", "Prompt"], ["completion", "Completion"], ["cacheRead", "Cache read"], ["cacheWrite", "Cache write"], ["reasoning", "Reasoning"]]);

/** A model as it is typed. @typedef {{ name: string, contextWindow: string, prices: Record<string, string> }} Typed */

/** @param {Model} model @returns {Typed} */
function typedOf(model) {
  const prices = Object.fromEntries(PRICES.map(([key]) => [key, model.prices?.[key] === undefined || model.prices[key] === null ? "" : String(model.prices[key])]));
  return { name: model.name, contextWindow: model.contextWindow ? String(model.contextWindow) : "", prices };
}

/** @param {Typed} typed */
function modelOf({ name, contextWindow, prices }) {
  const given = Object.entries(prices).filter(([, text]) => text.trim());
  return { name: name.trim(), ...(contextWindow.trim() ? { contextWindow: typedNumber(contextWindow) } : {}), prices: Object.fromEntries(given.map(([key, text]) => [key, typedNumber(text)])) };
}

/** @param {{ provider?: ModelProvider, onClose: () => void, onDone: (provider: ModelProvider) => void }} props */
export function ProviderForm({ provider, onClose, onDone }) {
  const [name, setName] = useState(provider?.name ?? "");
  const [baseUrl, setBaseUrl] = useState(provider?.baseUrl ?? "");
  const [way, setWay] = useState(provider?.apiKeySecretRef ? "secret" : provider?.apiKeyName ? "name" : "none");
  const [keyName, setKeyName] = useState(provider?.apiKeyName ?? "");
  const [secret, setSecret] = useState(provider?.apiKeySecretRef ? textOf(provider.apiKeySecretRef) : "");
  const [models, setModels] = useState(() => (provider?.models ?? [{ name: "" }]).map(typedOf));
  const [options, setOptions] = useState(() => typedOptions(provider?.serverOptions));
  const isReady = Boolean(name.trim() && baseUrl.trim() && models.length && models.every((model) => model.name.trim()) && (way !== "secret" || secret) && (way !== "name" || keyName.trim()));
  const submit = async () => {
    const apiKeySecretRef = way === "secret" ? refOf(secret) : null;
    const apiKeyName = way === "name" ? keyName.trim() : null;
    const about = { name: name.trim(), baseUrl: baseUrl.trim(), serverOptions: optionsOf(options), models: /** @type {any} */ (models.map(modelOf)) };
    const made = provider ? await api.modelProviders.update(provider.id, changes(provider, { ...about, apiKeyName, apiKeySecretRef })) : await api.modelProviders.create({ ...about, ...(apiKeyName ? { apiKeyName } : {}), ...(apiKeySecretRef ? { apiKeySecretRef } : {}) });
    announce(provider ? "Changed" : "Registered");
    onDone(made);
  };
  return h(FormDialog, {
    title: provider ? `Change ${provider.name}` : "Register a model provider",
    act: provider ? "Save" : "Register",
    isLarge: true,
    isReady,
    onSubmit: submit,
    onClose,
    fields: (error) =>
      fragment(
        div(
          { class: "columns" },
          h(Field, { label: "Name", value: name, onInput: setName, isRequired: true, most: 200, error: faultAt(error, "name"), autofocus: true }),
          h(Field, { label: "Address", hint: "Where its API begins; it usually ends in /v1.", type: "url", value: baseUrl, onInput: setBaseUrl, isRequired: true, most: 2048, placeholder: "https://models.example.com/v1", error: faultAt(error, "baseUrl") }),
        ),
        h(KeyFields, { way, setWay, keyName, setKeyName, secret, setSecret, error }),
        h(Models, { models, onInput: setModels, error }),
        h(OptionFields, { typed: options, onInput: setOptions, error }),
      ),
  });
}

/** What stays is left out, since some of it takes a further right. @param {ModelProvider} before @param {any} after */
function changes(before, after) {
  return Object.fromEntries(Object.entries(after).filter(([name, value]) => JSON.stringify(value) !== JSON.stringify(/** @type {any} */ (before)[name] ?? null)));
}

/** @param {{ way: string, setWay: (way: string) => void, keyName: string, setKeyName: (name: string) => void, secret: string, setSecret: (secret: string) => void, error?: import("agent-runtime").AgentRuntimeError }} props */
function KeyFields({ way, setWay, keyName, setKeyName, secret, setSecret, error }) {
  const maySecret = holds("secrets:write") || way === "secret";
  const rows = useSecrets(secret, maySecret);
  return div(
    { class: "columns" },
    h(Select, { label: "Its key", value: way, onInput: setWay, options: [{ value: "none", label: "It takes none" }, ...(maySecret ? [{ value: "secret", label: "A secret" }] : []), { value: "name", label: "A key that the operator listed" }] }),
    way === "secret"
      ? h(Select, { label: "Secret", hint: rows.length ? "It is read for each call." : "Put it among the secrets first.", value: secret, onInput: setSecret, options: rows, placeholder: "Choose", error: faultAt(error, "apiKeySecretRef") })
      : way === "name"
        ? h(Field, { label: "Name of the key", hint: "As it stands in SVC_MODEL_KEYS.", value: keyName, onInput: setKeyName, isRequired: true, isMono: true, autoComplete: "off", error: faultAt(error, "apiKeyName") })
        : null,
  );
}

/** @param {{ models: Typed[], onInput: (models: Typed[]) => void, error?: import("agent-runtime").AgentRuntimeError }} props */
function Models({ models, onInput, error }) {
  return fieldset(
    { class: "field" },
    legend(null, "Models"),
    p({ class: "hint" }, "Prices are US dollars for a million tokens. What has no price counts as nothing."),
    div({ class: "stack tight" }, models.map((model, index) => h(ModelEditor, { key: index, model, index, error, onInput: (to) => onInput(models.with(index, to)), onRemove: models.length > 1 ? () => onInput(models.toSpliced(index, 1)) : undefined }))),
    div(null, button({ type: "button", onClick: () => onInput([...models, typedOf({ name: "" })]) }, "Add a model")),
  );
}

/** @param {{ model: Typed, index: number, onInput: (model: Typed) => void, onRemove?: () => void, error?: import("agent-runtime").AgentRuntimeError }} props */
function ModelEditor({ model, index, onInput, onRemove, error }) {
  const at = `models[${index}]`;
  const priced = (/** @type {readonly (readonly [string, string])[]} */ which) => which.map(([key, label]) => h(Field, { key, label, isRequired: false, inputMode: "decimal", value: model.prices[key] ?? "", onInput: (text) => onInput({ ...model, prices: { ...model.prices, [key]: text } }), error: faultAt(error, `${at}.prices.${key}`) }));
  return div(
    { class: "editor", role: "group", "aria-label": `Model ${index + 1}` },
    div(
      { class: "row" },
      h(Field, { label: "Its name there", value: model.name, onInput: (name) => onInput({ ...model, name }), isRequired: true, isMono: true, autoComplete: "off", error: faultAt(error, `${at}.name`) }),
      h(Field, { label: "Context window", isRequired: false, inputMode: "numeric", value: model.contextWindow, onInput: (contextWindow) => onInput({ ...model, contextWindow }), error: faultAt(error, `${at}.contextWindow`) }),
      priced(PRICES.slice(0, 2)),
    ),
    details(null, summary(null, "More prices"), div({ class: "row" }, priced(PRICES.slice(2)))),
    onRemove ? div(null, button({ type: "button", onClick: onRemove }, `Remove ${model.name.trim() || `model ${index + 1}`}`)) : null,
  );
}
