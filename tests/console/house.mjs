/**
 * A house of people, teams, orgs, projects, service accounts and keys, for the pages that show them. It can be filled again:
 * what is there stays.
 */

import { found, named } from "./look-up.mjs";

/** @import { AgentRuntime } from "../../clients/typescript/src/index.js" */

export const PEOPLE = [
  ["ines.moreau@mill.example", "Inès Moreau", "admin"],
  ["tomasz.zielinski@mill.example", "Tomasz Zieliński", "member"],
  ["ruth.okafor@mill.example", "Ruth Okafor", "member"],
  ["yuki.tanaka@mill.example", "Yuki Tanaka", "member"],
  ["samuel.brandt@mill.example", "Samuel Brandt", "member"],
  ["noor.haddad@mill.example", "Noor Haddad", "member"],
  ["left.long-ago@mill.example", "Petra Lindqvist", "member"],
];

/** Whatever is the first. */
const any = () => true;

/** Makes something, or finds what is there already. @param {Promise<any>} making @param {() => Promise<any>} find */
async function made(making, find) {
  try {
    return await making;
  } catch (error) {
    if (error.status !== 409) throw error;
    return find();
  }
}

/**
 * @param {AgentRuntime} api of a tenant admin
 * @param {string} projectId where the runs are
 * @returns {Promise<Record<string, string>>} ids, by name
 */
export async function house(api, projectId) {
  /** @type {Record<string, any>} */
  const people = {};
  for (const [email, displayName, tenantRole] of PEOPLE) people[displayName.split(" ")[0]] = await made(api.users.add({ email, displayName, tenantRole }), () => found(api.users.list({ email }), any));
  const project = async (/** @type {string} */ name, /** @type {string | undefined} */ orgId) => (await found(api.projects.list({ limit: 200 }), named(name))) ?? (orgId ? api.orgs.projects.create(orgId, { name }) : api.projects.create({ name }));
  const org = await made(api.orgs.create({ name: "Paper and board" }), () => found(api.orgs.list({ limit: 200 }), named("Paper and board")));
  await made(api.orgs.admins.add(org.id, { userId: people.Ruth.id }), async () => undefined);
  const [claims, plant] = [await project("Customer claims", org.id), await project("Plant 3, night shift")];
  const account = await made(api.serviceAccounts.create({ name: "nightly-report" }), () => found(api.serviceAccounts.list({ limit: 200 }), named("nightly-report")));
  const operations = await made(api.teams.create({ name: "Plant operations", slug: "plant-operations", description: "The shifts of plant 3, and who is on call." }), () => found(api.teams.list({ limit: 200 }), (/** @type {any} */ one) => one.slug === "plant-operations"));
  const ignore = async () => undefined;
  for (const [id, role] of [[people.Yuki.id, "admin"], [people.Samuel.id, "member"], [people.Noor.id, "member"], [account.id, "member"]]) await made(api.teams.memberships.add(operations.id, { userId: id, role }), ignore);
  for (const [at, id, role] of [[claims.id, people.Tomasz.id, "editor"], [claims.id, people.Noor.id, "viewer"], [projectId, people.Tomasz.id, "editor"], [projectId, people.Noor.id, "viewer"], [plant.id, account.id, "editor"]]) await made(api.projects.memberships.add(at, { userId: id, role }), ignore);
  await made(api.projects.teamGrants.add(plant.id, { teamId: operations.id, role: "editor" }), ignore);
  await made(api.projects.teamGrants.add(claims.id, { teamId: operations.id, role: "admin" }), ignore);
  await api.reviewers.register({ userId: people["Inès"].id, role: "standard" });
  await api.reviewers.register({ userId: people["Inès"].id, role: "large-refunds" });
  await api.reviewers.register({ userId: people.Tomasz.id, role: "standard" });
  if (!(await found(api.serviceAccounts.tokens.list(account.id), any))) {
    const expiresAt = new Date(Date.now() + 90 * 86_400_000).toISOString();
    await api.serviceAccounts.tokens.create(account.id, { name: "the scheduler of plant 3", role: "member", capabilities: [], projectId: plant.id, expiresAt });
    await api.tokens.create({ name: "laptop", role: "member", capabilities: ["keys:write"], expiresAt });
  }
  const provider = await made(
    api.identityProviders.create({ name: "Mill single sign-on", issuer: "https://id.mill.example/realms/house", clientId: "agent-runtime", emailDomains: ["mill.example"], emailTrust: "claim", createsPeople: false, groupsClaim: "groups", groups: [{ group: "plant-3", teamId: operations.id, role: "member" }] }),
    () => found(api.identityProviders.list(), named("Mill single sign-on")),
  );
  if (!people.Petra.deactivatedAt) await api.users.deactivate(people.Petra.id);
  return { person: people.Tomasz.id, admin: people["Inès"].id, gone: people.Petra.id, team: operations.id, org: org.id, account: account.id, claims: claims.id, plant: plant.id, signin: provider.id };
}
