import assert from "node:assert/strict";
import { test } from "node:test";
import { AgentRuntimeError } from "../src/errors.js";
import { comesSoon, mayRepeat, pauseMs } from "../src/retry.js";

const error = (status, serverCode, code = "unavailable") => new AgentRuntimeError(code, "", { status, serverCode });

test("what is sent again is what does no harm", () => {
  const network = error(undefined, undefined, "network");
  const late = error(undefined, undefined, "timeout");
  for (const [method, hasKey, fault, wanted] of [
    ["GET", false, network, true],
    ["PUT", false, network, true],
    ["DELETE", false, late, true],
    ["POST", false, network, false],
    ["PATCH", false, network, false],
    ["POST", true, network, true],
    ["POST", true, late, true],
    ["GET", false, error(502), true],
    ["POST", false, error(502), false],
    ["POST", true, error(502), true],
    ["POST", false, error(503), false],
    ["POST", false, error(503, "database-unavailable"), false],
    ["POST", false, error(503, "overloaded"), true],
    ["PATCH", false, error(503, "shutting-down"), true],
    ["POST", false, error(429, "too-many-requests"), true],
    ["POST", true, error(504, "deadline-exceeded"), true],
    ["POST", false, error(504, "deadline-exceeded"), false],
    ["POST", true, error(409, "idempotency-in-flight"), true],
    ["POST", true, error(409, "conflict"), false],
    ["GET", false, error(500, "authorization-unavailable"), true],
    ["GET", false, error(500, "internal"), false],
    ["GET", false, error(501, "not-configured"), false],
    ["GET", false, error(404, "not-found"), false],
    ["GET", false, error(undefined, undefined, "protocol"), false],
  ])
    assert.equal(mayRepeat(fault, method, hasKey), wanted, `${method} ${hasKey} ${fault.status} ${fault.serverCode}`);
});

test("pauses grow, differ, and are what the server asks for", () => {
  assert.equal(pauseMs(1, undefined, 0), 500);
  assert.equal(pauseMs(1, undefined, 1), 250);
  assert.equal(pauseMs(2, undefined, 0), 1000);
  assert.equal(pauseMs(60, undefined, 0), 8000);
  assert.equal(pauseMs(1, 3000), 3000);
  assert.ok(comesSoon(new AgentRuntimeError("rate-limit", "", { retryAfterMs: 8000 })));
  assert.ok(!comesSoon(new AgentRuntimeError("rate-limit", "", { retryAfterMs: 8001 })));
});
