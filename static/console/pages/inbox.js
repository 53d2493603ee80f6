/**
 * The inbox: what waits for the reader's decision, first what is assigned to them; what ends first leads.
 *
 * Keys: of the row with the focus, `a` approves, `r` rejects and `e` escalates, each after a dialog that shows what is asked. The
 * focus then goes to the next row.
 */

import { api } from "../api.js";
import { AboutItem } from "../components/approval-dialogs.js";
import { useActs } from "../components/acts.js";
import { useNames } from "../components/names.js";
import { PageHead } from "../components/page-head.js";
import { Pager, useList } from "../components/pager.js";
import { Section } from "../components/section.js";
import { Empty } from "../components/states.js";
import { announce } from "../components/status.js";
import { Table } from "../components/table.js";
import { Time } from "../components/time.js";
import { Until } from "../components/until.js";
import { counted } from "../number.js";
import { href } from "../route.js";
import { hasKeys } from "../theme.js";
import { h, tags, useEffect, useRef, useState } from "../ui.js";

/** @import { InboxItem } from "agent-runtime/types" */
/** @import { Act } from "../components/approval-dialogs.js" */
/** @import { Named } from "../components/names.js" */

const { a, div, kbd, p } = tags;

/** @param {Map<string, Named>} projects @returns {import("../components/table.js").Column[]} */
const columns = (projects) => [
  { title: "What is asked", show: (/** @type {InboxItem} */ item) => item.title },
  { title: "Ends", show: (/** @type {InboxItem} */ item) => h(Until, { at: item.expiresAt }) },
  { title: "Project", show: (/** @type {InboxItem} */ item) => projects.get(item.projectId)?.name ?? "–", from: "middle" },
  { title: "Waits since (UTC)", show: (/** @type {InboxItem} */ item) => h(Time, { at: item.since, short: true }), from: "wide", isSecond: true },
];

const pageOf = (/** @type {InboxItem} */ item) => href(`approvals/${item.id}`);
const links = () => /** @type {HTMLElement[]} */ ([...document.querySelectorAll("[data-row-link]")]);

export default function InboxPage() {
  const projects = useNames(["project"]);
  const list = useList("inbox", {}, (wanted, options) => api.inbox.list(wanted, options), { live: ["approval"], order: null });
  /** @type {{ assigned: number, unassigned: number } | undefined} */
  const counts = list.page?.counts;
  const rows = list.rows;
  const mine = rows?.filter((item) => item.isAssigned) ?? [];
  const others = rows?.filter((item) => !item.isAssigned) ?? [];
  const parts = counts ? [counts.assigned ? `${counted(counts.assigned, "decision")} assigned to you` : "", counts.unassigned ? `${counted(counts.unassigned, "decision")} for anybody with your roles` : ""].filter(Boolean) : [];
  const lead = parts.length ? `${parts.join(", ")}. What ends first is on top.` : undefined;
  const { chosen, dialog } = useRowActs(rows, list.reload);
  return div(
    { onFocusIn: chosen },
    h(PageHead, { title: "Inbox", lead, actions: a({ class: "button", href: href("approvals", { status: "approved" }) }, "What was decided") }),
    rows && rows.length
      ? div(
          { class: "stack" },
          mine.length ? h(Section, { title: "Assigned to you" }, h(Items, { label: "Assigned to you, what ends first on top", rows: mine, projects, list })) : null,
          others.length ? h(Section, { title: mine.length ? "For anybody with your roles" : "Waiting" }, h(Items, { label: "For anybody with your roles, what ends first on top", rows: others, projects, list })) : null,
          hasKeys.value ? p({ class: "faint wide" }, kbd(null, "j"), " ", kbd(null, "k"), " choose a row, ", kbd(null, "a"), " approves it, ", kbd(null, "r"), " rejects it, ", kbd(null, "e"), " escalates it.") : null,
        )
      : h(Items, { label: "What waits for you", rows, projects, list }),
    h(Pager, { list, newest: "First page" }),
    dialog,
  );
}

/**
 * What is done to the row that has, or had last, the focus.
 * @param {InboxItem[] | undefined} rows @param {() => void} reload
 */
function useRowActs(rows, reload) {
  const [open, setOpen] = useState(/** @type {{ item: InboxItem, act: Act } | undefined} */ (undefined));
  const ref = useRef({ rows, to: /** @type {string | null} */ (null), at: -1 });
  const current = ref.current;
  current.rows = rows;
  const begin = (/** @type {Act} */ act) => () => {
    const item = current.rows?.find((one) => pageOf(one) === current.to);
    current.at = links().findIndex((link) => link.getAttribute("href") === current.to);
    if (item) setOpen({ item, act });
    else announce("Choose a row first, with j or k");
  };
  useActs(
    rows?.length
      ? [
          { title: "Approve the row", about: "Act", icon: "check", keys: "a", run: begin("approve") },
          { title: "Reject the row", about: "Act", icon: "stop", keys: "r", run: begin("reject") },
          { title: "Escalate the row", about: "Act", icon: "reviewers", keys: "e", run: begin("escalate") },
        ]
      : [],
  );
  useEffect(() => {
    // The row is gone, and the focus with it: it goes to the one that came in its place.
    if (open || !rows || current.at < 0 || document.activeElement !== document.body) return;
    const all = links();
    const row = all[Math.min(current.at, all.length - 1)];
    row?.focus();
    // A row that took no focus gets it with the next rows.
    if (!row || document.activeElement === row) current.at = -1;
  }, [rows, open]);
  const done = () => {
    setOpen(undefined);
    reload();
  };
  return {
    chosen: (/** @type {FocusEvent} */ event) => {
      const link = event.target instanceof Element && event.target.closest("[data-row-link]");
      if (link) current.to = link.getAttribute("href");
    },
    dialog: open ? h(AboutItem, { key: open.item.id, ...open, onClose: () => setOpen(undefined), onDone: done }) : null,
  };
}

/** @param {{ label: string, rows: InboxItem[] | undefined, projects: Map<string, Named>, list: any }} props */
function Items({ label, rows, projects, list }) {
  return h(Table, {
    label,
    list,
    rows,
    columns: columns(projects),
    rowHref: pageOf,
    empty: h(Empty, { title: "Nothing waits for you." }, "When a run asks a person with one of your roles, it stands here until somebody decides."),
  });
}
