/**
 * A real server for the tests: `agent-runtime dev` with a data directory of its own, or one that runs already
 * (`AGENT_RUNTIME_CONSOLE_URL`, with its token in `AGENT_RUNTIME_TOKEN_FILE`), filled with what the pages show.
 */

import { spawn } from "node:child_process";
import { once } from "node:events";
import { mkdtempSync, readFileSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { fileURLToPath } from "node:url";
import { AgentRuntime } from "../../clients/typescript/src/index.js";
import { pages } from "./serve.mjs";

const top = fileURLToPath(new URL("../../", import.meta.url));
const BINARY = process.env.AGENT_RUNTIME_BIN ?? join(process.env.CARGO_TARGET_DIR ?? join(top, "target"), "debug/agent-runtime");
const PATIENCE_MS = 300_000;

/**
 * @param {{ after: (end: () => unknown) => void }} t what ends it
 * @returns {Promise<{ url: string, api: AgentRuntime, token: string }>}
 */
export async function server(t) {
  const given = process.env.AGENT_RUNTIME_CONSOLE_URL;
  if (given) {
    const token = readFileSync(process.env.AGENT_RUNTIME_TOKEN_FILE ?? "", "utf8").trim();
    return { url: given, token, api: new AgentRuntime({ baseUrl: given, token }) };
  }
  const data = mkdtempSync(join(tmpdir(), "agent-runtime-console-"));
  const child = spawn(BINARY, ["dev", "--port", "0", "--data-dir", data], { cwd: data, stdio: ["ignore", "pipe", "inherit"] });
  t.after(async () => {
    if (child.exitCode === null && child.kill("SIGTERM")) await once(child, "exit");
    rmSync(data, { recursive: true, force: true, maxRetries: 20, retryDelay: 100 });
  });
  const url = await new Promise((found, failed) => {
    let said = "";
    const late = setTimeout(failed, PATIENCE_MS, new Error(`agent-runtime dev did not begin:\n${said}`));
    child.once("exit", (code) => failed(new Error(`agent-runtime dev ended with ${code}:\n${said}`)));
    child.stdout.setEncoding("utf8").on("data", (text) => {
      said += text;
      const address = /http:\/\/127\.0\.0\.1:\d+/.exec(said)?.[0];
      if (address && said.includes("Ctrl-C")) {
        clearTimeout(late);
        found(address);
      }
    });
  });
  const token = readFileSync(join(data, "token"), "utf8").trim();
  const front = pages(url).listen(0, "127.0.0.1");
  await once(front, "listening");
  t.after(() => (front.close(), front.closeAllConnections()));
  return { url: `http://127.0.0.1:${front.address().port}`, token, api: new AgentRuntime({ baseUrl: url, token }) };
}

/**
 * What the pages show. Its names stand in the addresses of `pages.test.mjs`: `runs/{run}`.
 * @param {AgentRuntime} api
 */
export async function world(api) {
  const agents = await api.agents.list({ limit: 1 });
  const [agent] = agents.data;
  if (!agent) throw new Error("agent-runtime dev has no example agent");
  const { run } = await api.runs.create({ agentId: agent.id, message: "What time is it?" });
  await api.runs.wait(run.id);
  return { agent: agent.id, project: agent.projectId, run: run.id };
}
