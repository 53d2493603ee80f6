/**
 * The server and the browser of a file of tests: `stage(work)` begins them before its tests and ends them after.
 *
 * `browser`, `place` (the server) and `names` (what `fill` answered) are there once the tests run. `story` is a test before a
 * page that is signed in, at whose end nothing may have gone wrong. At the end of a file all that was asked and answered has been
 * as the API description says.
 */

import assert from "node:assert/strict";
import { after, before, test } from "node:test";
import { launch, open } from "./browser.mjs";
import { contractFaults } from "./contract.mjs";
import { server } from "./server.mjs";

export let browser;
/** @type {Awaited<ReturnType<typeof server>>} */
export let place;
/** @type {any} */
export let names;
/** What ends with the tests, the last that began first. @type {(() => unknown)[]} */
export const ends = [];

/**
 * @param {(api: import("../../clients/typescript/src/index.js").AgentRuntime) => Promise<unknown>} [fill]
 * @param {Parameters<typeof server>[1] | (() => Promise<Parameters<typeof server>[1]>)} [options] of the server; a function
 *   where something begins before it
 */
export function stage(fill, options) {
  before(async () => {
    place = await server({ after: (end) => ends.push(end) }, typeof options === "function" ? await options() : options);
    names = await fill?.(place.api);
    browser = await launch();
  });
  after(async () => {
    await browser?.close();
    for (const end of ends.reverse()) await end();
    const faults = await contractFaults();
    assert.deepEqual(faults, [], `what the pages asked and were answered is not as described:\n  ${faults.join("\n  ")}`);
  });
}

/** In a browser of one's own; nothing may have gone wrong at its end. @param {object} options of `open` */
export async function within(options, act) {
  const tab = await open(browser, place.url, options);
  try {
    await act(tab, tab.page);
    assert.deepEqual(tab.faults(), []);
  } finally {
    await tab.context.close();
  }
}

/** @param {string} name @param {(tab: any, page: any) => Promise<void>} act */
export function story(name, act) {
  test(name, () => within({ token: place.token }, act));
}
