/** One access decision: what was asked, what was answered and why, and what would allow it (specification 2.5). */

import { api } from "../api.js";
import { Copy } from "../components/copy.js";
import { Id } from "../components/id.js";
import { named } from "../components/named.js";
import { useNames } from "../components/names.js";
import { PageHead, Unread } from "../components/page-head.js";
import { Facts, Section } from "../components/section.js";
import { State } from "../components/state.js";
import { Time } from "../components/time.js";
import { rolesThatAllow } from "../permit.js";
import { useResource } from "../resource.js";
import { href } from "../route.js";
import { absolute } from "../time.js";
import { fragment, h, tags } from "../ui.js";

/** @import { AccessDecision } from "agent-runtime/types" */
/** @import { Named } from "../components/names.js" */
/** @import { Child } from "../ui.js" */

const { a, code, div, li, p, span, ul } = tags;

/** Which check decided, and what would have it decide otherwise. A check of a later server has its name alone. @type {Record<string, [what: string, allows: string]>} */
const STAGES = {
  model: ["The authorization model, by the actor's roles", ""],
  "key-role": ["A rule of keys: a member key is never used as a tenant admin's", "A key with the role admin, if its owner is a tenant admin; or a role of the owner's own on the resource."],
  "key-project": ["A rule of keys: one that is limited to a project acts on no other", "A key without the limit to a project, or one of the resource's project."],
  "key-project-mismatch": ["A rule of keys: the request named another project than the key's", "A key without the limit to a project, or one of the project that the request named."],
  "key-capability": ["A rule of keys: each write of some kinds takes its capability", "A key with the capability that the reason names."],
  "capability-not-held": ["A rule of keys: a key gives no capability that it does not have", "To make the key with one that holds the capability."],
  "not-reviewer": ["A rule of approvals: reviewers decide, each by their roles", "The reviewer role that the reason names. A tenant admin gives it, on Reviewers."],
  reviewer: ["A rule of approvals: a reviewer role allows it", ""],
  "approval-own-request": ["A rule of approvals: nobody decides about what they started", "Another reviewer with the role."],
  "judge-class-not-allowed": ["A rule of judging: a restricted class is for those who are named", "To be named as a judge of the class. The project's admins name them."],
  "identity-providers-operator-managed": ["The operator keeps the identity providers", "Nothing in the console or the API: the operator's file has them. Ask whoever operates the server."],
  "token-sign-in-not-allowed": ["The setting for sign-in by key", "A tenant admin's key, or another way to sign in."],
  "token-sign-in-off": ["The setting for sign-in by key", "Another way to sign in. Whoever operates the server may turn this one on."],
  "host-access-denied": ["The rule for addresses that tenants may reach, and commands", "Another address. Whoever operates the server sets which may be reached."],
  "denial-limit": ["The limit of denials: the credential was denied too often of late", "To wait a minute, and to ask for less that is denied."],
  enrolment: ["An enrolment code was taken", ""],
  "sign-in": ["Somebody signed in", ""],
  "identity-bound": ["Whom an identity provider named was bound to a person", ""],
};

/** @param {{ decisionId: string }} props */
export default function DecisionPage({ decisionId }) {
  const decision = useResource(`decision ${decisionId}`, (options) => api.audit.decision(decisionId, options));
  const names = useNames(["user", "service-account", "project", "team", "org"]);
  const crumbs = [{ title: "Access audit", href: href("audit") }];
  if (!decision.data) return h(Unread, { title: "Decision", crumbs, of: decision, notFound: "No decision has this id. Records may be purged by age." });
  return h(Known, { one: decision.data, names, crumbs });
}

