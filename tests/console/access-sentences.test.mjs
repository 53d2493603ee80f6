/**
 * What the specification says about people, projects, teams, keys and the access audit (2.1, 2.4, 4.2 to 4.7, 5.3, 5.4, 8), a
 * sentence a test. That an act is shown if and only if the server does not refuse it: `permit.test.mjs`.
 */

import assert from "node:assert/strict";
import { test } from "node:test";
import { AgentRuntime } from "../../clients/typescript/src/index.js";
import { open, settled, visit } from "./browser.mjs";
import { house } from "./house.mjs";
import { server } from "./server.mjs";
import { browser, ends, names, place, stage, within } from "./stage.mjs";

/** Who looks, by what they are. @type {Record<string, { id: string, token: string, api: AgentRuntime }>} */
const who = {};

/** @param {string} name */
async function person(name) {
  const added = await place.api.users.add({ email: `${name.replace(/\W/g, ".")}.${Date.now()}@sentences.example`, displayName: name, tenantRole: "member" });
  const { token } = await place.api.enrolments.redeem({ code: added.enrolment.code });
  return known(added.id, token);
}

const known = (id, token) => ({ id, token, api: new AgentRuntime({ baseUrl: place.url, token, retries: 0 }) });

stage(async () => {
  const [agent] = (await place.api.agents.list({ limit: 1 })).data;
  const names = await house(place.api, agent.projectId);
  const me = await place.api.me.get();
  who["tenant admin"] = known(me.id, place.token);
  for (const name of ["owner", "editor", "viewer", "org admin", "team admin", "team member", "reviewer", "nobody"]) who[name] = await person(name);
  for (const role of ["owner", "editor", "viewer"]) await place.api.projects.memberships.add(names.claims, { userId: who[role].id, role });
  const quality = await place.api.teams.create({ name: "Quality", slug: `quality-${Date.now()}` });
  names.quality = quality.id;
  await place.api.teams.memberships.add(quality.id, { userId: who["team admin"].id, role: "admin" });
  await place.api.teams.memberships.add(quality.id, { userId: who["team member"].id, role: "member" });
  await place.api.orgs.admins.add(names.org, { userId: who["org admin"].id });
  await place.api.reviewers.register({ userId: who.reviewer.id, role: "standard" });
  return names;
}, { authorization: true });

/** @param {string} name @param {(page: any, tab: any) => Promise<void>} look */
const as = (name, look) => within({ token: who[name].token }, (tab, page) => look(page, tab));

const main = (page) => page.locator("main").innerText();

test("2.4: a way in that the console cannot name is another way in; a direct role without a membership says so", async () => {
  await as("tenant admin", async (page, tab) => {
    await page.route("**/v1/projects/*/access?*", async (route) => {
      const answer = await route.fetch();
      const body = await answer.json();
      body.data[0].via = [{ kind: "partner-network" }, { kind: "direct", role: "owner" }];
      await route.fulfill({ response: answer, json: body });
    });
    await visit(tab, `projects/${names.claims}/access`);
    await page.locator(".ways").first().waitFor();
    const first = await page.locator("tbody tr").first().innerText();
    assert.match(first, /Another way in/);
    assert.match(first, /Direct: owner, without a membership/);
    // 4.5, rule 6: what has no membership behind it is not changed on the membership route.
    assert.equal(await page.locator("tbody tr").first().getByRole("button").count(), 0);
  });
});

