/**
 * An approval: what is asked, what follows from either answer, and deciding about it; who was asked, until when, and what
 * has happened to it.
 *
 * Guarantees: nothing is the default. What is decided is what was read: a decision names its digest (`Decide`).
 */

import { api } from "../api.js";
import { Assign, Escalate } from "../components/approval-dialogs.js";
import { Decide, MadeBefore } from "../components/approval-in-place.js";
import { Banner } from "../components/banner.js";
import { Id } from "../components/id.js";
import { Json } from "../components/json.js";
import { Menu } from "../components/menu.js";
import { Name, useNames } from "../components/names.js";
import { PageHead, Unread } from "../components/page-head.js";
import { SchemaForm, JsonField } from "../components/schema-form.js";
import { Facts, Section } from "../components/section.js";
import { State } from "../components/state.js";
import { Failure, Loading } from "../components/states.js";
import { announce } from "../components/status.js";
import { TextBlock } from "../components/text-block.js";
import { Time } from "../components/time.js";
import { Until } from "../components/until.js";
import { may } from "../permit.js";
import { useAct, useResource } from "../resource.js";
import { go, href } from "../route.js";
import { me } from "../session.js";
import { fragment, h, tags, useState } from "../ui.js";

/** @import { ApprovalLogEntry, WholeApproval } from "agent-runtime/types" */

const { a, button, code, div, li, ol, p, span, strong } = tags;

const crumbs = () => [
  { title: "Inbox", href: href("inbox") },
  { title: "Approvals", href: href("approvals") },
];
const HAPPENED = /** @type {Record<string, string>} */ ({
  opened: "The run asked",
  assigned: "Assigned",
  approved: "Approved",
  rejected: "Rejected",
  escalated: "Escalated",
  expired: "Nobody decided in time",
  voided: "The run ended before",
});

/** @param {{ approvalId: string }} props */
export default function ApprovalPage({ approvalId }) {
  const read = useResource(`approval ${approvalId}`, (options) => api.approvals.get(approvalId, options), { live: ["approval"] });
  const approval = read.data;
  if (!approval) return h(Unread, { title: "Approval", crumbs: crumbs(), of: read, notFound: "No approval has this id." });
  return div(
    null,
    h(Head, { approval, onChange: read.reload }),
    read.error ? h(Failure, { error: read.error, retry: read.reload }) : null,
    div(
      { class: "columns side" },
      div({ class: "stack" }, h(Asked, { approval, onDecided: read.reload, key: approval.subject.digest }), h(Log, { approval })),
      h(About, { approval }),
    ),
  );
}

/** @param {{ approval: WholeApproval, onChange: () => void }} props */
function Head({ approval, onChange }) {
  const [open, setOpen] = useState(/** @type {"" | "assign" | "escalate"} */ (""));
  const hand = useAct(async (/** @type {{ userId?: string }} */ to) => {
    await api.approvals.assign(approval.id, to);
    announce(to.userId ? "Assigned to you" : "Assigned to nobody");
    onChange();
  });
  const isWaiting = approval.status === "waiting";
  const isMine = approval.assignedTo === me.value?.id;
  const close = () => setOpen("");
  return fragment(
    h(PageHead, {
      title: approval.title,
      documentTitle: `${approval.title}, ${approval.status}`,
      crumbs: crumbs(),
      state: h(State, { state: approval.status }),
      actions: isWaiting
        ? [
            isMine ? null : button({ key: "me", type: "button", disabled: hand.isBusy, onClick: () => hand.run({ userId: me.value?.id }) }, "Assign to me"),
            approval.escalatedFrom ? null : button({ key: "escalate", type: "button", onClick: () => setOpen("escalate") }, "Escalate"),
            h(Menu, {
              key: "more",
              label: "More",
              items: [{ title: "Assign to somebody …", run: () => setOpen("assign") }, ...(approval.assignedTo ? [{ title: "Assign to nobody", run: () => void hand.run({}) }] : [])],
            }),
          ]
        : a({ class: "button", href: href("inbox") }, "To the inbox"),
    }),
    h(Failure, { error: hand.error }),
    open === "assign" ? h(Assign, { approval, onClose: close, onDone: onChange }) : null,
    open === "escalate" ? h(Escalate, { approval, onClose: close, onDone: (next) => go(href(`approvals/${next.id}`)) }) : null,
  );
}

