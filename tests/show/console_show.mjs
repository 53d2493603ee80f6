/**
 * The story of `tests/show/console`: it fills a server, opens its console at the server's own address, looks
 * at every page, has the stories told, and prints what it saw. It fails where a figure is not what it has to be.
 */

import { spawn } from "node:child_process";
import http from "node:http";
import { fileURLToPath } from "node:url";
import { PICTURES, examine, launch, open, visit } from "../console/browser.mjs";
import { contractFaults } from "../console/contract.mjs";
import { PAGES, addressOf } from "../console/pages.mjs";
import { server, world } from "../console/server.mjs";
import { DAYS, month } from "./console_month.mjs";

const top = fileURLToPath(new URL("../../", import.meta.url));
const FIRST_VIEW = 45_000;
const ALL = 220_000;

/** What people do, by keys alone: a file of the tests, and the beginning of the test's name. */
const STORIES = [
  ["the first day: enrolment, key, run", "access", "the first day"],
  ["approve with a reason", "approvals", "a reviewer approves with a reason"],
  ["register a webhook, and send again", "webhooks", "an endpoint is registered with a new signing secret"],
  ["make a version live, and undo it", "agents", "a version goes live"],
  ["add a member", "access", "an owner adds a member"],
  ["start a flow from its form, and follow it", "flows", "a flow is started from its form"],
  ["read why a request was denied", "access", "2.5: an admin reads why"],
  ["make a key, and revoke it", "access", "a key is made with limits"],
  ["end a session", "access", "a session is ended"],
  ["a deep link while signed out", "access", "5.1: a deep link while signed out"],
  ["compare two versions", "agents", "two versions are compared"],
  ["cancel a run of a flow", "flows", "a run of a flow is cancelled"],
];

const wrong = [];

/** A line of the show; what is not as it has to be is named at its end. */
function line(name, value, isGood = true) {
  console.log(`  ${name.padEnd(44)} ${value}`);
  if (!isGood) wrong.push(name);
}

const escaped = (text) => text.replace(/[.*+?^${}()|[\]\\]/g, "\\$&");

/** Runs a file of tests, or those of it that begin so. @param {string} file @param {string[]} names @returns {Promise<string>} what it said */
function tested(file, names) {
  const pattern = names.length ? [`--test-name-pattern=^(${names.map(escaped).join("|")})`] : [];
  return new Promise((done, failed) => {
    const child = spawn("node", ["--test", "--test-reporter=tap", ...pattern, `tests/console/${file}.test.mjs`], { cwd: top, stdio: ["ignore", "pipe", "inherit"] });
    let said = "";
    child.stdout.setEncoding("utf8").on("data", (text) => (said += text));
    child.once("error", failed);
    child.once("close", () => done(said));
  });
}

/** Looks at every page. */
async function looked(browser, place, names) {
  const found = { pages: 0, stops: 0, axe: [], walk: [], reports: [], others: [] };
  for (const [path, options = {}] of PAGES) {
    const seen = await examine(browser, place.url, addressOf(path, names), options.signedOut ? options : { token: place.token, ...options });
    found.pages++;
    found.stops += seen.stops;
    for (const kind of ["axe", "walk", "reports", "others"]) found[kind].push(...seen[kind].map((one) => `${path}: ${one}`));
  }
  return found;
}

/** The first view of somebody who is signed in and arrives at the runs, in a browser that has nothing yet. */
async function firstView(browser, place) {
  const tab = await open(browser, place.url, { token: place.token });
  const answers = [];
  tab.page.on("requestfinished", (request) => new URL(request.url()).pathname.startsWith("/console") && answers.push(request.sizes()));
  await visit(tab, "runs", { ready: "tbody tr a" });
  const rows = await tab.page.evaluate(() => performance.now());
  const sizes = await Promise.all([...answers]);
  const paint = await tab.page.evaluate(() => performance.getEntriesByName("first-contentful-paint")[0]?.startTime ?? 0);
  await tab.context.close();
  return { bytes: sizes.reduce((sum, one) => sum + one.responseBodySize, 0), paint: Math.round(paint), rows: Math.round(rows) };
}

/** A file as a browser gets it: how many bytes, and the text. @param {string} url @returns {Promise<{ bytes: number, text: string }>} */
async function got(url) {
  const answer = await fetch(url);
  if (!answer.ok) throw new Error(`${url} was answered ${answer.status}`);
  const text = await answer.text();
  const bytes = await new Promise((done, failed) => {
    let sum = 0;
    http.get(url, { headers: { "accept-encoding": "gzip" } }, (sent) => sent.on("data", (chunk) => (sum += chunk.length)).on("end", () => done(sum))).once("error", failed);
  });
  return { bytes, text };
}

