/** Agents and conversations by keys alone: promote and undo, compare two versions, make one, and talk to an agent. */

import assert from "node:assert/strict";
import { test } from "node:test";
import { open, overflow, settled, visit } from "./browser.mjs";
import { reach, typed } from "./keys.mjs";
import { eventually } from "./look-up.mjs";
import { losesAnswers } from "./lost.mjs";
import { browser, names, place, stage } from "./stage.mjs";
import { work } from "./work.mjs";

stage(work);

test("a version goes live and the one before comes back, by keys alone", async () => {
  await place.api.agents.promote(names.support, { version: "1.0.0" });
  const tab = await open(browser, place.url, { token: place.token });
  await visit(tab, `agents/${names.support}`);
  await reach(tab.page, "Make live: 1.1.0");
  await tab.page.keyboard.press("Enter");
  await tab.page.waitForSelector('.banner:has-text("1.1.0 is live")');
  assert.equal((await place.api.agents.get(names.support)).liveVersion, "1.1.0");
  await reach(tab.page, "Undo: 1.0.0 live again");
  await tab.page.keyboard.press("Enter");
  await tab.page.waitForSelector('.banner:has-text("is live")', { state: "detached" });
  assert.equal((await place.api.agents.get(names.support)).liveVersion, "1.0.0");
  assert.deepEqual(tab.faults(), []);
  await tab.context.close();
});

test("two versions are compared by keys alone", async () => {
  const tab = await open(browser, place.url, { token: place.token });
  await visit(tab, `agents/${names.support}`);
  // The boxes stand before the versions' links.
  for (const version of ["1.1.0", "1.0.0"]) {
    await reach(tab.page, version);
    await tab.page.keyboard.press("Shift+Tab");
    await tab.page.keyboard.press("Space");
  }
  await tab.page.evaluate(() => document.querySelector("main")?.focus());
  await reach(tab.page, "Compare the two chosen");
  await tab.page.keyboard.press("Enter");
  await tab.page.waitForURL("**/compare?before=1.0.0&after=1.1.0");
  await tab.page.waitForSelector(".diff del");
  const removed = await tab.page.locator(".diff .removed").allTextContents();
  assert.ok(removed.some((line) => line.includes("Never guess where an order is.")), removed.join("\n"));
  const added = await tab.page.locator(".diff .added").allTextContents();
  assert.ok(added.some((line) => line.includes("two sentences at most")), added.join("\n"));
  assert.ok(added.some((line) => line.includes("pay_refund")), "tools are named, not numbered");
  assert.deepEqual(tab.faults(), []);
  await tab.context.close();
});

test("a new version begins with the newest one, and a fault stands at its field", async () => {
  const tab = await open(browser, place.url, { token: place.token });
  await visit(tab, `agents/${names.support}/new-version`);
  await reach(tab.page, "Instructions");
  await tab.page.keyboard.press("Control+End");
  await tab.page.keyboard.type("\nSign with your name.");
  await reach(tab.page, "Parameters and limits");
  await tab.page.keyboard.press("Enter");
  await reach(tab.page, "Temperature");
  await typed(tab.page, "3");
  await reach(tab.page, "Make the version");
  await tab.page.keyboard.press("Enter");
  await tab.page.waitForSelector('.field .error:has-text("0 to 2")');
  assert.match(await tab.page.getByLabel("Instructions").inputValue(), /Sign with your name\.$/);
  assert.equal(await tab.page.getByLabel("Temperature").evaluate((field) => field === document.activeElement), true, "the focus is at the fault");
  await typed(tab.page, "0.5");
  await reach(tab.page, "Make the version");
  await tab.page.keyboard.press("Enter");
  await tab.page.waitForURL(/\/versions\/\d/);
  const version = decodeURIComponent(tab.page.url().split("/").at(-1));
  const made = await place.api.agents.versions.get(names.support, version);
  assert.equal(made.parameters.temperature, 0.5);
  assert.equal(made.parameters.maxTokens, 2000, "what the form does not change stays");
  assert.equal(made.limits.historyCalls, false);
  assert.deepEqual(made.overrides, ["parameters"]);
  assert.deepEqual(made.guardrails, [{ builtin: "hidden-text", at: ["tool.result"], action: "redact" }], "a version from it keeps its guardrails");
  assert.equal(made.streaming, "unchecked");
  assert.match(made.instructions, /Sign with your name\.$/);
  assert.deepEqual(tab.faults(), []);
  await tab.context.close();
});

