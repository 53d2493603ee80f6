/**
 * What a page reads: loading, the answer, an error, and reading again.
 *
 * Guarantees: the last answer for a key is shown at once when one comes back, and read again; what a form begins with is read
 * first (`fresh`). Leaving aborts what is under way. An answer that comes late does not replace a newer one. While an answer is
 * read again the old one stays. Parts of a page that begin to read the same key at once share one request: a key stands for one
 * call, and for one form of its answer.
 */

import { useEffect, useRef, useState } from "preact/hooks";
import { errorOf, isAborted, quiet, unauthenticated } from "./api.js";
import { keepNewest } from "./kept.js";
import { useHints } from "./live.js";

const MOST_KEPT = 60;
/** @type {Map<string, any>} */
const kept = new Map();

/** @param {string} key @param {any} value */
const keep = (key, value) => keepNewest(kept, key, value, MOST_KEPT);

/**
 * A request under way, for all who wait for it. It is given up when the last of them leaves.
 * @typedef {{ answer: Promise<any>, readers: number, leave: () => void }} Reading
 */

/** What began in this moment, by its key. Later ones ask anew, since what they follow may have changed the answer. @type {Map<string, Reading>} */
const begun = new Map();

/** @param {string} key @param {(options: import("agent-runtime").CallOptions) => Promise<any>} load @param {object} options @returns {Reading} */
function begin(key, load, options) {
  const found = begun.get(key);
  if (found) {
    found.readers++;
    return found;
  }
  const controller = new AbortController();
  /** @type {Reading} */
  const reading = {
    answer: load({ ...options, signal: controller.signal }),
    readers: 1,
    leave() {
      reading.readers--;
      if (!reading.readers) controller.abort();
    },
  };
  begun.set(key, reading);
  queueMicrotask(() => begun.delete(key));
  return reading;
}

/** What reads again, of all that the page shows now. @type {Set<() => boolean | Promise<boolean>>} */
const shown = new Set();

/** Reads again all that the page shows. What somebody has typed stays. @returns {Promise<boolean>} whether all of it was read */
export async function readAgain() {
  return (await Promise.all([...shown].map((read) => read()))).every(Boolean);
}

/** Forgets every answer: of a person who signed out. */
export function forgetAll() {
  kept.clear();
}

/**
 * @template T
 * @typedef {object} Resource
 * @property {T | undefined} data the newest answer
 * @property {import("agent-runtime").AgentRuntimeError | undefined} error of the newest try
 * @property {boolean} isLoading a request is under way
 * @property {boolean} isByItself the page read the newest answer by itself
 * @property {() => void} reload reads again
 * @property {(data: T) => void} set what an act's answer says
 */

/**
 * Reads something, and again when its key changes: `useResource(`run ${id}`, (options) => api.runs.get(id, options))`. The
 * options carry the signal that ends the request; give them on to the call.
 * @template T
 * @param {string | null} key null: nothing is read
 * @param {(options: import("agent-runtime").CallOptions) => Promise<T>} load
 * @param {{ live?: string[], fresh?: boolean }} [options] `live`: the kinds of objects after whose change it reads again
 *   (`live.js`); `fresh`: no answer from before is shown meanwhile, of what a form begins with
 * @returns {Resource<T>}
 */
export function useResource(key, load, { live, fresh } = {}) {
  const [, draw] = useState(0);
  const ref = useRef(/** @type {any} */ ({ key: undefined }));
  const current = ref.current;
  if (current.key !== key) {
    current.key = key;
    current.data = key === null || fresh ? undefined : kept.get(key);
    current.error = undefined;
    current.isByItself = false;
    current.isLoading = key !== null;
  }
  current.load = load;
  const read = (/** @type {boolean} */ byItself) => {
    if (key === null) return true;
    current.reading?.leave();
    const reading = (current.reading = begin(key, current.load, byItself ? quiet : {}));
    Object.assign(current, { isLoading: true, isDue: false });
    draw((count) => count + 1);
    const ends = (/** @type {object} */ changes) => {
      Object.assign(current, changes, { isLoading: false });
      draw((count) => count + 1);
      if (current.isDue) current.read(true);
    };
    return reading.answer.then(
      (/** @type {T} */ data) => {
        if (current.reading === reading) {
          keep(key, data);
          ends({ data, error: undefined, isByItself: byItself });
        }
        return true;
      },
      (/** @type {unknown} */ cause) => {
        if (current.reading === reading && !isAborted(cause)) ends({ error: errorOf(cause) });
        return false;
      },
    );
  };
  current.read = read;
  useEffect(() => {
    read(false);
    const again = () => current.read(false);
    shown.add(again);
    return () => {
      shown.delete(again);
      current.reading?.leave();
      current.reading = undefined;
    };
  }, [key]);
  const hasEnded = unauthenticated.value;
  useEffect(() => {
    // Signed in again: what was refused is read again.
    if (!hasEnded && current.error?.status === 401) current.read(true);
  }, [hasEnded]);
  useHints(key === null ? [] : (live ?? []), () => {
    // What is under way may be older than the change. It is not given up: where changes come faster than answers, none would come.
    if (current.isLoading) current.isDue = true;
    else current.read(true);
  });
  return {
    data: current.data,
    error: current.error,
    isLoading: current.isLoading,
    isByItself: Boolean(current.isByItself),
    reload: () => current.read(false),
    set(data) {
      if (key !== null) keep(key, data);
      current.reading?.leave();
      current.reading = undefined;
      Object.assign(current, { data, error: undefined, isLoading: false });
      draw((count) => count + 1);
    },
  };
}

/**
 * An act of the person: a button, a form. `const cancel = useAct(() => api.runs.cancel(id))`, `onClick: cancel.run`.
 * While one is under way another one does nothing; its error is shown where the page puts `h(Failure, { error: cancel.error })`.
 * @template {any[]} A
 * @param {(...given: A) => Promise<unknown>} act
 */
export function useAct(act) {
  const [, draw] = useState(0);
  const ref = useRef({ isBusy: false, error: /** @type {import("agent-runtime").AgentRuntimeError | undefined} */ (undefined) });
  const current = ref.current;
  return {
    isBusy: current.isBusy,
    error: current.error,
    clear() {
      current.error = undefined;
      draw((count) => count + 1);
    },
    /** @param {A} given @returns {Promise<boolean>} whether it went well */
    async run(...given) {
      if (current.isBusy) return false;
      Object.assign(current, { isBusy: true, error: undefined });
      draw((count) => count + 1);
      try {
        await act(...given);
        return true;
      } catch (cause) {
        current.error = errorOf(cause);
        return false;
      } finally {
        current.isBusy = false;
        draw((count) => count + 1);
      }
    },
  };
}
