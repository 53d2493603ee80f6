/** Agents: every one that the reader may read, with its live version; and making one. */

import { api } from "../api.js";
import { FormDialog } from "../components/dialog.js";
import { Field, Select, faultAt } from "../components/field.js";
import { Filters, clearFilters, filtered, isFiltered } from "../components/filters.js";
import { Icon } from "../components/icon.js";
import { useNames } from "../components/names.js";
import { PageHead } from "../components/page-head.js";
import { Pager, useList } from "../components/pager.js";
import { State } from "../components/state.js";
import { Empty } from "../components/states.js";
import { Table } from "../components/table.js";
import { Time } from "../components/time.js";
import { useMayIn } from "../components/projects-to-choose.js";
import { chosenProject, go, href } from "../route.js";
import { fragment, h, tags, useState } from "../ui.js";

/** @import { Agent } from "agent-runtime/types" */

const { button, div, span } = tags;

const FILTERS = [{ name: "archived", label: "Show", any: "In use", options: [{ value: "true", label: "Archived" }] }];

export default function Agents() {
  const [isMaking, setMaking] = useState(false);
  const projects = useNames(["project"]);
  const project = chosenProject.value;
  const places = useMayIn("admin");
  const list = useList("agents", { projectId: project, ...filtered(FILTERS) }, (wanted, options) => api.agents.list(wanted, options), { live: ["agent"] });
  const make = places.length ? button({ type: "button", class: "primary", onClick: () => setMaking(true) }, h(Icon, { name: "plus" }), "New agent") : null;
  return div(
    null,
    h(PageHead, { title: "Agents", actions: make }),
    h(Filters, { filters: FILTERS }),
    h(Table, {
      label: "Agents, newest first",
      list,
      rowHref: (/** @type {Agent} */ row) => href(`agents/${row.id}`),
      columns: [
        { title: "Agent", show: (/** @type {Agent} */ row) => row.name },
        { title: "Live", show: (/** @type {Agent} */ row) => (row.archivedAt ? h(State, { state: "archived" }) : row.liveVersion ? h(State, { state: "live", word: row.liveVersion }) : span({ class: "faint" }, row.latestVersion ? "none: the newest runs" : "no version yet")) },
        { title: "Newest", show: (/** @type {Agent} */ row) => row.latestVersion ?? "–", from: "middle" },
        { title: "What it does", show: (/** @type {Agent} */ row) => row.description, from: "wide", isSecond: true },
        { title: "Project", show: (/** @type {Agent} */ row) => projects.get(row.projectId)?.name ?? "–", from: "wide" },
        { title: "Changed (UTC)", show: (/** @type {Agent} */ row) => h(Time, { at: row.updatedAt, short: true }), from: "wide", isSecond: true },
      ],
      empty: isFiltered(FILTERS)
        ? h(Empty, { title: "No agent is archived.", action: button({ type: "button", onClick: () => clearFilters(FILTERS) }, "Show those in use") })
        : h(Empty, { title: "No agent yet.", action: make }, "An agent is a model with instructions and tools, in versions that never change."),
    }),
    h(Pager, { list }),
    isMaking ? h(NewAgent, { places, onClose: () => setMaking(false) }) : null,
  );
}

/** @param {{ places: { id: string, name: string }[], onClose: () => void }} props */
function NewAgent({ places, onClose }) {
  const chosen = places.find((one) => one.id === chosenProject.value) ?? (places.length === 1 ? places[0] : undefined);
  const [projectId, setProject] = useState(chosen?.id ?? "");
  const [name, setName] = useState("");
  const [description, setDescription] = useState("");
  return h(FormDialog, {
    title: "New agent",
    act: "Make the agent",
    isReady: Boolean(projectId && name.trim()),
    onClose,
    onSubmit: async () => {
      const agent = await api.agents.create({ projectId, name: name.trim(), description: description.trim() });
      go(href(`agents/${agent.id}/new-version`));
    },
    fields: (error) =>
      fragment(
        places.length > 1 || !chosen ? h(Select, { label: "Project", value: projectId, onInput: setProject, placeholder: "Choose one", options: places.map((one) => ({ value: one.id, label: one.name })) }) : null,
        h(Field, { label: "Name", hint: "Unique in the project. Flows call it by this name.", value: name, onInput: setName, isRequired: true, most: 200, autofocus: true, error: faultAt(error, "name") }),
        h(Field, { label: "What it does", isRequired: false, value: description, onInput: setDescription, lines: 2, most: 4000, error: faultAt(error, "description") }),
      ),
  });
}
