/** What the frame keeps where something goes wrong, or somebody comes back: what is typed, the place in a page, who is signed in. */

import assert from "node:assert/strict";
import { test } from "node:test";
import { AgentRuntime } from "../../clients/typescript/src/index.js";
import { keepNewest } from "../../static/console/kept.js";
import { goTo, open, settled, visit } from "./browser.mjs";
import { eventually } from "./look-up.mjs";
import { world } from "./server.mjs";
import { browser, names, place, stage, story, within } from "./stage.mjs";

stage(world);

const focused = (page) => page.evaluate(() => document.activeElement?.textContent ?? "");
const PROVIDER = { id: "11111111-1111-4111-8111-111111111111", name: "Mill single sign-on" };

/** Another person of the tenant, with a key. @param {string} name */
async function person(name) {
  const { id } = await place.api.users.add({ email: `${name}@frame.example`, displayName: name, tenantRole: "member" });
  const { code } = await place.api.users.enrolments.create(id);
  const { token } = await new AgentRuntime({ baseUrl: place.url }).enrolments.redeem({ code });
  return { id, token };
}

/** What `GET /v1/sign-in` says, with changes. */
const offering = (page, changes) =>
  page.route("**/v1/sign-in", async (route) => {
    const response = await route.fetch();
    await route.fulfill({ response, json: { ...(await response.json()), ...changes } });
  });

/** What is under way at the end of a test is answered by nobody. */
const unrouted = (page) => page.unrouteAll({ behavior: "ignoreErrors" });

/** The session of the page ends while it shows the list of runs. */
async function ends(tab, page) {
  await visit(tab, "runs");
  // In development it would begin again by itself.
  await page.evaluate(() => sessionStorage.setItem("agent-runtime-signed-out", "yes"));
  await tab.context.clearCookies();
  await page.getByLabel("State").selectOption("failed");
  await page.getByRole("heading", { name: "Your session has ended" }).waitFor();
}

story("a number is what one types: a point, zeros at its end, and what is no number yet", async (tab, page) => {
  await visit(tab, "dev/components");
  const amount = page.getByLabel("Amount");
  await amount.fill("");
  await amount.pressSequentially("1.50");
  assert.equal(await amount.inputValue(), "1.50");
  await page.getByRole("button", { name: "Edit as JSON" }).click();
  assert.equal(JSON.parse(await page.getByLabel("Input", { exact: true }).inputValue()).amount, 1.5);
  await page.getByRole("button", { name: "Fill in a form" }).click();
  await amount.fill("");
  await amount.pressSequentially("-0.05e");
  assert.equal(await amount.inputValue(), "-0.05e");
  await amount.fill("12345678901234567890");
  await page.getByText("A browser cannot keep so many digits").waitFor();
});

story("faults that tenant admins should see stand on their pages, with what to do", async (tab, page) => {
  const { api } = place;
  const name = `PROVIDER_${Date.now()}`;
  await api.secrets.put("production", name, { value: "sk-of-a-provider" });
  const models = [{ name: "m" }];
  // Nothing listens there.
  const provider = await api.modelProviders.create({ name: `down-${Date.now()}`, baseUrl: "http://127.0.0.1:9/v1", apiKeySecretRef: { envName: "production", name }, models });
  await api.secrets.delete("production", name);
  const row = page.locator("tbody tr", { hasText: provider.name });
  await visit(tab, "model-providers");
  await row.getByText("Key missing").waitFor();
  await visit(tab, `model-providers/${provider.id}`);
  await page.getByText("Its key is not there").waitFor();
  assert.match((await page.getByRole("link", { name: "To the secrets" }).getAttribute("href")) ?? "", /\/secrets\?environment=production$/);
  await api.modelProviders.update(provider.id, { apiKeySecretRef: null });
  const agent = await api.agents.create({ projectId: names.project, name: provider.name });
  await api.agents.versions.create(agent.id, { version: "1.0.0", instructions: "", model: "m", modelProviderId: provider.id });
  const { run } = await api.runs.create({ agentId: agent.id, message: "Here?" });
  await eventually(async () => (await api.modelProviders.get(provider.id)).failing);
  await page.reload();
  await page.getByText(/Its last (call|\d+ calls) failed/).waitFor();
  await page.getByText("Check its address and its key").waitFor();
  assert.equal(await page.getByText("Its key is not there").count(), 0);
  await visit(tab, "model-providers");
  await row.getByText("Failing").waitFor();
  await api.runs.cancel(run.id).catch(() => {});
  await page.route("**/v1/identity/me/permissions", async (route) => {
    const response = await route.fetch();
    await route.fulfill({ response, json: { ...(await response.json()), licenseWarning: "The license ends at 2026-12-24T00:00:00Z. Put a new key into SVC_LICENSE_KEY before that." } });
  });
  await visit(tab, "people");
  await page.getByText("SVC_LICENSE_KEY").waitFor();
  await visit(tab, "runs");
  assert.equal(await page.getByText("SVC_LICENSE_KEY").count(), 0, "on the pages of settings");
  await unrouted(page);
});

