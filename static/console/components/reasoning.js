/**
 * What a model thought before it answered, folded: it is read once somebody opens it.
 *
 * Guarantees: it is shown as text, and never as the answer.
 */

import { api } from "../api.js";
import { useResource } from "../resource.js";
import { h, tags, useState } from "../ui.js";
import { Loaded } from "./states.js";
import { TextBlock } from "./text-block.js";

const { details, p, summary } = tags;
const PAGE = 200;

/** @param {{ runId: string, step: number }} props */
export function Reasoning({ runId, step }) {
  const [isOpen, setOpen] = useState(false);
  return details({ class: "reasoning", onToggle: (event) => setOpen(/** @type {HTMLDetailsElement} */ (event.currentTarget).open) }, summary(null, "Reasoning"), isOpen ? h(Thoughts, { runId, step }) : null);
}

/** @param {{ runId: string, step: number }} props */
function Thoughts({ runId, step }) {
  const read = useResource(`reasoning ${runId} ${step}`, async (options) => {
    let page = await api.runs.steps.list(runId, { limit: PAGE }, options);
    while (page.nextCursor && !page.data.some((one) => one.step === step)) page = await api.runs.steps.list(runId, { limit: PAGE, cursor: page.nextCursor }, options);
    return { text: /** @type {any} */ (page.data.find((one) => one.step === step)?.result)?.reasoning ?? "" };
  });
  return h(Loaded, { of: read, show: (/** @type {{ text: string }} */ { text }) => (text ? h(TextBlock, { text, label: "Reasoning" }) : p({ class: "faint" }, "It was erased.")) });
}
