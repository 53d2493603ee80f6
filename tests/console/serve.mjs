#!/usr/bin/env node
/**
 * The console from its source files, for work on pages: reload the browser to see a change. It serves them with the headers
 * that the server gives them, and passes everything else on to a server that runs.
 *
 *     tests/console/serve.mjs                             before http://127.0.0.1:4000, at http://127.0.0.1:4080/console/
 *     tests/console/serve.mjs --port 4081 --server http://127.0.0.1:4100
 *
 * For development alone: `Host` and `Origin` of what is passed on are those of the server.
 */

import { createHash } from "node:crypto";
import { readFileSync } from "node:fs";
import http from "node:http";
import { fileURLToPath } from "node:url";
import { parseArgs } from "node:util";

const at = (path) => fileURLToPath(new URL(`../../${path}`, import.meta.url));
const TYPES = { js: "text/javascript; charset=utf-8", mjs: "text/javascript; charset=utf-8", css: "text/css; charset=utf-8", svg: "image/svg+xml", html: "text/html; charset=utf-8" };
const FOLDERS = { assets: "static/console/", client: "clients/typescript/src/", parts: "static/console/node_modules/" };

/** The policy of the page, with the digest of its import map. */
function policyOf(page) {
  const map = /<script type="importmap">([^]*?)<\/script>/.exec(page)?.[1] ?? "";
  const digest = createHash("sha256").update(map).digest("base64");
  return [
    "default-src 'none'",
    `script-src 'self' 'sha256-${digest}'`,
    "style-src 'self'",
    "img-src 'self' data:",
    "connect-src 'self'",
    "manifest-src 'self'",
    "base-uri 'none'",
    "form-action 'self'",
    "frame-ancestors 'none'",
    "require-trusted-types-for 'script'",
    "trusted-types 'none'",
  ].join("; ");
}

const COMMON = { "x-content-type-options": "nosniff", "cross-origin-resource-policy": "same-origin", "cache-control": "no-store" };

/** What a path of the console answers; undefined: it is none. */
function own(path) {
  if (path === "/") return { status: 303, headers: { location: "/console/" }, body: "" };
  if (path !== "/console" && !path.startsWith("/console/")) return undefined;
  const [, , folder, ...rest] = path.split("/");
  if (folder in FOLDERS) {
    const [name, type] = [rest.join("/"), TYPES[rest.at(-1)?.split(".").at(-1)]];
    if (!type || rest.includes("..") || (folder === "assets" && rest.includes("node_modules"))) return { status: 404, headers: COMMON, body: "No such file." };
    try {
      return { status: 200, headers: { ...COMMON, "content-type": type }, body: readFileSync(at(FOLDERS[folder] + name)) };
    } catch {
      return { status: 404, headers: COMMON, body: "No such file." };
    }
  }
  const page = readFileSync(at("static/console/index.html"), "utf8");
  return {
    status: 200,
    headers: {
      ...COMMON,
      "content-type": TYPES.html,
      "content-security-policy": policyOf(page),
      "cross-origin-opener-policy": "same-origin",
      "referrer-policy": "same-origin",
      "permissions-policy": "camera=(), microphone=(), geolocation=(), payment=(), usb=()",
    },
    body: page,
  };
}

/**
 * The server of pages before a server that runs.
 * @param {string} server its address
 */
function pages(server) {
  const target = new URL(server);
  return http.createServer((request, response) => {
    const { pathname } = new URL(request.url ?? "/", "http://a");
    const said = own(pathname);
    if (said) return response.writeHead(said.status, said.headers).end(said.body);
    const headers = { ...request.headers, host: target.host };
    if (headers.origin) headers.origin = target.origin;
    const passed = http.request({ host: target.hostname, port: target.port, method: request.method, path: request.url, headers }, (answer) => {
      const cookies = answer.headers["set-cookie"];
      response.writeHead(answer.statusCode ?? 502, { ...answer.headers, ...(cookies ? { "set-cookie": cookies } : {}) });
      response.flushHeaders();
      answer.pipe(response);
    });
    passed.on("error", (fault) => (response.headersSent ? response.destroy() : response.writeHead(502, { "content-type": "text/plain" }).end(`The server at ${server} does not answer: ${fault.message}\n`)));
    response.on("close", () => passed.destroy());
    request.pipe(passed);
  });
}

const { values } = parseArgs({ options: { port: { type: "string", default: "4080" }, server: { type: "string", default: "http://127.0.0.1:4000" } } });
pages(values.server).listen(Number(values.port), "127.0.0.1", () => console.log(`http://127.0.0.1:${values.port}/console/ before ${values.server}`));
