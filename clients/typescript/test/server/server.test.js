/**
 * The client on a real server, which `tests/it/clients` starts and names in the environment: its address and token, an
 * agent, a project, a flow of many tasks, and a flow that asks a reviewer.
 */

import assert from "node:assert/strict";
import { execFile, spawn } from "node:child_process";
import { once } from "node:events";
import { mkdirSync, mkdtempSync, readFileSync, rmSync, symlinkSync, writeFileSync } from "node:fs";
import net from "node:net";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { test } from "node:test";
import { fileURLToPath } from "node:url";
import { promisify } from "node:util";
import { AgentRuntime, parseEvent } from "../../src/index.js";
import { connections, errorOf, eventually, random, serve } from "../support.js";

const { URL: url, TOKEN: token, AGENT: agentId, PROJECT: projectId, SECRET: secret, ENVIRONMENT: envName } = process.env;
const CUTS = Number(process.env.AGENT_RUNTIME_CUTS ?? 50);
const here = (path) => fileURLToPath(new globalThis.URL(path, import.meta.url));
const runtime = new AgentRuntime({ baseUrl: url, token });
const through = (line) => new AgentRuntime({ baseUrl: line.url, token });

/**
 * A line to the server. Each connection is handed to `use(near, far)`, which joins the ends or does not. What the server
 * says of the pause before coming back is shortened.
 */
const line = (t, use) => connections(t, (near, number) => {
  const far = net.connect(new globalThis.URL(url).port, "127.0.0.1");
  far.on("error", () => near.destroy());
  near.on("close", () => far.destroy());
  far.on("close", () => near.end());
  near.on("data", (piece) => far.write(piece));
  use(near, far, number);
});
const hasten = (bytes) => Buffer.from(bytes.toString("latin1").replace("retry: 2000", "retry: 0001"), "latin1");

test(`a flow's events come once and in order over ${CUTS} cuts at random bytes`, async (t) => {
  const { run } = await runtime.runs.create({ flowId: "tests.many" });
  assert.equal((await runtime.runs.wait(run.id)).status, "completed");
  const wanted = [];
  for (let more = true; more; ) {
    const page = await runtime.runs.progress(run.id, { after: wanted.at(-1)?.seq ?? 0, limit: 200 });
    wanted.push(...page.data);
    more = page.hasMore;
  }
  assert.ok(wanted.length > 200, `${wanted.length} events`);
  const chance = random(3);
  // About the head of an answer, and so much that all cuts come before the end.
  const length = () => 350 + chance() * (JSON.stringify(wanted).length / CUTS);
  let cuts = 0;
  const cut = await line(t, (near, far) => {
    let most = cuts++ < CUTS ? Math.floor(length()) : Infinity;
    far.on("data", (bytes) => {
      near.write(hasten(bytes.subarray(0, Math.max(0, most))));
      if ((most -= bytes.length) <= 0) chance() < 0.5 ? near.end() : near.resetAndDestroy();
    });
  });
  const seen = [];
  for await (const event of through(cut).runs.follow(run.id, { failures: 1_000 })) seen.push(event);
  assert.deepEqual(seen, wanted);
  assert.ok(cuts > CUTS);
});

test("a program that is killed while it follows goes on where it was", async (t) => {
  const { run } = await runtime.runs.create({ flowId: "tests.many" });
  await runtime.runs.wait(run.id);
  // So slow that the program is in the middle when it dies.
  const slow = await line(t, (near, far) => far.on("data", (bytes) => {
    far.pause();
    for (let at = 0; at < bytes.length; at += 500) setTimeout(() => near.write(bytes.subarray(at, at + 500)), at / 50);
    setTimeout(() => far.resume(), bytes.length / 50 + 1);
  }));
  const program = `
    import { AgentRuntime } from ${JSON.stringify(new globalThis.URL("../../src/index.js", import.meta.url))};
    const after = Number(process.argv[1]);
    for await (const { seq } of new AgentRuntime().runs.follow(${JSON.stringify(run.id)}, { after })) process.stdout.write(seq + "\\n");`;
  const env = { ...process.env, AGENT_RUNTIME_URL: slow.url, AGENT_RUNTIME_TOKEN: token };
  const seen = [];
  let deaths = 0;
  const { lastSeq } = await runtime.runs.get(run.id);
  while (seen.at(-1) !== lastSeq) {
    const killed = spawn(process.execPath, ["--input-type=module", "-e", program, String(seen.at(-1) ?? 0)], { env, stdio: ["ignore", "pipe", "inherit"] });
    let text = "";
    killed.stdout.on("data", (piece) => {
      text += piece;
      if (deaths < 4 && text.split("\n").length > 20) killed.kill("SIGKILL");
    });
    const [, signal] = await once(killed, "close");
    deaths += signal === "SIGKILL";
    // What was half written when it died is not had.
    seen.push(...text.split("\n").slice(0, -1).map(Number));
  }
  assert.deepEqual(seen, Array.from({ length: lastSeq }, (_, number) => number + 1));
  assert.equal(deaths, 4);
});

test("a start whose answer is lost is one run", async (t) => {
  let lost = 0;
  const losing = await line(t, (near, far) => far.on("data", (bytes) => (lost++ === 0 ? near.resetAndDestroy() : near.write(bytes))));
  const { run } = await through(losing).runs.create({ agentId, message: "Once", labels: { test: "lost" } });
  const runs = [];
  for await (const one of runtime.runs.list({ label: ["test:lost"] })) runs.push(one.id);
  assert.deepEqual(runs, [run.id]);
  assert.ok(lost > 1, "the answer was lost");
  // Without a key nobody knows, and the caller is told.
  lost = 0;
  assert.equal((await errorOf(through(losing).projects.create({ name: "lost" }))).code, "network");
});

