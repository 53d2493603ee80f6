/** Every page of the console, with what each is checked for (`browser.mjs`). A page adds its line to PAGES. */

import { after, before, test } from "node:test";
import { checkPage, launch } from "./browser.mjs";
import { server, world } from "./server.mjs";

/** Below `/console/`; names in braces are the world's (`server.mjs`). @type {[string, object?][]} */
const PAGES = [
  ["sign-in", { signedOut: true, ready: "form" }],
  ["welcome"],
  ["no-such-page"],
  ["dev/components"],
  ["runs"],
  ["runs?status=failed"],
  ["runs/{run}", { ready: ".timeline li" }],
  ["runs/{waiting}", { ready: ".timeline li" }],
  ["runs/{failed}", { ready: ".timeline li" }],
  ["runs/{run}/output"],
  ["runs/{run}/input"],
  ["runs/{run}/events"],
  ["runs/00000000-0000-7000-8000-000000000000"],
];

const ends = [];
let browser;
let place;
let names;

before(async () => {
  place = await server({ after: (end) => ends.push(end) });
  names = await world(place.api);
  browser = await launch();
});

after(async () => {
  await browser?.close();
  for (const end of ends) await end();
});

for (const [path, options = {}] of PAGES)
  test(`the page ${path}`, async () => {
    const named = path.replace(/\{(\w+)\}/g, (_, name) => names[name] ?? name);
    await checkPage(browser, place.url, named, options.signedOut ? options : { token: place.token, ...options });
  });
