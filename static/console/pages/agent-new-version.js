/** A new version of an agent, begun from another one: a form, and what it changes. */

import { api } from "../api.js";
import { Diff } from "../components/diff.js";
import { Check, Field, Select, faultAt, useFaulty } from "../components/field.js";
import { PageHead } from "../components/page-head.js";
import { JsonField } from "../components/schema-form.js";
import { Empty, Failure, Loading } from "../components/states.js";
import { announce } from "../components/status.js";
import { Since, useBase } from "../components/versions.js";
import { useAct, useResource } from "../resource.js";
import { go, href, query } from "../route.js";
import { h, tags, useState } from "../ui.js";

/** @import { Agent, AgentVersion, ModelProvider, NewAgentVersion, Tool } from "agent-runtime/types" */

const { a, button, details, div, fieldset, footer, form, legend, p, summary } = tags;

/** What a version may let a run set in place of its own. */
const OVERRIDES = /** @type {[NonNullable<NewAgentVersion["overrides"]>[number], string][]} */ ([
  ["model", "The model"],
  ["parameters", "Parameters"],
  ["limits", "Limits"],
]);

/** @param {{ agentId: string }} props */
export default function NewAgentVersionPage({ agentId }) {
  const from = query.value.from;
  const read = useResource(`new version ${agentId} ${from ?? ""}`, async (options) => {
    const agent = await api.agents.get(agentId, options);
    const base = from ?? agent.latestVersion;
    const [version, tools, providers] = await Promise.all([
      base ? api.agents.versions.get(agentId, base, options) : undefined,
      api.tools.list({ projectId: agent.projectId, limit: 200 }, options),
      api.modelProviders.list({ limit: 200 }, options),
    ]);
    return { agent, base: version, tools: tools.data, providers: providers.data };
  }, { fresh: true });
  const of = `${agentId} ${from ?? ""}`;
  const base = useBase(of, read.data);
  const crumbs = [{ title: "Agents", href: href("agents") }, { title: read.data?.agent.name ?? "Agent", href: href(`agents/${agentId}`) }];
  return div(
    null,
    h(PageHead, { title: "New version", crumbs, lead: base ? `Begins with what ${base.version} says. A version never changes once it is made.` : "A version never changes once it is made." }),
    read.data ? h(Since, { of: read.data.agent, kind: "agent", base: from ? undefined : (base?.version ?? null) }) : null,
    read.data ? h(Form, { ...read.data, base, key: of }) : read.error ? h(Failure, { error: read.error, retry: read.reload, notFound: "No agent has this id, or you may not read it." }) : h(Loading, {}),
  );
}

/** A number of a field; undefined of an empty one, NaN of what is none. @param {string} text */
const numberOf = (text) => (text.trim() === "" ? undefined : Number(text));
const textOf = (/** @type {number | null | undefined} */ value) => (value === null || value === undefined ? "" : String(value));

