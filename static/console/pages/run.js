/** A run: one line that says what it is and how it stands, then its timeline, live; what it was given and answered; its events. */

import { AgentRuntimeError, api } from "../api.js";
import { Banner } from "../components/banner.js";
import { Copy } from "../components/copy.js";
import { confirm } from "../components/dialog.js";
import { Empty, Failure, Loaded } from "../components/states.js";
import { Id } from "../components/id.js";
import { Json } from "../components/json.js";
import { Markdown } from "../components/markdown.js";
import { FlowTree } from "../components/flow-tree.js";
import { PageHead, Unread } from "../components/page-head.js";
import { useActs } from "../components/acts.js";
import { FactsLine, Section } from "../components/section.js";
import { State } from "../components/state.js";
import { announce } from "../components/status.js";
import { Tabs } from "../components/tabs.js";
import { Checks } from "../components/check-table.js";
import { guardrailSays } from "../components/guardrail-says.js";
import { IN_ORDER, Pager, useList } from "../components/pager.js";
import { Table } from "../components/table.js";
import { TextBlock } from "../components/text-block.js";
import { Duration, Time } from "../components/time.js";
import { Timeline } from "../components/timeline.js";
import { Cut } from "../components/turn.js";
import { count, dollars, tokens } from "../number.js";
import { useOnce } from "../once.js";
import { may } from "../permit.js";
import { useAct, useResource } from "../resource.js";
import { go, href } from "../route.js";
import { isFinished, useRunEvents } from "../run-events.js";
import { fragment, h, tags } from "../ui.js";

/** @import { Run, RunEvent } from "agent-runtime/types" */
/** @import { Child } from "../ui.js" */

const { a, button, code, div, p, span } = tags;

const VIA = /** @type {Record<string, string>} */ ({
  latest: "the newest version, since none is live",
  live: "the live version",
  explicit: "the version that the caller named",
  conversation: "the conversation's own version",
});
const ORIGIN = /** @type {Record<string, string>} */ ({ app: "an app", "command-line": "the command line", run: "another run" });
const WAITS = /** @type {Record<string, string>} */ ({ retry: "before another attempt", timer: "for a time", approval: "for a person", children: "for the runs that it began", model: "for its model provider, which takes so many calls at once" });

/** @param {{ runId: string, tab?: string }} props */
export default function RunPage({ runId, tab = "timeline" }) {
  const { run, timeline, error, reload, setRun } = useRunEvents(runId);
  const crumbs = [{ title: "Runs", href: href("runs") }];
  if (!run) return h(Unread, { title: "Run", crumbs, of: { error, reload }, notFound: "No run has this id, or you may not read it." });
  const base = `runs/${runId}`;
  const tabs = [
    { title: "Timeline", href: href(base), isCurrent: tab === "timeline" },
    ...(run.agent ? [] : [{ title: "Flow", href: href(`${base}/flow`), isCurrent: tab === "flow" }]),
    { title: "Output", href: href(`${base}/output`), isCurrent: tab === "output" },
    { title: "Input", href: href(`${base}/input`), isCurrent: tab === "input" },
    { title: "Checks", href: href(`${base}/checks`), isCurrent: tab === "checks" },
    { title: "Events", href: href(`${base}/events`), isCurrent: tab === "events" },
  ];
  return div(
    null,
    h(Head, { run, crumbs, onRun: setRun }),
    error ? h(Failure, { error, retry: reload }) : null,
    run.failureMessage ? div({ class: "failure-on-top" }, h(Banner, { tone: "bad", title: "It failed" }, p(null, run.failureMessage))) : null,
    h(Tabs, { label: "Parts of the run", tabs }),
    tab === "checks" ? h(RunChecks, { run, key: runId }) : tab === "events" ? h(Events, { timeline, lastSeq: timeline.lastSeq }) : tab === "flow" ? h(Drawn, { run, timeline, lastSeq: timeline.lastSeq }) : tab === "output" || tab === "input" ? h(Payload, { run, which: tab }) : div({ class: "card timeline-card" }, h(Timeline, { timeline, lastSeq: timeline.lastSeq, failedFirst: true, key: runId })),
  );
}

