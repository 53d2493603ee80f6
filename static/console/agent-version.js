/** What a version of an agent says, as texts that can be shown and compared. Pure. */

/** @import { AgentVersion, ModelProvider, Tool } from "agent-runtime/types" */

/**
 * The parts of a version, in the order of reading; the same parts of any two versions.
 * @param {AgentVersion} version
 * @param {{ tools: Tool[], providers: ModelProvider[] }} known for the names of what it refers to
 * @returns {{ name: string, text: string }[]}
 */
export function partsOf(version, { tools, providers }) {
  const provider = providers.find((one) => one.id === version.modelProviderId)?.name ?? version.modelProviderId;
  const names = version.toolIds.map((id) => tools.find((one) => one.id === id)?.name ?? id).sort();
  return [
    { name: "Instructions", text: version.instructions },
    { name: "Model", text: `${version.model} of ${provider}` },
    { name: "Tools", text: names.join("\n") },
    { name: "Parameters", text: pretty(version.parameters) },
    { name: "Limits", text: pretty(version.limits) },
    { name: "Schema of the answer", text: version.outputSchema ? pretty(version.outputSchema) : "" },
    { name: "A run may set", text: version.overrides.join("\n") },
    { name: "Guardrails", text: version.guardrails.length ? JSON.stringify(version.guardrails, null, 2) : "" },
    { name: "Text that guardrails judge", text: version.streaming === "unchecked" ? "Streamed before the verdict" : "" },
  ];
}

/** Fields in one order, without those that say nothing. @param {object} value */
function pretty(value) {
  const said = Object.entries(value).filter(([, one]) => one !== null && !(Array.isArray(one) && !one.length) && !(typeof one === "object" && !Array.isArray(one) && !Object.keys(one).length));
  return said.length ? JSON.stringify(Object.fromEntries(said), null, 2) : "";
}
