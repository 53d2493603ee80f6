/**
 * Webhooks in the console: every sentence of sections 3.4 and 6.4 of the specification, and what is said without a secrets
 * backend. Receivers are real ones that answer, refuse, hang, or have a certificate of nobody's. The waits between attempts
 * are hastened in the database; nothing else is.
 */

import assert from "node:assert/strict";
import { execFileSync } from "node:child_process";
import { once } from "node:events";
import { mkdtempSync, readFileSync, rmSync } from "node:fs";
import http from "node:http";
import https from "node:https";
import net from "node:net";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { test } from "node:test";
import { newSigningSecret } from "../../static/console/signing-secret.js";
import { open, settled, visit } from "./browser.mjs";
import { reach, typed } from "./keys.mjs";
import { eventually } from "./look-up.mjs";
import { losesAnswers } from "./lost.mjs";
import { server, sql as askDatabase } from "./server.mjs";
import { browser, ends, place, stage, story } from "./stage.mjs";

/** Attempts of a delivery until it has failed, as the server's schedule has them. */
const ATTEMPTS = 10;
const TIMES = /\d{1,2} \w{3} \d{4}, \d\d:\d\d:\d\d UTC/;

let project;
let agent;
const secret = newSigningSecret();
const secretRef = { envName: "production", name: "WEBHOOK_SECRET" };
/** The receivers, by what they do. */
const receivers = {};

/** @param {string} said */
const sql = (said) => askDatabase(place, said);

async function listening(one) {
  one.listen(0, "127.0.0.1");
  await once(one, "listening");
  ends.push(() => new Promise((closed) => (one.close(closed), one.closeAllConnections?.())));
  return one.address().port;
}

/** A certificate that no authority signed. */
function certificate() {
  const folder = mkdtempSync(join(tmpdir(), "agent-runtime-receiver-"));
  ends.push(() => rmSync(folder, { recursive: true }));
  execFileSync("openssl", ["req", "-x509", "-newkey", "ec", "-pkeyopt", "ec_paramgen_curve:P-256", "-nodes", "-days", "1", "-subj", "/CN=127.0.0.1", "-addext", "subjectAltName=IP:127.0.0.1", "-keyout", join(folder, "key"), "-out", join(folder, "cert")], { stdio: "ignore" });
  return { key: readFileSync(join(folder, "key")), cert: readFileSync(join(folder, "cert")) };
}

stage(async () => {
  receivers.answers = await listening(http.createServer((request, answer) => request.resume().on("end", () => answer.writeHead(204).end())));
  receivers.refuses = await listening(http.createServer((request, answer) => request.resume().on("end", () => answer.writeHead(503).end("<b>Closed</b> for the night"))));
  receivers.hangs = await listening(http.createServer((request) => request.resume()));
  receivers.cuts = await listening(net.createServer((socket) => socket.on("data", () => socket.destroy()).on("error", () => {})));
  receivers.untrusted = await listening(https.createServer(certificate(), (request, answer) => answer.end()));
  const [first] = (await place.api.agents.list({ limit: 1 })).data;
  [agent, project] = [first.id, first.projectId];
  await place.api.secrets.put(secretRef.envName, secretRef.name, { value: secret });
}, { env: { SVC_WEBHOOK_TIMEOUT_MS: "1500" } });

/** @param {string} url @param {object} [more] */
async function registered(url, more = {}) {
  return (await place.api.webhookEndpoints.create({ url, events: ["run.finished"], secretRef, ...more })).endpointId;
}

async function unregistered() {
  for await (const one of place.api.webhookEndpoints.list()) await place.api.webhookEndpoints.unregister(one.endpointId);
}

/** The newest delivery, once it is in a state and had this many attempts. */
const delivered = (endpoint, isSo) => eventually(async () => (await place.api.webhookEndpoints.deliveries.list(endpoint, { limit: 1 })).data.find(isSo), `the delivery to ${endpoint}`);

