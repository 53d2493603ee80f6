/** Who may do what in a project: the access list with every way in, the members to change, the teams' roles to read. */

import { api } from "../api.js";
import { Banner } from "../components/banner.js";
import { FormDialog, confirm } from "../components/dialog.js";
import { faultAt } from "../components/field.js";
import { Menu } from "../components/menu.js";
import { IN_ORDER, Pager, useList } from "../components/pager.js";
import { PersonField } from "../components/person-field.js";
import { RoleSelect, heldRole } from "../components/role-select.js";
import { Section } from "../components/section.js";
import { Empty } from "../components/states.js";
import { announce } from "../components/status.js";
import { Table } from "../components/table.js";
import { TextBlock } from "../components/text-block.js";
import { Time } from "../components/time.js";
import { Ways, membershipOf } from "../components/ways.js";
import { isTenantAdmin, may, mayGrant, ownWays } from "../permit.js";
import { href } from "../route.js";
import { me, refresh } from "../session.js";
import { fragment, h, tags, useState } from "../ui.js";

/** @import { AccessEntry, Membership, Project, TeamGrant } from "agent-runtime/types" */

const { a, button, details, div, p, span, summary } = tags;

/** Somebody, as both lists have them. @typedef {{ id: string, kind: string, name: string, role: string, isDirect: boolean }} Somebody */

/** @param {{ project: Project }} props */
export function Access({ project }) {
  const place = { projectId: project.id };
  if (!may("write", "project", place)) return h(OwnWays, { project });
  return h(WhoWorks, { project });
}

/** What a viewer may know: their own ways in. @param {{ project: Project }} props */
function OwnWays({ project }) {
  const own = ownWays(project.id);
  return h(
    Section,
    { title: "Your ways in", isFlush: true },
    own
      ? h(Table, { label: "Your ways into the project", rows: [own], rowKey: () => "own", columns: [{ title: "Your role", show: () => own.role }, { title: "By", show: () => h(Ways, { via: own.via }), wraps: true }] })
      : p(null, "You have no role of your own on it."),
    p({ class: "faint pad" }, "Its editors and admins see who else works in it."),
  );
}

/** @param {{ project: Project }} props */
function WhoWorks({ project }) {
  const { id } = project;
  const [isAdding, setAdding] = useState(false);
  const [changing, setChanging] = useState(/** @type {Somebody | null} */ (null));
  const access = useList(`access ${id}`, {}, (wanted, options) => api.projects.access.list(id, wanted, options), { order: null });
  const isOff = access.error?.serverCode === "project-access-unsupported";
  const members = useList(isOff ? `members ${id}` : null, {}, (wanted, options) => api.projects.memberships.list(id, wanted, options), { order: "asc" });
  const teams = useList(`team grants ${id}`, {}, (wanted, options) => api.projects.teamGrants.list(id, wanted, options), { cursor: "teams", order: "asc" });
  const changes = mayGrant("project", { projectId: id });
  const changed = async () => {
    await refresh();
    (isOff ? members : access).reload();
  };
  const remove = (/** @type {Somebody} */ one) =>
    confirm({
      title: `Remove ${one.name} from ${project.name}?`,
      says: "Their role of their own ends. What they have by a team, an org or the tenant stays.",
      act: "Remove",
      run: async () => {
        await api.projects.memberships.remove(id, one.id);
        announce("Removed");
        await changed();
      },
    });
  /** @param {Somebody} one @returns {import("../ui.js").Child} */
  const acts = (one) =>
    one.isDirect
      ? h(Menu, {
          label: `Change ${one.name}`,
          face: "Change",
          items: [
            ...(one.kind === "user" ? [{ title: "Change the role …", run: () => setChanging(one) }] : isTenantAdmin() ? [{ title: "Change the role on its page", href: href(`service-accounts/${one.id}`) }] : []),
            { title: "Remove …", isDanger: true, run: () => remove(one) },
          ],
        })
      : null;
  const add = changes ? button({ type: "button", class: "primary", onClick: () => setAdding(true) }, "Add a person") : null;
  return div(
    { class: "stack" },
    isOff ? h(Banner, { tone: "idle", title: "Who may do what is not checked here" }, p(null, `${access.error?.message} Set SVC_AUTHZ_API_URL to check each request. Until then these are the members alone.`)) : null,
    h(
      Section,
      { title: isOff ? "Members" : "Who has access", isFlush: true, actions: add },
      isOff
        ? h(Table, { label: "Members of the project", columns: memberColumns(changes ? acts : undefined), list: members, rowKey: (/** @type {Membership} */ one) => one.userId, empty: h(Empty, { title: "Nobody is a member.", action: add }) })
        : h(Table, { label: "Who has access to the project, owners first", columns: accessColumns(access.rows ?? [], changes ? acts : undefined), list: access, rowKey: (/** @type {AccessEntry} */ one) => one.principal.id }),
      h(Pager, { list: isOff ? members : access, ...IN_ORDER }),
    ),
    h(Section, { title: "Teams with a role", isFlush: true }, h(TeamGrants, { project, list: teams })),
    isAdding ? h(AddPerson, { project, onClose: () => setAdding(false), onAdded: changed }) : null,
    changing ? h(ChangeRole, { project, somebody: changing, onClose: () => setChanging(null), onChanged: changed }) : null,
  );
}

