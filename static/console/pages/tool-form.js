/**
 * Registers a tool: an HTTP server with its secret headers and its signature, an agent, or a flow; with what each call asks a
 * reviewer first. `?like=ID` begins with another tool.
 */

import { api } from "../api.js";
import { Check, Field, Select, faultAt, useFaulty } from "../components/field.js";
import { PageHead } from "../components/page-head.js";
import { JsonField } from "../components/schema-form.js";
import { Section } from "../components/section.js";
import { Empty, Failure, Loading } from "../components/states.js";
import { announce } from "../components/status.js";
import { holds, isTenantAdmin, may } from "../permit.js";
import { useAct, useResource } from "../resource.js";
import { chosenProject, go, href, query } from "../route.js";
import { fragment, h, tags, useState } from "../ui.js";

/** @import { Tool } from "agent-runtime/types" */
/** @import { AgentRuntimeError } from "agent-runtime" */

const { a, button, div, fieldset, form, input, label, legend, p, span } = tags;

const SCHEMA = { type: "object", properties: { order: { type: "string", description: "As it stands on the invoice." } }, required: ["order"] };
const MOST_HEADERS = 8;

/** What the form holds. @param {Tool | undefined} like @param {string} projectId */
function begun(like, projectId) {
  const asks = like?.approval;
  return {
    projectId: like?.projectId ?? projectId,
    target: /** @type {string} */ (like?.target ?? "http"),
    name: like?.name ?? "",
    description: like?.description ?? "",
    schema: /** @type {any} */ (like?.argumentsSchema ?? SCHEMA),
    hasSchema: Boolean(like),
    url: like?.url ?? "",
    timeout: like?.timeoutMs ? String(like.timeoutMs / 1000) : "30",
    idempotent: like?.idempotent ?? false,
    dryRun: String(like?.dryRun ?? "simulate"),
    headers: (like?.headers ?? []).map((header) => ({ name: header.name, secret: header.secret, prefix: header.prefix ?? "" })),
    signingSecret: like?.signingSecret ?? "",
    agentId: like?.agent?.id ?? "",
    flowId: like?.flow?.flowId ?? "",
    version: like?.agent?.version ?? like?.flow?.version ?? "",
    asks: Boolean(asks),
    approval: { title: asks?.title ?? "", requiredRole: asks?.requiredRole ?? "standard", assignedTo: asks?.assignedTo ?? "", expiresAfter: asks?.expiresAfter ?? "PT24H", onReject: String(asks?.onReject ?? "tell"), after: asks?.escalation?.[0]?.after ?? "", then: asks?.escalation?.[0]?.requiredRole ?? "", thenTo: asks?.escalation?.[0]?.assignedTo ?? "" },
  };
}

/** @typedef {ReturnType<typeof begun>} Draft */
/** @typedef {{ draft: Draft, set: (change: Partial<Draft>) => void, error?: AgentRuntimeError }} Part */

/** What is sent: of each kind its own fields alone. @param {Draft} draft */
function bodyOf(draft) {
  const { approval } = draft;
  const version = draft.version.trim() ? { version: draft.version.trim() } : {};
  const seconds = Number(draft.timeout);
  return /** @type {any} */ ({
    projectId: draft.projectId,
    name: draft.name.trim(),
    description: draft.description,
    ...(draft.target === "http" || (draft.target === "flow" && draft.hasSchema) ? { argumentsSchema: draft.schema } : {}),
    ...(draft.target === "http" ? { url: draft.url.trim(), timeoutMs: Number.isFinite(seconds) ? Math.round(seconds * 1000) : draft.timeout, idempotent: draft.idempotent, dryRun: draft.dryRun } : {}),
    ...(draft.target === "http" && draft.headers.length ? { headers: draft.headers.map((header) => ({ name: header.name.trim(), secret: header.secret.trim(), ...(header.prefix ? { prefix: header.prefix } : {}) })) } : {}),
    ...(draft.target === "http" && draft.signingSecret.trim() ? { signingSecret: draft.signingSecret.trim() } : {}),
    ...(draft.target === "agent" ? { agent: { id: draft.agentId, ...version } } : {}),
    ...(draft.target === "flow" ? { flow: { flowId: draft.flowId, ...version } } : {}),
    ...(draft.asks ? { approval: { title: approval.title.trim(), requiredRole: approval.requiredRole.trim(), assignedTo: approval.assignedTo.trim() || undefined, expiresAfter: approval.expiresAfter.trim(), onReject: approval.onReject, ...(approval.after.trim() ? { escalation: [{ after: approval.after.trim(), requiredRole: approval.then.trim(), assignedTo: approval.thenTo.trim() || undefined }] } : {}) } } : {}),
  });
}

