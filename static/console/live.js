/**
 * What changes elsewhere while a page is open: pages say after which kinds of objects' changes they read again.
 *
 * Guarantees: a hidden page asks nothing, and asks at once when it comes back. However many parts of a page listen, the
 * page has one clock for them.
 */

import { useEffect, useRef } from "preact/hooks";

const EVERY_MS = 5000;

/** @type {Set<{ kinds: string[], onChange: () => void }>} */
const listeners = new Set();
/** @type {ReturnType<typeof setInterval> | undefined} */
let clock;
let isDue = false;

function tell() {
  if (document.hidden) {
    isDue = true;
    return;
  }
  isDue = false;
  for (const one of [...listeners]) one.onChange();
}

document.addEventListener("visibilitychange", () => {
  if (!document.hidden && isDue) tell();
});

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
    const listener = { kinds: wanted.split(" "), onChange: () => ref.current() };
    listeners.add(listener);
    clock ??= setInterval(tell, EVERY_MS);
    return () => {
      listeners.delete(listener);
      if (!listeners.size) {
        clearInterval(clock);
        clock = undefined;
      }
    };
  }, [wanted]);
}
