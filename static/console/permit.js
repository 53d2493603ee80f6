/**
 * What to offer: the only place that knows of roles. It goes by `GET /v1/identity/me/permissions`, which says what each role
 * allows on each kind of object, and by the caller's own roles; the server checks every call anyhow.
 */

import { grants, permissions } from "./session.js";

/** @import { Grants, Permissions, Way } from "agent-runtime/types" */

/**
 * Where an object lies.
 * @typedef {object} Place
 * @property {string} [projectId]
 * @property {string} [orgId]
 * @property {string} [teamId]
 */

/**
 * The caller's roles, and what their key is limited to.
 * @typedef {{ permissions: Permissions | null, grants: Grants | null }} Roles
 */

/** As the session knows them. @returns {Roles} */
const known = () => ({ permissions: permissions.value, grants: grants.value });

/**
 * Whether the caller may do this on an object of a kind: `may("write", "run", { projectId })`. Without a place: whether
 * there may be one on which they may.
 * @param {"read" | "write" | "admin"} action
 * @param {string} kind such as `project`, `agent`, `run`, `team`, `tenant`
 * @param {Place} [place]
 * @param {Roles} [roles]
 */
export function may(action, kind, place, roles = known()) {
  const key = roles.permissions?.key;
  if (!key || (key.projectId && place?.projectId && key.projectId !== place.projectId)) return false;
  return hasRole(action, kind, place, roles, key.role !== "member");
}

/**
 * Whether a role of the caller's own allows it, whatever their key is limited to.
 * @param {string} action @param {string} kind @param {Place} [place] @param {Roles} [roles]
 * @param {boolean} [isAdmin] a role as tenant admin counts
 */
export function hasRole(action, kind, place, { permissions: said, grants: has } = known(), isAdmin = true) {
  if (!said) return false;
  if (allows("tenant", said.tenantRole === "admin" && isAdmin ? "admin" : "member", kind, action)) return true;
  if (!has) return false;
  const ways = has.projects.filter((one) => !place?.projectId || one.projectId === place.projectId).flatMap((one) => one.via);
  if (!place?.orgId && !place?.teamId && ways.some((way) => gives(way, kind, action))) return true;
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

/** What a way into a project gives. A tenant admin's gives it by the tenant, if the key lets it. @param {Way} way @param {string} kind @param {string} action */
function gives(way, kind, action) {
  if (way.kind === "org-admin") return allows("org", "admin", kind, action);
  return "role" in way && allows("project", way.role, kind, action);
}

/**
 * Whether the caller may change who may do what on such an object: `mayGrant("project", { projectId })`.
 * @param {string} kind
 * @param {Place} [place]
 */
export function mayGrant(kind, place) {
  return may("admin", kind, place) && holds("access:write");
}

/** The caller's own ways into a project, and the highest role that they give. @param {string} projectId @returns {{ role: string, via: Way[] } | undefined} */
export function ownWays(projectId) {
  const found = grants.value?.projects.find((one) => one.projectId === projectId);
  if (found) return found;
  return grants.value?.tenantRole === "admin" ? { role: "admin", via: [{ kind: "tenant-admin" }] } : undefined;
}

/** The caller's own role in a team. @param {string} teamId */
export function ownTeamRole(teamId) {
  return grants.value?.teams.find((one) => one.teamId === teamId)?.role;
}

/** The roles that there are in a scope, the highest first: `rolesIn("project")`. @param {"tenant" | "team" | "project"} scope */
export function rolesIn(scope) {
  return permissions.value?.roles.filter((one) => one.scope === scope).map((one) => one.role) ?? [];
}

/** Which roles allow an action on a kind of object, in words: "tenant admin, project editor". @param {string} action @param {string} kind */
export function rolesThatAllow(action, kind) {
  const found = permissions.value?.roles.filter((one) => one.allows[kind]?.includes(/** @type {any} */ (action))) ?? [];
  return found.map((one) => `${one.scope} ${one.role}`);
}

/** Whether the caller's key has a capability: `holds("keys:write")`. @param {string} capability */
export function holds(capability) {
  return Boolean(permissions.value?.key.capabilities.includes(capability));
}

/** What the caller's key is limited to, and so what it may give to another. */
export function keyLimits() {
  return permissions.value?.key;
}

/** Whether the caller decides about the tenant. */
export function isTenantAdmin() {
  return may("admin", "tenant");
}

/** That the server's license ends, for whom the server tells. */
export function licenseWarning() {
  return permissions.value?.licenseWarning;
}

/** Whether anything may wait for the caller's decision. */
export function isReviewer() {
  return Boolean(permissions.value?.reviewerRoles.length);
}

/** Whether the caller sees teams: tenant admins, and who is in one. */
export function seesTeams() {
  return isTenantAdmin() || Boolean(grants.value?.teams.length);
}
