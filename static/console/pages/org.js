/** An org: its admins, who are admins of each of its projects, and projects to make in it. */

import { api } from "../api.js";
import { FormDialog, confirm } from "../components/dialog.js";
import { Id } from "../components/id.js";
import { Name, useNames } from "../components/names.js";
import { PageHead, Unread } from "../components/page-head.js";
import { IN_ORDER, Pager, useList } from "../components/pager.js";
import { PersonField } from "../components/person-field.js";
import { FactsLine, Section } from "../components/section.js";
import { Empty } from "../components/states.js";
import { announce } from "../components/status.js";
import { Table } from "../components/table.js";
import { Time } from "../components/time.js";
import { isTenantAdmin, may, mayGrant } from "../permit.js";
import { useResource } from "../resource.js";
import { href } from "../route.js";
import { me, refresh } from "../session.js";
import { h, tags, useState } from "../ui.js";
import { Rename } from "./project.js";
import { MakeProject } from "./projects.js";

/** @import { Org, OrgAdmin } from "agent-runtime/types" */

const { a, button, div, p, span } = tags;

/** @param {{ orgId: string }} props */
export default function OrgPage({ orgId }) {
  const org = useResource(`org ${orgId}`, (options) => api.orgs.get(orgId, options));
  const names = useNames(["user"]);
  const [open, setOpen] = useState(/** @type {"name" | "project" | "admin" | null} */ (null));
  const crumbs = [{ title: "Orgs", href: href("orgs") }];
  if (!org.data) return h(Unread, { title: "Org", crumbs, of: org, notFound: "No org has this id, or you may not read it." });
  const { name, createdAt, createdBy } = org.data;
  const [administers, changes] = [may("admin", "org", { orgId }), mayGrant("org", { orgId })];
  return div(
    null,
    h(PageHead, {
      title: name,
      crumbs,
      actions: administers
        ? [changes ? button({ key: "name", type: "button", onClick: () => setOpen("name") }, "Rename") : null, button({ key: "project", type: "button", class: "primary", onClick: () => setOpen("project") }, "Make a project in it")]
        : undefined,
    }),
    h(FactsLine, { facts: [["Made", h(Time, { at: createdAt })], ["By", h(Name, { id: createdBy, names })], ["Id", h(Id, { id: orgId, what: "org" })]] }),
    administers ? h(Admins, { org: org.data, changes, isAdding: open === "admin", onAdd: (isOn) => setOpen(isOn ? "admin" : null) }) : h(Section, { title: "Admins" }, p(null, "Its admins see who they are.")),
    open === "name" ? h(Rename, { title: `Rename ${name}`, name, onClose: () => setOpen(null), save: async (/** @type {string} */ to) => org.set(await api.orgs.update(orgId, { name: to })) }) : null,
    open === "project" ? h(MakeProject, { orgId, onClose: () => setOpen(null) }) : null,
  );
}

/** @param {{ org: Org, changes: boolean, isAdding: boolean, onAdd: (isOn: boolean) => void }} props */
function Admins({ org, changes, isAdding, onAdd }) {
  const list = useList(`org admins ${org.id}`, {}, (wanted, options) => api.orgs.admins.list(org.id, wanted, options), { order: "asc" });
  const remove = (/** @type {OrgAdmin} */ one) =>
    confirm({
      title: `Take ${org.name} from ${one.displayName}?`,
      says: "They are no admin of the org and its projects any more, as far as they are not by another way.",
      act: "Remove",
      run: async () => {
        await api.orgs.admins.remove(org.id, one.userId);
        announce("Removed");
        await refresh();
        list.reload();
      },
    });
  const add = changes ? button({ type: "button", onClick: () => onAdd(true) }, "Add an admin") : null;
  return h(
    Section,
    { title: "Admins", isFlush: true, actions: add },
    h(Table, {
      label: "Admins of the org",
      list,
      rowKey: (/** @type {OrgAdmin} */ one) => one.userId,
      columns: [
        { title: "Name", show: (/** @type {OrgAdmin} */ one) => span(null, isTenantAdmin() ? a({ href: href(`people/${one.userId}`) }, one.displayName) : one.displayName, one.userId === me.value?.id ? span({ class: "tag beside" }, "you") : null) },
        { title: "Email", show: (/** @type {OrgAdmin} */ one) => one.primaryEmail ?? "–", isSecond: true, from: "middle" },
        { title: "Since (UTC)", show: (/** @type {OrgAdmin} */ one) => h(Time, { at: one.joinedAt, short: true }), from: "wide", isSecond: true },
        ...(changes ? [{ title: "What to do", isActs: true, show: (/** @type {OrgAdmin} */ one) => button({ type: "button", "aria-label": `Remove ${one.displayName}`, onClick: () => remove(one) }, "Remove") }] : []),
      ],
      empty: h(Empty, { title: "No admin of its own.", action: add }, "Tenant admins decide about it."),
    }),
    h(Pager, { list, ...IN_ORDER }),
    isAdding ? h(AddAdmin, { org, onClose: () => onAdd(false), onAdded: list.reload }) : null,
  );
}

/** @param {{ org: Org, onClose: () => void, onAdded: () => void }} props */
function AddAdmin({ org, onClose, onAdded }) {
  const [email, setEmail] = useState("");
  return h(FormDialog, {
    title: `Add an admin of ${org.name}`,
    act: "Add",
    isReady: Boolean(email.trim()),
    onClose,
    onSubmit: async () => {
      await api.orgs.admins.add(org.id, { email: email.trim() });
      announce("Added");
      onAdded();
    },
    fields: (error) => h(PersonField, { value: email, onInput: setEmail, error }),
  });
}