story("the list of model providers reads all keys at once, and one by one what a long list leaves open", async (tab, page) => {
  const { api } = place;
  const providers = [];
  for (const at of [1, 2, 3]) {
    const name = `MANY_${at}_${Date.now()}`;
    await api.secrets.put("production", name, { value: "sk-of-a-provider" });
    providers.push(await api.modelProviders.create({ name: name.toLowerCase(), baseUrl: "http://127.0.0.1:9/v1", apiKeySecretRef: { envName: "production", name }, models: [{ name: "m" }] }));
  }
  const keys = providers.map((one) => one.apiKeySecretRef?.name ?? "");
  await api.secrets.delete("production", keys[2]);
  /** @type {string[]} */
  let asked = [];
  page.on("request", (request) => {
    const { pathname } = new URL(request.url());
    if (pathname.startsWith("/v1/secrets")) asked.push(pathname);
  });
  const missing = async () => {
    const row = (/** @type {number} */ at) => page.locator("tbody tr", { hasText: providers[at].name }).getByText("Key missing");
    await row(2).waitFor();
    await settled(page);
    assert.deepEqual(await Promise.all([row(0).count(), row(1).count()]), [0, 0]);
  };
  await visit(tab, "model-providers");
  await missing();
  assert.deepEqual(asked, ["/v1/secrets"]);
  asked = [];
  await page.route("**/v1/secrets?*", async (route) => {
    const response = await route.fetch();
    const { data } = await response.json();
    await route.fulfill({ response, json: { data: data.filter((one) => !keys.includes(one.name)), hasMore: true, nextCursor: "further" } });
  });
  await page.reload();
  await missing();
  assert.deepEqual(asked.sort(), ["/v1/secrets", ...keys.map((name) => `/v1/secrets/production/${name}`)]);
  await unrouted(page);
});

story("loading: nothing for 200 ms, then grey lines; what was read before stands there at once", async (tab, page) => {
  await page.clock.install();
  /** @type {(() => void) | undefined} */
  let goOn;
  const held = async (route) => {
    await new Promise((next) => (goOn = next));
    await route.continue();
  };
  const bones = page.locator("main .bone");
  const go = (to) => goTo(page, to);
  await page.route("**/v1/tools?*", held);
  await page.goto(`${place.url}/console/tools`);
  await page.locator("table[aria-busy=true]").waitFor();
  await eventually(async () => goOn);
  assert.equal(await bones.count(), 0);
  await page.clock.fastForward(250);
  await bones.first().waitFor();
  goOn?.();
  await page.locator("[data-row-link]").first().waitFor();
  assert.equal(await bones.count(), 0);
  await go("me");
  await settled(page);
  goOn = undefined;
  await go("tools");
  await eventually(async () => goOn);
  await page.clock.fastForward(250);
  assert.ok(await page.locator("[data-row-link]").count());
  assert.equal(await bones.count(), 0);
  goOn?.();
  await settled(page);
  await unrouted(page);
});

