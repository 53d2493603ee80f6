/** Light, dark, or as the system says; and whether single keys do something. Kept in this browser. */

import { effect, signal } from "./ui.js";

/** @param {string} name @param {string} otherwise */
function stored(name, otherwise) {
  try {
    return localStorage.getItem(name) ?? otherwise;
  } catch {
    return otherwise;
  }
}

/** @param {string} name @param {string} value */
function store(name, value) {
  try {
    localStorage.setItem(name, value);
  } catch {
    // A browser that keeps nothing: it holds as long as the page.
  }
}

/** @type {import("@preact/signals").Signal<"system" | "light" | "dark">} */
export const theme = signal(/** @type {any} */ (stored("theme", "system")));
/** Single keys, such as `g r`, do something (WCAG 2.1.4). */
export const hasKeys = signal(stored("keys", "on") === "on");

effect(() => {
  store("theme", theme.value);
  if (theme.value === "system") delete document.documentElement.dataset.theme;
  else document.documentElement.dataset.theme = theme.value;
});
effect(() => store("keys", hasKeys.value ? "on" : "off"));
