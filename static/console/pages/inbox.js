/** The inbox: what waits for the reader's decision, first what is assigned to them; what ends first leads. */

import { api } from "../api.js";
import { useNames } from "../components/names.js";
import { PageHead } from "../components/page-head.js";
import { Pager, useList } from "../components/pager.js";
import { Section } from "../components/section.js";
import { Empty } from "../components/states.js";
import { Table } from "../components/table.js";
import { Time } from "../components/time.js";
import { Until } from "../components/until.js";
import { counted } from "../number.js";
import { href } from "../route.js";
import { h, tags } from "../ui.js";

/** @import { InboxItem } from "agent-runtime/types" */
/** @import { Named } from "../components/names.js" */

const { a, div } = tags;

/** @param {Map<string, Named>} projects @returns {import("../components/table.js").Column[]} */
const columns = (projects) => [
  { title: "What is asked", show: (/** @type {InboxItem} */ item) => item.title },
  { title: "Ends", show: (/** @type {InboxItem} */ item) => h(Until, { at: item.expiresAt }) },
  { title: "Project", show: (/** @type {InboxItem} */ item) => projects.get(item.projectId)?.name ?? "–", from: "middle" },
  { title: "Waits since (UTC)", show: (/** @type {InboxItem} */ item) => h(Time, { at: item.since, short: true }), from: "wide", isSecond: true },
];

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
  return div(
    null,
    h(PageHead, { title: "Inbox", lead, actions: a({ class: "button", href: href("approvals", { status: "approved" }) }, "What was decided") }),
    rows && rows.length
      ? div(
          { class: "stack" },
          mine.length ? h(Section, { title: "Assigned to you" }, h(Items, { label: "Assigned to you, what ends first on top", rows: mine, projects, list })) : null,
          others.length ? h(Section, { title: mine.length ? "For anybody with your roles" : "Waiting" }, h(Items, { label: "For anybody with your roles, what ends first on top", rows: others, projects, list })) : null,
        )
      : h(Items, { label: "What waits for you", rows, projects, list }),
    h(Pager, { list, newest: "First page" }),
  );
}

/** @param {{ label: string, rows: InboxItem[] | undefined, projects: Map<string, Named>, list: any }} props */
function Items({ label, rows, projects, list }) {
  return h(Table, {
    label,
    list,
    rows,
    columns: columns(projects),
    rowHref: (/** @type {InboxItem} */ item) => href(`approvals/${item.id}`),
    empty: h(Empty, { title: "Nothing waits for you." }, "When a run asks a person with one of your roles, it stands here until somebody decides."),
  });
}
