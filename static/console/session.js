/**
 * Who is signed in.
 *
 * Guarantees: the page knows before its first view whether somebody is. A session that ends under a page leaves the page
 * as it is: a dialog signs in again. Where somebody else does, the page is read anew.
 */

import { batch, computed, signal } from "@preact/signals";
import { api, errorOf, quiet, unauthenticated } from "./api.js";
import { store } from "./kept.js";
import { asked } from "./overlay-state.js";
import { forgetAll } from "./resource.js";
import { go, href, takeUpProject } from "./route.js";

/** @import { Grants, Me, Permissions } from "agent-runtime/types" */

/** @type {import("@preact/signals").Signal<"unknown" | "out" | "in">} */
export const state = signal("unknown");
/** @type {import("@preact/signals").Signal<Me | null>} */
export const me = signal(null);
/** @type {import("@preact/signals").Signal<Permissions | null>} */
export const permissions = signal(null);
/** The caller's roles on projects, orgs and teams. @type {import("@preact/signals").Signal<Grants | null>} */
export const grants = signal(null);
/** Where whoever signed out here signs out at their identity provider, too. @type {import("@preact/signals").Signal<string | null>} */
export const signOutToo = signal(null);
/** The session ended while a page was open. */
export const hasEnded = computed(() => state.value === "in" && unauthenticated.value);

/** The mark of a tab whose person signed out: development signs nobody in again there. */
export const SIGNED_OUT = "agent-runtime-signed-out";

/** Reads who is signed in. In development, signs in by itself. */
export async function start() {
  if (await read()) return;
  if (!location.hash && !/[?&]problem=/.test(location.search) && (await (await import("./ways-in.js")).resume())) return;
  state.value = "out";
}

/** @returns {Promise<boolean>} whether somebody is signed in */
async function read() {
  try {
    const [who, may] = await Promise.all([api.me.get(quiet), api.me.permissions(quiet)]);
    const has = await grantsOf(who.id);
    if (me.value && me.value.id !== who.id) {
      // Somebody else: nothing of the first one's page stays, and nothing goes on until it is read anew.
      location.reload();
      return new Promise(() => {});
    }
    takeUpProject(who.id);
    batch(() => {
      me.value = who;
      permissions.value = may;
      grants.value = has;
      unauthenticated.value = false;
      state.value = "in";
    });
    return true;
  } catch (error) {
    const status = /** @type {any} */ (error).status;
    if (status === 401) {
      // Under a page it stays said.
      if (!me.value) unauthenticated.value = false;
      return false;
    }
    throw error;
  }
}

/**
 * Every role of somebody, from all pages of the projects.
 * @param {string} userId
 * @param {import("agent-runtime").CallOptions} [options]
 * @returns {Promise<Grants>}
 */
export async function grantsOf(userId, options = quiet) {
  const has = await api.users.grants(userId, { limit: 200 }, options);
  for (let cursor = has.nextCursor; cursor; ) {
    const further = await api.users.grants(userId, { limit: 200, cursor }, options);
    has.projects.push(...further.projects);
    cursor = further.nextCursor;
  }
  return has;
}

/** Reads roles and permissions again, after something changed them. */
export async function refresh() {
  await read();
}

/** Ends the session, and goes to where one signs in. Who is still signed in after it is told so. */
export function signOut() {
  return end().catch((error) => {
    // The dialog of a session that has ended says it.
    if (error.status === 401) return;
    asked.value = { title: "You are still signed in", says: errorOf(error).message, act: "Sign out", run: end };
  });
}

async function end() {
  const { providerSignOutUrl } = await api.request("POST", "/v1/sign-out");
  store("sessionStorage", SIGNED_OUT, "yes");
  batch(() => {
    signOutToo.value = providerSignOutUrl;
    me.value = null;
    permissions.value = null;
    grants.value = null;
    state.value = "out";
  });
  forgetAll();
  go(href("sign-in"), { replace: true });
}