story("empty: a sentence and the act that fills it", async (tab, page) => {
  await visit(tab, `agents?project=${names.plant}`);
  await page.getByText("No agent yet.").waitFor();
  await page.locator(".empty").getByRole("button", { name: "New agent" }).click();
  assert.equal(await page.getByRole("dialog").getByLabel("Project").inputValue(), names.plant);
});

story("404: no object of this kind has the id, or one may not read it", async (tab, page) => {
  const none = "00000000-0000-7000-8000-000000000000";
  for (const [path, said] of [["runs", "No run has this id, or you may not read it."], ["agents", "No agent has this id, or you may not read it."], ["webhooks", "No endpoint has this id."]]) {
    await visit(tab, `${path}/${none}`);
    await page.getByText(said).waitFor();
    assert.equal(await page.getByRole("button", { name: /Try again/ }).count(), 0);
  }
});

story("who may do what cannot be checked: it is said, what was read stays, and it is tried again by itself", async (tab, page) => {
  await page.clock.install();
  await page.route("**/v1/changes/stream*", (route) => route.abort());
  await visit(tab, "runs");
  const rows = await page.locator("[data-row-link]").count();
  assert.ok(rows);
  const error = { code: "authorization-unavailable", message: "FGA Error: the authorization server does not answer.", details: {}, requestId: "req-1" };
  let isAway = true;
  let asked = 0;
  await page.route("**/v1/runs?*", (route) => (asked++, isAway ? route.fulfill({ status: 500, json: { error } }) : route.continue()));
  const said = page.getByText("Who may do what cannot be checked just now");
  await eventually(async () => {
    await page.clock.fastForward(1000);
    return said.isVisible();
  });
  assert.equal(await page.locator("[data-row-link]").count(), rows);
  isAway = false;
  const before = asked;
  await eventually(async () => {
    await page.clock.fastForward(1000);
    return !(await said.count());
  });
  assert.ok(asked > before);
  assert.ok(await page.locator("[data-row-link]").count());
  tab.faults().splice(0);
  await unrouted(page);
});

story("409: what the server has now stands beside what was typed, once it is read again", async (tab, page) => {
  const agent = await place.api.agents.create({ projectId: names.project, name: `meanwhile-${Date.now()}` });
  const { model, modelProviderId } = await place.api.agents.versions.get(names.support, "1.0.0");
  const version = { instructions: "Answer.", model, modelProviderId };
  await place.api.agents.versions.create(agent.id, { ...version, version: "1.0.0" });
  await visit(tab, `agents/${agent.id}/new-version`);
  await page.getByLabel("Instructions").fill("Answer, and say why.");
  await page.getByLabel("Version", { exact: false }).last().fill("1.1.0");
  await place.api.agents.versions.create(agent.id, { ...version, version: "1.1.0" });
  await page.getByRole("button", { name: "Make the version" }).click();
  const alert = page.getByRole("alert");
  await alert.getByText("There is one already").waitFor();
  /** @type {(() => void) | undefined} */
  let goOn;
  await page.route(`**/v1/agents/${agent.id}`, async (route) => {
    await new Promise((next) => (goOn = () => next(undefined)));
    await route.continue();
  });
  await alert.getByRole("button", { name: "Read it again" }).click();
  await eventually(async () => goOn);
  assert.equal(await alert.getByText("as you left it").count(), 0, "nothing is read yet");
  goOn?.();
  await page.getByText("1.1.0 was made meanwhile").waitFor();
  await alert.getByText("The page shows what the server has now. What you typed is as you left it").waitFor();
  await page.unroute(`**/v1/agents/${agent.id}`);
  assert.equal(await page.getByLabel("Instructions").inputValue(), "Answer, and say why.");
  await page.getByText("Begins with what 1.0.0 says.").waitFor();
  // It is put away meanwhile.
  await page.getByLabel("Version", { exact: false }).last().fill("1.2.0");
  await place.api.agents.archive(agent.id);
  await page.getByRole("button", { name: "Make the version" }).click();
  await alert.getByText("changed in the meantime").waitFor();
  await alert.getByRole("button", { name: "Read it again" }).click();
  await page.getByText("It is archived").waitFor();
  assert.equal(await page.getByLabel("Instructions").inputValue(), "Answer, and say why.");
});

