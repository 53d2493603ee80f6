/** What the frame does, whatever the page: keys, the palette, sign-in and its end, live runs, long lists. By keys where one can. */

import assert from "node:assert/strict";
import { test } from "node:test";
import { open, settled, visit } from "./browser.mjs";
import { world } from "./server.mjs";
import { browser, names, place, stage, story } from "./stage.mjs";

stage(world);

const heading = (page) => page.locator("h1").textContent();
const focused = (page) => page.evaluate(() => document.activeElement?.textContent ?? "");

/** It is loaded after the first view. */
async function openPalette(page) {
  await page.keyboard.press("Control+k");
  await page.locator("dialog[open] input").waitFor();
}

story("the palette finds a page by its name, and an id leads to its page", async (tab, page) => {
  await visit(tab, "dev/components");
  await openPalette(page);
  await page.keyboard.type("run");
  await page.keyboard.press("Enter");
  await page.waitForURL("**/console/runs");
  await openPalette(page);
  await page.keyboard.type(names.run);
  await page.keyboard.press("Enter");
  await page.waitForURL(`**/console/runs/${names.run}`);
  await page.waitForSelector(".timeline li");
  assert.equal(await page.evaluate(() => document.activeElement?.id), "main", "focus is at the page");
  await page.keyboard.press("Control+k");
  await page.keyboard.press("Escape");
  await page.waitForSelector("dialog", { state: "detached" });
});

story("what is opened takes the next key, however soon it comes", async (tab, page) => {
  await visit(tab, "dev/components");
  await openPalette(page);
  await page.keyboard.press("Escape");
  await page.waitForSelector("dialog", { state: "detached" });
  const shown = await page.evaluate(async () => {
    // Between two keys of a quick hand there need not be a frame.
    const drawn = async () => {
      for (let turns = 0; turns < 20; turns++) await null;
    };
    /** @type {HTMLElement} */ (document.querySelector("main [aria-haspopup=menu]")).click();
    await drawn();
    const menu = { isOpen: document.querySelector(".menu")?.matches(":popover-open"), focus: document.activeElement?.role };
    document.dispatchEvent(new KeyboardEvent("keydown", { key: "k", ctrlKey: true }));
    await drawn();
    return { menu, dialog: { isOpen: document.querySelector("dialog")?.matches(":modal"), focus: document.activeElement?.role } };
  });
  assert.deepEqual(shown, { menu: { isOpen: true, focus: "menuitem" }, dialog: { isOpen: true, focus: "combobox" } });
});

story("single keys go to pages and through rows, and can be turned off", async (tab, page) => {
  await visit(tab, "dev/components");
  await page.keyboard.press("g");
  await page.keyboard.press("r");
  await page.waitForURL("**/console/runs");
  await page.waitForSelector("[data-row-link]");
  // A row has the name of its agent once that was read.
  await settled(page);
  await page.keyboard.press("j");
  const first = await focused(page);
  await page.keyboard.press("j");
  await page.keyboard.press("k");
  assert.equal(await focused(page), first);
  await page.keyboard.press("Enter");
  await page.waitForURL(/\/console\/runs\/[0-9a-f-]{36}/);
  await page.goBack();
  await page.waitForSelector("[data-row-link]");
  await page.keyboard.press("/");
  assert.ok(await page.evaluate(() => document.activeElement?.closest(".filters")));
  await page.keyboard.type("gr");
  assert.ok(page.url().endsWith("/console/runs"), "in a field a key is a letter");
  await page.keyboard.press("Escape");
  await page.evaluate(() => /** @type {HTMLElement} */ (document.activeElement).blur());
  await page.keyboard.press("?");
  await page.waitForSelector("dialog[open] kbd");
  await page.keyboard.press("Escape");
  await page.evaluate(() => localStorage.setItem("keys", "off"));
  await visit(tab, "dev/components");
  await page.keyboard.press("g");
  await page.keyboard.press("r");
  await page.keyboard.press("?");
  assert.equal(await page.locator("dialog[open]").count(), 0);
  assert.ok(page.url().endsWith("/dev/components"));
});

story("filters stand in the address, and clearing them shows all", async (tab, page) => {
  await visit(tab, "runs");
  await page.getByLabel("State").selectOption("failed");
  await page.waitForURL("**/console/runs?status=failed");
  await settled(page);
  const states = await page.locator("tbody .state").allTextContents();
  assert.ok(states.length && states.every((state) => state === "Failed"), states.join());
  await page.getByLabel("State").selectOption("queued");
  await page.getByText("No run matches these filters.").waitFor();
  await page.getByRole("button", { name: "Clear filters" }).first().click();
  await page.waitForURL("**/console/runs");
});

