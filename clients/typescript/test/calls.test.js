import assert from "node:assert/strict";
import { execFileSync } from "node:child_process";
import { readFileSync } from "node:fs";
import { createRequire } from "node:module";
import { test } from "node:test";
import { fileURLToPath } from "node:url";
import { client, serve } from "./support.js";

const read = (path) => readFileSync(new URL(path, import.meta.url), "utf8");
const rows = JSON.parse(read("../../calls_table.json"));
const description = JSON.parse(read("../../../tests/it/snapshots/it__routes__openapi.snap").split("\n---\n")[1]);
const operations = Object.entries(description.paths).flatMap(([path, methods]) =>
  Object.entries(methods).map(([method, operation]) => ({ ...operation, path, method: method.toUpperCase() })));

/** The function of a call, bound to its noun. */
function found(runtime, call) {
  const words = call.split(".");
  const verb = words.pop();
  const noun = words.reduce((within, word) => within[word], runtime);
  return noun[verb].bind(noun);
}

test("the client has the calls of the description, and no other", () => {
  const runtime = client("http://127.0.0.1:1");
  const calls = [];
  const look = (noun, name) => {
    for (let made = Object.getPrototypeOf(noun); made !== Object.prototype; made = Object.getPrototypeOf(made))
      for (const verb of Object.getOwnPropertyNames(made)) if (verb !== "constructor") calls.push(`${name}.${verb}`);
    for (const [word, inner] of Object.entries(noun)) look(inner, `${name}.${word}`);
  };
  for (const [word, noun] of Object.entries(runtime)) look(noun, word);
  // What is made of several calls.
  const wanted = [...operations.map(({ operationId }) => operationId), "runs.wait"];
  assert.deepEqual(calls.sort(), wanted.sort());
});

test("every call of the table is sent as it says, and its answer is read", async (t) => {
  let row;
  const { url, requests } = await serve(t, () => {
    const body = row.stream ?? (row.answer === undefined ? undefined : JSON.stringify(row.answer));
    return { status: row.status, headers: { "content-type": row.stream ? "text/event-stream" : "application/json" }, body };
  });
  const runtime = client(url, { retries: 0 });
  for (row of rows) {
    const call = found(runtime, row.call);
    const before = requests.length;
    const pattern = operations.find(({ operationId }) => operationId === row.call);
    const takesQuery = pattern.parameters.some((parameter) => parameter.in === "query");
    const given = [...row.ids, ...(row.body ? [row.body] : [])];
    if (row.stream) {
      const kinds = [];
      for await (const { kind } of call(...given, row.query)) if (kinds.push(kind) === row.kinds.length) break;
      assert.deepEqual(kinds, row.kinds, row.call);
    } else {
      const answer = await call(...given, ...(takesQuery ? [row.query] : []));
      const plain = answer === undefined ? undefined : JSON.parse(JSON.stringify(answer));
      assert.deepEqual(plain, row.answer, row.call);
    }
    assert.equal(requests.length, before + 1, row.call);
    const { method, url: target, body } = requests.at(-1);
    const { pathname, searchParams } = new URL(target, "http://a");
    assert.equal(`${method} ${pathname}`, row.request, row.call);
    const query = Object.entries(row.query ?? {}).flatMap(([name, values]) => [values].flat().map((value) => [name, String(value)]));
    assert.deepEqual([...searchParams].sort(), query.sort(), row.call);
    assert.deepEqual(body ? JSON.parse(body) : undefined, row.body, row.call);
  }
});

test("the table has every call, and each request of it fits the API description", () => {
  const where = execFileSync(fileURLToPath(new URL("../../../tests/setup/where", import.meta.url)), { encoding: "utf8" }).trim();
  const require = createRequire(`${where}/description/`);
  const Ajv = require("ajv/dist/2020").default;
  const ajv = new Ajv({ strict: false, allErrors: true });
  require("ajv-formats").default(ajv);
  for (const [format, bits] of [["int32", 32], ["int64", 64], ["uint16", 16], ["uint32", 32]]) ajv.addFormat(format, { type: "number", validate: (value) => Math.abs(value) < 2 ** bits });
  ajv.addSchema(description, "description");
  const fits = (place, schema, value) => {
    const validate = ajv.compile(JSON.parse(JSON.stringify(schema).replaceAll('"#/', '"description#/')));
    assert.ok(validate(value), `${place}: ${JSON.stringify(validate.errors)}`);
  };
  for (const { operationId, path, method, parameters, requestBody } of operations) {
    const own = rows.filter(({ call }) => call === operationId);
    assert.ok(own.length > 0, `${operationId} is not in the table`);
    for (const { request, query = {}, body } of own) {
      const form = new RegExp(`^${method} ${path.replace(/\{(\w+)\}/g, "(?<$1>[^/]+)")}$`);
      const matched = form.exec(request) ?? assert.fail(`${operationId}: ${request}`);
      const values = { path: matched.groups ?? {}, query };
      for (const { name, in: place, required, schema } of parameters) {
        const value = values[place]?.[name];
        if (value !== undefined) fits(`${operationId}(${name})`, schema, place === "path" ? decodeURIComponent(value) : value);
        else assert.ok(!required || place === "header", `${operationId}(${name})`);
      }
      const known = parameters.filter((parameter) => parameter.in === "query").map(({ name }) => name);
      assert.deepEqual(Object.keys(query).filter((name) => !known.includes(name)), [], operationId);
      if (requestBody) fits(`${operationId}: body`, requestBody.content["application/json"].schema, body);
      else assert.equal(body, undefined, operationId);
    }
  }
});