/** Somebody by name; with a link for who may open their page. @param {{ id: string, kind: string, name: string }} one */
function principal({ id, kind, name }) {
  const tag = [kind === "service-account" ? span({ class: "tag beside", key: "kind" }, "service account") : null, id === me.value?.id ? span({ class: "tag beside", key: "you" }, "you") : null];
  if (!isTenantAdmin()) return span(null, name, tag);
  return span(null, a({ href: href(`${kind === "service-account" ? "service-accounts" : "people"}/${id}`) }, name), tag);
}

/** @param {AccessEntry[]} rows @param {((one: Somebody) => any) | undefined} acts @returns {import("../components/table.js").Column[]} */
function accessColumns(rows, acts) {
  const somebody = (/** @type {AccessEntry} */ one) => ({ id: one.principal.id, kind: String(one.principal.kind), name: one.displayName, role: String(one.role), isDirect: Boolean(membershipOf(one.via)) });
  const direct = (/** @type {AccessEntry} */ one) => ({ ...somebody(one), role: String(/** @type {any} */ (membershipOf(one.via))?.role ?? one.role) });
  return [
    { title: "Name", show: (one) => principal(somebody(one)) },
    ...(rows.some((one) => one.primaryEmail) ? [{ title: "Email", show: (/** @type {AccessEntry} */ one) => one.primaryEmail ?? "–", from: /** @type {const} */ ("wide"), isSecond: true }] : []),
    { title: "Role", show: (one) => one.role },
    { title: "Ways in", show: (one) => h(Ways, { via: one.via }), wraps: true, from: "middle" },
    ...(acts ? [{ title: "What to do", isActs: true, show: (/** @type {AccessEntry} */ one) => acts(direct(one)) }] : []),
  ];
}

/** @param {((one: Somebody) => any) | undefined} acts @returns {import("../components/table.js").Column[]} */
function memberColumns(acts) {
  const somebody = (/** @type {Membership} */ one) => ({ id: one.userId, kind: String(one.kind), name: one.displayName, role: String(one.role), isDirect: true });
  return [
    { title: "Name", show: (one) => principal(somebody(one)) },
    { title: "Email", show: (one) => one.primaryEmail ?? "–", from: "wide", isSecond: true },
    { title: "Role", show: (one) => one.role },
    { title: "Since (UTC)", show: (one) => h(Time, { at: one.joinedAt, short: true }), from: "middle" },
    ...(acts ? [{ title: "What to do", isActs: true, show: (/** @type {Membership} */ one) => acts(somebody(one)) }] : []),
  ];
}

/** @param {{ project: Project, list: import("../components/pager.js").List<TeamGrant> }} props */
function TeamGrants({ project, list }) {
  const call = `POST /v1/projects/${project.id}/team-grants\n{"teamId": "<the team's id>", "role": "viewer"}`;
  return fragment(
    h(Table, {
      label: "Teams with a role on the project",
      list,
      rowKey: (/** @type {TeamGrant} */ one) => one.teamId,
      columns: [
        { title: "Team", show: (/** @type {TeamGrant} */ one) => a({ href: href(`teams/${one.teamId}`) }, one.teamName) },
        { title: "Role", show: (/** @type {TeamGrant} */ one) => one.role },
        { title: "Means", show: (/** @type {TeamGrant} */ one) => (one.role === "admin" ? "Everybody in the team. Its admins decide who that is." : "Everybody in the team."), wraps: true, from: "middle", isSecond: true },
        { title: "Since (UTC)", show: (/** @type {TeamGrant} */ one) => h(Time, { at: one.createdAt, short: true }), from: "wide", isSecond: true },
      ],
      empty: h(Empty, { title: "No team has a role on it." }),
    }),
    h(Pager, { list, cursor: "teams", ...IN_ORDER }),
    mayGrant("project", { projectId: project.id })
      ? details({ class: "by-the-api pad" }, summary(null, "A team's role is given, changed and taken by the API"), h(TextBlock, { label: "The call that gives a team a role", text: call }), p({ class: "faint" }, `PATCH and DELETE /v1/projects/${project.id}/team-grants/<the team's id> change and take it. A team is never an owner.`))
      : null,
  );
}

/** @param {{ project: Project, onClose: () => void, onAdded: () => Promise<void> }} props */
function AddPerson({ project, onClose, onAdded }) {
  const [email, setEmail] = useState("");
  const [role, setRole] = useState("viewer");
  return h(FormDialog, {
    title: `Add a person to ${project.name}`,
    act: "Add",
    isReady: Boolean(email.trim()),
    onClose,
    onSubmit: async () => {
      await api.projects.memberships.add(project.id, { email: email.trim(), role: /** @type {any} */ (role) });
      announce("Added");
      await onAdded();
    },
    fields: (error) =>
      fragment(
        h(PersonField, { value: email, onInput: setEmail, error }),
        h(RoleSelect, { scope: "project", value: role, onInput: setRole, error: faultAt(error, "role") ?? heldRole(error) }),
      ),
  });
}

/** @param {{ project: Project, somebody: Somebody, onClose: () => void, onChanged: () => Promise<void> }} props */
function ChangeRole({ project, somebody, onClose, onChanged }) {
  const [role, setRole] = useState(somebody.role === "member" ? "viewer" : somebody.role);
  return h(FormDialog, {
    title: `The role of ${somebody.name} on ${project.name}`,
    act: "Change the role",
    isReady: role !== somebody.role,
    onClose,
    onSubmit: async () => {
      await api.projects.memberships.updateRole(project.id, somebody.id, { role: /** @type {any} */ (role) });
      announce("Changed");
      await onChanged();
    },
    fields: (error) => h(RoleSelect, { scope: "project", value: role, onInput: setRole, error: faultAt(error, "role") }),
  });
}
