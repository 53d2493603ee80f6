/** Every page of the console (`pages.mjs`), with what each is checked for (`browser.mjs`). */

import assert from "node:assert/strict";
import { networkInterfaces } from "node:os";
import { test } from "node:test";
import { checkPage } from "./browser.mjs";
import { PAGES, addressOf } from "./pages.mjs";
import { world } from "./server.mjs";
import { browser, names, place, stage } from "./stage.mjs";

stage(world);

test("the host has no network: whatever a page needs, the server has", () => assert.deepEqual(Object.keys(networkInterfaces()), ["lo"], "tests/console/run begins them"));

for (const [path, options = {}] of PAGES)
  test(`the page ${path}${options.before ? " and its dialog" : ""}`, () => checkPage(browser, place.url, addressOf(path, names), options.signedOut ? options : { token: place.token, ...options }));