test("a new version begins with the newest one, also where its form was open before that was made", async () => {
  const { model, modelProviderId } = await place.api.agents.versions.get(names.support, "1.0.0");
  const agent = await place.api.agents.create({ projectId: names.shopProject, name: `again-${Date.now()}` });
  const make = (version, instructions) => place.api.agents.versions.create(agent.id, { version, instructions, model, modelProviderId });
  const tab = await open(browser, place.url, { token: place.token });
  const { page } = tab;
  const instructions = page.getByLabel("Instructions");
  /** By links: the page is not loaded anew. */
  const begins = async () => {
    await page.getByRole("navigation", { name: "Where this page is" }).getByRole("link", { name: agent.name }).click();
    await page.getByRole("heading", { level: 1, name: agent.name }).waitFor();
    await page.getByRole("link", { name: "New version", exact: true }).click();
    await page.getByRole("heading", { level: 1, name: "New version" }).waitFor();
    await instructions.waitFor();
    await settled(page);
    return instructions.inputValue();
  };
  await visit(tab, `agents/${agent.id}/new-version`);
  assert.equal(await instructions.inputValue(), "");
  await make("0.1.0", "One.");
  assert.equal(await begins(), "One.");
  await make("0.2.0", "Two.");
  assert.equal(await begins(), "Two.");
  await page.getByText("Begins with what 0.2.0 says.").waitFor();
  assert.equal(await page.getByText("was made meanwhile").count(), 0);
  assert.deepEqual(tab.faults(), []);
  await tab.context.close();
  await place.api.agents.archive(agent.id);
});

test("one talks to an agent: the first message begins the conversation, and the answer is written live", async () => {
  const tab = await open(browser, place.url, { token: place.token });
  await visit(tab, `conversations/new?agent=${names.support}&version=1.0.0`);
  await reach(tab.page, "Message");
  await tab.page.keyboard.type("What time is it in Kyoto?");
  await tab.page.keyboard.press("Control+Enter");
  await tab.page.waitForURL(/\/conversations\/[0-9a-f-]{36}$/);
  const id = tab.page.url().split("/").at(-1);
  // The call is a closed card, and the answer a log that is whole in the end.
  await tab.page.waitForSelector('.call:not([open]) summary:has-text("clock")');
  await tab.page.waitForSelector('[role="log"]:not([aria-busy]):has-text("scripted local provider")');
  await reach(tab.page, "Message");
  await tab.page.keyboard.type("Thank you.");
  await tab.page.keyboard.press("Control+Enter");
  await tab.page.waitForFunction(() => document.querySelectorAll('.said[data-role="assistant"]').length === 2 && !document.querySelector(".typing, [aria-busy=true]"));
  const { data } = await place.api.conversations.messages.list(id, { order: "asc" });
  assert.deepEqual(data.map((one) => one.role), ["user", "assistant", "user", "assistant"]);
  assert.equal((await place.api.conversations.get(id)).version, "1.0.0");
  // It is erased once its title was typed.
  await settled(tab.page);
  await tab.page.evaluate(() => document.querySelector("main")?.focus());
  await reach(tab.page, "Erase");
  await tab.page.keyboard.press("Enter");
  await reach(tab.page, /^Type /);
  await tab.page.keyboard.type("What time is it in Kyoto?");
  await tab.page.waitForSelector('dialog button.danger:not([aria-disabled="true"])');
  await reach(tab.page, "Erase the conversation");
  await tab.page.keyboard.press("Enter");
  await tab.page.waitForSelector('.banner:has-text("erased")');
  assert.ok((await place.api.conversations.get(id)).erasureRequestedAt);
  assert.deepEqual(tab.faults(), []);
  await tab.context.close();
});

