/**
 * Dialogs about an approval: who is to look at it, another role in its place, and a decision or an escalation from a list
 * (`AboutItem`).
 *
 * Guarantees: what is decided from a list is what the dialog shows: it reads the approval first, and `Decide` names its digest.
 */

import { api } from "../api.js";
import { isTenantAdmin } from "../permit.js";
import { useResource } from "../resource.js";
import { href } from "../route.js";
import { fragment, h, tags, useState } from "../ui.js";
import { Decide, Subject } from "./approval-in-place.js";
import { Dialog, FormDialog } from "./dialog.js";
import { Field, Select, faultAt } from "./field.js";
import { Failure, Loading } from "./states.js";
import { announce } from "./status.js";

/** @import { Reviewer, WholeApproval } from "agent-runtime/types" */
/** @import { Child } from "../ui.js" */

const { a, button, div, footer, p, span, strong } = tags;

/** @typedef {"approve" | "reject" | "escalate"} Act */

const ACTS = /** @type {Record<Act, string>} */ ({ approve: "Approve", reject: "Reject", escalate: "Escalate" });

/**
 * An act on an approval of a list.
 * @param {{ item: { id: string, title: string }, act: Act, onClose: () => void, onDone: () => void }} props
 */
export function AboutItem({ item, act, onClose, onDone }) {
  const read = useResource(`approval ${item.id}`, (options) => api.approvals.get(item.id, options));
  const approval = read.data;
  if (approval?.status === "waiting" && act === "escalate" && !approval.escalatedFrom) return h(Escalate, { approval, onClose, onDone });
  const close = button({ key: "close", type: "button", onClick: onClose }, "Leave it as it is");
  return h(Dialog, { title: `${ACTS[act]} "${item.title}"`, onClose }, h(Asked, { read, act, close, onDone }));
}

/** @param {{ read: import("../resource.js").Resource<WholeApproval>, act: Act, close: Child, onDone: () => void }} props */
function Asked({ read: { data: approval, error, reload }, act, close, onDone }) {
  if (!approval) return fragment(error ? h(Failure, { error, retry: reload }) : h(Loading, { lines: 3 }), footer(null, close));
  if (approval.status !== "waiting") return fragment(p(null, `It does not wait any more: it is ${approval.status}.`), footer(null, close));
  if (act === "escalate") return fragment(p(null, "It was escalated before, and that can be done once."), footer(null, close));
  return div(
    { class: "stack" },
    p({ class: "row" }, span(null, "For the role ", strong(null, approval.requiredRole)), a({ href: href(`approvals/${approval.id}`) }, "Everything about it")),
    h(Subject, { approval }),
    h(Decide, { approval, onDecided: onDone, only: act, beside: close }),
    approval.mayDecide ? null : footer(null, close),
  );
}

/** The reviewers with a role, for who may read them. @param {string | undefined} role @returns {Reviewer[] | undefined} */
function useReviewers(role) {
  const read = useResource(isTenantAdmin() ? "reviewers to assign" : null, async (options) => (await api.reviewers.list({ limit: 200 }, options)).data);
  return read.data?.filter((one) => !role || one.roles.includes(role));
}

/** Who is to look at it. @param {{ approval: WholeApproval, onClose: () => void, onDone: () => void }} props */
export function Assign({ approval, onClose, onDone }) {
  const [to, setTo] = useState("");
  const reviewers = useReviewers(approval.requiredRole);
  return h(FormDialog, {
    title: `Assign "${approval.title}"`,
    act: "Assign",
    isReady: Boolean(to.trim()),
    onClose,
    onSubmit: async () => {
      await api.approvals.assign(approval.id, reviewers ? { userId: to } : { email: to.trim() });
      announce("Assigned");
      onDone();
    },
    fields: (error) => h(Whom, { to, setTo, reviewers, role: approval.requiredRole, error: faultAt(error, "email") }),
  });
}

/** @param {{ to: string, setTo: (to: string) => void, reviewers: Reviewer[] | undefined, role: string, error?: string }} props */
function Whom({ to, setTo, reviewers, role, error }) {
  const hint = `Somebody with the role ${role}. The others with it may still decide.`;
  return reviewers
    ? h(Select, { label: "Reviewer", hint, value: to, onInput: setTo, placeholder: "Choose one", options: reviewers.map((one) => ({ value: one.userId, label: `${one.displayName}${one.primaryEmail ? `, ${one.primaryEmail}` : ""}` })) })
    : h(Field, { label: "Email of the reviewer", hint, type: "email", value: to, onInput: setTo, error });
}

/** Another role in its place. @param {{ approval: WholeApproval, onClose: () => void, onDone: (next: { id: string }) => void }} props */
export function Escalate({ approval, onClose, onDone }) {
  const [role, setRole] = useState("");
  const [comment, setComment] = useState("");
  const named = Boolean(approval.escalatesAt);
  return h(FormDialog, {
    title: `Escalate "${approval.title}"`,
    act: "Escalate",
    isReady: named || Boolean(role.trim()),
    onClose,
    onSubmit: async () => {
      const next = await api.approvals.escalate(approval.id, { requiredRole: role.trim() || undefined, comment: comment.trim() || undefined });
      announce("Escalated");
      onDone(next);
    },
    fields: (error) =>
      fragment(
        p(null, "This one closes, and another role is asked in its place, until the same end. That can be done once."),
        h(Field, { label: "Role", hint: named ? "Left empty: the one that the approval names." : "Such as finance-lead.", isRequired: !named, value: role, onInput: setRole, error: faultAt(error, "requiredRole"), most: 40, autoComplete: "off" }),
        h(Field, { label: "Why", isRequired: false, value: comment, onInput: setComment, lines: 2, most: 4000 }),
      ),
  });
}
