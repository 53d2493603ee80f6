import assert from "node:assert/strict";
import { test } from "node:test";
import { AgentRuntime } from "../src/index.js";
import { STREAM_HEAD, asksAfter, client, connections, errorOf, eventually, fault, heldLimits, onHead, random, serve } from "./support.js";

const CUTS = Number(process.env.AGENT_RUNTIME_CUTS ?? 50);
const WORDS = ["Grüße ", "👋🏽 ", "世界 ", "plain ", "e\u0301 ", "\u2028", "\\n\n", "𝔘 "];
const FOLLOWED = "run-1";
/** The limit that tests have in hand: no other timer has it. */
const SILENCE_MS = 54_321;

const written = (event, id) => `${id ? `id: ${id}\n` : ""}event: ${event.kind}\ndata: ${JSON.stringify(id ? event : event.data)}\n\n`;
const end = (reason, kind = "stream.end") => `event: ${kind}\ndata: {"reason":"${reason}"}\n\n`;

/** A run of so many steps, as the server streams it: durable events, and before the end of each step its text. */
function story(steps) {
  const chance = random(7);
  const events = [];
  const texts = new Map();
  let seq = 0;
  const add = (kind, data) => events.push({ seq: ++seq, kind, createdAt: "2026-11-25T09:30:12.043Z", data });
  add("run.created", {});
  for (let step = 1; step <= steps; step++) {
    const words = Array.from({ length: 4 }, () => WORDS[Math.floor(chance() * WORDS.length)]);
    add("step.started", { step, attempt: 1 });
    texts.set(seq, words);
    add("step.completed", { step, attempt: 1, text: words.join("") });
  }
  add("run.completed", {});
  /** What comes after this number. The text of a step under way begins anew. */
  const after = (number) => {
    let text = "retry: 1\n\n";
    const begin = texts.has(number) ? number : number + 1;
    for (const event of events.slice(begin - 1)) {
      if (event.seq > number) text += written(event, event.seq);
      let offset = 0;
      for (const piece of texts.get(event.seq) ?? []) {
        text += written({ kind: "text.delta", data: { step: event.data.step, attempt: 1, offset, text: piece } });
        offset += [...piece].length;
      }
    }
    return Buffer.from(text + end("run-finished"));
  };
  return { events, texts, after };
}

/** A server that tells a story, and cuts what it says after some bytes: a close, or a reset. */
async function cutting(t, { after }, cuts, seed) {
  const chance = random(seed);
  let made = 0;
  const server = await connections(t, (socket) =>
    onHead(socket, (head) => {
      const bytes = after(asksAfter(head) ?? 0);
      if (made >= cuts) return socket.end(Buffer.concat([Buffer.from(STREAM_HEAD), bytes]));
      made++;
      const most = Math.floor(chance() * chance() * Math.min(bytes.length, 6_000));
      const how = chance() < 0.5 ? () => socket.end() : () => socket.resetAndDestroy();
      socket.write(Buffer.concat([Buffer.from(STREAM_HEAD), bytes.subarray(0, most)]), how);
    }));
  return { ...server, made: () => made };
}

test(`${CUTS} cuts at random bytes: every event once and in order, and of the text every character once`, async (t) => {
  const told = story(2_500);
  const server = await cutting(t, told, CUTS, 11);
  const events = [];
  const texts = new Map();
  for await (const event of client(server.url).runs.follow(FOLLOWED, { failures: 1_000 })) {
    if (event.kind !== "text.delta") events.push(event);
    else {
      const { step, offset, text } = event.data;
      const had = texts.get(step) ?? "";
      assert.equal([...had].length, offset, `step ${step}`);
      texts.set(step, had + text);
    }
  }
  assert.deepEqual(events, told.events);
  for (const { kind, data } of told.events) if (kind === "step.completed" && texts.has(data.step)) assert.ok(data.text.startsWith(texts.get(data.step)));
  assert.equal(server.made(), CUTS);
  await eventually("no connection", () => server.open.size === 0);
});