test("2.4 and 4.5: the access list has owners first, every way in once a principal, and emails for admins alone", async () => {
  await as("owner", async (page, tab) => {
    await visit(tab, `projects/${names.claims}/access`);
    await page.locator(".ways").first().waitFor();
    const roles = await page.locator("table").first().locator("tbody tr td:nth-child(3)").allInnerTexts();
    const order = ["owner", "admin", "editor", "viewer"];
    assert.deepEqual(roles, [...roles].sort((one, other) => order.indexOf(one) - order.indexOf(other)));
    const text = await main(page);
    assert.match(text, /noor\.haddad@mill\.example/);
    for (const way of [/Tenant admin/, /Org admin/, /Team Plant operations: admin/, /Direct: editor, since/]) assert.match(text, way);
    const noor = page.locator("tbody tr", { hasText: "Noor Haddad" });
    assert.equal(await noor.count(), 1, "once, with both ways");
    assert.match(await noor.innerText(), /Direct: viewer[^]*Team Plant operations: admin/);
  });
  await as("editor", async (page, tab) => {
    await visit(tab, `projects/${names.claims}/access`);
    await page.locator(".ways").first().waitFor();
    assert.doesNotMatch(await main(page), /@mill\.example/);
  });
});

test("4.3, rule 5: a viewer reads their own ways in, and not who else is a member", async () => {
  await as("viewer", async (page, tab) => {
    const asked = [];
    page.on("request", (request) => asked.push(new URL(request.url()).pathname));
    await visit(tab, `projects/${names.claims}/access`);
    const text = await main(page);
    assert.match(text, /Your ways in/);
    assert.match(text, /Direct: viewer, since/);
    assert.doesNotMatch(text, /Noor Haddad/);
    assert.ok(!asked.some((path) => /^\/v1\/.*\/(access|memberships|team-grants)$/.test(path)), "nothing is asked that would be refused");
    await assert.rejects(who.viewer.api.projects.memberships.list(names.claims), { status: 403 });
  });
});

test("1.1.5 and 4.4: a team's role on a project is shown and not given, and a team is not deleted here; the API does both", async () => {
  await as("tenant admin", async (page, tab) => {
    await visit(tab, `projects/${names.claims}/access`);
    const teams = page.getByRole("region", { name: "Teams with a role" });
    await teams.getByRole("link", { name: "Plant operations" }).waitFor();
    assert.equal(await teams.getByRole("button", { name: /give|change|remove|take|add/i }).count(), 0);
    await teams.getByText("A team's role is given, changed and taken by the API").click();
    assert.match(await teams.innerText(), new RegExp(`POST /v1/projects/${names.claims}/team-grants`));
    await visit(tab, `teams/${names.quality}`);
    await page.getByText("No project has given it a role.").waitFor();
    assert.doesNotMatch(await main(page), /delete/i);
    for (const menu of await page.locator("main [aria-haspopup=menu]").all()) {
      await menu.click();
      assert.doesNotMatch(await page.locator(".menu").innerText(), /delete/i);
      await page.keyboard.press("Escape");
    }
  });
  const made = await place.api.teams.create({ name: "For a day", slug: `for-a-day-${Date.now()}` });
  await place.api.projects.teamGrants.add(names.claims, { teamId: made.id, role: "viewer" });
  await place.api.teams.delete(made.id);
});

test("4.4: a plain member sees the team, and not who else is in it", async () => {
  await as("team member", async (page, tab) => {
    await visit(tab, "teams");
    await page.getByRole("link", { name: "Quality" }).click();
    await page.getByRole("heading", { level: 1, name: "Quality" }).waitFor();
    await settled(page);
    const text = await main(page);
    assert.match(text, /Who else is in it, its admins see/);
    assert.doesNotMatch(text, /team admin/);
  });
});

test("5.4.3: a team admin adds nobody in the console, and may by the API; a tenant admin does here", async () => {
  await as("team admin", async (page, tab) => {
    await visit(tab, `teams/${names.quality}`);
    await page.getByRole("cell", { name: "team member", exact: true }).waitFor();
    assert.equal(await page.getByRole("button", { name: "Add to the team" }).count(), 0);
    assert.match(await main(page), /A tenant admin adds people here/);
    assert.equal(await page.getByRole("button", { name: /Change team member/ }).count(), 1, "to change and remove is theirs");
  });
  await who["team admin"].api.teams.memberships.add(names.quality, { userId: who.nobody.id, role: "member" });
  await who["team admin"].api.teams.memberships.remove(names.quality, who.nobody.id);
  await as("tenant admin", async (page, tab) => {
    await visit(tab, `teams/${names.quality}`);
    await page.getByRole("button", { name: "Add to the team" }).waitFor();
  });
});

