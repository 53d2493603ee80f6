/**
 * Whom to ask about what was refused (403): by name where the reader may see who decides, else by role.
 *
 * Guarantees: it goes by the reader's roles as they are now, and asks the server nothing that it would refuse. The page under it
 * stays as it is, with the form in which somebody has typed: it goes by the roles of before until one leaves it. Whoever has the
 * role, and was refused for the limits of a key, is told so.
 */

import { api, quiet } from "../api.js";
import { hasRole, may, rolesThatAllow } from "../permit.js";
import { useResource } from "../resource.js";
import { path } from "../route.js";
import { grantsOf, me, refresh } from "../session.js";
import { effect, fragment, h, tags } from "../ui.js";

/** @import { AgentRuntimeError } from "agent-runtime" */
/** @import { AccessEntry, Project } from "agent-runtime/types" */
/** @import { Roles } from "../permit.js" */

const { p } = tags;

const MOST_NAMED = 3;
const OPERATOR = "Ask whoever operates the server.";

/** What other codes than `permission-denied` say besides their sentence. @type {Record<string, string>} */
const OTHERS = {
  "key-project-mismatch": "Sign in with a key that is not limited to another project.",
  "approval-own-request": "Ask another reviewer with the role.",
  "csrf-origin-mismatch": "Open the console at the server's own address.",
  "identity-providers-operator-managed": OPERATOR,
  "host-access-denied": OPERATOR,
  "token-sign-in-off": OPERATOR,
  "token-sign-in-not-allowed": OPERATOR,
};

/** What lies in a project, and how it is read. @type {Record<string, (id: string, options: any) => PromiseLike<{ projectId: string }>>} */
const IN_PROJECT = {
  agent: (id, options) => api.agents.get(id, options),
  flow: (id, options) => api.flows.get(id, options),
  tool: (id, options) => api.tools.get(id, options),
  run: (id, options) => api.runs.get(id, options),
  conversation: (id, options) => api.conversations.get(id, options),
};

/** @param {string} kind */
const liesInProject = (kind) => kind === "project" || kind in IN_PROJECT;

/** Who gives the role, where no names are known. @type {Record<string, string>} */
const GIVERS = { org: "an admin of the org, or a tenant admin", team: "an admin of the team, or a tenant admin" };

/** @param {{ error: AgentRuntimeError }} props */
export function WhomToAsk({ error }) {
  const said = OTHERS[error.serverCode ?? ""];
  if (said) return p(null, said);
  return h(Denied, { action: String(error.details.action ?? ""), resource: String(error.details.resource ?? "") });
}

/** @param {{ action: string, resource: string }} of what was refused, on what */
function Denied({ action, resource }) {
  const at = resource.indexOf(":");
  const [kind, id] = [resource.slice(0, at), resource.slice(at + 1)];
  const isInProject = liesInProject(kind);
  const read = useResource(`who decides about ${resource}`, (options) => whoDecides(action, kind, id, { ...options, ...quiet }).catch(() => ({})), { fresh: true });
  if (kind === "approval") return p(null, "Ask a tenant admin for the reviewer role.");
  if (!read.data) return null;
  /** @type {{ roles?: Roles, project?: Project, deciders?: AccessEntry[] }} */
  const { roles, project, deciders = [] } = read.data;
  const place = project ? { projectId: project.id } : kind in GIVERS ? { [`${kind}Id`]: id } : undefined;
  if (roles && (project || !isInProject) && hasRole(action, kind, place, roles)) return p(null, "You have a role that allows it: the key that you signed in with is limited. Sign in with another one.");
  const takes = rolesThatAllow(action, kind);
  const names = deciders.slice(0, MOST_NAMED).map((one) => one.displayName);
  const of = project ? ` on the project ${project.name}` : "";
  return fragment(
    names.length
      ? p(null, `Ask ${listed(names)}, who ${names.length === 1 ? "decides" : "decide"}${isInProject ? of : " about the tenant"}.`)
      : p(null, `Ask ${isInProject ? `an owner or an admin of the project${project ? ` ${project.name}` : ""}, or a tenant admin` : (GIVERS[kind] ?? "a tenant admin")}.`),
    takes.length ? p(null, `It takes one of these roles${of}: ${takes.join(", ")}.`) : null,
  );
}

/**
 * The project that it lies in, and who decides there. Of what is the tenant's: its admins, as a project lists them in which the
 * reader works.
 * @param {string} action @param {string} kind @param {string} id @param {any} options
 */
async function whoDecides(action, kind, id, options) {
  const roles = await rolesNow(options);
  const isInProject = liesInProject(kind);
  const projectId = await whereDecided(action, kind, id, roles, options);
  if (!projectId || !may("read", "project", { projectId }, roles)) return { roles };
  const project = isInProject ? await api.projects.get(projectId, options) : undefined;
  if (!may("write", "project", { projectId }, roles)) return { roles, project };
  const { data } = await api.projects.access.list(projectId, { limit: 200 }, options);
  return { roles, project, deciders: data.filter((one) => one.principal.kind === "user" && (isInProject ? one.role === "owner" || one.role === "admin" : one.via.some((way) => way.kind === "tenant-admin"))) };
}

/** The session reads its roles again once one leaves the page. */
let isDue = false;

/** The reader's roles: one may have been taken meanwhile, which is why one is here. @param {any} options @returns {Promise<Roles>} */
async function rolesNow(options) {
  const [permissions, grants] = await Promise.all([api.me.permissions(options), grantsOf(me.value?.id ?? "", options)]);
  if (!isDue) {
    isDue = true;
    const here = path.value;
    const end = effect(() => {
      if (path.value === here) return;
      isDue = false;
      end();
      refresh().catch(() => {});
    });
  }
  return { permissions, grants };
}

/** The project that names who decides. @param {string} action @param {string} kind @param {string} id @param {Roles} roles @param {any} options */
async function whereDecided(action, kind, id, roles, options) {
  if (kind === "project") return id;
  const read = IN_PROJECT[kind];
  // What may not be read does not say where it lies.
  if (read && action !== "read") return (await read(id, options)).projectId;
  if (kind in GIVERS) return undefined;
  return roles.grants?.projects.find((one) => may("write", "project", { projectId: one.projectId }, roles))?.projectId;
}

/** "A", "A or B", "A, B or C". @param {string[]} names */
function listed(names) {
  return names.map((name, index) => `${index === 0 ? "" : index === names.length - 1 ? " or " : ", "}${name}`).join("");
}
