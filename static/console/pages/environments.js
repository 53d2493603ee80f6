/** Environments: names under which variables and secrets are stored. One is there as soon as something names it. */

import { api } from "../api.js";
import { useActs } from "../components/acts.js";
import { PageHead } from "../components/page-head.js";
import { IN_ORDER, Pager, useList } from "../components/pager.js";
import { Empty } from "../components/states.js";
import { Table } from "../components/table.js";
import { holds, isTenantAdmin } from "../permit.js";
import { go, href } from "../route.js";
import { h, tags, useState } from "../ui.js";
import { PutVariable } from "./variable-form.js";

/** @import { Environment } from "agent-runtime/types" */

const { button, code, div, span } = tags;

/** @type {import("../components/table.js").Column[]} */
const COLUMNS = [{ title: "Environment", show: (/** @type {Environment} */ one) => span(null, code(null, one.name), one.isServed ? span({ class: "tag beside" }, "served here") : null) }];

export default function Environments() {
  const [isPutting, setPutting] = useState(false);
  const list = useList("environments", {}, (wanted, options) => api.environments.list(wanted, options), { order: null });
  const mayPut = isTenantAdmin() && holds("env:write");
  const put = mayPut ? button({ type: "button", class: "primary", onClick: () => setPutting(true) }, "Put a variable") : null;
  useActs(mayPut ? [{ title: "Put a variable", about: "Act", icon: "plus", run: () => setPutting(true) }] : []);
  const served = list.rows?.find((one) => one.isServed)?.name;
  return div(
    null,
    h(PageHead, { title: "Environments", lead: "Flows read the variables of the environment that the server serves. They are no secrets: every member sees them.", actions: put }),
    h(Table, {
      label: "Environments, by name",
      columns: COLUMNS,
      list,
      rowKey: (/** @type {Environment} */ one) => one.name,
      rowHref: (/** @type {Environment} */ one) => href(`environments/${encodeURIComponent(one.name)}`),
      empty: h(Empty, { title: "No environment yet.", action: put }, "A variable, a secret or the setting SVC_ENVIRONMENT names one."),
    }),
    h(Pager, { list, ...IN_ORDER }),
    isPutting ? h(PutVariable, { begun: { environment: served ?? "", name: "", value: "" }, onClose: () => setPutting(false), onPut: (environment) => go(href(`environments/${encodeURIComponent(environment)}`)) }) : null,
  );
}