/** @param {{ run: Run, crumbs: { title: string, href: string }[], onRun: (run: Run) => void }} props */
function Head({ run, crumbs, onRun }) {
  const isOver = isFinished(run);
  const agent = useResource(run.agent ? `agent ${run.agent.id}` : null, (options) => api.agents.get(/** @type {any} */ (run.agent).id, options));
  const mayWrite = may("write", "run", { projectId: run.projectId });
  const once = useOnce();
  // A failed run is taken up after its last step; any other one is begun anew, and may do again what it did.
  const isTakenUp = run.status === "failed" && !run.dryRun && !run.parentRunId;
  const anew = async () => {
    const body = isTakenUp ? {} : again(run, await api.runs.payload(run.id));
    const started = await once([run.id, body], (options) => (isTakenUp ? api.runs.retry(run.id, {}, options) : api.runs.create(body, options)));
    go(href(`runs/${started.run.id}`));
  };
  const retry = useAct(anew);
  const askAgain = () =>
    isTakenUp || run.dryRun
      ? void retry.run()
      : confirm({ title: "Run it again?", says: "A new run of the same version gets the same input. What this one did, it does a second time.", act: "Run again", run: anew });
  const cancel = () =>
    confirm({
      title: `Cancel this run?`,
      says: "What it has done stays done. It begins no further step, and the runs below it end, too.",
      act: "Cancel the run",
      run: async () => {
        onRun(await api.runs.cancel(run.id));
        announce("The run was asked to end");
      },
    });
  const title = run.agent ? (agent.data?.name ?? "Agent") : run.flowId;
  const actions = [
    h(Copy, { key: "copy", label: "Copy as curl", words: true, text: `curl -H "Authorization: Bearer $AGENT_RUNTIME_TOKEN" ${location.origin}/v1/runs/${run.id}` }),
    mayWrite && isOver && (isTakenUp || !run.agent?.conversationId) ? button({ key: "again", type: "button", disabled: retry.isBusy, onClick: askAgain }, "Run again") : null,
    mayWrite && !isOver ? button({ key: "cancel", type: "button", class: "danger", disabled: run.cancelRequested, onClick: cancel }, run.cancelRequested ? "Asked to end" : "Cancel") : null,
  ];
  useActs(mayWrite && !isOver ? [{ title: "Cancel this run", about: "Act", icon: "stop", run: cancel }] : []);
  return fragment(
    h(PageHead, {
      title,
      documentTitle: `${title}, ${run.status}`,
      crumbs: run.parentRunId ? [...crumbs, { title: "The run that began it", href: href(`runs/${run.parentRunId}`) }] : crumbs,
      state: fragment(h(State, { state: run.status }), run.dryRun ? span({ class: "tag" }, "dry run") : null),
      actions,
    }),
    h(FactsLine, { facts: facts(run) }),
    h(Failure, { error: retry.error }),
  );
}

/**
 * What begins a run with the same version and input. A turn stands alone: in its conversation one writes the next message.
 * @param {Run} run @param {import("agent-runtime/types").Payload} said @returns {any}
 */
function again(run, said) {
  if (said.erasedAt) throw new AgentRuntimeError("invalid", "What this run was given was erased, so it cannot be run again.");
  const labels = Object.keys(run.labels).length ? run.labels : undefined;
  if (run.agent) return { agentId: run.agent.id, version: run.agent.version, message: /** @type {any} */ (said.input)?.message, labels, dryRun: run.dryRun, overrides: run.overrides ?? undefined };
  const dry = run.dryRun ? { dryRun: true, fixtures: said.fixtures ?? {}, models: said.models ?? undefined } : {};
  return { flowId: run.flowId, projectId: run.projectId, flowVersion: run.flowVersion, input: said.input ?? {}, labels, ...dry };
}

/** @param {Run} run @returns {[string, Child][]} */
function facts(run) {
  const { usage, agent } = run;
  const version = agent?.version ?? run.flowVersion;
  return [
    ["Version", agent ? span({ title: VIA[String(agent.via)] }, a({ href: href(`agents/${agent.id}/versions/${encodeURIComponent(version)}`) }, version), span({ class: "faint" }, ` ${VIA[String(agent.via)] ?? agent.via}`)) : version],
    ["Sets", run.overrides ? h(Overrides, { overrides: run.overrides }) : undefined],
    ["Waits", run.waitingFor ? WAITS[String(run.waitingFor)] ?? run.waitingFor : undefined],
    ["Took", h(Duration, { from: run.startedAt ?? run.createdAt, to: run.completedAt })],
    ["Calls", usage ? count(usage.calls) : undefined],
    ["Tokens", usage ? span({ title: `${count(usage.tokens.prompt)} read, ${count(usage.tokens.completion)} written` }, `${tokens(usage.tokens.prompt)} in, ${tokens(usage.tokens.completion)} out`) : undefined],
    ["Cost", usage ? dollars(usage.costUsd) : undefined],
    ["Started", h(Time, { at: run.createdAt })],
    ["By", span(null, ORIGIN[String(run.origin)] ?? run.origin)],
    ["Conversation", agent?.conversationId ? a({ href: href(`conversations/${agent.conversationId}`) }, "Open") : undefined],
    ["Takes up", run.retryOf ? a({ href: href(`runs/${run.retryOf}`) }, "a failed run") : undefined],
    ["Labels", Object.keys(run.labels).length ? Object.entries(run.labels).map(([key, value]) => span({ key, class: "tag" }, `${key}:${value}`)) : undefined],
    ["Id", h(Id, { id: run.id, what: "run" })],
  ];
}

