/**
 * The events of a run as rows of a timeline. Pure: events come from `useRunEvents`.
 *
 * Guarantees: one pass over the events, each looked at once, however many; events of the same run give the same rows, live
 * or read later. A kind that is not known leaves no row and no fault.
 */

import { useEffect, useRef, useState } from "preact/hooks";
import { api, errorOf, isAborted, quiet, unauthenticated } from "./api.js";
import { ownStream, useHints } from "./live.js";
import { serverNow } from "./time.js";

/** @import { Run, RunEvent } from "agent-runtime/types" */

/**
 * @typedef {object} Attempt
 * @property {number} number
 * @property {number} from in milliseconds
 * @property {number} [to]
 * @property {number} [textAt] when its first text came, if one watched
 * @property {"running" | "completed" | "failed" | "lost"} state
 * @property {string} [reason]
 * @property {string} [outcome] as that of its row
 *
 * @typedef {object} Wait
 * @property {number} from
 * @property {number} [to]
 * @property {string} what
 *
 * @typedef {object} ChildRun
 * @property {string} runId
 * @property {string} flowId
 * @property {number} from
 * @property {number} [to]
 * @property {string} [status]
 * @property {import("agent-runtime/types").Usage} [usage]
 * @property {number} [index] which branch or iteration it is
 *
 * @typedef {object} Asked
 * @property {string} approvalId
 * @property {string} title
 * @property {string} requiredRole
 * @property {number} from
 * @property {number} [to]
 * @property {string} status
 * @property {boolean} [unassigned] the person whom its definition names could not be assigned
 *
 * @typedef {object} Task what a flow's run did at a place of its definition
 * @property {"running" | "completed" | "failed" | "skipped"} state of its newest begin
 * @property {number} from
 * @property {number} [to]
 * @property {number} times how often it began
 * @property {string} [says] why it failed
 *
 * @typedef {object} Row
 * @property {string} key
 * @property {"step" | "note"} sort
 * @property {number} at
 * @property {number} [step]
 * @property {string} kind of the step: `model`, `tool`, …; of a note the event's
 * @property {string} name
 * @property {string} [path]
 * @property {string} [callId]
 * @property {"running" | "waiting" | "completed" | "failed"} state
 * @property {Attempt[]} attempts
 * @property {Wait[]} waits
 * @property {ChildRun[]} children
 * @property {Asked[]} approvals
 * @property {any} [answer] what `step.completed` has
 * @property {string} [outcome] what it came to: `succeeded`, `failed`, `unknown` or `refused`
 * @property {any} [simulated]
 * @property {number} checks how many of its checks did not let something pass as it was
 * @property {string} text as it is written
 * @property {any} [said] of a note: its event's data
 */

const FINISHED = ["run.completed", "run.failed", "run.cancelled"];
const NOTES = ["context.trimmed", "task.skipped", "task.faulted", "task.caught", "events.omitted", "run.cancelRequested", "run.retried", "guardrail.decided", "guardrail.failed"];

export class Timeline {
  /** @type {Row[]} */
  rows = [];
  /** As they came, without what is written between them. @type {RunEvent[]} */
  events = [];
  /** In milliseconds: when it was created, began and ended. */
  createdAt = 0;
  /** @type {number | undefined} */
  startedAt;
  /** @type {number | undefined} */
  endedAt;
  /** The number of the newest event. */
  lastSeq = 0;
  /** The run's. */
  runId = "";
  /** The agent's answer was cut at its maximum length. */
  isAnswerCut = false;
  /** The arguments of calls of tools, by the model's id of the call. @type {Map<string, any>} */
  calls = new Map();
  /** What a flow's run did at each place of its definition, by the place. @type {Map<string, Task>} */
  tasks = new Map();
  /** @type {Map<number, Row>} */
  #steps = new Map();
  /** The newest step of each place. @type {Map<string, Row>} */
  #byPath = new Map();
  /** @type {Map<string, ChildRun>} */
  #children = new Map();
  /** @type {Map<string, Asked>} */
  #approvals = new Map();
  /** @type {Wait | undefined} */
  #wait;
  /** Where the newest text ends, in characters: what goes on there is added, and nothing is counted again. @type {{ row?: Row, text: string, at: number }} */
  #end = { text: "", at: 0 };

  get isFinished() {
    return this.endedAt !== undefined;
  }