test("a turn is followed with a public token, and its text comes once", async () => {
  const { run, publicToken } = await runtime.runs.create({ agentId, message: "Hello" });
  const reader = AgentRuntime.forRun({ baseUrl: url, publicToken: publicToken.token });
  let text = "";
  let whole;
  for await (const event of reader.follow(run.id)) {
    if (event.kind === "text.delta") text += event.data.text;
    if (event.kind === "step.completed") whole = event.data.text;
  }
  assert.ok(text && whole.startsWith(text), text);
  assert.equal((await reader.progress(run.id)).run.status, "completed");
  const other = await runtime.runs.create({ agentId, message: "Hello" });
  const error = await errorOf(reader.progress(other.run.id));
  assert.deepEqual([error.code, error.reason], ["auth", "forbidden"]);
  assert.equal((await runtime.runs.get(run.id)).agent.id, agentId);
});

test("webhooks of the server verify, a test included, and no longer with another secret", async (t) => {
  const events = [];
  const receiver = await serve(t, async ({ body, headers }) => {
    events.push(await parseEvent({ body, headers, secret: ["whsec_AAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAA", secret] }));
    assert.equal((await errorOf(parseEvent({ body, headers, secret: "whsec_AAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAA" }))).name, "WebhookSignatureError");
    return { status: 204, headers: {} };
  });
  const { endpointId } = await runtime.webhookEndpoints.create({ url: `${receiver.url}/hooks`, events: ["run.finished", "approval.requested"], secretRef: { envName, name: "signing" } });
  await runtime.webhookEndpoints.sendTest(endpointId);
  const { run } = await runtime.runs.create({ agentId, message: "Hello" });
  // Runs of the tests before may end only now.
  const finished = () => events.find(({ type, data }) => type === "run.finished" && data.run.id === run.id);
  await eventually("both deliveries", () => finished() && events.some(({ type }) => type === "webhook.test"));
  assert.equal(finished().data.run.agent.id, agentId);
  assert.equal(events.find(({ type }) => type === "webhook.test").data.endpointId, endpointId);
  await runtime.webhookEndpoints.unregister(endpointId);
  assert.equal((await errorOf(runtime.webhookEndpoints.get(endpointId))).code, "not-found");
});

test("a list of the server is read by pages", async () => {
  for (let number = 0; number < 5; number++) await runtime.runs.create({ agentId, message: "Hello", labels: { test: "list" } });
  const ids = [];
  for await (const { id } of runtime.runs.list({ label: ["test:list"], limit: 2 })) ids.push(id);
  assert.equal(new Set(ids).size, 5);
  const page = await runtime.audit.authz({ order: "desc", limit: 1 });
  assert.ok(page.data.length <= 1);
});

test("the README's programs do what it says", async (t) => {
  const text = readFileSync(here("../../README.md"), "utf8");
  const blocks = [...text.matchAll(/```js\n(.*?)```/gs)].map(([, block]) => block);
  assert.equal(blocks.length, 7);
  const [follow, approve, changes, list, denied, hooks, browser] = blocks;
  const directory = mkdtempSync(join(tmpdir(), "agent-runtime-readme-"));
  t.after(() => rmSync(directory, { recursive: true, force: true }));
  mkdirSync(join(directory, "node_modules"));
  symlinkSync(here("../.."), join(directory, "node_modules/agent-runtime"));
  const env = { ...process.env, AGENT_RUNTIME_URL: url, AGENT_RUNTIME_TOKEN: token };
  const given = `const agentId = ${JSON.stringify(agentId)}, projectId = ${JSON.stringify(projectId)}, secret = ${JSON.stringify(secret)};`;
  const head = `import { AgentRuntime } from "agent-runtime"; const runtime = new AgentRuntime(); ${given}\n`;
  const prints = async (name, program) => {
    writeFileSync(join(directory, name), program);
    const { stdout, stderr } = await promisify(execFile)(process.execPath, [name], { cwd: directory, env, timeout: 30_000 });
    return stdout + stderr;
  };
  const said = await prints("follow.mjs", `${given}\n${follow}\nconsole.log("\\n" + JSON.stringify(output));`);
  const [streamed, output] = said.trim().split("\n");
  assert.ok(JSON.parse(output).text.startsWith(streamed) && streamed, said);
  assert.match(await prints("approve.mjs", head + approve), /Pay a refund/);
  assert.match(await prints("changes.mjs", head + changes), /completed\n$/);
  assert.match(await prints("list.mjs", head + list), /\d+ (true|false)/);
  assert.match(await prints("denied.mjs", head + denied), /already viewer/);
  assert.match(await prints("browser.mjs", head + browser), /run\.created\n(.*\n)*run\.completed/);
  const receiver = `${given}\n${hooks}\nserver.listen(0, "127.0.0.1", async () => {
    const hook = \`http://127.0.0.1:\${server.address().port}/\`;
    const { AgentRuntime } = await import("agent-runtime");
    const runtime = new AgentRuntime();
    const forged = await fetch(hook, { method: "POST", body: "{}" });
    console.log(forged.status);
    const made = await runtime.webhookEndpoints.create({ url: hook, events: ["run.finished"], secretRef: { envName: ${JSON.stringify(envName)}, name: "signing" } });
    await runtime.runs.create({ agentId, message: "Hello" });
    server.on("request", (_, response) => response.on("finish", async () => {
      if (response.statusCode !== 204) return;
      await runtime.webhookEndpoints.unregister(made.endpointId);
      server.close();
      server.closeAllConnections();
    }));
  });`;
  assert.match(await prints("hooks.mjs", receiver), /400\n1\.0\.0 completed/);
});
