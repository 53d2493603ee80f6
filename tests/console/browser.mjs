/**
 * A browser before the console, and what every page is checked for.
 *
 * `examine` opens a page and asks: does axe find anything; is there a report of the content security policy, an error in the
 * console, a request elsewhere; one `h1` and a title of its own; is anything wider than 320 px; and can every stop of the Tab key
 * be seen, is covered by nothing and has 24 px. `checkPage` takes nothing of it. Whatever a page asks of the server is looked at
 * by the API description (`contract.mjs`).
 */

import assert from "node:assert/strict";
import { execFileSync } from "node:child_process";
import { mkdirSync } from "node:fs";
import { createRequire } from "node:module";
import { join } from "node:path";
import { fileURLToPath } from "node:url";
import { watched } from "./contract.mjs";

const top = fileURLToPath(new URL("../../", import.meta.url));
const parts = execFileSync(join(top, "tests/setup/where"), { encoding: "utf8" }).trim();
const require = createRequire(join(parts, "console-tests/node_modules/any.js"));
const { chromium } = require("playwright-core");
const axe = require("axe-core").source;

/** Where pictures of the pages are left. */
export const PICTURES = join(process.env.CARGO_TARGET_DIR ?? join(top, "target"), "console");
const RULES = ["wcag2a", "wcag2aa", "wcag21a", "wcag21aa", "wcag22aa", "best-practice"];
const MOST_STOPS = 150;
const PATIENCE_MS = 120_000;
const SMALLEST = 24;

/** There is no graphics card: a process that stands for one, and draws as one, takes a seventh of the time. */
const WITHOUT_CARD = ["--disable-gpu", "--disable-software-rasterizer", "--in-process-gpu"];

export function launch() {
  return chromium.launch({ executablePath: join(parts, "chromium/browser"), args: [...WITHOUT_CARD, ...(process.getuid?.() === 0 ? ["--no-sandbox"] : [])] });
}

/**
 * A page in a context of its own that keeps what went wrong. `faults()` is empty where nothing did.
 * @param {any} browser
 * @param {string} url of the server
 * @param {{ theme?: "light" | "dark", width?: number, height?: number, token?: string, signedOut?: boolean }} [options]
 */
export async function open(browser, url, { theme = "light", width = 1280, height = 800, token, signedOut = false } = {}) {
  const context = await browser.newContext({ colorScheme: theme, viewport: { width, height }, reducedMotion: "reduce" });
  // A busy machine takes its time.
  context.setDefaultTimeout(PATIENCE_MS);
  const page = await context.newPage();
  watchReads(page);
  const faults = [];
  const origin = new URL(url).origin;
  watched(page, origin, faults);
  page.on("pageerror", (error) => faults.push(`error: ${error.message}`));
  page.on("console", (said) => {
    // A browser reports answers 4xx as errors; the page shows those itself.
    if (said.type() === "error" && !said.text().startsWith("Failed to load resource")) faults.push(`console: ${said.text()}`);
  });
  page.on("request", (request) => {
    if (!request.url().startsWith(origin) && !request.url().startsWith("data:")) faults.push(`request elsewhere: ${request.url()}`);
  });
  page.on("response", (answer) => {
    if (answer.status() >= 500 && answer.status() !== 501) faults.push(`${answer.status()} of ${answer.url()}`);
    if (answer.status() === 404 && answer.url().startsWith(`${origin}/console/`)) faults.push(`no such file: ${answer.url()}`);
  });
  await context.addInitScript(() => addEventListener("securitypolicyviolation", (event) => console.error(`policy: ${event.violatedDirective} ${event.blockedURI} ${event.sample}`)));
  if (signedOut) await context.addInitScript(() => location.origin !== "null" && sessionStorage.setItem("agent-runtime-signed-out", "yes"));
  if (token) {
    // It has the cookies of the browser, and takes none of its time.
    const answer = await context.request.post(`${url}/v1/sign-in/token`, { headers: { origin }, data: { token } });
    assert.equal(answer.status(), 204, "the token signs in");
  }
  return { context, page, faults: () => faults, url };
}

/** How often pages read again what no hint tells of (`live.js`). */
export const CLOCK_MS = 5000;

/** Pages that are opened from now on have no clock: only hints make them read again. */
export function withoutClock(context) {
  return context.addInitScript((most) => {
    const begin = window.setInterval;
    window.setInterval = /** @type {any} */ ((act, ms, ...given) => (ms >= most ? 0 : begin(act, ms, ...given)));
  }, CLOCK_MS);
}

