import assert from "node:assert/strict";
import { execFileSync } from "node:child_process";
import { createHmac, randomBytes } from "node:crypto";
import { createRequire } from "node:module";
import { test } from "node:test";
import { fileURLToPath } from "node:url";
import { AgentRuntimeError, WebhookSignatureError, parseEvent } from "../src/index.js";
import { errorOf } from "./support.js";

const SECRET = "whsec_MfKQ9r8GKYqrTwjUPD8ILPZIo2LaLaSw";
const ID = "01980000-0000-7000-8000-000000000001";
const NOW = new Date("2026-11-25T09:30:00.000Z");
const SECONDS = String(NOW.getTime() / 1000);

const signature = (body, { id = ID, timestamp = SECONDS, secret = SECRET } = {}) =>
  `v1,${createHmac("sha256", Buffer.from(secret.replace("whsec_", ""), "base64")).update(`${id}.${timestamp}.`).update(body).digest("base64")}`;

/** A delivery as the service makes it, and what a test changes of it. */
function delivery(event = { id: ID, type: "run.finished", createdAt: NOW.toISOString(), data: { run: { id: "1", agent: { version: "1.2.3" } } } }, changes = {}) {
  const body = typeof event === "string" ? event : JSON.stringify(event);
  const headers = { "webhook-id": ID, "webhook-timestamp": SECONDS, "webhook-signature": signature(body) };
  return { body, secret: SECRET, now: NOW, ...changes, headers: { ...headers, ...changes.headers } };
}

test("the vector of Standard Webhooks holds", async () => {
  const body = '{"test": 2432232314}';
  const given = { body, secret: SECRET, now: new Date(1614265330_000) };
  const headers = { "webhook-id": "msg_p5jXN8AQM9LWM0D4loKWxJek", "webhook-timestamp": "1614265330", "webhook-signature": "v1,g0hM9SsE+OTPJTGt/tmIKtSyZlE3uFJELVlNIOLJ1OE=" };
  // It is signed, and is no event of the service.
  assert.equal((await errorOf(parseEvent({ ...given, headers }))).code, "protocol");
  assert.ok((await errorOf(parseEvent({ ...given, body: body.replace("2", "3"), headers }))) instanceof WebhookSignatureError);
});

test("an event is read from text and bytes, and from headers of each kind", async () => {
  const given = delivery();
  const bytes = new TextEncoder().encode(given.body);
  for (const body of [given.body, bytes, bytes.buffer, Buffer.from(given.body)])
    assert.equal((await parseEvent({ ...given, body })).data.run.agent.version, "1.2.3");
  const upper = Object.fromEntries(Object.entries(given.headers).map(([name, value]) => [name.toUpperCase(), value]));
  for (const headers of [new Headers(given.headers), upper]) assert.equal((await parseEvent({ ...given, headers })).type, "run.finished");
});

test("every type that the service sends is read, a test, and one of a later service", async () => {
  for (const [type, data] of [
    ["run.finished", { run: { id: "1", status: "completed" } }],
    ["improvement-pass.finished", { pass: { id: "1", outcome: { proposalId: null } } }],
    ["approval.requested", { approval: { approvalId: ID, title: "ü" } }],
    ["webhook.test", { endpointId: ID, message: "A test." }],
    ["later.type", ["anything"]],
  ]) {
    const event = { id: ID, type, createdAt: NOW.toISOString(), data, laterField: 1 };
    assert.deepEqual(await parseEvent(delivery(event)), event);
  }
});

test("while a secret rotates, either will do", async () => {
  const other = `whsec_${randomBytes(24).toString("base64")}`;
  const given = delivery();
  const both = { ...given.headers, "webhook-signature": `${signature(given.body, { secret: other })} ${signature(given.body)}` };
  await parseEvent({ ...given, headers: both });
  await parseEvent({ ...given, headers: both, secret: other });
  await parseEvent({ ...given, secret: [other, SECRET] });
  await parseEvent({ ...given, headers: { ...given.headers, "webhook-signature": `v2,later ${signature(given.body)}` } });
});

test("a delivery is taken within five minutes, or as long as is said", async () => {
  const at = (seconds) => delivery(undefined, { now: new Date(NOW.getTime() + seconds * 1000) });
  for (const seconds of [-300, 0, 300]) await parseEvent(at(seconds));
  for (const seconds of [-301, 301]) assert.ok((await errorOf(parseEvent(at(seconds)))) instanceof WebhookSignatureError);
  await parseEvent({ ...at(900), toleranceSeconds: 900 });
});

