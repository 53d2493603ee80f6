/**
 * A team: who is in it, and the projects that it has a role on (specification 2.3, 4.4, 5.4).
 *
 * Who is in it without being its admin sees the team, and not who else is in it. Its admins change and remove who is in it; to
 * add somebody takes a tenant admin here, since finding a person reads the tenant's people. Projects' roles are given, and a
 * team is deleted, by the API alone.
 */

import { api } from "../api.js";
import { FormDialog, confirm } from "../components/dialog.js";
import { Field, Select, faultAt } from "../components/field.js";
import { Id } from "../components/id.js";
import { Menu } from "../components/menu.js";
import { Name, useNames } from "../components/names.js";
import { PageHead, Unread } from "../components/page-head.js";
import { IN_ORDER, Pager, useList } from "../components/pager.js";
import { PersonField } from "../components/person-field.js";
import { RoleSelect, heldRole } from "../components/role-select.js";
import { FactsLine, Section } from "../components/section.js";
import { Empty } from "../components/states.js";
import { State } from "../components/state.js";
import { announce } from "../components/status.js";
import { Table } from "../components/table.js";
import { Time } from "../components/time.js";
import { isTenantAdmin, may, mayGrant, ownTeamRole } from "../permit.js";
import { useResource } from "../resource.js";
import { href } from "../route.js";
import { me, refresh } from "../session.js";
import { fragment, h, tags, useState } from "../ui.js";

/** @import { Team, TeamGrant, TeamMembership } from "agent-runtime/types" */

const { a, button, code, div, p, span } = tags;

/** @param {{ teamId: string }} props */
export default function TeamPage({ teamId }) {
  const team = useResource(`team ${teamId}`, (options) => api.teams.get(teamId, options));
  const names = useNames(["user"]);
  const [isChanging, setChanging] = useState(false);
  const crumbs = [{ title: "Teams", href: href("teams") }];
  if (!team.data) return h(Unread, { title: "Team", crumbs, of: team, notFound: "No team has this id, or you are not in it." });
  const { name, slug, description, createdAt, createdBy } = team.data;
  const administers = may("admin", "team", { teamId });
  return div(
    null,
    h(PageHead, { title: name, crumbs, lead: description || undefined, actions: mayGrant("team", { teamId }) ? button({ type: "button", onClick: () => setChanging(true) }, "Change") : null }),
    h(FactsLine, {
      facts: [
        ["You in it", ownTeamRole(teamId) ?? (isTenantAdmin() ? "admin, as a tenant admin" : "–")],
        ["Slug", code(null, slug)],
        ["Made", h(Time, { at: createdAt })],
        ["By", h(Name, { id: createdBy, names })],
        ["Id", h(Id, { id: teamId, what: "team" })],
      ],
    }),
    div(
      { class: "stack" },
      administers ? h(Members, { team: team.data, key: teamId }) : h(Section, { title: "Members" }, p(null, "You are in this team. Who else is in it, its admins see.")),
      administers ? h(Grants, { team: team.data, key: `grants ${teamId}` }) : null,
    ),
    isChanging ? h(Change, { team: team.data, onClose: () => setChanging(false), onChange: team.set }) : null,
  );
}

/** @param {{ team: Team }} props */
function Members({ team }) {
  const list = useList(`team members ${team.id}`, {}, (wanted, options) => api.teams.memberships.list(team.id, wanted, options), { order: "asc" });
  const [isAdding, setAdding] = useState(false);
  const [changing, setChanging] = useState(/** @type {TeamMembership | null} */ (null));
  const changes = mayGrant("team", { teamId: team.id });
  const changed = async () => {
    await refresh();
    list.reload();
  };
  const remove = (/** @type {TeamMembership} */ one) =>
    confirm({
      title: `Remove ${one.displayName} from ${team.name}?`,
      says: "What they have by the team ends at once: its roles on projects. What they have by other ways stays.",
      act: "Remove",
      run: async () => {
        await api.teams.memberships.remove(team.id, one.userId);
        announce("Removed");
        await changed();
      },
    });
  const acts = (/** @type {TeamMembership} */ one) =>
    h(Menu, { label: `Change ${one.displayName}`, face: "Change", items: [{ title: "Change the role …", run: () => setChanging(one) }, { title: "Remove …", isDanger: true, run: () => remove(one) }] });
  // Finding a person reads the tenant's people.
  const add = mayGrant("tenant") ? button({ type: "button", class: "primary", onClick: () => setAdding(true) }, "Add to the team") : null;
  return h(
    Section,
    { title: "Members", isFlush: true, actions: add },
    h(Table, {
      label: "Who is in the team",
      list,
      rowKey: (/** @type {TeamMembership} */ one) => one.userId,
      columns: [
        { title: "Name", show: (/** @type {TeamMembership} */ one) => span(null, nameOf(one), one.kind === "service-account" ? span({ class: "tag beside" }, "service account") : null, one.userId === me.value?.id ? span({ class: "tag beside" }, "you") : null, one.deactivatedAt ? h(State, { state: "deactivated" }) : null) },
        { title: "Role", show: (/** @type {TeamMembership} */ one) => one.role },
        { title: "By", show: (/** @type {TeamMembership} */ one) => (one.identityProviderId ? "A group of an identity provider" : "By hand"), from: "wide", isSecond: true },
        { title: "Since (UTC)", show: (/** @type {TeamMembership} */ one) => h(Time, { at: one.joinedAt, short: true }), from: "middle", isSecond: true },
        ...(changes ? [{ title: "What to do", isActs: true, show: acts }] : []),
      ],
      empty: h(Empty, { title: "Nobody is in it.", action: add }),
    }),
    h(Pager, { list, ...IN_ORDER }),
    changes && !add ? p({ class: "faint pad" }, "A tenant admin adds people here, since that reads the tenant's people.") : null,
    isAdding ? h(Add, { team, onClose: () => setAdding(false), onAdded: changed }) : null,
    changing ? h(ChangeRole, { team, member: changing, onClose: () => setChanging(null), onChanged: changed }) : null,
  );
}

