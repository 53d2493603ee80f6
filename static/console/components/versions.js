/**
 * What has versions, an agent or a flow: its head and what is known about it, the list of them, choosing two to compare, what a
 * new one begins with, and putting it away.
 *
 * Guarantees: acts stand where the reader may do them. Of two versions the one that was made later is the second.
 */

import { api } from "../api.js";
import { may } from "../permit.js";
import { useResource } from "../resource.js";
import { go, href, setQuery } from "../route.js";
import { fragment, h, tags, useRef, useState } from "../ui.js";
import { Banner } from "./banner.js";
import { confirm } from "./dialog.js";
import { Select } from "./field.js";
import { Id } from "./id.js";
import { Menu } from "./menu.js";
import { Name, useNames } from "./names.js";
import { PageHead } from "./page-head.js";
import { Pager, useList } from "./pager.js";
import { FactsSection, Section } from "./section.js";
import { State } from "./state.js";
import { announce } from "./status.js";
import { Table } from "./table.js";
import { Time } from "./time.js";

/** @import { Child } from "../ui.js" */
/** @import { Versioned, usePromotion } from "./promotion.js" */

const { a, button, div, span } = tags;

/** @typedef {Versioned & { projectId: string, latestVersion?: string | null, createdAt: string, createdBy: string, updatedAt: string }} Placed */
/** @typedef {{ version: string, createdAt: string, createdBy: string, model?: string }} Listed */

/**
 * @param {object} props
 * @param {Placed} props.of
 * @param {"agent" | "flow"} props.kind
 * @param {(wanted: any, options: any) => PromiseLike<any>} props.call lists the versions
 * @param {ReturnType<typeof usePromotion>} props.promotion
 * @param {import("./table.js").Column[]} [props.more] further columns
 * @param {Child} [props.empty]
 */
export function Versions({ of, kind, call, promotion, more = [], empty }) {
  const people = useNames(["user", "service-account"]);
  const [chosen, setChosen] = useState(/** @type {Set<string>} */ (new Set()));
  const list = useList(`versions of ${kind} ${of.id}`, {}, call, { live: [kind] });
  const page = `${kind}s/${of.id}`;
  const mayPromote = may("admin", kind, { projectId: of.projectId }) && !of.archivedAt;
  const [after, before] = (list.rows ?? []).map((row) => row.version).filter((version) => chosen.has(version));
  const canCompare = chosen.size === 2 && before && after;
  const many = (list.rows?.length ?? 0) > 1;
  return h(
    Section,
    {
      title: "Versions",
      actions: many ? button({ type: "button", "aria-disabled": canCompare ? undefined : "true", title: "Choose two versions", onClick: () => canCompare && go(href(`${page}/compare`, { before, after })) }, "Compare the two chosen") : undefined,
    },
    h(Table, {
      label: "Versions, newest first",
      list,
      rowKey: (/** @type {Listed} */ row) => row.version,
      rowHref: (/** @type {Listed} */ row) => href(`${page}/versions/${encodeURIComponent(row.version)}`),
      selected: many ? chosen : undefined,
      onSelect: setChosen,
      columns: [
        { title: "Version", show: (/** @type {Listed} */ row) => row.version },
        {
          title: "State",
          show: (/** @type {Listed} */ row) =>
            row.version === of.liveVersion
              ? h(State, { state: "live" })
              : mayPromote
                ? button({ type: "button", class: "link", "aria-label": `Make live: ${row.version}`, disabled: promotion.act.isBusy, onClick: () => promotion.act.run(row.version, false) }, "Make live")
                : span(null, ""),
        },
        ...more,
        { title: "Made (UTC)", show: (/** @type {Listed} */ row) => h(Time, { at: row.createdAt, short: true }), from: "wide" },
        { title: "By", show: (/** @type {Listed} */ row) => h(Name, { id: row.createdBy, names: people }), from: "wide", isSecond: true },
      ],
      empty,
    }),
    h(Pager, { list }),
  );
}

/** Which two versions are compared: they stand in the address. @param {{ versions: string[] | undefined, before?: string, after?: string }} props */
export function ChooseTwo({ versions, before, after }) {
  const one = (/** @type {string} */ name, /** @type {string} */ label, /** @type {string | undefined} */ value) =>
    h(Select, { label, value: value ?? "", placeholder: "Choose one", onInput: (to) => setQuery({ [name]: to }, { replace: true }), options: (versions ?? [value ?? ""]).filter(Boolean).map((version) => ({ value: version, label: version })) });
  return div({ class: "fields-row" }, one("before", "From", before), one("after", "To", after));
}

/** @param {{ of: Versioned }} props */
export function Archived({ of }) {
  return of.archivedAt ? div({ class: "promoted" }, h(Banner, { tone: "idle", title: "It is archived" }, "Lists leave it out, it starts nothing and gets no versions. Runs under way go on.")) : null;
}

/**
 * The version that a new one begins with: what somebody makes of it stays that when another one is made meanwhile.
 * @template T
 * @param {string} of the form
 * @param {{ base?: T } | undefined} read
 * @returns {T | undefined}
 */