  /** @param {RunEvent | { kind: string, data: any }} event */
  take(event) {
    const any = /** @type {any} */ (event);
    if (any.kind === "text.delta") return this.#text(any.data);
    if (typeof any.seq !== "number" || any.seq <= this.lastSeq) return;
    this.lastSeq = any.seq;
    this.events.push(any);
    const at = Date.parse(any.createdAt);
    if (any.kind === "run.created") this.createdAt = at;
    else if (any.kind === "run.started") this.startedAt ??= at;
    else if (any.kind === "run.waiting") this.#waits(at, any.data);
    else if (any.kind.startsWith("step.")) this.#step(any.kind, at, any.data);
    else if (any.kind.startsWith("task.")) this.#task(any.kind, at, any.data);
    else if (any.kind.startsWith("child.")) this.#child(any.kind, at, any.data);
    else if (any.kind.startsWith("approval.")) this.#approval(any.kind, at, any.data);
    else if (FINISHED.includes(any.kind)) this.#finished(at);
    if (any.kind === "run.completed") this.isAnswerCut = Boolean(any.data?.answerCut);
    if (any.kind.startsWith("guardrail.")) this.#row(at, { step: any.data.step }).checks++;
    if (NOTES.includes(any.kind)) this.rows.push({ ...empty(`event ${any.seq}`, at, any.kind, ""), sort: "note", said: any.data, state: any.kind === "task.faulted" || any.kind === "guardrail.failed" || any.data?.verdict === "block" ? "failed" : "completed" });
  }

