/** Signing in through an identity provider that is not ours: a deep link, two tabs at once, the way back, and groups that it does not name. */

import assert from "node:assert/strict";
import { execFileSync, spawn } from "node:child_process";
import { once } from "node:events";
import { existsSync } from "node:fs";
import { join } from "node:path";
import { createInterface } from "node:readline";
import { test } from "node:test";
import { fileURLToPath } from "node:url";
import { axeFinds, open, settled, visit } from "./browser.mjs";
import { world } from "./server.mjs";
import { browser, ends, names, place, stage } from "./stage.mjs";

const here = (path) => fileURLToPath(new URL(path, import.meta.url));
const SECRET = "a secret of one test";
const NAME = "Plant accounts";
const DEEP = "runs?status=failed#main";
const EMAIL = "ada@plant.example";

/** @type {string} */
let issuer;

/** Begins oidc-provider, and registers it. Anybody signs in there with any password. @param {import("../../clients/typescript/src/index.js").AgentRuntime} api */
async function fill(api) {
  const part = join(execFileSync(here("../setup/where"), { encoding: "utf8" }).trim(), "oidc-provider");
  const own = join(part, `node_modules/node-linux-${process.arch}/bin/node`);
  const child = spawn(existsSync(own) ? own : process.execPath, [here("../identity-provider/serve.mjs"), part, SECRET], { stdio: ["pipe", "pipe", "inherit"] });
  // It ends with its standard input.
  ends.push(() => void child.stdin.end());
  const lines = createInterface({ input: child.stdout });
  [issuer] = await once(lines, "line");
  await api.secrets.put("production", "OIDC", { value: SECRET });
  const clientSecretRef = { envName: "production", name: "OIDC" };
  // Its groups come with a scope of theirs, which is forgotten here.
  const made = await api.identityProviders.create({ name: NAME, issuer, clientId: "agent-runtime", clientSecretRef, emailDomains: ["plant.example"], groupsClaim: "groups" });
  child.stdin.write(`${place.url}/sign-in/callback/${made.id}\n`);
  assert.deepEqual(await once(lines, "line"), ["ready"]);
  await api.users.add({ email: EMAIL, displayName: "Ada", tenantRole: "member" });
  return { ...(await world(api)), provider: made.id };
}

stage(fill);

/** A browser in which nobody is signed in. At its end nothing of the console may have gone wrong. */
async function signedOut(act) {
  const tab = await open(browser, place.url, { signedOut: true });
  try {
    await act(tab, tab.page);
    // The provider's own page is elsewhere, with all that it asks for.
    assert.deepEqual(tab.faults().filter((fault) => !fault.startsWith("request elsewhere: ")), []);
  } finally {
    await tab.context.close();
  }
}

/** Goes to a page of the console and on to the provider. */
async function leaves(page, path) {
  await page.goto(`${place.url}/console/${path}`);
  await page.getByRole("button", { name: `Continue with ${NAME}` }).click();
  await page.waitForURL(`${issuer}/interaction/**`);
}

/** Says who one is at the provider, which sends the browser back. */
async function arrives(page) {
  await page.locator("input[name=login]").fill("ada");
  await page.locator("input[name=password]").fill("any");
  await page.locator("button[type=submit]").click();
  await page.waitForURL(`${place.url}/console/**`);
}

const email = (page) => page.evaluate(async () => (await (await fetch("/v1/identity/me")).json()).email);

test("a deep link while signed out leads there through a provider, with its query and its fragment", () =>
  signedOut(async (_, page) => {
    await leaves(page, DEEP);
    await arrives(page);
    assert.equal(page.url(), `${place.url}/console/${DEEP}`);
    assert.equal(await page.getByLabel("State").inputValue(), "failed");
    assert.equal(await email(page), EMAIL);
  }));

test("two tabs that sign in at once are both signed in, each where it was", () =>
  signedOut(async (tab, page) => {
    const other = await tab.context.newPage();
    await leaves(page, "agents");
    await leaves(other, "conversations");
    await arrives(page);
    await arrives(other);
    for (const [one, path] of /** @type {const} */ ([[page, "agents"], [other, "conversations"]])) {
      assert.equal(one.url(), `${place.url}/console/${path}`);
      assert.equal(await email(one), EMAIL);
      await one.reload();
      await one.waitForSelector("nav");
      await settled(one);
      assert.equal(await one.getByRole("button", { name: /^Continue with/ }).count(), 0);
    }
    // The sign-in page leads on whoever is signed in.
    const third = await tab.context.newPage();
    await third.goto(`${place.url}/console/sign-in`);
    await third.waitForURL((url) => !url.pathname.endsWith("/sign-in"));
    assert.equal(await email(third), EMAIL);
  }));

test("back after a sign-in leads through no callback: a code is used once, and no error is met on the way", () =>
  signedOut(async (_, page) => {
    const callbacks = [];
    page.on("request", (request) => new URL(request.url()).pathname.startsWith("/sign-in/callback/") && callbacks.push(request.url()));
    const problems = [];
    page.on("framenavigated", (frame) => frame.url().includes("problem=") && problems.push(frame.url()));
    await visit({ page, url: place.url }, "sign-in", { ready: "h1" });
    await leaves(page, "agents");
    await arrives(page);
    await page.getByRole("heading", { level: 1, name: "Agents" }).waitFor();
    assert.equal(callbacks.length, 1);
    // First the provider's own page, then the page where it began, where one is signed in by now.
    await page.goBack();
    assert.ok(page.url().startsWith(issuer), page.url());
    await page.goBack();
    await page.waitForURL(`${place.url}/console/agents`);
    await page.getByRole("heading", { level: 1, name: "Agents" }).waitFor();
    assert.equal(await email(page), EMAIL);
    // The sign-in page itself leads on.
    await page.goBack();
    await page.waitForURL((url) => url.origin === place.url && !url.pathname.endsWith("/sign-in"));
    assert.equal(await email(page), EMAIL);
    assert.deepEqual([callbacks.length, problems], [1, []]);
    // Whoever opens the address of the callback again is told that nothing came of it, and is still signed in.
    await page.goto(callbacks[0]);
    await page.waitForURL(`${place.url}/console/**`);
    assert.equal(await email(page), EMAIL);
  }));

test("a provider that names no groups says so on its page, with what to do", async () => {
  const tab = await open(browser, place.url, { token: place.token });
  const { page } = tab;
  await visit(tab, `identity-providers/${names.provider}`);
  const told = page.getByText("The provider did not name somebody's groups");
  await told.waitFor();
  await page.getByText("Some providers take a scope for it, which is to stand here.").waitFor();
  assert.deepEqual(await axeFinds(page), []);
  await visit(tab, "sign-in-settings");
  await page.getByText("–, not always named").waitFor();
  // With its scope the next sign-in has them, and what was missing before is forgotten.
  await place.api.identityProviders.update(names.provider, { scopes: ["groups"] });
  await signedOut(async (_, other) => {
    await leaves(other, "agents");
    await arrives(other);
  });
  await visit(tab, `identity-providers/${names.provider}`);
  await page.getByText("They come with the claim").waitFor();
  assert.equal(await told.count(), 0);
  assert.deepEqual(tab.faults(), []);
  await tab.context.close();
});