story("409: what cannot be read again is said, and takes nothing away of what was typed", async (tab, page) => {
  const { name } = await place.api.tools.get(names.tool);
  await visit(tab, `tools/new?project=${names.project}`);
  await page.getByLabel("Name", { exact: true }).fill(name);
  await page.getByLabel("Address").fill("http://127.0.0.1:9/");
  await page.getByRole("button", { name: "Register the tool" }).click();
  const alert = page.getByRole("alert");
  await alert.getByText("There is one already").waitFor();
  await page.route("**/v1/projects?*", (route) => route.fulfill({ status: 503, json: { error: { code: "unavailable", message: "The database is away.", requestId: "req-1" } } }));
  await alert.getByRole("button", { name: "Read it again" }).click();
  await alert.getByText("Not all of it could be read. What you typed is as you left it.").waitFor();
  await alert.getByText("The database is away.").waitFor();
  assert.equal(await page.getByLabel("Name", { exact: true }).inputValue(), name);
  await page.unroute("**/v1/projects?*");
  await alert.getByRole("button", { name: "Read it again" }).click();
  await alert.getByText("The page shows what the server has now.").waitFor();
  assert.equal(await alert.getByText("The database is away.").count(), 0);
  assert.equal(await page.getByLabel("Address").inputValue(), "http://127.0.0.1:9/");
  tab.faults().splice(0);
});

story("what fails is tried again by itself, again and again, and waits longer each time", async (tab, page) => {
  let asked = 0;
  await page.clock.install();
  await page.route("**/v1/**", async (route) => {
    const url = route.request().url();
    if (url.includes("/stream")) return route.abort();
    if (url.includes("/v1/tools?")) return asked++, route.fulfill({ status: 503, json: { error: { code: "unavailable", message: "The database is away.", requestId: "req-1" } } });
    const response = await route.fetch();
    // The page's clock is ahead of the server's.
    const { date, ...headers } = response.headers();
    await route.fulfill({ response, headers });
  });
  await page.goto(`${place.url}/console/tools`);
  const again = page.getByRole("button", { name: "Try again" });
  const seconds = async () => Number(/\d+/.exec((await again.textContent()) ?? "")?.[0]);
  for (const least of [5, 12, 25]) {
    await eventually(async () => (await again.count()) && (await seconds()) >= least);
    const before = asked;
    await page.clock.fastForward((least + 10) * 1000);
    await eventually(() => {
      // The client's own tries wait, too.
      page.clock.fastForward(1000);
      return asked > before;
    });
  }
  tab.faults().splice(0);
  await unrouted(page);
});

test("a session that ended goes on in another tab where a provider signs in, and what is typed stays", async () => {
  await within({ token: place.token }, async (tab, page) => {
    await offering(page, { providers: [PROVIDER], tokenSignIn: "off" });
    await visit(tab, `conversations/new?agent=${names.support}`);
    await page.getByLabel("Title").fill("Typed before");
    await page.locator("main textarea").fill("And this, too");
    await page.evaluate(() => sessionStorage.setItem("agent-runtime-signed-out", "yes"));
    await tab.context.clearCookies();
    await page.getByRole("button", { name: "Send" }).click();
    const link = page.getByRole("link", { name: "Sign in in a new tab" });
    await link.waitFor();
    assert.equal(await page.getByRole("button", { name: /Continue with/ }).count(), 0, "nothing in the dialog leaves the page");
    // Nobody has signed in yet: it stays.
    const looked = page.waitForResponse("**/v1/identity/me");
    await page.evaluate(() => dispatchEvent(new Event("focus")));
    assert.equal((await looked).status(), 401);
    await page.evaluate(() => new Promise((done) => requestAnimationFrame(() => requestAnimationFrame(done))));
    assert.ok(await link.isVisible());
    const [other] = await Promise.all([tab.context.waitForEvent("page"), link.click()]);
    await other.getByLabel("Your key").fill(place.token);
    await other.keyboard.press("Enter");
    await other.waitForURL("**/console/inbox");
    await other.close();
    await page.evaluate(() => dispatchEvent(new Event("focus")));
    await page.waitForSelector("dialog", { state: "detached" });
    assert.equal(await page.getByLabel("Title").inputValue(), "Typed before");
    assert.equal(await page.locator("main textarea").inputValue(), "And this, too");
    await unrouted(page);
  });
});

