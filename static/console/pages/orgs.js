/** Orgs: groups of projects with admins of their own. A tenant admin sees all, an org's admin their own. */

import { api } from "../api.js";
import { FormDialog } from "../components/dialog.js";
import { Field, faultAt } from "../components/field.js";
import { Id } from "../components/id.js";
import { PageHead } from "../components/page-head.js";
import { Pager, useList } from "../components/pager.js";
import { useActs } from "../components/acts.js";
import { Empty } from "../components/states.js";
import { announce } from "../components/status.js";
import { Table } from "../components/table.js";
import { Time } from "../components/time.js";
import { mayGrant } from "../permit.js";
import { go, href } from "../route.js";
import { h, tags, useState } from "../ui.js";

/** @import { Org } from "agent-runtime/types" */

const { button, div } = tags;

/** @type {import("../components/table.js").Column[]} */
const COLUMNS = [
  { title: "Org", show: (/** @type {Org} */ org) => org.name },
  { title: "Made (UTC)", show: (/** @type {Org} */ org) => h(Time, { at: org.createdAt, short: true }), from: "middle", isSecond: true },
  { title: "Id", show: (/** @type {Org} */ org) => h(Id, { id: org.id, what: "org" }), from: "wide", isSecond: true },
];

export default function Orgs() {
  const [isMaking, setMaking] = useState(false);
  const list = useList("orgs", {}, (wanted, options) => api.orgs.list(wanted, options));
  const makes = mayGrant("tenant");
  const make = makes ? button({ type: "button", class: "primary", onClick: () => setMaking(true) }, "Make an org") : null;
  useActs(makes ? [{ title: "Make an org", about: "Act", icon: "plus", run: () => setMaking(true) }] : []);
  return div(
    null,
    h(PageHead, { title: "Orgs", lead: "An org is a group of projects. Its admins are admins of each of them.", actions: make }),
    h(Table, {
      label: "Orgs, newest first",
      columns: COLUMNS,
      list,
      rowHref: (/** @type {Org} */ org) => href(`orgs/${org.id}`),
      empty: h(Empty, { title: "No org yet.", action: make }, "Projects need none. Make one where several projects have the same admins."),
    }),
    h(Pager, { list }),
    isMaking ? h(MakeOrg, { onClose: () => setMaking(false) }) : null,
  );
}

/** @param {{ onClose: () => void }} props */
function MakeOrg({ onClose }) {
  const [name, setName] = useState("");
  return h(FormDialog, {
    title: "Make an org",
    act: "Make the org",
    isReady: Boolean(name.trim()),
    onClose,
    onSubmit: async () => {
      const made = await api.orgs.create({ name: name.trim() });
      announce("Made");
      go(href(`orgs/${made.id}`));
    },
    fields: (error) => h(Field, { label: "Name", hint: "No other org of the tenant has it.", value: name, onInput: setName, most: 200, isRequired: true, autofocus: true, autoComplete: "off", error: faultAt(error, "name", "already-exists") }),
  });
}
