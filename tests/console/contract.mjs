/**
 * What the console asks and is answered, against the server's own description of its API (`GET /openapi.json`).
 *
 * Guarantees: of every request to `/v1` of a page that `watched` got, its path, method and query names are in the description,
 * the status of its answer is listed there, and the answer has the form of its schema. What the server took had a body as
 * described: one that is refused may have been wrong on purpose. A fault is among those of the page, and `contractFaults` has
 * those of the whole file, of answers as well that were read after the page's test was over.
 *
 * Left out: the bodies of streams, answers that a test made up, and what was asked while no server answered.
 */

import { execFileSync } from "node:child_process";
import { createRequire } from "node:module";
import { join } from "node:path";
import { fileURLToPath } from "node:url";

const parts = execFileSync(fileURLToPath(new URL("../setup/where", import.meta.url)), { encoding: "utf8" }).trim();
const require = createRequire(join(parts, "console-tests/node_modules/any.js"));
const Ajv = require("ajv/dist/2020").default;
const addFormats = require("ajv-formats").default;

/** Numbers of bounds that JSON Schema does not know; the schemas have their bounds beside them. */
const NUMBERS = ["int16", "uint", "uint8", "uint16", "uint32", "uint64"];
const JSON_TYPE = "application/json";
const DESCRIPTION = "description";

/** @typedef {{ pattern: RegExp, template: string, item: any }} Path */
/** @typedef {{ paths: Path[], problem: (pointer: string[], value: unknown) => string | undefined, resolved: (part: any) => any }} Description */

/** By the address of the server. @type {Map<string, Description>} */
const descriptions = new Map();
/** What is still being looked at. @type {Set<Promise<void>>} */
const looking = new Set();
/** @type {string[]} */
const faultsOfAll = [];
/** How much was looked at. */
const figures = { requests: 0, bodies: 0, answers: 0 };

/** Reads the description of a server once. @param {string} url @param {string} token */
export async function describes(url, token) {
  if (descriptions.has(new URL(url).origin)) return;
  const answer = await fetch(`${url}/openapi.json`, { headers: { authorization: `Bearer ${token}` } });
  if (!answer.ok) throw new Error(`the API description was answered ${answer.status}`);
  const document = /** @type {any} */ (await answer.json());
  const ajv = new Ajv({ strict: false, allErrors: true, validateFormats: true });
  addFormats(ajv);
  for (const name of NUMBERS) ajv.addFormat(name, true);
  ajv.addFormat("ip", (/** @type {string} */ text) => /^[0-9a-fA-F:.]+$/.test(text));
  ajv.addSchema(document, DESCRIPTION);
  const resolved = (part) => (part?.$ref ? part.$ref.slice(2).split("/").reduce((at, key) => at[key], document) : part);
  descriptions.set(new URL(url).origin, {
    resolved,
    paths: Object.entries(document.paths).map(([template, item]) => ({ template, item, pattern: new RegExp(`^${template.replace(/[.+*?^$()|[\]\\]/g, "\\$&").replace(/\{[^}]+\}/g, "[^/]+")}$`) })),
    problem(pointer, value) {
      const check = ajv.getSchema(`${DESCRIPTION}#/${pointer.map((key) => encodeURIComponent(key.replaceAll("~", "~0").replaceAll("/", "~1"))).join("/")}`);
      if (!check) return `the description has nothing at ${pointer.join(" ")}`;
      if (check(value)) return undefined;
      return check.errors.slice(0, 3).map((one) => `${one.instancePath || "the whole"} ${one.message}`).join("; ");
    },
  });
}

/** The path of the description that an address means: one that names it whole before one with ids. @param {Description} said @param {string} path */
function pathOf(said, path) {
  const fitting = said.paths.filter((one) => one.pattern.test(path));
  return fitting.sort((one, other) => one.template.split("{").length - other.template.split("{").length)[0];
}

/** @param {string | null} text @returns {unknown} */
function parsed(text) {
  try {
    return JSON.parse(text ?? "");
  } catch {
    return undefined;
  }
}

/** What is for the server's own pages alone and no call of a client, so not described. */
const OF_PAGES = /^\/v1\/sign-in\/providers\/[^/]+\/start$/;
/** What a server without a secrets backend does not have: pages find that out by asking. */
const WITH_SECRETS = /^\/v1\/secrets$/;