/** Makes waiting attempts due until the newest delivery has had this many. */
const hastened = (endpoint, attempts) =>
  eventually(async () => {
    const [one] = (await place.api.webhookEndpoints.deliveries.list(endpoint, { limit: 1 })).data;
    if (one?.attemptCount >= attempts) return one;
    // Of this attempt alone: what is put back is put back after the attempt was written.
    if (one)
      sql(`with due as (
        update job_jobs as job set run_at = clock_timestamp() from webhook_deliveries as delivery
        where delivery.delivery_id = '${one.id}' and delivery.job_id = job.id and delivery.attempts = ${one.attemptCount} and job.lease_id is null
        returning job.queue, job.key)
      update job_keys as key set next_at = clock_timestamp() from due where key.queue = due.queue and key.key = due.key`);
    return undefined;
  }, `attempt ${attempts} to ${endpoint}`);

/** Fails the newest delivery for good. */
async function failed(endpoint) {
  await hastened(endpoint, ATTEMPTS);
  return delivered(endpoint, (one) => one.state === "failed");
}

async function finished(message = "What time is it?") {
  const { run } = await place.api.runs.create({ agentId: agent, message });
  return (await place.api.runs.wait(run.id)).id;
}

const text = (page) => page.locator("main").innerText();
const row = (page, name) => page.locator("tbody tr", { hasText: name });

story("6.4.1: the page lists every endpoint and how its deliveries went, in UTC; its head counts them and those that fail", async (tab, page) => {
  await unregistered();
  const good = await registered(`http://127.0.0.1:${receivers.answers}/good`);
  const bad = await registered(`http://127.0.0.1:${receivers.refuses}/bad`);
  await registered(`http://127.0.0.1:${receivers.answers}/quiet`, { events: ["approval.requested"] });
  await finished();
  await delivered(good, (one) => one.state === "delivered");
  await delivered(bad, (one) => one.attemptCount === 1);
  await visit(tab, "webhooks");
  assert.match(await text(page), /3 endpoints, 1 failing/);
  assert.equal(await page.locator("tbody tr").count(), 3);
  // What fails stands first.
  assert.match(await page.locator("tbody tr").first().innerText(), /\/bad/);
  assert.match(await row(page, "/bad").innerText(), /Failing\s+HTTP 503, \d{1,2} \w{3} \d\d:\d\d:\d\d/);
  assert.match(await page.locator("thead").innerText(), /UTC/);
  assert.match(await row(page, "/good").innerText(), /Healthy/);
  assert.match(await row(page, "/quiet").innerText(), /Nothing sent yet/);
  await place.api.webhookEndpoints.unregister(bad);
  await visit(tab, "webhooks");
  assert.match(await text(page), /2 endpoints, 0 failing/);
});

story("6.4.2: an endpoint shows what it sends, its secret by name only, and how many were delivered", async (tab, page) => {
  await unregistered();
  const endpoint = await registered(`http://127.0.0.1:${receivers.answers}/filtered`, { events: ["run.finished", "approval.requested"], filter: { projectId: project, flowIds: ["agent.turn"], includeDryRuns: true } });
  for (let run = 0; run < 2; run++) await finished();
  await eventually(async () => (await place.api.webhookEndpoints.get(endpoint)).deliveries.delivered === 2, "two deliveries");
  for (const path of ["webhooks", `webhooks/${endpoint}`]) {
    await visit(tab, path);
    const said = await text(page);
    for (const part of ["run.finished", "approval.requested", "project example", "agent.turn", "with dry runs", "production/WEBHOOK_SECRET"]) assert.ok(said.includes(part), `${path} says ${part}`);
    assert.ok(!(await page.content()).includes(secret.slice(6)), `${path} has no value`);
  }
  assert.match(await page.locator(".facts").innerText(), /Delivered\s+2/);
  await visit(tab, "webhooks");
  assert.match(await row(page, "/filtered").innerText(), /\b2\b/);
});

