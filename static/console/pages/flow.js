/** A flow: which version is live and how it is drawn, its versions, comparing two of them, and what it is called. */

import { api } from "../api.js";
import { confirm, FormDialog } from "../components/dialog.js";
import { Banner } from "../components/banner.js";
import { Field, faultAt } from "../components/field.js";
import { FlowTree } from "../components/flow-tree.js";
import { Id } from "../components/id.js";
import { Menu } from "../components/menu.js";
import { Person, ProjectLink, usePeopleNames, useProjectNames } from "../components/named.js";
import { PageHead } from "../components/page-head.js";
import { Pager, useList } from "../components/pager.js";
import { Promoted, usePromotion } from "../components/promotion.js";
import { FactsSection, Section } from "../components/section.js";
import { State } from "../components/state.js";
import { Empty, Failure, Loaded, Loading } from "../components/states.js";
import { announce } from "../components/status.js";
import { Table } from "../components/table.js";
import { Time } from "../components/time.js";
import { may } from "../permit.js";
import { useResource } from "../resource.js";
import { go, href } from "../route.js";
import { fragment, h, tags, useState } from "../ui.js";

/** @import { Flow, FlowNode, ListedFlowVersion } from "agent-runtime/types" */

const { a, button, div, span } = tags;

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
  const [projects, people] = [useProjectNames(), usePeopleNames()];
  const promotion = usePromotion(flow, (version) => api.flows.promote(flow.id, { version }), set);
  const current = flow.liveVersion ?? flow.latestVersion;
  return div(
    null,
    h(Head, { flow, set, promotion }),
    error ? h(Failure, { error, retry: reload }) : null,
    h(Promoted, { of: flow, promotion }),
    flow.archivedAt ? div({ class: "promoted" }, h(Banner, { tone: "idle", title: "It is archived" }, "Lists leave it out, it starts nothing and gets no versions. Runs under way go on.")) : null,
    div(
      { class: "columns side" },
      div({ class: "stack" }, h(Versions, { flow, promotion }), current ? h(Picture, { flow, version: current, key: current }) : null),
      h(FactsSection, {
        title: "About it",
        facts: [
          ["Live", flow.liveVersion ? a({ href: href(`flows/${flow.id}/versions/${flow.liveVersion}`) }, flow.liveVersion) : "None: the newest version runs"],
          ["Newest", flow.latestVersion ? a({ href: href(`flows/${flow.id}/versions/${flow.latestVersion}`) }, flow.latestVersion) : null],
          ["Project", h(ProjectLink, { id: flow.projectId, names: projects })],
          ["Runs", a({ href: href("runs", { flowId: flow.flowId }) }, "Its runs")],
          ["Made", h(Time, { at: flow.createdAt })],
          ["Made by", h(Person, { id: flow.createdBy, names: people })],
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
  const archive = () =>
    confirm({
      title: `Archive ${flow.flowId}?`,
      says: "Lists leave it out, it starts nothing and gets no versions. Runs under way go on. It can be brought back.",
      act: "Archive the flow",
      run: async () => {
        set(await api.flows.archive(flow.id));
        announce("Archived");
      },
    });
  const back = async () => {
    set(await api.flows.unarchive(flow.id));
    announce("It is in use again");
  };
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
                flow.archivedAt ? { title: "Bring it back", run: () => void back() } : { title: "Archive …", isDanger: true, run: archive },
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

/** @param {{ flow: Flow, promotion: any }} props */
function Versions({ flow, promotion }) {
  const people = usePeopleNames();
  const [chosen, setChosen] = useState(/** @type {Set<string>} */ (new Set()));
  const list = useList(`versions of flow ${flow.id}`, {}, (wanted, options) => api.flows.versions.list(flow.id, wanted, options), { live: ["flow"] });
  const mayAdmin = may("admin", "flow", { projectId: flow.projectId });
  const [after, before] = (list.rows ?? []).map((row) => row.version).filter((version) => chosen.has(version));
  const canCompare = chosen.size === 2 && before && after;
  const many = (list.rows?.length ?? 0) > 1;
  return h(
    Section,
    {
      title: "Versions",
      actions: many ? button({ type: "button", "aria-disabled": canCompare ? undefined : "true", title: "Choose two versions", onClick: () => canCompare && go(href(`flows/${flow.id}/compare`, { before, after })) }, "Compare the two chosen") : undefined,
    },
    h(Table, {
      label: "Versions, newest first",
      rows: list.rows,
      rowKey: (/** @type {ListedFlowVersion} */ row) => row.version,
      rowHref: (/** @type {ListedFlowVersion} */ row) => href(`flows/${flow.id}/versions/${encodeURIComponent(row.version)}`),
      selected: many ? chosen : undefined,
      onSelect: setChosen,
      columns: [
        { title: "Version", show: (/** @type {ListedFlowVersion} */ row) => row.version },
        {
          title: "State",
          show: (/** @type {ListedFlowVersion} */ row) =>
            row.version === flow.liveVersion
              ? h(State, { state: "live" })
              : mayAdmin && !flow.archivedAt
                ? button({ type: "button", class: "link", "aria-label": `Make live: ${row.version}`, disabled: promotion.act.isBusy, onClick: () => promotion.act.run(row.version, false) }, "Make live")
                : span(null, ""),
        },
        { title: "Made (UTC)", show: (/** @type {ListedFlowVersion} */ row) => h(Time, { at: row.createdAt, short: true }), from: "middle" },
        { title: "By", show: (/** @type {ListedFlowVersion} */ row) => h(Person, { id: row.createdBy, names: people }), from: "wide", isSecond: true },
      ],
      isBusy: list.isLoading && !list.rows,
      error: list.error,
      retry: list.reload,
      empty: h(Empty, { title: "No version yet." }),
    }),
    h(Pager, { list }),
  );
}
