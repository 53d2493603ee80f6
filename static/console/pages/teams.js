/** Teams: people and service accounts who get roles on projects together. A tenant admin sees all, others those that they are in. */

import { api } from "../api.js";
import { FormDialog } from "../components/dialog.js";
import { Field, faultAt } from "../components/field.js";
import { PageHead } from "../components/page-head.js";
import { Pager, useList } from "../components/pager.js";
import { useActs } from "../components/acts.js";
import { Empty } from "../components/states.js";
import { announce } from "../components/status.js";
import { Table } from "../components/table.js";
import { Time } from "../components/time.js";
import { mayGrant, ownTeamRole } from "../permit.js";
import { go, href } from "../route.js";
import { refresh } from "../session.js";
import { fragment, h, tags, useState } from "../ui.js";

/** @import { Team } from "agent-runtime/types" */

const { button, code, div } = tags;

/** @type {import("../components/table.js").Column[]} */
const COLUMNS = [
  { title: "Team", show: (/** @type {Team} */ team) => team.name },
  { title: "Slug", show: (/** @type {Team} */ team) => code(null, team.slug), from: "middle" },
  { title: "You in it", show: (/** @type {Team} */ team) => ownTeamRole(team.id) ?? "–" },
  { title: "About", show: (/** @type {Team} */ team) => team.description || "–", from: "wide", isSecond: true },
  { title: "Made (UTC)", show: (/** @type {Team} */ team) => h(Time, { at: team.createdAt, short: true }), from: "wide", isSecond: true },
];

export default function Teams() {
  const [isMaking, setMaking] = useState(false);
  const list = useList("teams", {}, (wanted, options) => api.teams.list(wanted, options));
  const makes = mayGrant("tenant");
  const make = makes ? button({ type: "button", class: "primary", onClick: () => setMaking(true) }, "Make a team") : null;
  useActs(makes ? [{ title: "Make a team", about: "Act", icon: "plus", run: () => setMaking(true) }] : []);
  return div(
    null,
    h(PageHead, { title: "Teams", lead: "Everybody in a team has the roles that projects give it.", actions: make }),
    h(Table, {
      label: "Teams, newest first",
      columns: COLUMNS,
      list,
      rowHref: (/** @type {Team} */ team) => href(`teams/${team.id}`),
      empty: h(Empty, { title: "No team yet.", action: make }, "A team has the same role on a project for all who are in it."),
    }),
    h(Pager, { list }),
    isMaking ? h(MakeTeam, { onClose: () => setMaking(false) }) : null,
  );
}

/** `Plant Operations` → `plant-operations` @param {string} name */
const slugOf = (name) => name.normalize("NFKD").replace(/[\u0300-\u036f]/g, "").toLowerCase().replace(/[^a-z0-9]+/g, "-").replace(/^-+|-+$/g, "").slice(0, 63);

/** @param {{ onClose: () => void }} props */
function MakeTeam({ onClose }) {
  const [name, setName] = useState("");
  const [slug, setSlug] = useState(/** @type {string | null} */ (null));
  const [description, setDescription] = useState("");
  const said = slug ?? slugOf(name);
  return h(FormDialog, {
    title: "Make a team",
    act: "Make the team",
    isReady: Boolean(name.trim() && said),
    onClose,
    onSubmit: async () => {
      const made = await api.teams.create({ name: name.trim(), slug: said, ...(description.trim() ? { description: description.trim() } : {}) });
      await refresh();
      announce("Made");
      go(href(`teams/${made.id}`));
    },
    fields: (error) =>
      fragment(
        h(Field, { label: "Name", hint: "You become its admin.", value: name, onInput: setName, most: 200, isRequired: true, autofocus: true, autoComplete: "off", error: faultAt(error, "name") }),
        h(Field, { label: "Slug", hint: "Lowercase letters, digits and hyphens. It stays when the team is renamed.", value: said, onInput: setSlug, isMono: true, isRequired: true, autoComplete: "off", error: faultAt(error, "slug", "already-exists") }),
        h(Field, { label: "About", value: description, onInput: setDescription, isRequired: false, lines: 2, error: faultAt(error, "description") }),
      ),
  });
}
