/** Approvals by keys alone: approve with a reason, what the decision page guarantees, and the way there from a message. */

import assert from "node:assert/strict";
import { once } from "node:events";
import http from "node:http";
import { test } from "node:test";
import { newSigningSecret } from "../../static/console/signing-secret.js";
import { open, settled, visit, withoutClock } from "./browser.mjs";
import { reach, typed } from "./keys.mjs";
import { eventually, freePort } from "./look-up.mjs";
import { browser, ends, names, place, stage, story } from "./stage.mjs";
import { approvalOf, started, work } from "./work.mjs";

// Messages name the server by its public address.
stage(work, async () => {
  const port = await freePort();
  return { port: String(port), env: { SVC_PUBLIC_URL: `http://127.0.0.1:${port}` } };
});

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

const FORM = {
  type: "object",
  required: ["amount", "reason"],
  properties: {
    amount: { type: "number", title: "Amount in EUR", description: "What is paid back.", minimum: 0, maximum: 500 },
    reason: { type: "string", title: "Reason", enum: ["late", "damaged"] },
    notify: { type: "boolean", title: "Tell the customer", default: true },
  },
};

/** A new approval with a form, and the run that waits for it. */
async function askedWithForm() {
  const { shopProject: projectId } = names;
  const definition = { document: { dsl: "1.0.3", namespace: "shop", name: "adjust", version: "1.0.0" }, do: [{ ask: { call: "approval", with: { title: "Adjust a refund", requiredRole: "finance", form: FORM } } }] };
  const known = (await place.api.flows.list({ projectId, flowId: "shop.adjust" })).data[0];
  if (!known) await place.api.flows.create({ projectId, definition });
  const run = await started(place.api, { flowId: "shop.adjust", projectId, input: {} }, "approval");
  return { run, approval: await approvalOf(place.api, run) };
}

story("who approves fills in the form, by keys alone, and what is wrong stands at its field", async (tab, page) => {
  const { run, approval } = await askedWithForm();
  await visit(tab, `approvals/${approval}`);
  await page.waitForSelector('button.approve:not([aria-disabled="true"])');
  await reach(page, "Approve");
  await page.keyboard.press("Enter");
  // The focus goes to the first field that lacks its value, and a reader of the screen hears why.
  await page.waitForFunction(() => document.activeElement?.getAttribute("aria-invalid") === "true");
  const amount = page.getByRole("textbox", { name: "Amount in EUR" });
  const heard = await amount.evaluate((field) => field === document.activeElement && (field.getAttribute("aria-describedby") ?? "").split(" ").map((id) => document.getElementById(id)?.textContent).join(" "));
  assert.match(String(heard), /What is paid back\. .*the form requires/);
  assert.equal(await page.getByRole("combobox", { name: "Reason" }).getAttribute("aria-invalid"), "true");
  assert.equal((await place.api.approvals.get(approval)).status, "waiting");
  await page.keyboard.type("501");
  await reach(page, "Reason");
  await page.keyboard.press("ArrowDown");
  await reach(page, "Approve");
  await page.keyboard.press("Enter");
  await page.getByText("501 is greater than").first().waitFor();
  assert.equal(await page.getByRole("combobox", { name: "Reason" }).getAttribute("aria-invalid"), null);
  await reach(page, "Amount in EUR");
  await typed(page, "180");
  await reach(page, "Approve");
  await page.keyboard.press("Enter");
  await page.waitForSelector('.state:text-is("Approved")');
  const answer = { notify: true, amount: 180, reason: "late" };
  assert.deepEqual((await place.api.approvals.get(approval)).subject.answer, answer);
  await place.api.runs.wait(run);
  assert.deepEqual((await place.api.runs.payload(run)).output.answer, answer);
});

story("in the inbox the form is filled in to approve, and not to reject", async (tab, page) => {
  const { approval } = await askedWithForm();
  await visit(tab, "inbox");
  await choose(page, approval);
  await page.keyboard.press("a");
  await page.locator(DIALOG).getByLabel("Amount in EUR").waitFor();
  await page.keyboard.press("Escape");
  await page.waitForSelector(DIALOG, { state: "detached" });
  await page.keyboard.press("r");
  await page.waitForSelector(`${DIALOG} .decide`);
  assert.equal(await page.locator(DIALOG).getByLabel("Amount in EUR").count(), 0);
  await press(page, "Reject");
  assert.equal((await place.api.approvals.get(approval)).status, "rejected");
});

