/**
 * Names of what rows know by its id alone: people, projects, agents.
 *
 * Guarantees: a name that the reader may not read is asked for by nobody; its id stands in its place. A list of names is
 * read once for a page, however many rows show it.
 */

import { api, quiet } from "../api.js";
import { isTenantAdmin } from "../permit.js";
import { useResource } from "../resource.js";
import { href } from "../route.js";
import { me } from "../session.js";
import { tags } from "../ui.js";
import { shortId } from "./id.js";

const { a, span } = tags;

/** Names of one page of a list: of more than these, some rows show ids. */
const MOST = 200;

/**
 * @param {string | null} key
 * @param {(options: import("agent-runtime").CallOptions) => Promise<{ id: string, name: string }[]>} load
 * @returns {Map<string, string>}
 */
function useNames(key, load) {
  const named = useResource(key, (options) => load({ ...options, ...quiet }));
  return new Map((named.data ?? []).map((one) => [one.id, one.name]));
}

/** The projects' names by their ids. */
export function useProjectNames() {
  return useNames("names of projects", async (options) => (await api.projects.list({ limit: MOST }, options)).data);
}

/** The agents' names by their ids. */
export function useAgentNames() {
  return useNames("names of agents", async (options) => (await api.agents.list({ limit: MOST }, options)).data);
}

/** The names of people and service accounts by their ids, for who may read them; and one's own. */
export function usePeopleNames() {
  const names = useNames(isTenantAdmin() ? "names of people" : null, async (options) => {
    const [people, accounts] = await Promise.all([api.users.list({ limit: MOST }, options), api.serviceAccounts.list({ limit: MOST }, options)]);
    return [...people.data.map((one) => ({ id: one.id, name: one.displayName })), ...accounts.data];
  });
  return names.set(me.value?.id ?? "", "You");
}

/** Somebody, by name where the reader knows it. @param {{ id: string | null | undefined, names: Map<string, string> }} props */
export function Person({ id, names }) {
  if (!id) return span({ class: "faint" }, "–");
  const name = names.get(id);
  return name ? span({ title: id }, name) : span({ class: "mono", title: id }, shortId(id));
}

/** A project, as a link to it. @param {{ id: string, names: Map<string, string> }} props */
export function ProjectLink({ id, names }) {
  return a({ href: href(`projects/${id}`), title: id }, names.get(id) ?? shortId(id));
}
