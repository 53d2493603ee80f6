/** A flow: which version is live and how it is drawn, its versions, comparing two of them, and what it is called. */

import { api } from "../api.js";
import { FormDialog } from "../components/dialog.js";
import { Field, faultAt } from "../components/field.js";
import { FlowTree } from "../components/flow-tree.js";
import { Id } from "../components/id.js";
import { Menu } from "../components/menu.js";
import { Name, useNames } from "../components/names.js";
import { PageHead } from "../components/page-head.js";
import { Promoted, usePromotion } from "../components/promotion.js";
import { FactsSection, Section } from "../components/section.js";
import { State } from "../components/state.js";
import { Failure, Loaded, Loading } from "../components/states.js";
import { announce } from "../components/status.js";
import { Time } from "../components/time.js";
import { Archived, Versions, archiveItem } from "../components/versions.js";
import { may } from "../permit.js";
import { useResource } from "../resource.js";
import { href } from "../route.js";
import { fragment, h, tags, useState } from "../ui.js";

/** @import { Flow, FlowNode } from "agent-runtime/types" */

const { a, div } = tags;

const CRUMBS = [{ title: "Flows", href: href("flows") }];

/** @param {{ id: string }} props */
export default function FlowPage({ id }) {
  const read = useResource(`flow ${id}`, (options) => api.flows.get(id, options), { live: ["flow"] });
  const flow = read.data;
  if (!flow) return div(null, h(PageHead, { title: "Flow", crumbs: CRUMBS }), read.error ? h(Failure, { error: read.error, retry: read.reload, notFound: "No flow has this id, or you may not read it." }) : h(Loading, {}));
  return h(Known, { flow, set: read.set, error: read.error, reload: read.reload, key: id });
}

/** @param {{ flow: Flow, set: (flow: Flow) => void, error: any, reload: () => void }} props */
function Known({ flow, set, error, reload }) {
  const [projects, people] = [useNames(["project"]), useNames(["user", "service-account"])];
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
      h(FactsSection, {
        title: "About it",
        facts: [
          ["Live", flow.liveVersion ? a({ href: href(`flows/${flow.id}/versions/${flow.liveVersion}`) }, flow.liveVersion) : "None: the newest version runs"],
          ["Newest", flow.latestVersion ? a({ href: href(`flows/${flow.id}/versions/${flow.latestVersion}`) }, flow.latestVersion) : null],
          ["Project", h(Name, { id: flow.projectId, names: projects })],
          ["Runs", a({ href: href("runs", { flowId: flow.flowId }) }, "Its runs")],
          ["Made", h(Time, { at: flow.createdAt })],
          ["Made by", h(Name, { id: flow.createdBy, names: people })],
          ["Changed", h(Time, { at: flow.updatedAt })],
          ["Id", h(Id, { id: flow.id, what: "flow" })],
        ],
      }),
    ),
  );
}

/** @param {{ flow: Flow, set: (flow: Flow) => void, promotion: any }} props */
function Head({ flow, set, promotion }) {
  const [isChanging, setChanging] = useState(false);
  const place = { projectId: flow.projectId };
  const [mayWrite, mayAdmin] = [may("write", "flow", place), may("admin", "flow", place)];
  return fragment(
    h(PageHead, {
      title: flow.flowId,
      crumbs: CRUMBS,
      state: flow.archivedAt ? h(State, { state: "archived" }) : flow.liveVersion ? h(State, { state: "live", word: `${flow.liveVersion} live` }) : undefined,
      lead: [flow.title, flow.description].filter(Boolean).join(". ") || undefined,
      actions: [
        mayAdmin
          ? h(Menu, {
              key: "more",
              label: "More",
              items: [
                { title: "Change title or description …", run: () => setChanging(true) },
                ...(flow.liveVersion ? [{ title: "Make no version live", run: () => void promotion.act.run(null, false) }] : []),
                "line",
                archiveItem(flow, flow.flowId, "flow", api.flows, set),
              ],
            })
          : null,
        mayWrite && !flow.archivedAt ? a({ key: "new", class: "button", href: href(`flows/${flow.id}/new-version`) }, "New version") : null,
        mayWrite && !flow.archivedAt ? a({ key: "start", class: "button primary", href: href(`flows/${flow.id}/start`) }, "Start a run") : null,
      ],
    }),
    isChanging ? h(Change, { flow, set, onClose: () => setChanging(false) }) : null,
  );
}

/** @param {{ flow: Flow, set: (flow: Flow) => void, onClose: () => void }} props */
function Change({ flow, set, onClose }) {
  const [title, setTitle] = useState(flow.title);
  const [description, setDescription] = useState(flow.description);
  const [error, setError] = useState(/** @type {any} */ (undefined));
  const submit = async () => {
    try {
      set(await api.flows.update(flow.id, { title: title.trim(), description: description.trim() }));
      announce("Saved");
    } catch (cause) {
      setError(cause);
      throw cause;
    }
  };
  return h(
    FormDialog,
    { title: `Change ${flow.flowId}`, act: "Save", onSubmit: submit, onClose },
    h(Field, { label: "Title", isRequired: false, value: title, onInput: setTitle, most: 200, error: faultAt(error, "title") }),
    h(Field, { label: "Description", isRequired: false, value: description, onInput: setDescription, lines: 4, most: 16_384, error: faultAt(error, "description") }),
  );
}

/** @param {{ flow: Flow, version: string }} props */
function Picture({ flow, version }) {
  const graph = useResource(`graph ${flow.id} ${version}`, (options) => api.flows.versions.graph(flow.id, version, options));
  return h(Section, { title: `What ${version} does` }, h(Loaded, { of: graph, show: (/** @type {FlowNode} */ node) => h(FlowTree, { graph: node }) }));
}
