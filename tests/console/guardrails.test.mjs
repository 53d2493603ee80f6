/** Guardrails: the playground, policies that are put and that somebody else put first, and the checks of a run. */

import assert from "node:assert/strict";
import { settled, visit } from "./browser.mjs";
import { example, found, named } from "./look-up.mjs";
import { names, place, stage, story } from "./stage.mjs";

stage(async (api) => {
  const { id, projectId, latestVersion } = await example(api);
  const { model, modelProviderId } = await api.agents.versions.get(id, latestVersion);
  const clock = await found(api.tools.list({ projectId, limit: 200 }), named("clock"));
  const agent = await api.agents.create({ projectId, name: "guarded" });
  await api.agents.versions.create(agent.id, { version: "1.0.0", instructions: "Answer.", model, modelProviderId, toolIds: [clock.id], guardrails: [{ builtin: "pattern", name: "no-calls", at: ["tool.arguments"], action: "block", config: { patterns: ["."] } }] });
  const { run } = await api.runs.create({ agentId: agent.id, message: "What time is it?" });
  await api.runs.wait(run.id);
  return { project: projectId, agent: agent.id, run: run.id };
});

const editor = (page) => page.getByLabel("Guardrails (JSON)");

story("the playground replaces what it finds, and a fault stands at its line", async (tab, page) => {
  await visit(tab, `guardrails?project=${names.project}`);
  await page.getByRole("button", { name: "Try it" }).click();
  await page.getByText("The card is [card].").waitFor();
  const row = page.getByRole("table").getByRole("row").nth(1);
  assert.match(await row.innerText(), /pii[\s\S]*Redacted[\s\S]*Given here[\s\S]*card/);
  await editor(page).fill('[\n  {\n    "builtin": "pattern",\n    "at": ["output"],\n    "action": "block",\n    "config": {\n      "patterns": ["("]\n    }\n  }\n]');
  await page.getByRole("button", { name: "Try it" }).click();
  await page.getByRole("button", { name: "Line 7" }).waitFor();
  assert.match(await page.locator(".faults").innerText(), /\$\[0\]\.config\.patterns\[0\]/);
  await editor(page).fill("[");
  await page.getByText("This is not JSON yet").waitFor();
  assert.equal(await page.getByRole("button", { name: "Try it" }).getAttribute("aria-disabled"), "true");
});

story("a policy is put, and another version that stands leaves what was typed", async (tab, page) => {
  await visit(tab, "policies");
  await page.getByText("No policy yet.").waitFor();
  await page.getByRole("button", { name: "Put the next version" }).click();
  await page.getByRole("button", { name: "Put version 1" }).click();
  await page.getByRole("cell", { name: "Credentials" }).waitFor();
  assert.equal((await place.api.policies.get()).version, 1);
  await page.getByRole("button", { name: "Put the next version" }).click();
  const typed = '[{"builtin": "hidden-text", "at": ["input"], "action": "block"}]';
  await editor(page).fill(typed);
  await place.api.policies.put({ guardrails: [{ builtin: "links", at: ["output"], action: "redact" }], expectedVersion: 1 });
  await page.getByRole("button", { name: "Put version 2" }).click();
  await page.getByText("The policy's newest version is 2, not 1").waitFor();
  assert.equal(await editor(page).inputValue(), typed);
  await page.getByRole("button", { name: "Read it again" }).click();
  await page.getByRole("cell", { name: "Links to any host" }).waitFor();
  assert.equal(await editor(page).inputValue(), typed);
  await page.getByRole("button", { name: "Put version 3" }).click();
  await page.getByRole("cell", { name: "Hidden characters" }).waitFor();
  assert.equal((await place.api.policies.get()).guardrails[0].builtin, "hidden-text");
  await place.api.policies.put({ guardrails: [] });
});

story("a project's policy is put on its page", async (tab, page) => {
  await visit(tab, `projects/${names.project}/policy`);
  await page.getByRole("button", { name: "Put the next version" }).click();
  await page.getByRole("button", { name: "Put version 1" }).click();
  await page.getByRole("cell", { name: "Credentials" }).waitFor();
  assert.equal((await place.api.projects.policies.get(names.project)).version, 1);
});

story("a run says which call was blocked, at its step and in its list of checks", async (tab, page) => {
  await visit(tab, `runs/${names.run}`);
  await page.getByText("the guardrail no-calls blocked it").first().waitFor();
  const { data } = await place.api.runs.checks.list(names.run, { order: "asc" });
  assert.ok(data.some((one) => one.verdict === "block"));
  for (const closed = page.locator("button.step-line[aria-expanded=false]"); await closed.count(); ) await closed.first().click();
  const at = page.getByRole("table", { name: "Checks that did not let something pass as it was" }).first();
  await at.waitFor();
  assert.match(await at.innerText(), /no-calls[\s\S]*Blocked[\s\S]*Agent's version/);
  await page.getByText("All checks of the step").first().click();
  await page.getByRole("table", { name: "All checks of the step" }).first().waitFor();
  await page.getByRole("link", { name: "Checks" }).click();
  await settled(page);
  assert.match(await page.getByRole("table", { name: "Checks of the run" }).innerText(), /no-calls[\s\S]*Arguments of a call/);
});

story("a version shows its guardrails, and a new one begins with them", async (tab, page) => {
  await visit(tab, `agents/${names.agent}/versions/1.0.0`);
  assert.match(await page.getByRole("table", { name: "Guardrails of the version" }).innerText(), /no-calls[\s\S]*Patterns[\s\S]*1 pattern[\s\S]*Block[\s\S]*The model is told/);
  await visit(tab, `agents/${names.agent}/new-version`);
  assert.equal(JSON.parse(await editor(page).inputValue())[0].name, "no-calls");
  await editor(page).fill('[{"builtin": "pii", "at": ["nowhere"], "action": "redact"}]');
  await page.getByRole("button", { name: "Make the version" }).click();
  await page.locator(".faults").waitFor();
  await editor(page).fill('[{"builtin": "pii", "at": ["output"], "action": "redact"}]');
  await page.getByLabel("Streaming").selectOption("unchecked");
  await page.getByRole("button", { name: "Make the version" }).click();
  await page.waitForURL(/\/versions\/\d/);
  const version = decodeURIComponent(page.url().split("/").at(-1));
  const made = await place.api.agents.versions.get(names.agent, version);
  assert.equal(made.guardrails[0].builtin, "pii");
  assert.equal(made.streaming, "unchecked");
});