test("2.1: the project role of a service account is changed on its own page, and owner is none of the roles", async () => {
  await as("tenant admin", async (page, tab) => {
    await visit(tab, `projects/${names.plant}/access`);
    await page.getByRole("button", { name: /Change nightly-report/ }).click();
    await page.getByRole("menuitem", { name: "Change the role on its page" }).click();
    await page.getByRole("heading", { level: 1, name: "nightly-report" }).waitFor();
    await page.getByRole("button", { name: /Change the role on Plant 3/ }).click();
    await page.getByRole("menuitem", { name: "Change the role" }).click();
    const roles = await page.getByLabel("Role", { exact: true }).locator("option").evaluateAll((all) => all.map((one) => one.value));
    assert.deepEqual(roles, ["viewer", "editor", "admin"]);
  });
});

/** Which settings each is offered (5.4.5). */
const RAIL = {
  "tenant admin": ["People", "Teams", "Service accounts", "Orgs", "Reviewers", "Sign-in", "Access audit"],
  "org admin": ["Orgs"],
  owner: [],
  "team admin": ["Teams"],
  "team member": ["Teams"],
  reviewer: [],
  nobody: [],
};

test("5.4.5: settings are visible by role, Inbox and Approvals to reviewers, Teams to anyone in a team", async () => {
  const all = RAIL["tenant admin"];
  for (const [name, wanted] of Object.entries(RAIL))
    await as(name, async (page, tab) => {
      await visit(tab, "me");
      const rail = await page.locator(".rail a").allInnerTexts();
      assert.deepEqual(rail.filter((one) => all.includes(one)), wanted, name);
      if (name !== "tenant admin") assert.equal(rail.some((one) => one.startsWith("Inbox")), name === "reviewer", `${name}: Inbox`);
      assert.ok(rail.includes("Keys"), "everybody makes their own keys");
    });
});

test("4.6 and 8: the audit has 50 rows a page, newest first, with older and newer, and a page and its filters can be pasted", async () => {
  const api = who.viewer.api;
  for (let index = 0; index < 60; index++) await api.projects.get(names.claims);
  await assert.rejects(api.users.list(), { status: 403 });
  await as("tenant admin", async (page, tab) => {
    const asked = [];
    page.on("request", (request) => request.url().includes("/v1/audit/authz?") && asked.push(new URL(request.url()).searchParams));
    const actor = `user:${who.viewer.id}`;
    await visit(tab, `audit?actorSubject=${encodeURIComponent(actor)}`);
    const times = () => page.locator("tbody tr td:first-child time").evaluateAll((all) => all.map((one) => one.dateTime));
    await page.locator("tbody tr").first().waitFor();
    const first = await times();
    assert.equal(first.length, 50);
    assert.deepEqual(first, [...first].sort().reverse());
    await page.keyboard.press("]");
    await page.waitForURL(/cursor=/);
    await settled(page);
    const second = await times();
    assert.ok(second[0] <= first[49]);
    const pasted = page.url();
    await page.keyboard.press("[");
    await page.waitForFunction(() => !location.search.includes("cursor"));
    await settled(page);
    assert.deepEqual(await times(), first);
    await page.goto(pasted);
    await page.locator("tbody tr").first().waitFor();
    await settled(page);
    assert.deepEqual(await times(), second, "the cursor is in the address");
    await page.getByRole("button", { name: "Clear filters" }).click();
    await page.getByLabel("Outcome").selectOption("denied");
    await page.getByLabel("Action").selectOption("admin");
    await page.getByLabel("Resource").fill(`tenant:${(await place.api.me.get()).tenantId}`);
    await page.getByLabel("Actor").fill(actor);
    await page.getByLabel("From (UTC)").fill("2026-01-02T03:04");
    await page.getByLabel("Before (UTC)").fill("2099-01-02T03:04");
    await page.getByLabel("Run", { exact: true }).focus();
    await settled(page);
    await page.locator("tbody tr", { hasText: "Denied" }).first().waitFor();
    const last = Object.fromEntries(asked.at(-1));
    assert.equal(last.from, "2026-01-02T03:04:00Z");
    assert.equal(last.to, "2099-01-02T03:04:00Z");
    assert.deepEqual([last.outcome, last.action, last.actorSubject, last.order, last.limit], ["denied", "admin", actor, "desc", "50"]);
    await page.getByLabel("Run", { exact: true }).fill("01a215ca-38e8-7e1d-b571-86cb0f8b7c87");
    await page.keyboard.press("Enter");
    await page.getByText("No decision matches these filters.").waitFor();
    assert.equal(asked.at(-1).get("runId"), "01a215ca-38e8-7e1d-b571-86cb0f8b7c87");
  });
});

