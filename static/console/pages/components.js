/** Every component in its states, for who writes pages: this file is the example of how each is used. It asks the server nothing. */

import { AgentRuntimeError } from "../api.js";
import { Banner } from "../components/banner.js";
import { Bars } from "../components/bars.js";
import { Copy } from "../components/copy.js";
import { FormDialog, confirm } from "../components/dialog.js";
import { Diff } from "../components/diff.js";
import { Check, Field, Select } from "../components/field.js";
import { Id } from "../components/id.js";
import { Json } from "../components/json.js";
import { Markdown } from "../components/markdown.js";
import { Menu } from "../components/menu.js";
import { PageHead } from "../components/page-head.js";
import { SchemaForm, schemaDefaults } from "../components/schema-form.js";
import { SecretOnce } from "../components/secret-once.js";
import { Facts, Section } from "../components/section.js";
import { State } from "../components/state.js";
import { Empty, Failure } from "../components/states.js";
import { announce } from "../components/status.js";
import { Table } from "../components/table.js";
import { Tabs } from "../components/tabs.js";
import { TextBlock } from "../components/text-block.js";
import { Time } from "../components/time.js";
import { dollars } from "../number.js";
import { href } from "../route.js";
import { h, tags, useState } from "../ui.js";

const { button, div, p } = tags;

const STATES = ["queued", "running", "waiting", "completed", "failed", "cancelled", "approved", "rejected", "expired", "voided", "active", "deactivated", "delivered", "retrying", "sending", "allowed", "denied"];
const ID = "01a215ac-8cb6-79b0-81f2-6bec3728d462";
const AT = "2026-11-26T02:26:01.516Z";

const SCHEMA = {
  type: "object",
  required: ["order", "reason"],
  properties: {
    order: { type: "string", title: "Order", description: "As it stands on the invoice.", maxLength: 40 },
    reason: { type: "string", title: "Reason", enum: ["damaged", "late", "other"] },
    amount: { type: "number", title: "Amount", default: 20 },
    notify: { type: "boolean", title: "Tell the customer", default: true },
    address: { type: "object", title: "Address", properties: { street: { type: "string", title: "Street", maxLength: 80 }, city: { type: "string", title: "City", maxLength: 80 } } },
    tags: { type: "array", title: "Tags", items: { type: "string", title: "Tag", maxLength: 20 } },
  },
};

const MARKDOWN = "The **order** `A-17` was late.\n\n- It left on Monday\n- <b>This is text</b>, and ![so is this](https://images.example/a.png)\n\n| day | status |\n|---|---|\n| Monday | sent |\n\nSee [the carrier](https://carrier.example/track) or [this](javascript:alert(1)).\n\n```json\n{\"ok\": true}\n```";

