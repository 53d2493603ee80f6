/**
 * What a turn sets in place of its agent's version: the model, parameters and limits, folded.
 *
 * Guarantees: the fields are those that the version lets a run set, and none where it allows nothing. What is left empty stays
 * as the version has it.
 */

import { api } from "../api.js";
import { useResource } from "../resource.js";
import { h, tags } from "../ui.js";
import { Field, Select, faultAt } from "./field.js";
import { JsonField } from "./schema-form.js";

/** @import { AgentRuntimeError } from "agent-runtime" */
/** @import { AgentVersion, RunOverrides } from "agent-runtime/types" */

const { details, div, p, summary } = tags;

/** Fields of numbers: name, label, hint, and how often the typed number is what the server takes. @typedef {[string, string, string, number?][]} Numbers */
const PARAMETERS = /** @type {Numbers} */ ([
  ["temperature", "Temperature", "0 to 2"],
  ["topP", "Top P", "0 to 1"],
  ["maxTokens", "Longest answer, in tokens", "1 to 1000000"],
]);
const LIMITS = /** @type {Numbers} */ ([
  ["maxSteps", "Steps at most", "1 to 200"],
  ["turnTimeoutMs", "Time, in seconds", "1 to 86400", 1000],
  ["maxOutputTokens", "Tokens of one call", "1 to 1000000"],
]);
const ALL = [...PARAMETERS, ...LIMITS];

/** As it is typed. @typedef {{ modelProviderId: string, model: string, numbers: Record<string, string>, further: { value: any, fault?: string } }} TypedOverrides */

/** @type {TypedOverrides} */
export const NO_OVERRIDES = { modelProviderId: "", model: "", numbers: {}, further: { value: undefined } };

const isNumber = (/** @type {string} */ text) => Number.isFinite(Number(text));

/** What is wrong with a field before the server sees it. @param {TypedOverrides} typed @param {string} name */
const faultOf = (typed, name) => (isNumber(typed.numbers[name] ?? "") ? undefined : "This is no number.");

/** Whether it can be sent. @param {TypedOverrides} typed */
export const areOverridesReady = (typed) => !typed.further.fault && ALL.every(([name]) => !faultOf(typed, name));

/** As a run takes it; undefined if nothing is set. @param {TypedOverrides} typed @returns {RunOverrides | undefined} */
export function overridesOf({ modelProviderId, model, numbers, further }) {
  const typed = (/** @type {Numbers} */ fields) => Object.fromEntries(fields.filter(([name]) => numbers[name]?.trim()).map(([name, , , by]) => [name, by ? Math.round(Number(numbers[name]) * by) : Number(numbers[name])]));
  const parts = {
    ...(modelProviderId ? { modelProviderId } : {}),
    ...(model ? { model } : {}),
    parameters: { ...further.value, ...typed(PARAMETERS) },
    limits: typed(LIMITS),
  };
  const set = Object.entries(parts).filter(([, value]) => typeof value === "string" || Object.keys(value).length);
  return set.length ? Object.fromEntries(set) : undefined;
}

/**
 * The version that a turn would take now, once it is read.
 * @param {string} agentId @param {string} [always] the version of each turn, if it is always the same
 */
export function useTakenVersion(agentId, always) {
  const agent = useResource(always ? null : `agent ${agentId}`, (options) => api.agents.get(agentId, options), { live: ["agent"] });
  const taken = always ?? agent.data?.liveVersion ?? agent.data?.latestVersion;
  return useResource(taken ? `agent ${agentId} version ${taken}` : null, (options) => api.agents.versions.get(agentId, String(taken), options)).data;
}