story("6.4.3: deliveries stand newest first, each with its story, and All, Failed, Being sent and Delivered filter them", async (tab, page) => {
  await unregistered();
  const endpoint = await registered(`http://127.0.0.1:${receivers.refuses}/stories`);
  const failedRun = await finished();
  await failed(endpoint);
  const retriedRun = await finished();
  await delivered(endpoint, (one) => one.runId === retriedRun && one.attemptCount === 1);
  const retrying = await hastened(endpoint, 2);
  await place.api.webhookEndpoints.update(endpoint, { url: `http://127.0.0.1:${receivers.answers}/stories` });
  const run = await finished();
  await delivered(endpoint, (one) => one.runId === run && one.state === "delivered");

  await visit(tab, `webhooks/${endpoint}`);
  const stories = await page.locator("tbody tr").allInnerTexts();
  assert.equal(stories.length, 3);
  assert.match(stories[0], /Delivered after 1 attempt/);
  assert.match(stories[1], new RegExp(`Retrying after 2 attempts: HTTP 503, next attempt ${TIMES.source}`));
  assert.match(stories[2], /Failed after 10 attempts: HTTP 503/);
  // The time of the next attempt is the one that the server says, in UTC.
  assert.equal(await page.locator("tbody tr").nth(1).locator("time").first().getAttribute("datetime"), retrying.nextAttemptAt);
  // The run's outcome, with a link to it.
  for (const [at, id] of [[0, run], [1, retriedRun], [2, failedRun]]) {
    const link = page.locator("tbody tr").nth(at).locator(`a[href="/console/runs/${id}"]`);
    assert.match(await link.innerText(), /Run completed/);
  }
  assert.deepEqual((await page.locator(".tabs a").allInnerTexts()).map((one) => one.replace(/\d+/, "").trim()), ["All", "Failed", "Being sent", "Delivered"]);
  for (const [filter, expected] of [["Failed", /Failed after/], ["Being sent", /Retrying after/], ["Delivered", /Delivered after/], ["All", /after/]]) {
    await page.locator(".tabs a", { hasText: filter }).click();
    await settled(page);
    await page.waitForFunction((wanted) => document.querySelectorAll("tbody tr").length === wanted, filter === "All" ? 3 : 1);
    assert.match(await page.locator("tbody tr").first().innerText(), expected, filter);
  }
  await page.locator("tbody tr").first().locator("a").first().click();
  await page.waitForURL(/deliveries/);
  await settled(page);
  await page.locator("a", { hasText: "Run completed" }).click();
  await page.waitForURL(new RegExp(`runs/${run}`));
});

const REASONS = {
  "no answer in time": () => `http://127.0.0.1:${receivers.hangs}/`,
  "the host name does not resolve": () => "http://receiver.invalid/",
  "nothing listening": () => "http://127.0.0.1:9/",
  "the address is one webhooks may not go to": null,
  "TLS certificate not accepted": () => `https://127.0.0.1:${receivers.untrusted}/`,
  "connection failed": () => `http://127.0.0.1:${receivers.cuts}/`,
  "HTTP 503": () => `http://127.0.0.1:${receivers.refuses}/`,
};

story("6.4.4: the reasons are named", async (tab, page) => {
  await unregistered();
  for (const [reason, url] of Object.entries(REASONS)) {
    const endpoint = await registered(url?.() ?? `http://127.0.0.1:${receivers.answers}/moved`);
    // It was an address that webhooks may go to when it was registered.
    if (!url) sql(`update webhook_endpoints set url = 'http://169.254.169.254/' where endpoint_id = '${endpoint}'`);
    await place.api.webhookEndpoints.sendTest(endpoint);
    const delivery = await delivered(endpoint, (one) => one.attemptCount === 1);
    if (!url) assert.equal(delivery.lastError, "url-refused");
    await visit(tab, `webhooks/${endpoint}`);
    assert.match(await page.locator("tbody tr").innerText(), new RegExp(`Retrying after 1 attempt: ${reason}, next attempt ${TIMES.source}`));
    assert.ok((await page.locator(".facts").innerText()).includes(reason), `the endpoint's last error is ${reason}`);
    await visit(tab, `webhooks/${endpoint}/deliveries/${delivery.id}`);
    assert.match((await page.locator(".attempt-list li").innerText()).toLowerCase(), new RegExp(reason.toLowerCase()));
  }
  await visit(tab, "webhooks");
  for (const reason of Object.keys(REASONS)) assert.ok((await text(page)).includes(reason), `the list says: ${reason}`);
});

