/** A run's page: its timelines, its events, its acts; and the filters of the list. */

import assert from "node:assert/strict";
import { hide, settled, streamsOf, visit } from "./browser.mjs";
import { eventually } from "./look-up.mjs";
import { world } from "./server.mjs";
import { names, place, stage, story } from "./stage.mjs";

/** A flow that runs another one, which asks a person. */
const OUTER = {
  document: { dsl: "1.0.3", namespace: "billing", name: "outer", version: "1.0.0" },
  do: [{ inner: { run: { workflow: { namespace: "billing", name: "refund", version: "1.0.0", input: { order: "C-1", amount: 70 } } } } }],
};

stage(async (api) => {
  const filled = await world(api);
  await api.flows.create({ projectId: filled.project, definition: OUTER });
  return filled;
});

story("a run below, opened in place, goes on after the page was hidden", async (tab, page) => {
  const { run } = await place.api.runs.create({ flowId: "billing.outer", projectId: names.project });
  const child = await eventually(async () => (await place.api.runs.list({ parentRunId: run.id, waitingFor: "approval" })).data[0], "the run below");
  const [approval] = (await place.api.approvals.list({ runId: child.id })).data;
  // A hidden page gives its stream back at once, not after a while.
  await tab.context.addInitScript(() => {
    const begin = window.setTimeout;
    window.setTimeout = /** @type {any} */ ((act, ms, ...given) => begin(act, ms === 10_000 ? 0 : ms, ...given));
  });
  const { open: streams } = streamsOf(page);
  await visit(tab, `runs/${run.id}`, { ready: ".timeline li" });
  await page.locator(".step-line").first().click();
  await page.locator(".below button").click();
  const asks = page.locator(".below .timeline .step-line", { hasText: "Asks" });
  await asks.waitFor();
  await eventually(() => streams.size === 1, "the run's stream alone");
  await hide(page, true);
  await eventually(() => streams.size === 0, "the end of the stream");
  await place.api.approvals.decide(approval.id, { decision: "approve" });
  await place.api.runs.wait(run.id);
  await hide(page, false);
  await asks.waitFor({ state: "detached" });
  await page.locator(".page-head .state", { hasText: "Completed" }).waitFor();
});

story("two timelines on a page choose their steps apart, and a text that comes in parts is not read again with each", async (tab, page) => {
  await visit(tab, "dev/components");
  const seen = await page.evaluate(async () => {
    const [{ $m: all }, ...later] = await Promise.all(["app.js", "run-events.js", "components/timeline.js"].map((file) => import(`/console/assets/${file}`)));
    const [{ Timeline: Model }, { Timeline }] = later;
    const { h, render, tags } = all.find((module) => "render" in module);
    const model = new Model();
    const at = new Date().toISOString();
    let seq = 0;
    const take = (kind, data) => model.take({ seq: ++seq, kind, createdAt: at, data });
    take("run.created", {});
    for (let step = 1; step <= 8; step++) take("step.started", { step, type: "model", name: "model", attempt: 1 });
    let read = 0;
    const walk = String.prototype[Symbol.iterator];
    String.prototype[Symbol.iterator] = function () {
      read += this.length;
      return walk.call(this);
    };
    const part = "Grüße 🙂 ";
    const length = [...part].length;
    for (let index = 0; index < 2000; index++) model.take({ kind: "text.delta", data: { step: 8, attempt: 1, offset: index * length, text: part } });
    // What is written again from an earlier place replaces what stood there.
    model.take({ kind: "text.delta", data: { step: 8, attempt: 1, offset: 1999 * length, text: "End" } });
    model.take({ kind: "text.delta", data: { step: 8, attempt: 1, offset: 1999 * length + 3, text: "." } });
    String.prototype[Symbol.iterator] = walk;
    const box = document.createElement("div");
    document.querySelector("main").append(box);
    render(tags.div(null, ["one", "two"].map((id) => tags.div({ key: id, id }, h(Timeline, { timeline: model, lastSeq: seq })))), box);
    const text = model.rows.at(-1).text;
    return { read, length: text.length, isWhole: text === `${part.repeat(1999)}End.` };
  });
  assert.ok(seen.isWhole);
  assert.ok(seen.read < 4 * seen.length, `${seen.read} characters were looked at for a text of ${seen.length}`);
  await page.locator("#one").getByLabel("Only failures").check();
  await page.locator("#two").getByLabel("Only what took time").check();
  assert.ok(await page.locator("#one").getByLabel("Only failures").isChecked());
});

/** How often a part of the page that shows runs was told to read again, from now on. */
async function toldOf(page) {
  await page.evaluate(async () => {
    const { $m: all } = await import("/console/assets/app.js");
    const [{ h, render }, { useHints }] = ["render", "useHints"].map((name) => all.find((module) => name in module));
    window.told = 0;
    const Part = () => (useHints(["run"], () => void window.told++), null);
    render(h(Part, {}), document.createElement("div"));
  });
  return () => page.evaluate(() => window.told);
}

