/** A moment until which something waits: in how long, in colour and word once it is near. */

import { absolute, duration, now } from "../time.js";
import { tags } from "../ui.js";

const { small, span, time } = tags;
const NEAR_MS = 2 * 3_600_000;

/** @param {{ at: string | null | undefined, whole?: boolean }} props `whole`: the moment itself beside it */
export function Until({ at, whole = false }) {
  if (!at) return span({ class: "faint" }, "–");
  const left = Date.parse(at) - now.value;
  const words = left <= 0 ? "time is over" : `${left < NEAR_MS ? "soon, " : ""}in ${duration(left)}`;
  return time({ dateTime: at, title: absolute(at), class: "until", "data-near": left < NEAR_MS || undefined }, words, whole ? small(null, absolute(at)) : null);
}
