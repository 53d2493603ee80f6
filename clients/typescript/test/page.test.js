import assert from "node:assert/strict";
import { test } from "node:test";
import { Page } from "../src/index.js";
import { client, errorOf, eventually, fault, json, serve } from "./support.js";

/** A list of so many rows, by pages of `limit`; what it is asked stands in the cursor. */
const list = (rows, more = {}) => ({ url }) => {
  const { searchParams } = new URL(url, "http://a");
  const limit = Number(searchParams.get("limit") ?? 50);
  const from = Number(searchParams.get("cursor") ?? 0);
  const data = Array.from({ length: Math.min(limit, rows - from) }, (_, number) => ({ id: from + number }));
  const hasMore = from + limit < rows;
  return json({ data, hasMore, ...(hasMore ? { nextCursor: String(from + limit) } : {}), ...more });
};
const ids = async (rows) => (await all(rows)).map(({ id }) => id);
const all = async (rows) => {
  const found = [];
  for await (const row of rows) found.push(row);
  return found;
};
const numbers = (count) => Array.from({ length: count }, (_, number) => number);

test("a list gives every row, awaited or not, with as many requests as pages", async (t) => {
  const { url, requests } = await serve(t, list(120));
  const { runs } = client(url);
  assert.deepEqual(await ids(runs.list()), numbers(120));
  assert.equal(requests.length, 3);
  assert.deepEqual(await ids(await runs.list({ limit: 40, status: "failed" })), numbers(120));
  assert.deepEqual(requests.slice(3).map(({ url }) => url), [
    "/v1/runs?limit=40&status=failed",
    "/v1/runs?limit=40&status=failed&cursor=40",
    "/v1/runs?limit=40&status=failed&cursor=80",
  ]);
});

test("a list that nobody reads asks nothing, and one that fails later fails where it is read", async (t) => {
  const { url, requests } = await serve(t, () => fault(403, "permission-denied"));
  const { runs } = client(url);
  const rows = runs.list();
  // A later list that is read, to its end.
  await errorOf(all(runs.list({ status: "failed" })));
  assert.deepEqual(requests.splice(0).map(({ url }) => url), ["/v1/runs?status=failed"]);
  // Node ends a test whose promise fails unheard.
  assert.equal((await errorOf(all(rows))).serverCode, "permission-denied");
  assert.equal(await rows.catch(({ code }) => code), "auth");
  assert.equal(requests.length, 1);
  assert.equal(await runs.list().then(() => "read", ({ code }) => code), "auth");
  let isOver = false;
  await errorOf(runs.list().finally(() => (isOver = true)));
  assert.ok(isOver);
});

test("one page is one request, and the next one another", async (t) => {
  const { url, requests } = await serve(t, list(5));
  const first = await client(url).runs.list({ limit: 3 });
  assert.ok(first instanceof Page);
  assert.deepEqual([first.data.map(({ id }) => id), first.hasMore, first.nextCursor], [[0, 1, 2], true, "3"]);
  assert.equal(requests.length, 1);
  const second = await first.next();
  assert.deepEqual([second.data.map(({ id }) => id), second.hasMore, second.nextCursor], [[3, 4], false, undefined]);
  assert.equal(await second.next(), undefined);
  assert.equal(requests.length, 2);
});

test("what a list says beside its rows is on its pages", async (t) => {
  const { url } = await serve(t, list(1, { counts: { approvals: 1 }, later: true, next: "x", constructor: "x" }));
  const inbox = await client(url).inbox.list();
  assert.equal(await inbox.next(), undefined);
  assert.deepEqual([inbox.counts, inbox.later], [{ approvals: 1 }, true]);
});

test("an empty list gives nothing", async (t) => {
  const { url } = await serve(t, list(0));
  assert.deepEqual(await ids(client(url).runs.list()), []);
});

test("a list that is left in the middle reads no further, and leaves no connection in use", async (t) => {
  const { url, requests, server } = await serve(t, list(500));
  for await (const { id } of client(url).runs.list({ limit: 10 })) if (id === 14) break;
  assert.equal(requests.length, 2);
  server.closeIdleConnections();
  await eventually("no connection", () => new Promise((done) => server.getConnections((_, count) => done(count === 0))));
});

test("a fault between two pages is tried again, and one that stays is thrown where it is met", async (t) => {
  const now = { headers: { "retry-after": "0" } };
  const rows = list(30);
  const { url } = await serve(t, (request, number) => (number === 2 ? fault(503, "overloaded", now) : rows(request)));
  assert.deepEqual(await ids(client(url).runs.list({ limit: 10 })), numbers(30));
  const bad = await serve(t, (request, number) => (number > 1 ? fault(400, "invalid-cursor") : rows(request)));
  const had = [];
  const error = await errorOf((async () => {
    for await (const row of client(bad.url).runs.list({ limit: 10 })) had.push(row);
  })());
  assert.deepEqual([error.serverCode, had.length], ["invalid-cursor", 10]);
});

test("a page without a cursor is the last one, whatever it says", async (t) => {
  const { url, requests } = await serve(t, () => json({ data: [{ id: 0 }], hasMore: true, nextCursor: null }));
  assert.deepEqual(await ids(client(url).runs.list()), [0]);
  assert.equal(requests.length, 1);
});
