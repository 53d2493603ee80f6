/**
 * The timeline of a run: its steps in order, a bar an attempt, and in place what each did, the runs that it began and the
 * approvals that it waits for.
 *
 * Keys: up and down go from step to step, right opens, left closes, Enter does either. The whole is a list of buttons with
 * what they open below them, so that it is read in order.
 */

import { count, counted, dollars, tokens } from "../number.js";
import { href } from "../route.js";
import { useRunEvents } from "../run-events.js";
import { absolute, between, duration, now, serverNow } from "../time.js";
import { classes, fragment, h, tags, useEffect, useId, useState } from "../ui.js";
import { ApprovalInPlace } from "./approval-in-place.js";
import { guardrailSays } from "./guardrail-says.js";
import { Icon } from "./icon.js";
import { Json } from "./json.js";
import { Reasoning } from "./reasoning.js";
import { Facts } from "./section.js";
import { State } from "./state.js";
import { Failure, Loading } from "./states.js";
import { StepChecks } from "./step-checks.js";
import { TextBlock, parsed, pretty } from "./text-block.js";

/** @import { Row, Timeline as Model } from "../run-events.js" */
/** @import { Child } from "../ui.js" */

const { a, button, div, h3, input, label, li, ol, p, small, span } = tags;

const ICONS = /** @type {Record<string, string>} */ ({ model: "agents", tool: "tools", http: "webhooks", wait: "clock", child: "flows", approval: "approvals", guardrail: "approvals" });
const KINDS = /** @type {Record<string, string>} */ ({ model: "Model", tool: "Tool", http: "Request", wait: "Wait", child: "Runs", approval: "Approval", guardrail: "Guardrail" });
/** Beyond so many, rows come a part at a time. */
const MOST_ROWS = 400;
const DEEPEST = 5;

/**
 * @param {{ timeline: Model, lastSeq: number, failedFirst?: boolean, depth?: number }} props `lastSeq`: the newest event of the
 *   timeline, which changes in place: a component whose properties are the same is not drawn again
 */
export function Timeline({ timeline, failedFirst = false, depth = 0 }) {
  const [only, setOnly] = useState(/** @type {"" | "failures" | "slow"} */ (""));
  const [open, setOpen] = useState(/** @type {Set<string>} */ (new Set()));
  const [most, setMost] = useState(MOST_ROWS);
  const group = useId();
  const failed = timeline.rows.find((row) => row.state === "failed" && row.sort === "step");
  useEffect(() => {
    if (failedFirst && failed) setOpen(new Set([failed.key]));
  }, [failed?.key]);
  const end = useEnd(timeline);
  const begin = timeline.createdAt;
  const whole = Math.max(end - begin, 1);
  const rows = timeline.rows.filter((row) => (only === "failures" ? row.state === "failed" || row.attempts.some((one) => one.state !== "completed" && one.state !== "running") : only === "slow" ? spent(row, end) > whole * 0.02 || row.state !== "completed" : true));
  const toggle = (/** @type {string} */ key, /** @type {boolean} */ to = !open.has(key)) => {
    const next = new Set(open);
    if (to) next.add(key);
    else next.delete(key);
    setOpen(next);
  };
  return div(
    { class: "timeline", onKeyDown: (event) => move(event, toggle) },
    timeline.rows.length > 6
      ? div({ class: "row timeline-filters", role: "group", "aria-label": "Which steps" }, radio(group, "All", "", only, setOnly), radio(group, "Only what took time", "slow", only, setOnly), radio(group, "Only failures", "failures", only, setOnly))
      : null,
    div({ class: "axis", "aria-hidden": "true" }, ticks(whole).map((at) => span({ key: at, style: { left: `${(at / whole) * 100}%` }, title: absolute(begin + at) }, duration(at)))),
    rows.length
      ? ol(null, rows.slice(0, most).map((row) => h(Step, { key: row.key, row, timeline, begin, whole, end, isOpen: open.has(row.key), toggle: () => toggle(row.key), depth })))
      : p({ class: "faint pad" }, timeline.rows.length ? "No such step." : timeline.isFinished ? "It had no steps." : "Nothing has happened yet."),
    rows.length > most ? div({ class: "pad" }, button({ type: "button", onClick: () => setMost(most + MOST_ROWS * 5) }, `Show ${count(Math.min(rows.length - most, MOST_ROWS * 5))} more of ${count(rows.length)} steps`)) : null,
  );
}

