/** A choice of one of the roles that the server knows in a scope, with what each is for. A role of a later server has its name alone. */

import { rolesIn } from "../permit.js";
import { h } from "../ui.js";
import { Select } from "./field.js";

/** @type {Record<string, string>} */
const WORDS = {
  "tenant member": "works by roles on projects and teams",
  "tenant admin": "decides about everything in the tenant",
  "project viewer": "reads it",
  "project editor": "runs agents and flows, works on versions",
  "project admin": "promotes versions, changes who works in it",
  "project owner": "an admin who answers for it",
  "team member": "has the roles that the team has",
  "team admin": "also decides who is in it",
};

/** Why a role is not given: whoever is in already keeps theirs. @param {import("agent-runtime").AgentRuntimeError | undefined} error */
export function heldRole(error) {
  return error?.serverCode === "membership-exists" ? `They are ${error.details.role} here already. Their role is changed in the list.` : undefined;
}

/** @param {{ scope: "tenant" | "team" | "project", value: string, onInput: (role: any) => void, label?: string, hint?: string, error?: string, without?: string[] }} props `without`: roles that are not given here */
export function RoleSelect({ scope, value, onInput, label = "Role", hint, error, without = [] }) {
  // The least is the first.
  const roles = rolesIn(scope).filter((role) => !without.includes(role)).reverse();
  return h(Select, { label, hint, error, value, onInput, options: roles.map((role) => ({ value: role, label: WORDS[`${scope} ${role}`] ? `${role}: ${WORDS[`${scope} ${role}`]}` : role })) });
}
