/**
 * The keys of the whole console. `Ctrl K` opens the palette. Single keys work outside of fields, and not at all for who turns
 * them off: `g` and a letter goes to a page, `j` and `k` through the rows, `/` to the filter, `[` and `]` to newer and older,
 * `?` to the list of them all, and what the acts of the page in sight name (`useActs`).
 */

import { acts, isHelpOpen, isPaletteOpen } from "./overlay-state.js";
import { go, href } from "./route.js";
import { ROUTES } from "./routes.js";
import { hasKeys } from "./theme.js";

let isGoing = false;
/** @type {ReturnType<typeof setTimeout> | undefined} */
let forgets;

/** @param {EventTarget | null} on */
function isField(on) {
  return on instanceof HTMLElement && (on.isContentEditable || /^(INPUT|TEXTAREA|SELECT)$/.test(on.tagName));
}

/** @param {number} by */
function moveRow(by) {
  const links = /** @type {HTMLElement[]} */ ([...document.querySelectorAll("[data-row-link]")]);
  const at = links.findIndex((link) => link === document.activeElement);
  const next = links[at < 0 ? (by > 0 ? 0 : links.length - 1) : Math.max(0, Math.min(links.length - 1, at + by))];
  next?.focus();
}

/** @type {Record<string, () => void>} */
const SINGLE = {
  j: () => moveRow(1),
  k: () => moveRow(-1),
  "/": () => /** @type {HTMLElement | null} */ (document.querySelector("[data-filter], .filters select"))?.focus(),
  "[": () => /** @type {HTMLElement | null} */ (document.querySelector('[data-key="["]'))?.click(),
  "]": () => /** @type {HTMLElement | null} */ (document.querySelector('[data-key="]"]'))?.click(),
  "?": () => {
    isHelpOpen.value = true;
  },
};

document.addEventListener("keydown", (event) => {
  if ((event.ctrlKey || event.metaKey) && !event.altKey && !event.shiftKey && event.key.toLowerCase() === "k") {
    event.preventDefault();
    // Not over a dialog: what stands there may be shown once.
    isPaletteOpen.value = !isPaletteOpen.value && !document.querySelector("dialog[open]");
    return;
  }
  if (event.ctrlKey || event.metaKey || event.altKey || event.defaultPrevented || !hasKeys.value || isField(event.target) || document.querySelector("dialog[open]")) return;
  clearTimeout(forgets);
  if (isGoing) {
    isGoing = false;
    const route = ROUTES.find((one) => one.keys === `g ${event.key}` && (one.may?.() ?? true));
    if (route) {
      event.preventDefault();
      go(href(route.pattern));
    }
    return;
  }
  if (event.key === "g") {
    isGoing = true;
    forgets = setTimeout(() => (isGoing = false), 1500);
    return;
  }
  const act = SINGLE[event.key] ?? acts.value.find((one) => one.keys === event.key)?.run;
  if (!act) return;
  event.preventDefault();
  act();
});