/** @param {string} name @param {string} text @param {"" | "failures" | "slow"} value @param {string} current @param {(value: "" | "failures" | "slow") => void} set */
function radio(name, text, value, current, set) {
  return label({ key: value }, input({ type: "radio", name, checked: current === value, onChange: () => set(value) }), text);
}

/** The right edge: of a run under way the time now, four times a second. @param {Model} timeline */
function useEnd(timeline) {
  const [, draw] = useState(0);
  useEffect(() => {
    if (timeline.isFinished) return undefined;
    const timer = setInterval(() => !document.hidden && draw((count) => count + 1), 250);
    return () => clearInterval(timer);
  }, [timeline, timeline.isFinished]);
  return timeline.endedAt ?? Math.max(serverNow(), timeline.createdAt + 1);
}

/** @param {number} whole in milliseconds */
function ticks(whole) {
  const rough = whole / 5;
  const power = 10 ** Math.floor(Math.log10(rough));
  const size = ([1, 2, 5, 10].find((factor) => factor * power >= rough) ?? 10) * power;
  return Array.from({ length: Math.floor((whole * 0.94) / size) + 1 }, (_, index) => index * size);
}

/** How long a step has taken, its attempts together. @param {Row} row @param {number} end */
function spent(row, end) {
  return row.attempts.reduce((sum, one) => sum + (one.to ?? end) - one.from, 0);
}

/** @param {KeyboardEvent} event @param {(key: string, to?: boolean) => void} toggle */
function move(event, toggle) {
  const on = /** @type {HTMLElement} */ (event.target);
  if (!on.matches?.("[data-step]")) return;
  const all = /** @type {HTMLElement[]} */ ([...(on.closest(".timeline")?.querySelectorAll("[data-step]") ?? [])]);
  const at = all.indexOf(on);
  const key = on.dataset.step ?? "";
  const own = on.closest(".timeline") === event.currentTarget;
  if (event.key === "ArrowDown") all[at + 1]?.focus();
  else if (event.key === "ArrowUp") all[at - 1]?.focus();
  else if (event.key === "ArrowRight" && own) toggle(key, true);
  else if (event.key === "ArrowLeft" && own) toggle(key, false);
  else return;
  event.preventDefault();
  event.stopPropagation();
}

/** @param {{ row: Row, timeline: Model, begin: number, whole: number, end: number, isOpen: boolean, toggle: () => void, depth: number }} props */
function Step({ row, timeline, begin, whole, end, isOpen, toggle, depth }) {
  if (row.sort === "note") return li({ class: "note" }, div({ class: "step-line" }, span({ class: "step-name" }, h(Icon, { name: row.state === "failed" ? "warning" : "information" }), span({ class: "cut" }, noteOf(row)))));
  const tries = row.attempts.length;
  const waits = row.approvals.some((one) => one.status === "waiting");
  return li(
    { class: classes(row.state === "failed" && "failed", isOpen && "open") },
    button(
      { type: "button", class: "step-line", "aria-expanded": isOpen ? "true" : "false", "data-step": row.key, onClick: toggle },
      span({ class: "step-name" }, h(Icon, { name: isOpen ? "down" : "right" }), h(Icon, { name: ICONS[row.kind] ?? "runs" }), span({ class: "cut" }, titleOf(row)), small({ class: "faint cut step-kind" }, aboutOf(row)), tries > 1 ? small({ class: "faint" }, `${tries} attempts`) : null, row.simulated ? small({ class: "tag" }, "simulated") : null, waits ? h(State, { state: "waiting", word: "asks" }) : row.state === "failed" ? h(State, { state: "failed", word: wordOf(row) }) : null),
      h(Lane, { row, begin, whole, end }),
      span({ class: "step-time" }, row.attempts.length || row.state !== "waiting" ? duration(spent(row, end)) : ""),
    ),
    isOpen ? div({ class: "step-detail" }, h(Detail, { row, timeline, depth })) : null,
  );
}

/** What a row is called: in a flow the task's name, in a turn what it calls. @param {Row} row */
function titleOf(row) {
  return row.path?.startsWith("/") ? row.path.slice(row.path.lastIndexOf("/") + 1) : calledOf(row);
}

/** @param {Row} row */
function calledOf(row) {
  if (row.kind === "child") return row.children.length === 1 ? `${row.children[0]?.flowId}` : row.name || "Runs";
  if (row.approvals[0] && (!row.name || row.name === "approval")) return row.approvals[0].title;
  return row.name || kindOf(row);
}

