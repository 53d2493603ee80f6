/** A moment and a duration. Moments are in UTC; how long ago stands beside, by the server's clock. */

import { absolute, between, duration, now, relative, short } from "../time.js";
import { tags } from "../ui.js";

const { small, span, time } = tags;

/**
 * @param {object} props
 * @param {string | null | undefined} props.at
 * @param {boolean} [props.short] for columns: without the year; the column's head says UTC
 * @param {boolean} [props.ago] how long ago, or in how long
 */
export function Time({ at, short: isShort = false, ago = true }) {
  if (!at) return span({ class: "faint" }, "–");
  return time({ dateTime: at, title: absolute(at) }, isShort ? short(at) : absolute(at), ago ? small(null, relative(at)) : null);
}

/** How long something took, or takes so far. @param {{ from: string | null | undefined, to?: string | null }} props */
export function Duration({ from, to }) {
  if (!from) return span({ class: "faint" }, "–");
  return span(null, duration(to ? between(from, to) : between(from, null, now.value)));
}