story("a run's events come as they happen, and those of a finished run are not read again when other runs go on", async (tab, page) => {
  const { run } = await place.api.runs.create({ flowId: "billing.refund", projectId: names.project, input: { order: "C-2", amount: 70 } });
  const approval = await eventually(async () => (await place.api.approvals.list({ runId: run.id })).data[0], "the approval");
  await visit(tab, `runs/${run.id}/events`);
  const kinds = page.locator("tbody code:not(.faint)");
  await kinds.filter({ hasText: "approval.requested" }).waitFor();
  await place.api.approvals.decide(approval.id, { decision: "approve" });
  await kinds.filter({ hasText: "run.completed" }).waitFor();
  const { data } = await place.api.runs.progress(run.id, { limit: 200 });
  assert.deepEqual(await kinds.allTextContents(), data.map((event) => event.kind));
  await settled(page);
  const told = await toldOf(page);
  const asked = [];
  page.on("request", (request) => request.url().includes("/progress") && asked.push(request.url()));
  // Each part is told once a second at most: whatever listens was told of the first one before it is told of the second.
  for (const message of ["Another one.", "And one more."]) {
    const before = await told();
    const other = await place.api.runs.create({ agentId: names.agent, message });
    await place.api.runs.wait(other.run.id);
    await eventually(async () => (await told()) > before, "a hint of the other run");
  }
  await settled(page);
  assert.deepEqual(asked, []);
});

story("a finished run is begun again with the same input, once that is confirmed, and is copied as a call", async (tab, page) => {
  const { run } = await place.api.runs.create({ agentId: names.agent, message: "Once more?", labels: { of: "again" } });
  await place.api.runs.wait(run.id);
  await tab.context.grantPermissions(["clipboard-read", "clipboard-write"]);
  await visit(tab, `runs/${run.id}`);
  await page.getByRole("button", { name: "Copy as curl" }).click();
  await page.getByRole("status").filter({ hasText: "Copied" }).first().waitFor();
  assert.equal(await page.evaluate(() => navigator.clipboard.readText()), `curl -H "Authorization: Bearer $AGENT_RUNTIME_TOKEN" ${place.url}/v1/runs/${run.id}`);
  await page.getByRole("button", { name: "Run again" }).click();
  await page.waitForFunction(() => document.querySelector("dialog .primary") && !document.querySelector("dialog .primary")?.hasAttribute("aria-disabled"));
  await page.locator("dialog .primary").click();
  await page.waitForURL((url) => /runs\/[0-9a-f-]{36}$/.test(url.pathname) && !url.pathname.endsWith(run.id));
  const again = await place.api.runs.get(page.url().split("/").at(-1));
  assert.deepEqual([again.agent.version, again.labels], [run.agent.version, { of: "again" }]);
  assert.deepEqual((await place.api.runs.payload(again.id)).input, (await place.api.runs.payload(run.id)).input);
});

story("runs are found by how their version was chosen, whether they are dry, and when they began", async (tab, page) => {
  const began = new Date();
  const { run } = await place.api.runs.create({ agentId: names.agent, version: "0.1.0", message: "Dry?", dryRun: true });
  await place.api.runs.wait(run.id);
  const shown = async () => {
    await settled(page);
    return page.locator("tbody a").evaluateAll((links) => links.map((link) => link.getAttribute("href").split("/").at(-1)));
  };
  await visit(tab, "runs");
  await page.getByLabel("Version").selectOption("explicit");
  await page.getByLabel("Dry run").selectOption("true");
  assert.deepEqual(await shown(), (await place.api.runs.list({ via: "explicit", dryRun: true, order: "desc" })).data.map((one) => one.id));
  assert.ok((await shown()).includes(run.id));
  await page.getByLabel("Before (UTC)").fill(new Date(began.getTime() - 60_000).toISOString().slice(0, 16));
  await page.getByLabel("Before (UTC)").blur();
  await page.waitForURL("**to=**");
  assert.deepEqual(await shown(), []);
  await page.getByRole("button", { name: "Clear filters" }).first().click();
  await page.getByLabel("From (UTC)").fill(new Date(began.getTime() - 60_000).toISOString().slice(0, 16));
  await page.getByLabel("From (UTC)").blur();
  await page.waitForURL("**from=**");
  assert.ok((await shown()).includes(run.id));
});

story("the palette's acts are those of what the page shows now, and a pasted id may be of any kind that has a page", async (tab, page) => {
  const other = await place.api.projects.create({ name: "Another one" });
  await visit(tab, `tools?project=${names.project}`);
  await page.getByRole("combobox", { name: "Project" }).selectOption(other.id);
  await page.waitForURL(`**/tools?project=${other.id}`);
  await settled(page);
  await page.keyboard.press("Control+k");
  await page.locator("dialog[open] input").fill("Register a tool");
  await page.keyboard.press("Enter");
  await page.waitForURL(`**/tools/new?project=${other.id}`);
  await page.keyboard.press("Control+k");
  await page.locator("dialog[open] input").fill(names.project);
  const found = await page.locator("dialog[open] [role=option]").allTextContents();
  for (const kind of ["tool", "person", "team", "service account", "org", "model provider", "identity provider", "decision"]) assert.ok(found.some((one) => one.startsWith(`The ${kind} `)), kind);
});

story("a project's page leads to its agents, flows, tools and usage, and says what it cost", async (tab, page) => {
  await visit(tab, `projects/${names.project}`);
  const parts = page.getByRole("navigation", { name: "Parts of the project" });
  for (const part of ["Agents", "Flows", "Tools", "Usage"]) assert.equal(await parts.getByRole("link", { name: part, exact: true }).getAttribute("href"), `/console/${part.toLowerCase()}?project=${names.project}`);
  assert.match(await page.locator("main").innerText(), /Cost of 7 days\s*\$?[\d.]+/);
});