/** @param {Row} row */
const kindOf = (row) => KINDS[row.kind] ?? row.kind;

/** What stands beside its title: what kind it is, and in a flow what it calls. @param {Row} row */
function aboutOf(row) {
  const called = calledOf(row);
  return row.path?.startsWith("/") && called !== row.kind ? called : kindOf(row);
}

/** The word beside a state, of a step or of one attempt. @param {{ outcome?: string }} of */
const wordOf = ({ outcome }) => (outcome === "unknown" ? "outcome unknown" : undefined);

/** @param {Row} row */
function noteOf(row) {
  const said = row.said ?? {};
  switch (row.kind) {
    case "context.trimmed":
      return `The conversation is longer than the model's window: its ${count(said.exchanges ?? 0)} oldest exchanges were left out.`;
    case "task.skipped":
      return `${said.path}: left out, its condition does not hold.`;
    case "task.faulted":
      return `${said.path}: ${said.title}${said.willRetry ? "; it will be tried again" : ""}.`;
    case "task.caught":
      return `${said.path}: the error was handled: ${said.title}`;
    case "events.omitted":
      return `${count(said.count ?? 0)} events of tasks are not told.`;
    case "run.cancelRequested":
      return "Somebody asked the run to end.";
    case "guardrail.decided":
    case "guardrail.failed":
      return guardrailSays(row.kind, said);
    case "run.retried":
      return `Takes up a failed run: ${count(said.steps ?? 0)} of its steps are not done again.`;
    default:
      return row.kind;
  }
}

/** The bars. Colour is not all: waiting is hatched, failed has an edge. @param {{ row: Row, begin: number, whole: number, end: number }} props */
function Lane({ row, begin, whole, end }) {
  const place = (/** @type {number} */ from, /** @type {number | undefined} */ to) => ({ left: `${Math.max(0, Math.min(100, ((from - begin) / whole) * 100))}%`, width: `${Math.max(0, Math.min(100, (((to ?? end) - from) / whole) * 100))}%` });
  return span(
    { class: "lane", "aria-hidden": "true" },
    row.waits.map((one, key) => span({ key: `w${key}`, class: "span waits", style: place(one.from, one.to), title: `Waited: ${one.what}` })),
    row.approvals.map((one) => span({ key: one.approvalId, class: "span waits", style: place(one.from, one.to), title: "Waited for a person" })),
    row.attempts.map((one) => span({ key: one.number, class: `span ${(row.kind === "approval" || row.kind === "wait") && one.state !== "failed" ? "waits" : one.state}`, style: place(one.from, one.to), title: `Attempt ${one.number}: ${duration((one.to ?? end) - one.from)}, from ${absolute(one.from)}` }, one.textAt && one.to ? span({ class: "first-text", style: { left: `${((one.textAt - one.from) / Math.max(1, one.to - one.from)) * 100}%` } }) : null)),
  );
}

