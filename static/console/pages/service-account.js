/** A service account: its keys, and its roles on projects, which are changed here (specification 2.1). */

import { api } from "../api.js";
import { ApiKeys, MakeKey } from "../components/api-keys.js";
import { Banner } from "../components/banner.js";
import { FormDialog, confirm } from "../components/dialog.js";
import { Select, faultAt } from "../components/field.js";
import { Id } from "../components/id.js";
import { Menu } from "../components/menu.js";
import { Name, useNames } from "../components/names.js";
import { PageHead, Unread } from "../components/page-head.js";
import { Pager, useList } from "../components/pager.js";
import { useProjects } from "../components/projects-to-choose.js";
import { RoleSelect } from "../components/role-select.js";
import { FactsLine, Section } from "../components/section.js";
import { State } from "../components/state.js";
import { Empty, Loaded } from "../components/states.js";
import { announce } from "../components/status.js";
import { Table } from "../components/table.js";
import { Time } from "../components/time.js";
import { Ways, membershipOf } from "../components/ways.js";
import { holds, mayGrant } from "../permit.js";
import { useResource } from "../resource.js";
import { href } from "../route.js";
import { grantsOf } from "../session.js";
import { fragment, h, tags, useState } from "../ui.js";
import { Rename } from "./project.js";

/** @import { Grants, ProjectGrant, ServiceAccount } from "agent-runtime/types" */

const { a, button, div, p } = tags;

/** @param {{ serviceAccountId: string }} props */
export default function ServiceAccountPage({ serviceAccountId: id }) {
  const account = useResource(`service account ${id}`, (options) => api.serviceAccounts.get(id, options));
  const crumbs = [{ title: "Service accounts", href: href("service-accounts") }];
  if (!account.data) return h(Unread, { title: "Service account", crumbs, of: account, notFound: "No service account has this id." });
  return h(Known, { account: account.data, crumbs, onChange: account.set, key: id });
}

/** @param {{ account: ServiceAccount, crumbs: { title: string, href: string }[], onChange: (account: ServiceAccount) => void }} props */
function Known({ account, crumbs, onChange }) {
  const names = useNames(["user", "project"]);
  const grants = useResource(`grants ${account.id}`, (options) => grantsOf(account.id, options));
  const keys = useList(`keys of ${account.id}`, {}, (wanted, options) => api.serviceAccounts.tokens.list(account.id, wanted, options));
  const [open, setOpen] = useState(/** @type {"name" | "key" | null} */ (null));
  const isActive = !account.deactivatedAt;
  const changes = mayGrant("tenant") && isActive;
  const mints = holds("keys:write") && isActive;
  const deactivate = () =>
    confirm({
      title: `Deactivate ${account.name}?`,
      says: "At once and for good: every key of it is refused, and its roles end. What it started goes on.",
      act: "Deactivate",
      typed: account.name,
      run: async () => {
        onChange(await api.serviceAccounts.deactivate(account.id));
        announce("Deactivated");
        keys.reload();
        grants.reload();
      },
    });
  return div(
    null,
    h(PageHead, {
      title: account.name,
      crumbs,
      state: h(State, { state: isActive ? "active" : "deactivated" }),
      actions: changes ? [h(Menu, { key: "more", label: "More acts", face: "More", items: [{ title: "Deactivate …", isDanger: true, run: deactivate }] }), button({ key: "name", type: "button", onClick: () => setOpen("name") }, "Rename")] : undefined,
    }),
    isActive ? null : div({ class: "failure-on-top" }, h(Banner, { tone: "idle", title: "It can do nothing any more" }, p(null, "Its keys and roles have ended."))),
    h(FactsLine, {
      facts: [
        ["Teams", grants.data?.teams.length ? grants.data.teams.map((one) => a({ key: one.teamId, class: "each", href: href(`teams/${one.teamId}`) }, one.teamName)) : "In none"],
        ["Added", h(Time, { at: account.createdAt })],
        ["By", account.createdBy ? h(Name, { id: account.createdBy, names }) : "–"],
        ["Deactivated", isActive ? undefined : h(Time, { at: account.deactivatedAt })],
        ["Access audit", a({ href: href("audit", { actorSubject: `user:${account.id}` }) }, "Its decisions")],
        ["Id", h(Id, { id: account.id, what: "service account" })],
      ],
    }),
    div(
      { class: "stack" },
      h(
        Section,
        { title: "Keys", isFlush: true, actions: mints ? button({ type: "button", class: "primary", onClick: () => setOpen("key") }, "Make a key") : null },
        h(ApiKeys, { label: `Keys of ${account.name}`, list: keys, names, mayWrite: mints, onRevoke: (token) => api.serviceAccounts.tokens.revoke(account.id, token.id), empty: isActive ? "It has no key yet." : "It has no key." }),
        h(Pager, { list: keys }),
      ),
      h(Loaded, { of: grants, show: (/** @type {Grants} */ has) => h(Projects, { account, grants: has, changes, onChanged: grants.reload }) }),
    ),
    open === "name" ? h(Rename, { title: `Rename ${account.name}`, name: account.name, onClose: () => setOpen(null), save: async (/** @type {string} */ name) => onChange(await api.serviceAccounts.update(account.id, { name })) }) : null,
    open === "key"
      ? h(MakeKey, {
          whose: `A key of ${account.name}`,
          isAccount: true,
          projects: (grants.data?.projects ?? []).map((one) => ({ value: one.projectId, label: one.projectName })),
          mint: (body) => api.serviceAccounts.tokens.create(account.id, body),
          onClose: () => setOpen(null),
          onMade: keys.reload,
        })
      : null,
  );
}