test("a program that was killed goes on after the last number it has", async (t) => {
  const told = story(50);
  const server = await cutting(t, told, 0, 1);
  const seen = [];
  for await (const event of client(server.url).runs.follow(FOLLOWED)) if (event.seq && seen.push(event.seq) === 40) break;
  for await (const event of client(server.url).runs.follow(FOLLOWED, { after: seen.at(-1) })) if (event.seq) seen.push(event.seq);
  assert.deepEqual(seen, told.events.map(({ seq }) => seq));
});

test("a reader that leaves in the middle leaves no connection open", async (t) => {
  const server = await connections(t, (socket) =>
    onHead(socket, () => socket.write(STREAM_HEAD + written({ seq: 1, kind: "run.created", data: {} }, 1))));
  const { runs } = client(server.url);
  for (let round = 0; round < 12; round++) for await (const _ of runs.follow(FOLLOWED)) break;
  const thrown = (async () => {
    for await (const _ of runs.follow(FOLLOWED)) throw new Error("mine");
  })();
  assert.equal((await errorOf(thrown)).message, "mine");
  await eventually("no connection", () => server.open.size === 0);
});

test("a signal ends a stream, whether it waits for an event or for the next connection", async (t) => {
  const silent = await connections(t, (socket) => onHead(socket, () => socket.write(STREAM_HEAD)));
  const leave = new AbortController();
  const waits = client(silent.url).runs.follow(FOLLOWED, { signal: leave.signal }).next();
  await eventually("a connection", () => silent.open.size === 1);
  leave.abort(new Error("enough"));
  assert.equal((await errorOf(waits)).message, "enough");
  await eventually("its end", () => silent.open.size === 0);
  const gone = client("http://127.0.0.1:1").runs.follow(FOLLOWED, { signal: AbortSignal.timeout(100) });
  assert.equal((await errorOf(gone.next())).name, "TimeoutError");
});

test("a connection without a sign of life is given up; signs of life keep it", async (t) => {
  const limits = heldLimits(t, SILENCE_MS);
  const sockets = [];
  const server = await connections(t, (socket) => onHead(socket, () => {
    socket.write(`${STREAM_HEAD}retry: 1\n\n`);
    if (sockets.push(socket) === 1) socket.write(written({ seq: 1, kind: "run.created", data: {} }, 1));
  }));
  const seen = [];
  const reading = (async () => {
    for await (const { seq } of client(server.url).runs.follow(FOLLOWED, { maxSilenceMs: SILENCE_MS })) seen.push(seq);
  })();
  await eventually("the first event to be taken", () => seen.length === 1 && limits.open() === 1);
  limits.pass(SILENCE_MS);
  await eventually("another connection", () => sockets.length === 2);
  for (let sign = 0; sign < 10; sign++) {
    const before = limits.begun();
    sockets[1].write(":\n\n");
    await eventually("the sign to be taken", () => limits.begun() > before);
    limits.pass(SILENCE_MS - 1);
  }
  sockets[1].end(written({ seq: 2, kind: "run.completed", data: {} }, 2) + end("run-finished"));
  await reading;
  assert.deepEqual([seen, server.count()], [[1, 2], 2]);
});

test("a slow reader's own time is no silence", async (t) => {
  const limits = heldLimits(t, SILENCE_MS);
  const last = written({ seq: 2, kind: "run.completed", data: {} }, 2) + end("run-finished");
  let first;
  const server = await connections(t, (socket) => onHead(socket, (head) => {
    if (asksAfter(head) !== undefined) return void socket.end(STREAM_HEAD + last);
    first = socket;
    socket.write(STREAM_HEAD + written({ seq: 1, kind: "run.created", data: {} }, 1));
  }));
  const seen = [];
  for await (const { seq } of client(server.url).runs.follow(FOLLOWED, { maxSilenceMs: SILENCE_MS })) {
    if (seen.push(seq) > 1) continue;
    limits.pass(10 * SILENCE_MS);
    first.end(last);
  }
  assert.deepEqual([seen, server.count()], [[1, 2], 1]);
});

