/**
 * What to offer: the only place that knows of roles. It goes by `GET /v1/identity/me/permissions`, which says what each role
 * allows on each kind of object, and by the caller's own roles; the server checks every call anyhow.
 */

import { grants, me, permissions } from "./session.js";

/**
 * Where an object lies.
 * @typedef {object} Place
 * @property {string} [projectId]
 * @property {string} [orgId]
 * @property {string} [teamId]
 */

/**
 * Whether the caller may do this on an object of a kind: `may("write", "run", { projectId })`. Without a place: whether
 * there may be one on which they may.
 * @param {"read" | "write" | "admin"} action
 * @param {string} kind such as `project`, `agent`, `run`, `team`, `tenant`
 * @param {Place} [place]
 */
export function may(action, kind, place) {
  const said = permissions.value;
  if (!said) return false;
  if (said.key.projectId && place?.projectId && said.key.projectId !== place.projectId) return false;
  const isTenantAdmin = said.tenantRole === "admin" && said.key.role !== "member";
  if (allows("tenant", isTenantAdmin ? "admin" : "member", kind, action)) return true;
  const has = grants.value;
  if (!has) return false;
  const inProjects = has.projects.filter((one) => !place?.projectId || one.projectId === place.projectId);
  if (!place?.orgId && !place?.teamId && inProjects.some((one) => allows("project", one.role, kind, action))) return true;
  const inOrgs = has.orgs.filter((one) => !place?.orgId || one.orgId === place.orgId);
  if (!place?.projectId && !place?.teamId && inOrgs.some(() => allows("org", "admin", kind, action))) return true;
  const inTeams = has.teams.filter((one) => !place?.teamId || one.teamId === place.teamId);
  return !place?.projectId && !place?.orgId && inTeams.some((one) => allows("team", one.role, kind, action));
}

/** @param {string} scope @param {string} role @param {string} kind @param {string} action */
function allows(scope, role, kind, action) {
  const found = permissions.value?.roles.find((one) => one.scope === scope && one.role === role);
  return Boolean(found?.allows[kind]?.includes(action));
}

/** Whether the caller's key has a capability: `holds("keys:write")`. @param {string} capability */
export function holds(capability) {
  return Boolean(permissions.value?.key.capabilities.includes(capability));
}

/** Whether the caller decides about the tenant. */
export function isTenantAdmin() {
  return may("admin", "tenant");
}

/** Whether anything may wait for the caller's decision. */
export function isReviewer() {
  return Boolean(permissions.value?.reviewerRoles.length);
}

/** Whether the caller sees teams: tenant admins, and who is in one. */
export function seesTeams() {
  return isTenantAdmin() || Boolean(grants.value?.teams.length);
}

/** Whether the caller is a person, not a service account. */
export function isPerson() {
  return me.value?.kind === "user";
}
