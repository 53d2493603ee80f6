/** The projects in which the reader may do something: what a form offers that makes an object in one. */

import { api, quiet } from "../api.js";
import { may } from "../permit.js";
import { useResource } from "../resource.js";

/**
 * @param {"write" | "admin"} action
 * @param {string} [kind]
 * @returns {{ id: string, name: string }[]}
 */
export function useMayIn(action, kind = "project") {
  const projects = useResource(may(action, kind) ? "projects to choose" : null, async (options) => (await api.projects.list({ archived: false, limit: 200 }, { ...options, ...quiet })).data);
  return (projects.data ?? []).filter((one) => may(action, kind, { projectId: one.id }));
}
