/**
 * A real server for the tests: `agent-runtime dev` with a data directory of its own, or one that runs already
 * (`AGENT_RUNTIME_CONSOLE_URL`, with its token in `AGENT_RUNTIME_TOKEN_FILE`), filled with what the pages show.
 */

import { execFileSync, spawn } from "node:child_process";
import { once } from "node:events";
import { mkdtempSync, readFileSync } from "node:fs";
import { rm } from "node:fs/promises";
import { tmpdir } from "node:os";
import { dirname, join } from "node:path";
import { fileURLToPath } from "node:url";
import { AgentRuntime } from "../../clients/typescript/src/index.js";
import { describes } from "./contract.mjs";
import { house } from "./house.mjs";
import { eventually, example } from "./look-up.mjs";
import { operated } from "./operated.mjs";
import { work } from "./work.mjs";

const top = fileURLToPath(new URL("../../", import.meta.url));
const BINARY = process.env.AGENT_RUNTIME_BIN ?? join(process.env.CARGO_TARGET_DIR ?? join(top, "target"), "debug/agent-runtime");
const PATIENCE_MS = 300_000;

/** The authorization server that `tests/setup/openfga` installed: the first of its versions. */
function openfga() {
  const parts = execFileSync(join(top, "tests/setup/where"), { encoding: "utf8" }).trim();
  const [version] = readFileSync(join(top, "tests/setup/openfga.txt"), "utf8").split(/\s/);
  return join(parts, `openfga-${version}/openfga`);
}

/** The address that it prints, once it is ready. @param {import("node:child_process").ChildProcessByStdio<null, any, null>} child */
function address(child) {
  return new Promise((found, failed) => {
    let said = "";
    const late = setTimeout(() => failed(new Error(`agent-runtime dev did not begin:\n${said}`)), PATIENCE_MS);
    child.once("error", failed);
    child.once("exit", (code) => {
      clearTimeout(late);
      failed(new Error(`agent-runtime dev ended with ${code}:\n${said}`));
    });
    child.stdout.setEncoding("utf8").on("data", (text) => {
      said += text;
      const url = /http:\/\/127\.0\.0\.1:\d+/.exec(said)?.[0];
      if (!url || !said.includes("Ctrl-C")) return;
      clearTimeout(late);
      found(url);
    });
  });
}

/**
 * @param {{ after: (end: () => unknown) => void }} t what ends it
 * @param {{ authorization?: boolean, port?: string, args?: string[], env?: Record<string, string> }} [options] `authorization`: who may do what
 *   is checked, by OpenFGA; such a server that runs already is in `AGENT_RUNTIME_AUTHORIZED_URL` and
 *   `AGENT_RUNTIME_AUTHORIZED_TOKEN_FILE`. `port`, `args`, `env`: of `agent-runtime dev`; with `args` or `env` it is always one of
 *   its own. The console signs in by itself where `env` says so
 * @returns {Promise<{ url: string, api: AgentRuntime, token: string, data: string, restart: (signal?: "SIGTERM" | "SIGKILL") => Promise<void> }>} `data`:
 *   its data directory; `restart` ends it and begins it again at the same address, with another token
 */
export async function server(t, { authorization = false, port = "0", args = [], env = {} } = {}) {
  const named = authorization ? "AGENT_RUNTIME_AUTHORIZED" : "AGENT_RUNTIME";
  const given = process.env[authorization ? `${named}_URL` : `${named}_CONSOLE_URL`];
  const known = async (url, file) => {
    const token = readFileSync(file, "utf8").trim();
    await describes(url, token);
    return { url, token, api: new AgentRuntime({ baseUrl: url, token }) };
  };
  if (given && !args.length && !Object.keys(env).length) {
    const file = process.env[`${named}_TOKEN_FILE`] ?? "";
    const restart = () => Promise.reject(new Error("the server is not ours to end"));
    return { ...(await known(given, file)), data: dirname(file), restart };
  }
  const data = mkdtempSync(join(tmpdir(), "agent-runtime-console-"));
  const more = [...(authorization ? ["--authorization", "--openfga", openfga()] : []), ...args];
  let child;
  const begin = async (port) => {
    child = spawn(BINARY, ["dev", "--port", port, "--data-dir", data, ...more], { cwd: data, env: { ...process.env, SVC_DEV_CONSOLE_LOGIN: "false", ...env }, stdio: ["ignore", "pipe", "inherit"] });
    return known(await address(child), join(data, "token"));
  };
  const stop = async (/** @type {NodeJS.Signals} */ signal = "SIGTERM") => {
    if (child.exitCode === null && child.signalCode === null && child.kill(signal)) await once(child, "exit");
  };
  t.after(async () => {
    await stop();
    await rm(data, { recursive: true, force: true, maxRetries: 20, retryDelay: 100 });
  });
  const place = { ...(await begin(port)), data };
  const restart = async (/** @type {NodeJS.Signals} */ signal = "SIGTERM") => {
    await stop(signal);
    Object.assign(place, await begin(new URL(place.url).port));
  };
  return Object.assign(place, { restart });
}

