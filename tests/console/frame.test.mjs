/** What the frame keeps where something goes wrong, or somebody comes back: what is typed, the place in a page, who is signed in. */

import assert from "node:assert/strict";
import { test } from "node:test";
import { AgentRuntime } from "../../clients/typescript/src/index.js";
import { open, settled, visit } from "./browser.mjs";
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
  await page.goto(`${place.url}/console/runs?status=failed`);
  await page.getByRole("button", { name: `Continue with ${PROVIDER.name}` }).click();
  await page.getByRole("alert").waitFor();
  assert.equal(asked.returnTo, "/console/runs?status=failed");
  await page.unroute("**/v1/sign-in");
  await offering(page, { problem: "other-address", publicUrl: "https://agents.example" });
  await page.reload();
  assert.equal(await page.getByRole("link", { name: "Go there" }).getAttribute("href"), "https://agents.example/console/runs?status=failed");
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
