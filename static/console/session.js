/**
 * Who is signed in.
 *
 * Guarantees: the page knows before its first view whether somebody is. A session that ends under a page leaves the page
 * as it is: a dialog signs in again.
 */

import { batch, computed, signal } from "@preact/signals";
import { api, quiet, unauthenticated } from "./api.js";
import { forgetAll } from "./resource.js";
import { go, href } from "./route.js";

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
const SIGNED_OUT = "agent-runtime-signed-out";

/**
 * What `GET /v1/sign-in` says.
 * @typedef {object} Ways
 * @property {string | null} publicUrl
 * @property {"on" | "admins" | "off"} tokenSignIn
 * @property {boolean} developmentLogin
 * @property {"other-address" | "not-configured" | null} problem
 * @property {{ id: string, name: string }[]} [providers]
 */

/** @returns {Promise<Ways>} */
export function ways() {
  return api.request("GET", "/v1/sign-in");
}

/** Reads who is signed in. In development, signs in by itself. */
export async function start() {
  if (await read()) return;
  if (!location.hash && !/[?&]problem=/.test(location.search) && (await resume())) return;
  state.value = "out";
}

/** In development: signs in by itself, unless the person signed out in this tab. @returns {Promise<boolean>} whether it did */
export async function resume() {
  if (sessionStorage.getItem(SIGNED_OUT)) return false;
  const offered = await ways().catch(() => null);
  return Boolean(offered?.developmentLogin) && signInForDevelopment().then(() => true, () => false);
}

/** @returns {Promise<boolean>} whether somebody is signed in */
async function read() {
  try {
    const [who, may] = await Promise.all([api.me.get(quiet), api.me.permissions(quiet)]);
    const has = await grantsOf(who.id);
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
      unauthenticated.value = false;
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

/** @param {string} way @param {object} body */
async function signIn(way, body) {
  await api.request("POST", `/v1/sign-in/${way}`, { body, retries: 0 });
  sessionStorage.removeItem(SIGNED_OUT);
  await read();
}

/** @param {string} token */
export const signInWithToken = (token) => signIn("token", { token: token.trim() });
/** @param {string} code */
export const signInWithCode = (code) => signIn("enrolment", { code: code.trim() });

/**
 * Begins to sign in through a provider: the browser leaves for its page, and comes back with a session.
 * @param {string} id
 * @param {{ returnTo: string, again: boolean }} body
 */
export async function signInThrough(id, body) {
  const { url } = await api.request("POST", `/v1/sign-in/providers/${encodeURIComponent(id)}/start`, { body, retries: 0 });
  sessionStorage.removeItem(SIGNED_OUT);
  location.assign(url);
}

export async function signInForDevelopment() {
  const { token } = await api.request("GET", "/__dev/bearer");
  await signInWithToken(token);
}

/** Ends the session, and goes to where one signs in. */
export async function signOut() {
  const { providerSignOutUrl } = await api.request("POST", "/v1/sign-out");
  sessionStorage.setItem(SIGNED_OUT, "yes");
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
