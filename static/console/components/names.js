/** Names in place of ids, as far as the reader may list what they are of: people, projects, agents and the other kinds of `LISTS`. */

import { api, quiet } from "../api.js";
import { may } from "../permit.js";
import { href } from "../route.js";
import { useResource } from "../resource.js";
import { me } from "../session.js";
import { tags } from "../ui.js";
import { shortId } from "./id.js";

const { a, span } = tags;
const MOST = 200;

/**
 * @typedef {object} Named
 * @property {string} name
 * @property {string} kind as subjects and resources name it
 * @property {string} [email]
 * @property {string} href
 */

/** @type {Record<string, string>} */
export const PAGES = { user: "people", "service-account": "service-accounts", project: "projects", team: "teams", org: "orgs", agent: "agents", "model-provider": "model-providers", flow: "flows", run: "runs", conversation: "conversations", approval: "approvals" };

/** The lists, by the kind of what they list. @type {Record<string, (query: any, options: any) => PromiseLike<{ data: any[] }> & AsyncIterable<any>>} */
const LISTS = {
  user: (query, options) => api.users.list(query, options),
  "service-account": (query, options) => api.serviceAccounts.list(query, options),
  project: (query, options) => api.projects.list(query, options),
  team: (query, options) => api.teams.list(query, options),
  org: (query, options) => api.orgs.list(query, options),
  agent: (query, options) => api.agents.list(query, options),
  "model-provider": (query, options) => api.modelProviders.list(query, options),
};

/**
 * The names of the newest objects of these kinds, by id. One's own name is always known.
 * @param {("user" | "service-account" | "project" | "team" | "org" | "agent" | "model-provider")[]} kinds always the same ones of a component
 * @param {{ projectId?: string, isWhole?: boolean }} [options] `projectId`: of agents, those of this project; `isWhole`: of all, not of
 *   the newest alone
 * @returns {Map<string, Named>}
 */
export function useNames(kinds, { projectId, isWhole = false } = {}) {
  /** @type {Map<string, Named>} */
  const known = new Map();
  for (const kind of kinds) {
    const mayList = kind === "user" || kind === "service-account" ? may("admin", "tenant") : kind === "model-provider" ? may("read", "tenant") : true;
    const within = kind === "agent" && projectId ? { projectId } : {};
    const names = useResource(mayList ? `names ${kind} ${within.projectId ?? ""} ${isWhole}` : null, async (options) => {
      const list = /** @type {(typeof LISTS)[string]} */ (LISTS[kind])({ ...within, limit: MOST, order: "desc" }, { ...options, ...quiet });
      /** @type {any[]} */
      const rows = [];
      if (isWhole) for await (const row of list) rows.push(row);
      else rows.push(...(await list).data);
      return rows.map((row) => /** @type {[string, Named]} */ ([row.id, { name: row.displayName ?? row.name, kind, email: row.email ?? undefined, href: href(`${PAGES[kind]}/${row.id}`) }]));
    });
    for (const [id, named] of names.data ?? []) known.set(id, named);
  }
  const own = me.value;
  if (own && kinds.includes("user") && !known.has(own.id)) known.set(own.id, { name: own.displayName, kind: own.kind, href: href("me") });
  return known;
}

/** Somebody, or something, by name with a link; by the end of its id where the name is not known. @param {{ id: string | null | undefined, names: Map<string, Named> }} props */
export function Name({ id, names }) {
  if (!id) return span({ class: "faint" }, "–");
  const found = names.get(id);
  return found ? a({ href: found.href, title: id }, found.name) : span({ class: "mono", title: id }, shortId(id));
}