/** What the run sets in place of its version's own, in one line. @param {{ overrides: import("agent-runtime/types").RunOverrides }} props */
function Overrides({ overrides }) {
  const { model, parameters, limits } = overrides;
  const fields = Object.entries({ ...parameters, ...limits }).map(([name, value]) => `${name} ${JSON.stringify(value)}`);
  return span({ title: "In place of what its version says" }, [model, ...fields].filter(Boolean).join(", "));
}

/** The flow as it is drawn, coloured by what the run did. @param {{ run: Run, timeline: import("../run-events.js").Timeline, lastSeq: number }} props */
function Drawn({ run, timeline }) {
  const graph = useResource(`graph ${run.projectId} ${run.flowId} ${run.flowVersion}`, async (options) => {
    for (const archived of [false, true]) {
      const [flow] = (await api.flows.list({ projectId: run.projectId, flowId: run.flowId, archived }, options)).data;
      if (flow) return { flow, graph: await api.flows.versions.graph(flow.id, run.flowVersion, options) };
    }
    return null;
  });
  return h(Loaded, {
    of: graph,
    show: (/** @type {any} */ read) =>
      read ? div({ class: "card pad" }, p({ class: "faint" }, a({ href: href(`flows/${read.flow.id}/versions/${encodeURIComponent(run.flowVersion)}`) }, `${run.flowId} ${run.flowVersion}`), run.parentRunId ? ", of which this run is a part" : ""), h(FlowTree, { graph: read.graph, doneOf: (path) => timeline.doneAt(path) })) : h(Empty, { title: "Its flow cannot be read." }),
  });
}

/** @param {{ run: Run, which: "input" | "output" }} props */
function Payload({ run, which }) {
  const payload = useResource(`payload ${run.id} ${run.status}`, (options) => api.runs.payload(run.id, options));
  return h(Loaded, {
    of: payload,
    notFound: "No run has this id, or you may not read it.",
    show: (/** @type {any} */ said) => {
      if (said.erasedAt) return h(Empty, { title: "What it was given and answered was erased." }, h(Time, { at: said.erasedAt }));
      const value = which === "input" ? said.input : said.output;
      if (value === null || value === undefined) return h(Empty, { title: which === "output" ? (run.status === "completed" ? "It answered nothing." : "It has no answer.") : "It was given nothing." });
      const text = which === "output" && run.agent ? value.text : which === "input" && run.agent ? value.message : undefined;
      return fragment(
        typeof text === "string" ? h(Section, { title: which === "output" ? "Answer" : "Message" }, which === "output" ? h(Markdown, { text }) : h(TextBlock, { text, label: "Message" })) : null,
        which === "output" && run.agent && value.answerCut ? h(Cut, {}) : null,
        typeof text !== "string" || value.json !== undefined ? h(Section, { title: "As JSON" }, h(Json, { value: typeof text === "string" ? value.json : value, label: "As JSON", openLevels: 3 })) : null,
        which === "input" && said.fixtures ? h(Section, { title: "Fixtures of the dry run" }, h(Json, { value: said.fixtures, label: "Fixtures" })) : null,
      );
    },
  });
}

/** Every check that guardrails made. @param {{ run: Run }} props */
function RunChecks({ run }) {
  const list = useList(`checks ${run.id} ${run.status}`, {}, (wanted, options) => api.runs.checks.list(run.id, wanted, options), { order: "asc" });
  return fragment(h(Checks, { label: "Checks of the run, in the order of its steps", list, isOfRun: true, hasSteps: true, empty: h(Empty, { title: "No check was made." }, "Guardrails of policies and of the agent's version judge turns of agents.") }), h(Pager, { list, ...IN_ORDER }));
}

/** Every event, as it is. @param {{ timeline: import("../run-events.js").Timeline, lastSeq: number }} props */
function Events({ timeline }) {
  return h(Table, {
    label: "Events of the run, in order",
    columns: [
      { title: "No.", show: (/** @type {RunEvent} */ event) => event.seq, isNumber: true },
      { title: "Event", show: (/** @type {RunEvent} */ event) => code(null, event.kind) },
      { title: "Time (UTC)", show: (/** @type {RunEvent} */ event) => h(Time, { at: event.createdAt, short: true, ago: false }), from: "middle" },
      { title: "Data", show: (/** @type {RunEvent} */ event) => event.kind.startsWith("guardrail.") ? guardrailSays(event.kind, event.data) : code({ class: "faint" }, JSON.stringify(event.data).slice(0, 300)), from: "wide" },
    ],
    rows: [...timeline.events],
    rowKey: (/** @type {RunEvent} */ event) => String(event.seq),
  });
}