story("where somebody else signs in after a session has ended the page is read anew", async (tab, page) => {
  const other = await person("somebody-else");
  await ends(tab, page);
  await page.getByLabel("Your key").fill(other.token);
  await Promise.all([page.waitForEvent("load"), page.keyboard.press("Enter")]);
  await page.getByRole("button", { name: "You" }).click();
  await page.getByText("somebody-else@frame.example").waitFor();
});

story("signing out that does not go through is said, and can be tried again", async (tab, page) => {
  await visit(tab, "tools");
  await page.route("**/v1/sign-out", (route) => route.abort());
  const out = async () => {
    await page.getByRole("button", { name: "You" }).click();
    await page.getByRole("menuitem", { name: "Sign out" }).click();
  };
  await out();
  await page.getByRole("heading", { name: "You are still signed in" }).waitFor();
  await page.getByRole("button", { name: "Keep it as it is" }).click();
  await page.waitForSelector("dialog", { state: "detached" });
  await out();
  await page.unroute("**/v1/sign-out");
  const act = page.locator("dialog .primary");
  await page.waitForFunction(() => document.querySelector("dialog .primary") && !document.querySelector("dialog .primary")?.hasAttribute("aria-disabled"));
  await act.click();
  await page.waitForURL("**/console/sign-in");
  assert.equal(await page.locator("dialog").count(), 0);
});

story("what is typed before an act is what it names, whatever blanks stand at its end", async (tab, page) => {
  const title = "Left over ";
  const agent = await place.api.agents.create({ projectId: names.project, name: "left-over" });
  const { id } = await place.api.conversations.create({ agentId: agent.id, title });
  await visit(tab, `conversations/${id}`);
  await page.getByRole("button", { name: "Erase", exact: true }).click();
  await page.locator("dialog input").fill("Left over");
  await page.waitForFunction(() => !document.querySelector("dialog .primary")?.hasAttribute("aria-disabled"));
  await page.locator("dialog .primary").click();
  await page.waitForSelector("dialog", { state: "detached" });
});

story("going back goes to where one was, and a page that one goes to is said", async (tab, page) => {
  await page.setViewportSize({ width: 1280, height: 320 });
  await visit(tab, "runs");
  const link = page.locator("[data-row-link]").last();
  const name = (await link.textContent()) ?? "";
  await link.focus();
  const before = await page.evaluate(() => scrollY);
  assert.ok(before > 0, "the list is longer than the window");
  await page.keyboard.press("Enter");
  await page.waitForURL(/\/console\/runs\/[0-9a-f-]{36}/);
  await settled(page);
  assert.equal(await page.evaluate(() => scrollY), 0);
  assert.equal(await page.evaluate(() => document.activeElement?.id), "main");
  const said = page.locator("main > [role=status]");
  assert.equal(`${await said.textContent()} · agent-runtime`, (await page.title()).replace(/^\(\d+\+?\) /, ""));
  await page.goBack();
  await page.waitForFunction((name) => document.activeElement?.textContent === name, name);
  assert.ok(Math.abs((await page.evaluate(() => scrollY)) - before) < 2);
  assert.equal(await said.textContent(), "Runs");
});

test("what the page keeps of where one was has a bound, and the oldest goes first", () => {
  const kept = new Map();
  for (let one = 0; one < 9; one++) keepNewest(kept, one, one, 5);
  keepNewest(kept, 5, "again", 5);
  keepNewest(kept, 9, 9, 5);
  assert.deepEqual([...kept.keys()], [6, 7, 8, 5, 9]);
});

