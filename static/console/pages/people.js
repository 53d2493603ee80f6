/** People: who is in the tenant, and one to add. An added person signs in first by a link that is shown once. */

import { api } from "../api.js";
import { FormDialog } from "../components/dialog.js";
import { Field, faultAt } from "../components/field.js";
import { Filters, clearFilters, filtered, isFiltered } from "../components/filters.js";
import { PageHead } from "../components/page-head.js";
import { Pager, useList } from "../components/pager.js";
import { useActs } from "../components/acts.js";
import { RoleSelect } from "../components/role-select.js";
import { SecretOnce } from "../components/secret-once.js";
import { State } from "../components/state.js";
import { Empty } from "../components/states.js";
import { Table } from "../components/table.js";
import { Time } from "../components/time.js";
import { holds, mayGrant, rolesIn } from "../permit.js";
import { useResource } from "../resource.js";
import { go, href } from "../route.js";
import { me } from "../session.js";
import { absolute } from "../time.js";
import { fragment, h, tags, useRef, useState } from "../ui.js";
import { ways } from "../ways-in.js";

/** @import { AddedPerson, Enrolment, Person } from "agent-runtime/types" */

const { button, div, p, span } = tags;

/** @returns {import("../components/filters.js").Filter[]} */
const filters = () => [
  { name: "email", label: "Email", placeholder: "ada@example.com" },
  { name: "tenantRole", label: "Role", options: rolesIn("tenant").map((role) => ({ value: role, label: role })) },
  { name: "status", label: "State", any: "Active", options: [{ value: "deactivated", label: "Deactivated" }, { value: "all", label: "All" }] },
];

/** @type {import("../components/table.js").Column[]} */
const COLUMNS = [
  { title: "Name", show: (/** @type {Person} */ person) => span(null, person.displayName, person.id === me.value?.id ? span({ class: "tag beside" }, "you") : null) },
  { title: "Email", show: (/** @type {Person} */ person) => person.email ?? "–", from: "middle" },
  { title: "Role", show: (/** @type {Person} */ person) => person.tenantRole },
  { title: "State", show: (/** @type {Person} */ person) => h(State, { state: person.deactivatedAt ? "deactivated" : "active" }), from: "middle" },
  { title: "Added (UTC)", show: (/** @type {Person} */ person) => h(Time, { at: person.createdAt, short: true }), from: "wide", isSecond: true },
];

export default function People() {
  const [isAdding, setAdding] = useState(false);
  const all = filters();
  const { status, ...chosen } = filtered(all);
  const list = useList("people", { ...chosen, status: status === "all" ? undefined : (status ?? "active") }, (wanted, options) => api.users.list(wanted, options));
  const adds = mayGrant("tenant") && holds("keys:write");
  const add = adds ? button({ type: "button", class: "primary", onClick: () => setAdding(true) }, "Add a person") : null;
  useActs(adds ? [{ title: "Add a person", about: "Act", icon: "plus", run: () => setAdding(true) }] : []);
  return div(
    null,
    h(PageHead, { title: "People", lead: "They sign in to the console and make their own keys. What each may do comes from roles on projects, teams and orgs.", actions: add }),
    h(Filters, { filters: all }),
    h(Table, {
      label: "People, newest first",
      columns: COLUMNS,
      list,
      rowHref: (/** @type {Person} */ person) => href(`people/${person.id}`),
      empty: isFiltered(all) ? h(Empty, { title: "Nobody matches these filters.", action: button({ type: "button", onClick: () => clearFilters(all) }, "Clear filters") }, chosen.email ? "The email is compared as a whole, in any case." : null) : h(Empty, { title: "Nobody yet.", action: add }),
    }),
    h(Pager, { list }),
    isAdding ? h(AddPerson, { onClose: () => setAdding(false) }) : null,
  );
}

/** @param {{ onClose: () => void }} props */
function AddPerson({ onClose }) {
  const [email, setEmail] = useState("");
  const [name, setName] = useState("");
  const [role, setRole] = useState("member");
  // The form's dialog closes after the link's has taken its place.
  const isAdded = useRef(false);
  const [added, setAdded] = useState(/** @type {AddedPerson | null} */ (null));
  if (added) return h(EnrolmentOnce, { name: added.displayName, enrolment: added.enrolment, onClose: () => (onClose(), go(href(`people/${added.id}`))) });
  return h(FormDialog, {
    title: "Add a person",
    act: "Add",
    isReady: Boolean(email.trim() && name.trim()),
    onClose: () => void (isAdded.current || onClose()),
    onSubmit: async () => {
      const person = await api.users.add({ email: email.trim(), displayName: name.trim(), tenantRole: role });
      isAdded.current = true;
      setAdded(person);
    },
    fields: (error) =>
      fragment(
        h(Field, { label: "Email", type: "email", hint: "It names the person, whatever its case.", value: email, onInput: setEmail, most: 320, isRequired: true, autofocus: true, autoComplete: "off", error: faultAt(error, "email", "already-exists") }),
        h(Field, { label: "Name", value: name, onInput: setName, most: 200, isRequired: true, autoComplete: "off", error: faultAt(error, "displayName") }),
        h(RoleSelect, { scope: "tenant", label: "Role in the tenant", value: role, onInput: setRole, error: faultAt(error, "tenantRole") }),
      ),
  });
}

/**
 * A code to sign in first, as a link. The code is behind the `#`, which no server and no log of one sees.
 * @param {{ name: string, enrolment: Enrolment, onClose: () => void }} props
 */
export function EnrolmentOnce({ name, enrolment, onClose }) {
  const at = useResource("ways", () => ways());
  const link = `${at.data?.publicUrl ?? location.origin}${href("sign-in")}#code=${enrolment.code}`;
  return h(SecretOnce, {
    title: `The first sign-in of ${name}`,
    secret: link,
    says: fragment(p(null, "Give this link to them alone. It signs them in once, and then they make their own keys."), p({ class: "faint" }, `It holds until ${absolute(enrolment.expiresAt)}.`)),
    onClose,
  });
}