/** What a step did, was given and used. @param {{ row: Row, timeline: Model, depth: number }} props */
function Detail({ row, timeline, depth }) {
  const [isRaw, setRaw] = useState(false);
  const answer = row.answer;
  const call = row.callId ? timeline.calls.get(row.callId) : undefined;
  const used = answer?.tokens;
  /** @type {[string, Child][]} */
  const facts = [
    ["Kind", kindOf(row)],
    ["Calls", row.path?.startsWith("/") && calledOf(row) !== kindOf(row) ? calledOf(row) : undefined],
    ["Began", absolute(row.attempts[0]?.from ?? row.at)],
    ["In the program", row.path ? span({ class: "mono" }, row.path) : undefined],
    ["Tokens read", used?.prompt != null ? `${tokens(used.prompt)}${used.cacheRead ? `, ${tokens(used.cacheRead)} from the cache` : ""}` : undefined],
    ["Tokens written", used?.completion != null ? `${tokens(used.completion)}${used.reasoning ? `, ${tokens(used.reasoning)} of them thought` : ""}` : undefined],
    ["Ended because", answer?.finishReason === "length" ? "The answer was cut at its maximum length" : answer?.finishReason ?? undefined],
    ["Answered with", answer?.statusCode === undefined ? undefined : `HTTP ${answer.statusCode}`],
    ["Verdict", answer?.verdict === undefined ? undefined : answer.blockedBy ? `${answer.verdict}, by ${answer.blockedBy}` : answer.verdict],
    ["Found", answer?.verdict === undefined ? undefined : answer.code],
    ["Decision", answer?.decision ? h(State, { state: answer.decision }) : undefined],
  ];
  const input_ = call ? parsed(call.arguments) : row.simulated?.request;
  return fragment(
    h(Facts, { facts }),
    row.approvals.map((one) => h(ApprovalInPlace, { key: one.approvalId, asked: one })),
    input_ !== undefined && input_ !== null ? part("Input", typeof input_ === "string" ? h(TextBlock, { text: input_, label: "Input" }) : div({ class: "text-block pad" }, h(Json, { value: input_, label: "Input" }))) : null,
    answer?.toolCalls?.length ? part("Calls", ol({ class: "calls" }, answer.toolCalls.map((/** @type {any} */ one) => li({ key: one.id }, span({ class: "mono" }, one.name), h(TextBlock, { text: pretty(one.arguments), label: `Arguments of ${one.name}` }))))) : null,
    answer?.hasReasoning && row.step ? h(Reasoning, { runId: timeline.runId, step: row.step }) : null,
    row.text ? part("Text", div({ role: "log", "aria-busy": row.state === "running" ? "true" : undefined }, h(TextBlock, { text: row.text, label: "Text" }))) : null,
    answer?.output !== undefined ? part(answer.isError ? "Error that the model was told" : "Output", h(TextBlock, { text: pretty(answer.output), label: "Output" }), answer.outputTruncated ? p({ class: "faint" }, "Cut after 16 KiB. The model got all of it.") : null) : null,
    row.attempts.length > 1 || row.attempts.some((one) => one.reason) ? part("Attempts", ol({ class: "attempts" }, row.attempts.map((one) => li({ key: one.number }, span(null, `${one.number}`), h(State, { state: one.state === "lost" ? "failed" : one.state, word: one.state === "lost" ? "lost" : wordOf(one) }), span({ class: "faint" }, duration((one.to ?? serverNow()) - one.from)), one.reason ? span({ class: "reason" }, one.reason) : null)))) : null,
    row.children.length ? part(row.children.length === 1 ? "The run that it began" : "The runs that it began", div({ class: "stack" }, row.children.map((child) => h(Below, { key: child.runId, child, depth })))) : null,
    row.step && (row.checks || answer) ? h(StepChecks, { runId: timeline.runId, step: row.step, noted: row.checks, isDone: Boolean(answer), key: "checks" }) : null,
    isRaw ? part("Raw", div({ class: "text-block pad" }, h(Json, { value: { ...row, key: undefined, sort: undefined }, label: "Raw" }))) : answer ? div(null, button({ type: "button", class: "link", onClick: () => setRaw(true) }, "Raw")) : null,
  );
}

/** @param {string} title @param {...Child} children */
function part(title, ...children) {
  return div({ class: "part" }, h3(null, title), children);
}

/** A run that a step began: one line, and its own timeline when it is opened. @param {{ child: import("../run-events.js").ChildRun, depth: number }} props */
function Below({ child, depth }) {
  const [isOpen, setOpen] = useState(false);
  const status = child.status ?? "running";
  return div(
    { class: "below" },
    div(
      { class: "row" },
      depth < DEEPEST ? button({ type: "button", class: "plain", "aria-expanded": isOpen ? "true" : "false", onClick: () => setOpen(!isOpen) }, h(Icon, { name: isOpen ? "down" : "right" }), child.flowId) : span(null, child.flowId),
      h(State, { state: status }),
      span({ class: "faint" }, duration(child.to ? child.to - child.from : between(new Date(child.from).toISOString(), null, now.value))),
      child.usage ? span({ class: "faint" }, `${counted(child.usage.calls, "call")}, ${dollars(child.usage.costUsd)}`) : null,
      a({ href: href(`runs/${child.runId}`) }, "Open the run"),
    ),
    isOpen ? h(BelowOpen, { runId: child.runId, depth: depth + 1 }) : null,
  );
}

/** @param {{ runId: string, depth: number }} props */
function BelowOpen({ runId, depth }) {
  const { run, timeline, error, reload } = useRunEvents(runId, { isStreamed: false });
  if (error && !run) return h(Failure, { error, retry: reload });
  if (!run) return h(Loading, {});
  return fragment(run.failureMessage ? p({ class: "failure" }, run.failureMessage) : null, h(Timeline, { timeline, lastSeq: timeline.lastSeq, depth }));
}
