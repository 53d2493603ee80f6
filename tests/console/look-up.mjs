/** Finding what a server has, waiting for what comes, and a port for what has to know its own before it begins. */

import { once } from "node:events";
import net from "node:net";

/** @import { AgentRuntime } from "../../clients/typescript/src/index.js" */

/** A busy machine takes its time. */
const PATIENCE_MS = 300_000;

/**
 * The first row of a list that is meant.
 * @param {AsyncIterable<any>} list
 * @param {(row: any) => unknown} isIt
 */
export async function found(list, isIt) {
  for await (const row of list) if (isIt(row)) return row;
  return undefined;
}

/** @param {string} name */
export const named = (name) => (/** @type {any} */ row) => row.name === name;

/** The agent that `agent-runtime dev` begins with. @param {AgentRuntime} api */
export async function example(api) {
  const agent = await found(api.agents.list({ limit: 200 }), named("assistant"));
  if (!agent) throw new Error("agent-runtime dev has no example agent");
  return agent;
}

/** Asks until there is an answer. @template T @param {() => Promise<T | undefined | null | false>} ask @param {string} [what] @returns {Promise<T>} */
export async function eventually(ask, what = "it") {
  for (const end = Date.now() + PATIENCE_MS; Date.now() < end; await new Promise((next) => setTimeout(next, 100))) {
    const answer = await ask();
    if (answer) return answer;
  }
  throw new Error(`${what} did not come in ${PATIENCE_MS / 1000} s`);
}

/** A port of loopback that nothing has at this time. */
export async function freePort() {
  const one = net.createServer().listen(0, "127.0.0.1");
  await once(one, "listening");
  const { port } = /** @type {net.AddressInfo} */ (one.address());
  one.close();
  await once(one, "close");
  return port;
}
