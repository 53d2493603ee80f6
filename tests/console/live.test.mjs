/**
 * What changes elsewhere: a page reads again after the server's hints, by a clock while there are none, by one stream a tab, and
 * not while nobody looks.
 *
 * In most tests the pages' clock stands still, so that what comes without it came by a hint.
 */

import assert from "node:assert/strict";
import { test } from "node:test";
import { eventually } from "./look-up.mjs";
import { CLOCK_MS, goTo, hide, open, settled, streamsOf, visit, withoutClock } from "./browser.mjs";
import { world } from "./server.mjs";
import { browser, names, place, stage, within } from "./stage.mjs";

stage(world);

/** The paths that a page asked for, from now on. */
function asksOf(page) {
  const asked = [];
  page.on("request", (request) => asked.push(new URL(request.url()).pathname));
  return asked;
}

/**
 * Pages that are opened from now on hold back the looks of their clock and the tries to take the stream up again, and do not rest
 * between two reads. What is answered lets go what is held back.
 * @returns {Promise<(what: "looks" | "tries") => Promise<void>>}
 */
async function heldBack({ context, page }) {
  await context.addInitScript((clockMs) => {
    const { setInterval: every, setTimeout: later } = window;
    window.held = { looks: [], tries: [] };
    const hold = (what, act) => (window.held[what].push(act), -1);
    window.setInterval = /** @type {any} */ ((act, ms, ...given) => (ms === clockMs ? hold("looks", act) : every(act, ms, ...given)));
    window.setTimeout = /** @type {any} */ ((act, ms, ...given) => (ms >= clockMs && ms <= 1.5 * clockMs ? hold("tries", act) : later(act, ms === 1000 ? 0 : ms, ...given)));
  }, CLOCK_MS);
  return async (what) => {
    await page.waitForFunction((what) => window.held[what].length, what);
    await page.evaluate((what) => window.held[what].forEach((act) => act()), what);
  };
}

const begun = async (message) => {
  const { run } = await place.api.runs.create({ agentId: names.agent, message });
  return run.id;
};
const row = (page, id) => page.locator(`tbody a[href$="${id}"]`);
const is = (open, wanted, what) => eventually(() => open.size === wanted, what);

test("a run that began elsewhere stands in the list by a hint, and its state follows", () =>
  within({ token: place.token }, async (tab, page) => {
    await withoutClock(tab.context);
    const streams = streamsOf(page);
    await visit(tab, "runs");
    await is(streams.open, 1, "the stream of hints");
    const id = await begun("One more.");
    await row(page, id).waitFor();
    await place.api.runs.wait(id);
    await page.locator("tbody tr", { has: page.locator(`a[href$="${id}"]`) }).locator(".state", { hasText: "Completed" }).waitFor();
    assert.equal(streams.begun, 1);
  }));

test("a new row pushes none away from under the pointer: it is counted, and shown when the pointer asks or leaves", () =>
  within({ token: place.token }, async (tab, page) => {
    await visit(tab, "runs");
    const first = page.locator("tbody tr").first();
    const top = () => first.locator("a").getAttribute("href");
    for (const shows of [() => page.getByRole("button", { name: "1 new row: show" }).click(), () => page.mouse.move(5, 5)]) {
      await page.mouse.move(5, 5);
      await first.hover();
      const before = await top();
      const id = await begun("Behind the pointer.");
      await page.getByRole("button", { name: "1 new row: show" }).waitFor();
      assert.equal(await top(), before);
      await shows();
      await row(page, id).waitFor();
      assert.ok((await top()).endsWith(id));
    }
  }));

test("a reviewer's count, the title of the document and the inbox follow a hint", () =>
  within({ token: place.token }, async (tab, page) => {
    await withoutClock(tab.context);
    await visit(tab, "inbox");
    const counted = async () => Number(/^\((\d+)\)/.exec(await page.title())?.[1] ?? 0);
    await eventually(async () => (await counted()) > 0, "the count in the title");
    const before = await counted();
    const { run } = await place.api.runs.create({ flowId: "billing.refund", projectId: names.project, input: { order: "L-1", amount: 70 } });
    const approval = await eventually(async () => (await place.api.approvals.list({ runId: run.id })).data[0], "the approval");
    await row(page, approval.id).waitFor();
    await eventually(async () => (await counted()) === before + 1, "one more in the title");
    assert.equal(Number(await page.locator(".rail .badge").textContent()), before + 1);
    await place.api.approvals.decide(approval.id, { decision: "reject" });
    await row(page, approval.id).waitFor({ state: "detached" });
  }));