/** @param {{ version: AgentVersion, typed: TypedOverrides, onInput: (typed: TypedOverrides) => void, error?: AgentRuntimeError }} props */
export function OverrideFields({ version, typed, onInput, error }) {
  if (!version.overrides.length) return null;
  const may = new Set(version.overrides);
  const set = Object.keys(overridesOf(typed) ?? {}).length > 0;
  return details(
    { class: "more-fields" },
    summary(null, set ? "The next turn has settings of its own" : "Settings of the next turn"),
    div(
      { class: "stack tight" },
      p({ class: "hint" }, `In place of those of version ${version.version}, for one turn. What is empty stays.`),
      may.has("model") ? h(Model, { version, typed, onInput, error }) : null,
      may.has("parameters") ? h(Parameters, { typed, onInput, error }) : null,
      may.has("limits") ? h(NumberFields, { of: LIMITS, within: "limits", typed, onInput, error }) : null,
    ),
  );
}

/** @param {{ version: AgentVersion, typed: TypedOverrides, onInput: (typed: TypedOverrides) => void, error?: AgentRuntimeError }} props */
function Model({ version, typed, onInput, error }) {
  const providers = useResource("names of providers", async (options) => (await api.modelProviders.list({ limit: 200 }, options)).data);
  const all = providers.data ?? [];
  const own = all.find((one) => one.id === version.modelProviderId);
  const provider = typed.modelProviderId ? all.find((one) => one.id === typed.modelProviderId) : own;
  return div(
    { class: "fields-row" },
    h(Select, { label: "Provider", value: typed.modelProviderId, placeholder: `The version's: ${own?.name ?? "its own"}`, onInput: (modelProviderId) => onInput({ ...typed, modelProviderId, model: "" }), options: all.filter((one) => one !== own).map((one) => ({ value: one.id, label: one.name })), error: faultAt(error, "overrides.modelProviderId") }),
    h(Select, { label: "Model", value: typed.model, placeholder: `The version's: ${version.model}`, onInput: (model) => onInput({ ...typed, model }), options: (provider?.models ?? []).map((one) => ({ value: one.name, label: one.name })), error: faultAt(error, "overrides.model") }),
  );
}

/** @param {{ typed: TypedOverrides, onInput: (typed: TypedOverrides) => void, error?: AgentRuntimeError }} props */
function Parameters({ typed, onInput, error }) {
  const isOfNumber = PARAMETERS.some(([name]) => faultAt(error, `overrides.parameters.${name}`));
  return div(
    { class: "stack tight" },
    h(NumberFields, { of: PARAMETERS, within: "parameters", typed, onInput, error }),
    h(JsonField, { label: "Further parameters", hint: 'A JSON object, such as {"seed": 7, "reasoningEffort": "low"}', value: typed.further.value, onInput: (value, fault) => onInput({ ...typed, further: { value, fault: fault ?? notAnObject(value) } }), error: typed.further.fault ?? (isOfNumber ? undefined : faultAt(error, "overrides.parameters", undefined, true)) }),
  );
}

const notAnObject = (/** @type {unknown} */ value) => (value === undefined || (typeof value === "object" && value !== null && !Array.isArray(value)) ? undefined : "This is no JSON object.");

/** @param {{ of: Numbers, within: "parameters" | "limits", typed: TypedOverrides, onInput: (typed: TypedOverrides) => void, error?: AgentRuntimeError }} props */
function NumberFields({ of, within, typed, onInput, error }) {
  // The server says a limit's name in its sentence, and not in its place.
  const said = (/** @type {string} */ name) => {
    const whole = within === "limits" ? faultAt(error, "overrides.limits") : undefined;
    return faultAt(error, `overrides.${within}.${name}`) ?? (whole?.includes(name) ? whole : undefined);
  };
  return div(
    { class: "fields-row" },
    of.map(([name, label, hint]) => h(Field, { key: name, label, hint, isRequired: false, inputMode: "decimal", value: typed.numbers[name] ?? "", onInput: (text) => onInput({ ...typed, numbers: { ...typed.numbers, [name]: text } }), error: faultOf(typed, name) ?? said(name) })),
  );
}
