/**
 * Where the console signs in by itself: that it does, and the page of a run that goes on while its server is killed again and
 * again: it comes back each time, and shows in the end what the API tells of the run.
 */

import assert from "node:assert/strict";
import { test } from "node:test";
import { open, visit } from "./browser.mjs";
import { example } from "./look-up.mjs";
import { browser, place, stage } from "./stage.mjs";

/** How often the server is killed; `AGENT_RUNTIME_ENDS` asks for more. */
const ENDS = Number(process.env.AGENT_RUNTIME_ENDS ?? 2);
const PATIENCE_MS = 120_000;

/** It asks an agent and waits, more often than the test takes. */
const GOES_ON = {
  document: { dsl: "1.0.3", namespace: "restart", name: "goes-on", version: "1.0.0" },
  do: [{ each: { for: { each: "one", in: "${ .all }" }, do: [{ ask: { call: "agent", with: { agent: "assistant", message: "And now?" }, output: { as: "$input" } } }, { pause: { wait: { milliseconds: 300 } } }] } }],
};
const ITERATIONS = 300;
/** What a browser reports of a server that is gone; one that has just begun answers 503 until its database is there. */
const WHILE_AWAY = /ERR_|Failed to fetch|^503 of /;
const LINES = ".timeline > ol > li";

// Each start has another token and other sessions: in development the console signs in by itself, again and again.
stage(undefined, { env: { SVC_DEV_CONSOLE_LOGIN: "true" } });

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

/** The steps as the events have them that `GET /v1/runs/{id}/progress` answers: the task, and how often each was tried. @param {string} runId */
async function stepsOf(runId) {
  const steps = new Map();
  for (let after = 0, hasMore = true; hasMore; ) {
    const page = await place.api.runs.progress(runId, { after, limit: 200 });
    for (const { seq, kind, data } of page.data) {
      after = seq;
      if (!/^(step|child|approval)\./.test(kind)) continue;
      const step = steps.get(data.step) ?? { name: data.path.split("/").at(-1), attempts: 0 };
      if (kind === "step.started" || kind === "step.restarted") step.attempts++;
      steps.set(data.step, step);
    }
    hasMore = page.hasMore;
  }
  return [...steps.values()];
}

/** The steps as the page has them; `bars`: each with its place, its time and what it says. @param {any} page */
function shown(page) {
  return page.locator(LINES).evaluateAll((lines) =>
    lines
      .filter((line) => !line.matches(".note"))
      .map((line) => {
        const bars = [...line.querySelectorAll(":scope > .step-line .lane > .span")];
        return {
          name: line.querySelector(".step-name > .cut")?.textContent,
          attempts: bars.filter((bar) => bar.getAttribute("title")?.startsWith("Attempt")).length,
          state: line.className,
          time: line.querySelector(".step-time")?.textContent,
          bars: bars.map((bar) => `${bar.className} ${bar.getAttribute("title")} ${/** @type {HTMLElement} */ (bar).style.left} ${/** @type {HTMLElement} */ (bar).style.width}`),
        };
      }),
  );
}

test("the page of a run that goes on comes back after each kill of the server, and its timeline is that of the API", async () => {
  const { projectId } = await example(place.api);
  await place.api.flows.create({ projectId, definition: GOES_ON });
  const { run } = await place.api.runs.create({ flowId: "restart.goes-on", projectId, input: { all: Array.from({ length: ITERATIONS }, (_, index) => index) } });
  const tab = await open(browser, place.url);
  await visit(tab, `runs/${run.id}`, { ready: ".timeline li" });
  const drawn = () => tab.page.locator(LINES).count();
  const more = (than) => tab.page.waitForFunction(([lines, than]) => document.querySelectorAll(lines).length > than, [LINES, than], { timeout: PATIENCE_MS });
  for (let end = 0; end < ENDS; end++) {
    // It is killed while a step is under way, and comes back when the page has drawn steps that it had not.
    await more(await drawn());
    await place.restart("SIGKILL");
    await more((await stepsOf(run.id)).length);
    assert.equal(await tab.page.locator("dialog[open]").count(), 0, "the console has signed in again by itself");
  }
  await place.api.runs.cancel(run.id);
  await tab.page.locator(".page-head .state", { hasText: "Cancelled" }).waitFor({ timeout: PATIENCE_MS });
  const known = await stepsOf(run.id);
  assert.ok(known.length > 2 * ENDS, `${known.length} steps`);
  const steps = await shown(tab.page);
  assert.deepEqual(steps.map(({ name, attempts }) => ({ name, attempts })), known);
  assert.equal(await tab.page.locator(".timeline .span.running").count(), 0);
  // A page that saw nothing of all that shows the same.
  const fresh = await open(browser, place.url);
  await visit(fresh, `runs/${run.id}`, { ready: ".timeline li" });
  assert.deepEqual(steps, await shown(fresh.page));
  assert.deepEqual(fresh.faults(), []);
  assert.deepEqual(tab.faults().filter((fault) => !WHILE_AWAY.test(fault)), []);
  for (const one of [tab, fresh]) await one.context.close();
});
