/** Reviewers: who may decide about approvals, by reviewer roles. To give and take one takes a tenant admin. */

import { api } from "../api.js";
import { FormDialog, confirm } from "../components/dialog.js";
import { Field, faultAt } from "../components/field.js";
import { PageHead } from "../components/page-head.js";
import { IN_ORDER, Pager, useList } from "../components/pager.js";
import { useActs } from "../components/acts.js";
import { PersonField } from "../components/person-field.js";
import { Empty } from "../components/states.js";
import { announce } from "../components/status.js";
import { Icon } from "../components/icon.js";
import { Table } from "../components/table.js";
import { mayGrant } from "../permit.js";
import { href } from "../route.js";
import { me, refresh } from "../session.js";
import { fragment, h, tags, useState } from "../ui.js";

/** @import { Reviewer } from "agent-runtime/types" */

const { button, div, span } = tags;

export default function Reviewers() {
  const [isAdding, setAdding] = useState(false);
  const list = useList("reviewers", {}, (wanted, options) => api.reviewers.list(wanted, options), { order: "asc" });
  const changes = mayGrant("tenant");
  const known = [...new Set(["standard", ...(list.rows ?? []).flatMap((one) => one.roles)])];
  const changed = async () => {
    await refresh();
    list.reload();
  };
  const take = (/** @type {Reviewer} */ one, /** @type {string} */ role) =>
    confirm({
      title: `Take the reviewer role ${role} from ${one.displayName}?`,
      says: "They decide about no approval that needs it any more. What they decided stays. An approval that is assigned to them waits for somebody else with the role.",
      act: "Take the role",
      run: async () => {
        await api.reviewers.remove(one.userId, role);
        announce("Taken");
        await changed();
      },
    });
  const roles = (/** @type {Reviewer} */ one) =>
    div(
      { class: "row" },
      one.roles.map((role) =>
        changes
          ? button({ key: role, type: "button", class: "role", "aria-label": `Take the role ${role} from ${one.displayName}`, title: `Take the role ${role}`, onClick: () => take(one, role) }, role, h(Icon, { name: "close" }))
          : span({ key: role, class: "tag" }, role),
      ),
    );
  const add = changes ? button({ type: "button", class: "primary", onClick: () => setAdding(true) }, "Give a reviewer role") : null;
  useActs(changes ? [{ title: "Give a reviewer role", about: "Act", icon: "plus", run: () => setAdding(true) }] : []);
  return div(
    null,
    h(PageHead, { title: "Reviewers", lead: "An approval names the role that decides about it. Whoever has the role sees it in their inbox.", actions: add }),
    h(Table, {
      label: "Reviewers",
      list,
      rowKey: (/** @type {Reviewer} */ one) => one.userId,
      rowHref: (/** @type {Reviewer} */ one) => href(`people/${one.userId}`),
      columns: [
        { title: "Name", show: (/** @type {Reviewer} */ one) => span(null, one.displayName, one.userId === me.value?.id ? span({ class: "tag beside" }, "you") : null) },
        { title: "Email", show: (/** @type {Reviewer} */ one) => one.primaryEmail ?? "–", from: "middle", isSecond: true },
        { title: "Reviews as", show: roles, wraps: true },
      ],
      empty: h(Empty, { title: "Nobody reviews yet.", action: add }, "A run that asks for an approval waits until somebody with the role decides."),
    }),
    h(Pager, { list, ...IN_ORDER }),
    isAdding ? h(Give, { known, onClose: () => setAdding(false), onGiven: changed }) : null,
  );
}

/** @param {{ known: string[], onClose: () => void, onGiven: () => Promise<void> }} props */
function Give({ known, onClose, onGiven }) {
  const [email, setEmail] = useState("");
  const [role, setRole] = useState("standard");
  return h(FormDialog, {
    title: "Give a reviewer role",
    act: "Give the role",
    isReady: Boolean(email.trim() && role.trim()),
    onClose,
    onSubmit: async () => {
      await api.reviewers.register({ email: email.trim(), role: role.trim() });
      announce("Given");
      await onGiven();
    },
    fields: (error) =>
      fragment(
        h(PersonField, { value: email, onInput: setEmail, error }),
        h(Field, { label: "Role", hint: "As approvals name it: lowercase letters, digits and hyphens. standard, where nothing else is said.", value: role, onInput: setRole, most: 40, isRequired: true, isMono: true, autoComplete: "off", suggestions: known.map((value) => ({ value })), error: faultAt(error, "role") }),
      ),
  });
}