export default function ToolForm() {
  const [likeId, project] = [query.value.like, chosenProject.value];
  const like = useResource(likeId ? `tool ${likeId}` : null, (options) => api.tools.get(likeId ?? "", options));
  const projects = useResource("projects to register a tool in", (options) => api.projects.list({ archived: false, limit: 200 }, options));
  const crumbs = [{ title: "Tools", href: href("tools") }];
  const head = h(PageHead, { title: "Register a tool", crumbs, lead: "A tool never changes once it is registered, since versions of agents and flows name it." });
  const error = like.error ?? projects.error;
  const failed = error ? h(Failure, { error, retry: () => (like.reload(), projects.reload()), notFound: "No tool has this id, or you may not read it." }) : null;
  if (!projects.data || (likeId && !like.data)) return div(null, head, failed ?? h(Loading, {}));
  const offered = projects.data.data.filter((one) => may("admin", "tool", { projectId: one.id })).map((one) => ({ value: one.id, label: one.name }));
  if (!offered.length) return div(null, head, h(Empty, { title: "You may register tools in no project." }, "An admin of the project registers what its agents may call."));
  const first = offered.some((one) => one.value === project) ? project : offered.length === 1 ? (offered[0]?.value ?? "") : "";
  // What is typed stays where reading again fails.
  return div(null, head, failed, h(Form, { begins: begun(like.data, first), projects: offered }));
}

/** @param {{ begins: Draft, projects: { value: string, label: string }[] }} props */
function Form({ begins, projects }) {
  const [draft, setDraft] = useState(begins);
  const [fault, setFault] = useState(/** @type {string | undefined} */ (undefined));
  const act = useAct(async () => {
    const made = await api.tools.register(bodyOf(draft));
    announce("Registered");
    go(href(`tools/${made.id}`));
  });
  const { error } = act;
  const ref = useFaulty(error);
  const part = { draft, set: (/** @type {Partial<Draft>} */ change) => setDraft((old) => ({ ...old, ...change })), error };
  const needs = draft.target === "http" ? draft.url.trim() : draft.target === "agent" ? draft.agentId : draft.flowId;
  const isReady = Boolean(draft.projectId && draft.name.trim() && needs && !fault) && !act.isBusy;
  return form(
    { ref, class: "stack tool-form", noValidate: true, onSubmit: (event) => (event.preventDefault(), isReady && act.run()) },
    h(Section, { title: "What it is" }, h(What, { ...part, projects })),
    h(Section, { title: "What a call goes to" }, h(Target, part)),
    draft.target === "agent" ? null : h(Section, { title: "Its arguments" }, h(Schema, { ...part, onFault: setFault })),
    draft.target === "http" ? h(Section, { title: "How it knows who calls" }, h(Proofs, part)) : null,
    h(Section, { title: "Who is asked first" }, h(Approval, part)),
    h(Failure, { error: act.error }),
    div({ class: "row end" }, a({ class: "button", href: href("tools") }, "Cancel"), button({ class: "primary", "aria-disabled": isReady ? undefined : "true" }, act.isBusy ? "Register …" : "Register the tool")),
  );
}

/** @param {Part & { projects: { value: string, label: string }[] }} props */
function What({ draft, set, error, projects }) {
  return div(
    { class: "form" },
    h(Select, { label: "Project", value: draft.projectId, onInput: (projectId) => set({ projectId, agentId: "", flowId: "" }), options: projects, placeholder: "Choose", error: faultAt(error, "projectId") }),
    h(Field, { label: "Name", hint: "What the model calls it by: letters, digits, _ and -.", value: draft.name, onInput: (name) => set({ name }), isRequired: true, isMono: true, most: 64, autoComplete: "off", error: faultAt(error, "name", "already-exists") }),
    h(Field, { label: "Description", hint: "What it is for, what each argument means and in which unit. The model sees this and nothing else.", value: draft.description, onInput: (description) => set({ description }), lines: 4, most: 4000, error: faultAt(error, "description") }),
  );
}

const TARGETS = [["http", "A server of yours"], ["agent", "An agent of the project"], ["flow", "A flow of the project"]];