story("the chosen project stays from page to page, and what an address says wins", async (tab, page) => {
  const chosen = () => page.locator("select.project").inputValue();
  const project = () => new URL(page.url()).searchParams.get("project");
  const isAt = (path, id) => page.waitForURL((url) => url.pathname === `/console/${path}` && url.searchParams.get("project") === id);
  const rail = (name) => page.locator(".rail").getByRole("link", { name, exact: true }).click();
  await visit(tab, "runs");
  await page.locator("select.project").selectOption(names.project);
  await isAt("runs", names.project);
  await settled(page);
  // A row is opened, and one goes on to another list: by the rail, by keys, by the palette, and by the way above the page.
  await page.locator("[data-row-link]").first().click();
  await page.waitForURL(/\/console\/runs\/[0-9a-f-]{36}$/);
  assert.equal(await chosen(), names.project);
  await rail("Agents");
  await isAt("agents", names.project);
  await page.locator("[data-row-link]").first().click();
  await page.waitForURL(/\/console\/agents\/[0-9a-f-]{36}$/);
  for (const key of ["g", "f"]) await page.keyboard.press(key);
  await isAt("flows", names.project);
  await rail("People");
  await page.waitForURL("**/console/people");
  assert.equal(await chosen(), names.project);
  await page.keyboard.press("Control+k");
  await page.locator("dialog[open] input").fill("usage");
  await page.keyboard.press("Enter");
  await isAt("usage", names.project);
  await visit(tab, `runs/${names.run}`);
  assert.equal(await chosen(), names.project, "after a reload");
  await page.getByRole("navigation", { name: "Where this page is" }).getByRole("link", { name: "Runs" }).click();
  await isAt("runs", names.project);
  // It is changed where the address has none.
  await rail("People");
  await page.locator("select.project").selectOption(names.claims);
  await page.waitForURL("**/console/people");
  await rail("Flows");
  await isAt("flows", names.claims);
  // An address wins, whether it names one or none.
  await visit(tab, `agents?project=${names.plant}`);
  await rail("People");
  assert.equal(await chosen(), names.plant);
  await visit(tab, "agents");
  assert.deepEqual([project(), await chosen()], [null, ""]);
  await rail("Runs");
  await isAt("runs", null);
  // A list about something of another project is that project's.
  await page.locator("select.project").selectOption(names.claims);
  await visit(tab, `agents/${names.agent}`);
  await page.getByRole("link", { name: "Its runs" }).click();
  await isAt("runs", names.project);
  const { latestVersion } = await place.api.agents.get(names.agent);
  for (const path of [`agents/${names.agent}`, `agents/${names.agent}/versions/${latestVersion}`]) {
    await visit(tab, `runs?project=${names.claims}`);
    await visit(tab, path);
    assert.equal(await chosen(), names.claims);
    await page.getByRole("link", { name: "Try it" }).click();
    await isAt("conversations/new", names.project);
    await page.getByLabel("Agent", { exact: true }).locator(`option[value="${names.agent}"]:checked`).waitFor({ state: "attached" });
  }
  // Somebody else has chosen nothing in this tab.
  const other = await person("chooses-nothing");
  await page.getByRole("button", { name: "You" }).click();
  await page.getByRole("menuitem", { name: "Sign out" }).click();
  await page.getByLabel("Your key").fill(other.token);
  await page.keyboard.press("Enter");
  await page.locator("select.project").waitFor();
  assert.equal(await chosen(), "");
});

