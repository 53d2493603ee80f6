/** Flows by keys alone: start one from its form and follow it, cancel it, try it dry, push a definition whose faults stand at their lines. */

import assert from "node:assert/strict";
import { test } from "node:test";
import { lineAt, lineOfError, linesOf } from "../../static/console/json-lines.js";
import { open, settled, visit } from "./browser.mjs";
import { reach, typed } from "./keys.mjs";
import { eventually } from "./look-up.mjs";
import { losesAnswers } from "./lost.mjs";
import { browser, names, place, stage } from "./stage.mjs";
import { approvalOf, refund, work } from "./work.mjs";

stage(work);

/** Fills the form by keys, and starts. */
async function start(page, order) {
  await reach(page, "Order");
  await page.keyboard.type(order);
  await reach(page, "Amount in EUR");
  await page.keyboard.type("75");
  await reach(page, "Start the run");
  await page.keyboard.press("Enter");
  await page.waitForURL(/\/runs\/[0-9a-f-]{36}\/flow$/);
  return page.url().split("/").at(-2);
}

test("a flow is started from its form and followed, and the drawing is coloured as it goes on", async () => {
  const tab = await open(browser, place.url, { token: place.token });
  await visit(tab, `flows/${names.shopFlow}`);
  await reach(tab.page, "Start a run");
  await tab.page.keyboard.press("Enter");
  await tab.page.waitForSelector('h1:text-is("Start shop.refund")');
  const run = await start(tab.page, "A-40");
  await tab.page.waitForSelector('[data-state="waiting"] .name:text-is("ask")');
  assert.equal(await tab.page.locator('[data-state="completed"] > .task .name').allTextContents().then((all) => all.join(" ")), "order assess small");
  // What comes then is seen without a reload.
  await place.api.approvals.decide(await approvalOf(place.api, run), { decision: "approve" });
  await tab.page.waitForSelector('[data-state="completed"] .name:text-is("ledger")');
  await tab.page.waitForSelector('.page-head .state:text-is("Completed")');
  assert.deepEqual((await place.api.runs.payload(run)).input, { orderId: "A-40", amount: 75, notify: true });
  assert.deepEqual(tab.faults(), []);
  await tab.context.close();
});

test("a run of a flow is cancelled, and its drawing says where", async () => {
  const tab = await open(browser, place.url, { token: place.token });
  await visit(tab, `flows/${names.shopFlow}/start`);
  const run = await start(tab.page, "A-41");
  await tab.page.waitForSelector('[data-state="waiting"] .name:text-is("ask")');
  await reach(tab.page, "Cancel");
  await tab.page.keyboard.press("Enter");
  await tab.page.waitForSelector('dialog button.danger:not([aria-disabled="true"])');
  await reach(tab.page, "Cancel the run");
  await tab.page.keyboard.press("Enter");
  await tab.page.waitForSelector('.page-head .state:text-is("Cancelled")');
  assert.equal((await place.api.runs.get(run)).status, "cancelled");
  // Nothing waits any more.
  await tab.page.waitForSelector('[data-state="waiting"]', { state: "detached" });
  assert.deepEqual(tab.faults(), []);
  await tab.context.close();
});

test("an input that the flow does not take is said at the form, and stays", async () => {
  const tab = await open(browser, place.url, { token: place.token });
  await visit(tab, `flows/${names.shopFlow}/start`);
  await reach(tab.page, "Order");
  await tab.page.keyboard.type("A-42");
  await reach(tab.page, "Start the run");
  await tab.page.keyboard.press("Enter");
  await tab.page.waitForSelector('.error:has-text("amount")');
  assert.equal(await tab.page.getByLabel("Order").inputValue(), "A-42");
  assert.ok(await tab.page.evaluate(() => document.activeElement?.closest("fieldset")?.querySelector(".error")), "the focus is where the fault is");
  await tab.context.close();
});