export default function Components() {
  const [isForm, setForm] = useState(false);
  const [isSecret, setSecret] = useState(false);
  const [name, setName] = useState("Ada");
  const [role, setRole] = useState("viewer");
  const [isOn, setOn] = useState(true);
  const [value, setValue] = useState(() => schemaDefaults(SCHEMA));
  const [chosen, setChosen] = useState(/** @type {Set<string>} */ (new Set()));
  const [many, setMany] = useState(false);
  const rows = Array.from({ length: many ? 10_000 : 5 }, (_, index) => ({ id: `row-${index}`, name: `Row ${index + 1}`, cost: index * 0.0123 }));
  const before = "You are a careful assistant.\nAnswer in one sentence.\nUse the tools that you have.\nNever guess.\nSay when you do not know.\nBe kind.\nEnd.";
  const after = before.replace("one sentence", "two sentences at most").replace("Never guess.\n", "");
  return div(
    { class: "stack" },
    h(PageHead, {
      title: "Components",
      crumbs: [{ title: "Development", href: href("dev/components") }],
      lead: "How each of them looks, and is used.",
      state: h(State, { state: "live" }),
      actions: [
        h(Menu, { key: "menu", label: "More acts", items: [{ title: "Say something", run: () => announce("Saved") }, "line", { title: "Unregister …", isDanger: true, run: () => confirm({ title: "Unregister https://example.com/hooks?", says: "Deliveries that wait are not sent. It cannot be restored.", act: "Unregister", typed: "https://example.com/hooks", run: async () => announce("Unregistered") }) }] }),
        button({ key: "add", type: "button", class: "primary", onClick: () => setForm(true) }, "Add member"),
      ],
    }),
    h(Tabs, { label: "Parts", tabs: [{ title: "All", href: href("dev/components"), isCurrent: true }, { title: "Failing", href: href("dev/components", { only: "failing" }), isCurrent: false, count: 2 }] }),
    h(Section, { title: "States" }, div({ class: "row" }, STATES.map((state) => h(State, { key: state, state })))),
    h(Section, { title: "Facts", actions: button({ type: "button" }, "Change") }, h(Facts, { rows: true, facts: [["Id", h(Id, { id: ID, what: "run" })], ["Made", h(Time, { at: AT })], ["Nothing", null], ["Command", h(Copy, { text: "agent-runtime run", label: "Copy the command", words: true })]] })),
    h(Banner, { tone: "wait", title: "Two endpoints fail" }, "Their receivers did not answer for an hour."),
    h(Banner, { tone: "good" }, "Everything was delivered."),
    h(Failure, { error: new AgentRuntimeError("auth", "Permission denied: user lacks can_admin on project.", { status: 403, serverCode: "permission-denied", requestId: `req-${ID}` }) }),
    h(Failure, { error: new AgentRuntimeError("server", "Outbound webhooks are not turned on: set SVC_SECRETS_BACKEND.", { status: 501, serverCode: "not-configured" }) }),
    h(Section, { title: "Table", actions: button({ type: "button", onClick: () => setMany(!many) }, many ? "5 rows" : "10 000 rows") }, h(Table, { label: "Rows", rows, selected: chosen, onSelect: setChosen, rowHref: (/** @type {any} */ row) => href("dev/components", { row: row.id }), columns: [{ title: "Name", show: (row) => row.name }, { title: "State", show: () => h(State, { state: "completed" }) }, { title: "Cost", show: (row) => dollars(row.cost), isNumber: true }] })),
    h(Section, { title: "Nothing" }, h(Empty, { title: "No agent yet.", action: button({ type: "button", class: "primary" }, "Make an agent") }, "An agent is a model with instructions and tools.")),
    h(
      Section,
      { title: "Fields" },
      div(
        { class: "form" },
        h(Field, { label: "Name", hint: "As people know it.", value: name, onInput: setName, isRequired: true, error: name ? undefined : "A name is missing." }),
        h(Select, { label: "Role", value: role, onInput: setRole, options: ["owner", "admin", "editor", "viewer"].map((one) => ({ value: one, label: one })) }),
        h(Check, { label: "Dry run", hint: "Nothing outside is changed.", value: isOn, onInput: setOn }),
        h(Field, { label: "Instructions", value: before, onInput: () => {}, lines: 4, isRequired: false }),
      ),
    ),
    h(Section, { title: "A form of a schema" }, div({ class: "form" }, h(SchemaForm, { label: "Input", schema: SCHEMA, value, onInput: setValue }))),
    h(Section, { title: "Text" }, h(TextBlock, { label: "Text", text: "Your order left on Monday and arrives on Wednesday.\n".repeat(4) })),
    h(Section, { title: "JSON" }, h(Json, { label: "A value", value: { order: "A-17", amount: 20, isLate: true, note: null, lines: [{ sku: "P-1", count: 2 }, { sku: "P-2", count: 1 }] } })),
    h(Section, { title: "Markdown" }, h(Markdown, { text: MARKDOWN })),
    h(Section, { title: "Difference" }, h(Diff, { label: "Instructions", before, after })),
    h(Section, { title: "Bars" }, h(Bars, { title: "Cost by day", series: ["assistant", "refunds"], format: dollars, bars: Array.from({ length: 30 }, (_, index) => ({ label: `${index + 1} Nov`, values: [1 + (index % 7), (index * 3) % 5] })) })),
    div({ class: "row" }, button({ type: "button", onClick: () => setSecret(true) }, "Show a secret once")),
    isForm ? h(FormDialog, { title: "Add member", act: "Add member", onClose: () => setForm(false), isReady: Boolean(name), onSubmit: async () => announce("Added") }, h(Field, { label: "Email", type: "email", value: name, onInput: setName }), p({ class: "faint" }, "They read it at once.")) : null,
    isSecret ? h(SecretOnce, { title: "The key of ci-deploy", secret: "svc_bt_example", says: "Keep it where the pipeline keeps its secrets.", onClose: () => setSecret(false) }) : null,
  );
}