/** What a page says where the server refused. */
const refusal = (page) => page.getByRole("alert").filter({ hasText: "You may not do this" });

test("a refusal says whom to ask: by name where one may see who decides, else by role; and that it was the key's limits", async () => {
  await as("editor", async (page, tab) => {
    await visit(tab, "people");
    await refusal(page).getByText("who decide about the tenant").waitFor();
    const text = await refusal(page).innerText();
    assert.match(text, /Ask [^]*Inès Moreau[^]* about the tenant/);
    assert.match(text, /It takes one of these roles: tenant admin\./);
    assert.match(text, /Request/);
  });
  const asked = [];
  await as("viewer", async (page, tab) => {
    page.on("request", (request) => asked.push(new URL(request.url()).pathname));
    await visit(tab, "people");
    await refusal(page).getByText("Ask a tenant admin.").waitFor();
    assert.deepEqual(asked.filter((path) => path.endsWith("/access")), [], "nothing is asked that would be refused");
  });
  await as("nobody", async (page, tab) => {
    await visit(tab, `projects/${names.claims}`);
    await refusal(page).getByText("Ask an owner or an admin of the project, or a tenant admin.").waitFor();
    assert.match(await refusal(page).innerText(), /roles: tenant admin, [^.]*project viewer/);
  });
  const admin = await place.api.users.add({ email: `limited.${Date.now()}@sentences.example`, displayName: "Limited", tenantRole: "admin" });
  const { token: whole } = await place.api.enrolments.redeem({ code: admin.enrolment.code });
  const { token } = await known(admin.id, whole).api.tokens.create({ name: "limited", role: "member", capabilities: [] });
  await within({ token }, async (tab, page) => {
    await visit(tab, "people");
    await refusal(page).getByText("the key that you signed in with is limited").waitFor();
  });
});

test("whoever has the role in another team or org is told whom to ask in this one", async () => {
  const mills = await place.api.orgs.create({ name: `Mills ${Date.now()}` });
  for (const [name, path, said] of [
    ["team member", `teams/${names.team}`, "Ask an admin of the team, or a tenant admin."],
    ["team admin", `teams/${names.team}`, "Ask an admin of the team, or a tenant admin."],
    ["org admin", `orgs/${mills.id}`, "Ask an admin of the org, or a tenant admin."],
  ])
    await as(name, async (page, tab) => {
      await visit(tab, path);
      await refusal(page).getByText(/Ask an admin|is limited/).waitFor();
      assert.match(await refusal(page).innerText(), new RegExp(said), name);
    });
});

test("a role that was taken under an open form: the refusal names who has it, and what was typed stays", async () => {
  const late = await person("role is taken");
  await place.api.projects.memberships.add(names.claims, { userId: late.id, role: "admin" });
  await within({ token: late.token }, async (tab, page) => {
    await visit(tab, `projects/${names.claims}`);
    await page.getByRole("button", { name: "Rename" }).click();
    const form = page.getByRole("dialog");
    await form.getByLabel("Name").fill("Claims of customers");
    await place.api.projects.memberships.updateRole(names.claims, late.id, { role: "editor" });
    await form.getByRole("button", { name: "Rename" }).click();
    await refusal(page).getByText("who decide on the project Customer claims").waitFor();
    assert.match(await refusal(page).innerText(), /Ask [^]*owner[^]*, /, "owners are the first");
    assert.equal(await form.getByLabel("Name").inputValue(), "Claims of customers");
  });
});

