/** The API reference at `/docs`: it sends what one tries as whoever is signed in, and no page from elsewhere has anything of that. */

import assert from "node:assert/strict";
import { once } from "node:events";
import { createServer } from "node:http";
import { test } from "node:test";
import { open } from "./browser.mjs";
import { browser, ends, place, stage, story } from "./stage.mjs";

/** Where the pages of somebody else are: at another port of the same host, and at another name of it. @type {string[]} */
let elsewhere;

stage(async () => {
  const server = createServer((_, response) => response.writeHead(200, { "content-type": "text/html" }).end(`<!doctype html><meta charset="utf-8"><iframe src="${place.url}/docs"></iframe>`));
  server.listen(0);
  await once(server, "listening");
  ends.push(() => (server.closeAllConnections(), server.close()));
  const { port } = /** @type {import("node:net").AddressInfo} */ (server.address());
  elsewhere = [`http://127.0.0.1:${port}/`, `http://localhost:${port}/`];
});

/** Tries a call in the reference, at its address there: of so many only those in sight are on the page. @returns {Promise<string[]>} the status and the body that it shows */
async function tried(page, call, body) {
  await page.goto("about:blank");
  await page.goto(`${place.url}/docs#/${call}`);
  const block = page.locator(".opblock.is-open");
  if (body) await block.locator("textarea.body-param__text").fill(JSON.stringify(body));
  await block.locator("button.execute").click();
  const live = block.locator(".live-responses-table");
  return [await live.locator(".response-col_status").last().innerText(), await live.locator(".response-col_description").last().innerText()];
}

async function projects() {
  const found = [];
  for await (const { name } of await place.api.projects.list()) found.push(name);
  return found;
}

story("what one tries at /docs goes out as whoever is signed in, changes too", async (_, page) => {
  const [status, body] = await tried(page, "identity/me.get");
  assert.match(status, /^200/);
  const me = await place.api.me.get();
  assert.ok(body.includes(me.id), body);
  const [made] = await tried(page, "projects/projects.create", { name: "Tried at the reference" });
  assert.match(made, /^201/);
  assert.ok((await projects()).includes("Tried at the reference"));
});

test("at /docs nobody is anybody without a session", async () => {
  const tab = await open(browser, place.url, { signedOut: true });
  const { page } = tab;
  const [status, body] = await tried(page, "identity/me.get");
  assert.match(status, /^401/);
  assert.ok(body.includes("unauthenticated"), body);
  assert.deepEqual(tab.faults(), []);
  await tab.context.close();
});

test("a page from elsewhere sends none of these calls, reads none, and shows no reference in a frame", async () => {
  const tab = await open(browser, place.url, { token: place.token });
  const page = await tab.context.newPage();
  for (const [at, status] of /** @type {const} */ ([[elsewhere[0], 403], [elsewhere[1], 401]])) {
    await page.goto(at);
    assert.equal(await page.frames()[1].evaluate(() => document.querySelectorAll("#reference").length), 0);
    // A form needs no question beforehand, and its answer is shown whatever it says of other origins.
    const [answer] = await Promise.all([
      page.waitForResponse(`${place.url}/v1/projects`),
      page.waitForURL(`${place.url}/v1/projects`),
      page.evaluate((url) => {
        const form = document.createElement("form");
        Object.assign(form, { method: "post", enctype: "text/plain", action: `${url}/v1/projects` });
        form.append(Object.assign(document.createElement("input"), { name: '{"name":"From elsewhere","of":"', value: '"}' }));
        document.body.append(form);
        form.submit();
      }, place.url),
    ]);
    assert.equal(answer.status(), status, at);
    await page.goto(at);
    const read = await page.evaluate((url) => fetch(`${url}/v1/identity/me`, { credentials: "include" }).then((answer) => answer.text(), () => "refused"), place.url);
    assert.equal(read, "refused", at);
  }
  assert.ok(!(await projects()).includes("From elsewhere"));
  await tab.context.close();
});