/** As a browser does it with a tab in the background. */
export const hide = (page, isHidden) =>
  page.evaluate((isHidden) => {
    Object.defineProperty(document, "hidden", { configurable: true, get: () => isHidden });
    document.dispatchEvent(new Event("visibilitychange"));
  }, isHidden);

/** The streams of a tab, as the browser sees them. */
export function streamsOf(page) {
  const open = new Set();
  const seen = { most: 0, begun: 0, open };
  page.on("request", (request) => {
    if (!/\/v1\/(changes|runs\/[^/]+\/progress)\/stream\b/.test(request.url())) return;
    open.add(request);
    seen.begun++;
    seen.most = Math.max(seen.most, open.size);
  });
  for (const end of ["requestfinished", "requestfailed"]) page.on(end, (request) => open.delete(request));
  return seen;
}

/** Goes to a page of the console, and waits until it has read what it shows. */
export async function visit(tab, path, { ready = "h1" } = {}) {
  await tab.page.goto(`${tab.url}/console/${path}`);
  await tab.page.waitForSelector(ready, { timeout: 60_000 });
  await settled(tab.page);
}

/** What each page asked and was not answered, but for streams. @type {WeakMap<object, Set<any>>} */
const reads = new WeakMap();

function watchReads(page) {
  const asked = new Set();
  reads.set(page, asked);
  page.on("request", (request) => asked.add(request));
  page.on("response", (answer) => answer.headers()["content-type"]?.startsWith("text/event-stream") && asked.delete(answer.request()));
  for (const end of ["requestfinished", "requestfailed"]) page.on(end, (request) => asked.delete(request));
}

/** Goes to a page as a link does, without loading the document anew. @param {any} page @param {string} to below /console/ */
export async function goTo(page, to) {
  await page.evaluate(async (to) => {
    // The modules of the first view are one file.
    const { $m } = await import("/console/assets/app.js");
    $m.find((module) => "go" in module).go(to);
  }, `/console/${to}`);
}

/** Nothing on the page is being read any more: neither what it says that it reads, nor names that it shows in place of ids. */
export async function settled(page) {
  await page.waitForFunction(() => document.querySelector("h1") && !document.querySelector("main [aria-busy=true], main .loading"), undefined, { timeout: 60_000 });
  const asked = reads.get(page) ?? new Set();
  // What was read can be a reason to read more: it is quiet when it was so for three looks.
  for (let quiet = 0, end = Date.now() + 60_000; quiet < 3; await page.waitForTimeout(20)) {
    quiet = asked.size ? 0 : quiet + 1;
    assert.ok(Date.now() < end, `still being read: ${[...asked].map((request) => request.url()).join(", ")}`);
  }
  await page.evaluate(() => document.fonts.ready);
}

/** @returns {Promise<string[]>} what axe finds, a line each */
export async function axeFinds(page) {
  await page.evaluate(axe + "; undefined").catch(async () => {
    // The policy of the page refuses scripts as text in some worlds: by the protocol it never does.
    const session = await page.context().newCDPSession(page);
    await session.send("Runtime.evaluate", { expression: axe });
  });
  const violations = await page.evaluate(async (rules) => (await window.axe.run(document, { runOnly: { type: "tag", values: rules }, resultTypes: ["violations"] })).violations.map((one) => ({ id: one.id, help: one.help, nodes: one.nodes.map((node) => `${node.target.join(" ")}: ${node.any[0]?.message ?? node.all[0]?.message ?? ""}`) })), RULES);
  return violations.map((one) => `${one.id}: ${one.help}\n    ${one.nodes.slice(0, 4).join("\n    ")}`);
}

/** Whether anything is wider than the window. */
export async function overflow(page) {
  return page.evaluate(() => {
    const width = document.documentElement.clientWidth;
    if (document.documentElement.scrollWidth <= width) return [];
    const wide = [...document.querySelectorAll("body *")].filter((one) => one.getBoundingClientRect().right > width + 1 && !one.closest(".table-box, .tabs, pre, .json, .diff, .scrolls"));
    return (wide.length ? wide : [document.body]).slice(0, 4).map((one) => `${one.tagName.toLowerCase()}.${one.className} ends at ${Math.round(one.getBoundingClientRect().right)} of ${width}`);
  });
}

