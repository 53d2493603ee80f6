/** The token of a file, in Node alone. */

import { AgentRuntimeError } from "./errors.js";

/** Apart: bundlers do not look for it. */
const FILES = "node:fs/promises";

/** @param {string} file @returns {Promise<string>} */
export async function tokenOf(file) {
  try {
    return await (await import(FILES)).readFile(file, "utf8");
  } catch (cause) {
    throw new AgentRuntimeError("invalid", `AGENT_RUNTIME_TOKEN_FILE: cannot read ${file}.`, { cause });
  }
}
