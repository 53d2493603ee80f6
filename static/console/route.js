/**
 * Where the reader is: the path below `/console/` and the query, as signals.
 *
 * Guarantees: every view has an address, and the address gives the view. A link is a link: it opens in a new tab, is copied
 * and shown by the browser as any other. Going on moves focus to the new page and scrolls to its top; going back goes to
 * where one was, and to the link that led on. The project that one has chosen stays: in the address of each page that it
 * narrows, and from page to page in the tab. What an address says wins.
 */

import { batch, computed, effect, signal } from "@preact/signals";
import { keepNewest, store, stored } from "./kept.js";

const BASE = "/console/";
/** The lists that the chosen project narrows. Without one in their address they show all projects. */
const NARROWED = ["approvals", "runs", "conversations", "agents", "flows", "tools", "guardrails", "usage"];
/** No browser goes back over more. */
const MOST_PLACES = 50;

/** The path below `/console/`, such as `runs`. */
export const path = signal(pathNow());
/** The query. @type {import("@preact/signals").Signal<Record<string, string>>} */
export const query = signal(queryNow());
/** What the step that led here left. @type {import("@preact/signals").Signal<any>} */
export const left = signal(history.state);
/**
 * The last step to another page, not one within a page: where in it the step leads. Nothing before the first.
 * @type {import("@preact/signals").Signal<Place | null>}
 */
export const step = signal(null);

/**
 * How far down, and to which link. Without `top` the browser may know.
 * @typedef {{ top?: number, link?: string | null }} Place
 */

/** Where one was when one left an address. @type {Map<string, Place>} */
const places = new Map();

/** The project that was last chosen, for pages that do not name one. */
const lastChosen = signal("");
/** Under which name the tab keeps it: for each person apart. */
const keptAs = signal("");

/** The chosen project; all of them without one. */
export const chosenProject = computed(() => query.value.project ?? (NARROWED.includes(path.value) ? "" : lastChosen.value));

effect(() => {
  lastChosen.value = chosenProject.value;
  if (keptAs.value) store("sessionStorage", keptAs.value, chosenProject.value);
});

/** Takes up which project this person chose last in this tab. @param {string} userId */
export function takeUpProject(userId) {
  const name = `project of ${userId}`;
  if (keptAs.value === name) return;
  batch(() => {
    lastChosen.value = stored("sessionStorage", name, "");
    keptAs.value = name;
  });
}

/** Chooses a project; all of them with nothing. @param {string} id */
export function chooseProject(id) {
  if (query.value.project !== undefined || NARROWED.includes(path.value)) setQuery({ project: id, cursor: null });
  else lastChosen.value = id;
}

function pathNow() {
  const given = location.pathname.startsWith(BASE) ? location.pathname.slice(BASE.length).replace(/\/+$/, "") : "";
  try {
    return decodeURIComponent(given);
  } catch {
    // A `%` that stands for itself.
    return given;
  }
}

function queryNow() {
  return Object.fromEntries(new URLSearchParams(location.search));
}

/**
 * The address of a page: `href("runs", { status: "failed" })`. What is empty is left out. A list that the chosen project
 * narrows gets it, if nothing else is said.
 * @param {string} to
 * @param {Record<string, string | number | boolean | null | undefined>} [values]
 */
export function href(to, values = {}) {
  if (NARROWED.includes(to) && !("project" in values)) return href(to, { ...values, project: chosenProject.value });
  const given = Object.entries(values).filter(([, value]) => value !== undefined && value !== null && value !== "" && value !== false);
  const text = new URLSearchParams(given.map(([name, value]) => [name, String(value)])).toString();
  return `${BASE}${to}${text ? `?${text}` : ""}`;
}

/**
 * Goes to an address, such as `href` gives.
 * @param {string} to
 * @param {{ replace?: boolean, left?: any }} [options] `left`: what the page finds in `left`
 */
export function go(to, { replace = false, left: leaves = null } = {}) {
  const before = path.value;
  keepNewest(places, location.href, { top: scrollY, link: document.activeElement?.getAttribute("href") }, MOST_PLACES);
  history[replace ? "replaceState" : "pushState"](leaves, "", to);
  arrive(before, { top: 0 });
}

/**
 * Changes parts of the query: of a filter, a page. An empty value removes its part.
 * @param {Record<string, string | number | boolean | null | undefined>} changes
 * @param {{ replace?: boolean, left?: any }} [options]
 */
export function setQuery(changes, options) {
  go(href(path.value, { ...query.value, ...changes }), options);
}

/** Of a list about an object: where a project is chosen, the object's takes its place. @param {{ projectId: string }} of */
export function withProjectOf(of) {
  return { project: chosenProject.value && of.projectId };
}

/** @param {string} before @param {Place} place */
function arrive(before, place) {
  batch(() => {
    path.value = pathNow();
    query.value = queryNow();
    left.value = history.state;
    if (path.value !== before) step.value = place;
  });
}

addEventListener("popstate", () => arrive(path.value, places.get(location.href) ?? {}));

// Links of the console, without loading the document again.
document.addEventListener("click", (event) => {
  if (event.defaultPrevented || event.button !== 0 || event.ctrlKey || event.metaKey || event.shiftKey || event.altKey) return;
  const link = event.target instanceof Element ? event.target.closest("a") : null;
  if (!link || link.target || link.hasAttribute("download") || link.origin !== location.origin || !link.pathname.startsWith(BASE)) return;
  // Within the page: the browser's own.
  if (link.hash && link.pathname === location.pathname && link.search === location.search) return;
  event.preventDefault();
  go(link.pathname + link.search);
});

/**
 * What a pattern such as `runs/:runId` finds in a path; undefined if it is another one.
 * @param {string} pattern
 * @param {string} where
 * @returns {Record<string, string> | undefined}
 */
export function match(pattern, where) {
  const [wanted, given] = [pattern.split("/"), where.split("/")];
  if (wanted.length !== given.length) return undefined;
  /** @type {Record<string, string>} */
  const found = {};
  for (const [index, part] of wanted.entries()) {
    const value = given[index] ?? "";
    if (part.startsWith(":")) {
      if (!value) return undefined;
      found[part.slice(1)] = value;
    } else if (part !== value) return undefined;
  }
  return found;
}