/** All that the page leads to, compressed. @param {string} url of the server */
async function whole(url) {
  const page = await got(`${url}/console/`);
  const map = Object.entries(JSON.parse(/<script type="importmap">([^]*?)<\/script>/.exec(page.text)?.[1] ?? "{}").imports ?? {}).sort(([one], [other]) => other.length - one.length);
  const resolved = (name, from) => {
    const [prefix, to] = map.find(([key]) => name === key || (key.endsWith("/") && name.startsWith(key))) ?? [];
    return new URL(prefix ? to + name.slice(prefix.length) : name, from).href;
  };
  const waiting = [...page.text.matchAll(/(?:href|src|data-later)="(\/console\/[^"]+)"/g)].map(([, path]) => `${url}${path}`);
  const seen = new Set(waiting);
  let bytes = page.bytes;
  for (const file of waiting) {
    const { bytes: own, text } = await got(file);
    bytes += own;
    if (!/\.m?js$/.test(file)) continue;
    // What it imports at its begin, what it hands on, and what it loads later. A page shows code of its readers as text, too.
    for (const [, now, later] of text.matchAll(/^(?:import\s*|(?:import|export)\b[^"'`;=()]*\bfrom\s*)["']([^"']+)["']|\bimport\(["']([^"']+)["']\)/gm)) {
      const next = resolved(now ?? later, file);
      if (seen.has(next)) continue;
      seen.add(next);
      waiting.push(next);
    }
  }
  return { bytes, files: seen.size + 1 };
}

/** Has the stories told. @returns {Promise<number>} how many were as told */
async function told() {
  let good = 0;
  for (const file of new Set(STORIES.map(([, file]) => file))) {
    const own = STORIES.filter((story) => story[1] === file);
    const said = await tested(file, own.map(([, , name]) => name));
    for (const [title, , name] of own) {
      const isGood = new RegExp(`^\\s*ok \\d+ - ${escaped(name)}(?!.*# SKIP)`, "m").test(said);
      if (isGood) good++;
      line(title, isGood ? "as told" : "NOT as told", isGood);
      if (!isGood) console.log(said.split("\n").filter((text) => text.includes("error:")).slice(0, 3).join("\n"));
    }
  }
  return good;
}

const ends = [];
let browser;
try {
  console.log("The house and its month:");
  const place = await server({ after: (end) => ends.push(end) });
  const names = await world(place.api);
  const work = await month(place, names, ends);
  line("runs of the month", work.runs);
  const days = new Set((await place.api.usage.sum({ by: ["day"] })).data.map((one) => one.day)).size;
  line("days of it with usage", `${days} of ${DAYS}`, days >= DAYS - 1);
  line("of them, waiting for a person", work.waiting);
  browser = await launch();
  const view = await firstView(browser, place);
  const all = await whole(place.url);
  const found = await looked(browser, place, names);
  await browser.close();
  browser = undefined;
  const undescribed = await contractFaults();
  console.log("The stories, by keys alone:");
  const good = await told();
  console.log("What each is offered:");
  const acts = /shown and allowed: (\d+), hidden and refused: (\d+), wrong: (\d+)/.exec(await tested("permit", []))?.slice(1) ?? ["?", "?", "?"];
  line("acts shown and allowed", acts[0], Number(acts[0]) > 0);
  line("acts hidden and refused", acts[1], Number(acts[1]) > 0);
  line("wrong", acts[2], acts[2] === "0");
  console.log("The figures:");
  line("pages and dialogs", `${found.pages}, each in light, dark and 320 px`);
  line("first view, compressed", `${view.bytes} bytes of at most ${FIRST_VIEW}`, view.bytes > 0 && view.bytes <= FIRST_VIEW);
  line("all files, compressed", `${all.bytes} bytes of at most ${ALL}, ${all.files} files`, all.bytes <= ALL);
  line("first paint, nothing in the browser yet", `${view.paint} ms`);
  line("rows, nothing in the browser yet", `${view.rows} ms`);
  for (const [name, faults] of /** @type {[string, string[]][]} */ ([["violations that axe finds", found.axe], [`stops obscured, of ${found.stops} of the Tab key`, found.walk], ["reports of the policy, and errors", found.reports], ["pages too wide, or without a title", found.others], ["requests and answers not as described", undescribed]])) {
    line(name, faults.length, !faults.length);
    for (const fault of faults) console.log(`    ${fault}`);
  }
  console.log(`  pictures in ${PICTURES}`);
  for (const name of wrong) console.error(`console: not as it has to be: ${name}`);
  console.log(`${good} of ${STORIES.length} stories as told, ${found.pages} pages; axe ${found.axe.length}, obscured ${found.walk.length}, policy ${found.reports.length}; first view ${view.bytes} bytes, all ${all.bytes}; acts shown ${acts[0]}, hidden ${acts[1]}, wrong ${acts[2]}`);
} finally {
  await browser?.close();
  for (const end of ends.reverse()) await end();
}
if (wrong.length) process.exitCode = 1;