  /** @param {number} at @param {any} data @returns {Row} */
  #row(at, data) {
    const known = this.#steps.get(data.step);
    if (known) return known;
    const row = { ...empty(`step ${data.step}`, at, data.type ?? "approval", data.name ?? ""), step: data.step, path: data.path, callId: data.callId ?? undefined };
    this.#steps.set(data.step, row);
    if (row.path) this.#byPath.set(row.path, row);
    this.rows.push(row);
    return row;
  }

  /** @param {string} kind @param {number} at @param {any} data */
  #step(kind, at, data) {
    this.#goesOn(at);
    const row = this.#row(at, data);
    Object.assign(row, { kind: data.type ?? row.kind, name: data.name ?? row.name, path: data.path ?? row.path, callId: data.callId ?? row.callId });
    if (kind === "step.started" || kind === "step.restarted") {
      const last = row.attempts.at(-1);
      if (last && last.to === undefined) Object.assign(last, { to: at, state: kind === "step.restarted" ? "lost" : last.state, reason: kind === "step.restarted" ? "The server ended during it." : undefined });
      row.attempts.push({ number: data.attempt, from: at, state: "running" });
      Object.assign(row, { state: "running", text: "" });
      return;
    }
    const last = row.attempts.at(-1) ?? { number: data.attempt, from: at, state: /** @type {const} */ ("running") };
    if (!row.attempts.length) row.attempts.push(last);
    if (kind === "step.failed") {
      Object.assign(last, { to: at, state: "failed", reason: data.reason, outcome: data.outcome });
      row.outcome = data.willRetry ? undefined : data.outcome;
      row.state = data.willRetry ? "waiting" : "failed";
    } else if (kind === "step.completed") {
      // A step that is done may have been answered with an error.
      const state = data.outcome === "failed" || data.outcome === "unknown" ? "failed" : "completed";
      Object.assign(last, { to: at, state, outcome: data.outcome });
      Object.assign(row, { state, outcome: data.outcome, answer: data, text: data.text ?? row.text });
      for (const call of data.toolCalls ?? []) this.calls.set(call.id, call);
    } else if (kind === "step.simulated") row.simulated = data;
  }

  /** @param {{ step: number, attempt: number, offset: number, text: string }} delta */
  #text(delta) {
    const row = this.#steps.get(delta.step);
    const last = row?.attempts.at(-1);
    if (!row || !last || last.number !== delta.attempt) return;
    last.textAt ??= Date.now();
    const goesOn = this.#end.row === row && this.#end.at === delta.offset && this.#end.text === row.text;
    row.text = (goesOn ? row.text : [...row.text].slice(0, delta.offset).join("")) + delta.text;
    this.#end = { row, text: row.text, at: delta.offset + [...delta.text].length };
  }

  /** @param {string} kind @param {number} at @param {any} data */
  #task(kind, at, data) {
    const known = this.tasks.get(data.path);
    if (kind === "task.started") this.tasks.set(data.path, { state: "running", from: at, times: (known?.times ?? 0) + 1 });
    else if (kind === "task.skipped") this.tasks.set(data.path, { state: "skipped", from: at, to: at, times: known?.times ?? 0 });
    else if (known && kind === "task.completed") Object.assign(known, { state: "completed", to: at });
    else if (known && kind === "task.faulted" && !data.willRetry) Object.assign(known, { state: "failed", to: at, says: data.title });
  }

  /** What the run did at a place of its definition, with what its step waits for and the runs that it began. @param {string} path */
  doneAt(path) {
    const task = this.tasks.get(path);
    if (!task) return undefined;
    const row = this.#byPath.get(path);
    const asks = task.state === "running" && (row?.approvals.some((one) => one.status === "waiting") || (row?.state === "running" && row.kind === "wait"));
    return { state: asks ? /** @type {const} */ ("waiting") : task.state, times: task.times, says: task.says, ms: task.state === "skipped" ? undefined : (task.to ?? this.endedAt ?? serverNow()) - task.from, children: row?.children.map((one) => ({ runId: one.runId, index: one.index ?? 0, status: one.status })) };
  }

  /** @param {string} kind @param {number} at @param {any} data */
  #child(kind, at, data) {
    const row = this.#row(at, data);
    if (kind === "child.started") {
      const child = { runId: data.runId, flowId: data.flowId, from: at, index: data.index };
      this.#children.set(data.runId, child);
      row.children.push(child);
      return;
    }
    const child = this.#children.get(data.runId);
    if (child) Object.assign(child, { to: at, status: data.status, usage: data.usage });
  }

  /** @param {string} kind @param {number} at @param {any} data */
  #approval(kind, at, data) {
    const row = this.#row(at, data);
    if (kind === "approval.requested") {
      const asked = { approvalId: data.approvalId, title: data.title, requiredRole: data.requiredRole, from: at, status: "waiting" };
      this.#approvals.set(data.approvalId, asked);
      row.approvals.push(asked);
      if (!row.name) row.name = data.title;
      if (row.state !== "completed") row.state = "waiting";
      return;
    }
    const asked = this.#approvals.get(data.approvalId);
    if (kind === "approval.unassigned") return void (asked && (asked.unassigned = true));
    if (asked) Object.assign(asked, { to: at, status: data.status ?? "escalated" });
    if (asked && data.to) {
      const next = { ...asked, approvalId: data.to, requiredRole: data.requiredRole, from: at, to: undefined, status: "waiting", unassigned: undefined };
      this.#approvals.set(data.to, next);
      row.approvals.push(next);
    }
    if (row.state === "waiting" && !row.approvals.some((one) => one.status === "waiting")) row.state = row.attempts.length ? "running" : "completed";
  }

  /** @param {number} at @param {any} data */
  #waits(at, data) {
    this.#goesOn(at);
    this.#wait = { from: at, what: data.waitingFor ?? "retry" };
    const row = data.step ? this.#steps.get(data.step) : this.rows.at(-1);
    row?.waits.push(this.#wait);
  }

  /** @param {number} at */
  #goesOn(at) {
    if (this.#wait) this.#wait.to ??= at;
    this.#wait = undefined;
  }

  /** @param {number} at */
  #finished(at) {
    this.#goesOn(at);
    this.endedAt = at;
    for (const task of this.tasks.values()) if (task.state === "running") Object.assign(task, { state: "failed", to: at });
    for (const row of this.rows) {
      const last = row.attempts.at(-1);
      if (last && last.to === undefined) Object.assign(last, { to: at, state: "failed" });
      if (row.sort === "step" && (row.state === "running" || row.state === "waiting")) row.state = "failed";
    }
  }
}

/** @param {string} key @param {number} at @param {string} kind @param {string} name @returns {Row} */
function empty(key, at, kind, name) {
  return { key, sort: "step", at, kind, name, state: "running", attempts: [], waits: [], children: [], approvals: [], text: "", checks: 0 };
}

/** Whether a run goes on no more. @param {{ status: string }} run */
export function isFinished({ status }) {
  return status === "completed" || status === "failed" || status === "cancelled";
}

/** A hidden page keeps its stream for so long. */
const HIDDEN_MS = 10_000;

/**
 * A run and its timeline, as it goes on. The page's own run is followed by its stream, which a hidden page closes and takes up
 * again where it was; a run below it is read again while it is not finished, so that a page has one stream at most.
 * @param {string} runId
 * @param {{ isStreamed?: boolean }} [options]
 */
