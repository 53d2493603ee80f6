/**
 * Every page for callers of each kind, light and dark, at 1280 and at 360 px, with axe: the whole of which `pages.test.mjs` looks
 * at a part. It takes half an hour, so `make soak` runs it. A part of it:
 *
 *     node --test --test-name-pattern='project viewer: runs' tests/console/matrix.mjs
 */

import assert from "node:assert/strict";
import { test } from "node:test";
import { axeFinds, open, overflow, settled, visit } from "./browser.mjs";
import { PAGES, addressOf } from "./pages.mjs";
import { callers } from "./roles.mjs";
import { world } from "./server.mjs";
import { browser, names, place, stage } from "./stage.mjs";

/** Whose view is another one; who is a stranger has no role at all. */
const KINDS = { "tenant admin": "tenant admin", "project owner": "project owner", "project editor": "project editor", "project viewer": "project viewer", reviewer: "reviewer", "team admin": "team admin", stranger: "member" };
const THEMES = /** @type {const} */ (["light", "dark"]);
const SIZES = [{ width: 1280, height: 800 }, { width: 360, height: 740 }];

let by;

stage(async (api) => {
  ({ by } = await callers(place.url, api));
  await api.reviewers.register({ userId: by.reviewer.userId, role: "finance" });
  const world_ = await world(api, by.reviewer.api);
  // What the pages show lies in these projects, and in this team.
  for (const id of [world_.project, world_.shopProject, world_.claims, world_.plant]) for (const role of ["owner", "editor", "viewer"]) await api.projects.memberships.add(id, { userId: by[`project ${role}`].userId, role });
  await api.teams.memberships.add(world_.team, { userId: by["team admin"].userId, role: "admin" });
  return world_;
}, { authorization: true });

/** What is wrong with what the page shows now. @param {any} page @param {string} look */
async function faultsOf(page, look) {
  const heads = await page.locator("h1").count();
  return [...(heads === 1 ? [] : [`${heads} headings h1`]), ...(await overflow(page)), ...(await axeFinds(page))].map((fault) => `${look}: ${fault}`);
}

for (const [kind, caller] of Object.entries(KINDS)) {
  for (const [path, { signedOut, ready, before } = {}] of PAGES) {
    // Signed out all are the same. What a dialog or a part waits for is not everybody's.
    if (signedOut || (before && kind !== "tenant admin")) continue;
    test(`${kind}: ${path}${before ? " and its dialog" : ""}`, async () => {
      const tab = await open(browser, place.url, { token: kind === "tenant admin" ? place.token : by[caller].token });
      const { page } = tab;
      try {
        await visit(tab, addressOf(path, names), kind === "tenant admin" ? { ready } : {});
        await before?.(page);
        const title = await page.title();
        const faults = [];
        if (!title.includes(" · ")) faults.push(`the title is "${title}"`);
        for (const size of SIZES) {
          await page.setViewportSize(size);
          for (const colorScheme of THEMES) {
            await page.emulateMedia({ colorScheme });
            await settled(page);
            faults.push(...(await faultsOf(page, `${colorScheme}, ${size.width} px`)));
          }
        }
        faults.push(...tab.faults());
        assert.deepEqual(faults, [], `${kind}, ${path}:\n  ${faults.join("\n  ")}`);
      } finally {
        await tab.context.close();
      }
    });
  }
}
