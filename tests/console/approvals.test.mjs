/** Approvals by keys alone: approve with a reason, and what the decision page guarantees. */

import assert from "node:assert/strict";
import { test } from "node:test";
import { open, settled, visit } from "./browser.mjs";
import { reach, typed } from "./keys.mjs";
import { browser, names, place, stage } from "./stage.mjs";
import { approvalOf, started, work } from "./work.mjs";

stage(work);

/** A new approval of the flow, and the run that waits for it. */
async function asked() {
  const run = await started(place.api, { flowId: "shop.refund", projectId: names.shopProject, input: { orderId: "A-20", amount: 60 } }, "approval");
  return { run, approval: await approvalOf(place.api, run) };
}

test("a reviewer approves with a reason, from the inbox, by keys alone", async () => {
  const { run, approval } = await asked();
  const { page, context, faults } = await open(browser, place.url, { token: place.token });
  await visit({ page, url: place.url }, "runs");
  await page.keyboard.type("gi");
  await page.waitForURL("**/console/inbox");
  await page.waitForSelector(`a[href$="${approval}"]`);
  for (let row = 0; row < 60; row++) {
    await page.keyboard.press("j");
    if ((await page.evaluate(() => document.activeElement?.getAttribute("href"))).endsWith(approval)) break;
  }
  await page.keyboard.press("Enter");
  await page.waitForURL(`**/approvals/${approval}`);
  await reach(page, "Why");
  await page.keyboard.type("The receipt is in order.");
  // Enter in the reason is a new line, and decides nothing.
  await page.keyboard.press("Enter");
  assert.equal((await place.api.approvals.get(approval)).status, "waiting");
  await page.waitForSelector('button.approve:not([aria-disabled="true"])');
  await reach(page, "Approve");
  await page.keyboard.press("Enter");
  await page.waitForSelector('.state:text-is("Approved")');
  const decided = await place.api.approvals.get(approval);
  assert.equal(decided.status, "approved");
  assert.equal(decided.comment, "The receipt is in order.");
  await place.api.runs.wait(run);
  assert.deepEqual(faults(), []);
  await context.close();
});

test("a tool's call is approved with other arguments", async () => {
  const run = await started(place.api, { agentId: names.support, version: "1.1.0", message: "Please pay refund of order A-21." }, "approval");
  const approval = await approvalOf(place.api, run);
  const tab = await open(browser, place.url, { token: place.token });
  await visit(tab, `approvals/${approval}`);
  await reach(tab.page, "Edit the arguments");
  await tab.page.keyboard.press("Enter");
  await reach(tab.page, "Hours");
  await typed(tab.page, "9");
  await tab.page.waitForSelector('button.approve:text-is("Approve as edited"):not([aria-disabled="true"])');
  await reach(tab.page, "Approve as edited");
  await tab.page.keyboard.press("Enter");
  await tab.page.waitForSelector('.state:text-is("Approved")');
  const decided = await place.api.approvals.get(approval);
  assert.equal(decided.subject.editedArguments.utcOffsetHours, 9);
  assert.deepEqual(tab.faults(), []);
  await tab.context.close();
});

test("what was decided elsewhere meanwhile is said, and what was typed stays", async () => {
  const { approval } = await asked();
  const tab = await open(browser, place.url, { token: place.token });
  await visit(tab, `approvals/${approval}`);
  await reach(tab.page, "Why");
  await tab.page.keyboard.type("Too late.");
  // The page must not read it again by itself before it decides.
  await tab.page.route("**/v1/approvals/*", (route) => (route.request().method() === "GET" ? route.abort() : route.continue()));
  await place.api.approvals.decide(approval, { decision: "reject", comment: "No receipt." });
  await reach(tab.page, "Approve");
  await tab.page.keyboard.press("Enter");
  await tab.page.waitForSelector('.banner:has-text("changed in the meantime")');
  assert.equal(await tab.page.getByLabel("Why").inputValue(), "Too late.");
  await tab.page.unroute("**/v1/approvals/*");
  await reach(tab.page, "Try again");
  await tab.page.keyboard.press("Enter");
  await tab.page.waitForSelector('.state:text-is("Rejected")');
  await tab.context.close();
});

test("an approval is assigned and escalated by keys", async () => {
  const { approval } = await asked();
  const tab = await open(browser, place.url, { token: place.token });
  await visit(tab, `approvals/${approval}`);
  await reach(tab.page, "Assign to me");
  await tab.page.keyboard.press("Enter");
  await tab.page.waitForSelector('button:text-is("Assign to me")', { state: "detached" });
  const me = await place.api.me.get();
  assert.equal((await place.api.approvals.get(approval)).assignedTo, me.id);
  await reach(tab.page, "Hand on");
  await tab.page.keyboard.press("Enter");
  await tab.page.keyboard.press("End");
  await tab.page.keyboard.press("Enter");
  await tab.page.waitForSelector("dialog[open]");
  await reach(tab.page, "Escalate");
  await tab.page.keyboard.press("Enter");
  await tab.page.waitForURL((url) => !url.pathname.endsWith(approval));
  await settled(tab.page);
  const closed = await place.api.approvals.get(approval);
  assert.equal(closed.status, "escalated");
  assert.ok(tab.page.url().endsWith(closed.escalatedTo));
  assert.equal((await place.api.approvals.get(closed.escalatedTo)).requiredRole, "finance-lead");
  assert.deepEqual(tab.faults(), []);
  await tab.context.close();
});
