/** The secrets that a form lets one name, each as `environment/NAME`: neither part has a slash. */

import { api } from "../api.js";
import { useResource } from "../resource.js";

/** @param {{ envName: string, name: string }} ref */
export const textOf = (ref) => `${ref.envName}/${ref.name}`;

/** @param {string} text */
export function refOf(text) {
  const cut = text.lastIndexOf("/");
  return { envName: text.slice(0, cut), name: text.slice(cut + 1) };
}

/**
 * Those of the tenant, and the one that is named already, whether it is among them or not.
 * @param {string} [named]
 * @param {boolean} [isOn] false: they are not read
 * @returns {{ value: string, label: string }[]}
 */
export function useSecrets(named, isOn = true) {
  const secrets = useResource(isOn ? "secrets to choose" : null, async (options) => (await api.secrets.list({ limit: 200 }, options)).data);
  const known = (secrets.data ?? []).map((one) => textOf({ envName: one.environment, name: one.name }));
  return [...(named && !known.includes(named) ? [named] : []), ...known].map((value) => ({ value, label: value.replace("/", " / ") }));
}
