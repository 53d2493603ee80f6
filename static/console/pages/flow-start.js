/**
 * Starting a run of a flow: a form from the schema of its input; or a dry run, which changes nothing, with what its steps
 * are to answer.
 */

import { api } from "../api.js";
import { Check, Field, Select, faultAt, useFaulty } from "../components/field.js";
import { PageHead } from "../components/page-head.js";
import { JsonField, SchemaForm, schemaDefaults } from "../components/schema-form.js";
import { Section } from "../components/section.js";
import { Failure, Loading } from "../components/states.js";
import { Archived } from "../components/versions.js";
import { useOnce } from "../once.js";
import { useAct, useResource } from "../resource.js";
import { go, href, query, setQuery } from "../route.js";
import { h, tags, useState } from "../ui.js";

/** @import { Flow, FlowNode, FlowVersion } from "agent-runtime/types" */

const { a, button, code, details, div, footer, form, li, summary, ul } = tags;

/** Steps that a fixture may stand for. */
const CALLS = ["agent", "tool", "http", "approval", "guardrail", "run"];
const MOST_SHOWN = 60;

/** @param {{ id: string }} props */
export default function FlowStartPage({ id }) {
  const wanted = query.value.version;
  const read = useResource(`flow ${id} to start ${wanted ?? ""}`, async (options) => {
    const flow = await api.flows.get(id, options);
    const version = wanted ?? flow.liveVersion ?? flow.latestVersion ?? "";
    const [definition, graph, versions] = await Promise.all([api.flows.versions.get(id, version, options), api.flows.versions.graph(id, version, options), api.flows.versions.list(id, { order: "desc", limit: 200 }, options)]);
    return { flow, version: definition, graph, versions: versions.data.map((one) => one.version) };
  }, { fresh: true });
  const crumbs = [{ title: "Flows", href: href("flows") }, { title: read.data?.flow.flowId ?? "Flow", href: href(`flows/${id}`) }];
  return div(
    null,
    h(PageHead, { title: read.data ? `Start ${read.data.flow.flowId}` : "Start a run", crumbs, lead: read.data?.flow.title || undefined }),
    read.data ? h(Archived, { of: read.data.flow }) : null,
    read.data ? h(Start, { ...read.data, wanted: wanted ?? "", key: `${id} ${wanted ?? ""}` }) : read.error ? h(Failure, { error: read.error, retry: read.reload, notFound: "No flow has this id, or you may not read it." }) : h(Loading, {}),
  );
}

/** The calls of a flow, in order. @param {FlowNode} node @returns {FlowNode[]} */
function callsOf(node) {
  return [...(CALLS.includes(node.type) ? [node] : []), ...node.children.flatMap(callsOf)];
}

/** Labels as they are typed, one `key:value` a line, or the line that is none. @param {string} text */
function labelsOf(text) {
  const lines = text.split("\n").map((line) => line.trim()).filter(Boolean);
  const wrong = lines.find((line) => line.indexOf(":") < 1);
  const labels = Object.fromEntries(lines.map((line) => [line.split(":", 1)[0]?.trim(), line.slice(line.indexOf(":") + 1).trim()]));
  return { wrong, labels: lines.length ? labels : undefined };
}

/** @param {{ flow: Flow, version: FlowVersion, graph: FlowNode, versions: string[], wanted: string }} props */
function Start({ flow, version, graph, versions, wanted }) {
  const schema = version.definition.input?.schema?.document;
  const [input, setInput] = useState(() => /** @type {{ value: any, fault?: string }} */ ({ value: schemaDefaults(schema) ?? {} }));
  const [dryRun, setDryRun] = useState(query.value.dry === "true");
  const [fixtures, setFixtures] = useState(/** @type {{ value: any, fault?: string }} */ ({ value: undefined }));
  const [asksModels, setAsksModels] = useState(true);
  const [typed, setTyped] = useState("");
  const { wrong, labels } = labelsOf(typed);
  const once = useOnce();
  const act = useAct(async () => {
    const dry = dryRun ? { dryRun, fixtures: fixtures.value ?? {}, ...(asksModels ? {} : { models: "skip" }) } : {};
    const body = { flowId: flow.flowId, projectId: flow.projectId, flowVersion: wanted || undefined, input: input.value ?? {}, labels, ...dry };
    const { run } = await once(body, (options) => api.runs.create(body, options));
    go(href(`runs/${run.id}/flow`));
  });
  const ref = useFaulty(act.error);
  const isReady = !input.fault && !(dryRun && fixtures.fault) && !wrong && !act.isBusy;
  const inputFault = faultAt(act.error, "input", undefined, true);
  const calls = callsOf(graph).slice(0, MOST_SHOWN);
  /** Rises with each place that is added: the field begins again with it. */
  const [added, setAdded] = useState(0);
  const put = (/** @type {string} */ path) => {
    setFixtures((old) => ({ value: { ...old.value, [path]: old.value?.[path] ?? {} } }));
    setAdded(added + 1);
  };
  return form(
    { ref, class: "form", noValidate: true, onSubmit: (event) => (event.preventDefault(), isReady && act.run()) },
    h(Select, { label: "Version", value: wanted, onInput: (to) => setQuery({ version: to }, { replace: true }), placeholder: flow.liveVersion ? `The live one, now ${flow.liveVersion}` : `The newest one, now ${flow.latestVersion}`, options: versions.map((one) => ({ value: one, label: one })) }),
    h(Section, { title: "Input" }, schema ? h(SchemaForm, { label: "Input", schema, value: input.value, onInput: (value, fault) => setInput({ value, fault }), error: inputFault }) : h(JsonField, { label: "Input", hint: "JSON. The flow has no schema for it.", value: input.value, onInput: (value, fault) => setInput({ value, fault }), error: inputFault })),
    h(Check, { label: "Dry run", hint: "Everything is evaluated and nothing is changed: calls that do not read alone are not made, unless their tool says so, and nobody is asked.", value: dryRun, onInput: setDryRun }),
    dryRun
      ? h(
          Section,
          { title: "The dry run" },
          div(
            { class: "stack" },
            h(Check, { label: "Ask models", hint: "Without it, agents' turns are not begun.", value: asksModels, onInput: setAsksModels }),
            h(JsonField, { key: added, label: "Fixtures", hint: "What steps are to answer, by their places; they are not performed then.", value: fixtures.value, onInput: (value, fault) => setFixtures({ value, fault }), error: faultAt(act.error, "fixtures", undefined, true) }),
            calls.length ? details(null, summary(null, "Places of this flow"), ul({ class: "places" }, calls.map((node) => li({ key: node.path }, code(null, node.path), button({ type: "button", class: "link", "aria-label": `Give an answer for ${node.name}`, onClick: () => put(node.path) }, "Give an answer"))))) : null,
          ),
        )
      : null,
    details({ class: "more-fields" }, summary(null, "Labels"), h(Field, { label: "Labels", hint: "One key:value a line. Lists find the run by them.", isRequired: false, value: typed, onInput: setTyped, lines: 3, error: wrong ? `"${wrong}" has no key before a colon.` : faultAt(act.error, "labels", undefined, true) })),
    h(Failure, { error: act.error }),
    footer({ class: "row end" }, a({ class: "button", href: href(`flows/${flow.id}`) }, "Leave"), button({ class: "primary", "aria-disabled": isReady ? undefined : "true" }, act.isBusy ? "Start …" : dryRun ? "Start the dry run" : "Start the run")),
  );
}