test("a dry run answers with fixtures and asks nobody", async () => {
  const tab = await open(browser, place.url, { token: place.token });
  await visit(tab, `flows/${names.shopFlow}/start`);
  await reach(tab.page, "Order");
  await tab.page.keyboard.type("A-43");
  await reach(tab.page, "Amount in EUR");
  await tab.page.keyboard.type("80");
  await reach(tab.page, "Dry run");
  await tab.page.keyboard.press("Space");
  await reach(tab.page, "Ask models");
  await tab.page.keyboard.press("Space");
  await reach(tab.page, "Places of this flow");
  await tab.page.keyboard.press("Enter");
  await reach(tab.page, "Give an answer for order");
  await tab.page.keyboard.press("Enter");
  assert.match(await tab.page.getByLabel("Fixtures").inputValue(), /"\/do\/0\/order"/);
  await reach(tab.page, "Start the dry run");
  await tab.page.keyboard.press("Enter");
  await tab.page.waitForURL(/\/runs\/[0-9a-f-]{36}\/flow$/);
  const run = tab.page.url().split("/").at(-2);
  await tab.page.waitForSelector('.page-head .state:text-is("Completed")');
  const payload = await place.api.runs.payload(run);
  assert.deepEqual(payload.fixtures, { "/do/0/order": {} });
  assert.equal(payload.models, "skip");
  assert.deepEqual((await place.api.approvals.list({ runId: run })).data, []);
  assert.deepEqual(tab.faults(), []);
  await tab.context.close();
});

test("the faults of a definition stand at their lines, and it is pushed once they are mended", async () => {
  const tab = await open(browser, place.url, { token: place.token });
  await visit(tab, `flows/${names.shopFlow}/new-version`);
  const version = `2.0.${Date.now() % 1_000_000}`;
  const wrong = refund(version);
  wrong.do[0].order.then = "nowhere";
  wrong.do[3].ask.with.quorum = 2;
  const text = JSON.stringify(wrong, null, 2);
  await reach(tab.page, "Definition");
  await tab.page.keyboard.press("Control+A");
  await tab.page.keyboard.insertText(text);
  await reach(tab.page, "Check");
  await tab.page.keyboard.press("Enter");
  await tab.page.waitForSelector(".faults li");
  const lines = text.split("\n");
  for (const part of ['"then": "nowhere"', '"quorum"']) {
    const line = lines.findIndex((one) => one.includes(part)) + 1;
    assert.ok(await tab.page.locator(`.faults button:text-is("Line ${line}")`).count(), `${part} is on line ${line}; it says ${await tab.page.locator(".faults li").allTextContents()}`);
    assert.ok(await tab.page.locator(`.gutter .marked:text-is("${line}")`).count(), `line ${line} is marked`);
  }
  // A press goes to the line.
  const line = lines.findIndex((one) => one.includes("nowhere")) + 1;
  await reach(tab.page, `Line ${line}`);
  await tab.page.keyboard.press("Enter");
  assert.match(await tab.page.evaluate(() => String(getSelection())), /nowhere/);
  await typed(tab.page, "");
  await tab.page.keyboard.insertText("{ no JSON");
  await reach(tab.page, "Check");
  await tab.page.keyboard.press("Enter");
  await tab.page.waitForSelector('.faults li:has-text("This is not JSON")');
  await tab.page.getByLabel("Definition").focus();
  await tab.page.keyboard.press("Control+A");
  await tab.page.keyboard.insertText(JSON.stringify(refund(version), null, 2));
  await reach(tab.page, "Make the version");
  await tab.page.keyboard.press("Enter");
  await tab.page.waitForURL(`**/versions/${version}`);
  await tab.page.waitForSelector('.flow-tree .name:text-is("note")');
  assert.deepEqual((await place.api.flows.versions.get(names.shopFlow, version)).definition, refund(version));
  assert.deepEqual(tab.faults(), []);
  await tab.context.close();
});

test("a start and a new version begin with the newest version, also where their forms were open before that was made", async () => {
  const name = `again-${Date.now()}`;
  const definition = (/** @type {string} */ version, /** @type {string} */ order) => ({
    document: { dsl: "1.0.3", namespace: "shop", name, version },
    input: { schema: { format: "json", document: { type: "object", properties: { order: { type: "string", title: "Order", default: order } } } } },
    do: [{ done: { set: { done: true } } }],
  });
  const flow = await place.api.flows.create({ projectId: names.shopProject, definition: definition("1.0.0", "A-1") });
  const make = (/** @type {string} */ version, /** @type {string} */ order) => place.api.flows.versions.create(flow.id, { definition: definition(version, order) });
  const tab = await open(browser, place.url, { token: place.token });
  const { page } = tab;
  /** By links: the page is not loaded anew. */
  const opens = async (/** @type {string} */ link) => {
    await page.getByRole("navigation", { name: "Where this page is" }).getByRole("link", { name: flow.flowId }).click();
    await page.waitForURL(`**/flows/${flow.id}`);
    await page.getByRole("link", { name: link, exact: true }).click();
    await page.locator("main form").waitFor();
    await settled(page);
  };
  const order = () => page.getByLabel("Order").inputValue();
  const text = async () => JSON.parse(await page.getByLabel("Definition").inputValue());
  await visit(tab, `flows/${flow.id}/start`);
  assert.equal(await order(), "A-1");
  await opens("New version");
  assert.deepEqual(await text(), definition("1.0.0", "A-1"));
  await make("1.1.0", "A-2");
  await opens("Start a run");
  assert.equal(await order(), "A-2");
  await opens("New version");
  assert.deepEqual(await text(), definition("1.1.0", "A-2"));
  await page.getByText("Begins with 1.1.0.").waitFor();
  assert.equal(await page.getByText("was made meanwhile").count(), 0);
  // What is written stays, and what it began with.
  await make("1.2.0", "A-3");
  await page.getByLabel("Definition").fill(JSON.stringify(definition("1.1.0", "A-4")));
  await page.getByRole("button", { name: "Make the version" }).click();
  await page.getByRole("button", { name: "Read it again" }).click();
  await page.getByText("1.2.0 was made meanwhile").waitFor();
  assert.deepEqual(await text(), definition("1.1.0", "A-4"));
  await page.getByText("Begins with 1.1.0.").waitFor();
  assert.deepEqual(tab.faults(), []);
  await tab.context.close();
  await place.api.flows.archive(flow.id);
});

