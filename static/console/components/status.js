/**
 * The live region: what happened is said here once, and shown for some seconds. The shell has it, and each dialog; anybody may
 * `announce`.
 */

import { signal, tags } from "../ui.js";

const { div, span } = tags;
const SHOWN_MS = 4000;

const said = signal("");
/** @type {ReturnType<typeof setTimeout> | undefined} */
let end;

/** Says a short sentence: `announce("Copied")`. @param {string} text */
export function announce(text) {
  clearTimeout(end);
  // The same text again would not be read again.
  said.value = said.value === text ? `${text}\u00a0` : text;
  end = setTimeout(() => (said.value = ""), SHOWN_MS);
}

/** Says what is shown once more: what would have said it may be gone with a dialog. */
export function repeat() {
  if (said.value) announce(said.value.trim());
}

export function Status() {
  return div({ class: "status", role: "status", "data-shown": Boolean(said.value) || undefined }, said.value ? span(null, said.value) : null);
}