test("a turn sets what its version lets a run set, and nothing else", async () => {
  const { model, modelProviderId } = await place.api.agents.versions.get(names.support, "1.0.0");
  const agent = await place.api.agents.create({ projectId: names.shopProject, name: `sets-${Date.now()}` });
  await place.api.agents.versions.create(agent.id, { version: "1.0.0", instructions: "One.", model, modelProviderId });
  await place.api.agents.versions.create(agent.id, { version: "2.0.0", instructions: "Two.", model, modelProviderId, overrides: ["model", "parameters", "limits"] });
  await place.api.agents.promote(agent.id, { version: "1.0.0" });
  const tab = await open(browser, place.url, { token: place.token });
  const { page } = tab;
  const fold = page.locator(".composer summary");
  const field = (/** @type {string} */ label) => page.locator(".composer").getByLabel(label);
  // The live version allows nothing, and one that allows its parameters has no other fields.
  await visit(tab, `conversations/new?agent=${agent.id}`);
  await page.getByLabel("Message").waitFor();
  await settled(page);
  assert.equal(await fold.count(), 0);
  await visit(tab, `conversations/new?agent=${names.support}&version=1.1.0`);
  await fold.click();
  await field("Temperature").waitFor();
  for (const other of ["Provider", "Model", "Steps at most"]) assert.equal(await field(other).count(), 0, other);
  // Folded, by keys. A fault is at its field, and what is no number is not sent.
  await visit(tab, `conversations/new?agent=${agent.id}&version=2.0.0`);
  await reach(page, "Message");
  await page.keyboard.type("Say something.");
  await fold.waitFor();
  assert.equal(await field("Temperature").isVisible(), false);
  await reach(page, "Settings of the next turn");
  await page.keyboard.press("Enter");
  await field("Temperature").fill("warm");
  await page.waitForSelector('.field:has-text("Temperature") .error:has-text("This is no number.")');
  await page.waitForSelector('.composer button.primary[aria-disabled="true"]');
  await field("Temperature").fill("0");
  await field("Further parameters").fill("[1]");
  await page.waitForSelector('.field:has-text("Further parameters") .error:has-text("This is no JSON object.")');
  await field("Further parameters").fill('{"seed": 7}');
  await field("Steps at most").fill("900");
  await page.getByRole("button", { name: "Send" }).click();
  await page.waitForSelector('.field:has-text("Steps at most") .error:has-text("1 to 200")');
  assert.equal(await field("Steps at most").evaluate((one) => one === document.activeElement), true, "the focus is at the fault");
  assert.equal(await page.locator(".composer .fields-row .error").count(), 1);
  await field("Steps at most").fill("9");
  await field("Time, in seconds").fill("45.5");
  await field("Model").selectOption(model);
  assert.deepEqual(await overflow(page), []);
  await page.getByRole("button", { name: "Send" }).click();
  await page.waitForURL(/\/conversations\/[0-9a-f-]{36}$/);
  const conversationId = page.url().split("/").at(-1);
  await page.waitForSelector('.said[data-role="assistant"]');
  const runs = async () => (await place.api.runs.list({ conversationId, order: "asc" })).data;
  const first = await place.api.runs.get((await runs())[0].id);
  assert.deepEqual(first.overrides, { modelProviderId, model, parameters: { temperature: 0, seed: 7 }, limits: { maxSteps: 9, turnTimeoutMs: 45_500 } });
  // The next turn has none, unless it is given some.
  await page.waitForFunction(() => !document.querySelector(".typing, [aria-busy=true]"));
  await reach(page, "Message");
  await page.keyboard.type("And again.");
  await page.keyboard.press("Control+Enter");
  const second = await eventually(async () => (await runs())[1], "a second turn");
  assert.equal((await place.api.runs.get(second.id)).overrides ?? undefined, undefined);
  assert.deepEqual(tab.faults(), []);
  await tab.context.close();
  await place.api.agents.archive(agent.id);
});

test("a turn is stopped, and says so", async () => {
  const tab = await open(browser, place.url, { token: place.token });
  await visit(tab, `conversations/new?agent=${names.support}&version=1.1.0`);
  await reach(tab.page, "Message");
  await tab.page.keyboard.type("Please pay refund of order A-30.");
  await tab.page.keyboard.press("Control+Enter");
  // It waits for a person: the approval stands in the chat.
  await tab.page.waitForSelector(".approval");
  await reach(tab.page, "Stop");
  await tab.page.keyboard.press("Enter");
  await tab.page.waitForSelector('.said:has-text("Stopped.")');
  assert.deepEqual(tab.faults(), []);
  await tab.context.close();
});