story("6.4.5 and 3.4: a test, shown as one; sending again makes a new delivery of the same event; unregistering takes the typed address and is for good", async (tab, page) => {
  await unregistered();
  const url = `http://127.0.0.1:${receivers.answers}/acts`;
  const endpoint = await registered(url);
  await visit(tab, `webhooks/${endpoint}`);
  await page.getByRole("button", { name: "Send a test", exact: true }).click();
  const sent = await delivered(endpoint, (one) => one.state === "delivered");
  assert.ok(sent.isTest);
  await page.waitForSelector("tbody tr:has-text('Delivered after 1 attempt')", { timeout: 30_000 });
  assert.match(await page.locator("tbody tr").innerText(), /\btest\b/i);
  await page.locator("tbody tr").getByRole("button", { name: "Send again" }).click();
  await page.waitForFunction(() => document.querySelectorAll("tbody tr").length === 2);
  const [again] = (await place.api.webhookEndpoints.deliveries.list(endpoint, { limit: 1 })).data;
  assert.equal(again.eventId, sent.eventId);
  assert.equal(again.resends, sent.id);

  await page.getByRole("button", { name: "More" }).click();
  await page.getByRole("menuitem", { name: "Unregister" }).click();
  const act = page.getByRole("button", { name: "Unregister", exact: true });
  assert.match(await page.locator("dialog").innerText(), /cannot be restored; it is added again/);
  const field = page.getByLabel(`Type ${url} to go on`);
  const becomes = (isDisabled) => page.getByRole("button", { name: "Unregister", exact: true, disabled: isDisabled }).waitFor();
  // A double click does nothing, so it begins disabled. Once it was enabled, what is typed alone decides.
  await field.fill(url);
  await becomes(false);
  for (const other of ["", url.slice(0, -1)]) {
    await field.fill(other);
    await becomes(true);
  }
  await field.fill(url);
  await act.click();
  await page.waitForURL("**/console/webhooks");
  await assert.rejects(place.api.webhookEndpoints.get(endpoint), { status: 404 });
  for (const old of [`webhooks/${endpoint}`, `webhooks/${endpoint}/deliveries/${sent.id}`]) {
    await visit(tab, old);
    assert.match(await text(page), /No endpoint has this id\./);
  }
});

story("a delivery has its attempts with what was answered, the body that is sent, and a recipe by which its signature holds", async (tab, page) => {
  await unregistered();
  const endpoint = await registered(`http://127.0.0.1:${receivers.refuses}/attempts`);
  await place.api.webhookEndpoints.sendTest(endpoint);
  const delivery = await hastened(endpoint, 2);
  await visit(tab, `webhooks/${endpoint}/deliveries/${delivery.id}`);
  const attempts = page.locator(".attempt-list > li");
  assert.equal(await attempts.count(), 2);
  assert.match(await attempts.first().innerText(), new RegExp(`Attempt 1[^]*HTTP 503[^]*${TIMES.source}[^]*took[^]*127\\.0\\.0\\.1`));
  await attempts.first().locator("summary").click();
  // What a receiver answers is text.
  assert.match(await attempts.first().innerText(), /<b>Closed<\/b> for the night/);
  const body = JSON.parse(await page.getByRole("group", { name: "The event" }).innerText());
  assert.equal(body.id, delivery.eventId);
  assert.match(await text(page), /webhook-id \+ "\." \+ webhook-timestamp \+ "\." \+ body/);
});

story("all that failed since a time is sent again at once", async (tab, page) => {
  await unregistered();
  const endpoint = await registered(`http://127.0.0.1:${receivers.refuses}/again`);
  await place.api.webhookEndpoints.sendTest(endpoint);
  await failed(endpoint);
  await place.api.webhookEndpoints.update(endpoint, { url: `http://127.0.0.1:${receivers.answers}/again` });
  await visit(tab, `webhooks/${endpoint}?state=failed`);
  await page.getByRole("button", { name: "Send again what failed" }).click();
  await page.getByLabel("Failed since (UTC)").fill("yesterday");
  assert.equal(await page.locator("dialog .primary").getAttribute("aria-disabled"), "true");
  await page.getByLabel("Failed since (UTC)").fill("2026-01-01 00:00");
  await page.locator("dialog .primary").click();
  await page.waitForSelector(".status:has-text('1 delivery sent again')");
  await delivered(endpoint, (one) => one.resends && one.state === "delivered");
});