export function useRunEvents(runId, { isStreamed = true } = {}) {
  const [, draw] = useState(0);
  const ref = useRef(/** @type {any} */ ({}));
  const current = ref.current;
  if (current.runId !== runId) {
    current.controller?.abort();
    Object.assign(current, { runId, run: undefined, error: undefined, timeline: new Timeline(), isReading: false });
    current.timeline.runId = runId;
  }
  /** @type {Timeline} */
  const timeline = current.timeline;
  const redraw = () => {
    // Deltas come faster than anybody sees.
    current.frame ??= requestAnimationFrame(() => {
      current.frame = undefined;
      draw((count) => count + 1);
    });
  };
  const readRun = async (/** @type {AbortSignal} */ signal, byItself = true) => {
    // Of a run that has ended nothing is new, however many events tell of it.
    if (byItself && current.run && isFinished(current.run)) return;
    const run = await api.runs.get(runId, { ...(byItself ? quiet : {}), signal });
    if (current.runId === runId) current.run = run;
    redraw();
  };
  const fails = (/** @type {unknown} */ cause) => {
    if (isAborted(cause) || current.runId !== runId) return;
    current.error = errorOf(cause);
    redraw();
  };
  const follow = async () => {
    const controller = (current.controller = new AbortController());
    const leave = ownStream();
    try {
      await readRun(controller.signal, Boolean(current.run));
      for await (const event of api.runs.follow(runId, { after: timeline.lastSeq, signal: controller.signal, headers: quiet.headers })) {
        timeline.take(event);
        redraw();
        if (event.kind.startsWith("run.") && event.kind !== "run.created") await readRun(controller.signal);
      }
      await readRun(controller.signal);
    } catch (cause) {
      if (!controller.signal.aborted) fails(cause);
    } finally {
      leave();
    }
  };
  // Its last event may be there while what the run came to is still being read, or was given up.
  const isWhole = () => timeline.isFinished && Boolean(current.run) && isFinished(current.run);
  const readAll = async () => {
    // What is under way may be older than the change that was told.
    current.isDue = current.isReading;
    if (current.isReading || isWhole()) return;
    current.isReading = true;
    const controller = current.controller;
    try {
      for (let hasMore = true; hasMore; ) {
        const page = await api.runs.progress(runId, { after: timeline.lastSeq, limit: 200 }, { ...quiet, signal: controller.signal });
        for (const event of page.data) timeline.take(event);
        current.run = page.run;
        hasMore = page.hasMore && page.data.length > 0;
      }
      current.error = undefined;
    } catch (cause) {
      if (!controller.signal.aborted) fails(cause);
    } finally {
      current.isReading = false;
      redraw();
    }
    // One that was given up may have been followed by another, which left it to this one.
    if (current.isDue && current.controller && !current.controller.signal.aborted) readAll();
  };
  const begin = () => {
    current.error = undefined;
    if (isStreamed) return void follow();
    current.controller ??= new AbortController();
    readAll();
  };
  useEffect(() => {
    begin();
    /** @type {ReturnType<typeof setTimeout> | undefined} */
    let closes;
    const onVisibility = () => {
      clearTimeout(closes);
      if (document.hidden) closes = setTimeout(() => current.controller?.abort(), HIDDEN_MS);
      else if (current.controller?.signal.aborted && !isWhole()) follow();
    };
    if (isStreamed) document.addEventListener("visibilitychange", onVisibility);
    return () => {
      document.removeEventListener("visibilitychange", onVisibility);
      clearTimeout(closes);
      current.controller?.abort();
      current.controller = undefined;
      if (current.frame) cancelAnimationFrame(current.frame);
      current.frame = undefined;
    };
    // A turn is read first where its message is known before the conversation says that it is under way.
  }, [runId, isStreamed]);
  const isRefused = unauthenticated.value;
  useEffect(() => {
    if (!isRefused && current.error?.status === 401) begin();
  }, [isRefused]);
  useHints(isStreamed ? [] : ["run"], () => void readAll());
  return {
    /** @type {Run | undefined} */
    run: current.run,
    timeline,
    error: /** @type {import("agent-runtime").AgentRuntimeError | undefined} */ (current.error),
    reload: begin,
    setRun(/** @type {Run} */ run) {
      current.run = run;
      redraw();
    },
  };
}
