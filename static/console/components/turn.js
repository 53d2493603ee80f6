/**
 * A turn of an agent as a chat shows it: what was said, the calls of tools as closed cards, and the answer as it is written.
 *
 * Guarantees: what a model wrote is text (`Markdown`). While the answer grows it is busy for readers of the screen, which
 * hear it once it is whole.
 */

import { dollars } from "../number.js";
import { href } from "../route.js";
import { isFinished, useRunEvents } from "../run-events.js";
import { duration, serverNow } from "../time.js";
import { fragment, h, tags, useEffect, useState } from "../ui.js";
import { ApprovalInPlace } from "./approval-in-place.js";
import { Icon } from "./icon.js";
import { Markdown } from "./markdown.js";
import { Reasoning } from "./reasoning.js";
import { State } from "./state.js";
import { Failure, Loading } from "./states.js";
import { TextBlock, pretty } from "./text-block.js";

/** @import { Run } from "agent-runtime/types" */
/** @import { Row, Timeline } from "../run-events.js" */
/** @import { Child } from "../ui.js" */

const { a, button, details, div, li, ol, p, small, span, summary } = tags;

/** Something that was said. @param {{ role: string, children?: Child, about?: Child }} props */
export function Said({ role, children, about }) {
  const who = role === "user" ? "User" : "Agent";
  return li({ class: "said", "data-role": role }, div({ class: "who" }, span(null, who), about ? small({ class: "faint" }, about) : null), div({ class: "what" }, children));
}

/**
 * A turn, live or read later.
 * @param {{ runId: string, isStreamed: boolean, onChange?: (run: Run) => void, acts?: (run: Run) => Child }} props
 *   `onChange` hears of each new state of its run; `acts`: what can be done about it
 */
export function Turn({ runId, isStreamed, onChange, acts }) {
  const { run, timeline, error, reload } = useRunEvents(runId, { isStreamed });
  useEffect(() => {
    if (run) onChange?.(run);
  }, [run?.status]);
  if (error && !run) return li(null, h(Failure, { error, retry: reload }));
  if (!run) return h(Said, { role: "assistant" }, span({ class: "typing", "aria-label": "Begins" }));
  const isOver = isFinished(run);
  return h(
    Said,
    { role: "assistant", about: h(About, { run }) },
    h(Parts, { timeline, isOver }),
    !isOver && !timeline.rows.some((row) => row.text && row.state === "running") ? span({ class: "typing", "aria-label": run.status === "waiting" ? "Waits" : "Works" }) : null,
    error ? h(Failure, { error, retry: reload }) : null,
    run.status === "failed" ? p({ class: "failure-text" }, h(Icon, { name: "warning" }), ` ${run.failureMessage ?? "The turn failed."}`) : null,
    run.status === "cancelled" ? p({ class: "faint" }, "Stopped.") : null,
    timeline.isAnswerCut ? h(Cut, {}) : null,
    acts?.(run),
  );
}

/** Says that an answer is not whole. */
export function Cut() {
  return p({ class: "faint" }, h(Icon, { name: "warning" }), " The answer was cut at its maximum length.");
}

/** Version, time, cost. @param {{ run: Run }} props */
function About({ run }) {
  const took = (run.completedAt ? Date.parse(run.completedAt) : serverNow()) - Date.parse(run.startedAt ?? run.createdAt);
  return fragment(
    run.agent ? `${run.agent.version} · ` : "",
    duration(took),
    run.usage?.costUsd ? ` · ${dollars(run.usage.costUsd)}` : "",
    run.dryRun ? span({ class: "tag" }, "dry run") : null,
    run.status === "completed" || run.status === "running" ? null : h(State, { state: run.status }),
    a({ href: href(`runs/${run.id}`) }, "The run"),
  );
}

/** The steps in their order: calls of tools as cards, texts as texts. @param {{ timeline: Timeline, isOver: boolean }} props */
function Parts({ timeline, isOver }) {
  const rows = timeline.rows.filter((row) => row.sort === "step");
  return fragment(rows.map((row) => (row.kind === "model" ? h(Written, { key: row.key, row, runId: timeline.runId, isOver }) : h(Call, { key: row.key, row, timeline }))));
}

/** @param {{ row: Row, runId: string, isOver: boolean }} props */
function Written({ row, runId, isOver }) {
  const grows = row.state === "running" && !isOver;
  return fragment(
    row.answer?.hasReasoning && row.step ? h(Reasoning, { runId, step: row.step }) : null,
    row.text ? div({ role: "log", "aria-label": "Answer", "aria-busy": grows ? "true" : undefined }, h(Markdown, { text: row.text })) : null,
  );
}

/** A call of a tool: one line, and what it was given and answered when it is opened. @param {{ row: Row, timeline: Timeline }} props */
function Call({ row, timeline }) {
  const call = row.callId ? timeline.calls.get(row.callId) : undefined;
  const last = row.attempts.at(-1);
  const asks = row.approvals.filter((one) => one.status === "waiting");
  const spent = last ? (last.to ?? serverNow()) - last.from : undefined;
  return fragment(
    details(
      { class: "call" },
      summary(null, h(Icon, { name: "tools" }), span(null, row.name || "Call"), h(State, { state: asks.length ? "waiting" : row.state, word: asks.length ? "asks a person" : undefined }), row.simulated ? small({ class: "tag" }, "simulated") : null, spent === undefined ? null : small({ class: "faint" }, duration(spent))),
      div(
        { class: "stack" },
        call ? div({ class: "part" }, span({ class: "faint" }, "Given"), h(TextBlock, { text: pretty(call.arguments), label: `Arguments of ${row.name}` })) : null,
        row.answer?.output !== undefined ? div({ class: "part" }, span({ class: "faint" }, row.answer.isError ? "Answered with an error" : "Answered"), h(TextBlock, { text: pretty(row.answer.output), label: `Output of ${row.name}` })) : null,
        row.children.map((child) => a({ key: child.runId, href: href(`runs/${child.runId}`) }, "Open the run that it began")),
      ),
    ),
    asks.map((one) => h(ApprovalInPlace, { key: one.approvalId, asked: one })),
  );
}

/** What a turn that is over did before its answer; nothing is read before it is asked for. @param {{ runId: string }} props */
export function Done({ runId }) {
  const [isOpen, setOpen] = useState(false);
  return fragment(
    div(null, button({ type: "button", class: "link", "aria-expanded": isOpen ? "true" : "false", onClick: () => setOpen(!isOpen) }, isOpen ? "Hide what it did" : "What it did")),
    isOpen ? h(Steps, { runId }) : null,
  );
}

/** @param {{ runId: string }} props */
function Steps({ runId }) {
  const { run, timeline, error, reload } = useRunEvents(runId, { isStreamed: false });
  if (error && !run) return h(Failure, { error, retry: reload });
  if (!run) return h(Loading, { lines: 1 });
  const rows = timeline.rows.filter((row) => row.sort === "step" && row.kind !== "model");
  const thoughts = timeline.rows.filter((row) => row.answer?.hasReasoning && row.step);
  return fragment(p({ class: "row faint" }, h(About, { run })), timeline.isAnswerCut ? h(Cut, {}) : null, thoughts.map((row) => h(Reasoning, { key: row.key, runId, step: row.step ?? 0 })), rows.length ? rows.map((row) => h(Call, { key: row.key, row, timeline })) : p({ class: "faint" }, "It called no tool."));
}

/** @param {{ children?: Child }} props */
export function Chat({ children }) {
  return ol({ class: "chat" }, children);
}
