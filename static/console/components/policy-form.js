/** Puts the next version of a policy: the whole list as JSON, in the place of the version that stands. */

import { NONE, listFaults, listOf } from "../guardrail-list.js";
import { useAct } from "../resource.js";
import { h, tags, useState } from "../ui.js";
import { DefinitionEditor } from "./definition-editor.js";
import { Select, faultAt, useFaulty } from "./field.js";
import { Failure } from "./states.js";
import { announce } from "./status.js";

/** @import { Policy, PutPolicy } from "agent-runtime/types" */

const { button, footer, form } = tags;

/** When readers of a stream see what is judged at `output`. */
export const STREAMING = [
  { value: "held", label: "After the verdict" },
  { value: "unchecked", label: "Before the verdict, unchecked" },
];

const EXAMPLE = [{ builtin: "secrets", at: ["tool.result", "output"], action: "redact" }];

/**
 * The version that is replaced is the one that the page shows: after a conflict the other one is read, and what was typed stays.
 * @param {{ policy: Policy, put: (body: PutPolicy) => Promise<Policy>, onPut: (policy: Policy) => void, onClose: () => void }} props
 */
export function PolicyForm({ policy, put, onPut, onClose }) {
  const [typed, setTyped] = useState(() => JSON.stringify(policy.version ? policy.guardrails : EXAMPLE, null, 2));
  const [streaming, setStreaming] = useState(() => String(policy.streaming));
  const [sent, setSent] = useState("");
  const { value, fault } = listOf(typed);
  const act = useAct(async () => {
    setSent(typed);
    const stands = await put({ guardrails: value, streaming, expectedVersion: policy.version });
    announce(`Version ${stands.version} stands`);
    onPut(stands);
  });
  const ref = useFaulty(act.error);
  return form(
    { ref, class: "form", noValidate: true, "aria-label": "The next version", onSubmit: (event) => (event.preventDefault(), !fault && !act.isBusy && act.run()) },
    h(DefinitionEditor, { label: "Guardrails (JSON)", text: typed, onInput: setTyped, faults: listFaults(act.error, fault), warnings: NONE, isOld: !fault && sent !== typed }),
    h(Select, { label: "Streaming", hint: "When readers of a stream see text that a guardrail judges at output.", value: streaming, onInput: setStreaming, options: STREAMING, error: faultAt(act.error, "streaming") }),
    h(Failure, { error: act.error }),
    footer({ class: "row end" }, button({ type: "button", onClick: onClose }, "Leave"), button({ class: "primary", "aria-disabled": fault || act.isBusy ? "true" : undefined }, act.isBusy ? "Put it …" : `Put version ${policy.version + 1}`)),
  );
}
