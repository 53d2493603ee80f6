/**
 * The token of a file, in Node alone. What loads in a browser does not have it.
 */

import { AgentRuntimeError } from "./errors.js";

/** Named apart, so that nothing that packs programs for browsers looks for it. */
const FILES = "node:fs/promises";

/** @param {string} file @returns {Promise<string>} */
export async function tokenOf(file) {
  try {
    return await (await import(FILES)).readFile(file, "utf8");
  } catch (cause) {
    throw new AgentRuntimeError("invalid", `AGENT_RUNTIME_TOKEN_FILE names ${file}, which cannot be read.`, { cause });
  }
}
