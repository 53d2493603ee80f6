/** Light, dark, or as the system says; and whether single keys do something. Kept in this browser. */

import { store, stored } from "./kept.js";
import { effect, signal } from "./ui.js";

/** @type {import("@preact/signals").Signal<"system" | "light" | "dark">} */
export const theme = signal(/** @type {any} */ (stored("localStorage", "theme", "system")));
/** Single keys, such as `g r`, do something (WCAG 2.1.4). */
export const hasKeys = signal(stored("localStorage", "keys", "on") === "on");

effect(() => {
  store("localStorage", "theme", theme.value);
  if (theme.value === "system") delete document.documentElement.dataset.theme;
  else document.documentElement.dataset.theme = theme.value;
});
effect(() => store("localStorage", "keys", hasKeys.value ? "on" : "off"));
