/** What somebody may do, and by which way: in the tenant, orgs, teams, on projects, as a reviewer (specification 4.2). */

import { href } from "../route.js";
import { fragment, h, tags } from "../ui.js";
import { Facts } from "./section.js";
import { Empty } from "./states.js";
import { Table } from "./table.js";
import { Ways } from "./ways.js";

/** @import { Grants, ProjectGrant } from "agent-runtime/types" */

const { a, span } = tags;

/** @param {{ grants: Grants, whose: string }} props `whose`: "You have", "They have" */
export function GrantsOf({ grants, whose }) {
  const isAdmin = grants.tenantRole === "admin";
  return fragment(
    h(Facts, {
      rows: true,
      facts: [
        ["In the tenant", grants.tenantRole ? (isAdmin ? "admin: an admin of every project, org and team" : grants.tenantRole) : "Nothing"],
        ["Orgs", grants.orgs.length ? grants.orgs.map((one) => a({ key: one.orgId, class: "each", href: href(`orgs/${one.orgId}`) }, one.orgName)) : undefined],
        ["Teams", grants.teams.length ? grants.teams.map((one) => span({ key: one.teamId, class: "each" }, a({ href: href(`teams/${one.teamId}`) }, one.teamName), `: ${one.role}`)) : undefined],
        ["Reviews as", grants.reviewerRoles.length ? grants.reviewerRoles.map((role) => span({ key: role, class: "tag" }, role)) : undefined],
      ],
    }),
    h(Table, {
      label: "Projects, with every way in",
      rows: grants.projects,
      rowKey: (/** @type {ProjectGrant} */ one) => one.projectId,
      columns: [
        { title: "Project", show: (/** @type {ProjectGrant} */ one) => a({ href: href(`projects/${one.projectId}`) }, one.projectName) },
        { title: "Role", show: (/** @type {ProjectGrant} */ one) => one.role },
        { title: "Ways in", show: (/** @type {ProjectGrant} */ one) => h(Ways, { via: one.via }), wraps: true },
      ],
      empty: h(Empty, { title: `${whose} no role of ${whose === "You have" ? "your" : "their"} own on a project.` }),
    }),
  );
}
