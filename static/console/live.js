/**
 * What changes elsewhere while a page is open: pages say after which kinds of objects' changes they read again.
 *
 * Guarantees: a tab has one stream at most, the server's hints or that of the run which the page follows (`ownStream`). While
 * hints of a kind come, what listens to it reads after them alone, at most once a second; what listens to other kinds, and
 * everything while there is no stream, reads by one clock. A hidden page reads nothing, ends its stream after a while, and reads
 * at once when it comes back. Without anybody who listens there is no stream.
 */

import { useEffect, useRef } from "preact/hooks";
import { api, quiet, unauthenticated } from "./api.js";

/** The kinds of which the server gives hints. */
const HINTED = ["run", "approval"];
const EVERY_MS = 5000;
/** Between two reads of what listens. */
const LEAST_MS = 1000;
/** A hidden page keeps its stream for so long. */
const HIDDEN_MS = 10_000;
/** From one page to the next nobody listens for a moment. */
const LEFT_MS = 2000;
const RETRY_MS = 5000;
const LONGEST_RETRY_MS = 60_000;

/**
 * @typedef {object} Listener
 * @property {string[]} kinds
 * @property {() => void} onChange
 * @property {boolean} isDue it is to read, once it may
 * @property {ReturnType<typeof setTimeout>} [rests] it has just read
 */

/** @type {Set<Listener>} */
const listeners = new Set();
/** Streams of the page's own. */
let owned = 0;
let isAway = false;
/** The stream of hints, from its beginning on. @type {AbortController | undefined} */
let stream;
/** The kinds of which this stream tells: it begins with a hint of each. @type {Set<string>} */
const told = new Set();
/** @type {ReturnType<typeof setTimeout> | undefined} */
let retries;
let retryMs = RETRY_MS;

/** Lets it read, now or as soon as it may. @param {Listener} one */
function tell(one) {
  one.isDue = document.hidden || one.rests !== undefined;
  if (one.isDue) return;
  one.rests = setTimeout(() => {
    one.rests = undefined;
    if (one.isDue && listeners.has(one)) tell(one);
  }, LEAST_MS);
  one.onChange();
}

setInterval(() => {
  if (unauthenticated.value) return;
  for (const one of [...listeners]) if (!one.kinds.every((kind) => told.has(kind))) tell(one);
}, EVERY_MS);

/** Begins or ends the stream, as it is wanted. */
function settle() {
  const isWanted = !owned && !isAway && !unauthenticated.value && [...listeners].some((one) => one.kinds.some((kind) => HINTED.includes(kind)));
  if (isWanted && !stream && !retries) follow();
  if (isWanted) return;
  clearTimeout(retries);
  retries = undefined;
  stream?.abort();
  stream = undefined;
  told.clear();
}

async function follow() {
  const own = (stream = new AbortController());
  try {
    for await (const { kind, data } of api.changes.follow({}, { ...quiet, signal: own.signal, failures: 1 })) {
      if (kind !== "changed" || stream !== own) continue;
      told.add(data.kind);
      retryMs = RETRY_MS;
      for (const one of [...listeners]) if (one.kinds.includes(data.kind)) tell(one);
    }
  } catch {
    // Why does not matter: the clock reads meanwhile, and says what is wrong.
  }
  if (stream !== own) return;
  stream = undefined;
  told.clear();
  // At random, so that those of a server that ended do not come back all at once.
  retries = setTimeout(() => {
    retries = undefined;
    settle();
  }, retryMs * (1 + Math.random() / 2));
  retryMs = Math.min(retryMs * 2, LONGEST_RETRY_MS);
}

/** @type {ReturnType<typeof setTimeout> | undefined} */
let leaves;
document.addEventListener("visibilitychange", () => {
  clearTimeout(leaves);
  if (document.hidden) {
    leaves = setTimeout(() => {
      isAway = true;
      settle();
    }, HIDDEN_MS);
    return;
  }
  for (const one of [...listeners]) if (one.isDue || isAway) tell(one);
  isAway = false;
  settle();
});

// A session that ended, and one that begins again.
unauthenticated.subscribe(() => settle());

/** The page has a stream of its own, until it calls what this answers: hints would be a second one. */
export function ownStream() {
  let isOver = false;
  owned++;
  settle();
  return () => {
    if (isOver) return;
    isOver = true;
    owned--;
    settle();
  };
}

/**
 * Calls when an object of one of the kinds may have changed: `useHints(["run"], reload)`.
 * @param {string[]} kinds
 * @param {() => void} onChange
 */
export function useHints(kinds, onChange) {
  const ref = useRef(onChange);
  ref.current = onChange;
  const wanted = kinds.join(" ");
  useEffect(() => {
    if (!wanted) return undefined;
    /** @type {Listener} */
    const listener = { kinds: wanted.split(" "), onChange: () => ref.current(), isDue: false };
    listeners.add(listener);
    settle();
    return () => {
      listeners.delete(listener);
      clearTimeout(listener.rests);
      setTimeout(settle, LEFT_MS);
    };
  }, [wanted]);
}
