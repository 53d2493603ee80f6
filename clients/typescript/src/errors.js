/**
 * The one error of the client, and what each answer of a server becomes. Pure.
 *
 * Guarantees: no message has a credential in it; every code of the server has one of our codes, also one of a later
 * server, by its status.
 */

/**
 * @typedef {"auth" | "invalid" | "not-found" | "conflict" | "rate-limit" | "unavailable" | "timeout" | "network"
 *   | "server" | "protocol" | "signature"} ErrorCode
 * @typedef {object} ErrorDetail
 * @property {"unauthenticated" | "forbidden"} [reason]
 * @property {string} [serverCode]
 * @property {number} [status]
 * @property {string} [requestId]
 * @property {Record<string, any>} [details]
 * @property {number} [retryAfterMs]
 * @property {unknown} [cause]
 */

export class AgentRuntimeError extends Error {
  /**
   * @param {ErrorCode} code
   * @param {string} message
   * @param {ErrorDetail} [detail]
   */
  constructor(code, message, detail = {}) {
    super(message, "cause" in detail ? { cause: detail.cause } : undefined);
    this.name = "AgentRuntimeError";
    /** What went wrong, for programs. */
    this.code = code;
    /** Of `auth`: no valid credential, or one that may not do this. */
    this.reason = detail.reason;
    /** The server's own code, such as `permission-denied`. */
    this.serverCode = detail.serverCode;
    /** The status of the answer, if there was one. */
    this.status = detail.status;
    /** The server's log has the cause under it. */
    this.requestId = detail.requestId;
    /** What the server's code has with it. */
    this.details = detail.details ?? {};
    /** How long the server asks to wait, if it does. */
    this.retryAfterMs = detail.retryAfterMs;
  }
}

/** @type {Record<number, ErrorCode>} */
const BY_STATUS = {
  401: "auth", 403: "auth", 404: "not-found", 408: "timeout", 409: "conflict", 429: "rate-limit",
  502: "unavailable", 503: "unavailable", 504: "timeout",
};

/**
 * @param {number} status
 * @param {string} [serverCode]
 * @returns {ErrorCode}
 */
export function errorCode(status, serverCode) {
  if (serverCode === "authorization-unavailable") return "unavailable";
  return BY_STATUS[status] ?? (status >= 500 ? "server" : status >= 400 ? "invalid" : "protocol");
}

/**
 * The error of an answer.
 * @param {number} status
 * @param {Headers} headers
 * @param {string} body
 */
export function errorOf(status, headers, body) {
  let said;
  try {
    said = JSON.parse(body)?.error;
  } catch {
    // A proxy between answers in its own words.
  }
  const known = typeof said?.code === "string" && typeof said.message === "string";
  const asks = headers.get("retry-after") ?? "";
  const waitMs = /^\d+$/.test(asks) ? Number(asks) * 1000 : Date.parse(asks.endsWith("GMT") ? asks : "") - Date.now();
  return new AgentRuntimeError(
    errorCode(status, known ? said.code : undefined),
    known ? said.message + (said.code === "route-not-found" ? " This server may be older than the client." : "") : `The answer is HTTP ${status}, and not one of the service: something between may be at fault.`,
    {
      status,
      reason: status === 401 ? "unauthenticated" : status === 403 ? "forbidden" : undefined,
      serverCode: known ? said.code : undefined,
      requestId: (known && said.requestId) || headers.get("x-request-id") || undefined,
      details: (known && said.details) || {},
      retryAfterMs: isNaN(waitMs) ? undefined : Math.max(waitMs, 0),
    },
  );
}