test("a failed turn is tried again in the chat, once its cause is mended, by keys alone", async () => {
  const given = await place.api.agents.versions.get(names.support, "1.0.0");
  const { baseUrl } = await place.api.modelProviders.get(given.modelProviderId);
  // Nothing listens there.
  const away = await place.api.modelProviders.create({ name: "away", baseUrl: "http://127.0.0.1:9/v1", models: [{ name: given.model, prices: {} }] });
  const agent = await place.api.agents.create({ projectId: names.shopProject, name: "unlucky" });
  await place.api.agents.versions.create(agent.id, { version: "1.0.0", instructions: "Answer.", model: given.model, modelProviderId: away.id, toolIds: [] });
  const tab = await open(browser, place.url, { token: place.token });
  await visit(tab, `conversations/new?agent=${agent.id}`);
  await reach(tab.page, "Message");
  await tab.page.keyboard.type("Are you there?");
  await tab.page.keyboard.press("Control+Enter");
  await tab.page.waitForSelector(".said .failure-text");
  const id = tab.page.url().split("/").at(-1);
  await place.api.modelProviders.update(away.id, { baseUrl });
  await reach(tab.page, "Try again");
  await tab.page.keyboard.press("Enter");
  await tab.page.waitForSelector('[role="log"]:not([aria-busy]):has-text("scripted local provider")');
  const { data } = await place.api.conversations.messages.list(id, { order: "asc" });
  assert.equal(data.at(-1).role, "assistant");
  // Once it was answered there is nothing to try again, here and after the page is loaded anew.
  for (const look of [() => settled(tab.page), () => visit(tab, `conversations/${id}`)]) {
    await look();
    assert.equal(await tab.page.getByRole("button", { name: "Try again" }).count(), 0);
  }
  assert.deepEqual(tab.faults(), []);
  await tab.context.close();
});

test("hostile text in names, instructions and messages is text, and breaks no page", async () => {
  const image = '<img src=x onerror="document.title=`broken`">';
  const long = "W".repeat(300);
  const hostile = `${image} \u202edesrever\u202c [a](javascript:alert(1)) ${long}`;
  const agent = await place.api.agents.create({ projectId: names.shopProject, name: `${image} ${Date.now()}`, description: hostile });
  const version = await place.api.agents.versions.get(names.support, "1.0.0");
  const instructions = `${hostile}\n`.repeat(200);
  await place.api.agents.versions.create(agent.id, { version: "0.1.0", instructions, modelProviderId: version.modelProviderId, model: version.model });
  await place.api.agents.versions.create(agent.id, { version: "0.2.0", instructions: `${instructions}\n__proto__`, modelProviderId: version.modelProviderId, model: version.model });
  const conversation = await place.api.conversations.create({ agentId: agent.id, title: hostile.slice(0, 200) });
  const { run } = await place.api.runs.create({ agentId: agent.id, conversationId: conversation.id, message: hostile });
  await place.api.runs.wait(run.id);
  const tab = await open(browser, place.url, { token: place.token, width: 360, theme: "dark" });
  let dialogs = 0;
  tab.page.on("dialog", (dialog) => (dialogs++, dialog.dismiss()));
  for (const path of ["agents", `agents/${agent.id}`, `agents/${agent.id}/versions/0.2.0`, `agents/${agent.id}/new-version`, `agents/${agent.id}/compare?before=0.1.0&after=0.2.0`, "conversations", `conversations/${conversation.id}`]) {
    await visit(tab, path);
    assert.deepEqual(await overflow(tab.page), [], path);
    assert.match(await tab.page.title(), / · agent-runtime$/, path);
    assert.equal(await tab.page.locator('img[src="x"], a[href^="javascript"]').count(), 0, path);
  }
  assert.equal(dialogs, 0);
  assert.deepEqual(tab.faults(), []);
  await tab.context.close();
  await place.api.agents.archive(agent.id);
});

