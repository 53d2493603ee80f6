/** The variables of an environment. Every member reads them; who may change them, does so here. */

import { api } from "../api.js";
import { useActs } from "../components/acts.js";
import { confirm } from "../components/dialog.js";
import { Menu } from "../components/menu.js";
import { useNames } from "../components/names.js";
import { PageHead } from "../components/page-head.js";
import { IN_ORDER, Pager, useList } from "../components/pager.js";
import { Empty } from "../components/states.js";
import { announce } from "../components/status.js";
import { Table } from "../components/table.js";
import { Time } from "../components/time.js";
import { holds, isTenantAdmin } from "../permit.js";
import { href } from "../route.js";
import { h, tags, useState } from "../ui.js";
import { PutVariable } from "./variable-form.js";

/** @import { Variable } from "agent-runtime/types" */

const { button, code, div } = tags;

/** @param {{ environment: string }} props */
export default function EnvironmentPage({ environment }) {
  const [form, setForm] = useState(/** @type {{ name: string, value: string } | null} */ (null));
  const list = useList(`variables ${environment}`, {}, (wanted, options) => api.environments.variables.list(environment, wanted, options), { order: null });
  const names = useNames(["user", "service-account"], { isWhole: true });
  const mayPut = isTenantAdmin() && holds("env:write");
  const add = () => setForm({ name: "", value: "" });
  const put = mayPut ? button({ type: "button", class: "primary", onClick: add }, "Put a variable") : null;
  useActs(mayPut ? [{ title: "Put a variable", about: "Act", icon: "plus", run: add }] : []);
  return div(
    null,
    h(PageHead, { title: environment, crumbs: [{ title: "Environments", href: href("environments") }], actions: list.rows?.length ? put : null }),
    h(Table, {
      label: "Variables, by name",
      columns: columns(names, mayPut, setForm, list.reload),
      list,
      rowKey: (/** @type {Variable} */ one) => one.name,
      empty: h(Empty, { title: "No variable is in this environment.", action: put }, "A flow reads one as $runtime.metadata.env.NAME, as it was when its run was created."),
    }),
    h(Pager, { list, ...IN_ORDER }),
    form ? h(PutVariable, { begun: { environment, ...form }, isFixed: true, onClose: () => setForm(null), onPut: list.reload }) : null,
  );
}

/**
 * @param {Map<string, import("../components/names.js").Named>} names
 * @param {boolean} mayPut
 * @param {(form: { name: string, value: string }) => void} open
 * @param {() => void} reload
 * @returns {import("../components/table.js").Column[]}
 */
const columns = (names, mayPut, open, reload) => [
  { title: "Name", show: (/** @type {Variable} */ one) => code(null, one.name) },
  { title: "Value", show: (/** @type {Variable} */ one) => code(null, shortened(one.value)), wraps: true },
  { title: "Put (UTC)", show: (/** @type {Variable} */ one) => h(Time, { at: one.updatedAt, short: true }), from: "middle", isSecond: true },
  { title: "Put by", show: (/** @type {Variable} */ one) => names.get(one.updatedBy)?.name ?? "somebody else", from: "wide", isSecond: true },
  ...(mayPut ? [{ title: "Acts", show: (/** @type {Variable} */ one) => h(Menu, { label: `Acts on ${one.name}`, face: "Acts", items: [{ title: "Put another value …", run: () => open({ name: one.name, value: one.value }) }, "line", { title: "Delete …", isDanger: true, run: () => remove(one, reload) }] }) }] : []),
];

/** As much of a value as a row shows. @param {string} value */
const shortened = (value) => (value.length > 200 ? `${value.slice(0, 200)}…` : value);

/** @param {Variable} one @param {() => void} reload */
function remove(one, reload) {
  confirm({
    title: `Delete the variable ${one.name}?`,
    says: "Runs that were created before keep it. In later ones a flow reads null in its place.",
    act: "Delete",
    run: async () => {
      await api.environments.variables.delete(one.environment, one.name);
      announce("Deleted");
      reload();
    },
  });
}
