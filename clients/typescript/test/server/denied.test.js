/** What a person without a role gets, from a server that checks who may do what. `tests/it/clients` starts it. */

import assert from "node:assert/strict";
import { test } from "node:test";
import { AgentRuntime } from "../../src/index.js";
import { errorOf } from "../support.js";

const { URL: url, TOKEN: token, PROJECT: projectId } = process.env;

test("a denial of the server is auth and forbidden, with its message", async () => {
  const runtime = new AgentRuntime({ baseUrl: url, token });
  for (const call of [
    () => runtime.projects.memberships.add(projectId, { email: "ada@example.com", role: "editor" }),
    () => runtime.projects.access.list(projectId),
    () => runtime.projects.teamGrants.list(projectId),
    () => runtime.audit.authz({ order: "desc" }),
  ]) {
    const error = await errorOf(call());
    assert.deepEqual([error.code, error.reason, error.serverCode, error.status], ["auth", "forbidden", "permission-denied", 403]);
    assert.match(error.message, /permission denied/i);
    assert.equal(error.details.reason, error.message);
    assert.match(error.requestId, /^req-/);
  }
  const stranger = new AgentRuntime({ baseUrl: url, token: "svc_bt_nobody" });
  assert.deepEqual([(await errorOf(stranger.me.permissions())).reason], ["unauthenticated"]);
});
