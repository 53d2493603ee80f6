/** Every page of the console, as its tests and the show open them. A page adds its line to PAGES. */

/** Below `/console/`; names in braces are the world's (`server.mjs`). @type {[string, object?][]} */
export const PAGES = [
  ["sign-in", { signedOut: true, ready: "form" }],
  ["welcome"],
  ["no-such-page"],
  ["dev/components"],
  ["inbox"],
  ["inbox", { before: approving }],
  ["approvals"],
  ["approvals?status=approved"],
  ["approvals/{shopApproval}"],
  ["approvals/{shopApproval}", { before: press("Escalate") }],
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
  ["usage"],
  ["usage?by=agent&days=7&bars=tokens"],
  ["webhooks"],
  ["webhooks", { before: press("Add an endpoint") }],
  ["webhooks/{endpoint}"],
  ["webhooks/{endpoint}/deliveries/{delivery}"],
  ["webhooks/00000000-0000-7000-8000-000000000000"],
  ["secrets"],
  ["secrets", { before: press("Put a secret") }],
  ["secrets", { before: press("Allow a use") }],
  ["environments"],
  ["environments", { before: press("Put a variable") }],
  ["environments/production"],
  ["environments/nowhere"],
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
  ["identity-providers/{signin}", { before: (page) => press("Check")(page).then(() => page.getByText("Its document").waitFor()) }],
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

/** Approves the first row, as far as its dialog. @param {any} page */
async function approving(page) {
  for (const key of ["j", "a"]) await page.keyboard.press(key);
  await page.waitForSelector('dialog button.approve:not([aria-disabled="true"])');
}

/** The address of a page's line. @param {string} path @param {Record<string, string>} names of the world */
export function addressOf(path, names) {
  return path.replace(/\{(\w+)\}/g, (_, name) => names[name] ?? name);
}