/** @param {{ one: AccessDecision, names: Map<string, Named>, crumbs: { title: string, href: string }[] }} props */
function Known({ one, names, crumbs }) {
  const actor = named(one.actorSubject, names);
  const resource = named(one.resource, names);
  const isDenied = one.outcome === "denied";
  const title = `${one.action} ${words(resource)}`;
  const [what] = STAGES[one.stage] ?? [one.stage, ""];
  return div(
    null,
    h(PageHead, { title: title.charAt(0).toUpperCase() + title.slice(1), documentTitle: `${one.outcome}: ${title}`, crumbs, state: h(State, { state: String(one.outcome) }), lead: `${actor.name ?? one.actorSubject}, ${absolute(one.timestamp)}` }),
    div(
      { class: "columns side" },
      div(
        { class: "stack" },
        h(Section, { title: isDenied ? "Why it was denied" : "Why it was allowed" }, h(Facts, {
          rows: true,
          facts: [
            ["Reason", one.reason],
            ["Decided by", what],
            ["Failing part", one.failingPart ? code(null, one.failingPart) : isDenied ? "–" : undefined],
            ["Took", `${one.durationMs.toFixed(one.durationMs < 10 ? 2 : 0)} ms`],
          ],
        })),
        isDenied ? h(Section, { title: "What would allow it" }, h(WouldAllow, { one, resource })) : null,
        h(Section, { title: "The check that was asked" }, one.check
          ? h(Facts, {
              rows: true,
              facts: [
                ["User", code(null, one.check.user)],
                ["Relation", code(null, one.check.relation)],
                ["Object", code(null, one.check.object)],
                ["Store", h(Id, { id: one.check.storeId, what: "store" })],
                ["Model", h(Id, { id: one.check.modelId, what: "model" })],
              ],
            })
          : "The authorization server was not asked: an earlier check decided."),
      ),
      div(
        { class: "stack" },
        h(Section, { title: "Who and what" }, h(Facts, {
          rows: true,
          facts: [
            ["Actor", fragment(linked(actor, one.actorSubject), a({ class: "aside", href: href("audit", { actorSubject: one.actorSubject }) }, "Same actor"))],
            ["Action", one.action],
            ["Resource", fragment(linked(resource, one.resource), a({ class: "aside", href: href("audit", { resource: one.resource }) }, "Same resource"))],
            ["Run", one.runId ? fragment(a({ href: href(`runs/${one.runId}`) }, "Open the run"), a({ class: "aside", href: href("audit", { runId: one.runId }) }, "Same run")) : undefined],
          ],
        })),
        h(Section, { title: "The request" }, h(Facts, {
          rows: true,
          facts: [
            ["Time", h(Time, { at: one.timestamp })],
            ["Route", one.route ? code(null, one.route) : undefined],
            ["Request", one.requestId ? fragment(h(Id, { id: one.requestId, what: "request" }), a({ class: "aside", href: href("audit", { requestId: one.requestId }) }, "Same request")) : undefined],
            ["Trace", one.traceId ? h(Id, { id: one.traceId, what: "trace" }) : undefined],
            ["Key or session", one.keyId ? h(Id, { id: one.keyId, what: "key" }) : undefined],
            ["From", one.clientAddress ? code(null, one.clientAddress) : undefined],
            ["Decision", h(Id, { id: one.id, what: "decision" })],
          ],
        })),
      ),
    ),
  );
}

/** @param {{ kind: string, id: string, name?: string }} of */
function words(of) {
  if (of.kind === "tenant") return "the tenant";
  return of.name ? `${{ user: "", "service-account": "" }[of.kind] ?? `${of.kind} `}${of.name}` : `${/^[aeiou]/.test(of.kind) ? "an" : "a"} ${of.kind}`;
}

/** @param {{ href?: string, name?: string }} of @param {string} text @returns {Child} */
function linked(of, text) {
  return span({ class: "subject" }, of.href ? a({ href: of.href, title: text }, of.name ?? text) : (of.name ?? text), h(Copy, { text, label: `Copy ${text}` }));
}

/** @param {{ one: AccessDecision, resource: { kind: string } }} props */
function WouldAllow({ one, resource }) {
  const [, allows] = STAGES[one.stage] ?? ["", ""];
  if (one.stage !== "model") return p(null, allows || "The reason says what was missing.");
  const roles = rolesThatAllow(one.action, resource.kind === "user" || resource.kind === "service-account" ? "tenant" : resource.kind);
  if (!roles.length) return p(null, "The reason says what was missing.");
  return fragment(p(null, `Any one of these roles, in what the ${resource.kind} lies in:`), ul({ class: "points" }, roles.map((role) => li({ key: role }, role))), p({ class: "faint" }, "A role on a project counts by every way in: of one's own, by a team, by the org."));
}
