/**
 * An approval where it stands in a run: what is asked, and deciding it there. `Decide` is the same on every page.
 *
 * Guarantees: a decision names what was read; if that changed, nothing is decided. Approving is never what Enter does, and
 * its button is enabled 600 ms after it appears.
 */

import { api } from "../api.js";
import { useAct, useResource } from "../resource.js";
import { href } from "../route.js";
import { fragment, h, tags, useAfter, useState } from "../ui.js";
import { Banner } from "./banner.js";
import { Field, faultAt, useFaulty } from "./field.js";
import { Json } from "./json.js";
import { SchemaForm, schemaDefaults } from "./schema-form.js";
import { State } from "./state.js";
import { Failure } from "./states.js";
import { announce } from "./status.js";

/** @import { WholeApproval } from "agent-runtime/types" */
/** @import { Child } from "../ui.js" */

const { a, button, div, h3, p, span, strong } = tags;

/** @param {{ asked: import("../run-events.js").Asked }} props */
export function ApprovalInPlace({ asked }) {
  const isWaiting = asked.status === "waiting";
  return div(
    { class: "approval" },
    div({ class: "row" }, strong(null, asked.title), h(State, { state: asked.status }), span({ class: "faint" }, `for ${asked.requiredRole}`), a({ href: href(`approvals/${asked.approvalId}`) }, "Open the approval")),
    asked.unassigned ? p({ class: "faint" }, "It is assigned to nobody: the person whom its definition names is no active person with the role.") : null,
    isWaiting ? h(Waiting, { approvalId: asked.approvalId }) : null,
  );
}

/** @param {{ approvalId: string }} props */
function Waiting({ approvalId }) {
  const approval = useResource(`approval ${approvalId}`, (options) => api.approvals.get(approvalId, options), { live: ["approval"] });
  // Who is no reviewer reads in the run that it waits, and no more.
  if (approval.error?.status === 403) return p({ class: "faint" }, "Reviewers decide about it.");
  if (approval.error) return h(Failure, { error: approval.error, retry: approval.reload });
  if (!approval.data) return null;
  return fragment(h(Subject, { approval: approval.data }), h(Decide, { approval: approval.data, onDecided: approval.reload }));
}

/** Warns of an earlier call whose answer nobody got. @param {{ approval: Pick<WholeApproval, "subject"> }} props */
export function MadeBefore({ approval: { subject } }) {
  const earlier = subject.earlierCall;
  if (!earlier) return null;
  return h(
    Banner,
    { tone: "bad", title: "It may have been made before", actions: earlier.approvalId ? a({ class: "button", href: href(`approvals/${earlier.approvalId}`) }, "Open the earlier approval") : undefined },
    p(null, `An earlier call with this content may have been made: nobody got its answer.${earlier.isEdited ? " Its reviewer had changed the arguments." : ""} Look there before you approve another one.`),
  );
}

/** What is asked, in short. @param {{ approval: WholeApproval }} props */
export function Subject({ approval: { subject } }) {
  return fragment(h(MadeBefore, { approval: { subject } }), shown(subject.arguments, `What ${subject.tool ?? "the tool"} is to be called with`), shown(subject.context, "What it is about"));
}

/** @param {unknown} value @param {string} label */
function shown(value, label) {
  if (value === undefined || value === null) return null;
  return div({ class: "part" }, h3(null, label), div({ class: "text-block pad" }, h(Json, { value, label })));
}

const WHY_NOT = /** @type {Record<string, string>} */ ({
  "approval-own-request": "You started the run: somebody else decides.",
  "approval-closed": "It does not wait any more.",
  "permission-denied": "Its role is not yours.",
});

/**
 * The acts of a reviewer. Who approves fills in the form, if the approval has one.
 * @param {object} props
 * @param {WholeApproval} props.approval
 * @param {() => void} props.onDecided
 * @param {unknown} [props.edited] arguments in place of the subject's
 * @param {string} [props.fault] why nothing can be approved yet
 * @param {"approve" | "reject"} [props.only] this answer alone
 * @param {Child} [props.beside] what stands beside the buttons
 */
export function Decide({ approval, onDecided, edited, fault, only, beside }) {
  const [comment, setComment] = useState("");
  const form = only === "reject" ? undefined : /** @type {import("./schema-form.js").Schema | undefined} */ (approval.subject.form ?? undefined);
  const [answer, setAnswer] = useState(() => /** @type {{ value: any, fault?: string }} */ ({ value: schemaDefaults(form) }));
  const isReady = useAfter(600);
  const act = useAct(async (/** @type {"approve" | "reject"} */ decision) => {
    await api.approvals.decide(approval.id, { decision, comment: comment.trim() || undefined, expectedDigest: approval.subject.digest, ...(edited !== undefined && decision === "approve" ? { arguments: edited } : {}), ...(form && decision === "approve" ? { answer: answer.value ?? {} } : {}) });
    announce(decision === "approve" ? "Approved" : "Rejected");
    onDecided();
  });
  const ref = useFaulty(act.error);
  if (approval.status !== "waiting") return null;
  if (!approval.mayDecide) return p({ class: "faint" }, WHY_NOT[approval.mayNotBecause ?? ""] ?? "You may not decide about it.");
  const decide = (/** @type {"approve" | "reject"} */ decision) => isReady && !(isFaulty && decision === "approve") && act.run(decision);
  const isFaulty = Boolean(fault || (form && answer.fault));
  const waits = isReady && !act.isBusy ? undefined : "true";
  return div(
    { ref: /** @type {any} */ (ref), class: "stack decide" },
    form?.description ? p(null, form.description) : null,
    form ? h(SchemaForm, { label: form.title ?? "Your answer", schema: form, value: answer.value, onInput: (value, said) => setAnswer({ value, fault: said }), error: faultAt(act.error, "answer"), faultOf: (name) => faultAt(act.error, `answer.${name}`) }) : null,
    h(Field, { label: "Why", hint: "The run reads it.", isRequired: false, value: comment, onInput: setComment, lines: 2, most: 2000 }),
    h(Failure, { error: act.error }),
    div(
      { class: "row" },
      only === "reject" ? null : button({ type: "button", class: "approve", "aria-disabled": isFaulty ? "true" : waits, onClick: () => decide("approve") }, edited === undefined ? "Approve" : "Approve as edited"),
      only === "approve" ? null : button({ type: "button", class: "danger", "aria-disabled": waits, onClick: () => decide("reject") }, "Reject"),
      beside,
    ),
  );
}
