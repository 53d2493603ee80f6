/** Uses of secrets: which secret may be sent where, for which project. A part of the page Secrets. */

import { api } from "../api.js";
import { FormDialog, confirm } from "../components/dialog.js";
import { Field, Select, faultAt } from "../components/field.js";
import { Menu } from "../components/menu.js";
import { useNames } from "../components/names.js";
import { Pager, useList } from "../components/pager.js";
import { useProjects } from "../components/projects-to-choose.js";
import { Section } from "../components/section.js";
import { Empty } from "../components/states.js";
import { announce } from "../components/status.js";
import { Table } from "../components/table.js";
import { Time } from "../components/time.js";
import { holds, isTenantAdmin } from "../permit.js";
import { fragment, h, tags, useState } from "../ui.js";

/** @import { SecretUse } from "agent-runtime/types" */

const { button, code, p } = tags;

/** The scheme, host and port that a use names. @param {SecretUse} one */
const originOf = (one) => one.target.replace(/^origin:/, "");

export function SecretUses() {
  const [isAdding, setAdding] = useState(false);
  const list = useList("secret uses", {}, (wanted, options) => api.secretUses.list(wanted, options), { cursor: "uses" });
  const names = useNames(["project"], { isWhole: true });
  const mayChange = isTenantAdmin() && holds("secrets:write");
  const add = mayChange ? button({ type: "button", onClick: () => setAdding(true) }, "Allow a use") : null;
  return h(
    Section,
    { title: "Uses by tools", actions: list.rows?.length ? add : null, isFlush: true },
    p({ class: "faint pad" }, "A tool gets a secret only if a use allows it for the tool's address and project. Each call checks this again. Model providers and webhooks need no use."),
    h(Table, {
      label: "Uses of secrets, newest first",
      columns: columns(names, mayChange, list.reload),
      list,
      rowKey: (/** @type {SecretUse} */ one) => one.id,
      empty: h(Empty, { title: "No use yet.", action: add }, "Allow one, and admins of the project can register tools that send the secret there. A tool that a tenant admin registers brings its uses."),
    }),
    h(Pager, { list, cursor: "uses" }),
    isAdding ? h(Add, { onClose: () => setAdding(false), onAdded: list.reload }) : null,
  );
}

/**
 * @param {Map<string, import("../components/names.js").Named>} names
 * @param {boolean} mayChange
 * @param {() => void} reload
 * @returns {import("../components/table.js").Column[]}
 */
const columns = (names, mayChange, reload) => [
  { title: "Secret", show: (/** @type {SecretUse} */ one) => code(null, one.name) },
  { title: "May be sent to", show: (/** @type {SecretUse} */ one) => code(null, originOf(one)), wraps: true },
  { title: "For", show: (/** @type {SecretUse} */ one) => (one.projectId ? (names.get(one.projectId)?.name ?? "another project") : "every project") },
  { title: "Allowed (UTC)", show: (/** @type {SecretUse} */ one) => h(Time, { at: one.createdAt, short: true }), from: "wide", isSecond: true },
  ...(mayChange ? [{ title: "Acts", show: (/** @type {SecretUse} */ one) => h(Menu, { label: `Acts on the use of ${one.name} for ${originOf(one)}`, face: "Acts", items: [{ title: "Delete …", isDanger: true, run: () => remove(one, reload) }] }) }] : []),
];

/** @param {SecretUse} one @param {() => void} reload */
function remove(one, reload) {
  confirm({
    title: `Delete the use of ${one.name} for ${originOf(one)}?`,
    says: "Tools that need it are not called any more, also by runs that are under way. Their models are told why.",
    act: "Delete",
    run: async () => {
      await api.secretUses.delete(one.id);
      announce("Deleted");
      reload();
    },
  });
}

/** @param {{ onClose: () => void, onAdded: () => void }} props */
function Add({ onClose, onAdded }) {
  const [name, setName] = useState("");
  const [origin, setOrigin] = useState("");
  const [projectId, setProjectId] = useState("");
  const projects = useProjects();
  return h(FormDialog, {
    title: "Allow a use",
    act: "Allow it",
    isReady: Boolean(name.trim() && origin.trim()),
    onClose,
    onSubmit: async () => {
      await api.secretUses.create({ name: name.trim(), target: `origin:${origin.trim()}`, ...(projectId ? { projectId } : {}) });
      announce("Allowed");
      onAdded();
    },
    fields: (error) =>
      fragment(
        h(Field, { label: "Secret", hint: "Its name. The environment decides the value.", value: name, onInput: setName, isRequired: true, isMono: true, most: 128, placeholder: "WEATHER_KEY", autofocus: true, autoComplete: "off", error: faultAt(error, "name", "already-exists") }),
        h(Field, { label: "May be sent to", hint: "Scheme, host and port, without a path.", value: origin, onInput: setOrigin, isRequired: true, isMono: true, most: 2048, placeholder: "https://api.example.com", autoComplete: "off", error: faultAt(error, "target") }),
        h(Select, { label: "For", value: projectId, onInput: setProjectId, options: [{ value: "", label: "Every project" }, ...projects], error: faultAt(error, "projectId") }),
      ),
  });
}
