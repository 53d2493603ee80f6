/** Every page of the console, with what each is checked for (`browser.mjs`). A page adds its line to PAGES. */

import { test } from "node:test";
import { checkPage } from "./browser.mjs";
import { world } from "./server.mjs";
import { browser, names, place, stage } from "./stage.mjs";

/** Below `/console/`; names in braces are the world's (`server.mjs`). @type {[string, object?][]} */
const PAGES = [
  ["sign-in", { signedOut: true, ready: "form" }],
  ["welcome"],
  ["no-such-page"],
  ["dev/components"],
  ["inbox"],
  ["approvals"],
  ["approvals?status=approved"],
  ["approvals/{shopApproval}"],
  ["approvals/{toolApproval}"],
  ["approvals/{closedApproval}"],
  ["conversations"],
  ["conversations/{conversation}", { ready: ".said" }],
  ["conversations/new?agent={support}"],
  ["agents"],
  ["agents/{support}"],
  ["agents/{support}/versions/1.1.0"],
  ["agents/{support}/new-version"],
  ["agents/{support}/compare?before=1.0.0&after=1.1.0", { ready: ".diff" }],
  ["flows"],
  ["flows/new"],
  ["flows/{shopFlow}", { ready: ".flow-tree" }],
  ["flows/{shopFlow}/versions/1.1.0", { ready: ".flow-tree" }],
  ["flows/{shopFlow}/versions/1.1.0?show=definition"],
  ["flows/{shopFlow}/new-version"],
  ["flows/{shopFlow}/compare?before=1.0.0&after=1.1.0", { ready: ".diff" }],
  ["flows/{shopFlow}/start?dry=true"],
  ["runs/{shopRun}/flow", { ready: ".flow-tree" }],
  ["runs"],
  ["runs?status=failed"],
  ["runs/{run}", { ready: ".timeline li" }],
  ["runs/{waiting}", { ready: ".timeline li" }],
  ["runs/{failed}", { ready: ".timeline li" }],
  ["runs/{run}/output"],
  ["runs/{run}/input"],
  ["runs/{run}/events"],
  ["runs/00000000-0000-7000-8000-000000000000"],
  ["tools"],
  ["tools/{tool}"],
  ["tools/new", { ready: "form.tool-form" }],
  ["webhooks"],
  ["webhooks", { before: press("Add an endpoint") }],
  ["webhooks/{endpoint}"],
  ["webhooks/{endpoint}/deliveries/{delivery}"],
  ["webhooks/00000000-0000-7000-8000-000000000000"],
  ["secrets"],
  ["secrets", { before: press("Put a secret") }],
  ["model-providers"],
  ["model-providers", { before: press("Register a provider") }],
  ["model-providers/{provider}"],
  ["projects"],
  ["projects?archived=true"],
  ["projects/{claims}"],
  ["projects/{claims}/access"],
  ["orgs"],
  ["orgs/{org}"],
  ["people"],
  ["people?email=nobody%40mill.example"],
  ["people/{person}"],
  ["people/{gone}"],
  ["teams"],
  ["teams/{team}"],
  ["service-accounts"],
  ["service-accounts/{account}"],
  ["reviewers"],
  ["sign-in-settings"],
  ["sign-in-settings", { before: press("Register a provider") }],
  ["sign-in-settings", { before: press("Change") }],
  ["identity-providers/{signin}"],
  ["identity-providers/{signin}", { before: press("Change") }],
  ["audit"],
  ["audit?outcome=denied"],
  ["audit/00000000-0000-7000-8000-000000000000"],
  ["me"],
  ["keys"],
];

/** Presses a button before the page is checked. @param {string} name */
function press(name) {
  return (page) => page.getByRole("button", { name }).click();
}

stage(world);

for (const [path, options = {}] of PAGES)
  test(`the page ${path}${options.before ? " and its dialog" : ""}`, async () => {
    const named = path.replace(/\{(\w+)\}/g, (_, name) => names[name] ?? name);
    await checkPage(browser, place.url, named, options.signedOut ? options : { token: place.token, ...options });
  });