/** What is asked, and the decision. @param {{ approval: WholeApproval, onDecided: () => void }} props */
function Asked({ approval, onDecided }) {
  const { subject } = approval;
  const [edited, setEdited] = useState(/** @type {any} */ (undefined));
  const [fault, setFault] = useState(/** @type {string | undefined} */ (undefined));
  const isEditing = edited !== undefined;
  const isCall = subject.arguments !== null && subject.arguments !== undefined;
  const mayEdit = approval.mayEdit.includes("arguments");
  const back = () => {
    setEdited(undefined);
    setFault(undefined);
  };
  const edit = mayEdit ? button({ type: "button", onClick: () => (isEditing ? back() : setEdited(structuredClone(subject.arguments))) }, isEditing ? "Leave them as they were" : "Edit the arguments") : null;
  const erased = subject.tool && !isCall ? "What it was about was erased." : undefined;
  return fragment(
    h(WhyNot, { approval }),
    h(MadeBefore, { approval }),
    isCall
      ? h(
          Section,
          { title: isEditing ? `${subject.tool} is to be called with your arguments` : `${subject.tool} is to be called with`, actions: edit },
          isEditing
            ? h(Edited, { approval, value: edited, onInput: (/** @type {any} */ value, /** @type {string | undefined} */ said) => (setEdited(value ?? null), setFault(said)) })
            : h(Values, { value: subject.arguments, label: "Arguments" }),
        )
      : erased ? p({ class: "faint" }, erased) : null,
    subject.editedArguments ? h(Section, { title: "The reviewer put in their place" }, h(Values, { value: subject.editedArguments, label: "The reviewer's arguments" })) : null,
    subject.context !== null && subject.context !== undefined ? h(Section, { title: isCall ? "What the agent said beside" : "What the run shows" }, h(Values, { value: subject.context, label: "What the run shows" })) : null,
    approval.status === "waiting" && approval.mayDecide
      ? h(Section, { title: "Your decision" }, div({ class: "stack" }, h(Consequences, { approval }), h(Decide, { approval, onDecided, edited, fault })))
      : approval.status === "waiting" ? h(Section, { title: "What follows" }, h(Consequences, { approval })) : null,
    approval.comment ? h(Section, { title: "Why" }, h(TextBlock, { text: approval.comment, label: "Why" })) : null,
    subject.answer !== null && subject.answer !== undefined ? h(Section, { title: "Answer" }, h(Values, { value: subject.answer, label: "Answer" })) : null,
  );
}

/** Why the reader does not decide, or no more. @param {{ approval: WholeApproval }} props */
function WhyNot({ approval }) {
  const people = useNames(["user", "service-account"]);
  if (approval.mayDecide) return null;
  if (approval.mayNotBecause === "approval-own-request") return h(Banner, { tone: "idle", title: "Somebody else decides" }, p(null, "You started the run that asks. Whoever starts something does not approve it: another reviewer with the role ", strong(null, approval.requiredRole), " does."));
  if (approval.status === "escalated" && approval.escalatedTo) return h(Banner, { tone: "idle", title: "It was escalated to another role", actions: a({ class: "button", href: href(`approvals/${approval.escalatedTo}`) }, "Open the one in its place") });
  if (approval.status === "expired") return h(Banner, { tone: "bad", title: "Nobody decided in time" }, "Silence is never a yes: the run was told so.");
  if (approval.status === "voided") return h(Banner, { tone: "idle", title: "The run ended before" }, "Nothing is left to decide.");
  if (approval.status !== "waiting") return h(Banner, { tone: approval.status === "approved" ? "good" : "bad", title: approval.status === "approved" ? "Approved" : "Rejected" }, p(null, approval.decidedBy ? span(null, "By ", h(Name, { id: approval.decidedBy, names: people }), ", ") : null, h(Time, { at: approval.closedAt })));
  return null;
}

/** @param {{ approval: WholeApproval }} props */
function Consequences({ approval }) {
  const isTool = approval.source === "tool";
  return ol(
    { class: "consequences" },
    li(null, strong(null, "Approve"), span(null, isTool ? `: ${approval.subject.tool ?? "the tool"} is called once, with what stands above.` : ": the run goes on.")),
    li(null, strong(null, "Reject"), span(null, isTool ? ": the tool is not called, and the agent is told why." : ": the step ends with your rejection, and the flow says what follows.")),
    li(null, strong(null, "No answer"), span(null, ": counts as no once the time is over.")),
  );
}

