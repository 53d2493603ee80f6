/**
 * Who may do what, before a server that checks it: the stories of people, members, keys, sessions and decisions by keys
 * alone, what the specification says about these pages, and that an act is hidden if and only if it is refused.
 */

import assert from "node:assert/strict";
import { test } from "node:test";
import { AgentRuntime } from "../../clients/typescript/src/index.js";
import { open, settled, visit } from "./browser.mjs";
import { house } from "./house.mjs";
import { browser, names, place, stage, within } from "./stage.mjs";

/** @type {Record<string, { id: string, email: string, token: string, api: AgentRuntime }>} */
const people = {};
let agent;

/** A person who has taken their first key. @param {string} name */
async function person(name) {
  const email = `${name.toLowerCase()}.${Date.now()}@Stories.example`;
  const added = await place.api.users.add({ email, displayName: name, tenantRole: "member" });
  const { token } = await place.api.enrolments.redeem({ code: added.enrolment.code });
  return { id: added.id, email, token, api: new AgentRuntime({ baseUrl: place.url, token }) };
}

stage(async (api) => {
  [agent] = (await api.agents.list({ limit: 1 })).data;
  const names = await house(api, agent.projectId);
  for (const name of ["Owner", "Editor", "Viewer", "Stranger", "Lead", "Mate", "Head", "Reviewer"]) people[name] = await person(name);
  for (const [name, role] of [["Owner", "owner"], ["Editor", "editor"], ["Viewer", "viewer"]]) await place.api.projects.memberships.add(names.claims, { userId: people[name].id, role });
  await place.api.teams.memberships.add(names.team, { userId: people.Lead.id, role: "admin" });
  await place.api.teams.memberships.add(names.team, { userId: people.Mate.id, role: "member" });
  await place.api.orgs.admins.add(names.org, { userId: people.Head.id });
  await place.api.reviewers.register({ userId: people.Reviewer.id, role: "standard" });
  return names;
}, { authorization: true });

/** As somebody, in a browser of their own. @param {string | undefined} token */
const as = (token, act) => within(token ? { token } : { signedOut: true }, (tab, page) => act(page, tab));

/** Goes on by the Tab key until a stop has this name. @param {any} page @param {RegExp | string} name */
async function tabTo(page, name) {
  for (let step = 0; step < 150; step++) {
    const at = await page.evaluate(() => {
      const on = document.activeElement;
      return on && on !== document.body ? (on.getAttribute("aria-label") ?? on.labels?.[0]?.textContent ?? on.textContent ?? "") : "";
    });
    if (typeof name === "string" ? at.trim() === name : name.test(at)) return;
    await page.keyboard.press("Tab");
  }
  throw new Error(`the Tab key does not come to ${name}`);
}

/** Presses what has this name, by keys. */
async function press(page, name, key = "Enter") {
  await tabTo(page, name);
  await page.keyboard.press(key);
}

/** Goes to a page by the palette. */
async function goTo(page, name, path) {
  await page.keyboard.press("Control+k");
  await page.getByRole("combobox", { name: "Page, act or id" }).waitFor();
  await page.keyboard.type(name);
  await page.keyboard.press("Enter");
  await page.waitForURL(`**/console/${path}`);
  await settled(page);
}

const dialog = (page, name) => page.getByRole("dialog", { name });
// A dialog that closes says it, and so does the page under it.
const status = (page, text) => page.locator(".status", { hasText: text }).last().waitFor();
const cell = (page, text) => page.locator("td", { hasText: text }).first();