/** Goes through the page by the Tab key, once each way. @returns {Promise<{ stops: number, faults: string[] }>} */
export async function walk(page) {
  const faults = [];
  let stops = 0;
  for (const key of ["Tab", "Shift+Tab"]) {
    await page.evaluate((key) => {
      /** @type {HTMLElement} */ (document.activeElement)?.blur();
      window.walked = new Set();
      scrollTo(0, key === "Tab" ? 0 : document.body.scrollHeight);
    }, key);
    for (let step = 0; step < MOST_STOPS; step++) {
      await page.keyboard.press(key);
      const seen = await page.evaluate((smallest) => {
        const on = document.activeElement;
        if (!on || on === document.body) return { isOver: true };
        if (window.walked.has(on)) return { isOver: true };
        window.walked.add(on);
        const box = on.getBoundingClientRect();
        const style = getComputedStyle(on);
        const name = `${on.tagName.toLowerCase()} "${(on.getAttribute("aria-label") ?? on.textContent ?? "").trim().slice(0, 40)}"`;
        const said = [];
        const outline = parseFloat(style.outlineWidth) >= 2 && style.outlineStyle !== "none";
        if (!outline && !on.matches("a.skip")) said.push(`${name}: focus cannot be seen`);
        if ((box.width < smallest || box.height < smallest) && !on.matches("input[type=radio], input[type=checkbox], p a, .markdown a")) said.push(`${name}: ${Math.round(box.width)} by ${Math.round(box.height)} px`);
        const inside = [[box.left + 3, box.top + 3], [box.left + box.width / 2, box.top + box.height / 2], [box.right - 3, box.bottom - 3]];
        const visible = inside.filter(([x, y]) => x >= 0 && y >= 0 && x < innerWidth && y < innerHeight);
        if (!visible.length) said.push(`${name}: out of sight`);
        else if (visible.every(([x, y]) => { const hit = document.elementFromPoint(x, y); return !hit || !(on.contains(hit) || hit.contains(on) || hit.closest("label")?.contains(on)); })) said.push(`${name}: covered`);
        return { said };
      }, SMALLEST);
      if (seen.isOver) break;
      stops++;
      faults.push(...seen.said);
    }
  }
  return { stops, faults: [...new Set(faults)] };
}

/**
 * Looks at a page in every way that it is checked: light and dark, 1280 and 320 px, by axe and by the Tab key.
 * @param {any} browser
 * @param {string} url
 * @param {string} path below `/console/`
 * @param {{ token?: string, signedOut?: boolean, ready?: string, before?: (page: any) => Promise<void> }} [options] `before`: what opens first
 * @returns {Promise<{ stops: number, axe: string[], walk: string[], reports: string[], others: string[] }>} what is wrong, by what found
 *   it; `reports`: of the browser, the policy's among them
 */
export async function examine(browser, url, path, { ready, before, ...options } = {}) {
  const name = `${path.replace(/[^a-z]+/gi, "-").slice(0, 60) || "first"}${before ? "-dialog" : ""}`;
  mkdirSync(PICTURES, { recursive: true });
  const others = [];
  const tab = await open(browser, url, options);
  try {
    await visit(tab, path, { ready });
    await before?.(tab.page);
    await tab.page.screenshot({ path: join(PICTURES, `${name}.png`), fullPage: true });
    const heads = await tab.page.locator("h1").count();
    if (heads !== 1) others.push(`${heads} headings h1`);
    if (!(await tab.page.title()).includes(" · ")) others.push(`the title is "${await tab.page.title()}"`);
    const axe = await axeFinds(tab.page);
    const walked = await walk(tab.page);
    if (walked.stops < 2) others.push("the Tab key stops nowhere");
    await tab.page.setViewportSize({ width: 320, height: 640 });
    await settled(tab.page);
    others.push(...(await overflow(tab.page)).map((one) => `at 320 px: ${one}`));
    await tab.page.screenshot({ path: join(PICTURES, `${name}-320.png`) });
    await tab.page.emulateMedia({ colorScheme: "dark" });
    await tab.page.setViewportSize({ width: 1280, height: 800 });
    await settled(tab.page);
    await tab.page.screenshot({ path: join(PICTURES, `${name}-dark.png`), fullPage: true });
    axe.push(...(await axeFinds(tab.page)).filter((one) => one.startsWith("color-contrast")).map((one) => `dark: ${one}`));
    return { stops: walked.stops, axe, walk: walked.faults, reports: tab.faults(), others };
  } finally {
    await tab.context.close();
  }
}

/** Everything that each page is checked for; fails with all that is wrong. @param {Parameters<typeof examine>} given */
export async function checkPage(...given) {
  const { axe, walk, reports, others } = await examine(...given);
  const faults = [...others, ...axe, ...walk, ...reports];
  assert.deepEqual(faults, [], `${given[2]}:\n  ${faults.join("\n  ")}`);
}
