/**
 * Times and durations as text. Absolute times are in UTC, by the server's clock; the browser's may be wrong.
 */

import { signal } from "@preact/signals";

/** How far the browser's clock is behind the server's, in milliseconds. */
let skewMs = 0;

/** The server's time now, in milliseconds; it ticks each second while the page is visible. */
export const now = signal(Date.now());

/** Takes the server's time from an answer's `Date`. @param {string | null} date */
export function takeServerTime(date) {
  const at = date ? Date.parse(date) : NaN;
  // The header has whole seconds: less than two are no difference.
  if (Number.isFinite(at) && Math.abs(at - Date.now() - skewMs) > 2000) skewMs = at - Date.now();
}

/** The server's time, exactly. */
export function serverNow() {
  return Date.now() + skewMs;
}

setInterval(() => {
  if (!document.hidden) now.value = serverNow();
}, 1000);

const MONTHS = ["Jan", "Feb", "Mar", "Apr", "May", "Jun", "Jul", "Aug", "Sep", "Oct", "Nov", "Dec"];
const two = (/** @type {number} */ number) => String(number).padStart(2, "0");

/** `26 Nov 2026, 09:30:12 UTC` @param {string | number} at */
export function absolute(at) {
  const date = new Date(at);
  return `${day(date)} ${date.getUTCFullYear()}, ${clock(date)} UTC`;
}

/** For columns: `26 Nov 09:30:12`, with the year where it is another one. @param {string | number} at */
export function short(at) {
  const date = new Date(at);
  const year = date.getUTCFullYear() === new Date(now.peek()).getUTCFullYear() ? "" : ` ${date.getUTCFullYear()}`;
  return `${day(date)}${year} ${clock(date)}`;
}

const day = (/** @type {Date} */ date) => `${date.getUTCDate()} ${MONTHS[date.getUTCMonth()]}`;
const clock = (/** @type {Date} */ date) => `${two(date.getUTCHours())}:${two(date.getUTCMinutes())}:${two(date.getUTCSeconds())}`;

const UNITS = /** @type {[number, string][]} */ ([[86_400_000, "d"], [3_600_000, "h"], [60_000, "min"], [1000, "s"]]);

/** `3 min ago`, `in 2 h` @param {string | number} at */
export function relative(at, from = now.value) {
  const ms = new Date(at).getTime() - from;
  const size = Math.abs(ms);
  if (size < 1500) return "now";
  const [unitMs, unit] = UNITS.find(([most]) => size >= most) ?? [1000, "s"];
  const text = `${Math.floor(size / unitMs)} ${unit}`;
  return ms < 0 ? `${text} ago` : `in ${text}`;
}

/** `850 ms`, `3.2 s`, `4 min 12 s`, `2 h 5 min` @param {number} ms */
export function duration(ms) {
  if (!Number.isFinite(ms)) return "–";
  if (ms < 0) ms = 0;
  if (ms < 1000) return `${Math.round(ms)} ms`;
  if (ms < 10_000) return `${Math.floor(ms / 100) / 10} s`;
  const seconds = Math.floor(ms / 1000);
  if (seconds < 60) return `${seconds} s`;
  if (seconds < 3600) return `${Math.floor(seconds / 60)} min ${seconds % 60} s`;
  if (seconds < 86_400) return `${Math.floor(seconds / 3600)} h ${Math.floor((seconds % 3600) / 60)} min`;
  return `${Math.floor(seconds / 86_400)} d ${Math.floor((seconds % 86_400) / 3600)} h`;
}

/** The milliseconds between two times; of something that is not over, until now. @param {string} from @param {string | null} [to] */
export function between(from, to, until = serverNow()) {
  return (to ? Date.parse(to) : until) - Date.parse(from);
}
