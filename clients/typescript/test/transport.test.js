import assert from "node:assert/strict";
import { execFile } from "node:child_process";
import { mkdtempSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { dirname, join } from "node:path";
import { test } from "node:test";
import { promisify } from "node:util";
import { AgentRuntime, VERSION } from "../src/index.js";
import { TOKEN, client, connections, errorOf, eventually, fault, json, onHead, serve } from "./support.js";

const RUN = { agentId: "01980000-0000-7000-8000-000000000001", message: "Hello" };
const NOW = { headers: { "retry-after": "0" } };

test("a request has the token, what it takes, and the client's name", async (t) => {
  const { url, requests } = await serve(t, () => json({ id: "1" }, 201));
  const runtime = client(`${url}/base/`, { headers: { "x-team": "a" } });
  await runtime.projects.create({ name: "ü" }, { headers: { traceparent: "00-1-1-01" } });
  const [{ method, url: target, headers, body }] = requests;
  assert.deepEqual([method, target, JSON.parse(body)], ["POST", "/base/v1/projects", { name: "ü" }]);
  assert.equal(headers.authorization, `Bearer ${TOKEN}`);
  assert.equal(headers["user-agent"], `agent-runtime-js/${VERSION}`);
  assert.equal(headers["content-type"], "application/json");
  assert.equal(headers.accept, "application/json");
  assert.deepEqual([headers["x-team"], headers.traceparent], ["a", "00-1-1-01"]);
});

test("a token that changes is asked for at each try", async (t) => {
  const { url, requests } = await serve(t, (_, number) => (number < 3 ? fault(503, "overloaded", NOW) : json({})));
  let asked = 0;
  await client(url, { token: async () => `svc_bt_${++asked}\n` }).runs.get("1");
  assert.deepEqual(requests.map(({ headers }) => headers.authorization), ["Bearer svc_bt_1", "Bearer svc_bt_2", "Bearer svc_bt_3"]);
});

test("the environment says what is not given, and a file of it goes first", async (t) => {
  const { url, requests } = await serve(t, () => json({}));
  const program = `import { AgentRuntime } from ${JSON.stringify(new URL("../src/index.js", import.meta.url))}; await new AgentRuntime().runs.get("1");`;
  const run = (env) => promisify(execFile)(process.execPath, ["--input-type=module", "-e", program], { env: { ...process.env, ...env } });
  const env = { AGENT_RUNTIME_URL: url, AGENT_RUNTIME_TOKEN: "svc_bt_of_the_environment" };
  await run(env);
  const file = join(mkdtempSync(join(tmpdir(), "agent-runtime-token-")), "token");
  writeFileSync(file, "svc_bt_of_a_file\n");
  t.after(() => rmSync(dirname(file), { recursive: true }));
  await run({ ...env, AGENT_RUNTIME_TOKEN_FILE: file });
  assert.deepEqual(requests.map(({ headers }) => headers.authorization), ["Bearer svc_bt_of_the_environment", "Bearer svc_bt_of_a_file"]);
  const failed = await errorOf(run({ ...env, AGENT_RUNTIME_TOKEN_FILE: "/nowhere" }));
  assert.match(failed.stderr, /AgentRuntimeError: AGENT_RUNTIME_TOKEN_FILE: cannot read \/nowhere/);
  await run({ ...env, AGENT_RUNTIME_TOKEN: "", AGENT_RUNTIME_TOKEN_FILE: "" });
  assert.equal(requests.at(-1).headers.authorization, undefined);
});

test("options that are none are refused", async (t) => {
  const { url, requests } = await serve(t, () => json({}));
  for (const timeoutMs of [0, -1, NaN]) {
    assert.equal((await errorOf(client(url, { timeoutMs }).runs.get("1"))).code, "invalid");
    assert.equal((await errorOf(client(url).runs.follow("1", { maxSilenceMs: timeoutMs }).next())).code, "invalid");
  }
  for (const retries of [-1, NaN]) assert.equal((await errorOf(client(url).runs.get("1", { retries }))).code, "invalid");
  const error = await errorOf(client(url).runs.cancel("1", { idempotencyKey: "k" }));
  assert.deepEqual([error.code, error.message], ["invalid", "/v1/runs/1/cancel takes no idempotency key."]);
  assert.equal(requests.length, 0);
  await client(url).request("POST", "/v1/later", { idempotencyKey: "k" });
  assert.equal(requests[0].headers["idempotency-key"], "k");
});

test("ids are escaped, and one that is missing is refused", async (t) => {
  const { url, requests } = await serve(t, () => json({}));
  const runtime = client(url);
  await runtime.secrets.get("a/b", "c?d#é");
  assert.equal(requests[0].url, "/v1/secrets/a%2Fb/c%3Fd%23%C3%A9");
  for (const id of ["", ".", "..", undefined, null, 7, {}])
    assert.equal((await errorOf(runtime.secrets.get("prod", id))).code, "invalid", String(id));
  assert.equal(requests.length, 1);
});

test("a query has what is given", async (t) => {
  const { url, requests } = await serve(t, () => json({ data: [], hasMore: false }));
  await client(url).audit.authz({ from: new Date(0), actorSubject: "user:1 & ü", outcome: undefined, order: "desc", limit: 5 });
  assert.equal(requests[0].url, "/v1/audit/authz?from=1970-01-01T00%3A00%3A00.000Z&actorSubject=user%3A1+%26+%C3%BC&order=desc&limit=5");
});

test("what was not done is tried again, and what may have been done only with a key", async (t) => {
  const answers = { 503: () => fault(503, "overloaded", NOW), 502: () => ({ status: 502, headers: { "retry-after": "0" }, body: "" }) };
  for (const [status, call, tries] of [
    [503, (runtime) => runtime.projects.create({ name: "a" }), 3],
    [502, (runtime) => runtime.projects.create({ name: "a" }), 1],
    [502, (runtime) => runtime.projects.get("1"), 3],
    [502, (runtime) => runtime.runs.create(RUN), 3],
    [502, (runtime) => runtime.runs.create(RUN, { retries: 5 }), 6],
    [502, (runtime) => runtime.request("POST", "/v1/runs", { body: RUN }), 1],
    [502, (runtime) => runtime.request("POST", "/v1/runs", { body: RUN, idempotencyKey: "mine" }), 3],
  ]) {
    const { url, requests } = await serve(t, answers[status]);
    const error = await errorOf(call(client(url)));
    assert.equal(error.code, "unavailable");
    assert.equal(requests.length, tries, `${status} ${call}`);
    const keys = new Set(requests.map(({ headers }) => headers["idempotency-key"]));
    assert.equal(keys.size, 1, "the key is kept over the tries");
  }
});

test("keys differ from call to call, and a caller's own is used", async (t) => {
  const { url, requests } = await serve(t, () => json({}, 202));
  const runtime = client(url);
  await runtime.runs.create(RUN);
  await runtime.runs.create(RUN);
  await runtime.runs.create(RUN, { idempotencyKey: "order-17" });
  await runtime.projects.create({ name: "a" });
  const [first, second, own, none] = requests.map(({ headers }) => headers["idempotency-key"]);
  assert.match(first, /^[0-9a-f]{32}$/);
  assert.notEqual(first, second);
  assert.deepEqual([own, none], ["order-17", undefined]);
});

test("a first try that is still under way is waited for", async (t) => {
  const { url, requests } = await serve(t, (_, number) => (number === 1 ? fault(409, "idempotency-in-flight", NOW) : json({ run: { id: "1" } }, 202)));
  assert.equal((await client(url).runs.create(RUN)).run.id, "1");
  assert.equal(requests.length, 2);
});

test("a long pause that the server asks for is the caller's to make", async (t) => {
  const { url, requests } = await serve(t, () => fault(429, "too-many-requests", { headers: { "retry-after": "60" } }));
  const error = await errorOf(client(url).runs.get("1"));
  assert.deepEqual([error.code, error.retryAfterMs, requests.length], ["rate-limit", 60_000, 1]);
});

test("what was removed by a try whose answer was lost is removed", async (t) => {
  const { url } = await serve(t, (_, number) => (number === 1 ? (response) => response.destroy() : fault(404, "not-found")));
  assert.equal(await client(url).teams.delete("1"), undefined);
  const other = await serve(t, () => fault(404, "not-found"));
  assert.equal((await errorOf(client(other.url).teams.delete("1"))).code, "not-found");
});

/** What a connection may do in place of an answer: whether a try is sent again must not depend on which. */
const FAULTS = {
  "a reset before the head": (socket) => onHead(socket, () => socket.resetAndDestroy()),
  "a close before the head": (socket) => onHead(socket, () => socket.end()),
  "a reset in the body": (socket) =>
    onHead(socket, () => socket.write("HTTP/1.1 200 OK\r\ncontent-type: application/json\r\ncontent-length: 100\r\n\r\n{\"id\":", () => socket.resetAndDestroy())),
  "a body that is too short": (socket) => onHead(socket, () => socket.end("HTTP/1.1 200 OK\r\ncontent-length: 100\r\n\r\n{\"id\":")),
  "no HTTP": (socket) => onHead(socket, () => socket.end("SMTP ready\r\n")),
};

for (const [name, use] of Object.entries(FAULTS))
  test(`${name} is a network fault, after which is tried again`, async (t) => {
    const server = await connections(t, (socket, number) =>
      number === 1 ? use(socket) : onHead(socket, () => socket.end('HTTP/1.1 200 OK\r\nconnection: close\r\ncontent-length: 8\r\n\r\n{"id":1}')));
    assert.deepEqual(await client(server.url).runs.get("1"), { id: 1 });
    const always = await connections(t, use);
    const error = await errorOf(client(always.url, { retries: 1 }).runs.get("1"));
    assert.deepEqual([error.code, always.count()], ["network", 2]);
    const once = await connections(t, use);
    assert.equal((await errorOf(client(once.url).projects.create({ name: "a" }))).code, "network");
    assert.equal(once.count(), 1);
  });

test("silence and slow bodies end at the deadline, and leave no connection", async (t) => {
  for (const use of [
    () => {},
    (socket) => onHead(socket, () => socket.write("HTTP/1.1 200 OK\r\ncontent-length: 100\r\n\r\n{")),
    (socket) => onHead(socket, () => {
      socket.write("HTTP/1.1 200 OK\r\ncontent-length: 100000\r\n\r\n");
      const drip = setInterval(() => socket.write(" "), 10);
      socket.on("close", () => clearInterval(drip));
    }),
  ]) {
    const server = await connections(t, use);
    const error = await errorOf(client(server.url, { timeoutMs: 150, retries: 1 }).runs.get("1"));
    assert.equal(error.code, "timeout");
    assert.match(error.message, /150 ms/);
    assert.equal(server.count(), 2);
    await eventually("the end of the connections", () => server.open.size === 0);
  }
});

test("a kept connection that went half-open is left for another", async (t) => {
  const asked = new Set();
  let silent;
  const server = await connections(t, (socket) => onHead(socket, () => {
    if (asked.has(socket) && !silent) return void (silent = socket);
    asked.add(socket);
    socket.write('HTTP/1.1 200 OK\r\ncontent-length: 8\r\n\r\n{"id":1}');
  }));
  const kept = client(server.url, { timeoutMs: 300 });
  // A platform may open a second one before it asks one again.
  for (let round = 0; round < 100 && !silent; round++) assert.deepEqual(await kept.runs.get("1"), { id: 1 });
  await eventually("the end of the connection that went silent", () => silent.destroyed);
});

test("no deadline is none", async (t) => {
  const { url } = await serve(t, () => json({ id: 1 }));
  for (const timeoutMs of [Infinity, 2 ** 31, Number.MAX_SAFE_INTEGER]) assert.deepEqual(await client(url, { timeoutMs }).runs.get("1"), { id: 1 });
});

test("a caller that leaves gets its own reason, at once", async (t) => {
  const server = await connections(t, () => {});
  const runtime = client(server.url);
  const leave = new AbortController();
  const call = runtime.runs.get("1", { signal: leave.signal });
  await eventually("a connection", () => server.open.size === 1);
  leave.abort(new Error("enough"));
  assert.equal((await errorOf(call)).message, "enough");
  await eventually("its end", () => server.open.size === 0);
  assert.equal((await errorOf(runtime.runs.get("1", { signal: leave.signal }))).message, "enough");
  // Also in a pause between two tries.
  const busy = await serve(t, () => fault(503, "overloaded", { headers: { "retry-after": "8" } }));
  const later = AbortSignal.timeout(50);
  assert.equal((await errorOf(client(busy.url).runs.get("1", { signal: later }))).name, "TimeoutError");
});

test("a redirect is not followed: the token would go along", async (t) => {
  const other = await serve(t, () => json({}));
  const { url } = await serve(t, () => ({ status: 307, headers: { location: other.url }, body: "" }));
  assert.equal((await errorOf(client(url).runs.get("1"))).code, "protocol");
  assert.equal(other.requests.length, 0);
});

test("an answer that is no JSON is a fault of the protocol, and an empty one is nothing", async (t) => {
  const { url } = await serve(t, ({ url }) => ({ status: 200, headers: {}, body: url.endsWith("1") ? "<html>" : "" }));
  assert.equal((await errorOf(client(url).runs.get("1"))).code, "protocol");
  assert.equal(await client(url).runs.get("2"), undefined);
});

test("each answer is shown to who asks for that", async (t) => {
  const { url } = await serve(t, (_, number) => (number === 1 ? fault(503, "overloaded", NOW) : json({})));
  const seen = [];
  await client(url, { onAnswer: ({ status }) => seen.push(status) }).runs.get("1");
  await client(url).runs.get("1", { onAnswer: ({ headers }) => seen.push(headers.get("content-type")) });
  assert.deepEqual(seen, [503, 200, "application/json"]);
});

test("a platform without fetch may give one", async () => {
  const asked = [];
  const fetch = async (url, { headers }) => {
    asked.push([url, headers.get("authorization")]);
    return new Response("{}");
  };
  await client("https://runtime.example", { fetch }).runs.get("1");
  assert.deepEqual(asked, [["https://runtime.example/v1/runs/1", `Bearer ${TOKEN}`]]);
});

test("any route can be asked, on this server alone", async (t) => {
  const { url, requests } = await serve(t, () => json({ a: 1 }));
  const runtime = client(url);
  assert.deepEqual(await runtime.request("GET", "/v2/later", { query: { a: 1 } }), { a: 1 });
  assert.equal(requests[0].url, "/v2/later?a=1");
  for (const path of ["v1/runs", "//elsewhere.example/", "/\\elsewhere.example", "https://elsewhere.example/", "@elsewhere.example/"])
    assert.equal((await errorOf(runtime.request("GET", path))).code, "invalid", path);
});

test("without a token a request has none", async (t) => {
  const { url, requests } = await serve(t, () => json({}));
  await new AgentRuntime({ baseUrl: url, token: "" }).runs.get("1");
  assert.equal(requests[0].headers.authorization, undefined);
});
