/**
 * Paths with ids in them. Pure.
 *
 * Guarantees: an id stays one part of its path, whatever is in it.
 */

import { AgentRuntimeError } from "./errors.js";

/**
 * A path with its ids, escaped.
 * @param {TemplateStringsArray} parts
 * @param {string[]} ids
 */
export function path(parts, ...ids) {
  return parts.reduce((path, part, number) => {
    const id = ids[number - 1];
    // A path with `..` in it leads elsewhere.
    if (typeof id !== "string" || id === "" || id === "." || id === "..")
      throw new AgentRuntimeError("invalid", `An id of ${path}… is missing: it is ${id === "" ? "empty" : String(id)}.`);
    return path + encodeURIComponent(id) + part;
  });
}
