/**
 * Pages of a list, newest first: the cursor is in the address, so that a page can be pasted. `useList` reads the page that
 * the address names; `Pager` leads to the older, the newer and the newest one. `[` and `]` (of the shell) press them.
 */

import { left, query, setQuery } from "../route.js";
import { useResource } from "../resource.js";
import { h, tags } from "../ui.js";
import { Icon } from "./icon.js";

/** @import { Child } from "../ui.js" */

const { button, div, span } = tags;

/** Rows of a page, as section 8 has them for the audit. */
const PAGE_ROWS = 50;

/**
 * @template T
 * @typedef {object} List
 * @property {T[] | undefined} rows
 * @property {boolean} hasMore
 * @property {string | undefined} next
 * @property {boolean} isLoading
 * @property {boolean} isByItself nobody asked for this answer
 * @property {import("agent-runtime").AgentRuntimeError | undefined} error
 * @property {() => void} reload
 * @property {any} page the answer, for what it says beside its rows
 */

/**
 * A page of a list: `useList("runs", filters, (query, options) => api.runs.list(query, options), { live: ["run"] })`.
 * @template T
 * @param {string | null} name null: nothing is read
 * @param {Record<string, any>} filters what the call takes; what is empty is left out
 * @param {(query: any, options: any) => PromiseLike<{ data: T[], hasMore: boolean, nextCursor?: string | null }>} call
 * @param {{ live?: string[], cursor?: string, order?: "asc" | "desc" | null, limit?: number }} [options]
 *   `cursor`: the name in the address, where a page has two lists; `order` null: the route has its own
 * @returns {List<T>}
 */
export function useList(name, filters, call, { live, cursor = "cursor", order = "desc", limit = PAGE_ROWS } = {}) {
  const given = Object.fromEntries(Object.entries(filters).filter(([, value]) => value !== undefined && value !== ""));
  const wanted = { ...given, limit, ...(order ? { order } : {}), ...(query.value[cursor] ? { cursor: query.value[cursor] } : {}) };
  const key = name === null ? null : `${name} ${JSON.stringify(wanted)}`;
  const page = useResource(key, async (options) => call(wanted, options), { live });
  return {
    rows: page.data?.data,
    hasMore: page.data?.hasMore ?? false,
    next: page.data?.nextCursor ?? undefined,
    isLoading: page.isLoading,
    isByItself: page.isByItself,
    error: page.error,
    reload: page.reload,
    page: page.data,
  };
}

/** The words of a list whose first rows are the oldest: `h(Pager, { list, ...IN_ORDER })`. */
export const IN_ORDER = { newest: "First", older: "Further", newer: "Back" };

/** @param {{ list: List<any>, cursor?: string, newest?: string, older?: string, newer?: string, children?: Child }} props */
export function Pager({ list, cursor = "cursor", newest = "Newest", older = "Older", newer = "Newer", children }) {
  const current = query.value[cursor];
  if (!current && !list.hasMore) return children ? div({ class: "pager" }, children) : null;
  /** The cursors of the pages before this one. @type {string[]} */
  const before = left.value?.[cursor] ?? [];
  const previous = before.at(-1);
  return div(
    { class: "pager" },
    span(null, children),
    div(
      { class: "row" },
      current ? button({ type: "button", class: "plain", onClick: () => setQuery({ [cursor]: null }) }, newest) : null,
      button({ type: "button", "data-key": "[", "aria-disabled": previous === undefined ? "true" : undefined, onClick: () => previous !== undefined && setQuery({ [cursor]: previous }, { left: { [cursor]: before.slice(0, -1) } }) }, h(Icon, { name: "left" }), newer),
      button({ type: "button", "data-key": "]", "aria-disabled": list.hasMore ? undefined : "true", onClick: () => list.hasMore && setQuery({ [cursor]: list.next }, { left: { [cursor]: [...before, current ?? ""] } }) }, older, h(Icon, { name: "right" })),
    ),
  );
}