test("the first day: an admin adds a person, who signs in by the link, makes a key, and the key starts a run", async () => {
  const email = `first.day.${Date.now()}@mill.example`;
  let link = "";
  await as(place.token, async (page, tab) => {
    await visit(tab, "projects");
    await goTo(page, "People", "people");
    await press(page, "Add a person");
    await dialog(page, "Add a person").waitFor();
    await page.keyboard.type(email);
    await page.keyboard.press("Tab");
    await page.keyboard.type("First Day");
    await page.keyboard.press("Enter");
    await dialog(page, "The first sign-in of First Day").waitFor();
    link = await page.locator(".secret code").textContent();
    assert.match(link, /\/console\/sign-in#code=svc_en_/, "the code is in the fragment, which no server sees");
    await page.keyboard.press("Escape");
    assert.ok(await dialog(page, "The first sign-in of First Day").isVisible(), "it is not lost by chance");
    await press(page, "I have kept it. It is not shown again.", "Space");
    await press(page, "Close");
    await page.getByRole("heading", { level: 1, name: "First Day" }).waitFor();
    assert.ok(!(await page.content()).includes("svc_en_"), "and it is shown once");
  });
  const [added] = (await place.api.users.list({ email: email.toUpperCase() })).data;
  assert.equal(added.displayName, "First Day");
  await place.api.projects.memberships.add(agent.projectId, { userId: added.id, role: "editor" });
  await as(undefined, async (page) => {
    await page.goto(link.replace(/^https?:\/\/[^/]+/, place.url));
    await page.getByLabel("The code").waitFor();
    assert.equal(new URL(page.url()).hash, "", "the code has left the address");
    await press(page, "The code");
    await page.locator(".rail").waitFor();
    await goTo(page, "Keys", "keys");
    await press(page, "Make a key");
    await dialog(page, "Make a key").waitFor();
    await page.keyboard.type("laptop of the first day");
    await page.keyboard.press("Enter");
    await dialog(page, "The key laptop of the first day").waitFor();
    const key = await page.locator(".secret code").textContent();
    assert.match(key, /^svc_bt_/);
    await press(page, "I have kept it. It is not shown again.", "Space");
    await press(page, "Close");
    await cell(page, "laptop of the first day").waitFor();
    assert.ok(!(await page.content()).includes(key), "the key is shown once");
    const own = new AgentRuntime({ baseUrl: place.url, token: key });
    const [made] = (await own.tokens.list({ order: "desc" })).data;
    assert.equal(made.role, "member", "the least is chosen first");
    assert.deepEqual(made.capabilities, []);
    assert.ok(Date.parse(made.expiresAt) - Date.now() < 91 * 86_400_000, "and it ends in 90 days");
    const { run } = await own.runs.create({ agentId: agent.id, message: "What time is it?" });
    await goTo(page, "Runs", "runs");
    await page.waitForSelector(`a[href$="${run.id}"]`);
  });
});

test("an owner adds a member by exact email in any case, changes the role, and removes them, by keys alone", async () => {
  const { email, id } = people.Stranger;
  await as(people.Owner.token, async (page, tab) => {
    await visit(tab, `projects/${names.claims}/access`);
    await press(page, "Add a person");
    await dialog(page, /^Add a person to/).waitFor();
    await page.keyboard.type("nobody@stories.example");
    await page.keyboard.press("Enter");
    await page.getByText("Nobody of the tenant has this email address.").waitFor();
    assert.equal(await page.evaluate(() => document.activeElement?.getAttribute("type")), "email", "focus is at the field");
    await page.keyboard.press("Control+a");
    await page.keyboard.type(email.toUpperCase());
    await page.keyboard.press("Enter");
    await status(page, "Added");
    await cell(page, "Stranger").waitFor();
    const role = async () => (await place.api.projects.memberships.list(names.claims, { limit: 200 })).data.find((one) => one.userId === id)?.role;
    assert.equal(await role(), "viewer");
    // 4.3, rule 1: who is a member already keeps their role.
    await page.getByRole("button", { name: "Add a person" }).focus();
    await page.keyboard.press("Enter");
    await dialog(page, /^Add a person to/).waitFor();
    await page.keyboard.type(email);
    await page.keyboard.press("Tab");
    await page.keyboard.press("ArrowDown");
    await tabTo(page, "Add");
    await page.keyboard.press("Enter");
    await page.getByText("They are viewer here already. Their role is changed in the list.").waitFor();
    await page.keyboard.press("Escape");
    await press(page, /^(Change)?Change Stranger/);
    await page.getByRole("menuitem", { name: "Change the role" }).waitFor();
    await page.keyboard.press("Enter");
    await dialog(page, /^The role of Stranger on/).waitFor();
    await tabTo(page, "Role");
    await page.keyboard.press("ArrowDown");
    await press(page, "Change the role");
    await status(page, "Changed");
    assert.equal(await role(), "editor");
    await press(page, /^(Change)?Change Stranger/);
    await page.getByRole("menuitem", { name: "Remove" }).waitFor();
    await page.keyboard.press("End");
    await page.keyboard.press("Enter");
    await dialog(page, /^Remove Stranger from Customer claims\?$/).waitFor();
    await page.waitForFunction(() => document.querySelector("dialog button.danger:not([aria-disabled])"));
    await press(page, "Remove");
    await status(page, "Removed");
    assert.equal(await role(), undefined);
  });
});

test("a key is made with limits and revoked, by keys alone", async () => {
  await as(people.Editor.token, async (page, tab) => {
    await visit(tab, "keys");
    await press(page, "Make a key");
    await dialog(page, "Make a key").waitFor();
    await page.keyboard.type("pipeline");
    await tabTo(page, "Limited to a project");
    await page.keyboard.press("ArrowDown");
    await tabTo(page, "It ends");
    await page.keyboard.press("ArrowUp");
    await page.keyboard.press("Enter");
    await press(page, "Make the key");
    await dialog(page, "The key pipeline").waitFor();
    const key = await page.locator(".secret code").textContent();
    await press(page, "I have kept it. It is not shown again.", "Space");
    await press(page, "Close");
    const own = new AgentRuntime({ baseUrl: place.url, token: key, retries: 0 });
    const made = (await people.Editor.api.tokens.list({ order: "desc" })).data.find((one) => one.name === "pipeline");
    assert.equal(made.projectId, names.claims);
    assert.ok(Date.parse(made.expiresAt) - Date.now() < 31 * 86_400_000);
    await own.projects.get(names.claims);
    await press(page, /^Revoke pipeline/);
    await dialog(page, /^Revoke the key pipeline/).waitFor();
    await page.waitForFunction(() => document.querySelector("dialog button.danger:not([aria-disabled])"));
    await press(page, "Revoke the key");
    await status(page, "Revoked");
    await assert.rejects(own.projects.get(names.claims), { status: 401 });
  });
});

test("a session is ended, and then all others, by keys alone", async () => {
  const others = [];
  for (let index = 0; index < 3; index++) {
    const tab = await open(browser, place.url, { token: people.Mate.token });
    await visit(tab, "me");
    others.push(tab);
  }
  await as(people.Mate.token, async (page, tab) => {
    await visit(tab, "me");
    assert.equal(await page.locator("tbody .tag", { hasText: "this one" }).count(), 1);
    const rows = await page.getByRole("button", { name: /^End: / }).count();
    assert.equal(rows, 3);
    await press(page, /^End: /);
    await dialog(page, /^End the session of/).waitFor();
    await page.waitForFunction(() => document.querySelector("dialog button.danger:not([aria-disabled])"));
    await press(page, "End the session");
    await status(page, "Ended");
    assert.equal((await people.Mate.api.me.sessions.list()).data.length, 3);
    await press(page, "End all others");
    await dialog(page, "End all other sessions?").waitFor();
    await page.waitForFunction(() => document.querySelector("dialog button.danger:not([aria-disabled])"));
    await press(page, "End the other sessions");
    await status(page, "2 sessions ended");
    assert.equal((await people.Mate.api.me.sessions.list()).data.length, 1);
    await visit(tab, "teams");
  });
  for (const tab of others) {
    await tab.page.locator(".rail").getByRole("link", { name: "Keys" }).click();
    await tab.page.getByRole("heading", { name: "Your session has ended" }).waitFor();
    await tab.context.close();
  }
});

test("an admin signs somebody out everywhere, and deactivates them once they have seen what ends", async () => {
  const gone = await person("Leaver");
  await place.api.projects.memberships.add(names.claims, { userId: gone.id, role: "editor" });
  const theirs = await open(browser, place.url, { token: gone.token });
  await visit(theirs, "projects");
  await as(place.token, async (page, tab) => {
    await visit(tab, `people/${gone.id}`);
    await cell(page, "Direct: editor").waitFor();
    await press(page, /^More/);
    await page.getByRole("menuitem", { name: "Deactivate" }).waitFor();
    await page.keyboard.press("End");
    await page.keyboard.press("Enter");
    const asked = dialog(page, "Deactivate Leaver?");
    await asked.waitFor();
    const said = await asked.textContent();
    for (const what of ["every key of theirs", "their sessions in 1 browser", "a sign-in link", "their roles: 1 project"]) assert.ok(said.includes(what), what);
    await tabTo(page, /^Type /);
    await page.keyboard.type(gone.email);
    await page.waitForFunction(() => document.querySelector("dialog button.danger:not([aria-disabled])"));
    await press(page, "Deactivate");
    await status(page, "Deactivated");
    await page.getByText("They can do nothing any more").waitFor();
    assert.equal(await page.getByRole("button", { name: "Change" }).count(), 0);
  });
  await assert.rejects(gone.api.me.get(), { status: 401 });
  await theirs.page.locator(".rail").getByRole("link", { name: "Keys" }).click();
  await theirs.page.getByRole("heading", { name: "Your session has ended" }).waitFor();
  await theirs.context.close();
});

test("2.5: an admin reads why somebody's request was denied, and what would allow it", async () => {
  await assert.rejects(people.Viewer.api.projects.update(names.claims, { name: "Mine now" }), { status: 403 });
  const [denied] = (await place.api.audit.authz({ actorSubject: `user:${people.Viewer.id}`, outcome: "denied", order: "desc" })).data;
  await as(place.token, async (page, tab) => {
    await visit(tab, `audit/${denied.id}`);
    await page.getByText("What would allow it").waitFor();
    const text = await page.locator("main").innerText();
    // 2.5: the failing part, the check's duration, a correlation id, and the check that was asked.
    for (const said of ["Denied", "can_admin", `user:${people.Viewer.id}`, `project:${names.claims}`, " ms", "Request", "Trace", "PATCH /v1/projects/{projectId}", "project admin", "project owner", "tenant admin", "org admin"]) assert.ok(text.includes(said), said);
    assert.ok(!text.includes("project viewer") && !text.includes("project editor"), "only what would allow it");
    // What a user reports has the request's id.
    await visit(tab, `audit?requestId=${denied.requestId}`);
    await page.locator("tbody").getByText("Denied", { exact: true }).waitFor();
    assert.equal(await page.locator("tbody tr").count(), 1);
  });
});

test("whoever is no reviewer is told of the reviewer role on the lists of approvals, as on one approval's page", async () => {
  await as(people.Viewer.token, async (page, tab) => {
    for (const at of ["approvals", "inbox"]) {
      await visit(tab, at);
      await page.getByText("Ask a tenant admin for the reviewer role.").waitFor();
      assert.ok(!(await page.locator("main").innerText()).includes("is limited"), at);
    }
  });
});

test("a key that lacks a capability was refused, and the decision says in words what it takes", async () => {
  const weak = await people.Owner.api.tokens.create({ name: "weak", capabilities: [] });
  const api = new AgentRuntime({ baseUrl: place.url, token: weak.token, retries: 0 });
  await assert.rejects(api.projects.memberships.add(names.claims, { userId: people.Mate.id, role: "viewer" }), { status: 403 });
  const [denied] = (await place.api.audit.authz({ actorSubject: `user:${people.Owner.id}`, outcome: "denied", order: "desc" })).data;
  await as(place.token, async (page, tab) => {
    await visit(tab, `audit/${denied.id}`);
    await page.getByText("A key with the capability that the reason names.").waitFor();
    await page.getByText("The authorization server was not asked").waitFor();
  });
});

test("5.1: a deep link while signed out leads there once one has signed in", async () => {
  await as(undefined, async (page) => {
    await page.goto(`${place.url}/console/teams/${names.team}`);
    await page.getByLabel("Your key").focus();
    await page.keyboard.type(people.Mate.token);
    await page.keyboard.press("Enter");
    await page.getByRole("heading", { level: 1, name: "Plant operations" }).waitFor();
    assert.ok(page.url().endsWith(`/teams/${names.team}`));
  });
});