/** @param {{ account: ServiceAccount, grants: Grants, changes: boolean, onChanged: () => void }} props */
function Projects({ account, grants, changes, onChanged }) {
  const [isAdding, setAdding] = useState(false);
  const [changing, setChanging] = useState(/** @type {ProjectGrant | null} */ (null));
  const remove = (/** @type {ProjectGrant} */ one) =>
    confirm({
      title: `Remove ${account.name} from ${one.projectName}?`,
      says: "Its role of its own ends, and what it has by a team stays. Its keys that are limited to the project can do nothing without a role on it.",
      act: "Remove",
      run: async () => {
        await api.projects.memberships.remove(one.projectId, account.id);
        announce("Removed");
        onChanged();
      },
    });
  const acts = (/** @type {ProjectGrant} */ one) =>
    membershipOf(one.via) ? h(Menu, { label: `Change the role on ${one.projectName}`, face: "Change", items: [{ title: "Change the role …", run: () => setChanging(one) }, { title: "Remove …", isDanger: true, run: () => remove(one) }] }) : null;
  const add = changes ? button({ type: "button", onClick: () => setAdding(true) }, "Give a role") : null;
  return h(
    Section,
    { title: "Projects", isFlush: true, actions: add },
    h(Table, {
      label: `Projects that ${account.name} has a role on`,
      rows: grants.projects,
      rowKey: (/** @type {ProjectGrant} */ one) => one.projectId,
      columns: [
        { title: "Project", show: (/** @type {ProjectGrant} */ one) => a({ href: href(`projects/${one.projectId}`) }, one.projectName) },
        { title: "Role", show: (/** @type {ProjectGrant} */ one) => one.role },
        { title: "Ways in", show: (/** @type {ProjectGrant} */ one) => h(Ways, { via: one.via }), wraps: true, from: "middle" },
        ...(changes ? [{ title: "What to do", isActs: true, show: acts }] : []),
      ],
      empty: h(Empty, { title: "It has no role on a project.", action: add }, "Without one its keys can do nothing in projects."),
    }),
    isAdding ? h(GiveRole, { account, held: grants.projects.map((one) => one.projectId), onClose: () => setAdding(false), onChanged }) : null,
    changing ? h(ChangeRole, { account, grant: changing, onClose: () => setChanging(null), onChanged }) : null,
  );
}

/** @param {{ account: ServiceAccount, held: string[], onClose: () => void, onChanged: () => void }} props */
function GiveRole({ account, held, onClose, onChanged }) {
  const [projectId, setProject] = useState("");
  const [role, setRole] = useState("viewer");
  const options = useProjects().filter((one) => !held.includes(one.value));
  return h(FormDialog, {
    title: `Give ${account.name} a role on a project`,
    act: "Give the role",
    isReady: Boolean(projectId),
    onClose,
    onSubmit: async () => {
      await api.projects.memberships.add(projectId, { userId: account.id, role: /** @type {any} */ (role) });
      announce("Given");
      onChanged();
    },
    fields: (error) =>
      fragment(
        h(Select, { label: "Project", value: projectId, onInput: setProject, options, placeholder: "Choose one" }),
        h(RoleSelect, { scope: "project", without: ["owner"], value: role, onInput: setRole, hint: "An owner is a person.", error: faultAt(error, "role") }),
      ),
  });
}

/** @param {{ account: ServiceAccount, grant: ProjectGrant, onClose: () => void, onChanged: () => void }} props */
function ChangeRole({ account, grant, onClose, onChanged }) {
  const before = String(/** @type {any} */ (membershipOf(grant.via))?.role ?? grant.role);
  const [role, setRole] = useState(before === "member" ? "viewer" : before);
  return h(FormDialog, {
    title: `The role of ${account.name} on ${grant.projectName}`,
    act: "Change the role",
    isReady: role !== before,
    onClose,
    onSubmit: async () => {
      await api.projects.memberships.updateRole(grant.projectId, account.id, { role: /** @type {any} */ (role) });
      announce("Changed");
      onChanged();
    },
    fields: (error) => h(RoleSelect, { scope: "project", without: ["owner"], value: role, onInput: setRole, hint: "An owner is a person.", error: faultAt(error, "role") }),
  });
}