/** @param {Part} props */
function Target({ draft, set, error }) {
  const agents = useResource(draft.target === "agent" && draft.projectId ? `agents to call ${draft.projectId}` : null, (options) => api.agents.list({ projectId: draft.projectId, limit: 200 }, options));
  const flows = useResource(draft.target === "flow" && draft.projectId ? `flows to call ${draft.projectId}` : null, (options) => api.flows.list({ projectId: draft.projectId, limit: 200 }, options));
  return div(
    { class: "form" },
    fieldset(
      { class: "field" },
      legend({ class: "hidden" }, "What a call goes to"),
      div({ class: "row choices" }, TARGETS.map(([value, words]) => label({ key: value }, input({ type: "radio", name: "target", checked: draft.target === value, onChange: () => set({ target: value, version: "" }) }), span(null, words)))),
    ),
    draft.target === "http"
      ? fragment(
          h(Field, { label: "Address", hint: "Called with POST.", type: "url", value: draft.url, onInput: (url) => set({ url }), isRequired: true, most: 2048, placeholder: "https://tools.example.com/order-status", autoComplete: "off", error: faultAt(error, "url", "host-access-denied") }),
          h(Field, { label: "A call may take (seconds)", value: draft.timeout, onInput: (timeout) => set({ timeout }), inputMode: "decimal", error: faultAt(error, "timeoutMs") }),
          h(Check, { label: "It is idempotent", hint: "It may be called again when a crash leaves it open whether it was called.", value: draft.idempotent, onInput: (idempotent) => set({ idempotent }) }),
          h(Select, { label: "In a dry run", hint: "Have it called only if it changes nothing while a call says dryRun; nobody is asked to approve it then.", value: draft.dryRun, onInput: (dryRun) => set({ dryRun }), options: [{ value: "simulate", label: "It is not called" }, { value: "call", label: "It is called, and told" }], error: faultAt(error, "dryRun") }),
        )
      : null,
    draft.target === "agent" ? h(Select, { label: "Agent", hint: "A call is a turn of its own, in a run below the caller's.", value: draft.agentId, onInput: (agentId) => set({ agentId }), options: (agents.data?.data ?? []).map((one) => ({ value: one.id, label: one.name })), placeholder: "Choose", error: faultAt(error, "agent.id") }) : null,
    draft.target === "flow" ? h(Select, { label: "Flow", hint: "A call is a run below the caller's.", value: draft.flowId, onInput: (flowId) => set({ flowId }), options: (flows.data?.data ?? []).map((one) => ({ value: one.flowId, label: one.flowId })), placeholder: "Choose", error: faultAt(error, "flow.flowId") }) : null,
    draft.target === "http" ? null : h(Field, { label: "Version", isRequired: false, hint: "Without one: the live version, else the latest.", value: draft.version, onInput: (version) => set({ version }), isMono: true, placeholder: "1.0.0", error: faultAt(error, `${draft.target}.version`) }),
  );
}

/** @param {Part & { onFault: (fault: string | undefined) => void }} props */
function Schema({ draft, set, error, onFault }) {
  const faults = /** @type {{ path?: string, expected?: string }[]} */ (Array.isArray(error?.details.faults) ? error.details.faults : []);
  const of = [...faults, { path: String(error?.details.path ?? ""), expected: error?.message }].find((one) => one.path?.startsWith("$.argumentsSchema"));
  const field = h(JsonField, { label: "JSON Schema of the arguments", hint: "An object; the model fits its arguments to it.", value: draft.schema, onInput: (schema, fault) => (set({ schema }), onFault(fault)), error: of ? `${of.path}: ${of.expected}` : undefined });
  if (draft.target === "http") return div({ class: "form" }, field);
  return div({ class: "form" }, h(Check, { label: "Other arguments than the flow's input", hint: "Without this it takes what the flow's version says of its input.", value: draft.hasSchema, onInput: (hasSchema) => set({ hasSchema }) }), draft.hasSchema ? field : null);
}

