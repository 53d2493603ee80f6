/** A flow: which version is live and how it is drawn, its versions, comparing two of them, and what it is called. */

import { api } from "../api.js";
import { FormDialog } from "../components/dialog.js";
import { Field, faultAt } from "../components/field.js";
import { FlowTree } from "../components/flow-tree.js";
import { Unread } from "../components/page-head.js";
import { Promoted, usePromotion } from "../components/promotion.js";
import { Section } from "../components/section.js";
import { Failure, Loaded } from "../components/states.js";
import { announce } from "../components/status.js";
import { AboutVersioned, Archived, LastRun, VersionedHead, Versions } from "../components/versions.js";
import { may } from "../permit.js";
import { useResource } from "../resource.js";
import { href, withProjectOf } from "../route.js";
import { fragment, h, tags, useState } from "../ui.js";

/** @import { Flow, FlowNode } from "agent-runtime/types" */

const { a, div } = tags;

const crumbs = () => [{ title: "Flows", href: href("flows") }];

/** @param {{ id: string }} props */
export default function FlowPage({ id }) {
  const read = useResource(`flow ${id}`, (options) => api.flows.get(id, options), { live: ["flow"] });
  const flow = read.data;
  if (!flow) return h(Unread, { title: "Flow", crumbs: crumbs(), of: read, notFound: "No flow has this id, or you may not read it." });
  return h(Known, { flow, set: read.set, error: read.error, reload: read.reload, key: id });
}

/** @param {{ flow: Flow, set: (flow: Flow) => void, error: any, reload: () => void }} props */
function Known({ flow, set, error, reload }) {
  const promotion = usePromotion(flow, (version) => api.flows.promote(flow.id, { version }), set);
  const current = flow.liveVersion ?? flow.latestVersion;
  return div(
    null,
    h(Head, { flow, set, promotion }),
    error ? h(Failure, { error, retry: reload }) : null,
    h(Promoted, { of: flow, promotion }),
    h(Archived, { of: flow }),
    div(
      { class: "columns side" },
      div({ class: "stack" }, h(Versions, { of: flow, kind: "flow", promotion, call: (wanted, options) => api.flows.versions.list(flow.id, wanted, options) }), current ? h(Picture, { flow, version: current, key: current }) : null),
      h(AboutVersioned, { of: flow, kind: "flow", links: [["Last run", h(LastRun, { of: { flowId: flow.flowId, projectId: flow.projectId } })], ["Runs", a({ href: href("runs", { children: "true", flowId: flow.flowId, ...withProjectOf(flow) }) }, "Its runs")]] }),
    ),
  );
}

/** @param {{ flow: Flow, set: (flow: Flow) => void, promotion: ReturnType<typeof usePromotion> }} props */
function Head({ flow, set, promotion }) {
  const mayWrite = may("write", "flow", { projectId: flow.projectId });
  return h(VersionedHead, {
    of: flow,
    kind: "flow",
    title: flow.flowId,
    crumbs: crumbs(),
    lead: [flow.title, flow.description].filter(Boolean).join(". ") || undefined,
    calls: api.flows,
    promotion,
    set,
    actions: [
      mayWrite && !flow.archivedAt ? a({ key: "new", class: "button", href: href(`flows/${flow.id}/new-version`) }, "New version") : null,
      mayWrite && !flow.archivedAt ? a({ key: "start", class: "button primary", href: href(`flows/${flow.id}/start`) }, "Start a run") : null,
    ],
    change: "Change title or description …",
    form: (/** @type {() => void} */ onClose) => h(Change, { flow, set, onClose }),
  });
}

/** @param {{ flow: Flow, set: (flow: Flow) => void, onClose: () => void }} props */
function Change({ flow, set, onClose }) {
  const [title, setTitle] = useState(flow.title);
  const [description, setDescription] = useState(flow.description);
  return h(FormDialog, {
    title: `Change ${flow.flowId}`,
    act: "Save",
    onClose,
    onSubmit: async () => {
      set(await api.flows.update(flow.id, { title: title.trim(), description: description.trim() }));
      announce("Saved");
    },
    fields: (error) =>
      fragment(
        h(Field, { label: "Title", isRequired: false, value: title, onInput: setTitle, most: 200, error: faultAt(error, "title") }),
        h(Field, { label: "Description", isRequired: false, value: description, onInput: setDescription, lines: 4, most: 16_384, error: faultAt(error, "description") }),
      ),
  });
}

/** @param {{ flow: Flow, version: string }} props */
function Picture({ flow, version }) {
  const graph = useResource(`graph ${flow.id} ${version}`, (options) => api.flows.versions.graph(flow.id, version, options));
  return h(Section, { title: `What ${version} does` }, h(Loaded, { of: graph, show: (/** @type {FlowNode} */ node) => h(FlowTree, { graph: node }) }));
}