test("without the stream a page reads by its clock, and takes the stream up when it is there again", () =>
  within({ token: place.token }, async (tab, page) => {
    const letGo = await heldBack(tab);
    await page.route("**/v1/changes/stream*", (route) => route.abort());
    await visit(tab, "runs");
    const id = await begun("Without hints.");
    await letGo("looks");
    await row(page, id).waitFor();
    const answered = page.waitForResponse((answer) => answer.url().includes("/v1/changes/stream"));
    await page.unroute("**/v1/changes/stream*");
    await letGo("tries");
    assert.equal((await answered).status(), 200);
    const hinted = await begun("With hints.");
    await row(page, hinted).waitFor();
    // The clock reads the list no more. Hints of what the run still does may.
    await place.api.runs.wait(hinted);
    await eventually(async () => {
      await settled(page);
      const asked = asksOf(page);
      await letGo("looks");
      await settled(page);
      return !asked.includes("/v1/runs");
    }, "a look of the clock that reads nothing");
  }));

test("a tab has one stream at most, whichever pages it goes through", () =>
  within({ token: place.token }, async (tab, page) => {
    const streams = streamsOf(page);
    await visit(tab, "runs");
    await is(streams.open, 1, "the stream of hints");
    const go = (to) => goTo(page, to);
    for (const to of ["inbox", "approvals", "agents", "runs"]) {
      await go(to);
      await settled(page);
    }
    assert.equal(streams.begun, 1, "from page to page it is the same one");
    // A run that waits is followed by a stream of its own.
    await go(`runs/${names.waiting}`);
    await page.locator(".timeline li").first().waitFor();
    await eventually(() => streams.open.size === 1 && [...streams.open][0].url().includes(names.waiting), "the run's stream alone");
    await go(`conversations/${names.conversation}`);
    await settled(page);
    await eventually(() => streams.open.size === 1 && [...streams.open][0].url().includes("/changes/"), "the stream of hints again");
    // The browser says of one that was given up when it says of the next one that it began.
    assert.ok(streams.most <= 2, `${streams.most} at once`);
  }));

test("a page on which nothing listens has no stream", async () => {
  const added = await place.api.users.add({ email: `looks.${Date.now()}@mill.example`, displayName: "Looks", tenantRole: "member" });
  const { token } = await place.api.enrolments.redeem({ code: added.enrolment.code });
  await within({ token }, async (tab, page) => {
    const streams = streamsOf(page);
    await visit(tab, "runs");
    await is(streams.open, 1, "the stream of hints");
    await goTo(page, "dev/components");
    await is(streams.open, 0, "the end of the stream");
    assert.equal(streams.begun, 1);
  });
});

test("a hidden page reads nothing and gives its stream back; shown again it reads at once", () =>
  within({ token: place.token }, async (tab, page) => {
    await withoutClock(tab.context);
    const streams = streamsOf(page);
    await visit(tab, "runs");
    await is(streams.open, 1, "the stream of hints");
    await hide(page, true);
    const asked = asksOf(page);
    const id = await begun("Behind its back.");
    await is(streams.open, 0, "the end of the stream");
    assert.deepEqual(asked.filter((path) => path === "/v1/runs"), []);
    await hide(page, false);
    await row(page, id).waitFor();
    await is(streams.open, 1, "the stream of hints");
  }));

test("the eighth tab loads while seven are open and hidden, though a browser has six connections to a server", async () => {
  const first = await open(browser, place.url, { token: place.token });
  const { context } = first;
  try {
    // A hidden tab keeps its stream for a while: a few at a time.
    for (const count of [4, 3]) {
      const streams = [];
      for (let tab = 0; tab < count; tab++) {
        const page = streams.length || count < 4 ? await context.newPage() : first.page;
        streams.push(streamsOf(page));
        await visit({ page, url: place.url }, "runs");
        await hide(page, true);
      }
      await eventually(() => streams.every(({ open, begun }) => begun === 1 && open.size === 0), "the end of their streams");
    }
    const eighth = await context.newPage();
    const streams = streamsOf(eighth);
    await visit({ page: eighth, url: place.url }, "runs");
    await is(streams.open, 1, "its stream");
    await row(eighth, await begun("In the eighth tab.")).waitFor();
    assert.deepEqual(first.faults(), []);
  } finally {
    await context.close();
  }
});

test("a session that ends ends the stream, and signing in begins it again", () =>
  within({ token: place.token }, async (tab, page) => {
    const streams = streamsOf(page);
    await visit(tab, "runs");
    await is(streams.open, 1, "the stream of hints");
    await page.evaluate(() => sessionStorage.setItem("agent-runtime-signed-out", "yes"));
    await tab.context.clearCookies();
    await page.getByLabel("State").selectOption("failed");
    await page.getByRole("heading", { name: "Your session has ended" }).waitFor();
    await is(streams.open, 0, "the end of the stream");
    await page.getByLabel("Your key").fill(place.token);
    await page.keyboard.press("Enter");
    await page.waitForSelector("dialog", { state: "detached" });
    await is(streams.open, 1, "the stream of hints");
  }));
