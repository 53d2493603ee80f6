/** The projects that a form offers. */

import { api, quiet } from "../api.js";
import { may } from "../permit.js";
import { useResource } from "../resource.js";

/** Those in use that the reader may read, as options. @returns {{ value: string, label: string }[]} */
export function useProjects() {
  return (useRead(true) ?? []).map((one) => ({ value: one.id, label: one.name }));
}

/** @param {boolean} isOn */
function useRead(isOn) {
  return useResource(isOn ? "projects to choose" : null, async (options) => (await api.projects.list({ archived: false, limit: 200 }, { ...options, ...quiet })).data).data;
}

/**
 * Those in which the reader may do something: of a form that makes an object in one.
 * @param {"write" | "admin"} action
 * @param {string} [kind]
 * @returns {{ id: string, name: string }[]}
 */
export function useMayIn(action, kind = "project") {
  return (useRead(may(action, kind)) ?? []).filter((one) => may(action, kind, { projectId: one.id }));
}
