/** Asks a model provider as an agent does, and says of each step what its server can do. */

import { api } from "../api.js";
import { CheckSteps } from "../components/check-steps.js";
import { Select } from "../components/field.js";
import { Section } from "../components/section.js";
import { Failure } from "../components/states.js";
import { announce } from "../components/status.js";
import { counted } from "../number.js";
import { useAct } from "../resource.js";
import { h, tags, useState } from "../ui.js";

/** @import { ModelProvider, ModelProviderCheck } from "agent-runtime/types" */

const { button, div, p } = tags;

const STEPS = /** @type {Record<string, string>} */ ({
  models: "List of models",
  answer: "Answer",
  streaming: "Streaming",
  usage: "Token counts",
  tools: "Tool calls",
  outputSchema: "Output schema",
});

/** @param {{ provider: ModelProvider }} props */
export function ProviderCheck({ provider }) {
  const names = provider.models.map((one) => one.name);
  const [model, setModel] = useState(names[0] ?? "");
  const [found, setFound] = useState(/** @type {ModelProviderCheck | null} */ (null));
  const act = useAct(async () => {
    const said = await api.modelProviders.check(provider.id, { model });
    setFound(said);
    const bad = said.steps.filter((step) => step.ok === false).length;
    announce(!said.ok ? "The model does not answer" : bad ? `The model answers; ${counted(bad, "step")} of the check failed` : "The model answers, and every step is good");
  });
  return h(
    Section,
    { title: "Check", isFlush: true, actions: button({ type: "button", "aria-disabled": act.isBusy ? "true" : undefined, onClick: () => act.run() }, act.isBusy ? "Asking …" : found ? "Check again" : "Check") },
    names.length > 1 ? div({ class: "pad" }, h(Select, { label: "Model", value: model, onInput: setModel, options: names.map((value) => ({ value, label: value })) })) : null,
    act.error ? div({ class: "pad" }, h(Failure, { error: act.error })) : null,
    found ? h(CheckSteps, { label: `What ${found.model} can do`, steps: found.steps, titles: STEPS }) : null,
    p({ class: "faint pad" }, "The server asks the model up to three short questions, as an agent would. They cost what they cost at the provider, and are not part of the usage here."),
  );
}