test("turns that somebody else begins after one's own are followed, and stand where they were said", async () => {
  const conversation = await place.api.conversations.create({ agentId: names.support, version: "1.1.0", title: "Of two" });
  const tab = await open(browser, place.url, { token: place.token });
  const { page } = tab;
  await visit(tab, `conversations/${conversation.id}`);
  const said = async (count) => {
    await page.waitForFunction((count) => document.querySelectorAll(".said").length === count && !document.querySelector(".typing, [aria-busy=true]"), count);
    return page.locator(".said .what").allInnerTexts();
  };
  await page.getByLabel("Message").fill("Mine.");
  await page.keyboard.press("Control+Enter");
  await said(2);
  // One that is over before it is seen, and one that waits for a person.
  const quick = await place.api.runs.create({ agentId: names.support, conversationId: conversation.id, message: "Quickly, from elsewhere." });
  await place.api.runs.wait(quick.run.id);
  assert.match((await said(4))[2], /Quickly, from elsewhere/);
  await place.api.runs.create({ agentId: names.support, conversationId: conversation.id, message: "Please pay refund of order A-60." });
  await page.locator(".said", { hasText: "Please pay refund of order A-60." }).waitFor();
  await page.waitForSelector(".approval");
  await page.getByRole("button", { name: "Stop" }).click();
  await page.waitForSelector('.said:has-text("Stopped.")');
  // One whose message is read before the conversation says that it is under way.
  let tell;
  const told = new Promise((resolve) => (tell = resolve));
  await page.route(`**/v1/conversations/${conversation.id}`, async (route) => (await told, route.continue()));
  await place.api.runs.create({ agentId: names.support, conversationId: conversation.id, message: "Please pay refund of order A-61." });
  await page.locator(".said", { hasText: "A-61" }).first().waitFor();
  await page.waitForSelector(".approval");
  tell();
  await page.getByRole("button", { name: "Stop" }).click();
  await eventually(async () => (await page.locator('.said:has-text("Stopped.")').count()) === 2, "the second turn is stopped");
  assert.deepEqual(tab.faults(), []);
  await tab.context.close();
});

test("a turn that was stopped elsewhere is over in the chat, also where its run is not answered", async () => {
  const conversation = await place.api.conversations.create({ agentId: names.support, version: "1.1.0", title: "Unanswered" });
  const { run } = await place.api.runs.create({ agentId: names.support, conversationId: conversation.id, message: "Please pay refund of order A-62." });
  const tab = await open(browser, place.url, { token: place.token });
  const { page } = tab;
  await visit(tab, `conversations/${conversation.id}`);
  await page.waitForSelector(".approval");
  let asked = 0;
  await page.route(`**/v1/runs/${run.id}`, () => void asked++);
  await place.api.runs.cancel(run.id);
  await eventually(async () => asked, "the page asks for what the run came to");
  await page.waitForSelector('.said:has-text("Stopped.")');
  assert.equal(await page.locator(".typing").count(), 0);
  assert.deepEqual(tab.faults(), []);
  await page.unrouteAll({ behavior: "ignoreErrors" });
  await tab.context.close();
});

test("a message whose answer was lost is not said twice", async () => {
  const conversation = await place.api.conversations.create({ agentId: names.support, version: "1.0.0", title: "Lost" });
  const tab = await open(browser, place.url, { token: place.token });
  const { page } = tab;
  const keys = await losesAnswers(page, "/v1/runs");
  await visit(tab, `conversations/${conversation.id}`);
  await page.getByLabel("Message").fill("Once.");
  const send = page.getByRole("button", { name: "Send" });
  await send.click();
  await eventually(() => keys.length === 3, "the client gives up");
  await page.locator(".composer button.primary:not([aria-disabled])").click();
  await page.waitForFunction(() => document.querySelectorAll('.said[data-role="assistant"]').length === 1 && !document.querySelector(".typing, [aria-busy=true]"));
  assert.equal(new Set(keys).size, 1, keys.join());
  const { data } = await place.api.conversations.messages.list(conversation.id, { order: "asc" });
  assert.deepEqual(data.map((one) => one.role), ["user", "assistant"]);
  await tab.context.close();
});

test("a tool is registered by its form, and its page says what a dry run does with its calls", async () => {
  const tab = await open(browser, place.url, { token: place.token });
  const project = (await place.api.agents.get(names.support)).projectId;
  await visit(tab, `tools/new?project=${project}`);
  const name = `quote_${Date.now()}`;
  await tab.page.getByLabel("Name", { exact: true }).fill(name);
  await tab.page.getByLabel("Address").fill("http://127.0.0.1:9/");
  assert.equal(await tab.page.getByLabel("In a dry run").inputValue(), "simulate");
  await tab.page.getByLabel("In a dry run").selectOption("call");
  await reach(tab.page, "Register the tool");
  await tab.page.keyboard.press("Enter");
  await tab.page.waitForSelector('dd:text-is("It is called, and told")');
  const made = await place.api.tools.get(tab.page.url().split("/").at(-1) ?? "");
  assert.deepEqual([made.name, made.dryRun], [name, "call"]);
  assert.deepEqual(tab.faults(), []);
  await tab.context.close();
});