test("a deep link signed out leads there once one has signed in, and the enrolment form takes a code of the address", async () => {
  const tab = await open(browser, place.url, { signedOut: true });
  const { page } = tab;
  await visit(tab, `runs/${names.run}`);
  await page.getByLabel("Your key").fill("svc_bt_wrong");
  await page.keyboard.press("Enter");
  await page.locator(".field .error").waitFor();
  assert.equal(await page.getByLabel("Your key").getAttribute("aria-invalid"), "true");
  await page.getByLabel("Your key").fill(place.token);
  await page.keyboard.press("Enter");
  await page.waitForSelector(".timeline li");
  assert.ok(page.url().endsWith(names.run));
  // As of a session that came by an identity provider, whose page for signing out the server names.
  const there = "https://id.mill.example/logout?client_id=console";
  await page.route("**/v1/sign-out", async (route) => route.fulfill({ response: await route.fetch(), json: { providerSignOutUrl: there } }));
  await page.getByRole("button", { name: "You" }).click();
  await page.getByRole("menuitem", { name: "Sign out" }).click();
  await page.waitForURL("**/console/sign-in");
  assert.equal(await page.getByRole("link", { name: "Sign out there, too" }).getAttribute("href"), there);
  await page.goto(`${place.url}/console/sign-in#code=svc_en_nothing`);
  await page.reload();
  await page.goto("about:blank");
  await page.goto(`${place.url}/console/sign-in#code=svc_en_nothing`);
  await page.getByLabel("The code").waitFor();
  assert.equal(await page.getByLabel("The code").inputValue(), "svc_en_nothing");
  assert.equal(new URL(page.url()).hash, "", "the code is in no address");
  for (const odd of ["sign-in#%", "sign-in#code=%E0%A4", "sign-in?problem=%"]) {
    await page.goto("about:blank");
    await page.goto(`${place.url}/console/${odd}`);
    await page.getByLabel("Your key").waitFor();
  }
  assert.deepEqual(tab.faults(), []);
  await tab.context.close();
});

test("a browser that keeps nothing for pages signs in and out", async () => {
  const tab = await open(browser, place.url);
  await tab.context.addInitScript(() => {
    const refuse = () => {
      throw new DOMException("Storage is off", "SecurityError");
    };
    for (const store of ["localStorage", "sessionStorage"]) Object.defineProperty(window, store, { get: refuse });
  });
  await visit(tab, "runs");
  await tab.page.getByLabel("Your key").fill(place.token);
  await tab.page.keyboard.press("Enter");
  await tab.page.getByRole("heading", { level: 1, name: "Runs" }).waitFor();
  await tab.page.getByRole("button", { name: "You" }).click();
  await tab.page.getByRole("menuitem", { name: "Sign out" }).click();
  await tab.page.waitForURL("**/console/sign-in");
  await tab.page.getByLabel("Your key").waitFor();
  assert.deepEqual(tab.faults(), []);
  await tab.context.close();
});

story("a session that ends under a page leaves the page, and signing in goes on", async (tab, page) => {
  await visit(tab, "runs");
  // In development it would begin again by itself.
  await page.evaluate(() => sessionStorage.setItem("agent-runtime-signed-out", "yes"));
  await tab.context.clearCookies();
  await page.getByLabel("State").selectOption("failed");
  await page.getByRole("heading", { name: "Your session has ended" }).waitFor();
  assert.equal(await heading(page), "Runs");
  await page.getByLabel("Your key").fill(place.token);
  await page.keyboard.press("Enter");
  await page.waitForSelector("dialog", { state: "detached" });
  assert.ok(page.url().includes("status=failed"));
});

/** The session ends, what is sent is refused, and one signs in again by a key over what is there. @param {any} tab @param {() => Promise<void>} send */
async function endsAndBegins(tab, send) {
  await tab.page.evaluate(() => sessionStorage.setItem("agent-runtime-signed-out", "yes"));
  await tab.context.clearCookies();
  await send();
  const ended = tab.page.getByRole("heading", { name: "Your session has ended" });
  await ended.waitFor();
  await tab.page.getByLabel("Your key").fill(place.token);
  await tab.page.keyboard.press("Enter");
  await ended.waitFor({ state: "detached" });
}

story("a session that ends under a form leaves what was typed, and sending works once one has signed in again", async (tab, page) => {
  await visit(tab, `conversations/${names.conversation}`, { ready: ".composer" });
  const message = page.getByRole("textbox", { name: "Message" });
  const send = page.getByRole("button", { name: "Send" });
  await message.fill("Is order A-17 on its way?");
  await endsAndBegins(tab, () => send.click());
  assert.equal(await message.inputValue(), "Is order A-17 on its way?");
  await send.click();
  await page.locator(".said", { hasText: "Is order A-17 on its way?" }).first().waitFor();
  assert.equal(await message.inputValue(), "", "it is sent");
});

story("a session that ends under a form in a dialog leaves the dialog and what was typed", async (tab, page) => {
  await visit(tab, `agents/${names.support}`);
  await page.getByRole("button", { name: "More" }).click();
  await page.getByRole("menuitem", { name: "Change name" }).click();
  const form = page.getByRole("dialog", { name: "Change support" });
  const said = form.getByRole("textbox", { name: "What it does" });
  await said.fill("Answers customers at night, too.");
  const save = form.getByRole("button", { name: "Save" });
  await endsAndBegins(tab, () => save.click());
  assert.equal(await said.inputValue(), "Answers customers at night, too.");
  await save.click();
  await form.waitFor({ state: "detached" });
  assert.equal((await place.api.agents.get(names.support)).description, "Answers customers at night, too.");
});