for (const [kind, reason] of [["stream.end", "server-stopping"], ["stream.reset", "reader-too-slow"], ["stream.end", "credential-ended"], ["stream.end", "a-later-reason"]])
  test(`after ${reason} a reader comes back`, async (t) => {
    const told = story(3);
    const tokens = [];
    const { url } = await serve(t, ({ headers }, number) => (response) => {
      tokens.push(headers.authorization);
      response.writeHead(200, { "content-type": "text/event-stream" });
      if (number === 1) response.end(`retry: 1\n\n${written(told.events[0], 1)}${end(reason, kind)}never read`);
      else response.end(told.after(Number(headers["last-event-id"])));
    });
    let token = 0;
    const seen = [];
    for await (const event of client(url, { token: () => `svc_bt_${++token}` }).runs.follow(FOLLOWED)) if (event.seq) seen.push(event.seq);
    assert.deepEqual(seen, told.events.map(({ seq }) => seq));
    assert.deepEqual(tokens, ["Bearer svc_bt_1", "Bearer svc_bt_2"]);
  });

test("a right that was taken away is told by the server's own answer", async (t) => {
  const { url, requests } = await serve(t, (_, number) => number > 1 ? fault(403, "permission-denied") : (response) =>
    response.writeHead(200, { "content-type": "text/event-stream" }).end(`retry: 1\n\n${written({ seq: 1, kind: "run.created", data: {} }, 1)}${end("permission-denied")}`));
  const stream = client(url).runs.follow(FOLLOWED);
  assert.equal((await stream.next()).value.seq, 1);
  const error = await errorOf(stream.next());
  assert.deepEqual([error.code, error.reason, error.serverCode, requests.length], ["auth", "forbidden", "permission-denied", 2]);
});

test("what cannot get better ends a stream at once", async (t) => {
  for (const [status, code, wanted] of [[404, "not-found", "not-found"], [401, "unauthenticated", "auth"], [400, "invalid-cursor", "invalid"], [500, "internal", "server"]]) {
    const { url, requests } = await serve(t, () => fault(status, code));
    assert.equal((await errorOf(client(url).runs.follow(FOLLOWED).next())).code, wanted);
    assert.equal(requests.length, 1);
  }
  const page = await serve(t, () => ({ status: 200, headers: { "content-type": "text/html" }, body: "<html>" }));
  assert.equal((await errorOf(client(page.url).runs.follow(FOLLOWED).next())).code, "protocol");
});

test("a server that is away for a while is waited for, and one that stays away is given up", async (t) => {
  const told = story(1);
  let gone = 3;
  const { url, requests } = await serve(t, () => gone-- > 0 ? fault(503, "shutting-down", { headers: { "retry-after": "0" } }) : (response) =>
    response.writeHead(200, { "content-type": "text/event-stream" }).end(told.after(0)));
  // The pause of a server that has said nothing of it is two seconds: too long for a test.
  const stream = client(url).runs.follow(FOLLOWED, { failures: 2 });
  assert.equal((await errorOf(stream.next())).serverCode, "shutting-down");
  assert.equal(requests.length, 2);
  const empty = await serve(t, (_, number) => ({ status: 200, headers: { "content-type": "text/event-stream" }, body: number === 1 ? "retry: 1\n\n" : "" }));
  const error = await errorOf(client(empty.url).runs.follow(FOLLOWED, { failures: 5 }).next());
  assert.deepEqual([error.code, empty.requests.length], ["unavailable", 5]);
});

test("a quiet run outlasts any number of its connections", async (t) => {
  const told = story(1);
  const ends = [
    (socket) => socket.end(),
    (socket) => socket.resetAndDestroy(),
    (socket) => socket.end(end("server-stopping")),
    (socket) => socket.end(end("reader-too-slow", "stream.reset")),
  ];
  let number = 0;
  const server = await connections(t, (socket) => onHead(socket, () => {
    const which = ++number;
    const body = which > 12 ? told.after(0) : "retry: 1\n\n:\n\n";
    socket.write(Buffer.concat([Buffer.from(STREAM_HEAD), Buffer.from(body)]), () => which <= 12 && ends[which % 4](socket));
  }));
  const seen = [];
  for await (const event of client(server.url).runs.follow(FOLLOWED, { failures: 3 })) if (event.seq) seen.push(event.seq);
  assert.deepEqual([seen, server.count()], [told.events.map(({ seq }) => seq), 13]);
});

