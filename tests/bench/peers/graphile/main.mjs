// graphile-worker as a peer of the benchmark of job queues: orders on standard input, answers on standard output, one
// JSON object a line. The argument is the URL of a database of its own; it runs in the directory that holds its
// packages.
//
// {"fill": n} leaves n no-op jobs waiting, with "later" for the next day; {"drain": n} works them until the last is
// deleted; {"starts": n} adds n jobs to the idle queue, one after another, and times each start.

import { once } from "node:events";
import { readFileSync } from "node:fs";
import { createRequire } from "node:module";
import { join } from "node:path";
import { createInterface } from "node:readline";
import { setTimeout as sleep } from "node:timers/promises";
import { pathToFileURL } from "node:url";

const require = createRequire(join(process.cwd(), "package.json"));
const installed = (name) => import(pathToFileURL(require.resolve(name)));
const { Logger, makeWorkerUtils, run } = await installed("graphile-worker");
const { Pool } = (await installed("pg")).default;

// Together the configuration that the documents' page on performance names for its figures, of throughput and of the
// time to a start alike.
const concurrentJobs = 24;
const connections = 25;
const batches = { localQueue: { size: 500 }, completeJobBatchDelay: 0, failJobBatchDelay: 0 };
const addedAtOnce = 5_000;
// Between a start and the next job.
const idleMs = 10;
const patienceMs = 5_000;

const pgPool = new Pool({ connectionString: process.argv[2], max: connections, idleTimeoutMillis: 0 });
const failed = (error) => console.error(`graphile-worker: ${error}`);
pgPool.on("error", failed);
pgPool.on("connect", (client) => client.on("error", failed));
const logger = new Logger(() => (level, message) => {
  if (level === "error" || level === "warning") console.error(`graphile-worker: ${message}`);
});
const utils = await makeWorkerUtils({ pgPool, logger });
await utils.migrate();
// Every connection stands before anything is timed.
const clients = await Promise.all(Array.from({ length: connections }, () => pgPool.connect()));
for (const client of clients) client.release();

const started = (noop) =>
  run({
    preset: { worker: { concurrentJobs, maxPoolSize: connections, ...batches } },
    pgPool,
    logger,
    noHandleSignals: true,
    taskList: { noop },
    parsedCronItems: [],
  });

async function isEmpty() {
  const answer = await pgPool.query("select exists (select from graphile_worker._private_jobs) as waiting");
  return !answer.rows[0].waiting;
}

async function fill(jobs, later) {
  const spec = { identifier: "noop", payload: {} };
  if (later) spec.runAt = new Date(Date.now() + 24 * 3600 * 1000);
  for (let left = jobs; left > 0; left -= addedAtOnce) {
    const length = Math.min(left, addedAtOnce);
    await utils.addJobs(Array.from({ length }, () => spec));
  }
  return { filled: jobs };
}

// From before the worker starts until the last job is gone; its batches are written after the events of their jobs.
async function drain(jobs) {
  let ran = 0;
  const { promise: all, resolve: done } = Promise.withResolvers();
  const began = performance.now();
  const runner = await started(() => {
    ran += 1;
    if (ran === jobs) done();
  });
  await all;
  while (!(await isEmpty())) await sleep(1);
  const seconds = (performance.now() - began) / 1000;
  await runner.stop();
  if (ran !== jobs) throw new Error(`${ran} of ${jobs} jobs ran`);
  return { seconds };
}

async function starts(jobs) {
  let begin;
  const runner = await started(() => begin(performance.now()));
  const milliseconds = [];
  for (let left = jobs; left > 0; left -= 1) {
    await sleep(idleMs);
    const { promise: start, resolve } = Promise.withResolvers();
    begin = resolve;
    await utils.addJob("noop", {});
    const committed = performance.now();
    const late = setTimeout(() => resolve(NaN), patienceMs);
    const took = (await start) - committed;
    clearTimeout(late);
    if (Number.isNaN(took)) throw new Error("a job did not start");
    milliseconds.push(Math.max(0, took));
  }
  await runner.stop();
  return { milliseconds };
}

function carryOut(order) {
  if (order.fill) return fill(order.fill, order.later);
  if (order.drain) return drain(order.drain);
  if (order.starts) return starts(order.starts);
  throw new Error("an unknown order");
}

async function say(answer) {
  if (!process.stdout.write(`${JSON.stringify(answer)}\n`)) await once(process.stdout, "drain");
}

const { version } = JSON.parse(readFileSync(join("node_modules", "graphile-worker", "package.json"), "utf8"));
await say({ versions: [`graphile-worker ${version}`, `Node ${process.versions.node}`] });
for await (const line of createInterface({ input: process.stdin })) {
  await say(await carryOut(JSON.parse(line)));
}
await utils.release();
await pgPool.end();
