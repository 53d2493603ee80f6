/** The ways into a project, one a line: a role of one's own, a team's, the org's, the tenant's. A kind of a later server is "another way in". */

import { short } from "../time.js";
import { href } from "../route.js";
import { tags } from "../ui.js";

/** @import { Way } from "agent-runtime/types" */
/** @import { Child } from "../ui.js" */

const { a, li, ul } = tags;

/** @param {Way} way @returns {Child} */
function said(way) {
  switch (way.kind) {
    case "direct":
      return way.joinedAt ? `Direct: ${way.role}, since ${short(way.joinedAt).replace(/ \d\d:.*/, "")}` : `Direct: ${way.role}, without a membership`;
    case "tenant-admin":
      return "Tenant admin";
    case "org-admin":
      return "Org admin";
    case "team":
      return ["Team ", a({ key: way.teamId, href: href(`teams/${way.teamId}`) }, way.teamName), `: ${way.role}`];
    default:
      return "Another way in";
  }
}

/** @param {{ via: Way[] }} props */
export function Ways({ via }) {
  return ul({ class: "ways" }, via.map((way, index) => li({ key: index }, said(way))));
}

/** The way that a membership gives; it can be changed and removed. @param {Way[]} via */
export function membershipOf(via) {
  return via.find((way) => way.kind === "direct" && way.joinedAt);
}