/** Asks a server's own database, where it is in this host's namespace. @param {{ data: string }} place @param {string} said @returns {string} */
export function sql(place, said) {
  return execFileSync("psql", ["-h", join(place.data, "socket"), "-U", "agent_runtime", "-d", "postgres", "-v", "ON_ERROR_STOP=1", "-qAtc", said], { encoding: "utf8" }).trim();
}

/** A flow that asks an agent, then a person. */
const REFUND = {
  document: { dsl: "1.0.3", namespace: "billing", name: "refund", version: "1.0.0" },
  input: { schema: { format: "json", document: { type: "object", required: ["order"], properties: { order: { type: "string", title: "Order", maxLength: 40 }, amount: { type: "number", title: "Amount", default: 20 } } } } },
  do: [
    { assess: { call: "agent", with: { agent: "assistant", message: "${ \"What time is it for \" + .order }" }, output: { as: "{ advice: .text }" } } },
    { both: { fork: { branches: [{ left: { set: { side: "left" } } }, { right: { call: "agent", with: { agent: "assistant", message: "And now?" } } }] } } },
    { ask: { call: "approval", with: { title: "Refund of 50 EUR or more", requiredRole: "standard", context: "${ . }", expiresAfter: "P2D" } } },
  ],
};

/** A flow whose try is caught once, and which then fails. */
const FAILING = {
  document: { dsl: "1.0.3", namespace: "billing", name: "close-month", version: "2.1.0" },
  do: [
    { total: { set: { total: 3 } } },
    { ask: { call: "agent", with: { agent: "assistant", message: "Is the month over?" } } },
    { check: { try: [{ first: { raise: { error: { type: "https://example.com/errors/late", status: 500, title: "The ledger is late" } } } }], catch: { errors: { with: { status: 500 } } } } },
    { close: { raise: { error: { type: "https://example.com/errors/open", status: 409, title: "The ledger of October is still open, so the month cannot be closed" } } } },
  ],
};

/** Stores a flow once, however often it is filled. @param {AgentRuntime} api @param {any} body */
async function flow(api, body) {
  try {
    return await api.flows.create(body);
  } catch (error) {
    if (error.status !== 409) throw error;
    const { namespace, name } = body.definition.document;
    return (await api.flows.list({ flowId: `${namespace}.${name}` })).data[0];
  }
}

/**
 * What the pages show. Its names stand in the addresses of `pages.mjs`: `runs/{run}`.
 * @param {AgentRuntime} api
 * @param {AgentRuntime} [reviewer] who decides, where access is checked: nobody decides about what they started
 */
export async function world(api, reviewer = api) {
  const agent = await example(api);
  const projectId = agent.projectId;
  const { run } = await api.runs.create({ agentId: agent.id, message: "What time is it?" });
  await api.runs.wait(run.id);
  const me = await api.me.get();
  await api.reviewers.register({ userId: me.id, role: "standard" }).catch((error) => {
    if (error.status !== 409) throw error;
  });
  const refund = await flow(api, { projectId, definition: REFUND });
  const closing = await flow(api, { projectId, definition: FAILING });
  const asks = await api.runs.create({ flowId: refund.flowId, projectId, input: { order: "A-17", amount: 80 }, labels: { customer: "acme" } });
  const fails = await api.runs.create({ flowId: closing.flowId, projectId });
  await api.runs.wait(fails.run.id);
  const [approval] = await eventually(async () => {
    const { data } = await api.approvals.list({ runId: asks.run.id });
    return data.length ? data : undefined;
  });
  return { agent: agent.id, project: projectId, run: run.id, waiting: asks.run.id, failed: fails.run.id, flow: refund.id, approval: approval.id, ...(await operated(api, projectId)), ...(await work(api, reviewer)), ...(await house(api, projectId)) };
}
