/**
 * Where the console signs in by itself: that it does, and a page of a run over ends of its server, which comes back and shows
 * what the API tells of the run.
 */

import assert from "node:assert/strict";
import { test } from "node:test";
import { open, visit } from "./browser.mjs";
import { world } from "./server.mjs";
import { browser, names, place, stage } from "./stage.mjs";

/** How often the server is ended; `AGENT_RUNTIME_ENDS` asks for more. */
const ENDS = Number(process.env.AGENT_RUNTIME_ENDS ?? 2);
const PATIENCE_MS = 120_000;

// Each start has another token and other sessions: in development the console signs in by itself, again and again.
stage(world, { env: { SVC_DEV_CONSOLE_LOGIN: "true" } });

test("1.3: in development the console signs in by itself, until one signs out in the tab", async () => {
  const tab = await open(browser, place.url);
  const { page } = tab;
  await visit(tab, "me");
  await page.getByRole("button", { name: "You" }).click();
  await page.getByRole("menuitem", { name: "Sign out" }).click();
  await page.waitForURL("**/console/sign-in");
  await page.reload();
  await page.getByRole("button", { name: "Sign in for development" }).click();
  await page.getByRole("button", { name: "You" }).waitFor();
  assert.deepEqual(tab.faults(), []);
  await tab.context.close();
});

test("a run's page goes on over ends of the server, and its timeline is that of the API", async () => {
  const tab = await open(browser, place.url);
  await visit(tab, `runs/${names.waiting}`, { ready: ".timeline li" });
  for (let end = 0; end < ENDS; end++) {
    await place.restart();
    await tab.page.locator("dialog").waitFor({ state: "detached", timeout: PATIENCE_MS });
  }
  const approval = await place.api.approvals.get(names.approval);
  await place.api.approvals.decide(names.approval, { decision: "approve", expectedDigest: approval.subject.digest });
  await tab.page.locator(".page-head .state", { hasText: "Completed" }).waitFor({ timeout: PATIENCE_MS });
  const steps = [];
  for await (const step of place.api.runs.steps.list(names.waiting, { order: "asc" })) steps.push(step.path.split("/").at(-1));
  const shown = await tab.page.locator(".timeline > ol > li > .step-line .step-name > .cut:first-of-type").allTextContents();
  assert.deepEqual(shown.filter((name) => steps.includes(name)), steps);
  assert.equal(await tab.page.locator(".timeline .span.running").count(), 0);
  await tab.context.close();
});