export function useBase(of, read) {
  const begun = useRef(/** @type {{ of?: string, base?: T }} */ ({}));
  if (begun.current.of !== of) begun.current = read ? { of, base: read.base } : {};
  return begun.current.base;
}

/**
 * What has changed since a new version was begun.
 * @param {{ of: Placed, kind: "agent" | "flow", base: string | null | undefined }} props `base`: the newest version then; undefined: it
 *   begins with one that somebody chose
 */
export function Since({ of, kind, base }) {
  const { latestVersion: newest } = of;
  return fragment(
    h(Archived, { of }),
    newest && base !== undefined && base !== newest
      ? div({ class: "promoted" }, h(Banner, { tone: "wait", title: `${newest} was made meanwhile`, actions: a({ class: "button", href: href(`${kind}s/${of.id}/versions/${encodeURIComponent(newest)}`), target: "_blank" }, "Look at it in a new tab") }, "What you have written here is as it was."))
      : null,
  );
}

/**
 * @template {Placed} T
 * @param {object} props
 * @param {T} props.of
 * @param {"agent" | "flow"} props.kind
 * @param {string} props.title
 * @param {{ title: string, href: string }[]} props.crumbs
 * @param {string} [props.lead]
 * @param {{ archive: (id: string) => Promise<T>, unarchive: (id: string) => Promise<T> }} props.calls
 * @param {ReturnType<typeof usePromotion>} props.promotion
 * @param {(now: T) => void} props.set
 * @param {Child} props.actions beside the menu
 * @param {string} props.change the item of the menu that opens the form: "Change name or description …"
 * @param {(onClose: () => void) => Child} props.form
 */
export function VersionedHead({ of, kind, title, crumbs, lead, calls, promotion, set, actions, change, form }) {
  const [isChanging, setChanging] = useState(false);
  const items = () => [
    { title: change, run: () => setChanging(true) },
    ...(of.liveVersion ? [{ title: "Make no version live", run: () => void promotion.act.run(null, false) }] : []),
    /** @type {const} */ ("line"),
    archiveItem(of, title, kind, calls, set),
  ];
  return fragment(
    h(PageHead, {
      title,
      crumbs,
      state: of.archivedAt ? h(State, { state: "archived" }) : of.liveVersion ? h(State, { state: "live", word: `${of.liveVersion} live` }) : undefined,
      lead,
      actions: [may("admin", kind, { projectId: of.projectId }) ? h(Menu, { key: "more", label: "More", items: items() }) : null, actions],
    }),
    isChanging ? form(() => setChanging(false)) : null,
  );
}

/** @param {{ of: Placed, kind: "agent" | "flow", links: [string, Child][] }} props `links`: to what it is in */
export function AboutVersioned({ of, kind, links }) {
  const names = useNames(["project", "user", "service-account"]);
  const version = (/** @type {string} */ name) => a({ href: href(`${kind}s/${of.id}/versions/${encodeURIComponent(name)}`) }, name);
  return h(FactsSection, {
    title: "About it",
    facts: [
      ["Live", of.liveVersion ? version(of.liveVersion) : of.latestVersion ? "None: the newest version runs" : "No version yet"],
      ["Newest", of.latestVersion ? version(of.latestVersion) : null],
      ["Project", h(Name, { id: of.projectId, names })],
      ...links,
      ["Made", h(Time, { at: of.createdAt })],
      ["Made by", h(Name, { id: of.createdBy, names })],
      ["Changed", h(Time, { at: of.updatedAt })],
      ["Id", h(Id, { id: of.id, what: kind })],
    ],
  });
}

/** The newest run of it, with how it stands. @param {{ of: { agentId: string } | { flowId: string, projectId: string } }} props */
export function LastRun({ of }) {
  const read = useResource(`last run ${JSON.stringify(of)}`, async (options) => (await api.runs.list({ ...of, children: true, limit: 1, order: "desc" }, options)).data, { live: ["run"] });
  const [run] = read.data ?? [];
  if (!run) return span(null, read.data ? "None yet" : "–");
  return span(null, a({ href: href(`runs/${run.id}`) }, h(Time, { at: run.createdAt })), " ", h(State, { state: run.status }));
}

/**
 * The item of a menu that puts it away, or brings it back.
 * @template {Versioned} T
 * @param {T} of @param {string} name @param {"agent" | "flow"} kind
 * @param {{ archive: (id: string) => Promise<T>, unarchive: (id: string) => Promise<T> }} calls
 * @param {(now: T) => void} set
 * @returns {import("./menu.js").Item}
 */
function archiveItem(of, name, kind, calls, set) {
  if (of.archivedAt)
    return {
      title: "Bring it back …",
      run: () =>
        confirm({
          title: `Bring ${name} back?`,
          says: "Lists show it again, and it can be started.",
          act: `Bring the ${kind} back`,
          run: async () => {
            set(await calls.unarchive(of.id));
            announce("It is in use again");
          },
        }),
    };
  return {
    title: "Archive …",
    isDanger: true,
    run: () =>
      confirm({
        title: `Archive ${name}?`,
        says: "Lists leave it out, it starts nothing and gets no versions. Runs under way go on. It can be brought back.",
        act: `Archive the ${kind}`,
        run: async () => {
          set(await calls.archive(of.id));
          announce("Archived");
        },
      }),
  };
}
