import assert from "node:assert/strict";
import { readFileSync } from "node:fs";
import { test } from "node:test";
import { inspect } from "node:util";
import { errorCode, errorOf } from "../src/errors.js";
import { TOKEN, client, errorOf as failed, fault, json, serve } from "./support.js";

const rows = (file, form) => [...readFileSync(new URL(file, import.meta.url), "utf8").matchAll(form)];

test("every code of the server becomes what clients/README.md says", () => {
  const said = new Map();
  for (const [, code, , statuses] of rows("../../README.md", /^\| `([a-z-]+)` \| `(\w+)` \| (.+) \|$/gm))
    for (const one of statuses.split(", ")) said.set(one.replaceAll("`", ""), code);
  const codes = rows("../../../docs/errors.md", /^\| (\d{3}) \| `([a-z-]+)` \|/gm);
  assert.ok(codes.length > 40);
  for (const [, status, code] of codes)
    assert.equal(errorCode(Number(status), code), said.get(`${status} ${code}`) ?? said.get(status), `${status} ${code}`);
});

test("a code of a later server goes by its status", () => {
  assert.equal(errorCode(418, "teapot"), "invalid");
  assert.equal(errorCode(409, "later"), "conflict");
  assert.equal(errorCode(599, "later"), "server");
});

test("a denial is auth and forbidden, with what the server says", async (t) => {
  const message = "permission denied: actor user:1 lacks can_admin on project:2";
  const details = { action: "admin", resource: "project:2", reason: message };
  const { url } = await serve(t, () => fault(403, "permission-denied", { message, details }));
  const error = await failed(client(url).projects.memberships.add("2", { email: "a@example.com", role: "editor" }));
  assert.equal(error.name, "AgentRuntimeError");
  assert.deepEqual({ code: error.code, reason: error.reason }, { code: "auth", reason: "forbidden" });
  assert.equal(error.message, message);
  assert.equal(error.serverCode, "permission-denied");
  assert.equal(error.status, 403);
  assert.deepEqual(error.details, details);
  assert.match(error.requestId, /^req-/);
});

test("what is held comes with a conflict", async (t) => {
  const { url } = await serve(t, () => fault(409, "membership-exists", { details: { role: "viewer" } }));
  const error = await failed(client(url).projects.memberships.add("2", { email: "a@example.com", role: "editor" }));
  assert.deepEqual([error.code, error.serverCode, error.details.role], ["conflict", "membership-exists", "viewer"]);
});

test("the answer of a proxy is an error without the service's words", () => {
  for (const body of ["<h1>502</h1>", "", "null", '{"error":"no"}', '{"error":{"code":1}}', "[]"]) {
    const error = errorOf(502, new Headers({ "retry-after": "3" }), body);
    assert.deepEqual([error.code, error.serverCode, error.status, error.retryAfterMs], ["unavailable", undefined, 502, 3000]);
    assert.match(error.message, /HTTP 502/);
  }
});

test("the server asks to wait for seconds, or until a date", () => {
  const asked = (value) => errorOf(503, new Headers({ "retry-after": value }), "").retryAfterMs;
  assert.equal(asked("120"), 120_000);
  const soon = asked(new Date(Date.now() + 5_000).toUTCString());
  assert.ok(soon > 3_000 && soon <= 5_000, soon);
  assert.equal(asked("Wed, 21 Oct 2015 07:28:00 GMT"), 0);
  for (const none of ["soon", "", "-1", "1.5", "soon GMT"]) assert.equal(asked(none), undefined, none);
});

test("a route that the server does not have is said to be newer, perhaps", async (t) => {
  const { url } = await serve(t, () => fault(404, "route-not-found"));
  assert.equal((await failed(client(url).projects.list())).message, "It is route-not-found. This server may be older than the client.");
});

test("no token stands in an error, or in what is printed of a client", async (t) => {
  const { url } = await serve(t, ({ url }) => (url.includes("html") ? { status: 200, headers: {}, body: "<html>" } : fault(401, "unauthenticated")));
  const runtime = client(url, { retries: 0 });
  const printed = (thing) => inspect(thing, { depth: Infinity, showHidden: true }) + String(thing) + JSON.stringify(thing) + thing.stack;
  const errors = [
    await failed(runtime.projects.list()),
    await failed(runtime.request("GET", "/html")),
    await failed(client("http://127.0.0.1:1", { retries: 0 }).projects.list()),
    await failed(client(url, { token: `${TOKEN}\nX: y` }).projects.list()),
    await failed(client(url, { token: `${TOKEN}ü` }).projects.list()),
    await failed(runtime.runs.follow("1").next()),
    await failed(client(url, { timeoutMs: 0 }).projects.list()),
  ];
  const readers = [runtime, runtime.runs, runtime.runs.follow("1"), runtime.projects, (await import("../src/index.js")).AgentRuntime.forRun({ baseUrl: url, publicToken: TOKEN })];
  for (const thing of [...errors, ...readers]) assert.ok(!printed(thing).includes("Canary"), printed(thing));
});

test("an address that is none, or has a password, is refused without being repeated", () => {
  for (const url of ["", "runtime.example", "ftp://runtime.example", "https://me:Canary@runtime.example", "https://runtime.example/?token=Canary"])
    assert.throws(() => client(url), (error) => error.code === "invalid" && !error.message.includes("Canary"), url);
  assert.equal(client("https://runtime.example/base/").baseUrl, "https://runtime.example/base");
});

test("unknown fields of a later server are there", async (t) => {
  const { url } = await serve(t, () => json({ id: "1", later: { field: [1] }, status: "dreaming" }));
  const run = await client(url).runs.get("1");
  assert.deepEqual(run, { id: "1", later: { field: [1] }, status: "dreaming" });
});
