/** A version of a flow: how it is drawn, and its definition as its author wrote it. */

import { api } from "../api.js";
import { FlowTree } from "../components/flow-tree.js";
import { Id } from "../components/id.js";
import { Name, useNames } from "../components/names.js";
import { PageHead, Unread } from "../components/page-head.js";
import { Promoted, usePromotion } from "../components/promotion.js";
import { Facts, Section } from "../components/section.js";
import { State } from "../components/state.js";
import { Loaded } from "../components/states.js";
import { Tabs } from "../components/tabs.js";
import { TextBlock } from "../components/text-block.js";
import { Time } from "../components/time.js";
import { may } from "../permit.js";
import { useResource } from "../resource.js";
import { href, query } from "../route.js";
import { h, tags } from "../ui.js";

/** @import { Flow, FlowNode, FlowVersion } from "agent-runtime/types" */

const { a, button, div } = tags;

/** @param {{ id: string, version: string }} props */
export default function FlowVersionPage({ id, version }) {
  const flow = useResource(`flow ${id}`, (options) => api.flows.get(id, options), { live: ["flow"] });
  const read = useResource(`flow ${id} version ${version}`, (options) => api.flows.versions.get(id, version, options));
  const crumbs = [{ title: "Flows", href: href("flows") }, { title: flow.data?.flowId ?? "Flow", href: href(`flows/${id}`) }];
  if (!read.data || !flow.data) return h(Unread, { title: version, crumbs, of: { error: read.error ?? flow.error, reload: () => (read.reload(), flow.reload()) }, notFound: "The flow has no such version, or you may not read it." });
  return h(Known, { flow: flow.data, version: read.data, set: flow.set, crumbs });
}

/** @param {{ flow: Flow, version: FlowVersion, set: (flow: Flow) => void, crumbs: { title: string, href: string }[] }} props */
function Known({ flow, version, set, crumbs }) {
  const people = useNames(["user", "service-account"]);
  const promotion = usePromotion(flow, (to) => api.flows.promote(flow.id, { version: to }), set);
  const place = { projectId: flow.projectId };
  const isLive = flow.liveVersion === version.version;
  const [mayWrite, mayAdmin] = [may("write", "flow", place) && !flow.archivedAt, may("admin", "flow", place) && !flow.archivedAt];
  const tab = query.value.show === "definition" ? "definition" : "picture";
  const base = `flows/${flow.id}/versions/${encodeURIComponent(version.version)}`;
  const graph = useResource(`graph ${flow.id} ${version.version}`, (options) => api.flows.versions.graph(flow.id, version.version, options));
  return div(
    null,
    h(PageHead, {
      title: `${flow.flowId} ${version.version}`,
      crumbs,
      state: isLive ? h(State, { state: "live" }) : flow.latestVersion === version.version ? h(State, { state: "newest", tone: "idle" }) : undefined,
      actions: [
        flow.liveVersion && !isLive ? a({ key: "compare", class: "button", href: href(`flows/${flow.id}/compare`, { before: flow.liveVersion, after: version.version }) }, `Compare with ${flow.liveVersion}, live`) : null,
        mayWrite ? a({ key: "new", class: "button", href: href(`flows/${flow.id}/new-version`, { from: version.version }) }, "New version from it") : null,
        mayWrite ? a({ key: "start", class: "button", href: href(`flows/${flow.id}/start`, { version: version.version }) }, "Start a run") : null,
        mayAdmin && !isLive ? button({ key: "promote", type: "button", class: "primary", disabled: promotion.act.isBusy, onClick: () => promotion.act.run(version.version, false) }, "Make live") : null,
      ],
    }),
    h(Promoted, { of: flow, promotion }),
    h(Tabs, { label: "Parts of the version", tabs: [{ title: "What it does", href: href(base), isCurrent: tab === "picture" }, { title: "Definition", href: href(base, { show: "definition" }), isCurrent: tab === "definition" }] }),
    div(
      { class: "columns side" },
      tab === "picture"
        ? div({ class: "card pad" }, h(Loaded, { of: graph, show: (/** @type {FlowNode} */ node) => h(FlowTree, { graph: node }) }))
        : h(TextBlock, { text: JSON.stringify(version.definition, null, 2), label: "Definition", isWrapped: false }),
      h(Section, { title: "About it" }, h(Facts, { rows: true, facts: [["Made", h(Time, { at: version.createdAt })], ["Made by", h(Name, { id: version.createdBy, names: people })], ["Digest", h(Id, { id: version.digest, what: "digest" })]] })),
    ),
  );
}