/** What is wrong with a request and its answer. @param {Description} said @param {any} request @param {any} answer @returns {Promise<string[]>} */
async function problems(said, request, answer) {
  const url = new URL(request.url());
  const found = pathOf(said, url.pathname);
  if (OF_PAGES.test(url.pathname)) return [];
  if (!found) return WITH_SECRETS.test(url.pathname) && answer.status() === 404 ? [] : ["the description has no such path"];
  const method = request.method().toLowerCase();
  const operation = found.item[method];
  if (!operation) return ["the description has no such method"];
  figures.requests++;
  const wrong = [];
  const names = new Set([...(found.item.parameters ?? []), ...(operation.parameters ?? [])].map(said.resolved).filter((one) => one.in === "query").map((one) => one.name));
  for (const name of url.searchParams.keys()) if (!names.has(name)) wrong.push(`the query "${name}" is not described`);
  const status = String(answer.status());
  const response = said.resolved(operation.responses[status]);
  if (!response) return [...wrong, `the status ${status} is not described`];
  const at = ["paths", found.template, method];
  const sent = request.postData();
  if (answer.ok() && sent !== null) {
    figures.bodies++;
    const problem = operation.requestBody ? said.problem([...at, "requestBody", "content", JSON_TYPE, "schema"], parsed(sent)) : "none is described";
    if (problem) wrong.push(`the body: ${problem}`);
  } else if (answer.ok() && operation.requestBody?.required) wrong.push("a body is described, and none was sent");
  const type = answer.headers()["content-type"]?.split(";")[0];
  const types = Object.keys(response.content ?? {});
  if (type ? !types.includes(type) : types.length && method !== "head") wrong.push(`an answer ${status} of ${type ?? "no type"} is not described`);
  else if (type === JSON_TYPE) {
    // What a browser has left behind has no body any more.
    const body = await answer.text().catch(() => undefined);
    if (body === undefined) return wrong;
    figures.answers++;
    const { $ref } = operation.responses[status];
    const problem = said.problem([...($ref ? $ref.slice(2).split("/") : [...at, "responses", status]), "content", JSON_TYPE, "schema"], parsed(body));
    if (problem) wrong.push(`the answer ${status}: ${problem}`);
  }
  return wrong;
}

/**
 * Looks at what a page asks from now on.
 * @param {any} page
 * @param {string} url of the server
 * @param {string[]} faults of the page: where what is found is put
 */
export function watched(page, url, faults) {
  page.on("requestfinished", (request) => {
    const said = descriptions.get(url);
    if (!said || !request.url().startsWith(`${url}/v1/`)) return;
    const look = (async () => {
      // Of a page that is closed meanwhile nothing more is known. A real answer came from an address; one that a test made up,
      // or changed, from none.
      const answer = await request.response().catch(() => null);
      const address = await answer?.serverAddr().catch(() => null);
      if (!answer || !address) return;
      for (const one of await problems(said, request, answer)) {
        const fault = `not as described: ${request.method()} ${request.url().slice(url.length)}: ${one}`;
        faults.push(fault);
        faultsOfAll.push(fault);
      }
    })();
    looking.add(look);
    look.catch((error) => faultsOfAll.push(`a request could not be looked at: ${error}`)).finally(() => looking.delete(look));
  });
}

/** The name of the client's call that this is, `runs.create`. @param {string} url of the server @param {string} method @param {string} path */
export function operationOf(url, method, path) {
  const said = descriptions.get(new URL(url).origin);
  return (said && pathOf(said, path.split("?")[0])?.item[method.toLowerCase()]?.operationId) ?? `${method} ${path}`;
}

/** The client's calls that change something. @param {string} url of the server @returns {Set<string>} */
export function changes(url) {
  const paths = descriptions.get(new URL(url).origin)?.paths ?? [];
  return new Set(paths.flatMap(({ item }) => Object.entries(item).filter(([method]) => method !== "get").map(([, one]) => one.operationId)));
}

/** What was found in this file, once all of it has been looked at. @returns {Promise<string[]>} */
export async function contractFaults() {
  while (looking.size) await Promise.allSettled(looking);
  if (figures.requests) console.log(`against the API description: requests ${figures.requests}, bodies ${figures.bodies}, answers ${figures.answers}, wrong ${faultsOfAll.length}`);
  return [...new Set(faultsOfAll)];
}