/** A value as names and texts where it is as plain as that, else as a tree. @param {{ value: any, label: string }} props */
function Values({ value, label }) {
  const [asJson, setAsJson] = useState(false);
  const entries = value && typeof value === "object" && !Array.isArray(value) ? Object.entries(value) : [];
  const isFlat = entries.length > 0 && entries.length <= 30 && entries.every(([name, one]) => name.length <= 60 && (one === null || typeof one !== "object"));
  if (!isFlat) return h(Json, { value, label, openLevels: 3 });
  return div(
    { class: "stack" },
    asJson ? h(TextBlock, { text: JSON.stringify(value, null, 2), label }) : h(Facts, { rows: true, facts: entries.map(([name, one]) => [name, typeof one === "string" ? span({ class: "as-written" }, one) : code(null, String(one))]) }),
    div(null, button({ type: "button", class: "link", onClick: () => setAsJson(!asJson) }, asJson ? "As fields" : "As JSON")),
  );
}

/** The arguments as a form, where the reader may read the tool's schema. @param {{ approval: WholeApproval, value: any, onInput: (value: any, fault?: string) => void }} props */
function Edited({ approval, value, onInput }) {
  const mayRead = may("read", "tool", { projectId: approval.projectId });
  const tools = useResource(mayRead ? `tools of ${approval.projectId}` : null, async (options) => (await api.tools.list({ projectId: approval.projectId, limit: 200 }, options)).data);
  const tool = tools.data?.find((one) => one.name === approval.subject.tool);
  if (mayRead && !tools.data && !tools.error) return h(Loading, {});
  return div(
    { class: "stack" },
    p({ class: "faint" }, "They have to fit the tool's schema. The agent is told that they are yours."),
    tool ? h(SchemaForm, { label: "Arguments", schema: tool.argumentsSchema, value, onInput }) : h(JsonField, { label: "Arguments", value, onInput }),
  );
}

/** @param {{ approval: WholeApproval }} props */
function About({ approval }) {
  const [projects, people] = [useNames(["project"]), useNames(["user", "service-account"])];
  const isWaiting = approval.status === "waiting";
  return h(
    Section,
    { title: "About it" },
    h(Facts, {
      rows: true,
      facts: [
        ["Role that decides", approval.requiredRole],
        ["Assigned to", approval.assignedTo ? h(Name, { id: approval.assignedTo, names: people }) : "Anybody with the role"],
        ["Ends", isWaiting ? h(Until, { at: approval.expiresAt, whole: true }) : h(Time, { at: approval.expiresAt })],
        ["Escalates", approval.escalatesAt && isWaiting ? h(Until, { at: approval.escalatesAt, whole: true }) : undefined],
        ["Asked by", approval.source === "tool" ? "A call of a tool" : "A step of a flow"],
        ["Started by", h(Name, { id: approval.requestedBy, names: people })],
        ["Run", a({ href: href(`runs/${approval.runId}`) }, "Open the run")],
        ["Step", span({ class: "mono" }, approval.path)],
        ["Began with", approval.rootRunId !== approval.runId ? a({ href: href(`runs/${approval.rootRunId}`) }, "the run on top") : undefined],
        ["Project", h(Name, { id: approval.projectId, names: projects })],
        ["Asked at", h(Time, { at: approval.createdAt })],
        ["In the place of", approval.escalatedFrom ? a({ href: href(`approvals/${approval.escalatedFrom}`) }, "an earlier approval") : undefined],
        ["Digest", span({ title: "A decision names it: if what is asked changes, nothing is decided." }, h(Id, { id: approval.subject.digest, what: "digest" }))],
        ["Id", h(Id, { id: approval.id, what: "approval" })],
      ],
    }),
  );
}

/** @param {{ approval: WholeApproval }} props */
function Log({ approval }) {
  const people = useNames(["user", "service-account"]);
  return h(
    Section,
    { title: "What happened" },
    ol(
      { class: "log" },
      approval.log.map((/** @type {ApprovalLogEntry} */ entry, index) => li({ key: index }, span(null, HAPPENED[entry.kind] ?? entry.kind, entry.userId ? fragment(" by ", h(Name, { id: entry.userId, names: people })) : null), h(Time, { at: entry.at }))),
    ),
  );
}