story("a run that waits is approved in place, and its page follows it to its end", async (tab, page) => {
  const { run } = await place.api.runs.create({ flowId: "billing.refund", projectId: names.project, input: { order: "B-2", amount: 90 } });
  await visit(tab, `runs/${run.id}`, { ready: ".timeline li" });
  await page.locator(".step-line", { hasText: "Asks" }).waitFor({ timeout: 60_000 });
  await page.locator(".step-line", { hasText: "Asks" }).focus();
  await page.keyboard.press("ArrowRight");
  await page.getByLabel("Why").fill("It is right.");
  await page.keyboard.press("Control+Enter");
  assert.equal((await place.api.runs.get(run.id)).status, "waiting", "no key of the field decides");
  const approve = page.getByRole("button", { name: "Approve" });
  await page.waitForFunction(() => [...document.querySelectorAll(".decide button")].every((one) => !one.hasAttribute("aria-disabled")));
  await approve.focus();
  await page.keyboard.press("Enter");
  await page.locator(".page-head .state", { hasText: "Completed" }).waitFor({ timeout: 60_000 });
});

story("cancelling asks first, and no key or double click does it by chance", async (tab, page) => {
  const { run } = await place.api.runs.create({ flowId: "billing.refund", projectId: names.project, input: { order: "B-3", amount: 90 } });
  await visit(tab, `runs/${run.id}`, { ready: ".timeline li" });
  await page.getByRole("button", { name: "Cancel" }).click();
  const act = page.getByRole("button", { name: "Cancel the run" });
  await act.dispatchEvent("click");
  await page.keyboard.press("Enter");
  await page.waitForSelector("dialog", { state: "detached" });
  assert.equal((await place.api.runs.get(run.id)).cancelRequested, false);
  await page.getByRole("button", { name: "Cancel" }).click();
  await page.waitForFunction(() => !document.querySelector("dialog .primary")?.hasAttribute("aria-disabled"));
  await act.click();
  await page.locator(".page-head .state", { hasText: "Cancelled" }).waitFor({ timeout: 60_000 });
});

story("a page that is open over an upgrade says so", async (tab, page) => {
  let build = "11111111";
  await page.route("**/v1/**", async (route) => {
    const answer = await route.fetch();
    await route.fulfill({ response: answer, headers: { ...answer.headers(), "x-agent-runtime-build": build } });
  });
  await visit(tab, "runs");
  build = "22222222";
  await page.getByText("The console was updated").waitFor({ timeout: 30_000 });
  assert.equal(await heading(page), "Runs");
});

story("ten thousand rows are as quick as ten", async (tab, page) => {
  await visit(tab, "dev/components");
  await page.evaluate(() => {
    window.made = 0;
    for (const name of ["createElement", "createElementNS"]) {
      const make = Document.prototype[name];
      Document.prototype[name] = function (...given) {
        window.made++;
        return make.apply(this, given);
      };
    }
  });
  await page.getByRole("button", { name: "10 000 rows" }).click();
  await page.locator("[aria-rowcount='10001']").waitFor();
  await page.evaluate(() => (document.querySelector(".windowed").scrollTop = 1e9));
  await page.getByRole("link", { name: "Row 10000", exact: true }).waitFor();
  const { made, shown } = await page.evaluate(() => ({ made: window.made, shown: document.querySelectorAll(".windowed *").length }));
  assert.ok(made > 0 && made < 3000, `${made} elements were made`);
  assert.ok(shown < 1500, `${shown} elements are there`);
});

story("text that others wrote runs nothing, and is shown as it is", async (tab, page) => {
  const hostile = '<img src=x onerror="alert(1)"><script>alert(2)</script> [link](javascript:alert(3)) ‮evil';
  let asked = 0;
  page.on("dialog", (dialog) => (asked++, dialog.dismiss()));
  const { run } = await place.api.runs.create({ agentId: names.agent, message: hostile, labels: { note: "<b>x</b>" } });
  await place.api.runs.wait(run.id);
  for (const tabName of ["", "/input", "/output", "/events"]) {
    await visit(tab, `runs/${run.id}${tabName}`);
    assert.equal(await page.locator("main img, main script").count(), 0);
  }
  await visit(tab, `runs/${run.id}/input`);
  assert.ok((await page.locator("main pre").first().textContent()).includes(hostile));
  const refused = await page.evaluate(() => {
    try {
      document.body.insertAdjacentHTML("beforeend", "<b>x</b>");
      return false;
    } catch {
      return true;
    }
  });
  assert.ok(refused, "Trusted Types are on");
  // Chromium reports what it has just refused.
  const reports = tab.faults().splice(0);
  assert.ok(reports.length && reports.every((one) => one.includes("TrustedHTML") || one.includes("trusted-types-sink")), reports.join("\n"));
  assert.equal(asked, 0);
});