/** Forty deliveries that somebody else makes. */
function forged() {
  const honest = delivery();
  const { body } = honest;
  const own = signature(body);
  const base64 = own.slice(3);
  const bytes = Buffer.from(body);
  const flipped = (place) => Buffer.from(bytes).fill(bytes[place] ^ 1, place, place + 1);
  const sign = (text) => ({ headers: { "webhook-signature": text } });
  return [
    ...[0, 1, 17, bytes.length >> 1, bytes.length - 1].map((place) => ({ body: flipped(place) })),
    { body: `${body} ` }, { body: ` ${body}` }, { body: `${body}\n` }, { body: "" }, { body: body.slice(0, -1) }, { body: body + body },
    { body: JSON.stringify(JSON.parse(body), null, 1) }, { body: `\ufeff${body}` },
    { headers: { "webhook-id": "01980000-0000-7000-8000-000000000002" } }, { headers: { "webhook-id": "" } },
    { headers: { "webhook-id": undefined } }, { headers: { "webhook-id": [ID, ID] } }, { headers: { "webhook-id": `${ID}.${SECONDS}` } },
    { headers: { "webhook-timestamp": String(Number(SECONDS) + 1) } }, { headers: { "webhook-timestamp": "" } },
    { headers: { "webhook-timestamp": undefined } }, { headers: { "webhook-timestamp": `${SECONDS}.0` } },
    { headers: { "webhook-timestamp": ` ${SECONDS}` } }, { headers: { "webhook-timestamp": "NaN" } },
    { headers: { "webhook-timestamp": "9".repeat(400) } }, { headers: { "webhook-timestamp": "-1" } },
    sign(""), sign(undefined), sign("v1,"), sign(base64), sign(`v2,${base64}`), sign(`v1a,${base64}`), sign(own.slice(0, -5)),
    sign(`v1,${"A".repeat(43)}=`), sign("v1,%%%"), sign(`V1,${base64}`), sign(own.replace(",", "")),
    sign(signature(body, { secret: `whsec_${randomBytes(24).toString("base64")}` })),
    sign(signature(body, { timestamp: "0" })),
    // So many that the right one would be looked for all day.
    sign(`${"v1,AAAA ".repeat(1000)}${own}`),
  ].map((changes) => delivery(body, changes));
}

test("forty forged deliveries are refused", async () => {
  const deliveries = forged();
  assert.equal(deliveries.length, 40);
  for (const [number, one] of deliveries.entries())
    assert.ok((await errorOf(parseEvent(one))) instanceof WebhookSignatureError, `forgery ${number}`);
  const error = await errorOf(parseEvent(deliveries[0]));
  assert.ok(error instanceof AgentRuntimeError);
  assert.deepEqual([error.name, error.code], ["WebhookSignatureError", "signature"]);
});

test("the library of the standard takes and refuses the same", async () => {
  const parts = execFileSync(fileURLToPath(new URL("../../../tests/setup/where", import.meta.url)), { encoding: "utf8" }).trim();
  const { Webhook } = createRequire(`${parts}/webhook-receiver/`)("standardwebhooks");
  const hook = new Webhook(SECRET);
  const now = new Date();
  const timestamp = String(Math.floor(now.getTime() / 1000));
  /** The same delivery, made now: the library takes no other time. */
  const today = (one) => {
    const body = typeof one.body === "string" ? one.body : Buffer.from(one.body);
    const old = one.headers["webhook-timestamp"];
    return { ...one, body, now, headers: { ...one.headers, "webhook-timestamp": old === SECONDS ? timestamp : old } };
  };
  const honest = today(delivery());
  honest.headers["webhook-signature"] = signature(honest.body, { timestamp });
  assert.equal(hook.verify(honest.body, honest.headers).id, (await parseEvent(honest)).id);
  for (const [number, one] of forged().map(today).entries()) {
    // What was changed is changed of a delivery of now.
    if (one.headers["webhook-signature"] === signature(delivery().body)) one.headers["webhook-signature"] = honest.headers["webhook-signature"];
    assert.ok((await errorOf(parseEvent(one))) instanceof WebhookSignatureError, `forgery ${number}`);
    assert.throws(() => hook.verify(one.body, one.headers), undefined, `forgery ${number}`);
  }
});

test("a body that something has parsed, and secrets that are none, are the caller's fault", async () => {
  for (const body of [{ type: "run.finished" }, undefined, null, 7]) {
    const error = await errorOf(parseEvent({ ...delivery(), body }));
    assert.ok(error instanceof AgentRuntimeError && error.code === "invalid", String(body));
  }
  for (const secret of [[], "", "whsec_", "whsec_%%%", SECRET.slice("whsec_".length), SECRET.slice(0, -4), [SECRET, "whsec_%%%"]]) {
    const error = await errorOf(parseEvent({ ...delivery(), secret }));
    assert.ok(error instanceof AgentRuntimeError && error.code === "invalid", secret);
    assert.ok(!error.message.includes("%%%"));
  }
});

test("what is signed and is no event is a fault of the protocol", async () => {
  for (const body of ["", "{", "[]", "null", '"text"', "{}", '{"type":1}', JSON.stringify({ id: "another", type: "run.finished" })])
    assert.equal((await errorOf(parseEvent(delivery(body)))).code, "protocol", body);
});
