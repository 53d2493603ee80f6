/**
 * Servers of these tests, on loopback: one that answers what a test says, one that does with its connections what a test
 * says, and a line in between that is cut. They are sockets of these tests and no proxy that spoils connections: they cut
 * at the byte that a test names, and a host needs no further program.
 */

import { once } from "node:events";
import http from "node:http";
import net from "node:net";
import { AgentRuntime } from "../src/index.js";

export const TOKEN = "svc_bt_CanaryThatNobodyMayEverSee0123456789abcdefXYZ";

/** What a server of ours answers: an error of the service. */
export function fault(status, code, { message = `It is ${code}.`, details = {}, headers = {} } = {}) {
  const error = { code, message, details, requestId: "req-00000000-0000-4000-8000-000000000001" };
  return { status, headers: { "content-type": "application/json", ...headers }, body: JSON.stringify({ error }) };
}

export function json(value, status = 200) {
  return { status, headers: { "content-type": "application/json" }, body: JSON.stringify(value) };
}

/**
 * A server that answers each request with what `answer(request, number)` gives, and keeps the requests. `request` has
 * method, url, headers and body; an answer of a function gets the response itself.
 */
export async function serve(t, answer) {
  const requests = [];
  const server = http.createServer(async (incoming, response) => {
    let body = "";
    for await (const piece of incoming) body += piece;
    const request = { method: incoming.method, url: incoming.url, headers: incoming.headers, body };
    requests.push(request);
    const said = await answer(request, requests.length);
    if (typeof said === "function") return said(response);
    response.writeHead(said.status, said.headers).end(said.body);
  });
  await listen(t, server);
  t.after(() => server.closeAllConnections());
  return { url: `http://127.0.0.1:${server.address().port}`, requests, server };
}

/**
 * A server of bare connections: `use(socket, number)`. `open` has those that were asked something: Node keeps one in
 * reserve, after it has ended another.
 */
export async function connections(t, use) {
  const open = new Set();
  let count = 0;
  let number = 0;
  const server = net.createServer((socket) => {
    socket.once("data", () => open.add(socket));
    socket.on("close", () => open.delete(socket));
    // Whoever does not read notices no end.
    socket.on("error", () => {}).resume();
    socket.once("data", () => ++count);
    use(socket, ++number);
  });
  await listen(t, server);
  t.after(() => open.forEach((socket) => socket.destroy()));
  return { url: `http://127.0.0.1:${server.address().port}`, open, count: () => count };
}

async function listen(t, server) {
  server.listen(0, "127.0.0.1");
  await once(server, "listening");
  t.after(() => server.close());
}

/** A client of a server, which tries again at once. */
export function client(url, options = {}) {
  return new AgentRuntime({ baseUrl: url, token: TOKEN, ...options });
}

/** The error that a promise ends with. */
export async function errorOf(promise) {
  try {
    await promise;
  } catch (error) {
    return error;
  }
  throw new Error("it did not fail");
}

/** Waits until something holds. */
export async function eventually(what, holds, patienceMs = 120_000) {
  for (const end = Date.now() + patienceMs; Date.now() < end; await new Promise((next) => setTimeout(next, 5)))
    if (await holds()) return;
  throw new Error(`${what}: not within ${patienceMs} ms`);
}

/**
 * Holds the time limits of exactly so many milliseconds: for them time passes by `pass` alone. `begun` says how many there
 * were, `open` how many there are. Every other timer goes on by itself.
 */
export function heldLimits(t, ms) {
  const { setTimeout: begin, clearTimeout: end } = globalThis;
  const held = new Map();
  let now = 0;
  let begun = 0;
  t.mock.method(globalThis, "setTimeout", (act, after, ...given) => {
    if (after !== ms) return begin(act, after, ...given);
    held.set(++begun, { act, end: now + ms });
    return { limit: begun };
  });
  t.mock.method(globalThis, "clearTimeout", (timer) => (timer?.limit ? held.delete(timer.limit) : end(timer)));
  return {
    begun: () => begun,
    open: () => held.size,
    pass(by) {
      now += by;
      for (const [limit, { act, end }] of [...held]) if (end <= now) held.delete(limit) && act();
    },
  };
}

/** The head of an answer with a stream of events, without a length, as the server sends it. */
export const STREAM_HEAD = "HTTP/1.1 200 OK\r\ncontent-type: text/event-stream\r\ncache-control: no-store\r\nconnection: close\r\n\r\n";

/** The number after which a request asks to go on; undefined: from the beginning. */
export function asksAfter(head) {
  const found = /^last-event-id: (\d+)/im.exec(head) ?? /[?&]after=(\d+)/.exec(head);
  return found ? Number(found[1]) : undefined;
}

/** Reads heads of requests from a connection. */
export function onHead(socket, use) {
  let text = "";
  socket.on("data", (piece) => {
    text += piece;
    for (let end; (end = text.indexOf("\r\n\r\n")) >= 0; text = text.slice(end + 4)) use(text.slice(0, end + 4));
  });
}

/** A random number from 0 to below 1, the same for each seed. */
export function random(seed) {
  let state = seed >>> 0;
  return () => {
    state = (state + 0x6d2b79f5) >>> 0;
    let mixed = Math.imul(state ^ (state >>> 15), state | 1);
    mixed ^= mixed + Math.imul(mixed ^ (mixed >>> 7), mixed | 61);
    return ((mixed ^ (mixed >>> 14)) >>> 0) / 2 ** 32;
  };
}