/** @param {TeamMembership} one */
function nameOf(one) {
  return isTenantAdmin() ? a({ href: href(`${one.kind === "service-account" ? "service-accounts" : "people"}/${one.userId}`) }, one.displayName) : one.displayName;
}

/** @param {{ team: Team }} props */
function Grants({ team }) {
  const list = useList(`grants of team ${team.id}`, {}, (wanted, options) => api.teams.projectGrants.list(team.id, wanted, options), { cursor: "projects", order: "asc" });
  return h(
    Section,
    { title: "Projects", isFlush: true },
    h(Table, {
      label: "Projects that the team has a role on",
      list,
      rowKey: (/** @type {TeamGrant} */ one) => one.projectId,
      columns: [
        { title: "Project", show: (/** @type {TeamGrant} */ one) => (may("read", "project", { projectId: one.projectId }) ? a({ href: href(`projects/${one.projectId}/access`) }, one.projectName) : one.projectName) },
        { title: "Role of the team", show: (/** @type {TeamGrant} */ one) => one.role },
        { title: "Since (UTC)", show: (/** @type {TeamGrant} */ one) => h(Time, { at: one.createdAt, short: true }), from: "middle", isSecond: true },
      ],
      empty: h(Empty, { title: "No project has given it a role." }, "A project's admin gives it one by the API: POST /v1/projects/<id>/team-grants."),
    }),
    h(Pager, { list, cursor: "projects", ...IN_ORDER }),
  );
}

/** @param {{ team: Team, onClose: () => void, onChange: (team: Team) => void }} props */
function Change({ team, onClose, onChange }) {
  const [name, setName] = useState(team.name);
  const [description, setDescription] = useState(team.description ?? "");
  return h(FormDialog, {
    title: `Change ${team.name}`,
    act: "Save",
    isReady: Boolean(name.trim()),
    onClose,
    onSubmit: async () => {
      onChange(await api.teams.update(team.id, { name: name.trim(), description: description.trim() }));
      announce("Saved");
    },
    fields: (error) =>
      fragment(
        h(Field, { label: "Name", hint: `The slug stays ${team.slug}.`, value: name, onInput: setName, most: 200, isRequired: true, autofocus: true, autoComplete: "off", error: faultAt(error, "name") }),
        h(Field, { label: "About", value: description, onInput: setDescription, isRequired: false, lines: 2, error: faultAt(error, "description") }),
      ),
  });
}

/** @param {{ team: Team, onClose: () => void, onAdded: () => Promise<void> }} props */
function Add({ team, onClose, onAdded }) {
  const [kind, setKind] = useState("person");
  const [email, setEmail] = useState("");
  const [account, setAccount] = useState("");
  const [role, setRole] = useState("member");
  const accounts = useResource("accounts to choose", (options) => api.serviceAccounts.list({ status: "active", limit: 200, order: "desc" }, options));
  const options = (accounts.data?.data ?? []).map((one) => ({ value: one.id, label: one.name }));
  const isPerson = kind === "person";
  return h(FormDialog, {
    title: `Add to ${team.name}`,
    act: "Add",
    isReady: Boolean(isPerson ? email.trim() : account),
    onClose,
    onSubmit: async () => {
      await api.teams.memberships.add(team.id, { ...(isPerson ? { email: email.trim() } : { userId: account }), role });
      announce("Added");
      await onAdded();
    },
    fields: (error) =>
      fragment(
        options.length ? h(Select, { label: "Who", value: kind, onInput: setKind, options: [{ value: "person", label: "A person" }, { value: "account", label: "A service account" }] }) : null,
        isPerson
          ? h(PersonField, { value: email, onInput: setEmail, error })
          : h(Select, { label: "Service account", value: account, onInput: setAccount, options, placeholder: "Choose one" }),
        h(RoleSelect, { scope: "team", value: role, onInput: setRole, error: faultAt(error, "role") ?? heldRole(error) }),
      ),
  });
}

/** @param {{ team: Team, member: TeamMembership, onClose: () => void, onChanged: () => Promise<void> }} props */
function ChangeRole({ team, member, onClose, onChanged }) {
  const [role, setRole] = useState(String(member.role));
  return h(FormDialog, {
    title: `The role of ${member.displayName} in ${team.name}`,
    act: "Change the role",
    isReady: role !== member.role,
    onClose,
    onSubmit: async () => {
      await api.teams.memberships.updateRole(team.id, member.userId, { role });
      announce("Changed");
      await onChanged();
    },
    fields: (error) => h(RoleSelect, { scope: "team", value: role, onInput: setRole, error: faultAt(error, "role") }),
  });
}
