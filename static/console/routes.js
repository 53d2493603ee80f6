/**
 * Every page: its address, its name, where it stands in the rail, and who is offered it.
 *
 * A page is a row here and a file in `pages/` whose `default` is its component; it gets what the pattern names. Rows without
 * `rail` are reached from others. `may` goes by `permit.js`, never by the name of a role.
 */

import { may } from "./permit.js";

/**
 * @typedef {object} Route
 * @property {string} pattern below `/console/`
 * @property {string} title
 * @property {() => Promise<{ default: (props: any) => any }>} load
 * @property {"Work" | "Build" | "Improve" | "Settings" | "Me"} [rail] the part of the rail that has it
 * @property {string} [icon]
 * @property {string} [keys] the single keys that go there, such as `g r`
 * @property {() => boolean} [may] who is offered it; everybody without
 */

/** @type {Route[]} */
export const ROUTES = [
  // Work
  { pattern: "runs", title: "Runs", rail: "Work", icon: "runs", keys: "g r", load: () => import("./pages/runs.js"), may: () => may("read", "run") },
  { pattern: "runs/:runId", title: "Run", load: () => import("./pages/run.js") },
  { pattern: "runs/:runId/:tab", title: "Run", load: () => import("./pages/run.js") },

  // Build

  // Improve

  // Settings

  // Me

  // In no rail
  { pattern: "dev/components", title: "Components", load: () => import("./pages/components.js") },
];

/** The parts of the rail, in order. */
export const AREAS = /** @type {const} */ (["Work", "Build", "Improve", "Settings", "Me"]);