test("a role that was taken under an open form: a message and a tool stay as they were typed, until one leaves them", async () => {
  const late = await person("writes while it is taken");
  const [agent] = (await place.api.agents.list({ limit: 1 })).data;
  const has = place.api.projects.memberships;
  await has.add(agent.projectId, { userId: late.id, role: "editor" });
  await has.add(names.claims, { userId: late.id, role: "admin" });
  const { id } = await late.api.conversations.create({ agentId: agent.id, title: "Begun before" });
  await within({ token: late.token }, async (tab, page) => {
    // Elsewhere the roles are as they are by now.
    const leaves = async (to) => {
      const read = page.waitForResponse("**/v1/identity/me/permissions");
      await page.locator(".rail").getByRole("link", { name: to, exact: true }).click();
      await read;
      await settled(page);
    };
    await visit(tab, `conversations/${id}`);
    await page.getByLabel("Message").fill("Where is it?");
    await has.updateRole(agent.projectId, late.id, { role: "viewer" });
    await page.getByRole("button", { name: "Send" }).click();
    await refusal(page).getByText("Ask an owner or an admin of the project").waitFor();
    await settled(page);
    assert.equal(await page.getByLabel("Message").inputValue(), "Where is it?");
    await leaves("Conversations");
    await page.getByRole("link", { name: "Begun before" }).click();
    await page.getByText("You may read this conversation, and not write in it.").waitFor();
    await visit(tab, `tools/new?project=${names.claims}`);
    await page.getByLabel("Name", { exact: true }).fill("typed_before");
    await page.getByLabel("Address").fill("http://127.0.0.1:9/");
    await has.updateRole(names.claims, late.id, { role: "editor" });
    await page.getByRole("button", { name: "Register the tool" }).click();
    await refusal(page).getByText("who decide on the project Customer claims").waitFor();
    await settled(page);
    assert.equal(await page.getByLabel("Name", { exact: true }).inputValue(), "typed_before");
    await leaves("Tools");
    assert.equal(await page.getByRole("link", { name: "Register a tool" }).count(), 0);
  });
});

test("a new flow is of a project where one may make it, whichever was chosen before", async () => {
  const maker = await person("makes flows in one");
  const [agent] = (await place.api.agents.list({ limit: 1 })).data;
  await place.api.projects.memberships.add(agent.projectId, { userId: maker.id, role: "viewer" });
  await place.api.projects.memberships.add(names.claims, { userId: maker.id, role: "admin" });
  await within({ token: maker.token }, async (tab, page) => {
    await visit(tab, `flows/new?project=${agent.projectId}`);
    const asked = page.waitForRequest("**/v1/flows/validate");
    await page.getByRole("button", { name: "Check" }).click();
    assert.equal((await asked).postDataJSON().projectId, names.claims);
    await page.getByRole("region", { name: "What it does" }).getByText("greet").first().waitFor();
  });
});

test("4.5, rule 4: without an authorization server the Access tab says so, names the setting, and shows the members", async () => {
  const alone = await server({ after: (end) => ends.push(end) });
  const [agent] = (await alone.api.agents.list({ limit: 1 })).data;
  const tab = await open(browser, alone.url, { token: alone.token });
  await visit(tab, `projects/${agent.projectId}/access`);
  await tab.page.getByText("SVC_AUTHZ_API_URL").waitFor();
  await tab.page.getByRole("region", { name: "Members" }).locator("tbody tr").first().waitFor();
  assert.deepEqual(tab.faults(), []);
  await tab.context.close();
});