story("a dialog says what happens in it, the palette does not open over it, and focus goes back", async (tab, page) => {
  await visit(tab, "dev/components");
  await page.getByRole("button", { name: "Show a secret once" }).click();
  await page.getByRole("button", { name: "Copy", exact: true }).last().click();
  await page.locator("dialog .status", { hasText: "Copied" }).waitFor();
  await page.keyboard.press("Control+k");
  await page.keyboard.press("Escape");
  assert.equal(await page.locator("dialog[open]").count(), 1);
  assert.ok(await page.getByText("svc_bt_example").isVisible());
  await page.getByLabel("I have kept it. It is not shown again.").check();
  await page.getByRole("button", { name: "Close" }).click();
  await page.waitForSelector("dialog", { state: "detached" });
  assert.equal(await focused(page), "Show a secret once");
});

story("Space presses what is chosen in a menu", async (tab, page) => {
  await visit(tab, "dev/components");
  await page.getByRole("button", { name: "More acts" }).focus();
  await page.keyboard.press("Enter");
  await page.getByRole("menuitem", { name: "Say something" }).waitFor();
  await page.keyboard.press(" ");
  await page.locator(".status", { hasText: "Saved" }).waitFor();
  assert.equal(await page.getByRole("menu").count(), 0);
});

story("an address with a lone per cent sign has a page that says so", async (tab, page) => {
  await visit(tab, "50%-off");
  await page.getByRole("heading", { name: "No page here" }).waitFor();
});

story("an overlay that cannot be loaded is not left out in silence", async (tab, page) => {
  let fails = true;
  await page.route("**/console/assets/overlays.js", (route) => (fails ? route.abort() : route.continue()));
  await visit(tab, "tools");
  await page.getByRole("button", { name: "Find" }).click();
  await page.getByText("A part of the console could not be loaded").waitFor();
  fails = false;
  await Promise.all([page.waitForEvent("load"), page.getByRole("button", { name: "Reload" }).click()]);
  await settled(page);
  await page.keyboard.press("Control+k");
  await page.locator("dialog[open] input").waitFor();
});

test("on a phone Escape closes the list of pages, and focus goes back to its button", async () => {
  await within({ token: place.token, width: 360 }, async (tab, page) => {
    await visit(tab, "tools");
    const button = page.locator(".menu-button");
    await button.click();
    await page.locator(".rail a").first().focus();
    await page.keyboard.press("Escape");
    assert.equal(await button.getAttribute("aria-expanded"), "false");
    assert.ok(await button.evaluate((one) => one === document.activeElement));
  });
});

test("the way in keeps the whole address", async () => {
  const tab = await open(browser, place.url, { signedOut: true });
  const { page } = tab;
  await offering(page, { providers: [PROVIDER] });
  /** @type {any} */
  let asked;
  await page.route("**/v1/sign-in/providers/**", (route) => ((asked = route.request().postDataJSON()), route.abort()));
  await page.goto(`${place.url}/console/runs?status=failed#main`);
  await page.getByRole("button", { name: `Continue with ${PROVIDER.name}` }).click();
  await page.getByRole("alert").waitFor();
  assert.equal(asked.returnTo, "/console/runs?status=failed#main");
  await page.unroute("**/v1/sign-in");
  await offering(page, { problem: "other-address", publicUrl: "https://agents.example" });
  await page.reload();
  assert.equal(await page.getByRole("link", { name: "Go there" }).getAttribute("href"), "https://agents.example/console/runs?status=failed#main");
  assert.deepEqual(tab.faults(), []);
  await unrouted(page);
  await tab.context.close();
});

test("one arrives where one's work is: a reviewer at the inbox, others at the runs, and nobody's at a welcome", async () => {
  const arrives = (/** @type {string} */ token, /** @type {string} */ where) =>
    within({ token }, async (tab, page) => {
      await page.goto(`${place.url}/console/`);
      await page.waitForURL(`**/console/${where}`);
      await settled(page);
      assert.equal((await page.locator("h1").textContent())?.split(",")[0], { inbox: "Inbox", runs: "Runs", welcome: "Welcome" }[where]);
    });
  await arrives(place.token, "inbox");
  const [viewer, nobody] = [await person("viewer"), await person("nobody")];
  await place.api.projects.memberships.add(names.project, { userId: viewer.id, role: "viewer" });
  await arrives(viewer.token, "runs");
  await arrives(nobody.token, "welcome");
});
