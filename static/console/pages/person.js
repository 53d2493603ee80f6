/** A person: their role in the tenant, what they may do and by which way, where they are signed in; and the end of all that. */

import { api } from "../api.js";
import { Banner } from "../components/banner.js";
import { FormDialog, confirm } from "../components/dialog.js";
import { Field, faultAt } from "../components/field.js";
import { GrantsOf } from "../components/grants.js";
import { Id } from "../components/id.js";
import { Menu } from "../components/menu.js";
import { Name, useNames } from "../components/names.js";
import { PageHead, Unread } from "../components/page-head.js";
import { IN_ORDER, Pager, useList } from "../components/pager.js";
import { useActs } from "../components/acts.js";
import { RoleSelect } from "../components/role-select.js";
import { FactsLine, Section } from "../components/section.js";
import { Sessions } from "../components/sessions.js";
import { State } from "../components/state.js";
import { Empty, Loaded } from "../components/states.js";
import { announce } from "../components/status.js";
import { Table } from "../components/table.js";
import { Time } from "../components/time.js";
import { holds, mayGrant } from "../permit.js";
import { counted } from "../number.js";
import { useResource } from "../resource.js";
import { href } from "../route.js";
import { grantsOf, me } from "../session.js";
import { fragment, h, tags, useState } from "../ui.js";
import { EnrolmentOnce } from "./people.js";

/** @import { Enrolment, Grants, Identity, Person } from "agent-runtime/types" */

const { a, button, code, div, li, p, ul } = tags;

/** @param {{ userId: string }} props */
export default function PersonPage({ userId }) {
  const person = useResource(`person ${userId}`, (options) => api.users.get(userId, options));
  const crumbs = [{ title: "People", href: href("people") }];
  if (!person.data) return h(Unread, { title: "Person", crumbs, of: person, notFound: "No person has this id." });
  return h(Known, { person: person.data, crumbs, onChange: person.set, key: userId });
}

/** @param {{ person: Person, crumbs: { title: string, href: string }[], onChange: (person: Person) => void }} props */
function Known({ person, crumbs, onChange }) {
  const names = useNames(["user"]);
  const grants = useResource(`grants ${person.id}`, (options) => grantsOf(person.id, options));
  const isActive = !person.deactivatedAt;
  const sessions = useList(`sessions of ${person.id}`, {}, (wanted, options) => api.users.sessions.list(person.id, wanted, options), { cursor: "sessions" });
  return div(
    null,
    h(Head, { person, crumbs, grants: grants.data, sessions: sessions.rows?.length ?? 0, onChange: (/** @type {Person} */ next) => (onChange(next), grants.reload(), sessions.reload()), onSignedOut: sessions.reload }),
    h(FactsLine, {
      facts: [
        ["Email", person.email ?? "None"],
        ["Role in the tenant", person.tenantRole],
        ["Added", h(Time, { at: person.createdAt })],
        ["By", person.createdBy ? h(Name, { id: person.createdBy, names }) : "They came with the tenant"],
        ["Deactivated", isActive ? undefined : h(Time, { at: person.deactivatedAt })],
        ["Access audit", a({ href: href("audit", { actorSubject: `user:${person.id}` }) }, "Their decisions")],
        ["Id", h(Id, { id: person.id, what: "person" })],
      ],
    }),
    div(
      { class: "stack" },
      h(Section, { title: "What they may do", isFlush: true }, h(Loaded, { of: grants, show: (/** @type {Grants} */ has) => h(GrantsOf, { grants: has, whose: "They have" }) })),
      h(Identities, { person, onChanged: sessions.reload }),
      h(Section, { title: "Sessions", isFlush: true }, h(Sessions, { label: `Where ${person.displayName} is signed in`, list: sessions, empty: h(Empty, { title: "They are signed in nowhere." }) }), h(Pager, { list: sessions, cursor: "sessions" })),
    ),
  );
}

/** Whom they are at identity providers. @param {{ person: Person, onChanged: () => void }} props */
function Identities({ person, onChanged }) {
  const list = useList(`identities of ${person.id}`, {}, (wanted, options) => api.users.identities.list(person.id, wanted, options), { cursor: "identities", order: "asc" });
  const unlink = (/** @type {Identity} */ one) =>
    confirm({
      title: `Unlink ${person.displayName} from ${one.providerName}?`,
      says: `Their sessions by it end. Whoever next signs in there with the email address ${person.email ?? "of this person"} is bound to them.`,
      act: "Unlink",
      run: async () => {
        await api.users.identities.unlink(person.id, one.id);
        announce("Unlinked");
        list.reload();
        onChanged();
      },
    });
  return h(
    Section,
    { title: "Signs in by", isFlush: true },
    h(Table, {
      label: `Whom ${person.displayName} is at identity providers`,
      list,
      columns: [
        { title: "Provider", show: (/** @type {Identity} */ one) => a({ href: href(`identity-providers/${one.identityProviderId}`) }, one.providerName) },
        { title: "Subject there", show: (/** @type {Identity} */ one) => code({ title: one.subject }, one.subject), from: "middle" },
        { title: "Bound by", show: (/** @type {Identity} */ one) => one.emailThen, from: "wide", isSecond: true },
        { title: "Last used (UTC)", show: (/** @type {Identity} */ one) => h(Time, { at: one.lastUsedAt, short: true }), from: "middle" },
        ...(mayGrant("tenant") && holds("keys:write") ? [{ title: "What to do", isActs: true, show: (/** @type {Identity} */ one) => button({ type: "button", "aria-label": `Unlink from ${one.providerName}`, onClick: () => unlink(one) }, "Unlink") }] : []),
      ],
      empty: h(Empty, { title: "By no identity provider yet." }),
    }),
    h(Pager, { list, cursor: "identities", ...IN_ORDER }),
  );
}