test("who allows one failure is told of the end of each connection", async (t) => {
  const { url, requests } = await serve(t, () => ({ status: 200, headers: { "content-type": "text/event-stream" }, body: `retry: 1\n\n${written({ kind: "changed", data: {} })}` }));
  const stream = client(url).changes.follow({}, { failures: 1 });
  assert.equal((await stream.next()).value.kind, "changed");
  assert.equal((await errorOf(stream.next())).code, "unavailable");
  assert.equal(requests.length, 1);
});

test("where a stream goes on stands in the header and in the query: a proxy may take the header away", async (t) => {
  const heads = [];
  const server = await connections(t, (socket) => onHead(socket, (head) => {
    const number = heads.push([/[?&]after=(\d+)/.exec(head)?.[1], /^last-event-id: (\d+)/im.exec(head)?.[1]]);
    socket.end(`${STREAM_HEAD}retry: 1\n\n${written({ seq: number, kind: "run.created", data: {} }, number)}${number === 3 ? end("run-finished") : ""}`);
  }));
  for await (const _ of client(server.url).runs.follow(FOLLOWED));
  assert.deepEqual(heads, [[undefined, undefined], ["1", "1"], ["2", "2"]]);
});

test("a run that is waited for is read at its end", async (t) => {
  const told = story(2);
  const { url, requests } = await serve(t, ({ url }) => url.endsWith("/stream") ? (response) =>
    response.writeHead(200, { "content-type": "text/event-stream" }).end(told.after(0)) : { status: 200, headers: {}, body: '{"id":"run-1","status":"completed"}' });
  assert.equal((await client(url).runs.wait(FOLLOWED)).status, "completed");
  assert.equal(requests.length, 2);
});

test("a reviewer's stream goes on from where it began, and says that once", async (t) => {
  const start = 'retry: 1\n\nid: 41\nevent: stream.start\ndata: {"seq":41}\n\n';
  const seen = [];
  const heads = [];
  const server = await connections(t, (socket) => onHead(socket, (head) => {
    heads.push(asksAfter(head));
    const event = written({ seq: 45, kind: "approval.waiting", data: {} }, 45);
    socket.write(STREAM_HEAD + start + (heads.length > 1 ? event : ""), () => heads.length === 1 && socket.resetAndDestroy());
  }));
  for await (const event of client(server.url).approvals.follow()) if (seen.push(event.kind) === 2) break;
  assert.deepEqual(seen, ["stream.start", "approval.waiting"]);
  assert.deepEqual(heads, [undefined, 41]);
});

test("a page of an app reads one run with a public token, and nothing else", async (t) => {
  const told = story(1);
  const { url, requests } = await serve(t, ({ url }) => url.includes("/stream") ? (response) =>
    response.writeHead(200, { "content-type": "text/event-stream" }).end(told.after(0)) : { status: 200, headers: {}, body: '{"run":{},"data":[],"hasMore":false}' });
  const reader = AgentRuntime.forRun({ baseUrl: url, publicToken: "svc_pt_public" });
  for await (const _ of reader.follow(FOLLOWED));
  assert.deepEqual((await reader.progress(FOLLOWED, { after: 3 })).data, []);
  assert.deepEqual(requests.map(({ url }) => url), ["/v1/runs/run-1/progress/stream", "/v1/runs/run-1/progress?after=3"]);
  assert.ok(requests.every(({ headers }) => headers.authorization === "Bearer svc_pt_public"));
  assert.deepEqual(Object.getOwnPropertyNames(Object.getPrototypeOf(reader)).sort(), ["constructor", "follow", "progress"]);
  for (const publicToken of ["", undefined]) assert.throws(() => AgentRuntime.forRun({ baseUrl: url, publicToken }), { code: "invalid" });
});
