/** The ways to sign in. Who is signed in already does without. */

import { api } from "./api.js";
import { store, stored } from "./kept.js";
import { SIGNED_OUT, refresh } from "./session.js";

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

/** In development: signs in by itself, unless the person signed out in this tab. @returns {Promise<boolean>} whether it did */
export async function resume() {
  if (stored("sessionStorage", SIGNED_OUT, "")) return false;
  const offered = await ways().catch(() => null);
  return Boolean(offered?.developmentLogin) && signInForDevelopment().then(() => true, () => false);
}

/** @param {string} way @param {object} body */
async function signIn(way, body) {
  await api.request("POST", `/v1/sign-in/${way}`, { body, retries: 0 });
  store("sessionStorage", SIGNED_OUT, "");
  await refresh();
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
  store("sessionStorage", SIGNED_OUT, "");
  location.assign(url);
}

export async function signInForDevelopment() {
  const { token } = await api.request("GET", "/__dev/bearer");
  await signInWithToken(token);
}
