/** The playground of guardrails: what they make of a text. Nothing of it is kept. */

import { api } from "../api.js";
import { Checks, Verdict } from "../components/check-table.js";
import { DefinitionEditor } from "../components/definition-editor.js";
import { Check, Field, Select, faultAt, useFaulty } from "../components/field.js";
import { POINTS } from "../components/guardrail-table.js";
import { PageHead } from "../components/page-head.js";
import { useMayIn } from "../components/projects-to-choose.js";
import { Section } from "../components/section.js";
import { Empty, Failure } from "../components/states.js";
import { TextBlock } from "../components/text-block.js";
import { NONE, listFaults, listOf } from "../guardrail-list.js";
import { useAct } from "../resource.js";
import { chosenProject } from "../route.js";
import { fragment, h, tags, useState } from "../ui.js";

/** @import { TriedGuardrails } from "agent-runtime/types" */

const { button, div, footer, form, p } = tags;

const TEXT = "The card is 4111 1111 1111 1111.";
const EXAMPLE = JSON.stringify([{ builtin: "pii", at: ["output"], action: "redact" }], null, 2);

export default function GuardrailsPage() {
  const projects = useMayIn("write");
  return div(
    null,
    h(PageHead, { title: "Guardrails", lead: "Try what guardrails make of a text. Nothing of it is kept." }),
    projects.length ? h(Playground, { projects }) : h(Empty, { title: "There is no project to try them in." }, "Guardrails are tried in a project in which you may write: its policy and the tenant's judge first."),
  );
}

/** @param {{ projects: { id: string, name: string }[] }} props */
function Playground({ projects }) {
  const [chosen, setChosen] = useState("");
  const [point, setPoint] = useState("output");
  const [tool, setTool] = useState("");
  const [text, setText] = useState(TEXT);
  const [typed, setTyped] = useState(EXAMPLE);
  const [sent, setSent] = useState("");
  const [withPolicies, setWithPolicies] = useState(true);
  const [tried, setTried] = useState(/** @type {TriedGuardrails | undefined} */ (undefined));
  const projectId = [chosen, chosenProject.value].find((id) => projects.some((one) => one.id === id)) ?? projects[0]?.id ?? "";
  const isOfTool = point.startsWith("tool.");
  const { value, fault } = listOf(typed);
  const act = useAct(async () => {
    setSent(typed);
    setTried(undefined);
    setTried(await api.guardrails.try({ projectId, point, text, tool: (isOfTool && tool.trim()) || undefined, guardrails: value, withPolicies }));
  });
  const ref = useFaulty(act.error);
  const isReady = !fault && Boolean(projectId);
  return fragment(
    form(
      { ref, class: "form", noValidate: true, onSubmit: (event) => (event.preventDefault(), isReady && !act.isBusy && act.run()) },
      div(
        { class: "fields-row" },
        h(Select, { label: "Project", value: projectId, onInput: setChosen, options: projects.map((one) => ({ value: one.id, label: one.name })), error: faultAt(act.error, "projectId") }),
        h(Select, { label: "Point", value: point, onInput: setPoint, options: POINTS.map(([name, label]) => ({ value: name, label: `${label} (${name})` })), error: faultAt(act.error, "point") }),
        isOfTool ? h(Field, { label: "Tool", isRequired: false, value: tool, onInput: setTool, isMono: true, most: 64, autoComplete: "off", error: faultAt(act.error, "tool") }) : null,
      ),
      h(Field, { label: "Text", hint: point === "tool.arguments" ? "JSON" : undefined, value: text, onInput: setText, lines: 6, error: faultAt(act.error, "text") }),
      h(DefinitionEditor, { label: "Guardrails (JSON)", text: typed, onInput: setTyped, faults: listFaults(act.error, fault), warnings: NONE, isOld: !fault && sent !== typed }),
      h(Check, { label: "With the policies that stand", hint: "The tenant's and the project's judge first.", value: withPolicies, onInput: setWithPolicies }),
      h(Failure, { error: act.error }),
      footer({ class: "row end" }, button({ class: "primary", "aria-disabled": isReady && !act.isBusy ? undefined : "true" }, act.isBusy ? "Try it …" : "Try it")),
    ),
    tried ? h(Tried, { tried }) : null,
  );
}

/** @param {{ tried: TriedGuardrails }} props */
function Tried({ tried }) {
  return div(
    { class: "stack", role: "status" },
    h(Section, { title: "Verdict" }, p(null, h(Verdict, { verdict: tried.verdict }), tried.blockedBy ? ` by ${tried.blockedBy}` : null), typeof tried.text === "string" ? h(TextBlock, { text: tried.text, label: "What is left of the text" }) : p({ class: "faint" }, "Nothing of the text goes on.")),
    h(Section, { title: "Checks", isFlush: true }, h(Checks, { label: "Checks, in the order in which they were made", rows: tried.checks, empty: h(Empty, { title: "No check was made." }, "No guardrail stands at this point.") })),
  );
}