test("the line of a JSON path is that of its key, or of what is around it", () => {
  const text = '{\n  "a b": [\n    1,\n    { "c": "x \\" } ]" }\n  ],\n  "d":\n    {}\n}';
  const lines = linesOf(text);
  for (const [path, line] of [["$", 1], ['$["a b"]', 2], ['$["a b"][0]', 3], ['$["a b"][1]', 4], ['$["a b"][1].c', 4], ["$.d", 6], ["$.d.missing.deeper", 6], ['$["a b"][7].x', 2], ["$.none", 1]]) assert.equal(lineAt(lines, path), line, path);
  assert.equal(linesOf("[".repeat(200_000)).size <= 100, true, "what is too deep is left out");
  assert.equal(linesOf('{"a": {"__proto__": 1}}').get("$.a.__proto__"), 1);
  for (const [broken, line] of [['{\n  "a": 1\n  "b": 2\n}', 3], ["", 1]]) {
    try {
      JSON.parse(broken);
      assert.fail();
    } catch (error) {
      assert.equal(lineOfError(broken, error), line, broken);
    }
  }
});

test("a run whose start was not answered is not started twice, and what is sent then is another run", async () => {
  const tab = await open(browser, place.url, { token: place.token });
  const { page } = tab;
  const keys = await losesAnswers(page, "/v1/runs");
  await visit(tab, `flows/${names.shopFlow}/start`);
  await page.getByLabel("Order").fill("A-50");
  await page.getByLabel("Amount in EUR").fill("10");
  await page.locator("summary", { hasText: "Labels" }).click();
  const label = `lost:${Date.now()}`;
  await page.getByLabel("Labels").fill(label);
  const start = page.getByRole("button", { name: "Start the run" });
  await start.click();
  await eventually(() => keys.length === 3, "the client gives up");
  await page.locator("form button.primary:not([aria-disabled])").click();
  await page.waitForURL(/\/runs\/[0-9a-f-]{36}\/flow$/);
  assert.equal(new Set(keys).size, 1, keys.join());
  assert.ok(keys.length > 1);
  assert.deepEqual((await place.api.runs.list({ label: [label], origin: "app" })).data.map((one) => one.id), [page.url().split("/").at(-2)]);
  await visit(tab, `flows/${names.shopFlow}/start`);
  await page.getByLabel("Order").fill("A-50");
  await page.getByLabel("Amount in EUR").fill("10");
  await start.click();
  await page.waitForURL(/\/runs\/[0-9a-f-]{36}\/flow$/);
  assert.equal(new Set(keys).size, 2, "another form has another key");
  await tab.context.close();
});

test("a label without a colon is a fault at its field", async () => {
  const tab = await open(browser, place.url, { token: place.token });
  const { page } = tab;
  await visit(tab, `flows/${names.shopFlow}/start`);
  await page.locator("summary", { hasText: "Labels" }).click();
  await page.getByLabel("Labels").fill("customer:acme\nabc");
  await page.locator('.field .error:has-text("abc")').waitFor();
  assert.equal(await page.getByLabel("Labels").getAttribute("aria-invalid"), "true");
  assert.equal(await page.getByRole("button", { name: "Start the run" }).getAttribute("aria-disabled"), "true");
  await page.getByLabel("Labels").fill("customer:acme");
  assert.equal(await page.getByRole("button", { name: "Start the run" }).getAttribute("aria-disabled"), null);
  assert.deepEqual(tab.faults(), []);
  await tab.context.close();
});
