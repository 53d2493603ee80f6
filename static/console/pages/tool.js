/**
 * A tool: what its calls go to, what the model is told of it, what each call asks first. A tool never changes, since versions
 * name it: another one is registered like it. One that no version names can be deleted.
 */

import { api } from "../api.js";
import { confirm } from "../components/dialog.js";
import { Id } from "../components/id.js";
import { Json } from "../components/json.js";
import { Menu } from "../components/menu.js";
import { useNames } from "../components/names.js";
import { PageHead, Unread } from "../components/page-head.js";
import { useActs } from "../components/acts.js";
import { Facts, Section } from "../components/section.js";
import { Empty } from "../components/states.js";
import { announce } from "../components/status.js";
import { Table } from "../components/table.js";
import { TextBlock } from "../components/text-block.js";
import { Time } from "../components/time.js";
import { may } from "../permit.js";
import { useResource } from "../resource.js";
import { go, href } from "../route.js";
import { duration } from "../time.js";
import { fragment, h, tags } from "../ui.js";
import { target } from "./tools.js";

/** @import { Tool } from "agent-runtime/types" */

const { a, code, details, div, span, summary } = tags;

/** @param {{ toolId: string }} props */
export default function ToolPage({ toolId }) {
  const tool = useResource(`tool ${toolId}`, (options) => api.tools.get(toolId, options));
  const crumbs = [{ title: "Tools", href: href("tools") }];
  if (!tool.data) return h(Unread, { title: "Tool", crumbs, of: tool, notFound: "No tool has this id, or you may not read it." });
  return h(Whole, { tool: tool.data, crumbs });
}

/** @param {{ tool: Tool, crumbs: { title: string, href: string }[] }} props */
function Whole({ tool, crumbs }) {
  const names = useNames(["project", "agent"], { projectId: tool.projectId });
  const mayChange = may("admin", "tool", { projectId: tool.projectId });
  const remove = () =>
    confirm({
      title: `Delete the tool ${tool.name}?`,
      says: "It can be deleted only while no version of an agent or of a flow calls it.",
      act: "Delete",
      run: async () => {
        await api.tools.delete(tool.id);
        announce("Deleted");
        go(href("tools"), { replace: true });
      },
    });
  const like = href("tools/new", { like: tool.id });
  useActs(mayChange ? [{ title: "Register another tool like this one", about: "Act", icon: "plus", run: () => go(like) }] : []);
  return fragment(
    h(PageHead, {
      title: tool.name,
      crumbs,
      actions: mayChange ? [h(Menu, { key: "more", label: "More", items: [{ title: "Delete …", isDanger: true, run: remove }] }), a({ key: "like", class: "button", href: like }, "Register another like it")] : null,
    }),
    div(
      { class: "stack" },
      div({ class: "card pad" }, h(Facts, { facts: facts(tool, names) })),
      h(Section, { title: "What the model is told" }, tool.description.trim() ? h(TextBlock, { label: "Description", text: tool.description }) : h(Empty, { title: "It has no description." })),
      h(Section, { title: "Its arguments" }, h(Arguments, { schema: tool.argumentsSchema })),
      tool.approval ? h(Section, { title: "Each call asks first" }, h(Facts, { rows: true, facts: asks(tool.approval) })) : null,
      tool.headers.length || tool.signingSecret ? h(Section, { title: "How it knows who calls" }, h(Facts, { rows: true, facts: proofs(tool) })) : null,
    ),
  );
}

/** @param {Tool} tool @param {Map<string, import("../components/names.js").Named>} names @returns {[string, import("../ui.js").Child][]} */
function facts(tool, names) {
  return [
    ["Calls", tool.agent ? a({ href: href(`agents/${tool.agent.id}`) }, target(tool, names)) : target(tool, names)],
    ["Project", names.get(tool.projectId)?.name ?? h(Id, { id: tool.projectId, what: "project" })],
    ["A call may take", tool.timeoutMs ? duration(tool.timeoutMs) : undefined],
    ["Called again when its answer is lost", tool.target === "http" ? (tool.idempotent ? "Yes, it is idempotent" : "No") : undefined],
    ["In a dry run", tool.dryRun ? (tool.dryRun === "call" ? "It is called, and told" : "It is not called") : undefined],
    ["Asks first", tool.approval ? `a reviewer, ${tool.approval.requiredRole ?? "standard"}` : "Nobody"],
    ["Registered", h(Time, { at: tool.createdAt })],
    ["Id", h(Id, { id: tool.id, what: "tool" })],
  ];
}

/** @param {import("agent-runtime/types").ToolApproval} approval @returns {[string, import("../ui.js").Child][]} */
function asks(approval) {
  const next = approval.escalation?.[0];
  return [
    ["What the reviewer reads first", approval.title],
    ["Who decides", `reviewers, ${approval.requiredRole}`],
    ["Assigned to", approval.assignedTo],
    ["Waits at most", code(null, approval.expiresAfter)],
    ["Then asks", next ? span(null, `reviewers, ${next.requiredRole}, after `, code(null, next.after), next.assignedTo ? `, assigned to ${next.assignedTo}` : "") : undefined],
    ["If it is rejected or nobody decides", approval.onReject === "fail" ? "The turn fails" : "The model is told, and the turn goes on"],
  ];
}

/** @param {Tool} tool @returns {[string, import("../ui.js").Child][]} */
function proofs(tool) {
  return [
    ...tool.headers.map((header) => /** @type {[string, import("../ui.js").Child]} */ ([header.name, span(null, header.prefix ? code(null, header.prefix) : null, "the secret ", code(null, header.secret))])),
    ["Signature", tool.signingSecret ? span(null, "by the secret ", code(null, tool.signingSecret), ", as Standard Webhooks 1.0 says") : undefined],
  ];
}

/**
 * The fields of a schema as rows, as far as they are plain; the whole of it below.
 * @param {{ schema: any }} props
 */
function Arguments({ schema }) {
  const fields = Object.entries(schema?.properties && typeof schema.properties === "object" ? schema.properties : {});
  const required = Array.isArray(schema?.required) ? schema.required : [];
  const rows = fields.map(([name, one]) => ({ name, type: typeOf(one), isRequired: required.includes(name), description: typeof one?.description === "string" ? one.description : "" }));
  return div(
    { class: "stack" },
    rows.length
      ? h(Table, {
          label: "Arguments",
          rowKey: (/** @type {any} */ row) => row.name,
          rows,
          columns: [
            { title: "Name", show: (row) => code(null, row.name) },
            { title: "Type", show: (row) => row.type },
            { title: "Required", show: (row) => (row.isRequired ? "yes" : span({ class: "faint" }, "no")) },
            { title: "Meaning", show: (row) => row.description, wraps: true, from: "middle" },
          ],
        })
      : h(Empty, { title: "It names no arguments." }),
    details(null, summary(null, "As JSON Schema"), h(Json, { value: schema, label: "Schema of the arguments", openLevels: 3 })),
  );
}

/** @param {any} schema */
function typeOf(schema) {
  if (Array.isArray(schema?.enum)) return schema.enum.slice(0, 6).map((/** @type {unknown} */ one) => JSON.stringify(one)).join(", ");
  const types = [schema?.type ?? []].flat().map(String);
  if (types[0] === "array" && typeof schema.items?.type === "string") return `list of ${schema.items.type}`;
  return types.join(" or ") || "any";
}