/** @param {{ agent: Agent, base?: AgentVersion, tools: Tool[], providers: ModelProvider[] }} props */
function Form({ agent, base, tools, providers }) {
  const [fields, setFields] = useState(() => ({
    version: "",
    instructions: base?.instructions ?? "",
    modelProviderId: base?.modelProviderId ?? (providers.length === 1 ? (providers[0]?.id ?? "") : ""),
    model: base?.model ?? "",
    temperature: textOf(base?.parameters.temperature),
    topP: textOf(base?.parameters.topP),
    maxTokens: textOf(base?.parameters.maxTokens),
    maxSteps: textOf(base?.limits.maxSteps),
    turnSeconds: base?.limits.turnTimeoutMs ? String(base.limits.turnTimeoutMs / 1000) : "",
    maxOutputTokens: textOf(base?.limits.maxOutputTokens),
  }));
  const [toolIds, setToolIds] = useState(() => new Set(base?.toolIds ?? []));
  const [overrides, setOverrides] = useState(() => new Set(base?.overrides ?? []));
  const [schema, setSchema] = useState(/** @type {{ value: any, fault?: string }} */ ({ value: base?.outputSchema ?? undefined }));
  const [isLooking, setLooking] = useState(false);
  const provider = providers.find((one) => one.id === fields.modelProviderId);
  const act = useAct(async () => {
    const made = await api.agents.versions.create(agent.id, body());
    announce(`${made.version} was made`);
    go(href(`agents/${agent.id}/versions/${encodeURIComponent(made.version)}`));
  });
  const fault = act.error;
  const ref = useFaulty(fault);
  const put = (/** @type {keyof typeof fields} */ name) => (/** @type {string} */ value) => setFields((old) => ({ ...old, [name]: value, ...(name === "modelProviderId" ? { model: "" } : {}) }));
  const number = (/** @type {keyof typeof fields} */ name, /** @type {string} */ label, /** @type {string} */ hint, /** @type {string} */ path) =>
    h(Field, { label, hint, isRequired: false, value: fields[name], onInput: put(name), inputMode: "decimal", error: Number.isNaN(numberOf(fields[name])) ? "This is no number." : (faultAt(fault, path) ?? faultAt(fault, path.replace(/^limits\..*/, "limits"))) });
  const isReady = Boolean(fields.modelProviderId && fields.model) && !schema.fault && !["temperature", "topP", "maxTokens", "maxSteps", "turnSeconds", "maxOutputTokens"].some((name) => Number.isNaN(numberOf(fields[/** @type {keyof typeof fields} */ (name)])));

  /** @returns {NewAgentVersion} */
  function body() {
    const seconds = numberOf(fields.turnSeconds);
    return {
      version: fields.version.trim() || undefined,
      instructions: fields.instructions,
      modelProviderId: fields.modelProviderId,
      model: fields.model,
      parameters: { ...base?.parameters, temperature: numberOf(fields.temperature), topP: numberOf(fields.topP), maxTokens: numberOf(fields.maxTokens) },
      toolIds: [...toolIds],
      limits: { ...base?.limits, maxSteps: numberOf(fields.maxSteps), turnTimeoutMs: seconds === undefined ? undefined : Math.round(seconds * 1000), maxOutputTokens: numberOf(fields.maxOutputTokens) },
      outputSchema: schema.value,
      overrides: OVERRIDES.map(([name]) => name).filter((name) => overrides.has(name)),
      guardrails: base?.guardrails,
      streaming: base?.streaming,
    };
  }

  if (!providers.length) return h(Empty, { title: "There is no model provider.", action: a({ class: "button", href: href("model-providers") }, "To the model providers") }, "A version names a model of a provider. A tenant admin registers one.");
  return form(
    { ref, class: "form", noValidate: true, onSubmit: (event) => (event.preventDefault(), isReady && act.run()) },
    h(Field, { label: "Instructions", hint: "What the model is told first.", value: fields.instructions, onInput: put("instructions"), lines: Math.min(24, Math.max(8, fields.instructions.split("\n").length + 1)), isMono: true, most: 200_000, error: faultAt(fault, "instructions") }),
    base && base.instructions !== fields.instructions
      ? details({ open: isLooking, onToggle: (event) => setLooking(event.currentTarget.open) }, summary(null, `What you changed since ${base.version}`), isLooking ? h(Diff, { label: "Change of the instructions", before: base.instructions, after: fields.instructions, names: [base.version, "yours"] }) : null)
      : null,
    div(
      { class: "fields-row" },
      h(Select, { label: "Provider", value: fields.modelProviderId, onInput: put("modelProviderId"), placeholder: "Choose one", options: providers.map((one) => ({ value: one.id, label: one.name })), error: faultAt(fault, "modelProviderId") }),
      h(Select, { label: "Model", value: fields.model, onInput: put("model"), placeholder: "Choose one", options: (provider?.models ?? []).map((one) => ({ value: one.name, label: one.name })), error: faultAt(fault, "model") }),
    ),
    fieldset(
      { class: "field" },
      legend(null, "Tools"),
      p({ class: "hint" }, "Which the model may call."),
      tools.length
        ? div({ class: "checks" }, tools.map((tool) => h(Check, { key: tool.id, label: tool.name, hint: tool.approval ? "A person approves each call." : undefined, value: toolIds.has(tool.id), onInput: (isOn) => setToolIds((old) => new Set(isOn ? [...old, tool.id] : [...old].filter((id) => id !== tool.id))) })))
        : p({ class: "faint" }, "The project has no tools yet."),
    ),
    details(
      { class: "more-fields" },
      summary(null, "Parameters and limits"),
      div(
        { class: "stack" },
        div({ class: "fields-row" }, number("temperature", "Temperature", "0 to 2", "parameters.temperature"), number("topP", "Top P", "0 to 1", "parameters.topP"), number("maxTokens", "Longest answer, in tokens", "As the provider has it", "parameters.maxTokens")),
        div({ class: "fields-row" }, number("maxSteps", "Steps of a turn at most", "Calls of models and tools; 16 if empty", "limits.maxSteps"), number("turnSeconds", "Time of a turn, in seconds", "Waits included; 600 if empty", "limits.turnTimeoutMs"), number("maxOutputTokens", "Tokens of one call", "The provider's own if empty", "limits.maxOutputTokens")),
      ),
    ),
    details(
      { class: "more-fields", open: overrides.size > 0 },
      summary(null, "What a run may set"),
      div({ class: "checks" }, OVERRIDES.map(([name, label]) => h(Check, { key: name, label, value: overrides.has(name), onInput: (isOn) => setOverrides((old) => new Set(isOn ? [...old, name] : [...old].filter((one) => one !== name))) }))),
    ),
    details(
      { class: "more-fields", open: Boolean(base?.outputSchema) },
      summary(null, "Schema of the answer"),
      h(JsonField, { label: "JSON Schema", hint: "The answer fits it, or the model is asked again. Empty: an answer is text.", value: schema.value, onInput: (value, said) => setSchema({ value, fault: said }), error: faultAt(fault, "outputSchema", undefined, true) }),
    ),
    h(Field, { label: "Version", hint: base ? "Left empty: the one that follows the newest." : "Left empty: 0.1.0.", isRequired: false, value: fields.version, onInput: put("version"), placeholder: "1.2.0", most: 100, autoComplete: "off", error: faultAt(fault, "version") }),
    h(Failure, { error: act.error }),
    footer({ class: "row end" }, a({ class: "button", href: href(`agents/${agent.id}`) }, "Leave"), button({ class: "primary", "aria-disabled": isReady && !act.isBusy ? undefined : "true" }, act.isBusy ? "Make the version …" : "Make the version")),
  );
}
