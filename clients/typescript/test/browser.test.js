import assert from "node:assert/strict";
import { execFileSync, spawn } from "node:child_process";
import { once } from "node:events";
import { mkdtempSync, readFileSync, readdirSync } from "node:fs";
import { rm } from "node:fs/promises";
import http from "node:http";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { test } from "node:test";
import { fileURLToPath } from "node:url";

const here = (path) => fileURLToPath(new URL(path, import.meta.url));
const SOURCES = readdirSync(here("../src")).filter((file) => file.endsWith(".js"));
const EVENTS = 400;

/** The page of an app: it follows a run with a public token, and says what it saw. No build step, no inline script. */
const PAGE = '<!doctype html><meta charset="utf-8"><script type="module" src="/page.js"></script>';
const SCRIPT = `
import { AgentRuntime } from "/client/index.js";
const reader = AgentRuntime.forRun({ baseUrl: location.origin, publicToken: "svc_pt_page" });
const seen = [];
let said = "";
try {
  for await (const event of reader.follow("run-1", { failures: 100 })) seen.push(event.seq);
} catch (error) {
  said = String(error);
}
// Trusted Types are on: such text is refused.
try { document.body.innerHTML = "<b>x</b>"; said += "no Trusted Types"; } catch {}
await fetch("/said", { method: "POST", body: JSON.stringify({ seen, said }) });
`;

/** A server, which ends with the test. */
async function listening(t, server) {
  server.listen(0, "127.0.0.1");
  await once(server, "listening");
  t.after(() => {
    server.close();
    server.closeAllConnections();
  });
  return server.address();
}

/** Opens a page in a browser without a window, which ends with the test. */
function browse(t, url) {
  const profile = mkdtempSync(join(tmpdir(), "agent-runtime-browser-"));
  const browser = join(execFileSync(here("../../../tests/setup/where"), { encoding: "utf8" }).trim(), "chromium/browser");
  const options = ["--headless", "--disable-gpu", `--user-data-dir=${profile}`, "--remote-debugging-port=0", ...(process.getuid() === 0 ? ["--no-sandbox"] : [])];
  const page = spawn(browser, [...options, url], { stdio: "ignore" });
  t.after(async () => {
    const ended = once(page, "exit");
    page.kill("SIGKILL");
    await ended;
    // Its other processes write for a moment more. Of both removals this one looks again at what is there.
    await rm(profile, { recursive: true, force: true, maxRetries: 20, retryDelay: 100 });
  });
}

/** What a page says. A browser starts in seconds, and in minutes where the machine has forty other things to do. */
async function inTime(said) {
  const late = new Promise((_, failed) => setTimeout(failed, 600_000, new Error("the page said nothing within ten minutes")).unref());
  return Promise.race([said, late]);
}

test("the files load in a page under a strict policy, and follow a run over cuts", async (t) => {
  let cuts = 0;
  let report;
  const said = new Promise((done) => (report = done));
  const tokens = new Set();
  const server = http.createServer(async (request, response) => {
    const policy = "default-src 'none'; script-src 'self'; connect-src 'self'; require-trusted-types-for 'script'; trusted-types 'none'";
    const send = (type, text) => response.writeHead(200, { "content-type": type, "content-security-policy": policy }).end(text);
    const { pathname } = new URL(request.url, "http://a");
    if (pathname === "/") return send("text/html", PAGE);
    if (pathname === "/page.js") return send("text/javascript", SCRIPT);
    const file = pathname.replace("/client/", "");
    if (SOURCES.includes(file)) return send("text/javascript", readFileSync(here(`../src/${file}`)));
    if (pathname === "/said") {
      let body = "";
      for await (const piece of request) body += piece;
      response.writeHead(204).end();
      return report(JSON.parse(body));
    }
    if (!pathname.endsWith("/stream")) return response.writeHead(404).end();
    tokens.add(request.headers.authorization);
    response.writeHead(200, { "content-type": "text/event-stream" });
    response.write("retry: 1\n\n");
    for (let seq = Number(request.headers["last-event-id"] ?? 0) + 1; seq <= EVENTS; seq++) {
      const text = `id: ${seq}\nevent: step.started\ndata: {"seq":${seq},"kind":"step.started","data":{"text":"Grüße 👋"}}\n\n`;
      if (cuts < 20 && seq % 17 === cuts % 17) {
        cuts++;
        response.write(text.slice(0, text.length / 2), () => response.destroy());
        return;
      }
      response.write(text);
    }
    response.end('event: stream.end\ndata: {"reason":"run-finished"}\n\n');
  });
  const { port } = await listening(t, server);
  browse(t, `http://127.0.0.1:${port}/`);
  const { seen, said: fault } = await inTime(said);
  assert.equal(fault, "");
  assert.deepEqual(seen, Array.from({ length: EVENTS }, (_, number) => number + 1));
  assert.equal(cuts, 20);
  assert.deepEqual([...tokens], ["Bearer svc_pt_page"]);
});

/** A page of the server itself, in which a person signed in. */
const OWN_SCRIPT = `
import { AgentRuntime } from "/client/index.js";
const elsewhere = new URLSearchParams(location.search).get("elsewhere");
const own = new AgentRuntime();
const said = [own.baseUrl === location.origin];
for (const runtime of [own, new AgentRuntime({ token: "svc_bt_page" }), new AgentRuntime({ baseUrl: elsewhere, retries: 0 })])
  said.push(await runtime.me.get({ headers: { "svc-background": "1" } }).then(({ cookie, token }) => [cookie, token], ({ code }) => code));
await fetch("/said", { method: "POST", body: JSON.stringify(said) });
`;

test("in a page of the server a client without a token has the session, and no other request has it", async (t) => {
  let report;
  const said = new Promise((done) => (report = done));
  const asked = [];
  const other = http.createServer((request, response) => {
    asked.push([request.method, request.headers.cookie]);
    response.writeHead(200, { "content-type": "application/json", "access-control-allow-origin": request.headers.origin, "access-control-allow-headers": "svc-background" }).end("{}");
  });
  const server = http.createServer(async (request, response) => {
    const send = (type, text, headers = {}) => response.writeHead(200, { "content-type": type, ...headers }).end(text);
    const { pathname } = new URL(request.url, "http://a");
    if (pathname === "/") return send("text/html", PAGE, { "set-cookie": "__Host-session=svc_ss_page; Path=/; Secure; HttpOnly; SameSite=Strict" });
    if (pathname === "/page.js") return send("text/javascript", OWN_SCRIPT);
    const file = pathname.replace("/client/", "");
    if (SOURCES.includes(file)) return send("text/javascript", readFileSync(here(`../src/${file}`)));
    if (pathname !== "/said") {
      const { cookie = null, authorization: token = null } = request.headers;
      return send("application/json", JSON.stringify({ cookie, token }));
    }
    let body = "";
    for await (const piece of request) body += piece;
    response.writeHead(204).end();
    report(JSON.parse(body));
  });
  const elsewhere = await listening(t, other);
  const { port } = await listening(t, server);
  browse(t, `http://127.0.0.1:${port}/?elsewhere=http://127.0.0.1:${elsewhere.port}`);
  const [isOwn, session, token] = await inTime(said);
  assert.equal(isOwn, true);
  assert.deepEqual(session, ["__Host-session=svc_ss_page", null]);
  assert.deepEqual(token, [null, "Bearer svc_bt_page"]);
  assert.ok(asked.length > 0, "the other server was asked");
  assert.deepEqual(asked.map(([, cookie]) => cookie), asked.map(() => undefined));
});
