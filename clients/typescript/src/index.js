/**
 * The client of agent-runtime. It has no dependencies, and runs in Node and in browsers as it stands.
 */

export { AgentRuntime, RunReader } from "./client.js";
export { AgentRuntimeError } from "./errors.js";
export { Page } from "./page.js";
export { VERSION } from "./version.js";
export { WebhookSignatureError, parseEvent } from "./webhooks.js";

/** @typedef {import("./errors.js").ErrorCode} ErrorCode */
/** @typedef {import("./transport.js").CallOptions} CallOptions */
/** @typedef {import("./transport.js").ClientOptions} ClientOptions */
/** @typedef {import("./transport.js").FollowOptions} FollowOptions */
