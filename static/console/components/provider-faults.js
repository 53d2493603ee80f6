/**
 * What is wrong with a model provider, for tenant admins: its newest calls failed, or the secret that is its key is not there.
 * Each fault says what to do about it.
 */

import { api, quiet } from "../api.js";
import { counted } from "../number.js";
import { isTenantAdmin } from "../permit.js";
import { useResource } from "../resource.js";
import { href } from "../route.js";
import { fragment, h, tags } from "../ui.js";
import { Banner } from "./banner.js";
import { refOf, textOf } from "./secret-ref.js";
import { State } from "./state.js";
import { Time } from "./time.js";

/** @import { ModelProvider } from "agent-runtime/types" */
/** @import { Child } from "../ui.js" */

const { a, code, p, span } = tags;

/**
 * Why keys that are secrets cannot be read, by `environment/NAME`: there is none of this name, or the server keeps no secrets.
 * @typedef {Map<string, "missing" | "off">} Unread
 */

/** What is read; undefined where there is none, or nothing of the kind. @template T @param {PromiseLike<T>} reading @returns {Promise<T | undefined>} */
async function found(reading) {
  try {
    return await reading;
  } catch (error) {
    if (/** @type {import("agent-runtime").AgentRuntimeError} */ (error).status !== 404) throw error;
    return undefined;
  }
}

/** @param {ModelProvider[] | undefined} providers @returns {Unread} */
export function useUnread(providers) {
  const refs = isTenantAdmin() ? (providers ?? []).flatMap((one) => one.apiKeySecretRef ?? []) : [];
  const names = [...new Set(refs.map(textOf))].sort();
  const read = useResource(names.length ? `keys of providers ${names.join(" ")}` : null, async (options) => {
    const asked = { ...options, ...quiet };
    const all = await found(api.secrets.list({ limit: 200 }, asked));
    const listed = all?.data.map((one) => textOf({ envName: one.environment, name: one.name }));
    /** @param {string} name */
    const isThere = async (name) => {
      if (listed?.includes(name)) return true;
      const { envName, name: own } = refOf(name);
      // Of a list that is whole, what it lacks is missing.
      return all?.hasMore ? found(api.secrets.get(envName, own, asked)) : undefined;
    };
    const there = await Promise.all(names.map(isThere));
    return new Map(names.filter((_, index) => !there[index]).map((name) => [name, all ? "missing" : "off"]));
  });
  return read.data ?? new Map();
}

/**
 * @param {ModelProvider} provider
 * @param {Unread} unread
 * @returns {{ word: string, title: string, says: Child, action: Child }[]}
 */
function faultsOf({ failing, apiKeySecretRef: ref }, unread) {
  const why = ref && unread.get(textOf(ref));
  const faults = [];
  if (ref && why === "missing")
    faults.push({
      word: "key missing",
      title: "Its key is not there",
      says: fragment("There is no secret ", code(null, textOf(ref)), ", so its models cannot be asked. Put it, or name another one."),
      action: a({ class: "button", href: href("secrets", { environment: ref.envName }) }, "To the secrets"),
    });
  if (why === "off") faults.push({ word: "key missing", title: "Its key cannot be read", says: "It is a secret, and this server keeps none: whoever operates it sets SVC_SECRETS_BACKEND.", action: null });
  if (failing)
    faults.push({
      word: "failing",
      title: failing.calls === 1 ? "Its last call failed" : `Its last ${counted(failing.calls, "call")} failed`,
      says: fragment(failing.failure ?? "Why is not known any more.", " None has gone well since ", h(Time, { at: failing.firstAt, ago: false }), ". Check its address and its key, or ask whoever runs it."),
      action: a({ class: "button", href: href("runs", { status: "failed", project: null }) }, "Failed runs"),
    });
  return faults;
}

/** In the list: the first of them. @param {{ provider: ModelProvider, unread: Unread }} props */
export function ProviderState({ provider, unread }) {
  const [fault] = faultsOf(provider, unread);
  return fault ? h(State, { state: "failing", word: fault.word }) : span({ class: "faint" }, "–");
}

/** On its page: all of them, with what to do. @param {{ provider: ModelProvider }} props */
export function ProviderFaults({ provider }) {
  const unread = useUnread([provider]);
  return fragment(faultsOf(provider, unread).map((fault) => h(Banner, { key: fault.title, tone: "bad", title: fault.title, actions: fault.action }, p(null, fault.says))));
}