/** @param {Part} props */
function Proofs({ draft, set, error }) {
  // Whoever says where a secret is sent can read it. So naming one takes a use for the address, or what putting one takes;
  // which uses stand, tenant admins alone can read.
  const mayAllow = isTenantAdmin() && holds("secrets:write");
  const change = (/** @type {number} */ index, /** @type {Partial<Draft["headers"][number]>} */ part) => set({ headers: draft.headers.with(index, { .../** @type {any} */ (draft.headers[index]), ...part }) });
  return div(
    { class: "form" },
    mayAllow ? null : p({ class: "faint" }, "A secret that is named here needs a use for this address and project. A tenant admin allows it, on the page Secrets. Without a secret, let only this service reach the server."),
    draft.headers.map((header, index) =>
      div(
        { key: index, class: "editor", role: "group", "aria-label": `Header ${index + 1}` },
        div(
          { class: "row" },
          h(Field, { label: "Header", value: header.name, onInput: (name) => change(index, { name }), isMono: true, most: 64, placeholder: "Authorization", autoComplete: "off", error: faultAt(error, `headers[${index}].name`) }),
          h(Field, { label: "Before the value", isRequired: false, value: header.prefix, onInput: (prefix) => change(index, { prefix }), isMono: true, most: 64, placeholder: "Bearer ", autoComplete: "off", error: faultAt(error, `headers[${index}].prefix`) }),
          h(Field, { label: "Secret", value: header.secret, onInput: (secret) => change(index, { secret }), isMono: true, most: 128, placeholder: "TOOL_KEY", autoComplete: "off", error: faultAt(error, `headers[${index}].secret`) }),
        ),
        div(null, button({ type: "button", onClick: () => set({ headers: draft.headers.toSpliced(index, 1) }) }, `Remove header ${index + 1}`)),
      ),
    ),
    draft.headers.length < MOST_HEADERS ? div(null, button({ type: "button", onClick: () => set({ headers: [...draft.headers, { name: "", secret: "", prefix: "" }] }) }, "Add a header with a secret")) : null,
    h(Field, { label: "Secret that signs each call", isRequired: false, hint: "Its name; found under the environment that the server serves.", value: draft.signingSecret, onInput: (signingSecret) => set({ signingSecret }), isMono: true, most: 128, autoComplete: "off", error: faultAt(error, "signingSecret") }),
  );
}

/** @param {Part} props */
function Approval({ draft, set, error }) {
  const { approval } = draft;
  const change = (/** @type {Partial<Draft["approval"]>} */ part) => set({ approval: { ...approval, ...part } });
  return div(
    { class: "form" },
    h(Check, { label: "Each call waits until a reviewer has approved it", value: draft.asks, onInput: (asks) => set({ asks }) }),
    draft.asks
      ? div(
          { class: "group stack" },
          h(Field, { label: "What the reviewer reads first", hint: "Webhooks tell it, too: it says nothing of a single call.", value: approval.title, onInput: (title) => change({ title }), isRequired: true, most: 200, error: faultAt(error, "approval.title") }),
          h(Field, { label: "Reviewer role", value: approval.requiredRole, onInput: (requiredRole) => change({ requiredRole }), isRequired: true, isMono: true, most: 40, error: faultAt(error, "approval.requiredRole") }),
          h(Field, { label: "Assigned to", hint: "The email or id of a reviewer with the role. The others may still decide.", isRequired: false, value: approval.assignedTo, onInput: (assignedTo) => change({ assignedTo }), most: 320, error: faultAt(error, "approval.assignedTo") }),
          h(Field, { label: "Waits at most", hint: "An ISO 8601 duration, such as PT8H or P1D; 30 days at most.", value: approval.expiresAfter, onInput: (expiresAfter) => change({ expiresAfter }), isRequired: true, isMono: true, error: faultAt(error, "approval.expiresAfter") }),
          h(Select, { label: "If it is rejected, or nobody decides", value: approval.onReject, onInput: (onReject) => change({ onReject }), options: [{ value: "tell", label: "The model is told, and the turn goes on" }, { value: "fail", label: "The turn fails" }] }),
          div({ class: "columns" }, h(Field, { label: "Asks others after", isRequired: false, value: approval.after, onInput: (after) => change({ after }), isMono: true, placeholder: "PT4H", error: faultAt(error, "approval.escalation[0].after") }), approval.after.trim() ? h(Field, { label: "Their reviewer role", value: approval.then, onInput: (then) => change({ then }), isMono: true, most: 40, error: faultAt(error, "approval.escalation[0].requiredRole") }) : null, approval.after.trim() ? h(Field, { label: "Assigned to, then", isRequired: false, value: approval.thenTo, onInput: (thenTo) => change({ thenTo }), most: 320, error: faultAt(error, "approval.escalation[0].assignedTo") }) : null),
        )
      : null,
  );
}
