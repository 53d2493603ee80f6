/** Conversations: every one that the reader may read, newest first. */

import { api } from "../api.js";
import { Filters, clearFilters, filtered, isFiltered } from "../components/filters.js";
import { Icon } from "../components/icon.js";
import { Name, useNames } from "../components/names.js";
import { PageHead } from "../components/page-head.js";
import { Pager, useList } from "../components/pager.js";
import { State } from "../components/state.js";
import { Empty } from "../components/states.js";
import { Table } from "../components/table.js";
import { Time } from "../components/time.js";
import { shortId } from "../components/id.js";
import { may } from "../permit.js";
import { chosenProject, href, query } from "../route.js";
import { h, tags } from "../ui.js";

/** @import { Conversation } from "agent-runtime/types" */

const { a, button, div, span } = tags;

export default function Conversations() {
  const project = chosenProject.value;
  const [agents, people] = [useNames(["agent"]), useNames(["user", "service-account"])];
  const filters = [{ name: "agentId", label: "Agent", options: [...agents].map(([value, agent]) => ({ value, label: agent.name })) }];
  const list = useList("conversations", { projectId: project, ...filtered(filters) }, (wanted, options) => api.conversations.list(wanted, options), { live: ["conversation", "run"] });
  const begin = may("write", "conversation", { projectId: project || undefined }) ? a({ class: "button primary", href: href("conversations/new", { project, agent: query.value.agentId }) }, h(Icon, { name: "plus" }), "New conversation") : null;
  return div(
    null,
    h(PageHead, { title: "Conversations", actions: begin }),
    h(Filters, { filters }),
    h(Table, {
      label: "Conversations, newest first",
      list,
      rowHref: (/** @type {Conversation} */ row) => href(`conversations/${row.id}`),
      columns: [
        { title: "Title", show: (/** @type {Conversation} */ row) => row.title || `Conversation ${shortId(row.id)}` },
        { title: "State", show: (/** @type {Conversation} */ row) => (row.erasedAt ? h(State, { state: "erased" }) : row.erasureRequestedAt ? h(State, { state: "erasing", word: "being erased" }) : row.activeRunId ? h(State, { state: "running", word: "answers" }) : row.answerCut ? span({ title: "The newest answer was cut at its maximum length." }, h(Icon, { name: "warning" }), " answer cut") : span({ class: "faint" }, "–")) },
        { title: "Agent", show: (/** @type {Conversation} */ row) => fragmentOf(agents.get(row.agentId)?.name ?? shortId(row.agentId), row.version), from: "middle" },
        { title: "Begun (UTC)", show: (/** @type {Conversation} */ row) => h(Time, { at: row.createdAt, short: true }), from: "middle" },
        { title: "By", show: (/** @type {Conversation} */ row) => h(Name, { id: row.createdBy, names: people }), from: "wide", isSecond: true },
      ],
      empty: isFiltered(filters)
        ? h(Empty, { title: "No conversation with this agent.", action: button({ type: "button", onClick: () => clearFilters(filters) }, "Clear filters") })
        : h(Empty, { title: "No conversation yet.", action: begin }, "A conversation is a chat with an agent, which knows what was said before. Apps begin them by POST /v1/conversations."),
    }),
    h(Pager, { list }),
  );
}

/** @param {string} name @param {string | null | undefined} version */
function fragmentOf(name, version) {
  return span(null, name, version ? span({ class: "faint" }, ` ${version}`) : null);
}
