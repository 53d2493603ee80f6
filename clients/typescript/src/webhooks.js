/**
 * Webhook events: the signature (Standard Webhooks 1.0), then the event.
 *
 * Guarantees: nothing of a body is read before its signature holds. Signatures are compared in constant time. An event of a
 * kind that this version does not know is an event like the others.
 *
 * Not here: that an event comes once. The same one may come again; `id` tells.
 */

import { AgentRuntimeError } from "./errors.js";

/** @import { WebhookEvent } from "./types.js" */

/** The delivery is not from the service, is too old, or was changed on its way: answer 400, and do nothing. */
export class WebhookSignatureError extends AgentRuntimeError {
  /** @param {string} message */
  constructor(message) {
    super("signature", message);
    this.name = "WebhookSignatureError";
  }
}

/** More than a rotation brings: further ones are not looked at. */
const MOST_SIGNATURES = 10;
const PREFIX = "whsec_";
const LEAST_KEY_BYTES = 24;

/**
 * Verifies a delivery and gives its event.
 * @param {object} delivery
 * @param {string | Uint8Array | ArrayBuffer} delivery.body the body as it came, byte for byte
 * @param {Headers | Record<string, string | string[] | undefined>} delivery.headers
 * @param {string | string[]} delivery.secret the endpoint's secret (`whsec_…`); while it rotates, both
 * @param {number} [delivery.toleranceSeconds] how far the delivery's time may be from now; 300
 * @param {Date} [delivery.now]
 * @returns {Promise<WebhookEvent>}
 */
export async function parseEvent({ body, headers, secret, toleranceSeconds = 300, now = new Date() }) {
  const bytes = typeof body === "string" ? new TextEncoder().encode(body) : ArrayBuffer.isView(body) || body instanceof ArrayBuffer ? new Uint8Array(body) : undefined;
  if (!bytes) throw new AgentRuntimeError("invalid", "parseEvent takes the body as it came, text or bytes.");
  const id = header(headers, "webhook-id");
  const timestamp = header(headers, "webhook-timestamp");
  const signatures = header(headers, "webhook-signature");
  if (!/^\d{1,12}$/.test(timestamp) || Math.abs(now.getTime() / 1000 - Number(timestamp)) > toleranceSeconds)
    throw new WebhookSignatureError("The header webhook-timestamp is too far from this host's time.");
  const head = new TextEncoder().encode(`${id}.${timestamp}.`);
  const signed = new Uint8Array(head.length + bytes.length);
  signed.set(head);
  signed.set(bytes, head.length);
  if (!(await isSigned(signed, signatures, [secret].flat())))
    throw new WebhookSignatureError("No signature of the header webhook-signature is made with this secret over this body.");
  let event;
  try {
    event = JSON.parse(new TextDecoder("utf-8", { fatal: true }).decode(bytes));
  } catch (cause) {
    throw new AgentRuntimeError("protocol", "The body is signed, and not JSON.", { cause });
  }
  if (typeof event?.type !== "string" || event.id !== id)
    throw new AgentRuntimeError("protocol", "The body is signed, and is no event of the id that the header names.");
  return event;
}

/**
 * @param {Uint8Array<ArrayBuffer>} signed
 * @param {string} signatures
 * @param {string[]} secrets
 */
async function isSigned(signed, signatures, secrets) {
  if (!secrets.length) throw new AgentRuntimeError("invalid", "A webhook is verified with a secret, and there is none.");
  const given = signatures.split(" ").slice(0, MOST_SIGNATURES).map((one) => one.startsWith("v1,") && decoded(one.slice(3)));
  let holds = false;
  for (const secret of secrets) {
    const text = String(secret);
    const bytes = text.startsWith(PREFIX) ? decoded(text.slice(PREFIX.length)) : undefined;
    if (!bytes || bytes.length < LEAST_KEY_BYTES)
      throw new AgentRuntimeError("invalid", `A webhook's secret is ${PREFIX} and base64 of ${LEAST_KEY_BYTES} bytes or more.`);
    const key = await crypto.subtle.importKey("raw", bytes, { name: "HMAC", hash: "SHA-256" }, false, ["verify"]);
    for (const one of given) if (one && (await crypto.subtle.verify("HMAC", key, one, signed))) holds = true;
  }
  return holds;
}

/** @param {string} base64 */
function decoded(base64) {
  try {
    return Uint8Array.from(atob(base64), (character) => character.charCodeAt(0));
  } catch {
    return undefined;
  }
}

/**
 * @param {Headers | Record<string, string | string[] | undefined>} headers
 * @param {string} name
 */
function header(headers, name) {
  const found = headers instanceof Headers ? headers.get(name) : Object.entries(headers).find(([other]) => other.toLowerCase() === name)?.[1];
  if (typeof found !== "string" || !found) throw new WebhookSignatureError(`The header ${name} is missing${found ? ", or is there twice" : ""}.`);
  return found;
}