story("an endpoint is registered with a new signing secret, and a delivery sent again, by keys alone", async (tab, page) => {
  await unregistered();
  await visit(tab, "runs");
  await page.keyboard.type("gw");
  await page.waitForURL("**/console/webhooks");
  await settled(page);
  await reach(page, "Add an endpoint");
  await page.keyboard.press("Enter");
  await reach(page, "Address");
  await typed(page, `http://127.0.0.1:${receivers.refuses}/keys`);
  await reach(page, "Signing secret");
  await page.keyboard.type("Make");
  await reach(page, "Name");
  await typed(page, "KEYS_SECRET");
  await reach(page, "Add the endpoint");
  await page.keyboard.press("Enter");
  await page.waitForSelector("dialog .secret");
  const shown = await page.locator("dialog .secret code").innerText();
  assert.match(shown, /^whsec_[A-Za-z0-9+/]{43}=$/, "32 random bytes");
  await reach(page, "I have kept it. It is not shown again.");
  await page.keyboard.press("Space");
  await reach(page, "Close");
  await page.keyboard.press("Enter");
  await page.waitForURL(/webhooks\/[0-9a-f-]{36}$/);
  const endpoint = page.url().split("/").at(-1);
  await settled(page);
  assert.ok(!(await page.content()).includes(shown));
  await reach(page, "Send a test");
  await page.keyboard.press("Enter");
  const first = await delivered(endpoint, (one) => one.attemptCount === 1);
  await page.waitForSelector("tbody tr:has-text('Retrying after 1 attempt')", { timeout: 30_000 });
  await reach(page, "Send again");
  await page.keyboard.press("Enter");
  await delivered(endpoint, (one) => one.resends === first.id);
});

story("an address that webhooks may not go to is refused before anything is stored", async (tab, page) => {
  await unregistered();
  await visit(tab, "webhooks");
  await page.getByRole("button", { name: "Add an endpoint" }).click();
  await page.getByLabel("Address", { exact: true }).fill("http://169.254.169.254/hooks");
  await page.getByRole("button", { name: "Check the address" }).click();
  await page.waitForSelector("dialog .banner[data-tone=bad]");
  await page.getByLabel("Signing secret").selectOption({ label: "Make a new one" });
  await page.getByLabel("Name", { exact: true }).fill("NEVER_STORED");
  await page.getByRole("button", { name: "Add the endpoint" }).click();
  await page.waitForSelector("dialog .field .error");
  assert.ok(!(await place.api.secrets.list()).data.some((one) => one.name === "NEVER_STORED"));
  assert.equal((await place.api.webhookEndpoints.list()).data.length, 0);
});

test("6: without a secrets backend it says that outbound webhooks are not turned on, and what must be set", async () => {
  const own = [];
  const off = await server({ after: (end) => own.push(end) }, { env: { SVC_SECRETS_BACKEND: "none" } });
  const tab = await open(browser, off.url, { token: off.token });
  try {
    await visit(tab, "webhooks");
    assert.match(await text(tab.page), /Outbound webhooks are not turned on here: a secrets backend must be set\. Set SVC_SECRETS_BACKEND\./);
    assert.equal(await tab.page.getByRole("button", { name: "Add an endpoint" }).count(), 0);
    await visit(tab, "secrets");
    assert.match(await text(tab.page), /A secrets backend must be set[^]*SVC_SECRETS_BACKEND/);
    assert.equal(await tab.page.getByRole("button", { name: "Put a secret" }).count(), 0);
    assert.deepEqual(tab.faults(), []);
  } finally {
    await tab.context.close();
    for (const end of own) await end();
  }
});

story("an endpoint whose registration was not answered is not registered twice", async (tab, page) => {
  await unregistered();
  const keys = await losesAnswers(page, "/v1/webhook-endpoints");
  await visit(tab, "webhooks");
  await page.getByRole("button", { name: "Add an endpoint" }).click();
  await page.getByLabel("Address", { exact: true }).fill(`http://127.0.0.1:${receivers.answers}/once`);
  await page.getByLabel("Signing secret").selectOption(`${secretRef.envName}/${secretRef.name}`);
  const add = page.locator("dialog .primary");
  await add.click();
  await eventually(() => keys.length === 3, "the client gives up");
  await page.locator("dialog .primary:not([aria-disabled])").click();
  await page.waitForSelector("dialog", { state: "detached" });
  assert.equal(new Set(keys).size, 1, keys.join());
  assert.equal((await place.api.webhookEndpoints.list()).data.length, 1);
});