test("what was decided elsewhere meanwhile is said, and what was typed stays", async () => {
  const { approval } = await asked();
  const tab = await open(browser, place.url, { token: place.token });
  // The page must not read it again by itself before it decides.
  await withoutClock(tab.context);
  await tab.page.route("**/v1/changes/stream*", (route) => route.abort());
  await visit(tab, `approvals/${approval}`);
  await reach(tab.page, "Why");
  await tab.page.keyboard.type("Too late.");
  await place.api.approvals.decide(approval, { decision: "reject", comment: "No receipt." });
  // Nothing is decided in the first moment of a page.
  await tab.page.waitForSelector('button.approve:not([aria-disabled="true"])');
  await reach(tab.page, "Approve");
  await tab.page.keyboard.press("Enter");
  await tab.page.waitForSelector('.banner:has-text("changed in the meantime")');
  assert.equal(await tab.page.getByLabel("Why").inputValue(), "Too late.");
  await reach(tab.page, "Read it again");
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
  await reach(tab.page, "Escalate");
  await tab.page.keyboard.press("Enter");
  await tab.page.waitForSelector("dialog[open]");
  await reach(tab.page, "Why");
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

const DIALOG = "dialog[open]";

/** To the row of an approval, by the keys of rows. */
async function choose(page, approval) {
  await page.waitForSelector(`a[href$="${approval}"]`);
  for (let step = 0; step < 60; step++) {
    if ((await page.evaluate(() => document.activeElement?.getAttribute("href") ?? "")).endsWith(approval)) return;
    await page.keyboard.press("j");
  }
  throw new Error("j does not lead to the row");
}

/** Once it may be pressed, the button of the dialog is. */
async function press(page, name) {
  await page.waitForSelector(`${DIALOG} button:text-is("${name}"):not([aria-disabled="true"])`);
  await reach(page, name);
  await page.keyboard.press("Enter");
  await page.waitForSelector(DIALOG, { state: "detached" });
}

story("a, r and e approve, reject and escalate in the inbox, by keys alone", async (tab, page) => {
  const all = [await asked(), await asked(), await asked(), await asked()].map(({ approval }) => approval);
  const [first, second, third, left] = all;
  const status = async (approval) => (await place.api.approvals.get(approval)).status;
  await visit(tab, "inbox");
  // Without a row nothing is meant.
  await page.keyboard.press("a");
  await page.getByText("Choose a row first, with j or k").waitFor({ state: "attached" });
  assert.equal(await page.locator(DIALOG).count(), 0);
  await choose(page, first);
  await page.keyboard.press("a");
  await page.getByRole("heading", { name: 'Approve "Refund of 50 EUR or more"' }).waitFor();
  assert.equal(await page.locator(DIALOG).getByRole("button", { name: "Reject" }).count(), 0, "it was asked for one answer");
  await page.locator(DIALOG).getByText("A-20").first().waitFor();
  // Escape decides nothing, nor does a key in the reason; the focus is at the row again.
  await page.keyboard.press("Escape");
  await page.waitForSelector(DIALOG, { state: "detached" });
  await page.keyboard.press("a");
  await page.waitForSelector(`${DIALOG} .decide`);
  await reach(page, "Why");
  await page.keyboard.type("a reason");
  await page.keyboard.press("Enter");
  await page.keyboard.press("Control+Enter");
  assert.equal(await status(first), "waiting");
  await press(page, "Approve");
  assert.equal(await status(first), "approved");
  assert.equal((await place.api.approvals.get(first)).comment, "a reason");
  await page.waitForSelector(`a[href$="${first}"]`, { state: "detached" });
  // The focus is at the row that came in its place: `j` goes on from there.
  await page.waitForFunction(() => document.activeElement?.hasAttribute("data-row-link"));
  await choose(page, second);
  await page.keyboard.press("r");
  await page.waitForSelector(`${DIALOG} .decide`);
  await press(page, "Reject");
  assert.equal(await status(second), "rejected");
  await page.waitForSelector(`a[href$="${second}"]`, { state: "detached" });
  await choose(page, third);
  await page.keyboard.press("e");
  await page.waitForSelector(`${DIALOG} form`);
  await press(page, "Escalate");
  const closed = await place.api.approvals.get(third);
  assert.equal(closed.status, "escalated");
  assert.equal((await place.api.approvals.get(closed.escalatedTo)).requiredRole, "finance-lead");
  // What took its place is escalated no further.
  await page.waitForSelector(`a[href$="${third}"]`, { state: "detached" });
  await choose(page, closed.escalatedTo);
  await page.keyboard.press("e");
  await page.getByText("It was escalated before").waitFor();
  await page.keyboard.press("Escape");
  await page.waitForSelector(DIALOG, { state: "detached" });
  assert.equal(await status(left), "waiting");
});

story("what was decided elsewhere while its dialog was open is said, and is not decided again", async (tab, page) => {
  const { approval } = await asked();
  await visit(tab, "inbox");
  await choose(page, approval);
  await page.keyboard.press("a");
  await page.waitForSelector(`${DIALOG} .decide`);
  await place.api.approvals.decide(approval, { decision: "reject", comment: "No receipt." });
  await page.waitForSelector(`${DIALOG} button:text-is("Approve"):not([aria-disabled="true"])`);
  await reach(page, "Approve");
  await page.keyboard.press("Enter");
  await page.locator(DIALOG).getByRole("button", { name: "Read it again" }).waitFor();
  await reach(page, "Read it again");
  await page.keyboard.press("Enter");
  await page.getByText("It does not wait any more: it is rejected.").waitFor();
  await page.keyboard.press("Escape");
  assert.equal((await place.api.approvals.get(approval)).comment, "No receipt.");
});

story("the list of keys has those of the inbox while it is in sight, and single keys can be turned off", async (tab, page) => {
  const { approval } = await asked();
  const keys = async () => {
    await page.keyboard.press("?");
    await page.waitForSelector(`${DIALOG} kbd`);
    const listed = await page.locator(`${DIALOG} .keys dt`).allTextContents();
    await page.keyboard.press("Escape");
    await page.waitForSelector(DIALOG, { state: "detached" });
    return listed;
  };
  await visit(tab, "inbox");
  await page.waitForSelector(`a[href$="${approval}"]`);
  const listed = await keys();
  assert.deepEqual(["a", "r", "e"].filter((key) => !listed.includes(key)), []);
  await page.keyboard.type("gr");
  await page.waitForURL("**/console/runs");
  await settled(page);
  assert.deepEqual((await keys()).filter((key) => key.length === 1 && /[are]/.test(key)), []);
  await page.evaluate(() => localStorage.setItem("keys", "off"));
  await visit(tab, "inbox");
  await page.locator(`a[href$="${approval}"]`).focus();
  await page.keyboard.press("a");
  // A later key, which works all the same. It opens nothing over a dialog.
  await page.keyboard.press("Control+k");
  await page.waitForSelector(`${DIALOG}.palette`);
  assert.equal(await page.locator(DIALOG).count(), 1, "the palette alone");
});

test("the address that a webhook has of an approval leads there, once one has signed in", async () => {
  const told = [];
  const receiver = http.createServer(async (request, answer) => {
    told.push(JSON.parse((await request.toArray()).join("")).data.approval);
    answer.writeHead(204).end();
  });
  receiver.listen(0, "127.0.0.1");
  await once(receiver, "listening");
  ends.push(() => (receiver.close(), receiver.closeAllConnections()));
  await place.api.secrets.put("approvals", "WEBHOOK_SECRET", { value: newSigningSecret() });
  const { port } = /** @type {import("node:net").AddressInfo} */ (receiver.address());
  await place.api.webhookEndpoints.create({ url: `http://127.0.0.1:${port}/`, events: ["approval.requested"], secretRef: { envName: "approvals", name: "WEBHOOK_SECRET" } });
  const { approval } = await asked();
  const { url } = await eventually(async () => told.find((one) => one.approvalId === approval), "what the webhook says");
  assert.equal(url, `${place.url}/console/approvals/${approval}`);
  const tab = await open(browser, place.url, { signedOut: true });
  await tab.page.goto(url);
  await tab.page.getByLabel("Your key").fill(place.token);
  await tab.page.keyboard.press("Enter");
  await tab.page.getByRole("heading", { level: 1, name: "Refund of 50 EUR or more" }).waitFor();
  assert.equal(tab.page.url(), url);
  await tab.page.getByRole("button", { name: "Approve" }).waitFor();
  assert.deepEqual(tab.faults(), []);
  await tab.context.close();
});
