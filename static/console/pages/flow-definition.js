/**
 * Pushing a definition as JSON: of a new flow, or a further version of one. Faults stand at their lines.
 *
 * Guarantees: a definition is checked without storing anything, and stored as it was typed.
 */

import { api, errorOf } from "../api.js";
import { DefinitionEditor } from "../components/definition-editor.js";
import { Select } from "../components/field.js";
import { FlowTree } from "../components/flow-tree.js";
import { PageHead } from "../components/page-head.js";
import { useMayIn } from "../components/projects-to-choose.js";
import { Section } from "../components/section.js";
import { Empty, Failure, Loading } from "../components/states.js";
import { announce } from "../components/status.js";
import { Since, useBase } from "../components/versions.js";
import { lineOfError } from "../json-lines.js";
import { useAct, useResource } from "../resource.js";
import { chosenProject, go, href, query } from "../route.js";
import { h, tags, useState } from "../ui.js";

/** @import { CheckedFlow, Flow } from "agent-runtime/types" */

const { a, button, div, footer, form } = tags;

const BEGIN = { document: { dsl: "1.0.3", namespace: "billing", name: "greet", version: "1.0.0", title: "Greet somebody" }, input: { schema: { format: "json", document: { type: "object", required: ["name"], properties: { name: { type: "string", title: "Name" } } } } }, do: [{ greet: { set: { text: '${ "Hello, \\(.name)" }' } } }] };

/** @param {{ id?: string }} props without an id: a new flow */
export default function FlowDefinitionPage({ id }) {
  return id ? h(NextVersion, { id }) : h(NewFlow, {});
}

/** @param {{ id: string }} props */
function NextVersion({ id }) {
  const from = query.value.from;
  const read = useResource(`flow ${id} to push ${from ?? ""}`, async (options) => {
    const flow = await api.flows.get(id, options);
    const base = from ?? flow.latestVersion;
    return { flow, base: base ? await api.flows.versions.get(id, base, options) : undefined };
  }, { fresh: true });
  const of = `${id} ${from ?? ""}`;
  const base = useBase(of, read.data);
  const crumbs = [{ title: "Flows", href: href("flows") }, { title: read.data?.flow.flowId ?? "Flow", href: href(`flows/${id}`) }];
  return div(
    null,
    h(PageHead, { title: "New version", crumbs, lead: base ? `Begins with ${base.version}. Give it another version in its document: one that was made never changes.` : undefined }),
    read.data ? h(Since, { of: read.data.flow, kind: "flow", base: from ? undefined : (base?.version ?? null) }) : null,
    read.data
      ? h(Push, { flow: read.data.flow, projectId: read.data.flow.projectId, begin: base?.definition ?? BEGIN, key: of })
      : read.error ? h(Failure, { error: read.error, retry: read.reload, notFound: "No flow has this id, or you may not read it." }) : h(Loading, {}),
  );
}

function NewFlow() {
  const places = useMayIn("admin");
  const [chosen, setChosen] = useState("");
  const first = places.find((one) => one.id === chosenProject.value) ?? (places.length === 1 ? places[0] : undefined);
  const projectId = chosen || (first?.id ?? "");
  return div(
    null,
    h(PageHead, { title: "New flow", crumbs: [{ title: "Flows", href: href("flows") }], lead: "A definition in the Open Workflow DSL, as JSON. Its document names the flow and the version." }),
    div(
      { class: "stack" },
      places.length > 1 ? div({ class: "form" }, h(Select, { label: "Project", value: projectId, onInput: setChosen, placeholder: "Choose one", options: places.map((one) => ({ value: one.id, label: one.name })) })) : null,
      h(Push, { projectId, begin: BEGIN }),
    ),
  );
}

/** @param {{ flow?: Flow, projectId: string, begin: any }} props */
function Push({ flow, projectId, begin }) {
  const [text, setText] = useState(() => JSON.stringify(begin, null, 2));
  const [found, setFound] = useState(/** @type {{ of: string, faults: any[], warnings: any[], graph?: any } | undefined} */ (undefined));
  /** The definition, or undefined once its fault is shown. */
  const parsed = () => {
    try {
      const value = JSON.parse(text);
      if (value && typeof value === "object" && !Array.isArray(value)) return value;
      setFound({ of: text, faults: [{ line: 1, message: "A definition is an object." }], warnings: [] });
    } catch (cause) {
      setFound({ of: text, faults: [{ line: lineOfError(text, cause), message: `This is not JSON: ${/** @type {Error} */ (cause).message}.` }], warnings: [] });
    }
    return undefined;
  };
  const check = useAct(async () => {
    const definition = parsed();
    if (!definition) return;
    const said = /** @type {CheckedFlow} */ (await api.flows.validate({ projectId, definition }));
    setFound({ of: text, faults: said.faults, warnings: said.warnings, graph: said.graph });
    announce(said.valid ? "The definition is valid" : "The definition has faults");
  });
  const push = useAct(async () => {
    const definition = parsed();
    if (!definition) return;
    try {
      if (flow) {
        const made = await api.flows.versions.create(flow.id, { definition });
        announce(`${made.version} was made`);
        go(href(`flows/${flow.id}/versions/${encodeURIComponent(made.version)}`));
      } else {
        const made = await api.flows.create({ projectId, definition });
        announce(`${made.flowId} was made`);
        go(href(`flows/${made.id}`));
      }
    } catch (cause) {
      const error = errorOf(cause);
      if (error.serverCode !== "flow-invalid" || !Array.isArray(error.details.faults)) throw cause;
      setFound({ of: text, faults: error.details.faults, warnings: [] });
      announce("The definition has faults");
    }
  });
  const isReady = Boolean(projectId) && !check.isBusy && !push.isBusy;
  const isOld = found !== undefined && found.of !== text;
  const isValid = found && !isOld && !found.faults.length;
  return form(
    { class: "columns push", noValidate: true, onSubmit: (event) => (event.preventDefault(), isReady && push.run()) },
    div(
      { class: "stack" },
      h(DefinitionEditor, { label: "Definition", text, onInput: setText, faults: found?.faults ?? NONE, warnings: found?.warnings ?? NONE, isOld }),
      h(Failure, { error: check.error ?? push.error }),
      footer(
        { class: "row end" },
        a({ class: "button", href: href(flow ? `flows/${flow.id}` : "flows") }, "Leave"),
        button({ type: "button", "aria-disabled": isReady ? undefined : "true", onClick: () => isReady && check.run() }, check.isBusy ? "Check …" : "Check"),
        button({ class: "primary", "aria-disabled": isReady ? undefined : "true" }, flow ? "Make the version" : "Make the flow"),
      ),
    ),
    h(Section, { title: "What it does" }, found?.graph && !isOld ? h(FlowTree, { graph: found.graph }) : h(Empty, { title: isValid ? "It is valid." : "Check it to see it drawn." }, "A check stores nothing.")),
  );
}

/** @type {any[]} */
const NONE = [];
