/**
 * What a page offers in the palette, as long as it stands: `useActs([{ title: "Cancel this run", about: "Act", run }])`. One with a
 * single letter as `keys` is done by that key, too, and stands in the list of keys.
 */

import { acts } from "../overlay-state.js";
import { useLayoutEffect, useRef } from "../ui.js";

/** @param {import("./palette.js").Entry[]} entries */
export function useActs(entries) {
  const ref = useRef(entries);
  ref.current = entries;
  const key = entries.map((entry) => entry.title).join("\n");
  useLayoutEffect(() => {
    // Of the same name is another act once the page shows another thing: what is done is what the page has then.
    acts.value = entries.map((entry, index) => ({ ...entry, run: () => ref.current[index]?.run?.() }));
    return () => {
      acts.value = [];
    };
  }, [key]);
}
