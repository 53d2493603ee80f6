/** Usage: its sums are those of the API, of what the address says, and can be taken to a spreadsheet. */

import assert from "node:assert/strict";
import { settled, visit } from "./browser.mjs";
import { example } from "./look-up.mjs";
import { sql } from "./server.mjs";
import { names, place, stage, story } from "./stage.mjs";

/** As a spreadsheet would take it for a formula. */
const FORMULA = '=SUM(A1) "all"';

stage(async (api) => {
  const { id, projectId, latestVersion } = await example(api);
  const { instructions, model, modelProviderId } = await api.agents.versions.get(id, latestVersion);
  const other = await api.projects.create({ name: "Another" });
  const version = { version: "1.0.0", instructions, model, modelProviderId, toolIds: [] };
  const formula = await api.agents.create({ projectId: other.id, name: FORMULA });
  await api.agents.versions.create(formula.id, version);
  const runs = [];
  for (const agentId of [id, formula.id, formula.id]) runs.push(await api.runs.wait((await api.runs.create({ agentId, message: "Hello." })).run.id));
  sql(place, `update runs set created_at = created_at - interval '1 day' where run_id = '${runs[0].id}'`);
  return { project: projectId, other: other.id };
});

/** The rows of the table of sums, each by its columns. */
const rows = async (page, label) => {
  const table = page.getByRole("table", { name: label, exact: true });
  const titles = await table.locator("thead th").allTextContents();
  const all = await table.locator("tbody tr").evaluateAll((found) => found.map((row) => [...row.querySelectorAll("td")].map((cell) => cell.textContent)));
  return all.map((cells) => Object.fromEntries(titles.map((title, index) => [title, cells[index]])));
};

story("the sums by agent, project, model and day are those of the API, and stand in the address", async (tab, page) => {
  await visit(tab, "usage");
  // The runs are of two days.
  assert.match(await page.locator(".facts").first().innerText(), /Calls\s+3/);
  for (const [tabName, by] of [["By agent", "agent"], ["By project", "project"], ["By day", "day"], ["By model", "model"]]) {
    await page.getByRole("link", { name: tabName }).click();
    await settled(page);
    await page.getByRole("table", { name: tabName, exact: true }).waitFor();
    const { data } = await place.api.usage.sum({ by: [by] });
    const shown = await rows(page, tabName);
    assert.deepEqual(shown.map((row) => Number(row.Calls)).sort(), data.map((one) => one.calls).sort(), tabName);
    assert.equal(new URL(page.url()).searchParams.get("by") ?? "model", by);
  }
  await visit(tab, `usage?by=agent&project=${names.other}`);
  assert.deepEqual((await rows(page, "By agent")).map((row) => [row.Agent, row.Calls]), [[FORMULA, "2"]]);
  // A stack of bars has the same numbers as its table.
  await page.getByText("As a table").click();
  const [today] = await rows(page, "Cost by day");
  assert.equal(today[FORMULA], (await rows(page, "By agent"))[0].Cost);
  await page.getByLabel("Bars").selectOption("calls");
  await page.waitForURL("**bars=calls**");
  assert.equal((await rows(page, "Calls by day"))[0][FORMULA], "2");
});

story("the sums are copied as CSV, in which no name is a formula", async (tab, page) => {
  await tab.context.grantPermissions(["clipboard-read", "clipboard-write"]);
  await visit(tab, "usage?by=agent");
  await page.getByRole("button", { name: "Copy as CSV" }).click();
  await page.getByText("Copied").waitFor({ state: "attached" });
  const [head, ...lines] = (await page.evaluate(() => navigator.clipboard.readText())).split("\r\n");
  assert.equal(head, "agent,costUsd,calls,promptTokens,completionTokens,callsWithoutCost");
  const line = lines.find((one) => one.includes("SUM"));
  assert.ok(line?.startsWith(`"'=SUM(A1) ""all""",`), line);
  assert.equal(line.split(",").at(-4), "2");
});

story("a project in which no model was called says what fills the page", async (tab, page) => {
  const empty = await place.api.projects.create({ name: "Empty" });
  await visit(tab, `usage?project=${empty.id}&days=7`);
  await page.getByText("No model was called in the last 7 days.").waitFor();
});