/** @param {{ person: Person, crumbs: { title: string, href: string }[], grants: Grants | undefined, sessions: number, onChange: (person: Person) => void, onSignedOut: () => void }} props */
function Head({ person, crumbs, grants, sessions, onChange, onSignedOut }) {
  const [isChanging, setChanging] = useState(false);
  const [enrolment, setEnrolment] = useState(/** @type {Enrolment | null} */ (null));
  const changes = mayGrant("tenant");
  const isActive = !person.deactivatedAt;
  const newCode = () =>
    confirm({ title: `Make a sign-in link for ${person.displayName}?`, says: "A link that was made before and is not taken yet holds no more.", act: "Make the link", run: async () => setEnrolment(await api.users.enrolments.create(person.id)) });
  const signOut = () =>
    confirm({
      title: `Sign ${person.displayName} out everywhere?`,
      says: "Their sessions end at once, and so do the sign-in links that they made for others. Their keys go on.",
      act: "Sign out everywhere",
      run: async () => {
        await api.users.signOut(person.id);
        announce("Signed out everywhere");
        onSignedOut();
      },
    });
  const deactivate = () =>
    confirm({
      title: `Deactivate ${person.displayName}?`,
      says: h(WhatEnds, { grants, sessions }),
      act: "Deactivate",
      typed: person.email ?? person.displayName,
      run: async () => {
        onChange(await api.users.deactivate(person.id));
        announce("Deactivated");
      },
    });
  useActs(changes && isActive ? [{ title: "Sign this person out everywhere", about: "Act", icon: "signin", run: signOut }] : []);
  return fragment(
    h(PageHead, {
      title: person.displayName,
      crumbs,
      state: h(State, { state: isActive ? "active" : "deactivated" }),
      actions:
        changes && isActive
          ? [
              h(Menu, {
                key: "more",
                label: "More acts", face: "More",
                items: [
                  ...(holds("keys:write") ? [{ title: "Make a sign-in link …", run: newCode }] : []),
                  { title: "Sign out everywhere …", run: signOut },
                  "line",
                  { title: "Deactivate …", isDanger: true, run: deactivate },
                ],
              }),
              button({ key: "change", type: "button", onClick: () => setChanging(true) }, "Change"),
            ]
          : undefined,
    }),
    isActive ? null : div({ class: "failure-on-top" }, h(Banner, { tone: "idle", title: "They can do nothing any more" }, p(null, "Their keys, sessions and roles have ended."))),
    isChanging ? h(Change, { person, onClose: () => setChanging(false), onChange }) : null,
    enrolment ? h(EnrolmentOnce, { name: person.displayName, enrolment, onClose: () => setEnrolment(null) }) : null,
  );
}

/** @param {{ grants: Grants | undefined, sessions: number }} props */
function WhatEnds({ grants, sessions }) {
  const direct = grants?.projects.filter((one) => one.via.some((way) => way.kind === "direct")).length ?? 0;
  const roles = [
    direct ? counted(direct, "project") : "",
    grants?.teams.length ? counted(grants.teams.length, "team") : "",
    grants?.orgs.length ? counted(grants.orgs.length, "org") : "",
    grants?.reviewerRoles.length ? counted(grants.reviewerRoles.length, "reviewer role") : "",
  ].filter(Boolean);
  return fragment(
    "At once and for good, these end:",
    ul(
      { class: "points" },
      li(null, "every key of theirs"),
      li(null, sessions ? `their sessions in ${counted(sessions, "browser")}` : "their sessions; none is open"),
      li(null, "a sign-in link that waits for them"),
      li(null, roles.length ? `their roles: ${roles.join(", ")}` : "their roles; they have none of their own"),
    ),
    "Runs that they started go on, and what they made stays.",
  );
}

/** @param {{ person: Person, onClose: () => void, onChange: (person: Person) => void }} props */
function Change({ person, onClose, onChange }) {
  const [name, setName] = useState(person.displayName);
  const [role, setRole] = useState(String(person.tenantRole));
  const isSelf = person.id === me.value?.id;
  return h(FormDialog, {
    title: `Change ${person.displayName}`,
    act: "Save",
    isReady: Boolean(name.trim()) && (name.trim() !== person.displayName || role !== person.tenantRole),
    onClose,
    onSubmit: async () => {
      const changed = { ...(name.trim() !== person.displayName ? { displayName: name.trim() } : {}), ...(role !== person.tenantRole ? { tenantRole: role } : {}) };
      onChange(await api.users.update(person.id, changed));
      announce("Saved");
    },
    fields: (error) =>
      fragment(
        h(Field, { label: "Name", value: name, onInput: setName, most: 200, isRequired: true, autofocus: true, autoComplete: "off", error: faultAt(error, "displayName") }),
        h(RoleSelect, { scope: "tenant", label: "Role in the tenant", hint: isSelf ? "This is you: as a member you could not take it back." : undefined, value: role, onInput: setRole, error: faultAt(error, "tenantRole", "last-admin") }),
      ),
  });
}
